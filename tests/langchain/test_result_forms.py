"""The response by what it is: by a name that ends in answer, or as what the last model wrote."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from pydantic import BaseModel

from .apps import QUESTION, graph, scripted
from .conftest import ANSWER, Captured, Sections, joined, model, run


class Reply(BaseModel):
    answer: str
    sources: list[int] = []


@dataclass
class Result:
    answer_text: str
    attempts: int = 1


@dataclass(slots=True)
class Slotted:
    told: str
    question: str = QUESTION
    passages: list[str] = field(default_factory=list)


FORMS: dict[str, Any] = {
    "answer_text": lambda text: {"answer_text": text, "question": QUESTION},
    "final_answer": lambda text: {"final_answer": text, "sources": ["a.pdf"]},
    "bot_response": lambda text: {"bot_response": text, "user_response": "Thank you."},
    "camel case": lambda text: {"answerText": text, "answerType": "short"},
    "dict in a dict": lambda text: {"cited": {"answer": text, "citations": [1]}, "n": 1},
    "model in a dict": lambda text: {"cited": Reply(answer=text), "n": 1},
    "model": lambda text: Reply(answer=text),
    "dataclass": Result,
    "dataclass without a name": Slotted,
    "tuple": lambda text: (text, Sections().invoke(QUESTION)),
    "list": lambda text: [text],
    "unknown key": lambda text: {"md": text, "question": QUESTION, "steps": ["find", "write"]},
    "deep": lambda text: {"data": {"reply": {"html": text, "ok": True}}},
}


class TestForms:
    @pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
    @pytest.mark.parametrize("form", FORMS)
    async def test_written_by_the_model(self, captured: Captured, form: str, way: str) -> None:
        """Whatever an app calls the model's text, and wherever it puts it, it is the response."""
        chain = Sections() | RunnableLambda(joined) | model() | (lambda m: FORMS[form](m.text))
        await run(chain, QUESTION, way, captured.config)

        assert captured.ended == (ANSWER, "ok")
        assert captured.found == (["a", "b", "c"], "prompt", [])

    @pytest.mark.parametrize("form", ["answer_text", "dict in a dict", "dataclass"])
    def test_by_name(self, captured: Captured, form: str) -> None:
        """A name goes before what the model wrote."""
        chain = Sections() | RunnableLambda(joined) | model() | (lambda m: FORMS[form]("Four."))
        chain.invoke(QUESTION, captured.config)

        assert captured.responses == ["Four."]

    def test_around_the_text(self, captured: Captured) -> None:
        """What an app wrote around the model's text is part of the response."""
        chain = Sections() | RunnableLambda(joined) | model()
        (chain | (lambda m: {"md": f"**Told:** {m.text}", "of": "us"})).invoke(
            QUESTION, captured.config
        )

        assert captured.responses == [f"**Told:** {ANSWER}"]

    @pytest.mark.parametrize("wrap", [dict, lambda args: Reply(**args)])
    def test_structured(self, captured: Captured, wrap: Any) -> None:
        """Of an answer with citations that a model gave as a tool's arguments, it is the answer."""
        args = {"answer": ANSWER, "sources": [1]}
        call = AIMessage("", tool_calls=[{"name": "Reply", "args": args, "id": "1"}])
        chain = Sections() | RunnableLambda(joined) | scripted(call)
        (chain | (lambda m: {"cited": wrap(m.tool_calls[0]["args"])})).invoke(
            QUESTION, captured.config
        )

        assert captured.responses == [ANSWER]

    def test_last_of_several(self, captured: Captured) -> None:
        """Of a draft and what a model made of it, it is the latter."""

        class Drafts(TypedDict, total=False):
            question: str
            first: str
            second: str

        def draft(state: Drafts) -> Drafts:
            return {"first": model("Soon, so to say.").invoke(joined(Sections().invoke("q"))).text}

        def polish(state: Drafts) -> Drafts:
            return {"second": model().invoke(f"Polish {state['first']}").text}

        graph(Drafts, draft=draft, polish=polish).invoke({"question": QUESTION}, captured.config)

        assert captured.responses == [ANSWER]
        assert captured.ids == ["a", "b", "c"]

    def test_is_told(self, captured: Captured, caplog: pytest.LogCaptureFixture) -> None:
        """Where no answer can be told, one line names the fields and the hook."""
        chain = Sections() | RunnableLambda(joined) | model() | (lambda m: {"md": "4", "n": 1})
        for _ in range(2):
            chain.invoke(QUESTION, captured.config)

        assert captured.responses == [None, None]
        (record,) = caplog.records
        assert record.levelno == logging.WARNING
        assert "'md', 'n'" in caplog.text
        assert "response=" in caplog.text
