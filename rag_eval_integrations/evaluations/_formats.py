"""Formats of evaluations: a row per call as CSV or Parquet, figures as Markdown and JSON.

`rag-eval report --format md|json` writes the figures of a `Summary`; `--format csv|parquet` writes
one row per call with the columns of `Evaluations.to_pandas()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, Literal, NamedTuple

from rag_eval_integrations._visible import visible_json
from rag_eval_integrations.errors import extra
from rag_eval_integrations.evaluations._call_view import unsupported
from rag_eval_integrations.evaluations._cells import (
    Cell,
    Row,
    csv_pieces,
    inline,
    markdown_table,
    named_rows,
)
from rag_eval_integrations.evaluations._corrected import CorrectedMeans
from rag_eval_integrations.evaluations._groups import Groups
from rag_eval_integrations.evaluations.summary import ScoreFigures, Summary, maker_words
from rag_eval_integrations.metrics import diagnose
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._json import SCHEMA
from rag_eval_integrations.records.mean import Interval

# --- One row per call


class Column(NamedTuple):
    """One column of the rows of calls."""

    of: Callable[[Evaluation], Cell]
    """Reads the cell of a call; None when there is nothing."""
    dtype: Literal["float64", "int64"] | None = None
    """Type of its numbers in a data frame; None for texts."""


def columns_of(evaluations: Iterable[Evaluation]) -> dict[str, Column]:
    """Return the columns of these evaluations by name; `docs/evaluations.md` lists them.

    A score whose name another column has is called `score:NAME`.
    """
    scores = dict.fromkeys(name for evaluation in evaluations for name in evaluation.scores)
    columns = dict(_BEFORE)
    for name in scores:
        heading = name
        while {heading, f"{heading}:unscored"} & (columns.keys() | _AFTER.keys()):
            heading = f"score:{heading}"
        columns[heading] = Column(partial(_value, name), "float64")
        columns[f"{heading}:unscored"] = Column(partial(_unscored, name))
    return columns | _AFTER


def row_of(evaluation: Evaluation, columns: Mapping[str, Column]) -> list[Cell]:
    """Return the cells of a call."""
    return [column.of(evaluation) for column in columns.values()]


def _value(name: str, evaluation: Evaluation) -> Cell:
    """Return the value of a score, if the call has it."""
    return evaluation.scores[name].value if name in evaluation.scores else None


def _unscored(name: str, evaluation: Evaluation) -> Cell:
    """Return why a score has no value, if it has none."""
    score = evaluation.scores.get(name)
    return None if score is None or score.value is not None else score.unscored or score.status


def _unsupported(evaluation: Evaluation) -> Cell:
    """Return the keys of the unsupported response sentences."""
    if evaluation.labels is None:
        return None
    return " ".join(sentence.key for sentence, *_ in unsupported(evaluation))


def _error(evaluation: Evaluation) -> Cell:
    """Write the error of an evaluation, if it has one."""
    error = evaluation.error
    return f"{error.stage}: {error.type}: {error.message}" if error else None


_BEFORE = {
    "id": Column(lambda call: call.id),
    "question": Column(lambda call: call.question),
    "response": Column(lambda call: call.response),
    "reference": Column(lambda call: call.reference),
    "documents": Column(lambda call: len(call.document_ids), "int64"),
}
_AFTER = {
    "diagnosis": Column(lambda call: " ".join(each.pattern for each in diagnose(call)) or None),
    "unsupported": Column(_unsupported),
    "judge": Column(lambda call: call.judge.name),
    "model": Column(lambda call: call.judge.model),
    "flags": Column(lambda call: " ".join(call.flags)),
    "error": Column(_error),
    "requests": Column(lambda call: call.usage.requests, "int64"),
    "prompt_tokens": Column(lambda call: call.usage.prompt_tokens, "int64"),
    "completion_tokens": Column(lambda call: call.usage.completion_tokens, "int64"),
    "cost_usd": Column(lambda call: call.usage.cost_usd, "float64"),
    "row_key": Column(lambda call: call.row_key),
}


# --- Files of rows, in flat memory


_GROUP = 4096
"""Rows of a group of a Parquet file: as many are held in memory."""


def csv_of(evaluations: Iterable[Evaluation], columns: Mapping[str, Column]) -> Iterator[str]:
    """Yield the pieces of a CSV file; a missing value is an empty cell.

    Cells are visible on one line, and none is read as a formula.
    """
    return csv_pieces(list(columns), (row_of(evaluation, columns) for evaluation in evaluations))


def check_parquet() -> None:
    """Check that Parquet can be written, before anything is read.

    Raises:
        MissingDependencyError: pyarrow is not installed.
    """
    with extra("parquet", "pyarrow"):
        import pyarrow.parquet  # noqa: F401, PLC0415 -- large; only whoever writes it needs it


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
    rows = (row_of(evaluation, columns) for evaluation in evaluations)
    with pq.ParquetWriter(out, schema, compression="zstd") as file:
        while group := list(islice(rows, _GROUP)):
            typed = zip(zip(*group, strict=True), schema.types, strict=True)
            arrays = [pa.array(cells, kind) for cells, kind in typed]
            file.write_table(pa.Table.from_arrays(arrays, schema=schema))


# --- The figures


def to_json(
    summary: Summary, groups: Groups | None = None, corrected: CorrectedMeans | None = None
) -> str:
    """Write the figures as one JSON object in ASCII, with a line end; see docs/evaluations.md."""
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "verdict": summary.verdict(),
        "calls": summary.calls,
        "scored": summary.scored,
        "failed": summary.failed,
        "labelled": summary.labelled,
        "scores": _scores(summary),
        "patterns": [asdict(pattern) for pattern in summary.patterns],
        "retrieval": asdict(summary.retrieval),
        "errors": [
            {"kind": kind, "calls": calls, "message": summary.reasons.get(kind)}
            for kind, calls in summary.errors.most_common()
        ],
        "warnings": dict(summary.warnings.most_common()),
        "flags": dict(summary.flags.most_common()),
        "judges": [
            {**judge.model_dump(), "calls": calls} for judge, calls in summary.judges.most_common()
        ],
        "versions": {name: dict(values) for name, values in summary.versions.items()},
        "usage": summary.usage.model_dump(),
    }
    if corrected is not None:
        content["corrected"] = asdict(corrected)
    if groups is not None:
        content["groups"] = {value: _scores(group) for value, group in groups.items()}
    return visible_json(content) + "\n"


def _scores(summary: Summary) -> list[dict[str, Any]]:
    """Return the figures of the scores as JSON values."""
    return [
        {**asdict(score), "by": score.by.model_dump(exclude_none=True)} for score in summary.scores
    ]


def to_markdown(
    summary: Summary,
    title: str = "Evaluations",
    groups: Groups | None = None,
    corrected: CorrectedMeans | None = None,
) -> str:
    """Write the figures as a Markdown page: scores, diagnoses, retrieval, failures and notes.

    Args:
        summary: the figures.
        title: heading of the page; any text.
        groups: the figures apart by a field.
        corrected: the means by people's labels.
    """
    lines = [f"# {inline(title)}", "", f"**{summary.verdict()}**"]
    lines += ["", inline(summary.headline(), most=None)]
    lines += ["", summary.caution()] if summary.caution() else []
    lines += _section("Scores", map(_score_row, summary.scores))
    if corrected is not None:
        lines += _section("Corrected means", named_rows(corrected.rows()), *corrected.remarks())
    if summary.patterns:
        rows: list[Row] = [
            {
                "pattern": each.pattern,
                "calls": each.calls,
                "share": f"{each.share:.1%}",
                "95 %": _ends(each.interval, ".1%"),
                "meaning": each.meaning,
                "fix": "" if each.pattern == "healthy" else each.fix,
            }
            for each in summary.patterns
        ]
        heading = f"Diagnoses of {summary.labelled:,} labelled calls"
        lines += _section(heading, rows, "A call may show several.")
    if groups is not None:
        lines += _section("Groups", named_rows(groups.rows()), *groups.remarks())
    retrieval = summary.retrieval
    if retrieval.share is not None and retrieval.interval is not None:
        mean = retrieval.first_relevant
        first = "" if mean is None else f", on average behind {mean - 1:.2f} others"
        ranks = (
            {
                "document": each.rank - 1,
                "calls": each.calls,
                "relevant": each.relevant,
                "used": each.used,
            }
            for each in retrieval.ranks
        )
        lines += _section(
            "Retrieval",
            ranks,
            f"In {retrieval.share:.1%} of {retrieval.calls:,} labelled calls (95 %: "
            f"{retrieval.interval:.1%}) a document holds a relevant sentence{first}.",
        )
    if summary.errors:
        lines += _section(
            "Failures",
            (
                {"calls": calls, "failure": kind, "first message": summary.reasons.get(kind)}
                for kind, calls in summary.errors.most_common()
            ),
        )
    for heading, counts in (("Notes", summary.warnings), ("Flags", summary.flags)):
        if counts:
            lines += _section(
                heading, ({"calls": calls, "text": text} for text, calls in counts.most_common())
            )
    return "\n".join(lines) + "\n"


def _section(heading: str, rows: Iterable[Row], *words: str) -> list[str]:
    """Return the Markdown lines of a section: heading, sentences and table."""
    above = [line for sentence in words for line in (sentence, "")]
    return ["", f"## {heading}", "", *above, *markdown_table(list(rows))]


def _ends(interval: Interval, spec: str) -> str:
    """Write the ends of an interval."""
    return f"{interval.low:{spec}} to {interval.high:{spec}}"


def _score_row(score: ScoreFigures) -> Row:
    """Return the row of a score in the table of a summary."""
    passed = f"{score.passed:,} of {score.with_threshold:,}" if score.with_threshold else ""
    maker = (maker_words(score.by), score.method)
    return {
        "score": score.name,
        "mean": "–" if score.mean is None else f"{score.mean:.3f}",
        "95 %": "–" if score.interval is None else _ends(score.interval, ".3f"),
        "scored": f"{score.scored:,} of {score.total:,}",
        "passed": passed,
        "unscored because": ", ".join(f"{code} {count}" for code, count in score.unscored.items()),
        "by": " ".join(filter(None, maker)),
    }
