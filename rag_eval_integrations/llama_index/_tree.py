"""Stage 1 for LlamaIndex: the tree of a call's relevant spans, each with its stage.

Most spans are not relevant (embedding, splitting, private methods). They are mapped to their
nearest relevant ancestor, which takes one entry in a dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rag_eval_integrations.records.call import CaptureStatus

Stage = Literal[
    "answer",
    "begin",
    "judge",
    "model",
    "own",
    "postprocess",
    "retrieve",
    "synthesize",
    "tool",
    "write",
]

# `own` is a method of the app that has the name of a retriever's or a postprocessor's.
STAGES: Mapping[str, Stage] = {
    "query": "answer",
    "aquery": "answer",
    "chat": "answer",
    "achat": "answer",
    "stream_chat": "answer",
    "astream_chat": "answer",
    "run": "answer",
    "retrieve": "retrieve",
    "aretrieve": "retrieve",
    "postprocess_nodes": "postprocess",
    "_postprocess_nodes": "postprocess",
    "apostprocess_nodes": "postprocess",
    "_apostprocess_nodes": "postprocess",
    "synthesize": "synthesize",
    "asynthesize": "synthesize",
    "complete": "model",
    "acomplete": "model",
    "stream_complete": "model",
    "astream_complete": "model",
    "init_run": "begin",  # an agent's first step, which composes its messages
    "call": "tool",
    "acall": "tool",
    "write_response_to_history": "write",  # the writer of a chat engine's stream
    "awrite_response_to_history": "write",
}
ROOTS = frozenset({"answer", "retrieve"})
"""Stages that open a call. A call that starts with `retrieve`, or with `judge` (the query of an
evaluator), ignores the spans under it and is never delivered."""
HELPERS = frozenset({"judge", "postprocess", "retrieve"})
"""Stages whose models do not write the answer."""

CHATS = frozenset({"chat", "achat", "stream_chat", "astream_chat"})
# Spans under these stages are internal, and ignored.
_CLOSED = HELPERS | {"model"}


_BASES: Mapping[Stage, frozenset[str]] = {
    "retrieve": frozenset({"BaseRetriever", "BaseImageRetriever", "BaseQueryEngine"}),
    "postprocess": frozenset({"BaseNodePostprocessor"}),
    "synthesize": frozenset({"BaseSynthesizer", "BaseQueryEngine"}),
    "model": frozenset({"BaseLLM", "BaseLLMPredictor", "MultiModalLLM"}),
    "tool": frozenset({"BaseTool"}),
}
"""LlamaIndex's base classes, of which an object has one if its methods are of this stage.

An app's own methods, the steps of its workflows above all, may have the same names.
"""
_FINDS = frozenset({"postprocess", "retrieve"})
_MODEL_METHODS = ("complete", "acomplete", "stream_complete", "chat", "achat", "stream_chat")

_KNOWN: dict[tuple[str, type], Stage | None] = {}
_MAX_KNOWN = 10_000


def stage_of(span_id: str, instance: object) -> Stage | None:
    """Return the stage of a span; None for a span that is not relevant.

    Args:
        span_id: id of the span, which begins with the names of class and method.
        instance: the object whose method it is; None for a function and for a workflow's step.
    """
    name = span_id[:-37]  # Class.method-<uuid of 36 characters>
    kind = type(instance)
    try:
        return _KNOWN[name, kind]
    except KeyError:
        if len(_KNOWN) >= _MAX_KNOWN:
            _KNOWN.clear()
        stage = _KNOWN[name, kind] = _stage_of(name.rpartition(".")[2], instance)
        return stage


def _stage_of(method: str, instance: object) -> Stage | None:
    """Return the stage of a method, by its name and the classes of its object.

    Outside of LlamaIndex's classes, a method that is named like one which finds nodes has the stage
    `own`; other methods have none, except for those of an object that looks like a model.
    """
    stage = STAGES.get(method)
    if stage == "answer" and method.endswith("chat") and hasattr(instance, "complete"):
        stage = "model"  # chat engines and models have methods of the same names
    if stage is None or stage not in _BASES:
        return stage
    if any(
        base.__name__ in _BASES[stage] and base.__module__.startswith("llama_index.")
        for base in type(instance).__mro__
    ):
        return stage
    if stage in _FINDS:
        return "own"  # the nodes that it returns count, and so does everything inside
    methods = [name for name in _MODEL_METHODS if hasattr(instance, name)]
    return stage if stage == "model" and len(methods) > 1 else None


class Writing:
    """The text that a chat engine has written into one stream so far."""

    def __init__(self, response: object) -> None:
        self.response = response
        self.status: CaptureStatus | None = None
        """How the writing ended; None while it goes on."""
        self._deltas: list[str] = []

    def add(self, delta: object) -> None:
        """Append a piece of text."""
        if isinstance(delta, str):
            self._deltas.append(delta)

    def end(self, status: CaptureStatus) -> None:
        """Record how the writing ended; only the first end counts."""
        self.status = self.status or status

    @property
    def text(self) -> str | None:
        """The whole text; the part so far if the stream was cut off; None if it failed."""
        text = "".join(self._deltas)
        if self.status == "ok":
            return text
        return (text or None) if self.status == "aborted" else None


class Span:
    """One relevant span."""

    __slots__ = ("arguments", "closed", "failed", "id", "parent", "scope", "stage", "writing")

    def __init__(self, span_id: str, parent: Span | None, stage: Stage) -> None:
        self.id = span_id
        self.parent = parent
        self.stage = stage
        self.closed = stage in _CLOSED
        self.failed = False
        self.arguments: Mapping[str, object] | None = None
        """A model's arguments, until an event has reported its prompt."""
        self.writing: Writing | None = None
        self.scope: Span = self if parent is None or stage in ("answer", "tool") else parent.scope
        """The nearest enclosing query, chat, run or tool; spans with the same one go together."""

    def is_in_synthesis(self) -> bool:
        """Return whether this span, or one above it in the same query, is a synthesizer."""
        span: Span | None = self
        while span is not None and span is not self.scope:
            if span.stage == "synthesize":
                return True
            span = span.parent
        return False

    def prepares(self, synthesis: Span) -> bool:
        """Return whether this model prepares a synthesis: for the same query, outside of one."""
        return self.scope is synthesis.scope and not self.is_in_synthesis()

    def is_below(self, other: Span) -> bool:
        """Return whether this span is another one, or runs inside it."""
        span: Span | None = self
        while span is not None and span is not other:
            span = span.parent
        return span is not None

    def alive(self) -> bool:
        """Return whether neither this span nor one above it has failed, except for the root.

        An app may recover from such a failure by another attempt.
        """
        span: Span | None = self
        while span is not None:
            # The failure of the root ends the call; the spans until then count.
            if span.failed and span.parent is not None:
                return False
            span = span.parent
        return True
