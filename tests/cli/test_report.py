"""`rag-eval report`: from a file of evaluations to a page, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_rows import evaluations

from rag_eval_integrations.records import to_line
from rag_eval_integrations.report import Summary, write_report

Command = Callable[..., Any]


@pytest.fixture
def evals(tmp_path: Path) -> Path:
    """A file of evaluations."""
    path = tmp_path / "evals.jsonl"
    path.write_text("".join(f"{to_line(one)}\n" for one in evaluations()))
    return path


def test_one_command_writes_the_page(rag_eval: Command, evals: Path, tmp_path: Path) -> None:
    """The page that `write_report` writes, and a sentence that says so."""
    out = tmp_path / "report.html"

    done = rag_eval("report", evals, "-o", out)
    again = rag_eval("report", evals, "-o", out, "--title", "Again")

    assert (done.code, again.code) == (0, 0)
    assert f"Wrote the report of {len(evaluations())} calls to {out} (" in done.out
    expected = write_report(evaluations(), tmp_path / "own.html", title="Again")
    assert out.read_bytes() == expected.read_bytes()


def test_the_other_formats_have_the_same_figures(
    rag_eval: Command, evals: Path, tmp_path: Path
) -> None:
    """Markdown and JSON hold the means; CSV has a row per call."""
    names = {form: tmp_path / f"report.{form}" for form in ("md", "csv", "json")}
    for form, out in names.items():
        assert rag_eval("report", evals, "-o", out, "--format", form).code == 0
    mean = next(one for one in Summary.of(evaluations()).scores if one.mean is not None)

    assert f"{mean.mean:.3f}" in names["md"].read_text()
    assert mean.mean in [one["mean"] for one in json.loads(names["json"].read_text())["scores"]]
    rows = list(csv.DictReader(io.StringIO(names["csv"].read_text(), newline="")))
    assert len(rows) == len(evaluations())


def test_standard_input_and_output_and_gzip(rag_eval: Command, evals: Path, tmp_path: Path) -> None:
    """`-` prints the report and nothing else; a compressed file is read."""
    packed = tmp_path / "evals.jsonl.gz"
    packed.write_bytes(gzip.compress(evals.read_bytes()))

    page = rag_eval("report", packed, "-o", "-")
    figures = rag_eval("report", evals, "-o", "-", "--format", "json")

    assert page.out.startswith("<!doctype html>")
    assert page.out.endswith("</html>\n") or page.out.endswith("</html>")
    assert json.loads(figures.out)


def test_invalid_lines_are_told_and_counted(rag_eval: Command, evals: Path, tmp_path: Path) -> None:
    """The report is written, and the exit code is 2 unless they are accepted."""
    evals.write_text('{"schema": 2}\n' + evals.read_text() + "nonsense\n")
    out = tmp_path / "report.html"

    done = rag_eval("report", evals, "-o", out)
    accepted = rag_eval("report", evals, "-o", out, "--skip-invalid")

    assert (done.code, accepted.code) == (2, 0)
    assert "line 1" in done.err
    assert "2 invalid line(s) are not in the report" in done.err
    assert out.exists()


@pytest.mark.parametrize("form", ["html", "md", "csv"])
def test_without_an_evaluation_nothing_is_written(
    rag_eval: Command, tmp_path: Path, form: str
) -> None:
    """An earlier report stays."""
    empty, out = tmp_path / "empty.jsonl", tmp_path / f"report.{form}"
    empty.write_text("\n")

    done = rag_eval("report", empty, "-o", out, "--format", form)

    assert done.code == 2
    assert "has no rows, so nothing was written" in done.err
    assert sorted(tmp_path.iterdir()) == [empty]


def test_files_that_are_not_reports_are_kept(
    rag_eval: Command, evals: Path, tmp_path: Path
) -> None:
    """Refused without `--overwrite`; a page of this program needs none."""
    page, figures = tmp_path / "page.html", tmp_path / "figures.md"
    for path, form in ((page, "html"), (figures, "md")):
        path.write_text("mine")
        refused = rag_eval("report", evals, "-o", path, "--format", form)
        assert refused.code == 2
        assert path.read_text() == "mine"

        assert rag_eval("report", evals, "-o", path, "--format", form, "--overwrite").code == 0
        assert path.read_text() != "mine"


def test_mistakes_are_told_before_anything_is_read(
    rag_eval: Command, evals: Path, tmp_path: Path
) -> None:
    """An unknown format, the input as output, a file that is not there, calls for evaluations."""
    calls = tmp_path / "calls.jsonl"
    calls.write_text('{"question": "q", "documents": ["d"], "response": "r"}\n')

    assert "use html, md, csv, json" in rag_eval("report", evals, "-o", "x", "--format", "pdf").err
    unknown = rag_eval("report", evals, "-o", evals.parent / "x.pdf")
    assert (unknown.code, list(evals.parent.glob("x*"))) == (2, [])
    assert "ends in .pdf, which says no format" in unknown.err
    assert "is the input file" in rag_eval("report", evals, "-o", evals).err
    assert rag_eval("report", tmp_path / "none.jsonl", "-o", tmp_path / "x.html").code == 2
    assert rag_eval("report", calls, "-o", tmp_path / "x.html").code == 2
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(("ending", "start"), [("md", "# "), ("json", "{"), ("htm", "<!doctype")])
def test_the_format_is_that_of_the_name(
    rag_eval: Command, evals: Path, ending: str, start: str
) -> None:
    """Unless `--format` says another."""
    out = evals.parent / f"report.{ending}"
    assert rag_eval("report", evals, "-o", out).code == 0
    assert out.read_text().startswith(start)
    assert rag_eval("report", evals, "-o", out, "--format", "csv", "--overwrite").code == 0
    assert out.read_text().startswith("id,")
