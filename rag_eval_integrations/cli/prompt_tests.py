"""`rag-eval prompt-tests …`: options here; what a command does is in `prompt_tests_commands`."""

# The commands' modules are imported where they run: `rag-eval --help` has to come up at once.
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="prompt-tests",
    help="Test a prompt: rules and tests are made from it, run on models, judged and reported.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

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
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", metavar="NAME|FILE", help="Only these metrics; may repeat."),
]
MetricVars = Annotated[
    list[str] | None,
    typer.Option("--metric-var", metavar="NAME=VALUE|@FILE", help="A variable of metric files."),
]
BasisOption = Annotated[
    str, typer.Option("--basis", metavar="rules|prompt", help="What compliance is judged by.")
]
SeeInput = Annotated[
    bool | None,
    typer.Option("--see-input/--no-see-input", help="Show the judge the input (default: rules)."),
]
Effort = Annotated[
    str | None, typer.Option(metavar="min|low|medium|high", help="Preset; flags beat it.")
]
TestsPerRule = Annotated[
    int | None, typer.Option("--tests-per-rule", metavar="N", help="Tests a rule (3).")
]
MaxRules = Annotated[
    int | None, typer.Option("--max-rules", metavar="N", help="Make tests for so many rules.")
]
Rules = Annotated[
    int | None, typer.Option("--rules", metavar="N", help="Ask for so many rules; 0 for all.")
]
PerGroup = Annotated[
    int | None, typer.Option("--rules-per-group", metavar="N", help="Rules a request (3).")
]
Generations = Annotated[
    int | None, typer.Option("--generations", metavar="N", help="Ask each group so often (1).")
]
Expansions = Annotated[
    int | None, typer.Option("--expansions", metavar="N", help="Make tests longer so often (0).")
]
Split = Annotated[
    bool | None, typer.Option("--split/--no-split", help="Ask for inverse rules apart.")
]
Baseline = Annotated[
    bool | None, typer.Option("--baseline/--no-baseline", help="Also tests without rules.")
]
Keep = Annotated[
    int | None, typer.Option("--keep", metavar="N", help="Review the tests and keep the best N.")
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
Validity = Annotated[bool, typer.Option("--validity", help="Judge whether inputs are valid.")]
Grounded = Annotated[
    bool, typer.Option("--groundedness", help="Judge whether rules stand in the prompt.")
]
Agreement = Annotated[
    str | None,
    typer.Option("--agreement", metavar="MODEL", help="Answer from the rules alone, and judge."),
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="OpenAI-compatible endpoint, with /v1.")
]
Rpm = Annotated[float | None, typer.Option(metavar="N", help="Requests a minute and model.")]
Tpm = Annotated[float | None, typer.Option(metavar="N", help="Tokens a minute and model.")]
Concurrency = Annotated[int, typer.Option(metavar="N", min=1, help="Requests under way at once.")]
FailUnder = Annotated[
    float | None,
    typer.Option(metavar="SHARE", min=0, max=1, help="Exit 1 when a model complies less."),
]
UnknownErr = Annotated[
    bool, typer.Option("--unknown-as-err", help="Count unknown verdicts as not compliant.")
]


@app.command("generate")
def generate_command(
    put: Put, out: Out, model: Generator, effort: Effort = None, rules: Rules = None,
    max_rules: MaxRules = None, tests_per_rule: TestsPerRule = None,
    rules_per_group: PerGroup = None, split: Split = None, generations: Generations = None,
    expansions: Expansions = None, baseline: Baseline = None, keep: Keep = None,
    scenario: Scenarios = None, groundtruth: Groundtruth = None, base_url: BaseUrl = None,
    rpm: Rpm = None, tpm: Tpm = None, max_concurrency: Concurrency = 8,
) -> None:  # fmt: skip
    """Make rules and tests; stages whose files are there are read, not made again."""
    from rag_eval_integrations.cli import prompt_tests_commands as commands

    options = commands.options_of(
        effort, rules=rules, max_rules=max_rules, tests_per_rule=tests_per_rule,
        rules_per_group=rules_per_group, split_rules=split, generations=generations,
        expansions=expansions, baseline=baseline, keep=keep,
    )  # fmt: skip
    ask = commands.Asking(base_url, rpm, tpm, max_concurrency)
    raise typer.Exit(commands.generate(put, out, model, options, scenario, groundtruth, ask))


@app.command("run")
def run_command(
    folder: Dir, mut: Muts, runs: Runs = 1, max_tests: MaxTests = None,
    baseline: Baseline = None, base_url: BaseUrl = None, rpm: Rpm = None, tpm: Tpm = None,
    max_concurrency: Concurrency = 8,
) -> None:  # fmt: skip
    """Run the tests on models; what was answered before is not asked again."""
    from rag_eval_integrations.cli import prompt_tests_commands as commands

    ask = commands.Asking(base_url, rpm, tpm, max_concurrency)
    raise typer.Exit(commands.run(folder, mut, runs, max_tests, baseline is not False, ask))


@app.command("evaluate")
def evaluate_command(
    folder: Dir, judge: Judges, metric: Metrics = None, metric_var: MetricVars = None,
    basis: BasisOption = "rules", see_input: SeeInput = None, validity: Validity = False,
    groundedness: Grounded = False, agreement: Agreement = None, base_url: BaseUrl = None,
    rpm: Rpm = None, tpm: Tpm = None, max_concurrency: Concurrency = 8,
) -> None:  # fmt: skip
    """Judge the outputs: compliance, and every metric file beside the prompt."""
    from rag_eval_integrations.cli import prompt_tests_commands as commands

    ask = commands.Asking(base_url, rpm, tpm, max_concurrency)
    what = commands.Judging(
        metric or [], metric_var or [], basis, see_input, validity, groundedness, agreement
    )
    raise typer.Exit(commands.evaluate(folder, judge, what, ask))


@app.command("report")
def report_command(
    folder: Dir,
    format_: Annotated[
        str | None, typer.Option("--format", metavar="md|csv|json", help="Print this form.")
    ] = None,
    before: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Say what changed since this run.")
    ] = None,
    unknown_as_err: UnknownErr = False,
    fail_under: FailUnder = None,
) -> None:
    """Print the overview; write overview.csv, report.json and README.md into the folder."""
    from rag_eval_integrations.cli import prompt_tests_commands as commands

    raise typer.Exit(commands.report(folder, format_, before, unknown_as_err, fail_under))


@app.command("all")
def all_command(
    put: Put, out: Out, model: Generator, mut: Muts, judge: Judges, effort: Effort = None,
    rules: Rules = None, max_rules: MaxRules = None, tests_per_rule: TestsPerRule = None,
    rules_per_group: PerGroup = None, split: Split = None, generations: Generations = None,
    expansions: Expansions = None, baseline: Baseline = None, keep: Keep = None,
    scenario: Scenarios = None, groundtruth: Groundtruth = None, runs: Runs = 1,
    max_tests: MaxTests = None, metric: Metrics = None, metric_var: MetricVars = None,
    basis: BasisOption = "rules", see_input: SeeInput = None, validity: Validity = False,
    groundedness: Grounded = False, agreement: Agreement = None,
    unknown_as_err: UnknownErr = False, fail_under: FailUnder = None, base_url: BaseUrl = None,
    rpm: Rpm = None, tpm: Tpm = None, max_concurrency: Concurrency = 8,
) -> None:  # fmt: skip
    """Generate, run, evaluate and report in one go."""
    from rag_eval_integrations.cli import prompt_tests_commands as commands

    options = commands.options_of(
        effort, rules=rules, max_rules=max_rules, tests_per_rule=tests_per_rule,
        rules_per_group=rules_per_group, split_rules=split, generations=generations,
        expansions=expansions, baseline=baseline, keep=keep,
    )  # fmt: skip
    ask = commands.Asking(base_url, rpm, tpm, max_concurrency)
    what = commands.Judging(
        metric or [], metric_var or [], basis, see_input, validity, groundedness, agreement
    )
    if commands.generate(put, out, model, options, scenario, groundtruth, ask):
        raise typer.Exit(1)
    # Models or judges that failed are in the report, which is what says so best.
    failed = commands.run(out, mut, runs, max_tests, baseline is not False, ask)
    failed = commands.evaluate(out, judge, what, ask) or failed
    raise typer.Exit(commands.report(out, None, None, unknown_as_err, fail_under) or failed)


@app.command("metrics")
def metrics_command(put: Put) -> None:
    """List the metric files beside a prompt, and what is odd about them."""
    from rag_eval_integrations.cli import prompt_tests_commands as commands

    raise typer.Exit(commands.metrics(put))


@app.command("import")
def import_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="CONTEXT.json", help="promptpex_context.json, or a folder of its files."
        ),
    ],
    out: Out,
    prompt: Annotated[
        Path | None, typer.Option(metavar="PUT", help="The prompt, where it is not in there.")
    ] = None,
    max_rules: MaxRules = None,
) -> None:
    """Take over tests and results of PromptPex."""
    from rag_eval_integrations.cli import prompt_tests_commands as commands

    raise typer.Exit(commands.import_(source, out, prompt, max_rules))
