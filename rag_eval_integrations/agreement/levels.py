"""Scores against a human's numbers as the papers do it: at data set, document and system level.

* data set: one correlation over all rows (Chiang and Lee 2023, "Pearson").
* document: one over the systems of each document, averaged over documents (G-Eval's "summary
  level"; Chiang and Lee's Kendall per dialogue). A document where the scores or the numbers are all
  the same has no correlation: it is skipped and counted, as in the papers' code.
* system: one over systems, of their means over documents (Fabbri et al. 2021, SummEval).

Kendall's tau is tau-b. Documents are resampled whole, and so are systems.

What is tied is what is equal as a float. At the first two levels these are the numbers as they
stand in the rows, as in the papers' code, to the last digit. Means of systems are of exact sums, so
that systems whose ratings add up to the same are tied, in whatever order the rows come. Added up
one by one, or as numpy does it, they are tied or not by rounding: SummEval's fluency over 40
documents gives 15 or 16 different means (and tau .594 or .583 with relevance) as rows are shuffled.
No published table of G-Eval is at that level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement import _statistics as statistics
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, OfSums, Statistic
from rag_eval_integrations.agreement._resampled import Block, Path
from rag_eval_integrations.agreement.figures import Figures, figures_of
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.agreement.scores import agree_with_numbers, predicted_columns
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
    """How far one score agrees with a human's numbers, at each level."""

    dataset: Figures
    """Counts: `n` rows."""
    document: Figures | None = None
    """Counts: `n` rows, `documents` that count, `skipped`; None where no document is named."""
    system: Figures | None = None
    """Counts: `n` rows, `systems`; None where no system is named."""


def agree_by_level(
    scores: Mapping[str, Numbers],
    numbers: Numbers,
    *,
    documents: Names | None = None,
    systems: Names | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, Levels]:
    """Compare scores with a human's numbers at all levels that the rows have.

    Args:
        scores: by score name, one value a row, on any scale; None where it is unscored.
        numbers: one a row; None where there is none.
        documents: which document a row is of; None for a row left out of that level.
        systems: which system wrote it; None likewise.
        resamples: draws of the bootstrap; 0 for no intervals.
        seed: of the draws.

    Returns:
        By score name: Pearson's, Spearman's and Kendall's correlation at each level.

    Raises:
        ConfigurationError: a number is not finite, or the columns differ in length.
    """
    for name, column in {"documents": documents, "systems": systems}.items():
        if column is not None and len(column) != len(numbers):
            raise ConfigurationError(name, len(column), f"rows, but {len(numbers)} numbers")
    pooled = agree_with_numbers(scores, numbers, resamples=resamples, seed=seed)
    return {
        name: Levels(
            pooled[name],
            of_documents(column, numbers, documents, resamples=resamples, seed=seed),
            of_systems(column, numbers, systems, resamples=resamples, seed=seed),
        )
        for name, column in scores.items()
    }


def level_figures(pairs: Sequence[Pair], resamples: int, seed: str) -> dict[Path, Figures]:
    """Compare every predicted score with the pairs' human numbers within documents and systems.

    Returns:
        By place: `("human_by_document", NAME)` and `("human_by_system", NAME)`.
    """
    numbers = [pair.human for pair in pairs]
    documents = [pair.document for pair in pairs]
    systems = [pair.system for pair in pairs]
    found: dict[Path, Figures] = {}
    for name, column in predicted_columns(pairs).items():
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
    """Average the correlations within documents; None where no row names one."""
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
    """Correlate the means of systems; None where no row names one."""
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
    return figures_of({("level",): block}, size, resamples, seed)[("level",)]
