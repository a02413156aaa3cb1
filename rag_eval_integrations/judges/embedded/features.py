"""From a call's sentences to feature rows: the one code path of training and run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rag_eval_integrations.judges.embedded.document_features import document_features
from rag_eval_integrations.judges.embedded.overlap import Overlap, overlap
from rag_eval_integrations.judges.embedded.response_features import (
    Cover,
    covers,
    response_features,
)


class CallFeatures(NamedTuple):
    """All that the models and the explanations look at."""

    overlap: Overlap
    covers: list[Cover]
    """The covering document sentences of each response sentence."""
    documents: list[tuple[float, ...]]
    """One row of `DOCUMENT_FEATURES` for each document sentence."""
    response: list[tuple[float, ...]]
    """One row of `RESPONSE_FEATURES` for each response sentence."""


def call_features(
    question: str, documents: Sequence[Sequence[str]], response: Sequence[str]
) -> CallFeatures:
    """Features of one call, given as the sentences of each document and of the response.

    Deterministic, also across processes; takes time near-linear in the length of the call.
    """
    o = overlap(question, documents, response)
    covering = covers(o)
    return CallFeatures(o, covering, document_features(o), response_features(o, response, covering))
