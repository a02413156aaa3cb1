"""Stage 2 of the flow: a call becomes keyed sentences with character offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from rag_eval_integrations.records import RagCall, Sentence, Sentences, SentencizedCall, trusted

# --- Keys of sentences: documents numbered from 0, sentences lettered like spreadsheet columns


_DOCUMENT_KEY = re.compile(r"(\d+)([a-z]+)")


def letters(index: int) -> str:
    """Letters of the sentence at `index` (from 0): a … z aa ab … zz aaa.

    Raises:
        ValueError: for a negative index.
    """
    if index < 0:
        raise ValueError(f"`index` = {index}: counts from 0")
    text = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def position(text: str) -> int:
    """Index (from 0) of a sentence's letters; the inverse of `letters`.

    Raises:
        ValueError: when `text` is not one or more of the letters a to z.
    """
    if not text or not all("a" <= letter <= "z" for letter in text):
        raise ValueError(f"{text!r} is not made of the letters a to z")
    index = 0
    for letter in text:
        index = index * 26 + ord(letter) - ord("a") + 1
    return index - 1


def document_number(key: str) -> int | None:
    """Number of the document that a key belongs to; None for a response key or no key at all."""
    match = _DOCUMENT_KEY.fullmatch(key)
    return int(match[1]) if match else None


# --- What cuts a text into sentences: the protocol that every splitter keeps


class Splitter(Protocol):
    """Cuts a text into sentences; pass your own wherever a splitter is taken.

    One splitter may be asked from several threads at once, and must give the same spans for the
    same text.
    """

    @property
    def name(self) -> str:
        """Its name and version, such as `punkt-en@1`; stamped on every record.

        Change the version whenever the same text may give other sentences: sentence keys recorded
        under one name are read under that name only.
        """
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the `(start, end)` of each sentence, in characters: it is `text[start:end]`.

        Spans are in order, do not overlap, are not empty, and neither begin nor end with white
        space; every other character of *text* lies in exactly one. A text of white space alone has
        none. Any `str` is accepted, whatever its characters.
        """
        ...


RECORDED = "recorded"
"""Name of the splitter of a call that brought its own sentences."""


def sentencize(call: RagCall, splitter: Splitter) -> SentencizedCall:
    """Split a call's documents and response into keyed sentences.

    Sentences that were recorded with the call are used as they are. A document or response
    without text has no sentences; its number is not given to the next one.
    """
    if call.sentences is not None:
        return trusted(SentencizedCall, call=call, sentences=call.sentences, splitter=RECORDED)
    documents = [
        sentence
        for number, document in enumerate(call.documents)
        for sentence in _keyed(document.text, str(number), splitter)
    ]
    response = _keyed(call.response or "", "", splitter)
    return trusted(
        SentencizedCall,
        call=call,
        sentences=_sentences(tuple(documents), tuple(response)),
        splitter=splitter.name,
    )


def _sentences(documents: tuple[Sentence, ...], response: tuple[Sentence, ...]) -> Sentences:
    # Validating 35 sentences takes 26 µs. What a splitter can get wrong is its offsets.
    offsets = [at for _, _, *span in (*documents, *response) for at in span]
    if {int}.issuperset(map(type, offsets)):
        return trusted(Sentences, documents=documents, response=response)
    return Sentences(documents=documents, response=response)


def _keyed(text: str, prefix: str, splitter: Splitter) -> list[Sentence]:
    spans = splitter.spans(text)
    return [
        Sentence(prefix + key, text[start:end], start, end)
        for key, (start, end) in zip(_letters(len(spans)), spans, strict=True)
    ]


def _letters(size: int) -> Iterable[str]:
    # Few texts have more sentences than this.
    return _FIRST[:size] if size <= len(_FIRST) else map(letters, range(size))


_FIRST = tuple(map(letters, range(100)))


def locate(keyed: Sequence[tuple[str, str]], text: str) -> tuple[Sentence, ...]:
    """Find recorded sentences in their text, in order.

    A sentence that is not found after the one before it keeps its key and text and gets no
    offsets: recorded sentences are used, not corrected. White space at the ends of a sentence is
    left out of the offsets' search but not out of its text.
    """
    found: list[Sentence] = []
    cursor = 0
    for key, sentence in keyed:
        start = text.find(sentence, cursor)
        if start < 0:
            found.append(Sentence(key, sentence))
            continue
        cursor = start + len(sentence)
        found.append(Sentence(key, sentence, start, cursor))
    return tuple(found)
