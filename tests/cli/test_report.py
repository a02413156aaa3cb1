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
from runs import write

from rag_eval_integrations.report import Summary, write_report


@pytest.fixture
def evals() -> Path:
    """A file of evaluations."""
    return write(Path("evals.jsonl"), evaluations())


@pytest.fixture
def chosen_from() -> Path:
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
    return write(Path("evals.jsonl"), calls)


def test_one_command_writes_the_page(rag_eval: Command, evals: Path) -> None:
    """The page that `write_report` writes, and a sentence that says so.

    `--calls` is of a page; the other formats are of all calls, and say how to choose.
    """
    out, count = Path("report.html"), len(evaluations())
    first = rag_eval("report", evals, "-o", out, code=0).out
    assert f"Wrote the report of {count} calls to {out} (" in first
    rag_eval("report", evals, "-o", out, "--title", "Again", code=0)
    expected = write_report(evaluations(), Path("own.html"), title="Again")
    assert out.read_bytes() == expected.read_bytes()

    some = rag_eval("report", evals, "-o", out, "--calls", 20).out
    assert f"Wrote the report of {count} calls to {out}, which shows 20" in some
    assert "This page holds 20 of them" in out.read_text()
    refused = rag_eval("report", evals, "-o", "x.csv", "--calls", 20, code=2)
    assert "csv has figures or rows of all calls; choose with --where" in refused.err


def test_the_other_formats_have_the_same_figures(rag_eval: Command, evals: Path) -> None:
    """Markdown and JSON hold the means; CSV has a row per call.

    `-` prints the report and nothing else; a compressed file is read.
    """
    shown = {}
    for form in ("md", "csv", "json"):
        rag_eval("report", evals, "-o", f"report.{form}", "--format", form, code=0)
        shown[form] = Path(f"report.{form}").read_text()
    mean = next(score.mean for score in Summary.of(evaluations()).scores if score.mean is not None)
    assert f"{mean:.3f}" in shown["md"]
    assert mean in [score["mean"] for score in json.loads(shown["json"])["scores"]]
    assert len(list(csv.DictReader(io.StringIO(shown["csv"], newline="")))) == len(evaluations())

    packed = Path("evals.jsonl.gz")
    packed.write_bytes(gzip.compress(evals.read_bytes()))
    page = rag_eval("report", packed, "-o", "-").out
    assert page.startswith("<!doctype html>")
    assert page.endswith(("</html>\n", "</html>"))
    assert json.loads(rag_eval("report", evals, "-o", "-", "--format", "json").out)


def test_invalid_lines_are_told_and_counted(rag_eval: Command, evals: Path) -> None:
    """The report is written, and the exit code is 2 unless they are accepted."""
    evals.write_text('{"schema": 2}\n' + evals.read_text() + "nonsense\n")
    done = rag_eval("report", evals, "-o", "report.html", code=2)
    assert "line 1" in done.err
    assert "2 invalid lines left out of the report" in done.err
    assert Path("report.html").exists()
    rag_eval("report", evals, "-o", "report.html", "--skip-invalid", code=0)


def test_without_an_evaluation_nothing_is_written(rag_eval: Command) -> None:
    """It is said instead."""
    Path("empty.jsonl").write_text("\n")
    done = rag_eval("report", "empty.jsonl", "-o", "report.html", code=2)
    assert "has no rows, so nothing was written" in done.err
    assert list(Path().iterdir()) == [Path("empty.jsonl")]


def test_files_that_are_not_reports_are_kept(rag_eval: Command, evals: Path) -> None:
    """Refused without `--overwrite`; a page of this program needs none."""
    for path, form in ((Path("page.html"), "html"), (Path("figures.md"), "md")):
        words = ("report", evals, "-o", path, "--format", form)
        path.write_text("mine")
        rag_eval(*words, code=2)
        assert path.read_text() == "mine"
        rag_eval(*words, "--overwrite", code=0)
        assert path.read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evals.jsonl -o x --format pdf", "use html, md, csv, json"),
        ("evals.jsonl -o x.pdf", "ends in .pdf, which says no format"),
        ("evals.jsonl -o evals.jsonl", "is the input file"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(
    rag_eval: Command, evals: Path, words: str, said: str
) -> None:
    """An unknown format, the input as output."""
    assert said in rag_eval("report", *words.split(), code=2).err
    assert list(Path().glob("x*")) == []


@pytest.mark.parametrize(("ending", "start"), [("md", "# "), ("json", "{"), ("htm", "<!doctype")])
def test_the_name_says_the_format(rag_eval: Command, evals: Path, ending: str, start: str) -> None:
    """Unless `--format` says another."""
    out = Path(f"report.{ending}")
    rag_eval("report", evals, "-o", out, code=0)
    assert out.read_text().startswith(start)
    rag_eval("report", evals, "-o", out, "--format", "csv", "--overwrite", code=0)
    assert out.read_text().startswith("id,")


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("pattern=hallucination", "oven bridge"),
        ("adherence<1", "oven bridge"),
        ("adherence>=1", "stove"),
        ("adherence=unscored", "unanswered"),
        ("adherence=empty_response", "unanswered"),
        ("supported_fraction<=0.5 supported_fraction>0.2", "bridge"),
        ("team=kitchen", "oven stove"),
        ("id=bridge", "bridge"),
        ("thread=t-7", "oven"),
        ("framework=langchain", "oven"),
        ("user.roles=chef", "stove"),
        ("user.guest=false", "stove"),
        ("a.b=2", "bridge"),
    ],
)
def test_where_chooses_calls(rag_eval: Command, chosen_from: Path, where: str, ids: str) -> None:
    """By pattern, score, and field of the metadata, given or captured; all have to hold.

    A figure of some calls is not read as that of all.
    """
    options = [part for condition in where.split() for part in ("--where", condition)]
    words = ("report", chosen_from, "-o", "-", *options, "--format")
    shown = rag_eval(*words, "csv", code=0).out
    assert [row["id"] for row in csv.DictReader(io.StringIO(shown, newline=""))] == ids.split()
    title = rag_eval(*words, "md").out.splitlines()[0]
    assert f"Evaluations of evals.jsonl, where {where.split()[0]}" in title


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
            "a field of none of 4 calls; the fields are a.b, adherence, app, completeness",
        ),
        ("team=cellar", "none of 4 calls is so"),
    ],
)
def test_a_condition_that_keeps_no_call_says_what_to_type(
    rag_eval: Command, chosen_from: Path, where: str, words: str
) -> None:
    """A misspelt name is not the same as a value that no call has."""
    assert words in rag_eval("report", chosen_from, "-o", "x.html", "--where", where, code=2).err
    assert not Path("x.html").exists()
