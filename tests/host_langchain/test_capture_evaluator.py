"""An evaluator as the handler's target: three lines from a chain to its scores."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from rag_eval_integrations import BackgroundEvaluator, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.records import Evaluation

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

    def test_told_of_every_evaluation(self) -> None:
        """`on_evaluation` is called with each."""
        told: list[Evaluation] = []
        handler = RagEvalCallbackHandler(RagEvaluator(), on_evaluation=told.append)

        rag_chain().batch(["one?", "two?"], {"callbacks": [handler]})
        assert handler.flush()

        assert sorted(evaluation.question for evaluation in told) == ["one?", "two?"]

    def test_background_evaluator(self) -> None:
        """A background evaluator keeps its own sinks; `flush` waits for it."""
        written: list[Evaluation] = []

        class Sink:
            def write(self, batch: Any) -> None:
                written.extend(batch)

        handler = RagEvalCallbackHandler(BackgroundEvaluator(RagEvaluator(), [Sink()]))
        rag_chain().invoke(QUESTION, {"callbacks": [handler]})

        assert handler.flush()
        assert [evaluation.question for evaluation in written] == [QUESTION]
        assert handler.evaluations == ()

    def test_plain_target(self) -> None:
        """With a plain callable there is nothing to wait for, and nothing kept."""
        handler = RagEvalCallbackHandler(lambda call: None)
        rag_chain().invoke(QUESTION, {"callbacks": [handler]})

        assert handler.flush(timeout=0)
        assert handler.evaluations == ()

    def test_nobody_to_tell(self) -> None:
        """`on_evaluation` with a target that evaluates elsewhere is refused."""
        with pytest.raises(ConfigurationError, match="on_evaluation"):
            RagEvalCallbackHandler(print, on_evaluation=print)

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
