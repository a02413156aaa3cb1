"""What is written of evaluations: a row per call as CSV or Parquet, figures as Markdown and JSON.

`rag-eval report --format md|json` writes the figures of a `Summary`; `--format csv|parquet` writes
one row per call with the columns of `Evaluations.to_pandas()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, BinaryIO, Literal

from rag_eval_integrations._visible import visible_json
from rag_eval_integrations.errors import MissingDependencyError
from rag_eval_integrations.evaluations._cells import Cell, Row, csv_pieces, inline, markdown_table
from rag_eval_integrations.evaluations.summary import ScoreFigures, Summary
from rag_eval_integrations.metrics import diagnose
from rag_eval_integrations.records import SCHEMA, By, Evaluation, Score
from rag_eval_integrations.records.mean import Interval

# --- One row per call


@dataclass(frozen=True)
class Column:
    """One column of the rows of calls."""

    of: Callable[[Evaluation], Cell]
    """Reads the cell of a call; None when there is nothing."""
    dtype: Literal["float64", "int64"] | None = None
    """Type of its numbers in a data frame; None for texts."""


def columns_of(evaluations: Iterable[Evaluation]) -> dict[str, Column]:
    """Return the columns of these evaluations by name; `docs/evaluations.md` lists them.

    A score whose name another column has is called `score:NAME`.
    """
    scores = dict.fromkeys(name for one in evaluations for name in one.scores)
    columns = dict(_BEFORE)
    for name in scores:
        shown = name
        while {shown, f"{shown}:unscored"} & (columns.keys() | _AFTER.keys()):
            shown = f"score:{shown}"
        columns[shown] = Column(_value_of(name), "float64")
        columns[f"{shown}:unscored"] = Column(_unscored_of(name))
    return columns | _AFTER


def row_of(evaluation: Evaluation, columns: Mapping[str, Column]) -> list[Cell]:
    """Return the cells of a call."""
    return [column.of(evaluation) for column in columns.values()]


def _value_of(name: str) -> Callable[[Evaluation], Cell]:
    def value(evaluation: Evaluation) -> Cell:
        score = evaluation.scores.get(name)
        return None if score is None else score.value

    return value


def _unscored_of(name: str) -> Callable[[Evaluation], Cell]:
    def unscored(evaluation: Evaluation) -> Cell:
        score: Score | None = evaluation.scores.get(name)
        return None if score is None or score.value is not None else score.unscored or score.status

    return unscored


def _unsupported(evaluation: Evaluation) -> Cell:
    labels = evaluation.labels
    if labels is None:
        return None
    keys = (sentence.key for sentence in evaluation.sentences.response)
    return " ".join(key for key in keys if labels.support(key) in ("none", "partial"))


def _error(evaluation: Evaluation) -> Cell:
    error = evaluation.error
    return None if error is None else f"{error.stage}: {error.type}: {error.message}"


_BEFORE = {
    "id": Column(lambda one: one.id),
    "question": Column(lambda one: one.question),
    "response": Column(lambda one: one.response),
    "reference": Column(lambda one: one.reference),
    "documents": Column(lambda one: len(one.document_ids), "int64"),
}
_AFTER = {
    "diagnosis": Column(lambda one: " ".join(found.pattern for found in diagnose(one)) or None),
    "unsupported": Column(_unsupported),
    "judge": Column(lambda one: one.judge.name),
    "model": Column(lambda one: one.judge.model),
    "flags": Column(lambda one: " ".join(one.flags)),
    "error": Column(_error),
    "requests": Column(lambda one: one.usage.requests, "int64"),
    "prompt_tokens": Column(lambda one: one.usage.prompt_tokens, "int64"),
    "completion_tokens": Column(lambda one: one.usage.completion_tokens, "int64"),
    "cost_usd": Column(lambda one: one.usage.cost_usd, "float64"),
    "row_key": Column(lambda one: one.row_key),
}


# --- Files of rows, in flat memory


_GROUP = 4096
"""Rows of a group of a Parquet file: as many are held in memory."""


def csv_of(evaluations: Iterable[Evaluation], columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield the pieces of a CSV file; a missing value is an empty cell.

    Cells are visible on one line, and none is read as a formula.
    """
    return csv_pieces(list(columns), (row_of(one, columns) for one in evaluations))


def check_parquet() -> None:
    """Check that Parquet can be written, before anything is read.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415 -- large; only whoever writes it needs it
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "parquet") from error


def write_parquet(
    evaluations: Iterable[Evaluation], columns: Mapping[str, Column], out: BinaryIO
) -> None:
    """Write a Parquet file; a missing value is null, and texts are as they are.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow as pa  # noqa: PLC0415 -- as above
    from pyarrow import parquet as pq  # noqa: PLC0415

    kinds = {"float64": pa.float64(), "int64": pa.int64(), None: pa.string()}
    schema = pa.schema([(name, kinds[column.dtype]) for name, column in columns.items()])
    rows = (row_of(one, columns) for one in evaluations)
    with pq.ParquetWriter(out, schema, compression="zstd") as file:
        while group := list(islice(rows, _GROUP)):
            cells = zip(*group, strict=True)
            arrays = [pa.array(held, kind) for held, kind in zip(cells, schema.types, strict=True)]
            file.write_table(pa.Table.from_arrays(arrays, schema=schema))


# --- The figures


def to_json(summary: Summary) -> str:
    """Write the figures as one JSON object, ASCII only; `docs/evaluations.md` lists its fields."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "calls": summary.calls,
        "scored": summary.scored,
        "failed": summary.failed,
        "labelled": summary.labelled,
        "scores": [{**asdict(one), "by": _by(one.by)} for one in summary.scores],
        "patterns": [asdict(one) for one in summary.patterns],
        "retrieval": asdict(summary.retrieval),
        "errors": [
            {"kind": kind, "calls": calls, "message": summary.reasons.get(kind)}
            for kind, calls in summary.errors.most_common()
        ],
        "warnings": dict(summary.warnings.most_common()),
        "flags": dict(summary.flags.most_common()),
        "judges": [
            {**judge.model_dump(), "calls": calls}
            for judge, calls in summary.judges.most_common()
        ],
        "versions": {name: dict(found) for name, found in summary.versions.items()},
        "usage": summary.usage.model_dump(),
    }  # fmt: skip
    return visible_json(content) + "\n"


def _by(by: By) -> dict[str, Any]:
    return by.model_dump(exclude_none=True)


def to_markdown(summary: Summary, title: str = "Evaluations") -> str:
    """Write the figures as a Markdown page: scores, diagnoses, retrieval, failures and notes.

    Args:
        summary: the figures.
        title: heading of the page; any text.
    """
    lines = [f"# {inline(title)}", "", inline(summary.headline(), most=None)]
    lines += ["", "## Scores", "", *markdown_table([_score_row(one) for one in summary.scores])]
    if summary.patterns:
        lines += [
            "", f"## Diagnoses of {summary.labelled:,} labelled calls", "",
            "A call may show several.", "",
            *markdown_table(
                [
                    {"pattern": one.pattern.replace("_", " "), "calls": one.calls,
                     "share": f"{one.share:.1%}", "95 %": _ends(one.interval, ".1%"),
                     "meaning": one.meaning, "fix": one.fix}
                    for one in summary.patterns
                ]
            ),
        ]  # fmt: skip
    lines += _retrieval(summary)
    if summary.errors:
        failed: list[Row] = [
            {"calls": calls, "failure": kind, "first message": summary.reasons.get(kind)}
            for kind, calls in summary.errors.most_common()
        ]
        lines += ["", "## Failures", "", *markdown_table(failed)]
    for heading, found in (("Notes", summary.warnings), ("Flags", summary.flags)):
        if found:
            rows: list[Row] = [
                {"calls": calls, "text": text} for text, calls in found.most_common()
            ]
            lines += ["", f"## {heading}", "", *markdown_table(rows)]
    return "\n".join(lines) + "\n"


def _ends(interval: Interval, spec: str) -> str:
    return f"{interval.low:{spec}} to {interval.high:{spec}}"


def _score_row(one: ScoreFigures) -> Row:
    verdict = f"{one.passed:,} of {one.with_threshold:,}" if one.with_threshold else ""
    made = (one.by.judge, one.by.model, one.by.formulas, one.method)
    return {
        "score": one.name,
        "mean": "–" if one.mean is None else f"{one.mean:.3f}",
        "95 %": "–" if one.interval is None else _ends(one.interval, ".3f"),
        "scored": f"{one.scored:,} of {one.total:,}",
        "passed": verdict,
        "unscored because": ", ".join(f"{code} {count}" for code, count in one.unscored.items()),
        "by": " ".join(filter(None, made)),
    }


def _retrieval(summary: Summary) -> list[str]:
    found = summary.retrieval
    if found.share is None or found.interval is None:
        return []
    first = (
        "" if found.first_relevant is None else f", on average at rank {found.first_relevant:.2f}"
    )
    rows: list[Row] = [
        {"rank": one.rank, "calls": one.calls, "relevant": one.relevant, "used": one.used}
        for one in found.ranks
    ]
    return [
        "", "## Retrieval", "",
        f"In {found.share:.1%} of {found.calls:,} labelled calls (95 %: {found.interval:.1%}) a "
        f"document holds a relevant sentence{first}.",
        "", *markdown_table(rows),
    ]  # fmt: skip
