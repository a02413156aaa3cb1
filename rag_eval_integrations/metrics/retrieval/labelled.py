"""Retrieval metrics from a judge's labels: `LabelRetrieval`, without gold, and `ContextRecall`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.metrics.metric import LabelMetric
from rag_eval_integrations.metrics.retrieval.gold import ndcg, reciprocal_rank
from rag_eval_integrations.metrics.trace.formulas import supported_fraction
from rag_eval_integrations.records import (
    By,
    Labelling,
    Labels,
    Score,
    SentencizedCall,
    UnscoredCode,
)
from rag_eval_integrations.sentences import document_number

LABEL_RETRIEVAL_SCORES = ("document_precision", "reciprocal_rank", "label_ndcg")
"""Names of the scores of `LabelRetrieval`, in order."""

_MOST_NAMED = 12  # a reason is read by a person; the evidence beside it holds all


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

    Each is in [0, 1], 1 is best. Without labels, such as for a call without documents, all are
    unscored for the judge's reason.

    Source: trec_eval's `set_P`, `recip_rank` and `ndcg`, on the labelled documents alone.
    """

    names = LABEL_RETRIEVAL_SCORES
    version = "1"

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call from a judge's labelling.

        Args:
            call: the call with its keyed sentences; its documents are the ranking, best first.
            labelling: the judge's labels; without labels, every score is unscored.
            by: provenance for the scores.

        Returns:
            One score per name in `names`, in order.
        """
        labels, total = labelling.labels, len(call.call.documents)
        if labels is None or not total:
            return _without(self, labelling, by, "no_context", "the call has no documents")
        relevant = {document_number(key) for key in labels.all_relevant_sentence_keys}
        numbers = [number for number in range(total) if number in relevant]
        ranks = [number + 1 for number in numbers]
        evidence: dict[str, JsonValue] = {
            "relevant_ranks": list(ranks),
            "documents_without_relevant": [n for n in range(total) if n not in relevant],
        }
        made = _Maker(by, labelling.warnings, total, evidence)
        share = (
            f"{len(ranks)} of {total} documents {'has' if len(ranks) == 1 else 'have'} a sentence"
        )
        scores = [
            made.score(
                "document_precision",
                len(ranks) / total,
                f"{share} labelled relevant{_at_ranks(ranks)}.",
            )
        ]
        if not ranks:
            none = "No document has a sentence labelled relevant"
            scores.append(made.score("reciprocal_rank", 0.0, f"{none}."))
            why = f"{none}, so no order is better than another"
            return (*scores, made.unscored("label_ndcg", "no_relevant", why))
        first = reciprocal_rank(ranks, len(ranks), total)
        scores.append(made.score("reciprocal_rank", first, f"The first one is at rank {ranks[0]}."))
        value = ndcg(ranks, len(ranks), total)
        order = "first" if ranks[-1] == len(ranks) else f"at ranks {_listed(ranks)} of {total}"
        reason = f"The documents labelled relevant are {order}."
        return (*scores, made.score("label_ndcg", value, reason))


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
            return _without(self, labelling, by, "judge_output_invalid", "the judge gave no labels")
        supports = [labels.support(sentence.key) for sentence in call.response]
        made = _Maker(by, labelling.warnings, len(supports), _supports(call, labels))
        value = supported_fraction(supports)
        if value is None:
            missing = [s.key for s in call.response if labels.support(s.key) == "unlabelled"]
            why = f"the judge did not label {_listed(missing)} of the reference"
            return (made.unscored(self.names[0], "unlabelled_sentences", why),)
        partly = supports.count("partial")
        reason = f"{supports.count('full')} of {len(supports)} sentences of the reference "
        reason += f"fully supported by the documents, {partly} partially."
        return (made.score(self.names[0], value, reason),)


@dataclass(frozen=True)
class _Maker:
    """Makes the scores of one call, which share all of this."""

    by: By
    warnings: tuple[str, ...]
    n: int
    evidence: Mapping[str, JsonValue]

    def score(self, name: str, value: float, reason: str) -> Score:
        return self._construct(
            name=name, status="scored", value=value, raw=value, scale=(0.0, 1.0), method="labels",
            n=self.n, reason=reason,
        )  # fmt: skip

    def unscored(self, name: str, code: UnscoredCode, reason: str) -> Score:
        return self._construct(name=name, status="unscored", unscored=code, reason=reason)

    def _construct(self, **fields: Any) -> Score:
        """Make a score with the evidence that all have."""
        # Not validated, as in `Trace`: the values are computed.
        return Score.model_construct(
            **fields, evidence=dict(self.evidence), warnings=self.warnings, by=self.by
        )


def _without(
    metric: LabelMetric, labelling: Labelling, by: By, code: UnscoredCode, reason: str
) -> tuple[Score, ...]:
    """Make the scores of a call without labels, for the judge's reason or else for this one."""
    scores = metric.unscored(labelling.unscored or code, labelling.reason or reason, by)
    return tuple(score.model_copy(update={"warnings": labelling.warnings}) for score in scores)


def _supports(call: SentencizedCall, labels: Labels) -> dict[str, JsonValue]:
    """List the sentences of the reference with their labels, which no other field holds."""
    sentences: list[JsonValue] = []
    for sentence in call.response:
        entry = labels.entry(sentence.key)
        sentences.append(
            {
                "key": sentence.key,
                "text": sentence.text,
                "support": labels.support(sentence.key),
                "supporting_sentence_keys": list(entry.supporting_sentence_keys) if entry else [],
                "explanation": entry.explanation if entry else "",
            }
        )
    return {"reference": sentences}


def _at_ranks(ranks: list[int]) -> str:
    """Say at which ranks documents stand."""
    return f", at rank {_listed(ranks)}" if ranks else ""


def _listed(names: list[Any]) -> str:
    """List names, the first few only."""
    shown = ", ".join(map(str, names[:_MOST_NAMED]))
    return f"{shown}, …" if len(names) > _MOST_NAMED else shown
