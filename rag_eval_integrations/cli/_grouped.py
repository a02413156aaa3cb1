"""Additions to typer: options from dataclasses, help pages in sections, and safe usage errors.

A group is a dataclass whose fields are options:

@dataclass(frozen=True)
class Requests:
    rpm: Annotated[float | None, typer.Option(help="Requests per minute.")] = None

@app.command("run", cls=Command)
@grouped
def run_command(folder: Dir, requests: Requests) -> None:     # rag-eval … run DIR --rpm 60
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import update_wrapper
from importlib import import_module
from inspect import Parameter
from typing import Annotated, Any, cast, get_type_hints

from typer import BadParameter, Exit
from typer.core import TyperCommand, TyperGroup

from rag_eval_integrations._visible import hanging

OPTION = "typer"
"""Metadata of a dataclass's field: its `typer.Option` or `typer.Argument`."""

_SECTIONS = (
    "Arguments", "Input", "Tests", "Models under test", "Judge", "Metrics", "TRACe scores",
    "Requests and limits", "Checks", "Output", "Options",
)  # fmt: skip
_MEAN_RUN = ("eval", "evaluate", "judge", "test")
"""What other tools call the command that evaluates calls."""
_COLUMN = 26
"""Width of an option's name and metavar; longer ones have a line of their own."""


class Command(TyperCommand):
    """A command whose help shows its options in sections, and examples at its end.

    The section of an option is its `rich_help_panel`; examples are lines of the epilog. The usage
    line shows required arguments without typer's braces: `rag-eval run [OPTIONS] CALLS.jsonl`, not
    `{CALLS.jsonl}`.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        # Of an argument that repeats, the dots stand behind the brace.
        pieces = super().collect_usage_pieces(ctx)
        return [piece.removeprefix("{").replace("}", "") for piece in pieces]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections."""
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in _SECTIONS}
        for parameter in sorted(self.get_params(ctx), key=lambda parameter: not parameter.required):
            record = parameter.get_help_record(ctx)
            panel = getattr(parameter, "rich_help_panel", None)  # `--help` itself has none
            if record is not None and parameter.param_type_name == "argument":
                panel = "Arguments"
                record = record[0].partition(" <")[0], record[1]  # without the type in Python
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
    """The program: a wrong word in an error about usage cannot act on the terminal.

    Such words are often names of files, which `*` puts on the command line.
    """

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the options in front of the command."""
        with _escaped_usage_errors():
            return super().make_context(*args, **extra)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; other tools' names for `run` are answered with it."""
        try:
            return super().resolve_command(ctx, args)
        except _ClickException as error:
            if args[0] in _MEAN_RUN and hasattr(error, "message"):
                error.message += " Did you mean 'run'?"
            raise

    def invoke(self, ctx: Any) -> Any:
        """Read the command's own options and run it."""
        with _escaped_usage_errors():
            return super().invoke(ctx)

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
        shown: Any = error
        message = hanging(shown.format_message())
        shown.format_message = lambda: message
        raise


def command_of(module: str, name: str, options: type) -> Callable[..., None]:
    """Make a command of the dataclass of its options, whose docstring is its help.

    Args:
        module: the module of the function that does the work, imported when the command runs, so
            that `--help` appears at once.
        name: the function, which takes the options and returns the exit code.
        options: the dataclass.
    """

    def work(*, options: Any) -> None:
        """Import the command's module, run it and exit with its code."""
        raise Exit(getattr(import_module(module), name)(options))

    work.__annotations__ = {"options": options, "return": None}
    work.__doc__ = options.__doc__
    return grouped(work)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass argument of a command by one option per field.

    The returned function carries a signature that lists all options, because typer reads options
    from signatures.
    """
    groups: dict[str, Any] = {
        parameter.name: parameter.annotation
        for parameter in _parameters(command)
        if is_dataclass(parameter.annotation)
    }

    def run(**given: Any) -> None:
        """Pass the options on as objects of their groups."""
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    shown = [
        option.replace(kind=Parameter.KEYWORD_ONLY)
        for parameter in _parameters(command)
        for option in (
            _parameters(parameter.annotation) if parameter.name in groups else [parameter]
        )
    ]
    update_wrapper(run, command)
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in shown}
    return run


def _parameters(of: Callable[..., Any]) -> Iterator[Parameter]:
    """Yield a function's parameters, with the options that its dataclass fields declare."""
    types = get_type_hints(of, include_extras=True)
    options = {field.name: field.metadata for field in fields(of)} if is_dataclass(of) else {}
    for parameter in inspect.signature(of).parameters.values():
        annotation = types[parameter.name]
        if OPTION in options.get(parameter.name, ()):
            annotation = Annotated[annotation, options[parameter.name][OPTION]]
        yield parameter.replace(annotation=annotation)
