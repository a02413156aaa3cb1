"""Retrieval metrics: by gold ids (`Retrieval`), by labels (`LabelRetrieval`, `ContextRecall`)."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.metric import CallMetric, LabelMetric
from rag_eval_integrations.metrics.trace.formulas import (
    NOTHING_RETRIEVED,
    of_this_turn,
    support_evidence,
    supported_fraction,
)
from rag_eval_integrations.records import By, Document, Labelling, RagCall, Score, SentencizedCall
from rag_eval_integrations.records._json import MOST
from rag_eval_integrations.records.call import ONE_TEXT
from rag_eval_integrations.records.labels import UnscoredCode
from rag_eval_integrations.sentences import document_number

# --- Measures of a ranking with binary relevance, as trec_eval defines them
#
# `ranks` are the ranks, from 1 and ascending, of the relevant documents that were retrieved;
# `total` is the number of all relevant documents, retrieved or not, at least 1; `k`, at least 1,
# cuts the ranking. All results are in [0, 1], 1 is best. A ranking of fewer than k documents is
# as good as one that was filled up to k with irrelevant ones.
#
# Source: trec_eval's `success`, `P`, `recall`, `recip_rank`, `map_cut` and `ndcg_cut`; Järvelin
# and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002, for
# nDCG, with the discount log2(rank + 1).


def hit_rate(ranks: Sequence[int], total: int, k: int) -> float:
    """Tell whether any of the first k documents is relevant: 1.0 or 0.0."""
    return 1.0 if ranks and ranks[0] <= k else 0.0


def precision(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute the share of relevant ones in the first k; divides by k, however many there are."""
    return _within(ranks, k) / k


def recall(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute the share of the relevant documents that are among the first k."""
    return _within(ranks, k) / total


def reciprocal_rank(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute 1 / rank of the first relevant document; 0 if there is none among the first k."""
    return 1 / ranks[0] if ranks and ranks[0] <= k else 0.0


def average_precision(ranks: Sequence[int], total: int, k: int) -> float:
    """Sum the precision at the rank of each relevant one of the first k, and divide by `total`."""
    return math.fsum(hits / rank for hits, rank in enumerate(ranks, 1) if rank <= k) / total


def ndcg(ranks: Sequence[int], total: int, k: int) -> float:
    """Compute DCG / ideal DCG, both of the first k; a relevant document gains 1 / log2(rank + 1).

    The ideal ranking begins with all relevant documents.
    """
    return _dcg(rank for rank in ranks if rank <= k) / _dcg(range(1, min(total, k) + 1))


def _within(ranks: Sequence[int], k: int) -> int:
    """Count the ranks up to k."""
    return sum(rank <= k for rank in ranks)


def _dcg(ranks: Iterable[int]) -> float:
    """Return the discounted cumulative gain of relevant ranks, counted from 1."""
    return math.fsum(1 / math.log2(rank + 1) for rank in ranks)


_BY_NAME: dict[str, Callable[[Sequence[int], int, int], float]] = {
    "hit_rate": hit_rate,
    "precision": precision,
    "recall": recall,
    "mrr": reciprocal_rank,
    "map": average_precision,
    "ndcg": ndcg,
}

MEASURES = tuple(_BY_NAME)
"""The measures, in the order of their scores."""

Match = Literal["id", "text"]

_MOST_NAMED = 12  # a reason is read by a person
_PIECE = 256  # characters that are normalised at once


@dataclass(frozen=True)
class Retrieval(CallMetric):
    """Hit rate, precision, recall, MRR, MAP and nDCG at k, by the call's `relevant_ids`.

    A score per measure and k: `hit_rate@5`, `precision@5`, `recall@5`, `mrr@5`, `map@5`, `ndcg@5`.
    Each is in [0, 1], 1 is best, and is that of one call: the mean of `mrr@k` over the calls is the
    MRR, that of `map@k` the MAP. Relevance is binary. The definitions are trec_eval's: precision
    divides by k even if fewer documents were retrieved, and `map@k` by the number of all relevant
    documents. No judge is asked.

    The ranking is the order of `call.documents`, without those of earlier turns (`call.earlier`). A
    document that occurs again does not count: later ones move up, and k counts distinct documents.
    With no document retrieved all scores are 0.

    A score is unscored, never 0, if `relevant_ids` is None (`missing_param`) or empty
    (`no_relevant`), if one of the documents that it needs has nothing to be matched by
    (`missing_param`), or if a capture did not see what was retrieved (`no_context`).

    Source: trec_eval; see `docs/retrieval.md`.

    Raises:
        ConfigurationError: `k` is not a whole number from 1, or several distinct ones; `match` or
            `id_key` is not one of those below.
    """

    k: int | Sequence[int] = (1, 3, 5, 10)
    """Where the ranking is cut: one or more distinct whole numbers from 1."""
    match: Match = "id"
    """`id`: a document is relevant if its id, exactly, is one of `relevant_ids`. `text`: those are
    texts, and a document is relevant if its text is one of them but for case, white space and
    Unicode's compatibility forms (NFKC)."""
    id_key: str | None = None
    """The field of a document's metadata that holds its id, such as `source`: a string or a whole
    number. None for the document's own id."""
    names: tuple[str, ...] = field(init=False, repr=False)
    version = "1"

    def __post_init__(self) -> None:
        given: object = self.k
        cuts = (given,) if isinstance(given, int) else given
        if isinstance(cuts, str | bytes) or not isinstance(cuts, Sequence) or not cuts:
            raise ConfigurationError("k", self.k, "use one or more whole numbers from 1")
        for cut in cuts:
            if type(cut) is not int or not 1 <= cut <= MOST:
                raise ConfigurationError("k", self.k, "use whole numbers from 1")
        if len(set(cuts)) < len(cuts):
            raise ConfigurationError("k", self.k, "has a number twice")
        if self.match not in get_args(Match):
            raise ConfigurationError("match", self.match, f"use {' or '.join(get_args(Match))}")
        key: object = self.id_key
        if key is not None and not (isinstance(key, str) and key):
            raise ConfigurationError("id_key", self.id_key, "use the name of a field of metadata")
        if self.id_key is not None and self.match == "text":
            raise ConfigurationError("id_key", self.id_key, "leave it out: texts are matched")
        object.__setattr__(self, "k", tuple(cuts))
        names = tuple(f"{measure}@{cut}" for measure in MEASURES for cut in cuts)
        object.__setattr__(self, "names", names)

    @property
    def method(self) -> str:
        """What the scores are made by: `gold_ids`, `gold_ids:KEY` or `gold_texts`."""
        if self.match == "text":
            return "gold_texts"
        return "gold_ids" if self.id_key is None else f"gold_ids:{self.id_key}"

    def score(self, call: RagCall, by: By) -> tuple[Score, ...]:
        """Score one call.

        Args:
            call: the call, with its `relevant_ids`.
            by: provenance for the scores.

        Returns:
            One score per name in `names`, in order. `evidence` has `relevant_ranks` (from 1, of the
            first k), `found` (their ids; not for texts), `relevant` (the number of all relevant
            documents) and `retrieved` (the number of distinct documents, at most k).
        """
        if call.relevant_ids is None:
            return self.unscored("missing_param", "the call has no relevant_ids", by)
        gold = frozenset(self._gold_names(call.relevant_ids))
        if not gold:
            why = "relevant_ids names no document, so there is nothing to find"
            return self.unscored("no_relevant", why, by)
        if _is_unseen(call):
            return self.unscored("no_context", "the capture did not see what was retrieved", by)
        if _is_one_text(call):
            return self.unscored("missing_param", _ONE_TEXT, by)
        cuts = self.k if isinstance(self.k, tuple) else ()
        ranking = self._ranking(call, max(cuts))
        columns = [self._scores_at(ranking, gold, cut, by) for cut in cuts]
        return tuple([score for row in zip(*columns, strict=True) for score in row])

    def _scores_at(
        self, ranking: _Ranking, gold: frozenset[str], k: int, by: By
    ) -> Sequence[Score]:
        """Make the scores of all measures for the first k documents."""
        if ranking.why is not None and len(ranking.names) < k:
            fields: dict[str, Any] = {"status": "unscored", "unscored": "missing_param"}
            return [
                Score(name=f"{measure}@{k}", reason=ranking.why, by=by, **fields)
                for measure in MEASURES
            ]
        first = ranking.names[:k]
        ranks = [rank for rank, name in enumerate(first, 1) if name in gold]
        ids_found = {} if self.match == "text" else {"found": [first[rank - 1] for rank in ranks]}
        # Copies of one score take a fifth of the time. `value` is computed, a float in [0, 1].
        template = Score.model_construct(
            name="",
            status="scored",
            scale=(0.0, 1.0),
            method=self.method,
            by=by,
            reason=_reason(ranks, len(gold), len(first), k),
        )
        scores = []
        for measure, formula in _BY_NAME.items():
            value = formula(ranks, len(gold), k)
            evidence: dict[str, JsonValue] = {
                "relevant_ranks": [*ranks],
                **{name: [*ids] for name, ids in ids_found.items()},
                "relevant": len(gold),
                "retrieved": len(first),
            }
            own = {"name": f"{measure}@{k}", "value": value, "raw": value, "evidence": evidence}
            scores.append(template.model_copy(update=own))
        return scores

    def _gold_names(self, gold: Sequence[str]) -> Iterable[str]:
        """Return the ids or texts that the gold documents are matched by."""
        # A text of white space has nothing to be matched by.
        return gold if self.match == "id" else filter(None, map(_normalised, gold))

    def _ranking(self, call: RagCall, most: int) -> _Ranking:
        """Name the distinct documents of this turn up to the first that has no name."""
        names: dict[str, None] = {}
        for number, document in enumerate(call.documents):
            if number in call.earlier:
                continue
            if len(names) == most:
                break
            name = self._matching_name(document)
            if name is None:
                lacks = "id" if self.id_key is None else f"id as {self.id_key!r} in its metadata"
                return _Ranking(tuple(names), f"document {number} has no {lacks}")
            names.setdefault(name)
        return _Ranking(tuple(names), None)

    def _matching_name(self, document: Document) -> str | None:
        """Return the id, field or text that a document is matched by."""
        if self.match == "text":
            return _normalised(document.text)
        if self.id_key is None:
            return document.id or None
        name = document.metadata.get(self.id_key)
        if isinstance(name, int) and not isinstance(name, bool):
            return str(name)
        return name or None if isinstance(name, str) else None


class _Ranking(NamedTuple):
    """The names of the distinct documents, best first."""

    names: tuple[str, ...]
    why: str | None
    """Why it ends early; None if it is whole, or longer than any k."""


def _reason(ranks: Sequence[int], total: int, retrieved: int, k: int) -> str:
    """Say how many relevant documents stand at which ranks."""
    text = f"{len(ranks)} of {total} relevant documents in the first {k}{_at_ranks(ranks)}"
    return f"{text}; {retrieved} retrieved." if retrieved < k else f"{text}."


def _is_unseen(call: RagCall) -> bool:
    """Whether a turn has no documents because a capture saw none, not because none was found."""
    capture = call.capture
    if len(call.documents) > len(call.earlier) or capture is None:
        return False
    seen = capture.retrievers or (capture.documents_from != "none" and not call.earlier)
    return capture.status != "ok" or not seen


_ONE_TEXT = "the documents are one text, and cannot be told apart"


def _is_one_text(call: RagCall) -> bool:
    """Whether the call's document is several, joined to one text."""
    return any(document.metadata.get(ONE_TEXT) is True for document in call.documents)


def _normalised(text: str) -> str:
    """Normalise a text for matching: case, white space, compatibility forms."""
    words = text.split()
    if not text.isascii():
        words = " ".join(map(_composed, words)).split()  # some forms are made of white space
    return " ".join(words).casefold()


def _composed(word: str) -> str:
    """Return a word in Unicode's composed form (NFKC)."""
    # In pieces: Python takes quadratic time for a run of combining marks.
    pieces = (word[start : start + _PIECE] for start in range(0, len(word), _PIECE))
    return "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)


# --- From a judge's labels: `LabelRetrieval`, without gold, and `ContextRecall`


LABEL_RETRIEVAL_SCORES = ("document_precision", "reciprocal_rank", "label_ndcg")
"""Names of the scores of `LabelRetrieval`, in order."""


@dataclass(frozen=True)
class LabelRetrieval(LabelMetric):
    """Document precision, reciprocal rank and nDCG of a retrieval, from the judge's labels.

    For calls without gold ids. A document is relevant if the judge labelled at least one of its
    sentences relevant, so the scores are as good as the judge: `method` is `labels`. Documents that
    were not retrieved are unknown, so nothing here tells what the retriever missed.

    `document_precision` is the share of the retrieved documents that are relevant.
    `reciprocal_rank` is 1 / rank of the first relevant document, from 1, and 0 if none is relevant.
    `label_ndcg` compares the order with the best order of the same documents, with binary gains and
    the discount log2(rank + 1); if none is relevant, every order is as good, and it is unscored
    (`no_relevant`). A number of relevant sentences is no gain: it would favour long documents.

    Documents of earlier turns are left out. Each is in [0, 1], 1 is best. Without labels, such as
    for a call without documents, all are unscored for the judge's reason; and (`missing_param`)
    where the documents are one text.

    Source: trec_eval's `set_P`, `recip_rank` and `ndcg`, on the labelled documents alone.
    """

    names = LABEL_RETRIEVAL_SCORES
    version = "1"

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call from a judge's labelling.

        Args:
            call: the call with its keyed sentences; this turn's documents are the ranking, best
                first.
            labelling: the judge's labels; without labels, every score is unscored.
            by: provenance for the scores.

        Returns:
            One score per name in `names`, in order.
        """
        labels, earlier = labelling.labels, call.call.earlier
        numbers = [n for n in range(len(call.call.documents)) if n not in earlier]
        total, turn = len(numbers), " of this turn" if earlier else ""
        if labels is not None:
            call, labels = of_this_turn(call, labels)
        if labels is None or not total or (earlier and not call.documents):
            why = NOTHING_RETRIEVED if earlier else "the call has no documents"
            return self._without_labels(labelling, by, "no_context", why)
        if _is_one_text(call.call):
            return self.unscored("missing_param", _ONE_TEXT, by)
        relevant = {document_number(key) for key in labels.all_relevant_sentence_keys}
        ranks = [rank for rank, number in enumerate(numbers, 1) if number in relevant]
        evidence: dict[str, JsonValue] = {
            "relevant_ranks": list(ranks),
            "documents_without_relevant": [n for n in numbers if n not in relevant],
        }
        maker = _ScoreMaker(by, labelling.warnings, total, evidence)
        have = "has" if len(ranks) == 1 else "have"
        share = f"{len(ranks)} of {total} documents{turn} {have} a sentence"
        scores = [
            maker.score(
                "document_precision",
                len(ranks) / total,
                f"{share} labelled relevant{_at_ranks(ranks)}.",
            )
        ]
        if not ranks:
            none = "No document has a sentence labelled relevant"
            scores.append(maker.score("reciprocal_rank", 0.0, f"{none}."))
            why = f"{none}, so no order is better than another"
            return (*scores, maker.unscored("label_ndcg", "no_relevant", why))
        first = reciprocal_rank(ranks, len(ranks), total)
        scores.append(
            maker.score("reciprocal_rank", first, f"The first one is at rank {ranks[0]}.")
        )
        value = ndcg(ranks, len(ranks), total)
        order = "first" if ranks[-1] == len(ranks) else f"at ranks {_listed(ranks)} of {total}"
        reason = f"The documents labelled relevant are {order}."
        return (*scores, maker.score("label_ndcg", value, reason))


@dataclass(frozen=True)
class ContextRecall(LabelMetric):
    """The share of the reference answer's sentences that the documents support.

    The judge labels the reference in place of the response, by the same keyed labelling: one judge
    request per call, beside the one for the response if another metric needs that. A sentence
    counts if it is fully supported, as in `supported_fraction`. In [0, 1]; 1 is best, and means
    that the documents hold all that a perfect answer would say.

    Unscored without a `reference` (`missing_param`), without documents or a question (`no_context`,
    `no_question`), and if the judge did not label every sentence (`unlabelled_sentences`).

    Source: context recall as ragas defines it ("can each sentence of the reference be attributed to
    the retrieved context?"), with labels as in arXiv:2407.11005.
    """

    names = ("context_recall",)
    judged = "reference"
    version = "1"

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call from a judge's labelling of the reference.

        Args:
            call: the call with its keyed sentences; its response is the reference.
            labelling: the judge's labels; without labels, the score is unscored.
            by: provenance for the score.
        """
        if not call.response:
            what = "no reference" if call.call.response is None else "an empty reference"
            return self.unscored("missing_param", f"the call has {what}", by)
        labels = labelling.labels
        if labels is None:
            return self._without_labels(labelling, by)
        supports = [labels.support(sentence.key) for sentence in call.response]
        # The labels of the reference, which no other field holds.
        evidence: dict[str, JsonValue] = {"reference": support_evidence(labels, call.response)}
        maker = _ScoreMaker(by, labelling.warnings, len(supports), evidence)
        value = supported_fraction(supports)
        if value is None:
            missing = [s.key for s in call.response if labels.support(s.key) == "unlabelled"]
            why = f"the judge did not label {_listed(missing)} of the reference"
            return (maker.unscored(self.names[0], "unlabelled_sentences", why),)
        partly = supports.count("partial")
        reason = f"{supports.count('full')} of {len(supports)} sentences of the reference "
        reason += f"fully supported by the documents, {partly} partially."
        return (maker.score(self.names[0], value, reason),)


@dataclass(frozen=True)
class _ScoreMaker:
    """Maker of the scores of one call, with the evidence that they share."""

    by: By
    warnings: tuple[str, ...]
    n: int
    evidence: Mapping[str, JsonValue]

    def score(self, name: str, value: float, reason: str) -> Score:
        return self._construct(
            name=name,
            status="scored",
            value=value,
            raw=value,
            scale=(0.0, 1.0),
            method="labels",
            n=self.n,
            reason=reason,
        )

    def unscored(self, name: str, code: UnscoredCode, reason: str) -> Score:
        return self._construct(name=name, status="unscored", unscored=code, reason=reason)

    def _construct(self, **fields: Any) -> Score:
        """Make a score with the evidence that all have."""
        # Not validated, as in `Trace`: the values are computed.
        return Score.model_construct(
            **fields, evidence=dict(self.evidence), warnings=self.warnings, by=self.by
        )


def _at_ranks(ranks: Sequence[int]) -> str:
    """Write the ranks of documents as the end of a phrase; empty without any."""
    return f", at rank {_listed(ranks)}" if ranks else ""


def _listed(names: Sequence[Any]) -> str:
    """List names, the first few only."""
    text = ", ".join(map(str, names[:_MOST_NAMED]))
    return f"{text}, …" if len(names) > _MOST_NAMED else text
