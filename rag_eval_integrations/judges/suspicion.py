"""Detect text that addresses a judge instead of a reader: sets a flag, never changes a score.

The labelling prompt does not rely on it (no text can leave its section); the flag
`suspected_injection` tells a person where to look. Texts are read as a person sees them: without
characters of no width, full-width and look-alike letters as the letters that they look like, split
words joined. What is searched for stands in `suspicion_patterns.tsv`, one pattern a line. How many
attacks and plain texts it flags is tested on texts that it was not made on.

A pattern is searched for only where words stand that it cannot do without, and every repetition
in it is bounded, so that the work is in proportion to the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, chain
from string import ascii_lowercase
from typing import Literal, NamedTuple

from rag_eval_integrations._recent import Recent
from rag_eval_integrations.records import RagCall

Reading = Literal["plain", "markup", "joined", "other"]
"""How a text is read: `plain`, ASCII in lower case, for words; `markup`, the same, for characters;
`joined`, its letters only, digits that stand for letters among them; `other`, in its own script,
lower case and without marks."""

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
_SPACED = bytes(code if chr(code).isalnum() else 32 for code in range(128)) + bytes(128)
_UNMARKED = bytes(code for code in range(128) if chr(code).isalnum() or chr(code).isspace())


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
    """Fold a text in any script: lower case, without accents."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", text)).casefold()


_WORD = re.compile("[A-Za-z\u0400-\u04ff]+")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LATIN_ALIKE = str.maketrans("aeopcyxkmtbhAEOPCYXKMTBH", "аеорсухкмтвнАЕОРСУХКМТВН")


def _in_cyrillic(match: re.Match[str]) -> str:
    """Write a word with Cyrillic letters in the Latin letters they look like."""
    word = match.group()
    return word.translate(_LATIN_ALIKE) if _CYRILLIC.search(word) else word


class _Text:
    """A text, read in each way when it is needed."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\0", "")
        self.plain = _plain(self._text)
        self.words = frozenset(self.plain.encode().translate(_SPACED).decode().split())

    def read(self, reading: Reading) -> str:
        """Return a reading of the text, such as joined letters; empty where it has none."""
        if reading in ("plain", "markup"):
            return self.plain
        if reading == "joined":
            if not self._may_be_joined():
                return ""
            return self.plain.encode().translate(_LETTERS, _NO_LETTERS).decode()
        if self._text.isascii() or not _BEYOND_LATIN.search(self._text):
            return ""
        if _CONFUSED.search(self._text):
            return _folded(_WORD.sub(_in_cyrillic, self._text))
        return _folded(self._text)

    def _may_be_joined(self) -> bool:
        """Tell whether letters or words may be split or joined so that no word is seen."""
        return (
            "-\n" in self._text
            or "_" in self._text
            or len(self.words & _ONE_LETTER) >= _FEWEST_LETTERS
            or max(map(len, self.words), default=0) >= _LONG_WORD
        )


_ONE_LETTER = frozenset(ascii_lowercase)
_FEWEST_LETTERS, _LONG_WORD = 5, 20


# --- Patterns

_GAP = r"[^\w.!?]{1,12}+"
_SENTENCE = "[^.!?。！？।\n]"
_BETWEEN = 130  # characters, of the two parts of a pattern with `...`
_LONGEST_THEN = 40  # characters of the second part


class Pattern(NamedTuple):
    """A line of the file.

    `needs`: groups of beginnings of words, one of each of which is in every text that the pattern
    is found in; it begins with one of the first group.
    """

    language: str
    written: str
    example: str
    reading: Reading
    needs: tuple[frozenset[str], ...]

    def expressions(self) -> list[re.Pattern[str]]:
        """Return the regular expressions that have to match one after another."""
        return _compiled(self.written, self.reading)

    def is_in(self, text: str, present: Iterable[str]) -> bool:
        """Tell whether a text has the pattern, which begins at one of some words."""
        first, *then = self.expressions()
        searched = 0
        for match in self._matches(first, text, present):
            if not then:
                return True
            start, stop = max(match.end(), searched), match.end() + _BETWEEN
            if start < stop and then[0].search(text, start, stop):
                return True
            searched = max(searched, stop - _LONGEST_THEN)
        return False

    def _matches(
        self, expression: re.Pattern[str], text: str, present: Iterable[str]
    ) -> Iterator[re.Match[str]]:
        """Yield the matches of a pattern; an order only where it is an imperative."""
        if self.reading != "plain":
            yield from expression.finditer(text)
            return
        is_order = self.written.startswith("^ ")
        for place in sorted(_places(text, present)):
            match = expression.match(text, place)
            if match and (not is_order or _is_imperative(text, place)):
                yield match


def _places(text: str, words: Iterable[str]) -> set[int]:
    """Return the positions of words in a text."""
    places = set()
    for word in words:
        place = text.find(word)
        while place >= 0:
            places.add(place)
            place = text.find(word, place + 1)
    return places


def _with_lists(written: str, lists: Mapping[str, str]) -> str:
    """Replace the names of word lists in a pattern by the words."""
    return re.sub(r"\{([a-z]+)\}", lambda match: lists[match[1]], written)


_SPECIAL: dict[str, Reading] = {"markup": "markup", "joined": "joined"}


@cache
def patterns() -> tuple[Pattern, ...]:
    """Read the file of patterns."""
    lists: dict[str, dict[str, str]] = {}
    read = []
    source = files("rag_eval_integrations.judges") / "suspicion_patterns.tsv"
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        languages, written, *example = line.split("\t")
        for language in languages.split():
            own = lists.setdefault(language, {})
            if not example:
                name, _, words = written.partition(" = ")
                own[name] = _with_lists(words, own)
                continue
            reading = _SPECIAL.get(language) or ("plain" if written.isascii() else "other")
            full = _with_lists(written, own)
            read.append(Pattern(language, full, example[0], reading, _needs(full, reading)))
    return tuple(read)


def _alternatives(words: str) -> list[str]:
    """Split at the `|` that stand in no bracket."""
    parts, depth = [""], 0
    for character in words:
        depth += (character in "([") - (character in ")]")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _beginnings(words: str) -> set[str]:
    """Return what the alternatives of a token begin with; an empty string for what is not known."""
    begin = set()
    for part in _alternatives(words):
        if part.startswith("("):
            depths = accumulate((letter == "(") - (letter == ")") for letter in part)
            end = list(depths).index(0)
            inner, rest = part[1:end], part[end + 1 :]
            if inner.startswith("?"):  # looks around
                begin |= _beginnings(rest)
                continue
            begin |= _beginnings(inner)
            if rest.startswith("?"):
                begin |= _beginnings(rest[1:])
            continue
        word = _LEADING_WORD.findall(part)[0]
        begin.add(word[:-1] if part.startswith("?", len(word)) else word)
    return begin


_LEADING_WORD = re.compile(r"^[^\W_]*")


_MARKERS = "?!^~.&"


def _needs(written: str, reading: Reading) -> tuple[frozenset[str], ...]:
    """Return groups of words or parts, one of each of which every text with a pattern has."""
    tokens = written.split(" ")
    if reading == "markup":
        return (frozenset(needle.replace("~", " ") for needle in tokens[0].split(",")),)
    required = [token.removeprefix("&") for token in tokens if token[0] not in "?!^~."]
    groups = [_beginnings(token) for token in required]
    if reading == "other":
        groups = [set(map(_folded, group)) for group in groups]
    return tuple(frozenset(group) for group in groups if "" not in group)


@cache
def _compiled(written: str, reading: Reading) -> list[re.Pattern[str]]:
    """Compile the parts of a pattern."""
    if reading == "markup":
        return [re.compile(written.partition(" ")[2], re.MULTILINE)]
    parts = [_expression(part.split(" "), reading) for part in written.split(" ... ")]
    return [re.compile(_folded(part) if reading == "other" else part) for part in parts]


def _expression(tokens: Sequence[str], reading: Reading) -> str:
    """Write tokens as a regular expression; `docs/security.md` describes them."""
    expression = between = ""
    for token in tokens:
        kind, words = (token[0], token[1:]) if token[0] in _MARKERS else ("", token)
        words = re.sub(r"\((?!\?)", "(?:", words.replace("*", r"\w{0,30}"))
        words = words.replace("_?", r"\s{0,9}").replace("_", r"\s{1,9}")
        whole = rf"(?<!\w)(?:{words})(?!\w)"
        if reading != "plain":
            expression += f"{_SENTENCE}{{0,{words}}}?" if kind == "~" else f"(?:{words})"
        elif kind == "~":
            between += rf"(?:\w{{1,20}}{_GAP}){{0,{words}}}?"
        elif kind == "?":
            between += f"(?:{whole}{_GAP})?"
        elif kind == "&":
            expression += f"(?=[^.!?]{{0,90}}{whole})"
        elif kind == "!":
            expression += f"(?!{_GAP}{whole})"
        elif not kind:
            expression += (f"{_GAP}{between}" if expression else "") + whole
            between = ""
    return expression


# --- Orders

_BEFORE_AN_ORDER = re.compile(
    r"(?:\A|[^\w\s]|\n|\b(?:please|kindly|and|then|now|just|simply|always|also|so|instead|therefore"
    r"|you|you\s+to|but|or|thus|again|only|ai|llm|judge|grader|evaluator|model|assistant|system"
    r"|admin"
    r"|administrator|note|must|should|und|oder|bitte|e|y|et|ou|i|og|och|en|ve|por\s+favor|prego"
    r"|(?:you|model|ai|llm|assistant|grader|evaluator)\s+(?:must|should|shall|will|have\s+to"
    r"|need\s+to)"
    r"(?:\s+(?:now|always|just|simply|only))?))\s*\Z"
)
_NO_ORDER = re.compile(
    r"(?:\b(?<!\byou\s)to|\bnot|\bnever|n['’]t|\bthey|\bwho|\bwe|\bi|\bhe|\bshe|\bit|\bwhich|\bthat"
    r"|\bmay|\bcan|\bcould|\bwould|\bmight|\boften|\bpeople|\busers|\bstudents|\bjudges"
    r"|\b(?:court|jury|judge|tribunal|auditor|officials?|players?|readers?|parties|one)\s+(?:must"
    r"|should|shall|will))\s+\Z"
)


def _is_imperative(text: str, start: int) -> bool:
    """Tell whether the verb at a position gives an order, by the words before it."""
    before = text[max(0, start - 30) : start]
    return _BEFORE_AN_ORDER.search(before) is not None and _NO_ORDER.search(before) is None


# --- Texts and calls


class _Index(NamedTuple):
    """The patterns by the beginnings of words that they begin with, or by how they read a text."""

    by_word: dict[str, list[Pattern]]
    by_reading: dict[Reading, list[Pattern]]
    begun_by: _BegunBy


class _BegunBy(dict[str, tuple[str, ...]]):
    """By word, the beginnings that it has: the same few thousand words come in most texts."""

    def __init__(self, beginnings: Iterable[str]) -> None:
        super().__init__()
        self._by_head: dict[str, list[str]] = {}
        for beginning in beginnings:
            self._by_head.setdefault(beginning[:_HEAD], []).append(beginning)

    def __missing__(self, word: str) -> tuple[str, ...]:
        begun = tuple(
            beginning
            for beginning in self._by_head.get(word[:_HEAD], ())
            if word.startswith(beginning) and (len(beginning) >= _HEAD or beginning == word)
        )
        if len(self) < _MOST_WORDS:
            self[word] = begun
        return begun


@cache
def _index() -> _Index:
    """Index the patterns by the first word that each needs, and by reading."""
    by_word: dict[str, list[Pattern]] = {}
    by_reading: dict[Reading, list[Pattern]] = {"markup": [], "joined": [], "other": []}
    needed: set[str] = set()
    for pattern in patterns():
        if pattern.reading != "plain":
            by_reading[pattern.reading].append(pattern)
            continue
        needed.update(*pattern.needs)
        for word in pattern.needs[0]:
            by_word.setdefault(word, []).append(pattern)
    return _Index(by_word, by_reading, _BegunBy(needed))


_HEAD = 3
"""Letters by which the beginnings of words are looked up; shorter ones have to be whole words."""
_MOST_WORDS = 20_000
"""Words that are remembered, in some 2 MB."""


@lru_cache(maxsize=512)
def _marked(marks: frozenset[int]) -> list[Pattern]:
    """Return the markup patterns that a text with these marks may match."""
    return [
        pattern
        for pattern in _index().by_reading["markup"]
        if any(
            marks.issuperset(part.encode().translate(None, _UNMARKED)) for part in pattern.needs[0]
        )
    ]


def patterns_in(text: str) -> Iterator[Pattern]:
    """Yield the patterns that a text has."""
    index, read = _index(), _Text(text)
    present = frozenset(chain.from_iterable(map(index.begun_by.__getitem__, read.words)))
    begun = chain.from_iterable(map(index.by_word.__getitem__, present & index.by_word.keys()))
    for pattern in dict.fromkeys(begun):
        if any(map(present.isdisjoint, pattern.needs)):
            continue
        if pattern.is_in(read.plain, pattern.needs[0] & present):
            yield pattern
    for reading, patterns in index.by_reading.items():
        text = read.read(reading)
        if reading == "markup":
            patterns = _marked(frozenset(text.encode().translate(None, _UNMARKED)))
        for pattern in patterns if text else ():
            has_all = all(any(map(text.__contains__, group)) for group in pattern.needs)
            if has_all and pattern.is_in(text, ()):
                yield pattern


def speaks_to_a_judge(texts: Iterable[str]) -> bool:
    """Whether any text has instructions, verdicts or markup for a model, or much hidden text."""
    return any(_hides_much(text) or any(True for _ in patterns_in(text)) for text in texts)


def _hides_much(text: str) -> bool:
    """Tell whether a text has many invisible characters."""
    return not text.isascii() and len(_HIDDEN.findall(_FLAG.sub("", text))) >= _TOO_MANY_HIDDEN


class Suspicion:
    """`speaks_to_a_judge` of an evaluator's calls, whose latest documents are read once.

    The same documents are retrieved for many questions: of RAGBench's, half of them come again.
    """

    def __init__(self) -> None:
        self._of_document = Recent(_speaks, _REMEMBERED, _REMEMBERED_LENGTH)
        _index()  # made here, and not at the first call, in which the process may be forked

    def __call__(self, call: RagCall) -> bool:
        """Whether the question, the response or a document speaks to a judge."""
        return speaks_to_a_judge((call.question, call.response or "")) or any(
            self._of_document(document.shown) for document in call.documents
        )


_REMEMBERED = 512
_REMEMBERED_LENGTH = 5_000  # characters


def _speaks(text: str) -> bool:
    """Tell whether a text speaks to a judge."""
    return speaks_to_a_judge((text,))
