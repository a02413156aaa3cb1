"""Instructions that name another range of scores than the metric reads are warned of."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from rag_eval_integrations.metrics import GEval, PromptyMetric

OTHERS = [
    ("Score between 0.0 and 1.0, where 1.0 is best.", (1, 5), "0.0 and 1.0"),
    ("Score between 0 and 1.", (0, 10), "0 and 1"),
    ("Rate the answer on a scale of 0 to 10.", (1, 5), "0 to 10"),
    ("Rate the response 1–10.", (1, 5), "1–10"),
    ("Assign a score for fluency from 1 to 10, 10 being best.", (1, 5), "1 to 10"),
    ("Give a score from 0 to 100.", (1, 5), "0 to 100"),
    ("Give a score from 0% to 100%.", (0, 10), "0% to 100%"),
    ("Give a grade out of 10.", (1, 5), "out of 10"),
    ("Use a 0-10 scale.", (1, 5), "0-10"),
    ("Rate it on a 10-point scale.", (1, 5), "10-point"),
    ("Assign 0 to 10 points.", (1, 5), "0 to 10"),
    ("Scale: 1 (worst) to 10 (best).", (1, 5), "1 (worst) to 10 (best)"),
    ("The rating is between 1 and 5.", (1, 10), "1 and 5"),
]
OWN = [
    ("Rate the answer on a scale of 1 to 5.", (1, 5)),
    ("Score between 0.0 and 1.0.", (0, 1)),
    ("Rate it out of 5.", (1, 5)),
    ("Score each aspect from 0 to 2, and add up to a score from 0 to 10.", (0, 10)),
    ("A score of 1-2 if it is poor; a score of 3-4 if it is fair.", (1, 5)),
    ("Give a score from 1 to 2 if it is poor, and from 3 to 5 if it is fair.", (1, 5)),
    ("Check that the answer has 1 to 3 sentences.", (1, 5)),
    ("Score whether the answer has 1 to 10 sentences.", (1, 5)),
    ("A response that lists between 1 and 10 items gets a high score.", (1, 5)),
    ("Score low if 3 out of 10 names are missing.", (1, 5)),
    ("Rate whether it covers documents 1 to 10.", (1, 5)),
    ("Rate answers about the years 1990 to 2015.", (1, 5)),
    ("Rate whether the temperature of 0 to 10 degrees is named.", (1, 5)),
    ("Rate a growth rate of 0-10% as good.", (1, 5)),
    ("Rate how the answer explains ages from 20 to 25.", (1, 5)),
    ("Score it by its list. The list runs from 0 to 10.", (1, 5)),
    ("Deduct 1 to 10 points for each mistake.", (1, 5)),
    ("Between 0 and 10 mistakes are fine. Then score the answer.", (1, 5)),
]


@pytest.mark.parametrize("argument", ["steps", "criteria"])
@pytest.mark.parametrize(("text", "scale", "named"), OTHERS, ids=[text for text, *_ in OTHERS])
def test_another_range_is_warned_of(
    text: str, scale: tuple[int, int], named: str, argument: str
) -> None:
    """At construction, with both ranges, where the metric is made."""
    given = ["Read the response.", text] if argument == "steps" else f"It is polite. {text}"

    with pytest.warns(UserWarning, match=r"\Ageval:p: ") as caught:
        GEval("p", **{argument: given}, scale=scale)  # type: ignore[arg-type]

    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert f"“{named}”" in str(caught[0].message)
    assert f"{scale[0]} to {scale[1]}" in str(caught[0].message)


@pytest.mark.parametrize(("text", "scale"), OWN, ids=[text for text, _ in OWN])
def test_the_scale_its_levels_and_other_numbers_are_not(text: str, scale: tuple[int, int]) -> None:
    """A range counts where scores are spoken of, and not where something else is counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GEval("p", steps=[text], scale=scale)


def test_ready_made_metrics_name_their_own_scale() -> None:
    """None warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("coherence", "consistency", "fluency", "relevance", "groundedness"):
            GEval.preset(name)
        GEval.correctness()


@pytest.mark.parametrize(("scores", "warned"), [("from 1 to 5", 1), ("from 0 to 100", 0)])
def test_a_metric_file_is_read_as_0_to_100(tmp_path: Path, scores: str, warned: int) -> None:
    """A score of 4 on a scale of 1 to 5 would be .04."""
    path = tmp_path / "polite.metric.prompty"
    path.write_text(f"---\ntags: [scorer]\n---\nuser:\nGive {{{{output}}}} a score {scores}.\n")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PromptyMetric(path)

    assert [str(warning.message).startswith(str(path)) for warning in caught] == [True] * warned


@pytest.mark.parametrize("text", ["score " * 40_000, "1 to " * 40_000, "out of 1 (" * 20_000])
def test_hostile_instructions_come_to_an_end(text: str) -> None:
    """Each takes a fraction of a second; with anything quadratic the suite would stand still."""
    assert GEval("p", steps=[text]).steps == (text.strip(),)
