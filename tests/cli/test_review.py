"""`rag-eval review` in a terminal of 80 columns, and what other commands make of its file."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ferries import Command, Done, ferries, write
from hostile import acting
from report_rows import LONG_WORD, attacks, broken, graded, labelled, oven
from terminals import Terminal, terminal

from rag_eval_integrations.dataset._labels_file import LabelsFile

from .conftest import in_process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this platform has no terminals")

LABELS = Path("labels.jsonl")
OVEN = ("review", "oven.jsonl", "-o", LABELS, "--who", "ann")
ASKED = "b back · q quit"


@pytest.fixture(autouse=True)
def _an_oven(_in_a_folder_of_its_own: None) -> None:
    evaluations(Path("oven.jsonl"), oven(), broken())


def evaluations(path: Path, *rows: Any) -> Path:
    """Write evaluations."""
    return write(path, *(row.model_dump_json().encode() for row in rows))


def answered(keys: str, *words: object) -> tuple[int, str]:
    """Press keys one after the other; return the exit code and what was shown."""
    with terminal(in_process(*(words or OVEN))) as opened:
        for number, key in enumerate(keys, 1):
            opened.until(ASKED, number)
            opened.press(key)
        code, shown = opened.end()
        return code, shown


def answers(who: str = "ann", row_key: str = "") -> dict[str, bool]:
    """What a person said of a call."""
    return LabelsFile(LABELS).calls[row_key or oven().row_key, who].answers


def test_a_call_is_asked_sentence_by_sentence() -> None:
    """Each claim with what the judge named for it, each document sentence with the question."""
    code, shown = answered("nynyyynyny")

    assert code == 0
    assert answers() == {
        "a": False, "b": True, "c": False, "d": True, "e": True,
        "0a": True, "0b": False, "0c": True, "1a": False, "1b": True,
    }  # fmt: skip
    assert shown.count("Question: How fast does the oven heat up?") == 10
    assert (
        "  0a The oven heats up in four minutes.\nAnswer sentence a: It heats up in nine minutes."
        in shown
    )
    assert (
        "The judge names no document sentence; press d for all of them.\nAnswer sentence c:"
        in shown
    )
    assert "Document 1, sentence 1b: The fan runs at every temperature." in shown
    assert shown.count("assistant: The small one.") == 1
    assert shown.endswith("1 of 1 call is labelled whole in labels.jsonl.\n")


def test_back_skip_next_call_documents_and_other_keys() -> None:
    """Back asks again and the new answer counts; what is skipped is asked the next time."""
    with terminal(in_process(*OVEN)) as opened:
        opened.until(ASKED, 1)
        opened.press("yxZ\x1b[Ab")  # `b` alone is a key of ours
        assert "(you said supported)" in opened.until(ASKED, 3)
        opened.press("n")
        opened.until(ASKED, 4)
        opened.press("sd")
        assert "Document 1:\x20manual-2" in opened.until(ASKED, 6)
        opened.press("c")
        code, shown = opened.end()
    assert code == 0
    assert answers() == {"a": False}
    assert "0 of 1 call is labelled whole" in shown

    code, shown = answered("yyyyyyyyy")
    assert "Answer sentence b:" in shown.split(ASKED)[0]
    assert answers() == dict.fromkeys(answers(), True) | {"a": False}
    assert "1 of 1 call is labelled whole" in shown
    assert "Call 1" not in answered("")[1]


def test_keys_that_are_pressed_ahead_count() -> None:
    with terminal(in_process(*OVEN)) as opened:
        opened.until(ASKED, 1)
        opened.press("ynynynynyn")
        assert opened.end()[0] == 0
    assert list(answers().values()) == [True, False] * 5


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_every_answer_is_kept_when_it_is_killed(number: signal.Signals, code: int) -> None:
    """At once, and the same command asks the rest; Ctrl-C says how to go on."""
    with terminal(in_process(*OVEN)) as opened:
        opened.until(ASKED, 1)
        opened.press("yny")
        opened.until(ASKED, 4)
        opened.process.send_signal(number)
        ended, shown = opened.end()
    assert ended == code
    assert ("rag-eval review oven.jsonl -o labels.jsonl --who ann" in shown) == (code == 130)
    assert answers() == {"a": True, "b": False, "c": True}
    answered("yyyyyyy")
    assert len(answers()) == 10


def test_texts_cannot_act_and_fit_into_80_columns() -> None:
    """Of hostile calls, also with a word of 100,000 characters; no line of theirs begins as ours."""
    evaluations(Path("attacks.jsonl"), *(row for row in attacks() if row.question))
    with terminal(in_process("review", "attacks.jsonl", "-o", LABELS, "--n", 500)) as opened:
        opened.until(ASKED, 1)
        number = 1
        while LONG_WORD[:70] not in opened.shown or number < 60:
            opened.press("d")
            number += 1
            opened.until(ASKED, number)
            opened.press("c")
            number += 1
            opened.until(ASKED, number)
        opened.press("q")
        _, shown = opened.end()
    assert acting(shown) == []
    assert max(map(len, shown.splitlines())) <= 80
    assert "\nFAILED: forged line" not in shown
    assert "rag-eval: forged" not in [line.strip() for line in shown.splitlines()]


# --- Which calls


def orders(*words: object) -> list[str]:
    """The questions in the order in which they are asked."""
    with terminal(in_process("review", "many.jsonl", "-o", "none.jsonl", *words)) as opened:
        return list(_questions(opened))


def _questions(opened: Terminal) -> Iterator[str]:
    shown = 1
    while True:
        try:
            question = opened.until(ASKED, shown).split("Question: ")[-1].split("\n")[0]
        except AssertionError:
            return
        yield question
        opened.press("c")
        shown += 1


def many() -> None:
    """Calls of 4 sentences, of which 0, 1, 2, 3 or all are supported."""
    rows = []
    for supported in (4, 0, 3, 1, 2):
        support = tuple((key, "", at < supported, "") for at, key in enumerate("abcd"))
        rows.append(
            labelled(
                f"{supported}",
                ["One."],
                "It is red. It is dry. It is old. It is tall.",
                question=f"{supported}?",
                support=support,
            )
        )
    evaluations(Path("many.jsonl"), *rows)


def test_picks() -> None:
    """The lowest first; nearest to .5 without a standard error; a draw that repeats."""
    many()
    assert orders("--pick", "low") == ["0?", "1?", "2?", "3?", "4?"]
    unsure = orders("--pick", "unsure")
    assert (unsure[0], {*unsure[1:3]}, {*unsure[3:]}) == ("2?", {"1?", "3?"}, {"0?", "4?"})
    assert len({tuple(orders("--seed", seed)) for seed in range(4)}) > 1
    assert orders() == orders("--seed", 0)
    assert orders("--n", 2) == orders()[:2]


def test_unsure_is_near_to_where_the_verdict_changes(rag_eval: Command) -> None:
    """By the standard error of the embedded judge, whose verdict changes far above .5."""
    ferries(Path("calls.jsonl"), 3)
    with Path("calls.jsonl").open("a") as file:
        for answer in (
            "It leaves at nine on every day of the week.",
            "It is blue.",
            "It leaves at ten.",
        ):
            file.write(
                json.dumps(
                    {
                        "question": f"{answer}?",
                        "documents": ["It leaves at nine. It is green."],
                        "response": answer,
                    }
                )
                + "\n"
            )
    rag_eval("run", "calls.jsonl", "-o", "many.jsonl", code=0)
    rows = [json.loads(line) for line in Path("many.jsonl").read_text().splitlines()]
    scores = {row["question"]: row["scores"]["adherence"] for row in rows}
    against = [s["estimate"]["value"] for s in scores.values() if s["value"] == 0]
    cut = (max(against) + min(s["estimate"]["value"] for s in scores.values() if s["value"])) / 2
    far = {
        question: abs(s["estimate"]["value"] - cut) / s["estimate"]["std_error"]
        for question, s in scores.items()
    }
    asked = orders("--pick", "unsure")
    assert [far[question] for question in asked] == sorted(far.values())


# --- Mistakes


def test_without_a_terminal_it_says_so(rag_eval: Command) -> None:
    done = rag_eval(*OVEN, code=2)
    assert (
        done.err
        == "rag-eval: review asks in a terminal, and this is none; run it in one, or make a --page\n"
    )
    assert not LABELS.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pick", "best"), "use random, unsure or low"),
        (("--who", " "), "`--who` = ' ': give your name"),
        (("-o", "oven.jsonl"), "is the input file"),
        (("-o", "broken.jsonl"), "holds something else than people's labels; use another name"),
    ],
)
def test_mistakes_are_told_before_the_first_question(words: tuple[str, ...], said: str) -> None:
    evaluations(Path("broken.jsonl"), broken())
    before = Path("broken.jsonl").read_bytes()
    code, shown = answered("", *OVEN, *words)
    assert (code, said in " ".join(shown.split())) == (2, True), shown
    assert Path("broken.jsonl").read_bytes() == before
    code, shown = answered("", "review", "broken.jsonl", "-o", LABELS)
    assert (code, "no call with labels to correct" in shown) == (2, True)


# --- The file is gold


@pytest.fixture
def gold(rag_eval: Command) -> Path:
    """Twelve calls by the embedded judge, of which a person labelled six, and a second some."""
    evals = Path("evals.jsonl")
    rag_eval("run", ferries(Path("calls.jsonl"), 12), "-o", evals, code=0)
    ask = ("review", evals, "-o", LABELS, "--n", 8)
    with terminal(in_process(*ask, "--who", "ann")) as opened:
        opened.until(ASKED, 1)
        opened.press("yyn" * 3 + "nyn" * 3 + "y" + "q")
        assert "6 of 8 calls are labelled whole" in opened.end()[1]
    with terminal(in_process(*ask, "--who", "ben")) as opened:
        opened.until(ASKED, 1)
        opened.press("nyy" + "y" + "q")
        opened.end()
    return LABELS


def test_agreement_takes_whole_and_partial_calls(rag_eval: Command, gold: Path) -> None:
    """Scores of whole calls, and sentences of half ones; what was not asked has no figure."""
    said = json.loads(rag_eval("agreement", "evals.jsonl", gold, "--json", code=0).out)

    assert said["n"] == 7
    assert said["keys"]["supported"]["n"] == 7
    assert said["keys"]["relevant"]["n"] == 7
    assert said["keys"]["utilized"]["n"] == said["keys"]["supporting"]["n"] == 0
    assert said["keys"]["utilized"]["f1"] is None
    assert said["scores"]["context_relevance"]["n"] == 6
    assert said["scores"]["completeness"]["n"] == 0
    supported, relevant = said["people"]
    assert supported == {
        "people": ["ann", "ben"],
        "kind": "supported",
        "n": 2,
        "same": 0.5,
        "kappa": 0.0,
    }
    assert relevant["same"] == 0.5
    assert relevant["n"] == 2

    printed = rag_eval("agreement", "evals.jsonl", gold, code=0).out
    assert (
        "People: ann and ben, supported: 2 sentences labelled by both, 50% the same, κ 0.000"
        in printed
    )


def test_agreement_of_half_a_call(rag_eval: Command) -> None:
    """Sentence figures only: nobody said whether the other sentences are relevant."""
    answered("nynq")
    said = json.loads(rag_eval("agreement", "oven.jsonl", LABELS, "--json", code=0).out)
    assert said["keys"]["supported"]["unlabelled"] == 2
    assert said["keys"]["supported"]["f1"] == 1.0
    assert said["scores"]["context_relevance"]["n"] == 0


def test_score_and_compare_read_it(rag_eval: Command, gold: Path) -> None:
    """One row for each whole call, by its latest labels; compared as another run."""
    done: Done = rag_eval("score", gold, "-o", "people.jsonl", code=0)
    rows = [json.loads(line) for line in Path("people.jsonl").read_text().splitlines()]
    keys = {json.loads(line)["row_key"] for line in Path("evals.jsonl").read_text().splitlines()}

    assert "Scores by recorded people" in done.out
    assert len(rows) == 6
    assert {row["row_key"] for row in rows} <= keys
    # ben labelled the first call whole, too, and later.
    assert sum(row["scores"]["adherence"]["value"] for row in rows) == 2
    for file in (gold, Path("people.jsonl")):
        compared = rag_eval("compare", "evals.jsonl", file, "--allow-mixed", code=0).out
        assert "adherence            1.000  0.333  -0.667" in compared
        assert "6 calls paired by question" in compared
        assert "made differently" in rag_eval("compare", "evals.jsonl", file, code=2).err


def test_calibrate_reads_it(rag_eval: Command) -> None:
    """With evaluations, and to have a judge asked; what people were not asked is not calibrated."""
    evals = Path("evals.jsonl")
    rag_eval("run", ferries(Path("calls.jsonl"), 40), "-o", evals, code=0)
    with terminal(in_process("review", evals, "-o", LABELS)) as opened:
        opened.until(ASKED, 1)
        opened.press("yyn" * 25 + "yyy" * 15)
        opened.end()
    for files in ((evals, LABELS), (LABELS,)):
        rag_eval("calibrate", *files, "-o", "c.json", "--overwrite", "--target-error", 0.2, code=0)
        (judge,) = json.loads(Path("c.json").read_text())["judges"]
        assert judge["scores"]["context_relevance"]["n"] == 40
        assert "completeness" not in judge["scores"]


def test_a_graded_call_needs_no_estimate() -> None:
    """A judge without probabilities: its calls can be picked, too."""
    evaluations(Path("graded.jsonl"), graded())
    assert answered("yy", "review", "graded.jsonl", "-o", LABELS, "--pick", "unsure")[0] == 0
