"""What a store holds: evaluations, their means, counts of calls by state, and costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_eval_integrations.records import Evaluation, from_line
from rag_eval_integrations.store._scores import MEANS, MeanOfPeriod, means_of
from rag_eval_integrations.store._transactions import Database

_PAGE = 500


class ReadableStore(Database):
    """A store as pages and commands read it."""

    def now(self) -> float:
        """Return the moment by the store's clock, in seconds since 1970.

        That is PostgreSQL's own, or this machine's for SQLite.
        """
        return float(self._read("SELECT {now}")[0][0])

    def evaluations(self, since: float = 0.0) -> Iterator[Evaluation]:
        """Yield evaluations in the order in which their calls were submitted.

        Args:
            since: only of calls that were submitted at this moment or later, in seconds since 1970.
        """
        sql = (
            "SELECT at, id, line FROM rag_evaluation WHERE at >= :at AND (at > :at OR id > :id) "
            "ORDER BY at, id LIMIT :most"
        )
        at, id = since, 0
        while rows := self._read(sql, at=at, id=id, most=_PAGE):
            yield from (from_line(Evaluation, line) for *_, line in rows)
            at, id, _ = rows[-1]

    def recorded(self) -> Iterator[Evaluation]:
        """Yield evaluations in the order in which they were recorded: later ones stand behind."""
        sql = "SELECT id, line FROM rag_evaluation WHERE id > :last ORDER BY id"
        yield from (from_line(Evaluation, line) for _, line in self._pages(sql))

    def failing(self, since: float, most: int) -> list[Evaluation]:
        """Return the evaluations of the newest failing calls, the newest first.

        A call fails where it shows a pattern that is not healthy, or a score is below its
        threshold; a right refusal does not. Of several evaluations of a call the last one counts.

        Args:
            since: only of calls that were submitted at this moment or later, in seconds since 1970.
            most: number of evaluations at most.
        """
        return self._newest("at >= :since AND failing IS NOT NULL", since, most)

    def newest(
        self, since: float, most: int, *, until: float | None = None, skip: int = 0
    ) -> list[Evaluation]:
        """Return the evaluations of the newest calls.

        Args:
            since: as for `failing`, as is `most`.
            most: number of evaluations at most.
            until: only of calls that were submitted before this moment; None for all.
            skip: number of newer calls that are left out.
        """
        if until is None:
            return self._newest("at >= :since", since, most)
        return self._newest("at >= :since AND at < :until", since, most, until=until, skip=skip)

    def _newest(
        self, where: str, since: float, most: int, *, skip: int = 0, **more: float
    ) -> list[Evaluation]:
        sql = (
            f"SELECT line FROM rag_evaluation AS e WHERE {where} AND NOT EXISTS (SELECT 1 FROM "
            "rag_evaluation AS later WHERE later.call_id = e.call_id AND later.id > e.id) "
            "ORDER BY at DESC, id DESC LIMIT :most OFFSET :skip"
        )
        rows = self._read(sql, since=since, most=most, skip=skip, **more)
        return [from_line(Evaluation, line) for (line,) in rows]

    def means(
        self, since: float, until: float | None = None, *, step: float | None = None
    ) -> list[MeanOfPeriod]:
        """Work out the mean of each score over the calls of a time, by its maker.

        Ordered by period. Calls without a value count for the only judge that gave values, else by
        their own maker.

        Args:
            since: begin of the time, in seconds since 1970.
            until: end of the time; None for now.
            step: seconds of a period; None for one period.
        """
        until = self.now() if until is None else until
        rows = self._read(
            MEANS, since=since, until=until, step=step or max(until - since, 1e-9) * 2
        )
        return means_of(rows, since, step or 0.0)

    def calls(self, since: float, until: float, step: float) -> list[tuple[float, int]]:
        """Count the calls that were submitted in each period that has any: its begin, the number.

        Arguments are those of `means`.
        """
        sql = (
            "SELECT {period}, count(*) FROM rag_call WHERE at >= :since AND at < :until GROUP BY 1"
        )
        rows = self._read(f"{sql} ORDER BY 1", since=since, until=until, step=step)
        return [(since + int(period) * step, count) for period, count in rows]

    def first(self) -> float | None:
        """Return the moment at which the first call was submitted; None without any call."""
        moment: float | None = self._read("SELECT min(at) FROM rag_call")[0][0]
        return moment

    def counts(self, since: float = 0.0) -> list[tuple[str, str, int]]:
        """Count the calls that were submitted since a moment: state, reason and number.

        States are `judged`, `due`, `parked` and `left_out`, and `refused` for those that no spool
        took. The largest numbers come first; the reason is empty where there is none.
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

    def queue(self) -> list[tuple[str, int, float, float]]:
        """Count the calls that wait: how, their number, and the first and last moment until when.

        They are `due now`, `in progress` while a worker holds them, or `to be tried again` then.
        """
        return [
            tuple(row)
            for row in self._read(
                "SELECT CASE WHEN not_before <= {now} THEN 'due now' WHEN lease_by IS NULL "
                "THEN 'to be tried again' ELSE 'in progress' END, count(*), min(not_before), "
                "max(not_before) FROM rag_call WHERE state = 'due' GROUP BY 1 ORDER BY 1"
            )
        ]

    def waiting(self) -> list[tuple[str, int]]:
        """Count the calls that wait or are in progress, by what they failed with, or no reason."""
        rows = self._read(
            "SELECT coalesce(why, ''), count(*) FROM rag_call WHERE state = 'due' GROUP BY 1 "
            "ORDER BY 2 DESC, 1"
        )
        return [(why, int(calls)) for why, calls in rows]

    def unsent(self) -> list[tuple[str, int]]:
        """Count the evaluations that sinks of workers do not have yet, by the name of the sink."""
        rows = self._read("SELECT sink, count(*) FROM rag_unsent GROUP BY 1 ORDER BY 1")
        return [tuple(row) for row in rows]

    def evaluators(self) -> list[tuple[str, str, int, float | None, float | None]]:
        """List judges: name, fingerprint, evaluations, mean seconds and mean US dollars.

        Those with the most evaluations come first. A mean is None where nothing is known for it.
        """
        return [
            tuple(row)
            for row in self._read(
                "SELECT judge, fingerprint, count(*), avg(seconds), avg(usd) FROM rag_evaluation "
                "GROUP BY 1, 2 ORDER BY 3 DESC"
            )
        ]

    def spent(self, since: float) -> float:
        """Sum up the US dollars of evaluations that were recorded since a moment.

        0 where none has a known price.
        """
        rows = self._read(
            "SELECT sum(usd) FROM rag_evaluation WHERE finished >= :since", since=since
        )
        return float(rows[0][0] or 0.0)

    def _pages(self, sql: str, **values: Any) -> Iterator[Any]:
        """Yield the rows of a query page by page; it orders by its first column, behind `:last`."""
        last = 0
        while rows := self._read(f"{sql} LIMIT :most", last=last, most=_PAGE, **values):
            yield from rows
            last = rows[-1][0]
