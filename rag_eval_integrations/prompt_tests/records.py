"""Records of prompt tests: Rule, Spec → PromptTest → Result, with Judged and MetricResult.

A test keeps the id, text and direction that its rule had when the test was made. In the data of
PromptPex's paper, where rules were looked up later, 1,668 of 1,944 rows have no rule or a wrong
one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import Field, JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty._reply import Outcome
from rag_eval_integrations.records._json import JsonObject, Record

T = TypeVar("T")


class Rule(Record):
    """A rule that every output should keep, or an inverse rule, which contradicts one."""

    id: int
    """Number from 1: rules first, then inverse rules."""
    text: str
    inverse: bool = False
    of_rule: int | None = None
    """For an inverse rule, the id of the rule that it contradicts; None if it is not known."""


class Spec(Record):
    """A prompt's specification: the parts that tests are made from."""

    intent: str = ""
    """The prompt's purpose, in one sentence."""
    input_spec: tuple[str, ...] = ()
    """Rules of a valid input."""
    rules: tuple[Rule, ...] = ()
    """Output rules, then inverse rules; ids are positions from 1, except in imports of tests for
    which PromptPex numbered only the first rules of each kind."""

    @property
    def output_rules(self) -> tuple[Rule, ...]:
        """The rules that outputs should keep."""
        return tuple(rule for rule in self.rules if not rule.inverse)

    @property
    def inverse_rules(self) -> tuple[Rule, ...]:
        """The rules that contradict output rules."""
        return tuple(rule for rule in self.rules if rule.inverse)

    @property
    def rules_text(self) -> str:
        """The output rules, one per line: the variable `rules` of metric files."""
        return "\n".join(rule.text for rule in self.output_rules)

    @property
    def input_spec_text(self) -> str:
        """The input specification, one rule per line."""
        return "\n".join(self.input_spec)


class PromptTest(Record):
    """One input for the prompt under test, with the rule that it tests."""

    uid: str
    """Digest of rule, direction, inputs, scenario and kind: the same in every run."""
    rule_id: int | None = None
    """Id of the rule; None for a baseline test, or if the generator named no rule."""
    rule: str = ""
    """The rule's text when the test was made."""
    inverse: bool = False
    """Whether the rule is an inverse rule."""
    inputs: JsonObject
    """Values by the name of the prompt's input."""
    test_id: str = ""
    """The generator's number of the test."""
    expected: str = ""
    """The output that the generator expects, unchecked."""
    reasoning: str = ""
    """The generator's reason for the test."""
    scenario: str = ""
    """Name of the scenario; empty without one."""
    generation: int = 0
    """Round of test generation, from 0."""
    baseline: bool = False
    """Whether it was made from the prompt alone, without rules, for comparison."""
    original: JsonObject | None = None
    """The inputs before an expansion; None if the test was not expanded."""
    groundtruth: str | None = None
    """The expected output, written by a strong model; None if there is none."""
    groundtruth_model: str | None = None
    """The model that wrote it."""
    groundtruth_score: float | None = None
    """The judges' score of it, 0 to 100; -1 if the judges refused it."""

    @property
    def testinput(self) -> str:
        """The inputs as one text: a single input's text, or a JSON object."""
        return input_text(self.inputs)

    @property
    def usable_groundtruth(self) -> str | None:
        """The expected output; None if there is none or its judges refused it."""
        refused = self.groundtruth_score is not None and self.groundtruth_score < 0
        return None if refused else self.groundtruth


class Judged(Record):
    """A judge's verdict with its reason."""

    outcome: Outcome
    """`ok`, `err`, or `unknown` if the judge gave no verdict."""
    reason: str = ""
    """The judge's reason, or why there is no verdict."""
    raw: str = ""
    """The judge's reply, unchanged."""
    judge: str | None = None
    """The judge's name; None if no judge was asked."""
    probability: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability of `ok` against `err`, 0 to 1, from the judge's log-probabilities; None where the
    endpoint gives none."""
    failed: bool = False
    """Whether the judge did not answer; the outcome is `unknown`, and the next run asks again."""


class MetricResult(Record):
    """A metric's score or verdict for one output, by one judge."""

    metric: str
    judge: str
    score: float | None = None
    """The score, 0 to 100; None for a metric that gives verdicts, or if there is no score."""
    outcome: Outcome | None = None
    """`ok` or `err` for a verdict, `unknown` if there is no result; None for a score."""
    content: str = ""
    """The judge's reply, unchanged."""
    problem: str | None = None
    """Why there is neither a score nor a verdict; None if there is one."""
    failed: bool = False
    """Whether the judge did not answer; the next run asks again."""

    @property
    def key(self) -> str:
        """The column name in PromptPex's files."""
        return f"{self.metric} with {self.judge}"

    @property
    def value(self) -> float | None:
        """The score, or 100 for `ok` and 0 for `err`; None without either."""
        if self.score is None and self.outcome in ("ok", "err"):
            return 100.0 * (self.outcome == "ok")
        return self.score


class Result(Record):
    """One model's output for one test, with its verdicts and metrics."""

    test: PromptTest
    model: str
    """Name of the model under test."""
    run: int = 0
    """Repetition, from 0."""
    prompt_id: str = ""
    """Id of the prompt that was run."""
    output: str = ""
    """The output; empty after an error."""
    contexts: tuple[str, ...] = ()
    """Documents that a RAG app retrieved."""
    error: str | None = None
    """Why there is no output; None if there is one."""
    parameters: JsonObject = Field(default_factory=dict)
    """Settings that were sent with the prompt, by name; empty for the model's own."""
    latency_s: float | None = None
    """Seconds until the output or error; recorded replies take almost none."""
    compliance: Judged | None = None
    """The first judge's verdict on compliance; None before the evaluation."""
    others: tuple[Judged, ...] = ()
    """The other judges' verdicts on compliance."""
    metrics: tuple[MetricResult, ...] = ()
    """Results of the metric files."""

    @property
    def id(self) -> str:
        """Seven hex digits for prompt, input and kind, as in PromptPex; the same for all models."""
        text = self.prompt_id + self.test.testinput + (";baseline" if self.test.baseline else "")
        return digest(text)[:7]

    @property
    def state(self) -> Literal["ok", "err", "unknown", "error", "not judged"]:
        """The verdict on compliance; `error` without an output, `not judged` without a verdict."""
        if self.error is not None:
            return "error"
        return "not judged" if self.compliance is None else self.compliance.outcome

    @property
    def reason(self) -> str:
        """The error, or the judge's reason; empty if it was not judged."""
        if self.error is not None:
            return self.error
        return "" if self.compliance is None else self.compliance.reason

    @property
    def verdicts(self) -> list[Judged]:
        """The verdicts of all judges on compliance, the first judge's first."""
        return [verdict for verdict in (self.compliance, *self.others) if verdict is not None]


class TestCheck(Record):
    """Verdicts on a test itself."""

    __test__ = False  # pytest should not collect this class

    test: PromptTest
    validity: Judged | None = None
    """Whether the input is valid; None if it was not judged."""
    agreement: Judged | None = None
    """Whether an answer made from the specification alone complies; None if not judged."""
    agreement_output: str = ""
    """That answer."""


class RuleCheck(Record):
    """A verdict on a rule itself."""

    rule: Rule
    grounded: Judged
    """Whether the prompt states or implies the rule."""


Direction = Literal["positive", "negative"]
"""Of a test: `positive` tests a rule, `negative` an inverse rule."""


class Choice(Record):
    """Some of the tests; by default all."""

    rules: tuple[int, ...] = ()
    """Ids of rules; empty for all."""
    scenarios: tuple[str, ...] = ()
    """Names of scenarios; empty for all."""
    direction: Direction | None = None
    """None for both; baseline tests have none."""
    only_valid: bool = False
    """Whether to leave out tests whose input was not judged valid."""

    def of(
        self, items: Sequence[T], test: Callable[[T], PromptTest], checks: Sequence[TestCheck]
    ) -> list[T]:
        """Return the tests that are chosen, or the results of chosen tests.

        The order is kept. Empty for no items.

        Args:
            items: the tests, or results.
            test: returns the test of one of them.
            checks: checks of the tests, which say which inputs are valid.

        Raises:
            ConfigurationError: for `only_valid` without any check of validity, or a choice that
                leaves nothing.
        """
        if self.only_valid and all(check.validity is None for check in checks):
            why = "no test's input was judged; run `evaluate --validity` first"
            raise ConfigurationError("only_valid", True, why)
        valid = valid_uids(checks)
        chosen = [item for item in items if self.takes(test(item), valid)]
        if items and not chosen:
            raise ConfigurationError("tests", self.words, "none of the tests is of them")
        return chosen

    def takes(self, test: PromptTest, valid: Collection[str] = ()) -> bool:
        """Return whether a test is chosen.

        Baseline tests have neither a rule nor a direction, so they are not among tests chosen by
        these.

        Args:
            test: the test.
            valid: uids of the tests whose input is valid.
        """
        direction = "negative" if test.inverse else "positive"
        return (
            (not self.rules or test.rule_id in self.rules)
            and (not self.scenarios or test.scenario in self.scenarios)
            and (self.direction is None or (direction == self.direction and not test.baseline))
            and (not self.only_valid or test.uid in valid)
        )

    @property
    def words(self) -> str:
        """The chosen tests in words; empty for all."""
        words = {
            "rule": ", ".join(map(str, self.rules)),
            "scenario": ", ".join(self.scenarios),
            "direction": self.direction or "",
            "input": "valid" if self.only_valid else "",
        }
        return "; ".join(f"{name} {value}" for name, value in words.items() if value)


def valid_uids(checks: Iterable[TestCheck]) -> set[str]:
    """Return the uids of the tests whose input was judged valid."""
    return {
        check.test.uid
        for check in checks
        if check.validity is not None and check.validity.outcome == "ok"
    }


def input_text(inputs: dict[str, JsonValue]) -> str:
    """Return inputs as one text: a single input's text, or a JSON object.

    A single input that is not a text is written as JSON; None is `null`.
    """
    if len(inputs) == 1:
        [value] = inputs.values()
        return "null" if value is None else as_text(value)
    return as_text(inputs)


def as_text(value: object) -> str:
    """Return a value as text: a text unchanged, None as empty, anything else as JSON.

    What JSON does not know is written by `str`.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def make_uid(
    *, rule: str, inverse: bool, inputs: dict[str, JsonValue], scenario: str, baseline: bool
) -> str:
    """Return a test's id, made from its content: `test-` and 8 hex digits."""
    content = json.dumps([rule, inverse, inputs, scenario, baseline], sort_keys=True)
    return f"test-{digest(content)[:8]}"


def digest(text: str) -> str:
    """Return the SHA-256 of a text as 64 hex digits; the text may contain lone surrogates."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
