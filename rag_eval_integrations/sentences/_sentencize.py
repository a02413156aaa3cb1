"""Stage 2, `sentencize`: a call becomes keyed sentences with offsets. Keys, `Splitter`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, islice, product
from string import ascii_lowercase
from typing import Protocol

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall, Sentence, Sentences, SentencizedCall

# --- Keys of sentences: document numbers from 0, letters as in the columns of a spreadsheet


_DOCUMENT_KEY = re.compile(r"(\d+)([a-z]+)")
_MOST_DIGITS = 9  # no call has a billion documents


def letters(index: int) -> str:
    """Return the letters of the sentence at `index` (from 0): a … z aa ab … zz aaa.

    Raises:
        ValueError: the index is negative.
    """
    if index < 0:
        raise ValueError(f"`index` = {index}: use a number from 0")
    text = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


def position(text: str) -> int:
    """Return the index (from 0) of a sentence's letters; the inverse of `letters`.

    Raises:
        ValueError: `text` is empty or holds other characters than a to z.
    """
    if not text or not all("a" <= letter <= "z" for letter in text):
        raise ValueError(f"{text!r} does not consist of the letters a to z")
    index = 0
    for letter in text:
        index = index * 26 + ord(letter) - ord("a") + 1
    return index - 1


def document_number(key: str) -> int | None:
    """Return the number of a key's document; None for response keys and for text without a key."""
    match = _DOCUMENT_KEY.fullmatch(key)
    return int(match[1]) if match and len(match[1]) <= _MOST_DIGITS else None


# --- Splitting: the protocol of splitters, and a call's sentences


class Splitter(Protocol):
    """Splits a text into sentences; pass your own object wherever a splitter is accepted.

    A splitter may be called from several threads at once, and must return the same spans for the
    same text.
    """

    @property
    def name(self) -> str:
        """Name and version of the splitter, such as `punkt-en@2`; recorded with every evaluation.

        Change the version whenever the same text may give other sentences, because recorded
        sentence keys are valid under that name only.
        """
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the `(start, end)` of each sentence `text[start:end]`, in characters.

        Spans are in order, do not overlap and are not empty. They neither begin nor end with white
        space, and every character that is not white space lies in exactly one span. A text of
        white space has no spans. Any `str` must be accepted, lone surrogates included.
        """
        ...


RECORDED = "recorded"
"""Name of the splitter of a call that came with its own sentences."""


def sentencize(call: RagCall, splitter: Splitter) -> SentencizedCall:
    """Split a call's documents and response into keyed sentences.

    Sentences recorded with the call are used unchanged. A document or response without text has no
    sentences; an empty document keeps its number. A list of sources in the response is split as
    well, and no claim (`Sentences.not_claims`).

    Raises:
        ConfigurationError: the splitter's spans overlap, are empty or out of order, or do not lie
            in the text.
    """
    if call.sentences is not None:
        return SentencizedCall(call=call, sentences=call.sentences, splitter=RECORDED)
    documents = [
        sentence
        for number, document in enumerate(call.documents)
        for sentence in _keyed(document.text, str(number), splitter)
    ]
    response = tuple(_keyed(call.response or "", "", splitter))
    not_claims = finder_of_sources()
    # Validated, 35 sentences take 32 instead of 2 µs.
    sentences = Sentences.model_construct(
        documents=tuple(documents), response=response, not_claims=not_claims(call, response)
    )
    return SentencizedCall(call=call, sentences=sentences, splitter=splitter.name)


def finder_of_sources() -> Callable[[RagCall, Sequence[Sentence]], tuple[str, ...]]:
    """Import the finder of lists of sources, before a fork could interrupt the import."""
    from rag_eval_integrations.sentences._sources import not_claims  # noqa: PLC0415  # 30 ms of patterns

    return not_claims


def _keyed(text: str, prefix: str, splitter: Splitter) -> list[Sentence]:
    """Split a text into sentences with keys."""
    spans = _checked(splitter.spans(text), text, splitter)
    new = tuple.__new__  # as `Sentence` itself does, in two thirds of the time
    return [
        new(Sentence, (prefix + key, text[start:end], start, end))
        for key, (start, end) in zip(_first_letters(len(spans)), spans, strict=True)
    ]


def _checked(
    spans: Sequence[tuple[int, int]], text: str, splitter: Splitter
) -> Sequence[tuple[int, int]]:
    """Return the spans as pairs of `int`, which other kinds of integers become."""
    if not {int}.issuperset(map(type, chain.from_iterable(spans))):
        spans = [_integers(span, splitter) for span in spans]
    last, length = 0, len(text)
    for start, end in spans:
        if not last <= start < end <= length:
            raise ConfigurationError(
                "splitter",
                splitter.name,
                f"gave the span ({start}, {end}) after {last} in a text of {length} characters; "
                f"{_SPANS}",
            )
        last = end
    return spans


def _integers(span: tuple[int, int], splitter: Splitter) -> tuple[int, int]:
    """Return a splitter's span as integers; refuse anything else."""
    try:
        return operator.index(span[0]), operator.index(span[1])
    except TypeError as error:
        hint = f"gave the span {span!r}; {_SPANS}"
        raise ConfigurationError("splitter", splitter.name, hint) from error


_SPANS = "spans are pairs of integers, in order, not empty, and do not overlap"


def _first_letters(size: int) -> Iterable[str]:
    """Return the letters of the first `size` keys."""
    # Precomputed, since few texts have more sentences.
    return _FIRST[:size] if size <= len(_FIRST) else islice(_all_letters(), size)


def _all_letters() -> Iterator[str]:
    """Yield a, b, …, z, aa, ab and so on."""
    for length in count(1):
        yield from map("".join, product(ascii_lowercase, repeat=length))


_FIRST = tuple(islice(_all_letters(), 100))


def locate(keyed: Sequence[tuple[str, str]], text: str) -> tuple[Sentence, ...]:
    """Find recorded sentences in their text, in order.

    Args:
        keyed: key and text of each sentence.
        text: the text that the sentences were split from.

    Returns:
        The sentences with their offsets. A sentence that is not found after the one before it
        keeps its key and text and has no offsets: recorded sentences are used, not corrected.
    """
    sentences: list[Sentence] = []
    cursor = 0
    for key, sentence in keyed:
        start = text.find(sentence, cursor)
        if start < 0:
            sentences.append(Sentence(key, sentence))
            continue
        cursor = start + len(sentence)
        sentences.append(Sentence(key, sentence, start, cursor))
    return tuple(sentences)
