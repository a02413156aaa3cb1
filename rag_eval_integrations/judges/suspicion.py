"""Detect text that addresses a judge instead of a reader: sets a flag, never changes a score.

The labelling prompt does not rely on it (no text can leave its section); the flag
`suspected_injection` tells a person where to look. Texts are read as a person sees them: without
characters of no width, full-width and look-alike letters as the letters that they look like, split
words joined. Signs find phrases; passages are also weighed by what their words are about. How many
attacks and plain texts it flags is tested on texts that it was not made on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from rag_eval_integrations._recent import Recent
from rag_eval_integrations.judges._intents import signs
from rag_eval_integrations.judges._intents._sign import TEXT, Reading, Sign, Words
from rag_eval_integrations.judges._intents._weighing import (
    concepts_of,
    passages,
    script_passages,
    weight,
)
from rag_eval_integrations.records import RagCall

# Characters that hide or reverse text. A single byte order mark is left by converters.
_HIDDEN = re.compile("[\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_TOO_MANY_HIDDEN = 8
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,9}\U000e007f")  # of Scotland, of Texas

# --- Texts as they look


_MARKS = re.compile(
    "[\u00ad\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u093c\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u2069\u3099\u309a\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
_BEYOND_LATIN = re.compile("[\u0370-\u1cff\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufefe]")
_SMALL_CAPITALS = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ"
_CONFUSED = re.compile(
    f"[{_SMALL_CAPITALS}]|[A-Za-z][\u0251\u0261\u0370-\u058f]|[\u0251\u0261\u0370-\u058f][A-Za-z]"
)
_ALIKE = str.maketrans(
    "аеорсухіјѕԁһкмтнвӏԛԝгпєАВЕКМНОРСТХУІЈЅԀҺӀαβεικνορτυχηωγΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոɑɡ" + _SMALL_CAPITALS,
    "aeopcyxijsdhkmthblqwrneABEKMHOPCTXYIJSDHI"
    "abeikvoptuxnwyABEZHIKMNOPTYX"
    "ouhnag" + "abcdefghijklmnoprstuvwyz",
)
# Letters that do not decompose into one of ASCII and a mark.
_WITHOUT_MARK = tuple(zip("łđıøŁĐØ", "ldioLDO", strict=True))
_TYPOGRAPHY = (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2013", "-"))
# Of bytes: several times as fast as of a string.
_NO_LETTERS = bytes(
    code for code in range(128) if not chr(code).isalpha() and chr(code) not in "013457@$"
)
_LETTERS = bytes.maketrans(
    b"013457@$ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"oieastasabcdefghijklmnopqrstuvwxyz"
)


def _plain(text: str) -> str:
    """Read a text as ASCII in lower case: without accents, look-alikes as what they look like."""
    if text.isascii():
        return text.lower()
    for typographic, simple in _TYPOGRAPHY:
        text = text.replace(typographic, simple)
    if not text.isascii():
        if _CONFUSED.search(text):
            text = text.translate(_ALIKE)
        for marked, simple in _WITHOUT_MARK:
            text = text.replace(marked, simple)
        text = unicodedata.normalize("NFKD", text)
    return text.casefold().encode("ascii", "ignore").decode()


def _folded(text: str) -> str:
    """Read a text in its own script: in lower case, without marks."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", text)).casefold()


_WORD = re.compile("[A-Za-z\u0400-\u04ff]+")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LATIN_ALIKE = str.maketrans("aeopcyxkmtbhAEOPCYXKMTBH", "аеорсухкмтвнАЕОРСУХКМТВН")


def _in_cyrillic(match: re.Match[str]) -> str:
    word = match.group()
    return word.translate(_LATIN_ALIKE) if _CYRILLIC.search(word) else word


# --- Split words


_LETTER_BY_LETTER = re.compile(r"[a-z0-9](?:([ .\-_*/])[a-z0-9](?:\1[a-z0-9])*+)(?![a-z0-9])")
_BETWEEN_LETTERS = re.compile(r"[ .\-_*/]")
_SYLLABLES = re.compile(r"(?<=[a-z])-(?=[a-z])")
_FEWEST_HYPHENS = 3
_MANY_HYPHENS = re.compile(r"-\n?[a-z][^-.]{0,24}[a-z]-\n?[a-z][^-.]{0,24}[a-z]-")


def _rejoined(plain: str, words: Words) -> str:
    """Return the sentences of a text that are written letter by letter or by syllables, joined."""
    by_letters = words.has_letters()
    if not by_letters and not _MANY_HYPHENS.search(plain):
        return ""
    found = []
    for part in plain.replace("-\n", "-").replace(". ", "\n").split("\n"):
        joined = part
        if by_letters:
            joined = _LETTER_BY_LETTER.sub(lambda match: _BETWEEN_LETTERS.sub("", match[0]), part)
        if len(_SYLLABLES.findall(part)) >= _FEWEST_HYPHENS:
            joined = _SYLLABLES.sub("", joined)
        if joined != part:
            found.append(joined)
    return "\n".join(found)


class _Readings:
    """The readings of a text, each made when it is needed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._made: dict[Reading, str] = {}

    def __getitem__(self, reading: Reading) -> str:
        if reading not in self._made:
            self._made[reading] = self._make(reading)
        return self._made[reading]

    def _make(self, reading: Reading) -> str:
        if reading == "plain":
            return _plain(self.text)
        if reading == "compact":
            return self["plain"].encode().translate(_LETTERS, _NO_LETTERS).decode()
        if self.text.isascii() or not _BEYOND_LATIN.search(self.text):
            return ""
        if _CONFUSED.search(self.text):
            return _folded(_WORD.sub(_in_cyrillic, self.text))
        return _folded(self.text)


@dataclass(frozen=True)
class _Index:
    """The signs, by the words that a search for them begins at."""

    by_word: dict[str, list[Sign]]
    firsts: frozenset[str]
    words: frozenset[str]
    without_words: dict[Reading, list[Sign]]


@cache
def _index() -> _Index:
    by_word: dict[str, list[Sign]] = {}
    every = signs(_folded)
    for sign in every:
        for word in sign.words[0] if sign.words else ():
            by_word.setdefault(word, []).append(sign)
    words = frozenset(word for sign in every for group in sign.words for word in group)
    without_words: dict[Reading, list[Sign]] = {"plain": [], "compact": [], "other": []}
    for sign in every:
        if not sign.words:
            without_words[sign.reading].append(sign)
    return _Index(by_word, frozenset(by_word), words, without_words)


_LIGHT = -500  # hundredths of log-odds
_WORD_BY_WORD = re.compile(r"\n[a-z]{1,20}[.,]?\n[a-z]{1,20}[.,]?\n[a-z]{1,20}")


def speaks_to_a_judge(texts: Iterable[str]) -> bool:
    """Whether any text has instructions, verdicts or markup for a model, or much hidden text."""
    texts = tuple([text.replace(TEXT, "") if TEXT in text else text for text in texts])
    # Read and searched at once: half of the time of one after the other, where they are short.
    every = _Readings(f"\n{TEXT}\n".join(texts))
    if _hides_much(every.text) and any(map(_hides_much, texts)):
        return True
    index = _index()
    words = Words(every["plain"], index.firsts, index.words)
    most = max(map(weight, _passages(every, words)), default=_LIGHT)
    if most > 0:
        return True
    # Phrases are of words that weigh something: without them, they need not be searched for.
    begun = (
        {id(sign): sign for word in words.begun for sign in index.by_word[word]}
        if most > _LIGHT or _WORD_BY_WORD.search(every["plain"])
        else {}
    )
    may_be_joined = "-\n" in every.text or "_" in every.text or words.may_be_joined()
    found: list[Sign] = []
    for reading, without_words in index.without_words.items():
        read = every[reading] if may_be_joined or reading != "compact" else ""
        searched = (*begun.values(), *without_words) if reading == "plain" else without_words
        found += [
            sign
            for sign in (searched if read else ())
            if (spans := sign.spans(read, words)) and sign.is_in(read, spans)
        ]
    return bool(found) and any(_has_any(_Readings(text), found) for text in texts)


class Suspicion:
    """`speaks_to_a_judge` of an evaluator's calls, whose latest documents are read once.

    The same documents are retrieved for many questions: of RAGBench's, half of them come again.
    """

    def __init__(self) -> None:
        self._of_document = Recent(_speaks, _REMEMBERED, _REMEMBERED_LENGTH)
        _index()  # made here, and not at the first call, in which the process may be forked
        concepts_of(frozenset())

    def __call__(self, call: RagCall) -> bool:
        """Whether the question, the response or a document speaks to a judge."""
        return speaks_to_a_judge((call.question, call.response or "")) or any(
            self._of_document(document.shown) for document in call.documents
        )


_REMEMBERED = 512
_REMEMBERED_LENGTH = 5_000  # characters


def _speaks(text: str) -> bool:
    return speaks_to_a_judge((text,))


def _passages(of: _Readings, words: Words) -> Iterator[int]:
    yield from passages(words.sentences, concepts_of(words.distinct))
    if rejoined := _rejoined(of["plain"], words):
        split = Words(rejoined, frozenset())
        yield from passages(split.sentences, concepts_of(split.distinct))
    if of["other"]:
        yield from script_passages(of["other"], _folded)


def _has_any(readings: _Readings, signs: Iterable[Sign]) -> bool:
    return any(sign.is_in(readings[sign.reading]) for sign in signs)


def _hides_much(text: str) -> bool:
    return not text.isascii() and len(_HIDDEN.findall(_FLAG.sub("", text))) >= _TOO_MANY_HIDDEN


def concepts_in(texts: Iterable[str]) -> set[int]:
    """Return what the passages of texts are about, as they are weighed; for fitting the weights."""
    every = _Readings(f"\n{TEXT}\n".join(texts))
    return set(_passages(every, Words(every["plain"], frozenset())))
