"""Evaluations and gold rows of `agreement` and `calibrate`, which compare a judge with gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from rag_eval_integrations.agreement import Gold
from rag_eval_integrations.agreement._table import Row
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.dataset import call_from, labelled_from
from rag_eval_integrations.dataset._input import evaluation_from, read_rows
from rag_eval_integrations.dataset.rows import score_gold
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import TRACE_SCORES, Formulas, Trace
from rag_eval_integrations.records import (
    By,
    Evaluation,
    JudgeInfo,
    RagCall,
    Sentences,
)
from rag_eval_integrations.sentences import Punkt


class RowReader:
    """Reads files line by line; reports and counts invalid lines."""

    def __init__(self) -> None:
        self.bad: list[BadRows] = []

    def evaluations(self, path: Path) -> list[Row]:
        """Read the numbers of evaluations.

        Raises:
            OSError: when the file cannot be read.
        """

        def read(content: dict[str, Any]) -> Row:
            """Read a row of EVALS."""
            return Row.of(evaluation_from(content))

        return list(self._values(path, read, evaluations=True))

    def gold(self, path: Path, trace: Trace, **names: str | None) -> list[Row]:
        """Read gold rows, and score their labels by a metric's formulas.

        Args:
            path: the file.
            trace: the metric.
            **names: fields with a human rating and what was rated, as `Gold.from_row` takes them.

        Raises:
            ConfigurationError: the file has no rows.
            OSError: when it cannot be read.
        """

        def read(content: dict[str, Any]) -> Row:
            """Read a row of gold labels."""
            gold = _gold_from(content, trace, names)
            return Row.of(gold.evaluation, gold)

        rows = list(self._values(path, read))
        if not rows:
            raise ConfigurationError("gold", str(path), f"the gold file {self.no_rows()}")
        return rows

    def _values(
        self, path: Path, read: Callable[[dict[str, Any]], Row], *, evaluations: bool = False
    ) -> Iterator[Row]:
        """Yield what `read` makes of the rows of a file; bad rows are counted."""
        bad = BadRows(path)
        self.bad.append(bad)
        return bad.values(read_rows(path, read, evaluations=evaluations))

    def no_rows(self) -> str:
        """Say why a file gave no rows: it has none, or none is valid."""
        return "has no valid rows" if any(problem.count for problem in self.bad) else "has no rows"

    def exit_code(self) -> int:
        """Tell how many lines were invalid; return 2 after one, else 0."""
        return max(problem.end("left out") for problem in self.bad)


def predicted_rows(reader: RowReader, path: Path) -> tuple[list[Row], Trace]:
    """Read a judge's evaluations, and the metric with their formulas, which scores gold labels.

    Raises:
        ConfigurationError: the file has no rows.
        OSError: when it cannot be read.
    """
    rows = reader.evaluations(path)
    if not rows:
        raise ConfigurationError("evals", str(path), f"the evaluations file {reader.no_rows()}")
    scores = (row.scores[name] for row in rows for name in TRACE_SCORES if name in row.scores)
    by = next((score.by for score in scores if score.by.formulas), None)
    return rows, Trace() if by is None else Trace(
        cast(Formulas, by.formulas), by.relevance_baseline
    )


def _gold_from(content: dict[str, Any], trace: Trace, names: dict[str, Any]) -> Gold:
    """Read a gold row: labelled, or with a human rating alone.

    Fields of its metadata count as its own.
    """
    metadata = content.get("metadata")
    fields = {**content, **(metadata if isinstance(metadata, dict) else {})}
    labelled = "labels" in content or "all_relevant_sentence_keys" in content
    if names.get("human") is not None and not labelled:
        evaluation = _rated(content, trace)
    else:
        evaluation = score_gold(labelled_from(content, Punkt()), trace)
    return Gold.from_row(evaluation, fields, **names)


def _rated(content: dict[str, Any], trace: Trace) -> Evaluation:
    """Read a row with a human rating and no labels, which is a complete RagCall or only an id."""
    if "response" in content or not isinstance(content.get("id"), str | int):
        call = call_from(content)
        scores = trace.unscored("missing_param", "the gold row has no labels", By())
    else:
        call, scores = RagCall("", (), None, id=str(content["id"])), ()
    return Evaluation.model_construct(
        id=call.id, row_key=call.row_key if scores else "", question=call.question,
        response=call.response, scores={score.name: score for score in scores}, labels=None,
        sentences=Sentences(), judge=JudgeInfo(name="human"),
    )  # fmt: skip
