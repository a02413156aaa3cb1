"""Stage 1 for LangChain, its runs: each is put into its call's tree, and taken out again.

State is keyed by run, never by context or thread: `batch` spreads one call's events over many
threads, and 50 calls may share one. LangChain's own tracer base class is not used: it costs 1.5 s
of imports and never prunes its order map (1,800 entries left after 200 calls, on 1.7.2).
"""

from __future__ import annotations

import sys
import threading
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from rag_eval_integrations._observe import Delivery, OpenCalls
from rag_eval_integrations._suppress import SUPPRESSED
from rag_eval_integrations.langchain.documents import may_hold_documents
from rag_eval_integrations.langchain.finish import finish
from rag_eval_integrations.langchain.graphs import tell_of_pauses
from rag_eval_integrations.langchain.hooks import Hooks
from rag_eval_integrations.langchain.tree import Call, Kind, Run

_MAX_LATE = 4_096


class CallRuns(BaseCallbackHandler):
    """The runs in flight, and the calls that they make, delivered when their root ends."""

    def __init__(self, delivery: Delivery, hooks: Hooks | None, max_open: int, ttl: float) -> None:
        self._delivery = delivery
        self._hooks = hooks
        self._calls: OpenCalls[Call] = OpenCalls(max_open, ttl)
        # By `UUID.int`: hashing a UUID runs Python code, 47 times a call on a chain of 9 runs.
        self._runs: dict[int, Run] = {}
        # Runs still going when their call ended or was dropped: what starts under them is no call
        # of its own. Ids only, and bounded, since some runs never end.
        self._late: dict[int, None] = {}
        # Reentrant: a garbage collection inside of a locked region can finalise a stream, whose
        # events then arrive in the same thread.
        self._lock = threading.RLock()
        self._told_of_pauses = False

    @property
    def open_calls(self) -> int:
        """How many calls are in flight."""
        with self._lock:
            self._forget(self._calls.expire())
            return len(self._calls)

    @property
    def dropped(self) -> int:
        """How many calls were dropped: never ended within `ttl`, or more than `max_open`."""
        return self._calls.dropped

    def has_inside(self, run_id: UUID) -> bool:
        """Whether a run in flight is part of a call, below its root."""
        run = self._runs.get(run_id.int)
        return run is not None and run.parent is not None

    # --- the boundary: nothing that fails here reaches the app ------------------------------

    def _passed(self, run: Run, value: object, tags: list[str] | None = None) -> None:
        """Look for documents in what a chain was given (and by its tags, a node), or gave back."""
        try:
            if may_hold_documents(value):
                state = any(tag.startswith("graph:step:") for tag in tags or ())
                run.call.passed(run, value, state=state)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (chain)", error)

    def _open(self, kind: Kind, inputs: object, run_id: UUID, about: dict[str, Any]) -> None:
        """Add a run to its call; a run without a known parent opens one.

        `about` is what else LangChain says of it: `parent_run_id`, `tags`, `metadata`, `name`. As
        a dict: to spread it over parameters again took 2 µs an event.
        """
        if SUPPRESSED.get():
            return
        try:
            key = run_id.int
            parent = None
            parent_run_id = about.get("parent_run_id")
            if parent_run_id is not None:
                parent = self._runs.get(parent_run_id.int)
                if parent is None and parent_run_id.int in self._late:
                    self._note_late(key)
                    return
            if parent is None and (parent := self._surrounding()) is None:
                # A handler bound to an inner runnable sees a parent that it never met.
                self._open_call(kind, inputs, run_id, about)
                return
            call = parent.call
            self._runs[key] = run = Run(call, parent, kind)
            call.keys.append(key)
            call.started(run, inputs, about.get("name"))
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure(f"capture ({kind} start)", error)

    def _surrounding(self) -> Run | None:
        """The run of ours that is going on around a run that claims to have no parent.

        So it is with the alternatives of `with_fallbacks`, and where the app gives the handler
        again to what it calls inside of a node, a tool or a lambda.
        """
        if not self._runs:
            return None
        module = sys.modules.get("langchain_core.runnables.config")
        config = None if module is None else module.var_child_runnable_config.get()
        if not config:
            return None
        around = getattr(config.get("callbacks"), "parent_run_id", None)
        return None if around is None else self._runs.get(around.int)

    def _open_call(self, kind: Kind, inputs: object, run_id: UUID, about: dict[str, Any]) -> None:
        if kind == "llm":
            return  # nothing runs under a model, and alone it is no RAG call
        if not self._told_of_pauses:
            self._told_of_pauses = tell_of_pauses(self)
        name = about.get("name")
        call = Call(run_id, name, inputs, about.get("tags"), about.get("metadata"), self._hooks)
        key = run_id.int
        run = self._runs[key] = Run(call, None, kind)
        call.keys.append(key)
        if kind == "retriever":
            call.started(run, inputs, name)
        with self._lock:
            if dropped := self._calls.add(key, call):
                self._forget(dropped)

    def _close(
        self, run_id: UUID, outputs: object, inputs: object, error: BaseException | None
    ) -> None:
        """Take a run off its call; the root's end ends the call."""
        key = run_id.int
        run = self._runs.pop(key, None)
        if run is None:
            self._late.pop(key, None)
            return
        try:
            run.call.ended(run, outputs, inputs, error)
            if run.parent is None:
                self._close_call(key, run, outputs, inputs, error)
        except Exception as failure:  # noqa: BLE001 -- the boundary
            self._delivery.failure(f"capture ({run.kind} end)", failure)

    def _close_call(
        self, key: int, root: Run, outputs: object, inputs: object, error: BaseException | None
    ) -> None:
        call = root.call
        with self._lock:
            if self._calls.close(key) is None:
                return
            if self._runs:
                self._forget([call])
        try:
            record = finish(call, root, outputs, inputs, error)
        finally:
            call.clear()
        if record is not None:
            self._delivery.deliver(record)

    def _forget(self, calls: list[Call]) -> None:
        for call in calls:
            for key in call.keys:
                if self._runs.pop(key, None) is not None:
                    self._note_late(key)

    def _note_late(self, key: int) -> None:
        self._late[key] = None
        while len(self._late) > _MAX_LATE:
            self._late.pop(next(iter(self._late)), None)
