"""Stage 1 for LangChain: make the `RagCall` of a call that has ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from rag_eval_integrations.capture._calls import json_object, to_call
from rag_eval_integrations.langchain._context import context_given, context_of, writers_of
from rag_eval_integrations.langchain._hooks import FAILED
from rag_eval_integrations.langchain._tree import Call, ModelRequest, Run
from rag_eval_integrations.langchain._values import (
    LISTS,
    answer_of,
    history_of,
    question_in_state,
    question_of,
    starts_stream,
    structured_answer,
    values_of,
)
from rag_eval_integrations.records import CaptureStatus, RagCall, Turn


def finish(
    call: Call, root: Run, outputs: object, inputs: object, error: BaseException | None
) -> RagCall | None:
    """Make the record of a call that has ended.

    Args:
        call: the call.
        root: its root run.
        outputs: the root's outputs; None when it failed.
        inputs: the root's inputs, if its end event carries them.
        error: the exception with which the root ended, if any.

    Returns:
        The record; None when it was not a RAG call.
    """
    latency = time.monotonic() - call.began
    if inputs is not None and not starts_stream(inputs):
        call.read_inputs(inputs)
    hooks = call.hooks
    hooked = None if hooks is None else hooks.documents(call.inputs, outputs)
    if not (call.retrievals or call.given or hooked or _documents_passed(call)) or (
        root.kind != "chain" and _is_bare(root, call)
    ):
        return None
    asked, retrievals = call.asked, call.retrievals
    if call.any_failed:
        asked = [one for one in asked if one.run.counts()]
        retrievals = [one for one in retrievals if one.run.counts()]
    question = call.question
    if not question and (hooks is None or not hooks.has_question):
        # A resumed graph gets no question, but its state may hold it.
        question = question_in_state(outputs) or (retrievals[0].query if retrievals else "")
    if not call.history and type(outputs) is dict and "messages" in outputs:
        call.history = _history_in_state(outputs["messages"], question)

    status: CaptureStatus = "ok"
    if error is not None or call.streaming or call.interrupted:
        status = _status(call, outputs, error, asked)
    response: str | None
    writers: Sequence[ModelRequest]
    if status == "ok" and asked and isinstance(outputs, str) and outputs == asked[-1].text:
        response, writers, known = asked[-1].text, asked[-1:], True  # the usual case
    else:
        queries = {one.query for one in retrievals}
        response, writers, known = _response(status, outputs, asked, queries)
    if hooks is not None and outputs is not None and (said := hooks.response(outputs)) is not None:
        response = said[0]
    if hooks is None or hooked is None:
        context = context_of(call, asked, writers, known, question)
    else:
        context = context_given(call, asked, hooked, question)
    metadata = json_object(call.metadata) if call.metadata else {}
    if hooks is not None and hooks.failed:
        metadata[FAILED] = [*hooks.failed]
    return to_call(
        context,
        {
            "framework": "langchain",
            "run_id": str(call.run_id),
            "status": status,
            "documents_from": "none",
            "latency_s": latency,
            "tags": tuple(map(str, call.tags)) if call.tags else (),
            "metadata": metadata,
            "retrievers": tuple([one.name for one in retrievals]),
            "not_in_prompt": (),
        },
        question=question,
        response=response,
        history=call.history,
        started_at=datetime.fromtimestamp(call.started_at, UTC),
        app=call.name,
    )


def _documents_passed(call: Call) -> bool:
    """Return whether documents passed: a list, or single ones if there is a question.

    Single documents without a question are being indexed.
    """
    return any(call.question or not one.alone for one in call.sightings)


def _is_bare(root: Run, call: Call) -> bool:
    """Return whether the root is a bare retriever, or a tool that only retrieves."""
    return root.kind == "retriever" or (root.kind == "tool" and not call.asked)


def _history_in_state(messages: object, question: str) -> tuple[Turn, ...]:
    """Find the earlier turns in a graph's final state; with a checkpointer only that has them."""
    if isinstance(messages, LISTS) and question and question_of(messages) == question:
        return history_of(messages)
    return ()


def _status(
    call: Call, outputs: object, error: BaseException | None, asked: Sequence[ModelRequest]
) -> CaptureStatus:
    if error is not None and not any(
        kind.__name__ == "GraphInterrupt" for kind in type(error).__mro__
    ):
        return "error" if isinstance(error, Exception) else "aborted"
    if error is not None or call.interrupted:
        return "interrupted"
    if call.streaming and (outputs is None or (asked and asked[-1].is_open)):
        # A closed sync stream ends its root like a success, without output or with the output so
        # far (measured on 1.7.2), but its model has not ended.
        return "aborted"
    return "ok"


def _response(
    status: CaptureStatus, outputs: object, asked: Sequence[ModelRequest], queries: set[str]
) -> tuple[str | None, Sequence[ModelRequest], bool]:
    """Return the answer, the models that wrote it, and whether these are known for certain."""
    if status == "error":
        return None, asked[-1:], False
    answer = answer_of(outputs)
    if status == "interrupted":
        return _interrupted_answer(outputs, answer), asked[-1:], False
    if status == "aborted":
        if asked and asked[-1].is_open:
            generated = "".join(asked[-1].tokens) or None
        else:
            generated = _last_written(asked)
        # The outputs of a closed stream's root lack the last chunk that the app got.
        if answer is None or (generated or "").startswith(answer):
            answer = generated
        return answer, asked[-1:], False
    if answer is None:
        texts, several = _written_side_by_side(outputs, asked, queries)
        if several:
            return (texts.pop() if len(texts) == 1 else None), several, True
        answer = structured_answer(outputs, asked[-1].arguments if asked else None)
        answer = answer or _last_written(asked)
    return answer, *writers_of(answer, asked)


def _last_written(asked: Sequence[ModelRequest]) -> str | None:
    return next((text for one in reversed(asked) if (text := one.written())), None)


def _written_side_by_side(
    outputs: object, asked: Sequence[ModelRequest], queries: set[str]
) -> tuple[set[str], list[ModelRequest]]:
    """Return the values that models wrote, of outputs that do not say which one is the answer.

    A query that a model wrote for a retriever is not among them. The second item lists the models.
    """
    values = {text.strip(): text for text in values_of(outputs) if text not in queries}
    several = [one for one in asked if (one.written() or "").strip() in values] if values else []
    return {values[(one.written() or "").strip()] for one in several}, several


def _interrupted_answer(outputs: object, answer: str | None) -> str | None:
    """Return the answer of an interrupted graph, and not that of the turn before."""
    messages = outputs.get("messages") if isinstance(outputs, dict) else None
    if isinstance(messages, LISTS) and messages:
        answer = answer_of(messages[-1:])
    return answer or None
