"""Stage 1, the tree of one LlamaIndex call: which spans matter, and what each one is.

Most spans do not matter (embedding, splitting, the private halves of methods). They stand in the
tree as their nearest ancestor that does, which costs one entry in a dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rag_eval_integrations.llama_index._chat import Writing

Stage = Literal[
    "answer", "begin", "judge", "model", "postprocess", "retrieve", "synthesize", "tool", "write"
]

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
    "init_run": "begin",  # an agent's first step, which puts its messages together
    "call": "tool",
    "acall": "tool",
    "write_response_to_history": "write",  # what fills a chat engine's stream
    "awrite_response_to_history": "write",
}
ROOTS = frozenset({"answer", "retrieve"})
"""Stages that open a call. A retriever's is closed to what is under it, and never delivered; the
same holds for a `judge`, which is a query that an evaluator asks."""
HELPERS = frozenset({"judge", "postprocess", "retrieve"})
"""Stages whose models do not write the answer."""

CHATS = frozenset({"chat", "achat", "stream_chat", "astream_chat"})
# What happens inside of these is their own affair, whatever they call.
_CLOSED = HELPERS | {"model"}


_KNOWN: dict[str, Stage | None] = {}
_MAX_KNOWN = 10_000


def stage_of(span_id: str, instance: object) -> Stage | None:
    """The stage that a span's name tells; None for a span that does not matter."""
    name = span_id[:-37]  # Class.method-<uuid of 36 characters>
    try:
        stage = _KNOWN[name]
    except KeyError:
        if len(_KNOWN) >= _MAX_KNOWN:
            _KNOWN.clear()
        stage = _KNOWN[name] = STAGES.get(name.rpartition(".")[2])
    if stage == "answer" and name.endswith("chat") and hasattr(instance, "complete"):
        return "model"  # chat engines and models name their methods alike
    return stage


class Span:
    """One span that matters."""

    __slots__ = ("arguments", "closed", "failed", "id", "parent", "scope", "stage", "writing")

    def __init__(self, span_id: str, parent: Span | None, stage: Stage) -> None:
        self.id = span_id
        self.parent = parent
        self.stage = stage
        self.closed = stage in _CLOSED
        self.failed = False
        self.arguments: Mapping[str, object] | None = None
        """A model's arguments, as long as no event has told its prompt."""
        self.writing: Writing | None = None
        self.scope: Span = self if parent is None or stage in ("answer", "tool") else parent.scope
        """The nearest query, chat, run or tool: what belongs together."""

    def is_in_synthesis(self) -> bool:
        """Whether a synthesizer of the same query asked for this."""
        span: Span | None = self
        while span is not None and span is not self.scope:
            if span.stage == "synthesize":
                return True
            span = span.parent
        return False

    def alive(self) -> bool:
        """Whether nothing that this is a part of has failed: an app may try again elsewhere."""
        span: Span | None = self
        while span is not None:
            # The root's own failure ends the call; what was seen until then stands.
            if span.failed and span.parent is not None:
                return False
            span = span.parent
        return True
