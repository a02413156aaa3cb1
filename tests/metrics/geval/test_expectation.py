"""The expectation: worked out by hand, the peers' breakages row by row, placeholders."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

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
from rag_eval_integrations.models._reading import loads, tokens_of
from rag_eval_integrations.models.completion import Token


def expected(
    pieces: list[str], at: Mapping[int, Alternatives], scale: tuple[int, int] = (1, 5)
) -> Any:
    """What is read from a reply, from its text on."""
    text = "".join(pieces)
    span: Any = read_reply(text, "coherence", scale).span
    made = tokens(pieces, at)
    place: Any = place_of(text, span, made)
    return expectation(made, place, scale)


def why(outcome: Any) -> str:
    assert isinstance(outcome, Unusable), outcome
    return outcome.why


def token(text: str, *top: tuple[str, float], logprob: float | None = None) -> Token:
    """A token; its own log-probability is that of the first alternative, if none is given."""
    return Token(text=text, logprob=top[0][1] if logprob is None else logprob, top=top)


SURE_OF_1 = token("1", ("1", math.log(0.9)), ("9", math.log(0.1)))


TO_TEN = (0, 10)
SCORE = '{"score": '
EIGHT_OR_NINE = {"8": 0.5, "9": 0.5}
REASON_8 = {"8": 1.0, "x": 1e-9}


@pytest.mark.parametrize(
    ("pieces", "at", "scale", "distribution"),
    [
        # the score's own token, not the reason's 8, whichever comes first
        (['{"', "score", '": ', "8", ', "', 'reason": "All ', "8", ' facts."}'],
         {3: EIGHT_OR_NINE, 6: REASON_8}, TO_TEN, {8: 0.5, 9: 0.5}),
        (['{"', 'reason": "All ', "8", ' facts."', ', "score": ', "8", "}"],
         {2: REASON_8, 5: EIGHT_OR_NINE}, TO_TEN, {8: 0.5, 9: 0.5}),
        # digit by digit: what follows a first digit says how likely the longer number was
        ([SCORE, "1", "0", "}"], {1: {"1": 0.5, "9": 0.5}, 2: {"0": 0.9, "}": 0.1}, 3: {"}": 1.0}},
         TO_TEN, {1: 0.05, 9: 0.5, 10: 0.45}),
        ([SCORE, "1", "}"], {1: {"1": 0.8, "2": 0.2}, 2: {"}": 0.75, "0": 0.25}},
         TO_TEN, {1: 0.6, 2: 0.2, 10: 0.2}),
        (["Score: ", "1", "0", "0"],
         {1: {"1": 0.99, "x": 0.01}, 2: {"0": 0.8, "\n": 0.1, "2": 0.1}, 3: {"0": 0.5, "\n": 0.5}},
         (0, 100), {1: 0.1, 10: 0.4, 12: 0.1, 100: 0.4}),
        # a tokenizer that has 10 in one piece does not spell it in two
        ([SCORE, "9", "}"], {1: {"9": 0.6, "10": 0.3, "1": 0.1}}, TO_TEN, {9: 0.6, 10: 0.3, 1: 0.1}),
        # beside a sampled `1` that goes on, `1}` is 1
        ([SCORE, "1", "0", "}"],
         {1: {"1": 0.3, "１": 0.2, "1}": 0.3, "9": 0.2}, 2: {"0": 0.9, "}": 0.1}},
         TO_TEN, {1: 0.35, 9: 0.2, 10: 0.45}),
        # 100 on a scale to 10 gives no score above 10
        ([SCORE, "10", "}"], {1: {"10": 0.5, "100": 0.5}}, TO_TEN, {10: 1.0}),
        # spellings of a score are added up
        (["Score: ", "4"], {1: {"4": 0.3, " 4": 0.2, "４": 0.1, "4\n": 0.1, "5": 0.2, "five": 0.1}},
         (1, 5), {4: 0.7 / 0.9, 5: 0.2 / 0.9}),
        # something else in its token
        (['{"score":', " 8", "}"], {1: {" 8": 0.75, " 6": 0.25}}, TO_TEN, {8: 0.75, 6: 0.25}),
        ([SCORE, "8", ".0", "}"], {1: {"8": 0.75, "6": 0.25}}, TO_TEN, {8: 0.75, 6: 0.25}),
        (['{"score":', ' "8', '"}'], {1: {' "8': 0.75, ' "6': 0.25}}, TO_TEN, {8: 0.75, 6: 0.25}),
        ([SCORE, "8}"], {1: {"8}": 0.75, "6}": 0.25}}, TO_TEN, {8: 0.75, 6: 0.25}),
        # written in full: 3.0 and 3/5 are 3; 3.5 and 3/10 are none
        *((["Score: ", sampled, rest], {1: {sampled: 0.6, other: 0.2, "3.5": 0.1, "3/10": 0.1}},
           (1, 5), {3: 0.25, 4: 0.75})
          for sampled, other, rest in (("4.0", "3.0", "."), ("4/5", "3/5", "."), ("4/", "3/", "5"))),
        # a long tail is not cut off
        ([SCORE, "9", "}"], {1: {"9": 0.904} | {f"{w}{n}": 0.008 for w in ("", " ") for n in range(2, 8)}},
         TO_TEN, {9: 0.904} | dict.fromkeys(range(2, 8), 0.016)),
    ],
)  # fmt: skip
def test_the_distribution_over_scores(
    pieces: list[str], at: Mapping[int, Alternatives], scale: tuple[int, int],
    distribution: dict[int, float],
) -> None:  # fmt: skip
    """Worked out by hand: where the score stands, how it is cut, what else might have stood there."""
    found = expected(pieces, at, scale)

    assert found.distribution == pytest.approx(distribution)
    assert found.value == pytest.approx(sum(k * p for k, p in distribution.items()))


@pytest.mark.parametrize(
    ("pieces", "at", "scale", "share"),
    [
        ([SCORE, "9", "}"], {1: {"9": 0.6, "1": 0.4}}, TO_TEN, "0.4"),
        ([SCORE, "1}"], {1: {"1}": 0.5, "1": 0.5}}, TO_TEN, "0.5"),
        (["Score: ", "1", "5", "\n"], {1: {"1": 0.99, "x": 0.01}, 2: {"5": 0.7, "0": 0.3}}, (0, 100), "0.297"),
    ],
)  # fmt: skip
def test_what_may_begin_a_longer_number_is_ambiguous(
    pieces: list[str], at: Mapping[int, Alternatives], scale: tuple[int, int], share: str
) -> None:
    """Whether `1` begins 10, or 10 begins 100, was not sampled: declared, not guessed."""
    assert why(expected(pieces, at, scale)).startswith(f"the score is ambiguous: {share}")


CLOSING = (('"', -0.1), ("}", -3.0))


@pytest.mark.parametrize(
    "after", [[], [token("0", *CLOSING, logprob=-9999.0)], [token("0", *CLOSING, logprob=-0.2)]]
)
def test_a_first_digit_is_not_believed_without_what_follows_it(after: list[Token]) -> None:
    """Sampled `1`, then nothing, or a placeholder: it may be 1 or 10, and not 1 for sure."""
    read = expectation([SURE_OF_1, *after], TokenPosition(0, "1"), TO_TEN)

    assert why(read).startswith("the score is ambiguous: 0.9 ")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ([token("4", ("4", -9999.0), ("3", -0.1))], "placeholder"),
        ([token("4", ("4", 0.0))], "0 throughout"),
        ([token("4", ("4", 0.0), ("3", -9999.0))], "0 throughout"),
        ([token("4", ("4", 0.0), ("3", 0.0))], "0 throughout"),
        ([token("4", ("4", -1.5), ("3", -1.5), ("2", -1.5))], "all alternatives"),
        ([token("4", ('":', -0.1), ('"', -3.0), logprob=-1.0)], "own alternatives"),
        ([token("4", logprob=-1.0)], "no alternatives"),
        ([token("4", ("4", -0.1), ("5", -0.2))], "more than 1"),
        ([token("4", ("4", -1.0), ("a", -0.5))], "only 0.368"),
        ([token("4", ("4", -0.3), ("5", -2.0)), *[token("x", ("x", -0.3), ("y", -2.0))] * 5],
         "every token"),
    ],
)  # fmt: skip
def test_placeholders_are_no_log_probabilities(made: list[Token], words: str) -> None:
    """What servers fill in where they have none is recognised, and said."""
    assert words in why(expectation(made, TokenPosition(0, "4"), (1, 5)))


def test_certainty_and_a_share_without_alternatives_are_no_placeholders() -> None:
    """0.0 beside e^-20 is what a sure model gives; a second digit's own share is enough."""
    four = [token("4", ("4", 0.0), ("5", -20.0), ("3", -23.5))]
    digits = [SURE_OF_1, token("0", logprob=math.log(0.7))]

    sure: Any = expectation(four, TokenPosition(0, "4"), (1, 5))
    longer: Any = expectation(digits, TokenPosition(0, "1"), TO_TEN)

    assert sure.value == pytest.approx(4.0, abs=1e-6)
    assert longer.distribution == pytest.approx({1: 0.27, 9: 0.1, 10: 0.63})


_ALIKE = (0, 1, 2, 9, 10, 11, 12, 15, 99, 100, 101, 110, 120, 999, 1000)
"""Numbers that begin alike."""


@given(st.sampled_from([10, 12, 100, 1000]), st.data())
def test_digit_by_digit_it_is_the_truth_or_ambiguous(highest: int, data: st.DataObject) -> None:
    """What a model that spells numbers in digits means is read within the bound that is stated."""
    alike = st.sampled_from([n for n in _ALIKE if n <= highest])
    numbers = data.draw(st.lists(alike, min_size=2, max_size=6, unique=True))
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
    try:
        content = loads(text)
    except (ValueError, RecursionError):
        return
    made = tokens_of(content, "4.5", 0, "4.5", [])
    place = place_of("4.5", (0, 1), made) if made else None
    if not made or place is None:
        return
    for lowest, highest in ((1, 5), (0, 10), (0, 100)):
        outcome = expectation(made, place, (lowest, highest))
        if isinstance(outcome, Expectation):
            assert lowest <= outcome.value <= highest
            assert 0.5 <= outcome.mass <= 1.0
            assert math.fsum(outcome.distribution.values()) == pytest.approx(1.0)


def test_fuzz_log_probabilities() -> None:
    """Any list of tokens gives an expectation or a reason."""
    four, three, point, five = (
        {"token": text, "logprob": logprob}
        for text, logprob in (("4", -0.1), ("3", -2.5), (".", -0.2), ("5", -0.3))
    )
    tops = ((four, [four, three]), (point, [point]), (five, [five]))
    content = {"content": [{**made, "top_logprobs": top} for made, top in tops]}
    fuzz("log-probabilities", lambda rng: written(mangled(rng, content)), check_tokens)


# --- From the score's characters to its token, whatever stands before, after or in pieces


def spelled(pieces: list[str]) -> list[Token]:
    return [Token(text=piece, logprob=-0.1) for piece in pieces]


def test_the_token_is_found() -> None:
    """By bytes, from the end or from the beginning."""
    rows = [
        ("Score: 4", ["Score", ":", " 4"], TokenPosition(2, "4")),
        ("Score: 4", ["<think>", "hm", "</think>", "Score", ":", " 4"], TokenPosition(5, "4")),
        ("Score: 4", ["Score", ":", " 4", "<|im_end|>"], TokenPosition(2, "4")),
        ("ünïcodé 4 end", ["ün", "ïco", "dé", " 4", " end"], TokenPosition(3, "4")),
        ("🙂 4", ["bytes:\\xf0\\x9f", "bytes:\\x99\\x82", " ", "4"], TokenPosition(3, "4")),
        ("4 🙂", ["4", " ", "\ufffd", "\ufffd"], TokenPosition(0, "4")),
        ("score 10.", ["score", " 1", "0", "."], TokenPosition(1, "1")),
        ('{"score": 4}', ['{"score', '":', " 4}"], TokenPosition(2, "4}")),
    ]

    for text, pieces, place in rows:
        score = "10" if "10" in text else "4"
        span = (text.index(score), text.index(score) + len(score))
        assert (text, place_of(text, span, spelled(pieces))) == (text, place)


def test_tokens_that_spell_something_else_give_no_place() -> None:
    """Rather none than that of another token."""
    others: list[list[str]] = [
        [],
        ["Score: 5"],
        ["\ufffd", " 4 ", "\ufffd"],  # unknown on both sides
        ["Score", ": 4", " and", " so", " much", " more"],
    ]

    assert [place_of("é 4 é", (2, 3), spelled(pieces)) for pieces in others] == [None] * 4


@given(st.text(max_size=20), st.text(max_size=20), st.integers(1, 4), st.text(max_size=8))
def test_any_cut_finds_the_digit(before: str, after: str, size: int, reasoning: str) -> None:
    """However the text is cut into pieces, and whatever reasoning is left before it."""
    text = f"{before}7{after}"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]

    found = place_of(text, (len(before), len(before) + 1), spelled([*reasoning, *pieces]))

    assert found
    index = found.index - len(reasoning)
    assert index * size <= len(before) < (index + 1) * size
    assert found.rest.startswith("7")
