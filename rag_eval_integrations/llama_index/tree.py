"""Stage 1, one LlamaIndex call: its tree of spans while it is open, and the `RagCall` at its end.

The context is what reached synthesis: the response's source nodes, after all postprocessors, and
verified against the prompts of the models that wrote the answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from inspect import BoundArguments
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from rag_eval_integrations._observe import Context, Seen, distinct, json_object, reached, to_call
from rag_eval_integrations.llama_index.extract import (
    Scored,
    nodes_of,
    question_of,
    raw_text,
    snapshot,
)
from rag_eval_integrations.records import CaptureStatus, DocumentsFrom, RagCall

Stage = Literal["retrieve", "postprocess", "synthesize", ""]

ENTRIES = frozenset({"query", "aquery"})
"""Methods that open a call."""

_STAGES: Mapping[str, Stage] = {
    "retrieve": "retrieve",
    "aretrieve": "retrieve",
    "postprocess_nodes": "postprocess",
    "_postprocess_nodes": "postprocess",
    "apostprocess_nodes": "postprocess",
    "_apostprocess_nodes": "postprocess",
    "synthesize": "synthesize",
    "asynthesize": "synthesize",
}


class Span:
    """One span of a call: a node of its tree."""

    __slots__ = ("call", "opens", "parent", "stage")

    def __init__(self, call: Call, parent: Span | None, method: str) -> None:
        self.call = call
        self.parent = parent
        inherited: Stage = "" if parent is None else parent.stage
        stage = _STAGES.get(method, "")
        self.opens: Stage = stage if not inherited else ""
        """The stage that this span is the outermost of."""
        # What happens inside of a retriever is the retriever's affair, whatever it calls.
        self.stage: Stage = inherited or stage


class Retrieval(NamedTuple):
    """An outermost retriever's output."""

    name: str
    nodes: tuple[Seen, ...]


class Call:
    """A root span and all that was seen under it."""

    def __init__(
        self,
        span_id: str,
        bound_args: BoundArguments,
        tags: Mapping[Any, object] | None,
    ) -> None:
        self.key = span_id
        self.began = time.monotonic()
        self.open: set[str] = set()
        """Ids of the spans that have not ended."""
        self.streaming = False
        """Whether the root has ended and the app now reads the stream."""
        self._started_at = datetime.now(UTC)
        self._app = span_id[:-37].rpartition(".")[0] or None
        self._metadata = json_object(tags) if tags else {}
        self._question = question_of(bound_args)
        self._snapshots: dict[int, tuple[object, object, Seen]] = {}
        self._retrievals: list[Retrieval] = []
        self._retrievers: list[str] = []
        self._synthesized: tuple[Seen, ...] = ()
        self._sources: tuple[Seen, ...] = ()
        self._prompts: list[str] = []

    # --- while it is open -------------------------------------------------------------------

    def entered(self, span: Span, bound_args: BoundArguments, instance: object) -> None:
        """Note a span's start: retrievers, and the nodes that reach synthesis."""
        if span.opens == "retrieve":
            self._retrievers.append(type(instance).__name__)
        elif span.opens == "synthesize":
            self._synthesized = self._take(bound_args.arguments.get("nodes"))

    def left(self, span: Span, instance: object, result: object) -> None:
        """Note a span's result: what an outermost retriever found, what the root rests on."""
        if span.opens == "retrieve":
            self._retrievals.append(Retrieval(type(instance).__name__, self._take(result)))
        elif span.parent is None:
            self._sources = self._take(result)

    def asked(self, span: Span | None, prompt: str) -> None:
        """Note a model's prompt, unless the model only helps to retrieve or to rerank."""
        if span is None or span.stage not in ("retrieve", "postprocess"):
            self._prompts.append(prompt)

    def _take(self, value: object) -> tuple[Seen, ...]:
        return tuple([self._snapshot(scored) for scored in nodes_of(value)])

    def _snapshot(self, scored: Scored) -> Seen:
        # The same nodes pass through many spans; some postprocessors put another text into them.
        # Holding the node keeps its id() from being given away.
        raw = raw_text(scored.node)
        known = self._snapshots.get(id(scored.node))
        if known is not None and known[1] is raw:
            seen = known[2]
            return seen if seen.score == scored.score else seen._replace(score=scored.score)
        seen = snapshot(scored)
        self._snapshots[id(scored.node)] = (scored.node, raw, seen)
        return seen

    # --- at its end -------------------------------------------------------------------------

    def finish(self, status: CaptureStatus, response: str | None) -> RagCall | None:
        """Make the record; None when this was no RAG call. The call cannot be used any more."""
        latency = time.monotonic() - self.began
        retrieved = distinct(seen for one in self._retrievals for seen in one.nodes)
        flowed = distinct(self._sources or self._synthesized)
        self._snapshots.clear()
        if not (self._retrievers or flowed):
            return None
        return to_call(
            self._context(flowed, retrieved),
            {
                "framework": "llama_index",
                "run_id": self.key,
                "status": status,
                "latency_s": latency,
                "metadata": self._metadata,
                "retrievers": tuple(self._retrievers),
            },
            question=self._question,
            response=response,
            started_at=self._started_at,
            app=self._app,
        )

    def _context(self, flowed: list[Seen], retrieved: list[Seen]) -> Context:
        documents: Sequence[Seen] = flowed or retrieved
        if not documents:
            return Context((), "retriever" if self._retrievals else "none", ())
        # All prompts together: an answer is refined, or summed up, in several requests.
        places = reached(
            [seen.text for seen in documents], "\n".join(self._prompts), self._question
        )
        found = [(seen, place) for seen, place in zip(documents, places, strict=True) if place]
        source: DocumentsFrom = "dataflow" if flowed else "retriever"
        if found and all(place.whole for _, place in found):
            documents, source = [seen for seen, _ in sorted(found, key=itemgetter(1))], "prompt"
        used = {seen.text for seen in documents}
        return Context(documents, source, [seen for seen in retrieved if seen.text not in used])
