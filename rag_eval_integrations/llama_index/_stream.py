"""Stage 1 for LlamaIndex: copy the streams that the app reads, never reading ahead of it.

A streaming query's span ends before its first token; the models' spans come later, without a
parent. So the response's generator is replaced by one that passes every token on unchanged and
keeps a copy, and a context variable names the call while its next token is produced.
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

OnStreamEnd = Callable[["Call", CaptureStatus, "str | None"], None]

reading = _READING.get
"""Returns the calls whose streams are being read in this context; one call per handler."""


def holds_stream(response: object) -> bool:
    """Return whether the result of an entry method has a field for a stream."""
    # Only its own fields: a structured response answers every attribute, by dumping its model.
    own = getattr(response, "__dict__", ())
    return "response_gen" in own or "chat_stream" in own


def read_along(response: object, call: Call, done: OnStreamEnd) -> bool:
    """Replace the response's generator by one that keeps a copy; the app gets the same object.

    Args:
        response: the response.
        call: its call.
        done: called when the stream ends, fails, is closed, or is dropped by the app. It may be
            called twice, for a stream that is dropped after it was read.

    Returns:
        Whether the response holds a stream.
    """
    own = getattr(response, "__dict__", {})
    for name in _STREAMS:
        tokens = own.get(name)
        if not hasattr(tokens, "__anext__") and not hasattr(tokens, "__next__"):
            continue
        copy = _Copy(call, done)
        stream = (atee if hasattr(tokens, "__anext__") else tee)(tokens, call, copy)
        # A generator that was never started does not run its `finally` when the app drops it.
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
    """The text that has been read from a stream, and the report of its end."""

    def __init__(self, call: Call, done: OnStreamEnd) -> None:
        self._call = call
        self._done = done
        self._tokens: list[str] = []

    def keep(self, token: object) -> None:
        # The stream of a chat engine yields responses, each of which holds a piece of text.
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
        """Report that the app dropped the generator."""
        if not sys.is_finalizing():
            self.end(GeneratorExit())


def tee(tokens: Any, call: Call, copy: _Copy) -> Generator[object, None, object]:
    """Pass a stream on token by token, and keep a copy."""
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
    """Pass an async stream on token by token, and keep a copy."""
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
