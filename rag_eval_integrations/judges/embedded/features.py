"""From a call's sentences to feature rows: the one code path of training and run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.document_features import DocumentRows, document_features
from rag_eval_integrations.judges.embedded.overlap import Overlap, overlap
from rag_eval_integrations.judges.embedded.response_features import ResponseRow, response_features


class CallFeatures(NamedTuple):
    """All that the models and the explanations look at."""

    overlap: Overlap
    documents: list[DocumentRows]
    """Rows of each document that has sentences."""
    response: list[ResponseRow]
    """One row for each response sentence."""

    def document_rows(self) -> list[tuple[float, ...]]:
        """One row of `DOCUMENT_FEATURES` for each document sentence, as training takes them."""
        return [own + document.shared for document in self.documents for own in document.sentences]


def call_features(
    question: str, documents: Sequence[Sequence[str]], response: Sequence[str]
) -> CallFeatures:
    """Features of one call, given as the sentences of each document and of the response.

    Deterministic, also across processes; takes time near-linear in the length of the call.
    """
    o = overlap(question, documents, response)
    return CallFeatures(o, document_features(o), response_features(o, response))
