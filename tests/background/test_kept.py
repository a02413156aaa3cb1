"""The latest evaluations that a background evaluator keeps."""

from __future__ import annotations

import pytest

from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator
from rag_eval_integrations.errors import ConfigurationError
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


def test_what_is_kept_is_bounded() -> None:
    """Only the latest 100 evaluations, unless `keep` says otherwise, are kept."""
    attached = BackgroundEvaluator(RagEvaluator())
    for number in range(100):
        attached.submit(RagCall(question="q", documents=(), response="r", id=str(number)))
    assert attached.flush()
    attached.submit(RagCall(question="q", documents=(), response="r", id="last"))
    assert attached.flush()
    kept = attached.evaluations
    assert len(kept) == 100
    assert kept[-1].id == "last"


def test_how_many_are_kept_is_the_users_choice() -> None:
    """From none, for a process that has sinks and little memory; failed calls are kept, too."""
    calls = [RagCall(question="q", documents=(), response="r", id=str(n)) for n in range(5)]
    for keep, ids in ((0, []), (2, ["3", "4"])):
        with BackgroundEvaluator(RagEvaluator(), keep=keep, max_concurrency=1) as background:
            for call in calls:
                background.submit(call)
            assert background.flush()
            kept = background.evaluations
        assert isinstance(kept, Evaluations)
        assert [evaluation.id for evaluation in kept] == ids


@pytest.mark.parametrize("keep", [-1, 2.5, True, "all"])
def test_a_number_to_keep_is_checked(keep: object) -> None:
    """When the evaluator is made, by name."""
    with pytest.raises(ConfigurationError, match="`keep`"):
        BackgroundEvaluator(RagEvaluator(), keep=keep)  # type: ignore[arg-type]


def test_a_snapshot_stays_as_it_is() -> None:
    """Threads may read while the worker goes on: what was read does not change."""
    with BackgroundEvaluator(RagEvaluator(), keep=50) as background:
        snapshots = []
        for number in range(200):
            background.submit(RagCall(question="q", documents=(), response="r", id=str(number)))
            snapshots.append(background.evaluations)
        lengths = [len(snapshot) for snapshot in snapshots]
        assert background.flush()
    assert lengths == [len(snapshot) for snapshot in snapshots]
    assert [evaluation.id for evaluation in background.evaluations] == [
        str(n) for n in range(150, 200)
    ]
