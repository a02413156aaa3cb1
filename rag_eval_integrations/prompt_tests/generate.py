"""The stages in order, each skipped where its file is there: prompt → spec → tests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, get_args

from rag_eval_integrations import _loop
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.metrics.prompty import PromptyMetric, discover_metrics
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests import _workspace as files
from rag_eval_integrations.prompt_tests._asking import Recorded, each
from rag_eval_integrations.prompt_tests._workspace import Workspace, inverse_by_rule, make_spec
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec
from rag_eval_integrations.prompt_tests.stages._review import add_groundtruth, review_tests
from rag_eval_integrations.prompt_tests.stages._spec import (
    write_input_spec,
    write_intent,
    write_inverse_rules,
    write_rules,
)
from rag_eval_integrations.prompt_tests.stages._tests import (
    Group,
    Written,
    baseline_text,
    expand_test,
    groups_of,
    write_baseline,
    write_tests,
)
from rag_eval_integrations.prompt_tests.upstream import from_test_rows, to_test_rows
from rag_eval_integrations.prompt_tests.upstream._cells import rows_of

# --- How much is generated: presets of effort; what the user says explicitly always wins


Effort = Literal["min", "low", "medium", "high"]


@dataclass(frozen=True)
class GenerateOptions:
    """What the generation stages do.

    Make one with `GenerateOptions.of(effort, …)`: what is given there beats the preset.

    Raises:
        ConfigurationError: a number out of its range.
    """

    rules: int = 0
    """Output rules asked for; 0 for all that there are."""
    max_rules: int | None = None
    """Tests are made for so many rules at most, and as many inverse ones."""
    tests_per_rule: int = 3
    split_rules: bool = True
    """Ask for tests of rules and of inverse rules in requests of their own."""
    rules_per_group: int = 3
    """Rules a request."""
    generations: int = 1
    """How often each group is asked for more tests."""
    expansions: int = 0
    """How often each test is made longer."""
    baseline: bool = True
    """Make as many tests without rules."""
    keep: int | None = None
    """Have the tests reviewed, and keep so many of them."""

    def __post_init__(self) -> None:
        ranges = {
            "rules": (0, 100), "max_rules": (1, 1000), "tests_per_rule": (1, 100),
            "rules_per_group": (1, 1000), "generations": (1, 20), "expansions": (0, 5),
            "keep": (1, 10_000),
        }  # fmt: skip
        for field, (low, high) in ranges.items():
            value = getattr(self, field)
            if value is not None and not low <= value <= high:
                raise ConfigurationError(field, value, f"use a number from {low} to {high}")

    @staticmethod
    def of(effort: str | None = None, **explicit: int | bool | None) -> GenerateOptions:
        """Make options from a preset and what is given explicitly; None is not given.

        Raises:
            ConfigurationError: no such preset or option, or a number out of its range.
        """
        if effort is not None and effort not in PRESETS:
            raise ConfigurationError("effort", effort, f"use {', '.join(get_args(Effort))}")
        preset = PRESETS[effort] if effort is not None else GenerateOptions()
        known = {field.name for field in fields(GenerateOptions)}
        for name in explicit:
            if name not in known:
                raise ConfigurationError(name, explicit[name], "there is no such option")
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
"""By effort."""

logger = logging.getLogger(__name__)

Tell = Callable[[str], None]


class Generation:
    """Makes tests for a prompt, stage by stage, in a folder.

    Every stage can be called alone; it reads what it needs from the folder, and does what is
    missing of it first. A stage whose file is there reads it: edit the file, or delete it to have
    the stage done again.

    Args:
        prompt: the prompt under test, in any form that `PromptUnderTest.of` takes.
        folder: for the files.
        model: writes; `openai:MODEL` or any `Model`.
        options: how much.
        scenarios: names of the prompt's scenarios that tests are made for; by default all.
        max_concurrency: requests under way at once.
        tell: told what is worth knowing, one sentence each; by default the log.

    Raises:
        ConfigurationError: what is no prompt, no model, or no scenario of the prompt.
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
        if max_concurrency < 1:
            raise ConfigurationError("max_concurrency", max_concurrency, "use a number from 1")
        self.prompt = PromptUnderTest.of(prompt)
        self.workspace = Workspace(folder)
        self.options = options or GenerateOptions()
        self.model = Recorded(
            completer_of(model, "model"),
            self.workspace.journal(),
            max_concurrency=max_concurrency,
        )
        known = {one.name: one for one in self.prompt.scenarios}
        chosen = list(known) if scenarios is None else list(scenarios)
        for name in chosen:
            if name not in known:
                there = ", ".join(known) or "none"
                raise ConfigurationError("scenario", name, f"the prompt has {there}")
        self.scenarios = [known[name] for name in chosen]
        self.max_concurrency = max_concurrency
        self._tell = tell
        self._told_no_rules = False

    async def intent(self) -> str:
        """Stage 1."""
        return " ".join(await self._lines(files.INTENT, self._intent, "nothing was written"))

    async def _intent(self) -> tuple[str, ...]:
        return (await write_intent(self.prompt, self.model),)

    async def input_spec(self) -> tuple[str, ...]:
        """Stage 2."""
        return await self._lines(
            files.INPUT_SPEC,
            lambda: write_input_spec(self.prompt, self.model),
            "nothing was written",
        )

    async def rules(self) -> tuple[str, ...]:
        """Stage 3; a prompt that asks for nothing has none, which is said."""
        rules = await self._lines(
            files.RULES,
            lambda: write_rules(self.prompt, self.model, self.options.rules),
            "no output rules were found in the prompt; write your own here, one a line",
        )
        if not rules and not self._told_no_rules:
            self._told_no_rules = True
            self._tell(
                f"{self.prompt.name}: no output rules were found, so there is nothing to make "
                f"tests from; write some into {self.workspace.path(files.RULES)}"
            )
        return rules

    async def inverse_rules(self) -> dict[int, str] | list[str]:
        """Stage 4: by rule number, or in the rules' order as the file has them."""
        rules = await self.rules()
        if not rules:
            return []

        async def write() -> tuple[str, ...]:
            found = await write_inverse_rules(self.prompt, rules, self.model)
            if len(found) == len(rules):
                return tuple(found.values())
            return tuple(f"{number}. {text}" for number, text in found.items())

        lines = await self._lines(files.INVERSE_RULES, write, "no inverse rules were written")
        if len(lines) != len(rules):
            self._tell(
                f"{self.prompt.name}: {len(rules)} rules and {len(lines)} inverse rules; after an "
                f"edit of the rules, delete {files.INVERSE_RULES} to have them written again"
            )
        return inverse_by_rule(lines, len(rules))

    async def spec(self) -> Spec:
        """Stages 1 to 4; the first three at once."""
        intent, input_spec, rules = await asyncio.gather(
            self.intent(), self.input_spec(), self.rules()
        )
        return make_spec(intent, input_spec, rules, await self.inverse_rules())

    async def tests(self) -> list[PromptTest]:
        """Stages 5, 6, 8 and baseline: all tests, those of rules first."""
        spec = await self.spec()
        if self.workspace.has(files.TESTS):
            return self._read(spec)
        if not spec.output_rules and not spec.inverse_rules:
            return []  # no file: the rules that somebody writes then lead to tests
        tests = await self._rule_tests(spec)
        if self.options.keep is not None and len(tests) > self.options.keep:
            review = await review_tests(self.prompt, tests, self.model, self.options.keep)
            self.workspace.write(files.REVIEW, review.text.rstrip() + "\n")
            tests = review.kept
        if self.options.baseline and tests:
            baseline = await write_baseline(self.prompt, self.model, len(tests))
            self.workspace.write(files.BASELINE, baseline_text(baseline))
            tests += baseline
        if tests:
            self.workspace.write_json(files.TESTS, to_test_rows(tests))
        return tests

    async def groundtruth(
        self,
        model: Model | str,
        judges: Sequence[Model | str],
        metric: PromptyMetric | None = None,
    ) -> list[PromptTest]:
        """Stage 9: expected outputs for the tests that have none yet; written into `tests.json`.

        Args:
            model: gives the outputs; a strong one.
            judges: say how good they are.
            metric: what they are asked; by default the metric file tagged `groundtruth` beside
                the prompt, else our own.
        """
        spec, tests = await self.spec(), await self.tests()
        journal = self.workspace.journal()
        strong = Recorded(completer_of(model, "groundtruth"), journal)
        asked = [Recorded(completer_of(one, "judge"), journal) for one in judges]
        if not asked:
            raise ConfigurationError("judges", judges, "give at least one")
        measure = metric or groundtruth_metric(self.prompt)

        async def one(test: PromptTest) -> PromptTest:
            if test.groundtruth is not None:
                return test
            return await add_groundtruth(test, self.prompt, spec, strong, asked, measure)

        done = await each(tests, one, max_concurrency=self.max_concurrency)
        self.workspace.write_json(files.TESTS, to_test_rows(done))
        self.workspace.write_json(
            files.GROUNDTRUTH,
            [
                {"testuid": test.uid, "model": test.groundtruth_model, "output": test.groundtruth,
                 "score": test.groundtruth_score, "isGroundtruth": True}
                for test in done
            ],
        )  # fmt: skip
        return done

    def run(self) -> list[PromptTest]:
        """All stages that make tests, from code that is not async."""
        return _loop.run(self.tests())

    async def _rule_tests(self, spec: Spec) -> list[PromptTest]:
        options = self.options
        groups = groups_of(
            spec, self.scenarios, split=options.split_rules, most=options.rules_per_group,
            max_rules=options.max_rules,
        )  # fmt: skip

        async def write(group: Group) -> Written:
            return await write_tests(
                self.prompt, spec, group, self.model,
                per_rule=options.tests_per_rule, generations=options.generations,
            )  # fmt: skip

        tests: dict[str, PromptTest] = {}
        for written in await each(groups, write, max_concurrency=self.max_concurrency):
            for lost in written.lost:
                self._tell(f"{self.prompt.name}: {lost}")
            tests.update({test.uid: test for test in written.tests if test.uid not in tests})
        found = list(tests.values())
        for _ in range(options.expansions):
            found = await each(
                found,
                lambda test: expand_test(test, self.prompt, spec, self.model),
                max_concurrency=self.max_concurrency,
            )
        return found

    async def _lines(
        self, name: str, write: Callable[[], Awaitable[tuple[str, ...]]], otherwise: str
    ) -> tuple[str, ...]:
        if not self.workspace.has(name):
            self.workspace.write_lines(name, await write(), otherwise)
        return self.workspace.read_lines(name)

    def _read(self, spec: Spec) -> list[PromptTest]:
        return read_tests_file(self.workspace, self.prompt, spec, self._tell)


def read_tests_file(
    workspace: Workspace, prompt: PromptUnderTest, spec: Spec, tell: Tell
) -> list[PromptTest]:
    """Read a folder's tests.

    Raises:
        ConfigurationError: a file that holds no tests, or no list of objects.
        OSError: there is none.
    """
    lost: list[str] = []
    rows = rows_of(workspace.read_json(files.TESTS), files.TESTS)
    tests = from_test_rows(rows, prompt, spec, lost)
    for one in lost:
        tell(f"{workspace.path(files.TESTS)}: {one}")
    return tests


def completer_of(model: Model | str, field: str) -> Model:
    """Make a model of its name, or check that an object is one.

    Raises:
        ConfigurationError: what cannot answer messages.
    """
    if not isinstance(model, str | Model):
        from rag_eval_integrations.prompt_tests.models import model_of  # noqa: PLC0415  # hosts

        found = model_of(model)
    else:
        found = judge_from(model)
    if not isinstance(found, Model):
        raise ConfigurationError(field, model, "does not answer messages; use openai:MODEL")
    return found


def groundtruth_metric(prompt: PromptUnderTest) -> PromptyMetric:
    """Find the metric for expected outputs: beside the prompt, else our own."""
    if prompt.folder is not None:
        found = discover_metrics(prompt.folder, groundtruth=True)
        if found:
            return found[0]
    return PromptyMetric(OWN_METRICS / "groundtruth_eval.metric.prompty")


OWN_METRICS = Path(__file__).parent / "metrics"
