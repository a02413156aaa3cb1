"""`rag-eval agreement`: compare a judge's evaluations with gold labels, row by row.

No table that it prints needs more than 80 columns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_eval_integrations import _target
from rag_eval_integrations._visible import one_line, visible_json
from rag_eval_integrations.agreement import Agreement, CascadePoint, Curves, Figure, Gold, Group
from rag_eval_integrations.agreement._cascades import cascade_of, curve_json
from rag_eval_integrations.agreement._table import Row, Table
from rag_eval_integrations.agreement.compare import (
    BetweenPeople,
    agreement_of,
    between_people,
    curves_of,
)
from rag_eval_integrations.cli._arguments import AgreementOptions
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._console import stdout, width_of
from rag_eval_integrations.cli._options import field_map_from
from rag_eval_integrations.cli._terminal import print_stderr, stderr_printer, write_stdout
from rag_eval_integrations.dataset import Labelled, Line, labelled_from
from rag_eval_integrations.dataset._evals import evaluations_at, read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset._labels_file import (
    CallLabels,
    LabelsFile,
    labelled_by,
    labels_in,
)
from rag_eval_integrations.dataset.calls import read_labelled
from rag_eval_integrations.dataset.rows import call_from, score_gold, trace_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.console import add_row, heading, plain_table
from rag_eval_integrations.evaluations.summary import caution
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import (
    By,
    Evaluation,
    JudgeInfo,
    RagCall,
    Sentences,
)
from rag_eval_integrations.report import _agreement_figures as figures
from rag_eval_integrations.report._agreement_page import agreement_pieces
from rag_eval_integrations.report._page import check, write
from rag_eval_integrations.sentences import Punkt

if TYPE_CHECKING:
    from rich import table as rich_table

T = TypeVar("T")


def agreement(options: AgreementOptions) -> int:
    """Compare two files and return the exit code: 2 for invalid lines, else 0.

    Raises:
        ConfigurationError: when the rows cannot be compared, a file has no rows, no rows match,
            or no row has the human rating.
        OSError: when a file cannot be read or written.
    """
    evals, human = Input(options.evals), options.human
    gold = Input(options.gold, field_map_from(options.field_map))
    cascade = options.cascade
    pages = _pages(options.out, options.plots)
    people = labels_in(gold)
    reader = RowReader(people.partial() if people else {})
    predicted, trace = predicted_rows(reader, evals)
    labelled = reader.gold(
        gold, trace, human=human, document=options.document, system=options.system
    )
    if human is not None and all(row.human is None for row in labelled):
        raise ConfigurationError("--human", human, f"no row of {gold} has a number in this field")
    table, joined = Table.joined(predicted, labelled)
    if not joined.rows:
        raise ConfigurationError("gold", str(gold), f"has no row in common with {evals}")
    if human is not None and all(number is None for number in table.humans()):
        raise ConfigurationError(
            "--human", human, f"no row of {gold} that is in {evals} has a number in this field"
        )
    if joined.unmatched:
        print_stderr(f"{joined.unmatched} rows are in only one of the files and were left out")
    if joined.ambiguous:
        print_stderr(
            f"{joined.ambiguous} rows are not unique and were matched in order of appearance"
        )
    try:
        curve = cascade_of(table, reader.evaluations(cascade)) if cascade else ()
    except ConfigurationError as error:
        if error.field != "second":
            raise
        raise ConfigurationError("--cascade", str(cascade), error.why) from error
    agreement = agreement_of(table, joined, baselines=options.baselines)
    agreement = replace(agreement, people=_between_people(people))
    if options.as_json:
        content = agreement.to_json() | ({"cascade": curve_json(curve)} if curve else {})
        write_stdout(f"{visible_json(content)}\n")
    else:
        print_agreement(agreement, curve)
    curves = _curves(table) if pages else {}
    numbers = [difference.row.number for difference in agreement.gravest] if pages else []
    calls = dict(evaluations_at(evals, numbers))
    for option, page in pages:
        if option == "--plots":
            _target.make_folder(page.parent, option)
        title = f"Agreement of {options.evals.name} with {options.gold.name}"
        parts = agreement_pieces(agreement, title=title, curves=curves, cascade=curve, calls=calls)
        write(page, parts, field=option)
        print_stderr(f"Wrote {page}")
    return reader.exit_code()


def _between_people(people: LabelsFile | None) -> tuple[BetweenPeople, ...]:
    """Compare the labels of people with each other; empty without any."""
    if people is None:
        return ()
    answers = {where: call.answers for where, call in people.calls.items()}
    return tuple(between_people(answers))


def _pages(out: Path | None, plots: Path | None) -> list[tuple[str, Path]]:
    """List the pages to write with their options; refuse files that may not be replaced.

    A folder for plots that does not exist is made at the end.
    """
    pages = [] if out is None else [("--out", out)]
    if plots is not None:
        pages.append(("--plots", plots / "agreement.html"))
    for option, page in pages:
        if option == "--out" or os.path.lexists(page.parent):  # the folder is made at the end
            check(page, field=option)
    return pages


def _curves(table: Table) -> dict[str, Mapping[str, Curves]]:
    """Compute ROC and reliability curves of all rows and, if there are several, each data set."""
    parts = table.by_dataset()
    groups: dict[str, Mapping[str, Curves]] = {f"all {len(table)} rows": curves_of(table)}
    for name, part in parts.items() if len(parts) > 1 else ():
        groups[name] = curves_of(part)
    return groups


# --- Cells and tables: values, intervals, tables that fold, human ratings, cascades


def cell_of(figure: Figure | None) -> str:
    """Format a value with its interval, if it has one."""
    interval = figures.interval_of(figure)
    return figures.value_of(figure) + (f" ({interval})" if interval else "")


def foldable(title: str, *columns: str) -> rich_table.Table:
    """Make a plain table whose cells are folded, not cut, if the terminal is too narrow."""
    table = plain_table(title, *columns)
    for column in table.columns:
        column.no_wrap, column.overflow = False, "fold"
    return table


def show(parts: Iterable[rich_table.Table | str]) -> None:
    """Print tables and texts: in a terminal's width, or in a pipe as wide as the widest table.

    Texts are wrapped at the width that a pipe has without tables.
    """
    console = stdout()
    width, parts = console.width, [part for part in parts if part]
    for part in parts:
        console.width = width
        if not isinstance(part, str) and not sys.stdout.isatty():
            console.width = max(width, width_of(part, console))
        console.print(part)


def human_tables(group: Group) -> list[rich_table.Table]:
    """Tabulate agreement with human ratings: one table per level, one row per statistic."""
    tables = []
    for title, rows in figures.human_tables(group):
        tables.append(foldable(title, "score", "n>", "statistic", "value (95 % interval)"))
        for score, count, of in rows:
            for name, figure in zip(figures.OF_HUMANS, of, strict=True):
                if figure is not None:
                    add_row(tables[-1], score, count, name, cell_of(figure))
            tables[-1].add_section()
    return tables


def cascade_tables(points: Sequence[CascadePoint]) -> list[rich_table.Table]:
    """Tabulate quality and cost of a cascade: one row per share of calls sent to the second judge.

    Empty without points.
    """
    if not points:
        return []
    quality = _with_score_columns(foldable(_QUALITY, "asked>", "ask_when"), figures.CURVE)
    spent_on = ("asked>", "requests>", "prompt tokens>", "completion tokens>", "cost>")
    cost = foldable("Cascade: cost of asking the second judge", *spent_on)
    for point in points:
        share, usage = f"{point.share:.0%}", point.usage
        spent = usage.requests, usage.prompt_tokens, usage.completion_tokens
        add_row(quality, share, figures.band_of(point), *figures.curve_cells(point))
        add_row(cost, share, *map(str, spent), figures.cost_of(usage))
    return [quality, cost]


_QUALITY = "Cascade: quality when the second judge gets the calls where the first is least sure"


# --- The output of `rag-eval agreement`


def print_agreement(agreement: Agreement, curve: tuple[CascadePoint, ...] = ()) -> None:
    """Print an agreement in words and tables, with the curve of a cascade if there is one.

    If the gold rows have human ratings and no labels, only the figures of the ratings are printed.
    """
    rows = agreement.matched.rows
    told = figures.first_sentences(agreement, figures.gold_of(agreement))
    show([*told, caution(agreement.makers.lexical, rows)])
    humans = human_tables(agreement.pooled)
    if figures.humans_only(agreement):
        # The gold rows have no labels, so there is nothing else to compare.
        show([*humans, f"{rows} rows; 95 % intervals by bootstrap."])
        return
    by_set = _by_dataset(agreement) if figures.several(agreement) else ()
    compared = [*_with_intervals(agreement), *by_set, *_baselines(agreement)]
    formulas = figures.formulas_of(agreement)
    pooled = f" {figures.POOLED_NOTE}" if figures.several(agreement) else ""
    counted = f"{rows} rows; {formulas} formulas; 95 % intervals by bootstrap over rows.{pooled}"
    notes = (
        figures.LEGEND,
        counted,
        *(one_line(str(pair)) for pair in agreement.people),
        *agreement.notes,
    )
    show([*humans, *compared, *cascade_tables(curve), *notes])


def _with_score_columns(
    table: rich_table.Table, statistics: Sequence[figures.ShownStatistic]
) -> rich_table.Table:
    """Add a column per statistic, with the whole name of its score as the heading."""
    for score, statistic in statistics:
        words = f"{heading(score)}\n{figures.STATISTICS[statistic]}"
        table.add_column(words, justify="right", overflow="fold")
    table.padding = (0, 0)
    return table


def _by_dataset(agreement: Agreement) -> Iterator[rich_table.Table]:
    """Yield the tables of scores and sentences with a row per data set."""
    for title, block, statistics in figures.BY_DATASET:
        table = _with_score_columns(foldable(f"{title} by data set", "data set", "n>"), statistics)
        for name, group in agreement.by_dataset.items():
            values = (
                figures.value_of(figures.figure_of(group, block, *where)) for where in statistics
            )
            add_row(table, name, str(group.counts["n"]), *values)
        yield table


def _with_intervals(agreement: Agreement) -> Iterator[rich_table.Table]:
    """Yield a table of scores and one of sentences: figures of the judge and of the baselines.

    With several data sets a figure is their mean, beside the value over all rows.
    """
    several = figures.several(agreement)
    group = agreement.mean_over_datasets if several else agreement.pooled
    columns = ["mean over data sets", "pooled>"] if several else ["value"]
    lines = {"Scores": figures.lines_of(agreement), "Sentences": figures.SENTENCE_LINES}
    for kind, of in lines.items():
        title = f"{kind} with 95 % intervals"
        table = foldable(title, kind.lower(), *columns, "constant>", "length>")
        for name, statistic, where in of:
            name = "  its estimate" if where[0] == "estimates" else name
            rest = [figures.figure_of(agreement.pooled, *where)] * several
            values = map(figures.value_of, [*rest, *figures.beside(group, *where)])
            cell = cell_of(figures.figure_of(group, *where))
            table.add_row(f"{name} {figures.STATISTICS[statistic]}", cell, *values)
        yield table


def _baselines(agreement: Agreement) -> Iterator[rich_table.Table]:
    """Yield one table per score: each baseline's figure next to the judge's on the same rows."""
    over = "mean over data sets" if figures.several(agreement) else "pooled"
    for score, statistic, rivals in figures.baselines_of(agreement):
        name = figures.STATISTICS[statistic]
        title = f"Published baselines, and the judge on the same rows: {score} {name}, {over}"
        table = foldable(title, "baseline", "baseline's", "judge's")
        for rival in rivals:
            add_row(table, rival.name, cell_of(rival.theirs), cell_of(rival.own))
        yield table


# --- Evaluations and gold rows, which a judge is compared with


class RowReader:
    """Reader of evaluations and gold rows, which counts and reports invalid lines.

    Args:
        partial: people's labels of calls that are not whole, by row key; such calls of the
            evaluations become gold rows.
    """

    def __init__(self, partial: Mapping[str, CallLabels] = {}) -> None:
        self.bad: list[BadRows] = []
        self._partial = partial
        self._begun: list[Labelled] = []

    def evaluations(self, path: Path | Input) -> list[Row]:
        """Read a file of evaluations as rows to compare; invalid lines are left out and counted.

        A file without any gives an empty list, unlike for `gold`.

        Raises:
            OSError: when the file cannot be read.
        """

        def reduced(line: Line[Evaluation]) -> Line[Row]:
            """Reduce the evaluation of a line to the row that is compared."""
            row = Row.of(line.value, number=line.number) if line.value else None
            if line.value and (labels := self._partial.get(line.value.row_key)):
                self._begun.append(labelled_by(line.value, labels.answers))
            return Line(line.number, row, line.error)

        return list(self._values(path, map(reduced, read_evaluations(path))))

    def gold(self, gold: Input, trace: Trace, **names: str | None) -> list[Row]:
        """Read gold rows, and score their labels by a metric's formulas.

        Args:
            gold: the file.
            trace: the metric.
            **names: fields with a human rating and what was rated, as `Gold.from_row` takes them.

        Raises:
            ConfigurationError: the file has no rows.
            OSError: when it cannot be read.
        """

        def read(content: dict[str, Any]) -> Row:
            """Read a row of gold labels."""
            row = _gold_from(content, trace, names)
            return Row.of(row.evaluation, row)

        is_rated = names.get("human") is not None
        lines = read_labelled(gold, read, tell=stderr_printer(gold), lone_ids=is_rated)
        rows = [Row.of(score_gold(row, trace)) for row in self._begun]
        rows += self._values(gold, lines)
        if not rows:
            raise ConfigurationError("gold", str(gold), f"the gold file {self.no_rows()}")
        return rows

    def _values(self, path: object, lines: Iterable[Line[T]]) -> Iterator[T]:
        """Yield the values of a file's valid lines, and count the others."""
        bad = BadRows(path)
        self.bad.append(bad)
        return bad.values(lines)

    def no_rows(self) -> str:
        """Say why a file gave no rows: it has none, or none is valid."""
        return "has no valid rows" if any(problem.count for problem in self.bad) else "has no rows"

    def exit_code(self) -> int:
        """Tell how many lines were invalid; return 2 after one, else 0."""
        return max(problem.end("left out") for problem in self.bad)


def predicted_rows(reader: RowReader, path: Path | Input) -> tuple[list[Row], Trace]:
    """Read a judge's evaluations, and make the metric with their formulas for the gold labels.

    Raises:
        ConfigurationError: the file has no rows.
        OSError: when it cannot be read.
    """
    rows = reader.evaluations(path)
    if not rows:
        raise ConfigurationError("evals", str(path), f"the evaluations file {reader.no_rows()}")
    return rows, next(filter(None, (trace_of(row.scores) for row in rows)), Trace())


def _gold_from(content: dict[str, Any], trace: Trace, names: dict[str, Any]) -> Gold:
    """Read a gold row: labelled, or with a human rating alone.

    Fields of its metadata count as its own.
    """
    metadata = content.get("metadata")
    fields = {**content, **(metadata if isinstance(metadata, dict) else {})}
    labelled = "labels" in content or "all_relevant_sentence_keys" in content
    if names.get("human") is not None and not labelled:
        evaluation = _rated_evaluation(content, trace)
    else:
        evaluation = score_gold(labelled_from(content, Punkt()), trace)
    return Gold.from_row(evaluation, fields, **names)


def _rated_evaluation(content: dict[str, Any], trace: Trace) -> Evaluation:
    """Make an evaluation from a row with a human rating, no labels, and perhaps only an id."""
    if "response" in content or not isinstance(content.get("id"), str | int):
        call = call_from(content)
        scores = trace.unscored("missing_param", "the gold row has no labels", By())
    else:
        call, scores = RagCall("", (), None, id=str(content["id"])), ()
    return Evaluation.model_construct(
        id=call.id,
        row_key=call.row_key if scores else "",
        question=call.question,
        response=call.response,
        scores={score.name: score for score in scores},
        labels=None,
        sentences=Sentences(),
        judge=JudgeInfo(name="human"),
    )
