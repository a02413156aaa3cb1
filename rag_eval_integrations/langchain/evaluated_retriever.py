"""Stage 1 for LangChain, by wrapping: a retriever that is scored where nothing else captures it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    BaseCallbackManager,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field, PrivateAttr

from rag_eval_integrations._observe import Context, Delivery, distinct, json_object, to_call
from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.background.attachment import Attachment
from rag_eval_integrations.capture.current import CallInProgress, open_call
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain.documents import snapshot
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler
from rag_eval_integrations.records import CaptureStatus, Evaluation, RagCall

_LOGGER = logging.getLogger("rag_eval_integrations.langchain")
_ADDING = threading.Lock()  # batches of one call add documents from many threads

_OWN_SETTINGS = ("name", "tags", "metadata")

Manager = CallbackManagerForRetrieverRun | AsyncCallbackManagerForRetrieverRun


class EvaluatedRetriever(BaseRetriever):
    """A retriever that passes everything on to another and takes part in capture.

    Inside of a captured call it adds its documents to that call: a `RagEvalCallbackHandler` that
    watches the chain around it sees them pass, and the block or function of a `capture_call`
    around it gets them added to `call.documents`. Alone, each retrieval is a call of its own, with
    no response: a `RagEvaluator` scores its `context_relevance` and leaves the rest unscored
    (`empty_response`). An exception gives status `error`, a cancellation `aborted`.

    What goes wrong in the target is logged and counted, never seen by the app.

    Args:
        retriever: any retriever, or another runnable from a string to documents.
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`,
            which is then run in the background: see `flush` and `evaluations`.
        on_evaluation: called with every evaluation; only with a `RagEvaluator`.
        **settings: `name`, `tags` and `metadata` are this retriever's own; everything else, such
            as `k`, is passed to the wrapped one at every call, unless the call itself gives it.

    Raises:
        ConfigurationError: `retriever` is no runnable, or the target cannot be used.
    """

    retriever: Runnable[str, list[Document]]
    """What retrieves."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Passed to it at every call."""

    _attachment: Attachment = PrivateAttr()
    _delivery: Delivery = PrivateAttr()

    def __init__(
        self,
        retriever: Runnable[str, list[Document]],
        target: Any,
        *,
        on_evaluation: Callable[[Evaluation], object] | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(retriever, Runnable):
            raise ConfigurationError("retriever", retriever, "should be a retriever")
        attachment = Attachment(target, on_evaluation)
        delivery = Delivery(attachment.target, _LOGGER)
        own = {name: settings.pop(name) for name in _OWN_SETTINGS if name in settings}
        own.setdefault("name", retriever.get_name())
        super().__init__(retriever=retriever, defaults=settings, **own)  # type: ignore[call-arg]
        self._attachment = attachment
        self._delivery = delivery

    @property
    def failed(self) -> int:
        """How often the target, or the capture itself, failed."""
        return self._delivery.failed

    @property
    def evaluations(self) -> tuple[Evaluation, ...]:
        """The latest evaluations, oldest first, where the target is a `RagEvaluator`."""
        return self._attachment.evaluations

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until the retrievals captured so far are evaluated.

        Args:
            timeout: seconds to wait at most.

        Returns:
            Whether it was all done in time.
        """
        return self._attachment.flush(timeout)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> EvaluatedRetriever:
        """Copy what retrieves; the copy's calls go where the original's do."""
        copied = self.model_copy()
        copied.retriever = deepcopy(self.retriever, memo)
        copied.defaults = deepcopy(self.defaults, memo)
        return copied

    # --- as a retriever ---------------------------------------------------------------------

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Retrieve documents."""
        return super().invoke(input, config, **{**kwargs, _CONFIG: config})

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Retrieve documents, in code that is async."""
        return await super().ainvoke(input, config, **{**kwargs, _CONFIG: config})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        with self._watched(query, run_manager) as retrieval:
            config = _below(run_manager.get_child(), kwargs.pop(_CONFIG, None))
            found = self.retriever.invoke(query, config, **{**self.defaults, **kwargs})
            retrieval.documents = found
        return found

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        with self._watched(query, run_manager) as retrieval:
            config = _below(run_manager.get_child(), kwargs.pop(_CONFIG, None))
            found = await self.retriever.ainvoke(query, config, **{**self.defaults, **kwargs})
            retrieval.documents = found
        return found

    # --- as a capture: nothing that fails here reaches the app --------------------------------

    @contextmanager
    def _watched(self, query: str, manager: Manager) -> Iterator[_Retrieval]:
        """Take part in the call around, or deliver one; to be given the documents found."""
        retrieval = _Retrieval(query, manager)
        try:
            yield retrieval
        except BaseException as error:
            retrieval.status = "error" if isinstance(error, Exception) else "aborted"
            raise
        finally:
            try:
                if not suppressed() and not _part_of_a_call(retrieval):
                    self._delivery.deliver(retrieval.record(self.get_name()))
            except Exception as failure:  # noqa: BLE001 -- the boundary
                self._delivery.failure("capture (retriever)", failure)


_CONFIG = "rag_eval_config"
"""By this keyword a call's config gets past `BaseRetriever`, which keeps it to itself."""


def _below(callbacks: BaseCallbackManager, config: RunnableConfig | None) -> RunnableConfig:
    """Make the wrapped retriever's config: below this run, with what the call configures."""
    below: RunnableConfig = {"callbacks": callbacks}
    if config is not None and "configurable" in config:
        below["configurable"] = config["configurable"]
    return below


@dataclass
class _Retrieval:
    """One retrieval while it runs."""

    query: str
    manager: Manager
    documents: Sequence[Document] = ()
    status: CaptureStatus = "ok"
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)

    def record(self, name: str) -> RagCall:
        """Make a call of it: a question and its documents, for which no answer was asked."""
        seen = [snapshot(document, None) for document in self.documents]
        return to_call(
            Context(distinct(seen), "retriever", ()),
            {
                "framework": "langchain",
                "run_id": str(self.manager.run_id),
                "status": self.status,
                "documents_from": "retriever",
                "latency_s": time.monotonic() - self.began,
                "tags": tuple(map(str, self.manager.tags)),
                "metadata": json_object(self.manager.metadata),
                "retrievers": (name,),
            },
            question=self.query,
            response=None,
            started_at=self.started_at,
            app=name,
        )


def _part_of_a_call(retrieval: _Retrieval) -> bool:
    """Add the documents to the call around; False when there is none."""
    block = open_call()
    if block is not None:
        _add(block, retrieval.documents)
    return block is not None or _seen_by_a_handler(retrieval.manager)


def _seen_by_a_handler(manager: Manager) -> bool:
    """Whether a handler of ours has this run in a call that is more than a bare retriever.

    To be among the handlers is not enough: one that is bound to this retriever alone has the run
    as a root of its own, and delivers nothing.
    """
    return any(
        isinstance(handler, RagEvalCallbackHandler) and handler.has_inside(manager.run_id)
        for handler in manager.handlers
    )


def _add(call: CallInProgress, documents: Sequence[Document]) -> None:
    with _ADDING:
        there = call.documents
        if there is None or isinstance(there, list | tuple):  # else it is the app's own affair
            texts = {getattr(document, "page_content", None) for document in there or ()}
            new = [document for document in documents if document.page_content not in texts]
            call.documents = [*(there or ()), *new]
