"""People's labels: which calls are asked, what is kept of each answer, and what it is as gold."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from by_hand import labels_of
from hypothesis import given
from hypothesis import strategies as st
from report_rows import broken, evaluations, labelled, oven

from rag_eval_integrations import Evaluation, Trace
from rag_eval_integrations.dataset import labelled_from, read_calls, score_labelled
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset._labels_file import (
    Draw,
    LabelsFile,
    LabelsWriter,
    Population,
    asked,
    labels_in,
    random_order,
)
from rag_eval_integrations.dataset.calls import read_labelled
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.sentences import Punkt

PATH = Path("labels.jsonl")
DRAW = Draw("random", 2, 0, Population.of(["k"]))
OVEN_ANSWERS = dict.fromkeys(("a", "c", "0b", "1a"), False) | dict.fromkeys(
    ("b", "d", "e", "0a", "0c", "1b"), True
)


def now() -> datetime:
    return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


writer = partial(LabelsWriter, now=now)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def label(
    evaluation: Evaluation, answers: dict[str, bool], who: str = "ann", path: Path = PATH
) -> None:
    """Give the answers of a person."""
    with writer(path, who, DRAW) as labels:
        for key, said in answers.items():
            labels.answer(evaluation, key, said)


def gold() -> list[Evaluation]:
    """Score the file as `rag-eval score` does."""
    read = partial(labelled_from, splitter=Punkt())
    lines = list(read_labelled(Input(PATH), read, tell=pytest.fail))
    assert not [line.error for line in lines if line.error]
    return [score_labelled(line.value, [Trace()]) for line in lines if line.value]


# --- The draw


@given(st.lists(st.text("abc", max_size=2), max_size=12), st.integers(), st.randoms())
def test_a_draw_is_of_the_calls_and_not_of_the_file(
    keys: list[str], seed: int, random: Any
) -> None:
    """Every call once, in an order that neither the file's own nor more calls of it change."""
    order = [keys[place] for place in random_order(keys, seed)]
    mixed = random.sample(keys, len(keys))
    more = [*mixed, "z"]

    assert sorted(order) == sorted(keys)
    assert [mixed[place] for place in random_order(mixed, seed)] == order
    assert [more[place] for place in random_order(more, seed) if more[place] != "z"] == order


def test_each_call_is_drawn_alike_often() -> None:
    """Over 3,000 seeds, each of ten calls comes first 300 times, within 5 standard errors (83)."""
    firsts = [random_order([f"{n}" for n in range(10)], seed)[0] for seed in range(3_000)]
    assert all(abs(firsts.count(place) - 300) < 83 for place in range(10))


def test_people_are_asked_what_counts() -> None:
    """Claims, and this turn's document sentences; nothing of a failed call."""
    call = oven()
    sources = call.sentences.model_copy(update={"not_claims": ("e",)})
    later = call.model_copy(update={"earlier": (0,), "sentences": sources})

    assert [s.key for s in asked(call)] == ["a", "b", "c", "d", "e", "0a", "0b", "0c", "1a", "1b"]
    assert [s.key for s in asked(later)] == ["a", "b", "c", "d", "1a", "1b"]
    assert asked(broken()) == []


# --- What is kept


def test_each_answer_is_a_line_and_a_whole_call_is_one_too() -> None:
    """With what it was drawn by; the row has RAGBench's columns, and none that was not asked."""
    label(oven(), OVEN_ANSWERS)
    *answers, whole = [json.loads(line) for line in PATH.read_text().splitlines()]

    assert len(answers) == 10
    assert answers[0] == {
        "row_key": oven().row_key, "id": "oven", "key": "a", "label": False, "who": "ann",
        "when": "2026-01-02T03:04:05+00:00", "pick": "random", "n": 2, "seed": 0,
        "population": {"size": 1, "digest": DRAW.population.digest},
    }  # fmt: skip
    assert whole["all_relevant_sentence_keys"] == ["0a", "0c", "1b"]
    assert whole["unsupported_response_sentence_keys"] == ["a", "c"]
    assert whole["all_utilized_sentence_keys"] is None
    assert whole["documents_sentences"][1][0] == ["1a", "A tray fits at three heights."]
    assert not {"adherence_score", "overall_supported", "utilization_score"} & whole.keys()
    assert PATH.stat().st_mode & 0o077 == 0


def test_a_correction_replaces_and_two_people_stand_beside_each_other() -> None:
    """Nothing is taken out of the file; each person's latest answer counts."""
    label(oven(), OVEN_ANSWERS)
    label(oven(), {"a": True}, "ben")
    label(oven(), {"a": True})
    read = LabelsFile(PATH)
    ann, ben = (read.calls[oven().row_key, who] for who in ("ann", "ben"))

    assert len(PATH.read_text().splitlines()) == 14
    assert ann.answers == OVEN_ANSWERS | {"a": True}
    assert ann.whole is not None
    assert ann.whole["unsupported_response_sentence_keys"] == ["c"]
    assert (ben.answers, ben.whole) == ({"a": True}, None)
    assert (list(read.gold()), read.partial()) == ([oven().row_key], {})
    assert list(ann.draws) == [DRAW]


def test_a_torn_line_is_cut_off_and_the_rest_is_kept() -> None:
    """As a killed process or a full disk leaves it; a whole line without its end is kept."""
    label(oven(), {"a": True})
    before = PATH.read_bytes()
    for rest, kept in (
        (b'{"row_k', before), (before[:70], before), (before[:-1], before + before),
    ):  # fmt: skip
        PATH.write_bytes(before + rest)
        label(oven(), {"b": True})
        assert PATH.read_bytes().startswith(kept + b'{"row_key":')
        assert LabelsFile(PATH).calls[oven().row_key, "ann"].answers == {"a": True, "b": True}
        assert not LabelsFile(PATH).bad


@pytest.mark.parametrize(
    "content",
    [
        oven().model_dump_json().encode(),
        b"question,response\n",
        b"\x1f\x8b\x08",
        b'{"row_key":"k","who":"ann"}\n',
        b'{"row_key":"k","who":"ann","key":"a","label":1,"when":"","pick":"low","n":1,"seed":0,'
        b'"population":{"size":1,"digest":""}}\n',
    ],
)
def test_another_kind_of_file_is_refused_as_it_is(content: bytes) -> None:
    PATH.write_bytes(content)
    with pytest.raises(ConfigurationError, match="something else than people's labels"):
        writer(PATH, "ann", DRAW)
    assert PATH.read_bytes() == content


def test_links_are_followed_and_nothing_else_than_a_file_is_written() -> None:
    """The link stays; a FIFO, a folder and a file that another process writes are refused."""
    PATH.symlink_to("target.jsonl")
    label(oven(), {"a": True})
    assert PATH.is_symlink()
    assert len(Path("target.jsonl").read_text().splitlines()) == 1

    os.mkfifo("fifo")
    for name in ("fifo", "."):
        with pytest.raises(ConfigurationError, match="use a regular file"):
            writer(Path(name), "ann", DRAW)
    with (
        writer(PATH, "ann", DRAW),
        pytest.raises(ConfigurationError, match="written by another process"),
    ):
        writer(PATH, "ben", DRAW)


def test_what_was_labelled_before_belongs_to_a_later_draw_too() -> None:
    """Without another answer: the row is written once more, under that draw."""
    label(oven(), OVEN_ANSWERS)
    later = DRAW._replace(pick="low")
    for _ in range(2):
        with writer(PATH, "ann", later) as labels:
            assert labels.is_whole(oven())
            labels.add_to_draw(oven())
    assert len(PATH.read_text().splitlines()) == 12
    assert list(LabelsFile(PATH).calls[oven().row_key, "ann"].draws) == [DRAW, later]


# --- What it is as gold


def naive(evaluation: Evaluation, answers: dict[str, bool]) -> dict[str, float]:
    """Count the answers by hand."""
    claims = [answers[s.key] for s in evaluation.sentences.claims]
    own = [answers[s.key] for s in asked(evaluation) if s.key[0].isdigit()]
    return {
        "adherence": float(all(claims)),
        "supported_fraction": sum(claims) / len(claims) if claims else 1.0,
        "context_relevance": sum(own) / len(own) if own else 0.0,
    }


UNASKED = ("context_utilization", "completeness", "trace_average")


@given(st.data())
def test_a_whole_call_scores_as_its_answers_say(data: st.DataObject) -> None:
    """Of any of our own rows; what was not asked is unscored with the reason, and never 0."""
    call = data.draw(st.sampled_from([each for each in evaluations() if asked(each)]))
    numbers = sorted(
        {int(s.key.rstrip("abcdefghijklmnopqrstuvwxyz")) for s in call.sentences.documents}
    )
    call = call.model_copy(
        update={"earlier": tuple(numbers[1:] if data.draw(st.booleans()) else ())}
    )
    answers = {s.key: data.draw(st.booleans()) for s in asked(call)}
    PATH.unlink(missing_ok=True)
    label(call, answers)
    (made,) = gold()

    assert (made.id, made.row_key) == (call.id, call.row_key)
    scores = {name: made.scores[name].value for name in naive(call, answers)}
    if call.response is not None and call.sentences.claims and call.question.strip():
        assert scores == pytest.approx(naive(call, answers))
    for name in UNASKED:
        assert made.scores[name].unscored is not None
    assert [line.value for line in read_evaluations(PATH)] == [
        made.model_copy(update={"flags": line.value.flags})
        for line in read_evaluations(PATH)
        if line.value
    ]


def test_the_reason_says_what_was_not_asked() -> None:
    label(oven(), OVEN_ANSWERS)
    (made,) = gold()
    why = "people were not asked which sentences the response used"
    assert made.scores["context_utilization"].reason == why
    assert made.scores["completeness"].unscored == "unlabelled_sentences"
    assert Evaluation.model_validate_json(made.model_dump_json()) == made


def test_the_latest_whole_row_of_a_call_is_its_gold() -> None:
    """Whoever gave it; a call that is half labelled is no row. So it is for readers of calls."""
    label(oven(), OVEN_ANSWERS)
    label(oven(), dict.fromkeys(OVEN_ANSWERS, True), "ben")
    other = labelled("other", ["Oil stops the squeak."], "Oil it.")
    label(other, {"a": True})

    assert [made.scores["adherence"].value for made in gold()] == [1.0]
    assert [line.value.id for line in read_calls(PATH) if line.value] == ["oven"]
    assert [line.error for line in read_calls(PATH)] == [None]


def test_other_files_are_read_as_they_were(tmp_path: Path) -> None:
    """A bad line in people's labels is told; a folder and gold of others are no labels."""
    label(oven(), OVEN_ANSWERS)
    with PATH.open("ab") as file:
        file.write(b"{]\n")
    assert [line.error is None for line in read_calls(PATH)] == [True, False]

    rows = Path("rows.jsonl")
    call = labels_of(["0a"], ["0a"], {"a": (["0a"], True, "")})
    row = {
        "question": "q",
        "documents": ["d."],
        "response": "r.",
        "who": "x",
        "labels": call.model_dump(mode="json"),
    }
    rows.write_text(f"{json.dumps(row)}\n" * 2)
    assert labels_in(rows) is labels_in(tmp_path) is None
    assert len(list(read_calls(rows))) == 2
