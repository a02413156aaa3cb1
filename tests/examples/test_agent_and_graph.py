"""The agent and the graph of the examples are scored on what their models were shown."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_agents_documents_are_its_tools(capsys: pytest.CaptureFixture[str]) -> None:
    """The question is the user's, not the tool's query; the document is the one it found."""
    runpy.run_path(str(EXAMPLES / "langchain_agent.py"), run_name="__main__")

    assert "What does the station run on? ('power',)" in capsys.readouterr().out


def test_the_graphs_documents_are_its_searchs() -> None:
    """Found by a plain call in a node, and in the prompt: no retriever's event told of them."""
    from rag_eval_integrations import RagEvaluator
    from rag_eval_integrations.langchain import evaluate_dataset

    app = SimpleNamespace(**runpy.run_path(str(EXAMPLES / "langgraph_app.py"), run_name="app"))

    first, second = evaluate_dataset(app.graph, app.EXAMPLES, RagEvaluator())

    assert (first.question, second.question) == tuple(
        example["inputs"]["question"] for example in app.EXAMPLES
    )
    assert (first.document_ids[0], second.document_ids[0]) == ("reset", "power")
    assert first.response == app.MANUAL["reset"]
    assert (first.reference, second.reference) == ("The blue button.", "18 months.")
