"""`rag-eval report`: show a file of evaluations to a person, or hand its figures on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations import _target
from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._arguments import ReportOptions
from rag_eval_integrations.cli._bad_rows import BadRows, NoRowsError
from rag_eval_integrations.cli._options import thresholds_from
from rag_eval_integrations.cli._terminal import (
    discard_stdout,
    print_stderr,
    print_stdout,
    write_stdout,
)
from rag_eval_integrations.cli.review import person
from rag_eval_integrations.cli.score import check_thresholds, corrections_from, groups_from
from rag_eval_integrations.dataset._corrections import Corrections
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations import Groups, Summary, _formats
from rag_eval_integrations.evaluations._corrected import CorrectedMeans
from rag_eval_integrations.evaluations._filters import Filters
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report import _page
from rag_eval_integrations.report.html import MOST_CALLS, report_pieces

if TYPE_CHECKING:
    from rag_eval_integrations.evaluations._formats import Column

FORMATS = ("html", "md", "csv", "json", "parquet", "ragbench")


def report(options: ReportOptions) -> int:
    """Write the report of a file of evaluations and return the exit code.

    Returns:
        2 for invalid lines, unless `skip_invalid`, and for no evaluation at all; 1 when a mean is
        below its threshold; else 0.

    Raises:
        ConfigurationError: for another format, and for a file that would be lost.
        OSError: when a file cannot be read or written.
    """
    evals, out = Input(options.evals), options.out
    if evals.is_file(out):
        raise ConfigurationError("--out", str(out), "is the input file")
    form = format_of(options.form, out, FORMATS)
    if form == "parquet":
        _formats.check_parquet()
        if str(out) == "-":
            raise ConfigurationError("--out", "-", "a Parquet file cannot be shown; name a file")
    most = options.calls or MOST_CALLS
    if options.calls is not None and form != "html":
        why = f"is of a page, and {form} has figures or rows of all calls; choose with --where"
        raise ConfigurationError("--calls", options.calls, why)
    if options.by is not None and form not in ("html", "md", "json"):
        raise ConfigurationError("--by", options.by, f"is of html, md and json, not of {form}")
    if options.review and form != "html":
        raise ConfigurationError("--review", None, f"is of html, not of {form}")
    who = person(None) if options.review else None
    thresholds = thresholds_from(options.fail_under)
    by = None if options.by is None else Groups(options.by, option="--by")
    per = groups_from(options.per, options.min_calls, thresholds)
    corrections = corrections_from(options.labels, options.per)
    evals.check(folder=True)
    groups = [each for each in (by, per) if each is not None]
    rows = _KeptEvaluations(evals, Filters(options.where), groups, corrections)
    title = f"Evaluations of {Path(str(evals)).name}" if options.title is None else options.title
    if options.where:
        title += f", where {' and '.join(options.where)}"
    try:
        content = _content(rows, form, title, most, by, who)
        size = _write(rows, content, out, form, overwrite=options.overwrite)
    except NoRowsError:
        return rows.bad.end_without_rows("evaluation", out)
    calls = counted(rows.count, "call")
    if str(out) != "-":
        part = f", which shows {most:,} of them" if form == "html" and rows.count > most else ""
        words = f"Wrote the report of {calls} to {out}{part} ({_megabytes(size)})"
        print_stdout(rows.summary.verdict())
        print_stdout(words)
    if rows.left_out:
        without = counted(rows.left_out, "evaluation has", "evaluations have")
        print_stderr(f"{evals}: {without} no labels, and so no row")
    say = print_stderr if str(out) == "-" else print_stdout
    code = rows.bad.end("left out of the report", skip=options.skip_invalid)
    return max(code, check_thresholds(thresholds, rows.summary, per, corrections, say=say))


def format_of(given: str | None, out: Path | None, formats: Sequence[str]) -> str:
    """Return the format that was asked for, or else the one that the output's name ends in.

    A name without an ending, standard output and no output at all stand for a page.

    Args:
        given: `--format`.
        out: `--out`.
        formats: the formats that there are.

    Raises:
        ConfigurationError: there is no such format, or the name ends in something else.
    """
    known = f"use {', '.join(formats[:-1])} or {formats[-1]}"
    if given is not None:
        if given not in formats:
            raise ConfigurationError("--format", given, known)
        return given
    ending = "" if out is None or str(out) == "-" else out.suffix.lower().removeprefix(".")
    ending = {"": "html", "htm": "html"}.get(ending, ending)
    if ending not in formats:
        why = f"ends in .{ending}, which says no format; rename it, or add --format ({known})"
        raise ConfigurationError("--out", str(out), why)
    return ending


class _KeptEvaluations:
    """The evaluations of a file that the filters keep, summed up as they are read."""

    def __init__(
        self,
        path: Input,
        filters: Filters,
        groups: Sequence[Groups],
        corrections: Corrections | None,
    ) -> None:
        self._path = path
        self._corrections = corrections
        self._groups = groups
        self._filters = filters
        self.bad = BadRows(path)
        self.count = self.left_out = 0
        self.summary = Summary()

    def __iter__(self) -> Iterator[Evaluation]:
        for evaluation in self._filters.keep(self.bad.values(read_evaluations(self._path))):
            self.count += 1
            self.summary.add(evaluation)
            for groups in self._groups:
                groups.add(evaluation)
            if self._corrections is not None:
                self._corrections.add(evaluation)
            yield evaluation
        for groups in self._groups:
            groups.ranked()
        if not self.count:
            raise self._filters.none_kept() or NoRowsError
        self.corrected()

    def corrected(self) -> CorrectedMeans | None:
        """Return the corrected means of all evaluations; None without people's labels."""
        return None if self._corrections is None else self._corrections.means

    def columns(self) -> dict[str, Column]:
        """Return the columns of a table: reads the file once for the names of its scores."""
        lines = read_evaluations(self._path)
        rows = (line.value for line in lines if line.value is not None)
        return _formats.columns_of(self._filters.keep(rows))


def _content(
    rows: _KeptEvaluations, form: str, title: str, most: int, by: Groups | None, who: str | None
) -> Iterator[str]:
    """Yield the report in pieces, in the format that was asked for."""
    if form == "html":
        yield from report_pieces(
            rows, title=title, calls=most, groups=by, corrected=rows.corrected, review=who
        )
        return
    if form == "ragbench":
        yield from _ragbench(rows)
        return
    if form == "csv":
        yield from _formats.csv_of(rows, rows.columns())
        return
    for _ in rows:
        pass
    summary = rows.summary
    if form == "md":
        yield _formats.to_markdown(summary, title, by, rows.corrected())
    else:
        yield _formats.to_json(summary, by, rows.corrected())


def _ragbench(rows: _KeptEvaluations) -> Iterator[str]:
    """Yield RAGBench lines; rows without labels are counted and left out."""
    from rag_eval_integrations.dataset.rows import ragbench_line  # noqa: PLC0415

    for evaluation in rows:
        line = ragbench_line(evaluation)
        if line is None:
            rows.left_out += 1
        else:
            yield line


def _write(
    rows: _KeptEvaluations, content: Iterable[str], out: Path, form: str, *, overwrite: bool
) -> int:
    """Write the report and return its size in bytes; a pipe's is 0.

    A page replaces earlier pages only; other forms replace nothing without `--overwrite`.
    """
    if str(out) == "-":
        for piece in content:
            _print(piece, form)
        return 0
    if form == "html" and not overwrite:
        return _page.write(out, content, field="--out").stat().st_size
    target = _target.resolved(out, "--out")
    if target.exists() and not overwrite:
        why = "exists; use another name, or --overwrite to replace it"
        raise ConfigurationError("--out", str(out), why)
    with _target.replacing(target, new=not target.exists()) as stream:
        if form == "parquet":
            _formats.write_parquet(rows, rows.columns(), stream)
        else:
            for piece in content:
                stream.write(piece.encode("utf-8"))
    return target.stat().st_size


def _print(piece: str, form: str) -> None:
    """Write a piece of the report to standard output; a page as UTF-8.

    Where the reader has gone, this and what follows is dropped without an error.
    """
    if form != "html":
        write_stdout(piece)
        return
    try:  # as UTF-8, which the page says it is, whatever the terminal's encoding
        sys.stdout.buffer.write(piece.encode("utf-8"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        discard_stdout()


def _megabytes(size: int) -> str:
    """Format a size in MB or kB."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"
