"""`rag-eval report`: show a file of evaluations to a person, or hand its figures on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rag_eval_integrations import _target
from rag_eval_integrations.cli._terminal import print_stderr, stdout, without_stdout, write_stdout
from rag_eval_integrations.dataset import read_lines
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, from_object
from rag_eval_integrations.report import Summary

FORMATS = ("html", "md", "csv", "json")


def report(
    evals: Input,
    out: Path,
    *,
    form: str,
    title: str | None,
    skip_invalid: bool,
    overwrite: bool,
) -> int:
    """Write the report of a file of evaluations and return the exit code.

    Args:
        evals: the evaluations.
        out: file for the report, or `-`; written when all evaluations are read.
        form: one of `FORMATS`.
        title: the report's title; None for one that names the file.
        skip_invalid: whether to return 0 despite invalid lines.
        overwrite: whether to replace a file that this program did not make.

    Returns:
        2 for invalid lines, unless `skip_invalid`, and for no evaluation at all; else 0.

    Raises:
        ConfigurationError: for another format, and for a file that would be lost.
        OSError: when a file cannot be read or written.
    """
    if form not in FORMATS:
        raise ConfigurationError("--format", form, f"use {', '.join(FORMATS)}")
    if evals.is_file(out):
        raise ConfigurationError("--out", str(out), "is the input file")
    evals.check()
    rows = _Rows(evals)
    name = Path(str(evals)).name
    content = _content(rows, form, f"Evaluations of {name}" if title is None else title)
    try:
        size = _write(content, out, form, overwrite=overwrite)
    except _NoRowsError:
        found = f"{rows.invalid} invalid line(s) and no evaluation" if rows.invalid else "no rows"
        print_stderr(f"{evals}: has {found}, so nothing was written to {out}")
        return 2
    calls = f"{rows.count:,} call{'' if rows.count == 1 else 's'}"
    if str(out) != "-":
        stdout().print(f"Wrote the report of {calls} to {out} ({_megabytes(size)})", soft_wrap=True)
    if rows.invalid:
        print_stderr(f"{evals}: {rows.invalid} invalid line(s) are not in the report")
    return 2 if rows.invalid and not skip_invalid else 0


class _NoRowsError(Exception):
    """There is nothing to show, so whatever is there stays."""


class _Rows:
    """The evaluations of a file; reports and counts its invalid lines as it is read."""

    def __init__(self, path: Input) -> None:
        self._path = path
        self.count = self.invalid = 0

    def __iter__(self) -> Iterator[Evaluation]:
        for line in read_lines(self._path, lambda content: from_object(Evaluation, content)):
            if line.value is None:
                self.invalid += 1
                print_stderr(f"{self._path}: {line.error}")
            else:
                self.count += 1
                yield line.value
        if not self.count:
            raise _NoRowsError


def _content(rows: _Rows, form: str, title: str) -> Iterator[str]:
    if form == "html":
        from rag_eval_integrations.report.html import report_pieces  # noqa: PLC0415  # templates

        yield from report_pieces(rows, title=title)
        return
    from rag_eval_integrations.report import _figures  # noqa: PLC0415

    if form == "csv":
        yield _figures.to_csv(list(rows))
        return
    summary = Summary.of(rows)
    yield _figures.to_markdown(summary, title) if form == "md" else _figures.to_json(summary)


def _write(content: Iterable[str], out: Path, form: str, *, overwrite: bool) -> int:
    """Write the report and return its size in bytes; a pipe's is 0."""
    if str(out) == "-":
        for piece in content:
            _print(piece, form)
        return 0
    if form == "html" and not overwrite:
        from rag_eval_integrations.report import _page  # noqa: PLC0415

        return _page.write(out, content, field="--out").stat().st_size
    target = _target.resolved(out, "--out")
    if target.exists() and not overwrite:
        why = "exists; use another name, or --overwrite to replace it"
        raise ConfigurationError("--out", str(out), why)
    with _target.replacing(target, new=not target.exists()) as stream:
        for piece in content:
            stream.write(piece.encode("utf-8"))
    return target.stat().st_size


def _print(piece: str, form: str) -> None:
    if form != "html":
        write_stdout(piece)
        return
    try:  # as UTF-8, which the page says it is, whatever the terminal's encoding
        sys.stdout.buffer.write(piece.encode("utf-8"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        without_stdout()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.0f} kB"
