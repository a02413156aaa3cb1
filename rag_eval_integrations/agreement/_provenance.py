"""Who made the scores of a table: one maker per score and side, or a refusal that names both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rag_eval_integrations.agreement._table import Row, ScoreRow, Table, names_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import JudgeInfo
from rag_eval_integrations.records._repr import LEXICAL

Provenance = Mapping[str, str | int | None]
"""Provenance of a score: `formulas`, `relevance_baseline`, `method` and others, by name."""
_FORMULAS = ("formulas", "relevance_baseline")
_PREDICTED = (
    "method",
    "judge",
    "model",
    "judge_version",
    "prompt_version",
    *_FORMULAS,
    "calibration",
)
# Gold is often annotated by several people or models (RAGBench: gpt-4o for some data sets,
# gpt-4-turbo for others), so they are reported and not refused.
_GOLD = ("method", "judge", "prompt_version", *_FORMULAS)


def check_one_provenance(table: Table) -> dict[str, Provenance]:
    """Check that each score was made in one way on each side, with the same formulas.

    Returns:
        By score name: `formulas`, `relevance_baseline`, and the predicted side's `method`.

    Raises:
        ConfigurationError: a field of the provenance differs; names the score, the side and the
            field.
    """
    provenance: dict[str, Provenance] = {}
    for name in table.names():
        rows = table.compared(name).places.rows.tolist()
        if not rows:
            continue
        predicted = _predictor([table.predicted[row] for row in rows], name)
        scores = [table.gold[row].scores[name] for row in rows]
        gold = _single_provenance(scores, name, "gold", _GOLD)
        for part in _FORMULAS:
            if predicted[part] != gold[part]:
                raise ConfigurationError(
                    part,
                    predicted[part],
                    f"was used for `{name}` of the predicted rows, and {gold[part]!r} for that of"
                    " the gold rows; score both sides with the same formulas",
                )
        provenance[name] = {field: predicted[field] for field in (*_FORMULAS, "method")}
    return provenance


def check_one_predictor(rows: Sequence[Row]) -> None:
    """Check that each predicted score was made in one way, for comparisons without gold scores.

    The rows of a cascade may come from any of its judges.

    Raises:
        ConfigurationError: a field of the provenance differs; names the score and the field.
    """
    for name in names_of(rows):
        scored = [row for row in rows if name in row.scores and row.scores[name].value is not None]
        if scored:
            _predictor(scored, name)


def _predictor(rows: Iterable[Row], name: str) -> Provenance:
    """Return the provenance of a predicted score; a cascade's judges are joined by "or".

    Refuses a cascade in some rows only, and formulas that differ; what else differs is joined by
    "or".
    """
    by_part: dict[str | None, list[ScoreRow]] = {}
    for row in rows:
        by_part.setdefault(row.part, []).append(row.scores[name])
    makers = [
        _single_provenance(scores, name, "predicted", _PREDICTED) for scores in by_part.values()
    ]
    if len(makers) > 1 and None in by_part:
        raise ConfigurationError(
            "judge", name, "comes from a cascade in some predicted rows and not in others"
        )
    provenance: dict[str, str | int | None] = {}
    for part in _PREDICTED:
        first, *others = dict.fromkeys(maker[part] for maker in makers)
        if others and part in _FORMULAS:
            raise ConfigurationError(
                part, others[0], f"was used for `{name}` of some predicted rows only"
            )
        provenance[part] = " or ".join(map(str, (first, *others))) if others else first
    return provenance


def _single_provenance(
    scores: Iterable[ScoreRow], name: str, side: str, parts: Sequence[str]
) -> Provenance:
    """Return the provenance that all scores of a side share; refuse scores that differ in it."""
    distinct = dict.fromkeys((score.method, score.by) for score in scores)
    makers = [(method, by.comparable()) for method, by in distinct]
    provenance = {}
    for part in parts:
        of = (method if part == "method" else getattr(by, part) for method, by in makers)
        provenance[part], *others = dict.fromkeys(of)
        if others:
            raise ConfigurationError(
                part,
                [provenance[part], *others],
                f"differ within `{name}` of the {side} rows; compare rows of one kind at a time",
            )
    return provenance


# --- All makers of a table


class Makers(NamedTuple):
    """The makers of the predicted rows, each kind in order of appearance."""

    judges: tuple[tuple[JudgeInfo, int], ...] = ()
    """Judges with their numbers of rows, the most frequent first."""
    prompt_versions: tuple[str, ...] = ()
    formulas: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()
    lexical: int = 0
    """Rows whose judge compared words, and asked no model."""

    @classmethod
    def of(cls, table: Table) -> Makers:
        """List the judges, prompts, formulas and evaluators of a table."""
        rows = table.predicted
        by = dict.fromkeys(
            row.scores[name].by for name in names_of(rows) for row in rows if name in row.scores
        )
        return cls(
            tuple(Counter(row.judge for row in rows).most_common()),
            _distinct(maker.prompt_version for maker in by),
            _distinct(maker.formulas for maker in by),
            _distinct(row.fingerprint for row in rows),
            sum(LEXICAL in row.flags for row in rows),
        )


NOBODY = Makers()


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    """Return the distinct names in their order, without missing ones."""
    return tuple(dict.fromkeys(name for name in names if name))
