"""Stage 5: inputs that try the prompt on its rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_eval_integrations.judges import Completer
from rag_eval_integrations.judges.completion import CompletionRequest, Message
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, Spec
from rag_eval_integrations.prompt_tests.sections import MARKS, sections
from rag_eval_integrations.prompt_tests.stages.asking import dialogue, forget
from rag_eval_integrations.prompt_tests.stages.input_spec import describe_inputs, samples_text
from rag_eval_integrations.prompt_tests.stages.read_tests import read_tests
from rag_eval_integrations.records import JsonObject

VERSION = "tests-1"

INSTRUCTIONS = f"""\
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
class Group:
    """Rules whose tests are asked for together: all rules, or all inverse rules."""

    rules: tuple[Rule, ...]
    scenario: Scenario | None = None

    @property
    def inverse(self) -> bool:
        """Whether all of its rules are inverse ones."""
        return all(rule.inverse for rule in self.rules)


@dataclass(frozen=True)
class Written:
    """Tests of one group, and what was lost on the way."""

    tests: list[PromptTest] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """One sentence each."""


def groups_of(
    spec: Spec,
    scenarios: Sequence[Scenario] = (),
    *,
    split: bool = True,
    most: int = 3,
    max_rules: int | None = None,
) -> list[Group]:
    """Divide rules into groups.

    Args:
        spec: rules and inverse rules.
        scenarios: each group is asked for in each of them.
        split: rules and inverse rules in groups of their own.
        most: rules in a group, from 1.
        max_rules: only the first so many rules, and as many inverse ones.
    """
    direct, inverse = spec.output_rules[:max_rules], spec.inverse_rules[:max_rules]
    kinds = [direct, inverse] if split else [(*direct, *inverse)]
    chunks = [kind[at : at + most] for kind in kinds for at in range(0, len(kind), most)]
    return [Group(chunk, scenario) for scenario in (scenarios or (None,)) for chunk in chunks]


async def write_tests(
    prompt: PromptUnderTest,
    spec: Spec,
    group: Group,
    model: Completer,
    *,
    per_rule: int = 3,
    generations: int = 1,
) -> Written:
    """Ask for the tests of one group; a reply without any is asked for once more.

    Args:
        prompt: the prompt under test.
        spec: what was found out about it.
        group: the rules.
        model: the generator.
        per_rule: tests a rule.
        generations: how often more tests are asked for, in the same chat.

    Raises:
        JudgeError: the model does not answer.
    """
    written = Written()
    messages = _question(prompt, spec, group, per_rule)
    for generation in range(generations):
        found: list[PromptTest] = []
        requests: list[CompletionRequest] = []
        for attempt in (1, 2):
            request = CompletionRequest(
                messages=messages,
                json_schema=_schema(prompt),
                schema_name="tests",
                prompt_version=VERSION,
            )
            requests.append(request)
            completion = await model.complete(request)
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
    prompt: PromptUnderTest, spec: Spec, group: Group, per_rule: int
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
    return dialogue(INSTRUCTIONS.format(count=count, scenario=scenario), sections(parts))


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
