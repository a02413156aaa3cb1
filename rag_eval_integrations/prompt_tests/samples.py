"""Sample inputs from a file beside the prompt: CSV, JSON or YAML."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError

_MOST_BYTES = 5_000_000


def read_samples(folder: Path, name: str, source: str) -> list[Mapping[str, JsonValue]]:
    """Read a file of sample inputs, one object or row each.

    Raises:
        ConfigurationError: outside of the prompt's folder, not there, or not readable as objects.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigurationError("testSamples", name, f"is outside of the folder of {source}")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigurationError("testSamples", name, f"is larger than {_MOST_BYTES:,} bytes")
        text = path.read_text("utf-8-sig")
        rows = _rows(path.suffix.lower(), text)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError("testSamples", name, f"cannot be read: {error}") from error
    if isinstance(rows, dict):
        rows = [rows]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigurationError("testSamples", name, "should hold objects, one a sample")
    return rows


def _rows(suffix: str, text: str) -> Any:
    if suffix == ".csv":
        return [dict(row) for row in csv.DictReader(io.StringIO(text, newline=""))]
    if suffix == ".json":
        return json.loads(text)
    if suffix in (".yaml", ".yml"):
        from rag_eval_integrations.metrics.prompty.frontmatter import read_yaml  # noqa: PLC0415

        return read_yaml(text)
    raise ValueError("use a .csv, .json or .yaml file")
