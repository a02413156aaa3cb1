"""Attachment: a callable, a background evaluator or an evaluator becomes a plain target."""

from __future__ import annotations

import pytest

from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator
from rag_eval_integrations.background import Attachment
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report import Evaluations

CALL = RagCall(
    question="How high is the tower?",
    documents=("The tower is 300 metres high.",),
    response="The tower is 300 metres high.",
)


def test_a_callable_is_called_as_it_is() -> None:
    """A plain callable gets the call itself; nothing is evaluated, so a flush is done at once."""
    taken: list[RagCall] = []
    attached = Attachment(taken.append)
    attached.target(CALL)
    assert taken == [CALL]
    assert attached.flush()
    assert attached.evaluations == ()


def test_an_evaluator_is_run_in_the_background_and_its_results_kept() -> None:
    """Calls handed to the target come back as scored evaluations after a flush."""
    attached = Attachment(RagEvaluator())
    attached.target(CALL)
    assert attached.flush()
    (evaluation,) = attached.evaluations
    assert evaluation.question == CALL.question
    assert evaluation.scores["adherence"].value == 1.0


def test_a_function_is_told_of_each_evaluation_after_it_is_kept() -> None:
    """`on_evaluation` sees every evaluation once, and finds it in `evaluations` already."""
    told: list[tuple[str, bool]] = []

    def tell(evaluation: Evaluation) -> None:
        told.append((evaluation.id, evaluation in attached.evaluations))

    attached = Attachment(RagEvaluator(), tell)
    calls = [CALL.model_copy(update={"id": str(number)}) for number in range(3)]
    for call in calls:
        attached.target(call)
    assert attached.flush()
    assert sorted(told) == [("0", True), ("1", True), ("2", True)]


def test_what_is_kept_is_bounded() -> None:
    """Only the latest 100 evaluations, unless `keep` says otherwise, are kept."""
    attached = Attachment(RagEvaluator())
    for number in range(100):
        attached.target(RagCall(question="q", documents=(), response="r", id=str(number)))
    assert attached.flush()
    attached.target(RagCall(question="q", documents=(), response="r", id="last"))
    assert attached.flush()
    kept = attached.evaluations
    assert len(kept) == 100
    assert kept[-1].id == "last"


def test_a_background_evaluator_is_flushed_and_keeps_its_own_sinks() -> None:
    """The evaluations shown here are the ones that it keeps itself."""
    with BackgroundEvaluator(RagEvaluator()) as background:
        attached = Attachment(background)
        attached.target(CALL)
        assert attached.flush()
        assert background.counters.scored == 1
        assert attached.evaluations == background.evaluations
        assert len(attached.evaluations) == 1


def test_a_function_without_an_evaluator_is_refused() -> None:
    """Nothing would ever call it."""
    with pytest.raises(ConfigurationError, match="on_evaluation"):
        Attachment(lambda call: None, print)


def test_an_async_function_is_refused() -> None:
    """Nothing would await it."""

    async def tell(evaluation: Evaluation) -> None:
        """Never awaited."""

    with pytest.raises(ConfigurationError, match="async"):
        Attachment(RagEvaluator(), tell)


def test_an_evaluator_without_a_function_to_tell_fails_at_nothing(
    log: pytest.LogCaptureFixture,
) -> None:
    """Keeping evaluations is all there is to do; nothing is logged of it."""
    attached = Attachment(RagEvaluator())
    attached.target(CALL)

    assert attached.flush()
    assert len(attached.evaluations) == 1
    assert log.records == []


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
        assert [one.id for one in kept] == ids


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
        lengths = [len(one) for one in snapshots]
        assert background.flush()
    assert lengths == [len(one) for one in snapshots]
    assert [one.id for one in background.evaluations] == [str(n) for n in range(150, 200)]
