"""An evaluator as the handler's target: three lines from a chain to its scores."""

from __future__ import annotations

import subprocess
import sys

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.langchain import RagEvalCallbackHandler

from .apps import QUESTION
from .conftest import rag_chain


class TestEvaluator:
    def test_three_lines(self) -> None:
        """An evaluator is attached, a question asked, and its scores are there."""
        handler = RagEvalCallbackHandler(RagEvaluator())
        rag_chain().invoke(QUESTION, {"callbacks": [handler]})
        assert handler.flush()

        (evaluation,) = handler.evaluations
        assert evaluation.question == QUESTION
        assert {"context_relevance", "adherence"} <= evaluation.scores.keys()
        assert all(
            score.value is None or 0 <= score.value <= 1 for score in evaluation.scores.values()
        )
        assert evaluation.scores["adherence"].status == "scored"

    def test_capture_loads_no_evaluator(self) -> None:
        """A handler with a plain target loads nothing that evaluates, nor LangChain's runnables."""
        code = (
            "import sys\n"
            "from rag_eval_integrations.langchain import RagEvalCallbackHandler\n"
            "handler = RagEvalCallbackHandler(print)\n"
            "heavy = ('rag_eval_integrations.evaluator', 'rag_eval_integrations.background',\n"
            "         'nltk', 'openai', 'langchain_core.runnables', 'langchain_core.tracers.base')\n"
            "print([name for name in heavy if name in sys.modules])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"
