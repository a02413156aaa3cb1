"""Rows of RAGBench as calls, and what the embedded judge says of a call."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

from by_hand import keyed

from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.records import SentencizedCall


def rows_of(path: Path, most: int | None = None) -> list[Any]:
    """The first rows of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in itertools.islice(lines, most)]


def documents_of(row: Any) -> list[list[str]]:
    return [[text for _, text in part] for part in row["documents_sentences"]]


def call_of_row(row: Any, *, alone: bool = False) -> SentencizedCall:
    """The call with its recorded sentences; alone, as the retriever left it."""
    response = [] if alone else [text for _, text in row["response_sentences"]]
    return keyed(documents_of(row), response, question=row["question"])


def embedded_labels(call: SentencizedCall) -> Any:
    """Labels by the embedded judge, which has all of their optional fields."""
    labels = label_call(call).labels
    assert labels is not None
    return labels
