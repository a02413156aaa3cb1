"""`rag-eval agreement`: a judge's evaluations against gold labels, matched row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from rag_eval_integrations.agreement import (
    Curves,
    Gold,
    Pair,
    agree,
    cascade_curve,
    curve_json,
    curves,
    match,
)
from rag_eval_integrations.cli._agreement_tables import print_agreement
from rag_eval_integrations.cli._terminal import complain
from rag_eval_integrations.dataset import (
    Labelled,
    call_from,
    labelled_from,
    read_lines,
    score_labelled,
)
from rag_eval_integrations.dataset.files import Line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import score_labelling
from rag_eval_integrations.metrics import TRACE_SCORES, Formulas, Trace
from rag_eval_integrations.records import (
    Evaluation,
    JudgeInfo,
    Labelling,
    Sentences,
    from_object,
)
from rag_eval_integrations.report._plots import write_plots
from rag_eval_integrations.sentences import Punkt, sentencize


def agreement(
    evals: Path,
    gold: Path,
    *,
    human: str | None,
    baselines: bool,
    as_json: bool,
    document: str = "doc_id",
    system: str = "system_id",
    plots: Path | None = None,
    cascade: Path | None = None,
) -> int:
    """Compare two files and return the exit code.

    Raises:
        ConfigurationError: when the rows cannot be compared, a file holds none, none
            of them match, or none has the human's number.
        OSError: when a file cannot be read.
    """
    reader = _Reader()
    predicted = list(reader.values(evals, _evaluation))
    if not predicted:
        raise ConfigurationError("evals", str(evals), f"the evaluations file {reader.no_rows()}")
    trace = _same_formulas(predicted)
    fields = Fields(human, document, system)
    gold_rows = list(reader.values(gold, lambda content: _gold(content, trace, fields)))
    if not gold_rows:
        raise ConfigurationError("gold", str(gold), f"the gold file {reader.no_rows()}")
    if human is not None and all(row.human is None for row in gold_rows):
        raise ConfigurationError("human", human, f"no row of {gold} has a number there")
    matched = match(predicted, gold_rows)
    if not matched.pairs:
        raise ConfigurationError("gold", str(gold), f"no row of it is in {evals}")
    if human is not None and all(pair.human is None for pair in matched.pairs):
        raise ConfigurationError(
            "human", human, f"no row of {gold} that is in {evals} has a number there"
        )
    if matched.unmatched:
        complain(f"{matched.unmatched} rows are in one file only and were left out")
    if matched.ambiguous:
        complain(f"{matched.ambiguous} rows repeat and were matched in order of appearance")
    second = [] if cascade is None else list(reader.values(cascade, _evaluation))
    curve = () if cascade is None else cascade_curve(matched.pairs, second)
    found = agree(matched, baselines=baselines)
    if as_json:
        content = found.to_json() | ({"cascade": curve_json(curve)} if curve else {})
        print(json.dumps(content, allow_nan=False, indent=1))  # noqa: T201  # the result
    else:
        print_agreement(found, curve)
    if plots is not None:
        page = write_plots(_drawn(matched.pairs), plots, f"{evals.name} against {gold.name}")
        complain(f"plots in {page}")
    return reader.exit_code()


def _evaluation(content: dict[str, Any]) -> Evaluation:
    return from_object(Evaluation, content)


def _drawn(pairs: Sequence[Pair]) -> dict[str, Mapping[str, Curves]]:
    """Curves of all rows, and of every data set."""
    names = sorted({pair.dataset for pair in pairs if pair.dataset is not None})
    groups: dict[str, Mapping[str, Curves]] = {f"all {len(pairs)} rows": curves(pairs)}
    for name in names if len(names) > 1 else ():
        groups[name] = curves([pair for pair in pairs if pair.dataset == name])
    return groups


class Fields(NamedTuple):
    """Which fields of a gold row hold a human's number, and what it is of."""

    human: str | None
    document: str
    system: str


class _Reader:
    """Reads whole files, reporting bad lines."""

    def __init__(self) -> None:
        self.invalid = 0

    def values(self, path: Path, read: Any) -> Iterator[Any]:
        line: Line[Any]
        for line in read_lines(path, read):
            if line.value is None:
                self.invalid += 1
                complain(f"{path}: {line.error}")
            else:
                yield line.value

    def no_rows(self) -> str:
        return "holds no rows that can be read" if self.invalid else "holds no rows"

    def exit_code(self) -> int:
        return 2 if self.invalid else 0


def _same_formulas(predicted: list[Evaluation]) -> Trace:
    """Gold is scored with the formulas of the evaluations, from its labels alone."""
    for evaluation in predicted:
        for name in TRACE_SCORES:
            score = evaluation.scores.get(name)
            if score is not None and score.by.formulas is not None:
                formulas = cast(Formulas, score.by.formulas)
                return Trace(formulas, score.by.relevance_baseline, hard=True)
    return Trace(hard=True)


def _gold(content: dict[str, Any], trace: Trace, names: Fields) -> Gold:
    fields = {**content, **_metadata(content)}
    labelled = "labels" in content or "all_relevant_sentence_keys" in content
    if names.human is not None and not labelled:
        return Gold.from_row(_rated(content, trace), fields, **names._asdict())
    return Gold.from_row(
        _gold_evaluation(labelled_from(content, Punkt()), trace), fields, **names._asdict()
    )


def _rated(content: dict[str, Any], trace: Trace) -> Evaluation:
    """A row that a human rated and nobody labelled: a call, or an id alone."""
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
    clean = score_labelled(labelled, [trace])
    if trace.formulas != "ragbench":
        return clean
    # The published columns count the lists as recorded; keys are compared cleaned.
    raw = score_labelled(labelled, [trace], raw_keys=True)
    return clean.model_copy(update={"scores": raw.scores})


def _metadata(content: Mapping[str, Any]) -> dict[str, Any]:
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
