"""`Summary.verdict`: one sentence of shares, in which each judged call counts once."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import labels_of
from hypothesis import given
from hypothesis import strategies as st
from runs import Given, call

from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.metrics._outcome import FAILING, outcome
from rag_eval_integrations.records import By, Evaluation, EvaluationError, Score

TRACE = ("context_relevance", "context_utilization", "completeness", "adherence")
REFUSAL = "I could not find a price in the documents."


def trace(*values: Given, **more: Any) -> Evaluation:
    """A call with the four TRACe scores in their order."""
    return call("q", dict(zip(TRACE, values, strict=True)), **more)


SOUND = trace(0.5, 1.0, 1.0, 1.0)
INVENTED = trace(0.5, 1.0, 1.0, 0.0)
MISSED = trace(0.0, None, None, 1.0)
IGNORED = trace(0.5, 0.2, 1.0, 1.0)
INCOMPLETE = trace(0.5, 1.0, 0.5, 1.0)
INCOMPLETE_BY_WORDS = trace(0.5, 1.0, 0.5, 1.0, flags=("lexical_estimate",))
INVENTED_AND_MISSED = trace(0.0, None, None, 0.0)
REFUSED = trace(0.0, None, None, 0.0, response=[REFUSAL])
RELEVANT = labels_of(["0a"], [], {"a": ([], False, "")})
REFUSED_WRONGLY = trace(0.5, 0.0, 0.0, 1.0, response=[REFUSAL], labels=RELEVANT)
FAILED = call("q", {}, labels=None, error=EvaluationError(type="E", message="down", stage="judge"))
UNSCORED = trace("refusal", "refusal", "refusal", "refusal", labels=None)


def tone(value: float, threshold: float | None = None) -> Evaluation:
    """A call with a score of G-Eval alone."""
    score = Score(
        name="geval:tone", status="scored", value=value, threshold=threshold, by=By(judge="m")
    )
    return call("q", {"geval:tone": score}, labels=None)


@pytest.mark.parametrize(
    ("evaluations", "sentence"),
    [
        ([], "No calls"),
        ([SOUND], "1 of 1 answer is sound"),
        ([INVENTED], "0 of 1 answer is sound; 1 invents something"),
        (
            [*[SOUND] * 4, INVENTED, MISSED],
            "4 of 6 answers are sound; 1 invents something; 1 retrieval missed",
        ),
        ([SOUND, INVENTED_AND_MISSED], "1 of 2 answers is sound; 1 invents something"),
        (
            [*[INVENTED, MISSED, IGNORED, INCOMPLETE] * 2],
            "0 of 8 answers are sound; 2 invent something; 2 retrievals missed; "
            "2 ignore what was retrieved; 2 are incomplete",
        ),
        ([SOUND, INCOMPLETE_BY_WORDS], "2 of 2 answers are sound"),
        (
            [SOUND, REFUSED, REFUSED_WRONGLY],
            "2 of 3 answers are sound (1 rightly says that the documents do not tell); "
            "1 ignores what was retrieved",
        ),
        ([SOUND, FAILED, UNSCORED], "1 of 1 answer is sound; 2 were not judged"),
        ([FAILED], "1 was not judged"),
        ([tone(0.5), tone(0.6)], "2 have no adherence or threshold to judge by"),
        (
            [tone(0.5, 0.6), tone(0.8, 0.6), tone(0.9, 0.6), UNSCORED],
            "2 of 3 answers reach the threshold; 1 is below a threshold; 1 was not judged",
        ),
        ([tone(0.5, 0.6)], "0 of 1 answer reaches the threshold; 1 is below a threshold"),
        (
            [SOUND, tone(0.5, 0.6), tone(0.5)],
            "1 of 2 answers is sound; 1 is below a threshold; "
            "1 has no adherence or threshold to judge by",
        ),
        ([call("q", {"adherence": 1.0})], "1 of 1 answer is sound"),
        ([call("q", {"context_relevance": 0.3})], "1 has no adherence or threshold to judge by"),
    ],
)  # fmt: skip
def test_the_verdict_says_shares(evaluations: list[Evaluation], sentence: str) -> None:
    """Each call counts once, by its gravest pattern; what was not judged stands at the end."""
    assert Summary.of(evaluations).verdict() == sentence


ANY = st.sampled_from([
    SOUND, INVENTED, MISSED, IGNORED, INCOMPLETE, INCOMPLETE_BY_WORDS, REFUSED, FAILED, UNSCORED,
    tone(0.5), tone(0.5, 0.6), tone(0.7, 0.6),
])  # fmt: skip


@given(st.lists(ANY, max_size=8), st.lists(ANY, max_size=8))
def test_merged_summaries_say_what_one_summary_says(
    first: list[Evaluation], second: list[Evaluation]
) -> None:
    """And each call has one outcome."""
    merged = Summary.of(first)
    merged.merge(Summary.of(second))
    assert merged.verdict() == Summary.of([*first, *second]).verdict()
    assert merged.outcomes.total() == merged.calls


def test_a_refusal_with_another_claim_is_none() -> None:
    """A right refusal says nothing else."""
    more = trace(0.0, None, None, 0.0, response=[REFUSAL, "It costs $5."])
    assert outcome(more) == FAILING[0] == "hallucination"
