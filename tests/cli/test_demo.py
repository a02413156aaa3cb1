"""`rag-eval demo`: both frameworks for real, the invented sentence found, two files written."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rag_eval_integrations.cli import demo
from rag_eval_integrations.cli.demo.corpus import LANGCHAIN_EXCHANGES, LLAMA_INDEX_EXCHANGES
from rag_eval_integrations.records import Evaluation, RagCall, from_line

INVENTED = "Professor Ilse Marwick of Geneva patented this button in 1987."


def run(out: Path, width: int = 120) -> tuple[int, str]:
    screen = StringIO()
    code = demo.run_demo(out, Console(file=screen, width=width))
    return code, screen.getvalue()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return *run(out), out


def test_captures_every_question_from_both_frameworks(done: tuple[int, str, Path]) -> None:
    """calls.jsonl holds one RagCall a question, verified against the prompt."""
    code, _, out = done
    lines = (out / "calls.jsonl").read_text().splitlines()
    calls = [from_line(RagCall, line) for line in lines]

    assert code == 0
    assert [call.question for call in calls] == [
        exchange.question for exchange in (*LANGCHAIN_EXCHANGES, *LLAMA_INDEX_EXCHANGES)
    ]
    assert [call.response for call in calls] == [
        exchange.answer for exchange in (*LANGCHAIN_EXCHANGES, *LLAMA_INDEX_EXCHANGES)
    ]
    captures = [call.capture for call in calls]
    assert [c.framework for c in captures if c] == ["langchain"] * 3 + ["llama_index"] * 3
    assert {(c.status, c.documents_from) for c in captures if c} == {("ok", "prompt")}
    assert all(len(call.documents) == 2 for call in calls)


def test_finds_the_invented_sentence(done: tuple[int, str, Path]) -> None:
    """Only the invented sentence is unsupported, and it is shown; saying "not told" is no fault."""
    _, screen, out = done
    lines = (out / "evals.jsonl").read_text().splitlines()
    evaluations = [from_line(Evaluation, line) for line in lines]

    unsupported = {
        sentence.text: evaluation.question
        for evaluation in evaluations
        for sentence in evaluation.sentences.response
        if evaluation.labels is not None and evaluation.labels.support(sentence.key) != "full"
    }

    assert unsupported == {INVENTED: LANGCHAIN_EXCHANGES[1].question}
    assert INVENTED in screen
    assert [e.scores["adherence"].value for e in evaluations] == [1, 0, 1, 1, 1, 1]


def test_finds_the_retrieval_that_misses(done: tuple[int, str, Path]) -> None:
    """The question that the corpus does not answer has by far the lowest context relevance."""
    _, _, out = done
    lines = (out / "evals.jsonl").read_text().splitlines()
    relevance = [from_line(Evaluation, line).scores["context_relevance"].value for line in lines]

    assert min(relevance, key=lambda value: value or 0) == relevance[4]


def test_says_that_scores_are_estimates(done: tuple[int, str, Path]) -> None:
    """Nobody can mistake the embedded judge for a model."""
    _, screen, _ = done

    assert "LEXICAL ESTIMATES" in screen
    assert "hallucination" in screen


def test_runs_from_the_command_line(rag_eval: Callable[..., Any], tmp_path: Path) -> None:
    """`rag-eval demo --out DIR` exits 0, writes nothing to stderr, and may run again."""
    for _ in range(2):
        ran = rag_eval("demo", "--out", tmp_path)

        assert (ran.code, ran.err) == (0, "")
        assert INVENTED in ran.out


def test_does_not_replace_calls_of_somebody_else(
    rag_eval: Callable[..., Any], tmp_path: Path
) -> None:
    """`--out .` beside one's own calls.jsonl: refused, and left alone."""
    (tmp_path / "calls.jsonl").write_text('{"question": "mine"}\n')

    done = rag_eval("demo", "--out", tmp_path)

    assert done.code == 2
    assert "calls.jsonl': was not made by this program and is not replaced" in done.err
    assert (tmp_path / "calls.jsonl").read_text() == '{"question": "mine"}\n'


@pytest.mark.parametrize(
    ("absent", "named", "command"),
    [
        (["langchain_core"], "langchain", "rag-eval-integrations[langchain]"),
        (["llama_index.core"], "llama-index", "rag-eval-integrations[llama-index]"),
        (["langchain_core", "llama_index.core"], "langchain and llama-index", "[all]"),
    ],
)
def test_names_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, absent: list[str], named: str, command: str
) -> None:
    """Without a framework the demo says what to install and exits 2, writing nothing."""
    find_spec = importlib.util.find_spec

    def without(module: str) -> Any:
        if module in absent:
            raise ModuleNotFoundError(module)
        return find_spec(module)

    monkeypatch.setattr(demo, "find_spec", without)

    code, screen = run(tmp_path / "out")

    assert code == 2
    assert f"Not installed: {named}." in screen
    assert command in screen
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("width", [60, 80])
def test_every_score_is_whole_in_a_narrow_terminal(
    done: tuple[int, str, Path], tmp_path: Path, width: int
) -> None:
    """No value and no column is cut off."""
    _, screen = run(tmp_path, width)
    wide = re.findall(r"\b[01]\.\d\d\b", done[1].split("\n\n")[0])
    narrow = re.findall(r"\b[01]\.\d\d\b", screen.split("\n\n")[0])

    assert (len(narrow), sorted(narrow)) == (24, sorted(wide))
    assert max(map(len, screen.split("\n\n")[0].splitlines())) <= width
    assert "unsupp." in screen
