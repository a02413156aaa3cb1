"""`CachingJudge`: asks the file first, and the judge for what is not there."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Self

from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.judges.caching.file import CacheFile
from rag_eval_integrations.judges.completion import Completion, CompletionRequest
from rag_eval_integrations.judges.protocols import Completer
from rag_eval_integrations.judges.single_flight import SingleFlight
from rag_eval_integrations.judges.wrapping import WrappedCompleter
from rag_eval_integrations.records import SCHEMA, Usage, from_line, to_line

logger = logging.getLogger(__name__)


class CachingJudge(WrappedCompleter):
    """A completer that remembers answers in an SQLite file.

    The key is a digest of everything that decides the answer: the judge's name, model, endpoint and
    version (which covers its own parameters), and the whole request with messages, schema and
    prompt version. Requests that should be answered independently, such as several samples of one
    prompt, must differ: by their `seed`.

    Only complete answers are kept, those with text and `finish_reason` "stop". An error, a
    truncation, a refusal or a content filter may be gone with the next attempt, a larger cap or a
    changed policy; kept, it would be for ever.

    A hit has a usage of no requests and no tokens, so that costs are counted once; all else is as
    it was answered. Concurrent equal requests are one request, and only its maker is charged.

    When `complete` returns a new answer, the answer is stored: killing the process loses what is in
    flight, nothing else. (A power cut may lose the last answers too, never the file.) Several
    processes may share a file, on a local disk. A file that is not ours, is damaged or was written
    by a newer version is refused, and not a byte of it is changed.

    Args:
        completer: who is asked for what is not remembered. Wrap the throttled one: a hit then waits
            for no limit.
        path: the file; created when absent or empty, in a folder that exists.
        max_mb: megabytes from which the oldest tenth is dropped, at least 1.

    Raises:
        ConfigurationError: for a file that cannot be used, and a `max_mb` out of range.
    """

    def __init__(self, completer: Completer, path: str | Path, *, max_mb: float = 1024.0) -> None:
        if not max_mb >= 1:
            raise ConfigurationError("max_mb", max_mb, "use a number from 1")
        super().__init__(completer)
        self.retries = bool(getattr(completer, "retries", False))
        self._file = CacheFile(Path(path), int(max_mb * 2**20))
        self._closed = False
        self._process = os.getpid()
        self._flights = SingleFlight[Completion](0)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request from the file, or from the completer.

        A file that fails later (disk full, locked for 30 s, damaged) is a warning in the log: the
        answer that was paid for is returned all the same.

        Raises:
            Exception: whatever the completer raises; `RuntimeError` after `close`.
        """
        if self._closed:
            raise RuntimeError(f"the cache {self._file.path} is closed")
        if self._process != os.getpid():
            # What is in flight at a fork is answered in the parent; the child would wait for ever.
            self._process, self._flights = os.getpid(), SingleFlight[Completion](0)
        key = self.key(request)
        charged = False

        async def make() -> Completion:
            nonlocal charged
            value = await asyncio.to_thread(self._file.get, key)
            remembered = None if value is None else self._read(key, value)
            if remembered is not None:
                return remembered
            charged = True
            completion = await self._completer.complete(request)
            if _is_complete(completion):
                await asyncio.to_thread(self._file.put, key, to_line(completion))
            return completion

        completion = await self._flights.get(key, make)
        return completion if charged else completion.model_copy(update={"usage": Usage()})

    def key(self, request: CompletionRequest) -> str:
        """Return a request's key: 64 hexadecimal digits, the same in every process and version."""
        # Without what has its default, so that a field that is new leaves keys as they are, and
        # without what stands behind `?` in a URL, which may be a secret that changes.
        content = {
            "schema": SCHEMA,
            "judge": self.name,
            "model": self.model,
            "version": self.version,
            "base_url": (self.base_url or "").partition("?")[0],
            "request": request.model_dump(exclude_defaults=True),
        }
        # ASCII: lone surrogates, which scraped documents hold, have no UTF-8.
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def _read(self, key: str, value: str) -> Completion | None:
        try:
            return from_line(Completion, value)
        except InputError as error:
            logger.warning("%s: the answer %s is asked again: %s", self._file.path, key[:8], error)
            return None

    def close(self) -> None:
        """Close the file; the completer stays open. A second time does nothing."""
        self._closed = True
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _is_complete(completion: Completion) -> bool:
    return all(choice.finish_reason == "stop" and choice.text for choice in completion.choices)
