"""Read the text and the sources of a LlamaIndex response, streaming or not, for an evaluator.

A stream that has not been read yet is read to its end and put back: the app can iterate over the
same tokens afterwards. A stream that the app has begun to read is left alone, since the rest of it
is not the answer.
"""

from __future__ import annotations

import asyncio
import dis
import inspect
import sys
import time
from collections.abc import AsyncIterator, Iterator
from types import AsyncGeneratorType
from typing import Any, Literal, NamedTuple, cast

from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from rag_eval_integrations.capture._calls import finite
from rag_eval_integrations.llama_index._stream import is_async_stream
from rag_eval_integrations.llama_index._values import answer_of, document_snapshot, nodes_of
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.records import Document

_LONGEST_READ = 120.0
"""Seconds that a sync evaluation waits for a stream produced by another thread or loop."""

_POLL = 0.01  # seconds between two checks of a stream that a chat engine writes
_POLLS = 12_000

_reading = SingleFlight[str](0)
"""Streams that are being read, by `id`: several evaluators of one response read it once."""


class UnreadableError(Exception):
    """The text of a response cannot be read without taking it from the app."""


class Answer(NamedTuple):
    """The text and the sources of a response, as an evaluator gets them."""

    text: str | None
    documents: tuple[Document, ...]


# --- Any response -----------------------------------------------------------------------------


def answer_from(response: object, mode: MetadataMode) -> Answer:
    """Read a response; the calling thread waits for a stream.

    What the app itself is reading is not taken from it: the text is then None, or an error.

    Args:
        response: the response of a query engine, a chat engine or an agent.
        mode: form in which source nodes become texts.

    Raises:
        UnreadableError: the text cannot be read without taking it from the app.
        TimeoutError: an async stream, or one that a chat engine writes, did not end within two
            minutes; a sync stream of a query engine is read however long it takes.
        Exception: the stream raised it.
    """
    name = _unread_stream(response)
    if name is None:
        if _is_being_written(response):
            _wait(cast("StreamingAgentChatResponse", response))
        text = _text_at_hand(response)
    elif is_async_stream(response, name):
        text = asyncio_run(asyncio.wait_for(_aread(response, name), _LONGEST_READ))
    else:
        text = _read(response, name)
    return Answer(text, sources_of(response, mode))


async def aanswer_from(response: object, mode: MetadataMode) -> Answer:
    """Read a response; other tasks run while the stream is produced.

    Args:
        response: the response of a query engine, a chat engine or an agent.
        mode: form in which source nodes become texts.

    Raises:
        UnreadableError: the text cannot be read without taking it from the app.
        TimeoutError: a chat engine did not write its stream within two minutes.
        Exception: the stream raised it.
    """

    async def read() -> str:
        """Read the stream, a sync one in a thread."""
        assert name is not None
        if is_async_stream(response, name):
            return await _aread(response, name)
        return await asyncio.to_thread(_read, response, name)

    name = _unread_stream(response)
    if name is None:
        if _is_being_written(response):
            await _await_writing(cast("StreamingAgentChatResponse", response))
        text = _text_at_hand(response)
    else:
        text = await _reading.get(id(response), read)
    return Answer(text, sources_of(response, mode))


def _unread_stream(response: object) -> str | None:
    """Return the field with the response's stream; None if the text exists or is being written.

    A stream that the app has read in part counts as unread: the attempt to read it raises an error
    that says so.
    """
    if isinstance(response, StreamingResponse):
        return "response_gen" if response.response_txt is None else None
    if isinstance(response, AsyncStreamingResponse):
        # It collects its text while it is read.
        ended = _state_of(response.response_gen) == "ended"
        return None if response.response_txt is not None and ended else "response_gen"
    if isinstance(response, StreamingAgentChatResponse) and not response.is_writing_to_memory:
        # The context engine of LlamaIndex 0.14.8; the text is set when the app has read it all.
        name = "achat_stream" if response.chat_stream is None else "chat_stream"
        return None if response.response and _state_of(getattr(response, name)) == "ended" else name
    return None


def _text_at_hand(response: object) -> str | None:
    """Return the text of a response whose stream need not be read; None without one.

    A query engine's stream keeps its text. Nothing is waited for: the caller did.

    Raises:
        TimeoutError: a chat engine is still writing its stream, after the caller's wait.
        Exception: a chat engine's writing raised it.
    """
    if isinstance(response, StreamingResponse | AsyncStreamingResponse):
        return response.response_txt
    if isinstance(response, StreamingAgentChatResponse):
        if response.exception is not None:
            raise response.exception
        if _is_being_written(response):
            longest = _POLLS * _POLL
            raise TimeoutError(f"the chat engine did not end its stream within {longest:g} s")
    return answer_of(response)


def sources_of(response: object, mode: MetadataMode) -> tuple[Document, ...]:
    """Copy a response's source nodes, with ids, metadata and scores.

    An agent's response has none: its documents are the source nodes of its tools' outputs.
    """
    nodes = nodes_of(response)
    if not nodes:  # an agent's output has the responses of its query engines in its tool calls
        outputs = (
            getattr(getattr(call, "tool_output", None), "raw_output", None)
            for call in getattr(response, "tool_calls", None) or ()
        )
        nodes = [scored for output in outputs for scored in nodes_of(output)]
    return tuple([_document(node, score, mode) for node, score in nodes])


def document_of(item: object, mode: MetadataMode) -> Document | str:
    """Make a document from a user's context: a string, or a node with its metadata."""
    if isinstance(item, NodeWithScore):
        return _document(item.node, item.score, mode)
    if isinstance(item, BaseNode):
        return _document(item, None, mode)
    return cast("str", item)  # the record refuses anything but a string


def document_from(node: BaseNode | NodeWithScore) -> Document:
    """Make a document from a node, with the text that models are shown."""
    return cast("Document", document_of(node, MetadataMode.LLM))


def _document(node: Any, score: object, mode: MetadataMode) -> Document:
    """Make a document of a node; metadata that stand before its text become the header."""
    return document_snapshot(node, finite(score), mode).document()


# --- Streams of query engines -------------------------------------------------------------------

_State = Literal["fresh", "begun", "ended"]


def _read(response: object, name: str) -> str:
    """Read a stream, and leave a copy of it to the app."""
    source = getattr(response, name)
    _refuse_used(_state_of(source))
    tokens: list[object] = []
    failure: Exception | None = RuntimeError("the reading of this stream was interrupted")
    try:
        tokens.extend(source)  # keeps what came before an error
        failure = None
    except Exception as error:
        failure = error
        raise
    finally:
        setattr(response, name, _replay(tokens, failure))
    return _joined(tokens)


async def _aread(response: object, name: str) -> str:
    """Read an async stream, and leave a copy of it to the app."""
    source = getattr(response, name)
    begun = getattr(response, "response_txt", None) is not None
    _refuse_used("begun" if begun else _state_of(source))
    tokens: list[object] = []
    failure: Exception | None = RuntimeError("the reading of this stream was interrupted")
    try:
        async for token in source:
            tokens.append(token)  # noqa: PERF401 -- keeps what came before an error
        failure = None
    except Exception as error:
        failure = error
        raise
    finally:
        setattr(response, name, _areplay(tokens, failure))
    return _joined(tokens)


def _joined(tokens: list[object]) -> str:
    """Join the texts of a stream's tokens."""
    # The stream of a chat engine yields responses, each of which holds a piece of text.
    pieces = (
        token if isinstance(token, str) else getattr(token, "delta", None) for token in tokens
    )
    return "".join([piece or "" for piece in pieces])


def _replay(tokens: list[object], failure: Exception | None) -> Any:
    """Yield the tokens of a stream again, and raise its failure again."""
    yield from tokens
    if failure is not None:
        raise failure


async def _areplay(tokens: list[object], failure: Exception | None) -> Any:
    """Yield the tokens of a stream again, and raise its failure again."""
    for token in tokens:
        yield token
    if failure is not None:
        raise failure


def _refuse_used(state: _State) -> None:
    """Refuse a stream that the app has begun to read."""
    if state == "fresh":
        return
    how = "has begun to read" if state == "begun" else "has read"
    raise UnreadableError(
        f"the app {how} the stream, so its text is not available; evaluate the text instead: "
        "evaluate(query, response=text, contexts=…)"
    )


def _state_of(stream: Iterator[str] | AsyncIterator[str] | None) -> _State:
    """Return how far a stream has been read; anything but a generator counts as not begun."""
    if stream is None:
        return "ended"
    if inspect.isgenerator(stream):
        state = inspect.getgeneratorstate(stream)
        if state == inspect.GEN_CLOSED:
            return "ended"
        return "fresh" if state == inspect.GEN_CREATED else "begun"
    if inspect.isasyncgen(stream):
        return _state_of_async(stream)
    return "fresh"


def _state_of_async(stream: AsyncGeneratorType[Any, Any]) -> _State:
    """Return how far an async generator has been read."""
    if stream.ag_frame is None:
        return "ended"
    if sys.version_info >= (3, 12):  # pragma: no cover
        created = inspect.getasyncgenstate(stream) == inspect.AGEN_CREATED
    else:  # before its first step a generator is at the instruction that made it
        opcode = stream.ag_code.co_code[stream.ag_frame.f_lasti]
        created = dis.opname[opcode] == "RETURN_GENERATOR"
    return "fresh" if created else "begun"


# --- Streams of chat engines: written in the background, whether or not somebody reads them -----


def _is_being_written(response: object) -> bool:
    """Return whether a chat engine still writes its stream."""
    return (
        isinstance(response, StreamingAgentChatResponse)
        and response.is_writing_to_memory
        and not response.is_done
        and response.exception is None
    )


def _wait(response: StreamingAgentChatResponse) -> None:
    """Wait until a chat engine has written its stream."""
    if response.chat_stream is None:  # an async stream, whose task may run on this very thread
        raise UnreadableError(
            "the chat engine has not written its stream yet; read it first, or await "
            "aevaluate_response"
        )
    for _ in range(_POLLS):
        if not _is_being_written(response):
            return
        time.sleep(_POLL)  # some releases (0.14.8) do not keep the thread that writes it


async def _await_writing(response: StreamingAgentChatResponse) -> None:
    """Wait until a chat engine has written its stream, in async code."""
    for _ in range(_POLLS):
        if not _is_being_written(response):
            return
        await asyncio.sleep(_POLL)
