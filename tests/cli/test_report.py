"""`rag-eval report`: from a file of evaluations to a page, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from ferries import Command
from report_rows import evaluations, labelled, oven

from rag_eval_integrations.records import to_line
from rag_eval_integrations.report import Summary, write_report


@pytest.fixture
def evals(tmp_path: Path) -> Path:
    """A file of evaluations."""
    path = tmp_path / "evals.jsonl"
    path.write_text("".join(f"{to_line(one)}\n" for one in evaluations()))
    return path


@pytest.fixture
def chosen_from(tmp_path: Path) -> Path:
    """Two calls with something unsupported, one without, one without a response."""
    bridge = labelled("bridge", ["It is of stone. It is old."], "It is of stone. It sways.",
                      relevant="0a 0b", used="0a",
                      support=(("a", "0a", True, ""), ("b", "", False, "")))  # fmt: skip
    stove = labelled("stove", ["It is of iron."], "It is of iron.", relevant="0a", used="0a",
                     support=(("a", "0a", True, ""),))  # fmt: skip
    user = {"team": "kitchen", "user": {"roles": ["chef", "cook"], "guest": False}}
    none = labelled("unanswered", ["It is of iron."], "")
    calls = [
        oven(),
        bridge.model_copy(update={"metadata": {"a.b": 2}}),
        stove.model_copy(update={"metadata": user}),
        none,
    ]
    path = tmp_path / "evals.jsonl"
    path.write_text("".join(f"{to_line(call)}\n" for call in calls))
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
    assert "2 invalid lines left out of the report" in done.err
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


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (["pattern=hallucination"], ["oven", "bridge"]),
        (["adherence<1"], ["oven", "bridge"]),
        (["adherence>=1"], ["stove"]),
        (["adherence=0.0"], ["oven", "bridge"]),
        (["adherence=unscored"], ["unanswered"]),
        (["adherence=empty_response"], ["unanswered"]),
        (["supported_fraction<=0.5", "supported_fraction>0.2"], ["bridge"]),
        (["team=kitchen"], ["oven", "stove"]),
        (["id=bridge"], ["bridge"]),
        (["thread=t-7"], ["oven"]),
        (["framework=langchain"], ["oven"]),
        (["user.roles=chef", "adherence<1"], []),
        (["user.roles=chef"], ["stove"]),
        (["user.guest=false"], ["stove"]),
        (["a.b=2"], ["bridge"]),
    ],
)
def test_where_chooses_the_calls(
    rag_eval: Command, chosen_from: Path, where: list[str], ids: list[str]
) -> None:
    """By pattern, score, and field of the metadata, given or captured; all have to hold."""
    options = [part for condition in where for part in ("--where", condition)]

    done = rag_eval("report", chosen_from, "-o", "-", "--format", "csv", *options)

    rows = csv.DictReader(io.StringIO(done.out, newline=""))
    assert [row["id"] for row in rows] == ids
    assert done.code == (0 if ids else 2)


def test_a_report_says_what_it_was_chosen_by(rag_eval: Command, chosen_from: Path) -> None:
    """A figure of some calls is not read as that of all."""
    done = rag_eval("report", chosen_from, "-o", "-", "--format", "md", "--where", "adherence<1")

    assert "Evaluations of evals.jsonl, where adherence<1" in done.out.splitlines()[0]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("adherence", "has no =, <, <=, > or >=; write FIELD=VALUE, pattern=NAME or 'SCORE<0.5'"),
        ("adherence<90", "a score is compared with a number from 0 to 1"),
        ("pattern=halucination", "use pattern= with hallucination, nothing_relevant_retrieved"),
        ("adherance<1", "is a score of none of 4 calls; did you mean 'adherence'?"),
        ("faithfulness<1", "is a score of none of 4 calls; `supported_fraction` is nearest to it"),
        ("teem=kitchen", "is a field of none of 4 calls; did you mean 'team'?"),
        (
            "zzz=kitchen",
            "is a field of none of 4 calls; the fields are a.b, adherence, completeness",
        ),
        ("team=cellar", "none of 4 calls is so"),
    ],
)
def test_a_condition_that_keeps_no_call_says_what_to_type(
    rag_eval: Command, chosen_from: Path, where: str, words: str
) -> None:
    """A misspelt name is not the same as a value that no call has."""
    done = rag_eval("report", chosen_from, "-o", "x.html", "--where", where)

    assert done.code == 2
    assert words in done.err
    assert not Path("x.html").exists()


def test_a_page_holds_as_many_calls_as_are_asked_for(
    rag_eval: Command, evals: Path, tmp_path: Path
) -> None:
    """`--calls` is of a page; the other formats are of all calls, and say how to choose."""
    out = tmp_path / "report.html"

    done = rag_eval("report", evals, "-o", out, "--calls", 20)
    refused = rag_eval("report", evals, "-o", tmp_path / "x.csv", "--calls", 20)

    assert f"Wrote the report of {len(evaluations())} calls to {out}, which shows 20" in done.out
    assert "This page holds 20 of them" in out.read_text()
    assert refused.code == 2
    assert "csv has figures or rows of all calls; choose with --where" in refused.err
