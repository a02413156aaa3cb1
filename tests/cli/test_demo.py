"""`rag-eval demo`: both frameworks for real, the invented sentence found, files and report written."""

from __future__ import annotations

import html
import json
import re
import shlex
import subprocess
from io import StringIO
from pathlib import Path

import pytest
from ferries import Command, read
from forked import WarmPopen
from rich.console import Console

from rag_eval_integrations.cli import demo
from rag_eval_integrations.cli.demo.corpus import LANGCHAIN_EXCHANGES, LLAMA_INDEX_EXCHANGES
from rag_eval_integrations.evaluations._call_view import STATES
from rag_eval_integrations.evaluations.console import MISSED
from rag_eval_integrations.records import RagCall, from_line

from .conftest import in_process

ROOT = Path(__file__).resolve().parents[2]

INVENTED = "Professor Ilse Marwick of Geneva patented this button in 1987."


EXCHANGES = (*LANGCHAIN_EXCHANGES, *LLAMA_INDEX_EXCHANGES)
Demo = tuple[int, str, Path]


def run(out: Path, width: int = 120) -> tuple[int, str]:
    screen = StringIO()
    code = demo.run_demo(out, Console(file=screen, width=width))
    return code, screen.getvalue()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return *run(out), out


def test_captures_every_question_from_both_frameworks(done: Demo) -> None:
    """calls.jsonl holds one RagCall a question, verified against the prompt."""
    code, _, out = done
    calls = [from_line(RagCall, line) for line in (out / "calls.jsonl").read_text().splitlines()]

    assert code == 0
    assert [(call.question, call.response) for call in calls] == [
        (exchange.question, exchange.answer) for exchange in EXCHANGES
    ]
    captures = [call.capture for call in calls]
    assert [c.framework for c in captures if c] == ["langchain"] * 3 + ["llama_index"] * 3
    assert {(c.status, c.documents_from) for c in captures if c} == {("ok", "prompt")}
    assert all(len(call.documents) == 2 for call in calls)


def test_finds_the_planted_faults(done: Demo) -> None:
    """The invented sentence alone is unsupported, one retrieval misses; scores are estimates.

    The page of all six calls stands beside them, and the last lines say where.
    """
    _, screen, out = done
    evaluations = read(out / "evals.jsonl")
    relevance = [row.scores["context_relevance"].value or 0 for row in evaluations]
    unsupported = {
        sentence.text: evaluation.question
        for evaluation in evaluations
        for sentence in evaluation.sentences.response
        if evaluation.labels is not None and evaluation.labels.support(sentence.key) != "full"
    }

    assert unsupported == {INVENTED: LANGCHAIN_EXCHANGES[1].question}
    assert [e.scores["adherence"].value for e in evaluations] == [1, 0, 1, 1, 1, 1]
    assert min(relevance) == relevance[4]
    for words in (INVENTED, "LEXICAL ESTIMATES", "hallucination", "open the report in a browser"):
        assert words in screen
    assert f"Wrote {out / 'report.html'}" in screen.replace("\n", "")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "6 calls" in page
    assert html.escape(INVENTED) in page


def test_leaves_a_pair_to_compare(rag_eval: Command, tmp_path: Path) -> None:
    """The same calls without the invented sentence: one repair, and no score falls.

    The demo may run again.
    """
    for _ in range(2):
        ran = rag_eval("demo", "--out", tmp_path, code=0)
        assert (ran.err, INVENTED in ran.out) == ("", True)
    pair = tmp_path / "evals.jsonl", tmp_path / "mended.jsonl"
    assert f"rag-eval compare {pair[0]} {pair[1]}\n" in ran.out
    rag_eval("compare", *pair, "--fail-on-regression", "adherence=0.05", code=0)
    content = json.loads(rag_eval("compare", *pair, "--format", "json", code=0).out)
    assert {score["losses"] for score in content["runs"][0]["scores"]} == {0}

    before, after = map(read, pair)
    assert [row.question for row in before] == [row.question for row in after]
    changed = [a.question for a, b in zip(before, after, strict=True) if a.row_key != b.row_key]
    assert changed == [LANGCHAIN_EXCHANGES[1].question]
    assert [row.scores["adherence"].value for row in after] == [1] * 6


def test_the_commands_of_the_readme_run(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are pasted after the demo: inputs exist, no file is named twice, and all exit 0.

    Those that ask a model count its requests instead; those that need its replies are left out.
    """
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Path("examples").symlink_to(ROOT / "examples")
    assert rag_eval("demo").code == 0
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    commands = [line for line in "".join(blocks).splitlines() if line.startswith("rag-eval ")]
    assert len(commands) >= 3
    written: set[str] = set()
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        if words[0] == "prompt-tests" and words[1] != "generate":
            continue
        foreseen = "--dry-run" in words
        out = words[words.index("-o") + 1]
        assert out == "report.html" or out not in written, command
        written |= set() if foreseen else {out}
        asks = any("openai:" in word for word in words) and not foreseen
        rag_eval(*words, *["--dry-run"] * asks, code=0)


@pytest.mark.parametrize("name", ["calls.jsonl", "report.html"])
def test_does_not_replace_files_of_others(rag_eval: Command, tmp_path: Path, name: str) -> None:
    """They are left alone; a page is refused before the first call."""
    (tmp_path / name).write_text('{"question": "mine"}\n')

    done = rag_eval("demo", "--out", tmp_path, code=2)

    assert f"{name}': was not made by this program and is not replaced" in done.err
    assert (done.out == "") == (name == "report.html")
    assert [path.read_text() for path in tmp_path.iterdir()] == ['{"question": "mine"}\n']


@pytest.mark.parametrize(
    ("absent", "named", "command"),
    [
        (["langchain_core"], "langchain", "rag-eval-integrations[langchain]"),
        (["langchain_core", "llama_index"], "langchain and llama-index", "[all]"),
    ],
)
def test_names_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, absent: list[str], named: str, command: str
) -> None:
    """Without a framework the demo says what to install and exits 2, writing nothing."""
    monkeypatch.setattr(demo, "find_spec", lambda module: module not in absent or None)

    code, screen = run(tmp_path / "out")

    assert code == 2
    assert f"Not installed: {named}." in screen
    assert command in screen
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_line_fits(done: Demo, tmp_path: Path, width: int) -> None:
    """Nothing is cut off: each score of each call, and each word of each answer, is there."""
    _, screen = run(tmp_path / "out", width)

    assert max(map(len, screen.split("Wrote")[0].splitlines())) <= min(width, 80)
    assert "…" not in screen
    figures = sorted(re.findall(r"\b[01]\.\d\d\b", done[1]))
    assert sorted(re.findall(r"\b[01]\.\d\d\b", screen)) == figures
    assert set(words(done[1])) - set(words(str(done[2]))) <= set(words(screen))


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_shows_each_call_with_what_is_wrong_in_it(done: Demo) -> None:
    """Question, answer and documents of all six, and the two planted faults marked beside them.

    Nobody has to look up what `0a` or `RU` is: before the first, the signs of the page are told.
    """
    before, *cards = re.split(r"\nCall \d, ", done[1].split("\nAll calls")[0])
    for card, exchange in zip(cards, EXCHANGES, strict=True):
        shown = " ".join(card.split())
        assert exchange.question in shown
        assert all(f" {word}" in shown for word in exchange.answer.split())
        assert "Documents, as the model saw them" in card
        assert "Scores  context_relevance " in card
        assert "  RU 0" in card or MISSED in shown
    assert [n for n, card in enumerate(cards, 1) if f"✗  b {INVENTED}" in card] == [2]
    assert [n for n, card in enumerate(cards, 1) if MISSED in " ".join(card.split())] == [5]

    assert "0a is the first sentence of document 0" in " ".join(before.split())
    for sign, meaning in STATES.values():
        assert f"{sign:2} {meaning}" in before


def test_prints_as_it_goes(tmp_path: Path) -> None:
    """The first call is on the screen while the second framework has not even been loaded."""
    with WarmPopen(
        in_process("demo", "--out", tmp_path), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("Call 1, LangChain" in line for line in lines)
        running = process.poll() is None
        rest = "".join(lines)

    assert running
    assert "Call 6, LlamaIndex" in rest
    assert process.returncode == 0


def test_its_last_line_opens_the_runs(done: Demo) -> None:
    """As a command that can be pasted."""
    _, screen, out = done

    assert screen.splitlines()[-1] == f"rag-eval view {out}"
