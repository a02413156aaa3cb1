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


def contested(evaluations: Sequence[Evaluation]) -> list[Pair]:
    """Evaluations, and gold that says the contrary of every sentence and answer."""
    pairs = []
    for judge in evaluations:
        assert judge.labels is not None
        support = [
            each.model_copy(update={"fully_supported": not each.fully_supported})
            for each in judge.labels.sentence_support_information
        ]
        adherence = judge.scores["adherence"]
        value = 1 - (adherence.value or 0)
        scores = {**judge.scores, "adherence": adherence.model_copy(update={"value": value})}
        labels = judge.labels.model_copy(update={"sentence_support_information": support})
        gold = judge.model_copy(update={"labels": labels, "scores": scores})
        pairs.append(Pair(judge, gold, dataset=judge.id))
    return pairs


def numbered(pairs: Sequence[Pair]) -> dict[int, Evaluation]:
    """The judge's evaluations by the numbers of their rows."""
    return dict(enumerate((pair.predicted for pair in pairs), 1))


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
