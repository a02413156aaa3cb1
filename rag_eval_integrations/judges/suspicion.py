"""Detect text that addresses a judge instead of a reader: sets a flag, never changes a score.

The labelling prompt does not rely on it (no text can leave its section); the flag
`suspected_injection` tells a person where to look. It is set on 0 of 2,697 RAGBench rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple


class _Sign(NamedTuple):
    """A pattern, and groups of words: a text is searched only if it has one word of every group.

    The patterns alone take 1.1 ms on RAGBench's mean row, a fifth of all work on it; looking for
    the words first reduces that to 0.1 ms.
    """

    needs: tuple[tuple[str, ...], ...]
    pattern: str

    def may_be_in(self, small: str) -> bool:
        return all(any(word in small for word in group) for group in self.needs)


def _sign(pattern: str, *needs: str) -> _Sign:
    return _Sign(tuple(tuple(group.split()) for group in needs), pattern)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE | re.VERBOSE)


_SIGNS = (
    # Fields of the labelling answer.
    _sign(
        r"""all_(?:relevant|utilized)_sentence_keys | fully_supported | overall_supported
        | sentence_support_information""",
        "_sentence_keys _supported _support_",
    ),
    # Delimiters of prompts and chat templates, and lines that imitate a message.
    _sign(r"<<<\s*(?:question|documents|response)\b", "<<<"),
    _sign(r"\b(?:question|documents|response)[^\n]{0,40}>>>", ">>>"),
    _sign(r"<\|\s*(?:im_start|im_end|system|user|assistant|endoftext)", "<|"),
    _sign(r"\[/?INST\] | <</?SYS>>", "inst] sys>>"),
    _sign(
        r"^\s*(?:\#+\s*)?(?:system|assistant|developer)\s*(?:prompt|message)?\s*:\s*\S",
        "system assistant developer",
        ":",
    ),
    _sign(
        r"""</?(?:system|instructions?|documents?|context|question|response|answer|data|outputs?
        |user)>""",
        "<",
        ">",
    ),
    # Instructions to the model.
    _sign(
        r"""\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}
        \b(?:previous|above|prior|earlier|preceding|other|these|your)\b[^.\n]{0,20}
        \b(?:instruction|prompt|rule|direction|guideline|message)s?\b""",
        "ignore disregard forget override",
        "instruction prompt rule direction guideline message",
    ),
    _sign(
        r"""\b(?:mark|label|rate|score|judge|grade|treat)\b[^.\n]{0,30}
        \b(?:every|all|each|this|the)\b[^.\n]{0,30}
        \b(?:sentence|claim|response|answer)s?\b[^.\n]{0,30}
        \b(?:as\s+)?(?:relevant|supported|utili[sz]ed|correct|perfect|true)\b""",
        "mark label rate score judge grade treat",
        "sentence claim response answer",
        "relevant supported utili correct perfect true",
    ),
)

# Characters that hide or reverse text. A single byte order mark is left by converters.
_HIDDEN = re.compile("[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_TOO_MANY_HIDDEN = 8


def speaks_to_a_judge(texts: Iterable[str]) -> bool:
    """Whether any text has instructions, verdicts or markup for a model, or much hidden text."""
    texts = tuple(texts)
    # Looking for the words once per call, not once per text, saves a quarter of the time.
    every = "\n".join(texts)
    small = every.casefold()  # as the patterns ignore case: ſ is an s
    signs = [sign for sign in _SIGNS if sign.may_be_in(small)]
    if not signs and every.isascii():
        return False
    return any(_speaks(text, signs) for text in texts)


def _speaks(text: str, signs: Iterable[_Sign]) -> bool:
    if not text.isascii() and len(_HIDDEN.findall(text)) >= _TOO_MANY_HIDDEN:
        return True
    small = text.casefold()
    return any(
        sign.may_be_in(small) and _compiled(sign.pattern).search(text) is not None for sign in signs
    )
