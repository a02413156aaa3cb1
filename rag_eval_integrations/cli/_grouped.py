"""Additions to typer: option groups that several commands share, plain usage lines and errors.

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
from inspect import Parameter
from typing import Any, cast, get_type_hints

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

from rag_eval_integrations._visible import hanging


class Command(TyperCommand):
    """A command whose usage line shows required arguments without typer's braces.

    `Usage: rag-eval run [OPTIONS] CALLS.jsonl`, not `{CALLS.jsonl}`.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        # Of an argument that repeats, the dots stand behind the brace.
        pieces = super().collect_usage_pieces(ctx)
        return [piece.removeprefix("{").replace("}", "") for piece in pieces]


class Group(TyperGroup):
    """The program: a wrong word in an error about usage cannot act on the terminal.

    Such words are often names of files, which `*` puts on the command line.
    """

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the options in front of the command."""
        with _escaped_usage_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Read the command's own options and run it."""
        with _escaped_usage_errors():
            return super().invoke(ctx)


# click's `ClickException`, from the copy of click that this release of typer uses
_ClickException = cast(type[Exception], BadParameter.__mro__[2])


@contextmanager
def _escaped_usage_errors() -> Iterator[None]:
    try:
        yield
    except _ClickException as error:
        shown: Any = error
        message = hanging(shown.format_message())
        shown.format_message = lambda: message
        raise


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass argument of a command by one option per field.

    The returned function carries a signature that lists all options, because typer reads options
    from signatures.
    """
    groups = {one.name: one.annotation for one in _parameters(command) if _is_group(one)}

    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    shown = [
        option.replace(kind=Parameter.KEYWORD_ONLY)
        for one in _parameters(command)
        for option in (_parameters(one.annotation) if _is_group(one) else [one])
    ]
    update_wrapper(run, command)
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in shown}
    return run


def _parameters(of: Callable[..., Any]) -> Iterator[Parameter]:
    types = get_type_hints(of, include_extras=True)
    for one in inspect.signature(of).parameters.values():
        yield one.replace(annotation=types[one.name])


def _is_group(parameter: Parameter) -> bool:
    return is_dataclass(parameter.annotation)
