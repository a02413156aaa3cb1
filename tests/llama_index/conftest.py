"""A LlamaIndex app to observe: a real vector index and query engine; a scripted model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from captured_calls import CapturedCalls
from captured_calls import substance as substance
from llama_index.core import PromptHelper, VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index_instrumentation import get_dispatcher

from rag_eval_integrations.cli.demo.llama_index_app import HashedWords
from rag_eval_integrations.llama_index import RagEvalHandler
from rag_eval_integrations.records import RagCall

QUESTION = "How fast is the kettle?"
TOKENS = ["The", " kettle", " boils", " in", " four", " minutes."]
ANSWER = "".join(TOKENS)


class Model(CustomLLM):
    """Says the same, in one piece or token by token; fails where `error` is set."""

    error: str | None = None
    fail_after: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        if self.error is not None:
            raise RuntimeError(self.error)
        return CompletionResponse(text=ANSWER)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        text = ""
        for i, token in enumerate(TOKENS):
            if i == self.fail_after:
                raise RuntimeError("connection lost")
            text += token
            yield CompletionResponse(text=text, delta=token)


class Sections(BaseRetriever):
    """Finds the given nodes, or `nodes()`, whatever is asked; fails where `error` is set."""

    def __init__(self, found: list[TextNode] | None = None, error: str | None = None) -> None:
        super().__init__(callback_manager=CallbackManager([]))
        self._nodes = nodes() if found is None else found
        self._error = error

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self._error is not None:
            raise RuntimeError(self._error)
        return scored(self._nodes)


def nodes() -> list[TextNode]:
    return [
        TextNode(id_="a", text="The kettle boils in four minutes.", metadata={"page": 3}),
        TextNode(id_="b", text="The lid opens with one hand."),
        TextNode(id_="c", text="The base turns all the way round."),
    ]


def scored(some: list[TextNode] | None = None) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=0.5) for node in (nodes() if some is None else some)]


def index() -> VectorStoreIndex:
    return VectorStoreIndex(nodes(), embed_model=HashedWords(), transformations=[])


HELPER = PromptHelper(context_window=4096, num_output=256, tokenizer=str.split)


def synthesizer(llm: Any = None, **options: Any) -> Any:
    return get_response_synthesizer(
        llm=llm or Model(), prompt_helper=HELPER, callback_manager=CallbackManager([]), **options
    )


def engine(
    retriever: BaseRetriever | None = None,
    *,
    llm: Any = None,
    postprocessors: Any = None,
    **more: Any,
) -> RetrieverQueryEngine:
    retriever = retriever or index().as_retriever(similarity_top_k=3)
    return RetrieverQueryEngine(
        retriever, synthesizer(llm, **more), postprocessors, CallbackManager([])
    )


@pytest.fixture
def calls() -> list[RagCall]:
    """Where a handler or a wrapper of the test's own delivers."""
    return []


class Captured(CapturedCalls):
    """A handler and what it delivered."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.handler = RagEvalHandler(self.calls.append, **options)


@pytest.fixture(autouse=True)
def _dispatcher_as_before() -> Iterator[None]:
    """The dispatcher belongs to the process: a test leaves nothing on it."""
    root = get_dispatcher()
    before = [id(handler) for handler in [*root.span_handlers, *root.event_handlers]]
    yield
    assert [id(handler) for handler in [*root.span_handlers, *root.event_handlers]] == before


@pytest.fixture
def captured() -> Iterator[Captured]:
    """Whatever a test does: nothing stays open, and the capture itself never fails."""
    captured = Captured()
    with captured.handler:
        yield captured
    assert captured.handler.open_calls == 0
    assert captured.handler.failed == 0
    assert not captured.handler._recorder.spans
    assert not captured.handler._recorder._late


def ids(call: RagCall) -> list[str | None]:
    """The ids of a call's documents, in order."""
    return [document.id for document in call.documents]
