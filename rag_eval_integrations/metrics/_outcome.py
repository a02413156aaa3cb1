"""The outcome of a call: the one thing that its scores say of it, which verdicts are counted of."""

from __future__ import annotations

from typing import Literal, get_args

from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._repr import LEXICAL

Failing = Literal[
    "hallucination",
    "nothing_relevant_retrieved",
    "context_ignored",
    "incomplete",
    "below_threshold",
]
Outcome = Literal[Failing, "right_refusal", "sound", "no_verdict", "not_judged"]
FAILING: tuple[Failing, ...] = get_args(Failing)
"""The outcomes of calls to look at, the gravest first."""


def outcome(evaluation: Evaluation) -> Outcome:
    """Return the gravest outcome that the scores of a call show.

    The patterns that hold, gravest first, then a score below its threshold. `sound` is an answer
    that is grounded, or that reaches every threshold; `no_verdict` has values that decide neither,
    and `not_judged` none. By a judge that compares words, `incomplete` says nothing.
    """
    values = [score for score in evaluation.scores.values() if score.value is not None]
    if evaluation.error is not None or not values:
        return "not_judged"
    patterns = [diagnosis.pattern for diagnosis in evaluation.diagnosis]
    failing = [name for name in FAILING if name in patterns]
    if failing and is_right_refusal(evaluation):
        return "right_refusal"
    if failing and not (failing == ["incomplete"] and LEXICAL in evaluation.flags):
        return failing[0]
    verdicts = [score.passed for score in values if score.passed is not None]
    if False in verdicts:
        return "below_threshold"
    return "sound" if verdicts or _is_grounded(evaluation) else "no_verdict"


def gravity(evaluation: Evaluation) -> int:
    """Rank a call by its outcome, 0 for the gravest; all outcomes that do not fail rank last."""
    name = outcome(evaluation)
    return FAILING.index(name) if name in FAILING else len(FAILING)


def _is_grounded(evaluation: Evaluation) -> bool:
    return "adherence" in evaluation.scores and evaluation.scores["adherence"].value == 1


def is_right_refusal(evaluation: Evaluation) -> bool:
    """Tell whether an answer only refuses, and no sentence of the documents is relevant.

    That is where the labels name no sentence of any document as relevant; False without labels.
    """
    labels, claims = evaluation.labels, evaluation.sentences.claims
    if labels is None or labels.all_relevant_sentence_keys or not claims:
        return False
    from rag_eval_integrations.judges.embedded._features import (  # noqa: PLC0415  # 50 ms
        says_documents_do_not_tell,
    )

    return all(says_documents_do_not_tell(claim.text) for claim in claims)
