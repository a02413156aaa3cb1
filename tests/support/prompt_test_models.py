"""A scripted generator for a small prompt, and results by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.prompt_tests import PromptTest, Report, Result, Rule, Spec
from rag_eval_integrations.prompt_tests.records import Judged, MetricResult, RuleCheck
from rag_eval_integrations.testing import Reply, ScriptedModel

PROMPT = "---\nname: Shout\n---\nsystem:\nRepeat the text in capitals.\nuser:\n{{text}}\n"


def stage_of(request: CompletionRequest) -> str:
    """The stage that asks, by the version of its prompt."""
    return (request.prompt_version or "").rpartition("-")[0]


def generator(**replies: Reply | Callable[[CompletionRequest], Reply]) -> ScriptedModel:
    """Answers each stage with what is given for it (`input_spec` for the stage `input-spec`)."""
    usual: dict[str, Reply | Callable[[CompletionRequest], Reply]] = {
        "intent": "Repeats text in capitals.",
        "input_spec": '{"rules": ["The input is any text."]}',
        "rules": '{"rules": ["The output is in capitals.", "The output repeats the input."]}',
        "inverse_rules": '{"inverse": [{"number": 1, "text": "The output is in small letters."}, '
        '{"number": 2, "text": "The output is something new."}]}',
        "tests": reply_with_tests,
        "baseline": "one\n===\ntwo\n===\nthree\n===\nfour",
    }

    def reply(request: CompletionRequest) -> Reply:
        given = {**usual, **replies}[stage_of(request).replace("-", "_")]
        return given(request) if callable(given) else given

    return ScriptedModel(reply, name="generator")


def reply_with_tests(request: CompletionRequest) -> str:
    """One test for every rule that is asked about."""
    section = request.messages[1].content.split("<<<rules ")[1].split(">>>")[0]
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", section, re.MULTILINE)]
    tests = [
        {"rule": n, "inputs": {"text": f"text {n}"}, "expected": f"TEXT {n}", "reasoning": "plain"}
        for n in numbers
    ]
    return json.dumps({"tests": tests})


def make_result(
    outcome: str | None = "ok", *, model: str = "m", uid: str = "t", error: str | None = None,
    **test: object,
) -> Result:  # fmt: skip
    """A result with a verdict."""
    made = PromptTest.model_validate({"uid": uid, "inputs": {"text": "x"}, "rule_id": 1, **test})
    judged = None if outcome is None else Judged.model_validate({"outcome": outcome, "judge": "j"})
    return Result(
        test=made, model=model, output="" if error else "out", error=error, compliance=judged
    )


def planted(text: str) -> Report:
    """A report with the text in every place where users' text enters."""
    names = ("uid", "rule", "scenario", "expected", "reasoning", "groundtruth")
    fields: dict[str, Any] = dict.fromkeys(names, text)
    made = make_result("err", model=text, inputs={text: text}, **fields)
    judged = Judged(outcome="err", reason=text, raw=f"{text}.", judge=text)
    result = made.model_copy(
        update={
            "output": text, "compliance": judged, "contexts": (text,),
            "others": (judged.model_copy(update={"judge": f"{text}2"}),), "prompt_id": text,
            "metrics": (
                MetricResult(metric=text, judge=text, score=50),
                MetricResult(metric=text, judge=f"{text}2", problem=text),
            ),
        }
    )  # fmt: skip
    failed = make_result(None, model=f"{text}3", error=text, uid="e")
    rule = Rule(id=1, text=text)
    grounded = RuleCheck(rule=rule, grounded=Judged(outcome="unknown", reason=text))
    spec = Spec(intent=text, input_spec=(text,), rules=(rule,))
    return Report(text, [result, failed], spec, rule_checks=[grounded])
