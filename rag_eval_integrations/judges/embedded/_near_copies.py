"""Near copies: response sentences that repeat a document sentence but for one detail.

The content words of a response sentence are aligned with those of a document sentence. When all
agree but one detail (a number, unit, date, name, opposite or negation), the document contradicts
the sentence. Nothing looser is a contradiction: in real answers, most details that differ from the
closest sentence are supported by another one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from difflib import SequenceMatcher
from itertools import chain, product, takewhile
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._overlap import Overlap
from rag_eval_integrations.judges.embedded._words import (
    FUNCTION_WORDS,
    NEGATIONS,
    WORD,
    WordCache,
    listed,
    sections,
    stem,
)
from rag_eval_integrations.sentences._markers import without_markers

# --- Tables of details


_CLASSES = """
time: second+ sec+ s; minute+ min+; hour+ hr+ h; day+; week+; month+; year+ yr+; century centuries
length: millimetre+ millimeter+ mm; centimetre+ centimeter+ cm; metre+ meter+ m; kilometre+
 kilometer+ km; inch inches in; foot feet ft; yard+ yd; mile+ mi
mass: milligram+ mg; gram+ g; kilogram+ kg kilo+; tonne+ ton+; ounce+ oz; pound+ lb+
volume: millilitre+ milliliter+ ml; litre+ liter+ l; gallon+; pint+; cup+; teaspoon+ tsp;
 tablespoon+ tbsp
temperature: celsius c centigrade; fahrenheit f; kelvin
money: dollar+ usd; euro+ eur; sterling gbp; yen; rupee+; cent+
data: kilobyte+ kb; megabyte+ mb; gigabyte+ gb; terabyte+ tb
magnitude: thousand+; million+; billion+ bn
clock: am; pm
month: january jan; february feb; march mar; april apr; may; june jun; july jul; august aug;
 september sep sept; october oct; november nov; december dec
weekday: monday+ mon; tuesday+ tue; wednesday+ wed; thursday+ thu; friday+ fri; saturday+ sat;
 sunday+ sun
season: spring; summer+; autumn+; winter+
"""
_OPPOSITES = """
open close; start stop; start end; start finish; first last; left right; high low; higher lower;
highest lowest; above below; before after; on off; up down; over under; more less; most least; upper
lower; in out; inside outside; internal external; north south; east west; northern southern; eastern
western; large small; larger smaller; largest smallest; maximum minimum; long short; longer shorter;
heavy light; old new; older newer; early late; earlier later; earliest latest; fast slow; hot cold;
wet dry; hard easy; strong weak; full empty; cheap expensive; good bad; better worse; best worst;
positive negative; true false; safe dangerous; same different; public private; male female; born
died; increase decrease; increase reduce; rise fall; raise lower; win lose; won lost; buy sell;
bought sold; add remove; allow forbid; allow prohibit; permit forbid; permit prohibit; allow
forbidden; permit forbidden; enable disable; include exclude; accept reject; connect disconnect;
arrive depart; lock unlock; manual automatic; direct indirect; landlord tenant; owner tenant; buyer
seller; employer employee; lender borrower; sender recipient; top bottom; front rear; front back;
front behind; ahead behind; beside behind; opposite behind; upstairs downstairs; on under; on
beneath; often rarely; often seldom; always rarely; morning evening; morning night; day night; noon
midnight; similar different; wide narrow; father mother; common rare; husband wife; optional
required; optional mandatory; rose fell; grew shrank; indoor outdoor; import export
"""
_SETS = """
short: s h m g l c f min sec in am second may march mar sun sat mon jan dec
conditions: if whether unless might may perhaps could would should
around: about around approximately roughly nearly almost over under least most up some circa
denying: avoid avoids avoiding lacks lacking
copulas: is are was were
verbs: is was has had did does will can must won wrote made led built sold gave took sent held
 became came went grew ran
no names: passage document source context excerpt article step note yes answer warning caution tip
 figure table section chapter page however therefore additionally furthermore
prefixes: un in im ir il dis non
"""
_NUMBERS = """
first two|second three|third four|fourth five|fifth six|sixth seven|seventh eight|eighth nine|ninth
ten|tenth eleven|eleventh twelve|twelfth thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred
"""


def _classes(table: str) -> dict[str, tuple[str, str]]:
    """Read a table of classes as spelling → (class, canonical member); "+" adds the plural."""
    classes: dict[str, tuple[str, str]] = {}
    for name, members in sections(re.sub(r"\b(\w++)\+", r"\1 \1s", table)).items():
        for member in members.split(";"):
            spellings = member.split()
            classes |= dict.fromkeys(spellings, (name, spellings[0]))
    return classes


_CLOSED = _classes(_CLASSES)
_DATE_KINDS = ("month", "weekday", "season")
_OPPOSED = {frozenset(map(stem, pair.split())) for pair in _OPPOSITES.split(";")}
_OPPOSED.add(frozenset(("1.0", "last")))
_DIRECTIONS = set(map(stem, FUNCTION_WORDS.intersection(_OPPOSITES.replace(";", " ").split())))
_SET = {name: listed(words) for name, words in sections(_SETS).items()}
_TURNING = _DIRECTIONS | {"am", "may"}
"""Words without weight that may be details."""
_SHORT = _SET["short"]
"""So written, a word is a unit only after a number, and a date only with a capital."""
_COUNT = enumerate(_NUMBERS.split(), 1)
_VALUES = {w: float(n if n < 21 else 10 * n - 180) for n, of in _COUNT for w in of.split("|")}
_DETAILS = frozenset(map(stem, (*_CLOSED, *_VALUES, *_OPPOSITES.replace(";", " ").split())))
_PREFIXES = tuple(_SET["prefixes"])

# --- Reading a sentence


_LONGEST = 500
"""Characters of a sentence that are compared; a longer one is no copy of a sentence."""
_TOKEN = re.compile(WORD.pattern + r"|[.,;:!?()]")
_DROPPED = re.compile(
    r"(?i)^\s*(?:[-*•]\s|\(?\d{1,2}[.)]\s|step \d+[.:]?\s)|(?<=[.!?:])\s+\d{1,2}[.)]?\s*\Z"
    r"|\[[\d, ]{1,9}\]|\((?:passage|document|source)s?[^()]{0,20}\)"
    r"|^(?:yes|no|so|also|however|therefore|according to|based on|as stated in)\b[^,]{0,40},"
)
"""List marks, citations and openers, which say nothing that a document could contradict."""
_CLOCK = re.compile(r"\b([ap])\.\s?m\b\.?", re.IGNORECASE)
_NOT_ONE = re.compile(
    r"\b(?:not (?:a single|one|even(?: a single| one)?)|no (?:longer|single|one))\b", re.I
)
"""Phrases that deny the word behind them, as "not" does."""
_DAYTIME = re.compile(r"(?<=\d) (?:o['’]clock )?in the (?:(morning)|afternoon|evening)\b")
_MONTHS = "|".join([word.title() for word, of in _CLOSED.items() if of[0] == "month"])
_MONTH_FIRST = re.compile(rf"\b({_MONTHS})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)")
_HOW = re.compile(r"\bhow (?:long|much|many|far|often|old|tall|big|high|deep|fast|soon)\b", re.I)
_SIGNS = str.maketrans({"%": " percent ", "$": " dollar ", "€": " euro ", "£": " gbp ", "°": " "})
_SIGN_BEFORE = re.compile(r"(?:\b[A-Z]{1,2})?([$€£])\s?(\d[\d.,]*)")
_BARE_POINT = re.compile(r"(?<![\w.])\.(?=\d)")
_GLUED = re.compile(r"(?<=\d)(?=[a-zA-Zµ]{1,3}\b)(?!st\b|nd\b|rd\b|th\b)")
"""Between a number and its unit: "5km" is two words."""
_DIGITS = re.compile(r"(\d[\d,]*(?:\.\d+)?)(?:st|nd|rd|th)?")


class Token(NamedTuple):
    """One content word of a sentence."""

    key: str
    """What is compared: a stem, a number's value, the canonical form of a unit or date."""
    kind: str
    """`number`, `name`, the class of a unit or date, or empty."""
    text: str
    """The word as it stands in the sentence."""
    denied: bool = False
    """True for the first word after a negation."""
    free: bool = False
    """True for a function word that has an opposite; it may be left out."""


class Reading(NamedTuple):
    """A sentence in the form in which it is compared."""

    tokens: tuple[Token, ...]
    turns: tuple[int, ...]
    """Where its parts may change places: at "is", and after a fronted phrase."""
    keys: frozenset[str]
    words: frozenset[str]
    """All its words and marks, in lower case."""


class _Word(NamedTuple):
    """Properties of a word that do not depend on its place."""

    low: str
    key: str
    closed: tuple[str, str] | None
    denies: bool
    function: bool
    capital: bool


def _read_word(word: str) -> _Word:
    """Read a word: its stem, its class (number, unit, date), whether it denies or has a capital."""
    low = word.lower().replace("’", "'")
    closed = _CLOSED.get(low)
    digits = _DIGITS.fullmatch(low)
    value = float(digits[1].replace(",", "")) if digits else _VALUES.get(low)
    if closed is None and value is not None:
        closed = ("number", repr(value))
    function = low in FUNCTION_WORDS or low in _SET["around"]
    capital = word[0].isupper() and len(word) > 1 and low not in _SET["no names"]
    denies = low in NEGATIONS or low in _SET["denying"]
    return _Word(low, stem(word), closed, denies, function, capital)


_WORDS = WordCache(_read_word)


def _opens_with_name(after: Sequence[str]) -> bool:
    """Tell whether the capital word that opens a sentence is a name, by the words after it."""
    low = next((word for word in after if not word[0].isupper()), "")
    # "Anna leads the team": behind the noun of an order ("Check tyres …"), there is no article.
    leads = low.endswith("s") and after[1:2] in (["the"], ["a"])
    return leads or low in _SET["verbs"] or low.endswith("ed") or after in ([], ["."])


def read(text: str) -> Reading:
    """Read a sentence as tokens to be compared: numbers, units, dates, names and other words.

    Also whether a word is denied, and where the parts of the sentence may change places.
    """
    text = _CLOCK.sub(r"\1m", _DROPPED.sub(" ", without_markers(text[:_LONGEST])))
    text = _BARE_POINT.sub("0.", _NOT_ONE.sub("not", text))
    text = _DAYTIME.sub(lambda match: " am" if match[1] else " pm", text)
    text = _MONTH_FIRST.sub(r"\2 \1", text)
    text = _SIGN_BEFORE.sub(r"\2 \1", text).translate(_SIGNS)
    raw = _TOKEN.findall(_GLUED.sub(" ", text))
    tokens: list[Token] = []
    turns: list[int] = []
    denied, quantity, opens = False, False, True
    for position, raw_word in enumerate(raw):
        word = _WORDS[raw_word]
        low, closed, first = word.low, word.closed, opens
        opens = not low[0].isalnum() and (opens or low in ":(")
        if not low[0].isalnum():
            denied = quantity = False
            if low == "," and len(tokens) <= 4 and not turns:  # "In the old town, …"
                turns.append(len(tokens))
            continue
        if low in _SHORT and not quantity:
            after = raw[position + 1 :][:4]
            date = closed and closed[0] in _DATE_KINDS and word.capital
            date = date and (not first or _opens_with_name(after) or after[0][0].isdigit())
            closed = closed if date else ("number", "2.0") if low == "second" else None
        quantity = False
        if word.denies:
            denied = raw[position + 1 : position + 2] not in (["only"], ["just"])
        elif low in _SET["copulas"] and len(turns) < 2:
            turns.append(len(tokens))
        elif word.function and word.key in _DIRECTIONS:
            tokens.append(Token(word.key, "", raw_word, free=True))
        elif closed is not None or not word.function:
            kind, key = closed or ("", word.key)
            quantity = closed is not None
            if (
                word.capital
                and not closed
                and (not first or _opens_with_name(raw[position + 1 :][:4]))
            ):
                kind = "name"
            tokens.append(Token(key, kind, raw_word, denied))
            denied = False
    within = [turn for turn in turns if 0 < turn < len(tokens)]
    keys = frozenset([token.key for token in tokens])
    return Reading(tuple(tokens), tuple(within), keys, frozenset(map(str.lower, raw)))


# --- Comparing two sentences


class Difference(NamedTuple):
    """A detail in which a response sentence differs from the document sentence."""

    kind: str
    own: tuple[Token, ...]
    other: tuple[Token, ...]

    def __str__(self) -> str:
        own, other = _phrase(self.own), _phrase(self.other)
        if self.kind == "negation":
            own, other = (own, f"not {own}") if self.other[0].denied else (f"not {own}", own)
        return f"{own}, where the document says {other}"


def _phrase(tokens: Sequence[Token]) -> str:
    """Join the words of tokens, cut off at 60 characters."""
    return " ".join([token.text for token in tokens])[:60]


class Alignment(NamedTuple):
    """Counts of what two sentences share, and where they differ; function words do not count."""

    differences: tuple[Difference, ...]
    skipped: int
    """Other words of one of them, but the question's and those before and after the copied part of
    the document sentence."""
    beyond: int
    """Words of the response sentence that are not in the document sentence."""
    shared: int
    """Words of both, and of the document sentence that the question has."""


def align(own: Sequence[Token], other: Sequence[Token], asked: frozenset[str]) -> Alignment:
    """Align the tokens of a response sentence with those of a document sentence.

    Differences are words that stand for each other as rivals, such as two numbers, and equal words
    of which one is denied. Other words of the response are beyond the document, and skipped; so are
    words of the document between two that match. Words of the question (`asked`) are never skipped,
    and are shared where only the document has them. Free words do not count.
    """
    differences: list[Difference] = []
    skipped = beyond = shared = 0
    matcher = SequenceMatcher(None, [t.key for t in own], [t.key for t in other], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        mine, theirs = own[i:j], other[k:m]
        if tag == "equal":
            shared += sum([not token.free for token in mine])
            differences += [
                Difference("negation", (a,), (b,))
                for a, b in zip(mine, theirs, strict=True)
                if a.denied != b.denied
            ]
            continue
        starts, ends = k == 0, m == len(other)
        rival = _rivals(mine, theirs, starts, ends) if mine and theirs else None
        if rival is not None:
            differences += [rival] if rival.kind else []
            continue
        beyond += sum([not token.free for token in mine])
        skipped += sum([not token.free and token.key not in asked for token in mine])
        left = [token.key for token in theirs if not token.free]
        known = sum(map(asked.__contains__, left))
        shared += known
        skipped += 0 if starts or ends else len(left) - known
    return Alignment(tuple(differences), skipped, beyond, shared)


def _rivals(
    mine: Sequence[Token], theirs: Sequence[Token], starts: bool, ends: bool
) -> Difference | None:
    """Return the detail in which two runs of tokens differ; None where they cannot be compared.

    Its kind is empty when both say the same. At an end of the document sentence (`starts`, `ends`),
    it may have more words.
    """
    own = [token for token in mine if not token.free] or list(mine)
    other = [token for token in theirs if not token.free] or list(theirs)
    names = all(map(_is_name, own))
    if starts or ends:
        size = len(own)
        if names:
            size = len(list(takewhile(_is_name, other if ends else other[::-1])))
        cut = max(0, len(other) - size)
        beside = other[size : size + 1] if ends else other[max(0, cut - 1) : cut]
        halved = beside and beside[0].kind in ("number", "magnitude")
        if not names and halved and own[0].kind not in _DATE_KINDS:
            return None
        other = other[:size] if ends else other[cut:]
    if names and other and all(map(_is_name, other)):
        kind: str | None = "" if _same_name(own, other) else "name"
    else:
        kind = _detail_kind(own[0], other[0]) if len(own) == len(other) == 1 and not names else None
    return None if kind is None else Difference(kind, tuple(own), tuple(other))


def _is_name(token: Token) -> bool:
    return token.kind == "name"


def _same_name(own: Sequence[Token], other: Sequence[Token]) -> bool:
    """Tell whether two names may be one: an abbreviation, or another spelling."""
    short, long = sorted((_glued(own), _glued(other)), key=len)
    shortened = short.isupper() or not re.search("[aeiouy]", short.lower())  # USA, St.
    a, b = short.lower(), long.lower()
    if {a, b} & {_initials(own), _initials(other)} or SequenceMatcher(None, a, b).ratio() > 0.7:
        return True
    left = iter(b)
    return shortened and len(a) < 4 and a[0] == b[0] and all(letter in left for letter in a)


def _glued(name: Sequence[Token]) -> str:
    """Join the words of a name without spaces."""
    return "".join([token.text for token in name])


def _initials(name: Sequence[Token]) -> str:
    """Join the first letters of a name's words, in lower case."""
    return "".join([token.text[0] for token in name]).lower()


def _detail_kind(a: Token, b: Token) -> str | None:
    """Name the kind of detail in which two single words differ; None if they are not rivals.

    Empty where they mean the same: an opposite, denied once.
    """
    if a.kind and a.kind == b.kind:
        return a.kind
    short, long = sorted((a.key, b.key), key=len)
    prefixed = len(short) > 2 and long.endswith(short) and long[: -len(short)] in _PREFIXES
    if prefixed or frozenset((short, long)) in _OPPOSED:
        return "opposite" if a.denied == b.denied else ""
    return None


def _word_orders(reading: Reading) -> list[tuple[Token, ...]]:
    """List the orders of a sentence's tokens: as they stand, and with two parts exchanged."""
    tokens = reading.tokens
    return [tokens, *[tokens[turn:] + tokens[:turn] for turn in reading.turns]]


# --- Comparing a response with the documents


_Sentence = Callable[[int], Reading]
"""Reads a document sentence by its number."""
_MISSING = 3
"""Content words of a near copy that the document sentence may lack: a name of two, one skipped."""
_COMPARED = 4
_SKIPPED = 1
_SHARED = 2
"""Words that a near copy shares with the document sentence; one with a sentence of two."""
_ELSEWHERE = 0.4
"""Share of the other words from which another sentence that has the detail supports it."""
_SHORT_ANSWER = 3
"""Words besides the question's up to which an answer may be only a detail ("At ten.") and is read
with its question."""
_ASKED_ABOUT = 6
_HOLDERS = 50
"""Limits on the document sentences that are looked at."""


def near_copies(
    o: Overlap,
    response: Sequence[str],
    documents: Sequence[str],
    question: str,
    read: Callable[[str], Reading] = read,
) -> dict[int, Difference]:
    """Find the response sentences that differ in one detail from a sentence they repeat.

    A short answer is compared with the question's words before it.

    Args:
        o: the index of the call.
        response: its response sentences; empty ones are passed over.
        documents: the sentences of all documents, in order.
        question: its question.
        read: reads a sentence; the judge passes one that remembers.
    """

    def sentence(number: int) -> Reading:
        return read(documents[number])

    def is_question(number: int) -> bool:
        return documents[number].rstrip().endswith("?")

    asked: Reading | None = None
    about = [number for number in _near_question(o) if not is_question(number)]
    errors = {}
    for number, text in enumerate(response):
        near = _candidates(o, number)
        near = near and [place for place in near if not is_question(place)]
        short = about and len(o.response[number].bag - o.question.bag) <= _SHORT_ANSWER
        if not text or near is None or not (near or short) or text.rstrip().endswith(":"):
            continue
        own, asked = read(text), asked or read(_HOW.sub(" ", question))
        closest = _closest(own, near, sentence, asked.keys)
        if closest is None and short and own.tokens:
            added = tuple([t for t in asked.tokens if not _is_answered(t.key, own.keys)])
            answered = own._replace(tokens=added + own.tokens, turns=())
            closest = _closest(answered, about, sentence, frozenset())
        place, difference = closest or (0, None)
        if difference is not None and _is_error(difference, own, place, asked, o, sentence):
            errors[number] = difference
    return errors


def _candidates(o: Overlap, number: int) -> list[int] | None:
    """List the document sentences that a response sentence may be a near copy of; None for a copy.

    Words alone decide, so that most sentences need not be read.
    """
    own, differs = o.response[number], False
    near: list[int] = []
    turns = _TURNING.intersection(own.stems)
    known = own.names.union(own.numbers, own.stems[:1])
    for match in o.matches[number]:
        other, shared = o.documents[match.sentence], o.shared[match.sentence]
        missing = own.bag - shared
        if len(missing) > _MISSING or len(shared) < min(_SHARED, len(other.bag) - 1):
            continue
        details = {word for word in missing if word in known or _may_be_detail(word, o.idf)}
        # Of "a.m." and "p.m.", only the "m" is a word of both.
        turned = "m" in own.bag or not turns <= {*other.stems}
        may = details or turned or own.negated != other.negated
        if not may and not missing and len(own.bag) > _SHARED:
            return None
        if len(missing - details - o.question.bag) <= _SKIPPED and len(near) < _COMPARED:
            near.append(match.sentence)
            differs = differs or bool(may)
    return near if differs else []


def _may_be_detail(word: str, known: Collection[str]) -> bool:
    """Tell whether a word may be a detail whose change matters."""
    if word in _DETAILS or word.startswith(_PREFIXES):
        return True
    return any([prefix + word in known for prefix in _PREFIXES])


def _is_answered(asked: str, own: frozenset[str]) -> bool:
    """Tell whether an answer has a word of the question, or its opposite ("open?" "Closed.")."""
    return asked in own or any([frozenset((asked, key)) in _OPPOSED for key in own])


def _near_question(o: Overlap) -> list[int]:
    """List the document sentences with at least half of the question's words."""
    holders = [o.holders.get(word, [])[: 4 * _HOLDERS] for word in o.question.content]
    most = Counter(chain.from_iterable(holders)).most_common(_ASKED_ABOUT)
    return [number for number, count in most if 2 * count >= len(holders)]


def _closest(
    own: Reading, near: Sequence[int], sentence: _Sentence, asked: frozenset[str]
) -> tuple[int, Difference | None] | None:
    """Return the first document sentence that a sentence is a near copy of, and the difference.

    The difference is None when a document sentence says just the same.
    """
    copy: tuple[int, Difference | None] | None = None
    for place in near:
        other = sentence(place)
        # An answer that was joined to its question has no order of its own.
        theirs = [other.tokens] if asked else _word_orders(other)
        alignments = [align(*both, asked) for both in product(_word_orders(own), theirs)]
        best = min(alignments, key=lambda a: len(a.differences) + a.skipped + a.beyond)
        if not best.differences and best.beyond <= _SKIPPED < best.shared:
            return place, None
        near_copy = len({*best.differences}) == 1 and best.skipped <= _SKIPPED
        size = sum([not token.free for token in other.tokens])
        if copy is None and near_copy and best.shared >= min(_SHARED, size - 1) > 0:
            copy = place, best.differences[0]
    return copy


def _is_error(
    detail: Difference, own: Reading, place: int, asked: Reading, o: Overlap, sentence: _Sentence
) -> bool:
    """Tell whether a difference is an error: no word of question or documents explains it.

    Another document sentence explains it that has the detail, and some of the other words.
    """
    other = sentence(place)
    mine = {token.key for token in detail.own}
    theirs = {token.key for token in detail.other}
    if detail.kind in ("negation", "opposite"):
        if own.words & _SET["conditions"] != other.words & _SET["conditions"]:
            return False
    elif mine <= asked.keys or (
        # A sentence may hold "am" and "pm", each with an hour of its own.
        detail.kind != "clock" and (mine & other.keys or theirs & own.keys)
    ):
        return False
    if detail.kind == "number":
        x, y = float(detail.own[0].key), float(detail.other[0].key)
        if abs(x - y) == 12 and (own.words | other.words) & {"am", "pm"}:
            return False
        near = 0.1 if (own.words | other.words) & _SET["around"] else 0.005
        if abs(x - y) <= near * y and not 1000 <= y <= 2100:
            return False
    stems = {stem(token.text) for token in detail.own}
    elsewhere = sorted({n for word in stems for n in o.holders.get(word, ())} - {place})
    rest = own.keys - mine
    for number in elsewhere[:_HOLDERS]:
        another = sentence(number)
        denied = {token.key: token.denied for token in another.tokens}
        same = all(denied.get(token.key) == token.denied for token in detail.own)
        if same and len(rest & another.keys) >= _ELSEWHERE * max(1, len(rest)):
            return False
    return True
