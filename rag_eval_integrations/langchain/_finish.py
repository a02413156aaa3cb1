"""Stage 1 for LangChain: make the `RagCall` of a call that has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

from pydantic import JsonValue

from rag_eval_integrations._answer import answer_among, citations_beside, is_no_answer
from rag_eval_integrations.capture._calls import Context, json_object, to_call, without_images
from rag_eval_integrations.langchain._context import (
    context_given,
    context_of,
    context_of_outputs,
    is_grade,
    only_retrieved,
    writers_of,
)
from rag_eval_integrations.langchain._documents import FAILED, texts_beside
from rag_eval_integrations.langchain._tree import ModelRequest, RootRun, Run
from rag_eval_integrations.langchain._values import (
    HUMAN,
    LISTS,
    answer_of,
    history_of,
    is_command,
    last_text,
    question_in_state,
    question_of,
    starts_stream,
    structured_answer,
)
from rag_eval_integrations.records import RagCall, Turn
from rag_eval_integrations.records._conversation import with_conversation
from rag_eval_integrations.records.call import CITATIONS, CaptureStatus, EndedCall


def finish(
    call: RootRun,
    root: Run,
    outputs: object,
    inputs: object,
    error: BaseException | None,
    failed: Callable[[Exception], object],
) -> EndedCall | None:
    """Read what the record of an ended call needs from it, and from the user's hooks.

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
    call.read_states()
    hooks = call.hooks
    hooked = None if hooks is None else hooks.documents(call.inputs, outputs)
    if not (call.retrievals or call.given or hooked or _has_documents(call)) or (
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
        status, outputs = _status(call, outputs, error, asked)
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
    call.read_tool_results()
    call.traces.look_at_end(call.run_id)
    metadata = _metadata(call, outputs, response)
    tags = tuple(map(str, call.tags)) if call.tags else ()
    call.let_go()

    def record() -> RagCall:
        """Make the record, in the background."""
        return to_call(
            without_images(context(), call.images),
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


def _metadata(call: RootRun, outputs: object, response: str | None) -> dict[str, JsonValue]:
    """Return the app's own metadata, with conversation, citations and failed hooks."""
    given = with_conversation(call.metadata or {}, call.conversation)
    if response and CITATIONS not in given and (cited := citations_beside(outputs, response)):
        given[CITATIONS] = cited
    metadata = json_object(given)
    if call.hooks is not None and call.hooks.failed:
        metadata[FAILED] = [*call.hooks.failed]
    return metadata


def _answer_and_context(
    call: RootRun,
    outputs: object,
    status: CaptureStatus,
    asked: Sequence[ModelRequest],
    queries: set[str] | None,
    question: str,
) -> tuple[str | None, Callable[[], Context]]:
    """Return the answer, and a function that finds the documents that its writers saw.

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
    outputs = _answer_in_user_role(outputs, asked, inquiries) or outputs
    if (
        status == "ok"
        and queries is not None
        and (isinstance(outputs, str) or answer_of(outputs) is None)
        and only_retrieved(call, outputs, asked, inquiries)
    ):
        out = context_of_outputs(call, outputs)  # now: the app may change its outputs
        return None, lambda: out
    response, writers, known = _response(status, outputs, asked, queries or set())
    if response is None and status == "ok" and queries is not None and writers:
        call.unread(outputs)
    return response, partial(context_of, call, asked, writers, known=known, question=question)


def _has_documents(call: RootRun) -> bool:
    """Return whether a list of documents was seen, or single documents and a question."""
    # Single documents without a question are being indexed.
    return any(call.question or not sighting.alone for sighting in call.sightings)


def _is_bare(root: Run, call: RootRun) -> bool:
    """Return whether the root is a bare retriever, or a tool that only retrieves."""
    return root.kind == "retriever" or (root.kind == "tool" and not call.asked)


def _history_in_state(messages: object, question: str) -> tuple[Turn, ...]:
    """Find the earlier turns in a graph's final state, where a checkpointer has added them."""
    if isinstance(messages, LISTS) and question:
        for earlier in (messages, messages[:-1]):  # the last one may be the answer, see below
            if question_of(earlier) == question:
                return history_of(earlier)
    return ()


def _answer_in_user_role(
    outputs: object, asked: Sequence[ModelRequest], inquiries: set[str]
) -> str | None:
    """Return the last message if it has the user's role and a model wrote it."""
    # LangGraph turns the `str` that a node returns into a user's message.
    messages = outputs.get("messages") if type(outputs) is dict else None
    text = last_text(messages[-1:], HUMAN) if isinstance(messages, LISTS) else None
    return text if text and text not in inquiries and writers_of(text, asked)[1] else None


def _status(
    call: RootRun, outputs: object, error: BaseException | None, asked: Sequence[ModelRequest]
) -> tuple[CaptureStatus, object]:
    """Return how a call ended, and its outputs; for a closed stream, what it gave last.

    `error` after an `Exception`; `aborted` after another exception, and for a stream closed before
    it gave the whole answer; `interrupted` for a graph that waits for its user.
    """
    left = error is None or isinstance(error, GeneratorExit)
    if call.interrupted if left else _is_interrupt(error):
        return "interrupted", outputs
    if not left:
        return "error" if isinstance(error, Exception) else "aborted", outputs
    # A closed sync stream ends its root like a success, without output or with the output so
    # far (measured on 1.7.2), but its model has not ended.
    open_ended = outputs is None or bool(asked and asked[-1].is_open)
    if error is None and not (call.streaming and open_ended):
        return "ok", outputs
    given = call.last_output
    given = given[-1] if isinstance(given, LISTS) and given else given
    given = getattr(given, "update", None) if is_command(given) else given
    return ("ok", given) if _is_whole_answer(given, asked) else ("aborted", outputs)


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether an exception says that a graph waits for its user."""
    return any(kind.__name__ == "GraphInterrupt" for kind in type(error).__mro__)


def _is_whole_answer(given: object, asked: Sequence[ModelRequest]) -> bool:
    """Return whether the last step of a stream gave the app the whole answer.

    A text that a model wrote, beside no call of a tool. What was streamed token by token may not
    have reached the app.
    """
    messages = given.get("messages") if isinstance(given, dict) else given
    last = messages[-1] if isinstance(messages, LISTS) and messages else messages
    answer = None if getattr(last, "tool_calls", None) else answer_of(given)
    writers, known = writers_of(answer, asked)
    unknown = [request for request in writers if request.is_open or request.tokens]
    return bool(answer and known and writers and not unknown)


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
            generated = _last_generated(asked, queries)
        # The outputs of a closed stream's root lack the last chunk that the app got.
        if answer is None or (generated or "").startswith(answer):
            answer = generated
        return answer, asked[-1:], False
    if answer is None:
        values = [
            (name, text)
            for name, text in texts_beside(outputs)
            if text not in queries and not is_no_answer(name, text)
        ]
        texts, several = _generated_values([text for _, text in values], asked)
        if several:
            return (texts.pop() if len(texts) == 1 else None), several, True
        answer = structured_answer(outputs, asked[-1].arguments if asked else None)
        last = None if answer else _last_generated(asked, queries)
        if last:  # which is in one of the values, or else none says what was returned
            answer = answer_among(values, [last]) if values else last
    return answer, *writers_of(answer, asked)


def _last_generated(asked: Sequence[ModelRequest], queries: set[str]) -> str | None:
    """Return the last text that a model wrote, except for search queries."""
    texts = (request.text_so_far() for request in reversed(asked))
    return next((text for text in texts if text and text not in queries), None)


def _generated_values(
    values: Sequence[str], asked: Sequence[ModelRequest]
) -> tuple[set[str], list[ModelRequest]]:
    """Return the values in a root's outputs that models wrote, and these models.

    Only the last one where its model was shown the others.
    """
    texts = {text.strip(): text for text in values}
    several = [request for request in asked if request.text_so_far().strip() in texts]
    prompt = "\n".join(several[-1].prompt) if several else ""
    if all(other.text_so_far().strip() in prompt for other in several[:-1]):
        several = several[-1:]
    return {texts[request.text_so_far().strip()] for request in several}, several


def _interrupted_answer(outputs: object, answer: str | None) -> str | None:
    """Return the answer of an interrupted graph, and not that of the turn before."""
    messages = outputs.get("messages") if isinstance(outputs, dict) else None
    if isinstance(messages, LISTS) and messages:
        answer = answer_of(messages[-1:])
    return answer or None
