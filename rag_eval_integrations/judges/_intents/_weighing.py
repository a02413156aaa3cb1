"""Weigh what the words of a passage are about: an order to a judge, whatever its phrasing.

Patterns know phrases. Here a passage is what its words are about, in any order, and a logistic
regression over the concepts and their pairs says how much it sounds like text for a judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache

from rag_eval_integrations.judges._intents._concepts import ENGLISH, LATIN
from rag_eval_integrations.judges._intents._concepts_other import OTHER
from rag_eval_integrations.judges._intents._weights import BIAS, WEIGHTS

SENTENCE, TEXT = "|", "\x1e"  # the words that end a sentence, a text
END, BREAK = 1 << 60, 1 << 61
NAMES = (*ENGLISH, "first", "short", "long", "dense", "sparse", "two", "foreign", "script")
BITS = {name: 1 << at for at, name in enumerate(NAMES)}
_LONGEST = 28  # words of a sentence, or of two
_FEWEST = 6  # concepts of a passage that are worth weighing
_SHORTEST_STEM, _LONGEST_STEM = 3, 14
_KNOWN = 65_536


def mask_of(*names: str) -> int:
    return sum(BITS[name] for name in names)


TURNS = mask_of(
    "grader",
    "good",
    "bad",
    "top",
    "rules",
    "machine",
    "mark",
    "relevant",
    "score",
    "drop",
    "lenient",
    "check",
    "decode",
)
VERBS = mask_of("mark", "give", "drop", "check", "not", "pretend")
_TWO = BITS["two"]
LEADS = mask_of("please", "note", "fully", "not")


@cache
def _english() -> dict[str, int]:
    found: dict[str, int] = {}
    for name, words in ENGLISH.items():
        for word in words.split():
            found[word] = found.get(word, 0) | BITS[name]
    return found


@cache
def _stems() -> tuple[dict[str, int], dict[str, int]]:
    whole: dict[str, int] = {}
    stems: dict[str, int] = {}
    for name, words in LATIN.items():
        for word in words.split():
            into = stems if word.endswith("*") else whole
            word = word.rstrip("*")
            into[word] = into.get(word, 0) | BITS[name]
    return whole, stems


_DIGITS = str.maketrans("013457", "oieast")


class _Known(dict[str, int]):
    """The concepts of words, remembered up to a bound."""

    def __missing__(self, word: str) -> int:
        if word == SENTENCE:
            return END
        if word == TEXT:
            return BREAK
        whole, stems = _stems()
        given = word
        if not word.isalpha() and not word.isdigit():
            word = word.translate(_DIGITS)
        mask = _english().get(word)
        if mask is None:
            mask = whole.get(word, 0)
            for stop in range(_SHORTEST_STEM, min(len(word), _LONGEST_STEM) + 1):
                mask |= stems.get(word[:stop], 0)
            if mask:
                mask |= BITS["foreign"]
        if len(self) < _KNOWN:
            self[given] = mask
        return mask


_known = _Known()


def passages(masks: Sequence[int]) -> Iterator[int]:
    """Yield what every sentence, and every two of them, are about, if they may turn upon it."""
    start, before, words_before = 0, 0, _LONGEST
    for at, mask in enumerate((*masks, BREAK)):
        if mask < END and at - start < _LONGEST:
            continue
        own = masks[start:at]
        start = at + (mask >= END)
        if own:
            about = _about(own)
            if about & TURNS and about.bit_count() >= _FEWEST:
                yield about | _shape(own)
            if words_before + len(own) <= _LONGEST:
                both = before | about
                if both & TURNS and both.bit_count() >= _FEWEST:
                    yield both | _TWO
            before, words_before = about, len(own)
        if mask == BREAK:
            before, words_before = 0, _LONGEST


def _about(masks: Sequence[int]) -> int:
    about = 0
    for one in masks:
        about |= one
    leads = len(masks) > 2 and masks[0] & LEADS
    if masks[0] & VERBS or (leads and masks[1] & VERBS):
        about |= BITS["first"]
    return about


def _shape(masks: Sequence[int]) -> int:
    words, meant = len(masks), len(masks) - masks.count(0)
    return (
        (BITS["short"] if words <= 8 else BITS["long"] if words > 16 else 0)
        | (BITS["dense"] if meant * 5 >= words * 3 else 0)
        | (BITS["sparse"] if meant * 5 <= words * 2 else 0)
    )


def latin_masks(words: Iterable[str]) -> list[int]:
    return list(map(_known.__getitem__, words))


@cache
def _other(fold: Callable[[str], str]) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Return the lengths of parts by their first character, longest first, and their concepts."""
    masks: dict[str, int] = {**dict.fromkeys(_ENDS, END), TEXT: BREAK}
    for name, parts in OTHER.items():
        for part in parts.split():
            folded = fold(part.replace("_", " "))
            masks[folded] = masks.get(folded, 0) | BITS[name] | BITS["script"]
    lengths: dict[str, set[int]] = {}
    for part in masks:
        lengths.setdefault(part[0], set()).add(len(part))
    return {first: tuple(sorted(of, reverse=True)) for first, of in lengths.items()}, masks


def other_masks(text: str, fold: Callable[[str], str]) -> list[int]:
    """Return the concepts of the longest part at every place, one after another."""
    lengths, masks = _other(fold)
    found = []
    free = 0
    for at, first in enumerate(text):
        if at < free or first not in lengths:
            continue
        for length in lengths[first]:
            mask = masks.get(text[at : at + length])
            if mask is not None:
                found.append(mask)
                free = at + length
                break
    return found


_BITS = tuple(BITS.values())
_ENDS = ".!?\n。！？।؟"
_PAIRS: dict[int, int] = {}
for _name, _row in WEIGHTS.items():
    _words = _row.split()
    for _other_name, _weight in zip(_words[::2], _words[1::2], strict=True):
        _PAIRS[BITS[_name] | BITS[_other_name]] = int(_weight)


@lru_cache(maxsize=16_384)
def speaks(about: int) -> bool:
    """Whether a passage that is about these concepts sounds like text for a judge."""
    bits = [bit for bit in _BITS if about & bit]
    total = BIAS
    for at, one in enumerate(bits):
        for other in bits[at:]:
            total += _PAIRS.get(one | other, 0)
    return total > 0
