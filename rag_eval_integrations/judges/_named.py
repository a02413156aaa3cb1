"""The grammar of a judge's name, for the command line and the pytest plugin: `named_judge`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.cascade import cascade_named
from rag_eval_integrations.judges.judge import (
    CASCADE,
    ENDPOINT,
    JUDGES,
    LOCAL,
    Judge,
    judge_from,
    meant,
)
from rag_eval_integrations.models import Model

FORMS = f"{', '.join(JUDGES)} or MODULE:OBJECT"
"""The forms of a judge's name."""


def named_judge(
    name: str, option: str, endpoint: Callable[[str], Judge | Model] = judge_from
) -> Judge | Model:
    """Make the judge of a name; FORMS lists the forms.

    One of them is a cascade, `cascade:A,B`, whose parts are names of judges themselves.

    Args:
        name: the option's value.
        option: the option that it was given to, for error messages.
        endpoint: makes the model of `openai:MODEL`.

    Raises:
        ConfigurationError: for a judge that does not exist, naming what was looked for; for a
            cascade that cannot be made.
    """
    if name.startswith(CASCADE):
        return cascade_named(name, option, lambda part: _judge_called(part, name, option, endpoint))
    return _judge_called(name, name, option, endpoint)


def _judge_called(
    name: str, given: str, option: str, endpoint: Callable[[str], Judge | Model]
) -> Judge | Model:
    """Make the judge of a name; an error names the option.

    A name with a colon that is none of ours is an object to import.
    """
    if name == "embedded":
        return judge_from(name)
    if name.startswith(ENDPOINT):
        return endpoint(name)
    if name.startswith(LOCAL):
        try:
            return judge_from(name)
        except ConfigurationError as error:  # it names the argument, and what stands there
            raise ConfigurationError(option, given, str(error)) from error
    if ":" not in name:
        part = "" if name == given else f": {name!r}"
        raise ConfigurationError(option, given, f"no such judge{part}; {meant(name)}use {FORMS}")
    # `llama3.1:8b` and `anthropic:NAME` are how other tools write models.
    use = f"use {FORMS}; a model behind an OpenAI-compatible endpoint is openai:MODEL"
    thing = imported(name, option, use)
    try:
        return judge_from(thing)  # type: ignore[arg-type]  # it checks what it is
    except ConfigurationError as error:
        kind = "a class" if isinstance(thing, type) else f"an object of {type(thing).__name__}"
        raise ConfigurationError(
            option, given, f"{name} is {kind}, not a judge: it needs a `name` and `async "
            "label(call)` or `async complete(request)`, or to be a framework's model",
        ) from error  # fmt: skip


def imported(name: str, option: str, use: str) -> object:
    """Import `MODULE:OBJECT`, from the working directory as well.

    Args:
        name: the module and the object in it, which may be `a.b`.
        option: the option that it was given to, for error messages.
        use: the forms that the option accepts, for error messages.

    Raises:
        ConfigurationError: names the module or the object that was not found.
    """
    module, _, path = name.partition(":")
    if not module or not path or module.startswith("."):
        raise ConfigurationError(option, name, use)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        thing: object = importlib.import_module(module)
    except (ImportError, SystemExit) as error:  # whose exit code would be taken for this command's
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        ends = isinstance(error, SystemExit)
        why = f"module {module!r} cannot be imported: {'it ends the program' if ends else error}"
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            why = f"no module {missing!r} in {os.getcwd()} or on Python's path; {use}"
        raise ConfigurationError(option, name, why) from error
    place = module
    for part in path.split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError as error:
            raise ConfigurationError(option, name, f"{place} has no {part!r}") from error
        place = f"{place}.{part}"
    return thing
