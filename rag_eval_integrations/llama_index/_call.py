"""Stage 1 for LlamaIndex: one call in flight, the values seen in it, and its `RagCall`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from rag_eval_integrations.capture._calls import Context, Snapshot, to_call, with_earlier
from rag_eval_integrations.capture._documents import as_json, shown_lists
from rag_eval_integrations.capture._tool_results import ToolResults
from rag_eval_integrations.capture._traces import CallTraces
from rag_eval_integrations.llama_index._context import RETRIEVED_IN, FoundNodes, context
from rag_eval_integrations.llama_index._tree import CHATS, HELPERS, Span, Stage, Writing
from rag_eval_integrations.llama_index._values import (
    LlamaIndexHooks,
    answer_of,
    asks_nothing,
    body_of,
    earlier_messages,
    images_of,
    model_arguments,
    nodes_of,
    prompt_in,
    question_of,
    session_of,
    snapshot,
    split_header,
    state_of,
    template_messages,
    text_of,
    texts_in,
    turns_of,
    unwrapped,
    user_tags,
    with_source_id,
)
from rag_eval_integrations.records import RagCall, Turn
from rag_eval_integrations.records.call import CaptureStatus, EndedCall

_MAX_STATES = 256
_MAX_PROMPT_CHARS = 8_000_000  # of all prompts of a call together; the oldest are dropped


class CallSpan(Span):
    """A span with the call to which it belongs."""

    # Set by whoever makes the span: a constructor that calls the other one took as long as both.
    __slots__ = ("call",)
    call: RootSpan


class RootSpan:
    """A root span and everything seen under it.

    Args:
        span_id: id of the root span.
        stage: stage of the root span.
        arguments: the arguments of the outermost method.
        instance: the object whose method it is.
        tags: LlamaIndex's instrument tags, if any.
        hooks: the user's extractors, if any.
    """

    read_by_app = False
    """Whether the root has ended and the app now reads the stream."""
    stream: object = None
    """A weak reference to the app's stream, kept for its callback."""
    awaited: object = None
    """The chat engine's response, whose stream has to be written before the call ends."""
    is_session = False
    """Whether a run without a question gets a person's messages, each of which is a question."""
    cancelled = False
    """Whether the run was cancelled."""
    part_failed = False
    """Whether a span below the root has failed."""
    writings: tuple[Writing, ...] = ()
    """The streams that chat engines write in this call."""
    takes_text: Callable[[str], bool] | None = None
    """Decides by a tool's name whether its text is a document."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were called."""
    traces: CallTraces
    """Where other libraries trace the call."""
    tool_results: ToolResults
    """The texts of tools in which nodes were seen, in any call."""
    earlier: Sequence[tuple[str, str, list[Snapshot]]] = ()
    """Name, text and nodes of earlier turns' tool results that the first chat model was shown."""
    _messages: Sequence[Any] = ()
    """The messages of the last chat model."""
    unread: Callable[[object], object] | None = None
    """Told of a result in which no answer is found."""
    _sources: tuple[Snapshot, ...] = ()
    _last: tuple[str | None, bool] = (None, False)
    """What the last model wrote, and whether it did so token by token."""
    _none_left = False
    """Whether the result is an empty list."""
    _shows_none = False
    """Whether the root's synthesizer shows the model only the question (`"generation"`)."""
    _from_hook: list[Snapshot] | None = None
    _prompt_chars = 0

    def __init__(
        self,
        span_id: str,
        stage: Stage,
        arguments: Mapping[str, Any],
        instance: object,
        tags: Mapping[str, Any] | None,
        hooks: LlamaIndexHooks | None,
    ) -> None:
        owner, _, method = span_id[:-37].rpartition(".")
        self.key = span_id
        self.began = time.monotonic()
        self.is_run = method == "run"
        self.is_unasked = self.is_run and asks_nothing(arguments)
        """Whether this is a run without a question of its own."""
        self.root = CallSpan(span_id, None, stage)
        self.root.call = self
        self.open: set[str] = {span_id}
        """Ids of the spans that have not ended; the root's id until the call is closed."""
        self.producing: list[str] = []
        """Ids of spans that ended with a stream. Another instrumentor may produce its tokens in the
        context in which such a span was the current one, so they are kept until the call ends."""
        self._started_at = datetime.now(UTC)
        self._app = owner or None
        self._hooks = hooks
        self._arguments = arguments
        self._earlier = earlier_messages(arguments, instance) if method in CHATS else []
        self._tags = user_tags(arguments, tags, session_of(arguments, instance))
        self._snapshots: dict[int, tuple[object, object, object, Snapshot]] = {}
        self._bodies: dict[str, str] = {}
        self._sightings: list[FoundNodes] = []
        self._retrievers: list[str] = []
        self._image_nodes: dict[tuple[str, str | None], list[str]] = {}
        self._images: set[str] = set()
        self._queries: list[object] = []
        self._states: list[object] = []
        self._workflow: Any = None
        self._replies: list[str] = []
        self._prompts: list[tuple[Span, str]] = []

    # --- while the call is open -------------------------------------------------------------

    def record_start(self, span: Span, arguments: Mapping[str, Any], instance: object) -> None:
        """Record a span's start: a retriever, a model, a synthesis's nodes, a stream's writer.

        A synthesis forgets the prompts of models that only prepared it.
        """
        stage = span.stage
        if stage == "retrieve":
            self._retrievers.append(type(instance).__name__)
            self._queries.append(next(iter(arguments.values()), None))
        elif stage == "model":
            span.arguments = arguments
        elif stage == "synthesize":
            nodes = arguments.get("nodes")
            if self._prompts:  # those of models that wrote the query or chose the nodes
                self._prompts = [
                    request for request in self._prompts if not request[0].prepares(span)
                ]
            self._sightings.append(FoundNodes(span, list(nodes) if isinstance(nodes, list) else ()))
            if span.scope is self.root:
                self._shows_none = type(instance).__name__ == "Generation"
            if self._earlier is None and span.scope is self.root:
                self._messages = template_messages(instance) or self._messages
        elif stage == "write":
            span.writing = Writing(instance)
            self.writings = (*self.writings, span.writing)

    def record_result(self, span: Span, result: object) -> None:
        """Record a span's result: retrieved nodes, and the sources of a nested answer or a tool.

        A tool's text is kept, too, for later turns in which a model is shown it.
        """
        stage = span.stage
        if stage in ("retrieve", "postprocess"):
            self._sightings.append(FoundNodes(span, self._take(result)))
        elif stage == "own":
            if isinstance(result, list) and (nodes := self._take(result)):
                self._sightings.append(FoundNodes(span, nodes))
        elif stage == "model":
            if span.arguments is not None:  # a model that sends no events
                self.record_prompt(span, prompt_in(*model_arguments(span.arguments)))
                self.record_reply(span, result)
        elif stage == "answer":
            result = unwrapped(result)
            self._sightings.append(FoundNodes(span, self._take(result), answer_of(result)))
        elif stage == "tool":
            nodes = self._take(getattr(result, "raw_output", None))
            self._states.append({"": as_json(getattr(result, "raw_output", None))})
            self._sightings.append(FoundNodes(span, nodes or self._tool_text(span, result)))
            below = [
                retrieval
                for retrieval in self._sightings
                if retrieval.nodes and retrieval.span.is_below(span)
            ]
            if below and (text := text_of(result)):
                self.tool_results.keep(
                    str(getattr(result, "tool_name", "tool")),
                    text,
                    [
                        split_header(seen, self._bodies.get(seen.text))
                        for retrieval in below
                        for seen in retrieval.nodes
                        if isinstance(seen, Snapshot) and seen.text in text
                    ],
                )
        elif stage == "begin":
            messages = getattr(result, "input", None)
            if span.scope is self.root and isinstance(messages, list):
                self._earlier = messages[:-1]  # the last one is the question

    def record_prompt(self, span: Span, prompt: str, messages: Sequence[Any] = ()) -> None:
        """Record a model's prompt, unless the model only helps to retrieve or to rerank.

        A prompt that is reported twice is kept once; the oldest are dropped where all together are
        too long.
        """
        span.arguments = None
        if span.stage in HELPERS:
            return
        if messages:
            if not self._messages:
                self.earlier = [
                    (kept[0], text, kept[1])
                    for message in messages
                    if getattr(message, "role", "") == "tool"
                    and (text := text_of(message))
                    and (kept := self.tool_results.lookup(text))
                ]
            self._messages = messages
            self._images.update(image for each in messages for image in images_of(each))
        for _, text, _ in self.earlier:  # where a node stands there says nothing of this turn
            prompt = prompt.replace(text, "", 1)
        request = (span, prompt)
        if self._prompts and self._prompts[-1] == request:
            return  # an async method that calls the sync one reports it twice
        self._prompts.append(request)
        self._prompt_chars += len(prompt)
        while self._prompt_chars > _MAX_PROMPT_CHARS and len(self._prompts) > 1:
            self._prompt_chars -= len(self._prompts.pop(0)[1])

    def record_event(self, result: object, arguments: Mapping[str, Any]) -> None:
        """Record a workflow's event, which may hold texts, and its context."""
        if hasattr(type(result), "__pydantic_fields__") and len(self._states) < _MAX_STATES:
            self._states.append(result)
            self._workflow = self._workflow or arguments.get("ctx")

    def note_human_message(self, arguments: Mapping[str, Any]) -> None:
        """Note whether a step of a run without a question is given a person's message."""
        kinds = [kind.__name__ for value in arguments.values() for kind in type(value).__mro__]
        self.is_session = self.is_session or "HumanResponseEvent" in kinds

    def record_reply(self, span: Span, response: object) -> None:
        """Record what a model wrote, unless it only helps to retrieve or to rerank."""
        if span.stage in HELPERS:
            return
        text = answer_of(response)
        if text:
            self._replies.append(text)
        self._last = text, "stream_" in span.id[:-37]

    def record_root_result(self, result: object, response: object) -> None:
        """Record the root's result, before the app gets it and may change it.

        Args:
            result: the value that the app gets.
            response: the same, or the value inside a workflow's stop event.
        """
        self._sources = self._take(response)
        self._none_left = isinstance(response, list) and not response
        if not self._sources:
            self._sightings = self._settled()
        if self._hooks is not None:
            self._from_hook = self._hooks.documents(result)

    def answer(self, result: object, response: object) -> str | None:
        """Return the answer in the root's result, which is not kept: it may hold a stream."""
        hooked = None if self._hooks is None else self._hooks.response(result)
        if hooked is not None:
            return hooked
        queries = {text_of(query) for query in self._queries}
        replies = [text for text in self._replies if text not in queries]
        answer = answer_of(response, replies)
        last, streamed = self._last
        if self.is_run and last in replies and not (answer or "").strip():
            has_texts = any(text.strip() for _, text in texts_in(response))
            told = has_texts or self._sources or self._none_left
            answer = last if streamed and not told else None  # it was handed out before the end
        if answer is None and replies and self.unread is not None and any(texts_in(response)):
            self.unread(response)
        return answer

    def writing_of(self, response: object) -> Writing | None:
        """Return the writing of a chat engine's response; None when there is none yet."""
        return next((writing for writing in self.writings if writing.response is response), None)

    def _tool_text(self, tool: Span, result: object) -> tuple[Snapshot, ...]:
        """Note a tool's name; return its text as a document, if the user wants that."""
        name = getattr(result, "tool_name", None)
        if not isinstance(name, str):
            return ()
        self.tools = (*self.tools, name)
        if self.takes_text is None or not self.takes_text(name):
            return ()
        if any(sighting.nodes and sighting.span.is_below(tool) for sighting in self._sightings):
            return ()  # its documents were seen
        text = getattr(result, "content", None)
        if not isinstance(text, str) or not text:
            return ()
        self._retrievers.append(name)
        return (Snapshot(text, None, {"tool": name}, None),)

    def prompts_of_question(self) -> Iterator[str]:
        """Yield the prompts of a call that has a question; an ingestion has none."""
        if question_of(self._arguments):
            yield from (prompt for _, prompt in self._prompts)

    def _take(self, value: object) -> tuple[Snapshot, ...]:
        """Make snapshots of the nodes in a value; those of unchanged nodes are reused."""
        taken = []
        snapshots = self._snapshots
        for node, score in nodes_of(value):
            # The same nodes pass through many spans, and some postprocessors change them.
            # A reference to the node keeps its id() from being reused.
            raw, metadata = getattr(node, "text", None), getattr(node, "metadata", None)
            known = snapshots.get(id(node))
            if known is not None and known[1] is raw and known[2] == metadata:
                seen = known[3]
                if seen.score != score:
                    seen = Snapshot(seen.text, seen.id, seen.metadata, score)
            else:
                seen = snapshot(node, score)
                if "image_path" in getattr(node, "__dict__", ()):
                    self._image_nodes[seen.text, seen.id] = images_of(node)
                snapshots[id(node)] = (node, raw, dict(metadata) if metadata else metadata, seen)
                if seen.text is not raw or seen.text.startswith("Source "):
                    body = body_of(node, seen.text)
                    if body is not None:
                        self._bodies[seen.text] = body
            taken.append(seen)
        return tuple(taken)

    # --- at the end of the call -------------------------------------------------------------

    def finish(
        self,
        status: CaptureStatus,
        response: str | None,
        failed: Callable[[Exception], object],
    ) -> EndedCall | None:
        """Read what the call's record needs; the call cannot be used afterwards.

        Only a root that answers, with a retriever, sources or nodes, is a RAG call.

        Args:
            status: how the call ended.
            response: the answer, as far as it is known.
            failed: called with the exception if the record cannot be made.

        Returns:
            What the record is made of; None when it was not a RAG call.
        """
        latency = time.monotonic() - self.began
        if status != "ok":
            self.root.failed = True
        if self.root.stage != "answer":
            return None
        sightings = self._settled()
        if self._states and self._from_hook is None:
            sightings += self._documents_in_states(sightings)
        self._snapshots.clear()
        self.stream = None
        if not (
            self._retrievers
            or self._sources
            or self._from_hook
            or any(sighting.nodes for sighting in sightings)
        ):
            return None
        question = self._question()
        prompts, last = self._prompts_for_the_answer()
        if response is None and status == "ok" and self._hooks is None:
            prompts, last = "", None  # nobody answered: models wrote queries or grades
            if self._none_left:
                self._from_hook = []
        response = response if self._hooks is None else self._hooked_response(status, response)
        history = () if self._earlier == [] else self._history()

        def record() -> RagCall:
            """Make the record, in the background."""
            return to_call(
                self._context(sightings, prompts, question, last),
                framework="llama_index",
                run_id=self.key,
                status=status,
                latency_s=latency,
                tags=self._tag_names(),
                metadata=self._tags,
                retrievers=tuple(self._retrievers),
                question=question,
                response=response,
                history=history,
                started_at=self._started_at,
                app=self._app,
                traces=self.traces.ids(),
            )

        return EndedCall(self.key, status, record, self._clear, failed)

    def _documents_in_states(self, sightings: Sequence[FoundNodes]) -> list[FoundNodes]:
        """Find the lists of texts and plain objects in a workflow's states that are documents."""
        exchange = [*zip_longest([text for _, text in self._prompts], self._replies, fillvalue="")]
        if not exchange and not question_of(self._arguments):
            return []
        known = [seen.text for each in sightings for seen in each.nodes]
        states = [self._arguments.get("start_event"), *self._states, state_of(self._workflow)]
        others = {self._question(), *(turn.content for turn in self._history())}
        return [
            FoundNodes(Span("", self.root, "own"), documents)
            for state in states
            for documents in shown_lists(state, exchange, others, known)
        ]

    def _context(
        self, sightings: list[FoundNodes], prompts: str, question: str, last: str | None
    ) -> Context:
        """Choose the documents that the call used, and those of earlier turns that it was shown."""
        bodies = self._bodies
        chosen = context(
            self._sources, sightings, prompts, question, bodies, self._from_hook, last=last
        )
        if self._shows_none and self._from_hook is None and chosen.source == "dataflow":
            chosen = Context((), "retriever", [*chosen.documents, *chosen.unused])
        if self._images:
            left = [
                seen
                for seen in chosen.unused
                if self._images.isdisjoint(self._image_nodes.get((seen.text, seen.id), ()))
            ]
            chosen = chosen._replace(unused=left)
        older = [seen for *_, nodes in self.earlier for seen in nodes if self._from_hook is None]
        if not bodies and not older:
            return chosen
        retrieved = [
            seen for each in sightings if each.span.stage in RETRIEVED_IN for seen in each.nodes
        ]
        documents = [
            with_source_id(split_header(seen, bodies.get(seen.text)), retrieved)
            for seen in chosen.documents
        ]
        unused = [split_header(seen, bodies.get(seen.text)) for seen in chosen.unused]
        source = "prompt" if older and not documents else chosen.source
        chosen = Context(documents, source, unused)
        return with_earlier(chosen, older) if older else chosen

    def _clear(self) -> None:
        """Release everything: spans and their call refer to each other."""
        for records in (self._sightings, self._prompts, self._states):
            records.clear()
        self._workflow = None

    def _question(self) -> str:
        """Return the question: the hook's, the argument's or the retriever's."""
        asked = None if self._hooks is None else self._hooks.question(self._arguments)
        if asked is not None:
            return asked
        return question_of(self._arguments) or next(filter(None, map(text_of, self._queries)), "")

    def _history(self) -> tuple[Turn, ...]:
        """Return the turns before the question."""
        # If the engine's memory was not read, the model's messages still show its content; or, for
        # a model of texts, the template that the engine made of them.
        return turns_of(list(self._messages)[:-1] if self._earlier is None else self._earlier)

    def _hooked_response(self, status: CaptureStatus, text: str | None) -> str | None:
        """Return the answer's text, or what the response hook makes of it."""
        # A careless hook would drain the object of a stream, so it gets the text instead.
        streamed = self.read_by_app or self.awaited is not None
        if self._hooks is None or not streamed or status != "ok":
            return text
        hooked = self._hooks.response(text)
        return text if hooked is None else hooked

    def _tag_names(self) -> tuple[str, ...]:
        """Return the tags that are texts."""
        names = self._tags.get("tags")
        return tuple([n for n in names if isinstance(n, str)]) if isinstance(names, list) else ()

    def _counts(self, span: Span) -> bool:
        """Return whether a span contributed to the answer; in a failed call every span counts."""
        return self.root.failed or span.alive()

    def _settled(self) -> list[FoundNodes]:
        """Return the sightings of spans that count, with their nodes as snapshots."""
        sightings = self._sightings
        if self.part_failed:
            sightings = [sighting for sighting in sightings if self._counts(sighting.span)]
        if self._sources:  # the response names its sources: the synthesis's nodes are not needed
            return [sighting for sighting in sightings if sighting.span.stage != "synthesize"]
        return [
            sighting
            if sighting.is_settled()
            else FoundNodes(sighting.span, self._take(sighting.nodes))
            for sighting in sightings
        ]

    def _prompts_for_the_answer(self) -> tuple[str, str | None]:
        """Return all prompts joined, and the last one if the app itself asked several times."""
        asked = self._prompts
        if self.part_failed:
            asked = [request for request in asked if self._counts(request[0])]
        text = "\n".join([prompt for _, prompt in asked])
        alone = len(asked) < 2 or self._sources or not all(self._is_own(span) for span, _ in asked)
        return text, None if alone else asked[-1][1]

    def _is_own(self, model: Span) -> bool:
        """Return whether a model runs for this call itself, outside of a synthesizer."""
        return model.scope is self.root and not model.is_in_synthesis()
