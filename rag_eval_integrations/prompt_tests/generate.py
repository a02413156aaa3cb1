"""`Generation`: from a prompt to its specification and tests; finished stages are not repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from rag_eval_integrations import _loop
from rag_eval_integrations._visible import logger_of, one_line
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeUnavailableError,
    whole_number,
)
from rag_eval_integrations.evaluations._cells import paragraphs
from rag_eval_integrations.metrics.prompty import PromptyMetric, discover_metrics
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests import _upstream as files
from rag_eval_integrations.prompt_tests._replies import ParsedTests, baseline_text
from rag_eval_integrations.prompt_tests._requests import RecordedModel, run_jobs
from rag_eval_integrations.prompt_tests._spec_lines import inverse_by_rule
from rag_eval_integrations.prompt_tests._spec_stages import (
    write_input_spec,
    write_intent,
    write_inverse_rules,
    write_rules,
)
from rag_eval_integrations.prompt_tests._test_stages import (
    RuleGroup,
    add_groundtruth,
    expand_test,
    review_tests,
    rule_groups,
    write_baseline,
    write_tests,
)
from rag_eval_integrations.prompt_tests._workspace import Tell, Workspace
from rag_eval_integrations.prompt_tests.evaluate import OWN_METRICS
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec
from rag_eval_integrations.prompt_tests.run import model_from

# --- Options: how much is generated, and presets of effort


Effort = Literal["min", "low", "medium", "high"]


@dataclass(frozen=True)
class GenerateOptions:
    """Options of the generation stages.

    `GenerateOptions.of(effort, …)` makes options from a preset; explicit options override it.

    Raises:
        ConfigurationError: for a number out of range.
    """

    rules: int = 0
    """Number of output rules to extract, 0 to 100; 0 for all."""
    max_rules: int | None = None
    """Maximum number of rules with tests, 1 to 1000, and of inverse rules; None for all."""
    tests_per_rule: int = 3
    """Tests per rule in each generation, 1 to 100."""
    split_rules: bool = True
    """Whether tests of rules and of inverse rules are generated in separate requests."""
    rules_per_group: int = 3
    """Rules per request, 1 to 1000."""
    generations: int = 1
    """Rounds of test generation per group of rules, 1 to 20."""
    expansions: int = 0
    """Times each test is made longer, 0 to 5."""
    baseline: bool = True
    """Whether to add the same number of baseline tests, which are made without rules."""
    keep: int | None = None
    """Number of tests to keep after a review, 1 to 10,000; None for all, without a review."""

    def __post_init__(self) -> None:
        ranges = {
            "rules": (0, 100),
            "max_rules": (1, 1000),
            "tests_per_rule": (1, 100),
            "rules_per_group": (1, 1000),
            "generations": (1, 20),
            "expansions": (0, 5),
            "keep": (1, 10_000),
        }
        for field, (low, high) in ranges.items():
            value = getattr(self, field)
            if value is not None and not low <= value <= high:
                raise ConfigurationError(field, value, f"use a number from {low} to {high}")

    @staticmethod
    def of(effort: str | None = None, **explicit: int | bool | None) -> GenerateOptions:
        """Make options from a preset and explicit options, which override it.

        Args:
            effort: `min`, `low`, `medium` or `high`; None for the defaults.
            explicit: options by field name; None leaves the preset's value.

        Raises:
            ConfigurationError: for an unknown preset, or a number out of range.
        """
        if effort is not None and effort not in PRESETS:
            raise ConfigurationError("effort", effort, f"use {', '.join(get_args(Effort))}")
        preset = PRESETS[effort] if effort is not None else GenerateOptions()
        given = {name: value for name, value in explicit.items() if value is not None}
        return replace(preset, **given)  # type: ignore[arg-type]


PRESETS: dict[str, GenerateOptions] = {
    "min": GenerateOptions(
        max_rules=6, tests_per_rule=1, rules_per_group=100, split_rules=False, baseline=False
    ),
    "low": GenerateOptions(max_rules=3, rules_per_group=100, tests_per_rule=2),
    "medium": GenerateOptions(max_rules=20, tests_per_rule=3, rules_per_group=5),
    "high": GenerateOptions(
        max_rules=50, tests_per_rule=3, rules_per_group=2, generations=2, expansions=1
    ),
}
"""Options by effort."""

logger = logger_of(__name__)


# --- The stages


class Generation:
    """The generation of rules and tests for a prompt, stage by stage, in a folder.

    Every stage can be called on its own; it reads the earlier stages' files and runs those that
    are missing. A stage whose file exists reads the file: edit it, or delete it to run the stage
    again.

    Args:
        prompt: the prompt under test, in any form that `PromptUnderTest.of` accepts.
        folder: folder for the files.
        model: the generator: `openai:MODEL` or any model that answers messages.
        options: how much to generate; by default `GenerateOptions()`.
        scenarios: names of the prompt's scenarios to generate tests for; by default all.
        max_concurrency: maximum number of concurrent requests, from 1.
        tell: receives notices, one sentence each; by default they are logged as warnings.

    Raises:
        ConfigurationError: for an object that is not a prompt or not a model, an unknown scenario,
            or a number out of range.
    """

    def __init__(
        self,
        prompt: object,
        folder: str | Path,
        model: Model | str,
        options: GenerateOptions | None = None,
        *,
        scenarios: Sequence[str] | None = None,
        max_concurrency: int = 8,
        tell: Tell = logger.warning,
    ) -> None:
        whole_number("max_concurrency", max_concurrency)
        self.prompt = PromptUnderTest.of(prompt)
        self.workspace = Workspace(folder)
        self.options = options or GenerateOptions()
        self.model = RecordedModel(
            model_from(model, "model"),
            self.workspace.journal(),
            max_concurrency=max_concurrency,
        )
        known = {scenario.name: scenario for scenario in self.prompt.scenarios}
        chosen = list(known) if scenarios is None else list(scenarios)
        for name in chosen:
            if name not in known:
                there = ", ".join(known) or "none"
                raise ConfigurationError("scenario", name, f"the prompt's scenarios are: {there}")
        self.scenarios = [known[name] for name in chosen]
        self._asking = (self.prompt, self.model)
        self.max_concurrency = max_concurrency
        self._tell = tell
        self._warned_of_no_rules = False
        self._down: JudgeUnavailableError | None = None
        """Why no more tests are made longer; None while the generator answers."""

    async def intent(self) -> str:
        """Run stage 1: the prompt's purpose in one sentence, read from its file if that exists.

        Raises:
            JudgeError: when the generator does not answer, or gives no usable reply.
        """
        return " ".join(await self._stage_lines(files.INTENT, lambda: write_intent(*self._asking)))

    async def input_spec(self) -> tuple[str, ...]:
        """Run stage 2: the rules of a valid input, read from their file if that exists.

        Raises:
            JudgeError: when the generator does not answer, or gives no usable reply.
        """
        return await self._stage_lines(files.INPUT_SPEC, lambda: write_input_spec(*self._asking))

    async def rules(self) -> tuple[str, ...]:
        """Run stage 3: the output rules; empty, with a notice, if the prompt sets none.

        They are read from their file if that exists. The notice is given once per object.

        Raises:
            JudgeError: when the generator does not answer, or gives no usable reply.
        """
        rules = await self._stage_lines(
            files.RULES,
            lambda: write_rules(*self._asking, self.options.rules),
            "no output rules were found in the prompt; write your own here, one per line",
        )
        if not rules and not self._warned_of_no_rules:
            self._warned_of_no_rules = True
            self._tell(
                f"{self.prompt.name}: no output rules were found, so no tests can be generated; "
                f"write rules into {self.workspace.path(files.RULES)}"
            )
        return rules

    async def inverse_rules(self) -> dict[int, str] | list[str]:
        """Run stage 4: inverse rules by rule number, or in the rules' order as in the file.

        They are read from their file if that exists. Stage 3 runs first; without rules the result
        is empty and nothing is written. A notice tells if there are not as many as rules.

        Raises:
            JudgeError: when the generator does not answer, or gives no usable reply.
        """
        rules = await self.rules()
        if not rules:
            return []

        async def write() -> tuple[str, ...]:
            """Write the inverse rules, with numbers if some are missing."""
            inverse = await write_inverse_rules(self.prompt, rules, self.model)
            if len(inverse) == len(rules):
                return tuple(inverse.values())
            return tuple(f"{number}. {text}" for number, text in inverse.items())

        lines = await self._stage_lines(files.INVERSE_RULES, write)
        if len(lines) != len(rules):
            self._tell(
                f"{self.prompt.name}: {len(rules)} rules but {len(lines)} inverse rules; if you "
                f"edited the rules, delete {files.INVERSE_RULES} to generate it again"
            )
        return inverse_by_rule(lines, len(rules))

    async def spec(self) -> Spec:
        """Run stages 1 to 4, the first three concurrently; return the specification in their files.

        Raises:
            JudgeError: when the generator does not answer, or gives no usable reply.
        """
        await asyncio.gather(self.intent(), self.input_spec(), self.rules())
        await self.inverse_rules()
        return self.workspace.spec()

    async def tests(self) -> list[PromptTest]:
        """Run all stages up to the tests: rule tests, then baseline tests; empty without rules.

        If `tests.json` exists, its tests are returned. Otherwise they are written into it, unless
        there are none. The journal is closed at the end. A review, baseline tests, longer tests,
        and tests of some rules can be missing, each with a notice.

        Raises:
            JudgeError: when the generator does not answer, or gives no usable specification.
        """
        with self.workspace.journal():
            spec = await self.spec()
            return await self._tests(spec)

    async def _tests(self, spec: Spec) -> list[PromptTest]:
        """Return the file's tests, or write and review new ones; empty without rules.

        New tests are written into `tests.json`, beside files with the review and the baseline
        tests. A review or baseline tests that fail are left out with a notice.
        """
        if self.workspace.has(files.TESTS):
            return self.workspace.tests(self.prompt, self._tell)
        if not spec.output_rules and not spec.inverse_rules:
            return []  # write no file, so that rules added by hand lead to tests
        tests = await self._rule_tests(spec)
        keep = self.options.keep
        if keep is not None and len(tests) > keep:
            with self._optional(f"all {len(tests)} tests are kept without a review"):
                review, tests = await review_tests(self.prompt, tests, self.model, keep)
                self.workspace.write(files.REVIEW, paragraphs(review))
        if self.options.baseline and tests:
            with self._optional("there are no baseline tests"):
                baseline = await write_baseline(*self._asking, len(tests))
                self.workspace.write(files.BASELINE, baseline_text(baseline))
                tests = [*tests, *baseline]
        if tests:
            self.workspace.write_json(files.TESTS, files.to_test_rows(tests))
        return tests

    async def groundtruth(
        self,
        model: Model | str,
        judges: Sequence[Model | str],
        metric: PromptyMetric | None = None,
    ) -> list[PromptTest]:
        """Run stage 9: write expected outputs for the tests without one into `tests.json`.

        Stages without a file run first. Expected outputs that are there are kept. All of them are
        also written into `test_groundtruth.json`.

        Args:
            model: a strong model, which writes the outputs.
            judges: models that rate the outputs.
            metric: the question to the judges; by default the metric file tagged `groundtruth` next
                to the prompt, or else the built-in one.

        Raises:
            ConfigurationError: for no judges, or a model that does not answer messages.
            JudgeError: when a model is not available, or does not answer for any test; after
                another failure, a test stays without, with a notice.

        Returns:
            All tests, in their order.
        """
        spec, tests = await self.spec(), await self.tests()
        journal = self.workspace.journal()
        strong = RecordedModel(model_from(model, "groundtruth"), journal)
        asked = [RecordedModel(model_from(judge, "judge"), journal) for judge in judges]
        if not asked:
            raise ConfigurationError("judges", judges, "give at least one")
        if metric is None and self.prompt.folder is not None:
            metric = next(iter(discover_metrics(self.prompt.folder, groundtruth=True)), None)
        measure = metric or PromptyMetric(OWN_METRICS / "groundtruth_eval.metric.prompty")

        failed: list[JudgeError] = []

        async def with_groundtruth(test: PromptTest) -> PromptTest:
            """Return a test with an expected output; one that has one is returned unchanged."""
            if test.groundtruth is not None:
                return test
            try:
                return await add_groundtruth(test, self.prompt, spec, strong, asked, measure)
            except JudgeError as error:
                failed.append(error)
                if isinstance(error, JudgeUnavailableError) or len(failed) == len(tests):
                    raise  # the next run goes on from here
                self._tell(f"{self.prompt.name}: {test.uid} gets no expected output: {error}")
                return test

        with journal:
            done = await run_jobs(tests, with_groundtruth, max_concurrency=self.max_concurrency)
        rows = [
            {
                "testuid": test.uid,
                "model": test.groundtruth_model,
                "output": test.groundtruth,
                "score": test.groundtruth_score,
                "isGroundtruth": True,
            }
            for test in done
        ]
        if done:  # an empty file would keep rules that are added by hand from leading to tests
            self.workspace.write_json(files.TESTS, files.to_test_rows(done))
            self.workspace.write_json(files.GROUNDTRUTH, rows)
        return done

    def run(self) -> list[PromptTest]:
        """Run all stages that make tests, from synchronous code; see `tests`."""
        return _loop.run(self.tests())

    async def _rule_tests(self, spec: Spec) -> list[PromptTest]:
        """Write the tests of all groups of rules, each once, and make them longer if wanted.

        Reasons why tests are missing are told. A group that fails has no tests.

        Raises:
            JudgeError: when the generator is not available, or does not answer for any group.
        """
        options = self.options
        groups = rule_groups(
            spec,
            self.scenarios,
            split=options.split_rules,
            most=options.rules_per_group,
            max_rules=options.max_rules,
        )
        failed: list[JudgeError] = []

        async def write(group: RuleGroup) -> ParsedTests:
            """Write the tests of a group; go on without them, with a notice, if that fails.

            Raises:
                JudgeError: when the generator is not available, or all groups failed.
            """
            try:
                return await write_tests(
                    self.prompt,
                    spec,
                    group,
                    self.model,
                    per_rule=options.tests_per_rule,
                    generations=options.generations,
                )
            except JudgeError as error:
                failed.append(error)
                if isinstance(error, JudgeUnavailableError) or len(failed) == len(groups):
                    raise  # the next run goes on from here
                self._tell_failure(error, f"there are no tests of rule {group.numbers}")
                return ParsedTests()

        tests: dict[str, PromptTest] = {}
        for group_tests in await run_jobs(groups, write, max_concurrency=self.max_concurrency):
            for lost in group_tests.lost:
                self._tell(f"{self.prompt.name}: {lost}")
            for test in group_tests.tests:
                tests.setdefault(test.uid, test)
        expanded = list(tests.values())
        for _ in range(options.expansions):
            work = partial(self._longer, spec=spec)
            expanded = await run_jobs(expanded, work, max_concurrency=self.max_concurrency)
        return expanded

    async def _longer(self, test: PromptTest, spec: Spec) -> PromptTest:
        """Return a longer form of a test; if that fails, the test itself, with a notice.

        Once the generator is not available, no more tests are sent to it.
        """
        if self._down is not None:
            return test
        try:
            return await expand_test(test, self.prompt, spec, self.model)
        except JudgeUnavailableError as error:
            if self._down is None:
                self._down = error
                self._tell_failure(error, "the other tests keep their short form")
        except JudgeError as error:
            self._tell_failure(
                error, f"{test.uid} ({one_line(test.testinput, 60)!r}) keeps its short form"
            )
        return test

    @contextmanager
    def _optional(self, so: str) -> Iterator[None]:
        """Turn a `JudgeError` of a step that is not needed into a notice."""
        try:
            yield
        except JudgeError as error:
            self._tell_failure(error, so)

    def _tell_failure(self, error: JudgeError, so: str) -> None:
        """Tell what the failure of an optional request means, and how to try again."""
        self._tell(
            f"{self.prompt.name}: {so}: {error} (to try again, delete {files.TESTS}; what was "
            "answered is not asked again)"
        )

    async def _stage_lines(
        self,
        name: str,
        write: Callable[[], Awaitable[tuple[str, ...]]],
        otherwise: str = "nothing was written",
    ) -> tuple[str, ...]:
        """Return the lines of a stage's file, which is written first if it is missing or blank.

        If there are no lines to write, the file gets the comment `otherwise`, and the result is
        empty.
        """
        if not self.workspace.has(name):
            self.workspace.write_lines(name, await write(), otherwise)
        return self.workspace.read_lines(name)
