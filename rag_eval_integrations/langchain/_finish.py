"""Stage 1 for LangChain: make the `RagCall` of a call that has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from rag_eval_integrations.capture._calls import Context, json_object, to_call
from rag_eval_integrations.langchain._context import (
    context_given,
    context_of,
    context_out,
    is_grade,
    only_retrieved,
    writers_of,
)
from rag_eval_integrations.langchain._documents import FAILED
from rag_eval_integrations.langchain._tree import ModelRequest, RootRun, Run
from rag_eval_integrations.langchain._values import (
    HUMAN,
    LISTS,
    answer_of,
    answers_in,
    history_of,
    last_text,
    question_in_state,
    question_of,
    starts_stream,
    structured_answer,
    values_of,
)
from rag_eval_integrations.records import CaptureStatus, RagCall, Turn
from rag_eval_integrations.records.call import EndedCall


def finish(
    call: RootRun,
    root: Run,
    outputs: object,
    inputs: object,
    error: BaseException | None,
    failed: Callable[[Exception], object],
) -> EndedCall | None:
    """Read what the record of a call that has ended is made of.

    What the user's hooks return goes before what was seen. Runs that failed, and were replaced, do
    not count.

    Args:
        call: the call.
        root: its root run.
        outputs: the root's outputs; None when it failed.
        inputs: the root's inputs, if its end event carries them.
        error: the exception with which the root ended, if any.
        failed: called with the exception if the record cannot be made.

    Returns:
        What the record is made of; None when it was not a RAG call.
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
    if call.given and not (call.retrievals or hooked) and is_grade(outputs, call.question):
        return None
    asked, retrievals = call.asked, call.retrievals
    if call.any_failed:
        asked = [request for request in asked if request.run.counts()]
        retrievals = [retrieval for retrieval in retrievals if retrieval.run.counts()]
    question = call.question
    if not question and (hooks is None or not hooks.has_question):
        # A resumed graph gets no question, but its state may hold it.
        question = question_in_state(outputs) or next(
            (retrieval.query for retrieval in retrievals if retrieval.query), ""
        )
    if not call.history and type(outputs) is dict and "messages" in outputs:
        call.history = _history_in_state(outputs["messages"], question)

    status: CaptureStatus = "ok"
    if error is not None or call.streaming or call.interrupted:
        status = _status(call, outputs, error, asked)
    hooked_response = None if hooks is None or outputs is None else hooks.response(outputs)
    queries = (
        None
        if hooked_response is not None and hooked_response[0]
        else {retrieval.query for retrieval in retrievals}
    )
    response, context = _answer_and_context(call, outputs, status, asked, queries, question)
    if hooked is not None:
        context = partial(context_given, call, asked, hooked, question)
    if hooked_response is not None:
        response = hooked_response[0]
    call.read_earlier()
    call.traces.look_at_end(call.run_id)
    metadata = json_object(call.metadata) if call.metadata else {}
    if hooks is not None and hooks.failed:
        metadata[FAILED] = [*hooks.failed]
    tags = tuple(map(str, call.tags)) if call.tags else ()
    call.let_go()

    def record() -> RagCall:
        """Make the record, in the background."""
        return to_call(
            context(),
            framework="langchain",
            run_id=str(call.run_id),
            status=status,
            latency_s=latency,
            tags=tags,
            metadata=metadata,
            retrievers=tuple([retrieval.name for retrieval in retrievals]),
            question=question,
            response=response,
            history=call.history,
            started_at=datetime.fromtimestamp(call.started_at, UTC),
            app=call.name,
            traces=call.traces.ids(),
        )

    return EndedCall(call.run_id, status, record, call.clear, failed)


def _answer_and_context(
    call: RootRun,
    outputs: object,
    status: CaptureStatus,
    asked: Sequence[ModelRequest],
    queries: set[str] | None,
    question: str,
) -> tuple[str | None, Callable[[], Context]]:
    """Return the answer, if there is one, and what finds the documents that its writers saw.

    A chain that only retrieved has no answer, and its documents are those of its output, read at
    once.

    Args:
        call: the call.
        outputs: the root's outputs.
        status: how the call ended.
        asked: the models that were asked.
        queries: the queries of retrievers; None if the user's hook gives the answer.
        question: the user's question.
    """
    if status == "ok" and asked and isinstance(outputs, str) and outputs == asked[-1].text:
        text = asked[-1].text  # the usual case
        return text, partial(context_of, call, asked, asked[-1:], known=True, question=question)
    inquiries = {question, *(queries or ())}
    outputs = _answer_as_users(outputs, asked, inquiries) or outputs
    if (
        status == "ok"
        and queries is not None
        and (isinstance(outputs, str) or answer_of(outputs) is None)
        and only_retrieved(call, outputs, asked, inquiries)
    ):
        out = context_out(call, outputs)  # now: the app may change its outputs
        return None, lambda: out
    response, writers, known = _response(status, outputs, asked, queries or set())
    return response, partial(context_of, call, asked, writers, known=known, question=question)


def _documents_passed(call: RootRun) -> bool:
    """Return whether documents passed: a list, or single ones if there is a question.

    Single documents without a question are being indexed.
    """
    return any(call.question or not sighting.alone for sighting in call.sightings)


def _is_bare(root: Run, call: RootRun) -> bool:
    """Return whether the root is a bare retriever, or a tool that only retrieves."""
    return root.kind == "retriever" or (root.kind == "tool" and not call.asked)


def _history_in_state(messages: object, question: str) -> tuple[Turn, ...]:
    """Find the earlier turns in a graph's final state; with a checkpointer only that has them."""
    if isinstance(messages, LISTS) and question:
        for earlier in (messages, messages[:-1]):  # the last one may be the answer, see below
            if question_of(earlier) == question:
                return history_of(earlier)
    return ()


def _answer_as_users(
    outputs: object, asked: Sequence[ModelRequest], inquiries: set[str]
) -> str | None:
    """Return what a model wrote last if it is the last message, though as the user's.

    LangGraph makes a user's message of a node's `str`.
    """
    messages = outputs.get("messages") if type(outputs) is dict else None
    text = last_text(messages[-1:], HUMAN) if isinstance(messages, LISTS) else None
    return text if text and text not in inquiries and writers_of(text, asked)[1] else None


def _status(
    call: RootRun, outputs: object, error: BaseException | None, asked: Sequence[ModelRequest]
) -> CaptureStatus:
    """Return how a call ended: ok, error (an `Exception`), aborted or interrupted.

    Aborted is what another exception ended, and a stream that was closed before its model ended;
    interrupted is a graph that waits for its user.
    """
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
    """Return the answer, the models that wrote it, and whether these are certain.

    No answer after an error; of an aborted call, the text so far. If models wrote several texts
    side by side, none is the answer.
    """
    if status == "error":
        return None, asked[-1:], False
    answer = answer_of(outputs)
    if status == "interrupted":
        return _interrupted_answer(outputs, answer), asked[-1:], False
    if status == "aborted":
        if asked and asked[-1].is_open:
            generated = "".join(asked[-1].tokens) or None
        else:
            generated = _last_written(asked, queries)
        # The outputs of a closed stream's root lack the last chunk that the app got.
        if answer is None or (generated or "").startswith(answer):
            answer = generated
        return answer, asked[-1:], False
    if answer is None:
        texts, several = _written_side_by_side(outputs, asked, queries)
        if several:
            return (texts.pop() if len(texts) == 1 else None), several, True
        answer = structured_answer(outputs, asked[-1].arguments if asked else None)
        answer = answer or _last_written(asked, queries)
    return answer, *writers_of(answer, asked)


def _last_written(asked: Sequence[ModelRequest], queries: set[str]) -> str | None:
    """Return the last text of the models that is not a search query."""
    texts = (request.written() for request in reversed(asked))
    return next((text for text in texts if text and text not in queries), None)


def _written_side_by_side(
    outputs: object, asked: Sequence[ModelRequest], queries: set[str]
) -> tuple[set[str], list[ModelRequest]]:
    """Return the values that models wrote, of outputs that do not say which one is the answer.

    A query that a model wrote for a retriever is not among them. The second item lists the models.
    """
    outputs = answers_in(outputs)
    values = {text.strip(): text for text in values_of(outputs) if text not in queries}
    several = (
        [request for request in asked if (request.written() or "").strip() in values]
        if values
        else []
    )
    return {values[(request.written() or "").strip()] for request in several}, several


def _interrupted_answer(outputs: object, answer: str | None) -> str | None:
    """Return the answer of an interrupted graph, and not that of the turn before."""
    messages = outputs.get("messages") if isinstance(outputs, dict) else None
    if isinstance(messages, LISTS) and messages:
        answer = answer_of(messages[-1:])
    return answer or None
