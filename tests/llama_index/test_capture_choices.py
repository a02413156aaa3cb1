"""Which of the nodes seen are a call's documents, where an app or a postprocessor chooses."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import PromptHelper
from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import CompletionResponse
from llama_index.core.postprocessor import LLMRerank, SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from .conftest import ANSWER, Captured, Model, Sections, engine, ids, nodes, seen

QUESTION = "How fast is the kettle?"
HELPER = PromptHelper(context_window=4096, num_output=256, tokenizer=str.split)


class Own(CustomQueryEngine):
    """An app's own engine: the function is given the nodes' texts, and asks a model by itself."""

    answer: Any

    def custom_query(self, query_str: str) -> str:
        found = Sections(nodes()).retrieve(query_str)
        return str(self.answer([one.get_content() for one in found]))


def say(prompt: str) -> str:
    return str(Model().complete(prompt).text)


class TestNothingLeft:
    def test_after_a_postprocessor(self, captured: Captured) -> None:
        """Where postprocessors drop every node, the answer rests on none."""
        dropping = engine(
            Sections(nodes()), postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.9)]
        )
        assert str(dropping.query(QUESTION)) == "Empty Response"

        assert captured.only.documents == ()
        assert seen(captured.only).documents_from == "dataflow"
        assert [one.id for one in seen(captured.only).not_in_prompt] == ["a", "b", "c"]

    @pytest.mark.parametrize("way", ["sync", "async"])
    async def test_after_a_model_that_reranks(self, captured: Captured, way: str) -> None:
        """The reranking model was shown them; the one that answers was not."""
        dropping = engine(Sections(nodes()), postprocessors=[LLMRerank(llm=Model(), top_n=1)])
        await dropping.aquery(QUESTION) if way == "async" else dropping.query(QUESTION)

        assert captured.only.documents == ()
        assert len(seen(captured.only).not_in_prompt) == 3


def test_a_node_put_together_uses_all_its_parts(captured: Captured) -> None:
    """A retrieved node's text counts as shown without the metadata in front of it, too."""

    class Join(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
            text = " ".join(one.node.get_content() for one in nodes)
            return [NodeWithScore(node=TextNode(id_="all", text=text), score=1.0)]

    engine(Sections(nodes()), postprocessors=[Join()]).query(QUESTION)

    assert ids(captured.only) == ["all"]
    assert seen(captured.only).not_in_prompt == ()


class TestOwnPrompts:
    def test_chosen_by_a_model(self, captured: Captured) -> None:
        """An app that asks a model about each document answers from those it shows again."""

        def graded(texts: list[str]) -> str:
            for text in texts:
                say(f"Is this of use? {text}")
            return say(f"Answer from: {texts[1]} {texts[2]}")

        Own(answer=graded).query(QUESTION)

        assert ids(captured.only) == ["b", "c"]
        assert [one.id for one in seen(captured.only).not_in_prompt] == ["a"]

    def test_refined(self, captured: Captured) -> None:
        """One that refines an answer with each answers from all."""

        def refined(texts: list[str]) -> str:
            answer = ""
            for text in texts:
                answer = say(f"Improve '{answer}' with: {text}")
            return answer

        Own(answer=refined).query(QUESTION)

        assert ids(captured.only) == ["a", "b", "c"]

    def test_summed_up(self, captured: Captured) -> None:
        """One that puts together what a model said of each answers from all."""

        class Echo(Model):
            def complete(self, prompt: str, formatted: bool = False, **more: Any) -> Any:
                super().complete(prompt)
                return CompletionResponse(text="It says little.")

        def summed(texts: list[str]) -> str:
            parts = [Echo().complete(f"Sum up: {text}").text for text in texts]
            return say(f"Answer from: {parts}")

        Own(answer=summed).query(QUESTION)

        assert ids(captured.only) == ["a", "b", "c"]

    def test_two_syntheses(self, captured: Captured) -> None:
        """An engine that synthesizes twice answers from both; what came before helped to ask."""

        class Twice(CustomQueryEngine):
            def custom_query(self, query_str: str) -> str:
                found = Sections(nodes()).retrieve(query_str)
                say(f"Which of these? {found[2].get_content()}")
                parts = get_response_synthesizer(
                    llm=Model(), prompt_helper=HELPER, callback_manager=CallbackManager([])
                )
                return "".join(str(parts.synthesize(query_str, [one])) for one in found[:2])

        Twice().query(QUESTION)

        assert ids(captured.only) == ["a", "b"]
        assert seen(captured.only).documents_from == "prompt"


class TestResults:
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    async def test_nodes_in_a_workflows_result(self, captured: Captured) -> None:
        """A workflow that returns its nodes next to its answer names its sources."""

        class Reports(Workflow):
            @step
            async def go(self, event: StartEvent) -> StopEvent:
                found = await Sections(nodes()).aretrieve(event.query)
                return StopEvent(result={"answer": "Four.", "notes": ["x"], "nodes": found[:1]})

        await Reports().run(query=QUESTION)

        assert captured.only.response == "Four."
        assert ids(captured.only) == ["a"]
        assert seen(captured.only).documents_from == "dataflow"


def test_the_question_is_found_by_name(captured: Captured) -> None:
    """An app's own `chat` may take something else first."""

    class App:
        @get_dispatcher("app").span
        def chat(self, user: str, message: str) -> str:
            return str(engine(Sections(nodes())).query(message))

    assert App().chat("bob", QUESTION) == ANSWER
    assert captured.only.question == QUESTION


def test_prompts_of_a_stream_that_fails_count(captured: Captured) -> None:
    """What a failed call saw stands: the model had its prompt before it failed."""
    response: Any = engine(Sections(nodes()), llm=Model(fail_after=2), streaming=True).query("Q?")
    with pytest.raises(RuntimeError, match="connection lost"):
        list(response.response_gen)

    assert seen(captured.only).status == "error"
    assert seen(captured.only).documents_from == "prompt"
