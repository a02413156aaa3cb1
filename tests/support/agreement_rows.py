"""Our own rows, judged by somebody who errs, and once more by somebody else."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from own_rows import made_rows, second_opinion

from rag_eval_integrations import Evaluation, Trace
from rag_eval_integrations.agreement import Gold, Matched, match
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.sentences import Punkt


def scored(row: dict[str, Any]) -> Evaluation:
    return score_labelled(labelled_from(row, Punkt()), [Trace()])


@cache
def judged(*, probabilities: bool = True) -> tuple[Matched, list[Evaluation]]:
    """Forty of our own rows with their gold labels, and the evaluations of a second judge."""
    source = random.Random(3)
    predicted, second, gold = [], [], []
    for row in made_rows(40):
        predicted.append(scored(second_opinion(source, row, probabilities=probabilities)))
        second.append(scored(second_opinion(source, row, probabilities=False)))
        gold.append(Gold.from_row(scored(row), row, human="rating"))
    return match(predicted, gold), second
