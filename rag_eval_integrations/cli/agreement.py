"""`rag-eval agreement`: compare a judge's evaluations with gold labels, row by row.

No table that it prints needs more than 80 columns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_eval_integrations import _target
from rag_eval_integrations._visible import one_line, visible_json
from rag_eval_integrations.agreement import (
    Agreement,
    CascadePoint,
    Curves,
    Figure,
    Gold,
    Group,
    curve_json,
)
from rag_eval_integrations.agreement._cascades import cascade_of
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
from rag_eval_integrations.cli._options import field_map_from, trace_of
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout, teller, write_stdout
from rag_eval_integrations.dataset import Labelled, Line, call_from, labelled_from
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset._labels_file import (
    CallLabels,
    LabelsFile,
    labelled_by,
    labels_in,
)
from rag_eval_integrations.dataset.calls import read_labelled
from rag_eval_integrations.dataset.rows import score_gold
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
from rag_eval_integrations.report._agreement_page import write_agreement
from rag_eval_integrations.report._page import check
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
    evals, human = options.evals, options.human
    gold = Input(options.gold, field_map_from(options.field_map))
    cascade = options.cascade or ()
    if len(cascade) > 2:
        names = ", ".join(map(str, cascade))
        raise ConfigurationError(
            "--cascade", names, "use one or two files, of judges two and three"
        )
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
    later = [reader.evaluations(path) for path in cascade]
    try:
        curve = cascade_of(table, *later) if later else ()
    except ConfigurationError as error:
        files = dict(zip(("second", "third"), map(str, cascade), strict=False))
        if error.field not in files:
            raise
        raise ConfigurationError("--cascade", files[error.field], error.why) from error
    agreement = agreement_of(table, joined, baselines=options.baselines)
    agreement = replace(agreement, people=_between(people))
    if options.as_json:
        content = agreement.to_json() | ({"cascade": curve_json(curve)} if curve else {})
        write_stdout(f"{visible_json(content)}\n")
    else:
        print_agreement(agreement, curve)
    drawn = _drawn(table) if pages else {}
    for option, page in pages:
        if option == "--plots":
            _target.make_folder(page.parent, option)
        title = f"Agreement of {evals.name} with {options.gold.name}"
        write_agreement(agreement, page, title=title, curves=drawn, cascade=curve, field=option)
        print_stderr(f"Wrote {page}")
    return reader.exit_code()


def _between(people: LabelsFile | None) -> tuple[BetweenPeople, ...]:
    """Compare people with each other; nothing without their labels."""
    if people is None:
        return ()
    answers = {where: call.answers for where, call in people.calls.items()}
    return tuple(between_people(answers))


def _pages(out: Path | None, plots: Path | None) -> list[tuple[str, Path]]:
    """List the pages to write, each with its option; refuse those that may not be replaced.

    A folder for plots that does not exist is made at the end.
    """
    pages = [] if out is None else [("--out", out)]
    if plots is not None:
        pages.append(("--plots", plots / "agreement.html"))
    for option, page in pages:
        if option == "--out" or os.path.lexists(page.parent):  # the folder is made at the end
            check(page, field=option)
    return pages


def _drawn(table: Table) -> dict[str, Mapping[str, Curves]]:
    """Compute the curves of all rows and, if there are several data sets, of each."""
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


def show(tables: Iterable[rich_table.Table]) -> None:
    """Print tables: in a terminal's width, or as wide as the widest table in a file or pipe."""
    console = stdout()
    tables = list(tables)
    if not sys.stdout.isatty():
        console.width = max(console.width, *(width_of(table, console) for table in tables), 1)
    for table in tables:
        console.print(table)


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
    """Tabulate quality and cost of a cascade: one row per share of calls sent to later judges.

    With three judges, a section per share of the second's. Empty without points.
    """
    if not points:
        return []
    three = points[0].third is not None
    titles = _OF_THREE if three else _OF_TWO
    of_quality = ("second>", "third>") if three else ("asked>", "ask_when")
    of_cost = (
        ("second>", "third>", "second asked when", "third asked when", "requests>", "tokens>")
        if three
        else ("asked>", "requests>", "prompt tokens>", "completion tokens>")
    )
    quality = _with_scores(foldable(titles[0], *of_quality), figures.CURVE)
    cost = foldable(titles[1], *of_cost, "cost>")
    for before, point in zip((points[0], *points), points, strict=False):
        if three and before.share != point.share:
            quality.add_section()
            cost.add_section()
        share, third, when = f"{point.share:.0%}", f"{point.third or 0:.0%}", figures.band_of(point)
        usage = point.usage
        requests, prompt, completion = usage.requests, usage.prompt_tokens, usage.completion_tokens
        spent: list[object] = [requests, prompt, completion]
        if three:
            spent = [third, when, figures.band_of(point, third=True), requests]
            spent.append(f"{prompt} + {completion}")
        add_row(quality, share, third if three else when, *figures.curve_cells(point))
        add_row(cost, share, *map(str, spent), figures.cost_of(usage))
    return [quality, cost]


_OF_TWO = (
    "Cascade: quality when the second judge gets the calls where the first is least sure",
    "Cascade: cost of asking the second judge",
)
_OF_THREE = (
    "Cascade of three: quality by the shares of all calls that the second and third get",
    "Cascade of three: when the later judges are asked, and what they cost",
)


# --- The output of `rag-eval agreement`


def print_agreement(agreement: Agreement, curve: tuple[CascadePoint, ...] = ()) -> None:
    """Print an agreement and, if there is one, the curve of a cascade.

    Of gold rows with a human's ratings alone, only the figures of these.
    """
    if words := caution(agreement.makers.lexical, agreement.matched.rows):
        print_stdout(words)
    humans = human_tables(agreement.pooled)
    rows = agreement.matched.rows
    if figures.humans_only(agreement):
        show(humans)  # the gold rows have no labels, so there is nothing else to compare
        print_stdout(f"{rows} rows; 95 % intervals by bootstrap.")
        return
    by_set = _by_dataset(agreement) if figures.several(agreement) else ()
    compared = [*by_set, *_with_intervals(agreement), *_baselines(agreement)]
    show([*humans, *compared, *cascade_tables(curve)])
    print_stdout(figures.LEGEND)
    if any(path[0] == "baselines" for path in agreement.pooled.blocks):
        print_stdout(figures.BASELINE_NOTE)
    formulas = figures.formulas_of(agreement)
    pooled = f" {figures.POOLED_NOTE}" if figures.several(agreement) else ""
    print_stdout(
        f"{rows} rows; {formulas} formulas; 95 % intervals by bootstrap over rows.{pooled}"
    )
    for note in (*agreement.people, *agreement.notes):
        print_stdout(one_line(str(note)))


def _with_scores(
    table: rich_table.Table, shown: Sequence[figures.ShownStatistic]
) -> rich_table.Table:
    """Add a column per statistic, whose heading has the whole name of the score on three lines."""
    for score, statistic in shown:
        words = f"{heading(score)}\n{figures.STATISTICS[statistic]}"
        table.add_column(words, justify="right", overflow="fold")
    table.padding = (0, 0)
    return table


def _by_dataset(agreement: Agreement) -> Iterator[rich_table.Table]:
    """Yield a table of the scores, and one per statistic of the sentences: a row per data set."""
    title = "Agreement with gold by data set"
    table = _with_scores(foldable(title, "data set", "n>"), figures.SCORES)
    for name, group in figures.groups_of(agreement):
        shown = (figures.figure_of(group, "scores", *where) for where in figures.SCORES)
        add_row(table, name, str(group.counts.get("n", "")), *map(figures.value_of, shown))
    yield table
    for statistic in figures.OF_SENTENCES:
        title = f"Sentences by data set: {figures.STATISTICS[statistic]}"
        table = foldable(title, "data set", *(f"{kind}>" for kind in figures.SENTENCES))
        for name, group in figures.groups_of(agreement):
            shown = (
                figures.figure_of(group, "keys", kind, statistic) for kind in figures.SENTENCES
            )
            add_row(table, name, *map(figures.value_of, shown))
        yield table


def _with_intervals(agreement: Agreement) -> Iterator[rich_table.Table]:
    """Yield a table of the scores and one of the sentences, each statistic with its interval."""
    groups = {"value": agreement.pooled}
    if figures.several(agreement):
        groups = {"mean over data sets": agreement.mean_over_datasets, "pooled": agreement.pooled}

    def cells(*where: str) -> Iterator[str]:
        """Yield a figure of each group with its interval."""
        return (cell_of(figures.figure_of(group, *where)) for group in groups.values())

    table = foldable("Scores with 95 % intervals", "score", *groups)
    for score, statistic, where in figures.lines_of(agreement):
        name = "  its estimate" if where[0] == "estimates" else score
        table.add_row(f"{name} {figures.STATISTICS[statistic]}", *cells(*where))
    yield table
    table = foldable("Sentences with 95 % intervals", "sentences", "statistic", *groups)
    for kind, statistic, where in figures.SENTENCE_LINES:
        add_row(table, kind, figures.STATISTICS[statistic], *cells(*where))
    yield table


def _baselines(agreement: Agreement) -> Iterator[rich_table.Table]:
    """Yield one table per score: each baseline's figure next to the judge's on the same rows."""
    over = "mean over data sets" if figures.several(agreement) else "pooled"
    for score, statistic, rivals, by_dataset in figures.baselines_of(agreement):
        name = figures.STATISTICS[statistic]
        title = f"Baselines: {score} {name}, {over}"
        table = foldable(title, "baseline", "baseline's", "judge's")
        for rival in rivals:
            add_row(table, rival.name, cell_of(rival.theirs), cell_of(rival.own))
        yield table
        if by_dataset:
            title = f"Baselines: {score} {name} by data set"
            table = foldable(title, "data set", "baseline", "baseline's>", "judge's>")
            for group, of_group in groupby(by_dataset, attrgetter("group")):
                for rival in of_group:
                    values = figures.value_of(rival.theirs), figures.value_of(rival.own)
                    add_row(table, group, rival.name, *values)
                table.add_section()
            yield table


# --- Evaluations and gold rows, which a judge is compared with


class RowReader:
    """Reads files line by line; reports and counts invalid lines.

    Args:
        partial: people's labels of calls that are not whole, by row key; such calls of the
            evaluations become gold rows.
    """

    def __init__(self, partial: Mapping[str, CallLabels] = {}) -> None:
        self.bad: list[BadRows] = []
        self._partial = partial
        self._begun: list[Labelled] = []

    def evaluations(self, path: Path) -> list[Row]:
        """Read the numbers of evaluations; lines that are not valid are left out and counted.

        A file without any gives an empty list, unlike for `gold`.

        Raises:
            OSError: when the file cannot be read.
        """
        rows = []
        for evaluation in self._values(path, read_evaluations(path)):
            rows.append(Row.of(evaluation))
            if labels := self._partial.get(evaluation.row_key):
                self._begun.append(labelled_by(evaluation, labels.answers))
        return rows

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
        lines = read_labelled(gold, read, tell=teller(gold), lone_ids=is_rated)
        rows = [Row.of(score_gold(row, trace)) for row in self._begun]
        rows += self._values(gold, lines)
        if not rows:
            raise ConfigurationError("gold", str(gold), f"the gold file {self.no_rows()}")
        return rows

    def _values(self, path: object, lines: Iterable[Line[T]]) -> Iterator[T]:
        """Yield the values of a file's lines; bad ones are counted."""
        bad = BadRows(path)
        self.bad.append(bad)
        return bad.values(lines)

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
    return rows, next(filter(None, (trace_of(row.scores) for row in rows)), Trace())


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
