"""Options that several commands have in common: declared once, as a dataclass.

@dataclass(frozen=True)
class Asking:
    rpm: Annotated[float | None, typer.Option(help="Requests a minute.")] = None

@app.command("run")
@grouped
def run_command(folder: Dir, asking: Asking) -> None:     # rag-eval … run DIR --rpm 60
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import update_wrapper
from inspect import Parameter
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in place of each argument that is a dataclass, that one's fields as options.

    typer reads options from a signature, so it is shown one with all of them.
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
