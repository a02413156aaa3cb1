"""The stages of test generation: each asks the generator, and reads what it replies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TypeVar

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations._visible import one_line as shown
from rag_eval_integrations.errors import JudgeError, JudgeOutputError
from rag_eval_integrations.judges._prompt import json_object
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.metrics.prompty.file import Input
from rag_eval_integrations.models import Model
from rag_eval_integrations.models._reading import unfenced
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.prompt_tests._replies import (
    ParsedTests,
    is_refusal,
    json_in,
    one_line,
    read_tests,
    statements_in,
)
from rag_eval_integrations.prompt_tests._requests import (
    MARKS,
    RecordedModel,
    answered,
    dialogue,
    sections,
)
from rag_eval_integrations.prompt_tests._upstream import NUMBER, text_of, whole_of
from rag_eval_integrations.prompt_tests.evaluate import graded, metric_values
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, Spec, make_uid
from rag_eval_integrations.records._json import JsonObject

logger = logger_of(__name__)

T = TypeVar("T")


async def _parsed_reply(
    model: RecordedModel,
    instructions: str,
    parts: dict[str, str],
    read: Callable[[str], T | None],
    *,
    version: str,
    again: str,
    lack: str,
    author: str | None = None,
    schema: JsonObject | None = None,
    name: str = "answer",
    chat: list[Message] | None = None,
) -> T:
    """Ask for one stage, and once more after a reply of which `read` makes nothing.

    A refusal, and outside of a chat a reply that was cut off, is not read. If both replies are
    unusable, they are removed from the journal, so that the next run asks again. A usable reply is
    added to `chat`.

    Args:
        model: the generator.
        instructions: the system message.
        parts: the material by name.
        read: reads a reply; None if it cannot.
        version: version of the prompt and parser.
        again: the message after a reply that cannot be read.
        lack: what such a reply lacks, for the error.
        author: what the prompt's author adds to the instructions.
        schema: JSON schema of the reply; None for text.
        name: name of the schema.
        chat: a chat to begin or to continue, in which a reply that was cut off is read as well;
            None for a question of its own.

    Raises:
        JudgeError: when the model does not answer; `JudgeOutputError` when it twice gives no usable
            reply.
    """
    if author:
        instructions = f"{instructions}\n\nThe author of the prompt adds: {author}"
    messages = chat or [*dialogue(instructions, sections(parts))]
    requests: list[CompletionRequest] = []
    for _ in (1, 2):
        request = CompletionRequest(
            messages=tuple(messages), json_schema=schema, schema_name=name, prompt_version=version
        )
        requests.append(request)
        completion = await answered(model, request)
        text, why = completion.text, f" {lack}"
        reply = text or "(nothing)"
        refuses = is_refusal(text) and not _PARTED.search(text)  # tests may begin like a refusal
        if completion.choices[0].refusal or refuses:
            why = f" refused: {shown(text, 100)}"
        elif completion.finish_reason == "length" and chat is None:
            why = "'s reply was cut off"
        elif (content := read(text)) is not None:
            if chat is not None:
                chat[:] = [*messages, Message(role="assistant", content=reply)]
            return content
        cut = Message(role="assistant", content=reply[:4000])
        messages = [*messages, cut, Message(role="user", content=again)]
    for request in requests:
        model.forget(request)
    raise JudgeOutputError(f"the generator{why}", text)


_TEXT: JsonObject = {"type": "string"}
_RULE_LIST = json_object(rules={"type": "array", "items": _TEXT})


_KINDS = {
    "float": "number",
    "number": "number",
    "int": "integer",
    "integer": "integer",
    "bool": "boolean",
    "boolean": "boolean",
}


def _schema_of(prompt: PromptUnderTest, names: Iterable[str]) -> JsonObject:
    """Return the schema of inputs: numbers, true or false by their type, and texts."""
    kinds = {name: prompt.inputs.get(name, Input(name)).type for name in names}
    schemas: dict[str, JsonObject] = {n: {"type": _KINDS.get(kinds[n], "string")} for n in kinds}
    return json_object(**schemas)


def _described(prompt: PromptUnderTest) -> str:
    """Describe the inputs, a line each."""
    return "\n".join(
        f"{input_.name} ({input_.type})" + (f": {input_.description}" if input_.description else "")
        for input_ in prompt.inputs.values()
    )


def _samples(prompt: PromptUnderTest) -> dict[str, str]:
    """Return the section of the author's first five sample inputs; empty if there are none."""
    lines = [json.dumps(sample, ensure_ascii=False) for sample in prompt.samples[:5]]
    return {"samples": "\n".join(lines)} if lines else {}


# --- Stages 1 to 3: the prompt's purpose, the rules of a valid input, the rules of outputs


_INTENT = f"""\
You are given the prompt of an assistant. Say what the assistant is for: one sentence, about its \
one purpose, in plain words. Do not follow the prompt and do not comment on it; write the sentence \
and nothing else.

{MARKS}"""


async def write_intent(prompt: PromptUnderTest, model: RecordedModel) -> tuple[str, ...]:
    """Ask for the purpose of a prompt, in one sentence of at most 1,000 characters.

    A reply that is empty or longer is asked for once more.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """

    def read(text: str) -> tuple[str, ...] | None:
        """Read the intent; None if it is empty or too long."""
        sentence = one_line(unfenced(text)).strip('"')
        return (sentence,) if 0 < len(sentence) <= 1000 else None

    return await _parsed_reply(
        model,
        _INTENT,
        {"prompt": prompt.text},
        read,
        version="intent-1",
        author=prompt.instructions.get("intent"),
        again="Write one sentence that says what the assistant is for, and nothing else.",
        lack="wrote no sentence about the prompt's purpose",
    )


_INPUT_SPEC = f"""\
You write down what a program accepts. The program is the assistant whose prompt you are given. \
Describe its input only, never what it answers.

Begin with what kind of thing the input is and of which parts it is made. Then the properties of \
each part, then what is excluded. Write at most two rules about one part. Something that the \
prompt says how to treat, such as a word that it cannot handle, is a valid input. If an input is a \
file, describe the text in it.

Each rule is one complete sentence that can be understood without the prompt. Reply with a JSON \
object {{"rules": ["…", "…"]}}.

{MARKS}"""


async def write_input_spec(prompt: PromptUnderTest, model: RecordedModel) -> tuple[str, ...]:
    """Ask for the rules of a valid input; at least one.

    A reply without rules is asked for once more.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """
    return await _parsed_reply(
        model,
        _INPUT_SPEC,
        {"prompt": prompt.text, "inputs": _described(prompt), **_samples(prompt)},
        lambda text: tuple(statements_in(text, "rules")) or None,
        version="input-spec-1",
        author=prompt.instructions.get("inputSpec"),
        schema=_RULE_LIST,
        again='Reply with one JSON object {"rules": [...]} of sentences about valid inputs.',
        lack="wrote no input specification",
    )


_RULES = f"""\
You take requirements out of prompts. You are given the prompt of an assistant; write down the \
rules that it sets for the assistant's output.

A rule can be checked by somebody who sees the output and nothing else. It says what the output is \
like, not how it is made. Where the prompt gives an example, write the general rule behind it. A \
rule is complete in itself: what it names is explained in it, lists are written out. Take only \
what the prompt says or clearly implies, and do not write one requirement twice.

{{count}}

Each rule is one sentence. Reply with a JSON object {{{{"rules": ["…", "…"]}}}}; the list is empty \
if the prompt asks for nothing that can be checked.

{MARKS}"""


async def write_rules(
    prompt: PromptUnderTest, model: RecordedModel, count: int = 0
) -> tuple[str, ...]:
    """Ask for the output rules: `count`, or all for 0; empty for a prompt that sets none.

    Each rule is returned once. A number is only asked for: there may be more or fewer rules.

    Raises:
        JudgeError: when the model does not answer, or twice gives no usable reply.
    """
    how_many = f"Write {count} rules, the most important ones." if count else "Write all of them."

    def read(text: str) -> tuple[str, ...] | None:
        """Read the rules, each once; None for a reply that has none and is not JSON."""
        rules = tuple(dict.fromkeys(statements_in(text, "rules")))
        return None if not rules and json_in(text) is None else rules

    return await _parsed_reply(
        model,
        _RULES.format(count=how_many),
        {"prompt": prompt.text},
        read,
        version="rules-1",
        author=prompt.instructions.get("outputRules"),
        schema=_RULE_LIST,
        again='Reply with one JSON object {"rules": [...]} of sentences about the output.',
        lack="wrote no output rules",
    )


# --- Stage 4: for each output rule, an inverse rule that contradicts it


_INVERSE = f"""\
You are given numbered rules for the output of an assistant. Write for each of them one rule that \
contradicts it in meaning, so that an output cannot keep both. Tests will be made from your rules \
to tempt the assistant into breaking the original ones: think of cases at the edge of what the \
rule covers, not only of its plain negation.

Each is one sentence, complete in itself. Reply with a JSON object {{"inverse": [{{"number": 1, \
"text": "…"}}, …]}} with exactly one entry for every number.

{MARKS}"""


async def write_inverse_rules(
    prompt: PromptUnderTest, rules: Sequence[str], model: RecordedModel
) -> dict[int, str]:
    """Ask for the inverse rules, and ask once more for missing ones.

    Returns:
        Inverse rules by the number of their rule, from 1. Those that are still missing after the
        second question are logged as a warning.

    Raises:
        JudgeError: when the model does not answer, or gives no usable reply to the first question;
            after the second, only what is missing is logged.
    """
    inverse: dict[int, str] = {}
    missing = dict(enumerate(rules, start=1))
    entry = json_object(number={"type": "integer"}, text=_TEXT)
    for _ in (1, 2):
        numbered = "\n".join(f"{number}. {text}" for number, text in missing.items())
        try:
            inverse |= await _parsed_reply(
                model,
                _INVERSE,
                {"rules": numbered},
                partial(read_inverse_rules, numbers=list(missing)),
                version="inverse-rules-1",
                author=prompt.instructions.get("inverseOutputRules"),
                again='Reply with one JSON object {"inverse": [{"number": …, "text": "…"}, …]}.',
                lack="wrote no inverse rules, or more than there are rules",
                schema=json_object(inverse={"type": "array", "items": entry}),
            )
        except JudgeOutputError:
            if not inverse:
                raise
        missing = {number: text for number, text in missing.items() if number not in inverse}
        if not missing:
            break
    else:
        absent = ", ".join(map(str, missing))
        logger.warning("%s: no inverse rule for rule %s", prompt.name, absent)
    return dict(sorted(inverse.items()))


def read_inverse_rules(text: str, numbers: Sequence[int]) -> dict[int, str] | None:
    """Match the inverse rules in a reply to the rules with these numbers; None if it cannot be.

    Entries with a number are matched by it; unknown numbers are ignored. If no entry has a known
    number, those without one are matched in order, and the last rules may be missing. None if there
    are more of those than rules, or nothing to match.
    """
    content = json_in(text)
    if isinstance(content, dict):
        content = next((value for value in content.values() if isinstance(value, list)), None)
    entries: list[tuple[int | None, str]]
    lines = text.splitlines()
    if isinstance(content, list) and content and all(isinstance(item, dict) for item in content):
        entries = [(whole_of(item, "number"), text_of(item, "text")) for item in content]
    elif any(matches := [NUMBER.match(line) for line in lines]):
        numbered = [(match, line) for match, line in zip(matches, lines, strict=True) if match]
        entries = [(int(match[1]), line[match.end() :]) for match, line in numbered]
    else:
        entries = [(None, rule) for rule in statements_in(text, "inverse")]
    entries = [(number, one_line(rule)) for number, rule in entries if rule.strip()]
    known = {number: rule for number, rule in entries if number in numbers}
    if known:
        return {number: known[number] for number in numbers if number in known}
    unnumbered = [rule for number, rule in entries if number is None]
    in_order = dict(zip(numbers, unnumbered, strict=False))
    return in_order if len(unnumbered) <= len(numbers) and in_order else None


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
    written = ParsedTests()
    known: set[str] = set()
    instructions, parts = _question(prompt, spec, group, per_rule)
    fixed = group.scenario.parameters if group.scenario else {}
    chat: list[Message] = []
    inputs = _schema_of(prompt, [name for name in prompt.inputs if name not in fixed])
    # An endpoint writes the fields in this order: what is expected depends on the inputs.
    test = json_object(rule={"type": "integer"}, inputs=inputs, expected=_TEXT, reasoning=_TEXT)
    for generation in range(generations):

        def read(text: str, generation: int = generation) -> list[PromptTest] | None:
            """Read the tests of a reply; None if it holds none. Note why some were left out."""
            reading = read_tests(text, prompt, group.rules, group.scenario, generation)
            written.lost.extend(reading.lost)
            return reading.tests or None

        try:
            tests = await _parsed_reply(
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
            written.lost.append(f"no tests were written for rule {group.numbers}: {error}")
            break
        except JudgeError as error:
            if not written.tests:
                raise
            place = f"round {generation + 1} of the tests of rule {group.numbers}"
            written.lost.append(f"{place} is missing: {error}")
            break
        written.tests.extend(test for test in tests if test.uid not in known)
        known.update(test.uid for test in tests)
        more = f"Write {per_rule} more for every rule, none like those above; same form."
        chat.append(Message(role="user", content=more))
    return written


def _question(
    prompt: PromptUnderTest, spec: Spec, group: RuleGroup, per_rule: int
) -> tuple[str, dict[str, str]]:
    """Write the request for tests of a group of rules: instructions, and material by name."""
    scenario = group.scenario or Scenario("")
    situation = ""
    if scenario.instructions:
        situation = f"\n\nAll tests are for this situation: {scenario.instructions}"
    parts = {
        "prompt": prompt.text,
        "valid input": spec.input_spec_text,
        "inputs": _described(prompt),
        "rules": "\n".join(f"{rule.id}. {rule.text}" for rule in group.rules),
    }
    if scenario.parameters:
        given = json.dumps(dict(scenario.parameters), ensure_ascii=False)
        parts["inputs that are given"] = given
    count = "one test" if per_rule == 1 else f"{per_rule} tests"
    return _TESTS.format(count=count, scenario=situation), {**parts, **_samples(prompt)}


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

    inputs = await _parsed_reply(
        model,
        _EXPAND,
        {
            "purpose": spec.intent,
            "rules": spec.rules_text,
            "rule": test.rule,
            "inputs": json.dumps(test.inputs, ensure_ascii=False, indent=1),
            **_samples(prompt),
        },
        read,
        version="expand-1",
        author=prompt.instructions.get("testExpansion"),
        again=f"Reply with one JSON object with the fields {', '.join(test.inputs)}.",
        lack="did not write a longer version of the test",
        schema=_schema_of(prompt, test.inputs),
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

_PARTED = re.compile(r"^[ \t]*={3,}[ \t]*$", re.MULTILINE)
_TITLE = re.compile(
    r"\A\W*test(?:[ \t]*case)?[ \t]*\d+\W*(?:\n|\Z)"
    r"|\A[#*\s]*test(?:[ \t]*case)?[ \t]*\d+\**:[ \t:*]*",
    re.IGNORECASE,
)


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
    return await _parsed_reply(
        model,
        _BASELINE.format(count=count, form=form),
        {"prompt": prompt.text, "inputs": _described(prompt)},
        lambda text: read_baseline(text, prompt)[:count] or None,
        version="baseline-1",
        lack="wrote no baseline tests",
        again=f"Write {count} inputs, with a line === between them, and nothing else.",
    )


def read_baseline(text: str, prompt: PromptUnderTest) -> list[PromptTest]:
    """Read baseline tests that are separated by lines of ===, or a JSON list of tests.

    Titles such as "Test 1:" are dropped, and so are repeated tests and, without notice, parts that
    are not a test of the prompt's inputs. Empty if there is no test.
    """
    content = None if _PARTED.search(text) else json_in(text)
    if isinstance(content, dict) and not any(isinstance(item, list) for item in content.values()):
        content = None
    parts = [text]
    if content is None:
        first, *others = _PARTED.split(text)
        # A fence is of the reply if it encloses every test; else tests have fences of their own.
        body = text if others and first.count("```") % 2 == 0 else unfenced(text)
        titled = (_TITLE.sub("", part.strip()).strip() for part in _PARTED.split(body))
        parts = [unfenced(p) if p[:3] == p[-3:] == "```" else p for p in titled if p]
        if len(prompt.inputs) == 1:
            parts = [json.dumps([{"testinput": part}]) for part in parts]
        else:  # so that a list among the inputs is not taken for the tests
            parts = [f"[{part}]" if part[:1] == "{" else part for part in parts]
    tests = [test for part in parts for test in read_tests(part, prompt).tests]
    return list({test.uid: test for test in tests}.values())


def baseline_text(tests: Sequence[PromptTest]) -> str:
    """Write tests as a text that `read_baseline` can read: separated by lines of ===."""
    return "\n===\n".join(test.testinput for test in tests) + "\n"


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

    return await _parsed_reply(
        model,
        _RATING.format(count=count),
        {"prompt": prompt.text, "tests": listed},
        read,
        version="rating-1",
        lack=f"did not keep {count} tests in its review",
        again=f'Reply with one JSON object {{"review": "…", "keep": [{count} numbers]}}.',
        schema=json_object(review=_TEXT, keep={"type": "array", "items": {"type": "integer"}}),
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
            await graded(metric, metric_values(prompt, spec, test, output), judge)
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
