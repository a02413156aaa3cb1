"""Stage 1, one LangChain call: its tree of runs while it is open, and the `RagCall` at its end.

The context is what the model saw. Lists of documents are sighted wherever they pass (outputs of
outermost retrievers, inputs and outputs of chains, artifacts of tools) and verified against the
text of the final prompt; runs that failed, such as the first attempts of a retry, do not count.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Literal, NamedTuple
from uuid import UUID

from rag_eval_integrations._observe import (
    Context,
    Place,
    Seen,
    distinct,
    json_object,
    reached,
    to_call,
)
from rag_eval_integrations.langchain.extract import (
    answer_of,
    documents_of,
    generated_text,
    prompt_texts,
    question_of,
    snapshot,
    starts_stream,
    text_of_document,
)
from rag_eval_integrations.records import CaptureStatus, DocumentsFrom, RagCall

Kind = Literal["chain", "retriever", "llm", "tool"]


class Run:
    """One run of a call: a node of its tree."""

    __slots__ = ("call", "failed", "in_retriever", "kind", "parent", "tokens")

    def __init__(self, call: Call, parent: Run | None, kind: Kind) -> None:
        self.call = call
        self.parent = parent
        self.kind = kind
        self.failed = False
        self.in_retriever: bool = parent is not None and (
            parent.kind == "retriever" or parent.in_retriever
        )
        self.tokens: list[str] = []
        """Streamed so far, by a model."""

    def counts(self) -> bool:
        """Whether what happened here is part of the answer.

        False under a failure that something above got over (a retry, a fallback). A failure that
        went up to the root is the call's own: all that led to it counts.
        """
        run: Run | None = self
        while run is not None:
            if run.failed and run.parent is not None and not run.parent.failed:
                return False
            run = run.parent
        return True


class Sighting(NamedTuple):
    """A list of documents that passed."""

    run: Run
    documents: tuple[Seen, ...]
    retrieved: bool
    """Whether it is an outermost retriever's output."""


class Retrieval(NamedTuple):
    """An outermost retriever that was started."""

    run: Run
    name: str
    query: str


class Asked(NamedTuple):
    """A model that was started."""

    run: Run
    prompt: tuple[str, ...]
    sightings: int
    """How many sightings came before."""


class Call:
    """A root run and all that was seen under it."""

    def __init__(
        self,
        run_id: UUID,
        name: object,
        inputs: object,
        tags: Iterable[str] | None,
        metadata: Mapping[Any, object] | None,
    ) -> None:
        self._run_id = run_id
        self.began = time.monotonic()
        self.open: set[int] = set()
        """Keys of the runs that have not ended."""
        self.interrupted = False
        self.any_failed = False
        self.streaming = starts_stream(inputs)
        self._started_at = datetime.now(UTC)
        self._name = name if isinstance(name, str) else None
        self._tags = tuple(map(str, tags)) if tags else ()
        self._metadata = metadata or {}
        # Read now: what the app gave may have grown by the end (a list of messages, a state).
        self._question = "" if self.streaming else question_of(inputs)
        self._snapshots: dict[int, tuple[object, str, Seen]] = {}
        self._given = () if self.streaming else self._take(inputs)
        self._sightings: list[Sighting] = []
        self._retrievers: list[Retrieval] = []
        self._asked: list[Asked] = []
        self._answered: list[tuple[Run, str | None]] = []

    # --- while it is open -------------------------------------------------------------------

    def started(self, run: Run, inputs: object, name: object) -> None:
        """Note a run's start. What happens inside of a retriever is the retriever's affair."""
        if run.in_retriever:
            return
        if run.kind == "llm":
            self._asked.append(Asked(run, prompt_texts(inputs), len(self._sightings)))
        elif run.kind == "retriever":
            self._retrievers.append(Retrieval(run, str(name or "retriever"), str(inputs)))
        elif run.parent is not None:  # the root's own inputs are `_given`
            self._sight(run, inputs)

    def ended(self, run: Run, outputs: object, inputs: object, error: BaseException | None) -> None:
        """Note a run's end; of a stream, the true inputs come only now."""
        if error is not None:
            run.failed, interrupted = _failure(error)
            self.interrupted = self.interrupted or interrupted
            self.any_failed = self.any_failed or run.failed
        if run.in_retriever:
            return
        if run.kind == "llm":
            self._answered.append((run, generated_text(outputs) or "".join(run.tokens) or None))
            return
        if inputs is not None and run.parent is not None:
            self._sight(run, inputs)
        if error is None:
            self._sight(run, outputs)
            if run.kind == "tool":
                self._sight(run, getattr(outputs, "artifact", None))

    def _sight(self, run: Run, value: object) -> None:
        if type(value) is str or value is None:
            return
        documents = self._take(value)
        if documents or run.kind == "retriever":
            self._sightings.append(Sighting(run, documents, run.kind == "retriever"))

    def _take(self, value: object) -> tuple[Seen, ...]:
        # The same objects pass through many runs. The first snapshot stands until the app puts
        # another text into the object; holding the object keeps its id() from being given away.
        taken = []
        for item in documents_of(value):
            document, score = item if type(item) is tuple else (item, None)
            text = text_of_document(document)
            known = self._snapshots.get(id(document))
            if known is None or known[1] is not text:
                known = (document, text, snapshot(document, score))
                self._snapshots[id(document)] = known
            taken.append(known[2])
        return tuple(taken)

    # --- at its end -------------------------------------------------------------------------

    def finish(
        self, root: Run, outputs: object, inputs: object, error: BaseException | None
    ) -> RagCall | None:
        """Make the record; None when this was no RAG call. The call cannot be used any more."""
        try:
            return self._record(root, outputs, inputs, error)
        finally:
            # Runs and their call know each other: without this, only the garbage collector
            # would take them, and with them the app's documents.
            for kept in (self._sightings, self._asked, self._answered, self._retrievers):
                kept.clear()
            self._snapshots.clear()

    def _record(
        self, root: Run, outputs: object, inputs: object, error: BaseException | None
    ) -> RagCall | None:
        latency = time.monotonic() - self.began
        if inputs is not None and not starts_stream(inputs):
            self._question = question_of(inputs) or self._question
            self._given = self._given or self._take(inputs)
        if root.kind == "retriever" or not (self._retrievers or self._sightings or self._given):
            return None
        asked, retrievers = self._asked, self._retrievers
        if self.any_failed:
            asked = [one for one in asked if one.run.counts()]
            retrievers = [one for one in retrievers if one.run.counts()]
        question = self._question or (retrievers[0].query if retrievers else "")
        status = self._status(outputs, error, asked)
        return to_call(
            self._context(asked, question),
            {
                "framework": "langchain",
                "run_id": str(self._run_id),
                "status": status,
                "latency_s": latency,
                "tags": self._tags,
                "metadata": json_object(self._metadata),
                "retrievers": tuple([one.name for one in retrievers]),
            },
            question=question,
            response=self._response(status, outputs, asked),
            started_at=self._started_at,
            app=self._name,
        )

    def _status(
        self, outputs: object, error: BaseException | None, asked: list[Asked]
    ) -> CaptureStatus:
        if self.interrupted:
            return "interrupted"
        if error is not None:
            return "error" if isinstance(error, Exception) else "aborted"
        if self.streaming and (outputs is None or (asked and self._is_open(asked[-1].run))):
            # A closed sync stream ends its root like a success, with no output or the output so
            # far (measured on 1.7.2); its model has not ended then.
            return "aborted"
        return "ok"

    def _is_open(self, run: Run) -> bool:
        return all(done is not run for done, _ in self._answered)

    def _response(self, status: CaptureStatus, outputs: object, asked: list[Asked]) -> str | None:
        if status == "error":
            return None
        answer = answer_of(outputs)
        if status == "interrupted" or (status == "ok" and answer is not None):
            return answer
        if status == "aborted" and asked and self._is_open(asked[-1].run):
            generated = "".join(asked[-1].run.tokens or ()) or None
        else:
            generated = next((text for run, text in reversed(self._answered) if run.counts()), None)
        # The root of a closed stream misses the last chunk that the app was given.
        return generated if answer is None or (generated or "").startswith(answer) else answer

    def _context(self, asked: list[Asked], question: str) -> Context:
        before = self._sightings[: asked[-1].sightings] if asked else self._sightings
        sightings = self._sightings
        if self.any_failed:
            before = [one for one in before if one.run.counts()]
            sightings = [one for one in sightings if one.run.counts()]
        candidates = distinct([*self._given, *(s for one in sightings for s in one.documents)])
        verified = _in_prompt(candidates, asked[-1:], question) or _in_prompt(
            candidates, asked, question
        )
        source: DocumentsFrom
        if verified and all(place.whole for _, place in verified):
            documents, source = [seen for seen, _ in verified], "prompt"
        else:
            documents, source = _flow(before or sightings, self._given)
        if len(documents) == len(candidates):
            return Context(documents, source, ())
        used = {seen.text for seen in documents}
        retrieved = distinct(s for one in sightings if one.retrieved for s in one.documents)
        return Context(
            documents, source, [seen for seen in retrieved or candidates if seen.text not in used]
        )


def _in_prompt(
    candidates: list[Seen], asked: list[Asked], question: str
) -> list[tuple[Seen, Place]]:
    """The candidates that models were shown, in the order of the prompt."""
    if not candidates or not asked:
        return []
    prompt = "\n".join(text for one in asked for text in one.prompt)
    places = reached([seen.text for seen in candidates], prompt, question)
    found = [(seen, place) for seen, place in zip(candidates, places, strict=True) if place]
    return sorted(found, key=itemgetter(1))


def _flow(sightings: list[Sighting], given: tuple[Seen, ...]) -> tuple[list[Seen], DocumentsFrom]:
    """The documents that flowed on last, where the prompt does not tell.

    A list takes the place of the earlier lists that it is a part of, or that are a part of it: so
    a reranker's output replaces its input, and two retrievers side by side both stay.
    """
    if not any(one.documents for one in sightings):
        if given:
            return distinct(given), "dataflow"
        return [], "retriever" if any(one.retrieved for one in sightings) else "none"
    live: list[tuple[Sighting, set[str]]] = []
    for one in sightings:
        texts = {seen.text for seen in one.documents}
        if texts and not one.retrieved:
            live = [kept for kept in live if not (texts <= kept[1] or kept[1] <= texts)]
        if texts:
            live.append((one, texts))
    last, texts = live[-1]
    retrieved = [one for one in sightings if one.retrieved]
    if not any(seen.text in texts for one in retrieved for seen in one.documents):
        live = [(last, texts)]  # rewritten on the way, or found by a plain function
    source: DocumentsFrom = "retriever" if all(one.retrieved for one, _ in live) else "dataflow"
    return distinct(seen for one, _ in live for seen in one.documents), source


def _failure(error: BaseException) -> tuple[bool, bool]:
    """Whether an error means that a run failed, and whether a graph waits for its user.

    LangGraph steers by exceptions (a pause, a jump to another graph); its classes are known by
    name, so that it need not be imported.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return "GraphBubbleUp" not in names, "GraphInterrupt" in names
