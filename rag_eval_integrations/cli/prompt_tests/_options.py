"""Options of the `rag-eval prompt-tests` commands: single options and shared groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rag_eval_integrations.cli._arguments import ExtraBody, MaxTokens, Timeout
from rag_eval_integrations.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from rag_eval_integrations.prompt_tests.records import Choice, Direction


def _of(metavar: str, help_: str, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=help_, **more)


def flag(names: str, help_: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(names, help=help_)


PromptFile = Annotated[
    Path, typer.Argument(metavar="PUT", help="The prompt under test (.prompty, .md, .prompt.yml).")
]
Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the prompt's tests.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files.")]
Generator = Annotated[
    str, _of("MODEL", "Model that generates rules and tests: openai:NAME or MODULE:OBJECT.")
]
Muts = Annotated[
    list[str],
    _of("MODEL", "Model under test: openai:NAME, or MODULE:OBJECT in your own code; repeatable."),
]
Judges = Annotated[list[str], _of("MODEL", "The judge: openai:NAME or MODULE:OBJECT; repeatable.")]
MaxRules = Annotated[int | None, _of("N", "Maximum number of rules with tests (default: all).")]
Baseline = Annotated[
    bool | None,
    flag(
        "--baseline/--no-baseline",
        "Include baseline tests, made from the prompt without rules (default: included).",
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="md|csv|json|html", help="Print the report in this format."),
]
Overwrite = Annotated[bool, flag("--overwrite", "Replace what exists; a folder is kept as .bak.")]


@dataclass(frozen=True)
class GenerateSettings:
    """How much is generated, the fields of `GenerateOptions.of`; and what the author adds to it."""

    effort: Annotated[
        str | None, _of("min|low|medium|high", "Effort preset; explicit options override it.")
    ] = None
    rules: Annotated[
        int | None, _of("N", "Number of output rules to extract; 0 for all (default).")
    ] = None
    max_rules: MaxRules = None
    tests_per_rule: Annotated[int | None, _of("N", "Tests per rule (default 3).")] = None
    rules_per_group: Annotated[int | None, _of("N", "Rules per request (default 3).")] = None
    split_rules: Annotated[
        bool | None,
        flag(
            "--split/--no-split",
            "Generate tests of rules and of inverse rules in separate requests (default).",
        ),
    ] = None
    generations: Annotated[
        int | None, _of("N", "Rounds of test generation per group of rules (default 1).")
    ] = None
    expansions: Annotated[int | None, _of("N", "Times each test is made longer (default 0).")] = (
        None
    )
    baseline: Baseline = None
    keep: Annotated[int | None, _of("N", "Review the tests and keep the best N.")] = None
    scenario: Annotated[
        list[str] | None,
        _of("NAME", "Generate tests for this scenario only; repeatable (default: all)."),
    ] = None
    groundtruth: Annotated[
        str | None, _of("MODEL", "Strong model that writes and rates the expected outputs.")
    ] = None
    intent_instructions: Annotated[
        str | None, _of("TEXT|@FILE", "Added to the request for the prompt's purpose.")
    ] = None
    input_spec_instructions: Annotated[
        str | None, _of("TEXT|@FILE", "Added to the request for the rules of an input.")
    ] = None
    output_rules_instructions: Annotated[
        str | None, _of("TEXT|@FILE", "Added to the request for output rules.")
    ] = None
    inverse_output_rules_instructions: Annotated[
        str | None, _of("TEXT|@FILE", "Added to the request for inverse rules.")
    ] = None
    test_expansion_instructions: Annotated[
        str | None, _of("TEXT|@FILE", "Added to the requests for longer tests.")
    ] = None
    test_samples: Annotated[Path | None, _of("FILE", "Example inputs (.csv, .json or .yaml).")] = (
        None
    )
    custom_metric: Annotated[
        str | None, _of("TEXT|@FILE", "A metric of your own, which the folder keeps as `custom`.")
    ] = None


@dataclass(frozen=True)
class RunSettings:
    """How often tests are run, and how the models under test are asked."""

    runs: Annotated[int, _of("N", "Repetitions per test.", min=1)] = 1
    max_tests: Annotated[int | None, _of("N", "Run only the first N tests.", min=1)] = None
    temperature: Annotated[
        float | None, _of("T", "Temperature of the models under test.", min=0)
    ] = None
    param: Annotated[
        list[str] | None,
        _of(
            "NAME=VALUE",
            "Request field of the models under test, such as top_p=0.9; replaces the "
            "prompt's; null removes it; repeatable.",
        ),
    ] = None

    def parameters(self) -> dict[str, JsonValue]:
        """Return the settings of requests by name.

        Raises:
            ConfigurationError: for another form than `NAME=VALUE`, or a name given twice.
        """
        from rag_eval_integrations.models._reading import loads  # noqa: PLC0415  # for --help

        parameters: dict[str, JsonValue] = {}
        own: dict[str, JsonValue] = (
            {} if self.temperature is None else {"temperature": self.temperature}
        )
        for word in self.param or ():
            name, equals, value = word.partition("=")
            if not equals or not name.isidentifier():
                raise ConfigurationError("--param", word, "use NAME=VALUE, such as top_p=0.9")
            if name in {**parameters, **own}:
                raise ConfigurationError("--param", word, f"{name} has a value already; give one")
            try:
                parameters[name] = loads(value)
            except (ValueError, RecursionError):
                parameters[name] = value
        return {**parameters, **own}


@dataclass(frozen=True)
class ChoiceSettings:
    """Options that choose some of the tests."""

    only_valid: Annotated[
        bool,
        flag("--only-valid", "Only tests whose input was judged valid (evaluate --validity)."),
    ] = False
    rule: Annotated[list[int] | None, _of("N", "Only tests of this rule; repeatable.")] = None
    scenario: Annotated[
        list[str] | None, _of("NAME", "Only tests of this scenario; repeatable.")
    ] = None
    direction: Annotated[
        str | None,
        _of(
            "positive|negative",
            "Only tests of rules (positive) or of inverse rules (negative, or inverse).",
        ),
    ] = None

    def choice(self) -> Choice:
        """Return the choice.

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


@dataclass(frozen=True)
class ReportSettings:
    """How verdicts count, and the least that they have to reach."""

    unknown_as_err: Annotated[
        bool, flag("--unknown-as-err", "Count unknown verdicts as not compliant.")
    ] = False
    majority: Annotated[
        bool, flag("--majority", "Count the verdict of most judges instead of the first judge's.")
    ] = False
    fail_under: Annotated[
        list[str] | None,
        _of(
            "SHARE|METRIC=VALUE",
            "Exit 1 if the share of compliant outputs of any model is below SHARE (0 to 1), or "
            "its mean of a metric below VALUE (0 to 100); repeatable.",
        ),
    ] = None


@dataclass(frozen=True)
class CompareSettings:
    """Options that compare with an earlier run."""

    before: Annotated[Path | None, _of("DIR", "Folder of an earlier run to compare with.")] = None
    fail_on_regression: Annotated[
        list[str] | None,
        _of(
            "NAME=DELTA",
            "Exit 1 if compliance, or a metric, of any model fell by more than DELTA (0 to 1) "
            "since --before; repeatable.",
        ),
    ] = None
    fail_on_unclear: Annotated[
        bool,
        flag(
            "--fail-on-unclear",
            "Exit 1 also if there are too few tests to tell whether it fell by more.",
        ),
    ] = False


@dataclass(frozen=True)
class JudgeSettings:
    """Options for judging outputs, tests and rules."""

    metric: Annotated[
        list[str] | None,
        _of(
            "NAME|FILE", "Evaluate only this metric; repeatable (default: all next to the prompt)."
        ),
    ] = None
    metric_var: Annotated[
        list[str] | None,
        _of("NAME=VALUE|NAME=@FILE", "Value for a variable of the metric files; repeatable."),
    ] = None
    basis: Annotated[
        str,
        _of("rules|prompt", "Judge compliance with the extracted rules or with the prompt itself."),
    ] = "rules"
    see_input: Annotated[
        bool | None,
        flag(
            "--see-input/--no-see-input",
            "Show the judge the test's input (default: with --basis rules only).",
        ),
    ] = None
    validity: Annotated[
        bool, flag("--validity", "Also judge whether each test's input is valid.")
    ] = False
    groundedness: Annotated[
        bool, flag("--groundedness", "Also judge whether the prompt supports each rule.")
    ] = False
    agreement: Annotated[
        str | None,
        _of(
            "MODEL",
            "Also answer each test with this model from the extracted rules alone, and judge "
            "those answers by the prompt.",
        ),
    ] = None


@dataclass(frozen=True)
class RequestSettings:
    """Endpoint and limits of the requests to models."""

    base_url: Annotated[str | None, _of("URL", "OpenAI-compatible endpoint, including /v1.")] = None
    rpm: Annotated[float | None, _of("N", "Requests per minute, per model.")] = None
    tpm: Annotated[float | None, _of("N", "Tokens per minute, per model.")] = None
    max_concurrency: Annotated[int, _of("N", "Maximum number of concurrent requests.", min=1)] = 8
    timeout: Timeout = None
    max_tokens: MaxTokens = None
    extra_body: ExtraBody = None
    prices: Annotated[
        str | None,
        _of(
            "FILE",
            "Prices: a JSON or YAML file {MODEL: {input: …, output: …}} in US dollars per "
            "million tokens.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        flag("--dry-run", "Check the input and estimate the cost; send and write nothing."),
    ] = False
