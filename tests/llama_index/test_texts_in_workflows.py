"""Documents that a workflow's events, context or tools hold as texts or plain objects."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step

from .apps import agent
from .conftest import ANSWER, QUESTION, Captured, Model, Sections, nodes

TEXTS = [node.text for node in nodes()]


@dataclass
class Hit:
    content: str
    doc_id: str
    score: float


PLAIN: dict[str, Any] = {
    "texts": lambda text, n: text,
    "content": lambda text, n: {"content": text, "metadata": {"page": n}, "score": n / 4},
    "passage": lambda text, n: {"source_id": f"s{n}", "passage": text, "similarity": n / 4},
    "objects": lambda text, n: SimpleNamespace(text=text, id=f"s{n}", score=n / 4),
    "dataclass": lambda text, n: Hit(text, f"s{n}", n / 4),
}


class Found(Event):
    chunks: Any = ()
    steps: Any = ("Look into the manual.",)


class Rag(Workflow):
    """Searches in a step of its own, and shows a model the first two texts."""

    found: Any = ()
    kept: str = "event"

    @step
    async def find(self, ctx: Context, ev: StartEvent) -> Found:
        if self.kept == "event":
            return Found(chunks=self.found)
        await ctx.store.set("chunks", self.found)
        return Found()

    @step
    async def write(self, ctx: Context, ev: Found) -> StopEvent:
        prompt = "\n".join([*TEXTS[:2], "Look into the manual.", QUESTION])
        return StopEvent(result=(await Model().acomplete(prompt)).text)


@pytest.mark.parametrize("kept", ["event", "context"])
@pytest.mark.parametrize("form", PLAIN)
async def test_are_the_documents(captured: Captured, form: str, kept: str) -> None:
    """What stands in the prompt was shown, what does not was not, with ids, scores, metadata."""
    workflow = Rag(timeout=20)
    workflow.found = [PLAIN[form](text, n) for n, text in enumerate(TEXTS)]
    workflow.kept = kept
    await workflow.run(query=QUESTION)

    call, how = captured.only, captured.how
    assert (call.question, call.response, captured.handler.uncaptured) == (QUESTION, ANSWER, 0)
    assert [document.text for document in call.documents] == TEXTS[:2]
    assert [document.text for document in how.not_in_prompt] == TEXTS[2:]
    assert how.documents_from == "prompt"
    second = call.documents[1]
    assert second.id == (None if form in ("texts", "content") else "s1")
    assert second.score == (None if form == "texts" else 0.25)
    assert second.metadata == ({"page": 1} if form == "content" else {})


@pytest.mark.parametrize(
    "found", [["Nobody was shown this text."], [3, 4], [{"name": "The kettle and its lid."}], []]
)
async def test_other_lists_are_not(captured: Captured, found: Any) -> None:
    """What no model was shown, or has no text, is no document."""
    workflow = Rag(timeout=20)
    workflow.found = found
    await workflow.run(query=QUESTION)

    assert captured.calls == []


async def test_beside_nodes(captured: Captured) -> None:
    """Copies of nodes' texts change nothing."""

    class Both(Rag):
        @step
        async def find(self, ctx: Context, ev: StartEvent) -> Found:
            retrieved = await Sections().aretrieve(QUESTION)
            return Found(chunks=[{"text": each.text} for each in retrieved])

    await Both(timeout=20).run(query=QUESTION)

    assert captured.found == (["a", "b"], "prompt", ["c"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_tool(captured: Captured) -> None:
    """A tool's list of texts or objects is read."""

    def search(query: str) -> list[dict[str, str]]:
        """Searches."""
        return [{"content": text, "url": "u"} for text in TEXTS]

    tool = FunctionTool.from_defaults(search)
    await agent([("search", {"query": "x"})], ANSWER, tools=[tool]).run(QUESTION)

    assert [document.text for document in captured.only.documents] == TEXTS
    assert captured.only.documents[0].metadata == {"url": "u"}
    assert captured.how.documents_from == "prompt"
