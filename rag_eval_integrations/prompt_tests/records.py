"""What flows through prompt tests: Rule, Spec → PromptTest → Result, with Judged and MetricResult.

A test keeps its rule's id, text and direction as they were when it was made: looking them up again
later is what gave 1,668 of 1,944 recorded rows of PromptPex's paper no rule or a wrong one.
"""

from __future__ import annotations

import hashlib
import json

from pydantic import JsonValue

from rag_eval_integrations.metrics.prompty.reply import Outcome
from rag_eval_integrations.records import JsonObject, Record


class Rule(Record):
    """Something that every output has to keep, or its contradiction."""

    id: int
    """From 1: the rules first, then the inverse rules."""
    text: str
    inverse: bool = False
    of_rule: int | None = None
    """Of an inverse rule, the id of the rule that it contradicts; None where it is not known."""


class Spec(Record):
    """What a prompt asks for, in parts that tests are made from."""

    intent: str = ""
    """What it is for, one sentence."""
    input_spec: tuple[str, ...] = ()
    """What a valid input is, one rule each."""
    rules: tuple[Rule, ...] = ()
    """Output rules, then inverse rules; ids are positions from 1."""

    @property
    def output_rules(self) -> tuple[Rule, ...]:
        """The rules that outputs have to keep."""
        return tuple(rule for rule in self.rules if not rule.inverse)

    @property
    def inverse_rules(self) -> tuple[Rule, ...]:
        """The contradictions."""
        return tuple(rule for rule in self.rules if rule.inverse)

    @property
    def rules_text(self) -> str:
        """The output rules, one a line: the variable `rules` of metrics."""
        return "\n".join(rule.text for rule in self.output_rules)

    @property
    def input_spec_text(self) -> str:
        """The input specification, one rule a line."""
        return "\n".join(self.input_spec)


class PromptTest(Record):
    """One input for the prompt under test, and why it is there."""

    uid: str
    """Digest of rule, direction, inputs, scenario and kind: the same in every run."""
    rule_id: int | None = None
    """None for a baseline test, and where the generator named no rule."""
    rule: str = ""
    """The rule's text when the test was made."""
    inverse: bool = False
    inputs: JsonObject
    """By name of the prompt's input."""
    test_id: str = ""
    """The generator's own number."""
    expected: str = ""
    """The output that the generator expects; nobody checked it."""
    reasoning: str = ""
    scenario: str = ""
    generation: int = 0
    baseline: bool = False
    """Made from the prompt alone, without rules, to compare with."""
    original: JsonObject | None = None
    """The inputs before an expansion."""
    groundtruth: str | None = None
    """An output by a stronger model."""
    groundtruth_model: str | None = None
    groundtruth_score: float | None = None
    """0 to 100; -1 where the output was refused by its judges."""

    @property
    def testinput(self) -> str:
        """The inputs as one text: the one input's, or a JSON object."""
        return input_text(self.inputs)

    @property
    def usable_groundtruth(self) -> str | None:
        """The expected output, unless its judges refused it."""
        refused = self.groundtruth_score is not None and self.groundtruth_score < 0
        return None if refused else self.groundtruth


class Judged(Record):
    """A judge's OK or ERR, or why there is neither."""

    outcome: Outcome
    reason: str = ""
    raw: str = ""
    """The judge's own text."""
    judge: str | None = None
    """None where no judge was asked."""
    failed: bool = False
    """The judge did not answer: `unknown`, and asked again by the next run."""


class MetricResult(Record):
    """What a metric says of one output, by one judge."""

    metric: str
    judge: str
    score: float | None = None
    """0 to 100; None for a verdict, and where there is none."""
    outcome: Outcome | None = None
    """`ok` or `err` for a verdict, `unknown` for neither; None for a score."""
    content: str = ""
    """The judge's own text."""
    problem: str | None = None
    """Why there is neither score nor verdict."""
    failed: bool = False
    """The judge did not answer; asked again by the next run."""

    @property
    def key(self) -> str:
        """Column name in upstream's files."""
        return f"{self.metric} with {self.judge}"


class Result(Record):
    """One output of one model for one test, and what is said about it."""

    test: PromptTest
    model: str
    run: int = 0
    """Repetition, from 0."""
    prompt_id: str = ""
    """Digest of the prompt that was run."""
    output: str = ""
    contexts: tuple[str, ...] = ()
    """Documents that a RAG app retrieved for it."""
    error: str | None = None
    """Why there is no output."""
    latency_s: float | None = None
    compliance: Judged | None = None
    """By the first judge; None when nobody was asked yet."""
    others: tuple[Judged, ...] = ()
    """Compliance by the other judges."""
    metrics: tuple[MetricResult, ...] = ()

    @property
    def id(self) -> str:
        """Seven hex digits of prompt, input and kind, as upstream's; the same for every model."""
        text = self.prompt_id + self.test.testinput + (";baseline" if self.test.baseline else "")
        return digest(text)[:7]


class TestCheck(Record):
    """What is said about a test itself."""

    __test__ = False  # no test class of pytest's

    test: PromptTest
    validity: Judged | None = None
    """Whether the input is a valid one."""
    agreement: Judged | None = None
    """Whether the extracted specification alone leads to a compliant output."""
    agreement_output: str = ""
    """That output."""


class RuleCheck(Record):
    """Whether a rule stands in the prompt."""

    rule: Rule
    grounded: Judged


def input_text(inputs: dict[str, JsonValue]) -> str:
    """Write inputs as one text: of a single one its text, else a JSON object."""
    if len(inputs) == 1:
        [value] = inputs.values()
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(inputs, ensure_ascii=False)


def make_uid(
    *, rule: str, inverse: bool, inputs: dict[str, JsonValue], scenario: str, baseline: bool
) -> str:
    """Name a test by its content: `test-` and 8 hex digits."""
    content = json.dumps([rule, inverse, inputs, scenario, baseline], sort_keys=True)
    return f"test-{digest(content)[:8]}"


def digest(text: str) -> str:
    """sha256 of a text, 64 hex digits; lone surrogates included."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
