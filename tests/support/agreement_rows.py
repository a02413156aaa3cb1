"""Our own rows, judged by somebody who errs, and once more by somebody else."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

from by_hand import labels_of
from own_rows import made_rows, second_opinion

from rag_eval_integrations import Evaluation, Trace
from rag_eval_integrations.agreement import Curves, Gold, Pair, curves, match
from rag_eval_integrations.agreement.matching import Matched
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.records import JudgeInfo, Sentence, Sentences
from rag_eval_integrations.sentences import Punkt


def scored(row: dict[str, Any], formulas: Any = "gpt-labeling") -> Evaluation:
    return score_labelled(labelled_from(row, Punkt()), [Trace(formulas)])


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


def curve_of(items: Sequence[tuple[float, bool]]) -> Curves:
    """The curves of a judge's probabilities that sentences are relevant, and whether they are."""
    keys = [f"0{place}" for place in range(len(items))]
    sentences = Sentences(documents=tuple(Sentence(key, key) for key in keys))
    sides: list[Evaluation] = []
    for of_judge in (True, False):
        chances = {key: chance for key, (chance, _) in zip(keys, items, strict=True)}
        relevant = [key for key, (_, yes) in zip(keys, items, strict=True) if yes]
        labels = labels_of(relevant, [], {}, relevant_probabilities=chances if of_judge else None)
        sides.append(
            Evaluation(
                id="x", row_key="x", question="?", response="", scores={}, labels=labels,
                sentences=sentences, judge=JudgeInfo(name="j"),
            )
        )  # fmt: skip
    return curves([Pair(sides[0], sides[1])])["relevant"]
