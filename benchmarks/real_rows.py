"""Calls of the size that apps have: five documents of 5,400 characters together, five sentences.

Imported by benchmarks. The texts are RAGBench's where its files are, in the order of its rows, so
that documents come again as often as there (every second one); else generated, each but once.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from rag_eval_integrations import RagCall
from rag_eval_integrations.testing import labels_reply

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
DOCUMENTS = 5
SENTENCES = 5
"""Of the response."""
_SHORTEST, _LONGEST = 500, 2_000
"""Characters of a document: five have 5,400 in the mean."""


def reply() -> str:
    """Return a judge's reply to any of the calls: 2.4 kB, as long as those of RAGBench's rows."""
    labels = json.loads(
        labels_reply([f"{number}{letter}" for number in range(5) for letter in "ab"], "abcde")
    )
    explanation = "The second sentence of the document says this in almost the same words. " * 3
    labels["relevance_explanation"] = labels["overall_supported_explanation"] = explanation
    for entry in labels["sentence_support_information"]:
        entry["explanation"] = explanation
    return json.dumps(labels)


def calls(count: int, data: Path = DATA) -> Iterator[RagCall]:
    """Make calls, no two of them the same."""
    documents, sentences = _texts(data)
    for number in range(count):
        yield RagCall(
            f"What does the report of day {number} say about this?",
            list(islice(documents, DOCUMENTS)),
            " ".join(islice(sentences, SENTENCES)),
            id=f"call-{number}",
        )


def _texts(data: Path) -> tuple[Iterator[str], Iterator[str]]:
    """Return documents and sentences, without end."""
    paths = sorted((data / "ragbench").glob("*.jsonl.gz"))
    if not paths:
        draw = random.Random(5)
        return (" ".join(islice(_made(draw), 10)) for _ in cycle([0])), _made(draw)
    lines = [line for path in paths for line in gzip.decompress(path.read_bytes()).splitlines()]
    rows = [json.loads(line) for line in lines]
    documents = [text for row in rows for text in row["documents"] if len(text) >= _SHORTEST]
    sentences = [
        text
        for row in rows
        for document in row["documents_sentences"]
        for _, text in document
        # Whole sentences only, so that a response has as many as its reply labels.
        if len(text) > 40 and text.find(".") == len(text) - 1 and text[-2:] != " ."
    ]
    return (text[:_LONGEST] for text in cycle(documents)), cycle(sentences)


def _made(draw: random.Random) -> Iterator[str]:
    """Make sentences of some 108 characters."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=number % 9 + 2)) for number in range(900)]
    while True:
        yield "The " + " ".join(draw.choices(words, k=15)) + "."
