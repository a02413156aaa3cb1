"""Labels as marks on sentences: what is kept of one side's labels, and their comparison.

A row is compared only if both sides labelled the same sentences (keys and texts), since labels of
different sentences cannot be compared key by key.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

from rag_eval_integrations.agreement._side import Numbers, Rows
from rag_eval_integrations.records import Evaluation

KINDS = ("relevant", "utilized", "supporting", "supported")
"""Kinds of keys whose counts are kept; those of unsupported ones follow from supported ones."""
MILLION = 1_000_000
"""Steps of the probabilities of the judges of this library, which have six digits."""
_NO_MILLIONTHS = 0xFFFFFFFF
_NO_FLOAT = -1.0


class SupportLike(Protocol):
    """What is read of a `SentenceSupport`."""

    @property
    def response_sentence_key(self) -> str: ...
    @property
    def supporting_sentence_keys(self) -> Sequence[str]: ...
    @property
    def fully_supported(self) -> bool | None: ...


class LabelsLike(Protocol):
    """What is read of `Labels`."""

    @property
    def all_relevant_sentence_keys(self) -> Sequence[str]: ...
    @property
    def all_utilized_sentence_keys(self) -> Sequence[str]: ...
    @property
    def sentence_support_information(self) -> Sequence[SupportLike]: ...
    @property
    def relevant_probabilities(self) -> Mapping[str, float] | None: ...
    @property
    def utilized_probabilities(self) -> Mapping[str, float] | None: ...
    @property
    def supported_probabilities(self) -> Mapping[str, float] | None: ...


class SentencesLike(Protocol):
    """What is read of `Sentences`: key, text and offsets of each."""

    @property
    def documents(self) -> Sequence[tuple[str, str, Any, Any]]: ...
    @property
    def response(self) -> Sequence[tuple[str, str, Any, Any]]: ...


class Marks(NamedTuple):
    """What a side's labels say of each sentence; bit i of a number stands for sentence i."""

    documents: bytes
    """Digest of keys and texts of the document sentences."""
    response: bytes
    sizes: tuple[int, int]
    """Numbers of document sentences and of response sentences."""
    relevant: int
    utilized: int
    support: array[int]
    """Pairs of a response and a document sentence: place in the response, times the number of
    document sentences, plus place in the documents."""
    full: int
    unlabelled: int
    probabilities: tuple[Probabilities | None, Probabilities | None, Probabilities | None]
    """Relevant, utilized, supported; None where the judge gives none."""


def packed(marks: Marks) -> bytes:
    """Pack marks that wait for the other side's into a third of their memory."""
    probabilities = [
        None if one is None else (one.typecode, one.tobytes()) for one in marks.probabilities
    ]
    return marshal.dumps(
        (*marks[:5], marks.support.tobytes(), *marks[6:8], probabilities),
    )


def unpacked(content: bytes) -> Marks:
    """Unpack marks, in the process that packed them."""
    documents, response, sizes, relevant, utilized, support, full, unlabelled, of = marshal.loads(
        content
    )
    held: list[Any] = [None if one is None else array(*one) for one in of]
    return Marks(
        documents, response, sizes, relevant, utilized, array("Q", support), full, unlabelled,
        (held[0], held[1], held[2]),
    )  # fmt: skip


Probabilities: TypeAlias = "array[int] | array[float]"
"""One per sentence: in millionths if all of them are such, which takes half the memory."""


def marks_of(evaluation: Evaluation) -> Marks | None:
    """Reduce an evaluation's labels to marks; None without labels."""
    if evaluation.labels is None:
        return None
    return marks_from(evaluation.labels, evaluation.sentences)


def marks_from(labels: LabelsLike, sentences: SentencesLike) -> Marks:
    """Reduce labels to marks on the sentences."""
    documents = [sentence[0] for sentence in sentences.documents]
    response = [sentence[0] for sentence in sentences.response]
    entries = labels.sentence_support_information
    said = {entry.response_sentence_key: entry.fully_supported for entry in entries}
    verdicts = [said.get(key) for key in response]
    bits = {key: 1 << at for at, key in enumerate(documents)}
    if len(bits) < len(documents):  # a key that occurs twice
        bits = {key: 0 for key in documents}
        for at, key in enumerate(documents):
            bits[key] |= 1 << at
    return Marks(
        _digest(sentences.documents),
        _digest(sentences.response),
        (len(documents), len(response)),
        sum([bits.get(key, 0) for key in set(labels.all_relevant_sentence_keys)]),
        sum([bits.get(key, 0) for key in set(labels.all_utilized_sentence_keys)]),
        _support(entries, documents, response),
        _bits([verdict is True for verdict in verdicts]),
        _bits([verdict is None for verdict in verdicts]),
        (
            _packed(labels.relevant_probabilities, documents),
            _packed(labels.utilized_probabilities, documents),
            _packed(labels.supported_probabilities, response),
        ),
    )


def _digest(sentences: Sequence[tuple[str, str, Any, Any]]) -> bytes:
    # Offsets may differ, since a recorded sentence need not be found in its text.
    keys, texts = [one[0] for one in sentences], [one[1] for one in sentences]
    lengths = [*map(len, keys), *map(len, texts)]
    content = f"{lengths}{''.join(keys)}{''.join(texts)}"
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _bits(marked: Iterable[bool]) -> int:
    return sum([1 << at for at, one in enumerate(marked) if one])


def _support(
    entries: Iterable[SupportLike], documents: Sequence[str], response: Sequence[str]
) -> array[int]:
    # Special words such as `general`, and keys of sentences that do not exist, are not evidence.
    known = {key: at for at, key in enumerate(response)}
    supporting = {key: at for at, key in enumerate(documents)}
    return array(
        "Q",
        {
            known[entry.response_sentence_key] * len(documents) + supporting[key]
            for entry in entries
            if entry.response_sentence_key in known
            for key in entry.supporting_sentence_keys
            if key in supporting
        },
    )


def _packed(probabilities: Mapping[str, float] | None, keys: Sequence[str]) -> Probabilities | None:
    if probabilities is None:
        return None
    found = [probabilities.get(key) for key in keys]
    known = [p for p in found if p is not None]
    millionths = [round(p * MILLION) for p in known]
    if [whole / MILLION for whole in millionths] == known:
        if len(known) < len(found):
            of = iter(millionths)
            return array("I", [_NO_MILLIONTHS if p is None else next(of) for p in found])
        return array("I", millionths)
    return array("d", [_NO_FLOAT if p is None else p for p in found])


class Counted(NamedTuple):
    """Places of two yes/no columns of a row: `tp` is yes in both, `fp` is yes in the first only."""

    tp: int
    fp: int
    fn: int
    tn: int


class Items:
    """Every sentence of one kind that has a probability, row by row."""

    def __init__(self) -> None:
        self.ends = array("Q")
        """Of each row, the number of items up to and with it."""
        self.positive = bytearray()
        self.probabilities: Probabilities = array("I")
        """In millionths, until one of them is not."""

    @property
    def in_millionths(self) -> bool:
        """Whether all probabilities are whole millionths."""
        return self.probabilities.typecode == "I"

    def add(self, found: Probabilities | None, among: Collection[int], positive: int) -> None:
        """Take up a row: the sentences at the places *among*; bit i tells if i is positive."""
        if found is not None:
            whole = found.typecode == "I"
            if self.in_millionths and not whole:
                self.probabilities = array("d", [one / MILLION for one in self.probabilities])
            missing = _NO_MILLIONTHS if whole else _NO_FLOAT
            known = [at for at in among if found[at] != missing]
            values: Sequence[float] = [found[at] for at in known]
            if whole and not self.in_millionths:
                values = [one / MILLION for one in values]
            self.probabilities.extend(values)  # type: ignore[arg-type]  # whole numbers to such
            self.positive.extend([positive >> at & 1 for at in known])
        self.ends.append(len(self.positive))

    def of(self, row: int) -> range:
        """Return the places of a row's items."""
        return range(self.ends[row - 1] if row else 0, self.ends[row])

    def columns(self, rows: Rows) -> tuple[Numbers, list[bool], array[int]]:
        """List the probability of each item, whether it is positive, and its place in `rows`."""
        found = self.probabilities[:0]
        positive: list[bool] = []
        at = array("q")
        for place, row in enumerate(rows):
            own = self.of(row)
            found.extend(self.probabilities[own.start : own.stop])  # type: ignore[arg-type]
            positive.extend(map(bool, self.positive[own.start : own.stop]))
            at.extend([place] * len(own))
        steps = MILLION if self.in_millionths else 1
        return array("d", [one / steps for one in found]), positive, at

    def arrays(self, numpy: Any, rows: Rows) -> tuple[Any, Any, Any]:
        """Return the columns as arrays of numpy; probabilities may be whole millionths."""
        ends = numpy.frombuffer(self.ends, "u8").astype("i8")
        taken = numpy.asarray(rows, "i8")
        starts = numpy.where(taken, ends[taken - 1], 0)
        counts = ends[taken] - starts
        before = numpy.cumsum(counts) - counts
        small = "i4" if len(self.positive) < 1 << 31 else "i8"
        places = numpy.repeat((starts - before).astype(small), counts)
        places += numpy.arange(len(places), dtype=small)
        kind = "u4" if self.in_millionths else "f8"
        return (
            numpy.frombuffer(self.probabilities, kind)[places],
            numpy.frombuffer(self.positive, "u1")[places],
            numpy.repeat(numpy.arange(len(taken), dtype="i4"), counts),
        )


class Keys:
    """The comparison of both sides' labels, row by row."""

    def __init__(self) -> None:
        self.same = bytearray()
        """Of each row: 0, or 1 if the document sentences are the same on both sides, or 2 if those
        of the response are, too."""
        self.counts: Mapping[str, tuple[array[int], ...]] = {
            kind: tuple(array("Q") for _ in Counted._fields) for kind in KINDS
        }
        self.unlabelled = array("Q")
        self.items: Mapping[str, Items] = {kind: Items() for kind in KINDS if kind != "supporting"}
        self.without_verdict = Items()
        """Sentences with a probability of support, but without a verdict of the same judge."""

    def add(self, predicted: Marks | None, gold: Marks | None) -> None:
        """Compare the labels of a row."""
        same = 0
        if predicted is not None and gold is not None and predicted.documents == gold.documents:
            same = 2 if predicted.response == gold.response else 1
        self.same.append(same)
        nothing = Counted(0, 0, 0, 0)
        counted = dict.fromkeys(KINDS, nothing)
        unlabelled = 0
        documents: Collection[int] = ()
        response: Collection[int] = ()
        left: Collection[int] = ()
        if same and predicted is not None and gold is not None:
            documents = range(gold.sizes[0])
            everything = (1 << gold.sizes[0]) - 1
            counted["relevant"] = _counted(predicted.relevant, gold.relevant, everything)
            counted["utilized"] = _counted(predicted.utilized, gold.utilized, everything)
        if same == 2 and predicted is not None and gold is not None:
            without = predicted.unlabelled | gold.unlabelled
            unlabelled = without.bit_count()
            everything = ((1 << gold.sizes[1]) - 1) & ~without
            response = [at for at in range(gold.sizes[1]) if everything >> at & 1]
            only = predicted.unlabelled & ~gold.unlabelled
            left = [at for at in range(gold.sizes[1]) if only >> at & 1]
            counted["supported"] = _counted(predicted.full, gold.full, everything)
            counted["supporting"] = _supporting(predicted, gold)
        for kind, of in counted.items():
            for column, count in zip(self.counts[kind], of, strict=True):
                column.append(count)
        self.unlabelled.append(unlabelled)
        found = (None, None, None) if predicted is None else predicted.probabilities
        positive = (0, 0, 0) if gold is None else (gold.relevant, gold.utilized, gold.full)
        among = (documents, documents, response)
        self.without_verdict.add(found[2], left, positive[2])
        columns = zip(self.items.values(), found, among, positive, strict=True)
        for items, probabilities, places, bits in columns:
            items.add(probabilities, places, bits)


def _counted(predicted: int, gold: int, everything: int) -> Counted:
    predicted, gold = predicted & everything, gold & everything
    both = (predicted & gold).bit_count()
    return Counted(
        both,
        predicted.bit_count() - both,
        gold.bit_count() - both,
        everything.bit_count() - (predicted | gold).bit_count(),
    )


def _supporting(predicted: Marks, gold: Marks) -> Counted:
    ours, theirs = set(predicted.support), set(gold.support)
    return Counted(
        len(ours & theirs),
        len(ours - theirs),
        len(theirs - ours),
        gold.sizes[0] * gold.sizes[1] - len(ours | theirs),
    )
