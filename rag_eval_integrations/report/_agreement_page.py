"""`agreement_pieces`: the page of `rag-eval agreement`, a card of the judge that stands for it.

It begins with what the command says in words, and the calls in which judge and gold differ. Then
every figure that is printed, with its interval, and the curves; a table beside each plot says what
it draws. It has no script.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.agreement import Agreement, CascadePoint, Curves, Figure, Group
from rag_eval_integrations.evaluations._call_view import SIGNS, WORDS, View, view_of
from rag_eval_integrations.evaluations.summary import caution
from rag_eval_integrations.records import Evaluation, JudgeInfo
from rag_eval_integrations.report import _agreement_figures as figures
from rag_eval_integrations.report._page import drawn, page_text, pieces
from rag_eval_integrations.report.html import evidence_of

SIDE = 260
EDGE = 34
"""Pixels around a plot, which hold the axes' numbers and words."""
_MOST_POINTS = 400
"""Limit on the points drawn per curve; more cannot be told apart on 260 pixels."""
_LISTED = 10
"""Steps of a ROC curve in its table."""

_STRIP = 160
"""Width of the drawing of an interval."""
_FINDING = 300
"""Characters of a sentence above a call."""
_MEANINGS = {
    "precision": "Share of its alarms that are right; 1 is best.",
    "recall": "Share of the answers that are not adherent that it flags; 1 is best.",
    "auroc": "How well it ranks answers that are not adherent above the others; 0.5 is chance, 1 "
    "is best.",
    "kappa": "How often its verdicts are gold's, beyond chance; 0 is chance, 1 is best.",
    "rmse": "Typical distance from gold per call; 0 is best.",
}


def agreement_pieces(
    agreement: Agreement,
    *,
    title: str,
    curves: Mapping[str, Mapping[str, Curves]],
    cascade: Sequence[CascadePoint] = (),
    calls: Mapping[int, Evaluation] | None = None,
) -> Iterator[str]:
    """Render the page in pieces, with texts of calls.

    Without labels in gold, only the parts about human ratings and baselines are filled. Tables by
    data set are there for several sets only.

    Args:
        agreement: what was compared.
        title: title of the page; any text.
        curves: heading (all rows, or a data set) → the result of `agreement.curves` on its rows.
        cascade: the curve of a cascade; empty for none.
        calls: the judge's evaluations in `agreement.gravest`, by the numbers of their rows; those
            that are missing are not shown.
    """
    only_humans = figures.humans_only(agreement)
    several = figures.several(agreement)
    return pieces(
        "agreement.html",
        style="report.css agreement.css",
        title=title,
        told=figures.first_sentences(agreement, figures.gold_of(agreement)),
        lead=_lead(agreement),
        caution=caution(agreement.makers.lexical, agreement.matched.rows),
        several=several,
        gold=figures.gold_of(agreement),
        calls=list(_calls(agreement, calls or {})),
        differing=agreement.differing,
        card=[] if only_humans else list(_card(agreement)),
        sentences=[] if only_humans else list(_sentences(agreement)),
        facts=[(name, values) for name, values in _facts(agreement) if values],
        versions=[(name, values) for name, values in _versions(agreement) if values],
        tables=[] if only_humans or not several else list(_by_dataset(agreement)),
        humans=list(_humans(agreement.pooled)),
        baselines=list(_baselines(agreement)),
        plots=[] if only_humans else [_plots(*curve) for curve in curves.items()],
        cascade=_cascade(cascade) if cascade else None,
        legend=figures.LEGEND,
        pooled_note=figures.POOLED_NOTE if several else "",
        side=SIDE,
        edge=EDGE,
        signs=SIGNS,
        states=WORDS,
        evidence_of=evidence_of,
    )


def _lead(agreement: Agreement) -> str:
    """Say how many rows and data sets are compared, and what the intervals are."""
    sets = f" in {len(agreement.by_dataset)} data sets" if figures.several(agreement) else ""
    rows = counted(agreement.matched.rows, "row")
    return f"{rows}{sets}; 95 % intervals by bootstrap over rows."


# --- The calls in which judge and gold differ


def _calls(agreement: Agreement, calls: Mapping[int, Evaluation]) -> Iterator[View]:
    """Yield the views of the gravest calls, with both verdicts on each difference."""
    known = [each for each in agreement.gravest if each.row.number in calls]
    for at, difference in enumerate(known, 1):
        evaluation = calls[difference.row.number]
        view = {"at": at, **view_of(evaluation), "adherent": difference.adherent, "findings": []}
        said = {each["key"]: each for each in view["support"]}
        for place, supported in difference.supported.items():
            sentence = evaluation.sentences.claims[place]
            verdict = said[page_text(sentence.key)]
            words = f"{SIGNS['full']} supported" if supported else f"{SIGNS['none']} not supported"
            text = one_line(sentence.text, _FINDING)
            view["findings"].append({**verdict, "gold": words, "text": text})
            verdict["why"] = f"{figures.gold_of(agreement)}: {words}. {verdict['why']}"
        yield view


# --- Cells: a figure as it is printed, and as it is drawn from 0 to 1


def _cell(figure: Figure | None) -> dict[str, str]:
    """Return a table's cell: a figure's value and interval, and the drawing of both.

    The keys are `value` and `interval`, as texts, and the strip's places `at`, `low` and `high`. A
    dash for a figure that is undefined; empty where there is nothing to draw.
    """
    figure = figure or Figure(None)
    interval = figures.interval_of(figure)
    low, high = figure.interval if figure.interval and interval else (None, None)
    places = {"at": figure.value, "low": low, "high": high}
    return {"value": figures.value_of(figure), "interval": interval} | {
        name: "" if place is None else drawn(place, _STRIP) for name, place in places.items()
    }


# --- The card: who judged, and how far that agrees with gold


def _card(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the rows of the main table: a statistic per score."""
    for score, statistic, where in figures.lines_of(agreement):
        name = f"{score} (estimate)" if where[0] == "estimates" else score
        title = f"{name} {figures.STATISTICS[statistic]}"
        yield _row(title, _MEANINGS[statistic], agreement, where)


def _sentences(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of figures over sentences."""
    for kind, statistic, where in figures.SENTENCE_LINES:
        yield _row(f"{kind} {figures.STATISTICS[statistic]}", "", agreement, where)


def _row(name: str, meaning: str, agreement: Agreement, where: tuple[str, ...]) -> dict[str, Any]:
    """Return the row of a figure: mean over data sets, pooled, and what baselines reach."""
    several = figures.several(agreement)
    group = agreement.mean_over_datasets if several else agreement.pooled
    return {
        "name": name,
        "meaning": meaning,
        "main": _cell(figures.figure_of(group, *where)),
        "pooled": _cell(figures.figure_of(agreement.pooled, *where)),
        "beside": [_cell(figure) for figure in figures.beside(group, *where)],
    }


def _facts(agreement: Agreement) -> Iterator[tuple[str, list[str]]]:
    """Yield what was compared: judges, gold models and counts of rows.

    The list of a heading may be empty.
    """
    makers = agreement.makers
    yield "judge", _judges(makers.judges)
    yield "gold labels by", [page_text(model) for model in agreement.gold_models]
    matched = agreement.matched
    skipped = agreement.pooled.counts.get("keys_skipped", 0)
    counts = {
        f"{matched.unmatched_predicted:,} of the judge's and {matched.unmatched_gold:,} of gold's "
        "have no partner and are left out": matched.unmatched,
        f"{matched.joined_by_id:,} differ in content and were joined by id": matched.joined_by_id,
        f"{matched.ambiguous:,} are not unique and were joined in order": matched.ambiguous,
        f"{skipped:,} have no sentences that both sides labelled": skipped
        and not figures.humans_only(agreement),
    }
    told = [words for words, count in counts.items() if count]
    yield "rows", [f"{matched.rows:,} compared", *told]
    yield "left out", [page_text(note) for note in agreement.notes]


def _versions(agreement: Agreement) -> Iterator[tuple[str, list[str]]]:
    """Yield the versions of prompt, formulas and evaluator."""
    makers = agreement.makers
    yield "prompt version", [page_text(version) for version in makers.prompt_versions]
    yield "formulas", [page_text(formulas) for formulas in makers.formulas]
    yield "evaluator", [page_text(fingerprint) for fingerprint in makers.fingerprints]


def _judges(judges: Sequence[tuple[JudgeInfo, int]]) -> list[str]:
    """Write judges with model and version, and with the number of rows if there are several."""
    named = []
    for judge, count in judges:
        name = f"{judge.name} ({judge.model})" if judge.model else judge.name
        version = f", version {judge.version}" if judge.version else ""
        of = f" ({count:,} rows)" if len(judges) > 1 else ""
        named.append(page_text(f"{name}{version}") + of)
    return named


# --- Tables by data set, of human ratings, of baselines, and of everything


def _by_dataset(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the tables with a row per data set."""
    for title, block, columns in figures.BY_DATASET:
        yield {
            "title": title,
            "columns": [each.title for each in columns],
            "rows": [
                _dataset_row(name, group, block, columns)
                for name, group in agreement.by_dataset.items()
            ],
        }


def _dataset_row(
    name: str, group: Group, block: str, columns: Sequence[figures.ShownStatistic]
) -> dict[str, Any]:
    """Return the row of a data set."""
    cells = [_cell(figures.figure_of(group, block, *column)) for column in columns]
    return {"name": name, "n": f"{group.counts['n']:,}", "cells": cells}


def _humans(group: Group) -> Iterator[dict[str, Any]]:
    """Yield the tables of agreement with human ratings."""
    for title, rows in figures.human_tables(group):
        yield {"title": title, "rows": [(name, n, [*map(_cell, of)]) for name, n, of in rows]}


def _baselines(agreement: Agreement) -> Iterator[dict[str, Any]]:
    """Yield the tables of the judge's scores beside published baselines."""
    for score, statistic, rivals in figures.baselines_of(agreement):
        yield {
            "title": f"{score} {figures.STATISTICS[statistic]}",
            "over": "mean over data sets" if figures.several(agreement) else "all rows",
            "better": "higher is better" if statistic == "auroc" else "lower is better",
            "rows": [(rival.name, _cell(rival.theirs), _cell(rival.own)) for rival in rivals],
        }


# --- Curves


def _plots(heading: str, curves: Mapping[str, Curves]) -> dict[str, Any]:
    """Return the ROC and reliability plots of a data set."""
    heading = page_text(heading)
    curves = {page_text(name): drawn_curves for name, drawn_curves in curves.items()}
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
    """Return the plots and the table of a cascade; no plot of a statistic without a value."""
    names = [curve.title for curve in figures.CURVE]
    plots = []
    for name, where in zip(names, figures.CURVE, strict=True):
        better = "higher" if where[1] == "auroc" else "lower"
        values = [(point.share, _value_at(point, where)) for point in points]
        words = f"{name}; {better} is better"
        plots.append(
            course(values, words, "share of calls escalated", figures.STATISTICS[where[1]])
        )
    rows = [
        {
            "share": f"{point.share:.0%}",
            "band": figures.band_of(point),
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
        "plots": [plot for plot in plots if plot is not None],
        "rows": rows,
    }


def _value_at(point: CascadePoint, where: figures.ShownStatistic) -> float | None:
    """Look up a statistic of a cascade's point; None where it is undefined."""
    figure = figures.figure_of(figures.group_of(point), "scores", *where)
    return None if figure is None else figure.value


# --- Plots: a path, points with their words, and the ends of the axes


def roc(curves: Curves, title: str) -> dict[str, Any]:
    """Draw a ROC curve, with chance as a dashed line; empty when gold has one class only.

    About 400 points of it are drawn at most, and eleven are listed.
    """
    area = "undefined: gold has one class only" if curves.auroc is None else f"{curves.auroc:.3f}"
    points = curves.roc
    step = max(1, -(-len(points) // _MOST_POINTS))
    return {
        **_DIAGONAL,
        "title": title,
        "caption": f"ROC; area {area}",
        "across": "false positives",
        "up": "true positives",
        "path": _path([*points[:-1:step], *points[-1:]]),
        "dots": [],
        "table": [(f"{x:.3f}", f"{y:.3f}") for x, y in _thinned(points)],
    }


def reliability(curves: Curves, title: str) -> dict[str, Any]:
    """Draw the share in gold by probability, in ten bins; a point's area is its share of items."""
    error = f"{curves.calibration_error:.3f}"
    figures = [(f"{each.n:,}", f"{each.mean:.3f}", f"{each.share:.3f}") for each in curves.bins]
    return {
        **_DIAGONAL,
        "title": title,
        "caption": f"reliability; expected calibration error {error}",
        "across": "probability",
        "up": "share in gold",
        "path": "",
        "dots": [
            _dot(
                (each.mean, each.share),
                f"{2 + 14 * (each.n / curves.n) ** 0.5:.1f}",
                f"{n} items: mean probability {mean}, share in gold {share}",
            )
            for each, (n, mean, share) in zip(curves.bins, figures, strict=True)
        ],
        "table": figures,
    }


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
    places = [(share, (value - low) / (high - low)) for share, value in known]
    words = [f"{share:.0%}: {value:.3f}" for share, value in known]
    return {
        "diagonal": False,
        "low": f"{low:.1f}",
        "high": f"{high:.1f}",
        "title": title,
        "caption": title,
        "across": across,
        "up": up,
        "path": _path(places),
        "dots": [_dot(place, "3.5", said) for place, said in zip(places, words, strict=True)],
    }


_DIAGONAL = {"diagonal": True, "low": "0", "high": "1"}
"""Ends of the axes of a plot in which chance is drawn."""


def _path(line: Sequence[tuple[float, float]]) -> str:
    """Write a line through points of the unit square; empty without points."""
    return f"M{'L'.join(' '.join(_point(*place)) for place in line)}" if line else ""


def _dot(place: tuple[float, float], radius: str, title: str) -> dict[str, str]:
    """Return a dot at a point of the unit square."""
    x, y = _point(*place)
    return {"x": x, "y": y, "r": radius, "title": title}


def _point(x: float, y: float) -> tuple[str, str]:
    """Return a point's coordinates in the SVG."""
    return f"{EDGE + x * SIDE:.1f}", f"{EDGE + (1 - y) * SIDE:.1f}"


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Choose points of a ROC curve at steps of its false positives, with both ends."""
    ends = []
    for step in range(_LISTED + 1):
        before = [point for point in points if point[0] <= step / _LISTED]
        ends += before[-1:]
    return list(dict.fromkeys(ends))
