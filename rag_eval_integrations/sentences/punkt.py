"""`Punkt`, the default splitter: a block pass, the marks of all scripts, and Punkt's decision.

    text ─▶ blocks ─▶ positions where a sentence may end ─▶ Punkt's decision ─▶ spans

Punkt (Kiss and Strunk 2006) decides about a full stop by the word before it and the word after it.
It is applied to these two words only and never to a whole text, so that the marks and quotes of
every script are found in one place (`_decision`) and the time is linear in the length of any text.

English parameters ship with the project, and `_decision` decides by them. NLTK decides for other
languages, with data that is already installed; nothing is downloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from itertools import chain
from typing import Any

from rag_eval_integrations._recent import Recent
from rag_eval_integrations.sentences._blocks import Block, BlockKind, blocks
from rag_eval_integrations.sentences._decision import End, Parameters, closes, ends, positions

_VERSION = 1  # version of the rules in this package; raise it when any text gives other sentences
_REACH = 64  # characters of a word that are read; longer words are not abbreviations

# Apps retrieve the same documents repeatedly: 73 % of those in 2,000 rows of RAGBench were among
# the latest 512, and splitting is 30 % of an embedded evaluation. They take at most 10 MB.
_REMEMBERED = 512
_REMEMBERED_LENGTH = 5_000  # characters

_SPLIT_KINDS = {BlockKind.PARAGRAPH, BlockKind.LIST_ITEM}
_LETTER = re.compile(r"[^\W_]")
_LIST_NUMBER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{2,5})[.)]+")
_OPENING = "\"'“”‘’«»„‚*_`\u200b\u200e\u200f\ufeff"
# The characters that Punkt's decision treats as one word.
_WORD = re.compile(r"[^\s?!\"'“”‘’«»(){}\[\];:*–—/]*+")
_AFTER = re.compile(rf"[{re.escape(_OPENING)}]*+([(\[{{]?{_WORD.pattern})")
_INITIALS = re.compile(r"[^\W\d_](?:\.-?[^\W\d_])*")
_FIGURE = re.compile(r"[#(\[]?[A-Z]{0,2}\d|[IVXLC]{1,7}(?![\w'])")
_SPEAKERS = {"he", "she", "they", "we", "asked", "asks", "said", "says", "replied", "cried"}
_ELLIPSIS = "... "  # stands for the word before "…", "..." or ". ."; no word has a space
_YEAR = re.compile(r"\(\d")


@dataclass(frozen=True)
class Punkt:
    """Splits texts into sentences with Punkt; the default splitter.

    `language` selects the parameters. Those of "english" ship with the project and always give the
    same sentences. Scripts with unambiguous terminators (Chinese, Japanese, Hindi, Arabic …) are
    split by these under every language and need no data. For other languages NLTK decides where a
    full stop ends a sentence: the extra `nltk` installs it, and `python -m nltk.downloader
    punkt_tab` its data. Both are loaded at construction, which takes seconds the first time.

    Raises:
        MissingDependencyError: `language` is not "english", and NLTK is not installed.
        ConfigurationError: NLTK finds no data of `language`, or refuses to read it.
    """

    language: str = "english"
    """The English name of the language, in lower case: "german"."""
    _spans: Recent[tuple[tuple[int, int], ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        remembered = Recent(partial(_split, self.language), _REMEMBERED, _REMEMBERED_LENGTH)
        object.__setattr__(self, "_spans", remembered)
        _model(self.language)  # not at the first call, in which the process may be forked

    @property
    def name(self) -> str:
        """Name and version: `punkt-en@1`, or `punkt-german(nltk)@1`."""
        if self.language == "english":
            return f"punkt-en@{_VERSION}"
        return f"punkt-{self.language}(nltk)@{_VERSION}"

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the `(start, end)` of each sentence of *text*, as specified by `Splitter`.

        A heading, a table row and a fenced code block are one sentence each.
        """
        return list(self._spans(text))


def _split(language: str, text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of the sentences."""
    decided = _Decided(_model(language))
    spans: list[tuple[int, int]] = []
    marks = chain(positions(text), (len(text),))
    mark = next(marks)
    for block in blocks(text):
        start, body, end, kind = block
        while mark < body:
            mark = next(marks)
        # Most lines of hostile texts have no mark, or one at their end.
        if mark < end - 1 and kind in _SPLIT_KINDS and not closes(text, mark, end):
            _add_sentences(spans, decided, text, block)
        else:
            spans.append((start, end))
    return tuple(spans)


def _add_sentences(
    spans: list[tuple[int, int]], decided: _Decided, text: str, block: Block
) -> None:
    """Add the sentences of a block."""
    start, read, final, _ = block
    begun, has_words = start, False
    last: tuple[int, int] | None = None
    for end in ends(text, read, final):
        mark, _, stop, following, certain = end
        has_words = has_words or text[read].isalnum() or _has_letter(text, read, mark)
        read = stop
        if not has_words:
            continue  # a sentence has a word
        if certain or (
            # It is more than a list number: "2. Press".
            not (stop - begun <= 8 and _LIST_NUMBER.fullmatch(text, begun, stop))
            and _ends(decided, text, begun, end, block)
        ):
            if last is not None:
                spans.append(last)
            last, begun, has_words = (begun, stop), following, False
    if last is None:
        spans.append((start, final))
    elif has_words or _has_letter(text, read, final):
        spans.append(last)
        spans.append((begun, final))
    else:
        spans.append((last[0], final))


def _has_letter(text: str, start: int, stop: int) -> bool:
    return _LETTER.search(text, start, stop) is not None


def _ends(decided: _Decided, text: str, begun: int, end: End, block: Block) -> bool:
    """Decide about a mark that also occurs inside sentences."""
    mark, closing, stop, begins, _ = end
    limit = min(begins + _REACH, block[2])
    after = _AFTER.match(text, begins, limit)
    next_start = after.start(1) if after else begins
    following = (
        (after[1] if after else "") or text[next_start : min(next_start + 1, limit)].strip() or '"'
    )
    if following[0] in ")….":
        return False
    closed = closing < stop
    if closed and _YEAR.match(text, next_start, limit):
        return False  # a reference: “… is it so?” (2019)
    before, marks = text[max(begun, mark - _REACH) : mark], text[mark:closing]
    if marks == ".":
        if before.endswith((". ", ".\xa0")):
            return decided[_ELLIPSIS, following]
        return decided[_first(_WORD, before[::-1])[::-1], following]
    if not marks.strip(".…"):
        return decided[_ELLIPSIS, following]
    if not _is_small(following):
        return True
    named = begun == block[0] and len(before.split()) < 3
    return not named and not (closed and following in _SPEAKERS)  # Yahoo! is; “Why?” she asked


def _is_small(following: str) -> bool:
    """Tell whether what follows begins with a small letter."""
    return following.islower() and following.lstrip("([{")[:1].isalpha()


def _first(pattern: re.Pattern[str], text: str) -> str:
    """Return what a pattern matches at the beginning; empty for nothing."""
    match = pattern.match(text)
    return match[0] if match else ""


@dataclass(frozen=True)
class _Model:
    """Punkt's decision for one language, and lists of words."""

    decides: Callable[[str], bool]
    """Tells whether "word. Next" holds a sentence boundary."""
    special: frozenset[str]
    """The abbreviations, and the first words of collocations."""
    never_final: frozenset[str] = frozenset()
    titles: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    before_small: frozenset[str] = frozenset()
    starters: frozenset[str] = frozenset()

    def ends_after(self, word: str, following: str, *, small: bool) -> bool:
        """Decide about "word. following"; the lists of words are empty except for English."""
        key = word.lower()
        if key in self.never_final or (key in self.titles and word.istitle()):
            return False
        if key in self.numbered and (figure := _FIGURE.match(following)):
            return key == "no" and figure[0] == "I"  # "Vol. I", but "No. I think"
        if key in self.before_small:
            first = following[:1]
            return first.isupper() or (first.isalpha() and not small)
        if self.starters and word != "I" and _INITIALS.fullmatch(word) and not small:
            return following.lower() in self.starters  # "J. M. Green", "vitamin C. The"
        if small and 1 < len(word) <= 3 and word.isalpha() and word.istitle():
            return False  # "Ae. aegypti", "Mt. of"
        if len(word) > 1 and word.isalpha() and key not in self.special:
            return True  # Punkt's decision for every other word, without computing it
        return self.decides(f"{word}. {following}")


class _Decided(dict[tuple[str, str], bool]):
    """Decisions within one text, by the word before a mark and the one after it."""

    def __init__(self, model: _Model) -> None:
        self._model = model

    def __missing__(self, words: tuple[str, str]) -> bool:
        word, following = words
        if word == _ELLIPSIS:
            decision = self._model.decides(f"... {following}")
        else:
            decision = self._model.ends_after(word, following, small=_is_small(following))
        self[words] = decision
        return decision


@cache
def _model(language: str) -> _Model:
    """Return the model of a language: the shipped one for English, else one of NLTK."""
    decides: Callable[[str], bool]
    lists = {}
    if language == "english":
        shipped = _shipped()
        parameters = _english(shipped)
        decides, special = parameters.has_break, frozenset(parameters.abbreviations)
        names = ("never_final", "titles", "numbered", "before_small", "starters")
        lists = {name: frozenset(shipped[name].split()) for name in names}
    else:
        from rag_eval_integrations.sentences import _nltk_punkt  # noqa: PLC0415  # imports NLTK

        decides, special = _nltk_punkt.decision(language)
    return _Model(decides, special, **lists)


def _english(shipped: dict[str, Any]) -> Parameters:
    """Return Punkt's parameters from the shipped file; `_Model` reads the rest of it."""
    contexts = shipped["orthography"].items()
    return Parameters(
        abbreviations=frozenset(shipped["abbreviations"].split()),
        starters=frozenset(shipped["starters"].split()),
        contexts={word: int(flags) for flags, words in contexts for word in words.split()},
    )


def _shipped() -> dict[str, Any]:
    """Read the English lists of the package."""
    text = files(__package__).joinpath("punkt_english.json").read_text(encoding="utf-8")
    shipped: dict[str, Any] = json.loads(text)
    return shipped
