"""`--judge`: by name, as a cascade, or an object in the user's own code; mistakes are named."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ferries import CALL, Command, write

CODE = """
from by_hand import ScriptedJudge, labels_of
from rag_eval_integrations import CallableModel

def supported(call):
    # As by a local reader that is unsure of what is called a guess.
    keys = [s.key for s in call.documents]
    p = 0.5 if "guess" in call.call.question else 0.95
    soft = {s.key: p for s in call.response}
    found = {s.key: (keys, True) for s in call.response}
    return labels_of(keys, keys, found, supported_probabilities=soft)

class judges:
    mine, reader = ScriptedJudge(supported), ScriptedJudge(supported)

model = CallableModel(lambda messages: "no labels", name="wordy")
number = 7
"""


RUN = ("run", "calls.jsonl", "-o", "e.jsonl", "--judge")


@pytest.fixture(autouse=True)
def _code_of_the_users(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """And calls."""
    Path("own_judges.py").write_text(CODE)
    Path("broken_judges.py").write_text("from json import no_such_name\n")
    write(Path("calls.jsonl"), CALL)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    yield
    for name in ("own_judges", "broken_judges"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("judge", "named"),
    [
        ("own_judges:judges.mine", {"scripted"}),
        ("own_judges:model", {"wordy"}),
        ("cascade:embedded,own_judges:judges.mine", {"embedded", "scripted"}),
    ],
)
def test_runs_with_a_judge_of_ones_own(rag_eval: Command, judge: str, named: set[str]) -> None:
    """Alone, as a model that is asked to label, and as a part of a cascade."""
    ran = rag_eval(*RUN, judge)
    row = json.loads(Path("e.jsonl").read_text())

    # The model writes no labels, and a run without any score fails.
    assert ran.code == (1 if judge == "own_judges:model" else 0), ran.err
    assert row["judge"]["name"] in named
    flags = row.get("flags", [])
    assert ("cascade_first" in flags or "cascade_second" in flags) == ("cascade" in judge)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("gpt-4o", "no such judge; did you mean 'openai:gpt-4o'? Else use embedded, "),
        ("openai/gpt-4o", "did you mean 'openai:gpt-4o'? Else use embedded, "),
        ("embeded", "did you mean 'embedded'? Else use embedded, openai:MODEL, onnx:"),
        ("no_such_module:judge", "no module 'no_such_module' in "),
        ("own_judges.sub:judge", "no module 'own_judges.sub'"),
        ("llama3.1:8b", "a model behind an OpenAI-compatible endpoint is openai:MODEL"),
        ("own_judges:jugde", "own_judges has no 'jugde'"),
        ("own_judges:judges.yours", "own_judges.judges has no 'yours'"),
        ("own_judges:ScriptedJudge", "own_judges:ScriptedJudge is a class, not a judge"),
        ("own_judges:number", "own_judges:number is an object of int, not a judge"),
        ("broken_judges:judge", "module 'broken_judges' cannot be imported: cannot import name"),
        ("own_judges:", "cascade:A,B or MODULE:OBJECT"),
        ("cascade:embedded", "use cascade:A,B"),
        ("cascade:embedded,nothing", "no such judge: 'nothing'"),
        ("cascade:openai:a,openai:b", "openai:a is a model"),
    ],
)
def test_a_mistake_names_what_was_looked_for(rag_eval: Command, judge: str, said: str) -> None:
    """Option, value, and what is not there; nothing is written."""
    command = ("doctor",) if judge == "gpt-4o" else ("run", "calls.jsonl", "-o", "e.jsonl")
    ran = rag_eval(*command, "--judge", judge, code=2)

    assert f"`--judge` = {judge!r}: " in ran.err
    assert said in ran.err
    assert not Path("e.jsonl").exists()


@pytest.mark.parametrize(
    ("judge", "cost"),
    [
        ("cascade:embedded,openai:small", "at most 1 request "),
        ("own_judges:judges.mine", "is not known"),
    ],
)
def test_a_dry_run_says_what_it_may_cost(rag_eval: Command, judge: str, cost: str) -> None:
    """A cascade may ask about every call; of an unknown judge nothing is known."""
    ran = rag_eval(*RUN, judge, "--dry-run", code=0)

    assert cost in ran.out


def test_a_dry_run_counts_the_conversation(rag_eval: Command) -> None:
    """Its turns, and the words that explain them, are tokens of the prompt."""
    tokens = []
    for history in ([], [{"role": "user", "content": "Which ferry goes to the island? " * 30}]):
        calls = write(Path("talk.jsonl"), CALL | {"history": history})
        words = ("run", calls, "-o", "talked.jsonl", "--judge", "openai:small", "--dry-run")
        said = re.search(r"([\d,]+) prompt tokens", rag_eval(*words, code=0).out)
        tokens.append(int(said[1].replace(",", "")) if said else 0)

    assert tokens[1] - tokens[0] > 30 * len("Which ferry goes to the island? ") // 4
