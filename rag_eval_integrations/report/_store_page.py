"""The page of a store: its newest calls that fail, and the means of the last hour, day and week."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.evaluations._call_view import SIGNS, WORDS, view_of
from rag_eval_integrations.evaluations._corrected import CorrectedMeans
from rag_eval_integrations.evaluations._paired import MIN_PAIRS
from rag_eval_integrations.evaluations.summary import Summary, caution
from rag_eval_integrations.records.mean import Made, RunningMean
from rag_eval_integrations.report import _page
from rag_eval_integrations.report._conversations import Conversations
from rag_eval_integrations.report.html import evidence_of, findings_of
from rag_eval_integrations.store import Store
from rag_eval_integrations.store._scores import MeanOfPeriod

View = dict[str, Any]

STATES = {
    "judged": "judged",
    "due": "waiting",
    "parked": "tried in vain",
    "left_out": "left out",
    "refused": "refused by a spool",
}
"""What becomes of calls, in words."""


class Window(NamedTuple):
    """A time span up to now, in periods that begin at full times of UTC."""

    name: str
    seconds: int
    step: int
    """Seconds of a period."""
    per: str
    tick: int
    """Seconds between the times at the axis."""
    form: str

    def since(self, now: float) -> float:
        """Return the start of the first period, in seconds."""
        return (now - self.seconds) // self.step * self.step

    def x(self, seconds: float) -> str:
        """Return the x coordinate in the SVG of a moment, in seconds since the start."""
        return f"{_LEFT + seconds / (self.seconds + self.step) * (_RIGHT - _LEFT):.1f}"


WINDOWS = (
    Window("hour", 3_600, 300, "5 minutes", 900, "%H:%M"),
    Window("day", 86_400, 3_600, "hour", 21_600, "%H:%M"),
    Window("week", 604_800, 21_600, "6 hours", 172_800, "%m-%d"),
)
_FAILING = 20
_NEWEST = 500
"""Calls of which conversations are shown."""
_SOON = "%H:%M:%S UTC"
"""A moment of the next hours."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 340, 8, 88
"""The axes of a chart, in an SVG of 360 by 108."""


def store_page(
    store: Store,
    *,
    every: float | None = None,
    corrected: CorrectedMeans | None = None,
    served: bool = False,
) -> Iterator[str]:
    """Render the page of a store in pieces.

    Args:
        store: the store.
        every: seconds after which a browser loads it anew; None for a page that stays.
        corrected: its means by people's labels.
        served: whether a server shows it, which then says what waits, too.
    """
    judges = Counter[str]()
    for judge, _, evaluated, *_ in store.evaluators():
        judges[judge] += evaluated
    now = store.now()
    week = now - WINDOWS[-1].seconds
    newest = store.newest(week, _NEWEST)
    conversations = Conversations()
    for evaluation in reversed(newest):
        conversations.add(evaluation)
    age = now - (store.first() or now)
    return _page.pieces(
        "store.html",
        script="view.js" if served else "",
        style="report.css",
        served=served,
        title=f"RAG calls in {store.name}",
        at=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        verdict=Summary.of(newest).verdict(),
        judged=f"the newest {_NEWEST}" if len(newest) == _NEWEST else "the last week",
        caution=caution(judges["embedded"], judges.total()),
        every=None if every is None else max(1, round(every)),
        # A longer window would show the same figures again where no call is older.
        windows=[
            _window(store, now, window)
            for window, shorter in zip(WINDOWS, (None, *WINDOWS), strict=False)
            if shorter is None or age > shorter.seconds
        ],
        drift=list(drift_of(store, now)),
        conversations=conversations,
        corrected=corrected,
        waits=list(waiting_in(store)) if served else [],
        calls=[
            {"at": at, "findings": list(findings_of(view)), **view}
            for at, view in enumerate(map(view_of, store.failing(week, _FAILING)))
        ],
        signs=SIGNS,
        states=WORDS,
        evidence_of=evidence_of,
    )


def drift_of(store: Store, now: float) -> Iterator[str]:
    """Say which scores of the last day differ from the seven days before by more than chance.

    Their 95 % intervals do not touch, each of at least 10 values: of two samples from the same
    calls, one eighth as long as both, that happens about once in a hundred times.
    """
    day = 86_400
    before = {period.made: period.mean for period in store.means(now - 8 * day, now - day)}
    for period in store.means(now - day, now):
        maker, mean = period.made, period.mean
        usual = before.get(maker, RunningMean())
        ends, usually = mean.interval, usual.interval
        if ends is None or usually is None or min(mean.n, usual.n) < MIN_PAIRS:
            continue
        if ends.high < usually.low or ends.low > usually.high:
            way = "fell" if ends.high < usually.low else "rose"
            line = f"Last day: {maker.name} {way} to {mean.mean:.3f} ({ends:.3f}), from"
            yield one_line(f"{line} {usual.mean:.3f} ({usually:.3f}) in the seven days before.")


def _window(store: Store, now: float, window: Window) -> View:
    """Return what the page shows of a window of time."""
    since, step = window.since(now), window.step
    periods: dict[Made, list[MeanOfPeriod]] = {}
    for period in store.means(since, now, step=step):
        periods.setdefault(period.made, []).append(period)
    makers = Counter(maker.name for maker in periods)
    calls = store.calls(since, now, step)
    ticks = range(int(-since % window.tick), window.seconds + step, window.tick)
    return {
        "name": window.name,
        "step": window.per,
        "ticks": [(window.x(tick), _time(since + tick, window.form)) for tick in ticks],
        "calls": _bars(calls, since, window),
        "scores": [
            _score(maker, of_maker, since, window, makers[maker.name] > 1)
            for maker, of_maker in periods.items()
        ],
        "states": [
            (STATES[state], why, f"{calls:,}")
            for state, why, calls in store.counts(since)
            if state != "judged"
        ],
    }


def _bars(calls: list[tuple[float, int]], since: float, window: Window) -> View:
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
    maker: Made, periods: list[MeanOfPeriod], since: float, window: Window, several: bool
) -> View:
    """Return what the page shows of a score over time; periods without a value have no point."""
    mean, words, points, line = RunningMean(), [], [], ""
    before = None
    for period in periods:
        mean.merge(period.mean)
        value, interval, start = period.mean.mean, period.mean.interval, period.start
        if value is None:
            continue
        words.append(f"{_time(start)} {value:.3f} ({counted(period.mean.n, 'call')})")
        ends = {} if interval is None else {"low": _y(interval.low), "high": _y(interval.high)}
        x, y = window.x(start - since + window.step / 2), _y(value)
        points.append({"x": x, "y": y, **ends})
        line += f"{'L' if before == start - window.step else 'M'}{x} {y}"  # no line over a gap
        before = start
    return {
        "name": maker.name,
        "maker": maker_of(maker) if several else "",
        "mean": "–" if mean.mean is None else f"{mean.mean:.3f}",
        "interval": "–" if mean.interval is None else f"{mean.interval:.3f}",
        "scored": f"{mean.n:,} of {sum(period.total for period in periods):,}",
        "in_words": f"Means of {maker.name}: {', '.join(words) or 'none'}",
        "bars": (),
        "points": points,
        "line": line,
    }


def _time(seconds: float, form: str = "%m-%d %H:%M") -> str:
    """Write a moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


def maker_of(maker: Made) -> str:
    """Name who made a score: judge, model, formulas and method."""
    parts = (maker.by.judge, maker.by.model, maker.by.formulas, maker.method)
    return ", ".join(filter(None, parts))


def _y(share: float) -> str:
    """Return the y coordinate of a share in the SVG."""
    return f"{_TOP + (1 - share) * (_BOTTOM - _TOP):.1f}"


def waiting_in(store: Store) -> Iterator[str]:
    """Say which calls wait, and how many evaluations sinks do not have yet."""
    for how, calls, first, last in store.queue():
        until = f" until {_time(last, _SOON)} at most" if how == "in progress" else ""
        if how == "to be tried again":
            until = f", from {_time(first, _SOON)} to {_time(last, _SOON)}"
        yield f"of those waiting, {calls:,} {how}{until}"
    for sink, evaluations in store.unsent():
        yield f"{counted(evaluations, 'evaluation')} not sent to {one_line(sink)} yet"
