"""`write_agreement`: the page of `rag-eval agreement`, a card of the judge that stands for it.

It shows every figure that the command prints, with its interval, and the curves; a table beside
each plot says what it draws. It has no script.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_eval_integrations import _target
from rag_eval_integrations._visible import counted
from rag_eval_integrations.agreement import Agreement, CascadePoint, Curves, Figure, Group
from rag_eval_integrations.evaluations.summary import caution
from rag_eval_integrations.records import JudgeInfo
from rag_eval_integrations.report import _agreement_figures as figures
from rag_eval_integrations.report._page import drawn, pieces, shown, write

SIDE = 260
EDGE = 34
"""Pixels around a plot, which hold the axes' numbers and words."""
_MOST_POINTS = 400
"""Limit on the points drawn per curve; more cannot be told apart on 260 pixels."""
_LISTED = 10
"""Steps of a ROC curve in its table."""

_STRIP = 160
"""Width of the drawing of an interval."""
_RMSE = "Typical distance from gold per call; 0 is best."
_MEANINGS = {
    ("adherence", "auroc"): "How well it ranks answers that are not adherent above the others; "
    "0.5 is chance, 1 is best.",
    ("adherence", "kappa"): "How often its verdicts are gold's, beyond chance; 0 is chance, 1 is "
    "best.",
    ("context_relevance", "rmse"): _RMSE,
    ("context_utilization", "rmse"): _RMSE,
    ("completeness", "rmse"): _RMSE,
}
_BASELINES = {
    "constant": "the gold mean of the data set, for every call",
    "response_length": "the longer the answer, the likelier not adherent",
}


def write_agreement(
    agreement: Agreement,
    path: Path,
    *,
    title: str,
    curves: Mapping[str, Mapping[str, Curves]],
    cascade: Sequence[CascadePoint] = (),
    field: str = "path",
) -> Path:
    """Write the page of an agreement.

    Args:
        agreement: what was compared.
        path: the page; an earlier one of this program is replaced.
        title: title of the page; any text.
        curves: heading (all rows, or a data set) → the result of `agreement.curves` on its rows.
        cascade: the curve of a cascade; empty for none.
        field: name of the argument, for the error.

    Returns:
        The page's path.

    Raises:
        ConfigurationError: there is a file that this program did not make, or no regular file.
        OSError: the page cannot be written.
    """
    content = agreement_pieces(agreement, title=title, curves=curves, cascade=cascade)
    return write(path, content, field=field, mode=_target.PUBLIC)  # it holds no text of a call


def agreement_pieces(
    agreement: Agreement,
    *,
    title: str,
    curves: Mapping[str, Mapping[str, Curves]],
    cascade: Sequence[CascadePoint] = (),
) -> Iterator[str]:
    """Render the page in pieces; arguments as for `write_agreement`."""
    only_humans = figures.humans_only(agreement)
    several = figures.several(agreement)
    return pieces(
        "agreement.html",
        style="agreement.css",
        title=title,
        lead=_lead(agreement),
        caution=caution(agreement.makers.lexical, agreement.matched.rows),
        several=several,
        card=[] if only_humans else list(_card(agreement)),
        sentences=[] if only_humans else list(_sentences(agreement)),
        facts=[(name, values) for name, values in _facts(agreement) if values],
        versions=[(name, values) for name, values in _versions(agreement) if values],
        tables=[] if only_humans or not several else list(_by_dataset(agreement)),
        humans=list(_humans(agreement.pooled)),
        baselines=list(_baselines(agreement)),
        plots=[] if only_humans else [_drawn(*curve) for curve in curves.items()],
        cascade=_cascade(cascade) if cascade else None,
        everything=list(_everything(agreement)),
        legend=figures.LEGEND,
        baseline_note=figures.BASELINE_NOTE,
        pooled_note=figures.POOLED_NOTE if several else "",
        side=SIDE,
        edge=EDGE,
    )


def _lead(agreement: Agreement) -> str:
    """Write the first sentence: rows, data sets and intervals."""
    rows = agreement.matched.rows
    parts = [counted(rows, "row")]
    if figures.several(agreement):
        parts[0] += f" in {len(agreement.by_dataset)} data sets"
    return f"{', '.join(parts)}; 95 % intervals by bootstrap over rows."


# --- Cells: a figure as it is printed, and as it is drawn from 0 to 1


def _cell(figure: Figure | None) -> dict[str, str]:
    """Return what the page shows of a figure: value, interval and strip."""
    if figure is None or figure.value is None:
        return {"value": "–", "interval": "", "at": "", "low": "", "high": ""}
    cell = {"value": figures.value_of(figure), "at": drawn(figure.value, _STRIP)}
    interval = figures.interval_of(figure)
    if figure.interval is None or not interval:
        return cell | {"interval": "", "low": "", "high": ""}
    low, high = figure.interval
    return cell | {
        "interval": interval,
        "low": drawn(low, _STRIP),
        "high": drawn(high, _STRIP),
    }


# --- The card: who judged, and how far that agrees with gold


def _card(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the rows of the main table: a statistic per score."""
    for score, statistic in figures.SCORES:
        yield _row(
            f"{score} {figures.STATISTICS[statistic]}",
            _MEANINGS[score, statistic],
            agreement,
            ("scores", score, statistic),
        )
        if statistic == "rmse" and ("estimates", score) in agreement.pooled.blocks:
            words = f"{score} (estimate) RMSE"
            yield _row(
                words,
                "The same, of the estimate beside the score.",
                agreement,
                ("estimates", score, "rmse"),
            )


def _sentences(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the rows of figures over sentences."""
    for kind in figures.SENTENCES:
        for statistic in figures.OF_SENTENCES:
            if (kind, statistic) != ("supporting", "auroc"):
                where = ("keys", kind, statistic)
                yield _row(f"{kind} {figures.STATISTICS[statistic]}", "", agreement, where)


def _row(name: str, meaning: str, agreement: Agreement, where: tuple[str, ...]) -> dict[str, Any]:
    """Return the row of a figure: mean over data sets, and pooled."""
    return {
        "name": name,
        "meaning": meaning,
        "mean": _cell(figures.figure_of(agreement.mean_over_datasets, *where)),
        "pooled": _cell(figures.figure_of(agreement.pooled, *where)),
    }


def _facts(agreement: Agreement) -> Iterator[tuple[str, list[str]]]:
    """Yield what was compared: judges, gold models and counts of rows."""
    makers = agreement.makers
    yield "judge", _judges(makers.judges)
    yield "gold labels by", [shown(model) for model in agreement.gold_models]
    matched = agreement.matched
    counts = [
        f"{matched.unmatched_predicted:,} of the judge's and {matched.unmatched_gold:,} of gold's "
        "have no partner and are left out"
        if matched.unmatched
        else "",
        f"{matched.joined_by_id:,} differ in content and were joined by id"
        if matched.joined_by_id
        else "",
        f"{matched.ambiguous:,} are not unique and were joined in order"
        if matched.ambiguous
        else "",
    ]
    skipped = agreement.pooled.counts.get("keys_skipped", 0)
    if skipped and not figures.humans_only(agreement):
        counts.append(f"{skipped:,} have no sentences that both sides labelled")
    yield "rows", [f"{matched.rows:,} compared", *filter(None, counts)]
    yield "left out", [shown(note) for note in agreement.notes]


def _versions(agreement: Agreement) -> Iterator[tuple[str, list[str]]]:
    """Yield the versions of prompt, formulas and evaluator."""
    makers = agreement.makers
    yield "prompt version", [shown(version) for version in makers.prompt_versions]
    yield "formulas", [shown(formulas) for formulas in makers.formulas]
    yield "evaluator", [shown(fingerprint) for fingerprint in makers.fingerprints]


def _judges(judges: Sequence[tuple[JudgeInfo, int]]) -> list[str]:
    """Write judges with model, version and number of rows."""
    named = []
    for judge, count in judges:
        name = f"{judge.name} ({judge.model})" if judge.model else judge.name
        version = f", version {judge.version}" if judge.version else ""
        of = f" ({count:,} rows)" if len(judges) > 1 else ""
        named.append(shown(f"{name}{version}") + of)
    return named


# --- Tables by data set, of human ratings, of baselines, and of everything


def _by_dataset(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the tables of figures per data set."""
    yield _table(
        agreement,
        "Scores",
        [(score.title, ("scores", *score)) for score in figures.SCORES],
    )
    for statistic in figures.OF_SENTENCES:
        columns = [(kind, ("keys", kind, statistic)) for kind in figures.SENTENCES]
        if statistic == "auroc":
            columns = [column for column in columns if column[0] != "supporting"]
        yield _table(agreement, f"Sentences: {figures.STATISTICS[statistic]}", columns)


def _table(
    agreement: Agreement, title: str, columns: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, Any]:
    """Return a table with a row per data set."""
    return {
        "title": title,
        "columns": [name for name, _ in columns],
        "rows": [
            {
                "name": name,
                "n": f"{group.counts['n']:,}" if "n" in group.counts else "",
                "cells": [_cell(figures.figure_of(group, *where)) for _, where in columns],
            }
            for name, group in figures.groups_of(agreement)
        ],
    }


def _humans(group: Group) -> Iterator[dict[str, Any]]:
    """Yield the tables of agreement with human ratings."""
    for level, over in figures.LEVELS.items():
        rows = [
            (
                path[1],
                figures.count_of(block.counts),
                [_cell(block.figures.get(name)) for name in figures.OF_HUMANS],
            )
            for path, block in group.blocks.items()
            if path[0] == level
        ]
        if rows:
            yield {"title": f"Agreement with human ratings {over}", "rows": rows}


def _baselines(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the tables of the judge's scores beside baselines."""
    mean, scores = figures.baselines_of(agreement)
    for score, statistic in scores.items():
        groups = [*agreement.by_dataset.items(), ("pooled", agreement.pooled)]
        yield {
            "title": f"{score} {figures.STATISTICS[statistic]}",
            "over": "mean over data sets" if figures.several(agreement) else "all rows",
            "better": "higher is better" if statistic == "auroc" else "lower is better",
            "rows": list(_rivals(mean, score)),
            "groups": [
                (name, row)
                for name, group in (groups if figures.several(agreement) else [])
                for row in _rivals(group, score)
            ],
        }


def _rivals(group: Group, score: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of baselines, each beside the judge's figure."""
    for baseline, theirs, own in figures.against(group, score):
        meaning = _BASELINES.get(baseline, "published with the gold rows")
        yield {"name": baseline, "meaning": meaning, "theirs": _cell(theirs), "own": _cell(own)}


def _everything(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of all figures."""
    for path, block in agreement.pooled.blocks.items():
        mean = agreement.mean_over_datasets.blocks.get(path)
        for name, figure in block.figures.items():
            sets = 0 if mean is None or mean.sets is None else mean.sets.get(name, 0)
            yield {
                "name": " / ".join(path),
                "statistic": figures.STATISTICS.get(name, name),
                "n": figures.count_of(block.counts),
                "mean": _cell(figures.figure_of(agreement.mean_over_datasets, *path, name)),
                "pooled": _cell(figure),
                "sets": str(sets) if sets else "",
            }


# --- Curves


def _drawn(heading: str, curves: Mapping[str, Curves]) -> dict[str, Any]:
    """Return the ROC and reliability plots of a data set."""
    heading = shown(heading)
    curves = {shown(name): drawn_curves for name, drawn_curves in curves.items()}
    return {
        "heading": heading,
        "kinds": [
            {
                "name": name,
                "counts": f"{of_part.positives:,} of {of_part.n:,} positive in gold",
                "roc": roc(of_part, f"ROC of “{name}”, {heading}"),
                "reliability": reliability(of_part, f"Reliability of “{name}”, {heading}"),
            }
            for name, of_part in curves.items()
        ],
    }


def _cascade(points: Sequence[CascadePoint]) -> dict[str, Any]:
    """Return the plots and the table of a cascade."""
    names = [curve.title for curve in figures.CURVE]
    plots = []
    three = points[0].third is not None  # two shares per point make no line
    for name, where in () if three else zip(names, figures.CURVE, strict=True):
        better = "higher" if where[1] == "auroc" else "lower"
        values = [
            (point.share, None if figure is None else figure.value)
            for point in points
            for figure in (figures.figure_of(figures.group_of(point), "scores", *where),)
        ]
        words = f"{name}; {better} is better"
        plots.append(
            course(values, words, "share of calls escalated", figures.STATISTICS[where[1]])
        )
    rows = [
        {
            "share": f"{point.share:.0%}" + (f", {point.third or 0:.0%}" if three else ""),
            "band": figures.band_of(point)
            + (f"; {figures.band_of(point, third=True)}" if three else ""),
            "cells": figures.curve_cells(point),
            "requests": f"{point.usage.requests:,}",
            "prompt": f"{point.usage.prompt_tokens:,}",
            "completion": f"{point.usage.completion_tokens:,}",
            "cost": figures.cost_of(point.usage),
        }
        for point in points
    ]
    over_sets = bool(points[0].mean_over_datasets.blocks)
    return {
        "over": "mean over data sets" if over_sets else "all rows",
        "names": names,
        "three": three,
        "plots": [plot for plot in plots if plot is not None],
        "rows": rows,
    }


# --- Plots: a path, points with their words, and the ends of the axes


def roc(curves: Curves, title: str) -> dict[str, Any]:
    """Draw a ROC curve, with chance as a dashed line; empty when gold has one class only."""
    area = "undefined: gold has one class only" if curves.auroc is None else f"{curves.auroc:.3f}"
    points = curves.roc
    drawn: Sequence[tuple[float, float]] = ()
    if points:
        step = -(-len(points) // _MOST_POINTS)
        drawn = [*points[:-1:step], points[-1]]
    return _plot(
        title, f"ROC; area {area}", "false positives", "true positives", drawn, [], diagonal=True
    ) | {"table": [(f"{x:.3f}", f"{y:.3f}") for x, y in _thinned(points)]}


def reliability(curves: Curves, title: str) -> dict[str, Any]:
    """Draw the share in gold by probability, in ten bins; a point's area is its share of items."""
    dots = []
    for group in curves.bins:
        x, y = _point(group.mean, group.share)
        words = (
            f"{group.n:,} items: mean probability {group.mean:.3f}, share in gold {group.share:.3f}"
        )
        radius = 2 + 14 * (group.n / curves.n) ** 0.5
        dots.append({"x": x, "y": y, "r": f"{radius:.1f}", "title": words})
    return _plot(
        title,
        f"reliability; expected calibration error {curves.calibration_error:.3f}",
        "probability",
        "share in gold",
        (),
        dots,
        diagonal=True,
    ) | {
        "table": [
            (f"{group.n:,}", f"{group.mean:.3f}", f"{group.share:.3f}") for group in curves.bins
        ]
    }  # fmt: skip


def course(
    values: Sequence[tuple[float, float | None]], title: str, across: str, up: str
) -> dict[str, Any] | None:
    """Draw values in [0, 1] by a share, on an axis that ends at the tenths around them.

    Args:
        values: (share, value); a value that is undefined is left out.
        title: name of the plot.
        across: words at the horizontal axis.
        up: words at the vertical axis.

    Returns:
        The plot; None without a value.
    """
    known = [(share, value) for share, value in values if value is not None]
    if not known:
        return None
    low = math.floor(min(value for _, value in known) * 10) / 10
    high = math.ceil(max(value for _, value in known) * 10) / 10
    if high - low < 0.05:
        low, high = (low, low + 0.1) if low < 0.95 else (low - 0.1, low)
    scaled = [(share, (value - low) / (high - low)) for share, value in known]
    dots = [
        {
            "x": _point(*place)[0],
            "y": _point(*place)[1],
            "r": "3.5",
            "title": f"{share:.0%}: {value:.3f}",
        }
        for place, (share, value) in zip(scaled, known, strict=True)
    ]
    return _plot(title, title, across, up, scaled, dots, ends=(f"{low:.1f}", f"{high:.1f}"))


def _plot(
    title: str,
    caption: str,
    across: str,
    up: str,
    line: Sequence[tuple[float, float]],
    dots: list[dict[str, str]],
    *,
    diagonal: bool = False,
    ends: tuple[str, str] = ("0", "1"),
) -> dict[str, Any]:
    """Return a plot of a line and dots in the unit square."""
    return {
        "title": title,
        "caption": caption,
        "across": across,
        "up": up,
        "path": f"M{'L'.join(' '.join(_point(x, y)) for x, y in line)}" if line else "",
        "dots": dots,
        "diagonal": diagonal,
        "low": ends[0],
        "high": ends[1],
    }


def _point(x: float, y: float) -> tuple[str, str]:
    """Return a point's coordinates in the SVG."""
    return f"{EDGE + x * SIDE:.1f}", f"{EDGE + (1 - y) * SIDE:.1f}"


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Choose points of a ROC curve at steps of its false positives, with both ends."""
    kept: list[tuple[float, float]] = []
    for step in range(_LISTED + 1):
        upto = [point for point in points if point[0] <= step / _LISTED]
        if upto and upto[-1] not in kept:
            kept.append(upto[-1])
    return kept
