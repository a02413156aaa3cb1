"""`rag-eval store`: look at a store, write files and pages of it, and keep it in order."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.cli._options import moment
from rag_eval_integrations.cli._store_arguments import (
    StoreExportOptions,
    StoreInfoOptions,
    StorePruneOptions,
    StoreReportOptions,
    StoreRetryOptions,
)
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._filters import Filters
from rag_eval_integrations.evaluations._paired import MIN_PAIRS
from rag_eval_integrations.evaluations.summary import Summary, caution
from rag_eval_integrations.records import Made, RunningMean
from rag_eval_integrations.store import MeanOfPeriod, Store
from rag_eval_integrations.store.spool import SUFFIX

View = dict[str, Any]


STATES = {
    "judged": "judged", "due": "waiting", "parked": "tried in vain", "left_out": "left out",
    "refused": "refused by a spool",
}  # fmt: skip
"""What becomes of calls, in words."""


def info(options: StoreInfoOptions) -> int:
    """Print what is in which state and why, what waits, and what each evaluator made and took."""
    with closing(Store(options.store, create=False)) as store:
        counts = store.counts()
        lines = [f"{store.name}: {counted(sum(calls for *_, calls in counts), 'call')}"]
        for state, why, calls in counts:
            lines.append(f"  {calls:,} {STATES[state]}{f': {one_line(why)}' if why else ''}")
        for how, calls, first, last in store.queue():
            until = f" until {_moment(last)} at most" if how == "in progress" else ""
            until = (
                f", from {_moment(first)} to {_moment(last)}"
                if how == "to be tried again"
                else until
            )
            lines.append(f"  of those waiting, {calls:,} {how}{until}")
        for sink, evaluations in store.unsent():
            lines.append(f"  {counted(evaluations, 'evaluation')} not sent to {one_line(sink)} yet")
        for judge, fingerprint, calls, seconds, usd in store.evaluators():
            each = "" if seconds is None else f", {seconds:.2f} s each"
            each += "" if usd is None else f", ${usd:.5f} each"
            evaluated = counted(calls, "evaluation")
            lines.append(f"  {evaluated} by {one_line(judge)} ({fingerprint}){each}")
        means = store.means(store.now() - 86_400)
        several = Counter(mean.made.name for mean in means)
        for made, mean, total in (period[1:] for period in means):
            value = "no value" if mean.mean is None else f"mean {mean.mean:.3f}"
            by = f" ({_maker_of(made)})" if several[made.name] > 1 else ""
            lines.append(
                f"  last day: {one_line(made.name)}{by}, {value}, {mean.n:,} of {total:,} scored"
            )
    for line in [*lines, *map(_files_of, options.spool or ())]:
        print_stdout(line)
    return 0


def _moment(seconds: float) -> str:
    """Write a moment of the next hours."""
    return f"{datetime.fromtimestamp(seconds, UTC):%H:%M:%S} UTC"


def _files_of(folder: Path) -> str:
    """Count the files of a spool.

    Raises:
        FileNotFoundError: there is none.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such spool")
    ends = Counter(path.suffix for path in folder.iterdir())
    aside = ends[".damaged"] + ends[".aside"]
    left = f"; {aside:,} put aside" if aside else ""
    return f"  {folder}: {counted(ends[SUFFIX], 'file')}{left}"


def export(options: StoreExportOptions) -> int:
    """Write evaluations as a file of EVALS, in the order of the calls' time."""
    from rag_eval_integrations.dataset.files import evaluations_to  # noqa: PLC0415  # as `run`

    filters, written = Filters(options.where), 0
    with closing(Store(options.store, create=False)) as store:
        since = moment(options.since, "--since", store.now())
        with evaluations_to(options.out, overwrite=options.overwrite) as write:
            for evaluation in filters.keep(store.evaluations(since)):
                write(evaluation)
                written += 1
            if not written:
                why = "the store has no evaluation since then"
                raise filters.none_kept() or ConfigurationError("--store", store.name, why)
    if str(options.out) != "-":
        print_stdout(f"Wrote {counted(written, 'evaluation')} to {options.out}")
    return 0


def retry(options: StoreRetryOptions) -> int:
    """Make parked calls due again."""
    with closing(Store(options.store, create=False)) as store:
        done = 0 if options.id else store.retry()
        for uid in options.id or ():
            if not store.retry(uid):
                raise ConfigurationError("--id", uid, "is not a parked call of the store")
            done += 1
        print_stdout(f"{counted(done, 'call is', 'calls are')} due again")
    return 0


def prune(options: StorePruneOptions) -> int:
    """Delete old calls or chosen ones, with their evaluations; say what is out of reach."""
    filters = Filters(options.where, of_calls=True)
    if options.older_than is None and not filters.conditions:
        why = "say which calls to delete: --older-than 30d, --where metadata.user=X, or both"
        raise ConfigurationError("--older-than", None, why, missing=True)
    with closing(Store(options.store, create=False)) as store:
        before = inf
        if options.older_than is not None:
            before = moment(options.older_than, "--older-than", store.now())
        deleted = store.prune(before, filters.keeps_call if filters.conditions else None)
    if not deleted and (unknown := filters.unknown_field()):
        raise unknown
    print_stdout(f"{counted(deleted, 'call')} deleted")
    if not filters.conditions:
        return 0
    print_stderr(
        "Out of reach: calls of spools that no worker has imported yet, and what --to, push or "
        "export has taken elsewhere."
    )
    return 0


# --- The page


class _Window(NamedTuple):
    """A time up to now that the page shows, in periods that begin at full times of UTC."""

    name: str
    seconds: int
    step: int
    """Seconds of a period."""
    per: str
    tick: int
    """Seconds between the times at the axis."""
    form: str

    def since(self, now: float) -> float:
        """Return the begin of its first period."""
        return (now - self.seconds) // self.step * self.step

    def x(self, seconds: float) -> str:
        """Return the place of a moment, in seconds since the begin, in the SVG."""
        return f"{_LEFT + seconds / (self.seconds + self.step) * (_RIGHT - _LEFT):.1f}"


_WINDOWS = (
    _Window("hour", 3_600, 300, "5 minutes", 900, "%H:%M"),
    _Window("day", 86_400, 3_600, "hour", 21_600, "%H:%M"),
    _Window("week", 604_800, 21_600, "6 hours", 172_800, "%m-%d"),
)
_FAILING = 20
_NEWEST = 500
"""Calls of which conversations are shown."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 340, 8, 88
"""The axes of a chart, in an SVG of 360 by 108."""


def report(options: StoreReportOptions) -> int:
    """Write the page, once or again and again; then a failure is told once, and tried again."""
    from rag_eval_integrations.report import _page  # noqa: PLC0415  # Jinja2

    if options.every is not None and not options.every > 0:
        raise ConfigurationError("--every", options.every, "use a number of seconds above 0")
    _page.check(options.out, field="--out")
    told = ""
    with closing(Store(options.store, create=False)) as store:
        while True:
            try:
                _page.write(options.out, _pieces(store, options.every), field="--out")
            except OSError as error:
                if options.every is None:
                    raise
                if str(error) != told:  # the database or the disk may be back
                    told = str(error)
                    print_stderr(f"{told}; tried again every {options.every:g} s")
            if options.every is None:
                print_stdout(f"Wrote the page to {options.out}")
                for line in _drift(store, store.now()):
                    print_stdout(line)
                return 0
            time.sleep(options.every)


def _pieces(store: Store, every: float | None) -> Iterator[str]:
    """Yield the page of a store."""
    from rag_eval_integrations.evaluations._call_view import SIGNS, WORDS, view_of  # noqa: PLC0415
    from rag_eval_integrations.report import _page  # noqa: PLC0415  # as above
    from rag_eval_integrations.report._conversations import Conversations  # noqa: PLC0415
    from rag_eval_integrations.report.html import evidence_of, findings_of  # noqa: PLC0415

    judges = Counter[str]()
    for judge, _, evaluated, *_ in store.evaluators():
        judges[judge] += evaluated
    now = store.now()
    week = now - _WINDOWS[-1].seconds
    newest = store.newest(week, _NEWEST)
    conversations = Conversations()
    for evaluation in reversed(newest):
        conversations.add(evaluation)
    age = now - (store.first() or now)
    return _page.pieces(
        "store.html",
        style="report.css",
        title=f"RAG calls in {store.name}",
        at=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        verdict=Summary.of(newest).verdict(),
        judged=f"the newest {_NEWEST}" if len(newest) == _NEWEST else "the last week",
        caution=caution(judges["embedded"], judges.total()),
        every=None if every is None else max(1, round(every)),
        # A longer window would show the same figures again where no call is older.
        windows=[
            _window(store, now, window)
            for window, shorter in zip(_WINDOWS, (None, *_WINDOWS), strict=False)
            if shorter is None or age > shorter.seconds
        ],
        drift=list(_drift(store, now)),
        conversations=conversations,
        calls=[
            {"at": at, "findings": list(findings_of(view)), **view}
            for at, view in enumerate(map(view_of, store.failing(week, _FAILING)))
        ],
        signs=SIGNS,
        states=WORDS,
        evidence_of=evidence_of,
    )


def _drift(store: Store, now: float) -> Iterator[str]:
    """Say which scores of the last day differ from the seven days before by more than chance.

    Their 95 % intervals do not touch, each of at least 10 values: of two samples from the same
    calls, one eighth as long as both, that happens about once in a hundred times.
    """
    day = 86_400
    before = {period.made: period.mean for period in store.means(now - 8 * day, now - day)}
    for made, mean in (period[1:3] for period in store.means(now - day, now)):
        usual = before.get(made, RunningMean())
        ends, usually = mean.interval, usual.interval
        if ends is None or usually is None or min(mean.n, usual.n) < MIN_PAIRS:
            continue
        if ends.high < usually.low or ends.low > usually.high:
            way = "fell" if ends.high < usually.low else "rose"
            line = f"Last day: {made.name} {way} to {mean.mean:.3f} ({ends:.3f}), from"
            yield one_line(f"{line} {usual.mean:.3f} ({usually:.3f}) in the seven days before.")


def _window(store: Store, now: float, window: _Window) -> View:
    """Return what the page shows of a window of time."""
    since, step = window.since(now), window.step
    periods: dict[Made, list[MeanOfPeriod]] = {}
    for period in store.means(since, now, step=step):
        periods.setdefault(period.made, []).append(period)
    several = Counter(made.name for made in periods)
    calls = store.calls(since, now, step)
    ticks = range(int(-since % window.tick), window.seconds + step, window.tick)
    return {
        "name": window.name,
        "step": window.per,
        "ticks": [(window.x(tick), _time(since + tick, window.form)) for tick in ticks],
        "calls": _bars(calls, since, window),
        "scores": [
            _score(made, of_made, since, window, several[made.name] > 1)
            for made, of_made in periods.items()
        ],
        "states": [
            (STATES[state], why, f"{calls:,}")
            for state, why, calls in store.counts(since)
            if state != "judged"
        ],
    }


def _bars(calls: list[tuple[float, int]], since: float, window: _Window) -> View:
    """Return what the page shows of the numbers of calls over time."""
    most = max((count for _, count in calls), default=1)
    width = (_RIGHT - _LEFT) / (window.seconds / window.step + 1) - 1
    words = [f"{_time(start)} {count:,}" for start, count in calls]
    return {
        "total": f"{sum(count for _, count in calls):,}",
        "most": f"{most:,}",
        "in_words": f"Calls per {window.per}: {', '.join(words)}",
        "bars": [(window.x(start - since), _y(count / most)) for start, count in calls],
        "width": f"{width:.1f}",
        "points": (),
        "line": "",
    }


def _score(
    made: Made, periods: list[MeanOfPeriod], since: float, window: _Window, several: bool
) -> View:
    """Return what the page shows of a score over time; periods without a value have no point."""
    mean, words, points, line = RunningMean(), [], [], ""
    before = None
    for one in periods:
        mean.merge(one.mean)
        if one.mean.mean is None:
            continue
        interval = one.mean.interval
        words.append(f"{_time(one.start)} {one.mean.mean:.3f} ({counted(one.mean.n, 'call')})")
        ends = {} if interval is None else {"low": _y(interval.low), "high": _y(interval.high)}
        x, y = window.x(one.start - since + window.step / 2), _y(one.mean.mean)
        points.append({"x": x, "y": y, **ends})
        line += f"{'L' if before == one.start - window.step else 'M'}{x} {y}"  # no line over a gap
        before = one.start
    return {
        "name": made.name,
        "maker": _maker_of(made) if several else "",
        "mean": "–" if mean.mean is None else f"{mean.mean:.3f}",
        "interval": "–" if mean.interval is None else f"{mean.interval:.3f}",
        "scored": f"{mean.n:,} of {sum(one.total for one in periods):,}",
        "in_words": f"Means of {made.name}: {', '.join(words) or 'none'}",
        "bars": (),
        "points": points,
        "line": line,
    }


def _time(seconds: float, form: str = "%m-%d %H:%M") -> str:
    """Write a moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def _maker_of(made: Made) -> str:
    """Name who made a score."""
    maker = (made.by.judge, made.by.model, made.by.formulas, made.method)
    return ", ".join(filter(None, maker))


def _y(share: float) -> str:
    """Return a share's height in the SVG."""
    return f"{_TOP + (1 - share) * (_BOTTOM - _TOP):.1f}"
