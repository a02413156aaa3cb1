"""The page on which a person labels the calls of a draw, and downloads the labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rag_eval_integrations.dataset._labels_file import Draw, Population, asked, whole_row
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._repr import EARLIER
from rag_eval_integrations.report._page import pieces
from rag_eval_integrations.sentences import document_number


def review_page(calls: Sequence[Evaluation], draw: Draw, who: str, file: str) -> Iterator[str]:
    """Render the page in pieces.

    Args:
        calls: the calls that are asked.
        draw: what they were drawn by.
        who: the person's name, which can be changed on the page.
        file: name of the file that is downloaded.
    """
    content = {"draw": draw.fields(), "file": file, "calls": list(map(review_data, calls))}
    return pieces(
        "review.html",
        script="review.js",
        style="review.css",
        title=f"Labels for {file}",
        who=who,
        file=file,
        again=EARLIER,
        calls=list(map(asked_view, calls)),
        content=content,
    )


def review_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return what `review.js` needs of a call."""
    sentences = evaluation.sentences
    return {
        "row": whole_row(evaluation, {}),
        "asked": [sentence.key for sentence in asked(evaluation)],
        "claims": [sentence.key for sentence in sentences.claims],
        "documents": [sentence.key for sentence in sentences.documents],
    }


def review_settings(who: str | None, row_keys: Sequence[str]) -> dict[str, Any]:
    """Return what `review.js` needs in a report, whose calls are not a random draw.

    Args:
        who: the person's name; None where nobody is asked.
        row_keys: of the population.
    """
    draw = Draw("single", None, 0, Population.of(row_keys))
    asks = {"draw": draw.fields(), "file": "labels.jsonl", "name": who}
    return {"review": None if who is None else asks}


def asked_view(evaluation: Evaluation) -> dict[str, Any]:
    """Return what a person is shown of a call: claims with their evidence, and documents.

    A document is named by its id and the header that the model was shown.
    """
    documents, labels = evaluation.sentences.documents, evaluation.labels
    claims = []
    for sentence in evaluation.sentences.claims:
        entry = labels and labels.entry(sentence.key)
        named = set(entry.supporting_sentence_keys if entry else ())
        evidence = [each for each in documents if each.key in named]
        claims.append({"key": sentence.key, "text": sentence.text, "evidence": evidence})
    return {
        "turns": evaluation.history,
        "question": evaluation.question,
        "claims": claims,
        "documents": [
            {
                "number": number,
                "name": _document_name(evaluation, number or 0),
                "sentences": list(of_document),
                "earlier": number in evaluation.earlier,
            }
            for number, of_document in groupby(documents, lambda s: document_number(s.key))
        ],
    }


def _document_name(evaluation: Evaluation, number: int) -> str:
    """Return the id and the header of a document, as far as it has them."""
    ids, headers = evaluation.document_ids, evaluation.document_headers
    names = [each[number] for each in (ids, headers) if number < len(each)]
    return " ".join(filter(None, names))
