"""Labels as marks on sentences: what is kept of one side's labels, and their comparison.

A row is compared only if both sides labelled the same sentences (keys and texts), since labels of
different sentences cannot be compared key by key.
"""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import truediv
from typing import Any, NamedTuple, TypeAlias

from rag_eval_integrations.agreement._side import Numbers, Rows
from rag_eval_integrations.records import Evaluation

KINDS = ("relevant", "utilized", "supporting", "supported")
"""Kinds of keys whose counts are kept; those of unsupported ones follow from supported ones."""
MILLION = 1_000_000
"""Steps of the probabilities of the judges of this library, which have six digits."""
_TIMES = float(MILLION).__mul__
_NO_MILLIONTHS = 0xFFFFFFFF
_NO_FLOAT = -1.0


Sentence = tuple[str, str, Any, Any]
"""Key, text and offsets."""
Support = tuple[str, Sequence[str], "bool | None"]
"""Key of a response sentence, keys of its evidence, and whether it is fully supported."""
Shares = Mapping[str, float]
"""Probability of each sentence, by its key."""


class Marks(NamedTuple):
    """What a side's labels say of each sentence; bit i of a number stands for sentence i."""

    documents: int
    """Hash of keys and texts of the document sentences, good within this process."""
    response: int
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
    labels, sentences = evaluation.labels, evaluation.sentences
    if labels is None:
        return None
    return marks_from(
        labels.all_relevant_sentence_keys,
        labels.all_utilized_sentence_keys,
        [
            (one.response_sentence_key, one.supporting_sentence_keys, one.fully_supported)
            for one in labels.sentence_support_information
        ],
        (
            labels.relevant_probabilities,
            labels.utilized_probabilities,
            labels.supported_probabilities,
        ),
        sentences.documents,
        sentences.response,
    )


def marks_from(
    relevant: Iterable[str],
    utilized: Iterable[str],
    supports: Sequence[Support],
    probabilities: tuple[Shares | None, Shares | None, Shares | None],
    documents: Sequence[Sentence],
    response: Sequence[Sentence],
) -> Marks:
    """Reduce labels to marks on the sentences."""
    keys, answers = [one[0] for one in documents], [one[0] for one in response]
    places = {key: at for at, key in enumerate(keys)}
    if len(places) == len(keys):
        bits = [
            sum([1 << places[key] for key in set(found) if key in places])
            for found in (relevant, utilized)
        ]
    else:  # a key that occurs twice
        bits = [
            sum([1 << at for at, key in enumerate(keys) if key in known])
            for known in (set(relevant), set(utilized))
        ]
    verdicts = {key: full for key, _, full in supports}
    full = unlabelled = 0
    for at, key in enumerate(answers):
        verdict = verdicts.get(key)
        if verdict is None:
            unlabelled |= 1 << at
        elif verdict:
            full |= 1 << at
    ofs = zip(probabilities, (keys, keys, answers), strict=True)
    shares = [None if found is None else _packed(found, of) for found, of in ofs]
    return Marks(
        # Offsets may differ, since a recorded sentence need not be found in its text.
        hash((tuple(keys), tuple([one[1] for one in documents]))),
        hash((tuple(answers), tuple([one[1] for one in response]))),
        (len(keys), len(answers)),
        bits[0],
        bits[1],
        _support(supports, places, answers),
        full,
        unlabelled,
        (shares[0], shares[1], shares[2]),
    )


def _support(
    supports: Iterable[Support], documents: Mapping[str, int], response: Sequence[str]
) -> array[int]:
    # Special words such as `general`, and keys of sentences that do not exist, are not evidence.
    known = {key: at * len(documents) for at, key in enumerate(response)}
    found = {
        known[answer] + documents[key]
        for answer, keys, _ in supports
        if answer in known
        for key in keys
        if key in documents
    }
    return array("Q", found)


def _packed(probabilities: Shares, keys: Sequence[str]) -> Probabilities:
    known: list[float] = list(probabilities.values())
    whole = list(probabilities) == keys
    if not whole:
        found = [probabilities.get(key) for key in keys]
        known = [p for p in found if p is not None]
    millionths = list(map(round, map(_TIMES, known)))
    if list(map(truediv, millionths, repeat(MILLION))) == known:
        if not whole:
            of = iter(millionths)
            return array("I", [_NO_MILLIONTHS if p is None else next(of) for p in found])
        return array("I", millionths)
    return array("d", known if whole else [_NO_FLOAT if p is None else p for p in found])


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

    def add(self, found: Probabilities | None, among: Sequence[int], positive: int) -> None:
        """Take up a row: the sentences at the places *among*; bit i tells if i is positive."""
        if found is not None:
            whole = found.typecode == "I"
            if self.in_millionths and not whole:
                self.probabilities = array("d", [one / MILLION for one in self.probabilities])
            missing = _NO_MILLIONTHS if whole else _NO_FLOAT
            if len(among) < len(found) or missing in found:
                among = [at for at in among if found[at] != missing]
                found = array(found.typecode, [found[at] for at in among])
            if whole and not self.in_millionths:
                found = array("d", [one / MILLION for one in found])
            self.probabilities.extend(found)  # type: ignore[arg-type]  # of the same type
            self.positive.extend([positive >> at & 1 for at in among])
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
        self.counts: Mapping[str, array[int]] = {
            kind: array("Q" if kind == "supporting" else "I") for kind in KINDS
        }
        """The numbers of a `Counted` of each row, one after the other."""
        self.unlabelled = array("Q")
        self.items: Mapping[str, Items] = {kind: Items() for kind in KINDS if kind != "supporting"}
        self.without_verdict = Items()
        """Sentences with a probability of support, but without a verdict of the same judge."""

    def add(self, predicted: Marks | None, gold: Marks | None) -> None:
        """Compare the labels of a row."""
        counted = dict.fromkeys(KINDS, _NOTHING)
        same = unlabelled = 0
        documents: Sequence[int] = ()
        response: Sequence[int] = ()
        left: Sequence[int] = ()
        if predicted is not None and gold is not None and predicted.documents == gold.documents:
            same = 2 if predicted.response == gold.response else 1
            documents = range(gold.sizes[0])
            everything = (1 << gold.sizes[0]) - 1
            counted["relevant"] = _counted(predicted.relevant, gold.relevant, everything)
            counted["utilized"] = _counted(predicted.utilized, gold.utilized, everything)
            if same == 2:
                response = range(gold.sizes[1])
                everything = (1 << gold.sizes[1]) - 1
                without = predicted.unlabelled | gold.unlabelled
                if without:
                    unlabelled = without.bit_count()
                    everything &= ~without
                    only = predicted.unlabelled & ~gold.unlabelled
                    left = [at for at in response if only >> at & 1]
                    response = [at for at in response if everything >> at & 1]
                counted["supported"] = _counted(predicted.full, gold.full, everything)
                counted["supporting"] = _supporting(predicted, gold)
        self.same.append(same)
        for kind, of in counted.items():
            self.counts[kind].extend(of)
        self.unlabelled.append(unlabelled)
        found = (None, None, None) if predicted is None else predicted.probabilities
        positive = (0, 0, 0) if gold is None else (gold.relevant, gold.utilized, gold.full)
        self.without_verdict.add(found[2], left, positive[2])
        self.items["relevant"].add(found[0], documents, positive[0])
        self.items["utilized"].add(found[1], documents, positive[1])
        self.items["supported"].add(found[2], response, positive[2])


_NOTHING = Counted(0, 0, 0, 0)


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
