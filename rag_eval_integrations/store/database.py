"""`Store`: calls, evaluations and the queue of the workers, in SQLite or PostgreSQL.

One column, `not_before`, is schedule, back-off and lease: a call is due once that moment is over,
and a worker that claims it moves the moment on. What a dead worker had claimed is due again by
itself. On PostgreSQL the moment is the server's, so that the clocks of workers do not matter.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from rag_eval_integrations.metrics._outcome import FAILING, outcome
from rag_eval_integrations.records import Evaluation, RagCall, from_line, to_line
from rag_eval_integrations.records._json import whole_text
from rag_eval_integrations.store._failures import repeated
from rag_eval_integrations.store._reading import ReadableStore
from rag_eval_integrations.store._scores import record_scores
from rag_eval_integrations.store.spool import Redact, Refusal, SpooledCall, new_uid, redacted

LEASE = 60.0
"""Seconds for which a claimed call is the worker's, unless it renews the lease."""
TRIES = 5
"""Attempts after which a call that cannot be judged is parked."""
BACKOFF = (30.0, 120.0, 480.0, 1_920.0)
"""Seconds until the next attempt, after each that failed."""
_MOST_DELETED = 500
_LATEST = BACKOFF[-1] + LEASE
"""Seconds from now beyond which nothing is scheduled, unless the clock was set back."""


class ClaimedCall(NamedTuple):
    """A call of the store, as a worker or a second evaluation takes it."""

    id: int
    call_uid: str
    at: float
    body: str
    tries: int
    why: str | None = None
    """With what it failed the last time."""
    lapsed: bool = False
    """Whether a worker held it until its lease was over: it may have ended with that worker."""

    def call(self) -> RagCall:
        """Return the call, parsed from its line.

        Raises:
            InputError: another version wrote it, and this one does not know its fields.
        """
        return from_line(RagCall, self.body)


@dataclass(frozen=True)
class Outcome:
    """What became of a claimed call."""

    call: ClaimedCall
    state: str
    """`judged`; `due`, to be tried again; `parked`, tried in vain; `left_out`, never tried."""
    why: str | None = None
    wait: float = 0.0
    """Seconds until it is due again."""
    evaluation: Evaluation | None = None
    seconds: float | None = None
    """How long the evaluation took."""
    uses_try: bool = True
    """Whether the attempt counts."""


class Store(ReadableStore):
    """Calls and evaluations in a database, and the queue of any number of workers.

    Calls are told apart by the id that `submit` gave them (`call_uid`): two equal calls are two
    rows. Evaluations are recorded once per call and evaluator (`Evaluation.fingerprint`).

    Args:
        where: a path or `sqlite:///PATH` (extra `store`), or `postgresql://…` (extra `postgres`).
            A new SQLite file is readable by its owner only.
        redact: changes a call that `submit` is given, before anything is written.
        create: make a store where there is none.

    Raises:
        ConfigurationError: it is neither, or it was made by a newer version of the library.
        FileNotFoundError: there is none, and `create` is False.
        MissingDependencyError: the extra is not installed.
        OSError: the database cannot be opened or written.
    """

    def __init__(
        self, where: str | os.PathLike[str], *, redact: Redact | None = None, create: bool = True
    ) -> None:
        super().__init__(where, create)
        self._redact = redact
        self._makers: dict[str, int] = {}

    # --- Calls come in

    def submit(self, call: RagCall) -> str:
        """Write a call, due at once, and return its `call_uid`.

        A spool takes calls faster, and when the database does not answer. `redact` changes the call
        first.

        Raises:
            OSError: the database cannot be written.
            RagEvalError: `redact` failed.
        """
        if self._redact is not None:
            call = redacted(self._redact, call)
        spooled = SpooledCall(new_uid(), time.time(), to_line(call))
        self.add([spooled])
        return spooled.call_uid

    def __call__(self, call: RagCall) -> None:
        """Submit a call; handlers call the store in this form."""
        self.submit(call)

    @repeated
    def add(self, calls: Sequence[SpooledCall], refusals: Sequence[Refusal] = ()) -> int:
        """Write calls and counts of refused calls; those that are there already are left alone.

        All or nothing: in one transaction.

        Returns:
            The number of calls that were not there.

        Raises:
            OSError: the database cannot be written.
        """
        added = 0
        with self._running(writing=True) as run:
            if calls:
                added = run(
                    "INSERT INTO rag_call (call_uid, at, body, state, not_before) "
                    "VALUES (:call_uid, :at, :body, 'due', 0) ON CONFLICT DO NOTHING",
                    [call._asdict() for call in calls],
                ).rowcount
            if refusals:
                run(
                    "INSERT INTO rag_refusal (uid, at, why, calls) VALUES (:uid, :at, :why, :calls)"
                    " ON CONFLICT DO NOTHING",
                    [{**refusal._asdict(), "why": _storable(refusal.why)} for refusal in refusals],
                )
        return added

    # --- The queue

    @repeated
    def claim(self, worker: str, most: int, *, busy: bool = False) -> list[ClaimedCall]:
        """Give a worker the calls that are due longest, for the time of a lease.

        A call whose lease has ended is due again, and given alone: workers may end with it. Each
        claim counts as a try. Empty if none is due, or if one is next that is given alone.

        Args:
            worker: id of the worker.
            most: number of calls at most, from 1.
            busy: whether the worker has calls in progress.
        """
        with self._running(writing=True) as run:
            run(  # the clock was set back: nothing is scheduled that late
                "UPDATE rag_call SET not_before = {now} "
                "WHERE state = 'due' AND not_before > {now} + :latest",
                latest=_LATEST,
            )
            due = "FROM rag_call WHERE state = 'due' AND not_before <= {now} "
            order = " ORDER BY not_before LIMIT :most {skip}"
            first = run(f"SELECT id, lease_by {due}{order}", most=1).first()
            lapsed = first is not None and first[1] is not None
            if first is None or (lapsed and busy):
                return []
            which = "id = :first" if lapsed else "lease_by IS NULL"
            rows = run(
                f"WITH due AS MATERIALIZED (SELECT id {due} AND {which}{order}) "
                "UPDATE rag_call SET not_before = {now} + :lease, lease_by = :worker, "
                "tries = tries + 1 WHERE id IN (SELECT id FROM due) "
                "RETURNING id, call_uid, at, body, tries, why",
                most=most,
                lease=LEASE,
                worker=worker,
                **({"first": first[0]} if lapsed else {}),
            ).all()
        return [ClaimedCall(*row)._replace(lapsed=lapsed) for row in rows]

    @repeated
    def renew(self, worker: str) -> None:
        """Begin the leases of a worker's calls anew."""
        with self._running(writing=True) as run:
            run(  # in the order of `settle`: two that lock rows crosswise wait for each other
                "UPDATE rag_call SET not_before = {now} + :lease WHERE id IN (SELECT id FROM "
                "rag_call WHERE state = 'due' AND lease_by = :worker ORDER BY id {lock})",
                lease=LEASE,
                worker=worker,
            )

    @repeated
    def settle(
        self, outcomes: Sequence[Outcome], worker: str | None = None, sinks: Collection[str] = ()
    ) -> list[Evaluation]:
        """Record what became of calls, in one transaction.

        Args:
            outcomes: the calls.
            worker: who holds them; a call whose lease another worker has taken since is left to
                that one. None for further evaluations: a call that waits goes on waiting.
            sinks: names of sinks, for each of which what is recorded is marked as not sent.

        Returns:
            The evaluations that were recorded.
        """
        recorded, makers = [], dict(self._makers)
        whose = "state <> 'due'" if worker is None else "state = 'due' AND lease_by = :worker"
        with self._running(writing=True) as run:
            for outcome in sorted(outcomes, key=lambda outcome: outcome.call.id):
                settled = run(
                    "UPDATE rag_call SET state = :state, why = :why, lease_by = NULL, "
                    "tries = tries - :unused, "
                    f"not_before = {{now}} + :wait WHERE id = :id AND {whose}",
                    state=outcome.state,
                    why=_storable(outcome.why),
                    wait=outcome.wait,
                    unused=int(not outcome.uses_try),
                    id=outcome.call.id,
                    worker=worker,
                ).rowcount
                if worker is None and not settled:  # it waits, or was deleted meanwhile
                    here = "SELECT 1 FROM rag_call WHERE id = :id"
                    settled = run(here, id=outcome.call.id).first() is not None
                if outcome.evaluation is not None and settled:
                    recorded += self._record(run, outcome, outcome.evaluation, makers, sinks)
        self._makers = makers
        return recorded

    def _record(
        self,
        run: Callable[..., Any],
        outcome: Outcome,
        evaluation: Evaluation,
        makers: dict[str, int],
        sinks: Collection[str],
    ) -> list[Evaluation]:
        """Record an evaluation and its scores; empty if it is there already."""
        call = outcome.call
        row = run(
            "INSERT INTO rag_evaluation (call_id, fingerprint, at, finished, seconds, usd, judge, "
            "failing, line) VALUES (:call, :fingerprint, :at, {now}, :seconds, :usd, :judge, "
            ":failing, :line) ON CONFLICT DO NOTHING RETURNING id",
            call=call.id,
            fingerprint=evaluation.fingerprint or "",
            at=call.at,
            seconds=outcome.seconds,
            usd=evaluation.usage.cost_usd,
            judge=_storable(evaluation.judge.name),
            failing=_failing_verdict(evaluation),
            line=to_line(evaluation),
        ).first()
        if row is None:
            return []
        record_scores(run, row[0], call.at, evaluation, makers)
        if sinks:
            run(
                "INSERT INTO rag_unsent (evaluation_id, sink, at, not_before) "
                "VALUES (:id, :sink, :at, 0)",
                [{"id": row[0], "sink": sink, "at": call.at} for sink in sinks],
            )
        return [evaluation]

    @repeated
    def retry(self, call_uid: str | None = None) -> int:
        """Make a parked call due now, or all of them, with all tries; return their number.

        What a sink left is sent again now, too.
        """
        with self._running(writing=True) as run:
            run("UPDATE rag_unsent SET tries = 0, not_before = 0 WHERE tries > 0")
            done: int = run(
                "UPDATE rag_call SET state = 'due', why = NULL, tries = 0, not_before = 0 "
                "WHERE state = 'parked' AND call_uid = coalesce(:uid, call_uid)",
                uid=call_uid,
            ).rowcount
        return done

    def prune(
        self, before: float = inf, holds: Callable[[dict[str, Any]], bool] | None = None
    ) -> int:
        """Delete calls with their evaluations, whatever their state, also those that wait.

        Args:
            before: only calls that were submitted before this moment, in seconds since 1970; with
                them, without `holds`, counts of refused calls of that time.
            holds: tells of a call, as it was read of its JSON, whether to delete it; None for all.

        Returns:
            The number of calls.
        """
        if holds is None:
            return self._delete_before(before)
        sql = "SELECT id, body FROM rag_call WHERE at < :before AND id > :last ORDER BY id"
        pages = self._pages(sql, before=before)
        chosen = (number for number, body in pages if holds(json.loads(body)))
        deleted = 0
        while numbers := list(islice(chosen, _MOST_DELETED)):
            self._delete(numbers)
            deleted += len(numbers)
        return deleted

    @repeated
    def _delete_before(self, before: float) -> int:
        """Delete what is of a time before a moment; return the number of calls."""
        with self._running(writing=True) as run:
            for table in ("rag_unsent", "rag_score", "rag_evaluation", "rag_refusal", "rag_call"):
                done: int = run(f"DELETE FROM {table} WHERE at < :before", before=before).rowcount
        return done  # calls are the last

    @repeated
    def _delete(self, calls: Sequence[int]) -> None:
        """Delete calls by their ids."""
        among = f"({', '.join(map(str, calls))})"
        evaluations = f"(SELECT id FROM rag_evaluation WHERE call_id IN {among})"
        moments = f"(SELECT at FROM rag_call WHERE id IN {among})"  # scores have an index of these
        with self._running(writing=True) as run:
            run(f"DELETE FROM rag_unsent WHERE evaluation_id IN {evaluations}")
            run(f"DELETE FROM rag_score WHERE at IN {moments} AND evaluation_id IN {evaluations}")
            run(f"DELETE FROM rag_evaluation WHERE call_id IN {among}")
            run(f"DELETE FROM rag_call WHERE id IN {among}")

    @repeated
    def take_permit(self, name: str, spacing: float) -> float:
        """Count a start within a limit that all workers share: one per so many seconds.

        If the next start is further away than a minute and than `spacing`, the clock was set back,
        and the permit is given at once.

        Returns:
            0.0, or the seconds after which to try again, since it is too early.
        """
        with self._running(writing=True) as run:
            values: dict[str, Any] = {"name": name, "spacing": spacing, "most": max(spacing, 62.0)}
            run(
                "INSERT INTO rag_permit (name, next) VALUES (:name, 0) ON CONFLICT DO NOTHING",
                name=name,
            )
            taken = run(
                "UPDATE rag_permit SET next = {now} + :spacing WHERE name = :name "
                "AND (next <= {now} OR next > {now} + :most) RETURNING 0.0",
                **values,
            ).first()
            left = taken or run("SELECT next - {now} FROM rag_permit WHERE name = :name", **values)
            return 0.0 if taken else max(1e-3, float(left.scalar_one()))

    def without(
        self, fingerprint: str, since: float = 0.0
    ) -> Iterator[tuple[ClaimedCall, Evaluation | None]]:
        """Yield the calls that an evaluator has not evaluated, each with its latest evaluation.

        The evaluation is None for a call that nobody has evaluated. Calls come in the order in
        which they were written, whatever their state.

        Args:
            fingerprint: of the evaluator.
            since: only calls that were submitted at this moment or later, in seconds since 1970.
        """
        sql = (
            "SELECT c.id, c.call_uid, c.at, c.body, c.tries, (SELECT line FROM rag_evaluation e "
            "WHERE e.call_id = c.id ORDER BY e.id DESC LIMIT 1) FROM rag_call c WHERE c.at >= "
            ":since AND c.id > :last AND NOT EXISTS (SELECT 1 FROM rag_evaluation e WHERE "
            "e.call_id = c.id AND e.fingerprint = :fingerprint) ORDER BY c.id"
        )
        for *call, line in self._pages(sql, since=since, fingerprint=fingerprint):
            yield ClaimedCall(*call), None if line is None else from_line(Evaluation, line)


def _storable(text: str | None) -> str | None:
    """Return a text without what PostgreSQL refuses, cut to 2,000 characters; None for None."""
    # PostgreSQL holds no NUL in a text.
    return None if text is None else whole_text(text.replace("\0", "\ufffd"))[:2_000]


def _failing_verdict(evaluation: Evaluation) -> str | None:
    """Return the verdict of an evaluation if it is a failing one; else None."""
    verdict = outcome(evaluation)
    return verdict if verdict in FAILING else None
