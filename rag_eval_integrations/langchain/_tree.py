"""Stage 1 for LangChain: one call in flight, its tree of runs and the values seen under it.

Every event of the app passes here, so each does as little as possible: most carry no documents and
are only added to the tree. `finish` interprets them once, at the end of the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple
from uuid import UUID

from rag_eval_integrations.capture._calls import Snapshot, distinct, same_id
from rag_eval_integrations.capture._delivery import Hooks
from rag_eval_integrations.capture._documents import as_json, shown_lists
from rag_eval_integrations.capture._tool_results import ToolResults
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.langchain._documents import (
    HooksOfCall,
    documents_of,
    is_document,
    may_hold_documents,
    single_documents,
    snapshot,
    snapshot_from,
    text_and_metadata,
)
from rag_eval_integrations.langchain._values import (
    HUMAN,
    content_text,
    generated_text,
    history_of,
    images_in,
    is_command,
    named_history,
    prompt_texts,
    question_of,
    starts_stream,
    tool_arguments,
)
from rag_eval_integrations.records import Turn

_MAX_STATES = 256

Kind = Literal["chain", "retriever", "llm", "tool"]


class Run:
    """One run of a call: a node of the call's tree."""

    __slots__ = ("asked", "call", "failed", "hides", "in_retriever", "kind", "name", "parent")

    def __init__(self, call: RootRun, parent: Run | None, kind: Kind) -> None:
        self.call = call
        self.parent = parent
        self.kind = kind
        self.name = ""
        """Name of a tool."""
        self.failed = False
        self.asked: ModelRequest | None = None
        """The request of a model's run."""
        self.in_retriever = inside = parent is not None and parent.hides
        self.hides: bool = inside or kind == "retriever"
        """Whether the runs below are internal to a retriever."""

    def is_below(self, other: Run) -> bool:
        """Return whether this run is another one, or runs inside it."""
        run: Run | None = self
        while run is not None and run is not other:
            run = run.parent
        return run is not None

    def counts(self) -> bool:
        """Return whether this run contributed to the answer.

        False for a run under a failure from which a run above recovered (a retry, a fallback). If
        the failure reached the root, the call itself failed, and all runs count.
        """
        run: Run | None = self
        while run is not None:
            if run.failed and run.parent is not None and not run.parent.failed:
                return False
            run = run.parent
        return True


class Sighting(NamedTuple):
    """Documents in the inputs or outputs of a run."""

    run: Run
    documents: tuple[Snapshot, ...]
    retrieved: bool
    """Whether they are the output of an outermost retriever."""
    carried: bool = False
    """Whether a graph's state held them before anything was retrieved in this call."""
    alone: bool = False
    """Whether they are single documents and not a list."""
    state: bool = False
    """Whether they stand in the state that a graph passes to its node."""


class RetrieverStart(NamedTuple):
    """The start of an outermost retriever."""

    run: Run
    name: str
    query: str


class ModelRequest:
    """A request to a model, and the text that the model wrote."""

    __slots__ = (
        "arguments",
        "begun",
        "ended",
        "is_open",
        "prompt",
        "run",
        "sightings",
        "text",
        "tokens",
    )

    def __init__(self, run: Run, prompt: tuple[str, ...], sightings: int, begun: int) -> None:
        self.run = run
        self.begun = begun
        """Place of the request among the starts and ends of the call's requests."""
        self.ended = 0
        """Place of its end among them."""
        self.prompt = prompt
        self.sightings = sightings
        """Number of sightings before the request."""
        self.is_open = True
        self.text: str | None = None
        self.arguments: object = None
        """Arguments of the only tool that the model called: a structured answer."""
        self.tokens: list[str] = []
        """Tokens streamed so far."""

    def text_so_far(self) -> str:
        """Return the text as far as it is known; empty when there is none."""
        return self.text or "".join(self.tokens)


class RootRun:
    """A root run and everything seen under it.

    Args:
        run_id: id of the root run.
        name: name of the root run.
        inputs: the root's inputs.
        tags: the root's tags.
        metadata: the root's metadata.
        hooks: the user's extractors, if any.
    """

    left_to_wrapper = False
    """Whether an `EvaluatedRetriever` captures this call."""
    takes_text: Callable[[str], bool] | None = None
    """Decides by a tool's name whether its text is a document."""
    tools: Sequence[str] = ()
    """Names of the tools that were called."""
    traces: CallTraces
    """Where other libraries trace the call."""
    document_tools: set[str]
    """Names of the tools whose text was seen to hold documents, in this call or another one."""
    tool_results: ToolResults
    """The texts of these tools, with the documents."""
    unread: Callable[[object], None]
    """Told of outputs in which no answer is found."""
    conversation: str | None = None
    """The conversation that the config of its runs names, as for `RunnableWithMessageHistory`."""
    last_output: object = None
    """What the last step directly below the root returned, which a graph's stream gives the app."""
    shown_before: Sequence[Any] = ()
    """Results of tools among the messages of the first model."""
    of_earlier_turns = 0
    """How many of these, the first ones, stand in front of the last question."""

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
        """Keys of all runs of the call, ended or not."""
        self.interrupted = False
        self.any_failed = False
        self.hooks = None if hooks is None else HooksOfCall(hooks)
        self.sightings: list[Sighting] = []
        self.images: list[str] = []
        """URLs or base64 of the images that models were shown."""
        self.states: list[tuple[Run | None, object, bool]] = []
        """Inputs, outputs and results of tools in which no documents were seen."""
        self.retrievals: list[RetrieverStart] = []
        self.asked: list[ModelRequest] = []
        self.earlier: list[tuple[str, str, list[Snapshot]]] = []
        """Name, text and documents of the results in `shown_before`, once they have been read."""
        self._turn = 0
        self.carried: set[str] = set()
        """Texts of the documents that a graph's state held from the start of the call."""
        self.candidates: dict[str | tuple[str, str], Snapshot] = {}
        """All documents seen, in the order of their first appearance: by text; further ones of a
        text, with other ids, by both."""
        self._snapshots: dict[int, tuple[object, str, int, Snapshot]] = {}
        self.question = ""
        self.given: tuple[Snapshot, ...] = ()
        """Documents in the root's inputs."""
        self.history: tuple[Turn, ...] = ()
        self.inputs: object = None
        self.resumed = inputs is None or is_command(inputs)
        """Whether the call resumes a graph after a pause."""
        self.streaming = type(inputs) is dict and starts_stream(inputs)
        if not self.streaming:
            self.read_inputs(inputs)

    @property
    def found_any(self) -> bool:
        """Whether a retriever ran or documents were seen."""
        return bool(self.retrievals or self.sightings)

    def prompts(self) -> Iterator[str]:
        """Yield the texts of all prompts that models of this call were sent."""
        for request in self.asked:
            yield from request.prompt

    def read_inputs(self, inputs: object) -> None:
        """Read the root's inputs now, since the app may change its own objects before the end.

        The question (the user's hook goes first), the history, and documents that were given.
        """
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
            documents = documents_of(inputs)
            # A single document without a question is being indexed.
            self.given = self.take(
                documents or single_documents(inputs) if self.question else documents
            )
            if not self.given:
                self.states.append((None, inputs, False))

    def record_start(self, run: Run, inputs: object, name: object) -> None:
        """Record the start of a run below the root, or of a root that is not a chain.

        Runs inside a retriever are left out.

        Args:
            run: the run.
            inputs: its inputs.
            name: its name.
        """
        if run.in_retriever:
            return
        kind = run.kind
        if kind == "llm":
            if not self.tools and not self.shown_before and type(inputs) is list:
                messages = [item for part in inputs if type(part) is list for item in part]
                self.shown_before = [item for item in messages if hasattr(item, "artifact")]
                humans = [
                    n for n, item in enumerate(messages) if getattr(item, "type", "") in HUMAN
                ]
                before = messages[: humans[-1]] if humans else ()
                self.of_earlier_turns = sum(hasattr(item, "artifact") for item in before)
            self._turn += 1
            run.asked = ModelRequest(run, prompt_texts(inputs), len(self.sightings), self._turn)
            self.asked.append(run.asked)
            self.images += images_in(inputs)
        elif kind == "retriever":
            self.retrievals.append(RetrieverStart(run, str(name or "retriever"), str(inputs)))
        elif kind == "tool":
            run.name = str(name or "tool")
            self.tools = (*self.tools, run.name)
        elif may_hold_documents(inputs):
            self.record_documents(run, inputs)

    def record_documents(self, run: Run, value: object, *, state: bool = False) -> None:
        """Record the documents in the inputs or outputs of a run, if there are any.

        Runs inside a retriever do not count; an empty list counts for a retriever only.

        Args:
            run: the run.
            value: its inputs or outputs.
            state: whether the value is the state that a graph passes to its node.
        """
        if run.in_retriever:
            return
        if type(value) is dict and not self.history:
            self.history = named_history(value)  # from a wrapper that stores the history
        before = len(self.candidates)
        documents = self.take(documents_of(value))
        carried = state and not self.resumed and not self.given
        if carried:
            texts = {seen.text for seen in documents}
            carried = not before or (bool(texts) and texts <= self.carried)
            self.carried |= texts if carried else set()
        if documents or run.kind == "retriever":
            is_found = run.kind == "retriever"
            self.sightings.append(Sighting(run, documents, is_found, carried, state=state))
        elif (single := self.take(single_documents(value))) and not is_document(value):
            self.sightings.append(Sighting(run, single, False, carried, alone=True, state=state))
        elif len(self.states) < _MAX_STATES:
            self.states.append((run, value, state and not self.resumed))

    def record_end(
        self, run: Run, outputs: object, inputs: object, error: BaseException | None
    ) -> None:
        """Record the end of a run; for a stream, the end carries the true inputs.

        A model's text is recorded; of other runs, the documents in outputs, artifacts and, where
        the user wants it, tools' texts.
        """
        if error is not None:
            run.failed, interrupted = _classify_error(error)
            self.interrupted = self.interrupted or interrupted
            self.any_failed = self.any_failed or run.failed
        if run.in_retriever:
            return
        asked = run.asked
        if asked is not None:
            self._turn = asked.ended = self._turn + 1
            asked.is_open = False
            asked.text = generated_text(outputs)
            if not asked.text:
                asked.arguments = tool_arguments(outputs)
            return
        if inputs is not None and run.parent is not None:  # the root's own are `given`
            self.record_documents(run, inputs)
        if error is None:
            if run.kind == "retriever" or may_hold_documents(outputs):
                self.record_documents(run, outputs)
            if run.kind == "tool":
                self.record_documents(run, getattr(outputs, "artifact", None))
                content = getattr(outputs, "content", outputs)
                self.states.append((run, content, False))
                text = content_text(content)
                if self.takes_text is not None and self.takes_text(run.name):
                    self._take_text(run, text)
                if text:
                    below = [s.documents for s in self.sightings if s.run.is_below(run)]
                    inside = [seen for seen in chain.from_iterable(below) if seen.text in text]
                    if inside:
                        self.document_tools.add(run.name)
                        self.tool_results.keep(run.name, text, distinct(inside))

    def take(self, documents: Sequence[object]) -> tuple[Snapshot, ...]:
        """Make snapshots of documents, or of pairs of a document and a score, as they are now.

        An object that has passed before is copied again only if it has changed.
        """
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
                seen = snapshot_from(document, text, metadata, score)
                known = (document, text, len(metadata) if metadata else 0, seen)
                snapshots[id(document)] = known
                if self.candidates.setdefault(self._key(seen), seen) is not seen:
                    self._take_reranked_score(seen)
            taken.append(known[3])
        return tuple(taken)

    def read_states(self) -> None:
        """Take texts and plain objects as documents where a model was shown one of their list.

        A part of an earlier document's text, such as an excerpt for the user, is not a document.
        """
        if not self.states:
            return
        exchange = [("\n".join(each.prompt), each.text_so_far()) for each in self.asked]
        others = {self.question, *(turn.content for turn in self.history)}
        known = [seen.text for seen in self.candidates.values()]
        whole: dict[str, Snapshot] = {}
        passed: set[str] = set()
        for run, value, state in self.states if exchange or self.question else ():
            for listed in shown_lists(as_json(value), exchange, others, known):
                parts = [seen for seen in listed if not _is_excerpt(seen.text, whole)]
                texts = {seen.text for seen in parts}
                carried = state and not self.given
                carried = carried and (passed.isdisjoint(texts) or texts <= self.carried)
                if not carried:  # this turn's copies instead of those that the state kept
                    again = [seen for seen in parts if seen.text in self.carried - passed]
                    whole.update({seen.text: seen for seen in again})
                (self.carried if carried else passed).update(texts)
                documents = tuple([whole.setdefault(seen.text, seen) for seen in parts])
                if run is None:
                    self.given = self.given or documents
                elif documents:
                    self.sightings.append(Sighting(run, documents, False, carried, state=state))
        for seen in whole.values():
            self.candidates.setdefault(self._key(seen), seen)
        self.states.clear()

    def read_tool_results(self) -> None:
        """Find the documents in tools' results that were among the first model's messages.

        They are those in the message itself, or those captured when the tool ran. Where neither has
        any, the text of a tool that is known for documents is one.
        """
        for message in self.shown_before:
            name, text = message.name or "tool", content_text(message.content) or ""
            artifact = documents_of(message.artifact)
            items = (item[0] if type(item) is tuple else item for item in artifact)
            documents = [seen for item in items if (seen := snapshot(item, None)).text in text]
            if not documents and (kept := self.tool_results.lookup(text)):
                documents = list(kept[1])
            known = name in self.document_tools or (self.takes_text and self.takes_text(name))
            if text and known and not documents:
                documents = [Snapshot(text, None, {"tool": name}, None)]
            self.earlier.append((name, text, documents))

    def _take_text(self, tool: Run, text: str | None) -> None:
        """Record a tool's text as a document, unless its documents were seen."""
        if not text or any(sighting.run.is_below(tool) for sighting in self.sightings):
            return
        seen = self.candidates.setdefault(text, Snapshot(text, None, {"tool": tool.name}, None))
        self.retrievals.append(RetrieverStart(tool, tool.name, ""))
        self.sightings.append(Sighting(tool, (seen,), retrieved=True))

    def candidate(self, seen: Snapshot) -> Snapshot:
        """Return a document with the score that it had last."""
        return self.candidates.get(self._key(seen), seen)

    def _key(self, seen: Snapshot) -> str | tuple[str, str]:
        """Return the key of a document among the candidates."""
        first = self.candidates.get(seen.text)
        if first is None or seen.id is None or same_id(first, seen):
            return seen.text
        return seen.text, seen.id

    def _take_reranked_score(self, seen: Snapshot) -> None:
        """Give a known document the score of its copy, which a reranker may have made."""
        key = self._key(seen)
        first = self.candidates[key]
        if first.score is None and seen.score is not None:
            # A copy made by a reranker, which may lack the store's id.
            self.candidates[key] = Snapshot(
                seen.text, seen.id or first.id, seen.metadata or first.metadata, seen.score
            )

    def let_go(self) -> None:
        """Release the app's own objects, once the call has ended; what was read of them stays."""
        self._snapshots.clear()
        self.inputs = self.last_output = None
        self.shown_before = ()

    def clear(self) -> None:
        """Release everything.

        Runs and their call refer to each other: otherwise only the garbage collector would free
        them, and the app's documents with them.
        """
        for records in (self.sightings, self.asked, self.retrievals, self.states, self.images):
            records.clear()
        self.let_go()


def _is_excerpt(text: str, whole: Collection[str]) -> bool:
    """Return whether a text is part of one of the whole texts, without being one of them."""
    return text not in whole and any(text in other for other in whole)


def _classify_error(error: BaseException) -> tuple[bool, bool]:
    """Return whether an exception is a failure, and whether it interrupts a graph for its user."""
    # LangGraph uses exceptions for control flow (a pause, a jump to another graph). Its classes are
    # recognised by name, so that it need not be imported.
    names = {kind.__name__ for kind in type(error).__mro__}
    return "GraphBubbleUp" not in names, "GraphInterrupt" in names
