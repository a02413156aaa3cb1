"""Stage 1, one LangChain call while it is open: its tree of runs, and what was seen under it.

Every event of the app passes here, so that each does as little as it can: most carry no documents,
and are only put into the tree. What it all means is told once, at the end (`finish`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

from rag_eval_integrations.capture._calls import Seen
from rag_eval_integrations.langchain._documents import (
    copied,
    documents_of,
    is_document,
    may_hold_documents,
    single_documents,
    text_and_metadata,
)
from rag_eval_integrations.langchain._hooks import Hooks, HooksOfCall
from rag_eval_integrations.langchain._values import (
    generated_text,
    history_of,
    is_command,
    named_history,
    prompt_texts,
    question_of,
    starts_stream,
    tool_arguments,
)
from rag_eval_integrations.records import Turn

Kind = Literal["chain", "retriever", "llm", "tool"]


class Run:
    """One run of a call: a node of its tree."""

    __slots__ = ("asked", "call", "failed", "hides", "in_retriever", "kind", "parent")

    def __init__(self, call: Call, parent: Run | None, kind: Kind) -> None:
        self.call = call
        self.parent = parent
        self.kind = kind
        self.failed = False
        self.asked: Asked | None = None
        """What a model was asked."""
        self.in_retriever = inside = parent is not None and parent.hides
        self.hides: bool = inside or kind == "retriever"
        """Whether what happens below is a retriever's affair."""

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
    carried: bool = False
    """Whether a graph's state had it before anything was retrieved in this call."""
    alone: bool = False
    """Whether it is no list but a single document."""


class Retrieval(NamedTuple):
    """An outermost retriever that was started."""

    run: Run
    name: str
    query: str


class Asked:
    """A model that was started, and what it wrote."""

    __slots__ = ("arguments", "is_open", "prompt", "run", "sightings", "text", "tokens")

    def __init__(self, run: Run, prompt: tuple[str, ...], sightings: int) -> None:
        self.run = run
        self.prompt = prompt
        self.sightings = sightings
        """How many sightings came before."""
        self.is_open = True
        self.text: str | None = None
        self.arguments: object = None
        """Of the only tool that it called: so models give structured answers."""
        self.tokens: list[str] = []
        """Streamed so far."""

    def written(self) -> str | None:
        """All that is known of what it wrote."""
        return self.text or "".join(self.tokens) or None


class Call:
    """A root run and all that was seen under it."""

    def __init__(
        self,
        run_id: UUID,
        name: object,
        inputs: object,
        tags: Iterable[str] | None,
        metadata: Mapping[Any, object] | None,
        hooks: Hooks | None,
    ) -> None:
        self.began = time.monotonic()
        self.run_id = run_id
        self.started_at = time.time()
        self.name = name if isinstance(name, str) else None
        self.tags = tags
        self.metadata = metadata
        self.keys: list[int] = []
        """Of all its runs, ended or not."""
        self.interrupted = False
        self.any_failed = False
        self.hooks = None if hooks is None else HooksOfCall(hooks)
        self.sightings: list[Sighting] = []
        self.retrievals: list[Retrieval] = []
        self.asked: list[Asked] = []
        self.candidates: dict[str, Seen] = {}
        """All documents seen, by text, in the order of their first appearance."""
        self._snapshots: dict[int, tuple[object, str, int, Seen]] = {}
        self.question = ""
        self.given: tuple[Seen, ...] = ()
        """Documents in the root's inputs."""
        self.history: tuple[Turn, ...] = ()
        self.inputs: object = None
        self.resumed = inputs is None or is_command(inputs)
        """Whether a graph goes on after a pause."""
        self.streaming = type(inputs) is dict and starts_stream(inputs)
        if not self.streaming:
            self.read_inputs(inputs)

    def read_inputs(self, inputs: object) -> None:
        """Read the root's inputs: at once, since what the app gave may grow before the end."""
        hooked = None
        if self.hooks is not None:
            self.inputs = inputs
            hooked = self.hooks.question(inputs)
        if type(inputs) is str:
            self.question = inputs if hooked is None else hooked
            return
        self.question = (question_of(inputs) or self.question) if hooked is None else hooked
        self.history = history_of(inputs)
        if not self.given and may_hold_documents(inputs):
            found = documents_of(inputs)
            # One document and no question is something to be indexed.
            self.given = self._take(found or single_documents(inputs) if self.question else found)

    def started(self, run: Run, inputs: object, name: object) -> None:
        """Note the start of a run below the root, or of a root that is no chain.

        What happens inside of a retriever is the retriever's affair.
        """
        if run.in_retriever:
            return
        kind = run.kind
        if kind == "llm":
            run.asked = Asked(run, prompt_texts(inputs), len(self.sightings))
            self.asked.append(run.asked)
        elif kind == "retriever":
            self.retrievals.append(Retrieval(run, str(name or "retriever"), str(inputs)))
        elif may_hold_documents(inputs):
            self.passed(run, inputs)

    def passed(self, run: Run, value: object, *, state: bool = False) -> None:
        """Note the documents, if any, that a run was given, or gave back.

        Args:
            run: The run.
            value: What it was given, or gave back.
            state: Whether it is the state that a graph's node is given.
        """
        if run.in_retriever:
            return
        if type(value) is dict and not self.history:
            self.history = named_history(value)  # put in by a wrapper that keeps it
        before = self.candidates.keys() if state else ()
        carried = state and not self.resumed and not self.given and not len(before)
        documents = self._take(documents_of(value))
        if documents or run.kind == "retriever":
            self.sightings.append(Sighting(run, documents, run.kind == "retriever", carried))
        elif (single := self._take(single_documents(value))) and not is_document(value):
            self.sightings.append(
                Sighting(run, single, retrieved=False, carried=carried, alone=True)
            )

    def ended(self, run: Run, outputs: object, inputs: object, error: BaseException | None) -> None:
        """Note a run's end; of a stream, the true inputs come only now."""
        if error is not None:
            run.failed, interrupted = _failure(error)
            self.interrupted = self.interrupted or interrupted
            self.any_failed = self.any_failed or run.failed
        if run.in_retriever:
            return
        asked = run.asked
        if asked is not None:
            asked.is_open = False
            asked.text = generated_text(outputs)
            if not asked.text:
                asked.arguments = tool_arguments(outputs)
            return
        if inputs is not None and run.parent is not None:  # the root's own are `given`
            self.passed(run, inputs)
        if error is None:
            if run.kind == "retriever" or may_hold_documents(outputs):
                self.passed(run, outputs)
            if run.kind == "tool":
                self.passed(run, getattr(outputs, "artifact", None))

    def _take(self, documents: Sequence[object]) -> tuple[Seen, ...]:
        # The same objects pass through many runs. The first snapshot stands until the app changes
        # the object; holding the object keeps its id() from being given away.
        snapshots, taken = self._snapshots, []
        for item in documents:
            document, score = item if type(item) is tuple else (item, None)
            text, metadata = text_and_metadata(document)
            known = snapshots.get(id(document))
            if (
                known is None
                or known[1] is not text
                or known[2] != (len(metadata) if metadata else 0)
                or (score is not None and known[3].score is None)
            ):
                seen = copied(document, text, metadata, score)
                known = (document, text, len(metadata) if metadata else 0, seen)
                snapshots[id(document)] = known
                if self.candidates.setdefault(seen.text, seen) is not seen:
                    self._seen_again(seen)
            taken.append(known[3])
        return tuple(taken)

    def _seen_again(self, seen: Seen) -> None:
        first = self.candidates[seen.text]
        if first.score is None and seen.score is not None:
            # A reranker's copy; the store's id may not have come along.
            self.candidates[seen.text] = Seen(
                seen.text, seen.id or first.id, seen.metadata or first.metadata, seen.score
            )

    def clear(self) -> None:
        """Let go of everything.

        Runs and their call know each other: without this, only the garbage collector would take
        them, and with them the app's documents.
        """
        for kept in (self.sightings, self.asked, self.retrievals):
            kept.clear()
        self._snapshots.clear()
        self.inputs = None


def _failure(error: BaseException) -> tuple[bool, bool]:
    """Whether an error means that a run failed, and whether a graph waits for its user.

    LangGraph steers by exceptions (a pause, a jump to another graph); its classes are known by
    name, so that it need not be imported.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return "GraphBubbleUp" not in names, "GraphInterrupt" in names
