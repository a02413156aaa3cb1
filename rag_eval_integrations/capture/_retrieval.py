"""Capture of a single retrieval, for the `EvaluatedRetriever` of LangChain and LlamaIndex."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.capture._calls import Context, Snapshot, distinct, to_call
from rag_eval_integrations.capture._delivery import TargetDelivery
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.capture.record import open_call
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records._json import from_object, whole_text
from rag_eval_integrations.records.call import CaptureStatus

_ADDING = threading.Lock()  # retrievals of one call may run in many threads


_RETRIEVING: ContextVar[bool] = ContextVar("rag_eval_integrations_retrieving", default=False)

in_retrieval = _RETRIEVING.get
"""Returns whether an `EvaluatedRetriever` retrieves in this context."""


@dataclass
class OpenRetrieval:
    """One retrieval in progress."""

    question: str
    traces: CallTraces
    """Where other libraries trace it, or the run around it."""
    documents: Sequence[Any] = ()
    """The framework's own objects, as the retriever returned them."""
    status: CaptureStatus = "ok"
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)

    def record(
        self,
        name: str,
        seen: Iterable[Snapshot],
        *,
        framework: str,
        run_id: str | None = None,
        tags: tuple[str, ...] = (),
        metadata: dict[str, JsonValue] | None = None,
    ) -> RagCall:
        """Make the record of the retrieval: a call with documents and without a response.

        Args:
            name: name of the retriever.
            seen: snapshots of the documents.
            framework: stored in `Capture`, as the rest.
            run_id: the framework's id of the run.
            tags: tags of the run.
            metadata: metadata of the run.
        """
        self.traces.look_at_end()
        return to_call(
            Context(distinct(seen), "retriever", ()),
            framework=framework,
            run_id=run_id,
            status=self.status,
            latency_s=time.monotonic() - self.began,
            tags=tags,
            metadata=metadata or {},
            retrievers=(name,),
            question=self.question,
            response=None,
            started_at=self.started_at,
            app=name,
            traces=self.traces.ids(),
        )


@contextmanager
def retrieving(
    question: str, delivery: TargetDelivery, to_record: Callable[[OpenRetrieval], RagCall | None]
) -> Iterator[OpenRetrieval]:
    """Capture the retrieval in a `with` block as a call, unless a judge makes it.

    Exceptions of the block are passed on; failures of the capture are counted by `delivery`.

    Args:
        question: the retriever's query.
        delivery: receives the call.
        to_record: makes the call when the retrieval has ended; None when it is part of another
            call.

    Yields:
        The retrieval; the block sets its `documents`.
    """
    retrieval = OpenRetrieval(question, CallTraces(delivery))
    token = _RETRIEVING.set(True)
    try:
        yield retrieval
    except BaseException as error:
        retrieval.status = "error" if isinstance(error, Exception) else "aborted"
        raise
    finally:
        with suppress(ValueError):  # a coroutine that is finalized is in another context
            _RETRIEVING.reset(token)
        try:
            if not suppressed() and (call := to_record(retrieval)) is not None:
                delivery.deliver(call)
        except Exception as failure:  # noqa: BLE001 -- the boundary
            delivery.failure("capture (retriever)", failure)


def gold_ids(given: object, field: str) -> tuple[str, ...] | None:
    """Read the ids of relevant documents that a user gave; None for none.

    Args:
        given: the ids.
        field: name of the argument, for the error message.

    Raises:
        ConfigurationError: they are not a list of non-empty strings.
    """
    try:
        call = {"question": "", "documents": (), "response": None, "relevant_ids": given}
        return from_object(RagCall, call).relevant_ids
    except InputError as error:
        place = (error.field or "").removeprefix("relevant_ids")
        raise ConfigurationError(f"{field}{place}", given, error.why) from error


def gold_by_question(given: object) -> dict[str, tuple[str, ...] | None]:
    """Check a retriever wrapper's mapping from questions to the ids of relevant documents.

    Args:
        given: question → ids; None for none.

    Raises:
        ConfigurationError: it is not a mapping of strings, or the ids of one are not ids.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        why = "should be a dict: question → ids of the relevant documents"
        raise ConfigurationError("relevant_ids", given, why)
    for question in given:
        if not isinstance(question, str):
            raise ConfigurationError("relevant_ids", question, "each key should be a question")
    return {
        whole_text(question): gold_ids(ids, f"relevant_ids[{question!r}]")
        for question, ids in given.items()
    }


def add_to_block(read: Callable[[], Iterable[object]], key_of: Callable[[Any], Hashable]) -> bool:
    """Add documents to the surrounding `capture_call`; return False when there is none.

    A document that is already there is not added again. Documents that the app has set to
    anything but a list or tuple are left as they are.

    Args:
        read: returns the documents.
        key_of: returns a document's text and id; None for an object of another kind.
    """
    block = open_call()
    if block is None:
        return False
    with _ADDING:
        there = block.documents
        if there is None or isinstance(there, list | tuple):
            keys = {key_of(document) for document in there or ()}
            new = [document for document in read() if key_of(document) not in keys]
            block.documents = [*(there or ()), *new]
    return True
