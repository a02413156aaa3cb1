"""The evaluations of a pytest session: totals, the report, the summary of a GitHub step.

Evaluations arrive as lines of EVALS. They are kept for a report only, on disk when there are many;
the totals take constant memory.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_eval_integrations import _target
from rag_eval_integrations._visible import counted, one_line, visible
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._cells import inline
from rag_eval_integrations.evaluations.summary import ScoreFigures, Summary
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records.score import EVALS_SCHEMA

_IN_MEMORY = 16 * 2**20
"""Bytes of kept lines above which they go to a file."""
_HEAD = 64
_BEGINNING = f'{{"schema":{EVALS_SCHEMA},'.encode("ascii")

_MOST_SUMMARY = 200_000
"""Bytes that are written for GitHub."""
_MOST_OF_STEP = 1_000_000
"""Bytes of a step's summary: above 1,024 KiB GitHub drops all of it."""
_MOST_FAILED = 1_000
"""Failed tests whose messages are kept."""


def checked_path(path: str) -> Path:
    """Return the absolute path of a report that can be written; writes nothing that stays.

    Raises:
        ConfigurationError: the ending is not that of a format, or there is something else than a
            report of this program.
        OSError: its folder does not exist, or no file can be made there.
    """
    whole = Path(os.path.abspath(path))  # tests may change the working directory
    if whole.suffix.lower() not in _FORMATS:
        known = " or ".join(_FORMATS)
        raise ConfigurationError("path", path, f"should end in {known}, for the format")
    ours, _ = _FORMATS[whole.suffix.lower()]
    target = _target.check_page(whole, ours)
    probe = target.with_name(f".{target.name}.{os.urandom(4).hex()}")
    try:
        os.close(_target.create(probe))
    except OSError as error:  # as one of the path that the user knows
        raise type(error)(str(error).replace(str(probe), str(whole))) from error
    finally:
        probe.unlink(missing_ok=True)
    return whole


class SessionResults:
    """What the tests of a session evaluated.

    Args:
        keep: whether the evaluations are needed for a report.
    """

    def __init__(self, *, keep: bool) -> None:
        self._evals_lines = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) if keep else None  # noqa: SIM115
        self._summary = Summary()
        self._tests: set[str] = set()
        self._failed: dict[str, str] = {}
        self._notes: list[str] = []

    def add(self, test: str, lines: Sequence[str], failure: str | None) -> None:
        """Add what one report of a test carries.

        Args:
            test: the test's node id.
            lines: evaluations, as lines of EVALS.
            failure: the message of a test that its scores failed.
        """
        if lines:
            self._tests.add(test)
        for line in lines:
            self._summary.add(Evaluation.model_validate_json(line))
            if self._evals_lines is not None:
                self._evals_lines.write(line.encode("ascii") + b"\n")
        if failure is not None:
            self._failed[test] = failure if len(self._failed) < _MOST_FAILED else ""

    # --- The report

    def write(self, path: str) -> bool:
        """Write the report; returns whether it could be written, and `lines` says so too."""
        try:
            _, write = _FORMATS[Path(path).suffix.lower()]
            write(self, Path(path))
        except (ConfigurationError, OSError) as error:
            self._notes.append(f"the report was not written: {visible(str(error))}")
            return False
        finally:
            if self._evals_lines is not None:
                self._evals_lines.close()
        self._notes.append(f"report: {visible(path)}")
        return True

    def _lines(self) -> Iterator[str]:
        """Yield the lines of EVALS from the temporary file."""
        assert self._evals_lines is not None
        self._evals_lines.seek(0)
        return (line.decode("ascii") for line in self._evals_lines)

    def _write_lines(self, path: Path) -> None:
        _target.write_page(path, self._lines(), _is_evals)

    def _write_page(self, path: Path) -> None:
        from rag_eval_integrations.report.html import write_report  # noqa: PLC0415  # for a page

        write_report(map(Evaluation.model_validate_json, self._lines()), path)

    # --- The terminal

    def lines(self) -> list[str]:
        """List the lines of the test session's summary: scores, failed tests, the report's path."""
        rows = self._rows()
        width = max((len(name) for name, *_ in rows), default=0)
        scores = [
            f"{name:{width}}  {mean:>4}  {scored} scored" + (f" ({codes})" if codes else "")
            for name, mean, scored, codes in rows
        ]
        return [*scores, self._counts(), *self._notes]

    def _counts(self) -> str:
        """Count evaluations, tests and failed tests in words."""
        calls, tests = self._summary.calls, len(self._tests)
        words = f"{counted(calls, 'evaluation')} in {counted(tests, 'test')}"
        if not self._failed:
            return words
        return f"{words}; {counted(len(self._failed), 'test')} failed by scores"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """List (score, mean, scored of all, why not); scores made differently have a row each."""
        figures = self._summary.scores
        several = Counter(score.name for score in figures)
        rows = []
        for score in figures:
            title = score.name if several[score.name] == 1 else f"{score.name} ({_maker(score)})"
            mean = "–" if score.mean is None else f"{score.mean:.2f}"
            codes = ", ".join(f"{code} {count}" for code, count in score.unscored.items())
            rows.append((one_line(title, 100), mean, f"{score.scored}/{score.total}", codes))
        return rows

    # --- GitHub

    def append_to(self, path: str) -> None:
        """Append the summary to the file of `$GITHUB_STEP_SUMMARY`, cut to what is left there.

        `lines` says so if it cannot be written.
        """
        try:
            target = _target.resolved(path, "GITHUB_STEP_SUMMARY")
            size = target.stat().st_size if target.exists() else 0
            most = min(_MOST_SUMMARY, _MOST_OF_STEP - size)
            text = self.markdown(most).encode("utf-8")
            if len(text) > most:
                why = "the summary of this step is full"
                raise ConfigurationError("GITHUB_STEP_SUMMARY", path, why)
            with os.fdopen(_target.append(target), "ab") as stream:
                stream.write(text)
        except (ConfigurationError, OSError) as error:
            self._notes.append(f"no summary for GitHub: {visible(str(error))}")

    def markdown(self, most: int = _MOST_SUMMARY) -> str:
        """Write the totals and the failed tests as Markdown tables.

        Args:
            most: bytes at most; failed tests that do not fit are counted. The totals always stand.
        """
        lines = ["", "### RAG evaluation", "", f"{self._counts()}.", ""]
        lines += ["| score | mean | scored | unscored because |", "|---|---:|---:|---|"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in self._rows()]
        if self._failed:
            lines += ["", "| failed test | why |", "|---|---|"]
        size = sum(len(line.encode("utf-8")) + 1 for line in lines)
        left = len(self._failed)
        for test, why in self._failed.items():
            row = f"| {_cell(test)} | {_cell(why)} |"
            size += len(row.encode("utf-8")) + 1
            if size > most - _HEAD or not why:
                lines += ["", f"{counted(left, 'failed test')} left out; see the log."]
                break
            lines.append(row)
            left -= 1
        return "\n".join([*lines, ""])


def _is_evals(head: bytes) -> bool:
    """Tell whether a file to replace begins as EVALS do."""
    return head.startswith(_BEGINNING)


def _is_page(head: bytes) -> bool:
    """Tell whether a file to replace is a report of this program."""
    from rag_eval_integrations.report._page import is_page  # noqa: PLC0415  # for a page

    return is_page(head)


_FORMATS = {
    ".html": (_is_page, SessionResults._write_page),
    ".jsonl": (_is_evals, SessionResults._write_lines),
}
"""Ending → whether a file may be replaced, by its beginning; what writes it."""


def _maker(figures: ScoreFigures) -> str:
    """Name what made a score: model or judge, formulas and method."""
    by = figures.by
    return ", ".join(filter(None, (by.model or by.judge, by.formulas, figures.method)))


def _cell(text: str) -> str:
    """Write any text as a cell of a Markdown table, in which it is only text, line by line."""
    lines = text.split("\n")
    indents = ("&emsp;" * ((len(line) - len(line.lstrip(" "))) // 2) for line in lines)
    cells = (inline(line, in_table=True, most=None) for line in lines)
    return "<br>".join(map("".join, zip(indents, cells, strict=True)))
