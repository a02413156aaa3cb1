"""What a prompt's author adds to its file: instructions for stages, and sample inputs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations._target import read_whole
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty._frontmatter import read_yaml
from rag_eval_integrations.prompt_tests import _workspace as files
from rag_eval_integrations.prompt_tests._workspace import Workspace

INSTRUCTIONS = ("intent", "inputSpec", "outputRules", "inverseOutputRules", "testExpansion")
"""Stages that can be instructed, by their names in front matter."""


@dataclass(frozen=True)
class AuthorWords:
    """What a prompt's author adds to its file, so that a prompt in use need not be edited."""

    instructions: Mapping[str, str] = field(default_factory=dict)
    """Instructions by stage: `intent`, `inputSpec`, `outputRules`, `inverseOutputRules` or
    `testExpansion`; each replaces the one in the prompt's file."""
    samples: tuple[Mapping[str, JsonValue], ...] | None = None
    """Example inputs in place of those in the prompt's file; None for these."""

    def __post_init__(self) -> None:
        for stage in self.instructions:
            if stage not in INSTRUCTIONS:
                raise ConfigurationError("instructions", stage, f"use {', '.join(INSTRUCTIONS)}")


# --- Words that a folder keeps


_MADE_WITH = {
    "intent": (files.INTENT,), "inputSpec": (files.INPUT_SPEC,), "outputRules": (files.RULES,),
    "inverseOutputRules": (files.INVERSE_RULES,), "testExpansion": (files.TESTS,),
    "samples": (files.INPUT_SPEC, files.TESTS),
}  # fmt: skip
"""Files that are made with words of the author."""


def stored_words(workspace: Workspace) -> AuthorWords:
    about = workspace.about()
    instructions, samples = about.get("instructions"), about.get("samples")
    try:
        return AuthorWords(
            instructions if isinstance(instructions, dict) else {},
            tuple(samples) if isinstance(samples, list) else None,
        )
    except ConfigurationError as error:
        raise ConfigurationError("file", str(workspace.path(files.PROMPT)), str(error)) from error


def continued_words(workspace: Workspace, before: AuthorWords, author: AuthorWords) -> AuthorWords:
    """Add new words to those of the folder.

    Raises:
        ConfigurationError: for words that differ from those that a file was made with.
    """
    known = before.instructions
    changed = [stage for stage, text in author.instructions.items() if known.get(stage) != text]
    if author.samples is not None and author.samples != before.samples:
        changed.append("samples")
    for stage in changed:
        for name in _MADE_WITH[stage]:
            if workspace.has(name):
                why = (
                    f"differs from what {workspace.path(name)} was made with; delete that file to "
                    "make it again, or use another folder"
                )
                given = author.instructions.get(stage, "a new list")
                raise ConfigurationError(stage, given[:60], why)
    return AuthorWords(
        {**known, **author.instructions},
        before.samples if author.samples is None else author.samples,
    )


# --- Sample inputs from a CSV, JSON or YAML file in the prompt's folder


_MOST_BYTES = 5_000_000


def read_samples(folder: Path, name: str, source: str) -> list[Mapping[str, JsonValue]]:
    """Read a file of sample inputs: one object or row per sample.

    Args:
        folder: the prompt's folder.
        name: path of the file in this folder.
        source: the prompt file, for error messages.

    Raises:
        ConfigurationError: for a file that is outside of the folder, missing, larger than 5 MB, or
            not a list of objects.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigurationError("testSamples", name, f"is outside the folder of {source}")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigurationError("testSamples", name, f"is larger than {_MOST_BYTES:,} bytes")
        text = read_whole(path, "testSamples").decode("utf-8-sig")
        rows = _rows(path.suffix.lower(), text)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError("testSamples", name, f"cannot be read: {error}") from error
    if isinstance(rows, dict):
        rows = [rows]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigurationError("testSamples", name, "should be a list of objects")
    return rows


def _rows(suffix: str, text: str) -> Any:
    if suffix == ".csv":
        return [dict(row) for row in csv.DictReader(io.StringIO(text, newline=""))]
    if suffix == ".json":
        return json.loads(text)
    if suffix in (".yaml", ".yml"):
        return read_yaml(text).value
    raise ValueError("use a .csv, .json or .yaml file")
