"""Stage 1 for LangChain: a callback handler that turns every RAG call into a `RagCall`.

State is keyed by run, never by context or thread: `batch` spreads one call's events over many
threads, and 50 calls may share one. LangChain's own tracer base class is not used: it costs 1.5 s
of imports and never prunes its order map (1,800 entries left after 200 calls, on 1.7.2).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from rag_eval_integrations._observe import Delivery, OpenCalls, Target
from rag_eval_integrations._suppress import suppressed
from rag_eval_integrations.langchain.tree import Call, Kind, Run

_LOGGER = logging.getLogger("rag_eval_integrations.langchain")
_MAX_LATE = 4_096


class RagEvalCallbackHandler(BaseCallbackHandler):
    """Calls `target` with a `RagCall` for every RAG call that it observes.

    Pass it per call (`config={"callbacks": [handler]}`), bind it (`with_config`), or give it to an
    inner runnable; `invoke`, `ainvoke`, `batch`, `abatch`, `stream` and `astream` give the same
    record. A root in which no retriever ran and no document was seen, or that is itself a bare
    retriever, is no RAG call. One handler serves any number of concurrent calls.

    `target` is called once a call, when the call has ended, in the thread of its last event: it
    should only hand the record on. What it raises is logged and counted, never seen by the app.
    """

    run_inline = True  # on the loop's thread: an event takes ~2 µs, a hop to a thread ~50
    raise_error = False

    def __init__(self, target: Target, *, max_open: int = 10_000, ttl: float = 3600.0) -> None:
        """Make a handler.

        Args:
            target: Takes the `RagCall`; a plain callable.
            max_open: At most so many calls are held in flight; the oldest is dropped.
            ttl: Seconds after which a call that never ended is dropped.

        Raises:
            ConfigurationError: an argument cannot be used; names it.
        """
        self._delivery = Delivery(target, _LOGGER)
        self._calls: OpenCalls[Call] = OpenCalls(max_open, ttl)
        # By `UUID.int`: hashing a UUID runs Python code, 47 times a call on a chain of 9 runs.
        self._runs: dict[int, Run] = {}
        # Runs still going when their call ended or was dropped: what starts under them is no call
        # of its own. Ids only, and bounded, since some runs never end.
        self._late: dict[int, None] = {}
        # Reentrant: a garbage collection inside of a locked region can finalise a stream, whose
        # events then arrive in the same thread.
        self._lock = threading.RLock()

    @property
    def open_calls(self) -> int:
        """How many calls are in flight."""
        with self._lock:
            self._forget(self._calls.expire())
            return len(self._calls)

    @property
    def failed(self) -> int:
        """How often the target, or the capture itself, failed."""
        return self._delivery.failed

    @property
    def dropped(self) -> int:
        """How many calls were dropped: never ended within `ttl`, or more than `max_open`."""
        return self._calls.dropped

    # --- events: each only says which ------------------------------------------------------

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a run; documents in its inputs are sighted."""
        self._open("chain", inputs, run_id, parent_run_id, tags, metadata, kwargs)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a run; of a stream, the true inputs come only now."""
        self._close(run_id, outputs, kwargs.get("inputs"), None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed run."""
        self._close(run_id, None, kwargs.get("inputs"), error)

    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a retriever's run."""
        self._open("retriever", query, run_id, parent_run_id, tags, metadata, kwargs)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a retriever's run and take what it found."""
        self._close(run_id, documents, None, None)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed retriever's run."""
        self._close(run_id, None, None, error)

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a tool's run."""
        self._open("tool", input_str, run_id, parent_run_id, tags, metadata, kwargs)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a tool's run; its output, or its message's artifact, may hold documents."""
        self._close(run_id, output, None, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed tool's run."""
        self._close(run_id, None, None, error)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a chat model's run and keep the text of its prompt."""
        self._open("llm", messages, run_id, parent_run_id, tags, metadata, kwargs)

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a completion model's run and keep its prompt."""
        self._open("llm", prompts, run_id, parent_run_id, tags, metadata, kwargs)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep a streamed token: an aborted call's response is what had come so far."""
        run = self._runs.get(run_id.int)
        if run is not None and isinstance(token, str):
            run.tokens.append(token)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a model's run and keep its text."""
        self._close(run_id, response, None, None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed model's run and keep what it had generated."""
        self._close(run_id, kwargs.get("response"), None, error)

    # --- the boundary: nothing that fails here reaches the app ------------------------------

    def _open(
        self,
        kind: Kind,
        inputs: object,
        run_id: UUID,
        parent_run_id: UUID | None,
        tags: list[str] | None,
        metadata: Mapping[str, Any] | None,
        kwargs: Mapping[str, Any],
    ) -> None:
        """Add a run to its call; a run without a known parent opens one."""
        if suppressed():
            return
        try:
            key = run_id.int
            parent_key = None if parent_run_id is None else parent_run_id.int
            parent = None if parent_key is None else self._runs.get(parent_key)
            if parent is not None:
                run = Run(parent.call, parent, kind)
            elif parent_key is not None and parent_key in self._late:
                self._note_late(key)
                return
            else:
                # A handler bound to an inner runnable sees a parent that it never met.
                call = Call(run_id, kwargs.get("name"), inputs, tags, metadata)
                run = Run(call, None, kind)
                with self._lock:
                    self._forget(self._calls.add(key, call))
            self._runs[key] = run
            run.call.open.add(key)
            run.call.started(run, inputs, kwargs.get("name"))
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure(f"capture ({kind} start)", error)

    def _close(
        self, run_id: UUID, outputs: object, inputs: object, error: BaseException | None
    ) -> None:
        """Take a run off its call; the root's end ends the call."""
        key = run_id.int
        run = self._runs.pop(key, None)
        if run is None:
            self._late.pop(key, None)
            return
        call = run.call
        call.open.discard(key)
        try:
            call.ended(run, outputs, inputs, error)
            if run.parent is None:
                with self._lock:
                    if self._calls.close(key) is None:
                        return
                    self._forget([call])
                record = call.finish(run, outputs, inputs, error)
                if record is not None:
                    self._delivery.deliver(record)
        except Exception as failure:  # noqa: BLE001 -- the boundary
            self._delivery.failure(f"capture ({run.kind} end)", failure)

    def _forget(self, calls: list[Call]) -> None:
        for call in calls:
            for key in list(call.open):
                if self._runs.pop(key, None) is not None:
                    self._note_late(key)

    def _note_late(self, key: int) -> None:
        self._late[key] = None
        while len(self._late) > _MAX_LATE:
            self._late.pop(next(iter(self._late)), None)
