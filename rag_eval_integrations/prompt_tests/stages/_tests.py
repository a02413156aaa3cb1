"""Test generation: baseline tests, expansion of tests, and tests of rules."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_eval_integrations.errors import JudgeError, JudgeOutputError
from rag_eval_integrations.models import Model
from rag_eval_integrations.models._reading import unfenced
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.prompt_tests._cleaning import json_in
from rag_eval_integrations.prompt_tests._requests import (
    MARKS,
    ask,
    dialogue,
    forget,
    sections,
    with_author,
)
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, Spec, make_uid
from rag_eval_integrations.prompt_tests.stages._read_tests import read_tests
from rag_eval_integrations.prompt_tests.stages._spec import describe_inputs, samples_text
from rag_eval_integrations.records import JsonObject

# --- Baseline tests: made from the prompt without rules, for comparison


_BASELINE_VERSION = "baseline-1"

_BASELINE_INSTRUCTIONS = f"""\
You are given the prompt of an assistant and the names of its inputs. Write {{count}} different \
inputs to test it with. {{form}} Put a line with only === between two tests, and write nothing else.

{MARKS}"""

_ONE = "Write each input as it would be typed, without quotes or a name in front."
_SEVERAL = "Write each test as one JSON object with a field for every input."
_PARTED = re.compile(r"^[ \t]*={3,}[ \t]*$", re.MULTILINE)
_TITLE = re.compile(
    r"\A\W*test(?:[ \t]*case)?[ \t]*\d+\W*(?:\n|\Z)"
    r"|\A[#*\s]*test(?:[ \t]*case)?[ \t]*\d+\**:[ \t:*]*",
    re.IGNORECASE,
)


async def write_baseline(prompt: PromptUnderTest, model: Model, count: int) -> list[PromptTest]:
    """Ask for tests that are made without rules.

    Args:
        prompt: the prompt under test.
        model: the generator.
        count: number of tests; nothing is asked for 0.

    Returns:
        At most `count` tests.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """
    if count < 1:
        return []
    form = _ONE if len(prompt.inputs) == 1 else _SEVERAL
    parts = sections({"prompt": prompt.text, "inputs": describe_inputs(prompt)})

    def read(text: str) -> list[PromptTest]:
        tests = read_baseline(text, prompt)[:count]
        if not tests:
            raise JudgeOutputError("the generator wrote no baseline tests", text)
        return tests

    return await ask(
        model,
        dialogue(_BASELINE_INSTRUCTIONS.format(count=count, form=form), parts),
        read,
        version=_BASELINE_VERSION,
        again=f"Write {count} inputs, with a line === between them, and nothing else.",
    )


def read_baseline(text: str, prompt: PromptUnderTest) -> list[PromptTest]:
    """Read baseline tests that are separated by lines of ===, or a JSON list of tests."""
    tests: dict[str, PromptTest] = {}
    content = json_in(text)
    lists = isinstance(content, dict) and any(isinstance(one, list) for one in content.values())
    if lists or isinstance(content, list):
        found = read_tests(text, prompt).tests
    else:
        found = []
        for part in _PARTED.split(unfenced(text)):
            bare = _TITLE.sub("", part.strip()).strip()
            if bare:
                found += _one(bare, prompt)
    for test in found:
        tests.setdefault(test.uid, test)
    return list(tests.values())


def baseline_text(tests: list[PromptTest]) -> str:
    """Write tests as a text that `read_baseline` can read: separated by lines of ===."""
    return "\n===\n".join(test.testinput for test in tests) + "\n"


def _one(text: str, prompt: PromptUnderTest) -> list[PromptTest]:
    if len(prompt.inputs) > 1:
        return read_tests(text, prompt).tests
    return read_tests(json.dumps([{"testinput": text}]), prompt).tests


# --- Expansion: longer and more realistic versions of tests


_EXPAND_VERSION = "expand-1"

_EXPAND_INSTRUCTIONS = f"""\
You make a test of an assistant longer and more like real use. You are given what the assistant is \
for, the rules of its output, the rule that this test tries, and the test's inputs. Write the same \
inputs again, at least twice as long, richer in detail and still valid, so that they try the same \
rule. Reply with a JSON object that has exactly the same fields as the inputs.

{MARKS}"""


async def expand_test(
    test: PromptTest, prompt: PromptUnderTest, spec: Spec, model: Model
) -> PromptTest:
    """Ask for a longer version of a test; the original inputs are kept in `original`.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """
    parts = {
        "purpose": spec.intent,
        "rules": spec.rules_text,
        "rule": test.rule,
        "inputs": json.dumps(test.inputs, ensure_ascii=False, indent=1),
    }
    if prompt.samples:
        parts["samples"] = samples_text(prompt, 5)
    system = with_author(_EXPAND_INSTRUCTIONS, prompt.instructions.get("testExpansion"))

    def read(text: str) -> JsonObject:
        content = json_in(text)
        if not isinstance(content, dict) or set(content) != set(test.inputs):
            raise JudgeOutputError("the generator did not write a longer version of the test", text)
        return content

    inputs = await ask(
        model,
        dialogue(system, sections(parts)),
        read,
        version=_EXPAND_VERSION,
        again=f"Reply with one JSON object with the fields {', '.join(test.inputs)}.",
        schema={
            "type": "object",
            "properties": {name: {"type": "string"} for name in test.inputs},
            "required": list(test.inputs),
            "additionalProperties": False,
        },
    )
    uid = make_uid(
        rule=test.rule, inverse=test.inverse, inputs=inputs, scenario=test.scenario,
        baseline=test.baseline,
    )  # fmt: skip
    original = test.original if test.original is not None else test.inputs
    return test.model_copy(update={"inputs": inputs, "uid": uid, "original": original})


# --- Tests of rules: inputs on which an output is likely to break a rule


_TESTS_VERSION = "tests-1"

_TESTS_INSTRUCTIONS = f"""\
You test an assistant through its input. You are given its prompt, a description of its valid \
inputs, and numbered rules. Write {{count}} for every rule: inputs on which an assistant that does \
not keep the rule is found out. Some rules contradict the prompt on purpose; inputs for these are \
such that a careless assistant would follow the contradiction.

First understand what a valid input is: every input you write has to be one, complete, as a user \
would write it. Vary topic, length and form, go to the edges of what is valid, and write none twice.

For every test say the rule's number, the inputs, the output you expect of an assistant that keeps \
to its prompt, and in a few words what the test tries.{{scenario}}

Reply with a JSON object {{{{"tests": [{{{{"rule": 1, "inputs": {{{{…}}}}, "expected": "…", \
"reasoning": "…"}}}}, …]}}}}.

{MARKS}"""


@dataclass(frozen=True)
class RuleGroup:
    """Rules whose tests are generated in one request, for one scenario."""

    rules: tuple[Rule, ...]
    scenario: Scenario | None = None

    @property
    def inverse(self) -> bool:
        """Whether all of its rules are inverse."""
        return all(rule.inverse for rule in self.rules)


@dataclass(frozen=True)
class GeneratedTests:
    """The tests of one group of rules."""

    tests: list[PromptTest] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Reasons why tests were left out, one sentence per test."""


def rule_groups(
    spec: Spec,
    scenarios: Sequence[Scenario] = (),
    *,
    split: bool = True,
    most: int = 3,
    max_rules: int | None = None,
) -> list[RuleGroup]:
    """Divide rules into groups.

    Args:
        spec: rules and inverse rules.
        scenarios: scenarios; there is a group per scenario. Empty for no scenario.
        split: whether rules and inverse rules are in separate groups.
        most: maximum number of rules per group, from 1.
        max_rules: maximum number of rules, and of inverse rules; None for all.
    """
    direct, inverse = spec.output_rules[:max_rules], spec.inverse_rules[:max_rules]
    kinds = [direct, inverse] if split else [(*direct, *inverse)]
    chunks = [kind[at : at + most] for kind in kinds for at in range(0, len(kind), most)]
    return [RuleGroup(chunk, scenario) for scenario in (scenarios or (None,)) for chunk in chunks]


async def write_tests(
    prompt: PromptUnderTest,
    spec: Spec,
    group: RuleGroup,
    model: Model,
    *,
    per_rule: int = 3,
    generations: int = 1,
) -> GeneratedTests:
    """Ask for the tests of one group of rules, and once more after a reply without tests.

    Args:
        prompt: the prompt under test.
        spec: its specification.
        group: the rules.
        model: the generator.
        per_rule: tests per rule in each round.
        generations: rounds of test generation, in one chat.

    Raises:
        JudgeError: when the model does not answer.
    """
    written = GeneratedTests()
    messages = _question(prompt, spec, group, per_rule)
    for generation in range(generations):
        found: list[PromptTest] = []
        requests: list[CompletionRequest] = []
        for attempt in (1, 2):
            request = CompletionRequest(
                messages=messages,
                json_schema=_schema(prompt),
                schema_name="tests",
                prompt_version=_TESTS_VERSION,
            )
            requests.append(request)
            try:
                completion = await model.complete(request)
            except JudgeError as error:
                if not written.tests:
                    raise
                numbers = ", ".join(str(rule.id) for rule in group.rules)
                round_ = f"round {generation + 1} of the tests of rule {numbers}"
                written.lost.append(f"{round_} is missing: {error}")
                return written
            reading = read_tests(completion.text, prompt, group.rules, group.scenario, generation)
            written.lost.extend(reading.lost)
            found = reading.tests
            messages = (
                *messages,
                Message(role="assistant", content=completion.text or "(nothing)"),
            )
            if found or attempt == 2:
                break
            messages = (*messages, Message(role="user", content=_AGAIN))
        if not found:
            numbers = ", ".join(str(rule.id) for rule in group.rules)
            written.lost.append(f"no tests were written for rule {numbers}")
            forget(model, requests)
            break
        known = {test.uid for test in written.tests}
        written.tests.extend(test for test in found if test.uid not in known)
        more = f"Write {per_rule} more for every rule, none like those above; same form."
        messages = (*messages, Message(role="user", content=more))
    return written


_AGAIN = """\
There is no usable test in that. Reply with one JSON object {"tests": [...]} in which every test \
has all of the inputs."""


def _question(
    prompt: PromptUnderTest, spec: Spec, group: RuleGroup, per_rule: int
) -> tuple[Message, ...]:
    scenario = ""
    if group.scenario is not None and group.scenario.instructions:
        scenario = f"\n\nAll tests are for this situation: {group.scenario.instructions}"
    count = "one test" if per_rule == 1 else f"{per_rule} tests"
    fixed = dict(group.scenario.parameters) if group.scenario else {}
    parts = {
        "prompt": prompt.text,
        "valid input": spec.input_spec_text,
        "inputs": describe_inputs(prompt),
        "rules": "\n".join(f"{rule.id}. {rule.text}" for rule in group.rules),
    }
    if fixed:
        parts["inputs that are given"] = json.dumps(fixed, ensure_ascii=False)
    if prompt.samples:
        parts["samples"] = samples_text(prompt, 5)
    return dialogue(_TESTS_INSTRUCTIONS.format(count=count, scenario=scenario), sections(parts))


def _schema(prompt: PromptUnderTest) -> JsonObject:
    inputs: JsonObject = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in prompt.inputs},
        "required": list(prompt.inputs),
        "additionalProperties": False,
    }
    test: JsonObject = {
        "type": "object",
        "properties": {
            "rule": {"type": "integer"},
            "inputs": inputs,
            "expected": {"type": "string"},
            "reasoning": {"type": "string"},
        },
        "required": ["rule", "inputs", "expected", "reasoning"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"tests": {"type": "array", "items": test}},
        "required": ["tests"],
        "additionalProperties": False,
    }
