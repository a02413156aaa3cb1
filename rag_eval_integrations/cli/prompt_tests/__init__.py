"""The subcommands of `rag-eval prompt-tests`, whose options are declared in `_options`."""

from __future__ import annotations

import typer

from rag_eval_integrations.cli._grouped import Command, command_of
from rag_eval_integrations.cli.prompt_tests import _options

app = typer.Typer(
    name="prompt-tests",
    help="Test a prompt: generate rules and tests, run them on models, judge and report.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# In the order of the help page, with the module that does the work, and an example.
_COMMANDS: dict[type, tuple[str, str]] = {
    _options.GenerateOptions: (
        "commands", "rag-eval prompt-tests generate urgency.prompty -o tests --model openai:gpt-4o"
    ),
    _options.RunOptions: ("commands", "rag-eval prompt-tests run tests --mut openai:gpt-4o-mini"),
    _options.EvaluateOptions: (
        "commands", "rag-eval prompt-tests evaluate tests --judge openai:gpt-4o --validity"
    ),
    _options.ReportOptions: ("_reporting", "rag-eval prompt-tests report tests --fail-under 0.9"),
    _options.AllOptions: (
        "commands", "rag-eval prompt-tests all urgency.prompty -o tests --model openai:gpt-4o \\\n"
        "    --mut openai:gpt-4o-mini --judge openai:gpt-4o"
    ),
    _options.MetricsOptions: ("commands", "rag-eval prompt-tests metrics urgency.prompty"),
    _options.ImportOptions: (
        "commands", "rag-eval prompt-tests import promptpex_context.json -o tests"
    ),
    _options.ExportOptions: ("commands", "rag-eval prompt-tests export tests --to csv"),
}  # fmt: skip

for _options_of, (_module, _example) in _COMMANDS.items():
    _name = _options_of.__name__.removesuffix("Options").lower()
    app.command(_name, cls=Command, epilog=_example)(
        command_of(f"{__name__}.{_module}", f"{_name}_command", _options_of)
    )
