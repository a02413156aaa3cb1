"""A table of matched rows: both sides' scores in columns, and their labels sentence by sentence.

evaluations ─▶ rows without texts ─▶ joined to those of gold, labels compared ─▶ columns

The labels of a row are compared only if both sides labelled the same sentences (keys and texts),
since labels of different sentences cannot be compared key by key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from rag_eval_integrations.agreement._statistics import Array, Places, cells_of
from rag_eval_integrations.agreement.matching import Gold, Joined, Pair, joined
from rag_eval_integrations.judges.cascade import CASCADE_FLAGS
from rag_eval_integrations.records import (
    By,
    Evaluation,
    JudgeInfo,
    Labels,
    Score,
    Sentence,
    Sentences,
    Usage,
)
from rag_eval_integrations.records.labels import SUPPORTING, UTILIZED

DOCUMENTS, RESPONSE = 1, 2


class LabelMarks(NamedTuple):
    """One side's labels as boolean arrays, one entry per sentence."""

    sentences: tuple[int, int]
    """Hashes of keys and texts of the document sentences, and of those of the response; good within
    this process."""
    relevant: Array
    known: Array
    """Whether it was asked if a document sentence is relevant, as it always is of a judge."""
    utilized: Array
    full: Array
    """Whether each response sentence is fully supported."""
    labelled: Array
    """Whether it has a verdict."""
    empty: bool
    """Whether nothing is labelled relevant, or nothing utilized: an empty case of the formulas."""
    support: frozenset[int]
    """Pairs of a response and a document sentence, numbered."""
    unasked: frozenset[str]
    """Kinds of labels that people were not asked for."""
    probabilities: Mapping[str, Array]
    """Of each sentence, by `relevant`, `utilized` and `supported`; NaN where the judge gives none,
    and no array where it gives none at all."""
    lengths: tuple[Array, Array]
    """Characters of the document sentences, and of those of the response."""

    @classmethod
    def of(cls, labels: Labels, sentences: Sentences) -> LabelMarks:
        """Mark the sentences of an evaluation."""
        documents = [sentence.key for sentence in sentences.documents]
        response = [sentence.key for sentence in sentences.claims]
        supports = labels.sentence_support_information
        verdicts = {support.response_sentence_key: support.fully_supported for support in supports}
        # Special words such as `general`, and keys of sentences that do not exist, are no evidence.
        answers = {key: row * len(documents) for row, key in enumerate(response)}
        sources = {key: column for column, key in enumerate(documents)}
        given = {
            "relevant": (labels.relevant_probabilities, documents),
            "utilized": (labels.utilized_probabilities, documents),
            "supported": (labels.supported_probabilities, response),
        }
        return cls(
            (_hash_of(sentences.documents), _hash_of(sentences.claims)),
            _marked(documents, labels.all_relevant_sentence_keys),
            ~_marked(documents, labels.unasked_keys),
            _marked(documents, labels.all_utilized_sentence_keys),
            np.array([verdicts.get(key) is True for key in response], bool),
            np.array([verdicts.get(key) is not None for key in response], bool),
            not (labels.all_relevant_sentence_keys and labels.all_utilized_sentence_keys),
            frozenset(
                answers[support.response_sentence_key] + sources[key]
                for support in supports
                if support.response_sentence_key in answers
                for key in support.supporting_sentence_keys
                if key in sources
            ),
            frozenset(labels.unasked_keys) & {UTILIZED, SUPPORTING},
            {
                kind: _in_order(chances, keys)
                for kind, (chances, keys) in given.items()
                if chances is not None
            },
            (_lengths_of(sentences.documents), _lengths_of(sentences.claims)),
        )


def _marked(keys: Sequence[str], chosen: Iterable[str]) -> Array:
    """Mark the chosen keys: a boolean per key."""
    known = set(chosen)
    return np.array([key in known for key in keys], bool)


def _in_order(chances: Mapping[str, float], keys: Sequence[str]) -> Array:
    """Return the probability of each key, NaN where there is none."""
    return np.array([chances.get(key) for key in keys], "f8")


def _hash_of(sentences: Sequence[Sentence]) -> int:
    """Hash keys and texts of sentences, to tell whether two rows are split alike."""
    # Offsets may differ, since a recorded sentence need not be found in its text.
    return hash(tuple([(sentence.key, sentence.text) for sentence in sentences]))


def _lengths_of(sentences: Sequence[Sentence]) -> Array:
    """Count the characters of sentences."""
    return np.array([len(sentence.text) for sentence in sentences], "i4")


class KeyCounts(NamedTuple):
    """The comparison of both sides' labels of a row."""

    same: int = 0
    """0; `DOCUMENTS` if both sides have the same document sentences; `RESPONSE` if those of the
    response are the same, too."""
    unlabelled: int = 0
    counts: Mapping[str, Array] = {}
    """By kind, the numbers of sentences that are tp, fp, fn and tn."""
    items: Mapping[str, tuple[Array, Array]] = {}
    """By kind, the probability of each sentence that has one, and whether it is positive in gold.
    `no_verdict`: of support, where only the judge's verdict is missing. With ` length` behind the
    kind, the characters of each sentence that is counted."""

    @classmethod
    def of(cls, predicted: LabelMarks | None, gold: LabelMarks | None) -> KeyCounts:
        """Count how the keys of judge and gold agree, per kind of key.

        Empty where the documents were split differently; without the response's kinds where only
        the response was.
        """
        if predicted is None or gold is None or predicted.sentences[0] != gold.sentences[0]:
            return cls()
        known = predicted.known & gold.known
        marks = {"relevant": (gold.relevant, known), "utilized": (gold.utilized, ...)}
        counts = {
            "relevant": cells_of(predicted.relevant[known], gold.relevant[known]).sum(axis=1),
            "utilized": cells_of(predicted.utilized, gold.utilized).sum(axis=1),
        }
        both = np.zeros(0, bool)
        same = RESPONSE if predicted.sentences == gold.sentences else DOCUMENTS
        if same == RESPONSE:
            both = predicted.labelled & gold.labelled
            counts["supported"] = cells_of(predicted.full[both], gold.full[both]).sum(axis=1)
            shared, every = len(predicted.support & gold.support), len(both) * len(gold.relevant)
            ours, theirs = len(predicted.support) - shared, len(gold.support) - shared
            counts["supporting"] = np.array([shared, ours, theirs, every - shared - ours - theirs])
            marks["supported"] = gold.full, both
        items = {
            f"{kind} length": (predicted.lengths[kind == "supported"][among], positive[among])
            for kind, (positive, among) in marks.items()
        }
        if same == RESPONSE:
            marks["no_verdict"] = gold.full, ~predicted.labelled & gold.labelled
        for kind, (positive, among) in marks.items():
            chances = predicted.probabilities.get("supported" if kind == "no_verdict" else kind)
            if chances is not None:
                given = ~np.isnan(chances[among])
                items[kind] = chances[among][given], positive[among][given]
        for kind in predicted.unasked | gold.unasked:
            counts.pop(kind, None)
            items.pop(kind, None)
            items.pop(f"{kind} length", None)
        return cls(same, int(len(both) - both.sum()), counts, items)


class ScoreRow(NamedTuple):
    """The numbers of a score, and who made it."""

    value: float | None
    probability: float | None
    estimate: float | None
    raw: float | None
    scale: tuple[float, float] | None
    method: str | None
    estimator: str | None
    """Method of its estimate; None where it has none."""
    by: By

    @classmethod
    def of(cls, score: Score) -> ScoreRow:
        """Reduce a score to its numbers."""
        estimate = score.estimate
        return cls(
            score.value,
            score.probability,
            None if estimate is None else estimate.value,
            score.raw,
            score.scale,
            score.method,
            None if estimate is None else estimate.method,
            _interned(score.by),
        )


_interned: Callable[[Any], Any] = lru_cache(4096)(lambda record: record)
"""Intern equal records, of which there are few."""


class Row(NamedTuple):
    """An evaluation without texts that no figure rests on, with marks in place of its labels."""

    number: int
    """Line or row of its file, or place among pairs; 0 for neither."""
    id: str
    row_key: str
    question: str
    response: str | None
    scores: Mapping[str, ScoreRow]
    marks: LabelMarks | None
    words: float | None
    """P(adherent) by the embedded judge, beside a local model's."""
    judge: JudgeInfo
    fingerprint: str | None
    usage: Usage
    flags: tuple[str, ...]
    dataset: str | None
    human: float | None
    document: str | None
    system: str | None
    baselines: Mapping[str, float | None]

    @classmethod
    def of(cls, evaluation: Evaluation, gold: Gold | Pair | None = None, *, number: int = 0) -> Row:
        """Reduce an evaluation, and the gold row that it is part of."""
        own, about, labels = evaluation, gold or Gold(evaluation), evaluation.labels
        return cls(
            number,
            own.id,
            own.row_key,
            own.question,
            own.response,
            {name: ScoreRow.of(score) for name, score in own.scores.items()},
            None if labels is None else LabelMarks.of(labels, own.sentences),
            None if labels is None else labels.adherence_by_words(),
            _interned(own.judge),
            own.fingerprint,
            _interned(own.usage),
            own.flags,
            about.dataset,
            about.human,
            about.document,
            about.system,
            about.baselines,
        )

    @property
    def part(self) -> str | None:
        """Judge of a cascade that labelled; None outside of a cascade."""
        return next((flag for flag in CASCADE_FLAGS if flag in self.flags), None)


class Compared(NamedTuple):
    """The rows in which one score has a value on both sides."""

    name: str
    places: Places
    """Indices of the rows in their table."""
    predicted: Array
    gold: Array

    def some(self, chosen: Array) -> Compared:
        """Return the marked rows."""
        places = self.places._replace(rows=self.places.rows[chosen])
        return Compared(self.name, places, self.predicted[chosen], self.gold[chosen])


@dataclass(frozen=True)
class Table:
    """The matched rows of both sides, with their scores as columns."""

    predicted: Sequence[Row]
    gold: Sequence[Row]
    keys: Sequence[KeyCounts]
    """The comparison of both sides' labels, row by row."""

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[Row, Row]]) -> Table:
        """Compare rows that belong together."""
        rows = list(rows)
        keys = [KeyCounts.of(mine.marks, other.marks) for mine, other in rows]
        return cls([mine for mine, _ in rows], [other for _, other in rows], keys)

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> Table:
        """Make the table of pairs, in their order."""
        return cls.of_rows(
            (Row.of(pair.predicted, number=number), Row.of(pair.gold, pair))
            for number, pair in enumerate(pairs, 1)
        )

    @classmethod
    def joined(cls, predicted: Sequence[Row], gold: Sequence[Row]) -> tuple[Table, Joined]:
        """Join the rows of two files as `match` does."""
        partner, counts = joined(predicted, gold)
        return cls.of_rows((predicted[i], gold[k]) for i, k in partner.items()), counts

    def __len__(self) -> int:
        return len(self.predicted)

    def take(self, places: Sequence[int]) -> Table:
        """Return some rows, in this order."""
        return Table(
            [self.predicted[place] for place in places],
            [self.gold[place] for place in places],
            [self.keys[place] for place in places],
        )

    def ordered(self) -> Table:
        """Sort the rows, so that draws do not depend on the order of the files."""
        names = [(row.row_key, row.id) for row in self.predicted]
        return self.take(sorted(range(len(names)), key=names.__getitem__))

    def by_dataset(self) -> dict[str, Table]:
        """Part the rows by their data sets, in alphabetical order; some rows have none."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(self.gold):
            if row.dataset is not None:
                places.setdefault(row.dataset, []).append(place)
        return {name: self.take(places[name]) for name in sorted(places)}

    def names(self) -> list[str]:
        """List the names of scores that both sides have, in the order of the predicted rows."""
        gold = set(names_of(self.gold))
        return [name for name in names_of(self.predicted) if name in gold]

    def compared(self, name: str) -> Compared:
        """Return the rows in which a score has a value on both sides."""
        predicted, gold = (column(side, name) for side in (self.predicted, self.gold))
        known = ~(np.isnan(predicted) | np.isnan(gold))
        places = Places(np.flatnonzero(known), len(self))
        return Compared(name, places, predicted[known], gold[known])

    def humans(self) -> list[float | None]:
        """Return the rows' human ratings."""
        return [row.human for row in self.gold]

    def items(self, kind: str) -> tuple[Array, Array, Places]:
        """Return the items of a kind in columns: number, whether positive in gold, and row."""
        none = np.empty(0), np.empty(0, bool)
        rows = [row.items.get(kind, none) for row in self.keys]
        scores, positive = zip(none, *rows, strict=True)
        places = Places.of_groups([len(scores) for scores, _ in rows])
        return np.concatenate(scores), np.concatenate(positive), places


def names_of(rows: Iterable[Row]) -> list[str]:
    """List the names of the rows' scores, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row.scores))


def column(
    rows: Iterable[Row],
    name: str,
    number: Literal["value", "probability", "estimate", "raw"] = "value",
) -> Array:
    """Return one number of a score per row; NaN where there is none."""
    scores = (row.scores.get(name) for row in rows)
    return np.array([score and getattr(score, number) for score in scores], "f8")
