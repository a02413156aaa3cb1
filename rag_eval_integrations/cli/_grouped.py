"""Additions to typer: commands made of dataclasses, help pages in sections, safe usage errors.

A command is a dataclass whose fields are its options, and whose docstring is its help:

@dataclass(frozen=True, kw_only=True)
class PaintOptions:
    colour: str = option("Output", "Colour of the paint.", metavar="NAME", default="red")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields
from importlib import import_module
from inspect import Parameter, Signature
from typing import Annotated, Any, cast, get_type_hints

import typer
from typer import BadParameter, Exit
from typer.core import TyperCommand, TyperGroup

from rag_eval_integrations._visible import hanging
from rag_eval_integrations.cli import _settings
from rag_eval_integrations.cli._terminal import print_stderr

_DECLARED = "typer"
"""Metadata of a dataclass's field: how its option or argument is declared."""

_FIRST = "Most used"
_EVERYDAY = (
    "--out",
    "--judge",
    "--metrics",
    "--map",
    "--where",
    "--spool",
    "--report",
    "--fail-under",
    "--fail-on-regression",
    "--resume",
    "--overwrite",
)
"""Options that a help page has first, beside those that are required."""
_SECTIONS = (
    "Arguments",
    _FIRST,
    "Input",
    "Tests",
    "Models under test",
    "Judge",
    "Metrics",
    "TRACe scores",
    "Requests and limits",
    "Checks",
    "Output",
    "Options",
)
_AS_OTHERS_SAY = {
    **dict.fromkeys(("eval", "evaluate", "judge", "test"), "'run'"),
    "gate": "'run', 'report' or 'score' with --fail-under, or 'compare' with --fail-on-regression",
    "watch": "'worker', or 'store report' with --every",
}
"""What other tools call a command → what to type."""
_COLUMN = 26
"""Width of an option's name and metavar; longer ones have a line of their own."""


_OF_ENDPOINTS = {
    "base_url",
    "cache",
    "explanations",
    "extra_body",
    "instructions",
    "max_tokens",
    "rpm",
    "timeout",
    "tpm",
}
"""Options that only judges that ask an endpoint have."""


class Command(TyperCommand):
    """A command whose help shows its options in sections, and examples at its end.

    The section of an option is its `rich_help_panel`; examples are lines of the epilog. The usage
    line shows required arguments without typer's braces: `rag-eval run [OPTIONS] CALLS.jsonl`, not
    `{CALLS.jsonl}`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; what it lacks is taken from the environment, then from the file.

        Raises:
            ConfigurationError: a setting of the file cannot be used.
        """
        unread = ctx.resilient_parsing or "--help" in args  # the shell completes a word
        settings = _settings.Settings() if unread else _settings.read_settings()
        ctx.default_map = _settings.defaults_of(settings, self, ctx)
        try:
            remaining: list[str] = super().parse_args(ctx, args)
        except BadParameter as error:
            name = getattr(error.param, "name", None)
            if name is None or _value_source(ctx, name) != "DEFAULT_MAP":
                raise
            why = f"cannot be used: {error.message}"
            raise settings.error(name.replace("_", "-"), why) from None
        if "judge" in ctx.params and not _asks_endpoint(ctx.params["judge"]):
            # The project's endpoint is none of this judge's; what was typed for it is refused.
            for name in _OF_ENDPOINTS & ctx.params.keys():
                if _value_source(ctx, name) in {"ENVIRONMENT", "DEFAULT_MAP"}:
                    ctx.params[name] = None
        return remaining

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, without typer's braces."""
        # Of an argument that repeats, the dots stand behind the brace.
        pieces = super().collect_usage_pieces(ctx)
        return [piece.removeprefix("{").replace("}", "") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options in sections, the required and most used ones first."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in _SECTIONS}
        for parameter in sorted(self.get_params(ctx), key=_help_order):
            record = parameter.get_help_record(ctx)
            panel = getattr(parameter, "rich_help_panel", None)  # `--help` itself has none
            if record is not None and parameter.param_type_name == "argument":
                panel = "Arguments"
                record = record[0].partition(" <")[0], record[1]  # without the type in Python
            elif parameter.required or parameter.opts[0] in _EVERYDAY:
                panel = _FIRST
            if record is not None:
                sections.setdefault(panel or "Options", []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    padded = [(f"{name:<{_COLUMN}}", text) for name, text in records]
                    formatter.write_dl(padded, col_max=_COLUMN)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are."""
        _write_examples(self.epilog, formatter)


class CommandGroup(TyperGroup):
    """The program, whose usage errors cannot act on the terminal.

    They quote wrong words, often names of files that `*` put on the command line.
    """

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse the options in front of the command; escape usage errors."""
        with _escaped_usage_errors():
            return super().make_context(*args, **extra)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name; suggest ours for a name that other tools use."""
        try:
            return super().resolve_command(ctx, args)
        except _ClickException as error:
            if args[0] in _AS_OTHERS_SAY and hasattr(error, "message"):
                error.message += f" Did you mean {_AS_OTHERS_SAY[args[0]]}?"
            raise

    def invoke(self, ctx: Any) -> Any:
        """Parse the command's own options and run it; escape usage errors."""
        with _escaped_usage_errors():
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt as end:
                if not end.args:  # `_interrupt.kept` has told nothing
                    print_stderr("Interrupted.")
                raise

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are."""
        _write_examples(self.epilog, formatter)


def _write_examples(lines: str | None, formatter: Any) -> None:
    """Write the examples at the end of a help page."""
    if lines:
        with formatter.section("Examples"):
            formatter.write_text(f"\b\n{lines}")


# click's `ClickException`, from the copy of click that this release of typer uses
_ClickException = cast(type[Exception], BadParameter.__mro__[2])


@contextmanager
def _escaped_usage_errors() -> Iterator[None]:
    """Escape control characters in the messages of usage errors."""
    try:
        yield
    except _ClickException as error:
        usage_error: Any = error
        message = hanging(usage_error.format_message())
        usage_error.format_message = lambda: message
        raise


def _help_order(parameter: Any) -> tuple[bool, int]:
    """Return the sort key of a parameter in its section: required ones, then everyday ones."""
    name = parameter.opts[0]
    place = _EVERYDAY.index(name) if name in _EVERYDAY else len(_EVERYDAY)
    return not parameter.required, place


def _value_source(ctx: Any, name: str) -> str | None:
    """Return where a value comes from, such as COMMANDLINE, ENVIRONMENT or DEFAULT_MAP."""
    return getattr(ctx.get_parameter_source(name), "name", None)


def _asks_endpoint(judge: str | list[str] | None) -> bool:
    """Return whether a judge (or a list, of prompt tests) has the options of an endpoint."""
    if judge is None or isinstance(judge, list):
        return judge is not None
    from rag_eval_integrations.judges._named import asks_endpoint  # noqa: PLC0415 -- not for `--help`

    return asks_endpoint(judge)


# --- Commands from dataclasses


def option(section: str, help_: str, *names: str, default: Any = None, **settings: Any) -> Any:
    """Declare an option, as a field of a command's options.

    Args:
        section: the section of the help page.
        help_: what the option does.
        *names: its flags; by default one with the name of the field.
        default: its value where it is not given; MISSING for one that has to be.
        **settings: further arguments of `typer.Option`.
    """
    settings |= {"help": help_, "rich_help_panel": section}
    return field(default=default, metadata={_DECLARED: (typer.Option, names, settings)})


def argument(help_: str, metavar: str, default: Any = MISSING) -> Any:
    """Declare a positional argument, as a field of a command's options."""
    settings = {"help": help_, "metavar": metavar}
    return field(default=default, metadata={_DECLARED: (typer.Argument, (), settings)})


def flag_of(declared: Field[Any]) -> str:
    """Return the first flag of the option that a field declares, such as `--out`."""
    _, names, _ = declared.metadata[_DECLARED]
    return names[0] if names else f"--{declared.name.replace('_', '-')}"


def command_of(module: str, name: str, options: type) -> Callable[..., None]:
    """Build a typer command from the dataclass of its options, whose docstring is its help.

    Args:
        module: the module of the function that does the work, imported when the command runs, so
            that `--help` appears at once.
        name: the function, which takes the options and returns the exit code.
        options: the dataclass.
    """

    def command(**given: Any) -> None:
        """Import the command's module, run it and exit with its code."""
        raise Exit(getattr(import_module(module), name)(options(**given)))

    types = get_type_hints(options)
    parameters = []
    for each in fields(options):
        annotation = types[each.name]
        declare, names, settings = each.metadata[_DECLARED]
        if annotation is bool:
            names = names or (flag_of(each),)  # without typer's `--no-…`
        annotation = Annotated[annotation, declare(*names, **settings)]
        default = Parameter.empty if each.default is MISSING else each.default
        parameters.append(
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    command.__doc__ = options.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command
