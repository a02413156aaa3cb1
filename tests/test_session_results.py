"""What the pytest plugin says of a session: bounded, escaped, and complete."""

from __future__ import annotations

import re
from pathlib import Path

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations._session_results import SessionResults, checked_path
from rag_eval_integrations.records import Evaluation, to_line
from rag_eval_integrations.testing import ScriptedModel, labels_reply, small_call


def evaluation(name: str = "scripted") -> Evaluation:
    """A small call, whose second response sentence is unsupported."""
    model = ScriptedModel([labels_reply(["0a"], ["a", "b"])], name=name)
    return RagEvaluator(model).evaluate_sync(small_call().call)


def results(*failures: str, keep: bool = False) -> SessionResults:
    """One evaluation in each of some tests, which fail with these messages."""
    session = SessionResults(keep=keep)
    line = to_line(evaluation())
    for number, failure in enumerate(failures):
        session.add(f"t.py::test_{number}", [line], failure)
    return session


# --- Markdown


def test_texts_of_a_failure_are_cells() -> None:
    """Line by line, with their indents; whatever Markdown would read is a code span."""
    page = results("adherence 0.00 < 1\n    not supported: b | “<b>”").markdown()

    row = "| `t.py::test_0` | `adherence 0.00 < 1`<br>&emsp;&emsp;`not supported: b \\| “<b>”` |"
    assert row in page.splitlines()


def test_the_summary_is_bounded() -> None:
    """By bytes; the failed tests that do not fit are counted."""
    session = results(*["“wrong”, " * 300] * 1_100)
    page = session.markdown()

    assert len(page.encode()) <= 200_000
    shown = page.count("`t.py::test_")
    assert 10 < shown < 100
    assert page.endswith(f"\n{1_100 - shown:,} failed tests left out; see the log.\n")


def test_a_summary_that_github_would_drop_is_not_written(tmp_path: Path) -> None:
    """Above 1,024 KiB all of a step's summary is dropped: what other steps wrote stays readable."""
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * 999_500)
    session = results("wrong")
    session.append_to(str(path))

    assert path.stat().st_size <= 1_000_000
    path.write_bytes(b"x" * 1_000_000)
    session.append_to(str(path))
    assert path.stat().st_size == 1_000_000
    assert session.lines()[-1].endswith("the summary of this step is full")


# --- The terminal


def test_scores_made_differently_have_a_line_each() -> None:
    """They have no common mean."""
    session = SessionResults(keep=False)
    session.add("t.py::test_one", [to_line(evaluation(name)) for name in ("one", "two")], None)

    lines = [re.sub(" +", " ", line) for line in session.lines()]
    for name in ("one", "two"):
        assert f"adherence ({name}, gpt-labeling, labels) 1.00 1/1 scored" in lines
    assert lines[-1] == "2 evaluations in 1 test"


# --- The report


def test_links_are_followed(tmp_path: Path) -> None:
    """To the file that they lead to, whatever its name; the link's says the format."""
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "real")

    assert checked_path(str(link)) == link
    assert results("wrong", keep=True).write(str(link))
    assert link.is_symlink()
    assert (tmp_path / "real").read_text().startswith('{"schema":')
