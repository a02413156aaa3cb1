"""Additions to typer: option groups that several commands share, and plain usage lines.

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
from dataclasses import fields, is_dataclass
from functools import update_wrapper
from inspect import Parameter
from typing import Any, get_type_hints

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose usage line shows required arguments without typer's braces.

    `Usage: rag-eval run [OPTIONS] CALLS.jsonl`, not `{CALLS.jsonl}`.
    """

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


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
