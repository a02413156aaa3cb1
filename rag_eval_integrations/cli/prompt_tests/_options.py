"""Options of the `rag-eval prompt-tests` commands: a dataclass per command, of shared groups."""

# ruff: noqa: RUF009  # what is called makes a field

from __future__ import annotations

from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rag_eval_integrations.cli._grouped import argument, option
from rag_eval_integrations.cli._settings import ENVIRONMENT
from rag_eval_integrations.cli._shared_arguments import Answers, Overwrite
from rag_eval_integrations.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from rag_eval_integrations.prompt_tests import generate
    from rag_eval_integrations.prompt_tests.evaluate import Basis, NonCompliance
    from rag_eval_integrations.prompt_tests.prompt import AuthorWords
    from rag_eval_integrations.prompt_tests.records import Choice, Direction


def _value_option(section: str, metavar: str, help_: str, *names: str, **settings: Any) -> Any:
    """Declare an option with a value."""
    return option(section, help_, *names, metavar=metavar, **settings)


def _flag(section: str, help_: str, *names: str, default: bool | None = False) -> Any:
    """Declare an option without a value."""
    return option(section, help_, *names, default=default)


_TESTS, _JUDGE, _CHECKS = "Tests", "Judge", "Checks"
_input = partial(_value_option, "Input")
_test = partial(_value_option, _TESTS)
_mut = partial(_value_option, "Models under test")
_judge = partial(_value_option, _JUDGE)
_metric = partial(_value_option, "Metrics")
_limit = partial(_value_option, "Requests and limits")
_check = partial(_value_option, _CHECKS)
_output = partial(_value_option, "Output")
_WORDS = "TEXT|@FILE"

# --- Groups that several commands have


@dataclass(frozen=True, kw_only=True)
class _PromptFile:
    prompt_file: Path = argument("The prompt under test (.prompty, .md, .prompt.yml).", "PUT")


@dataclass(frozen=True, kw_only=True)
class _Folder:
    folder: Path = argument("Folder of the prompt's tests.", "DIR")


@dataclass(frozen=True, kw_only=True)
class _Out:
    out: Path = _output("DIR", "Folder for the files.", "--out", "-o", default=MISSING)


@dataclass(frozen=True, kw_only=True)
class _Requests(Answers):
    """Endpoint and limits of the requests to models."""

    base_url: str | None = _limit(
        "URL", "OpenAI-compatible endpoint, including /v1.", envvar=ENVIRONMENT["base-url"]
    )
    rpm: float | None = _limit("N", "Requests per minute, per model.")
    tpm: float | None = _limit("N", "Tokens per minute, per model.")
    max_concurrency: int = _limit("N", "Maximum number of concurrent requests.", min=1, default=8)
    prices: str | None = _limit(
        "FILE",
        "Prices: a JSON or YAML file {MODEL: {input: …, output: …}} in US dollars "
        "per million tokens.",
    )
    dry_run: bool = _flag(_CHECKS, "Estimate the cost; send and write nothing.")

    def requests(self) -> dict[str, Any]:
        """Check these options, and return them as arguments of `judge_from`.

        Raises:
            ConfigurationError: for a value that cannot be used; names the option.
        """
        from rag_eval_integrations.cli._judges import key_for  # noqa: PLC0415 -- not for `--help`

        return {
            "base_url": self.base_url,
            "rpm": self.rpm,
            "tpm": self.tpm,
            "max_concurrency": self.max_concurrency,
            **key_for(dry_run=self.dry_run),
            **self.answers(),
        }


@dataclass(frozen=True, kw_only=True)
class _Baseline:
    baseline: bool | None = _flag(
        _TESTS,
        "Include tests made without rules, for comparison (default).",
        default=None,
    )


@dataclass(frozen=True, kw_only=True)
class _Running(_Baseline, _Requests):
    """How often tests are run, and how the models under test are asked."""

    mut: list[str] = _mut(
        "MODEL",
        "Model under test: openai:NAME, or MODULE:OBJECT in your own code; repeatable.",
        default=MISSING,
    )
    runs: int = _mut("N", "Repetitions per test.", min=1, default=1)
    max_tests: int | None = _mut("N", "Run only the first N tests.", min=1)
    temperature: float | None = _mut("T", "Temperature of the models under test.", min=0)
    param: list[str] | None = _mut(
        "NAME=VALUE",
        "Request field of the models under test, such as top_p=0.9; replaces "
        "the prompt's; null removes it; repeatable.",
    )

    def parameters(self) -> dict[str, JsonValue]:
        """Return the settings of requests by name; values are JSON, or else texts.

        `max_tokens` is None, which takes the prompt's out of it, where the option gives the limit.

        Raises:
            ConfigurationError: for another form than `NAME=VALUE`, or a name given twice.
        """
        from rag_eval_integrations.models._reading import loads  # noqa: PLC0415  # for --help

        parameters: dict[str, JsonValue] = {}
        if self.temperature is not None:
            parameters["temperature"] = self.temperature
        if self.max_tokens is not None:
            parameters["max_tokens"] = None  # the openai: models have it already, in place of this
        for word in self.param or ():
            name, equals, value = word.partition("=")
            if not equals or not name.isidentifier():
                raise ConfigurationError("--param", word, "use NAME=VALUE, such as top_p=0.9")
            if name in parameters:
                raise ConfigurationError("--param", word, f"{name} has a value already; give one")
            try:
                parameters[name] = loads(value)
            except (ValueError, RecursionError):
                parameters[name] = value
        return parameters


@dataclass(frozen=True, kw_only=True)
class _OutputJudging(_Requests):
    """Options for judging outputs, tests and rules."""

    judge: list[str] = _judge(
        "MODEL", "The judge: openai:NAME or MODULE:OBJECT; repeatable.", default=MISSING
    )
    metric: list[str] | None = _metric(
        "NAME|FILE", "Only this metric; repeatable (default: all next to the prompt)."
    )
    metric_var: list[str] | None = _metric(
        "NAME=VALUE|NAME=@FILE", "A variable of the metric files; repeatable."
    )
    basis: str = _judge("rules|prompt", "What compliance is judged by.", default="rules")
    see_input: bool | None = _flag(
        _JUDGE,
        "Show the test's input (default: with --basis rules).",
        default=None,
    )
    validity: bool = _flag(_JUDGE, "Also judge if each test's input is valid.")
    groundedness: bool = _flag(_JUDGE, "Also judge if the prompt supports each rule.")
    agreement: str | None = _judge(
        "MODEL",
        "Also answer each test with this model from the extracted rules alone, "
        "and judge those answers by the prompt.",
    )

    def compliance(self) -> NonCompliance:
        """Return how compliance is judged.

        Raises:
            ConfigurationError: for another basis.
        """
        from rag_eval_integrations.prompt_tests.evaluate import NonCompliance  # noqa: PLC0415  # for --help

        return NonCompliance(cast("Basis", self.basis), self.see_input)


@dataclass(frozen=True, kw_only=True)
class _Verdicts:
    """How verdicts count, and the least that they have to reach."""

    unknown_as_err: bool = _flag(_CHECKS, "Count unknown verdicts as not compliant.")
    majority: bool = _flag(_CHECKS, "Count the verdict of most judges.")
    fail_under: list[str] | None = _check(
        "SHARE|METRIC=VALUE",
        "Exit 1 if the share of compliant outputs of any model is "
        "below SHARE (0 to 1), or its mean of a metric below VALUE (0 to 100); repeatable.",
    )


@dataclass(frozen=True, kw_only=True)
class _Choosing:
    only_valid: bool = _flag(_TESTS, "Only tests with a valid input (evaluate --validity).")
    rule: list[int] | None = _test("N", "Only tests of this rule; repeatable.")
    scenario: list[str] | None = _test("NAME", "Only tests of this scenario; repeatable.")
    direction: str | None = _test(
        "positive|negative", "Only tests of rules, or of inverse rules (or: inverse)."
    )

    def choice(self) -> Choice:
        """Return the choice of tests; the direction `inverse` means `negative`.

        Raises:
            ConfigurationError: for another direction.
        """
        from rag_eval_integrations.prompt_tests.records import Choice  # noqa: PLC0415  # for --help

        direction = "negative" if self.direction == "inverse" else self.direction
        if direction not in (None, "positive", "negative"):
            raise ConfigurationError("--direction", self.direction, "use positive or negative")
        return Choice(
            rules=tuple(self.rule or ()),
            scenarios=tuple(self.scenario or ()),
            direction=cast("Direction | None", direction),
            only_valid=self.only_valid,
        )


# --- The commands


@dataclass(frozen=True, kw_only=True)
class GenerateOptions(_PromptFile, _Out, _Baseline, _Requests):
    """Generate rules and tests; a stage whose file exists is not run again.

    Without --effort, 3 tests are made per rule, 3 rules per request, for all rules.

    \b
    --effort  max rules  tests per rule  rules per request  rounds  expansions
    min               6               1                100       1           0
    low               3               2                100       1           0
    medium           20               3                  5       1           0
    high             50               3                  2       2           1

    `min` puts rules and inverse rules into one request and makes no baseline tests.
    """  # noqa: D301  # the sign itself keeps the lines of the table

    model: str = _test(
        "MODEL", "Generator of rules and tests: openai:NAME or MODULE:OBJECT.", default=MISSING
    )
    effort: str | None = _test("min|low|medium|high", "Effort preset; options override it.")
    rules: int | None = _test("N", "Number of output rules to extract; 0 for all (default).")
    max_rules: int | None = _test("N", "Maximum number of rules with tests (default: all).")
    tests_per_rule: int | None = _test("N", "Tests per rule (default 3).")
    rules_per_group: int | None = _test("N", "Rules per request (default 3).")
    split_rules: bool | None = _flag(
        _TESTS,
        "Ask for tests of rules and of inverse rules apart (default).",
        "--split/--no-split",
        default=None,
    )
    generations: int | None = _test("N", "Rounds per group of rules (default 1).")
    expansions: int | None = _test("N", "Times each test is made longer (default 0).")
    keep: int | None = _test("N", "Review the tests and keep the best N.")
    only_scenario: list[str] | None = _test(
        "NAME", "Generate tests for this scenario only; repeatable (default: all).", "--scenario"
    )
    groundtruth: str | None = _test("MODEL", "Model that writes and rates expected outputs.")
    intent_instructions: str | None = _input(_WORDS, "Added where the purpose is asked for.")
    input_spec_instructions: str | None = _input(
        _WORDS, "Added where rules of an input are asked for."
    )
    output_rules_instructions: str | None = _input(
        _WORDS, "Added where output rules are asked for."
    )
    inverse_output_rules_instructions: str | None = _input(_WORDS, "Added for inverse rules.")
    test_expansion_instructions: str | None = _input(_WORDS, "Added for longer tests.")
    test_samples: Path | None = _input("FILE", "Example inputs (.csv, .json or .yaml).")
    custom_metric: str | None = _metric(_WORDS, "Your own metric, kept as `custom`.")

    def amounts(self) -> generate.GenerateOptions:
        """Return how much is generated: the effort's preset, and what overrides it.

        Raises:
            ConfigurationError: for an unknown preset, or a number out of range.
        """
        from rag_eval_integrations.prompt_tests import generate  # noqa: PLC0415  # for --help

        return generate.GenerateOptions.of(
            self.effort,
            rules=self.rules,
            max_rules=self.max_rules,
            tests_per_rule=self.tests_per_rule,
            split_rules=self.split_rules,
            rules_per_group=self.rules_per_group,
            generations=self.generations,
            expansions=self.expansions,
            baseline=self.baseline,
            keep=self.keep,
        )

    def author(self) -> AuthorWords:
        """Return the author's instructions by stage, and samples; files are read.

        Raises:
            ConfigurationError: for a file that cannot be used.
            OSError: when a file of instructions cannot be read.
        """
        from rag_eval_integrations.cli._options import text_of  # noqa: PLC0415  # for --help
        from rag_eval_integrations.prompt_tests.prompt import AuthorWords, read_samples  # noqa: PLC0415

        given = {
            "intent": self.intent_instructions,
            "inputSpec": self.input_spec_instructions,
            "outputRules": self.output_rules_instructions,
            "inverseOutputRules": self.inverse_output_rules_instructions,
            "testExpansion": self.test_expansion_instructions,
        }
        instructions = {
            stage: text_of(text, f"instructions for {stage}").strip()
            for stage, text in given.items()
            if text is not None
        }
        path, samples = self.test_samples, None
        if path is not None:
            samples = tuple(read_samples(path.resolve().parent, path.name, "--test-samples"))
        return AuthorWords(instructions, samples)


@dataclass(frozen=True, kw_only=True)
class RunOptions(_Folder, _Running, _Choosing):
    """Run the tests on models; recorded answers are reused."""


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(_Folder, _OutputJudging):
    """Judge the outputs: compliance, and every metric file next to the prompt."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions(_Folder, _Verdicts, _Choosing):
    """Print the overview and write overview.csv, report.json, README.md and report.html."""

    form: str | None = _output("md|csv|json|html", "Print the report in this format.", "--format")
    before: Path | None = _check("DIR", "Folder of an earlier run to compare with.")
    fail_on_regression: list[str] | None = _check(
        "NAME=DELTA",
        "Exit 1 if compliance, or a metric, of any model fell by more than "
        "DELTA (0 to 1) since --before; repeatable.",
    )
    fail_on_unclear: bool = _flag(_CHECKS, "Exit 1 also if too few tests can tell.")


@dataclass(frozen=True, kw_only=True)
class AllOptions(GenerateOptions, _Running, _OutputJudging, _Verdicts):
    """Generate, run, evaluate and report in one command."""


@dataclass(frozen=True, kw_only=True)
class MetricsOptions(_PromptFile):
    """List the metric files next to a prompt, with warnings."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions(_Out, Overwrite):
    """Import tests and results from PromptPex into a new folder.

    One that exists is replaced with --overwrite only, and kept as DIR.bak if it holds more than an
    import.
    """

    source: Path = argument(
        "File promptpex_context.json, a .prompt.yml, or a folder of PromptPex's files.",
        "CONTEXT.json",
    )
    prompt: Path | None = _input("PUT", "The prompt under test, if the source lacks it.")
    max_rules: int | None = _input("N", "Rules that PromptPex numbered first (default: as told).")


@dataclass(frozen=True, kw_only=True)
class ExportOptions(_Folder, Overwrite):
    """Export the tests for another tool; what its format cannot hold is said."""

    to: str = _output(
        "openai|csv|pytest|langsmith",
        "Format: OpenAI's evals, a table, a test file, LangSmith's examples.",
        default=MISSING,
    )
    out: str | None = _output(
        "PATH", "File or folder (default: in DIR); - for stdout.", "--out", "-o"
    )
    model: str | None = _output("NAME", "Model to run and ask.")
