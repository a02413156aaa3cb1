"""Agreement with a human at data set, document and system level, by the papers' conventions."""

from __future__ import annotations

import random
from typing import Any

import pytest
from runs import call

from rag_eval_integrations.agreement import Pair, agree_by_level
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import By, Score

from .conftest import agreed

# Three documents by three systems; the scores of the third document are all the same.
DOCUMENTS = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
SYSTEMS = ["x", "y", "z"] * 3
SCORES = [1.0, 2.0, 3.0, 1.0, 3.0, 2.0, 2.0, 2.0, 2.0]
HUMAN = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0]


def values(figures: Any) -> dict[str, Any]:
    return {name: figure.value for name, figure in figures.figures.items()}


def same(*expected: float | None) -> Any:
    return pytest.approx(dict(zip(("pearson", "spearman", "kendall"), expected, strict=True)))


def levels_of(scores: list[float], human: list[float], **columns: Any) -> Any:
    """Figures at each level, of which some may be None."""
    return agree_by_level({"s": scores}, human, **columns)["s"]


def test_the_mean_over_documents_and_what_is_skipped() -> None:
    """1 within a, 1/3 within b by tau (one of three pairs the other way); c has none."""
    levels = levels_of(SCORES, HUMAN, documents=DOCUMENTS, systems=SYSTEMS)

    assert levels.document.counts == {"n": 9, "documents": 2, "skipped": 1}
    assert values(levels.document) == same((1 + 0.5) / 2, (1 + 0.5) / 2, (1 + 1 / 3) / 2)
    assert levels.dataset.counts == {"n": 9}
    assert levels.system.counts == {"n": 9, "systems": 3}
    # Means by system: 4/3, 7/3, 7/3 against 1, 2, 3.
    assert values(levels.system) == same(0.8660254, 0.8660254, 0.8164966)


@pytest.mark.parametrize("side", ["scores", "human"])
def test_a_constant_side_is_skipped_on_either_side(side: str) -> None:
    """Whether the judge or the human sees no difference."""
    constant, varied = [2.0, 2.0, 2.0], [1.0, 2.0, 3.0]
    scores, human = (constant, varied) if side == "scores" else (varied, constant)

    levels = levels_of(scores, human, documents=["a"] * 3)

    assert levels.document.counts == {"n": 3, "documents": 0, "skipped": 1}
    assert values(levels.document) == same(None, None, None)
    assert levels.system is None


def test_intervals_resample_whole_documents_and_systems() -> None:
    """From ten of them on; the same whatever the order of the documents' names."""
    generator = random.Random(5)
    human = [float(generator.randrange(1, 6)) for _ in range(240)]
    scores = [number + generator.gauss(0, 1) for number in human]
    documents = [f"d{i // 12}" for i in range(240)]
    systems = [f"s{i % 12}" for i in range(240)]

    levels = levels_of(scores, human, documents=documents, systems=systems)

    for figures in (levels.document, levels.system):
        for figure in figures.figures.values():
            assert figure.interval[0] <= figure.value <= figure.interval[1]
    few = levels_of(SCORES, HUMAN, documents=DOCUMENTS)
    assert few.document.figures["kendall"].interval is None


def test_columns_of_other_lengths_are_refused() -> None:
    """Naming the column."""
    with pytest.raises(ConfigurationError, match="documents"):
        levels_of([1.0], [1.0], documents=["a", "b"])
    with pytest.raises(ConfigurationError, match="systems"):
        levels_of([1.0], [1.0], systems=[])


def geval_row(
    number: int, raw: float, value: float, human: float, scale: tuple[int, int] = (1, 5)
) -> Pair:
    more: Any = {"scale": scale, "method": "monte_carlo", "by": By(judge="j")}
    score = Score(name="geval:x", status="scored", value=value, raw=raw, **more)
    evaluation = call(str(number), {"geval:x": score})
    return Pair(evaluation, evaluation, human=human, document="d", system=f"s{number}")


def test_means_below_the_scale_are_not_tied_by_it() -> None:
    """Parity means with zeros for unparsable replies: 0.2 and 0.9 differ, both being value 0."""
    pairs = [geval_row(1, 0.2, 0.0, 1), geval_row(2, 0.9, 0.0, 2), geval_row(3, 3, 0.5, 3)]

    content = agreed(pairs)

    assert content["human"]["geval:x"]["kendall"] == 1.0
    assert content["human_by_document"]["geval:x"]["kendall"] == 1.0
    assert content["human_by_system"]["geval:x"]["systems"] == 3


def test_correlations_are_of_raw_scores_and_differences_of_values() -> None:
    """Dividing by the scale's length ties what differs in the last digit; tables did not divide."""
    low, high = 1.9, 1.9000000000000001
    assert low != high
    assert low / 10 == high / 10  # the point of it
    pairs = [
        geval_row(n, raw, raw / 10, human, (0, 10))
        for n, (raw, human) in enumerate([(low, 0.1), (high, 0.2), (5.0, 0.6)])
    ]

    content = agreed(pairs)["human"]["geval:x"]

    assert content["kendall"] == 1.0
    assert content["rmse"] == pytest.approx((sum(d * d for d in (0.09, -0.01, -0.1)) / 3) ** 0.5)


@pytest.mark.parametrize("other_scale", [False, True])
def test_a_value_that_says_less_than_the_raw_score_is_what_counts(other_scale: bool) -> None:
    """Strict scores are yes or no; raw scores on two scales are not compared."""
    pairs = [geval_row(1, 4.9, 0.0, 1), geval_row(2, 4.6, 0.0, 1), geval_row(3, 5, 1.0, 2)]
    if other_scale:
        other = geval_row(2, 1, 0.1, 0, (0, 10))
        pairs = [geval_row(1, 2, 0.25, 1), other, geval_row(3, 4, 0.75, 2)]

    assert agreed(pairs)["human"]["geval:x"]["kendall"] == pytest.approx(1.0)


def test_systems_that_add_up_to_the_same_are_tied_in_any_order() -> None:
    """0.1 + 0.2 + 0.3 is 0.3 + 0.2 + 0.1, though floats added up one by one differ."""
    scores = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.5, 0.5, 0.5]
    human = [1.0] * 3 + [1.0] * 3 + [2.0] * 3

    levels = levels_of(scores, human, systems=["x"] * 3 + ["y"] * 3 + ["z"] * 3)

    assert values(levels.system)["kendall"] == 1.0  # x and y tied on both sides
