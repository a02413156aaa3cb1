"""`--report FILE.html` of `rag-eval run` and `rag-eval score`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ferries import Command
from own_rows import made_rows


def calls(path: Path, count: int = 3, *, first: int = 0) -> Path:
    path.write_text(
        "".join(
            json.dumps({"id": f"call-{number}", "question": f"When does ferry {number} leave?",
                        "documents": [f"Ferry {number} leaves at nine."],
                        "response": f"Ferry {number} leaves at nine."}) + "\n"
            for number in range(first, first + count)
        )
    )  # fmt: skip
    return path


def test_the_report_is_of_what_was_written(rag_eval: Command, tmp_path: Path) -> None:
    """The page of `rag-eval report`, with every call; a later run replaces it."""
    given = calls(tmp_path / "calls.jsonl")
    out, page = tmp_path / "evals.jsonl", tmp_path / "r.html"

    done = rag_eval("run", given, "-o", out, "--report", page)

    assert (done.code, done.err) == (0, "")
    assert f"Wrote the report to {page}" in done.out
    text = page.read_text(encoding="utf-8")
    assert all(f"call-{number}" in text for number in range(3))
    assert "Evaluations of evals.jsonl" in text
    assert rag_eval("report", out, "-o", tmp_path / "b.html").code == 0
    assert page.read_bytes() == (tmp_path / "b.html").read_bytes()
    calls(given, 5)
    assert rag_eval("run", given, "-o", out, "--report", page, "--overwrite").code == 0
    assert "5 calls" in page.read_text(encoding="utf-8")


def test_it_is_there_after_a_failed_threshold(rag_eval: Command, tmp_path: Path) -> None:
    """That is when it is wanted most; invalid lines are as little in the way."""
    given, page = calls(tmp_path / "calls.jsonl"), tmp_path / "r.html"
    with given.open("a") as lines:
        lines.write("{}\n")
    call = {"question": "q", "documents": ["A ferry."], "response": "A famous admiral sank."}
    with given.open("a") as lines:
        lines.write(json.dumps(call) + "\n")

    done = rag_eval(
        "run", given, "-o", tmp_path / "evals.jsonl", "--report", page, "--fail-under",
        "adherence=1", "--skip-invalid",
    )  # fmt: skip

    assert (done.code, "FAILED adherence" in done.err) == (1, True)
    assert "A famous admiral sank." in page.read_text(encoding="utf-8")


def test_a_resumed_run_reports_the_whole_file(rag_eval: Command, tmp_path: Path) -> None:
    """Also the rows that an earlier run made."""
    given = calls(tmp_path / "calls.jsonl")
    out, page = tmp_path / "evals.jsonl", tmp_path / "r.html"
    assert rag_eval("run", given, "-o", out).code == 0
    calls(given, 5)

    done = rag_eval("run", given, "-o", out, "--resume", "--report", page)

    assert done.code == 0
    assert "3 reused" in done.out
    text = page.read_text(encoding="utf-8")
    assert all(f"call-{number}" in text for number in range(5))


def test_nothing_is_written_without_evaluations(rag_eval: Command, tmp_path: Path) -> None:
    """No rows, an estimate, and a judge that cannot be reached."""
    given = calls(tmp_path / "calls.jsonl")
    out, page = tmp_path / "evals.jsonl", tmp_path / "r.html"
    (tmp_path / "none.jsonl").write_text("")
    words = ["-o", out, "--report", page]

    assert rag_eval("run", tmp_path / "none.jsonl", *words).code == 2
    assert rag_eval("run", given, *words, "--dry-run").code == 0
    away = ["--judge", "openai:x", "--base-url", "http://127.0.0.1:9/v1"]
    assert rag_eval("run", given, *words, *away).code == 1

    assert {path.name for path in tmp_path.iterdir()} == {"calls.jsonl", "none.jsonl"}


@pytest.mark.parametrize(
    ("option", "name", "why"),
    [
        ("--report", "calls.jsonl", "is the input file"),
        ("--report", "evals.jsonl", "is a file of --out"),
        ("--report", "evals.jsonl.partial", "is a file of --out"),
        ("--report", "evals.jsonl.bak", "is a file of --out"),
        ("--report", "cache.jsonl", "is a file of --cache"),
        ("--report", "mine.html", "was not made by this program"),
        ("--report", "folder", "is a folder"),
        ("--report", "nowhere/r.html", "does not exist"),
        ("--cache", "calls.jsonl", "is the input file"),
        ("--cache", "evals.jsonl", "is a file of --out"),
        ("--cache", "./evals.jsonl.bak", "is a file of --out"),
    ],
)
def test_other_files_are_refused_before_the_run(
    rag_eval: Command, tmp_path: Path, option: str, name: str, why: str
) -> None:
    """No call is judged for a report that cannot be written, or beside a cache that spoils OUT."""
    given = calls(tmp_path / "calls.jsonl")
    (tmp_path / "mine.html").write_text("<html>mine</html>")
    (tmp_path / "folder").mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    files = {"--cache": "cache.jsonl", option: name}
    words = [word for named, file in files.items() for word in (named, tmp_path / file)]

    done = rag_eval("run", given, "-o", tmp_path / "evals.jsonl", *words)

    assert (done.code, why in done.err) == (2, True), done.err
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "mine.html").read_text() == "<html>mine</html>"


def test_scores_of_recorded_labels_are_reported(rag_eval: Command, tmp_path: Path) -> None:
    """`rag-eval score` does the same, and refuses the same."""
    given, page = tmp_path / "labelled.jsonl", tmp_path / "r.html"
    given.write_text("".join(json.dumps(row) + "\n" for row in made_rows(4)))

    done = rag_eval("score", given, "-o", tmp_path / "evals.jsonl", "--report", page)
    refused = rag_eval("score", given, "-o", tmp_path / "other.jsonl", "--report", given)

    assert (done.code, f"Wrote the report to {page}" in done.out) == (0, True)
    assert "4 calls" in page.read_text(encoding="utf-8")
    assert (refused.code, "is the input file" in refused.err) == (2, True)
    assert not (tmp_path / "other.jsonl").exists()
