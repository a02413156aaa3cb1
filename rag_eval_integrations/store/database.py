"""`Store`: calls, evaluations and the queue of the workers, in SQLite or PostgreSQL.

One column, `not_before`, is schedule, back-off and lease: a call is due once that moment is over,
and a worker that claims it moves the moment on. What a dead worker had claimed is due again by
itself. On PostgreSQL the moment is the server's, so that the clocks of workers do not matter.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rag_eval_integrations import _target
from rag_eval_integrations._contain import words_of
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError, without_secrets
from rag_eval_integrations.metrics import diagnose
from rag_eval_integrations.records import (
    By,
    Evaluation,
    Made,
    RagCall,
    RunningMean,
    from_line,
    to_line,
    whole_text,
)
from rag_eval_integrations.records.mean import makers_of
from rag_eval_integrations.store.spool import Redact, Refusal, SpooledCall, new_uid

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LEASE = 60.0
"""Seconds for which a claimed call is the worker's, unless it renews the lease."""
TRIES = 5
"""Attempts after which a call that cannot be judged is parked."""
BACKOFF = (30.0, 120.0, 480.0, 1_920.0)
"""Seconds until the next attempt, after each that failed."""
_LATEST = BACKOFF[-1] + LEASE
"""Seconds from now beyond which nothing is scheduled, unless the clock was set back."""
_BUSY = 30.0
_PAGE = 500

_STATEMENTS = (
    """CREATE TABLE rag_call (id {id}, call_uid TEXT NOT NULL UNIQUE, at {real} NOT NULL,
    body TEXT NOT NULL, state TEXT NOT NULL, not_before {real} NOT NULL, lease_by TEXT,
    tries INTEGER NOT NULL DEFAULT 0, why TEXT)""",
    "CREATE INDEX rag_call_due ON rag_call (state, not_before)",
    "CREATE INDEX rag_call_at ON rag_call (at)",
    """CREATE TABLE rag_evaluation (id {id}, call_id BIGINT NOT NULL, fingerprint TEXT NOT NULL,
    at {real} NOT NULL, finished {real} NOT NULL, seconds {real}, usd {real}, judge TEXT NOT NULL,
    failing TEXT, line TEXT NOT NULL, UNIQUE (call_id, fingerprint))""",
    "CREATE INDEX rag_evaluation_at ON rag_evaluation (at)",
    "CREATE INDEX rag_evaluation_finished ON rag_evaluation (finished, usd)",
    "CREATE INDEX rag_evaluation_failing ON rag_evaluation (at) WHERE failing IS NOT NULL",
    "CREATE TABLE rag_maker (id {id}, made TEXT NOT NULL UNIQUE)",
    """CREATE TABLE rag_score (evaluation_id BIGINT NOT NULL, maker_id BIGINT NOT NULL,
    at {real} NOT NULL, value {real}, why TEXT)""",
    "CREATE INDEX rag_score_at ON rag_score (at, maker_id, value, why)",
    "CREATE TABLE rag_refusal (uid TEXT PRIMARY KEY, at {real} NOT NULL, why TEXT, calls BIGINT)",
    "CREATE TABLE rag_permit (name TEXT PRIMARY KEY, next {real} NOT NULL)",
)
"""The schema: its version is the number of these that a store has run. Add to the end only."""


class ClaimedCall(NamedTuple):
    """A call of the store, as a worker or a second evaluation takes it."""

    id: int
    call_uid: str
    at: float
    body: str
    tries: int

    def call(self) -> RagCall:
        """Read the call.

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


class MeanOfPeriod(NamedTuple):
    """The mean of a score over the calls of a period."""

    start: float
    """Begin of the period, in seconds since 1970."""
    made: Made
    mean: RunningMean
    total: int
    """Calls with the score, with or without a value."""


class Store:
    """Calls and evaluations in a database, and the queue of any number of workers.

    Calls are told apart by the id that `submit` gave them (`call_uid`): two equal calls are two
    rows. Evaluations are recorded once per call and evaluator (`Evaluation.fingerprint`).

    Args:
        where: a path or `sqlite:///PATH` (extra `store`), or `postgresql://…` (extra `postgres`).
            A new SQLite file is readable by its owner only.
        redact: changes a call that `submit` is given, before anything is written.

    Raises:
        ConfigurationError: it is neither, or a newer version of the library wrote it.
        MissingDependencyError: the extra is not installed.
        OSError: the database cannot be opened or written.
    """

    def __init__(self, where: str | os.PathLike[str], *, redact: Redact | None = None) -> None:
        try:
            import sqlalchemy  # noqa: PLC0415  # of the extra; takes .2 s
        except ImportError as error:
            raise MissingDependencyError("SQLAlchemy", "store") from error
        text = where if isinstance(where, str) else str(_target.path_from(where, "store"))
        self.name = without_secrets(text)
        """The path or URL, without secrets."""
        self._text = sqlalchemy.text
        self._errors = sqlalchemy.exc
        self._redact = redact
        self._makers: dict[str, int] = {}
        self._sqlite = "://" not in text or text.startswith("sqlite:///")
        self._engine = (
            self._on_sqlite(text.removeprefix("sqlite:///"))
            if self._sqlite
            else self._on_postgresql(text)
        )
        now = ":now" if self._sqlite else "extract(epoch FROM clock_timestamp())::float8"
        self._words = {
            "now": now,
            "id": "INTEGER PRIMARY KEY"
            if self._sqlite
            else "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            "real": "DOUBLE PRECISION",
            "skip": "" if self._sqlite else "FOR UPDATE SKIP LOCKED",
            "bucket": "CAST((at - :since) / :step AS INTEGER)"
            if self._sqlite
            else "floor((at - :since) / :step)",
        }
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Store({self.name!r})"

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _on_sqlite(self, text: str) -> Engine:
        from sqlalchemy import URL, create_engine, event  # noqa: PLC0415  # as above

        path = _target.resolved(text, "store")
        if not path.exists():
            os.close(_target.create(path))  # private; SQLite gives its log the same mode
        engine = create_engine(
            URL.create("sqlite", database=str(path)),
            connect_args={"timeout": _BUSY, "isolation_level": None},
            hide_parameters=True,
        )

        @event.listens_for(engine, "connect")
        def prepare(connection: Any, _: object) -> None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")

        return engine

    def _on_postgresql(self, text: str) -> Engine:
        from sqlalchemy import create_engine, make_url  # noqa: PLC0415  # as above

        try:
            url = make_url(text)
        except self._errors.ArgumentError:
            url = None
        if url is None or url.get_backend_name() != "postgresql":
            why = "use a path, sqlite:///PATH or postgresql://USER@HOST/NAME"
            raise ConfigurationError("store", text, why)
        try:
            return create_engine(
                url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, hide_parameters=True
            )
        except ImportError as error:
            raise MissingDependencyError("psycopg", "postgres") from error

    def _migrate(self) -> None:
        with self._writing() as run:
            if not self._sqlite:  # one process at a time; SQLite's transaction sees to that itself
                run("SELECT pg_advisory_xact_lock(7261672)")
            run("CREATE TABLE IF NOT EXISTS rag_schema (version INTEGER NOT NULL)")
            rows = run("SELECT version FROM rag_schema").all()
            version = rows[0][0] if rows else 0
            if version > len(_STATEMENTS):
                raise ConfigurationError(
                    "store", self.name,
                    f"has schema {version}, and this version knows {len(_STATEMENTS)}; install the "
                    "newer rag-eval-integrations that wrote it",
                )  # fmt: skip
            for statement in _STATEMENTS[version:]:
                run(statement)
            if not rows:
                run("INSERT INTO rag_schema VALUES (:version)", version=len(_STATEMENTS))
            elif version < len(_STATEMENTS):
                run("UPDATE rag_schema SET version = :version", version=len(_STATEMENTS))

    # --- Statements

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """Open a connection; a database that cannot be used is an `OSError` without parameters."""
        errors = self._errors
        try:
            with self._engine.connect() as connection:
                yield connection
        except (errors.OperationalError, errors.InterfaceError) as error:
            raise OSError(f"{self.name}: {words_of(error.orig or error)}") from None
        except errors.DatabaseError as error:
            if type(error) is not errors.DatabaseError and not error.connection_invalidated:
                raise
            raise OSError(f"{self.name}: {words_of(error.orig or error)}") from None

    def _runs_on(self, connection: Connection) -> Callable[..., Any]:
        def run(sql: str, rows: list[dict[str, Any]] | None = None, /, **values: Any) -> Any:
            statement = self._text(sql.format(**self._words))
            now = {"now": time.time()} if self._sqlite and "{now}" in sql else {}
            if rows is not None:
                return connection.execute(statement, [row | now for row in rows])
            return connection.execute(statement, values | now)

        return run

    @contextmanager
    def _writing(self) -> Iterator[Callable[..., Any]]:
        """Run statements in one transaction, which is committed at the end."""
        with self._connected() as connection:
            if self._sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield self._runs_on(connection)
            connection.commit()

    def _read(self, sql: str, **values: Any) -> Sequence[Any]:
        with self._connected() as connection:
            rows: Sequence[Any] = self._runs_on(connection)(sql, **values).all()
            return rows

    # --- Calls come in

    def submit(self, call: RagCall) -> str:
        """Write a call, due at once, and return its `call_uid`.

        A spool takes calls faster, and when the database does not answer.

        Raises:
            OSError: the database cannot be written.
        """
        if self._redact is not None:
            call = self._redact(call)
        spooled = SpooledCall(new_uid(), time.time(), to_line(call))
        self.add([spooled])
        return spooled.call_uid

    def __call__(self, call: RagCall) -> None:
        """Submit a call; handlers call the store in this form."""
        self.submit(call)

    def add(self, calls: Sequence[SpooledCall], refusals: Sequence[Refusal] = ()) -> None:
        """Write calls and counts of refused calls; those that are there already are left alone."""
        with self._writing() as run:
            if calls:
                run(
                    "INSERT INTO rag_call (call_uid, at, body, state, not_before) "
                    "VALUES (:call_uid, :at, :body, 'due', 0) ON CONFLICT DO NOTHING",
                    [call._asdict() for call in calls],
                )
            if refusals:
                run(
                    "INSERT INTO rag_refusal (uid, at, why, calls) VALUES (:uid, :at, :why, :calls)"
                    " ON CONFLICT DO NOTHING",
                    [{**refusal._asdict(), "why": _plain(refusal.why)} for refusal in refusals],
                )

    # --- The queue

    def claim(self, worker: str, most: int) -> list[ClaimedCall]:
        """Give a worker the calls that are due longest, for the time of a lease.

        Args:
            worker: id of the worker.
            most: number of calls at most, from 1.
        """
        with self._writing() as run:
            if self._sqlite:  # its clock was set back: nothing is scheduled that late
                run(
                    "UPDATE rag_call SET not_before = {now} "
                    "WHERE state = 'due' AND not_before > {now} + :latest",
                    latest=_LATEST,
                )
            rows = run(
                "WITH due AS MATERIALIZED (SELECT id FROM rag_call WHERE state = 'due' "
                "AND not_before <= {now} ORDER BY not_before LIMIT :most {skip}) "
                "UPDATE rag_call SET not_before = {now} + :lease, lease_by = :worker, "
                "tries = tries + 1 WHERE id IN (SELECT id FROM due) "
                "RETURNING id, call_uid, at, body, tries",
                most=most, lease=LEASE, worker=worker,
            ).all()  # fmt: skip
        return [ClaimedCall(*row) for row in rows]

    def renew(self, worker: str) -> None:
        """Begin the leases of a worker's calls anew."""
        with self._writing() as run:
            run(
                "UPDATE rag_call SET not_before = {now} + :lease "
                "WHERE state = 'due' AND lease_by = :worker",
                lease=LEASE,
                worker=worker,
            )

    def settle(self, worker: str, outcomes: Sequence[Outcome]) -> list[Evaluation]:
        """Record what became of a worker's calls, in one transaction.

        A call whose lease another worker has taken since is left to that one.

        Returns:
            The evaluations that were recorded.
        """
        recorded, makers = [], dict(self._makers)
        with self._writing() as run:
            for outcome in outcomes:
                held = run(
                    "UPDATE rag_call SET state = :state, why = :why, lease_by = NULL, "
                    "not_before = {now} + :wait "
                    "WHERE id = :id AND lease_by = :worker AND state = 'due'",
                    state=outcome.state, why=_plain(outcome.why), wait=outcome.wait,
                    id=outcome.call.id, worker=worker,
                ).rowcount  # fmt: skip
                if held and self._record(run, outcome, makers):
                    recorded.append(outcome.evaluation)
        self._makers = makers
        return [evaluation for evaluation in recorded if evaluation is not None]

    def record(self, outcomes: Sequence[Outcome]) -> list[Evaluation]:
        """Record further evaluations of calls that no worker holds, as `settle` does."""
        recorded, makers = [], dict(self._makers)
        with self._writing() as run:
            for outcome in outcomes:
                if self._record(run, outcome, makers):
                    recorded.append(outcome.evaluation)
                    run(
                        "UPDATE rag_call SET state = 'judged', why = NULL "
                        "WHERE id = :id AND state <> 'due'",
                        id=outcome.call.id,
                    )
        self._makers = makers
        return [evaluation for evaluation in recorded if evaluation is not None]

    def _record(self, run: Callable[..., Any], outcome: Outcome, makers: dict[str, int]) -> bool:
        evaluation, call = outcome.evaluation, outcome.call
        if evaluation is None:
            return False
        row = run(
            "INSERT INTO rag_evaluation (call_id, fingerprint, at, finished, seconds, usd, judge, "
            "failing, line) VALUES (:call, :fingerprint, :at, {now}, :seconds, :usd, :judge, "
            ":failing, :line) ON CONFLICT DO NOTHING RETURNING id",
            call=call.id, fingerprint=evaluation.fingerprint or "", at=call.at,
            seconds=outcome.seconds, usd=evaluation.usage.cost_usd,
            judge=_plain(evaluation.judge.name), failing=_failing(evaluation),
            line=to_line(evaluation),
        ).first()  # fmt: skip
        if row is None:
            return False
        scores = [
            {
                "evaluation": row[0], "at": call.at, "value": score.value,
                "maker": _maker(run, _written(made), makers),
                "why": None if score.value is not None else score.unscored or score.status,
            }
            for made, score in makers_of(evaluation)
        ]  # fmt: skip
        if scores:
            run(
                "INSERT INTO rag_score (evaluation_id, maker_id, at, value, why) "
                "VALUES (:evaluation, :maker, :at, :value, :why)",
                scores,
            )
        return True

    def retry(self) -> int:
        """Make all parked calls due again, with all of their tries; return their number."""
        with self._writing() as run:
            done: int = run(
                "UPDATE rag_call SET state = 'due', why = NULL, tries = 0, not_before = 0 "
                "WHERE state = 'parked'"
            ).rowcount
        return done

    def prune(self, before: float) -> int:
        """Delete calls that were submitted before a moment, with their evaluations.

        Returns:
            The number of calls.
        """
        with self._writing() as run:
            for table in ("rag_score", "rag_evaluation", "rag_refusal", "rag_call"):
                done: int = run(f"DELETE FROM {table} WHERE at < :before", before=before).rowcount
        return done  # calls are the last

    async def wait_for_permit(self, name: str, per_minute: float, weight: int) -> None:
        """Wait until a start is within a limit that all workers of the store share, and count it.

        Starts are spaced evenly over 61 s for each minute, since one may come late.
        """
        import asyncio  # noqa: PLC0415  # 40 ms that `store info` does not pay

        spacing = 61.0 / per_minute * weight
        while (pause := await asyncio.to_thread(self._permit, name, spacing)) > 0:  # noqa: ASYNC110
            await asyncio.sleep(pause)  # other processes set no event

    def _permit(self, name: str, spacing: float) -> float:
        """Count a start; else return the seconds until the next may be tried."""
        with self._writing() as run:
            run(
                "INSERT INTO rag_permit (name, next) VALUES (:name, 0) ON CONFLICT DO NOTHING",
                name=name,
            )
            taken = run(
                "UPDATE rag_permit SET next = {now} + :spacing WHERE name = :name "
                "AND (next <= {now} OR next > {now} + :most) RETURNING next",
                name=name, spacing=spacing, most=max(spacing, 60.0),
            ).first()  # fmt: skip
            if taken is not None:
                return 0.0
            pause = run("SELECT next - {now} FROM rag_permit WHERE name = :name", name=name)
            return max(1e-3, float(pause.scalar_one()))

    # --- What is in it

    def now(self) -> float:
        """Return the moment by the clock that the store goes by, in seconds since 1970."""
        return float(self._read("SELECT {now}")[0][0])

    def evaluations(
        self, since: float = 0.0, *, failing: bool = False, newest: int | None = None
    ) -> Iterator[Evaluation]:
        """Yield evaluations in the order in which they were recorded.

        Args:
            since: only of calls that were submitted at this moment or later, in seconds since 1970.
            failing: only those of which a score fails its threshold or a pattern is not healthy.
            newest: only so many of the newest calls, the newest first; None for all.
        """
        chosen = "WHERE at >= :since" + (" AND failing IS NOT NULL" if failing else "")
        if newest is not None:
            sql = f"SELECT line FROM rag_evaluation {chosen} ORDER BY at DESC LIMIT :most"
            for (line,) in self._read(sql, since=since, most=newest):
                yield from_line(Evaluation, line)
            return
        last, sql = 0, f"SELECT id, line FROM rag_evaluation {chosen} AND id > :last ORDER BY id"
        while rows := self._read(f"{sql} LIMIT :most", since=since, last=last, most=_PAGE):
            for last, line in rows:  # noqa: B007  # the next page begins behind it
                yield from_line(Evaluation, line)

    def without(
        self, fingerprint: str, since: float = 0.0
    ) -> Iterator[tuple[ClaimedCall, Evaluation | None]]:
        """Yield the calls that an evaluator has not evaluated, each with its latest evaluation.

        Args:
            fingerprint: of the evaluator.
            since: only calls that were submitted at this moment or later, in seconds since 1970.
        """
        sql = (
            "SELECT c.id, c.call_uid, c.at, c.body, c.tries, (SELECT line FROM rag_evaluation e "
            "WHERE e.call_id = c.id ORDER BY e.id DESC LIMIT 1) FROM rag_call c WHERE c.at >= "
            ":since AND c.id > :last AND NOT EXISTS (SELECT 1 FROM rag_evaluation e WHERE "
            "e.call_id = c.id AND e.fingerprint = :fingerprint) ORDER BY c.id LIMIT :most"
        )
        last = 0
        values = {"since": since, "fingerprint": fingerprint, "most": _PAGE}
        while rows := self._read(sql, last=last, **values):
            for *call, line in rows:
                last = call[0]
                yield ClaimedCall(*call), None if line is None else from_line(Evaluation, line)

    def means(
        self, since: float, until: float | None = None, *, step: float | None = None
    ) -> list[MeanOfPeriod]:
        """Work out the mean of each score over the calls of a time, by its maker.

        Args:
            since: begin of the time, in seconds since 1970.
            until: end of the time; None for now.
            step: seconds of a period; None for one period.
        """
        until = self.now() if until is None else until
        rows = self._read(
            "SELECT period, made, n, scored, total, squares, least, most, extremes FROM (SELECT "
            "{bucket} AS period, maker_id, count(*) AS n, count(value) AS scored, "
            "sum(value) AS total, sum(value * value) AS squares, min(value) AS least, "
            "max(value) AS most, count(CASE WHEN value IN (0.0, 1.0) THEN 1 END) AS extremes "
            "FROM rag_score WHERE at >= :since AND at < :until GROUP BY 1, 2) AS sums "
            "JOIN rag_maker ON rag_maker.id = maker_id ORDER BY 1, maker_id",
            since=since, until=until, step=step or max(until - since, 1e-9) * 2,
        )  # fmt: skip
        periods: dict[tuple[int, str], list[MeanOfPeriod]] = {}
        for period, text, n, scored, total, squares, least, most, extremes in rows:
            made = _read_maker(text)
            mean = RunningMean.of_sums(scored, total, squares, least, most, extremes)
            start = since + int(period) * (step or 0.0)
            found = MeanOfPeriod(start, made, mean, n)
            periods.setdefault((int(period), made.name), []).append(found)
        return [mean for means in periods.values() for mean in _with_unscored(means)]

    def counts(self, since: float = 0.0) -> list[tuple[str, str, int]]:
        """Count the calls that were submitted since a moment: state, reason and number.

        States are `judged`, `due`, `parked` and `left_out`, and `refused` for those that no spool
        took.
        """
        rows = self._read(
            "SELECT state, coalesce(why, ''), count(*) FROM rag_call WHERE at >= :since "
            "GROUP BY 1, 2 UNION ALL SELECT 'refused', why, sum(calls) FROM rag_refusal "
            "WHERE at >= :since GROUP BY 1, 2",
            since=since,
        )
        return sorted(
            ((state, why, int(n)) for state, why, n in rows), key=lambda row: (-row[2], *row)
        )

    def evaluators(self) -> list[tuple[str, str, int, float | None, float | None]]:
        """List judges: name, fingerprint, evaluations, mean seconds and mean US dollars."""
        return [
            tuple(row)
            for row in self._read(
                "SELECT judge, fingerprint, count(*), avg(seconds), avg(usd) FROM rag_evaluation "
                "GROUP BY 1, 2 ORDER BY 3 DESC"
            )
        ]

    def spent(self, since: float) -> float:
        """Sum up the US dollars of evaluations that were recorded since a moment."""
        rows = self._read(
            "SELECT sum(usd) FROM rag_evaluation WHERE finished >= :since", since=since
        )
        return float(rows[0][0] or 0.0)


def _with_unscored(means: list[MeanOfPeriod]) -> list[MeanOfPeriod]:
    """Count scores without a value, which know no estimator, with the only maker of values."""
    scored = [mean for mean in means if mean.mean.n]
    if len(scored) != 1:
        return means
    return [scored[0]._replace(total=sum(mean.total for mean in means))]


def _plain(text: str | None) -> str | None:
    # PostgreSQL holds no NUL in a text.
    return None if text is None else whole_text(text.replace("\0", "\ufffd"))[:2_000]


def _failing(evaluation: Evaluation) -> str | None:
    """Name the gravest finding of a call: a pattern, or a score below its threshold."""
    if evaluation.labels is not None:
        for diagnosis in diagnose(evaluation):
            if diagnosis.pattern != "healthy":
                return diagnosis.pattern
    return next((name for name, score in evaluation.scores.items() if score.passed is False), None)


def _written(made: Made) -> str:
    by = made.by.model_dump(exclude_none=True)
    return json.dumps([made.name, made.method, by], sort_keys=True)


def _read_maker(text: str) -> Made:
    name, method, by = json.loads(text)
    return Made(name, By.model_validate(by), method)


def _maker(run: Callable[..., Any], made: str, makers: dict[str, int]) -> int:
    if made not in makers:
        run("INSERT INTO rag_maker (made) VALUES (:made) ON CONFLICT DO NOTHING", made=made)
        makers[made] = run("SELECT id FROM rag_maker WHERE made = :made", made=made).scalar_one()
    return makers[made]
