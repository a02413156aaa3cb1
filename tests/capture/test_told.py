"""What a person would read wrong, or wait for in vain, is told: the same in either framework."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever

from rag_eval_integrations import (
    BackgroundEvaluator,
    Document,
    Evaluations,
    RagEvaluator,
    langchain,
    llama_index,
)
from rag_eval_integrations.evaluations import collection
from rag_eval_integrations.records import RagCall

from ..langchain import conftest as langchain_app
from ..llama_index import conftest as llama_index_app
from .test_delivered import (
    CAPTURING,
    QUESTION,
    Attach,
    langchain_handler,
    langchain_runnable,
    llama_index_engine,
    llama_index_handler,
)
from .test_handler_per_request import WAIT, Gate

MISSING = "1 is being judged: `handler.flush()` waits for it"


class TestNotFinal:
    @pytest.mark.parametrize("shared", [True, False], ids=["evaluator", "background"])
    @pytest.mark.parametrize("attach", CAPTURING)
    def test_what_is_being_judged_is_named(self, attach: Attach, shared: bool) -> None:
        """Printed, in a notebook and behind the end, until `flush` has waited for it."""
        gate = Gate()
        with BackgroundEvaluator(RagEvaluator(gate)) as background:
            capturing, ask = attach(RagEvaluator(gate) if shared else background)
            ask()
            assert capturing.flush(WAIT)
            ask("A slow question?")

            early = capturing.evaluations
            verdict, headline, *_ = str(early).split("\n")
            assert re.match(r"1 call, [01] scored", headline)
            assert verdict.endswith(f"; {MISSING}")
            assert repr(early).endswith(f"; {MISSING}>")
            assert f"; {MISSING}</p>" in early._repr_html_()
            with pytest.raises(IndexError, match=r"^index 1 of 1 evaluation; 1 is being judged: "):
                early[1]
            ask("Another slow question?")
            assert "2 are being judged: `handler.flush()` waits for them" in repr(
                capturing.evaluations
            )

            gate.open.set()
            assert capturing.flush(WAIT)
            final = capturing.evaluations
            shown = (str(final), repr(final), final._repr_html_())
            assert not [text for text in shown if "being judged" in text]
            with pytest.raises(IndexError, match=r"^index 3 of 3 evaluations$"):
                final[3]

    @pytest.mark.parametrize("attach", [langchain_handler, llama_index_handler])
    def test_a_length_that_is_not_final_is_told_once(
        self, attach: Attach, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In the log; what is iterated over, or final, is not."""
        monkeypatch.setattr(collection._COUNTED, "_kinds", set())
        gate = Gate()
        capturing, ask = attach(RagEvaluator(gate))
        ask("A slow question?")
        early = capturing.evaluations
        assert [*iter(early)] == []
        assert caplog.messages == []

        assert (len(early), len(capturing.evaluations)) == (0, 0)
        assert caplog.messages == [f"these are not all: 0 evaluations; {MISSING}"]

        gate.open.set()
        assert capturing.flush(WAIT)
        assert (len(capturing.evaluations), len(caplog.messages)) == (1, 1)

    def test_others_have_nothing_to_wait_for(self) -> None:
        """Evaluations of a file or a list are all there are."""
        assert "flush" not in f"{Evaluations()} {Evaluations()!r}"
        with pytest.raises(IndexError, match=r"^index -1 of 0 evaluations$"):
            Evaluations()[-1]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines about what no run has reached."""
    return [line for line in caplog.messages if line.startswith("no run has reached")]


class TestNothingArrives:
    @pytest.mark.parametrize("target", [RagEvaluator(), print], ids=["evaluator", "function"])
    @pytest.mark.parametrize("passed", ["keyword", "configurable"])
    def test_langchain(self, target: Any, passed: str, caplog: pytest.LogCaptureFixture) -> None:
        """A handler that was passed as LangChain does not read it; said once, by `flush`."""
        handler = langchain.RagEvalCallbackHandler(target)
        chain = langchain_app.rag_chain()
        if passed == "keyword":
            chain.invoke(QUESTION, callbacks=[handler])
        else:
            chain.invoke(QUESTION, {"configurable": {"callbacks": [handler]}})

        assert caplog.messages == []
        for _ in range(2):
            assert handler.flush()
        assert told(caplog) == [
            'no run has reached this handler; pass it to the call by config={"callbacks": [handler]}'
        ]

    def test_llama_index(self, caplog: pytest.LogCaptureFixture) -> None:
        """A handler that was not installed."""
        handler = llama_index.RagEvalHandler("embedded")
        llama_index_app.engine().query(QUESTION)

        assert handler.flush()
        (line,) = told(caplog)
        assert "this handler; call `install()` before" in line

    @pytest.mark.parametrize("attach", [langchain_runnable, llama_index_engine])
    def test_wrappers(self, attach: Attach, caplog: pytest.LogCaptureFixture) -> None:
        """What they wrap was called in their place."""
        capturing, _ = attach("embedded")

        assert capturing.flush()
        (line,) = told(caplog)
        assert line.startswith("no run has reached this wrapper; call ")

    @pytest.mark.parametrize("attach", CAPTURING)
    def test_nothing_is_told_where_runs_arrive(
        self, attach: Attach, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Nor of a wrapper whose calls a handler of the same target captures."""
        calls: list[RagCall] = []
        capturing, ask = attach(calls.append)
        with llama_index.RagEvalHandler(calls.append):
            ask()

        assert capturing.flush()
        assert told(caplog) == []


class TestWrongPlace:
    @pytest.mark.parametrize(
        ("handler", "hint"),
        [
            (langchain.RagEvalCallbackHandler(print), r"llama_index\.RagEvalHandler\(target\)"),
            (llama_index.RagEvalHandler(print), r"call `install\(\)`"),
        ],
    )
    def test_a_manager_of_llama_index(self, handler: Any, hint: str) -> None:
        """Neither handler is for it, which the first query says."""
        engine = llama_index_app.engine()
        engine.callback_manager = CallbackManager([handler])

        with pytest.raises(AttributeError, match=hint):
            engine.query(QUESTION)

    async def test_a_manager_of_langchain(self) -> None:
        """LlamaIndex's handler is not for its calls, in sync or async code."""
        config: Any = {"callbacks": [llama_index.RagEvalHandler(print)]}
        hint = r"langchain\.RagEvalCallbackHandler\(target\)"

        with pytest.raises(AttributeError, match=hint):
            langchain_app.rag_chain().invoke(QUESTION, config)
        with pytest.raises(AttributeError, match=hint):
            await RunnableLambda(str).ainvoke(QUESTION, config)

    @pytest.mark.parametrize(
        "handler", [langchain.RagEvalCallbackHandler, llama_index.RagEvalHandler]
    )
    def test_other_attributes_are_missing_as_usual(self, handler: Any) -> None:
        """In the words of Python."""
        with pytest.raises(AttributeError, match=r"object has no attribute 'evaluation'$"):
            handler(print).evaluation  # noqa: B018 -- reading it is what fails

    def test_our_document_in_langchain(self, caplog: pytest.LogCaptureFixture) -> None:
        """Of a retriever it is told once; what reads its text is told by the error."""
        ours: Any = [Document("The kettle boils in four minutes.")]
        handler = langchain.RagEvalCallbackHandler(print)

        class Own(langchain_app.Sections):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
                return ours

        chain = langchain_app.rag_chain(
            Own(),
            fmt=lambda documents: "\n".join(document.text for document in documents),
        )
        for _ in range(2):
            chain.invoke(QUESTION, {"callbacks": [handler]})
        lines = [line for line in caplog.messages if "a retriever returned" in line]
        assert len(lines) == 1
        assert "return langchain_core.documents.Document" in lines[0]

        with pytest.raises(AttributeError, match=r"use langchain_core\.documents\.Document here$"):
            InMemoryVectorStore(DeterministicFakeEmbedding(size=3)).add_documents(ours)

    def test_our_document_in_llama_index(self) -> None:
        """Where it is indexed, and where a retriever returns it."""
        ours: Any = [Document("The kettle boils in four minutes.")]

        class Own(BaseRetriever):
            def _retrieve(self, query_bundle: Any) -> Any:
                return ours

        hint = r"use llama_index\.core\.schema\.Document or NodeWithScore here$"
        with pytest.raises(AttributeError, match=hint):
            VectorStoreIndex.from_documents(ours, embed_model=MockEmbedding(3))
        with pytest.raises(AttributeError, match=hint):
            Own().retrieve(QUESTION)
