"""`question=`, `documents=` and `response=`: what the user extracts himself."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from rag_eval_integrations import Document
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.records import RagCall, from_line, to_line

from .apps import QUESTION, Store
from .conftest import ANSWER, PROMPT, Captured, joined, model, rag_chain, sections


def ask(chain: Any, given: Any, **hooks: Any) -> Captured:
    captured = Captured(**hooks)
    chain.invoke(given, captured.config)
    assert captured.handler.open_calls == 0
    return captured


def texts() -> list[str]:
    return [document.page_content for document in sections()]


def unseen(question: str) -> dict[str, Any]:
    """An app that searches and asks where no event tells."""
    retrieved = Store().similarity_search(question)
    filled = PROMPT.invoke({"context": joined(retrieved), "question": question})
    return {"reply": model().invoke(filled).text, "sources": texts()}


class TestHooks:
    def test_each_overrides_its_field(self) -> None:
        """What a hook says stands, where the usual capture would have said something else."""
        chain = RunnableLambda(lambda given: given["ask"]) | rag_chain()

        given = {"ask": "rephrased", "input": "not this", "who": QUESTION}
        captured = ask(
            chain, given, question=lambda inputs: inputs["who"],
            documents=lambda inputs, outputs: sections()[:1],
            response=lambda outputs: outputs.upper(),
        )  # fmt: skip

        assert captured.exchange == (QUESTION, ANSWER.upper())
        assert captured.found == (["a"], "prompt", ["b", "c"])
        assert (captured.how.metadata, captured.handler.failed) == ({}, 0)
        assert from_line(RagCall, to_line(captured.only)) == captured.only

    def test_documents_that_no_event_told(self) -> None:
        """With documents from the hook, a call in which no retriever ran is a RAG call."""
        captured = ask(
            RunnableLambda(unseen), QUESTION,
            documents=lambda inputs, outputs: outputs["sources"],
            response=lambda outputs: outputs["reply"],
        )  # fmt: skip

        assert [document.text for document in captured.only.documents] == texts()
        assert (captured.exchange, captured.how.documents_from) == ((QUESTION, ANSWER), "prompt")

    @pytest.mark.parametrize(
        ("given", "ids_and_scores"),
        [
            ([Document("x", id="1", score=0.5)], [("1", 0.5)]),
            ([(sections()[0], 0.75)], [("a", 0.75)]),
            ([{"page_content": "x", "id": "9"}], [("9", None)]),
            ([{"passage": "x", "source_id": 7, "relevance_score": 0.5}], [("7", 0.5)]),
            ([["x", 0.5]], [(None, 0.5)]),
            ({"content": "x", "id": "9"}, [("9", None)]),
            ({"context": ["x"]}, [(None, None)]),
            (iter(["x"]), [(None, None)]),
            ((), []),
        ],
        ids=["ours", "pair", "dict", "names", "list", "one", "under a key", "iterator", "none"],
    )
    def test_shapes_of_documents(self, given: Any, ids_and_scores: list[Any]) -> None:
        """Documents may be strings, anyone's documents, or pairs with a score."""
        captured = ask(rag_chain(), QUESTION, documents=lambda inputs, outputs: given)

        assert [(d.id, d.score) for d in captured.only.documents] == ids_and_scores
        if ids_and_scores:
            in_prompt = ids_and_scores[0][0] == "a"
            assert captured.how.documents_from == ("prompt" if in_prompt else "dataflow")
        assert captured.handler.failed == 0

    def test_none_leaves_it_to_the_capture(self) -> None:
        """A documents hook that returns None has no opinion; a response hook says there is none."""
        hooks = {"documents": lambda inputs, outputs: None, "response": lambda outputs: None}
        captured = ask(rag_chain(), QUESTION, **hooks)

        assert (captured.ids, captured.only.response) == (["a", "b", "c"], None)
        assert ask(model(), QUESTION, documents=hooks["documents"]).calls == []

    def test_true_inputs_of_a_stream(self) -> None:
        """Of a stream, hooks see the inputs, not LangChain's stand-in for them."""
        seen: list[Any] = []
        captured = Captured(
            question=lambda inputs: seen.append(inputs) or "asked",  # type: ignore[func-returns-value,redundant-expr]
            documents=lambda inputs, outputs: seen.append(inputs),
        )

        list(rag_chain().stream(QUESTION, captured.config))

        assert seen == [QUESTION, QUESTION]
        assert captured.questions == ["asked"]


class TestBrokenHooks:
    @pytest.mark.parametrize(
        ("name", "hook"),
        [
            ("question", lambda inputs: inputs["gone"]),
            ("question", lambda inputs: 7),
            ("documents", lambda inputs, outputs: outputs.gone),
            ("documents", lambda inputs, outputs: "one string"),
            ("documents", lambda inputs, outputs: [7]),
            ("response", lambda outputs: outputs.gone),
            ("response", lambda outputs: 7),
        ],
    )
    def test_leaves_it_empty(self, name: str, hook: Any, caplog: pytest.LogCaptureFixture) -> None:
        """A hook that fails is logged, counted and named; nothing is put in its field's place.

        The log says what of our rules it broke, or type and line: its own words may quote texts.
        """
        with caplog.at_level(logging.ERROR):
            captured = ask(rag_chain(), {"question": QUESTION}, **{name: hook})

        empty = {"question": "", "documents": (), "response": None}
        assert [key for key in empty if getattr(captured.only, key) == empty[key]] == [name]
        assert captured.how.metadata == {"rag_eval_hook_failed": [name]}
        assert captured.handler.failed == 1
        (told,) = caplog.records
        broken = (
            r"failed with (\w+Error \(test_capture_hooks.py, line \d+\)|should (be|return) |int is)"
        )
        assert re.match(f"the `{name}` hook {broken}", told.getMessage())
        assert not told.exc_info

    def test_words_stay_out_of_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        """Also of what is raised while the documents that it returned are read."""

        def documents(inputs: Any, outputs: Any) -> Any:
            yield "a document"
            raise ValueError(outputs)

        ask(rag_chain(), QUESTION, documents=documents, response=int)

        assert "the `response` hook failed with ValueError;" in caplog.text
        assert "the `documents` hook failed with ValueError (test_capture" in caplog.text
        assert ANSWER not in caplog.text

    @pytest.mark.parametrize("name", ["question", "documents", "response"])
    def test_refused(self, name: str) -> None:
        """What cannot be called, or would have to be awaited, is refused by name."""

        async def later(*values: Any) -> Any:
            """Never runs."""

        class Callable:
            __call__ = later

        for hook in ("text", later, Callable()):
            with pytest.raises(ConfigurationError, match=f"`{name}`"):
                RagEvalCallbackHandler(print, **{name: hook})  # type: ignore[arg-type]
