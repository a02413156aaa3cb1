"""`--report FILE.html` of `rag-eval run` and `rag-eval score`."""

from __future__ import annotations

from pathlib import Path

import pytest
from ferries import Command, write
from own_rows import made_rows

GIVEN, PAGE = Path("calls.jsonl"), Path("r.html")
RUN = ("run", GIVEN, "-o", "evals.jsonl", "--report", PAGE)


def given(count: int, *more: object) -> None:
    """Write calls, and further rows."""
    call = {"documents": ["The ferry leaves at nine."], "response": "The ferry leaves at nine."}
    rows = [
        call | {"id": f"call-{n}", "question": f"When does it leave, {n}?"} for n in range(count)
    ]
    write(GIVEN, *rows, *more)


def test_the_report_is_of_what_was_written(rag_eval: Command) -> None:
    """The page of `rag-eval report`, with every call; a later run replaces it.

    A resumed run reports the whole file, also the rows that an earlier run made.
    """
    given(3)
    done = rag_eval(*RUN, code=0)

    assert done.err == ""
    assert f"Wrote the report to {PAGE}" in done.out
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"call-{number}" in text for number in range(3))
    assert "Evaluations of evals.jsonl" in text
    rag_eval("report", "evals.jsonl", "-o", "b.html", code=0)
    assert PAGE.read_bytes() == Path("b.html").read_bytes()
    given(5)
    assert "3 reused" in rag_eval(*RUN, "--resume", code=0).out
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"call-{number}" in text for number in range(5))
    given(4)
    rag_eval(*RUN, "--overwrite", code=0)
    assert "4 calls" in PAGE.read_text(encoding="utf-8")


def test_it_is_there_after_a_failed_threshold(rag_eval: Command) -> None:
    """That is when it is wanted most; invalid lines are as little in the way."""
    given(3, {}, {"question": "q", "documents": ["A ferry."], "response": "A famous admiral sank."})
    done = rag_eval(*RUN, "--fail-under", "adherence=1", "--skip-invalid", code=1)
    assert "FAILED adherence" in done.err
    assert "A famous admiral sank." in PAGE.read_text(encoding="utf-8")


def test_nothing_is_written_without_evaluations(rag_eval: Command) -> None:
    """No rows, an estimate, and a judge that cannot be reached."""
    given(0)
    rag_eval(*RUN, code=2)
    given(3)
    rag_eval(*RUN, "--dry-run", code=0)
    rag_eval(*RUN, "--judge", "openai:x", "--base-url", "http://127.0.0.1:9/v1", code=1)
    assert list(Path().iterdir()) == [GIVEN]


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("--report", "calls.jsonl", "is the input file"),
        ("--report", "evals.jsonl", "is a file of --out"),
        ("--report", "cache.jsonl", "is a file of --cache"),
        ("--report", "mine.html", "was not made by this program"),
        ("--report", "folder", "is a folder"),
        ("--report", "nowhere/r.html", "does not exist"),
        ("--cache", "calls.jsonl", "is the input file"),
        ("--cache", "./evals.jsonl.bak", "is a file of --out"),
    ],
)
def test_other_files_are_refused_first(rag_eval: Command, option: str, name: str, why: str) -> None:
    """No call is judged for a report that cannot be written, or beside a cache that spoils OUT."""
    given(3)
    Path("mine.html").write_text("<html>mine</html>")
    Path("folder").mkdir()
    before = {path.name for path in Path().iterdir()}
    words = [
        word for pair in ({"--cache": "cache.jsonl"} | {option: name}).items() for word in pair
    ]

    assert why in rag_eval("run", GIVEN, "-o", "evals.jsonl", *words, code=2).err
    assert {path.name for path in Path().iterdir()} == before
    assert Path("mine.html").read_text() == "<html>mine</html>"


def test_scores_of_recorded_labels_are_reported(rag_eval: Command) -> None:
    """`rag-eval score` does the same, and refuses the same."""
    write(GIVEN, *made_rows(4))
    done = rag_eval("score", GIVEN, "-o", "evals.jsonl", "--report", PAGE, code=0)
    assert f"Wrote the report to {PAGE}" in done.out
    assert "4 calls" in PAGE.read_text(encoding="utf-8")
    refused = rag_eval("score", GIVEN, "-o", "other.jsonl", "--report", GIVEN, code=2)
    assert "is the input file" in refused.err
    assert not Path("other.jsonl").exists()
