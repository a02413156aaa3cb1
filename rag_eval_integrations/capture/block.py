"""`capture_call`: capture a block, a function or a stream of the app as a RAG call."""

from __future__ import annotations

import asyncio
import inspect
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
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, ParamSpec, TypeVar, cast

from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.capture._delivery import (
    PROCESS_LOGGER,
    Captures,
    TargetOrEvaluator,
    UnusableError,
    delivery_to,
)
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.capture.record import CURRENT, CallInProgress, as_text, record_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records.call import CaptureStatus

P = ParamSpec("P")
T = TypeVar("T")

# --- Question, answer and documents, read from a function's arguments and return value


def is_kind(kind: Callable[[object], bool], function: Any) -> bool:
    """Return whether a predicate of `inspect` holds for a function or a callable object."""
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004 -- the method


def first_step(items: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Start an async generator without registering it with the event loop.

    The loop knows the generator around this one. On shutdown a loop closes all the generators that
    it knows at the same time; the second attempt to close the inner one would fail with "already
    running", and the loop would log an error that the app alone does not cause.
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
    """Return a function that reads the question from the arguments of a decorated function.

    It returns the parameter's default, or None, where the argument is missing.

    Args:
        question: name of the parameter, a function of the same arguments, or None for the first
            parameter after `self` or `cls`.
        function: the decorated function.

    Raises:
        ConfigurationError: no parameter can be the question.
    """
    if callable(question):
        ask: Callable[..., object] = question
        return lambda args, kwargs: ask(*args, **kwargs)
    parameters = inspect.signature(function).parameters
    names = list(parameters)
    takes_any = bool(names) and parameters[names[-1]].kind is inspect.Parameter.VAR_KEYWORD
    if question is None:
        own = 1 if names[:1] in (["self"], ["cls"]) else 0
        if own < len(names) - takes_any:
            question = names[own]
    if not isinstance(question, str) or (question not in names and not takes_any):
        why = f"name the parameter of {function!r} that holds the question, or pass a function"
        raise ConfigurationError("question", question, why)
    asked = parameters.get(question)
    named = asked is None or asked.kind is asked.KEYWORD_ONLY
    position = sys.maxsize if named else names.index(question)
    # Without its argument, the call of the function itself will raise.
    default = None if asked is None or asked.default is asked.empty else asked.default

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the argument that holds the question."""
        return args[position] if position < len(args) else kwargs.get(question, default)

    return read


def answer_in(result: object) -> object:
    """Find the answer in the return value of a RAG function.

    A text or None is the answer itself; else it is the first of a pair, or under `answer` or
    `response`.

    Raises:
        UnusableError: the return value does not say which part is the answer.
    """
    if result is None or isinstance(result, str):
        return result
    if isinstance(result, tuple) and len(result) == 2:
        return result[0]
    if isinstance(result, Mapping):
        for key in ("answer", "response"):
            if key in result:
                return result[key]
    raise UnusableError(f"cannot find the answer in a {type(result).__name__}; pass `response`")


def documents_in(result: object) -> object:
    """Find the documents in the return value of a RAG function; None when it has none."""
    if isinstance(result, tuple) and len(result) == 2:
        return result[1]
    return result.get("documents") if isinstance(result, Mapping) else None


# --- The block, or the decorated function


_Begin = Callable[[tuple[Any, ...], dict[str, Any]], CallInProgress]


class capture_call(Captures):  # in lower case, as in contextlib: it is read as a verb
    """Captures a block (`with`, `async with`) or a function (as a decorator) as a RAG call.

    As a decorator it takes the question from the function's first argument (after `self`) and
    the answer from the return value: a string, a tuple `(answer, documents)`, or a dict with
    `answer` (or `response`) and `documents`; for anything else pass `response` and `documents`.
    Fields that the function sets on `current_call()` take precedence. If the function is a
    generator, or returns one, every item is passed on unchanged, and the joined texts are the
    response. If a plain function returns a coroutine, a task or a future, the call ends with that.

    An exception gives the status `error` without a response, and is raised unchanged. A
    cancellation, or a stream that is closed early, gives `aborted` with the text so far. A call
    inside a call is a separate call: both are delivered, the inner one first, and neither takes
    documents from the other. Calls that a judge makes are not captured. One object may be used any
    number of times, and concurrently; but where a block is left in another context than it was
    entered in (by hand, in two threads or tasks), use an object per block, since which of the open
    blocks is meant cannot be told there.
    """

    def __init__(
        self,
        target: TargetOrEvaluator,
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
            target: takes the `RagCall`: a plain callable that should only pass it on, a
                `BackgroundEvaluator`, or a `RagEvaluator` or its judge's name, which is then run in
                the background: see `flush` and `evaluations` of the `capture_call` object.
            question: for a block, the question; for a function, the name of the parameter that
                holds it, or a function of the same arguments that returns it.
            response: for a function, reads the text of the answer from the return value; for a
                stream, from each item (None for an item without text).
            documents: for a function, reads the documents from the return value; for a stream, from
                each item: the last documents that are not None are kept.
            app: name of the app; by default the name of the function.
            metadata: stored with every call as `capture.metadata`.
            tags: stored with every call as `capture.tags`.

        Raises:
            ConfigurationError: `target`, `response` or `documents` cannot be called, or `target`
                is async.
        """
        self._delivery = delivery_to(target, PROCESS_LOGGER)
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

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        # The call of this context; else the last one, as documented.
        call = CURRENT.get()
        while call is not None and call not in self._blocks:
            call = call._outer
        call = call or self._blocks[-1]
        self._blocks.remove(call)
        self._end(call, error)

    async def __aenter__(self) -> CallInProgress:
        return self.__enter__()

    async def __aexit__(self, *exception: Any) -> None:
        self.__exit__(*exception)

    # --- as a decorator

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Wrap a function; the wrapper has the same kind and signature.

        Args:
            function: a function, coroutine function, generator function or async generator
                function.

        Raises:
            ConfigurationError: `function` is not a function, or none of its parameters can be the
                question.
        """
        if isinstance(function, staticmethod | classmethod) or not callable(function):
            why = "decorate a function: put @capture_call(target) below @staticmethod"
            raise ConfigurationError("function", function, why)
        question = question_reader(self._question, function)
        app = self._app or getattr(function, "__name__", None)

        def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallInProgress:
            """Begin the capture of a call with the question in its arguments."""
            call = self._begin("", app)
            try:
                call.question = question(args, kwargs)
            except Exception as error:  # noqa: BLE001 -- the app's call goes on
                self._delivery.failure("capture (question)", error, hook=True)
            return call

        # Web frameworks inspect the kind of the function, so the wrapper has to be of the same.
        if is_kind(inspect.isgeneratorfunction, function):
            wrapper: Any = self._wrap_stream(cast(Any, function), begin)
        elif is_kind(inspect.isasyncgenfunction, function):
            wrapper = self._wrap_async_stream(cast(Any, function), begin)
        elif is_kind(inspect.iscoroutinefunction, function):
            wrapper = self._wrap_coroutine(cast(Any, function), begin)
        else:
            wrapper = self._wrap_function(function, begin)
        return cast("Callable[P, T]", wraps(function)(wrapper))

    def _wrap_function(self, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
        """Wrap a plain function, so that each call of it is captured."""

        def captured(*args: Any, **kwargs: Any) -> Any:
            call = begin(args, kwargs)
            call._enter()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._end(call, error)
                raise
            return self._end_with_result(call, result)

        return captured

    def _wrap_coroutine(self, function: Callable[..., Any], begin: _Begin) -> Callable[..., Any]:
        """Wrap a coroutine function, so that each call of it is captured."""

        async def captured(*args: Any, **kwargs: Any) -> Any:
            call = begin(args, kwargs)
            call._enter()
            try:
                result = await function(*args, **kwargs)
            except BaseException as error:
                self._end(call, error)
                raise
            return self._end_with_result(call, result)

        return captured

    def _end_with_result(self, call: CallInProgress, result: Any) -> Any:
        """End the call with the function's result, or once a pending result has arrived.

        A generator or coroutine ends the call once it was run or dropped, a future once it is done.
        What the app has set on the call stays; failures of the user's readers are counted.
        """
        wrap: Any = {
            GeneratorType: self._wrap_stream,
            AsyncGeneratorType: self._wrap_async_stream,
            CoroutineType: self._wrap_coroutine,
        }.get(type(result))
        if wrap is not None:
            call._leave()
            later = wrap(lambda: result, lambda args, kwargs: call)()
            # One that is dropped before its first step never runs its own code.
            weakref.finalize(later, self._end, call, GeneratorExit()).atexit = False
            return later
        if asyncio.isfuture(result):
            call._leave()
            result.add_done_callback(lambda done: self._end_with_future(call, done))
            return result
        if not call._ended:
            readers = {"response": self._response or answer_in}
            readers["documents"] = self._documents or documents_in
            for field, reader in readers.items():
                try:
                    if getattr(call, field) is None:
                        setattr(call, field, reader(result))
                except Exception as error:  # noqa: BLE001 -- the app's call goes on
                    self._delivery.failure(f"capture ({field})", error, hook=True)
        self._end(call, None)
        return result

    def _end_with_future(self, call: CallInProgress, future: Any) -> None:
        """End the call with the result or the error of a future that is done."""
        # `exception()` would mark it as seen, and the app's loop would not log it.
        error = asyncio.CancelledError() if future.cancelled() else future._exception
        if error is None:
            self._end_with_result(call, future.result())
        else:
            self._end(call, error)

    # --- streams: the call is current only while an item is produced, not while the app has it

    def _wrap_stream(
        self, function: Callable[..., Generator[Any, Any, Any]], begin: _Begin
    ) -> Callable[..., Generator[Any, Any, Any]]:
        """Wrap a generator function: each item is kept, and the call ends with the stream.

        A stream that the app closes is `aborted`, even if the generator ends normally then.
        """

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
            # A generator may end normally when it is closed; its stream is cut short nevertheless.
            self._end(call, thrown if isinstance(thrown, GeneratorExit) else None)
            return result

        return captured

    def _wrap_async_stream(
        self, function: Callable[..., AsyncGenerator[Any, Any]], begin: _Begin
    ) -> Callable[..., AsyncGenerator[Any, Any]]:
        """Wrap an async generator function, as `_wrap_stream` wraps a generator function."""

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
        """Keep the text and the documents of an item of a stream."""
        if call._ended:
            return
        call._items = call._items or []
        try:
            text = item if self._response is None else self._response(item)
            if text is not None:
                call._items.append(as_text(text))
            if self._documents is not None and (documents := self._documents(item)) is not None:
                call.documents = cast("Iterable[object]", documents)
        except Exception as error:  # noqa: BLE001 -- the app's stream goes on
            self._delivery.failure("capture (stream)", error, hook=True)

    # --- start and end of every call

    def _begin(self, question: object, app: str | None) -> CallInProgress:
        """Start a call; where capture is suppressed it counts as ended at once."""
        call = CallInProgress(question, app, self._metadata, self._tags)
        call._ended = suppressed()
        call._traces = None if call._ended else CallTraces(self._delivery)
        return call

    def _end(self, call: CallInProgress, error: BaseException | None) -> None:
        """Deliver the call, once; failures never reach the app."""
        call._leave()
        if call._ended:
            return
        call._ended = True
        latency = time.perf_counter() - call._began
        status: CaptureStatus = "ok"
        if error is not None:
            status = "error" if isinstance(error, Exception) else "aborted"
        try:
            if call._traces is not None:
                call._traces.look_at_end()
            if call._items is not None and call.response is None:
                text = "".join(call._items)
                call.response = text if status == "ok" else text or None
            if status == "error":
                call.response = None
            record = record_of(call, status, latency, call._started_at, self._delivery)
        except Exception as failure:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (end)", failure)
        else:
            self._delivery.deliver(record)
