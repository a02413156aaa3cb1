"""Agreement sentence by sentence: relevant, utilized, supporting, supported and unsupported keys.

A row is compared only if both sides labelled the same sentences (keys and texts), since labels of
different sentences cannot be compared key by key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rag_eval_integrations.agreement import _resampled as resampled
from rag_eval_integrations.agreement._resampled import Block, Blocks
from rag_eval_integrations.agreement._statistics import Counts
from rag_eval_integrations.agreement.matching import Pair
from rag_eval_integrations.records import Labels, Sentence


class LabelledPair(NamedTuple):
    """One call that both sides labelled with the same document sentences."""

    row: int
    """Position of the pair in its group."""
    predicted: Labels
    gold: Labels
    documents: Sequence[str]
    """Keys of the document sentences."""
    response: Sequence[str] | None
    """Keys of the response sentences; None when the sides split the response differently."""


@dataclass
class _Items:
    """The data of one kind of key: counts per row, and every item that has a probability."""

    counts: dict[int, Counts] = field(default_factory=dict)
    probabilities: list[float] = field(default_factory=list)
    positive: list[bool] = field(default_factory=list)
    at: list[int] = field(default_factory=list)

    def add(
        self,
        row: int,
        keys: Sequence[str],
        predicted: Callable[[str], bool],
        gold: Callable[[str], bool],
        probabilities: Mapping[str, float] | None,
    ) -> None:
        answers = [gold(key) for key in keys]
        self.counts[row] = Counts.of([predicted(key) for key in keys], answers)
        for key, answer in zip(keys, answers, strict=True):
            probability = None if probabilities is None else probabilities.get(key)
            if probability is not None:
                self.probabilities.append(probability)
                self.positive.append(answer)
                self.at.append(row)

    def block(self, size: int, n: Mapping[str, int]) -> Block:
        statistics = resampled.of_counts(self.counts, size, "f1", "precision", "recall", "kappa")
        if not self.at:
            return Block(n, statistics)
        auroc = resampled.clustered_auroc(self.probabilities, self.positive, self.at, size)
        # Reported, because a judge need not give probabilities for every row.
        return Block({**n, "auroc_n": auroc.rows}, {**statistics, "auroc": auroc})


def key_blocks(pairs: Sequence[Pair]) -> tuple[Blocks, int]:
    """Compute the statistics of all kinds of keys, and count the rows that cannot be compared.

    Each block is micro-averaged: its counts are summed over the sentences of all rows. `n` is the
    number of rows.
    """
    rows = [
        labelled for row, pair in enumerate(pairs) if (labelled := on_same_sentences(row, pair))
    ]
    size = len(pairs)
    blocks: Blocks = {
        ("keys", "relevant"): _of_documents(
            rows,
            size,
            lambda labels: labels.all_relevant_sentence_keys,
            lambda labels: labels.relevant_probabilities,
        ),
        ("keys", "utilized"): _of_documents(
            rows,
            size,
            lambda labels: labels.all_utilized_sentence_keys,
            lambda labels: labels.utilized_probabilities,
        ),
        ("keys", "supporting"): _supporting(rows, size),
        ("keys", "supported"): _response(rows, size, _supported_keys, lambda p: p),
        ("keys", "unsupported"): _response(rows, size, _unsupported_keys, lambda p: 1 - p),
    }
    return blocks, size - len(rows)


def on_same_sentences(row: int, pair: Pair) -> LabelledPair | None:
    """Pair the labels of both sides; None when they labelled different sentences."""
    predicted, gold = pair.predicted, pair.gold
    if predicted.labels is None or gold.labels is None:
        return None
    documents = _same_keys(predicted.sentences.documents, gold.sentences.documents)
    if documents is None:
        return None
    response = _same_keys(predicted.sentences.response, gold.sentences.response)
    return LabelledPair(row, predicted.labels, gold.labels, documents, response)


def _same_keys(ours: Sequence[Sentence], theirs: Sequence[Sentence]) -> list[str] | None:
    # Offsets may differ, since a recorded sentence need not be found in its text.
    if [(s.key, s.text) for s in ours] != [(s.key, s.text) for s in theirs]:
        return None
    return [sentence.key for sentence in ours]


def _of_documents(
    rows: Sequence[LabelledPair],
    size: int,
    keys_of: Callable[[Labels], Sequence[str]],
    probabilities_of: Callable[[Labels], Mapping[str, float] | None],
) -> Block:
    """Compare which document sentences each side lists."""
    items = _Items()
    for item in rows:
        predicted, gold = frozenset(keys_of(item.predicted)), frozenset(keys_of(item.gold))
        probabilities = probabilities_of(item.predicted)
        items.add(
            item.row, item.documents, predicted.__contains__, gold.__contains__, probabilities
        )
    return items.block(size, {"n": len(rows)})


def _supporting(rows: Sequence[LabelledPair], size: int) -> Block:
    """Compare the pairs of a response sentence and a document sentence that supports it."""
    counts = {}
    for item in rows:
        if item.response is None:
            continue
        predicted = _support_pairs(item.predicted, item.response, item.documents)
        gold = _support_pairs(item.gold, item.response, item.documents)
        either = len(predicted | gold)
        counts[item.row] = Counts(
            tp=len(predicted & gold),
            fp=len(predicted - gold),
            fn=len(gold - predicted),
            tn=len(item.response) * len(item.documents) - either,
        )
    return _Items(counts).block(size, {"n": len(counts)})


def _support_pairs(
    labels: Labels, response: Sequence[str], documents: Sequence[str]
) -> set[tuple[str, str]]:
    # Special words such as `general`, and keys of sentences that do not exist, are not evidence.
    known, supporting = set(response), set(documents)
    return {
        (entry.response_sentence_key, key)
        for entry in labels.sentence_support_information
        if entry.response_sentence_key in known
        for key in entry.supporting_sentence_keys
        if key in supporting
    }


def _response(
    rows: Sequence[LabelledPair],
    size: int,
    keys_of: Callable[[Labels, Sequence[str]], frozenset[str]],
    probability_of: Callable[[float], float],
) -> Block:
    """Compare which response sentences each side calls fully supported, or not.

    A sentence that either side left unlabelled has no verdict to compare. It is counted as
    `unlabelled`, and not as unsupported.
    """
    items = _Items()
    unlabelled = 0
    for item in rows:
        if item.response is None:
            continue
        keys = [
            key
            for key in item.response
            if "unlabelled" not in (item.predicted.support(key), item.gold.support(key))
        ]
        unlabelled += len(item.response) - len(keys)
        supported = item.predicted.supported_probabilities
        items.add(
            item.row,
            keys,
            keys_of(item.predicted, keys).__contains__,
            keys_of(item.gold, keys).__contains__,
            None if supported is None else {key: probability_of(p) for key, p in supported.items()},
        )
    return items.block(size, {"n": len(items.counts), "unlabelled": unlabelled})


def _supported_keys(labels: Labels, keys: Sequence[str]) -> frozenset[str]:
    return frozenset(keys) - _unsupported_keys(labels, keys)


def _unsupported_keys(labels: Labels, keys: Sequence[str]) -> frozenset[str]:
    return frozenset(key for key in keys if labels.support(key) != "full")
