"""Stage 1, LlamaIndex's streams: read along with the app, never ahead of it.

A streaming query's span ends before a token is made; the models' spans come later and have no
parent. So the response's generator is replaced by one that passes every token on as it is, keeps
a copy, and says in a context variable whose stream is being read while a token is made.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rag_eval_integrations.llama_index.tree import Call
from rag_eval_integrations.records import CaptureStatus

_READING: ContextVar[tuple[Call, ...]] = ContextVar("rag_eval_integrations_reading", default=())

Done = Callable[[Call, CaptureStatus, str | None], None]


def reading() -> tuple[Call, ...]:
    """The calls whose streams are being read in this context; one a handler."""
    return _READING.get()


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
        if isinstance(token, str):
            self._tokens.append(token)

    def end(self, error: BaseException | None) -> None:
        text = "".join(self._tokens)
        if error is None:
            self._done(self._call, "ok", text)
        elif isinstance(error, Exception):
            self._done(self._call, "error", None)
        else:
            self._done(self._call, "aborted", text or None)


def tee(
    tokens: Generator[object, None, object], call: Call, done: Done
) -> Generator[object, None, object]:
    """Pass a stream on token by token; `done` is called once, when it ends or is closed."""
    copy = _Copy(call, done)
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
        close = getattr(tokens, "close", None)
        if callable(close):
            close()
        copy.end(error)
        raise


async def atee(
    tokens: AsyncGenerator[object, None], call: Call, done: Done
) -> AsyncGenerator[object, None]:
    """Do what `tee` does, for an asynchronous stream."""
    copy = _Copy(call, done)
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
        close = getattr(tokens, "aclose", None)
        if callable(close):
            await close()
        copy.end(error)
        raise
