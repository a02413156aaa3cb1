"""`Journal`: a record of every reply, one per line, so that a killed run repeats no request.

A line is appended with one write as soon as a reply arrives. After a kill -9 all lines are complete
except possibly the last, and an incomplete line is skipped when the file is read. The key of a
reply is a digest of everything that determines it: the model, the request and the number of the
run.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import SCHEMA, check_schema, parse_object

logger = logging.getLogger(__name__)


class Journal:
    """Replies by key, in memory and in an append-only file.

    Args:
        path: the file, created with the first reply; None to keep replies only in memory.

    Raises:
        OSError: when the file cannot be read.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._known: dict[str, Any] = {}
        self._file: int | None = None
        self.torn = 0
        """Lines that could not be read."""
        if self.path is not None and self.path.exists():
            self._read(self.path)

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Any:
        """Return the value recorded for a key; None if there is none."""
        return self._known.get(key)

    def put(self, key: str, who: str, value: Any) -> None:
        """Record a JSON value, which is in the file when this returns.

        Args:
            key: the digest of the request.
            who: the model's name, for people who read the file.
            value: the reply; None removes a recorded one.

        Raises:
            OSError: when the file cannot be written.
        """
        self._known[key] = value
        if self.path is None:
            return
        line = json.dumps({"schema": SCHEMA, "key": key, "who": who, "value": value})
        if self._file is None:
            self._file = self._open(self.path)
        data = memoryview(f"{line}\n".encode("ascii"))
        while data:
            data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Close the file; a later `put` opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @staticmethod
    def _open(path: Path) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(file).st_size
        if size and os.pread(file, 1, size - 1) != b"\n":
            os.write(file, b"\n")  # end an incomplete line, so that the next record has its own
        return file

    def _read(self, path: Path) -> None:
        with path.open("rb") as lines:
            for line in lines:
                if not line.strip():
                    continue
                try:
                    content = parse_object(line)
                    check_schema(content)
                    self._known[content["key"]] = content["value"]
                except (InputError, KeyError, TypeError):
                    self.torn += 1
        if self.torn:
            logger.warning(
                "%s: %d line(s) cannot be read; their requests are sent again", path, self.torn
            )
