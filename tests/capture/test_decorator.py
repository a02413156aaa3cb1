"""`@capture_call(...)`: functions and streams of every kind, and what users' code sees of it."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings
from collections.abc import AsyncGenerator, Generator, Iterator
from functools import partial
from typing import Any

import pytest

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.capture import capture_call, capture_failures, current_call
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Document

from .conftest import Captured

QUESTION = "How fast is the kettle?"
ANSWER = "It boils in four minutes."
DOCUMENTS = (Document(text="a"),)


def plain(question: str, *, k: int = 3) -> str:
    """Say it."""
    return ANSWER


async def coroutine(question: str) -> str:
    return ANSWER


def stream(question: str) -> Iterator[str]:
    current_call().documents = ["a"]
    yield from ("It ", "boils")


async def async_stream(question: str) -> AsyncGenerator[str, None]:
    current_call().documents = ["a"]
    yield "It "
    yield "boils"


async def read(result: Any) -> Any:
    """Wait for what a call gives, and read it to its end where it is a stream."""
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncGenerator):
        return [token async for token in result]
    return list(result) if isinstance(result, Iterator) else result


class TestReturnValue:
    @pytest.mark.parametrize(
        ("result", "response", "documents"),
        [
            (ANSWER, ANSWER, ()),
            ((ANSWER, ["a"]), ANSWER, DOCUMENTS),
            ({"answer": ANSWER, "documents": ["a"]}, ANSWER, DOCUMENTS),
            ({"response": ANSWER}, ANSWER, ()),
            (None, None, ()),
        ],
    )
    async def test_is_read_and_passed_on(
        self, captured: Captured, result: Any, response: str, documents: Any
    ) -> None:
        """A string, a pair, or a dict; the very object goes to the caller, sync and async."""

        @capture_call(captured)
        def answer(question: str) -> Any:
            return result

        @capture_call(captured)
        async def answer_later(question: str) -> Any:
            return result

        assert answer(QUESTION) is result
        assert await answer_later(question=QUESTION) is result

        one, two = captured.calls
        assert (one.question, one.response, one.documents) == (QUESTION, response, documents)
        assert one.row_key == two.row_key
        assert (one.app, two.app) == ("answer", "answer_later")
        assert capture_failures() == 0

    def test_gives_way_to_what_the_function_set(self, captured: Captured) -> None:
        """`current_call()` inside, also from functions below."""

        def search() -> list[str]:
            current_call().documents = ["set"]
            return ["returned"]

        @capture_call(captured)
        def answer(question: str) -> tuple[str, list[str]]:
            current_call().id = "row-1"
            current_call().response = "set"
            return ANSWER, search()

        assert answer(QUESTION) == (ANSWER, ["returned"])

        assert captured.only.documents == (Document(text="set"),)
        assert (captured.only.response, captured.only.id) == ("set", "row-1")

    def test_of_another_type_is_read_by_functions(self, captured: Captured) -> None:
        """`response=` and `documents=` take them from whatever is returned."""
        read: Any = capture_call(
            captured, response=lambda r: r[0]["text"], documents=lambda r: r[1:]
        )
        read(lambda question: [{"text": ANSWER}, "a", "b"])(QUESTION)

        assert captured.only.response == ANSWER
        assert captured.only.documents == (Document(text="a"), Document(text="b"))

    @pytest.mark.parametrize("result", [7, [ANSWER], {"text": ANSWER}, (ANSWER, [], 3)])
    def test_of_another_type_is_not_guessed(
        self, captured: Captured, log: pytest.LogCaptureFixture, result: object
    ) -> None:
        """The call is delivered without a response; the log says what to pass."""
        assert capture_call(captured)(lambda question: result)(QUESTION) is result
        assert captured.only.response is None
        assert capture_failures() == 1
        assert "pass `response`" in log.text

    def test_is_untouched_by_a_failing_extractor(
        self, captured: Captured, log: pytest.LogCaptureFixture
    ) -> None:
        """Each of the three costs only itself; the log has the type and line of each, and no words."""

        def bad(*args: Any) -> Any:
            raise ValueError(f"cannot read {args}")

        assert capture_call(captured, bad, response=bad, documents=bad)(plain)(QUESTION) == ANSWER
        assert (captured.only.question, captured.only.response) == ("", None)
        assert capture_failures() == 3
        assert log.text.count("failed with ValueError (test_decorator.py, line ") == 3
        assert QUESTION not in log.text
        assert ANSWER not in log.text


class TestQuestion:
    def test_is_found_however_it_is_passed(self, captured: Captured) -> None:
        """The first argument, by place, by name, or by its default; of a method the one after `self`."""

        class App:
            @capture_call(captured)
            def method(self, question: str, k: int = 3) -> str:
                return ANSWER

            @classmethod
            @capture_call(captured)
            def of_class(cls, question: str) -> str:
                return ANSWER

            @staticmethod
            @capture_call(captured)
            def static(question: str = "default") -> str:
                return ANSWER

        App().method("place")
        App().method(k=1, question="name")
        App.of_class("class")
        App.static()

        assert [call.question for call in captured.calls] == ["place", "name", "class", "default"]

    def test_is_found_where_it_is_said_to_be(self, captured: Captured) -> None:
        """A parameter's name, or a function of the arguments; behind `*`, no positional one."""
        second = capture_call(captured, "query")(lambda k, query: ANSWER)
        any_name = capture_call(captured, question="query")(lambda **kwargs: ANSWER)
        whole = capture_call(captured, lambda request: request["q"])(lambda request: ANSWER)
        starred = capture_call(captured)(lambda *args: ANSWER)
        behind = capture_call(captured, "question")(lambda *documents, question="8": ANSWER)

        second(3, "1")
        second(k=3, query="2")
        any_name(query="3")
        whole({"q": "4"})
        starred("5", "x")
        behind("a", "b", question="6")
        behind("a", "b")

        assert [call.question for call in captured.calls] == ["1", "2", "3", "4", "5", "6", "8"]

    def test_must_be_somewhere(self, captured: Captured) -> None:
        """Refused when the function is decorated, not when it is called."""
        wrong = (plain, "query"), (lambda: ANSWER, None), (lambda **kwargs: ANSWER, None)
        for function, question in wrong:
            with pytest.raises(ConfigurationError, match="question"):
                capture_call(captured, question)(function)

    def test_only_functions_are_decorated(self, captured: Captured) -> None:
        """A forgotten target, or the wrong order with @staticmethod, is said at once."""
        forgotten = capture_call(lambda question: ANSWER)  # written: @capture_call
        for wrong in (QUESTION, staticmethod(len)):
            with pytest.raises(ConfigurationError, match="decorate a function"):
                forgotten(wrong)  # type: ignore[arg-type]


class TestTheUsersFunction:
    async def test_raises_its_own_exception(self, captured: Captured) -> None:
        """The same object through one frame of ours; documents are kept, no half answer is."""
        error = KeyError("of the app")

        def fail(question: str) -> str:
            current_call().documents = ["a"]
            current_call().response = "half"
            raise error

        async def fail_later(question: str) -> str:
            return fail(question)

        def failing_stream(question: str) -> Iterator[str]:
            yield "It "
            yield fail(question)

        async def failing_async_stream(question: str) -> AsyncGenerator[str, None]:
            yield "It "
            yield fail(question)

        for function in (fail, fail_later, failing_stream, failing_async_stream):
            error.__traceback__ = None
            with pytest.raises(KeyError) as raised:
                await read(capture_call(captured)(function)(QUESTION))

            assert raised.value is error
            frames = [frame.name for frame in raised.traceback]
            assert [name for name in frames[1:] if name not in ("read", "<listcomp>")] == [
                "captured",
                *dict.fromkeys([function.__name__, "fail"]),
            ]
            assert error.__context__ is None

        assert captured.statuses == ["error"] * 4
        ends = [(call.response, call.documents) for call in captured.calls]
        assert ends == [(None, DOCUMENTS)] * 4

    def test_keeps_its_name_signature_and_kind(self, captured: Captured) -> None:
        """Web frameworks inspect all of them."""
        kinds = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
        for function in (plain, coroutine, stream, async_stream):
            wrapped = capture_call(captured)(function)

            for look in (inspect.getdoc, inspect.signature, lambda each: each.__name__, *kinds):
                assert look(wrapped) == look(function)

    async def test_may_be_any_callable(self, captured: Captured) -> None:
        """A partial, a bound method, an object whose call is async."""

        class App:
            async def __call__(self, question: str) -> str:
                return ANSWER

            def ask(self, k: int, question: str) -> str:
                return ANSWER

        app = App()
        assert capture_call(captured)(partial(app.ask, 3))(QUESTION) == ANSWER
        assert capture_call(captured, "question")(app.ask)(3, QUESTION) == ANSWER
        assert await capture_call(captured)(app)(QUESTION) == ANSWER

        fields = [(call.question, call.response) for call in captured.calls]
        assert fields == [(QUESTION, ANSWER)] * 3

    def test_runs_as_ever_while_suppressed(self, captured: Captured) -> None:
        """A judge's own calls, streams too."""
        with suppress_capture():
            assert capture_call(captured)(plain)(QUESTION) == ANSWER
            assert list(capture_call(captured)(stream)(QUESTION)) == ["It ", "boils"]

        assert captured.calls == []

    def test_calls_inside_of_calls_are_their_own(self, captured: Captured) -> None:
        """A decorated function that calls another one, or itself."""

        @capture_call(captured)
        def answer(question: str) -> str:
            current_call().documents = [question]
            return answer(question[1:]) + question[0] if question else ""

        assert answer("abc") == "cba"

        asked = [(call.question, call.response) for call in captured.calls]
        assert asked == [("", ""), ("c", "c"), ("bc", "cb"), ("abc", "cba")]
        assert all(call.documents[0].text == call.question for call in captured.calls)


def talk(stream: Generator[Any, Any, str]) -> list[object]:
    """What a conversation with a generator gives, event by event; the last is its result."""
    thrown = KeyError("thrown")
    events = [next(stream), stream.send("sent"), stream.throw(thrown), stream.send("again")]
    with pytest.raises(StopIteration) as ended:
        next(stream)
    return [*events, ended.value.value]


def tokens(question: str) -> Generator[Any, Any, str]:
    current_call().documents = ["a"]
    got = yield "It "
    try:
        yield f"{got} "
    except KeyError as error:
        yield str(error)
    yield None
    return "result"


class TestStream:
    def test_is_identical_for_its_reader(self, captured: Captured) -> None:
        """Items, `send`, `throw`, and the returned value are the user's own."""
        wrapped = capture_call(captured)(tokens)

        assert talk(wrapped(QUESTION)) == talk(tokens(QUESTION))

        assert (captured.only.question, captured.how.status) == (QUESTION, "ok")
        assert captured.only.response == "It sent 'thrown'"
        assert captured.only.documents == DOCUMENTS

    async def test_is_identical_when_async(self, captured: Captured) -> None:
        """Also `asend` and `athrow`."""

        async def conversing(question: str) -> AsyncGenerator[str, str]:
            try:
                got = yield "It "
                yield got
            except KeyError:
                await asyncio.sleep(0)
                current_call().documents = ["a"]
                yield "caught"

        async def talk(items: AsyncGenerator[str, str]) -> list[str]:
            said = [await anext(items), await items.asend("sent"), await items.athrow(KeyError())]
            return [*said, await anext(items, "end")]

        captured_talk = await talk(capture_call(captured)(conversing)(QUESTION))
        assert captured_talk == await talk(conversing(QUESTION))
        assert captured.only.response == "It sentcaught"
        assert captured.only.documents == DOCUMENTS
        assert captured.how.status == "ok"

    async def test_closed_early_is_aborted_with_the_partial_text(self, captured: Captured) -> None:
        """By `close`, by `break`, by being dropped; the user's own clean-up runs, inside the call."""
        cleaned: list[bool] = []

        @capture_call(captured)
        def stream(question: str) -> Iterator[str]:
            try:
                yield from ("It ", "boils")
            finally:
                cleaned.append(current_call()._ended)

        @capture_call(captured)
        async def async_stream(question: str) -> AsyncGenerator[str, None]:
            try:
                yield "It "
                yield "boils"
            finally:
                await asyncio.sleep(0)
                cleaned.append(current_call()._ended)

        closed = stream("closed")
        next(closed)
        closed.close()  # type: ignore[attr-defined]
        for _ in stream("dropped"):
            break
        gc.collect()
        items = async_stream("aclosed")
        await anext(items)
        await items.aclose()

        assert cleaned == [False] * 3
        fields = [(call.question, call.response) for call in captured.calls]
        assert fields == [("closed", "It "), ("dropped", "It "), ("aclosed", "It ")]
        assert captured.statuses == ["aborted"] * 3

    def test_left_open_at_the_end_of_the_loop_is_aborted(self, captured: Captured) -> None:
        """The loop closes it once, whatever the user's clean-up awaits, and has no complaint."""
        complaints: list[dict[str, Any]] = []
        open_streams: list[object] = []

        @capture_call(captured)
        async def stream(question: str) -> AsyncGenerator[str, None]:
            try:
                yield "It "
            finally:
                await asyncio.sleep(0.001)
                current_call().id = question

        async def begin() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, complaint: complaints.append(complaint))
            for number in range(5):
                items = stream(f"{number}")
                await anext(items)
                open_streams.append(items)

        asyncio.run(begin())

        assert complaints == []
        assert {call.id for call in captured.calls} == set(map(str, range(5)))
        assert captured.statuses == ["aborted"] * 5

    async def test_may_be_returned_instead(self, captured: Captured) -> None:
        """A function that retrieves first and returns a generator: one call, to the stream's end."""

        @capture_call(captured)
        def answer(question: str) -> Iterator[str]:
            current_call().id = "before"
            return stream(question)

        @capture_call(captured)
        async def answer_later(question: str) -> AsyncGenerator[str, None]:
            current_call().id = "before"
            return async_stream(question)

        for function in (answer, answer_later):
            assert await read(function(QUESTION)) == ["It ", "boils"]

        fields = [(call.id, call.documents, call.response) for call in captured.calls]
        assert fields == [("before", DOCUMENTS, "It boils")] * 2

    def test_of_events_is_read_by_functions(self, captured: Captured) -> None:
        """`response` and `documents` are asked for each item."""

        @capture_call(
            captured, response=lambda e: e.get("delta"), documents=lambda e: e.get("docs")
        )
        def stream(question: str) -> Iterator[dict[str, Any]]:
            yield {"docs": ["a"]}
            yield {"delta": "It "}
            yield {"delta": "boils"}

        assert len(list(stream(QUESTION))) == 3
        assert captured.only.response == "It boils"
        assert captured.only.documents == DOCUMENTS
        assert capture_failures() == 0

    def test_does_not_leak_into_its_reader(self, captured: Captured) -> None:
        """Two streams read in turns keep to themselves, and the reader is in neither call."""

        @capture_call(captured)
        def stream(question: str) -> Iterator[str]:
            for number in range(3):
                current_call().documents = [question]
                yield f"{question}{number}"

        for _ in zip(stream("a"), stream("b"), strict=True):
            current_call().documents = ["of the reader"]

        assert [call.response for call in captured.calls] == ["a0a1a2", "b0b1b2"]
        assert [call.documents[0].text for call in captured.calls] == ["a", "b"]

    def test_of_events_that_nobody_reads_goes_on(self, captured: Captured) -> None:
        """Counted an item, logged once."""

        @capture_call(captured)
        def stream(question: str) -> Iterator[object]:
            yield from (1, "It boils", 2)

        assert list(stream(QUESTION)) == [1, "It boils", 2]
        assert captured.only.response == "It boils"
        assert capture_failures() == 2


class TestAnAwaitable:
    """A plain function that returns one: the call ends with that, and the app notices nothing."""

    @pytest.mark.parametrize("started", [False, True])
    async def test_is_waited_for(self, captured: Captured, started: bool) -> None:
        """Answer, documents and failure are those of the coroutine or of the task."""

        async def work(question: str) -> str:
            await asyncio.sleep(0)
            current_call().documents = ["a"]
            return ANSWER if question == QUESTION else plain(**{"wrong": 1})  # type: ignore[arg-type]

        @capture_call(captured)
        def answer(question: str) -> Any:
            return asyncio.ensure_future(work(question)) if started else work(question)

        assert await answer(QUESTION) == ANSWER
        with pytest.raises(TypeError, match="wrong"):
            await answer("?")

        assert captured.statuses == ["ok", "error"]
        assert [call.response for call in captured.calls] == [ANSWER, None]
        assert [call.documents for call in captured.calls] == [DOCUMENTS, DOCUMENTS]
        assert capture_failures() == 0

    async def test_that_is_cancelled_or_dropped_is_aborted(self, captured: Captured) -> None:
        """A task is the app's own object, which it may cancel."""

        @capture_call(captured)
        def start(question: str) -> asyncio.Task[str]:
            return asyncio.create_task(coroutine(question))

        @capture_call(captured)
        def answer(question: str) -> Any:
            return coroutine(question)

        task = start(QUESTION)
        assert isinstance(task, asyncio.Task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with warnings.catch_warnings(action="ignore"):  # Python's own, of a coroutine not awaited
            answer(QUESTION)
            gc.collect()

        assert captured.statuses == ["aborted", "aborted"]
