"""`rag-eval explain`: the prompt that was sent, labels and scores, and what a row lacks for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ferries import CALL, Command, read, write
from loopback import Body, LoopbackServer, Reply

from rag_eval_integrations.testing import labels_reply

TALK = CALL | {
    "id": "talk",
    "question": "And \x1b[31mfor children?\u202e",
    "history": [{"role": "user", "content": "What does the ferry cost?"}],
    "documents": [{"text": "It leaves at nine.", "header": "page: 3"}, "It is green."],
}
LONG = CALL | {"id": "long", "documents": ["The ferry leaves at nine. " * 3_000]}
ROWS = [CALL | {"id": "plain"}, TALK, LONG]


def labelled(body: Body) -> Reply:
    """Labels the first sentences of what a request shows."""
    reply = json.loads(labels_reply(["0a"], ["a"]))
    reply["sentence_support_information"][0]["explanation"] = "So\nLabels\x1b[2J"
    message = {"content": json.dumps(reply)}
    return Reply.json({"choices": [{"index": 0, "finish_reason": "stop", "message": message}]})


@pytest.fixture
def made(rag_eval: Command) -> Callable[..., list[Body]]:
    """Evaluates calls into evals.jsonl; returns the requests."""

    def run(*words: object, rows: list[dict[str, Any]] = ROWS) -> list[Body]:
        calls = write(Path("calls.jsonl"), *rows)
        with LoopbackServer(respond=labelled) as server:
            rag_eval(
                "run", calls, "-o", "evals.jsonl", "--max-concurrency", 1, "--overwrite", *words,
                judge=server, code=0,
            )  # fmt: skip
            return list(server.requests)

    return run


def explained(rag_eval: Command, call: str) -> str:
    out: str = rag_eval("explain", "evals.jsonl", "--call", call, code=0).out
    return out


@pytest.mark.parametrize(
    "words", [(), ("--instructions", "Be strict.", "--explanations", "unsupported")]
)
def test_the_prompt_is_the_one_that_was_sent(
    rag_eval: Command, made: Callable[..., list[Body]], words: tuple[str, ...]
) -> None:
    """To the letter, with history, headers and instructions; windows one after the other."""
    requests = made(*words)

    shown = {call: explained(rag_eval, call) for call in ("plain", "talk", "long")}

    assert len(requests) > 3
    for body in requests:
        system, user = (message["content"] for message in body["messages"][:2])
        [call] = [name for name, text in shown.items() if user in text]
        assert system in shown[call]
    assert "[user message of window 2 of 2]" in shown["long"]
    assert shown["plain"].index("[system message]") < shown["plain"].index("[user message]")
    version = "/explanations-1/instructions-" if words else ""
    assert f"Prompt labels-1{version}" in shown["plain"]
    assert "+history-1+headers-1" in shown["talk"]


def test_labels_and_scores_follow(rag_eval: Command, made: Callable[..., list[Body]]) -> None:
    """By the letters of the formulas; no score is left out."""
    made("--relevance-baseline", 4)

    shown = explained(rag_eval, "talk").splitlines()

    assert shown[0].startswith("Call talk: And \\x1b[31mfor children?")
    assert shown[1] == "Judge openai:small, model small, version 1"
    labels = shown[shown.index("Labels") + 1 :]
    assert labels[:3] == [
        "R, relevant: 0a", "U, used: 0a", "a, supported by the documents (0a): So Labels\\x1b[2J",
    ]  # fmt: skip
    scores = labels[5:]
    assert scores[0].startswith("context_relevance 0.25 = |R| / 4: 1 of 2 document sentences")
    assert scores[1].startswith("context_utilization 1.00 = |U| / |R|: ")
    assert scores[2].startswith("completeness 1.00 = |R∩U| / |R|: ")
    assert [line.split()[0] for line in scores[3:]] == [
        "adherence", "supported_fraction", "trace_average",
    ]  # fmt: skip


def test_hostile_texts_do_not_act(rag_eval: Command, made: Callable[..., list[Body]]) -> None:
    """Neither the call's, nor the judge's, nor those of a row that somebody wrote."""
    made("--instructions", "Be \x1b[31mstrict.\r")
    sent = explained(rag_eval, "talk")
    row = json.loads(Path("evals.jsonl").read_text().splitlines()[1])
    row["judge"]["name"] = "x\x1b]0;owned\x07\nLabels"
    row["by"]["prompt_version"] = "labels-1\x1b[31m"
    write(Path("evals.jsonl"), row)
    forged = explained(rag_eval, "talk")

    assert "Be \\x1b[31mstrict." in sent
    for shown in (sent, forged):
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(shown)
        assert shown.count("\nLabels\n") == 1


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("history", "; it lacks `history`."),
        ("document_headers", "; it lacks `document_headers`."),
        (
            "instructions",
            "it would be labels-1+history-1+headers-1; it lacks `judge.instructions`.",
        ),
        ("prompt_version", "No prompt: it was labels-0, and made anew from this row it would be "),
    ],
)
def test_a_row_that_lacks_what_is_needed_says_so(
    rag_eval: Command, made: Callable[..., list[Body]], field: str, said: str
) -> None:
    """No prompt is shown that was not sent; labels and scores are."""
    made("--instructions", "Be strict.")
    row = json.loads(Path("evals.jsonl").read_text().splitlines()[1])
    if field == "prompt_version":
        row["by"]["prompt_version"] = "labels-0"
    else:
        del (row["judge"] if field == "instructions" else row)[field]
    write(Path("evals.jsonl"), row)

    shown = explained(rag_eval, "talk")

    assert "\nNo prompt: it was labels-" in shown
    assert said in shown
    assert "message]" not in shown
    assert "\nLabels\n" in shown


def test_a_row_scored_again_keeps_what_is_needed(
    rag_eval: Command, made: Callable[..., list[Body]]
) -> None:
    """By other formulas, from the labels of the row; headers stand only where there are any."""
    made("--instructions", "Be strict.")
    before = explained(rag_eval, "talk").partition("\nScores")[0]

    rag_eval("score", "evals.jsonl", "-o", "again.jsonl", "--formulas", "ragbench", code=0)
    plain, talk, _ = read(Path("again.jsonl"))
    Path("again.jsonl").replace("evals.jsonl")

    assert explained(rag_eval, "talk").partition("\nScores")[0] == before
    assert "context_utilization 0.50 = |U| / T: " in explained(rag_eval, "talk")
    assert talk.document_headers == ("page: 3", None)
    assert [document.header for document in talk.documents] == ["page: 3", None]
    assert "document_headers" not in plain.model_dump_json()


def test_a_row_of_other_windows_says_so(rag_eval: Command, made: Callable[..., list[Body]]) -> None:
    """As of a call that was halved, or of another `window_characters`."""
    made()
    row = json.loads(Path("evals.jsonl").read_text().splitlines()[2])
    row["by"]["windows"] = 3
    write(Path("evals.jsonl"), row)

    assert "It was sent in 3 windows, by another `window_characters`" in explained(rag_eval, "long")


def test_a_judge_without_a_prompt_says_so(rag_eval: Command) -> None:
    """And a call that failed says why; a call of the same id is shown as well."""
    nobody = {"question": "Why?", "documents": [], "response": "So.", "id": "plain"}
    calls = write(Path("calls.jsonl"), CALL | {"id": "plain"}, nobody, {"question": 5})
    rag_eval("run", calls, "-o", "evals.jsonl", "--skip-invalid")

    shown = explained(rag_eval, "plain")

    assert shown.count("No prompt: the row names no version of the labelling prompt.") == 2
    assert shown.count("\nLabels\n") == shown.count("\nNo labels\n") == 1
    assert "context_relevance unscored (no_context): the call has no documents" in shown
    assert shown.count("Call plain: ") == 2


def test_labels_of_the_reference_are_not_the_calls(
    rag_eval: Command, made: Callable[..., list[Body]]
) -> None:
    """The prompt of `context_recall` is another, and its labels are not in the row."""
    made("--metrics", "context_recall", rows=[CALL | {"id": "plain", "reference": "At nine."}])

    shown = explained(rag_eval, "plain")

    assert "No prompt: the row names no version" in shown
    assert "\nNo labels\n" in shown
    assert "context_recall 1.00: " in shown


def test_an_unknown_call_is_named(rag_eval: Command) -> None:
    """With the id that is meant, if one is near; a bad line is told."""
    calls = write(Path("calls.jsonl"), CALL | {"id": "ferry-17"})
    rag_eval("run", calls, "-o", "evals.jsonl", code=0)
    with Path("evals.jsonl").open("a") as file:
        file.write("{}\n")

    unknown = rag_eval("explain", "evals.jsonl", "--call", "ferry-71", code=2)
    known = rag_eval("explain", "evals.jsonl", "--call", "ferry-17", code=2)
    rag_eval("explain", "evals.jsonl", "--call", "ferry-17", "--skip-invalid", code=0)

    assert "`--call` = 'ferry-71': is the id of none of 1 call in evals.jsonl" in unknown.err
    assert "did you mean 'ferry-17'?" in unknown.err
    assert "1 invalid line left out" in known.err
    assert "Call ferry-17" in known.out
