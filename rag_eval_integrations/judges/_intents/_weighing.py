"""Weigh what the words of a passage are about: an order to a judge, whatever its phrasing.

Patterns know phrases. Here a passage is what its words are about, in any order, and a logistic
regression over the concepts and their pairs says how much it sounds like text for a judge.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, reduce
from operator import or_

from rag_eval_integrations.judges._intents._concepts import ENGLISH, FUNCTION
from rag_eval_integrations.judges._intents._concepts_latin import LATIN, LATIN_FUNCTION
from rag_eval_integrations.judges._intents._concepts_scripts import SCRIPTS
from rag_eval_integrations.judges._intents._sign import TEXT
from rag_eval_integrations.judges._intents._weights import BIAS, WEIGHTS

SHAPES = ("first", "short", "long", "known", "new-words", "mostly-new", "two", "foreign", "script")
"""What else is weighed: whether a verb comes first, how long a passage is, how many of its words
belong to no concept, whether it is of two sentences, and in which kind of language."""
NAMES = (*ENGLISH, *SHAPES)
BITS = {name: 1 << at for at, name in enumerate(NAMES)}
_FOREIGN = 128  # bits: words of other languages than English stand above those of English
_ENGLISH = (1 << _FOREIGN) - 1
_KNOWN = 1 << 127  # a word without a concept
_CONCEPTS = _KNOWN - 1
_FIRST = BITS["first"]
_LONGEST = 28  # words of a passage
_MANY_NEW = 4  # words
_FEWEST, _FEWEST_AMONG_NEW = 3, 5  # concepts of a passage that are worth weighing
_HEAD = 4  # letters of the shortest stem


def _mask_of(names: str) -> int:
    return sum(BITS[name] for name in names.split())


_TURNS = _mask_of(
    "grader good bad top number fine rules machine mark relevant score drop lenient check decode"
    " pass format"
)
_VERBS = _mask_of("mark give drop check not pretend pass write")
_LEADS = _mask_of("please note fully not must")
_DIGITS = str.maketrans("013457", "oieast")


# --- Words


@cache
def _words() -> dict[str, int]:
    """Return the concepts of whole words, those of other languages in the bits above."""
    found: dict[str, int] = {}
    for name, words in ENGLISH.items():
        for word in words.split():
            found[word] = found.get(word, 0) | BITS[name]
    hidden = {
        form: mask | BITS["decode"]
        for word, mask in found.items()
        if len(word) > 4
        for form in (word[::-1], codecs.encode(word, "rot13"))
    }
    for name, words in LATIN.items():
        for word in words.split():
            if not word.endswith("*"):
                found[word] = found.get(word, 0) | BITS[name] << _FOREIGN
    for shift, words in ((0, FUNCTION), (_FOREIGN, LATIN_FUNCTION)):
        for word in words.split():
            found[word] = found.get(word, 0) | _KNOWN << shift
    return hidden | found


@cache
def _stems() -> tuple[frozenset[str], dict[str, int], int]:
    """Return the first letters of stems, the concepts of stems, and the length of the longest."""
    stems: dict[str, int] = {}
    for name, words in LATIN.items():
        for word in words.split():
            if word.endswith("*"):
                stem = word.rstrip("*")
                stems[stem] = stems.get(stem, 0) | BITS[name] << _FOREIGN
    return frozenset(stem[:_HEAD] for stem in stems), stems, max(map(len, stems))


@cache
def _known() -> frozenset[str]:
    return frozenset(_words())


def concepts_of(distinct: frozenset[str]) -> dict[str, int]:
    """Return the concepts of those words that have any."""
    table, known = _words(), _known()
    heads, _, _ = _stems()
    found = {word: table[word] for word in distinct & known}
    rest = [word for word in distinct - known if word[:_HEAD] in heads or not word.isalpha()]
    found.update({word: mask for word in rest if (mask := _by_spelling(word))})
    return found


def _by_spelling(word: str) -> int:
    """Return the concepts of a word with digits for letters, or of the stem that it begins with."""
    if not word.isalpha() and not word.isdigit():
        word = word.translate(_DIGITS)
        if mask := _words().get(word):
            return mask
    heads, stems, longest = _stems()
    found = 0
    if word[:_HEAD] in heads:
        for stop in range(_HEAD, min(len(word), longest) + 1):
            found |= stems.get(word[:stop], 0)
    return found


# --- Passages


def passages(sentences: Sequence[Sequence[str]], concepts: Mapping[str, int]) -> Iterator[int]:
    """Yield what every sentence, and every two of them, are about, if they may turn upon it.

    Args:
        sentences: their words; between texts stands a sentence of the one word `TEXT`.
        concepts: what each word is about.
    """
    about_of = concepts.get
    before = new_before = 0
    words_before = _LONGEST
    if max(map(len, sentences), default=0) > _LONGEST:
        sentences = [
            line[at : at + _LONGEST]
            for line in sentences
            for at in range(0, len(line) or 1, _LONGEST)
        ]
    for words in sentences:
        count = len(words)
        if count < 2:
            if count and words[0] == TEXT:
                words_before = _LONGEST
            continue
        masks = list(filter(None, map(about_of, words)))
        new = count - len(masks)
        about = _about(masks) if len(masks) > 1 else 0
        if about & _TURNS and _is_worth(about, new):
            yield about | _shape(count, new)
        if about and before and words_before + count <= _LONGEST:
            both = before | about
            if both & _TURNS and _is_worth(both, new_before + new):
                yield both | _shape_of_two(new_before + new)
        before, words_before, new_before = about, count, new


def _is_worth(about: int, new: int) -> bool:
    return about.bit_count() >= (_FEWEST if new < _MANY_NEW else _FEWEST_AMONG_NEW)


def _about(masks: Sequence[int]) -> int:
    """Return what a sentence is about, by the language that most of its words are of."""
    every = reduce(or_, masks)
    if every > _ENGLISH:
        english = sum(1 for one in masks if one & _ENGLISH)
        foreign = sum(1 for one in masks if one >> _FOREIGN)
        if foreign > english:
            masks = [one >> _FOREIGN | one & _ENGLISH for one in masks]
            every = every >> _FOREIGN | every & _ENGLISH | BITS["foreign"]
    about = every & _CONCEPTS
    first = masks[0]
    if first & _VERBS or (first & _LEADS and len(masks) > 2 and masks[1] & _VERBS):
        about |= _FIRST
    return about


def _shape(words: int, new: int) -> int:
    return _shape_of(new) | (BITS["short"] if words <= 8 else BITS["long"] if words > 16 else 0)


def _shape_of_two(new: int) -> int:
    return _shape_of(new) | BITS["two"]


def _shape_of(new: int) -> int:
    return (
        BITS["known"]
        if new < 2
        else 0
        if new < 4
        else BITS["new-words" if new < 7 else "mostly-new"]
    )


# --- Scripts without spaces, or with many endings


_ENDS = frozenset(".!?\n。！？।؟")


@cache
def _parts(fold: Callable[[str], str]) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Return the lengths of parts by their first character, longest first, and their concepts."""
    masks: dict[str, int] = {}
    for name, parts in SCRIPTS.items():
        for part in parts.split():
            folded = fold(part.replace("_", " "))
            masks[folded] = masks.get(folded, 0) | BITS[name]
    lengths: dict[str, set[int]] = {}
    for part in masks:
        lengths.setdefault(part[0], set()).add(len(part))
    return {first: tuple(sorted(of, reverse=True)) for first, of in lengths.items()}, masks


def script_passages(text: str, fold: Callable[[str], str]) -> Iterator[int]:
    """Yield what every sentence is about, and every two, by the longest part at every place."""
    lengths, masks = _parts(fold)
    before = own = found = free = letters = covered = 0
    for at, first in enumerate(text + "\n"):
        if at < free:
            continue
        if first in _ENDS or first == TEXT or letters > 120:
            if own.bit_count() >= _FEWEST and own & _TURNS:
                yield own | BITS["script"] | _script_shape(letters, covered)
            if before and own and (both := before | own) & _TURNS:
                yield both | BITS["script"] | BITS["two"]
            if own or first == TEXT:
                before = 0 if first == TEXT else own
            own = found = letters = covered = 0
        letters += first.isalpha()
        for length in lengths.get(first, ()):
            mask = masks.get(text[at : at + length])
            if mask is not None:
                if not found and mask & _VERBS:
                    own |= BITS["first"]
                own |= mask
                found += 1
                covered += length
                letters += length - 1
                free = at + length
                break


def _script_shape(letters: int, covered: int) -> int:
    return (BITS["short"] if letters <= 14 else BITS["long"] if letters > 50 else 0) | (
        BITS["known"]
        if covered * 3 >= letters * 2
        else BITS["mostly-new"]
        if covered * 3 < letters
        else 0
    )


# --- Weights


_PAIRS: dict[int, int] = {}
for _name, _row in WEIGHTS.items():
    _weights = _row.split()
    for _other_name, _weight in zip(_weights[::2], _weights[1::2], strict=True):
        _PAIRS[BITS[_name] | BITS[_other_name]] = int(_weight)


@lru_cache(maxsize=16_384)
def weight(about: int) -> int:
    """Return how much a passage about these concepts sounds like text for a judge: from 0, it does.

    In hundredths of log-odds.
    """
    bits = []
    while about:  # a passage is about few of all the concepts
        bits.append(about & -about)
        about &= about - 1
    total = BIAS
    for at, one in enumerate(bits):
        for other in bits[at:]:
            total += _PAIRS.get(one | other, 0)
    return total
