"""Options of `rag-eval prompt-tests …`: single ones, and groups that several commands take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

Put = Annotated[
    Path, typer.Argument(metavar="PUT", help="Prompt under test: .prompty, .md, .prompt.yml.")
]
Dir = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the prompt's tests.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the files go.")]
Generator = Annotated[
    str, typer.Option("--model", metavar="MODEL", help="Makes rules and tests: openai:NAME.")
]
Muts = Annotated[
    list[str],
    typer.Option(
        "--mut",
        metavar="MODEL",
        help="Model under test, may repeat: openai:NAME, or MODULE:OBJECT of your own code.",
    ),
]
Judges = Annotated[
    list[str], typer.Option("--judge", metavar="MODEL", help="Judges outputs, may repeat.")
]
MaxRules = Annotated[
    int | None, typer.Option("--max-rules", metavar="N", help="Make tests for so many rules.")
]
Baseline = Annotated[
    bool | None, typer.Option("--baseline/--no-baseline", help="Also tests without rules.")
]
Scenarios = Annotated[
    list[str] | None, typer.Option("--scenario", metavar="NAME", help="Only these; may repeat.")
]
Groundtruth = Annotated[
    str | None,
    typer.Option("--groundtruth", metavar="MODEL", help="Gives expected outputs; judged by it."),
]
Runs = Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Ask so often.")]
MaxTests = Annotated[
    int | None, typer.Option("--max-tests", metavar="N", min=1, help="Only the first N tests.")
]
FailUnder = Annotated[
    float | None,
    typer.Option(metavar="SHARE", min=0, max=1, help="Exit 1 when a model complies less."),
]
UnknownErr = Annotated[
    bool, typer.Option("--unknown-as-err", help="Count unknown verdicts as not compliant.")
]


@dataclass(frozen=True)
class Planning:
    """How rules and tests are made; the fields are those of `GenerateOptions.of`."""

    effort: Annotated[
        str | None, typer.Option(metavar="min|low|medium|high", help="Preset; flags beat it.")
    ] = None
    rules: Annotated[
        int | None, typer.Option("--rules", metavar="N", help="Ask for so many rules; 0 for all.")
    ] = None
    max_rules: MaxRules = None
    tests_per_rule: Annotated[
        int | None, typer.Option("--tests-per-rule", metavar="N", help="Tests a rule (3).")
    ] = None
    rules_per_group: Annotated[
        int | None, typer.Option("--rules-per-group", metavar="N", help="Rules a request (3).")
    ] = None
    split_rules: Annotated[
        bool | None, typer.Option("--split/--no-split", help="Ask for inverse rules apart.")
    ] = None
    generations: Annotated[
        int | None, typer.Option("--generations", metavar="N", help="Ask each group so often (1).")
    ] = None
    expansions: Annotated[
        int | None,
        typer.Option("--expansions", metavar="N", help="Make tests longer so often (0)."),
    ] = None
    baseline: Baseline = None
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", help="Review the tests and keep the best N."),
    ] = None


@dataclass(frozen=True)
class Judging:
    """What is judged, and how."""

    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", metavar="NAME|FILE", help="Only these metrics; may repeat."),
    ] = None
    metric_var: Annotated[
        list[str] | None,
        typer.Option(
            "--metric-var", metavar="NAME=VALUE|@FILE", help="A variable of metric files."
        ),
    ] = None
    basis: Annotated[
        str, typer.Option("--basis", metavar="rules|prompt", help="What compliance is judged by.")
    ] = "rules"
    see_input: Annotated[
        bool | None,
        typer.Option(
            "--see-input/--no-see-input", help="Show the judge the input (default: rules)."
        ),
    ] = None
    validity: Annotated[
        bool, typer.Option("--validity", help="Judge whether inputs are valid.")
    ] = False
    groundedness: Annotated[
        bool, typer.Option("--groundedness", help="Judge whether rules stand in the prompt.")
    ] = False
    agreement: Annotated[
        str | None,
        typer.Option(
            "--agreement", metavar="MODEL", help="Answer from the rules alone, and judge."
        ),
    ] = None


@dataclass(frozen=True)
class Asking:
    """How models are reached."""

    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="OpenAI-compatible endpoint, with /v1.")
    ] = None
    rpm: Annotated[float | None, typer.Option(metavar="N", help="Requests a minute and model.")] = (
        None
    )
    tpm: Annotated[float | None, typer.Option(metavar="N", help="Tokens a minute and model.")] = (
        None
    )
    max_concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests under way at once.")
    ] = 8
