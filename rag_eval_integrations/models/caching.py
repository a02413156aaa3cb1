"""`CachedModel`: answers from an SQLite file, and asks the model only for what is not in it."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Self, TypeVar, get_args

from rag_eval_integrations._target import path_from
from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.models._answer_store import FORGOTTEN, AnswerStore, CacheFile
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Model,
    WrappedModel,
)
from rag_eval_integrations.records import SCHEMA, Usage, from_line, to_line

logger = logger_of(__name__)

R = TypeVar("R")

Keep = Literal["complete", "all"]


class CachedModel(WrappedModel):
    """A model that remembers answers in an SQLite file.

    The key is a digest of everything that decides the answer: `name`, `model`, `base_url` and
    `version` of the model (the last covers its own settings), and the whole request with messages,
    schema and prompt version. Requests that should be answered independently, such as several
    samples of one prompt, must differ in their `seed`.

    By default only complete answers are stored: those with text and `finish_reason` "stop". A
    truncation, a refusal or a content filter may not happen again with the next attempt, a larger
    limit or a changed policy. `keep="all"` stores these too, for a model under test, whose answers
    are results. An error is never stored.

    The usage of a hit is 0 requests and 0 tokens, so that costs are counted once; the rest is the
    answer as it was stored. Concurrent equal requests are made once, and usage is counted once.

    An answer is stored before `complete` returns it: killing the process loses only requests in
    flight. (A power failure may lose the last answers too, but does not damage the file.) Several
    processes may share a file on a local disk. A file that is not a cache, is damaged or was
    written with another schema is refused and left unchanged.

    Args:
        model: asked for answers that are not in the file. Wrap the throttled model: hits then do
            not wait for its limits.
        path: the file; created when absent or empty, in a folder that exists. Or a store that
            several models share, such as `prompt_tests.Journal`; `close` leaves it open.
        max_mb: megabytes above which the oldest tenth of a file is dropped, at least 1.
        keep: which answers are stored and used: `complete` or `all`.

    Raises:
        ConfigurationError: for a file that cannot be used, or an argument out of range.
    """

    def __init__(
        self,
        model: Model,
        path: str | Path | AnswerStore,
        *,
        max_mb: float = 1024.0,
        keep: Keep = "complete",
    ) -> None:
        if not max_mb >= 1:
            raise ConfigurationError("max_mb", max_mb, "use a number from 1")
        if keep not in get_args(Keep):
            raise ConfigurationError("keep", keep, "use 'complete' or 'all'")
        super().__init__(model)
        self.retries = self._wrapped.retries
        self.keep = keep
        self._own: CacheFile | None = None
        if isinstance(path, AnswerStore):
            self._file = path
        else:
            self._file = self._own = CacheFile(path_from(path), int(max_mb * 2**20))
        self._closed = False
        self._flights = SingleFlight[Completion](0)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request from the file, or from the model.

        If the file fails later (disk full, locked for 30 s, damaged), a warning is logged and the
        model's answer is returned.

        Raises:
            Exception: whatever the model, or a store that was given, raises; `RuntimeError` after
                `close`.
        """
        if self._closed:
            raise RuntimeError(f"the cache {self._file.path} is closed")
        key = self.key(request)
        charged = False

        async def make() -> Completion:
            """Return the stored completion, or ask and store."""
            nonlocal charged
            line = await self._use(self._file.get_line, key)
            remembered = None if line in (None, FORGOTTEN) else self._read(key, line)
            if remembered is not None:
                return remembered
            charged = True
            completion = await self._ask(request)
            if self._keeps(completion):
                await self._use(self._file.put_line, key, to_line(completion))
            return completion

        completion = await self._flights.get(key, make)
        return completion if charged else completion.model_copy(update={"usage": Usage()})

    async def _use(self, use: Callable[..., R], *args: object) -> R:
        """Read or write the file, in a thread where the file is our own."""
        if self._own is None:
            return use(*args)
        # To the end even if the caller is cancelled: an answer that has arrived is stored although
        # another request's failure, or Ctrl-C, ends the run.
        running = asyncio.get_running_loop().run_in_executor(None, use, *args)
        return await asyncio.shield(running)

    async def _ask(self, request: CompletionRequest) -> Completion:
        """Ask the model for an answer that is not in the file."""
        return await self._wrapped.complete(request)

    def forget(self, request: CompletionRequest) -> None:
        """Remove a request's answer from the file, so that it is asked for again."""
        self._file.put_line(self.key(request), FORGOTTEN)

    def key(self, request: CompletionRequest) -> str:
        """Return a request's key: 64 hexadecimal digits, the same in all processes and versions."""
        # Fields at their default are left out, so that a new field does not change keys, and so is
        # the query of a URL, which may be a secret that changes.
        content = {
            "schema": SCHEMA,
            "judge": self.name,  # not "model": keys in existing files have this word
            "model": self.model,
            "version": self.version,
            "base_url": (self.base_url or "").partition("?")[0],
            "request": request.model_dump(exclude_defaults=True),
        }
        # ASCII: scraped documents contain lone surrogates, which UTF-8 cannot encode.
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def _keeps(self, completion: Completion) -> bool:
        """Whether a completion is one of those that are stored and used."""
        return self.keep == "all" or all(
            choice.finish_reason == "stop" and choice.text for choice in completion.choices
        )

    def _read(self, key: str, line: str) -> Completion | None:
        """Read a stored line; None when it is to be asked for again."""
        try:
            completion = from_line(Completion, line)
            return completion if self._keeps(completion) else None
        except InputError as error:
            logger.warning("%s: answer %s is asked for again: %s", self._file.path, key[:8], error)
            return None

    def close(self) -> None:
        """Close the file; the model stays open. Closing twice does nothing."""
        self._closed = True
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
