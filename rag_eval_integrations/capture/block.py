"""`capture_call`: a block, a function or a stream of the app becomes a call."""

from __future__ import annotations

import inspect
import logging
import sys
import time
import weakref
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
)
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.capture._delivery import CountedDelivery, Target
from rag_eval_integrations.capture.current import CURRENT, CallInProgress
from rag_eval_integrations.capture.record import as_text, made_record
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import CaptureStatus

# --- From a function's arguments and return value to question, answer and documents


def is_kind(kind: Callable[[object], bool], function: Any) -> bool:
    """Whether a function, or an object that can be called, is of a kind of `inspect`."""
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004 -- the method


def first_step(items: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Start an async generator unknown to the loop, which is told of the one around it.

    A loop that shuts down closes all that it knows of at once; the second to close the inner one
    fails with "already running", and the loop logs an error that the app does not have by itself.
    """
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return items.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def question_reader(
    question: object, function: Callable[..., object]
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Find the argument that holds the question, once, when the function is decorated."""
    if callable(question):
        ask: Callable[..., object] = question
        return lambda args, kwargs: ask(*args, **kwargs)
    parameters = list(inspect.signature(function).parameters.values())
    names = [parameter.name for parameter in parameters]
    takes_any = bool(parameters) and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD
    if question is None:
        own = 1 if names[:1] in (["self"], ["cls"]) else 0
        if own < len(names) - takes_any:
            question = names[own]
    if not isinstance(question, str) or (question not in names and not takes_any):
        why = f"name the parameter of {function!r} that holds the question, or pass a function"
        raise ConfigurationError("question", question, why)
    if question not in names:
        return lambda args, kwargs: kwargs.get(question)
    at = names.index(question)
    default = parameters[at].default
    if default is inspect.Parameter.empty:
        default = None  # the function itself will complain

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[at] if at < len(args) else kwargs.get(question, default)

    return read


def answer_in(result: object) -> object:
    """Find the answer in what a RAG function returned; raises TypeError when it is not clear."""
    if result is None or isinstance(result, str):
        return result
    if isinstance(result, tuple) and len(result) == 2:
        return result[0]
    if isinstance(result, Mapping):
        for key in ("answer", "response"):
            if key in result:
                return result[key]
    raise TypeError(f"no answer can be told from a {type(result).__name__}; pass `response`")


def documents_in(result: object) -> object:
    """Find the documents in what a RAG function returned; None when it returned none."""
    if isinstance(result, tuple) and len(result) == 2:
        return result[1]
    return result.get("documents") if isinstance(result, Mapping) else None


_LOGGER = logging.getLogger("rag_eval_integrations.capture")

P = ParamSpec("P")
T = TypeVar("T")


_Begin = Callable[[tuple[Any, ...], dict[str, Any]], CallInProgress]


class capture_call:  # in lower case like contextlib's: it is read as a verb
    """Captures a block (`with`, `async with`) or a function (as a decorator) as a RAG call.

    As a decorator it takes the question from the function's first argument (after `self`) and
    the answer from what it returns: a string, a tuple `(answer, documents)`, or a dict with
    `answer` (or `response`) and `documents`; for anything else pass `response` and `documents`.
    What the function itself sets on `current_call()` goes before all of it. Of a generator
    function, or a generator that is returned, every item is passed on as it is, and the texts
    joined are the response.

    An exception gives status `error` without a response and goes on unchanged; a cancellation or a
    stream closed early gives `aborted` with what was there so far. A call inside of a call is a
    call of its own: both are delivered, the inner one first, and neither takes documents from
    the other. Calls of a judge (`suppressed()`) are not captured. One object may be used any number
    of times, also at once.
    """

    def __init__(
        self,
        target: Target,
        question: str | Callable[..., object] | None = None,
        *,
        response: Callable[[Any], object] | None = None,
        documents: Callable[[Any], object] | None = None,
        app: str | None = None,
        metadata: Mapping[str, object] | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        """Prepare the capture; nothing is recorded yet.

        Args:
            target: Takes the `RagCall`; a plain callable that should only hand it on.
            question: Of a block, the question. Of a function, the name of the parameter that holds
                it, or a function of the same arguments that returns it.
            response: Decorator: takes the text of the answer from the return value; of a
                stream, from each item (None for an item without text).
            documents: Decorator: takes the documents from the return value; of a stream, from
                each item, where the last that are not None are kept.
            app: Name of the app.
            metadata: Kept with every call.
            tags: Kept with every call.

        Raises:
            ConfigurationError: `target`, `response` or `documents` is nothing that can be called.
        """
        self._delivery = CountedDelivery(target, _LOGGER)
        for name, extract in (("response", response), ("documents", documents)):
            if extract is not None and not callable(extract):
                why = "should be a function of the return value; in a block, set it on the call"
                raise ConfigurationError(name, extract, why)
        self._question = question
        self._response = response
        self._documents = documents
        self._app = app
        self._metadata = metadata
        self._tags = tags
        self._blocks: list[CallInProgress] = []

    # --- as a context manager

    def __enter__(self) -> CallInProgress:
        call = self._begin(self._question, self._app)
        self._blocks.append(call)
        call._enter()
        return call

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The one that this context is in; else, when it was entered in another, the last one.
        call = CURRENT.get()
        while call is not None and call not in self._blocks:
            call = call._outer
        call = call or self._blocks[-1]
        self._blocks.remove(call)
        self._end(call, error)

    async def __aenter__(self) -> CallInProgress:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    # --- as a decorator

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Wrap a function; the wrapper is of the same kind and signature.

        Raises:
            ConfigurationError: no function, or its question cannot be told from its parameters.
        """
        if isinstance(function, staticmethod | classmethod) or not callable(function):
            why = "decorate a function, below @staticmethod: @capture_call(target)"
            raise ConfigurationError("function", function, why)
        question = question_reader(self._question, function)
        app = self._app or getattr(function, "__name__", None)

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallInProgress:
            call = self._begin("", app)
            try:
                call.question = question(args, kwargs)
            except Exception as error:  # noqa: BLE001 -- the app's call goes on
                self._delivery.failure("capture (question)", error)
            return call

        # What the wrapper is, web frameworks tell by inspection: each kind is wrapped as itself.
        if is_kind(inspect.isgeneratorfunction, function):
            wrapper: Any = self._stream(cast(Any, function), begin)
        elif is_kind(inspect.isasyncgenfunction, function):
            wrapper = self._async_stream(cast(Any, function), begin)
        elif is_kind(inspect.iscoroutinefunction, function):
            wrapper = self._coroutine(cast(Any, function), begin)
        else:
            wrapper = self._plain(function, begin)
        return cast("Callable[P, T]", wraps(function)(wrapper))

    def _plain(self, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
        def captured(*args: Any, **kwargs: Any) -> Any:
            call = begin(args, kwargs)
            call._enter()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._end(call, error)
                raise
            return self._returned(call, result)

        return captured

    def _coroutine(self, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
        async def captured(*args: Any, **kwargs: Any) -> Any:
            call = begin(args, kwargs)
            call._enter()
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                self._end(call, error)
                raise
            return self._returned(call, result)

        return captured

    def _returned(self, call: CallInProgress, result: Any) -> Any:
        """Take what was returned; of a stream the call goes on, and a copy of it is returned."""
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            call._leave()
            tee: Any = self._stream if inspect.isgenerator(result) else self._async_stream
            stream = tee(lambda: result, lambda args, kwargs: call)()
            # A generator that is dropped before its first item runs no code of its own.
            weakref.finalize(stream, self._end, call, GeneratorExit()).atexit = False
            return stream
        if not call._ended:
            try:
                if call.response is None:
                    call.response = cast("str | None", (self._response or answer_in)(result))
            except Exception as error:  # noqa: BLE001 -- the app's call goes on
                self._delivery.failure("capture (response)", error)
            try:
                if call.documents is None:
                    found = (self._documents or documents_in)(result)
                    call.documents = cast("Iterable[object] | None", found)
            except Exception as error:  # noqa: BLE001 -- the app's call goes on
                self._delivery.failure("capture (documents)", error)
        self._end(call, None)
        return result

    # --- streams: the current call is set only while an item is made, never while it is read

    def _stream(
        self, function: Callable[..., Generator[Any, Any, Any]], begin: _Begin
    ) -> Callable[..., Generator[Any, Any, Any]]:
        def captured(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            call = begin(args, kwargs)
            sent: Any = None
            thrown: BaseException | None = None
            try:
                items = function(*args, **kwargs)
                while True:
                    call._enter()
                    try:
                        item = items.send(sent) if thrown is None else items.throw(thrown)
                    except StopIteration as stop:
                        result = stop.value
                        break
                    finally:
                        call._leave()
                    self._keep(call, item)
                    sent, thrown = None, None
                    try:
                        sent = yield item
                    except BaseException as error:  # noqa: BLE001 -- the app's generator decides
                        thrown = error
            except BaseException as error:
                self._end(call, error)
                raise
            # A generator may take a close as its normal end; its stream is cut short all the same.
            self._end(call, thrown if isinstance(thrown, GeneratorExit) else None)
            return result

        return captured

    def _async_stream(
        self, function: Callable[..., AsyncGenerator[Any, Any]], begin: _Begin
    ) -> Callable[..., AsyncGenerator[Any, Any]]:
        async def captured(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            call = begin(args, kwargs)
            try:
                items = function(*args, **kwargs)
                step = first_step(items)
                while True:
                    call._enter()
                    try:
                        item = await step
                    except StopAsyncIteration:
                        break
                    finally:
                        call._leave()
                    self._keep(call, item)
                    try:
                        step = items.asend((yield item))
                    except GeneratorExit:
                        call._enter()
                        await items.aclose()
                        raise
                    except BaseException as error:  # noqa: BLE001 -- the app's generator decides
                        step = items.athrow(error)
            except BaseException as error:
                self._end(call, error)
                raise
            self._end(call, None)

        return captured

    def _keep(self, call: CallInProgress, item: Any) -> None:
        if call._ended:
            return
        if call._items is None:
            call._items = []
        try:
            text = item if self._response is None else self._response(item)
            if text is not None:
                call._items.append(as_text(text))
            if self._documents is not None and (found := self._documents(item)) is not None:
                call.documents = cast("Iterable[object]", found)
        except Exception as error:  # noqa: BLE001 -- the app's stream goes on
            self._delivery.failure("capture (stream)", error)

    # --- both ends of every call

    def _begin(self, question: object, app: str | None) -> CallInProgress:
        call = CallInProgress(question, app, self._metadata, self._tags)
        call._ended = suppressed()
        return call

    def _end(self, call: CallInProgress, error: BaseException | None) -> None:
        """Deliver the call, once; nothing that fails here reaches the app."""
        call._leave()
        if call._ended:
            return
        call._ended = True
        latency = time.perf_counter() - call._began
        status: CaptureStatus = "ok"
        if error is not None:
            status = "error" if isinstance(error, Exception) else "aborted"
        try:
            if call._items is not None and call.response is None:
                text = "".join(call._items)
                call.response = text if status == "ok" else text or None
            if status == "error":
                call.response = None
            record = made_record(call, status, latency, call._started_at, self._delivery)
        except Exception as failure:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (end)", failure)
        else:
            self._delivery.deliver(record)
