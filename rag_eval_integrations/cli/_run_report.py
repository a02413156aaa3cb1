"""`--report` of `run` and `score`: the report of the file that they wrote, at their end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations.dataset._input import Input, read_evaluations
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report import _page

if TYPE_CHECKING:
    from rich.console import Console

_OPTION = "--report"


def check_report(
    report: Path | None, calls: Input, out: Path, others: Mapping[str, Path | None]
) -> None:
    """Refuse a report that could not be written at the end, or that would spoil another file.

    Args:
        report: the page; None for none.
        calls: the input.
        out: the file of evaluations, which the report is made of.
        others: further files that the command writes, by their options.

    Raises:
        ConfigurationError: the evaluations go to standard output, or the report is the input, an
            output, or a file that this program did not make.
        OSError: its folder does not exist, or it cannot be read.
    """
    if report is None:
        return
    if str(out) == "-":
        raise ConfigurationError(_OPTION, str(report), "is made of a file: use one for --out")
    if calls.is_file(report):
        raise ConfigurationError(_OPTION, str(report), "is the input file")
    made = os.path.realpath(out)
    taken = {made: "--out", f"{made}.partial": "--out", f"{made}.bak": "--out"}
    taken |= {os.path.realpath(path): option for option, path in others.items() if path}
    option = taken.get(os.path.realpath(report))
    if option:
        why = f"is a file of {option}; use another name"
        raise ConfigurationError(_OPTION, str(report), why)
    _page.check(report, field=_OPTION)


def write_run_report(report: Path | None, out: Path, console: Console) -> None:
    """Write the report of a whole file of evaluations, reading it row by row, and say so.

    Args:
        report: the page; None for none.
        out: the evaluations, earlier ones of a resumed run included.
        console: where it is said.

    Raises:
        ConfigurationError: a file that this program did not make has come there meanwhile.
        OSError: it cannot be written.
    """
    if report is None:
        return
    from rag_eval_integrations.report.html import report_pieces  # noqa: PLC0415  # Jinja2

    content = report_pieces(_rows(out), title=f"Evaluations of {out.name}")
    _page.write(report, content, field=_OPTION)
    console.print(f"Wrote the report to {report}", soft_wrap=True)


def _rows(out: Path) -> Iterator[Evaluation]:
    for line in read_evaluations(out):
        if line.value is None:  # this program has just written it
            raise ConfigurationError("--out", str(out), f"was changed meanwhile: {line.error}")
        yield line.value
