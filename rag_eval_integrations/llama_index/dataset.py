"""Ask a query engine questions, capture its calls and evaluate them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Unpack

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.schema import QueryBundle

from rag_eval_integrations import _loop
from rag_eval_integrations.capture._calls import json_object
from rag_eval_integrations.capture._retrieval import gold_ids
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
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.llama_index._values import answer_of
from rag_eval_integrations.llama_index.handler import ScopedHandler
from rag_eval_integrations.records._json import NAMES
from rag_eval_integrations.traces._values import as_json, id_from


def evaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Iterable[object],
    evaluator: RagEvaluator,
    **options: Unpack[AskingOptions],
) -> Evaluations:
    """Ask a query engine questions and evaluate its answers, from sync code.

    Calls the engine's `query` in threads, never on the library's own loop, to which the engine's
    async clients might not belong. Arguments, result and errors are those of
    `aevaluate_query_engine`.
    """
    check_options(options)
    read = _read(engine, questions)
    with threads_for(options) as in_thread:

        def query(text: str, handler: ScopedHandler) -> Awaitable[object]:
            """Query the engine in a thread."""
            return in_thread(_query, engine, text, handler)

        return _loop.run(evaluate_asked(read, _asking(query, options), evaluator, options))


async def aevaluate_query_engine(
    engine: BaseQueryEngine,
    questions: Iterable[object],
    evaluator: RagEvaluator,
    **options: Unpack[AskingOptions],
) -> Evaluations:
    """Ask a query engine questions by its `aquery`, and evaluate its answers.

    A question is a string; a `QueryBundle`; a dict with `question` and, if known, `reference`, each
    also under another name in common use, `relevant_ids`, `id` and `metadata`; an example of a
    LlamaIndex `LabelledRagDataset`; or a `RagCall`, whose documents and response are replaced by
    those of the engine. Streams are read to their end.

    If the engine fails on a question, its evaluation has no response and no values (unscored,
    `empty_response`); `evaluation.error` holds the exception, with the stage `app`. Such a call is
    not judged, and the run goes on.

    Args:
        engine: the query engine; it does not have to be wrapped or observed.
        questions: the questions; all of them are read before the first one is asked.
        evaluator: evaluates the calls.
        **options: see `AskingOptions`: `max_concurrency`, `timeout`, `out`, `resume`,
            `overwrite`, `progress`.

    Returns:
        `Evaluations`: one per question, in the questions' order; `id`, `reference`,
        `relevant_ids` and `metadata` are the question's. Empty when there are no questions.

    Raises:
        ConfigurationError: a question cannot be read, an option cannot be used, or `out` exists
            or cannot be resumed from.
        OSError: `out` cannot be written.
    """
    check_options(options)

    async def query(text: str, handler: ScopedHandler) -> object:
        """Query the engine under the handler, and read its stream."""
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
    """Query the engine under the handler, and read its stream."""
    with handler.watching():
        response = engine.query(text)
        if isinstance(response, StreamingResponse):
            response.get_response()
    return response


def _asking(
    query: Callable[[str, ScopedHandler], Awaitable[object]], options: AskingOptions
) -> Callable[[Question], Awaitable[Answered]]:
    """Return a function that asks the engine one question and captures the call."""

    async def ask(question: Question) -> Answered:
        """Ask the engine a question, and capture the call."""
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
    """Check the engine, and read the questions."""
    if not isinstance(engine, BaseQueryEngine):
        raise ConfigurationError("engine", engine, "should be a query engine")
    if isinstance(questions, str):
        raise ConfigurationError("questions", questions, "should be a list of questions")
    return [_question(item, f"questions[{number}]") for number, item in enumerate(questions)]


_FIELDS = (*NAMES["question"], *NAMES["reference"], "id", "metadata", "relevant_ids")


def _question(item: object, place: str) -> Question:
    """Read a question: a text, a query bundle, or a row with a `question`."""
    if isinstance(item, str):
        return Question(item)
    if isinstance(item, QueryBundle):
        return Question(item.query_str)
    is_row = isinstance(item, Mapping)  # perhaps of pandas, which has NaN where a value is missing
    fields = as_json(item) if is_row else {n: getattr(item, n, None) for n in _FIELDS}
    texts = (fields.get(name) for name in NAMES["question"])
    text = next((text for text in texts if isinstance(text, str)), None)
    if text is None:
        raise ConfigurationError(place, item, "should be a string or have a `question`")
    references = (fields.get(name) for name in NAMES["reference"])
    reference = next((each for each in references if each is not None), None)
    if reference is not None and not isinstance(reference, str):
        raise ConfigurationError(f"{place}.reference", reference, "should be a string")
    metadata = fields.get("metadata")
    label = fields.get("id")
    return Question(
        text,
        reference,
        label="" if label is None else str(id_from(label)),
        metadata=json_object(metadata) if isinstance(metadata, Mapping) else {},
        relevant_ids=gold_ids(fields.get("relevant_ids"), f"{place}.relevant_ids"),
    )
