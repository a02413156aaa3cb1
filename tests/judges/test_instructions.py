"""The judge's prompt is the user's, too: instructions of their own, and fewer explanations."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from pages import promised_by, run_python

from rag_eval_integrations import CascadeJudge, EmbeddedJudge, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import LLMJudge
from rag_eval_integrations.judges import _prompt as prompt
from rag_eval_integrations.judges.judge import judge_info
from rag_eval_integrations.records import Document, Evaluation, RagCall, Turn
from rag_eval_integrations.testing import ScriptedModel, labels_reply

DOSES = "dosages must match exactly"
CALL = RagCall("How much?", ["Take 5 mg."], "Take 5 mg.")
REPLY = labels_reply(["0a"], ["a"])


def evaluator(**options: Any) -> tuple[ScriptedModel, RagEvaluator]:
    """A model, and an evaluator whose judge asks it."""
    model = ScriptedModel(lambda _: REPLY)
    return model, RagEvaluator(LLMJudge(model, **options))


async def test_the_users_instructions_follow_ours() -> None:
    """Also behind those about history and headers; the data is what it was."""
    model, judging = evaluator(instructions=f" {DOSES}\n")
    call = RagCall(
        "And a child?",
        [Document("Half.", header="leaflet")],
        "Half.",
        history=[Turn(role="user", content="How much?")],
    )

    evaluation = await judging.evaluate(call)
    await judging.evaluate(CALL)

    told = [request.messages[0].content for request in model.requests]
    added = f"\n\nKeep to these instructions, too:\n{DOSES}"
    assert told == [
        f"{prompt.INSTRUCTIONS}{prompt.HISTORY}{prompt.HEADERS}{added}",
        f"{prompt.INSTRUCTIONS}{added}",
    ]
    assert DOSES not in model.requests[1].messages[1].content
    by = evaluation.scores["adherence"].by
    assert by.prompt_version == f"labels-1/instructions-{OF_DOSES}+history-1+headers-1"
    assert by.comparable().prompt_version == f"labels-1/instructions-{OF_DOSES}"


OF_DOSES = hashlib.sha256(f"\n\nKeep to these instructions, too:\n{DOSES}".encode()).hexdigest()[:8]


async def test_they_stand_in_every_evaluation_and_only_where_there_are_any() -> None:
    """Also in that of a call which the judge was not asked about."""
    _, judging = evaluator(instructions=DOSES)
    _, plain = evaluator()

    for call in (CALL, RagCall("How much?", [], "Take 5 mg.")):
        line = (await judging.evaluate(call)).model_dump_json()
        assert Evaluation.model_validate_json(line).judge.instructions == DOSES
        assert "instructions" not in (await plain.evaluate(call)).model_dump_json()
    assert judge_info(LLMJudge(ScriptedModel([]), instructions=DOSES)).instructions == DOSES


def test_another_prompt_is_another_judge() -> None:
    """Version and fingerprint differ, so that nothing is resumed that was asked otherwise."""
    options: list[dict[str, Any]] = [
        {}, {"instructions": DOSES}, {"instructions": "Be strict."}, {"explanations": "unsupported"},
        {"instructions": DOSES, "explanations": "unsupported"},
    ]  # fmt: skip
    made = [evaluator(**each)[1] for each in options]

    assert len({judging.fingerprint for judging in made}) == len(options)
    assert made[0].fingerprint == evaluator(explanations="all")[1].fingerprint
    versions = [getattr(judging.judge, "version", "") for judging in made]
    assert versions[0] == "3-labels-1/1"
    assert versions[4] == f"3-labels-1/explanations-1/instructions-{OF_DOSES}/1"


async def test_only_what_is_not_supported_is_explained() -> None:
    """The words that ask for other explanations are gone; the reply's form stays the same."""
    model, judging = evaluator(explanations="unsupported")

    evaluation = await judging.evaluate(CALL)

    [request] = model.requests
    told = request.messages[0].content
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    version = evaluation.scores["adherence"].by.prompt_version
    assert (version, digest) == ("labels-1/explanations-1", "c3febeec5ce8ccae")
    assert told.count('"".') == 2
    assert "and how." not in told
    assert request.json_schema == prompt.LABELS_SCHEMA


async def test_the_last_of_a_cascade_may_have_them() -> None:
    """Its labelling says so; the first judge's has none."""
    judge = LLMJudge(ScriptedModel(lambda _: REPLY), instructions=DOSES)

    asked = await RagEvaluator(CascadeJudge(EmbeddedJudge(), judge, (0, 1))).evaluate(CALL)
    alone = await RagEvaluator(CascadeJudge(EmbeddedJudge(), judge, (1, 1))).evaluate(CALL)

    assert (asked.judge.name, asked.judge.instructions) == ("scripted", DOSES)
    assert (alone.judge.name, alone.judge.instructions) == ("embedded", None)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"instructions": " \n"}, "has 0 characters; use 1 to 2,000"),
        ({"instructions": "x" * 2_001}, "has 2,001 characters; use 1 to 2,000"),
        ({"explanations": "none"}, "`explanations` = 'none': use all or unsupported"),
    ],
)
def test_mistakes_raise_at_construction(wrong: dict[str, Any], said: str) -> None:
    """Naming the argument, without all of the text."""
    with pytest.raises(ConfigurationError) as error:
        LLMJudge(ScriptedModel([]), **wrong)

    assert said in str(error.value)
    assert len(str(error.value)) < 150
    LLMJudge(ScriptedModel([]), instructions="x" * 2_000)


def test_half_a_character_is_replaced() -> None:
    """As in every text: otherwise the row would have other instructions than the prompt."""
    assert LLMJudge(ScriptedModel([]), instructions="a\ud800").instructions == "a\ufffd"


def test_the_page_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it prints is what its comments say."""
    monkeypatch.chdir(tmp_path)
    run_python("docs/model-judge.md")

    assert capsys.readouterr().out.splitlines() == promised_by("docs/model-judge.md") != []
