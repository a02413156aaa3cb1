"""The expected score under the model's own log-probabilities (arXiv:2303.16634). No I/O.

    s = Σ k·p(k) / Σ p(k)   over the integers k of the scale, at the position of the score

p(k) is the sum over all spellings of k (`4`, ` 4`, `４`). Unlikely scores are not cut off; numbers
outside of the scale are ignored. Where a tokenizer writes 10 as `1`, `0`, the joint probability is
used: p(10) = p(`1`)·p(`0` after `1`), and p(1) is the rest of p(`1`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rag_eval_integrations.models.completion import Token

# --- From a span of characters to the tokens that spell it, compared as bytes


_ESCAPED = re.compile(r"(?:bytes:)?(?:\\x[0-9a-fA-F]{2})+")
_MOST_TRAILING = 2  # `<|im_end|>`, `</s>`


@dataclass(frozen=True, slots=True)
class TokenPosition:
    """The token in which a span begins."""

    index: int
    """Index of the first token that holds a byte of the span."""
    rest: str
    """Text of that token from the span on: digits of the score, and perhaps more."""


def place_of(text: str, span: tuple[int, int], tokens: Sequence[Token]) -> TokenPosition | None:
    """Find the token in which a span begins; None when the tokens do not spell the text there."""
    encoded = text.encode("utf-8", "replace")
    start = len(text[: span[0]].encode("utf-8", "replace"))
    end = start + len(text[span[0] : span[1]].encode("utf-8", "replace"))
    pieces = [_bytes(token.text) for token in tokens]
    for trailing in range(_MOST_TRAILING + 1):
        place = _from_end(encoded, start, pieces[: len(pieces) - trailing])
        if place is not None:
            return place
    return _from_start(encoded, start, end, pieces)


def _bytes(text: str) -> bytes:
    """Return the bytes of a token, also of one that is written as escapes."""
    if "\\x" in text and _ESCAPED.fullmatch(text):
        return bytes.fromhex(text.removeprefix("bytes:").replace("\\x", ""))
    return text.encode("utf-8", "replace")


def _from_end(encoded: bytes, start: int, pieces: Sequence[bytes]) -> TokenPosition | None:
    """Find the token in which the score starts, by matching the tokens from the end."""
    stop = len(encoded)
    for index in reversed(range(len(pieces))):
        begin = stop - len(pieces[index])
        # The answer's first token may begin in the reasoning before it.
        if encoded[max(begin, 0) : stop] != pieces[index][max(-begin, 0) :]:
            return None
        if begin <= start < stop:
            return TokenPosition(index, encoded[start:stop].decode("utf-8", "replace"))
        stop = begin
    return None


def _from_start(
    encoded: bytes, start: int, end: int, pieces: Sequence[bytes]
) -> TokenPosition | None:
    """Find the token in which the score starts, by matching the tokens from the start.

    None where they do not spell the reply as far as `end`; what follows is not compared. The text
    returned runs to the end of that token, also past `end`.
    """
    begin, place = 0, None
    for index, piece in enumerate(pieces):
        stop = begin + len(piece)
        if encoded[begin:stop] != piece:
            return None
        if begin <= start < stop:
            place = TokenPosition(index, encoded[start:stop].decode("utf-8", "replace"))
        if place is not None and stop >= end:
            return place
        begin = stop
    return None


# --- From the alternatives at a token to the distribution of the score


_IMPOSSIBLE = -50.0
"""A token this unlikely was not sampled: structured output reports -9999 (openai-python #2227)."""
_LEAST_MASS = 0.5
_MOST_SUM = 1.01
"""Limit on the sum of probabilities at one position: 1, and a margin for rounding."""
_ROUNDING = 1e-6
_MOST_SHIFT = 0.02
"""Shift of the normalised value, in [0, 1], up to which the meaning of an ambiguous digit does not
matter. On a scale from 0 to 10, a `1` of probability .01 that may begin a 10 shifts it by .009 at
most; twenty samples with a standard deviation of .5 points have a standard error of .011."""
_SAME = 3
"""Number of equal values from which a constant counts as a placeholder."""
_DIGITS = re.compile(r"\d{1,9}")
# An alternative that is an integer: `4`, `4.0`, `4/5`, with JSON or Markdown marks around it.
_NUMBER = re.compile(
    r"[\s\"'*`:(\[,]*(?P<n>\d{1,9})(?:[.,]0+)?(?:/(?P<whole>\d{0,9}))?[\s\"'*`.,)\]}]*"
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """A score's expectation and distribution."""

    value: float
    """Expected score, within the scale."""
    mass: float
    """Probability of all integers of the scale before normalisation, in [0.5, 1]."""
    std: float
    """Standard deviation of the distribution."""
    distribution: dict[int, float]
    """Probability by score; adds up to 1."""
    shift: float = 0.0
    """How far `value` may be off because a digit that is counted as a score may begin a longer
    number, on the metric's scale; at least 0."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """The reason why log-probabilities give no expectation."""

    why: str
    placeholder: bool = False
    """Whether the server makes its log-probabilities up, so that the next ones are as useless."""


def expectation(
    tokens: Sequence[Token], place: TokenPosition, scale: tuple[int, int]
) -> Expectation | Unusable:
    """Compute the expected score.

    Args:
        tokens: the reply's tokens with their alternatives.
        place: the token in which the score begins.
        scale: lowest and highest score.

    Returns:
        The expectation, or the reason why there is none: placeholders instead of probabilities,
        too little probability on the scale, or a digit that may begin a longer number and is
        likely enough to matter.
    """
    token = tokens[place.index]
    here = _alternatives(token)
    placeholder = _placeholder(token, here) or _constant(tokens)
    if placeholder is not None:
        return placeholder
    sums: dict[int, float] = {}
    undecided: dict[int, float] = {}
    on_sampled = here[token.text]
    sampled, ended = _digits_of(place.rest)
    numbers = [
        (number, p)
        for text, p in here.items()
        if text != token.text and (number := _number(text, scale[1])) is not None
    ]
    # A tokenizer that has a token for a longer number does not spell that number in two tokens.
    whole = len(sampled) > 1 and scale[0] <= int(sampled) <= scale[1]
    for (digits, _), _ in numbers:
        whole = whole or (len(digits) > 1 and scale[0] <= int(digits) <= scale[1])
    for (digits, is_over), probability in numbers:
        if digits == sampled and is_over == ended:
            on_sampled += probability
        else:
            may_go_on = not is_over and not whole and _longest(int(digits), scale)
            _add(undecided if may_go_on else sums, int(digits), probability)
    _add_sampled(sums, undecided, on_sampled, tokens, place, scale, whole=whole)
    return _normalised(sums, undecided, scale)


def word_probabilities(
    tokens: Sequence[Token], place: TokenPosition
) -> dict[str, float] | Unusable:
    """Return the probability of each spelling at a token, or the reason why there is none."""
    token = tokens[place.index]
    here = _alternatives(token)
    return _placeholder(token, here) or _constant(tokens) or here


def _normalised(
    sums: dict[int, float], undecided: dict[int, float], scale: tuple[int, int]
) -> Expectation | Unusable:
    """Return the expectation over the ratings of the scale, if enough is known.

    It is not where digits that may begin a longer number could shift it, or too little of the
    probability is on the scale.
    """
    low, high = scale
    unclear = math.fsum(undecided.values())
    shift = math.fsum(
        p * (_longest(k, scale) - k if low <= k <= high else high - low)
        for k, p in undecided.items()
    )
    for k, p in undecided.items():
        _add(sums, k, p)
    sums = {k: p for k, p in sums.items() if low <= k <= high}
    mass = math.fsum(sums.values())
    if shift > _MOST_SHIFT * (high - low) * (mass or 1.0):
        return Unusable(
            f"the score is ambiguous: {unclear:.3g} of the probability is on a digit that may "
            "begin a longer number"
        )
    if mass < _LEAST_MASS:
        return Unusable(f"only {mass:.3g} of the probability is on scores of the scale")
    distribution = {k: sums[k] / mass for k in sorted(sums)}
    value = math.fsum(k * p for k, p in distribution.items())
    variance = math.fsum(p * (k - value) ** 2 for k, p in distribution.items())
    return Expectation(value, min(mass, 1.0), math.sqrt(variance), distribution, shift / mass)


def _placeholder(token: Token, here: Mapping[str, float]) -> Unusable | None:
    """Say why log-probabilities cannot be used, mostly as placeholders; None if they can."""
    if not here:
        return Unusable("the score's token has no alternatives", placeholder=True)
    if token.logprob <= _IMPOSSIBLE:
        why = f"the sampled score has the log-probability {token.logprob:g}, a placeholder"
        return Unusable(why, placeholder=True)
    if token.text not in here:  # also of a real model, where the sampled token is an unlikely one
        return Unusable("the sampled score is not among its own alternatives")
    values = [logprob for _, logprob in token.top]
    lowest, highest = min(values), max(values)
    if len(values) >= _SAME and lowest == highest:
        why = f"all alternatives have the log-probability {lowest:g}, a placeholder"
        return Unusable(why, placeholder=True)
    if token.logprob == highest == 0 and all(v == 0 or v <= _IMPOSSIBLE for v in values):
        return Unusable("the log-probabilities are 0 throughout, a placeholder", placeholder=True)
    if highest > _ROUNDING or math.fsum(here.values()) > _MOST_SUM:
        why = "the probabilities of the alternatives add up to more than 1"
        return Unusable(why, placeholder=True)
    return None


def _constant(tokens: Sequence[Token]) -> Unusable | None:
    """Refuse log-probabilities that are all equal, which are placeholders."""
    first = tokens[0].logprob
    if len(tokens) < _SAME or any(token.logprob != first for token in tokens):
        return None
    why = f"every token has the log-probability {first:g}, a placeholder"
    return Unusable(why, placeholder=True)


def _alternatives(token: Token) -> dict[str, float]:
    """Map each spelling to its probability; vLLM lists the sampled token twice."""
    return {text: _probability(logprob) for text, logprob in token.top}


def _probability(logprob: float) -> float:
    """Convert a log-probability, at most to e, which no probability can be."""
    return math.exp(min(logprob, 1.0))


def _longest(number: int, scale: tuple[int, int]) -> int:
    """Return the largest longer number of the scale with these first digits; 0 without any."""
    longest = 0
    begin, room = number * 10, 10
    while 0 < begin <= scale[1]:
        if begin + room - 1 >= scale[0]:
            longest = min(begin + room - 1, scale[1])
        begin, room = begin * 10, room * 10
    return longest


def _add_sampled(
    sums: dict[int, float],
    undecided: dict[int, float],
    probability: float,
    tokens: Sequence[Token],
    place: TokenPosition,
    scale: tuple[int, int],
    *,
    whole: bool,
) -> None:
    """Add the probabilities of the sampled number and of those with other following digits.

    Digits that may or may not begin a longer number, because the alternatives to the token that
    followed are not known, are added to `undecided`.
    """
    left, index = probability, place.index
    sampled, ended = _digits_of(place.rest)
    while sampled:
        number = int(sampled)
        if ended or not _longest(number, scale):
            _add(sums, number, left)
            break
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if following is None or _is_unknown(following):
            _add(sums if whole else undecided, number, left)
            break
        alternatives = {following.text: _probability(following.logprob), **_alternatives(following)}
        digits_on = 0.0
        for text, p in alternatives.items():
            digits, is_over = _digits_of(text)
            digits_on += p if digits else 0.0
            if not digits or text == following.text:
                continue
            may_go_on = not is_over and not whole and _longest(int(sampled + digits), scale)
            _add(undecided if may_go_on else sums, int(sampled + digits), left * p)
        _add(sums, number, left * max(0.0, 1.0 - digits_on))
        tail, ended = _digits_of(following.text)
        if not tail:
            break
        left *= alternatives[following.text]
        sampled, index = sampled + tail, index + 1


def _is_unknown(token: Token) -> bool:
    """Tell whether a later token of the score lacks probabilities, as with structured output."""
    listed = any(text == token.text for text, _ in token.top)
    return token.logprob <= _IMPOSSIBLE or bool(token.top and not listed)


@lru_cache(maxsize=1024)  # the same spellings come with every reply
def _number(text: str, highest: int) -> tuple[str, bool] | None:
    """Read an alternative that is an integer: its digits, and whether the number is complete."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match["whole"] and _ascii(match["whole"]) != str(highest)):
        return None
    return _ascii(match["n"]), match.end("n") < len(text)


def _digits_of(text: str) -> tuple[str, bool]:
    """Return the digits at the beginning of a token, and whether other characters follow them."""
    match = _DIGITS.match(text)
    return ("", True) if match is None else (_ascii(match[0]), match.end() < len(text))


def _ascii(digits: str) -> str:
    """Write digits of any script in ASCII."""
    return digits if digits.isascii() else "".join(str(int(digit)) for digit in digits)


def _add(sums: dict[int, float], number: int, probability: float) -> None:
    """Add the probability of a number."""
    sums[number] = sums.get(number, 0.0) + probability
