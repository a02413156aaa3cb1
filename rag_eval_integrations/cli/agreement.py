"""`rag-eval agreement`: compare a judge's evaluations with gold labels, row by row."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from rag_eval_integrations import _target
from rag_eval_integrations._scoring import score_labelling
from rag_eval_integrations._visible import visible_json
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
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._terminal import print_stderr, write_stdout
from rag_eval_integrations.dataset import (
    Labelled,
    Line,
    call_from,
    labelled_from,
    score_labelled,
)
from rag_eval_integrations.dataset._input import EVALUATION_NEEDS
from rag_eval_integrations.dataset.calls import read_rows
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics import TRACE_SCORES, Formulas, Trace
from rag_eval_integrations.records import (
    Evaluation,
    JudgeInfo,
    Labelling,
    Sentences,
    from_object,
)
from rag_eval_integrations.report._agreement_page import write_agreement
from rag_eval_integrations.report._page import check
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
    out: Path | None = None,
    cascade: Path | None = None,
) -> int:
    """Compare two files and return the exit code: 2 for invalid lines, else 0.

    Args:
        evals: the judge's evaluations.
        gold: labelled rows, or rows with a human rating.
        human: field of the human rating in a gold row; None for labels only.
        baselines: whether to compare with the predictions published in the gold rows.
        as_json: whether to print JSON instead of tables.
        document: field that identifies the source document.
        system: field that identifies the system that wrote the response.
        plots: folder for a page `agreement.html`; None for none.
        out: file for the same page; None for none.
        cascade: a second judge's evaluations; None for no cascade.

    Raises:
        ConfigurationError: when the rows cannot be compared, a file has no rows, no rows match,
            or no row has the human rating.
        OSError: when a file cannot be read or written.
    """
    pages = _pages(out, plots)
    reader = _Reader()
    predicted = list(reader.values(evals, _evaluation, EVALUATION_NEEDS))
    if not predicted:
        raise ConfigurationError("evals", str(evals), f"the evaluations file {reader.no_rows()}")
    trace = _same_formulas(predicted)
    fields = Fields(human, document, system)
    gold_rows = list(reader.values(gold, lambda content: _gold(content, trace, fields)))
    if not gold_rows:
        raise ConfigurationError("gold", str(gold), f"the gold file {reader.no_rows()}")
    if human is not None and all(row.human is None for row in gold_rows):
        raise ConfigurationError("--human", human, f"no row of {gold} has a number in this field")
    matched = match(predicted, gold_rows)
    if not matched.pairs:
        raise ConfigurationError("gold", str(gold), f"has no row in common with {evals}")
    if human is not None and all(pair.human is None for pair in matched.pairs):
        raise ConfigurationError(
            "--human", human, f"no row of {gold} that is in {evals} has a number in this field"
        )
    if matched.unmatched:
        print_stderr(f"{matched.unmatched} rows are in only one of the files and were left out")
    if matched.ambiguous:
        print_stderr(
            f"{matched.ambiguous} rows are not unique and were matched in order of appearance"
        )
    second = [] if cascade is None else list(reader.values(cascade, _evaluation, EVALUATION_NEEDS))
    curve = () if cascade is None else cascade_curve(matched.pairs, second)
    found = agree(matched, baselines=baselines)
    if as_json:
        content = found.to_json() | ({"cascade": curve_json(curve)} if curve else {})
        write_stdout(f"{visible_json(content)}\n")
    else:
        print_agreement(found, curve)
    drawn = _drawn(matched.pairs) if pages else {}
    for option, page in pages:
        if option == "--plots":
            _target.make_folder(page.parent, option)
        title = f"Agreement of {evals.name} with {gold.name}"
        write_agreement(found, page, title=title, curves=drawn, cascade=curve, field=option)
        print_stderr(f"Wrote {page}")
    return reader.exit_code()


def _pages(out: Path | None, plots: Path | None) -> list[tuple[str, Path]]:
    """List the pages to write, each with its option; refuse those that may not be replaced."""
    pages = [] if out is None else [("--out", out)]
    if plots is not None:
        pages.append(("--plots", plots / "agreement.html"))
    for option, page in pages:
        if option == "--out" or os.path.lexists(page.parent):  # the folder is made at the end
            check(page, field=option)
    return pages


def _evaluation(content: dict[str, Any]) -> Evaluation:
    return from_object(Evaluation, content)


def _drawn(pairs: Sequence[Pair]) -> dict[str, Mapping[str, Curves]]:
    """Compute the curves of all rows and, if there are several data sets, of each."""
    names = sorted({pair.dataset for pair in pairs if pair.dataset is not None})
    groups: dict[str, Mapping[str, Curves]] = {f"all {len(pairs)} rows": curves(pairs)}
    for name in names if len(names) > 1 else ():
        groups[name] = curves([pair for pair in pairs if pair.dataset == name])
    return groups


class Fields(NamedTuple):
    """Names of the fields of a gold row that hold a human rating and what was rated."""

    human: str | None
    """The rating; None to read no ratings."""
    document: str
    """The source document."""
    system: str
    """The system that wrote the response."""


class _Reader:
    """Reads files line by line; reports and counts invalid lines."""

    def __init__(self) -> None:
        self.bad: list[BadRows] = []

    def values(self, path: Path, read: Any, needed: Collection[str] = ()) -> Iterator[Any]:
        line: Line[Any]
        bad = BadRows(path)
        self.bad.append(bad)
        for line in read_rows(path, read, needed=[needed]):
            if line.value is None:
                bad.tell(line)
            else:
                yield line.value

    def no_rows(self) -> str:
        return "has no valid rows" if any(one.count for one in self.bad) else "has no rows"

    def exit_code(self) -> int:
        for one in self.bad:
            one.end("were left out")
        return 2 if any(one.count for one in self.bad) else 0


def _same_formulas(predicted: list[Evaluation]) -> Trace:
    """Make the metric that scores gold labels with the formulas of the evaluations."""
    for evaluation in predicted:
        for name in TRACE_SCORES:
            score = evaluation.scores.get(name)
            if score is not None and score.by.formulas is not None:
                formulas = cast(Formulas, score.by.formulas)
                return Trace(formulas, score.by.relevance_baseline)
    return Trace()


def _gold(content: dict[str, Any], trace: Trace, names: Fields) -> Gold:
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
    clean = score_labelled(labelled, [trace])
    if trace.formulas != "ragbench":
        return clean
    # The published columns count the lists as recorded; keys are compared after cleaning.
    raw = score_labelled(labelled, [trace], raw_keys=True)
    return clean.model_copy(update={"scores": raw.scores})


def _metadata(content: Mapping[str, Any]) -> dict[str, Any]:
    metadata = content.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
