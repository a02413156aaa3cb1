"""The expectation: worked out by hand, the peers' breakages row by row, placeholders."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from fuzz import fuzz, mangled, written
from hypothesis import given
from hypothesis import strategies as st
from scored_tokens import Alternatives, tokens

from rag_eval_integrations.metrics.geval._expectation import (
    Expectation,
    TokenPosition,
    Unusable,
    expectation,
    place_of,
)
from rag_eval_integrations.metrics.geval._reply import read_reply
from rag_eval_integrations.models._reading import loads
from rag_eval_integrations.models._tokens import tokens_of
from rag_eval_integrations.models.completion import Token


def expected(
    pieces: list[str],
    at: Mapping[int, Alternatives],
    scale: tuple[int, int] = (1, 5),
    text: str | None = None,
) -> Expectation | Unusable:
    """What is read from a reply, from its text on."""
    text = "".join(pieces) if text is None else text
    reading = read_reply(text, "coherence", scale)
    assert reading.span is not None, reading
    made = tokens(pieces, at)
    place = place_of(text, reading.span, made)
    assert place is not None
    return expectation(made, place, scale)


def value(found: Expectation | Unusable) -> float:
    assert isinstance(found, Expectation), found
    return found.value


@pytest.mark.parametrize(
    ("alternatives", "mass", "score", "argmax"),
    [
        ({"3": 0.42, "4": 0.40, "5": 0.10, "x": 0.08}, 0.92, 3.652, 3),
        ({"3": 0.10, "4": 0.55, "5": 0.25, "x": 0.10}, 0.90, 4.167, 4),
        ({"3": 0.5, "4": 0.5}, 1.0, 3.5, 3),
    ],
)
def test_the_mean_over_scores_beside_the_likeliest(
    alternatives: Alternatives, mass: float, score: float, argmax: int
) -> None:
    """3.652 and 4.167 with mass .92 and .90 beside argmax 3 and 4; an even split gives 3.5."""
    sampled = str(argmax)

    found = expected(["Well", " ordered", ".", "\n", sampled], {4: alternatives}, text=None)

    assert isinstance(found, Expectation)
    assert round(found.value, 3) == score
    assert found.mass == pytest.approx(mass)
    assert max(found.distribution, key=found.distribution.__getitem__) == argmax
    assert math.fsum(found.distribution.values()) == pytest.approx(1)


TO_TEN = (0, 10)


class TestBreakages:
    """Each row of the table of what breaks in the peers' implementation."""

    def test_score_first_and_the_digit_again_in_the_reason(self) -> None:
        """8.5 of the score's own token, not the reason's 8."""
        pieces = ['{"', "score", '": ', "8", ', "', "reason", '": "', "All ", "8", ' facts."}']

        found = expected(pieces, {3: {"8": 0.5, "9": 0.5}, 8: {"8": 1.0, "x": 1e-9}}, TO_TEN)

        assert value(found) == pytest.approx(8.5)

    def test_score_last_and_the_digit_in_the_reason_before(self) -> None:
        """The scan from the front that conversational metrics still do reads the reason's."""
        pieces = ['{"', "reason", '": "', "All ", "8", ' facts."', ', "score": ', "8", "}"]

        found = expected(pieces, {4: {"8": 1.0, "x": 1e-9}, 7: {"8": 0.5, "9": 0.5}}, TO_TEN)

        assert value(found) == pytest.approx(8.5)

    def test_digit_by_digit_tokenizer_with_ten_not_sampled(self) -> None:
        """Not 5.8: whether `1` begins 10 was not sampled, so it is declared ambiguous."""
        found = expected(['{"score": ', "9", "}"], {1: {"9": 0.6, "1": 0.4}}, TO_TEN)

        assert isinstance(found, Unusable)
        assert found.why.startswith("the score is ambiguous")

    def test_ten_sampled_as_two_tokens(self) -> None:
        """The joint probability: .5·.9 for 10, .5·.1 for 1, .5 for 9."""
        pieces = ['{"score": ', "1", "0", "}"]

        found = expected(
            pieces, {1: {"1": 0.5, "9": 0.5}, 2: {"0": 0.9, "}": 0.1}, 3: {"}": 1.0}}, TO_TEN
        )

        assert isinstance(found, Expectation)
        assert found.distribution == pytest.approx({1: 0.05, 9: 0.5, 10: 0.45})
        assert found.value == pytest.approx(0.05 + 4.5 + 4.5)

    def test_one_sampled_where_ten_might_have_followed(self) -> None:
        """`1` and then `}`: the second position says how likely 10 was."""
        found = expected(
            ['{"score": ', "1", "}"], {1: {"1": 0.8, "2": 0.2}, 2: {"}": 0.75, "0": 0.25}}, TO_TEN
        )

        assert isinstance(found, Expectation)
        assert found.distribution == pytest.approx({1: 0.6, 2: 0.2, 10: 0.2})

    def test_a_tokenizer_that_has_ten_in_one_piece(self) -> None:
        """`1` then means 1: what it holds in one piece it does not spell in two."""
        found = expected(['{"score": ', "9", "}"], {1: {"9": 0.6, "10": 0.3, "1": 0.1}}, TO_TEN)

        assert value(found) == pytest.approx(9 * 0.6 + 3 + 0.1)

    @pytest.mark.parametrize(
        "pieces",
        [
            ['{"score":', " 8", "}"],
            ['{"score": ', "8", ".", "0", "}"],
            ['{"score": ', "8", ".0", "}"],
            ['{"score":', ' "8', '"}'],
            ['{"score": ', "8}"],
        ],
    )
    def test_a_score_with_something_in_its_token(self, pieces: list[str]) -> None:
        """`8.0`, ` 8`, `"8`, `8}`: an expectation all the same."""
        sampled = pieces[1]
        other = sampled.replace("8", "6")

        found = expected(pieces, {1: {sampled: 0.75, other: 0.25}}, TO_TEN)

        assert value(found) == pytest.approx(7.5)

    def test_an_alternative_out_of_range_is_ignored(self) -> None:
        """100 on a scale to 10 gives no score above 10."""
        found = expected(['{"score": ', "10", "}"], {1: {"10": 0.5, "100": 0.5}}, TO_TEN)

        assert isinstance(found, Expectation)
        assert found.value == 10
        assert found.mass == pytest.approx(0.5)

    def test_a_judge_out_of_range_is_not_bent(self) -> None:
        """7 on 0 to 5 has no score; it is not 1.4."""
        reading = read_reply('{"reason": "x", "score": 7}', "x", (0, 5))

        assert (reading.score, reading.problem) == (None, "out_of_range")

    def test_a_long_tail_is_not_cut_off(self) -> None:
        """Twelve alternatives of .8 % each count: 8.56, not 9.00."""
        tail = {f"{' ' * spaces}{n}": 0.008 for spaces in range(2) for n in (2, 3, 4, 5, 6, 7)}
        alternatives = {"9": 1 - 0.008 * 12, **tail}

        found = expected(['{"score": ', "9", "}"], {1: alternatives}, TO_TEN)

        exact = 9 * (1 - 0.096) + 0.008 * 2 * (2 + 3 + 4 + 5 + 6 + 7)
        assert value(found) == pytest.approx(exact)
        assert round(exact, 2) == 8.57


def test_spellings_of_a_score_are_added_up() -> None:
    """`4`, ` 4`, `４` and a 4 with a line end are one score."""
    alternatives = {"4": 0.3, " 4": 0.2, "４": 0.1, "4\n": 0.1, "5": 0.2, "five": 0.1}

    found = expected(["Score: ", "4"], {1: alternatives})

    assert isinstance(found, Expectation)
    assert found.distribution == pytest.approx({4: 0.7 / 0.9, 5: 0.2 / 0.9})
    assert found.mass == pytest.approx(0.9)


def test_a_longer_number_by_three_tokens() -> None:
    """100 on a scale to 100, digit by digit."""
    pieces = ["Score: ", "1", "0", "0"]
    at = {1: {"1": 0.99, "x": 0.01}, 2: {"0": 0.8, "\n": 0.1, "2": 0.1}, 3: {"0": 0.5, "\n": 0.5}}

    found = expected(pieces, at, (0, 100))

    assert isinstance(found, Expectation)
    assert found.distribution == pytest.approx({1: 0.1, 10: 0.4, 12: 0.1, 100: 0.4})


@pytest.mark.parametrize(
    ("sampled", "other"), [("4.0", "3.0"), ("4/5", "3/5"), ("4/", "3/"), ('"4"}', '"3"}')]
)
def test_alternatives_that_are_written_in_full(sampled: str, other: str) -> None:
    """`3.0` and `3/5` in one token are the score 3; `3.5` and `3/10` are none."""
    alternatives = {sampled: 0.6, other: 0.2, "3.5": 0.1, "3/10": 0.1}
    rest = "5" if sampled == "4/" else "."

    found = expected(["Score: ", sampled, rest], {1: alternatives})

    assert isinstance(found, Expectation)
    assert found.distribution == pytest.approx({3: 0.25, 4: 0.75})
    assert found.mass == pytest.approx(0.8)


def test_a_number_that_ends_in_its_token_begins_no_longer_one() -> None:
    """Beside a sampled `1` that goes on, `1}` is 1, whichever digits both are written in."""
    at = {1: {"1": 0.3, "１": 0.2, "1}": 0.3, "9": 0.2}, 2: {"0": 0.9, "}": 0.1}}

    found = expected(['{"score": ', "1", "0", "}"], at, TO_TEN)

    assert isinstance(found, Expectation)
    assert found.distribution == pytest.approx({1: 0.3 + 0.05, 9: 0.2, 10: 0.45})
    other_way = expected(['{"score": ', "1}"], {1: {"1}": 0.5, "1": 0.5}}, TO_TEN)
    assert isinstance(other_way, Unusable)
    assert other_way.why.startswith("the score is ambiguous")


def test_a_second_digit_that_may_begin_a_longer_number_is_ambiguous() -> None:
    """15 was sampled on 0 to 100; the 10 beside it may have become 100."""
    at = {1: {"1": 0.99, "x": 0.01}, 2: {"5": 0.7, "0": 0.3}}

    found = expected(["Score: ", "1", "5", "\n"], at, (0, 100))

    assert isinstance(found, Unusable)
    assert found.why.startswith("the score is ambiguous: 0.297")


@pytest.mark.parametrize(
    "after",
    [
        [],
        [Token(text="0", logprob=-9999.0, top=(('"', -0.1), ("}", -3.0)))],
        [Token(text="0", logprob=-0.2, top=(('"', -0.1), ("}", -3.0)))],
    ],
)
def test_a_first_digit_is_not_believed_without_what_follows_it(after: list[Token]) -> None:
    """Sampled `1`, then nothing, or a placeholder: it may be 1 or 10, and not 1 for sure."""
    made = [
        Token(text="1", logprob=math.log(0.9), top=(("1", math.log(0.9)), ("9", math.log(0.1)))),
        *after,
    ]

    found = expectation(made, TokenPosition(0, "1"), TO_TEN)

    assert isinstance(found, Unusable)
    assert found.why.startswith("the score is ambiguous: 0.9 ")
    top = (*made[0].top[:1], ("10", math.log(0.1)))
    whole = expectation(
        [Token(text="1", logprob=math.log(0.9), top=top), *after], TokenPosition(0, "1"), TO_TEN
    )
    assert value(whole) == pytest.approx(0.9 + 1.0)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ([Token(text="4", logprob=-9999.0, top=(("4", -9999.0), ("3", -0.1)))], "placeholder"),
        ([Token(text="4", logprob=0.0, top=(("4", 0.0),))], "0 throughout"),
        ([Token(text="4", logprob=0.0, top=(("4", 0.0), ("3", -9999.0)))], "0 throughout"),
        ([Token(text="4", logprob=0.0, top=(("4", 0.0), ("3", 0.0)))], "0 throughout"),
        (
            [Token(text="4", logprob=-1.5, top=(("4", -1.5), ("3", -1.5), ("2", -1.5)))],
            "all alternatives",
        ),
        ([Token(text="4", logprob=-1.0, top=(('":', -0.1), ('"', -3.0)))], "own alternatives"),
        ([Token(text="4", logprob=-1.0, top=())], "no alternatives"),
        ([Token(text="4", logprob=-0.1, top=(("4", -0.1), ("5", -0.2)))], "more than 1"),
        ([Token(text="4", logprob=-1.0, top=(("4", -1.0), ("a", -0.5)))], "only 0.368"),
        (
            [Token(text="4", logprob=-0.3, top=(("4", -0.3), ("5", -2.0)))]
            + [Token(text="x", logprob=-0.3, top=(("x", -0.3), ("y", -2.0)))] * 5,
            "every token",
        ),
    ],
)
def test_placeholders_are_no_log_probabilities(made: list[Token], why: str) -> None:
    """What servers fill in where they have none is recognised, and said."""
    found = expectation(made, TokenPosition(0, "4"), (1, 5))

    assert isinstance(found, Unusable)
    assert why in found.why


def test_certainty_is_no_placeholder() -> None:
    """0.0 beside alternatives of e^-20 is what a sure model gives."""
    token = Token(text="4", logprob=0.0, top=(("4", 0.0), ("5", -20.0), ("3", -23.5)))

    found = expectation([token], TokenPosition(0, "4"), (1, 5))

    assert value(found) == pytest.approx(4.0, abs=1e-6)


def test_what_follows_without_alternatives_still_counts() -> None:
    """The sampled second digit's own log-probability is enough for its share."""
    made = [
        Token(text="1", logprob=math.log(0.9), top=(("1", math.log(0.9)), ("9", math.log(0.1)))),
        Token(text="0", logprob=math.log(0.7)),
    ]

    found = expectation(made, TokenPosition(0, "1"), TO_TEN)

    assert isinstance(found, Expectation)
    assert found.distribution == pytest.approx({1: 0.27, 9: 0.1, 10: 0.63})


@given(
    st.dictionaries(st.integers(0, 9), st.floats(0.001, 1.0), min_size=2, max_size=10),
    st.floats(0.6, 1.0),
)
def test_it_is_the_mean_of_the_distribution(weights: dict[int, float], mass: float) -> None:
    """Whatever the probabilities: within the scale, and what the formula says."""
    total = math.fsum(weights.values())
    chances = {str(k): weight / total * mass for k, weight in weights.items()}
    top = {**chances, "other": 1.0 - mass} if mass < 1 else chances
    sampled = next(iter(chances))
    made = tokens([sampled], {0: top})

    found = expectation(made, TokenPosition(0, sampled), (0, 9))

    if len(set(top.values())) == 1 and len(top) > 2:
        assert isinstance(found, Unusable)  # all alike: taken for a placeholder
        return
    assert isinstance(found, Expectation)
    exact = math.fsum(k * weight for k, weight in weights.items()) / total
    assert found.value == pytest.approx(exact)
    assert 0 <= found.value <= 9
    assert found.mass == pytest.approx(mass)


_ALIKE = (0, 1, 2, 9, 10, 11, 12, 15, 99, 100, 101, 110, 120, 999, 1000)
"""Numbers that begin alike."""


@given(st.sampled_from([10, 12, 100, 1000]), st.data())
def test_digit_by_digit_it_is_the_truth_or_ambiguous(highest: int, data: st.DataObject) -> None:
    """What a model that spells numbers in digits means is read within the bound that is stated."""
    numbers = data.draw(
        st.lists(
            st.sampled_from([n for n in _ALIKE if n <= highest]),
            min_size=2,
            max_size=6,
            unique=True,
        )
    )
    weights = [data.draw(st.sampled_from([0.001, 0.01]) | st.floats(0.05, 1)) for _ in numbers]
    total = math.fsum(weights)
    chances = {f"{n}}}": weight / total for n, weight in zip(numbers, weights, strict=True)}
    sampled = f"{data.draw(st.sampled_from(numbers))}}}"
    pieces, at = list(sampled), {}
    for place in range(len(sampled)):
        begun = {s: p for s, p in chances.items() if s.startswith(sampled[:place])}
        here: dict[str, float] = {}
        for spelled, p in begun.items():
            here[spelled[place]] = here.get(spelled[place], 0.0) + p / math.fsum(begun.values())
        at[place] = here
    made = tokens(pieces, at)

    found = expectation(made, TokenPosition(0, sampled[0]), (0, highest))

    if isinstance(found, Expectation):
        truth = math.fsum(int(s[:-1]) * p for s, p in chances.items())
        assert abs(found.value - truth) <= found.shift + 1e-9
        assert found.shift <= 0.02 * highest + 1e-9
        assert found.mass == pytest.approx(1.0)


def check_tokens(text: str) -> None:
    """An expectation on the scale, or the reason why there is none."""
    found = tokens_of(objects_in_list(text), "4.5", 0, "4.5", [])
    if not found:
        return
    for scale in ((1, 5), (0, 10), (0, 100)):
        place = place_of("4.5", (0, 1), found)
        if place is None:
            continue
        outcome = expectation(found, place, scale)
        if isinstance(outcome, Expectation):
            assert scale[0] <= outcome.value <= scale[1]
            assert 0.5 <= outcome.mass <= 1.0
            assert math.fsum(outcome.distribution.values()) == pytest.approx(1.0)


def objects_in_list(text: str) -> object:
    """Read the JSON as the model's reader does."""
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


def test_fuzz_log_probabilities() -> None:
    """Any list of tokens gives an expectation or a reason."""
    top = [{"token": "4", "logprob": -0.1}, {"token": "3", "logprob": -2.5}]
    content = {
        "content": [
            {"token": "4", "logprob": -0.1, "top_logprobs": top},
            {"token": ".", "logprob": -0.2, "top_logprobs": [{"token": ".", "logprob": -0.2}]},
            {"token": "5", "logprob": -0.3, "top_logprobs": [{"token": "5", "logprob": -0.3}]},
        ]
    }
    fuzz("log-probabilities", lambda rng: written(mangled(rng, content)), check_tokens)


@pytest.mark.parametrize("logprob", [1.0, 700.0, 1e300])
def test_a_probability_above_1_is_a_reason_and_no_overflow(logprob: float) -> None:
    """At the score, and at the token after it."""
    first = Token(text="1", logprob=-0.1, top=(("1", -0.1),))
    after = Token(text="0", logprob=logprob, top=(("0", logprob), ("x", logprob)))
    place = TokenPosition(0, "10")

    assert isinstance(expectation([after, first], TokenPosition(0, "0"), (0, 10)), Unusable)
    found = expectation([first, after], place, (0, 10))
    assert isinstance(found, Unusable) or 0 <= found.value <= 10
