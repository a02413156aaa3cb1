"""Options of the `rag-eval prompt-tests` commands: single options and shared groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from rag_eval_integrations.cli._model_options import ExtraBody, MaxTokens, Timeout
from rag_eval_integrations.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from rag_eval_integrations.prompt_tests.records import Choice, Direction

Put = Annotated[
    Path, typer.Argument(metavar="PUT", help="The prompt under test (.prompty, .md, .prompt.yml).")
]
Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the prompt's tests.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files.")]
Generator = Annotated[
    str,
    typer.Option(
        metavar="MODEL", help="Model that generates rules and tests: openai:NAME or MODULE:OBJECT."
    ),
]
Muts = Annotated[
    list[str],
    typer.Option(
        metavar="MODEL",
        help="Model under test: openai:NAME, or MODULE:OBJECT in your own code; repeatable.",
    ),
]
Judges = Annotated[
    list[str],
    typer.Option(metavar="MODEL", help="The judge: openai:NAME or MODULE:OBJECT; repeatable."),
]
MaxRules = Annotated[
    int | None, typer.Option(metavar="N", help="Maximum number of rules with tests (default: all).")
]
Baseline = Annotated[
    bool | None,
    typer.Option(
        "--baseline/--no-baseline",
        help="Include baseline tests, made from the prompt without rules (default: included).",
    ),
]
Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Generate tests for this scenario only; repeatable (default: all)."
    ),
]
Groundtruth = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="Strong model that writes and rates the expected outputs."),
]
Runs = Annotated[int, typer.Option(metavar="N", min=1, help="Repetitions per test.")]
MaxTests = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Run only the first N tests.")
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SHARE|METRIC=VALUE",
        help="Exit 1 if the share of compliant outputs of any model is below SHARE (0 to 1), or "
        "its mean of a metric below VALUE (0 to 100); repeatable.",
    ),
]
Majority = Annotated[
    bool,
    typer.Option(
        "--majority", help="Count the verdict of most judges instead of the first judge's."
    ),
]
UnknownErr = Annotated[
    bool, typer.Option("--unknown-as-err", help="Count unknown verdicts as not compliant.")
]


@dataclass(frozen=True)
class GenerateSettings:
    """Options for generating rules and tests: the fields of `GenerateOptions.of`."""

    effort: Annotated[
        str | None,
        typer.Option(
            metavar="min|low|medium|high", help="Effort preset; explicit options override it."
        ),
    ] = None
    rules: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of output rules to extract; 0 for all (default)."),
    ] = None
    max_rules: MaxRules = None
    tests_per_rule: Annotated[
        int | None, typer.Option(metavar="N", help="Tests per rule (default 3).")
    ] = None
    rules_per_group: Annotated[
        int | None, typer.Option(metavar="N", help="Rules per request (default 3).")
    ] = None
    split_rules: Annotated[
        bool | None,
        typer.Option(
            "--split/--no-split",
            help="Generate tests of rules and of inverse rules in separate requests (default).",
        ),
    ] = None
    generations: Annotated[
        int | None,
        typer.Option(metavar="N", help="Rounds of test generation per group of rules (default 1)."),
    ] = None
    expansions: Annotated[
        int | None, typer.Option(metavar="N", help="Times each test is made longer (default 0).")
    ] = None
    baseline: Baseline = None
    keep: Annotated[
        int | None, typer.Option(metavar="N", help="Review the tests and keep the best N.")
    ] = None


@dataclass(frozen=True)
class MutSettings:
    """Settings of the models under test."""

    temperature: Annotated[
        float | None, typer.Option(metavar="T", min=0, help="Temperature of the models under test.")
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Request field of the models under test, such as top_p=0.9; replaces the "
            "prompt's; null removes it; repeatable.",
        ),
    ] = None

    def parameters(self) -> dict[str, JsonValue]:
        """Return the settings by name.

        Raises:
            ConfigurationError: for another form than `NAME=VALUE`, or a name given twice.
        """
        from rag_eval_integrations.models._reading import loads  # noqa: PLC0415  # for --help

        found: dict[str, JsonValue] = {}
        for word in self.param or ():
            name, equals, value = word.partition("=")
            if not equals or not name.isidentifier():
                raise ConfigurationError("--param", word, "use NAME=VALUE, such as top_p=0.9")
            if name in found or (name == "temperature" and self.temperature is not None):
                raise ConfigurationError("--param", word, f"{name} has a value already; give one")
            try:
                found[name] = loads(value)
            except (ValueError, RecursionError):
                found[name] = value
        if self.temperature is not None:
            found["temperature"] = self.temperature
        return found


@dataclass(frozen=True)
class ChoiceSettings:
    """Options that choose some of the tests."""

    only_valid: Annotated[
        bool,
        typer.Option(
            "--only-valid", help="Only tests whose input was judged valid (evaluate --validity)."
        ),
    ] = False
    rule: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Only tests of this rule; repeatable.")
    ] = None
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only tests of this scenario; repeatable."),
    ] = None
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="positive|negative",
            help="Only tests of rules (positive) or of inverse rules (negative, or inverse).",
        ),
    ] = None

    def choice(self) -> Choice:
        """Return the choice.

        Raises:
            ConfigurationError: for another direction.
        """
        from rag_eval_integrations.prompt_tests.records import Choice  # noqa: PLC0415  # for --help

        words = {None: None, "positive": "positive", "negative": "negative", "inverse": "negative"}
        if self.direction not in words:
            raise ConfigurationError("--direction", self.direction, "use positive or negative")
        return Choice(
            rules=tuple(self.rule or ()),
            scenarios=tuple(self.scenario or ()),
            direction=cast("Direction | None", words[self.direction]),
            only_valid=self.only_valid,
        )


@dataclass(frozen=True)
class CompareSettings:
    """Options that compare with an earlier run."""

    before: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of an earlier run to compare with.")
    ] = None
    fail_on_regression: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DELTA",
            help="Exit 1 if compliance, or a metric, of any model fell by more than DELTA (0 to 1) "
            "since --before; repeatable.",
        ),
    ] = None
    fail_on_unclear: Annotated[
        bool,
        typer.Option(
            "--fail-on-unclear",
            help="Exit 1 also if there are too few tests to tell whether it fell by more.",
        ),
    ] = False


@dataclass(frozen=True)
class JudgeSettings:
    """Options for judging outputs, tests and rules."""

    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Evaluate only this metric; repeatable (default: all next to the prompt).",
        ),
    ] = None
    metric_var: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE|NAME=@FILE",
            help="Value for a variable of the metric files; repeatable.",
        ),
    ] = None
    basis: Annotated[
        str,
        typer.Option(
            metavar="rules|prompt",
            help="Judge compliance with the extracted rules or with the prompt itself.",
        ),
    ] = "rules"
    see_input: Annotated[
        bool | None,
        typer.Option(
            "--see-input/--no-see-input",
            help="Show the judge the test's input (default: with --basis rules only).",
        ),
    ] = None
    validity: Annotated[
        bool, typer.Option("--validity", help="Also judge whether each test's input is valid.")
    ] = False
    groundedness: Annotated[
        bool,
        typer.Option("--groundedness", help="Also judge whether the prompt supports each rule."),
    ] = False
    agreement: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Also answer each test with this model from the extracted rules alone, and judge "
            "those answers by the prompt.",
        ),
    ] = None


@dataclass(frozen=True)
class RequestSettings:
    """Endpoint and limits of the requests to models."""

    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible endpoint, including /v1.")
    ] = None
    rpm: Annotated[
        float | None, typer.Option(metavar="N", help="Requests per minute, per model.")
    ] = None
    tpm: Annotated[
        float | None, typer.Option(metavar="N", help="Tokens per minute, per model.")
    ] = None
    max_concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of concurrent requests.")
    ] = 8
    timeout: Timeout = None
    max_tokens: MaxTokens = None
    extra_body: ExtraBody = None
    prices: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|genai-prices",
            help="Prices: a JSON or YAML file {MODEL: {input: …, output: …}} in US dollars per "
            "million tokens, or the installed package.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check the input and estimate the cost; send and write nothing."
        ),
    ] = False


@dataclass(frozen=True)
class AuthorSettings:
    """What the prompt's author adds to its file."""

    intent_instructions: Annotated[
        str | None,
        typer.Option(metavar="TEXT|@FILE", help="Added to the request for the prompt's purpose."),
    ] = None
    input_spec_instructions: Annotated[
        str | None,
        typer.Option(metavar="TEXT|@FILE", help="Added to the request for the rules of an input."),
    ] = None
    output_rules_instructions: Annotated[
        str | None,
        typer.Option(metavar="TEXT|@FILE", help="Added to the request for output rules."),
    ] = None
    inverse_output_rules_instructions: Annotated[
        str | None,
        typer.Option(metavar="TEXT|@FILE", help="Added to the request for inverse rules."),
    ] = None
    test_expansion_instructions: Annotated[
        str | None,
        typer.Option(metavar="TEXT|@FILE", help="Added to the requests for longer tests."),
    ] = None
    test_samples: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Example inputs (.csv, .json or .yaml).")
    ] = None
    custom_metric: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|@FILE", help="A metric of your own, which the folder keeps as `custom`."
        ),
    ] = None
