"""`rag-eval agreement`: a judge's evaluations against gold labels, matched row by row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rag_eval_integrations.agreement import (
    Agreement,
    Curves,
    Figure,
    Gold,
    Group,
    Pair,
    agree,
    cascade_curve,
    curve_json,
    curves,
    match,
)
from rag_eval_integrations.cli.figures import cascade_table, cell_of, human_table, value_of
from rag_eval_integrations.cli.terminal import complain, safe, stdout
from rag_eval_integrations.dataset import (
    Labelled,
    call_from,
    labelled_from,
    read_lines,
    score_labelled,
)
from rag_eval_integrations.dataset.reading import Line
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
from rag_eval_integrations.report.plots import write_plots
from rag_eval_integrations.report.tables import plain_table
from rag_eval_integrations.sentences import Punkt, sentencize

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("A AUROC", "not adherent, AUROC", ("scores", "adherence"), "auroc"),
    ("A κ", "adherence, Cohen's κ", ("scores", "adherence"), "kappa"),
    ("R RMSE", "context_relevance, RMSE", ("scores", "context_relevance"), "rmse"),
    ("U RMSE", "context_utilization, RMSE", ("scores", "context_utilization"), "rmse"),
    ("C RMSE", "completeness, RMSE", ("scores", "completeness"), "rmse"),
    ("R F1", "relevant keys, F1", ("keys", "relevant"), "f1"),
    ("U F1", "utilized keys, F1", ("keys", "utilized"), "f1"),
    ("S F1", "supporting keys, F1", ("keys", "supporting"), "f1"),
)
"""Short title, full title, where the figure stands, which statistic."""


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
        ConfigurationError: when the rows cannot be compared, or none of them match.
        OSError: when a file cannot be read.
    """
    reader = _Reader()
    predicted = list(reader.values(evals, _evaluation))
    trace = _same_formulas(predicted)
    fields = Fields(human, document, system)
    gold_rows = list(reader.values(gold, lambda content: _gold(content, trace, fields)))
    matched = match(predicted, gold_rows)
    if not matched.pairs:
        raise ConfigurationError("gold", str(gold), f"no row of it is in {evals}")
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
        _print(found)
        if curve:
            stdout().print(cascade_table(curve))
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


def _print(found: Agreement) -> None:
    console = stdout()
    humans = human_table(found.pooled)
    if humans is not None:
        console.print(humans)
    if humans is not None and not found.formulas:
        console.print(f"{len(found.matched.pairs)} rows; 95 % intervals by bootstrap.")
        return  # gold without labels: nothing else to compare
    console.print(_by_dataset(found))
    console.print(_overall(found))
    baselines = _baseline_table(found)
    if baselines is not None:
        console.print(baselines)
    used = sorted({str(maker.get("formulas")) for maker in found.formulas.values()} - {"None"})
    console.print(
        f"{len(found.matched.pairs)} rows; {', '.join(used)} formulas; 95 % intervals by bootstrap "
        "over rows. Pooled AUROC mostly says which data set a row is from: compare the mean over "
        "data sets.",
        soft_wrap=True,
    )
    for note in found.notes:
        console.print(safe(note), soft_wrap=True)


def _figure(group: Group, path: tuple[str, ...], statistic: str) -> Figure | None:
    block = group.blocks.get(path)
    return block.figures.get(statistic) if block else None


def _by_dataset(found: Agreement) -> Table:
    numbers = (f"{short}>" for short, *_ in _COLUMNS)
    table = plain_table("Agreement with gold by data set", "data set", "n>", *numbers)
    for name, group in found.by_dataset.items():
        table.add_row(safe(name), *_row(group))
    table.add_section()
    if len(found.by_dataset) > 1:
        table.add_row("mean over sets", *_row(found.mean_over_datasets))
    table.add_row("pooled", *_row(found.pooled))
    return table


def _row(group: Group) -> list[str]:
    figures = [_figure(group, path, statistic) for _, _, path, statistic in _COLUMNS]
    return [str(group.counts.get("n", "")), *(value_of(figure) for figure in figures)]


def _overall(found: Agreement) -> Table:
    table = plain_table("With 95 % intervals", "", "figure", "mean over data sets", "pooled")
    for short, title, path, statistic in _COLUMNS:
        cells = (
            cell_of(_figure(group, path, statistic))
            for group in (found.mean_over_datasets, found.pooled)
        )
        table.add_row(short, title, *cells)
    return table


def _baseline_table(found: Agreement) -> Table | None:
    """One row a baseline and statistic, with the judge's own figure on the same rows beside."""
    title = "Baselines on the same rows: mean over data sets"
    table = plain_table(title, "baseline", "score", "statistic", "baseline's>", "judge's>")
    for path, block in found.mean_over_datasets.blocks.items():
        if path[0] != "baselines":
            continue
        for name, figure in block.figures.items():
            if name.startswith("judge_"):
                continue
            own = block.figures.get(f"judge_{name}") or _figure(
                found.mean_over_datasets, ("scores", path[2]), name
            )
            table.add_row(safe(path[1]), safe(path[2]), safe(name), value_of(figure), value_of(own))
    return table if table.row_count else None
