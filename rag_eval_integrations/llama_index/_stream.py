"""Stage 1, LlamaIndex's streams: read along with the app, never ahead of it.

A streaming query's span ends before a token is made; the models' spans come later and have no
parent. So the response's generator is replaced by one that passes every token on as it is, keeps
a copy, and says in a context variable whose stream is being read while a token is made.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from rag_eval_integrations.records import CaptureStatus

if TYPE_CHECKING:
    from rag_eval_integrations.llama_index._call import Call

_READING: ContextVar[tuple[Call, ...]] = ContextVar("rag_eval_integrations_reading", default=())
_STREAMS = ("response_gen", "chat_stream", "achat_stream")

Done = Callable[["Call", CaptureStatus, "str | None"], None]

reading = _READING.get
"""The calls whose streams are being read in this context; one a handler."""


def holds_stream(response: object) -> bool:
    """Whether an entry method's result has fields for a stream, whoever fills or reads it."""
    # Its own fields only: a structured response answers every attribute, by dumping its model.
    own = getattr(response, "__dict__", ())
    return "response_gen" in own or "chat_stream" in own


def read_along(response: object, call: Call, done: Done) -> bool:
    """Put our generator in place of the response's; the same object goes to the app.

    `done` is called when the stream ends, fails, is closed, or is dropped by the app; what ends
    twice (a stream that is dropped when it has been read) is the caller's to ignore. Returns False
    for a response that holds no stream.
    """
    own = getattr(response, "__dict__", {})
    for name in _STREAMS:
        tokens = own.get(name)
        if not hasattr(tokens, "__anext__") and not hasattr(tokens, "__next__"):
            continue
        copy = _Copy(call, done)
        stream = (atee if hasattr(tokens, "__anext__") else tee)(tokens, call, copy)
        # A generator that was never started runs no `finally` when the app drops it.
        call.stream = weakref.ref(stream, copy.dropped)
        setattr(response, name, stream)
        return True
    return False


@contextmanager
def _making_a_token(call: Call) -> Iterator[None]:
    token = _READING.set((*_READING.get(), call))
    try:
        yield
    finally:
        _READING.reset(token)


class _Copy:
    """What has been read, and what it means when reading ends."""

    def __init__(self, call: Call, done: Done) -> None:
        self._call = call
        self._done = done
        self._tokens: list[str] = []

    def keep(self, token: object) -> None:
        # A chat engine's own stream gives responses, of which each holds a piece of text.
        text = token if isinstance(token, str) else getattr(token, "delta", None)
        if isinstance(text, str):
            self._tokens.append(text)

    def end(self, error: BaseException | None) -> None:
        text = "".join(self._tokens)
        if error is None:
            self._done(self._call, "ok", text)
        elif isinstance(error, Exception):
            self._done(self._call, "error", None)
        else:
            self._done(self._call, "aborted", text or None)

    def dropped(self, _: object) -> None:
        """The generator is garbage."""
        if not sys.is_finalizing():
            self.end(GeneratorExit())


def tee(tokens: Any, call: Call, copy: _Copy) -> Generator[object, None, object]:
    """Pass a stream on token by token."""
    try:
        while True:
            try:
                with _making_a_token(call):
                    token = next(tokens)
            except StopIteration as stop:
                copy.end(None)
                return stop.value
            copy.keep(token)
            yield token
    except BaseException as error:
        try:
            close = getattr(tokens, "close", None)
            if callable(close):
                close()
        finally:
            copy.end(error)
        raise


async def atee(tokens: Any, call: Call, copy: _Copy) -> AsyncGenerator[object]:
    """Do what `tee` does, for an asynchronous stream."""
    try:
        while True:
            try:
                with _making_a_token(call):
                    token = await anext(tokens)
            except StopAsyncIteration:
                copy.end(None)
                return
            copy.keep(token)
            yield token
    except BaseException as error:
        try:
            close = getattr(tokens, "aclose", None)
            if callable(close):
                await close()
        finally:
            copy.end(error)
        raise
