"""G-Eval metrics from outside of Python: `NAME.geval.yaml` files, and presets by name.

A file holds arguments of `GEval`:

    name: politeness
    criteria: The response is polite, also where it has to refuse.
    params: [question, response]
    scale: [1, 5]
    rubric:
      1: rude
      2-4: neutral
      5: polite throughout
    threshold: 0.6

or a ready-made metric with changes:

    preset: coherence
    task: summary
    samples: 5
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.metrics.geval._presets import PRESETS, Task
from rag_eval_integrations.metrics.geval.metric import GEval

SUFFIXES = (".geval.yaml", ".geval.yml")
_FIELDS = (
    "preset", "task", "name", "criteria", "steps", "params", "scale", "rubric", "threshold",
    "strict", "estimator", "samples", "temperature", "form", "top_logprobs", "max_tokens",
)  # fmt: skip
_MOST_BYTES = 1_000_000
PRESET_NAMES = tuple(PRESETS)
"""Names that may follow `geval:` in the name of a metric, or `preset:` in a file."""


def named_geval(name: str, /, **changes: Any) -> GEval:
    """Make a ready-made metric by its name, or `NAME:TASK` as in `coherence:summary`.

    Args:
        name: the name.
        changes: arguments of `GEval` that replace the preset's.

    Raises:
        ConfigurationError: the name or the task is unknown, or an argument is wrong.
    """
    base, _, task = name.partition(":")
    return GEval.preset(base, cast(Task, task or "qa"), **changes)


def read_geval(path: str | Path, /, **changes: Any) -> GEval:
    """Read a metric from a YAML file; without a field `name`, the metric is named after the file.

    Args:
        path: the file.
        changes: arguments of `GEval` that replace the file's.

    Raises:
        InputError: the file is not YAML, or a field is unknown or has a wrong value; names file,
            line and field.
        OSError: the file cannot be read.
    """
    file = Path(path)
    if file.stat().st_size > _MOST_BYTES:
        raise InputError(f"{file}: is larger than {_MOST_BYTES:,} bytes")
    content, lines = _mapping(file)
    unknown = [field for field in content if field not in _FIELDS]
    if unknown:
        why = f"{file}: is not a field of a metric; use {', '.join(_FIELDS)}"
        raise InputError(why, field=str(unknown[0]), line=lines.get(str(unknown[0])))
    content.setdefault("name", _stem(file))
    content |= changes
    if "task" in content and "preset" not in content:
        raise InputError(f"{file}: needs a `preset`", field="task", line=lines.get("task"))
    try:
        if "preset" not in content:
            return GEval(**content)
        if content["preset"] not in PRESET_NAMES:
            names = ", ".join(PRESET_NAMES)
            raise ConfigurationError("preset", content["preset"], f"use one of {names}")
        return GEval.preset(content.pop("preset"), content.pop("task", "qa"), **content)
    except ConfigurationError as error:
        line = lines.get(error.field)
        raise InputError(f"{file}: {error}", field=error.field, line=line) from error


def is_geval_file(name: str) -> bool:
    """Tell whether a file's name ends in `.geval.yaml` or `.geval.yml`."""
    return name.endswith(SUFFIXES)


def _stem(file: Path) -> str:
    """Return a file's name without its suffix."""
    suffix = next((suffix for suffix in SUFFIXES if file.name.endswith(suffix)), file.suffix)
    return file.name.removesuffix(suffix)


def _mapping(file: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Read a metric file's YAML, with the line of each key; refuse anything but fields."""
    from rag_eval_integrations.metrics._yaml import (  # noqa: PLC0415  # PyYAML takes 20 ms
        YamlTextError,
        read_yaml_text,
    )

    data = _target.read_whole(file)
    try:
        read = read_yaml_text(data.decode("utf-8-sig"))
    except YamlTextError as error:
        raise InputError(f"{file}: {error}", line=error.line) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: cannot be read: {error}") from error
    if not isinstance(read.value, dict):
        raise InputError(f"{file}: should hold fields, such as `criteria: …`")
    return read.value, read.lines
