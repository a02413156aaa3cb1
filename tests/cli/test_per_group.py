"""`--by`, `--fail-under … --per`: groups and conversations on the command line."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from ferries import Command
from runs import call, write

from rag_eval_integrations import Evaluations, RagCall
from rag_eval_integrations.records import to_line


@pytest.fixture
def evals() -> Path:
    """Three conversations, two routes, a call of neither."""
    values = {"a": [1.0, 1.0], "b": [1.0, 0.0, 0.0], "c\x1b[31m": [0.0] * 9}
    rows = [
        call(f"{name}{n}", {"adherence": value}, supported=value == 1.0,
             metadata={"thread_id": name, "route": "few" if name == "a" else "many"})
        for name, thread in values.items() for n, value in enumerate(thread)
    ]  # fmt: skip
    return write(Path("evals.jsonl"), [*rows, call("alone", {"adherence": 1.0})])


def test_a_threshold_holds_for_each_group(evals: Path, rag_eval: Command) -> None:
    """Those below are named, the worst first; small groups are listed, and do not fail."""
    report = ("report", evals, "-o", "r.html", "--fail-under")
    threads = rag_eval(*report, "adherence=0.5", "--per", "conversation", code=1)
    assert threads.err.splitlines() == [
        "FAILED adherence: conversation c\\x1b[31m: mean 0.0000 is below 0.5 (9 calls)",
        "FAILED adherence: conversation b: mean 0.3333 is below 0.5 (3 calls)",
        "NOTE 1 call without conversation",
    ]
    routes = rag_eval(*report, "adherence=0.5", "--per", "metadata.route", code=1).err
    assert "FAILED adherence: metadata.route many: mean 0.0833" in routes
    assert "NOTE adherence: metadata.route few: 2 calls with a value, too few to fail" in routes
    rag_eval(*report, "adherence=0.05", "--per", "route", code=0)
    rag_eval(*report, "adherence=0.5", "--per", "conversation", "--min-calls", "10", code=0)
    rag_eval(*report, "adherence=0.5", "--min-calls", "10", code=1)  # the mean of all


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--per", "route"], "`--per` = 'route': needs a threshold"),
        (["--per", "rout", "--fail-under", "adherence=0"], "the last has no metadata"),
        (["--by", "rout"], "`--by` = 'rout': is a field of none of 15 calls"),
        (["--by", "route", "--format", "csv"], "is of html, md and json, not of csv"),
    ],
)
def test_mistakes_are_told(evals: Path, rag_eval: Command, words: list[str], why: str) -> None:
    """Before a page is written; and a score that no call has fails, as without groups."""
    assert why in rag_eval("report", evals, "-o", "out", *words, code=2).err
    assert not Path("out").exists()
    per = ("--fail-under", "truth=0", "--per", "route")
    assert "no call has this score" in rag_eval("report", evals, "-o", "r", *per, code=1).err


def test_a_report_shows_groups(evals: Path, rag_eval: Command) -> None:
    """On the page, in Markdown and JSON."""
    for name in ("r.html", "r.md", "r.json"):
        rag_eval("report", evals, "-o", name, "--by", "conversation", code=0)

    page = Path("r.html").read_text()
    groups = page.split('id="groups-heading"')[1].split("</section>")[0]
    assert re.findall(r'<th scope="row"><bdi>(.*?)</bdi>', groups) == ["c\\x1b[31m", "b", "a"]
    assert "| b | 3 | 0.333, 0.06 to 0.79 |" in Path("r.md").read_text()
    assert list(json.loads(Path("r.json").read_text())["groups"]) == ["c\x1b[31m", "b", "a"]


def test_score_and_run_hold_it_for_their_file(evals: Path, rag_eval: Command) -> None:
    """Also a resumed run's, whose rows were there; standard output cannot be read again."""
    calls = Path("calls.jsonl")
    calls.write_text("".join(
        to_line(RagCall(f"When? {n}", ["The ferry leaves at nine."], "The moon is made of cheese.",
                        metadata={"conversation_id": n % 2})) + "\n"
        for n in range(4)
    ))  # fmt: skip
    gate = ("--fail-under", "adherence=1", "--per", "conversation")
    run = ("run", calls, "-o", "e.jsonl", *gate)
    first, again = rag_eval(*run, code=1).err, rag_eval(*run, "--resume", code=1).err
    assert [err.count("FAILED adherence: conversation") for err in (first, again)] == [2, 2]
    scored = rag_eval("score", evals, "-o", "s.jsonl", *gate, code=1).err
    assert "FAILED adherence: conversation b" in scored
    assert "is of a file" in rag_eval("run", calls, "-o", "-", *gate, code=2).err


@pytest.fixture
def threads(data: Path) -> Path:
    """The 42 conversations of MTRAG's human subset, each by one model."""
    with gzip.open(data / "answers" / "mtrag_human.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with Path("mtrag.jsonl").open("w", encoding="utf-8") as out:
        for row in rows:
            said = [(turn["speaker"], turn["text"]) for turn in row["input"]]
            thread, _, turn = row["task_id"].partition("<::>")
            out.write(json.dumps({
                "question": said[-1][1], "response": row["response"],
                "documents": [{"text": each["text"], "id": each["document_id"]}
                              for each in row["contexts"]],
                "history": [{"role": "user" if who == "user" else "assistant", "content": text}
                            for who, text in said[:-1]],
                "metadata": {"thread_id": f"{thread}/{row['model']}", "turn": int(turn),
                             "model": row["model"]},
            }) + "\n")  # fmt: skip
    return Path("mtrag.jsonl")


def test_conversations_of_mtrag(threads: Path, rag_eval: Command) -> None:
    """All 42, of 5 to 10 turns, in the order of their turns, each held by itself."""
    gate = ("--fail-under", "adherence=0.6", "--per", "conversation")
    done = rag_eval("run", threads, "-o", "e.jsonl", "--report", "r.html", *gate, code=1)
    evaluations = Evaluations.load("e.jsonl")
    groups = evaluations.by("conversation")

    assert len(groups) == 42
    assert Counter(group.calls for group in groups.values()) == {
        5: 3, 6: 9, 7: 3, 8: 15, 9: 9, 10: 3,
    }  # fmt: skip
    means = {name: group.means.mean("adherence") for name, group in groups.items()}
    below = {name for name, mean in means.items() if mean and (mean.mean or 0.0) < 0.6}
    assert below
    named = re.findall(r"FAILED adherence: conversation (\S+): mean", done.err)
    assert set(named) == below
    assert sorted(named, key=lambda name: means[name].mean) == named  # type: ignore[union-attr,arg-type,return-value]
    page = Path("r.html").read_text()
    section = page.split('id="conversations-heading"')[1].split("</section>")[0]
    assert "of 42 conversations of several turns went wrong" in section
    shown = section.split("<details>")[1]
    name = re.findall(r"<bdi>(.*?)</bdi>", shown)[0]
    asked = [each.question for each in evaluations if each.metadata["thread_id"] == name]
    assert shown.count("<li>") == len(asked)
    assert list(evaluations.by("metadata.model")) != []
