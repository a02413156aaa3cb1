"""The subcommands of `rag-eval prompt-tests`; their work is done in `commands`."""

# Commands import their module when they run, so that `rag-eval --help` appears at once.
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_eval_integrations.cli._grouped import Command, grouped
from rag_eval_integrations.cli.prompt_tests._options import (
    AuthorSettings,
    Baseline,
    ChoiceSettings,
    CompareSettings,
    Dir,
    FailUnder,
    GenerateSettings,
    Generator,
    Groundtruth,
    Judges,
    JudgeSettings,
    Majority,
    MaxRules,
    MaxTests,
    Muts,
    MutSettings,
    Out,
    Put,
    RequestSettings,
    Runs,
    Scenarios,
    UnknownErr,
)

app = typer.Typer(
    name="prompt-tests",
    help="Test a prompt: generate rules and tests, run them on models, judge and report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command("generate", cls=Command)
@grouped
def generate_command(
    put: Put, out: Out, model: Generator, settings: GenerateSettings, scenario: Scenarios = None,
    groundtruth: Groundtruth = None, *, author: AuthorSettings, requests: RequestSettings,
) -> None:  # fmt: skip
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
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(
        commands.generate(put, out, model, settings, scenario, groundtruth, author, requests)
    )


@app.command("run", cls=Command)
@grouped
def run_command(
    folder: Dir, mut: Muts, runs: Runs = 1, max_tests: MaxTests = None,
    baseline: Baseline = None, *, choice: ChoiceSettings, settings: MutSettings,
    requests: RequestSettings,
) -> None:  # fmt: skip
    """Run the tests on models; recorded answers are reused."""
    from rag_eval_integrations.cli.prompt_tests import commands

    which = commands.Tests(runs, max_tests, baseline is not False, choice.choice())
    raise typer.Exit(commands.run(folder, mut, which, settings, requests))


@app.command("evaluate", cls=Command)
@grouped
def evaluate_command(
    folder: Dir, judge: Judges, settings: JudgeSettings, requests: RequestSettings
) -> None:
    """Judge the outputs: compliance, and every metric file next to the prompt."""
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.evaluate(folder, judge, settings, requests))


@app.command("report", cls=Command)
@grouped
def report_command(
    folder: Dir,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", metavar="md|csv|json|html", help="Print the report in this format."
        ),
    ] = None,
    unknown_as_err: UnknownErr = False,
    majority: Majority = False,
    fail_under: FailUnder = None,
    *,
    choice: ChoiceSettings,
    comparison: CompareSettings,
) -> None:
    """Print the overview and write overview.csv, report.json, README.md and report.html."""
    from rag_eval_integrations.cli.prompt_tests import _reporting

    which = _reporting.Shown(choice.choice(), unknown_as_err, majority, fail_under or ())
    raise typer.Exit(_reporting.report(folder, format_, which, comparison))


@app.command("all", cls=Command)
@grouped
def all_command(
    put: Put, out: Out, model: Generator, mut: Muts, judge: Judges, settings: GenerateSettings,
    scenario: Scenarios = None, groundtruth: Groundtruth = None, runs: Runs = 1,
    max_tests: MaxTests = None, *, muts: MutSettings, judging: JudgeSettings,
    unknown_as_err: UnknownErr = False, majority: Majority = False,
    fail_under: FailUnder = None, author: AuthorSettings, requests: RequestSettings,
) -> None:  # fmt: skip
    """Generate, run, evaluate and report in one command."""
    from rag_eval_integrations.cli._terminal import stdout
    from rag_eval_integrations.cli.prompt_tests import _models, _reporting, commands

    which = commands.Tests(runs, max_tests, settings.baseline is not False)
    shown = _reporting.Shown(unknown_as_err=unknown_as_err, majority=majority,
                           fail_under=fail_under or ())  # fmt: skip
    bill = _models.Bill(requests.prices)
    _models.parameters_of(mut, muts, requests)  # a mistake is found before the first request
    commands.estimate_all(
        put, out, model, settings, scenario, groundtruth, mut, judge, judging, which, requests, bill
    )
    if requests.dry_run:
        stdout().print(commands.NOTHING)
        return
    if commands.generate(put, out, model, settings, scenario, groundtruth, author, requests, bill):
        raise typer.Exit(1)
    # Continue when models or judges failed: the report shows the failures best.
    failed = commands.run(out, mut, which, muts, requests, bill)
    failed = commands.evaluate(out, judge, judging, requests, bill) or failed
    failed = _reporting.report(out, None, shown) or failed
    bill.print_total()
    raise typer.Exit(failed)


@app.command("metrics", cls=Command)
def metrics_command(put: Put) -> None:
    """List the metric files next to a prompt, with warnings."""
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.metrics(put))


@app.command("import", cls=Command)
def import_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="CONTEXT.json",
            help="File promptpex_context.json, a .prompt.yml, or a folder of PromptPex's files.",
        ),
    ],
    out: Out,
    prompt: Annotated[
        Path | None,
        typer.Option(metavar="PUT", help="The prompt under test, if the source lacks it."),
    ] = None,
    max_rules: MaxRules = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace a folder that exists; it is kept as DIR.bak."),
    ] = False,
) -> None:
    """Import tests and results from PromptPex into a new folder."""
    from rag_eval_integrations.cli.prompt_tests import _exchange

    raise typer.Exit(_exchange.import_(source, out, prompt, max_rules, overwrite))


@app.command("export", cls=Command)
def export_command(
    folder: Dir,
    to: Annotated[
        str,
        typer.Option(
            metavar="openai|context|csv|pytest|langsmith",
            help="Format: OpenAI's evals, promptpex_context.json, a table, a test file, "
            "LangSmith's examples.",
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="PATH", help="File or folder (default: in DIR); - for stdout."
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model that the exported evaluation runs and asks (Azure: the deployment).",
        ),
    ] = None,
    azure: Annotated[
        bool, typer.Option("--azure", help="With --to openai: for Azure OpenAI.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that has another content.")
    ] = False,
) -> None:
    """Export the tests for another tool; what its format cannot hold is said."""
    from rag_eval_integrations.cli.prompt_tests import _exchange

    raise typer.Exit(_exchange.export(folder, to, out, model, azure, overwrite))
