"""Which of the nodes seen are a call's documents, where an app or a postprocessor chooses."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.llms import CompletionResponse
from llama_index.core.postprocessor import LLMRerank, SimilarityPostprocessor
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from .apps import Chooses, Own
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, engine, nodes, synthesizer


def texts() -> list[str]:
    """The texts of nodes that are retrieved."""
    return [node.get_content() for node in Sections().retrieve(QUESTION)]


def say(prompt: str) -> str:
    return str(Model().complete(prompt).text)


class TestNothingLeft:
    def test_after_a_postprocessor(self, captured: Captured) -> None:
        """Where postprocessors drop every node, the answer rests on none."""
        cutoff = SimilarityPostprocessor(similarity_cutoff=0.9)
        dropping = engine(Sections(), postprocessors=[cutoff])
        assert str(dropping.query(QUESTION)) == "Empty Response"

        assert captured.found == ([], "dataflow", ["a", "b", "c"])

    async def test_after_a_model_that_reranks(self, captured: Captured) -> None:
        """The reranking model was shown them; the one that answers was not."""
        dropping = engine(Sections(), postprocessors=[LLMRerank(llm=Model(), top_n=1)])
        await dropping.aquery(QUESTION)

        assert (captured.ids, captured.left_out) == ([], ["a", "b", "c"])


def test_a_node_put_together_uses_all_its_parts(captured: Captured) -> None:
    """A retrieved node's text counts as shown without the metadata in front of it, too."""

    def join(retrieved: list[NodeWithScore]) -> list[NodeWithScore]:
        text = " ".join(scored.node.get_content() for scored in retrieved)
        return [NodeWithScore(node=TextNode(id_="all", text=text), score=1.0)]

    engine(Sections(), postprocessors=[Chooses(choose=join)]).query(QUESTION)

    assert captured.found == (["all"], "prompt", [])


def test_joined_into_a_new_index(captured: Captured) -> None:
    """What an app retrieves, joins and indexes anew was shown, also where nodes have metadata."""

    def answer(question: str) -> Any:
        page = TextNode(id_="p", text="The switch is blue.", metadata={"page": 4})
        retrieved = Sections([page, *nodes()[1:2]]).retrieve(question)
        joined = "\n".join([each.text for each in retrieved])
        found = Sections([TextNode(id_="joined", text=joined)])
        return engine(found).query(question)

    Own(answer=answer).query(QUESTION)

    assert captured.found == (["joined"], "prompt", [])


class TestOwnPrompts:
    def test_chosen_by_a_model(self, captured: Captured) -> None:
        """An app that asks a model about each document answers from those it shows again."""

        def graded(question: str) -> str:
            parts = texts()
            for text in parts:
                say(f"Is this of use? {text}")
            return say(f"Answer from: {parts[1]} {parts[2]}")

        Own(answer=graded).query(QUESTION)

        assert captured.found == (["b", "c"], "prompt", ["a"])

    @pytest.mark.parametrize("refined", [True, False])
    def test_of_all(self, captured: Captured, refined: bool) -> None:
        """One that refines an answer, or puts together what a model said of each, uses all."""

        def summed(question: str) -> str:
            if refined:
                answer = ""
                for text in texts():
                    answer = say(f"Improve '{answer}' with: {text}")
                return answer
            parts = [say(f"Sum up: {text}")[::-1] for text in texts()]
            return say(f"Answer from: {parts}")

        Own(answer=summed).query(QUESTION)

        assert captured.ids == ["a", "b", "c"]

    def test_two_syntheses(self, captured: Captured) -> None:
        """An engine that synthesizes twice answers from both; what came before helped to ask."""

        def twice(question: str) -> str:
            retrieved = Sections().retrieve(question)
            say(f"Which of these? {retrieved[2].get_content()}")
            parts = [synthesizer().synthesize(question, [node]) for node in retrieved[:2]]
            return "".join(map(str, parts))

        Own(answer=twice).query(QUESTION)

        assert captured.found == (["a", "b"], "prompt", ["c"])


SAME = "The kettle boils in four minutes."


def twins() -> list[TextNode]:
    """Nodes of several files: a retriever of older releases drops one that is equal but for its id."""
    texts = {"a1": SAME, "a2": SAME, "lid": "The lid opens by hand."}
    return [
        TextNode(id_=name, text=text, metadata={"file": name}, excluded_llm_metadata_keys=["file"])
        for name, text in texts.items()
    ]


class TestTwins:
    """Nodes with one text and two ids, of sources that overlap or were stored twice."""

    def test_of_an_engine(self, captured: Captured) -> None:
        """Each is a document."""
        engine(Sections(twins())).query(QUESTION)

        assert captured.found == (["a1", "a2", "lid"], "prompt", [])

    @pytest.mark.parametrize(
        ("choose", "shown", "left_out"),
        [
            (lambda nodes: nodes, ["a1", "a2", "lid"], []),
            (lambda nodes: nodes[1:2], ["a2"], ["a1", "lid"]),
            (lambda nodes: nodes[::2], ["a1", "lid"], ["a2"]),
        ],
    )
    @pytest.mark.parametrize("parts", [1, 2])
    def test_of_an_own_prompt(
        self, captured: Captured, choose: Any, shown: list[str], left_out: list[str], parts: int
    ) -> None:
        """Where it has the text once, it is the one passed on last."""

        def answer(question: str) -> str:
            lists = [twins()] if parts == 1 else [twins()[:1], twins()[1:]]
            nodes = [node for part in lists for node in Sections(part).retrieve(question)]
            chosen = Chooses(choose=choose).postprocess_nodes(nodes)
            return say("\n".join(node.get_content() for node in chosen) + question)

        Own(answer=answer).query(QUESTION)

        assert captured.found == (shown, "prompt", left_out)

    def test_of_a_copy(self, captured: Captured) -> None:
        """A node that a step makes of another, with an id of its own, is not one more."""

        def copied(nodes: list[NodeWithScore]) -> list[NodeWithScore]:
            return [NodeWithScore(node=TextNode(id_="new", text=nodes[0].text), score=0.75)]

        def answer(question: str) -> str:
            nodes = Sections(twins()[:1]).retrieve(question)
            chosen = Chooses(choose=copied).postprocess_nodes(nodes)
            return say(f"{chosen[0].text} {say(nodes[0].text)} {question}")

        Own(answer=answer).query(QUESTION)

        assert captured.found == (["new"], "prompt", [])


class TestResults:
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    async def test_nodes_in_a_workflows_result(self, captured: Captured) -> None:
        """A workflow that returns its nodes next to its answer names its sources."""

        class Reports(Workflow):
            @step
            async def go(self, event: StartEvent) -> StopEvent:
                retrieved = await Sections().aretrieve(event.query)
                return StopEvent(result={"answer": "Four.", "notes": ["x"], "nodes": retrieved[:1]})

        await Reports().run(query=QUESTION)

        assert captured.ended == ("Four.", "ok")
        assert captured.found == (["a"], "dataflow", ["b", "c"])


def test_the_question_is_found_by_name(captured: Captured) -> None:
    """An app's own `chat` may take something else first, or anything."""

    class App:
        @get_dispatcher("app").span
        def chat(self, user: str, message: str) -> str:
            return str(engine(Sections()).query(f"{message} Say!"))

    class Takes:
        @get_dispatcher("app").span
        def chat(self, **kwargs: str) -> str:
            return str(engine(Sections()).query(kwargs["message"] + " Say!"))

    assert App().chat("bob", QUESTION) == Takes().chat(user="bob", message=QUESTION) == ANSWER
    assert captured.questions == [QUESTION] * 2


@pytest.mark.parametrize(
    ("ask", "retrieved"),
    [
        (lambda llm, prompt: llm.complete(prompt), ["b"]),
        (lambda llm, prompt: llm.complete(prompt=prompt), ["b"]),
        (lambda llm, prompt: llm.complete(n=1), ["a", "b", "c"]),
    ],
    ids=["by place", "by name", "without"],
)
def test_the_prompt_is_found_without_events(captured: Captured, ask: Any, retrieved: Any) -> None:
    """A model that sends no events still has spans, whatever its method's signature."""

    class Silent(Model):
        @get_dispatcher("app").span
        def complete(self, *args: Any, **kwargs: Any) -> CompletionResponse:
            return CompletionResponse(text=ANSWER)

    Own(answer=lambda question: ask(Silent(), f"Use {texts()[1]}").text).query(QUESTION)

    assert captured.ids == retrieved
