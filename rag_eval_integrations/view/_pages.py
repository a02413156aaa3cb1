"""The pages of a folder: its runs with the trend of each app, a run's calls, two runs compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.evaluations._pairing import EvaluationsFile
from rag_eval_integrations.evaluations.summary import ScoreFigures, Summary
from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.report import _page, compare
from rag_eval_integrations.report._compare_html import compare_page
from rag_eval_integrations.report._html_figures import lead_of
from rag_eval_integrations.report._store_page import Window
from rag_eval_integrations.report.html import Part, more_calls, report_pieces
from rag_eval_integrations.store import Store
from rag_eval_integrations.view._corrections import Corrections
from rag_eval_integrations.view._runs import PAGE, PARTIAL, Folder, RunFile

View = dict[str, Any]

_COLUMNS = 6
"""Scores that have a column; the page of a run has all."""
_POINTS = 50
"""Runs of a trend, the newest."""
_LISTED = 50
_MORE = 200
"""Calls that an open page is given at once."""
_NAME = 200
_STALE = 60
"""Seconds after which a run that wrote nothing is said to wait, or to have ended early."""
_WIDTH, _HEIGHT, _POINT = 480, 64, 4
_UNITS = (("day", 86_400), ("h", 3_600), ("min", 60))


def runs_page(folder: Folder, store: str) -> Iterator[str]:
    """Render the list of a folder's runs, with a link to the store if one is named."""
    runs = folder.runs()
    figures = {run.address: _figures(run) for run in runs}
    columns = _columns(figures.values())
    return _page.pieces(
        "view.html",
        script="view.js",
        style="view.css",
        served=True,
        title=f"Runs in {folder.path.resolve().name or folder.path}",
        columns=columns,
        runs=[_row(run, figures[run.address], columns) for run in runs],
        more=folder.more,
        store=store,
        trends=list(_trends(runs, figures)),
        others=[(name, why) for name, (_, why) in sorted(folder.others.items())[:_LISTED]],
        other_files=len(folder.others),
    )


Figures = dict[str, list[ScoreFigures]]
"""Name of a score → its figures by each maker, those of most calls first."""


def _figures(run: RunFile) -> Figures:
    """Return a run's means by score; those of the most calls come first."""
    figures: Figures = {}
    for score in sorted(run.figures().scores, key=lambda score: -score.scored):
        if score.mean is not None:
            figures.setdefault(score.name, []).append(score)
    return figures


def _columns(of_runs: Iterable[Figures]) -> list[str]:
    """Choose the scores that most runs have, TRACe's first."""
    names = Counter(name for figures in of_runs for name in figures)
    ours = [name for name in TRACE_SCORES if name in names]
    return [*ours, *(name for name, _ in names.most_common() if name not in ours)][:_COLUMNS]


def _row(run: RunFile, figures: Figures, columns: Sequence[str]) -> View:
    """Return the row of a run in the list, for the template."""
    summary = run.figures()
    bad = f"{counted(run.bad, 'row')} cannot be read" if run.bad else ""
    return {
        "address": run.address,
        "link": run.link,
        "name": one_line(run.name, _NAME),
        "about": [one_line(words, _NAME) for words in _about(run) if words],
        "verdict": summary.verdict() if summary.calls or run.is_read else "Being read",
        "calls": counted(summary.calls, "call") + ("" if run.is_read else " read so far"),
        "state": state_of(run),
        "bad": bad,
        "time": run.started.isoformat(timespec="seconds"),
        "ago": ago(run.started),
        "scores": [_cell(figures.get(name, [])) for name in columns],
    }


def _about(run: RunFile) -> Iterator[str]:
    """Yield what the first row says of its run: app, judge, name, revision and tags."""
    first = run.first
    if first is None:
        return
    yield first.app or ""
    yield f"judged by {first.judge.model or first.judge.name}"
    if first.run is not None:
        yield first.run.name or ""
        yield (first.run.revision and f"revision {first.run.revision}") or ""
        yield from (f"{name}={value}" for name, value in first.run.tags.items())


def _cell(scores: Sequence[ScoreFigures]) -> tuple[str, list[str]]:
    """Return a mean, with its interval and the number of its makers as notes; else a dash."""
    if not scores:
        return "–", []
    words = [f"{scores[0].interval:.3f}"] if scores[0].interval else []
    words += [f"1 of {len(scores)} makers"] if scores[1:] else []
    return f"{scores[0].mean:.3f}", words


def state_of(run: RunFile) -> str:
    """Say whether a run goes on; empty for one that has ended."""
    if not run.growing:
        return ""
    idle = datetime.now(UTC) - run.modified
    return "goes on" if idle.total_seconds() < _STALE else "waits, or was ended early"


def ago(moment: datetime) -> str:
    """Say how long ago a moment was."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    for unit, length in _UNITS:
        if seconds >= length:
            number = int(seconds // length)
            return f"{number:,} {unit}{'s' * (unit == 'day' and number > 1)} ago"
    return "just now"


# --- Trends


def _trends(runs: Sequence[RunFile], of_runs: dict[str, Figures]) -> Iterator[View]:
    """Yield the trend of each app that has several runs, the one that ran last first."""
    apps: dict[str, list[RunFile]] = {}
    for run in runs:
        if run.first is not None and run.figures().calls:
            apps.setdefault(run.first.app or "", []).append(run)
    for app, newest in apps.items():
        ordered = newest[:_POINTS][::-1]
        names = _columns(of_runs[run.address] for run in ordered)
        scores = [_trend(name, ordered, of_runs) for name in names]
        if scores := [score for score in scores if len(score["points"]) > 1]:
            yield {"app": one_line(app, _NAME), "runs": len(ordered), "scores": scores}


def _trend(name: str, runs: Sequence[RunFile], of_runs: dict[str, Figures]) -> View:
    """Return the chart of a score's means, a point per run, with its description in words."""
    points, words, means = [], [], []
    for at, run in enumerate(runs):
        scores = of_runs[run.address].get(name)
        if not scores:
            continue
        mean, ends = scores[0].mean or 0.0, scores[0].interval
        means.append(mean)
        words.append(f"{one_line(run.name, 60)} {mean:.3f}")
        drawn = {} if ends is None else {"low": _y(ends.low), "high": _y(ends.high)}
        x = _POINT + at / max(1, len(runs) - 1) * (_WIDTH - 2 * _POINT)
        points.append({"x": f"{x:.1f}", "y": _y(mean), **drawn})
    return {
        "name": name,
        "points": points,
        "in_words": f"Means of {name}: {', '.join(words)}",
        "first": f"{means[0]:.3f}" if means else "–",
        "last": f"{means[-1]:.3f}" if means else "–",
    }


# --- One run


def run_page(run: RunFile, page: int, corrections: Corrections | None) -> Iterator[str]:
    """Render a page of a run's calls.

    Args:
        run: the run.
        page: from 1.
        corrections: where they are saved; None where they are not made.

    Raises:
        IndexError: there is no such page.
        OSError, ReplacedError: the file cannot be read any more.
    """
    count = run.count()
    pages = max(1, -(-count // PAGE))
    if not 1 <= page <= pages:
        raise IndexError(page)
    first = (page - 1) * PAGE
    rows = run.calls(first, PAGE)
    calls = [row.value for row in rows if row.value is not None]
    words = []
    if pages > 1:
        words.append(f"Calls {first + 1:,} to {first + len(rows):,} of {count:,}.")
    if len(calls) < len(rows):
        words.append(f"{counted(len(rows) - len(calls), 'row')} cannot be read.")
    part = Part(
        summary=run.figures(),
        first=first,
        words=" ".join(words),
        links=_links(f"{run.link}?page=", page, pages),
        state=_progress(run, count),
        saved=corrections.page_data(f"{run.link}/label", calls) if corrections else {},
        more=f"{run.link}/more?first={first + len(rows)}" if run.growing or not run.is_read else "",
    )
    who = corrections.who if corrections else None
    return report_pieces(calls, title=run.name, calls=PAGE, part=part, review=who)


def _links(address: str, page: int, pages: int) -> list[tuple[str, str]]:
    """Return names and links of the pages near one; empty if it is the only page."""
    near = {1, *range(max(1, page - 3), min(pages, page + 3) + 1), pages} if pages > 1 else ()
    return [(f"Page {n:,}", "" if n == page else f"{address}{n}") for n in sorted(near)]


def page_update(folder: Folder, address: str, first: int) -> View:
    """Return what an open page lacks: further calls, the progress of the run, and a link.

    Args:
        folder: the runs.
        address: of the run.
        first: number of rows that the page has read, from the first of the run.
    """
    run = folder.run(address)
    if run is None:
        ended = folder.run(address.removesuffix(quote(PARTIAL)))
        link = ("Its calls are here now.", ended.link) if ended else None
        return {
            "words": "The run has ended.",
            "link": link,
            "calls": more_calls((), 0),
            "more": "",
        }
    count, is_read = run.count(), run.is_read and not run.growing
    full = first > 0 and first % PAGE == 0
    rows = [] if full else run.calls(first, min(_MORE, PAGE - first % PAGE))
    link = None
    if full and count > first:
        link = ("Further calls are on the next page.", f"{run.link}?page={first // PAGE + 1}")
    elif is_read:
        link = ("Show them.", f"{run.link}?page={max(0, first - 1) // PAGE + 1}")
    first += len(rows)
    return {
        "words": _progress(run, count) or "The figures of all calls are there.",
        "verdict": run.figures().verdict(),
        "lead": lead_of(run.figures()),
        "link": link,
        "calls": more_calls([row.value for row in rows if row.value is not None], first),
        "more": "" if is_read and first == count else f"{run.link}/more?first={first}",
    }


def window_page(
    store: Store, window: Window, until: float, page: int, corrections: Corrections | None
) -> Iterator[str]:
    """Render a page of the calls in a time window, the newest first.

    Args:
        store: the store.
        window: how long it is.
        until: its end, so that the pages stay the same as new calls come.
        page: from 1.
        corrections: where they are saved; None where they are not made.

    Raises:
        IndexError: there is no such page.
        OSError: the store cannot be read.
    """
    first = (page - 1) * PAGE
    since = until - window.seconds
    calls = store.newest(since, PAGE + 1, until=until, skip=first) if page > 0 else []
    if not calls and page != 1:
        raise IndexError(page)
    pages = page + (len(calls) > PAGE)
    calls = calls[:PAGE]
    address = f"/store/{window.name}?until={until:.0f}"
    part = Part(
        summary=Summary.of(calls),
        first=first,
        words=f"Calls {first + 1:,} to {first + len(calls):,}, the newest first." if calls else "",
        links=[("The store", "/store"), *_links(f"{address}&page=", page, pages)],
        state=f"Figures and calls of this page, up to {datetime.fromtimestamp(until, UTC)}.",
        saved=corrections.page_data(f"/store/{window.name}/label?until={until:.0f}", calls)
        if corrections
        else {},
        more="",
    )
    title = f"Calls of the last {window.name} in {store.name}"
    who = corrections.who if corrections else None
    return report_pieces(calls, title=title, calls=PAGE, part=part, review=who)


def compare_runs(runs: Sequence[RunFile]) -> Iterator[str]:
    """Render the page that compares runs with the oldest of them.

    Raises:
        RagEvalError: they cannot be compared; says why.
        OSError: one cannot be read any more.
    """
    ordered = sorted(runs, key=lambda run: run.started)
    files = [EvaluationsFile(run.path, lambda line: None) for run in ordered]
    comparison = compare(*files[:2], *files[2:], names=[run.name for run in ordered])
    return compare_page(comparison, served=True)


def _progress(run: RunFile, count: int) -> str:
    """Say how far a run has come; empty for one that has ended and is read."""
    figures = run.figures()
    if not run.growing and run.is_read:
        return ""
    words = "Being read: "
    if run.growing:
        words = f"This run {state_of(run)}: {counted(count, 'call')} so far"
        seconds = (run.modified - run.started).total_seconds()
        words += f", {count / seconds:.3g} per second" if seconds > 0 else ""
        words += f", the last {ago(run.modified)}"
    if figures.calls + run.bad < count:
        words += f"{', ' * run.growing}figures of {figures.calls:,} of {count:,} calls"
    return f"{words}."


def _y(share: float) -> str:
    """Return the y coordinate of a share in the SVG."""
    return f"{_POINT + (1 - share) * (_HEIGHT - 2 * _POINT):.1f}"
