"""The latest evaluations that a background evaluator keeps."""

from __future__ import annotations

import pytest

from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report import Evaluations
from rag_eval_integrations.sinks import CallbackSink

CALL = RagCall(
    question="How high is the tower?",
    documents=("The tower is 300 metres high.",),
    response="The tower is 300 metres high.",
)


def test_a_function_is_told_of_each_evaluation_after_it_is_kept() -> None:
    """A callback sink sees every evaluation once, and finds it in `evaluations` already."""
    told: list[tuple[str, bool]] = []

    def tell(evaluation: Evaluation) -> None:
        told.append((evaluation.id, evaluation in attached.evaluations))

    attached = BackgroundEvaluator(RagEvaluator(), [CallbackSink(tell)])
    calls = [CALL.model_copy(update={"id": str(number)}) for number in range(3)]
    for call in calls:
        attached.submit(call)
    assert attached.flush()
    assert sorted(told) == [("0", True), ("1", True), ("2", True)]


@pytest.mark.parametrize(("keep", "kept"), [(None, 100), (0, 0), (2, 2)])
def test_what_is_kept_is_bounded(keep: int | None, kept: int) -> None:
    """The latest 100 evaluations, or as many as the user wants, failed ones among them."""
    options = {} if keep is None else {"keep": keep}
    background = BackgroundEvaluator(RagEvaluator(), max_concurrency=1, **options)  # type: ignore[arg-type]
    for number in range(101):
        background.submit(RagCall(question="q", documents=(), response="r", id=str(number)))
    assert background.close()

    assert isinstance(background.evaluations, Evaluations)
    ids = [evaluation.id for evaluation in background.evaluations]
    assert ids == [str(number) for number in range(101 - kept, 101)]


def test_a_snapshot_stays_as_it_is() -> None:
    """Threads may read while the worker goes on: what was read does not change."""
    with BackgroundEvaluator(RagEvaluator(), keep=5) as background:
        snapshots = []
        for _ in range(20):
            background.submit(CALL)
            snapshots.append(background.evaluations)
        lengths = [len(snapshot) for snapshot in snapshots]
        assert background.flush()
    assert lengths == [len(snapshot) for snapshot in snapshots]
    assert len(background.evaluations) == 5
