"""Citations of an answer: its markers, and the documents that they name, as the model saw them.

Numbers count from 0 or from 1, or are ids or labels in front of the documents: decided per answer.
Brackets that name no document stay text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rag_eval_integrations.records import Document, Sentence, SentencizedCall
from rag_eval_integrations.records.call import CITATIONS
from rag_eval_integrations.sentences._markers import IN_A_CLAIM, LABELS, OPENERS

Numbering = Mapping[int, int]
"""Number in a marker → number of the document, from 0."""

_MARKER = re.compile(
    rf"<source_id>[^<>\n]{{1,120}}</source_id>|{IN_A_CLAIM}"
    r"|[\[(][^\[\]()<>\n]{1,120}[\])]"
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,200}`", re.DOTALL)
_LABEL = re.compile(
    rf"(?i:(?:{LABELS}|docs?|documents?|refs?|chunk|passage|see|from|source_id)"
    r"(?![^\W\d_])[ :：._#-]{0,3})"
)
_PAGE = re.compile(r", ?pp?\. ?\d{1,5}\Z")
_LINK = re.compile(r"\]\(https?://[^\s()]*\)\Z")
_NUMBERS = re.compile(r"\^?\d{1,3}(?:\s?[,;–-]\s?\^?\d{1,3})*")
_RANGE = re.compile(r"(\d{1,3})(?:\s?[–-]\s?\^?(\d{1,3}))?")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPTS = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹")
_SHOWN_NUMBER = re.compile(
    r"(?m:^)\s*(?:\[(\d{1,3})\]|(?i:source|document|doc|passage)(?i: id)?\s?[:#]?\s?(\d{1,3})\b)"
)
_INDEXED = re.compile(
    r"(?:\b[a-zA-Z]|\b(?:arr(?:ay)?|list|args|argv|vector|matrix|items|row|dict)|_\w*)\Z"
)
_WORD = re.compile(r"[^\W_]{3,}")
_NAMED_IN = ("id", "source", "file_name", "file_path", "url", "doc_id", "source_id")
_QUOTED = 30  # characters in front of a marker that a document has as well
_MOST_IN_A_RANGE = 20
_CLEAR, _LITTLE_MORE, _MUCH_MORE = 1.25, 1.5, 2


class Citation(NamedTuple):
    """One citation: a marker of `[1, 3]` makes two."""

    key: str
    """The sentence that it stands in; empty for one of the whole answer."""
    start: int
    """Where its marker begins in the response."""
    end: int
    marker: str
    documents: tuple[int, ...]
    """The documents that it names: several of one name; none if it is dangling."""


class Citations(NamedTuple):
    """The citations of an answer, in order."""

    citations: tuple[Citation, ...]
    unclear: str | None = None
    """Why the documents of its numbers cannot be told; None if they can."""


class _Mention(NamedTuple):
    """A marker that may name documents."""

    sentence: Sentence
    start: int
    end: int
    text: str
    number: int | None
    documents: tuple[int, ...]
    explicit: bool
    """Whether its form says that it is a citation."""


def citations_of(call: SentencizedCall) -> Citations:
    """Read the citations of the sentences that are judged."""
    response, documents = call.call.response or "", call.call.documents
    if not documents:
        return Citations(())
    mentions = list(_recorded_citations(call))
    if not OPENERS.isdisjoint(response):
        mentions += _mentions(call, response)
    numbered = [mention for mention in mentions if mention.number is not None]
    numbers = {mention.number for mention in numbered if mention.number is not None}
    numbering, unclear = _numbering(numbers, numbered, documents)
    named = any(number in numbering for number in numbers)
    citations = []
    for mention in mentions:
        targets = mention.documents
        if mention.number is not None:
            place = numbering.get(mention.number)
            targets = () if place is None else (place,)
        if targets or mention.explicit or (named and mention.number is not None):
            where = (mention.sentence.key, mention.start, mention.end, mention.text)
            citations.append(Citation(*where, targets))
    return Citations(tuple(citations), unclear)


def without_citations(call: SentencizedCall) -> SentencizedCall:
    """Return the call as judges are shown it: spaces in place of each marker that names a document.

    The call itself where there is none.
    """
    spans = {
        (c.start, c.end) for c in citations_of(call).citations if c.documents and c.start < c.end
    }
    if not spans:
        return call
    text = call.call.response or ""
    for start, end in spans:
        text = f"{text[:start]}{' ' * (end - start)}{text[end:]}"
    response = tuple(
        [
            s if s.start is None else s._replace(text=text[s.start : s.end])
            for s in call.sentences.response
        ]
    )
    sentences = call.sentences.model_copy(update={"response": response})
    return call.model_copy(update={"sentences": sentences})


def _mentions(call: SentencizedCall, response: str) -> Iterator[_Mention]:
    """Yield the markers that may be citations, in order."""
    documents = call.call.documents
    names = _names(documents)
    code = [match.span() for match in _CODE.finditer(response)] if "`" in response else []
    for sentence in call.response:
        if sentence.start is None or sentence.end is None:
            continue
        if sentence.text != response[sentence.start : sentence.end]:
            continue
        for match in _MARKER.finditer(response, sentence.start, sentence.end):
            start, end = match.span()
            if any(a <= start < b for a, b in code) or _is_not_citation(
                response, sentence, match, documents
            ):
                continue
            for number, targets, explicit in _targets(match[0], names, len(documents)):
                yield _Mention(sentence, start, end, match[0], number, targets, explicit)


def _recorded_citations(call: SentencizedCall) -> Iterator[_Mention]:
    """Yield the citations that a result has beside its answer, by sentence where known."""
    capture = call.call.capture
    listed = call.call.metadata.get(CITATIONS) or (capture and capture.metadata.get(CITATIONS))
    names, size = _names(call.call.documents), len(call.call.response or "")
    whole = Sentence("", call.call.response or "")
    for entry in listed if isinstance(listed, list) else ():
        given = entry if isinstance(entry, dict) else {"source": entry}
        source, end = given.get("source"), given.get("end")
        inside = [s for s in call.response if isinstance(end, int) and (s.start or 0) < end <= size]
        sentence = inside[-1] if inside else whole
        name = str(source)
        number = int(name) if re.fullmatch(r"\d{1,3}", name) else None
        targets = names.get(name.casefold(), ()) if number is None else ()
        yield _Mention(sentence, 0, 0, f"[{name[:_QUOTED]}]", number, targets, explicit=True)


def _targets(
    marker: str, names: Mapping[str, tuple[int, ...]], size: int
) -> Iterator[tuple[int | None, tuple[int, ...], bool]]:
    """Yield the number or documents that a marker names, and whether its form is clear."""
    inner = re.sub(r"</?(?:sup|source_id)>", "", _LINK.sub("]", marker)).strip("[]()【】 ")
    whole = names.get(inner.casefold())
    label = _LABEL.match(inner)
    explicit = marker[0] == "【" or inner[:1] == "^" or label is not None or "source_id" in marker
    rest = inner[label.end() :] if label else inner
    numbers = rest.translate(_DIGITS)
    if whole and not inner.isdecimal():
        yield None, whole, True
    elif _NUMBERS.fullmatch(numbers) and (explicit or marker[0] != "("):
        for low, high in _RANGE.findall(numbers):
            first, last = int(low), int(high or low)
            if marker[0] in _SUPERSCRIPTS and first > size and not high:
                for digit in low:  # "¹²" of two documents
                    yield int(digit), (), explicit
            elif first <= last <= first + _MOST_IN_A_RANGE:
                for number in range(first, last + 1):
                    yield number, (), explicit
    else:
        unknown = label is not None and label[0].rstrip()[-1:] in ":：" and bool(names)
        for part in (rest, *re.split(r"[,;]\s?", rest)) if names else ():
            name = _PAGE.sub("", part).strip().lstrip("^").partition("†")
            targets = names.get(name[0].casefold()) or names.get(name[2].casefold())
            if targets:
                unknown = False
                yield None, targets, True
                if part == rest:
                    break
        if unknown or ("source_id" in marker and names and not whole):
            yield None, (), True


def _is_not_citation(
    response: str, sentence: Sentence, match: re.Match[str], documents: Sequence[Document]
) -> bool:
    """Tell whether brackets are an index, an interval, a list number or a quotation."""
    start, end = match.span()
    if match[0][0] not in "[⁰¹²³⁴⁵⁶⁷⁸⁹":
        return False
    before = response[max(sentence.start or 0, start - _QUOTED) : start]
    line = response[response.rfind("\n", 0, start) + 1 : start]
    if not line.strip(" -*•") and re.match(r"[ \t]+[A-Z]", response[end:]):
        return True
    if match[0][0] == "[" and _INDEXED.search(before):
        return True
    if re.match(r"\[0\s?,", match[0]) and re.search(
        r"\b(?:in|interval|range|within|on)\s\Z", before
    ):
        return True
    quoted = f"{before}{match[0]}"
    return len(before.strip()) > 1 and any(quoted in document.text for document in documents)


def _names(documents: Sequence[Document]) -> dict[str, tuple[int, ...]]:
    """Map the names of documents to their numbers: ids, and files and addresses in metadata."""
    names: dict[str, tuple[int, ...]] = {}
    for number, document in enumerate(documents):
        values = [document.id, *(document.metadata.get(field) for field in _NAMED_IN)]
        texts = [str(value) for value in values if isinstance(value, str | int)]
        files = [text.replace("\\", "/").rpartition("/")[2] for text in texts]
        for name in {name.casefold() for name in (*texts, *files) if name}:
            names[name] = (*names.get(name, ()), number)
    return names


def _numbering(
    numbers: set[int], mentions: Sequence[_Mention], documents: Sequence[Document]
) -> tuple[Numbering, str | None]:
    """Decide what the numbers of an answer count; why not, where that cannot be told."""
    heads = [_SHOWN_NUMBER.search(d.header or "") or _SHOWN_NUMBER.match(d.text) for d in documents]
    labels = {int(m[1] or m[2]): n for n, m in enumerate(heads) if m is not None}
    if len(labels) == len(documents):
        return labels, None
    size = len(documents)
    numberings: list[Numbering] = [{n + 1: n for n in range(size)}, {n: n for n in range(size)}]
    ids = {int(d.id): n for n, d in enumerate(documents) if d.id and re.fullmatch(r"\d{1,3}", d.id)}
    if len(ids) == size and ids not in numberings:
        numberings.insert(0, ids)
    reach = [len(numbers & numbering.keys()) for numbering in numberings]
    numberings = [n for n, most in zip(numberings, reach, strict=True) if most == max(reach)]
    if len(numberings) == 1 or not max(reach):
        return numberings[0], None
    words = [set(map(str.casefold, _WORD.findall(document.shown))) for document in documents]
    spread = Counter(word for text in words for word in text)
    fits = [_overlap(numbering, mentions, words, spread) for numbering in numberings]
    if ids in numberings:
        first, second = sorted(range(len(fits)), key=fits.__getitem__, reverse=True)[:2]
        if fits[first] >= _CLEAR * fits[second]:
            return numberings[first], None
    # Most answers count from 1, and those that count from 0 mostly cite 0.
    elif fits[1] <= _LITTLE_MORE * fits[0]:
        return numberings[0], None
    elif fits[1] >= _MUCH_MORE * fits[0]:
        return numberings[1], None
    low, high = min(numbers), max(numbers)
    return numberings[0], (
        f"its numbers, {low} to {high}, may count the {size} documents in more than one way"
    )


def _overlap(
    numbering: Numbering,
    mentions: Sequence[_Mention],
    words: Sequence[set[str]],
    spread: Counter[str],
) -> float:
    """Sum the weights of the words that sentences share with the documents that they cite."""
    total = 0.0
    for mention in mentions:
        place = numbering.get(mention.number or 0)
        if place is not None:
            said = set(map(str.casefold, _WORD.findall(mention.sentence.text)))
            total += sum(1 / spread[word] for word in said & words[place])
    return total
