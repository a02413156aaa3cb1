"""The latest evaluations that a background evaluator keeps."""

from __future__ import annotations

import pytest

from rag_eval_integrations import BackgroundEvaluator, RagEvaluator
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report import Evaluations
from rag_eval_integrations.sinks import CallbackSink
from rag_eval_integrations.testing import ScriptedModel

from .conftest import WAIT, evaluator, submit


def test_a_function_is_told_of_each_evaluation_after_it_is_kept() -> None:
    """A callback sink sees every evaluation once, and finds it in `evaluations` already."""
    told: list[tuple[str, bool]] = []

    def tell(evaluation: Evaluation) -> None:
        told.append((evaluation.id, evaluation in attached.evaluations))

    attached = BackgroundEvaluator(evaluator(), [CallbackSink(tell)])
    submit(attached, range(3))
    assert attached.flush(WAIT)
    assert sorted(told) == [("0", True), ("1", True), ("2", True)]


@pytest.mark.parametrize(("keep", "kept"), [(None, 100), (0, 0), (2, 2)])
def test_what_is_kept_is_bounded(keep: int | None, kept: int) -> None:
    """The latest 100 evaluations, or as many as the user wants, failed ones among them."""
    options: dict[str, int] = {} if keep is None else {"keep": keep}
    failing = RagEvaluator(ScriptedModel([]))
    background = BackgroundEvaluator(failing, max_concurrency=1, **options)  # type: ignore[arg-type]
    submit(background, range(101))
    assert background.close(WAIT)

    assert isinstance(background.evaluations, Evaluations)
    ids = [evaluation.id for evaluation in background.evaluations]
    assert ids == [str(number) for number in range(101 - kept, 101)]
