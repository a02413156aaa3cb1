"""Evaluators that ask a judge for OK or ERR: compliance, validity, groundedness, agreement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.metrics.geval._expectation import place_of, word_probabilities
from rag_eval_integrations.metrics.prompty.reply import Outcome, read_verdict
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import Completion, CompletionRequest, Message
from rag_eval_integrations.prompt_tests._requests import MARKS, RecordedModel, answered, sections
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import Judged, PromptTest, Rule, Spec

ANSWER = """\
Write your reason first, in at most 20 words. Then, on the next line, write one word: OK or ERR."""

# --- The question that all evaluators ask


_STOPPED = {
    "content_filter": "a content filter stopped the judge",
    "refusal": "the judge refused",
    "length": "the judge's reply was cut off",
}


_ALTERNATIVES = 5
"""Alternatives per token that are asked for; a verdict has two."""
_LEAST_MASS = 0.5
_WORD = re.compile(r"(?<!\w)(?:OK|ERR)(?!\w)", re.IGNORECASE)


async def judged(
    judge: Model,
    instructions: str,
    parts: Mapping[str, str],
    *,
    version: str,
    probability: bool = False,
) -> Judged:
    """Ask a judge for a verdict; a failure gives `unknown` with the reason and raises nothing.

    Args:
        judge: the judge to ask.
        instructions: the system message.
        parts: the material, by name; judged text is never outside of it.
        version: version of the prompt and parser.
        probability: whether to ask for log-probabilities, and so for the verdict's probability; a
            recorded reply without them is used all the same.
    """
    request = CompletionRequest(
        messages=(
            Message(role="system", content=instructions),
            Message(role="user", content=sections(parts)),
        ),
        temperature=0.0,
        prompt_version=version,
    )
    if probability and not (isinstance(judge, RecordedModel) and judge.holds(request)):
        request = request.model_copy(update={"top_logprobs": _ALTERNATIVES})
    try:
        completion = await answered(judge, request)
    except JudgeError as error:
        why = f"{type(error).__name__}: {error}"
        return Judged(outcome="unknown", reason=why, judge=judge.name, failed=True)
    stopped = _STOPPED.get(completion.finish_reason)
    if stopped is not None:
        return Judged(outcome="unknown", reason=stopped, raw=completion.text, judge=judge.name)
    verdict = read_verdict(completion.text)
    return Judged(
        outcome=verdict.outcome,
        reason=verdict.reason,
        raw=completion.text,
        judge=judge.name,
        probability=probability_of_ok(completion, verdict.outcome) if completion.tokens else None,
    )


def probability_of_ok(completion: Completion, outcome: Outcome) -> float | None:
    """Compute P(OK) / (P(OK) + P(ERR)) at the token in which the verdict begins.

    Returns:
        0 to 1; None without a verdict, without usable log-probabilities, or where less than half of
        the probability is on the two words.
    """
    words = [word for word in _WORD.finditer(completion.text) if word[0].lower() == outcome]
    if not words or completion.tokens is None:
        return None
    # The verdict is the reply's end; if other words follow, it stood alone on the first line.
    word = words[-1] if not re.search(r"\w", completion.text[words[-1].end() :]) else words[0]
    place = place_of(completion.text, word.span(), completion.tokens)
    shares = None if place is None else word_probabilities(completion.tokens, place)
    if not isinstance(shares, dict):
        return None
    sums = {"ok": 0.0, "err": 0.0}
    for spelled, share in shares.items():
        begins = re.sub(r"[\W_]+", "", spelled).lower()
        for name in sums:
            # A tokenizer may write ERR in two tokens, or as the beginning of `error`.
            if begins and (name.startswith(begins) or begins.startswith(name)):
                sums[name] += share
    mass = sums["ok"] + sums["err"]
    return sums["ok"] / mass if mass >= _LEAST_MASS and sums[outcome] else None


# --- Test Non-Compliance: does an output comply with the rules or the prompt?


Basis = Literal["rules", "prompt"]

RULES = f"""\
You check whether the output of an assistant keeps the rules that were set for it. You are given \
the rules{{shown}} and the output.

Go by the rules alone, not by what you would have answered. Only what the output itself shows \
counts: a rule that does not apply here is kept, and a rule that cannot be checked from what you \
are given is left aside. You do not check whether the output is right, only whether it has the \
form and the kind of content that the rules ask for. One broken rule is enough for ERR; if every \
rule is kept, it is OK.

{ANSWER}

{MARKS}"""

PROMPT = f"""\
You check whether the output of an assistant is one that its prompt allows. You are given the \
prompt{{shown}} and the output.

Go by the prompt alone, not by what you would have answered. Only what the output itself shows \
counts: leave aside whatever cannot be checked from what you are given. You do not check whether \
the output is right, only whether it has the form and the kind of content that the prompt asks \
for. One clear violation is enough for ERR; without any, it is OK.

{ANSWER}

{MARKS}"""


@dataclass(frozen=True)
class NonCompliance:
    """Asks a judge whether an output complies with the rules or the prompt.

    Args:
        basis: `rules` for the output rules and the input specification, as in PromptPex's paper;
            `prompt` for the prompt's text, as in PromptPex's code.
        see_input: whether the judge sees the test's input; by default only with `rules`.

    Raises:
        ConfigurationError: for another basis.
    """

    basis: Basis = "rules"
    see_input: bool | None = None

    def __post_init__(self) -> None:
        if self.basis not in get_args(Basis):
            raise ConfigurationError("basis", self.basis, f"use {' or '.join(get_args(Basis))}")

    def check(self, prompt: PromptUnderTest, spec: Spec) -> None:
        """Check, before the first request, that there is something to judge by.

        Raises:
            ConfigurationError: for `basis="rules"` without output rules.
        """
        if self.basis == "rules" and not spec.output_rules:
            why = f"{prompt.name} has no output rules; write some, or use 'prompt'"
            raise ConfigurationError("basis", self.basis, why)

    async def judge(
        self, prompt: PromptUnderTest, spec: Spec, test: PromptTest, output: str, judge: Model
    ) -> Judged:
        """Judge one output; an empty output does not comply, and no judge is asked."""
        if not output.strip():
            return Judged(outcome="err", reason="the output is empty")
        see_input = self.basis == "rules" if self.see_input is None else self.see_input
        if self.basis == "prompt":
            template, words, parts = PROMPT, "", {"prompt": prompt.text}
        else:
            template, words = RULES, ", a description of valid inputs"
            rules = (f"{n}. {rule.text}" for n, rule in enumerate(spec.output_rules, start=1))
            described = spec.input_spec_text or "(not described)"
            parts = {"rules": "\n".join(rules), "valid input": described}
        if see_input:
            words, parts["input"] = f"{words}, the input", test.testinput
        parts["output"] = output
        version = f"noncompliance-1/{self.basis}"
        instructions = template.format(shown=words)
        return await judged(judge, instructions, parts, version=version, probability=True)


# --- Input validity: does the input specification allow a test's input?


_VALIDITY_INSTRUCTIONS = f"""\
You check whether an input is one that an assistant accepts. You are given a description of its \
valid inputs and one input. Go by the description alone; what it does not speak of is allowed. OK \
if the input keeps all of the description, ERR if it breaks any part.

{ANSWER}

{MARKS}"""


class InputValidity:
    """Asks a judge whether a test's input is valid."""

    async def judge(self, spec: Spec, test: PromptTest, judge: Model) -> Judged:
        """Judge one test; `unknown` without an input specification."""
        if not spec.input_spec:
            return Judged(outcome="unknown", reason="there is no input specification")
        parts = {"valid input": spec.input_spec_text, "input": test.testinput}
        return await judged(judge, _VALIDITY_INSTRUCTIONS, parts, version="validity-1")


# --- Rule groundedness: does the prompt support an output rule?


_GROUNDEDNESS_INSTRUCTIONS = f"""\
You check whether a rule was taken from a prompt. You are given the prompt of an assistant and one \
rule about the assistant's output. OK if the prompt says the rule or clearly implies it, ERR if \
the rule adds something, changes something or contradicts the prompt.

{ANSWER}

{MARKS}"""


class RuleGroundedness:
    """Asks a judge whether the prompt states or implies a rule."""

    async def judge(self, prompt: PromptUnderTest, rule: Rule, judge: Model) -> Judged:
        """Judge one rule."""
        parts = {"prompt": prompt.text, "rule": rule.text}
        return await judged(judge, _GROUNDEDNESS_INSTRUCTIONS, parts, version="groundedness-1")


# --- Spec agreement: does the extracted specification alone lead to a compliant answer?


_AGREEMENT_INSTRUCTIONS = """\
{intent}

Answer the user's input. Your answer has to keep these rules:
{rules}"""


class SpecAgreement:
    """Asks a judge whether answers made from the specification alone comply with the prompt."""

    async def judge(
        self,
        prompt: PromptUnderTest,
        spec: Spec,
        test: PromptTest,
        model: Model,
        judge: Model,
    ) -> tuple[Judged, str]:
        """Answer one test from the specification and judge the answer.

        Args:
            prompt: the prompt under test.
            spec: its specification.
            test: the test.
            model: model that answers.
            judge: model that judges the answer by the prompt.

        Returns:
            The verdict and the answer; `unknown` and an empty answer if the model fails.
        """
        system = _AGREEMENT_INSTRUCTIONS.format(
            intent=spec.intent or "You are an assistant.",
            rules="\n".join(f"- {rule.text}" for rule in spec.output_rules),
        )
        request = CompletionRequest(
            messages=(
                Message(role="system", content=system),
                Message(role="user", content=test.testinput),
            ),
            prompt_version="agreement-1",
        )
        try:
            answer = (await answered(model, request)).text
        except JudgeError as error:
            why = f"{type(error).__name__}: {error}"
            return Judged(outcome="unknown", reason=why, judge=model.name, failed=True), ""
        return await NonCompliance("prompt").judge(prompt, spec, test, answer, judge), answer
