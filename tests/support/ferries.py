"""Calls about ferries, and the files that commands read and write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from loopback import Behaviour

from rag_eval_integrations.records import Evaluation, from_line
from rag_eval_integrations.testing import labels_reply


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Command = Callable[..., Any]
"""The fixture `rag_eval`: words of a command → its exit code, output and messages."""

CALL: dict[str, Any] = {
    "question": "When does the ferry leave?",
    "documents": ["The ferry leaves at nine."],
    "response": "The ferry leaves at nine.",
}
LABELS = Behaviour(content=labels_reply(["0a", "0b"], ["a"]))
"""What an endpoint says of every call of `ferries`."""


def write(path: Path, *rows: object) -> Path:
    """Write rows as lines of JSON, bytes as they are, and return the path."""
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def ferries(path: Path, count: int) -> Path:
    """Write calls with different questions; each has two sentences, and repeats the first."""
    call = {"documents": ["It leaves at nine. It is green."], "response": "It leaves at nine."}
    return write(path, *({"question": f"When does ferry {n} leave?"} | call for n in range(count)))


def read(path: Path) -> list[Evaluation]:
    """Read a file of evaluations."""
    return [from_line(Evaluation, line) for line in path.read_bytes().splitlines()]
