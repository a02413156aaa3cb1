"""Stage 1 for LangChain, its events: each only says which; what they do is in `runs`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rag_eval_integrations._suppress import SUPPRESSED
from rag_eval_integrations.langchain.runs import CallRuns
from rag_eval_integrations.langchain.tree import Run


class CallEvents(CallRuns):
    """LangChain's events, turned into calls that are delivered when they end."""

    run_inline = True  # on the loop's thread: an event takes ~2 µs, a hop to a thread ~50
    raise_error = False
    # LangChain asks before every event; the base class answers with properties.
    ignore_llm = False
    ignore_chat_model = False
    ignore_chain = False
    ignore_retriever = False
    ignore_agent = False  # tools go by this name
    ignore_retry = True
    ignore_custom_event = True

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
        """Open a run; documents in its inputs are sighted."""
        parent = None if parent_run_id is None else self._runs.get(parent_run_id.int)
        if parent is not None:  # most of all events; this is the shortest way
            if not SUPPRESSED.get():
                call, key = parent.call, run_id.int
                self._runs[key] = run = Run(call, parent, "chain")
                call.keys.append(key)
                if type(inputs) is not str:
                    self._passed(run, inputs, tags)
            return
        about = {"parent_run_id": parent_run_id, "tags": tags, "metadata": metadata, "name": name}
        self._open("chain", inputs, run_id, about)

    def on_chain_end(
        self, outputs: Any, *, run_id: UUID, inputs: Any = None, **kwargs: Any
    ) -> None:
        """Close a run; of a stream, the true inputs come only now."""
        key = run_id.int
        run = self._runs.get(key)
        if run is not None and run.parent is not None:
            self._runs.pop(key, None)  # it may just have been dropped
            if inputs is not None:
                self._passed(run, inputs)
            if not isinstance(outputs, str):
                self._passed(run, outputs)
            return
        self._close(run_id, outputs, inputs, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed run."""
        self._close(run_id, None, kwargs.get("inputs"), error)

    def on_retriever_start(
        self, serialized: dict[str, Any], query: str, *, run_id: UUID, **about: Any
    ) -> None:
        """Open a retriever's run."""
        self._open("retriever", query, run_id, about)

    def on_retriever_end(self, documents: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a retriever's run and take what it found."""
        self._close(run_id, documents, None, None)

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed retriever's run."""
        self._close(run_id, None, None, error)

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **about: Any
    ) -> None:
        """Open a tool's run."""
        self._open("tool", input_str, run_id, about)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a tool's run; its output, or its message's artifact, may hold documents."""
        self._close(run_id, output, None, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed tool's run."""
        self._close(run_id, None, None, error)

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[Any]], *, run_id: UUID, **about: Any
    ) -> None:
        """Open a chat model's run and keep the text of its prompt."""
        self._open("llm", messages, run_id, about)

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **about: Any
    ) -> None:
        """Open a completion model's run and keep its prompt."""
        self._open("llm", prompts, run_id, about)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Keep a streamed token: an aborted call's response is what had come so far."""
        run = self._runs.get(run_id.int)
        if run is not None and run.asked is not None and isinstance(token, str):
            run.asked.tokens.append(token)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a model's run and keep its text."""
        self._close(run_id, response, None, None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Close a failed model's run and keep what it had generated."""
        self._close(run_id, kwargs.get("response"), None, error)

    def on_interrupt(self, event: Any) -> None:
        """Note that a graph waits at a breakpoint; LangGraph calls it, see `graphs`."""
        run_id = getattr(event, "run_id", None)
        run = None if run_id is None else self._runs.get(run_id.int)
        if run is not None:
            run.call.interrupted = True
