"""`Citations`: the sources that an answer names, compared with the judge's own evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.metrics.metric import LabelMetric
from rag_eval_integrations.records import By, Labelling, Labels, Score, SentencizedCall
from rag_eval_integrations.records._repr import LEXICAL
from rag_eval_integrations.records.labels import UnscoredCode
from rag_eval_integrations.sentences import document_number
from rag_eval_integrations.sentences._citations import Citation, citations_of

CITATION_SCORES = ("citation_precision", "citation_recall", "cited_fraction")
"""Names of the scores, in order."""
_ESTIMATED = "Estimate: this judge gives no verdicts on the support of a sentence by a document."
_MOST_LISTED = 6


@dataclass(frozen=True)
class Citations(LabelMetric):
    """Whether the answer cites the documents that support it; no request more.

    Reads markers such as `[1]`, `[2-4]`, `¹`, `[^2]`, `(doc 2)`, `【1】`, `[source: id]` and
    `<source_id>id</source_id>`. Numbers count the documents from 1 or from 0, or are their ids.
    Citations beside the answer are listed in `metadata["citations"]`, where capture writes those of
    structured answers and content blocks: `{"source": …, "end": …}` each, without `end` for one of
    the whole answer, which stands behind every claim.
    All scores are in [0, 1], 1 is best:

    `citation_precision` is the share of the citations whose document is in the judge's evidence for
    their sentence, or holds the same sentence as that evidence; a dangling citation counts as
    wrong. Without citations it is unscored (`no_relevant`).
    `citation_recall` is the share of the supported claims that cite such a document; without a
    supported claim it is unscored (`no_relevant`).
    `cited_fraction` is the share of all claims that have a citation.

    Precision and recall are unscored (`missing_param`) where it cannot be told which documents the
    numbers mean, and (`unlabelled_sentences`) where the judge left a claim out.
    """

    names = CITATION_SCORES
    version = "1"

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call from a judge's labelling.

        Args:
            call: the call with its keyed sentences.
            labelling: the judge's labels; without labels, every score is unscored.
            by: provenance for the scores.

        Returns:
            One score per name in `names`, in order. `evidence` has `citations` (sentence, marker,
            documents, and whether it is `right`, `wrong` or `dangling`) and `missing` (supported
            claims that cite no document that supports them).
        """
        labels = labelling.labels
        if labels is None:
            return self._without_labels(labelling, by)
        if not call.response:
            return self.unscored("empty_response", "the call has no response", by)
        read = citations_of(call)
        checked = _Checked(call, labels, read.citations)
        warnings = labelling.warnings
        if LEXICAL in labelling.flags:
            warnings = (*warnings, _ESTIMATED)
        maker = _ScoreMaker(by, warnings, checked.evidence, LEXICAL in labelling.flags)
        claims = [sentence.key for sentence in call.response]
        cited = {key for citation in read.citations for key in _cited_claims(citation, claims)}
        fraction = maker.score(CITATION_SCORES[2], [key in cited for key in claims], "claims cite")
        missing = [key for key in claims if labels.support(key) == "unlabelled"]
        why: tuple[UnscoredCode, str] | None = None
        if read.unclear is not None:
            why = "missing_param", f"it cannot be told which documents are cited: {read.unclear}"
        elif missing:
            why = "unlabelled_sentences", f"the judge did not label {_listed(missing)}"
        if why is not None:
            return (*(maker.unscored(name, *why) for name in CITATION_SCORES[:2]), fraction)
        right = [state == "right" for state in checked.states]
        supported = [key for key in claims if labels.support(key) == "full"]
        covered = [key not in checked.missing for key in supported]
        precision = maker.unscored(CITATION_SCORES[0], "no_relevant", "the answer cites nothing")
        if right:
            precision = maker.score(
                CITATION_SCORES[0],
                right,
                "citations name a document that supports their sentence",
                checked.faults(),
            )
        recall = maker.unscored(CITATION_SCORES[1], "no_relevant", "no claim is supported")
        if supported:
            left = f"uncited: {_listed(checked.missing)}" if checked.missing else ""
            recall = maker.score(
                CITATION_SCORES[1],
                covered,
                "supported claims cite a document that supports them",
                left,
            )
        return precision, recall, fraction


class _Checked:
    """Citations of a call, checked against the judge's evidence."""

    def __init__(
        self, call: SentencizedCall, labels: Labels, citations: Sequence[Citation]
    ) -> None:
        self.citations = citations
        texts = {s.key: " ".join(s.text.split()).casefold() for s in call.documents}
        holders: dict[str, set[int]] = {}
        for key, text in texts.items():
            number = document_number(key)
            if number is not None:
                holders.setdefault(text, set()).add(number)
        evidence: dict[str, set[int]] = {}
        for sentence in call.response:
            entry = labels.entry(sentence.key)
            keys = entry.supporting_sentence_keys if entry else ()
            document_sets = [holders.get(texts[key], set()) for key in keys if key in texts]
            evidence[sentence.key] = set().union(*document_sets)
        self.states = []
        covered: set[str] = set()
        for citation in citations:
            supported = {
                k for k in _cited_claims(citation, evidence) if evidence[k] & {*citation.documents}
            }
            covered |= supported
            wrong = "wrong" if citation.documents else "dangling"
            self.states.append("right" if supported else wrong)
        self.missing = [
            s.key for s in call.response if labels.support(s.key) == "full" and s.key not in covered
        ]

    def faults(self) -> str:
        """List the citations that are not right."""
        pairs = zip(self.citations, self.states, strict=True)
        faults = [
            f"{c.marker} in {c.key or 'the whole answer'} {state}"
            for c, state in pairs
            if state != "right"
        ]
        return _listed(faults)

    def evidence(self) -> dict[str, JsonValue]:
        """Return the evidence of all scores."""
        cited: list[JsonValue] = [
            {"key": c.key, "marker": c.marker, "documents": list(c.documents), "state": state}
            for c, state in zip(self.citations, self.states, strict=True)
        ]
        return {"citations": cited, "missing": list(self.missing)}


class _ScoreMaker:
    """Maker of the scores of one call, with the evidence that they share."""

    def __init__(self, by: By, warnings: tuple[str, ...], evidence: Any, estimated: bool) -> None:
        self._shared: dict[str, Any] = {"by": by, "warnings": warnings}
        self._evidence = evidence
        self._estimated = estimated

    def score(self, name: str, hits: Sequence[bool], what: str, more: str = "") -> Score:
        """Make the score of a share; of claims it is not estimated whether they cite."""
        value = sum(hits) / len(hits)
        estimated = self._estimated and name != CITATION_SCORES[2]
        reason = f"{'Estimate: ' if estimated else ''}{sum(hits)} of {len(hits)} {what}"
        return Score(
            name=name,
            status="scored",
            value=value,
            raw=value,
            scale=(0.0, 1.0),
            method="labels",
            n=len(hits),
            reason=f"{reason}{more and f'; {more}'}.",
            evidence=self._evidence(),
            **self._shared,
        )

    def unscored(self, name: str, code: UnscoredCode, reason: str) -> Score:
        return Score(
            name=name,
            status="unscored",
            unscored=code,
            reason=reason,
            evidence=self._evidence(),
            **self._shared,
        )


def _cited_claims(citation: Citation, claims: Iterable[str]) -> tuple[str, ...]:
    """Return the key of the sentence that a citation stands in, or all claims where it has none."""
    return (citation.key,) if citation.key else tuple(claims)


def _listed(words: Sequence[str]) -> str:
    """Join the first few words, with a sign if there are more."""
    return ", ".join(words[:_MOST_LISTED]) + (", …" if len(words) > _MOST_LISTED else "")
