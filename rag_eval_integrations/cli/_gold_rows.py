"""Evaluations and gold rows of `agreement` and `calibrate`, which compare a judge with gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from rag_eval_integrations._scoring import score_labelling
from rag_eval_integrations.agreement import Gold
from rag_eval_integrations.agreement._lean import line_of, predicted_row
from rag_eval_integrations.agreement._table import Joining, Row, row_of
from rag_eval_integrations.agreement.matching import GoldFields
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._lean_gold import gold_row
from rag_eval_integrations.dataset import (
    Labelled,
    Line,
    call_from,
    labelled_from,
    score_labelled,
)
from rag_eval_integrations.dataset._input import read_rows
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.metrics import TRACE_SCORES, Formulas, Trace
from rag_eval_integrations.records import (
    Evaluation,
    JudgeInfo,
    Labelling,
    Sentences,
    from_object,
    parse_object,
)
from rag_eval_integrations.sentences import Punkt, sentencize


def evaluation_from(content: dict[str, Any]) -> Evaluation:
    """Read a line of EVALS."""
    return from_object(Evaluation, content)


class Fields(NamedTuple):
    """Names of the fields of a gold row that hold a human rating and what was rated."""

    human: str | None
    """The rating; None to read no ratings."""
    document: str
    """The source document."""
    system: str
    """The system that wrote the response."""


class RowReader:
    """Reads files line by line; reports and counts invalid lines."""

    def __init__(self) -> None:
        self.bad: list[BadRows] = []

    def values(
        self,
        path: Path,
        read: Any,
        parse: Callable[[bytes], Any] = parse_object,
    ) -> Iterator[Any]:
        """Yield what `read` makes of each valid line, which `parse` has parsed."""
        line: Line[Any]
        bad = BadRows(path)
        self.bad.append(bad)
        for line in read_rows(path, read, parse=parse):
            if line.value is None:
                bad.tell(line)
            else:
                yield line.value

    def no_rows(self) -> str:
        """Say that there was nothing in a file."""
        return "has no valid rows" if any(one.count for one in self.bad) else "has no rows"

    def exit_code(self) -> int:
        """Tell how many lines were invalid; return 2 after one, else 0."""
        for one in self.bad:
            one.end("were left out")
        return 2 if any(one.count for one in self.bad) else 0


def lean_row(line: bytes) -> Row | dict[str, Any]:
    """Read what is kept of a line of EVALS; its object where it has to be read in full."""
    found = line_of(line)
    row = None if found is None else predicted_row(found)
    return parse_object(line) if row is None else row


def full_row(content: Row | dict[str, Any]) -> Row:
    """Read what is kept of an evaluation, which may have been read already."""
    return content if isinstance(content, Row) else row_of(evaluation_from(content))


def formulas_of(row: Row) -> Trace | None:
    """Make the metric that scores gold labels with an evaluation's formulas; None without any."""
    makers = {name: maker for name, maker, *_ in row.kept.scores}
    for name in TRACE_SCORES:
        if name in makers and (formulas := makers[name].of("formulas")) is not None:
            baseline = makers[name].of("relevance_baseline")
            return Trace(cast(Formulas, formulas), cast("int | None", baseline))
    return None


class Sides:
    """Reads the judge's rows and then gold's, and keeps the numbers of both."""

    def __init__(self, *, questions: bool = False) -> None:
        self.joining = Joining(questions=questions)
        self.reader = RowReader()
        self.trace = Trace()
        self._found = False

    def predicted(self, evals: Path) -> None:
        """Read the evaluations; their first formulas are those of the gold labels.

        Raises:
            ConfigurationError: the file has no rows.
            OSError: when it cannot be read.
        """
        for row in self.reader.values(evals, full_row, lean_row):
            if not self._found and (trace := formulas_of(row)) is not None:
                self._found, self.trace = True, trace
            self.joining.put_predicted(row)
        if not self.joining.predicted:
            raise ConfigurationError(
                "evals", str(evals), f"the evaluations file {self.reader.no_rows()}"
            )

    def gold(self, gold: Path, fields: Fields) -> Iterator[Gold]:
        """Read the gold rows, each of which is joined to its evaluation; yield them.

        Raises:
            ConfigurationError: the file has no rows.
            OSError: when it cannot be read.
        """
        for row in self.reader.values(gold, lambda line: gold_from(line, self.trace, fields)):
            self.joining.add_gold(row)
            yield row
        self._check_gold(gold)

    def gold_numbers(self, gold: Path, fields: Fields) -> None:
        """Read the gold rows and join each, as `gold` does, without making records of them.

        Raises:
            ConfigurationError, OSError: as for `gold`.
        """
        parse, read = gold_readers(lambda: self.trace, fields)
        for one in self.reader.values(gold, read, parse=parse):
            self.joining.put_gold(one.row, one.others)
        self._check_gold(gold)

    def _check_gold(self, gold: Path) -> None:
        if not self.joining.gold:
            raise ConfigurationError("gold", str(gold), f"the gold file {self.reader.no_rows()}")


class GoldRow(NamedTuple):
    """What is kept of a gold row."""

    row: Row
    others: Gold | GoldFields


def gold_readers(
    trace: Callable[[], Trace], fields: Fields
) -> tuple[Callable[[bytes], Any], Callable[[Any], GoldRow]]:
    """Make what reads a gold row from its line where it can, and what reads it in full.

    Args:
        trace: tells the metric that scores the labels.
        fields: names of the other fields.
    """
    named = fields._asdict()

    def parse(line: bytes) -> GoldRow | dict[str, Any]:
        found = line_of(line)
        row = None if found is None else gold_row(found, trace())
        if found is None or row is None:
            return parse_object(line)
        try:
            return GoldRow(row, GoldFields.of(found.get("metadata", {}), **named))
        except InputError:
            return parse_object(line)

    def read(content: GoldRow | dict[str, Any]) -> GoldRow:
        if isinstance(content, GoldRow):
            return content
        one = gold_from(content, trace(), fields)
        return GoldRow(row_of(one.evaluation), one)

    # A field of the record itself may be named, of which a line's reader keeps nothing.
    of_record = any(name.partition(".")[0] in Evaluation.model_fields for name in fields if name)
    return (parse_object if of_record else parse), read


def gold_from(content: dict[str, Any], trace: Trace, names: Fields) -> Gold:
    """Read a gold row: labelled, or with a human rating alone."""
    fields = {**content, **_metadata(content)}
    labelled = "labels" in content or "all_relevant_sentence_keys" in content
    if names.human is not None and not labelled:
        return Gold.from_row(_rated(content, trace), fields, **names._asdict())
    return Gold.from_row(
        _gold_evaluation(labelled_from(content, Punkt()), trace), fields, **names._asdict()
    )


def _rated(content: dict[str, Any], trace: Trace) -> Evaluation:
    """Read a row with a human rating and no labels, which is a complete RagCall or only an id."""
    nothing = Labelling(
        labels=None, judge=JudgeInfo(name="human"), unscored="missing_param",
        reason="the gold row has no labels",
    )  # fmt: skip
    if "response" in content or not isinstance(content.get("id"), str | int):
        return score_labelling(sentencize(call_from(content), Punkt()), nothing, [trace])
    return Evaluation(
        id=str(content["id"]), row_key="", question="", response=None, scores={}, labels=None,
        sentences=Sentences(), judge=nothing.judge,
    )  # fmt: skip


def _gold_evaluation(labelled: Labelled, trace: Trace) -> Evaluation:
    clean = score_labelled(labelled, [trace], flags=False)
    if trace.formulas != "ragbench":
        return clean
    # The published columns count the lists as recorded; keys are compared after cleaning.
    raw = score_labelled(labelled, [trace], raw_keys=True, flags=False)
    return clean.model_copy(update={"scores": raw.scores})


def _metadata(content: Mapping[str, Any]) -> dict[str, Any]:
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
