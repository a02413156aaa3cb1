"""The command line, `rag-eval`.

Options are declared in `_arguments`; the work of the command `run` is `run.run`, and so on.

Exit codes: 0 success; 1 a threshold or check failed, too many calls ended in an error, none was
scored, or a judge cannot be used; 2 bad input or usage, which takes precedence over 1; 130 after
Ctrl-C; 143 after SIGTERM; 129 after SIGHUP.
"""

# What only one way needs is imported on it, so that `rag-eval --help` appears at once.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from rag_eval_integrations._visible import visible_traceback
from rag_eval_integrations.cli import _arguments, _store_arguments
from rag_eval_integrations.cli._grouped import Command, CommandGroup, command_of
from rag_eval_integrations.cli._terminal import (
    INTERRUPTED,
    open_standard_streams,
    print_stderr,
    signals_as_ctrl_c,
)
from rag_eval_integrations.cli.prompt_tests import app as prompt_tests_app
from rag_eval_integrations.errors import ConfigurationError, JudgeError, RagEvalError

_WIDTH = 120
"""Columns of a help page at most; a narrower terminal's are its own."""

app = typer.Typer(
    name="rag-eval",
    cls=CommandGroup,
    epilog="rag-eval demo\n"
    "rag-eval run calls.jsonl -o evals.jsonl --report report.html\n"
    "rag-eval run --help",
    help="Evaluate RAG calls: label their sentences with evidence and score them with TRACe.",
    no_args_is_help=True,
    context_settings={"max_content_width": _WIDTH},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.add_typer(prompt_tests_app, short_help="Generate tests of a prompt, run and judge them.")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rag-eval {version('rag-eval-integrations')}")
        raise typer.Exit


@app.callback()
def _callback(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


# In the order in which `rag-eval --help` lists them, behind `prompt-tests`, with examples.
_COMMANDS: dict[type, str] = {
    _arguments.DemoOptions: "rag-eval demo --out rag-eval-demo",
    _arguments.RunOptions: """\
rag-eval run calls.jsonl -o evals.jsonl --report report.html
rag-eval run calls.jsonl -o evals.jsonl --judge openai:gpt-4o-mini \\
    --cache answers.sqlite --metrics trace,geval:coherence
rag-eval run rows.csv -o evals.jsonl --map documents=passages \\
    --fail-under adherence=0.9""",
    _arguments.ScoreOptions: "rag-eval score labelled.jsonl -o evals.jsonl --formulas ragbench",
    _arguments.ReportOptions: """\
rag-eval report evals.jsonl -o report.html
rag-eval report evals.jsonl -o - --format md
rag-eval report evals.jsonl -o wrong.html --where pattern=hallucination""",
    _arguments.ViewOptions: """\
rag-eval view rag-eval-demo --open
rag-eval view --store evals.db --port 9000""",
    _arguments.ExplainOptions: "rag-eval explain evals.jsonl --call q17",
    _arguments.PullOptions: """\
rag-eval pull --from phoenix --since 7d -o calls.jsonl
rag-eval pull --from mlflow --project "my app" -o calls.jsonl --resume""",
    _arguments.PushOptions: """\
rag-eval push evals.jsonl --to langfuse --dry-run
rag-eval push evals.jsonl --to phoenix --where 'adherence<1' --metadata user_id""",
    _arguments.ReviewOptions: """\
rag-eval review evals.jsonl -o labels.jsonl
rag-eval agreement evals.jsonl labels.jsonl""",
    _arguments.AgreementOptions: """\
rag-eval agreement evals.jsonl gold.jsonl -o agreement.html
rag-eval agreement evals.jsonl rated.jsonl --human rating""",
    _arguments.CalibrateOptions: """\
rag-eval calibrate gold.jsonl -o calibration.json --judge embedded
rag-eval run calls.jsonl -o evals.jsonl --calibration calibration.json""",
    _arguments.CompareOptions: """\
rag-eval compare before.jsonl after.jsonl -o diff.html \\
    --fail-on-regression adherence=0.02""",
    _arguments.DoctorOptions: "rag-eval doctor --judge openai:gpt-4o-mini",
    _store_arguments.WorkerOptions: """\
rag-eval worker --store evals.db --spool spool/
rag-eval worker --store postgresql://app@db/evals --spool spool/ \\
    --judge openai:gpt-4o-mini --rpm 500 --dollars-per-day 5""",
    _store_arguments.RescoreOptions: """\
rag-eval rescore --store evals.db --judge openai:gpt-4o --since 24h \\
    --where pattern=hallucination --dry-run""",
}
_STORE: dict[type, str] = {
    _store_arguments.StoreInfoOptions: "rag-eval store info --store evals.db",
    _store_arguments.StoreReportOptions: "rag-eval store report --store evals.db -o store.html",
    _store_arguments.StoreExportOptions: "rag-eval store export --store evals.db -o evals.jsonl",
    _store_arguments.StoreRetryOptions: "rag-eval store retry --store evals.db",
    _store_arguments.StorePruneOptions: "rag-eval store prune --store evals.db --older-than 30d",
}

_store = typer.Typer(name="store", help="Look at a store, and keep it in order.")
app.add_typer(_store, no_args_is_help=True)


def _add_commands(group: typer.Typer, commands: Mapping[type, str], prefix: str = "") -> None:
    """Add a command per class of options, named after it; a prefix names the module of all."""
    for options, examples in commands.items():
        name = options.__name__.removeprefix(prefix).removesuffix("Options").lower()
        module = f"{__name__}.{prefix.lower() or name}"
        group.command(name, cls=Command, epilog=examples)(command_of(module, name, options))


_add_commands(app, _COMMANDS)
_add_commands(_store, _STORE, "Store")


def main() -> None:
    """Run `rag-eval` and exit: errors go to stderr in one line, without a traceback.

    The exit code is 1 if a judge failed, 2 for a user's mistake or an unusable file, and 128 plus
    the number of a signal. A fault of the library shows its traceback.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        open_standard_streams()
    with signals_as_ctrl_c() as signals:
        try:
            app()
        except (RagEvalError, OSError) as error:
            print_stderr(f"rag-eval: {_error_line(error)}")
            sys.exit(1 if isinstance(error, JudgeError) else 2)
        except KeyboardInterrupt:
            sys.exit(signals.code)
        except SystemExit as end:  # typer makes it of an interrupt
            sys.exit(signals.code if end.code == INTERRUPTED else end.code)
        except Exception as error:  # noqa: BLE001  # a message may hold text that acts
            print(visible_traceback(error), file=sys.stderr)  # noqa: T201  # our own output
            sys.exit(1)
        finally:
            _drop_unwritten()


def _drop_unwritten() -> None:
    """Discard output that a full disk refused: Python would write it again, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_FILES = ("file", "path", "folder", "runs", "evals", "gold", "files")
"""Arguments of the library that a command has as files, without an option."""


def _error_line(error: RagEvalError | OSError) -> str:
    """Return the line about an error, which begins with the file or the option."""
    if isinstance(error, ConfigurationError):
        if error.missing:
            return error.why
        if error.field in _FILES:
            return f"{error.value}: {error.why}"
        option = _arguments.option_of(error.field)
        return str(error if option is None else type(error)(option, error.value, error.why))
    if isinstance(error, OSError) and not isinstance(error, RagEvalError) and error.strerror:
        words = error.strerror[:1].lower() + error.strerror[1:]
        # Files are opened by name, so what has none is a stream.
        name = "standard output" if error.filename is None else error.filename
        return f"{name}: {words}"
    return str(error)
