"""Attachment: a callable, a background evaluator or an evaluator becomes a plain target."""

from __future__ import annotations

import pytest

from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator
from rag_eval_integrations.background import Attachment
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation

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
    """Only the latest 1,000 evaluations are kept."""
    attached = Attachment(RagEvaluator())
    for number in range(1_000):
        attached.target(RagCall(question="q", documents=(), response="r", id=str(number)))
    assert attached.flush()
    attached.target(RagCall(question="q", documents=(), response="r", id="last"))
    assert attached.flush()
    kept = attached.evaluations
    assert len(kept) == 1_000
    assert kept[-1].id == "last"


def test_a_background_evaluator_is_flushed_and_keeps_its_own_sinks() -> None:
    """Its evaluations go to its sinks, not here."""
    with BackgroundEvaluator(RagEvaluator()) as background:
        attached = Attachment(background)
        attached.target(CALL)
        assert attached.flush()
        assert background.counters.scored == 1
        assert attached.evaluations == ()


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
