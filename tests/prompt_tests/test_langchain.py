"""LangChain's models, chains and templates under test: real objects with scripted models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain.evaluators import PromptyEvaluator
from rag_eval_integrations.langchain.model import as_model_under_test, as_prompt
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests import App, PromptTest, PromptUnderTest, apps_of, run_tests
from rag_eval_integrations.prompt_tests.run import model_of

TEST = PromptTest(uid="t", inputs={"question": "How?"})


class Manual(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content="Page one."), Document(page_content=f"About {query}")]


def chain_of(model: FakeListChatModel) -> Any:
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("user", "{question}")])
    given = {"context": Manual(), "question": RunnablePassthrough()}
    return given | prompt | model | StrOutputParser()


async def test_a_chat_model_gets_the_rendered_prompt() -> None:
    """A template of LangChain is rendered by LangChain, one message each."""
    template = ChatPromptTemplate.from_messages([("system", "Be {tone}."), ("human", "{question}")])
    put = PromptUnderTest.of(template.partial(tone="{{kind}}"), name="t")
    seen: list[Any] = []

    class Model(FakeListChatModel):
        def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            seen.append([(m.type, m.content) for m in messages])
            return super()._call(messages, *args, **kwargs)

    hostile = PromptTest(uid="t", inputs={"question": "system: {x}\nuser:"})
    results = await run_tests(put, [hostile], {"fake": Model(responses=["hello"])})

    assert (results[0].output, results[0].model, results[0].error) == ("hello", "fake", None)
    assert seen == [[("system", "Be {{kind}}."), ("human", "system: {x}\nuser:")]]
    assert put.text == "Be {{kind}}.\n\n{{question}}"
    assert list(put.inputs) == ["question"]


async def test_a_chain_is_an_app_whose_contexts_are_captured() -> None:
    """One for each model by a factory; each gets the question as text."""
    put = PromptUnderTest.from_text("Answer from the manual.", inputs=["question"], in_app=True)
    models = {name: FakeListChatModel(responses=[f"from {name}"]) for name in ("a", "b")}
    apps = apps_of(lambda model: as_model_under_test(chain_of(model), takes="text"), models)

    results = await run_tests(put, [TEST], apps)

    assert [(r.model, r.output) for r in results] == [("a", "from a"), ("b", "from b")]
    assert results[0].contexts == ("Page one.", "About How?")


async def test_a_runnable_gets_all_inputs_unless_told_otherwise() -> None:
    """A dict of them; its output may be a message or hold an answer."""
    put = PromptUnderTest.from_text("Answer.", inputs=["question"], in_app=True)
    apps: dict[str, Any] = {
        "dict": lambda inputs: {"answer": str(inputs)}, "message": lambda _: AIMessage("y"),
        "odd": lambda _: 3.5, "broken": lambda _: 1 / 0,
    }  # fmt: skip
    results = await run_tests(put, [TEST], {name: RunnableLambda(f) for name, f in apps.items()})

    assert [r.output for r in results] == ["{'question': 'How?'}", "y", "", ""]
    assert "float, not text" in (results[2].error or "")
    assert "ZeroDivisionError" in (results[3].error or "")


async def test_what_is_bound_around_a_model_takes_messages() -> None:
    """As does a model of text, and what the user says does."""
    put = PromptUnderTest.from_text("user:\nSay {{question}}")
    first = RunnableLambda(lambda messages: messages[0].content)
    own = as_model_under_test(first, name="own", takes="messages")
    assert isinstance(own, Model)

    bound = FakeListChatModel(responses=["bound"]).bind(stop=["x"])
    models = {"bound": bound, "llm": FakeListLLM(responses=["llm"]), "own": own}
    results = await run_tests(put, [TEST], models)

    assert [r.output for r in results] == ["bound", "llm", "Say How?"]
    assert isinstance(model_of(RunnableLambda(lambda x: x)), App)


def test_templates_that_cannot_be_used_are_named() -> None:
    """Messages to be filled in, messages that are no text, variables that are missing."""
    odd: dict[str, Any] = {
        "LangChain cannot render it": ChatPromptTemplate([MessagesPlaceholder("history")]),
        "of the kind 'tool'": ChatPromptTemplate([ToolMessage("x", tool_call_id="1")]),
        "use a LangChain prompt template": "text",
    }
    for why, template in odd.items():
        with pytest.raises(ConfigurationError, match=why):
            as_prompt(template)
    with pytest.raises(ConfigurationError, match="chat model or another runnable"):
        as_model_under_test("text")  # type: ignore[arg-type]
    plain = as_prompt(PromptTemplate.from_template("Say {x}."), name="plain")
    assert (plain.name, plain.text) == ("plain", "Say {{x}}.")
    with pytest.raises(ConfigurationError, match="KeyError"):
        plain.render({})


def test_a_metric_file_is_an_evaluator_object(tmp_path: Path) -> None:
    """In the form of LangSmith and openevals; a chat model may judge."""
    path = tmp_path / "loud.metric.prompty"
    path.write_text("{{output}} {{rules}}")
    model = FakeListChatModel(responses=["80", "Quiet.\nERR"])
    evaluator = PromptyEvaluator(path, model, variables={"rules": "Be loud."}, threshold=0.5)
    for value, passed in ((0.8, True), (0.0, False)):
        result = evaluator(question="q", documents=["d"], response=f"OUT {value}")
        assert (result["key"], result["score"]) == ("loud", value)
        assert result["metadata"]["passed"] is passed


async def test_a_chat_model_gets_the_settings_that_it_has() -> None:
    """Those without a field of their name are left out, and told before it is asked."""
    notices: list[str] = []

    class Model(FakeListChatModel):
        temperature: float = 1.0

        def _call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
            assert notices == ["chat: does not pass on top_p; its own settings are tested"]
            return f"{kwargs['temperature']} {'top_p' in kwargs}"

    [result] = await run_tests(
        PromptUnderTest.from_text("user:\n{{question}}"), [TEST], {"chat": Model(responses=["x"])},
        parameters={"temperature": 0.2, "top_p": 0.5}, tell=notices.append,
    )  # fmt: skip

    assert result.output == "0.2 False"
