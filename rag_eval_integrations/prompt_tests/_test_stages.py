"""The stages that make tests of a specification: write, expand, review, and expected outputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_eval_integrations.errors import JudgeError, JudgeOutputError
from rag_eval_integrations.judges._prompt import json_object
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.metrics.prompty.file import Input
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.prompt_tests._questions import (
    TEXT,
    ask_generator,
    described_inputs,
    sample_section,
)
from rag_eval_integrations.prompt_tests._replies import (
    ParsedTests,
    json_in,
    read_baseline,
    read_tests,
)
from rag_eval_integrations.prompt_tests._requests import MARKS, RecordedModel
from rag_eval_integrations.prompt_tests.evaluate import ask_metric, metric_values
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, Spec, make_uid
from rag_eval_integrations.records._json import JsonObject

# --- Stage 5: tests of rules, inputs on which an output is likely to break a rule


_TESTS = f"""\
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


_KINDS = {
    "float": "number",
    "number": "number",
    "int": "integer",
    "integer": "integer",
    "bool": "boolean",
    "boolean": "boolean",
}


def _inputs_schema(prompt: PromptUnderTest, names: Iterable[str]) -> JsonObject:
    """Return the schema of inputs: numbers, true or false by their type, and texts."""
    kinds = {name: prompt.inputs.get(name, Input(name)).type for name in names}
    schemas: dict[str, JsonObject] = {n: {"type": _KINDS.get(kinds[n], "string")} for n in kinds}
    return json_object(**schemas)


@dataclass(frozen=True)
class RuleGroup:
    """Rules whose tests are generated in one request, for one scenario."""

    rules: tuple[Rule, ...]
    scenario: Scenario | None = None

    @property
    def numbers(self) -> str:
        """The rules' numbers in words."""
        return ", ".join(str(rule.id) for rule in self.rules)


def rule_groups(
    spec: Spec, scenarios: Sequence[Scenario], *, split: bool, most: int, max_rules: int | None
) -> list[RuleGroup]:
    """Divide rules into groups, scenario by scenario; no group without rules.

    Args:
        spec: rules and inverse rules.
        scenarios: scenarios; there is a group per scenario. Empty for no scenario.
        split: whether rules and inverse rules are in separate groups.
        most: maximum number of rules per group, from 1.
        max_rules: maximum number of rules, and of inverse rules; None for all.
    """
    direct, inverse = spec.output_rules[:max_rules], spec.inverse_rules[:max_rules]
    kinds = [direct, inverse] if split else [(*direct, *inverse)]
    chunks = [kind[start : start + most] for kind in kinds for start in range(0, len(kind), most)]
    return [RuleGroup(chunk, scenario) for scenario in (scenarios or (None,)) for chunk in chunks]


_NO_TEST = """\
There is no usable test in that. Reply with one JSON object {"tests": [...]} in which every test \
has all of the inputs."""


async def write_tests(
    prompt: PromptUnderTest,
    spec: Spec,
    group: RuleGroup,
    model: RecordedModel,
    *,
    per_rule: int,
    generations: int,
) -> ParsedTests:
    """Ask for the tests of one group of rules, and once more after a reply without tests.

    After the first round, each round asks for more tests in the same chat. A round that fails ends
    the rounds.

    Args:
        prompt: the prompt under test.
        spec: its specification.
        group: the rules.
        model: the generator.
        per_rule: tests per rule in each round.
        generations: rounds of test generation, in one chat.

    Returns:
        The tests, each once, and the reasons why tests or rounds are missing.

    Raises:
        JudgeError: when the model does not answer and there are no tests yet.
    """
    group_tests = ParsedTests()
    known: set[str] = set()
    instructions, parts = _tests_question(prompt, spec, group, per_rule)
    fixed = group.scenario.parameters if group.scenario else {}
    chat: list[Message] = []
    inputs = _inputs_schema(prompt, [name for name in prompt.inputs if name not in fixed])
    # An endpoint writes the fields in this order: what is expected depends on the inputs.
    test = json_object(rule={"type": "integer"}, inputs=inputs, expected=TEXT, reasoning=TEXT)
    for generation in range(generations):

        def read(text: str, generation: int = generation) -> list[PromptTest] | None:
            """Read the tests of a reply; None if it holds none. Note why some were left out."""
            reading = read_tests(text, prompt, group.rules, group.scenario, generation)
            group_tests.lost.extend(reading.lost)
            return reading.tests or None

        try:
            tests = await ask_generator(
                model,
                instructions,
                parts,
                read,
                version="tests-1",
                again=_NO_TEST,
                name="tests",
                lack="wrote no usable test",
                chat=chat,
                schema=json_object(tests={"type": "array", "items": test}),
            )
        except JudgeOutputError as error:
            group_tests.lost.append(f"no tests were written for rule {group.numbers}: {error}")
            break
        except JudgeError as error:
            if not group_tests.tests:
                raise
            place = f"round {generation + 1} of the tests of rule {group.numbers}"
            group_tests.lost.append(f"{place} is missing: {error}")
            break
        group_tests.tests.extend(test for test in tests if test.uid not in known)
        known.update(test.uid for test in tests)
        more = f"Write {per_rule} more for every rule, none like those above; same form."
        chat.append(Message(role="user", content=more))
    return group_tests


def _tests_question(
    prompt: PromptUnderTest, spec: Spec, group: RuleGroup, per_rule: int
) -> tuple[str, dict[str, str]]:
    """Return the instructions, and the material by name, that ask for tests of a group of rules."""
    scenario = group.scenario or Scenario("")
    situation = ""
    if scenario.instructions:
        situation = f"\n\nAll tests are for this situation: {scenario.instructions}"
    parts = {
        "prompt": prompt.text,
        "valid input": spec.input_spec_text,
        "inputs": described_inputs(prompt),
        "rules": "\n".join(f"{rule.id}. {rule.text}" for rule in group.rules),
    }
    if scenario.parameters:
        given = json.dumps(dict(scenario.parameters), ensure_ascii=False)
        parts["inputs that are given"] = given
    count = "one test" if per_rule == 1 else f"{per_rule} tests"
    return _TESTS.format(count=count, scenario=situation), {**parts, **sample_section(prompt)}


# --- Stage 6: longer and more realistic versions of tests


_EXPAND = f"""\
You make a test of an assistant longer and more like real use. You are given what the assistant is \
for, the rules of its output, the rule that this test tries, and the test's inputs. Write the same \
inputs again, at least twice as long, richer in detail and still valid, so that they try the same \
rule. Reply with a JSON object that has exactly the same fields as the inputs.

{MARKS}"""


async def expand_test(
    test: PromptTest, prompt: PromptUnderTest, spec: Spec, model: RecordedModel
) -> PromptTest:
    """Ask for a longer version of a test; the original inputs are kept in `original`.

    The test gets a new uid. The originals are those before the first expansion.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """

    def read(text: str) -> JsonObject | None:
        """Read the expanded inputs; None if their names are not exactly those of the test."""
        content = json_in(text)
        return content if isinstance(content, dict) and set(content) == set(test.inputs) else None

    inputs = await ask_generator(
        model,
        _EXPAND,
        {
            "purpose": spec.intent,
            "rules": spec.rules_text,
            "rule": test.rule,
            "inputs": json.dumps(test.inputs, ensure_ascii=False, indent=1),
            **sample_section(prompt),
        },
        read,
        version="expand-1",
        author=prompt.instructions.get("testExpansion"),
        again=f"Reply with one JSON object with the fields {', '.join(test.inputs)}.",
        lack="did not write a longer version of the test",
        schema=_inputs_schema(prompt, test.inputs),
    )
    uid = make_uid(
        rule=test.rule,
        inverse=test.inverse,
        inputs=inputs,
        scenario=test.scenario,
        baseline=test.baseline,
    )
    original = test.original if test.original is not None else test.inputs
    return test.model_copy(update={"inputs": inputs, "uid": uid, "original": original})


# --- Baseline tests: made from the prompt without rules, for comparison


_BASELINE = f"""\
You are given the prompt of an assistant and the names of its inputs. Write {{count}} different \
inputs to test it with. {{form}} Put a line with only === between two tests, and write nothing else.

{MARKS}"""


async def write_baseline(
    prompt: PromptUnderTest, model: RecordedModel, count: int
) -> list[PromptTest]:
    """Ask for tests that are made without rules; returns at most `count`, from 1.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable test.
    """
    form = "Write each test as one JSON object with a field for every input."
    if len(prompt.inputs) == 1:
        form = "Write each input as it would be typed, without quotes or a name in front."
    return await ask_generator(
        model,
        _BASELINE.format(count=count, form=form),
        {"prompt": prompt.text, "inputs": described_inputs(prompt)},
        lambda text: read_baseline(text, prompt)[:count] or None,
        version="baseline-1",
        lack="wrote no baseline tests",
        again=f"Write {count} inputs, with a line === between them, and nothing else.",
    )


# --- Stage 8: a review that keeps the tests that together test the prompt best


_RATING = f"""\
You review a collection of tests for an assistant. You are given its prompt and numbered tests. \
Write a short review: what the tests cover, what they miss, which repeat others, which are no \
valid inputs. Then choose the {{count}} tests that together try the prompt best.

Reply with a JSON object {{{{"review": "…", "keep": [numbers]}}}} with exactly {{count}} numbers.

{MARKS}"""


async def review_tests(
    prompt: PromptUnderTest, tests: Sequence[PromptTest], model: RecordedModel, count: int
) -> tuple[str, list[PromptTest]]:
    """Ask for a review in words, and for the `count` best tests, in the collection's order.

    A reply that keeps another number of tests is asked for once more.

    Raises:
        JudgeError: when the model does not answer, or twice keeps another number of tests.
    """
    listed = "\n".join(
        f"{number}. rule: {test.rule or 'none'}\n   input: {test.testinput}"
        for number, test in enumerate(tests, start=1)
    )

    def read(text: str) -> tuple[str, list[PromptTest]] | None:
        """Read the review and the tests to keep; None for another number of them."""
        content = json_in(text)
        keep = content.get("keep") if isinstance(content, dict) else None
        given = keep if isinstance(keep, list) else []
        numbers = {n for n in given if type(n) is int and 1 <= n <= len(tests)}
        if len(numbers) != count:
            return None
        return str(content.get("review") or ""), [tests[n - 1] for n in sorted(numbers)]

    return await ask_generator(
        model,
        _RATING.format(count=count),
        {"prompt": prompt.text, "tests": listed},
        read,
        version="rating-1",
        lack=f"did not keep {count} tests in its review",
        again=f'Reply with one JSON object {{"review": "…", "keep": [{count} numbers]}}.',
        schema=json_object(review=TEXT, keep={"type": "array", "items": {"type": "integer"}}),
    )


# --- Stage 9: expected outputs, written by a strong model and scored by judges


GOOD = 80.0
"""Mean score, 0 to 100, from which an output is accepted without another attempt."""
USABLE = 50.0
"""Mean score below which the best output is refused after the last attempt."""
ATTEMPTS = 3
"""Maximum number of outputs per test."""
REFUSED = -1.0
"""Score of a refused output."""


async def add_groundtruth(
    test: PromptTest,
    prompt: PromptUnderTest,
    spec: Spec,
    model: Model,
    judges: Sequence[Model],
    metric: PromptyMetric,
) -> PromptTest:
    """Write a test's expected output with a strong model, in at most three attempts.

    An output's score is the mean over the judges that gave one. The first output with 80 or more is
    kept, or else the best one. If it has less than 50, or no judge scored it, its score is -1 and
    it is not used (310 of 984 tests in PromptPex's paper). An empty output is not scored.

    Args:
        test: the test.
        prompt: the prompt under test.
        spec: its specification.
        model: the strong model.
        judges: models that score the outputs.
        metric: the question to the judges; a verdict counts as 100 or 0.

    Returns:
        The test with an expected output.

    Raises:
        JudgeError: when the model or a judge does not answer.
        ConfigurationError: when the prompt cannot be rendered with the test.
    """
    values = prompt.values(test.inputs, prompt.parameters(test.scenario))
    messages = prompt.render(values)
    best: tuple[float, str] = (REFUSED, "")
    for attempt in range(ATTEMPTS):
        completion = await model.complete(
            CompletionRequest(messages=messages, seed=attempt or None, prompt_version="groundtruth")
        )
        output = completion.text
        asked = judges if output.strip() else ()
        graded_by = [
            await ask_metric(metric, metric_values(prompt, spec, test, output), judge)
            for judge in asked
        ]
        scores = [result.value for result in graded_by if result.value is not None]
        score = fmean(scores) if scores else REFUSED
        if score > best[0] or not best[1]:
            best = (score, output)
        if best[0] >= GOOD:
            break
    score, output = best
    return test.model_copy(
        update={
            "groundtruth": output,
            "groundtruth_model": model.name,
            "groundtruth_score": score if score >= USABLE else REFUSED,
        }
    )
