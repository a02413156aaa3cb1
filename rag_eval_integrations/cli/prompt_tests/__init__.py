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

# In the order of the help page, with an example.
_COMMANDS: dict[type, str] = {
    _options.GenerateOptions: "generate urgency.prompty -o tests --model openai:gpt-4o",
    _options.RunOptions: "run tests --mut openai:gpt-4o-mini",
    _options.EvaluateOptions: "evaluate tests --judge openai:gpt-4o --validity",
    _options.ReportOptions: "report tests --fail-under 0.9",
    _options.AllOptions: "all urgency.prompty -o tests --model openai:gpt-4o \\\n"
    "    --mut openai:gpt-4o-mini --judge openai:gpt-4o",
    _options.MetricsOptions: "metrics urgency.prompty",
    _options.ImportOptions: "import promptpex_context.json -o tests",
    _options.ExportOptions: "export tests --to csv",
}

for _options_of, _example in _COMMANDS.items():
    _name = _options_of.__name__.removesuffix("Options").lower()
    _module = "_reporting" if _name == "report" else "commands"
    app.command(_name, cls=Command, epilog=f"rag-eval prompt-tests {_example}")(
        command_of(f"{__name__}.{_module}", f"{_name}_command", _options_of)
    )
