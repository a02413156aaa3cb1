"""`Journal`: the store of every reply of a folder, so that a killed run repeats no request.

Replies are in the SQLite file that `CachedModel` has, too; a reply is in it as soon as it arrives.
The key of a reply is a digest of everything that determines it: the model, the request and the
number of the run. Earlier versions wrote one line of JSON per reply into `replies.jsonl`; these
replies are still used, and the file is never changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.dataset import read_lines
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.models._answer_store import FORGOTTEN, CacheFile
from rag_eval_integrations.records import SCHEMA, Usage, check_schema

logger = logger_of(__name__)


class Journal:
    """Replies by key, in a file or only in memory.

    Args:
        path: the SQLite file, created with the first reply. Its name ends in `.sqlite`, which
            replaces `.jsonl` or is appended. A file of an earlier version, with one line of JSON
            per reply, is read too: at `path`, or beside it with `.jsonl` for `.sqlite`. None to
            keep replies only in memory.

    Raises:
        ConfigurationError: for an SQLite file that is damaged or not a store of answers.
        OSError: when the earlier version's file cannot be read.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path: Path | None = None
        """The SQLite file."""
        self.spent: dict[str, Usage] = {}
        """What was asked since this object was made, by the model's name."""
        self.torn = 0
        """Lines of the earlier version's file that could not be read."""
        self._file: CacheFile | None = None
        self._held: dict[str, str] = {}
        """Lines in memory: all, or those of the earlier version's file."""
        if path is None:
            return
        earlier = self.path = Path(path)
        if self.path.suffix == ".sqlite":
            earlier = self.path.with_suffix(".jsonl")
        else:
            self.path = earlier.with_name(f"{earlier.name.removesuffix('.jsonl')}.sqlite")
        if earlier.is_file():
            self._read(earlier)
        self._file = CacheFile(self.path, strict=True)

    def __len__(self) -> int:
        return len(self._held.keys() | (self._file.keys() if self._file is not None else set()))

    def get(self, key: str) -> Any:
        """Return the value recorded for a key; None if there is none."""
        line = self.get_line(key)
        if line is None or line == FORGOTTEN:
            return None
        content = json.loads(line)
        if isinstance(content, dict):
            content.pop("schema", None)
            return content.get("value", content)
        return content

    def put(self, key: str, who: str, value: Any) -> None:
        """Record a JSON value, which is in the file when this returns.

        Args:
            key: the digest of the request.
            who: the model's name, for people who read the file.
            value: the reply; None removes a recorded one.

        Raises:
            OSError: when the file cannot be written.
        """
        self.put_line(key, json.dumps({"schema": SCHEMA, "who": who, "value": value}))

    def get_line(self, key: str) -> str | None:
        """Return the line of JSON recorded for a key; None if there is none."""
        line = None if self._file is None else self._file.get_line(key)
        return self._held.get(key) if line is None else line

    def put_line(self, key: str, line: str) -> None:
        """Record a line of JSON, which is in the file when this returns.

        Raises:
            OSError: when the file cannot be written.
        """
        if self._file is None:
            self._held[key] = line
        else:
            self._file.put_line(key, line)

    def spend(self, who: str, usage: Usage) -> None:
        """Count the usage of a reply that was asked for."""
        self.spent[who] = self.spent.get(who, Usage()) + usage

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        if self._file is not None:
            self._file.disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self, path: Path) -> None:
        for line in read_lines(path, _entry):
            if line.value is None:
                self.torn += 1
            else:
                key, held = line.value
                self._held[key] = held
        if self.torn:
            logger.warning(
                "%s: %d line(s) cannot be read; their requests are sent again", path, self.torn
            )


def _entry(content: dict[str, Any]) -> tuple[str, str]:
    """Read a line of an earlier version's file: the key, and its value as JSON."""
    check_schema(content)
    key = content.get("key")
    if not isinstance(key, str) or "value" not in content:
        raise InputError("is not a reply")
    return key, json.dumps(content["value"])
