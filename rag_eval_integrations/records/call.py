"""Stage 1 of the flow: what an app did. Document, Turn, Capture, RagCall."""

from __future__ import annotations

import hashlib
import importlib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from json.encoder import encode_basestring_ascii as _quoted
from numbers import Integral
from string import ascii_lowercase
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    ValidationInfo,
    model_validator,
)

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records._json import Count, JsonObject, Record, Text

CaptureStatus = Literal["ok", "error", "aborted", "interrupted"]
DocumentsFrom = Literal["prompt", "dataflow", "retriever", "none"]
TraceSource = Literal["openinference", "openllmetry", "langfuse", "mlflow", "otel", "langsmith"]


class Sentence(NamedTuple):
    """One keyed sentence; in JSON the list `[key, text, start, end]`."""

    key: Text
    """Document number and letters (`0a`), or letters alone for a response sentence (`a`)."""
    text: Text
    start: int | None = None
    """Offset of the first character in its document or response; None where the recorded
    sentence is not found in the text."""
    end: int | None = None
    """Offset after the last character."""


# pydantic reads the annotations of a named tuple late, in the module that exports it.
Sentence.__annotations__ = get_type_hints(Sentence, include_extras=True)


class Sentences(Record):
    """Keyed sentences of one call, documents first; keys are unique within each side."""

    documents: tuple[Sentence, ...] = ()
    """Sentences of all documents in order; the number before the letters is the document's."""
    response: tuple[Sentence, ...] = ()
    """Sentences of the response; empty when there is no response."""
    not_claims: tuple[Text, ...] = ()
    """Keys of response sentences that are a list of sources: neither judged nor counted."""

    @property
    def claims(self) -> tuple[Sentence, ...]:
        """The sentences of the response that are judged: all but `not_claims`."""
        if not self.not_claims:
            return self.response
        left_out = set(self.not_claims)
        return tuple([sentence for sentence in self.response if sentence.key not in left_out])


def _number_as_text(value: object) -> object:
    # Data sets number their rows; the label is text from here on. bool is an int to Python.
    """Return an integer, also NumPy's, as its digits; any other value, also a bool, as it is."""
    return str(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


CITATIONS = "citations"
"""Field of metadata with the citations beside an answer: `{"source": …, "end": …}` each."""
ONE_TEXT = "one_text"
"""Field of a document's metadata that is true where it is several, joined to one text."""


# --- Documents, also those of LangChain and LlamaIndex, of which neither is imported


ROOTS = {"langchain_core": "langchain", "llama_index": "llama_index"}
"""Package in which a framework's classes are defined → the framework."""

Kind = tuple[str, str]
"""A framework, and the name of one of its classes."""


def framework_of(value: object) -> str | None:
    """Return the framework of an object's class: `langchain`, `llama_index` or None."""
    return next(
        (ROOTS[root] for kind in type(value).__mro__ if (root := _root(kind)) in ROOTS), None
    )


def adapted(value: object, adapters: Mapping[Kind, str]) -> Any:
    """Convert a framework's object by a table of classes; None for any other object.

    The adapter's module is imported then.

    Args:
        value: any object.
        adapters: class → the function or class that takes such an object, as `MODULE:NAME` in this
            package. Subclasses count.
    """
    for kind in type(value).__mro__:
        adapter = adapters.get((ROOTS.get(_root(kind), ""), kind.__name__))
        if adapter is not None:
            module, _, name = adapter.partition(":")
            return getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)(value)
    return None


_PACKAGE = __name__.partition(".")[0]

_DOCUMENTS: dict[Kind, str] = {
    ("langchain", "Document"): "langchain._documents:document_from",
    ("llama_index", "BaseNode"): "llama_index._answers:document_from",
    ("llama_index", "NodeWithScore"): "llama_index._answers:document_from",
}


_FRAMEWORKS = {
    "page_content": "use langchain_core.documents.Document here",
    **dict.fromkeys(
        ("node", "id_", "get_content"), "use llama_index.core.schema.Document or NodeWithScore here"
    ),
}
"""Attributes that a framework asks its own documents for → what to use where it has got ours."""


def document_from(value: object) -> Any:
    """Make a `Document` from a LangChain document or a LlamaIndex node; None from anything else."""
    return adapted(value, _DOCUMENTS)


def _root(kind: type) -> str:
    """Return the package that a class belongs to."""
    return kind.__module__.partition(".")[0]


class Document(Record):
    """One retrieved document, as the model saw it."""

    text: Text
    """The text; may be empty (an empty document keeps its number)."""
    id: Annotated[Text | None, BeforeValidator(_number_as_text)] = None
    """The store's own id; a number becomes its digits."""
    metadata: JsonObject = Field(default_factory=dict)
    """Whatever the retriever knew about it; JSON values only."""
    score: float | None = None
    """The retriever's score, on the retriever's own scale."""
    header: Text | None = None
    """What the model was shown in front of the text, such as LlamaIndex's metadata. It is shown to
    the judge, and is not one of the document's sentences."""

    @property
    def shown(self) -> str:
        """The text as the model was shown it, with the header in front."""
        return f"{self.header}\n\n{self.text}" if self.header else self.text

    if not TYPE_CHECKING:  # which should tell attributes that are not there

        def __getattr__(self, name: str) -> Any:
            if name in _FRAMEWORKS:
                why = f"a {_PACKAGE}.Document has no {name!r}; {_FRAMEWORKS[name]}"
                raise AttributeError(why)
            return super().__getattr__(name)

    if TYPE_CHECKING:
        # By position too, and with any mapping; type checkers are told so here.
        def __init__(
            self,
            text: str,
            id: str | int | None = None,
            metadata: Mapping[str, JsonValue] = ...,
            score: float | None = None,
            header: str | None = None,
        ) -> None: ...


class Turn(Record):
    """One earlier turn of a conversation."""

    role: Literal["user", "assistant", "system", "tool"]
    content: Text


class Capture(Record):
    """How a call was observed; None on a call that the user wrote down."""

    framework: Text
    """`langchain`, `llama_index` or `plain`."""
    run_id: Text | None = None
    """The framework's id of the outermost run."""
    status: CaptureStatus = "ok"
    """`ok`; `error` (an exception); `aborted` (a closed stream or a cancellation, with the
    partial text or None as response); `interrupted` (a graph waits for its user)."""
    documents_from: DocumentsFrom = "none"
    """Where the documents were seen: in the final `prompt`, in the `dataflow` before it, as the
    output of the outermost `retriever`s, or nowhere (`none`)."""
    latency_s: float | None = Field(default=None, ge=0)
    """Wall time of the outermost run in seconds."""
    tags: tuple[Text, ...] = ()
    metadata: JsonObject = Field(default_factory=dict)
    retrievers: tuple[Text, ...] = ()
    """Names of the retrievers that ran, outermost only, in order."""
    not_in_prompt: tuple[Document, ...] = ()
    """Retrieved documents that never reached the prompt."""
    traces: dict[TraceSource, tuple[Text, Text]] = Field(default_factory=dict)
    """The tracers that recorded the call → its trace id and the id of its outermost span there.
    OpenTelemetry's ids are lower-case hex of 32 and 16 digits; MLflow's trace id begins with
    `tr-`; LangSmith's are UUIDs. `otel` is a span that none of the named libraries made, such as
    that of the web request around the call. Empty where nothing traced the call, or where its
    tracer does not tell."""

    @property
    def trace_id(self) -> str | None:
        """The first trace id of `traces`, in the order of `TraceSource`; None without one."""
        return self._first_trace[0]

    @property
    def span_id(self) -> str | None:
        """The span id that belongs to `trace_id`; None without one."""
        return self._first_trace[1]

    @property
    def _first_trace(self) -> tuple[str, str] | tuple[None, None]:
        """Return the ids of the first tracer that has any."""
        for source in get_args(TraceSource):
            if source in self.traces:
                return self.traces[source]
        return None, None


def _as_document(value: object) -> object:
    """Make a document of a text or a framework's object; a dict of fields stays as it is.

    Raises:
        ValueError: it is anything else.
    """
    if isinstance(value, str):
        return Document(text=value)
    document = value if isinstance(value, Document | dict) else document_from(value)
    if document is None:
        why = "should be a string, a Document, a LangChain document or a LlamaIndex node"
        raise ValueError(why)
    return document


def as_turn(value: object) -> object:
    """Make a turn of a pair of role and content; keep a turn, or a dict of its fields.

    Raises:
        ValueError: it is anything else.
    """
    if isinstance(value, tuple | list) and list(map(type, value)) == [str, str]:
        role, content = value
        return {"role": _ROLES.get(role, role), "content": content}
    if not isinstance(value, Turn | dict):
        raise ValueError("should be a Turn, a dict with `role` and `content`, or a pair of both")
    return value


_ROLES = {"human": "user", "ai": "assistant"}
"""LangChain's words for roles → ours."""


def _list_of(things: str) -> BeforeValidator:
    """Make a validator that refuses a text or mapping in place of a list.

    It accepts any other iterable.
    """

    def checked(value: object) -> object:
        # pydantic would take a string or a mapping for a sequence of characters or keys.
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            raise ValueError(f"should be a list of {things}")
        return value

    return BeforeValidator(checked)


def _as_id(value: object) -> object:
    """Return an id as text; empty for None. What is neither a text nor a number stays as it is."""
    return "" if value is None else _number_as_text(value)


def _as_ids(value: object) -> object:
    """Return a set of ids sorted, so that the order is fixed; refuse a text or mapping.

    Anything else stays as it is.
    """
    # A set has another order in every process.
    if isinstance(value, str | bytes | Mapping):
        raise ValueError("should be a list of ids")
    return sorted(value, key=str) if isinstance(value, set | frozenset) else value


def _no_empty_id(name: str) -> str:
    if not name:
        raise ValueError("should not be empty")
    return name


def _numbers_of_documents(numbers: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
    """Return document numbers sorted, each once; refuse one that no document has."""
    documents = info.data.get("documents")
    if documents is not None and any(number >= len(documents) for number in numbers):
        raise ValueError(f"should be numbers of the {len(documents)} documents, counted from 0")
    return tuple(sorted(set(numbers)))


DocumentNumbers = Annotated[
    tuple[Count, ...], _list_of("numbers of documents"), AfterValidator(_numbers_of_documents)
]
"""Numbers of documents, from 0, ascending, each once."""


def row_key_of(
    question: str,
    documents: Iterable[tuple[str | None, str]],
    response: str | None,
    reference: str | None = None,
    history: Sequence[Turn] = (),
    earlier: Sequence[int] = (),
    alternatives: Sequence[str] = (),
) -> str:
    """Work out `RagCall.row_key`, 64 hex digits, from the texts that it depends on.

    An empty header counts as none.

    Args:
        question: the question.
        documents: header and text of each document.
        response: the response.
        reference: the expected response.
        history: the earlier turns.
        earlier: numbers of the documents of earlier turns, ascending.
        alternatives: further expected responses.
    """
    # The same text as `json.dumps` writes for these values as lists, ASCII only and without
    # spaces. Capture may work a key out for every call: for 400 characters that took 62,000
    # instructions by way of `dumps`, and takes 37,000 with strings encoded one by one, of which
    # the hash is 17,500.
    # Without headers, or documents of earlier turns, the key is that of the time before there were
    # any.
    texts = []
    for header, text in documents:
        texts.append(f"[{_quoted(header)},{_quoted(text)}]" if header else _quoted(text))
    answer = "null" if response is None else _quoted(response)
    wanted = "null" if reference is None else _quoted(reference)
    if alternatives:
        wanted = f"[{wanted},{','.join(map(_quoted, alternatives))}]"
    turns = ",".join([f"[{_quoted(turn.role)},{_quoted(turn.content)}]" for turn in history])
    again = f",[{','.join(map(str, earlier))}]" if earlier else ""
    content = f"[{_quoted(question)},[{','.join(texts)}],{answer},{wanted},[{turns}]{again}]"
    return hashlib.sha256(content.encode("ascii")).hexdigest()


class RagCall(Record):
    """One question, the documents retrieved for it and the response given."""

    question: Text
    """The user's question; empty when it is not known."""
    documents: Annotated[
        tuple[Annotated[Document, BeforeValidator(_as_document)], ...], _list_of("documents")
    ]
    """Documents in the order the model saw them; plain strings, LangChain documents and LlamaIndex
    nodes are taken as Documents."""
    response: Text | None
    """The app's answer; None for a retrieval alone."""
    id: Annotated[Text, BeforeValidator(_as_id)] = ""
    """The user's label; may repeat. Default: the first 16 hex digits of `row_key`."""
    reference: Text | None = None
    """Expected output, for metrics that compare with one. A list of several, each of which is
    right, is taken, too: its first is this, and the others are `alternatives`."""
    metadata: JsonObject = Field(default_factory=dict)
    capture: Capture | None = None
    history: Annotated[
        tuple[Annotated[Turn, BeforeValidator(as_turn)], ...], _list_of("turns")
    ] = ()
    """Earlier turns, oldest first; also dicts with `role` and `content`, and pairs of both."""
    started_at: datetime | None = None
    app: Text | None = None
    """Name of the app or chain."""
    sentences: Sentences | None = None
    """Sentences recorded with the call (RAGBench's `documents_sentences`): used as they are
    instead of splitting."""
    relevant_ids: Annotated[
        tuple[Annotated[Text, BeforeValidator(_number_as_text), AfterValidator(_no_empty_id)], ...]
        | None,
        BeforeValidator(_as_ids),
    ] = None
    """Ids of the documents that are relevant to the question, known beforehand (gold), for the
    metric `Retrieval`; None where they are not known, empty where no document is relevant."""
    earlier: Annotated[DocumentNumbers, Field(exclude_if=operator.not_)] = ()
    """Numbers, from 0, of the documents that earlier turns retrieved and the model was shown again.
    Capture puts them behind this turn's. Relevance, utilization, completeness and the metrics of
    retrieval leave them out; support counts them."""
    alternatives: Annotated[tuple[Text, ...], Field(exclude_if=operator.not_)] = ()
    """Further expected outputs, as right as `reference`."""

    if TYPE_CHECKING:
        # What is accepted is wider than what is kept; type checkers are told so here.
        def __init__(
            self,
            question: str,
            documents: Iterable[Document | str | object],
            response: str | None,
            *,
            id: str | int | None = None,
            reference: str | Sequence[str] | None = None,
            metadata: Mapping[str, JsonValue] = ...,
            capture: Capture | None = None,
            history: Iterable[Turn | Mapping[str, str] | tuple[str, str]] = ...,
            started_at: datetime | None = None,
            app: str | None = None,
            sentences: Sentences | None = None,
            relevant_ids: Iterable[str | int] | None = None,
            earlier: Iterable[int] = (),
            alternatives: Iterable[str] = (),
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _as_fields(cls, content: Any) -> Any:
        """Drop a written row key, and take several references apart."""
        # row_key is written for readers of the file; it is computed, never believed.
        if isinstance(content, dict) and "row_key" in content:
            content = {key: value for key, value in content.items() if key != "row_key"}
        if isinstance(content, dict) and isinstance(content.get("reference"), list | tuple):
            first, *others = dict.fromkeys(content["reference"]) or [None]
            more = {"alternatives": (*others, *content.get("alternatives", ()))} if others else {}
            return {**content, "reference": first, **more}
        return content

    @property
    def references(self) -> tuple[str, ...]:
        """The expected outputs; empty without one."""
        return () if self.reference is None else (self.reference, *self.alternatives)

    def model_post_init(self, context: Any, /) -> None:
        """Fill in the default id where it is empty; it is not among the fields that were set."""
        if not self.id:
            self.__dict__["id"] = self.row_key[:16]

    def __hash__(self) -> int:
        return hash(self.row_key)

    @cached_property
    def row_key(self) -> str:
        """The row's identity: sha256 of its canonical content, 64 hex digits.

        Content is what is judged: question, documents' headers and texts, response, references,
        history and `earlier`. Labels and circumstances (id, metadata, document ids and scores,
        capture, time) are left out, so that the same call captured twice, or read from two files,
        has the same key.
        `relevant_ids` are left out, too: no judge is shown them.
        """
        documents = [(document.header, document.text) for document in self.documents]
        return row_key_of(
            self.question,
            documents,
            self.response,
            self.reference,
            self.history,
            self.earlier,
            self.alternatives,
        )


def call_of(call: RagCall | None, fields: Mapping[str, Any]) -> RagCall:
    """Return the given call, or make one of the given fields.

    Raises:
        ConfigurationError: there are both, or neither, or it is not a `RagCall`.
        InputError: the fields do not make a call.
    """
    if (call is None) == (not fields):
        why = "pass a RagCall, or its fields question=…, documents=…, response=…"
        raise ConfigurationError("call", call, why, missing=True)
    if call is None:
        return RagCall(**fields)
    if not isinstance(call, RagCall):
        fields_of = "pass its fields question=…, documents=…, response=…"
        why = f"should be a RagCall, not {type(call).__name__}; {fields_of}"
        raise ConfigurationError("call", call, why, missing=True)
    return call


class SentencizedCall(Record):
    """Stage 2: a call with its keyed sentences, which is what a judge is shown."""

    call: RagCall
    sentences: Sentences
    splitter: Text
    """Name and version of what split it; `recorded` where the call brought its sentences."""

    @property
    def documents(self) -> tuple[Sentence, ...]:
        """All document sentences, in order."""
        return self.sentences.documents

    @property
    def response(self) -> tuple[Sentence, ...]:
        """The response sentences that are judged, in order; empty without a response.

        `sentences.response` has the others, too: those of a list of sources.
        """
        return self.sentences.claims

    def of_this_turn(self) -> SentencizedCall:
        """Return the call without the sentences of documents that earlier turns retrieved."""
        if not self.call.earlier:
            return self
        earlier = set(map(str, self.call.earlier))
        own = [s for s in self.documents if s.key.rstrip(ascii_lowercase) not in earlier]
        sentences = self.sentences.model_copy(update={"documents": tuple(own)})
        return self.model_copy(update={"sentences": sentences})


@dataclass(slots=True, eq=False)
class EndedCall:
    """An ended call as captured, without the app's own objects; makes the record of it.

    Finding the documents in the prompt and hashing the texts is a third of what capture adds to a
    call: an evaluator in the background leaves that to its own thread.
    """

    run_id: object
    """The framework's id of the outermost run."""
    status: CaptureStatus
    _make: Callable[[], RagCall] | None
    """Makes the record; called once at most."""
    _release: Callable[[], object]
    """Frees what the record is made of."""
    _failed: Callable[[Exception], object]
    """Called with the exception if the record cannot be made."""
    _record: RagCall | None = None

    def record(self) -> RagCall | None:
        """Make the record, or return the one made before; None if that failed.

        A failure is given to `_failed`. What the record is made of is released in any case.
        """
        make, self._make = self._make, None
        if make is not None:
            try:
                self._record = make()
            except Exception as error:  # noqa: BLE001 -- the boundary: told and counted by capture
                self._failed(error)
            finally:
                self._release()
        return self._record

    def drop(self) -> None:
        """Release the objects that the record would be made of; `record` returns None then.

        Does nothing once the record was made.
        """
        if self._make is not None:
            self._make = None
            self._release()
