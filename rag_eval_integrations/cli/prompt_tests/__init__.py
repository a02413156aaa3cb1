"""`rag-eval prompt-tests …`: its commands; what they do is in `prompt_tests_commands`."""

# The commands' modules are imported where they run: `rag-eval --help` has to come up at once.
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_eval_integrations.cli._grouped import grouped
from rag_eval_integrations.cli.prompt_tests._options import (
    Asking,
    Baseline,
    Dir,
    FailUnder,
    Generator,
    Groundtruth,
    Judges,
    Judging,
    MaxRules,
    MaxTests,
    Muts,
    Out,
    Planning,
    Put,
    Runs,
    Scenarios,
    UnknownErr,
)

app = typer.Typer(
    name="prompt-tests",
    help="Test a prompt: rules and tests are made from it, run on models, judged and reported.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command("generate")
@grouped
def generate_command(
    put: Put, out: Out, model: Generator, plan: Planning, scenario: Scenarios = None,
    groundtruth: Groundtruth = None, *, asking: Asking,
) -> None:  # fmt: skip
    """Make rules and tests; stages whose files are there are read, not made again."""
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.generate(put, out, model, plan, scenario, groundtruth, asking))


@app.command("run")
@grouped
def run_command(
    folder: Dir, mut: Muts, runs: Runs = 1, max_tests: MaxTests = None,
    baseline: Baseline = None, *, asking: Asking,
) -> None:  # fmt: skip
    """Run the tests on models; what was answered before is not asked again."""
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.run(folder, mut, runs, max_tests, baseline is not False, asking))


@app.command("evaluate")
@grouped
def evaluate_command(folder: Dir, judge: Judges, what: Judging, asking: Asking) -> None:
    """Judge the outputs: compliance, and every metric file beside the prompt."""
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.evaluate(folder, judge, what, asking))


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
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.report(folder, format_, before, unknown_as_err, fail_under))


@app.command("all")
@grouped
def all_command(
    put: Put, out: Out, model: Generator, mut: Muts, judge: Judges, plan: Planning,
    scenario: Scenarios = None, groundtruth: Groundtruth = None, runs: Runs = 1,
    max_tests: MaxTests = None, *, what: Judging, unknown_as_err: UnknownErr = False,
    fail_under: FailUnder = None, asking: Asking,
) -> None:  # fmt: skip
    """Generate, run, evaluate and report in one go."""
    from rag_eval_integrations.cli.prompt_tests import commands

    if commands.generate(put, out, model, plan, scenario, groundtruth, asking):
        raise typer.Exit(1)
    # Models or judges that failed are in the report, which is what says so best.
    failed = commands.run(out, mut, runs, max_tests, plan.baseline is not False, asking)
    failed = commands.evaluate(out, judge, what, asking) or failed
    raise typer.Exit(commands.report(out, None, None, unknown_as_err, fail_under) or failed)


@app.command("metrics")
def metrics_command(put: Put) -> None:
    """List the metric files beside a prompt, and what is odd about them."""
    from rag_eval_integrations.cli.prompt_tests import commands

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
    from rag_eval_integrations.cli.prompt_tests import commands

    raise typer.Exit(commands.import_(source, out, prompt, max_rules))
