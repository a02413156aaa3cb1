"""P(relevant): documents, question and response have to belong together."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import pytest
from by_hand import keyed

from rag_eval_integrations.judges.embedded import label_call
from rag_eval_integrations.records import Labels

FERRY = [["The ferry to Kos leaves at nine.", "It takes four hours.", "Tickets cost 12 euros."]]
QUESTION = "When does the ferry to Kos leave?"


def labels_of(documents: list[list[str]], response: list[str], question: str) -> Labels:
    labels = label_call(keyed(documents, response, question=question)).labels
    assert labels is not None
    return labels


def relevant_of(question: str, *response: str) -> dict[str, float]:
    found = labels_of(FERRY, list(response), question).relevant_probabilities
    assert found is not None
    return found


def test_nothing_is_relevant_to_a_foreign_question() -> None:
    """Also where the response copies the documents, and where there is none."""
    for response in (["The ferry to Kos leaves at nine."], []):
        foreign = relevant_of("What is the capital of France?", *response)

        assert max(foreign.values()) < 0.1
        assert relevant_of(QUESTION, *response)["0a"] > 0.8


def test_a_response_about_nothing_leaves_it_to_the_question() -> None:
    """A refusal, or a response about something else, is not the retriever's fault."""
    alone = relevant_of(QUESTION)
    for response in ("I don't know.", "Dogs bark.", "Yes."):
        assert relevant_of(QUESTION, response) == pytest.approx(alone, abs=0.02)


@pytest.mark.slow
def test_own_documents_come_before_foreign_ones(ragbench: list[Path]) -> None:
    """Of 12 rows a file, the next file's documents score lower, alone and with the response."""
    rows = []
    for path in ragbench:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows.append([json.loads(line) for line in itertools.islice(lines, 12)])
    # Manuals and manuals are no strangers.
    names = [path.name.split("_")[0] for path in ragbench]
    first = ["manual" if name in {"delucionqa", "emanual"} else name for name in names]
    lower = {True: 0, False: 0}
    compared = 0
    for at, own_rows in enumerate(rows):
        other = next(
            rows[j % len(rows)]
            for j in itertools.count(at + 1)
            if first[j % len(rows)] != first[at]
        )
        for own, foreign in zip(own_rows, other, strict=True):
            compared += 1
            for beside in (True, False):
                scores = []
                for row in (own, foreign):
                    documents = [[text for _, text in part] for part in row["documents_sentences"]]
                    response = [text for _, text in row["response_sentences"]] if beside else []
                    labels = labels_of(documents, response, own["question"])
                    assert labels.estimates is not None
                    scores.append(labels.estimates["context_relevance"][0])
                lower[beside] += scores[1] < scores[0]

    assert lower[True] / compared > 0.8
    assert lower[False] / compared > 0.8


def test_a_response_of_which_no_word_is_found_is_not_adherent() -> None:
    """Short ones, too; "Yes." has no word to look for, and a refusal claims nothing."""
    for response in ("Paris.", "Midnight.", "Dogs bark."):
        assert labels_of(FERRY, [response], QUESTION).overall_supported is False
    for response in ("Yes.", "I don't know.", "At nine."):
        assert labels_of(FERRY, [response], QUESTION).overall_supported is True


@pytest.mark.parametrize("copies", [10, 300])
@pytest.mark.parametrize("one_document", [True, False])
def test_copies_of_an_answer_keep_their_weight(copies: int, one_document: bool) -> None:
    """A sentence that stands on every page is as relevant there as by itself."""
    documents = [FERRY[0] * copies] if one_document else FERRY * copies
    labels = labels_of(documents, ["The ferry to Kos leaves at nine."], QUESTION)

    for found in (labels.relevant_probabilities or {}, labels.utilized_probabilities or {}):
        assert found["0a"] > 0.6
    assert len(labels.all_relevant_sentence_keys) >= copies


@pytest.mark.slow
def test_long_pages_hide_no_answer(ragbench: list[Path]) -> None:
    """Among 1,000 sentences of other rows the utilized sentences are found as they are alone."""
    path = next(path for path in ragbench if path.name.startswith("hotpotqa"))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, 200)]
    filler = [text for row in rows[40:] for part in row["documents_sentences"] for _, text in part]
    found = {False: 0, True: 0}
    for row in rows[:12]:
        documents = [[text for _, text in part] for part in row["documents_sentences"]]
        response = [text for _, text in row["response_sentences"]]
        for among in found:
            pages = [*documents, filler[:1_000]] if among else documents
            labels = labels_of(pages, response, row["question"])
            used = set(row["all_utilized_sentence_keys"])
            found[among] += len(used.intersection(labels.all_utilized_sentence_keys))

    assert found[True] >= 0.95 * found[False] > 0
