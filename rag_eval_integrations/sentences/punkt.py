"""`Punkt`, the default splitter: a block pass, the marks of all scripts, and Punkt's decision.

    text ─▶ blocks ─▶ positions where a sentence may end ─▶ Punkt's decision ─▶ markers ─▶ spans

Punkt (Kiss and Strunk 2006) decides about a full stop by the word before it and the word after it.
It is applied to these two words only and never to a whole text, so that the marks and quotes of
every script are found in one place and the time is linear in the length of any text.

English is decided here, with parameters that ship with the project. NLTK decides for other
languages, with data that is already installed; nothing is downloaded.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from itertools import chain, pairwise
from typing import Any, NamedTuple

from rag_eval_integrations._recent import Recent
from rag_eval_integrations.sentences._blocks import Block, BlockKind, blocks
from rag_eval_integrations.sentences._markers import MARKER, OPENERS, after_markers, joined

# --- Punkt's decision whether an English sentence ends between two words
#
# The classification step of Kiss and Strunk (2006), "Unsupervised Multilingual Sentence Boundary
# Detection", Computational Linguistics 32, with parameters from NLTK's trainer. It decides like
# NLTK's `PunktSentenceTokenizer.text_contains_sentbreak`; the tests compare both. NLTK itself is
# used for other languages only, because importing it takes seconds and leaves so many objects
# behind that every full garbage collection stops the app for 0.1 s.


# Orthographic contexts, as bits: the positions of a word in training, and its first letter there.
_INSIDE_CAPITAL = 1 << 2
_CAPITAL = 1 << 1 | _INSIDE_CAPITAL | 1 << 3  # at the beginning, inside, at an unknown position
_BEGINS_SMALL = 1 << 4
_SMALL = _BEGINS_SMALL | 1 << 5 | 1 << 6

_BREAKS_WORDS = r"[()\[\]{}\";:@'*?!]|-{2,}|\.{2,}"
# Dashes and dots in a row, a word with its full stop, or one character of any other kind.
_TOKEN = re.compile(
    r"-{2,}|\.{2,}"
    rf"|(?![-,()\[{{}}\]\"`:;&#*@])\S+?(?=\s|$|{_BREAKS_WORDS}|,(?=$|\s|{_BREAKS_WORDS}))"
    r"|\S"
)
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")
_INITIAL = re.compile(r"[^\W\d]\.")
_ANY_NUMBER = "##number##"  # stands for every number in training files
_PUNCTUATION = frozenset(";:,.!?")


class Parameters(NamedTuple):
    """The parameters that training found, without collocations; all words are in lower case."""

    abbreviations: Collection[str]
    """Abbreviations without their last full stop: `dr`, `e.g`."""
    starters: Collection[str]
    """Words that often begin a sentence."""
    contexts: Mapping[str, int]
    """Orthographic contexts by word, as bits; a word that is missing was never seen."""

    def has_break(self, text: str) -> bool:
        """Tell whether a sentence ends inside a text of one line."""
        word, _, following = text.partition(". ")
        if word.isalnum() and following.isalnum():
            return self._ends(word + ".", following)  # most texts are two plain words
        return any(self._ends(word, following) for word, following in pairwise(_words(text)))

    def _ends(self, word: str, following: str) -> bool:
        """Tell whether a word ends its sentence, by the word that follows."""
        if word in ("?", "!"):
            return True
        if word[-1] != ".":
            return False
        ellipsis, abbreviation = word.endswith(".."), self._is_abbreviation(word)
        initial = len(word) == 2 and _is_initial(word)
        numeric = not initial and _without_stop(_kind(word)) == _ANY_NUMBER
        if not (ellipsis or abbreviation or initial or numeric):
            return True
        next_kind = self._next_kind(following)
        context = self.contexts.get(next_kind, 0)
        begins = _begins_sentence(following, context)
        if (abbreviation or ellipsis) and not initial:
            if begins:
                return True
            if following[0].isupper() and next_kind in self.starters:
                return True
        if initial or numeric:
            if begins is False:
                return False
            if begins is None and initial and following[0].isupper() and not context & _SMALL:
                return False  # a name that is always written with a capital: "J. Bach"
        return not (abbreviation or ellipsis)

    def _is_abbreviation(self, word: str) -> bool:
        """Tell whether a word with a full stop is a known abbreviation, also behind a hyphen."""
        if word == "." or word.endswith(".."):
            return False
        bare = word[:-1].lower()
        return bare in self.abbreviations or (
            "-" in bare and bare.rpartition("-")[2] in self.abbreviations
        )

    def _next_kind(self, word: str) -> str:
        """Return the kind of the word that follows, as the model counts it."""
        kind = _kind(word)
        ends_by_itself = word[-1] == "." and not word.endswith("..")
        if ends_by_itself and not self._is_abbreviation(word):
            return _without_stop(kind)
        return kind


def _words(text: str) -> list[str]:
    """Return the tokens of a text as the Punkt model counts them."""
    return _TOKEN.findall(text)


def _is_initial(word: str) -> bool:
    """Tell whether a word is an initial such as `J.`."""
    # `re` treats "½" and "²" as letters, as NLTK did until it changed to `regex` (3.10).
    return _INITIAL.fullmatch(word) is not None and unicodedata.category(word[0]) != "No"


def _kind(word: str) -> str:
    """Return a word's kind: its lower case, or that of all numbers."""
    small = word.lower()
    return _ANY_NUMBER if _NUMBER.fullmatch(small) else small


def _without_stop(kind: str) -> str:
    return kind[:-1] if len(kind) > 1 and kind[-1] == "." else kind


def _begins_sentence(word: str, context: int) -> bool | None:
    """Tell from a word's spelling whether it begins a sentence; None when it may or may not."""
    if word in _PUNCTUATION:
        return False
    first = word[0]
    if first.isupper() and context & _SMALL and not context & _INSIDE_CAPITAL:
        return True
    if first.islower() and (context & _CAPITAL or not context & _BEGINS_SMALL):
        return False
    return None


# --- Candidates for sentence ends: the terminators of every script
#
# There are two kinds of terminators. "。" or "؟" ends a sentence by itself, whether white space
# follows or not (Chinese, Japanese, Hindi, Arabic, Amharic …). "." "?" "!" "…" also occur inside
# names, numbers and addresses, so they count only before white space, and the splitter decides
# about them. In Chinese and Japanese, which have no spaces, they also end a sentence between two
# characters.
#
# A run of terminators ("?!", "...") counts as one. Quotes, brackets and references that close
# directly after it belong to the sentence that ends: `He left.” She`, `(It rains.) We`,
# `so it is.[3] Then`.

End = tuple[int, int, int, int, bool]
"""A position at which a sentence may end: five values.

1. Start of the run of terminators.
2. Start of the closing marks after the run; the same as 3. when there are none.
3. End of the sentence.
4. Start of the next sentence.
5. True when the terminator always ends a sentence; otherwise the words around it decide.
"""


SPACED_MARKS = ".?!…‼⁇⁈⁉"
"""Terminators that count only before white space."""

CERTAIN_MARKS = (
    "。！？｡．"  # Chinese, Japanese
    "।॥"  # Devanagari and most scripts of India
    "؟۔܀܁܂߹"  # Arabic, Urdu, Syriac, N'Ko
    "։"  # Armenian
    "።፧፨"  # Ethiopic
    "။"  # Burmese
    "។៕"  # Khmer
    "༎།"  # Tibetan
    "᠃᠉᙮꓿꘎꘏"  # Mongolian, Canadian syllabics, Lisu, Vai
    "\u037e"  # the Greek question mark, which looks like ";"
)
"""Terminators that end a sentence everywhere except between two digits."""

# The groups are closing marks, marks that may close or open, and white space.
# "“" and "«" close in German and Danish, and open in English, French and Chinese: see `ends`.
# The pattern begins with a plain set, which `re` finds ten times as fast as a repeated one.
_TERMINATOR = re.compile(f"[{SPACED_MARKS}{CERTAIN_MARKS}]")
_RUN = re.compile(
    rf"{_TERMINATOR.pattern}{_TERMINATOR.pattern}*+"
    r"((?:[\"'’”»›)\]}*_`」』）】》〉〕］｝\u200b-\u200f\u2060\u2069\ufeff]"
    rf"|\[\d[\d,;–-]{{0,20}}\]|{MARKER})*)"
    r"([“«]?+)"
    r"(\s*+)"
)
_CERTAIN = frozenset(CERTAIN_MARKS)
# A quote or bracket between spaces also closes: "the end. ” Then", "C'est fini. » Puis".
_CLOSING = frozenset('")]}”»')
_LATE_CLOSING = re.compile(r"[\")\]}”»]{1,3}(?=\s|\Z)\s*")
_GOES_ON = re.compile(r"[,;:、，；：]|と(?![てきもこ])|って")
_IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def positions(text: str) -> Iterator[int]:
    """Yield the position of each terminator."""
    return map(re.Match.start, _TERMINATOR.finditer(text))


def closes(text: str, mark: int, stop: int) -> bool:
    """Tell whether the run of marks at *mark* ends the text at *stop*, and no sentence before."""
    run = _RUN.match(text, mark, stop)
    return run is not None and run.end() == stop and not run[2]


def ends(text: str, start: int, stop: int) -> Iterator[End]:
    """Yield the positions inside `text[start:stop]` at which a sentence may end, in order.

    The end of this range is not among them. The time is proportional to the length of the range.
    """
    for run in _RUN.finditer(text, start, stop):
        (mark, following), closing, after = run.span(), run.start(1), run.end(2)
        certain = text[mark] in _CERTAIN or (
            closing > mark + 1 and not _CERTAIN.isdisjoint(text[mark:closing])
        )
        if certain and after == following:
            after = following = run.start(2)  # in "好。“" without a space, the quote opens
        if following >= stop or (after == following and not certain and not _between(text, run)):
            continue
        certain = certain or after == following
        if certain and _is_inside(text, mark, closing, following):
            continue
        if after < following and text[following] in _CLOSING:
            late = _LATE_CLOSING.match(text, following, stop)
            if late:
                after, following = following + len(late[0].rstrip()), late.end()
                if following >= stop:
                    continue
        yield mark, closing, after, following, certain


def _between(text: str, run: re.Match[str]) -> bool:
    """Tell whether "." "?" or "!" stands between two characters of a script without spaces."""
    if run.start() == 0 or text[run.start()] == "…":
        return False
    before, behind = text[run.start() - 1], text[run.end() : run.end() + 1]
    return bool(_IDEOGRAPH.match(before) and _IDEOGRAPH.match(behind))


def _is_inside(text: str, mark: int, closing: int, following: int) -> bool:
    """Tell whether the mark stands inside a number ("3．14") or ends only a quotation."""
    if closing == following and mark > 0:
        return text[mark - 1].isdigit() and text[following].isdigit()
    # 「行く。」と言った: the quotation is part of the sentence around it.
    return text[following - 1] in '」』”’"）)' and _GOES_ON.match(text, following) is not None


_VERSION = 2  # version of the rules in this package; raise it when any text gives other sentences
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
        """Name and version: `punkt-en@2`, or `punkt-german(nltk)@2`."""
        if self.language == "english":
            return f"punkt-en@{_VERSION}"
        return f"punkt-{self.language}(nltk)@{_VERSION}"

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the `(start, end)` of each sentence of *text*, as specified by `Splitter`.

        A heading, a table row and a fenced code block are one sentence each. A citation marker
        behind a sentence belongs to it.
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
    return tuple(joined(text, spans))


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
    """Tell whether a mark that also occurs inside of sentences ends one."""
    mark, closing, stop, begins, _ = end
    if text[begins] in OPENERS:
        begins = min(after_markers(text, begins), block[2])
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
        return decided[_leading_match(_WORD, before[::-1])[::-1], following]
    if not marks.strip(".…"):
        return decided[_ELLIPSIS, following]
    if not _is_small(following):
        return True
    named = begun == block[0] and len(before.split()) < 3
    return not named and not (closed and following in _SPEAKERS)  # Yahoo! is; “Why?” she asked


def _is_small(following: str) -> bool:
    """Tell whether what follows begins with a small letter."""
    return following.islower() and following.lstrip("([{")[:1].isalpha()


def _leading_match(pattern: re.Pattern[str], text: str) -> str:
    """Return what a pattern matches at the start of a text; empty without a match."""
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
    """Cached decisions of a text, by the words before and after a mark."""

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
