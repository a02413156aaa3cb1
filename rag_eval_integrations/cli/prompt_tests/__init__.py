"""The subcommands of `rag-eval prompt-tests`; their work is done in `commands`."""

# Commands import their module when they run, so that `rag-eval --help` appears at once.
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_eval_integrations.cli._grouped import Command, grouped
from rag_eval_integrations.cli.prompt_tests._options import (
    Baseline,
    ChoiceSettings,
    CompareSettings,
    Dir,
    Format,
    GenerateSettings,
    Generator,
    Judges,
    JudgeSettings,
    MaxRules,
    Muts,
    Out,
    Overwrite,
    PromptFile,
    ReportSettings,
    RequestSettings,
    RunSettings,
    flag,
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
    prompt_file: PromptFile,
    out: Out,
    model: Generator,
    settings: GenerateSettings,
    requests: RequestSettings,
) -> None:
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

    raise typer.Exit(commands.generate(prompt_file, out, model, settings, requests))


@app.command("run", cls=Command)
@grouped
def run_command(
    folder: Dir, mut: Muts, settings: RunSettings, choice: ChoiceSettings,
    requests: RequestSettings, baseline: Baseline = None,
) -> None:  # fmt: skip
    """Run the tests on models; recorded answers are reused."""
    from rag_eval_integrations.cli.prompt_tests import commands

    of_rules = baseline is False
    raise typer.Exit(commands.run(folder, mut, settings, choice.choice(), of_rules, requests))


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
    folder: Dir, settings: ReportSettings, choice: ChoiceSettings, comparison: CompareSettings,
    format_: Format = None,
) -> None:  # fmt: skip
    """Print the overview and write overview.csv, report.json, README.md and report.html."""
    from rag_eval_integrations.cli.prompt_tests import _reporting

    raise typer.Exit(_reporting.report(folder, format_, settings, choice.choice(), comparison))


@app.command("all", cls=Command)
@grouped
def all_command(
    prompt_file: PromptFile, out: Out, model: Generator, mut: Muts, judge: Judges,
    settings: GenerateSettings, running: RunSettings, judging: JudgeSettings,
    reporting: ReportSettings, requests: RequestSettings,
) -> None:  # fmt: skip
    """Generate, run, evaluate and report in one command."""
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(
        commands.all_stages(
            prompt_file, out, model, mut, judge, settings, running, judging, reporting, requests
        )
    )


@app.command("metrics", cls=Command)
def metrics_command(prompt_file: PromptFile) -> None:
    """List the metric files next to a prompt, with warnings."""
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.metrics(prompt_file))


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
    overwrite: Overwrite = False,
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
    azure: Annotated[bool, flag("--azure", "With --to openai: for Azure OpenAI.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Export the tests for another tool; what its format cannot hold is said."""
    from rag_eval_integrations.cli.prompt_tests import _exchange

    raise typer.Exit(_exchange.export(folder, to, out, model, azure, overwrite))
