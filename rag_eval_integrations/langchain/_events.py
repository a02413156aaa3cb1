"""Stage 1 for LangChain: turn the callback events of runs into calls, and deliver those."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from rag_eval_integrations._suppress import SUPPRESSED
from rag_eval_integrations._visible import LogOnce, logger_of
from rag_eval_integrations.capture._calls import OpenCalls
from rag_eval_integrations.capture._delivery import Hooks, TargetDelivery
from rag_eval_integrations.capture._tool_results import ToolResults
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.capture._uncaptured import Uncaptured, ask_a_question, is_grader_prompt
from rag_eval_integrations.capture.record import open_call
from rag_eval_integrations.langchain._context import is_grade
from rag_eval_integrations.langchain._documents import may_hold_documents
from rag_eval_integrations.langchain._finish import finish
from rag_eval_integrations.langchain._tree import Kind, RootRun, Run
from rag_eval_integrations.langchain._values import answer_of, content_text, prompt_texts
from rag_eval_integrations.records import Document
from rag_eval_integrations.records._conversation import conversation_in

# --- A place on the loop's thread that costs other handlers nothing


class Inline(BaseCallbackHandler):
    """A handler that runs on the loop's thread, unless that would silence others.

    A hop to another thread takes 50 µs, an event of ours about 2. But where a text model starts in
    async code, LangChain tells the inline handlers *or* the others. There, this one counts as
    inline only beside a foreign handler that is.
    """

    @property
    def run_inline(self) -> bool:  # type: ignore[override]  # LangChain only reads it
        """Whether LangChain should call the handler on the loop's thread."""
        frame = sys._getframe(1)  # nothing else says which event asks
        if frame.f_code.co_name == "<listcomp>" and frame.f_back:  # a frame until Python 3.11
            frame = frame.f_back
        if frame.f_code.co_name != "on_llm_start":
            return True
        beside = getattr(frame.f_locals.get("self"), "handlers", ())
        return any(not isinstance(other, Inline) and other.run_inline for other in beside)


# --- Runs: each is added to the tree of its call at its start, and removed at its end


_MAX_LATE = 4_096


class CallRuns(Inline):
    """The runs in flight and their calls; a call is delivered when its root run ends.

    Args:
        delivery: receives the calls.
        hooks: the user's extractors, if any.
        max_open: calls in flight at most.
        ttl: seconds after which a call that has not ended is dropped.
        uncaptured: counts the calls that look like RAG and could not be captured.
        takes_text: decides by a tool's name whether its text is a document.

    Raises:
        ConfigurationError: `max_open` or `ttl` is out of its range.
    """

    def __init__(
        self,
        delivery: TargetDelivery,
        hooks: Hooks | None,
        max_open: int,
        ttl: float,
        *,
        uncaptured: Uncaptured,
        takes_text: Callable[[str], bool] | None = None,
    ) -> None:
        self._delivery = delivery
        self._uncaptured = uncaptured
        self._takes_text = takes_text
        self._hooks = hooks
        self._document_tools: set[str] = set()
        self._tool_results = ToolResults()
        self._calls: OpenCalls[RootRun] = OpenCalls(max_open, ttl)
        # By `UUID.int`: hashing a UUID runs Python code, 47 times per call for a chain of 9 runs.
        self._runs: dict[int, Run] = {}
        # Runs that go on after their call has ended or was dropped: a run that starts under them
        # is not a new call. Only ids and the ends to come, and a limited number, since some runs
        # never end.
        self._late: dict[int, int] = {}
        self._mistakes = LogOnce(logger_of("rag_eval_integrations.langchain"))
        # Reentrant: a garbage collection inside a locked region can finalise a stream, whose events
        # then arrive in the same thread.
        self._lock = threading.RLock()

    @property
    def open_calls(self) -> int:
        """Number of calls in flight."""
        with self._lock:
            self._forget(self._calls.expire())
            return len(self._calls)

    @property
    def dropped(self) -> int:
        """Number of calls dropped: they exceeded `ttl` or `max_open`, or shared a run id."""
        return self._calls.dropped

    @property
    def uncaptured(self) -> int:
        """Number of runs that look like RAG calls and could not be captured; one is logged each."""
        return self._uncaptured.count

    def leave_to_wrapper(self, run_id: UUID) -> None:
        """Note that an `EvaluatedRetriever` captures this run."""
        run = self._runs.get(run_id.int)
        if run is not None:
            run.call.left_to_wrapper = True

    def has_inside(self, run_id: UUID) -> bool:
        """Return whether a run is in flight and below the root of a call."""
        run = self._runs.get(run_id.int)
        return run is not None and run.parent is not None

    # --- the boundary: failures in these methods never reach the app --------------------------

    def _record_documents(self, run: Run, value: object, tags: list[str] | None = None) -> None:
        """Record the documents in a chain's inputs or outputs; a graph's node has `tags`."""
        try:
            if may_hold_documents(value):
                state = False
                for tag in tags or ():  # `any` would need a generator, which is slow
                    state = state or tag.startswith("graph:step:")
                run.call.record_documents(run, value, state=state)
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure("capture (chain)", error)

    def _open_run(self, kind: Kind, inputs: object, run_id: UUID, about: dict[str, Any]) -> None:
        """Add a run to its call; a run without a known parent opens a call.

        `about` holds the event's other arguments: `parent_run_id`, `tags`, `metadata`, `name`. It
        is a dict, since passing them as parameters took 2 µs per event.
        """
        self._delivery.unreached = ""
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
            if parent is None:
                parent, known = self._surrounding_run(), self._runs.get(key)
                if known is not None and (
                    known.call.tags is about.get("tags")  # the handler is twice in a list
                    or (parent is not None and parent.call is known.call)  # a config, given again
                ):
                    self._note_late(key)
                    return
                if parent is None or known is not None:
                    # For a handler bound to an inner runnable, the parent is an unknown run.
                    self._open_call(kind, inputs, run_id, about)
                    return
            call = parent.call
            self._runs[key] = run = Run(call, parent, kind)
            call.keys.append(key)
            if not call.traces.begun:
                self._ask_tracers(call)
            call.record_start(run, inputs, about.get("name"))
        except Exception as error:  # noqa: BLE001 -- the boundary
            self._delivery.failure(f"capture ({kind} start)", error)

    def _surrounding_run(self) -> Run | None:
        """Return this context's run in flight, which surrounds a run without a known parent.

        The alternatives of `with_fallbacks` are such runs, and so is a runnable to which the app
        passes the handler again inside a node, a tool or a lambda.
        """
        if not self._runs:
            return None
        around = getattr(_callbacks_here(), "parent_run_id", None)
        return None if around is None else self._runs.get(around.int)

    def _ask_tracers(self, call: RootRun) -> None:
        """Ask other tracers for the ids of a call's root, if their handlers see its runs here."""
        around = self._surrounding_run()
        if around is not None and around.call is call:
            call.traces.ask(call.run_id, _callbacks_here().handlers)
            call.conversation = conversation_in([_config_here().get("configurable") or {}])

    def _open_call(self, kind: Kind, inputs: object, run_id: UUID, about: dict[str, Any]) -> None:
        """Open a call for a root run, which drops calls that are too many or too old.

        A model that runs alone opens none; it is counted if its prompt looks like RAG. Calls in
        flight under one run id are dropped, since their parts cannot be told apart.
        """
        key = run_id.int
        # Nothing runs under a model, and alone it is not a RAG call.
        if kind == "llm" and key not in self._runs:
            if open_call() is None and ask_a_question(prompts := prompt_texts(inputs)):
                self._uncaptured.note_answered((), prompts, {})
            return
        name = about.get("name")
        call = RootRun(run_id, name, inputs, about.get("tags"), about.get("metadata"), self._hooks)
        call.traces = CallTraces(self._delivery)
        call.document_tools, call.tool_results = self._document_tools, self._tool_results
        call.takes_text, call.unread = self._takes_text, self._uncaptured.note_unread
        run = Run(call, None, kind)
        call.keys.append(key)
        if kind == "retriever":
            call.record_start(run, inputs, name)
        with self._lock:
            known = self._runs.get(key)
            if known is None and key not in self._late:
                self._runs[key] = run
                if dropped := self._calls.add(key, call):
                    self._forget(dropped)
                return
            self._note_late(key)
            self._calls.dropped += 1
            if known is not None and self._calls.close(known.call.keys[0]) is not None:
                self._calls.dropped += 1
                self._forget([known.call])
        self._mistakes.log(
            "run id",
            "calls in flight share the run_id %s, so that their parts cannot be told apart: they "
            "are dropped and counted; give each call an id of its own, or none",
            run_id,
        )

    def _close_run(
        self, run_id: UUID, outputs: object, inputs: object, error: BaseException | None
    ) -> None:
        """Remove a run from its call; the end of the root ends the call."""
        key = run_id.int
        if ends := self._late.pop(key, 0):
            if ends > 1:
                self._late[key] = ends - 1
            return
        run = self._runs.pop(key, None)
        if run is None:
            return
        try:
            run.call.record_end(run, outputs, inputs, error)
            if run.kind == "retriever" and type(outputs) is list and Document in map(type, outputs):
                self._mistakes.log(
                    "document",
                    "a retriever returned rag_eval_integrations.Document, not LangChain's own: "
                    "return langchain_core.documents.Document",
                )
            if run.parent is None:
                self._close_call(key, run, outputs, inputs, error)
        except Exception as failure:  # noqa: BLE001 -- the boundary
            self._delivery.failure(f"capture ({run.kind} end)", failure)

    def _close_call(
        self, key: int, root: Run, outputs: object, inputs: object, error: BaseException | None
    ) -> None:
        """Finish a call when its root ends: deliver it, or count it as not captured."""
        call = root.call
        with self._lock:
            if self._calls.close(key) is None:
                return
            if self._runs:
                self._forget([call])
        ended = None
        try:
            ended = finish(call, root, outputs, inputs, error, self._count_failed_record)
            if ended is None and error is None:
                self._note_uncaptured(call, root, outputs)
        finally:
            if ended is None:
                call.clear()
        if ended is not None:
            self._delivery.deliver(ended)

    def _count_failed_record(self, error: Exception) -> None:
        """Count a record that could not be made."""
        self._delivery.failure("capture (record)", error)

    def _note_uncaptured(self, call: RootRun, root: Run, outputs: object) -> None:
        """Count a call that was not captured, if there are signs of a retrieval.

        An answer in which nothing seems to run is one. Calls that a wrapper or a block captures,
        and graders, do not count.
        """
        if call.left_to_wrapper or open_call() is not None:
            return
        if root.kind == "chain":
            grader = any(map(is_grader_prompt, call.prompts()))
            if call.given or is_grade(outputs, "" if grader else call.question):
                return
            if len(call.keys) == 1 and call.question and type(outputs) in (str, dict):
                if answer_of(outputs) not in (None, "", call.question):
                    self._uncaptured.note("root", call.name or root.kind)
                return
            call.read_tool_results()
            prompts = call.prompts() if call.question else ()
            earlier = {name: bool(documents) for name, _, documents in call.earlier}
            self._uncaptured.note_answered(call.tools, prompts, earlier)
        elif call.found_any:
            self._uncaptured.note("retriever", call.name or root.kind)

    def _forget(self, calls: list[RootRun]) -> None:
        """Forget the runs of ended calls; their later events are ignored."""
        for call in calls:
            for key in call.keys:
                if self._runs.pop(key, None) is not None:
                    self._note_late(key)

    def _note_late(self, key: int) -> None:
        """Remember a run that goes on after its call; the oldest of too many are forgotten."""
        self._late[key] = self._late.get(key, 0) + 1
        while len(self._late) > _MAX_LATE:
            self._late.pop(next(iter(self._late)), None)


def _callbacks_here() -> Any:
    """Return the callback manager of this context's runs; None without one."""
    return _config_here().get("callbacks")


def _config_here() -> Mapping[str, Any]:
    """Return the config of this context's runs; empty without one."""
    module = sys.modules.get("langchain_core.runnables.config")
    return (None if module is None else module.var_child_runnable_config.get()) or {}


# --- LangGraph's interrupt events, which it sends only to subclasses of its own handler


def told_of_interrupts(kind: type) -> type:
    """Return the subclass of a handler class that LangGraph tells of interrupts.

    Returns:
        The class itself where LangGraph is not loaded (that takes a second and 570 modules, which
        only an app with a graph needs), or is older than these events.
    """
    base = getattr(sys.modules.get("langgraph.callbacks"), "GraphCallbackHandler", None)
    return kind if base is None or issubclass(kind, base) else _with_base(kind, base)


@cache
def _with_base(kind: type, base: type) -> type:
    """Return a class with another base, under the same name."""
    about = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind.__name__, (kind, base), about)


# --- LangChain's callback interface


class CallEvents(CallRuns):
    """The callback methods of LangChain; each one opens, updates or closes a run."""

    raise_error = False
    # LangChain reads these before every event; in the base class they are slower properties.
    ignore_llm = False
    ignore_chat_model = False
    ignore_chain = False
    ignore_retriever = False
    ignore_agent = False  # this one covers tools
    ignore_retry = True
    ignore_custom_event = True

    def __new__(cls, *args: object, **options: object) -> Self:
        """Make a handler that hears of interrupts as well if LangGraph is loaded by now."""
        handler: Self = super().__new__(told_of_interrupts(cls))
        return handler

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Open a run and record the documents in its inputs; open a call if it is a root."""
        parent = None if parent_run_id is None else self._runs.get(parent_run_id.int)
        if parent is not None:  # the most frequent event, on the shortest path
            if not SUPPRESSED.get():
                call, key = parent.call, run_id.int
                self._runs[key] = run = Run(call, parent, "chain")
                call.keys.append(key)
                if not call.traces.begun:
                    self._ask_tracers(call)
                if type(inputs) is not str:
                    self._record_documents(run, inputs, tags)
            return
        about = {"parent_run_id": parent_run_id, "tags": tags, "metadata": metadata, "name": name}
        self._open_run("chain", inputs, run_id, about)

    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Close a run and record its documents; for a stream, this event has the true inputs."""
        key = run_id.int
        run = self._runs.get(key)
        if run is not None and run.parent is not None:
            self._runs.pop(key, None)  # it may just have been dropped
            if run.parent.parent is None:
                run.call.last_output = outputs
            if inputs is not None:
                self._record_documents(run, inputs)
            if not isinstance(outputs, str):
                self._record_documents(run, outputs)
            return
        self._close_run(run_id, outputs, inputs, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed run, with the inputs if the event has them."""
        self._close_run(run_id, None, kwargs.get("inputs"), error)

    def on_retriever_start(
        self, serialized: dict[str, Any], query: str, *, run_id: UUID, **about: Any
    ) -> None:
        """Open a retriever's run."""
        self._open_run("retriever", query, run_id, about)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a retriever's run and record its documents."""
        self._close_run(run_id, documents, None, None)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed retriever's run."""
        self._close_run(run_id, None, None, error)

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **about: Any
    ) -> None:
        """Open a tool's run."""
        if about.get("name") is None and serialized:
            about["name"] = serialized.get("name")
        self._open_run("tool", input_str, run_id, about)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a tool's run; its output, or its message's artifact, may hold documents."""
        self._close_run(run_id, output, None, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed tool's run."""
        self._close_run(run_id, None, None, error)

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[Any]], *, run_id: UUID, **about: Any
    ) -> None:
        """Open a chat model's run and keep the text of its prompt."""
        self._open_run("llm", messages, run_id, about)

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **about: Any
    ) -> None:
        """Open a completion model's run and keep its prompt."""
        self._open_run("llm", prompts, run_id, about)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep a streamed token: the response of an aborted call is the text so far."""
        run = self._runs.get(run_id.int)
        text = content_text(token)  # a list for models that write blocks
        if run is not None and run.asked is not None and text:
            run.asked.tokens.append(text)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a model's run and keep its text."""
        self._close_run(run_id, response, None, None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed model's run and keep the text that it had generated."""
        self._close_run(run_id, kwargs.get("response"), None, error)

    def on_interrupt(self, event: Any) -> None:
        """Note that a graph waits at a breakpoint; LangGraph calls this, see `__new__`."""
        run_id = getattr(event, "run_id", None)
        run = None if run_id is None else self._runs.get(run_id.int)
        if run is not None:
            run.call.interrupted = True
