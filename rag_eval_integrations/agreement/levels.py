"""Scores against a human's ratings on any scale, at data set, document and system level.

* data set: one correlation over all rows (Chiang and Lee 2023, "Pearson").
* document: one correlation per document over its systems, averaged over documents (G-Eval's
  "summary level"; Chiang and Lee's Kendall per dialogue). A document with constant scores or
  constant ratings has no correlation; it is skipped and counted, as in the papers' code.
* system: one correlation over the systems' means (Fabbri et al. 2021, SummEval).

Kendall's tau is tau-b. Documents and systems are resampled as a whole.

Two numbers are tied when they are equal as floats. At the first two levels these are the numbers of
the rows themselves, as in the papers' code. The means of systems are computed from exact sums, so
that systems with equal sums of ratings are tied in any order of the rows. With ordinary or numpy's
summation, rounding decides: SummEval's fluency over 40 documents gives 15 or 16 different means
(and tau .594 or .583 with relevance), depending on the order of the rows. No published table of
G-Eval is at that level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_eval_integrations.agreement import _statistics as statistics
from rag_eval_integrations.agreement._statistics import Array, Places
from rag_eval_integrations.agreement._table import Row, Table, column, names_of
from rag_eval_integrations.agreement.figures import (
    RESAMPLES,
    SEED,
    Block,
    Figures,
    Path,
    figures_of,
)
from rag_eval_integrations.errors import ConfigurationError

Numbers = Sequence[float | None]
Names = Sequence[str | None]


@dataclass(frozen=True)
class Levels:
    """The agreement of one score with a human's ratings, at each level."""

    dataset: Figures
    """Data set level; counts `n` rows."""
    document: Figures | None = None
    """Document level; counts `n` rows, `documents` with a correlation and `skipped` ones. None when
    no row names a document."""
    system: Figures | None = None
    """System level; counts `n` rows and `systems`. None when no row names a system."""


def agree_by_level(
    scores: Mapping[str, Numbers],
    numbers: Numbers,
    *,
    documents: Names | None = None,
    systems: Names | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Levels]:
    """Compare scores with a human's ratings at all levels that the rows have.

    Args:
        scores: by score name, one value per row, on any scale; None for an unscored row.
        numbers: one rating per row, on any scale; None for a missing one.
        documents: name of each row's document; None leaves a row out of the document level.
        systems: name of the system that wrote each row's response; None likewise.
        resamples: number of bootstrap resamples; 0 for no intervals.
        seed: seed of the resampling.

    Returns:
        By score name: Pearson's, Spearman's and Kendall's correlation at each level.

    Raises:
        ConfigurationError: a number is not finite, or the columns differ in length.
    """
    nobody: Names = [None] * len(numbers)
    names = [nobody if given is None else given for given in (documents, systems)]
    for name, given in zip(("documents", "systems"), names, strict=True):
        _check_length(name, given, numbers)
    figures = _of_columns(scores, numbers, names, resamples, seed)
    return {name: _levels_of(name, figures) for name in scores}


def _levels_of(name: str, figures: Mapping[Path, Figures]) -> Levels:
    """Collect the figures of a score at each level."""
    document = figures.get(("human_by_document", name))
    system = figures.get(("human_by_system", name))
    return Levels(figures["human", name], document, system)


def agree_with_numbers(
    scores: Mapping[str, Numbers],
    numbers: Numbers,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Figures]:
    """Compare scores with numbers on any scale, such as a human's ratings, row by row.

    Args:
        scores: by score name, one value per row; None for an unscored row.
        numbers: one number per row; None for a missing one.
        resamples: number of bootstrap resamples; 0 for no intervals.
        seed: seed of the resampling.

    Returns:
        By score name: `n`, Pearson's, Spearman's and Kendall's correlation, and the RMSE if all
        numbers lie in [0, 1].

    Raises:
        ConfigurationError: a number is not finite, or the columns differ in length.
    """
    figures = _of_columns(scores, numbers, (), resamples, seed)
    return {name: figures["human", name] for name in scores}


def _of_columns(
    scores: Mapping[str, Numbers],
    numbers: Numbers,
    names: Sequence[Names],
    resamples: int,
    seed: int,
) -> dict[Path, Figures]:
    """Check a user's columns, and compare each with the numbers at all levels."""
    for name, given in {**scores, "numbers": numbers}.items():
        _check_length(name, given, numbers)
        bad = [value for value in given if value is not None and not math.isfinite(value)]
        if bad:
            raise ConfigurationError(name, bad[0], "is not finite; use None for a missing number")
    columns = {name: np.array(given, "f8") for name, given in scores.items()}
    shares = columns if _are_shares(numbers) else {}
    seeds = f"{seed} ", str(seed)
    return _at_levels(columns, np.array(numbers, "f8"), shares, names, resamples, seeds)


def _check_length(name: str, given: Sequence[object], numbers: Numbers) -> None:
    """Refuse a column that is not as long as the numbers."""
    if len(given) != len(numbers):
        raise ConfigurationError(
            name, len(given), f"is its number of rows, but there are {len(numbers)} numbers"
        )


def _are_shares(numbers: Iterable[float | None]) -> bool:
    """Tell whether numbers are on the scale of scores, [0, 1], so that an RMSE has a meaning."""
    return all(number is None or 0 <= number <= 1 for number in numbers)


def human_figures(
    table: Table, everything: Table, resamples: int, seed: str
) -> dict[Path, Figures]:
    """Compare every predicted score with the rows' human ratings, by row, document and system.

    Whether ratings are shares is decided on all rows of a run: a data set that holds only ones may
    use a scale of 1 to 5.

    Returns:
        Figures by path: `("human", NAME)`, `("human_by_document", NAME)` and
        `("human_by_system", NAME)`; empty where no row of the run has a rating.
    """
    humans = everything.humans()
    if all(number is None for number in humans):
        return {}
    rows = table.predicted
    columns = {name: _on_raw_scale(rows, name) for name in names_of(rows)}
    values = {name: column(rows, name) for name in columns} if _are_shares(humans) else {}
    names = [row.document for row in table.gold], [row.system for row in table.gold]
    ratings = np.array(table.humans(), "f8")
    return _at_levels(columns, ratings, values, names, resamples, (seed, seed))


def _on_raw_scale(rows: Sequence[Row], name: str) -> Array:
    """Return a predicted score as a column for correlations, with one number per row.

    These are raw scores if every row's value derives from a raw score on the same scale.
    Correlations do not depend on the scale, but values are rounded, and clipping to [0, 1] ties
    them.
    """
    values, raws = column(rows, name), column(rows, name, "raw")
    scored = ~np.isnan(values)
    scores = (row.scores.get(name) for row in rows)
    scales = {score.scale for score in scores if score and score.value is not None}
    if len(scales) != 1 or (scale := scales.pop()) is None:
        return values
    scaled = np.clip((raws - scale[0]) / (scale[1] - scale[0]), 0, 1)
    # The value of a strict metric is another.
    same = np.isclose(values, scaled, rtol=1e-9, atol=1e-9)
    return np.where(scored, raws, np.nan) if same[scored].all() else values


def _at_levels(
    scores: Mapping[str, Array],
    ratings: Array,
    shares: Mapping[str, Array],
    names: Sequence[Names],
    resamples: int,
    seeds: tuple[str, str],
) -> dict[Path, Figures]:
    """Compare columns of scores with ratings at all levels; rows also by RMSE for shares.

    `names` holds those of the rows' documents and systems; `seeds` are of the first level and of
    the others.
    """
    blocks = []
    for name, column_ in scores.items():
        known = ~(np.isnan(column_) | np.isnan(ratings))
        places = Places(np.flatnonzero(known), len(ratings))
        figures = statistics.correlations(column_[known], ratings[known], places)
        if name in shares:
            figures["rmse"] = statistics.rmse(shares[name][known], ratings[known], places)
        blocks.append((("human", name), Block({"n": int(known.sum())}, figures)))
    levels_of = figures_of(blocks, len(ratings), resamples, seeds[0])
    levels = list(zip(("document", "system"), (_of_documents, _of_systems), names, strict=False))
    for name, column_ in scores.items():
        for level, compare, of_rows in levels:
            groups = _grouped(column_, ratings, of_rows)
            if groups:
                block = ((f"human_by_{level}", name), compare(groups))
                levels_of |= figures_of([block], len(groups), resamples, f"{seeds[1]} {level}s")
    return levels_of


_Group = tuple[Array, Array]
"""The scores and the ratings of one document or system."""


def _grouped(scores: Array, numbers: Array, names: Names) -> list[_Group]:
    """Collect the scores and numbers of each name, without missing ones."""
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if name is not None and scores[row] == scores[row] and numbers[row] == numbers[row]:
            groups.setdefault(name, []).append(row)
    return [(scores[rows], numbers[rows]) for rows in groups.values()]


def _is_varied(group: _Group) -> bool:
    """Tell whether neither the scores nor the ratings are all equal."""
    return all(values.min() < values.max() for values in group)


def _of_documents(groups: Sequence[_Group]) -> Block:
    """Average the correlations within documents."""
    varied = [place for place, group in enumerate(groups) if _is_varied(group)]
    values = np.full((3, len(groups)), np.nan)
    for place in varied:
        correlations = statistics.correlations(
            *groups[place], Places.of_groups([1] * len(groups[place][0]))
        )
        values[:, place] = [statistic.value for statistic in correlations.values()]
    counts = {
        "n": sum(len(scores) for scores, _ in groups),
        "documents": len(varied),
        "skipped": len(groups) - len(varied),
    }
    means = {}
    for name, of in zip(("pearson", "spearman", "kendall"), values, strict=True):
        known = np.flatnonzero(~np.isnan(of))
        means[name] = statistics.mean(of[known], Places(known, len(groups)))
    return Block(counts, means)


def _exact_mean(values: Array) -> float:
    return math.fsum(values.tolist()) / len(values)


def _of_systems(groups: Sequence[_Group]) -> Block:
    """Correlate the means of systems."""
    xs = np.array([_exact_mean(scores) for scores, _ in groups])
    ys = np.array([_exact_mean(ratings) for _, ratings in groups])
    counts = {"n": sum(len(scores) for scores, _ in groups), "systems": len(groups)}
    return Block(counts, statistics.correlations(xs, ys, Places.of_groups([1] * len(groups))))
