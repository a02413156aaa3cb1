"""Stage 1 for LlamaIndex: copy the streams that the app reads, never reading ahead of it.

A streaming query's span ends before its first token; the models' spans come later, without a
parent. So the response's generator is replaced by one that passes every token on unchanged and
keeps a copy. While the next token is produced, its call is known by a context variable, and by the
thread: another instrumentor may run every step of a stream in a context of its own, which was
copied before.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any

from rag_eval_integrations.records.call import CaptureStatus

if TYPE_CHECKING:
    from rag_eval_integrations.llama_index._call import RootSpan

_READING: ContextVar[tuple[RootSpan, ...]] = ContextVar("rag_eval_integrations_reading", default=())
_STREAMS = ("response_gen", "chat_stream", "achat_stream")

OnStreamEnd = Callable[["RootSpan", CaptureStatus, "str | None"], None]


class _Here(threading.local):
    """The calls for which this thread produces a token, and the task in which it does so."""

    calls: tuple[RootSpan, ...] = ()
    task: object = None


_here = _Here()


def reading() -> tuple[RootSpan, ...]:
    """Return the calls for whose streams this context or thread produces a token."""
    known = _READING.get()
    here = _here.calls
    if not here or here is known or _here.task is not _task():
        return known
    return (*known, *[call for call in here if call not in known])


def _task() -> object:
    """Return the current task; None without a loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no running loop
        return None


def holds_stream(response: object) -> bool:
    """Return whether the result of an entry method has a field for a stream."""
    # Only its own fields: a structured response answers every attribute, by dumping its model.
    own = getattr(response, "__dict__", ())
    return "response_gen" in own or "chat_stream" in own


def is_async_stream(response: object, name: str) -> bool:
    """Return whether a field of a response holds an async stream.

    The stream does not tell: a proxy of another instrumentor has the methods of both kinds.
    """
    if name == "response_gen":
        return hasattr(type(response), "async_response_gen")
    return name.startswith("a")


def read_along(response: object, call: RootSpan, done: OnStreamEnd) -> bool:
    """Replace the response's generator by one that keeps a copy; the app gets the same object.

    Args:
        response: the response.
        call: its call.
        done: called when the stream ends, fails, is closed, or is dropped by the app. It may be
            called twice, for a stream that is dropped after it was read.

    Returns:
        Whether the response holds a stream that is now read along; others are left as they are.
    """
    own = getattr(response, "__dict__", {})
    for name in _STREAMS:
        tokens = own.get(name)
        is_async = is_async_stream(response, name)
        if hasattr(tokens, "__anext__" if is_async else "__next__"):
            return _replace(response, name, tokens, call, done, is_async=is_async)
    return False


def read_result_along(event: object, tokens: object, call: RootSpan, done: OnStreamEnd) -> bool:
    """Replace the generator that a workflow's stop event holds, as `read_along` does."""
    is_async = isinstance(tokens, AsyncGeneratorType)
    return _replace(event, "_result", tokens, call, done, is_async=is_async)


def _replace(
    response: object,
    name: str,
    tokens: object,
    call: RootSpan,
    done: OnStreamEnd,
    *,
    is_async: bool,
) -> bool:
    """Replace a stream by one that keeps a copy; return whether that was possible."""
    copy = _Copy(call, done)
    stream = (atee if is_async else tee)(tokens, call, copy)
    try:
        setattr(response, name, stream)
    except Exception:  # noqa: BLE001 -- a response that cannot be changed
        return False
    # A generator that was never started does not run its `finally` when the app drops it.
    call.stream = weakref.ref(stream, copy.dropped)
    return True


@contextmanager
def _making_a_token(call: RootSpan) -> Iterator[None]:
    """Mark a call as the one whose stream produces the next token."""
    before = _here.calls, _here.task
    calls = (*_READING.get(), call)
    token = _READING.set(calls)
    _here.calls, _here.task = calls, _task()
    try:
        yield
    finally:
        _here.calls, _here.task = before
        _READING.reset(token)


class _Step:
    """An awaitable whose call is known whenever it runs, and not while it waits."""

    def __init__(self, awaitable: Awaitable[object], call: RootSpan) -> None:
        self._awaitable = awaitable
        self._call = call

    def __await__(self) -> Generator[Any, Any, object]:
        steps: Any = self._awaitable.__await__()
        sent: object = None
        error: BaseException | None = None
        while True:
            try:
                with _making_a_token(self._call):
                    if error is not None:
                        if not hasattr(steps, "throw"):
                            raise error
                        wanted = steps.throw(error)
                    else:
                        wanted = next(steps) if sent is None else steps.send(sent)
            except StopIteration as stop:
                return stop.value
            try:
                sent, error = (yield wanted), None
            except BaseException as thrown:  # noqa: BLE001 -- handed on to the stream
                error = thrown


class _Copy:
    """The text that has been read from a stream, and the report of its end."""

    def __init__(self, call: RootSpan, done: OnStreamEnd) -> None:
        self._call = call
        self._done = done
        self._tokens: list[str] = []

    def keep(self, token: object) -> None:
        """Keep the text of a token."""
        # The stream of a chat engine yields responses, each of which holds a piece of text.
        text = token if isinstance(token, str) else getattr(token, "delta", None)
        if isinstance(text, str):
            self._tokens.append(text)

    def end(self, error: BaseException | None) -> None:
        """End the call with the text so far, by how the stream ended.

        After an `Exception` it is an error, without the text; after `GeneratorExit` or the like it
        is aborted, without a text if none was read.
        """
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


def tee(tokens: Any, call: RootSpan, copy: _Copy) -> Generator[object, None, object]:
    """Pass a stream on token by token, and keep a copy; close it when the app does."""
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


async def atee(tokens: Any, call: RootSpan, copy: _Copy) -> AsyncGenerator[object]:
    """Pass an async stream on, and keep a copy; spans made meanwhile belong to the call."""
    try:
        while True:
            try:
                token = await _Step(anext(tokens), call)
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


def is_written_in_background(result: object) -> bool:
    """Return whether a thread or task of a chat engine writes the result's stream."""
    own = getattr(result, "__dict__", {})
    return "queue" in own and bool(own.get("is_writing_to_memory"))
