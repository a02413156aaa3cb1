"""A retrieval that is a call where nothing else captures it: what both hosts' retrievers do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.capture._calls import Context, Seen, distinct, to_call
from rag_eval_integrations.capture._delivery import TargetDelivery
from rag_eval_integrations.capture.current import open_call
from rag_eval_integrations.records import CaptureStatus, RagCall

_ADDING = threading.Lock()  # retrievals of one call may run in many threads


@dataclass
class Retrieval:
    """One retrieval while it runs."""

    question: str
    documents: Sequence[Any] = ()
    """The host's own, as found."""
    status: CaptureStatus = "ok"
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)

    def record(self, name: str, seen: Iterable[Seen], **capture: Any) -> RagCall:
        """Make a call of it: a question and its documents, for which no answer was asked.

        Args:
            name: the retriever's.
            seen: snapshots of the documents.
            **capture: the other fields of `Capture`: `framework`, `run_id`, `tags`, `metadata`.
        """
        return to_call(
            Context(distinct(seen), "retriever", ()),
            {
                **capture,
                "status": self.status,
                "latency_s": time.monotonic() - self.began,
                "retrievers": (name,),
            },
            question=self.question,
            response=None,
            started_at=self.started_at,
            app=name,
        )


@contextmanager
def retrieving(
    question: str, delivery: TargetDelivery, made: Callable[[Retrieval], RagCall | None]
) -> Iterator[Retrieval]:
    """Deliver the retrieval made inside, unless it is a judge's; nothing that fails shows.

    Args:
        question: what is looked for.
        delivery: takes the call.
        made: makes the call when the retrieval has ended; None where it is part of another.

    Yields:
        The retrieval, to be given the documents found.
    """
    retrieval = Retrieval(question)
    try:
        yield retrieval
    except BaseException as error:
        retrieval.status = "error" if isinstance(error, Exception) else "aborted"
        raise
    finally:
        try:
            if not suppressed() and (call := made(retrieval)) is not None:
                delivery.deliver(call)
        except Exception as failure:  # noqa: BLE001 -- the boundary
            delivery.failure("capture (retriever)", failure)


def added_to_block(
    read: Callable[[], Iterable[tuple[str, object]]], text_of: Callable[[Any], str | None]
) -> bool:
    """Add documents to the block or function that captures around; False when there is none.

    What is there with the same text is not added again; documents that the app has set as
    anything but a list are its own affair.

    Args:
        read: gives the documents, each with its text.
        text_of: tells the text of a document that is there, if it is one of the host's.
    """
    block = open_call()
    if block is None:
        return False
    with _ADDING:
        there = block.documents
        if there is None or isinstance(there, list | tuple):
            texts = {text_of(document) for document in there or ()}
            new = [document for text, document in read() if text not in texts]
            block.documents = [*(there or ()), *new]
    return True
