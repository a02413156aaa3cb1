"""The judge that a command's `--judge` names."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations.cli._watched import WatchedModel
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import CascadeJudge, Judge, judge_from
from rag_eval_integrations.models import Model

if TYPE_CHECKING:
    from pydantic import JsonValue

    from rag_eval_integrations.models.throttling import Waiting

FORMS = "embedded, openai:MODEL, cascade:A,B[,C] or MODULE:OBJECT"
"""The values that `--judge` accepts."""

_OPTION = "--judge"
_CASCADE = "cascade:"


@dataclass(frozen=True)
class Limits:
    """Options of the judges that are endpoints: `openai:MODEL`, alone or in a cascade."""

    base_url: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int | None = None
    cache: Path | None = None
    on_wait: Callable[[Waiting], None] | None = None
    timeout: float | None = None
    max_tokens: int | None = None
    extra_body: Mapping[str, JsonValue] | None = None
    api_key: str | None = None
    deadline: float | None = None
    on_watched: Callable[[WatchedModel], None] | None = None
    """Receives each model, which then tells at once when it cannot be used."""

    def model(self, name: str) -> Judge | Model:
        """Make the model of `openai:MODEL`."""
        model = judge_from(
            name, base_url=self.base_url, rpm=self.rpm, tpm=self.tpm,
            max_concurrency=self.max_concurrency, on_wait=self.on_wait, api_key=self.api_key,
            timeout=self.timeout, max_tokens=self.max_tokens, extra_body=self.extra_body,
            deadline=self.deadline,
        )  # fmt: skip
        if self.on_watched is not None and isinstance(model, Model):
            model = WatchedModel(model)
            self.on_watched(model)
        if self.cache is None or not isinstance(model, Model):
            return model
        from rag_eval_integrations.models import CachedModel  # noqa: PLC0415  # SQLite, if wanted

        return CachedModel(model, self.cache)


def judge_of(name: str, limits: Limits) -> Judge | Model:
    """Make the judge that `--judge` names; FORMS lists the forms.

    Args:
        name: the option's value.
        limits: endpoint and limits of every `openai:MODEL` in it.

    Raises:
        ConfigurationError: for a judge that does not exist, naming what was looked for.
    """
    if name.startswith(_CASCADE):
        parts = [part.strip() for part in name.removeprefix(_CASCADE).split(",")]
        if not 2 <= len(parts) <= 3 or not all(parts):
            raise ConfigurationError(_OPTION, name, "use cascade:A,B or cascade:A,B,C")
        *firsts, found = [_one(part, name, _of_endpoints(limits, part)) for part in parts]
        for part, first in zip(reversed(parts[:-1]), reversed(firsts), strict=True):
            if not isinstance(first, Judge):
                raise ConfigurationError(
                    _OPTION, name, f"{part} is a model, which does not say how sure it is; only "
                    "the last of a cascade may be one",
                )  # fmt: skip
            found = CascadeJudge(first, found)
        if not any(part.startswith("openai:") for part in parts):
            _refuse(limits, name)
        return found
    return _one(name, name, limits if name.startswith("openai:") else _asked_for(limits, name))


def _one(name: str, given: str, limits: Limits) -> Judge | Model:
    if name == "embedded":
        return judge_from(name)
    if name.startswith("openai:"):
        return limits.model(name)
    if ":" not in name:
        raise ConfigurationError(_OPTION, given, f"no such judge: {name!r}; use {FORMS}")
    found = imported(name, _OPTION, f"use {FORMS}")
    try:
        return judge_from(found)  # type: ignore[arg-type]  # it checks what it is
    except ConfigurationError as error:
        kind = "a class" if isinstance(found, type) else f"an object of {type(found).__name__}"
        raise ConfigurationError(
            _OPTION, given, f"{name} is {kind}, not a judge: it needs a `name` and `async "
            "label(call)` or `async complete(request)`, or to be a framework's model",
        ) from error  # fmt: skip


def _of_endpoints(limits: Limits, part: str) -> Limits:
    return limits if part.startswith("openai:") else Limits()


def _asked_for(limits: Limits, name: str) -> Limits:
    _refuse(limits, name)
    return Limits()


def _refuse(limits: Limits, name: str) -> None:
    """Refuse the user's options for endpoints: a limit that is not kept is worse than none."""
    for field in ("base_url", "rpm", "tpm", "cache", "timeout", "max_tokens", "extra_body"):
        value = getattr(limits, field)
        if value is not None:
            option = f"--{field.replace('_', '-')}"
            raise ConfigurationError(option, value, f"is for openai:MODEL, not for judge {name!r}")


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
        found: object = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            why = f"module {module!r} cannot be imported: {error}"
        else:
            why = f"no module {error.name!r} in {os.getcwd()} or on Python's path; {use}"
        raise ConfigurationError(option, name, why) from error
    except ImportError as error:
        why = f"module {module!r} cannot be imported: {error}"
        raise ConfigurationError(option, name, why) from error
    except SystemExit as error:  # its exit code would be taken for this command's
        why = f"module {module!r} cannot be imported: it ends the program"
        raise ConfigurationError(option, name, why) from error
    place = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise ConfigurationError(option, name, f"{place} has no {part!r}") from error
        place = f"{place}.{part}"
    return found
