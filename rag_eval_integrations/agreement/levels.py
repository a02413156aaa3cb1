"""`agree_by_level`: scores against a human's ratings at data set, document and system level.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement import _statistics as statistics
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, OfSums, Statistic
from rag_eval_integrations.agreement._resampled import Block, Path
from rag_eval_integrations.agreement._table import Part
from rag_eval_integrations.agreement.figures import Figures, figures_of
from rag_eval_integrations.agreement.scores import agree_with_numbers, predicted_columns, ratings
from rag_eval_integrations.errors import ConfigurationError

Numbers = Sequence[float | None]
Names = Sequence[str | None]

_CORRELATIONS = {
    "pearson": statistics.pearson,
    "spearman": statistics.spearman,
    "kendall": statistics.kendall,
}


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
    for name, column in {"documents": documents, "systems": systems}.items():
        if column is not None and len(column) != len(numbers):
            raise ConfigurationError(
                name, len(column), f"is its number of rows, but there are {len(numbers)} numbers"
            )
    pooled = agree_with_numbers(scores, numbers, resamples=resamples, seed=seed)
    return {
        name: Levels(
            pooled[name],
            of_documents(column, numbers, documents, resamples=resamples, seed=seed),
            of_systems(column, numbers, systems, resamples=resamples, seed=seed),
        )
        for name, column in scores.items()
    }


def level_figures(part: Part, resamples: int, seed: str) -> dict[Path, Figures]:
    """Compare every predicted score with the rows' human ratings by document and by system.

    Returns:
        Figures by path: `("human_by_document", NAME)` and `("human_by_system", NAME)`.
    """
    others = part.table.others
    numbers = ratings(part)
    documents = [others.names.values[others.document[row]] for row in part.rows]
    systems = [others.names.values[others.system[row]] for row in part.rows]
    found: dict[Path, Figures] = {}
    for name, column in predicted_columns(part).items():
        document = of_documents(column, numbers, documents, resamples=resamples, seed=seed)
        system = of_systems(column, numbers, systems, resamples=resamples, seed=seed)
        if document is not None:
            found["human_by_document", name] = document
        if system is not None:
            found["human_by_system", name] = system
    return found


def of_documents(
    scores: Numbers, numbers: Numbers, documents: Names | None, *, resamples: int, seed: int | str
) -> Figures | None:
    """Average the correlations within documents; None when no row names a document."""
    groups = list(_grouped(scores, numbers, documents).values())
    if not groups:
        return None
    varied = [at for at, group in enumerate(groups) if _varies(group)]
    columns = {
        name: [correlate(*zip(*groups[at], strict=True)) for at in varied]
        for name, correlate in _CORRELATIONS.items()
    }
    means = {name: _mean_of(column, varied, len(groups)) for name, column in columns.items()}
    counts = {
        "n": sum(map(len, groups)),
        "documents": len(varied),
        "skipped": len(groups) - len(varied),
    }
    return _figures(Block(counts, means), len(groups), resamples, f"{seed} documents")


def of_systems(
    scores: Numbers, numbers: Numbers, systems: Names | None, *, resamples: int, seed: int | str
) -> Figures | None:
    """Correlate the means of systems; None when no row names a system."""
    groups = list(_grouped(scores, numbers, systems).values())
    if not groups:
        return None
    xs = [math.fsum(score for score, _ in group) / len(group) for group in groups]
    ys = [math.fsum(number for _, number in group) / len(group) for group in groups]
    counts = {"n": sum(map(len, groups)), "systems": len(groups)}
    block = Block(counts, resampled.correlations(xs, ys, range(len(groups)), len(groups)))
    return _figures(block, len(groups), resamples, f"{seed} systems")


def _grouped(
    scores: Numbers, numbers: Numbers, names: Names | None
) -> dict[str, list[tuple[float, float]]]:
    groups: dict[str, list[tuple[float, float]]] = {}
    for score, number, name in zip(scores, numbers, names or [None] * len(scores), strict=True):
        if score is not None and number is not None and name is not None:
            groups.setdefault(name, []).append((score, number))
    return groups


def _varies(group: Sequence[tuple[float, float]]) -> bool:
    return all(len(set(side)) > 1 for side in zip(*group, strict=True))


def _mean_of(column: Sequence[float | None], at: Sequence[int], size: int) -> Statistic:
    present = [(row, value) for row, value in zip(at, column, strict=True) if value is not None]
    values, counted = [0.0] * size, [0.0] * size
    for row, value in present:
        values[row], counted[row] = value, 1.0
    mean = math.fsum(values) / len(present) if present else None
    return OfSums(mean, len(present), (values, counted), _mean)


def _mean(total: float, n: float) -> float | None:
    return total / n if n else None


def _figures(block: Block, size: int, resamples: int, seed: str) -> Figures:
    return figures_of([(("level",), block)], size, resamples, seed)[("level",)]
