"""`rag-eval` with documents of earlier turns: `--map earlier=`, resuming, pages, `explain`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ferries import Command, read, write
from rich.console import Console

from rag_eval_integrations.evaluations.console import call_details
from rag_eval_integrations.report import Evaluations

ROW: dict[str, Any] = {
    "id": "1",
    "question": "When does the ferry leave?",
    "documents": [
        {"text": "The ferry leaves at nine.", "id": "times"},
        {"text": "Bicycles pay a fee of two coins.", "id": "fees"},
    ],
    "response": "The ferry leaves at nine.",
}
MARKED = {**ROW, "earlier": [1]}


def evaluated(rag_eval: Command, out: Path, row: dict[str, Any], *options: object) -> Any:
    calls = write(Path("calls.jsonl"), row)
    done = rag_eval("run", calls, "-o", out, "--overwrite", *options, code=0)
    return read(out)[0], done


@pytest.mark.parametrize(
    ("name", "value"), [("earlier", [1]), ("shown_again", [1]), ("state.shown_again", [1.0])]
)
def test_from_rows(rag_eval: Command, out: Path, name: str, value: Any) -> None:
    """Under its own name, or where `--map earlier=` says."""
    place, _, inner = name.rpartition(".")
    row = {**ROW, **({place: {inner: value}} if place else {name: value})}
    options = () if name == "earlier" else ("--map", f"earlier={name}")

    marked, _ = evaluated(rag_eval, out, row, *options)
    plain, _ = evaluated(rag_eval, Path("plain.jsonl"), ROW)

    assert (marked.earlier, plain.earlier) == ((1,), ())
    assert marked.row_key != plain.row_key
    assert marked.scores["context_relevance"].value == 1
    assert plain.scores["context_relevance"].value == 1 / 2
    assert "earlier" not in json.loads(Path("plain.jsonl").read_text())


def test_from_cells(rag_eval: Command, out: Path) -> None:
    """A CSV cell holds the list as JSON; an empty one says that there are none."""
    documents = json.dumps([document["text"] for document in ROW["documents"]]).replace('"', '""')
    rows = [f'When?,"{documents}",At nine.,{cell}' for cell in ("[1]", '""')]
    calls = Path("calls.csv")
    calls.write_text("\n".join(["question,documents,response,again", *rows]))

    rag_eval("run", calls, "-o", out, "--map", "earlier=again", code=0)

    assert [row.earlier for row in read(out)] == [(1,), ()]


@pytest.mark.parametrize(
    ("value", "why"),
    [([2], "numbers of the 2 documents, counted from 0"), (1, "a list of numbers of documents")],
)
def test_a_wrong_number_is_a_bad_row(rag_eval: Command, out: Path, value: Any, why: str) -> None:
    """Told with the line, the field and the remedy."""
    calls = write(Path("calls.jsonl"), {**ROW, "earlier": value}, {**ROW, "id": "2"})
    done = rag_eval("run", calls, "-o", out, code=2)

    assert "`earlier`" in done.err
    assert why in " ".join(done.err.split())


def test_resumed_for_the_same_documents_only(rag_eval: Command, out: Path) -> None:
    """A row is reused where the same documents are of earlier turns, and made anew elsewhere."""
    calls = write(Path("calls.jsonl"), MARKED)
    rag_eval("run", calls, "-o", out, code=0)
    first = out.read_text()
    rag_eval("run", calls, "-o", out, "--resume", code=0)
    assert out.read_text() == first

    write(calls, ROW)
    rag_eval("run", calls, "-o", out, "--resume", code=2)
    assert out.read_text() == first


def test_seen_by_people(rag_eval: Command, out: Path) -> None:
    """The page, a notebook, print and `explain` say which documents are from an earlier turn."""
    wrong = {**MARKED, "response": "The ferry leaves at ten."}  # the page shows it at once
    evaluation, _ = evaluated(rag_eval, out, wrong, "--report", "report.html")

    words = "from an earlier turn"
    headings = re.findall(r"<h\d>Document .*?</h\d>", Path("report.html").read_text())
    assert [f"{words}, 1 sentence<" in heading for heading in headings] == [False, True]
    terminal = Console(width=200)
    with terminal.capture() as printed:
        terminal.print(call_details(evaluation))
    assert f"fees · {words}, 1 sentence" in printed.get()
    assert printed.get().count(words) == 1
    assert re.search(rf"Document 1.*?fees.*?{words}", evaluation._repr_html_())
    assert evaluation._repr_html_().count(words) == 1
    assert f"{words}: document 1" in str(evaluation)
    said = rag_eval("explain", out, "--call", "1").out
    assert f"Document 1 is {words}: R, U and T of the scores leave it out" in said


def test_figures_of_retrieval(rag_eval: Command, out: Path) -> None:
    """Shares by rank count what a turn retrieved itself."""
    evaluated(rag_eval, out, {**MARKED, "documents": ROW["documents"][::-1], "earlier": [0]})
    figures = Evaluations.load(out).summary().retrieval

    assert figures is not None
    assert (figures.calls, figures.relevant, figures.first_relevant) == (1, 1, 1)
    assert [(rank.calls, rank.relevant) for rank in figures.ranks] == [(1, 1)]


def test_scored_again(rag_eval: Command, out: Path) -> None:
    """`score` of a file of evaluations leaves the same documents out."""
    evaluated(rag_eval, out, MARKED)
    rag_eval("score", out, "-o", "again.jsonl", code=0)

    (again,), (first,) = read(Path("again.jsonl")), read(out)
    assert (again.earlier, again.row_key) == (first.earlier, first.row_key)
    values = [row.scores["context_relevance"].value for row in (again, first)]
    assert values == [1, 1]
