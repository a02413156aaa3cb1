"""What observing costs to import."""

from __future__ import annotations

import subprocess
import sys

HEAVY = [
    "langchain_core.tracers.base", "langchain_core.runnables", "langgraph", "llama_index_instrumentation",
    "llama_index.core", "nltk", "openai", "rag_eval_integrations.evaluator", "rag_eval_integrations.background",
]  # fmt: skip


def test_is_light() -> None:
    """A handler loads LangChain's callbacks, nothing that evaluates, and not the other framework.

    Where the app has not loaded LangGraph, it is an ordinary one.
    """
    code = (
        "import sys, inspect\n"
        "from rag_eval_integrations.langchain import RagEvalCallbackHandler as Handler\n"
        "print(type(Handler(print)) is Handler, next(iter(inspect.signature(Handler).parameters)))\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["True", "target", "[]"]
