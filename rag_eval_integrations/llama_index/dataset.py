"""Ask a query engine questions, capture what it does, evaluate it; nothing leaves the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Unpack

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.schema import QueryBundle

from rag_eval_integrations import _loop
from rag_eval_integrations.capture._calls import json_object
from rag_eval_integrations.dataset._asking import (
    Answered,
    AskingOptions,
    Question,
    captured,
    check_options,
    evaluate_asked,
    threads_for,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.llama_index._values import answer_of
from rag_eval_integrations.llama_index.handler import ScopedHandler
from rag_eval_integrations.records import Evaluation


def evaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Iterable[object],
    evaluator: RagEvaluator,
    **options: Unpack[AskingOptions],
) -> list[Evaluation]:
    """Ask a query engine questions and evaluate its answers; in code that is not async.

    The engine is asked by its `query` in threads, never on a loop of ours, which its async clients
    might not belong to. Otherwise as `aevaluate_query_engine`.
    """
    check_options(options)
    read = _read(engine, questions)
    with threads_for(options) as in_thread:

        def query(text: str, handler: ScopedHandler) -> Awaitable[object]:
            return in_thread(_query, engine, text, handler)

        return _loop.run(evaluate_asked(read, _asking(query, options), evaluator, options))


async def aevaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Iterable[object],
    evaluator: RagEvaluator,
    **options: Unpack[AskingOptions],
) -> list[Evaluation]:
    """Ask a query engine questions and evaluate its answers; the engine is asked by its `aquery`.

    A question is a string; a `QueryBundle`; a dict with `question` (or `query`) and, if known,
    `reference` (or `reference_answer`), `id` and `metadata`; an example of a LlamaIndex
    `LabelledRagDataset`; or a `RagCall`, whose documents and response are then the engine's.
    Streams are read to their end.

    A question on which the engine fails gives a row, too: without response, its scores unscored
    (`empty_response`), the exception in `evaluation.error` with the stage `app`. Nothing is judged
    then, and the run goes on.

    Args:
        engine: what answers; need not be wrapped or observed.
        questions: read whole before the first is asked.
        evaluator: what evaluates.
        **options: see `AskingOptions`: `max_concurrency`, `timeout`, `out`, `resume`, `progress`.

    Returns:
        One evaluation a question, in the questions' order; `id`, `reference` and `metadata` are
        the question's.

    Raises:
        ConfigurationError: a question cannot be read, an option cannot be used, or `out` cannot
            be resumed from.
        OSError: `out` cannot be written.
    """
    check_options(options)

    async def query(text: str, handler: ScopedHandler) -> object:
        with handler.watching():
            response = await engine.aquery(text)
            if isinstance(response, AsyncStreamingResponse):
                async for _ in response.async_response_gen():
                    pass
            elif isinstance(response, StreamingResponse):
                await asyncio.to_thread(response.get_response)
        return response

    return await evaluate_asked(
        _read(engine, questions), _asking(query, options), evaluator, options
    )


# --- Asking -------------------------------------------------------------------------------------


def _query(engine: BaseQueryEngine, text: str, handler: ScopedHandler) -> object:
    with handler.watching():
        response = engine.query(text)
        if isinstance(response, StreamingResponse):
            response.get_response()
    return response


def _asking(
    query: Callable[[str, ScopedHandler], Awaitable[object]], options: AskingOptions
) -> Callable[[Question], Awaitable[Answered]]:
    """Make the asking of one question of an engine's method."""

    async def ask(question: Question) -> Answered:
        return await captured(
            question,
            lambda target: query(question.text, ScopedHandler(target)),
            seconds=options.get("timeout"),
            framework="llama_index",
            answer_of=answer_of,
        )

    return ask


# --- Questions ----------------------------------------------------------------------------------


def _read(engine: object, questions: Iterable[object]) -> list[Question]:
    if not isinstance(engine, BaseQueryEngine):
        raise ConfigurationError("engine", engine, "should be a query engine")
    if isinstance(questions, str):
        raise ConfigurationError("questions", questions, "should be a list of questions")
    return [_question(item, f"questions[{at}]") for at, item in enumerate(questions)]


_NAMES = ("question", "query", "query_str", "reference", "reference_answer", "id", "metadata")


def _question(item: object, place: str) -> Question:
    if isinstance(item, str):
        return Question(item)
    if isinstance(item, QueryBundle):
        return Question(item.query_str)
    fields = item if isinstance(item, Mapping) else {n: getattr(item, n, None) for n in _NAMES}
    text = next((fields[n] for n in _NAMES[:3] if isinstance(fields.get(n), str)), None)
    if text is None:
        raise ConfigurationError(place, item, "should be a string, or have a `question`")
    reference = next((fields[n] for n in _NAMES[3:5] if fields.get(n) is not None), None)
    if reference is not None and not isinstance(reference, str):
        raise ConfigurationError(f"{place}.reference", reference, "should be a string")
    metadata = fields.get("metadata")
    label = fields.get("id")
    return Question(
        text,
        reference,
        label="" if label is None else str(label),
        metadata=json_object(metadata) if isinstance(metadata, Mapping) else {},
    )
