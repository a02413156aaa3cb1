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
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, reduce
from importlib.resources import files
from itertools import accumulate
from operator import or_
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
_BEYOND_LATIN = re.compile("[\u0400-\u1cff\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufefe]")
_SMALL_CAPITALS = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ"
# Begins with the rare letter, so that nothing else is looked at twice.
_CONFUSED = re.compile(
    f"[{_SMALL_CAPITALS}]"
    "|[\u0251\u0261\u0370-\u058f](?:[A-Za-z]|(?<=[A-Za-z][\u0251\u0261\u0370-\u058f]))"
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


def _as_ascii(text: str) -> str:
    """Transliterate a text to lower-case ASCII, without accents and look-alike letters."""
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
    """Replace Latin letters in a word that has Cyrillic ones by the Cyrillic letters like them.

    A word without Cyrillic letters is returned as it is; a Latin letter like none of them stays.
    """
    word = match.group()
    return word.translate(_LATIN_ALIKE) if _CYRILLIC.search(word) else word


def _in_own_script(text: str) -> str:
    """Read a text in its own script, lower case and without marks; empty where that is Latin."""
    if text.isascii() or not _BEYOND_LATIN.search(text):
        return ""
    return _folded(_WORD.sub(_in_cyrillic, text) if _CONFUSED.search(text) else text)


# --- Patterns

_GAP = r"[^\w.!?]{1,12}+"
_SENTENCE = "[^.!?。！？।\n]"
_BETWEEN = 130  # characters, of the two parts of a pattern with `...`
_LONGEST_THEN = 40  # characters of the second part


class Pattern(NamedTuple):
    """A line of the file.

    `needs`: groups of words, one of each of which is in every text that the pattern is found in; it
    begins with one of the first group. A word with `*` is the beginning of one.
    """

    language: str
    notation: str
    """The pattern as the file has it, with the words of its lists."""
    example: str
    reading: Reading
    needs: tuple[frozenset[str], ...]

    def expressions(self) -> list[re.Pattern[str]]:
        """Return the regular expressions that have to match one after another."""
        return _compiled(self.notation, self.reading)

    def is_in(self, text: str, words: Iterable[str]) -> bool:
        """Tell whether a text has the pattern, which begins with one of these words of the text."""
        first, *then = self.expressions()
        searched = 0
        for match in self._matches(first, text, words):
            if not then:
                return True
            start, stop = max(match.end(), searched), match.end() + _BETWEEN
            if start < stop and then[0].search(text, start, stop):
                return True
            searched = max(searched, stop - _LONGEST_THEN)
        return False

    def _matches(
        self, expression: re.Pattern[str], text: str, words: Iterable[str]
    ) -> Iterator[re.Match[str]]:
        """Yield the matches of an expression; for an order, only those in the imperative.

        A pattern of the reading `plain` is tried at the positions of `words` only.
        """
        if self.reading != "plain":
            yield from expression.finditer(text)
            return
        is_order = self.notation.startswith("^ ")
        for place in _places(text, words):
            match = expression.match(text, place)
            if match and (not is_order or _is_imperative(text, place)):
                yield match


def _places(text: str, words: Iterable[str]) -> list[int]:
    """Return the positions of words in a text, in order."""
    places = []
    for word in words:
        place = text.find(word)
        while place >= 0:
            places.append(place)
            place = text.find(word, place + 1)
    return sorted(places)


def _with_lists(notation: str, lists: Mapping[str, str]) -> str:
    """Replace the names of word lists in a pattern by the words."""
    return re.sub(r"\{([a-z]+)\}", lambda match: lists[match[1]], notation)


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
        languages, content, *example = line.split("\t")
        for language in languages.split():
            own = lists.setdefault(language, {})
            if not example:
                name, _, words = content.partition(" = ")
                own[name] = _with_lists(words, own)
                continue
            reading = _SPECIAL.get(language) or ("plain" if content.isascii() else "other")
            full = _with_lists(content, own)
            read.append(Pattern(language, full, example[0], reading, _needs(full, reading)))
    return tuple(read)


def _alternatives(words: str) -> list[str]:
    """Split a token at each `|` outside of brackets."""
    parts, depth = [""], 0
    for character in words:
        depth += (character in "([") - (character in ")]")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _beginnings(words: str) -> set[str]:
    """Return the first word of each alternative of a token; empty where it is not known.

    A word that may go on ends with `*`, and one that something else follows with a space.
    """
    begin = set()
    for part in _alternatives(words):
        if part.startswith("("):
            depths = accumulate((letter == "(") - (letter == ")") for letter in part)
            end = list(depths).index(0)
            inner, rest = part[1:end], part[end + 1 :]
            if inner.startswith("?"):  # looks around
                begin |= _beginnings(rest)
                continue
            first = _beginnings(inner)
            if rest.startswith("?"):
                rest = rest[1:]
                begin |= _beginnings(rest)
        else:
            word = _LEADING_WORD.findall(part)[0]
            first, rest = {word}, part[len(word) :]
            if rest.startswith("?"):
                first, rest = {word, word[:-1]}, rest[1:]
        after = "" if not rest else " " if _FOLLOWS.match(rest) else "*"
        begin |= {word if word.endswith((" ", "*")) else word + after for word in first}
    return begin


_LEADING_WORD = re.compile(r"^[^\W_]*")
_FOLLOWS = re.compile(r"[_',:/-](?!\?)")


_MARKERS = "?!^~.&"


def _needs(notation: str, reading: Reading) -> tuple[frozenset[str], ...]:
    """Return groups of words: every text with the pattern has at least one word of each group."""
    tokens = notation.split(" ")
    if reading == "markup":
        return (frozenset(needle.replace("~", " ") for needle in tokens[0].split(",")),)
    groups = []
    for token in tokens:
        if token[0] in "?!^~.":
            continue
        words = {word.rstrip() for word in _beginnings(token.removeprefix("&"))}
        if reading != "plain":
            words = {_folded(word.rstrip("*")) for word in words}
        if words.isdisjoint({"", "*"}):
            groups.append(frozenset(words))
    return tuple(groups)


@cache
def _compiled(notation: str, reading: Reading) -> list[re.Pattern[str]]:
    """Compile the parts of a pattern."""
    if reading == "markup":
        return [re.compile(notation.partition(" ")[2], re.MULTILINE)]
    parts = [_expression(part.split(" "), reading) for part in notation.split(" ... ")]
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


class _Words(dict[str, int]):
    """Cache from a word to the bits of the pattern needs that it meets; `idle` words meet none.

    First are the bits of the patterns' first groups, then those of their second ones, and so on: a
    text may have a pattern whose bit is set in all. The same few thousand words come in most texts.
    """

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        super().__init__()
        self.patterns = patterns
        self.idle: set[str] = set()
        self._bits: dict[str, int] = {}
        self._begin: dict[str, dict[str, int]] = {}
        for number, pattern in enumerate(patterns):
            for place in range(_GROUPS):
                for word in pattern.needs[place if place < len(pattern.needs) else 0]:
                    head, open_, _ = word.partition("*")
                    known = self._bits
                    if open_ and len(head) >= _HEAD:
                        known = self._begin.setdefault(head[:_HEAD], {})
                    known[head] = known.get(head, 0) | 1 << place * len(patterns) + number

    def __missing__(self, word: str) -> int:
        met = self._bits.get(word, 0)
        for beginning, bits in self._begin.get(word[:_HEAD], {}).items():
            if word.startswith(beginning):
                met |= bits
        if len(word) == 1 and word.isalpha():
            met |= 1 << _GROUPS * len(self.patterns) + ord(word) - ord("a")
        if len(word) >= _LONG_WORD:
            return met | (1 << _FEWEST_LETTERS) - 1 << _GROUPS * len(self.patterns)
        if len(self) + len(self.idle) < _MOST_WORDS:
            if met:
                self[word] = met
            else:
                self.idle.add(word)
        return met

    def candidates(self, words: Collection[str], met: int) -> dict[int, list[str]]:
        """Return the numbers of the patterns whose needs are all met, with their first words."""
        count = len(self.patterns)
        every = (1 << count) - 1
        for place in range(_GROUPS):
            every &= met >> place * count
        begun: dict[int, list[str]] = {}
        for word in words if every else ():
            bits = self[word] & every
            while bits:
                number = bits.bit_length() - 1
                begun.setdefault(number, []).append(word)
                bits ^= 1 << number
        return begun

    def letters_split(self, met: int) -> bool:
        """Tell whether the words of a text may be split into letters, or joined to long ones."""
        return (met >> _GROUPS * len(self.patterns)).bit_count() >= _FEWEST_LETTERS


@cache
def _index() -> tuple[dict[Reading, list[Pattern]], _Words]:
    """Index the patterns by reading, with a word cache for those of the reading `plain`."""
    by_reading: dict[Reading, list[Pattern]] = {}
    for pattern in patterns():
        by_reading.setdefault(pattern.reading, []).append(pattern)
    return by_reading, _Words(by_reading["plain"])


_GROUPS = 3
"""Groups of words that are looked at: few patterns have more."""
_HEAD = 3
"""Letters by which the beginnings of words are looked up; shorter ones have to be whole words."""
_MOST_WORDS = 20_000
"""Words that are remembered, in some 2 MB."""
_FEWEST_LETTERS, _LONG_WORD = 5, 20
"""Words of one letter, and the letters of a word, that show letters split or joined."""


@lru_cache(maxsize=512)
def _markup_patterns(marks: frozenset[int]) -> list[Pattern]:
    """Return the markup patterns that a text with these marks may match."""

    def is_possible(pattern: Pattern) -> bool:
        needed = (part.encode().translate(None, _UNMARKED) for part in pattern.needs[0])
        return any(map(marks.issuperset, needed))

    return [pattern for pattern in _index()[0]["markup"] if is_possible(pattern)]


def patterns_in(text: str) -> Iterator[Pattern]:
    """Yield the patterns found in a text, which is read in each way that may apply to it."""
    text = text.replace("\0", "")
    ascii_text = _as_ascii(text)
    encoded = ascii_text.encode()
    by_reading, known = _index()
    words = set(encoded.translate(_SPACED).decode().split()) - known.idle
    met = reduce(or_, map(known.__getitem__, words), 0)
    for number, first in known.candidates(words, met).items():
        if known.patterns[number].is_in(ascii_text, first):
            yield known.patterns[number]
    others = [(ascii_text, _markup_patterns(frozenset(encoded.translate(None, _UNMARKED))))]
    if "-\n" in text or "_" in text or known.letters_split(met):
        others.append((encoded.translate(_LETTERS, _NO_LETTERS).decode(), by_reading["joined"]))
    others.append((_in_own_script(text), by_reading["other"]))
    for variant, patterns in others:
        for pattern in patterns if variant else ():
            has_all = all(any(map(variant.__contains__, group)) for group in pattern.needs)
            if has_all and pattern.is_in(variant, ()):
                yield pattern


def speaks_to_a_judge(texts: Iterable[str]) -> bool:
    """Whether any text has instructions, verdicts or markup for a model, or much hidden text."""
    return any(map(_speaks, texts))


def _speaks(text: str) -> bool:
    """Tell whether a text has a pattern, or much hidden text."""
    return _hides_much(text) or next(patterns_in(text), None) is not None


def _hides_much(text: str) -> bool:
    """Tell whether a text has many invisible characters."""
    return not text.isascii() and len(_HIDDEN.findall(_FLAG.sub("", text))) >= _TOO_MANY_HIDDEN


class Suspicion:
    """`speaks_to_a_judge` for calls, with a cache of recent documents.

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
