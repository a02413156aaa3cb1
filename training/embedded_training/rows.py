"""The labelled rows as features, made with the library's own code.

RAGBench: gold sentence keys that GPT-4 wrote. RAGTruth (QA): spans that humans marked; a response
sentence that a span touches is unsupported. It has no labels of document sentences.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rag_eval_integrations.judges.embedded._features import (
    DOCUMENT_FEATURES,
    RESPONSE_FEATURES,
    CallFeatures,
    call_features,
)
from rag_eval_integrations.judges.embedded._model import topic_row
from rag_eval_integrations.metrics.trace.formulas import context_utilization
from rag_eval_integrations.sentences import Punkt

FOLDS = 5
TRUTH = "ragtruth"
MANUALS = ("delucionqa", "emanual")
"""Two data sets, on a car's and a television's manual, that count as one domain."""
SCORES = (
    "context_relevance",
    "context_utilization@ragbench",
    "context_utilization@gpt-labeling",
    "completeness",
    "context_relevance_alone",
)
"""The estimated scores, named as in `Labels.estimates`; the last is that of a retrieval alone."""

ALONE = (
    "question_found",
    "length",
    "document_question",
    "call_question_found",
    "documents",
    "document_length",
)
"""Features of a document sentence that have a meaning without a response."""

Row = dict[str, Any]


def read(path: Path) -> Iterator[Row]:
    """Read the rows of a gzipped JSON-lines file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def keys(written: list[str]) -> set[str]:
    """Return recorded keys without the trailing dots that some of them have."""
    return {key.strip().rstrip(".") for key in written}


def ragbench_rows(data: Path) -> list[Row]:
    """Read RAGBench rows as features and gold labels."""
    rows = []
    for path in sorted((data / "ragbench").glob("*.jsonl.gz")):
        for row in read(path):
            documents = [[text for _, text in part] for part in row["documents_sentences"]]
            response = [text for _, text in row["response_sentences"]]
            order = [key for part in row["documents_sentences"] for key, _ in part]
            relevant, used, unsupported = (
                keys(row[f"{name}_sentence_keys"])
                for name in ("all_relevant", "all_utilized", "unsupported_response")
            )
            rows.append(
                {
                    "set": row["_subset"],
                    "question": row["question"],
                    **_of_features(call_features(row["question"], documents, response)),
                    "texts": (row["question"], documents, response),
                    "relevant": [key in relevant for key in order],
                    "utilized": [key in used for key in order],
                    "supported": [key not in unsupported for key, _ in row["response_sentences"]],
                    "adherent": bool(row["adherence_score"]),
                    "scores": _gold(row, len(relevant), len(used), len(order)),
                    "length": len(row["response"]),
                }
            )
    return rows


def _gold(row: Row, relevant: int, used: int, total: int) -> list[float]:
    """Return the gold values of `SCORES`."""
    relevance = row["relevance_score"]
    return [
        relevance,
        row["utilization_score"],
        context_utilization(relevant, used, total, "gpt-labeling"),
        row["completeness_score"],
        relevance,
    ]


def ragtruth_rows(data: Path) -> list[Row]:
    """Read RAGTruth rows, without those whose response has no sentence."""
    splitter = Punkt()
    rows = []
    for row in read(data / "ragtruth" / "qa_train.jsonl.gz"):
        passages = [
            re.sub(r"^passage \d+:", "", part.strip())
            for part in row["passages"].split("\n\n")
            if part.strip()
        ]
        documents = [[text[a:b] for a, b in splitter.spans(text)] for text in passages]
        text = row["response"]
        spans = list(splitter.spans(text))
        if not spans:
            continue
        features = call_features(row["question"], documents, [text[a:b] for a, b in spans])
        rows.append(
            {
                "set": TRUTH,
                "question": row["question"],
                "model": row["model"],
                **_of_features(features),
                "supported": [
                    not any(label["start"] < b and a < label["end"] for label in row["labels"])
                    for a, b in spans
                ],
                "adherent": not row["hallucinated"],
                "length": len(text),
            }
        )
    return rows


def _of_features(features: CallFeatures) -> Row:
    return {
        "documents": document_rows(features),
        "response": [row.features for row in features.response],
        "stems": [sentence.stems for sentence in features.overlap.response],
        "new": [row.new for row in features.response],
    }


def document_rows(features: CallFeatures) -> list[tuple[float, ...]]:
    """List one row of `DOCUMENT_FEATURES` per document sentence."""
    return [
        own + document.shared
        for document in features.documents
        for own in zip(*document.columns, strict=True)
    ]


class Sentences:
    """The sentences of many rows as one matrix, with the row each is from."""

    def __init__(self, rows: list[Row], side: str) -> None:
        self.x = np.array([line for row in rows for line in row[side]])
        self.row = np.repeat(np.arange(len(rows)), [len(row[side]) for row in rows])
        self.size = len(rows)

    def labels(self, rows: list[Row], name: str) -> np.ndarray:
        """Join the rows' labels in the order of the sentences."""
        return np.array([label for row in rows for label in row[name]])

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Compute the mean over each row's sentences."""
        return np.bincount(self.row, values, self.size) / np.bincount(self.row, minlength=self.size)

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Split values by row."""
        return np.split(values, np.cumsum(np.bincount(self.row, minlength=self.size))[:-1])


class View:
    """Calls in the form that the models of relevance use."""

    def __init__(self, calls: list[CallFeatures]) -> None:
        self.x = np.array([row for features in calls for row in document_rows(features)])
        self.topic = np.array([topic_row(features) for features in calls])
        self.dice_max = np.array([max(features.overlap.best_dice) for features in calls])


def partners(of_set: np.ndarray) -> np.ndarray:
    """Choose for each row the index of a row of another domain."""
    domain = np.where(np.isin(of_set, MANUALS), "manual", of_set)
    chosen = []
    for place in range(len(domain)):
        other = (place * 7919 + 1009) % len(domain)
        while domain[other] == domain[place]:
            other = (other + 1) % len(domain)
        chosen.append(other)
    return np.array(chosen)


def exchanged(texts: list[tuple[str, list[list[str]]]], of_set: np.ndarray) -> np.ndarray:
    """Choose for each row the index of a row of its set with another question and documents."""
    of = {name: np.flatnonzero(of_set == name) for name in np.unique(of_set)}
    chosen = []
    for place, (question, documents) in enumerate(texts):
        own = of[of_set[place]]
        step = (place * 7919 + 1009) % len(own)
        while texts[own[step]][0] == question or texts[own[step]][1] == documents:
            step = (step + 1) % len(own)
        chosen.append(own[step])
    return np.array(chosen)


class Data:
    """RAGBench rows, then RAGTruth rows, ready to be fitted on any part.

    `documents` belong to the RAGBench rows only, `response` to all rows. The six views are the
    RAGBench rows unchanged, with the question or the response of another domain, with the documents
    of another question of the same set, with a refusal, and with both of the last two.
    """

    def __init__(self, data: Path) -> None:
        bench = ragbench_rows(data)
        self.rows = bench + ragtruth_rows(data)
        self.bench = len(bench)
        self.set = np.array([row["set"] for row in self.rows])
        self.sets = sorted(set(self.set[: self.bench]))
        self.documents = Sentences(bench, "documents")
        self.by_question = np.array([name in ALONE for name in DOCUMENT_FEATURES])
        self.partner = partners(self.set[: self.bench])
        texts = [row.pop("texts") for row in bench]
        other = [texts[place] for place in self.partner]
        self.own = View([call_features(*text) for text in texts])
        self.foreign_question = View(
            [call_features(q, d, r) for (_, d, r), (q, _, _) in zip(texts, other, strict=True)]
        )
        self.foreign_response = View(
            [call_features(q, d, r) for (q, d, _), (_, _, r) in zip(texts, other, strict=True)]
        )
        self.exchanged = exchanged([text[:2] for text in texts], self.set[: self.bench])
        self.foreign_documents = View(
            [
                call_features(q, texts[place][1], r)
                for (q, _, r), place in zip(texts, self.exchanged, strict=True)
            ]
        )
        self.foreign_documents_refusal = View(
            [
                call_features(q, texts[place][1], ["I don't know."])
                for (q, _, _), place in zip(texts, self.exchanged, strict=True)
            ]
        )
        self.refusal = View([call_features(q, d, ["I don't know."]) for q, d, _ in texts])
        self.response = Sentences(self.rows, "response")
        self.relevant = self.documents.labels(bench, "relevant")
        self.utilized = self.documents.labels(bench, "utilized")
        self.supported = self.response.labels(self.rows, "supported")
        self.adherent = np.array([row["adherent"] for row in self.rows])
        self.gold = np.array([row["scores"] for row in bench])
        first = np.cumsum([0, *[len(row["documents"]) for row in bench[:-1]]])
        documents = self.documents.x[first, DOCUMENT_FEATURES.index("documents")].tolist()
        said = RESPONSE_FEATURES.index("question_said")
        # What `level_row` needs besides probabilities.
        self.calls = [
            (log, [sentence[said] for sentence in row["response"]])
            for log, row in zip(documents, bench, strict=True)
        ]
        self.length = np.array([row["length"] for row in self.rows])
        self.fold = folds([row["question"] for row in self.rows])
        self.stems = [tuple(dict.fromkeys(stems)) for row in self.rows for stems in row["stems"]]
        self.new = [new for row in self.rows for new in row["new"]]
        self.response_size = np.bincount(self.response.row)

    def masks(self, by: str) -> list[np.ndarray]:
        """List the parts to hold out in turn: by `question`, `set` or `domain` (manuals as one)."""
        if by == "question":
            return [self.fold == fold for fold in range(FOLDS)]
        names = [*self.sets, TRUTH]
        if by == "set":
            return [self.set == name for name in names]
        rest = [self.set == name for name in names if name not in MANUALS]
        return [np.isin(self.set, MANUALS), *rest]


def folds(questions: list[str]) -> np.ndarray:
    """Assign each question to one fold, by its order of first appearance."""
    number = {question: place for place, question in enumerate(dict.fromkeys(questions))}
    return np.array([number[question] * 7919 % FOLDS for question in questions])
