"""The page on which a person labels the calls of a draw, and downloads the labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rag_eval_integrations.dataset._labels_file import Draw, asked, whole_row
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._shown import EARLIER
from rag_eval_integrations.report._page import pieces
from rag_eval_integrations.sentences import document_number


def review_page(
    calls: Sequence[Evaluation],
    draw: Draw,
    who: str,
    file: str,
    *,
    save: str | None = None,
    answers: Sequence[dict[str, Any]] = (),
) -> Iterator[str]:
    """Render the page in pieces.

    Args:
        calls: the calls that are asked.
        draw: what they were drawn by.
        who: the person's name, which can be changed on the page.
        file: name of the file that is downloaded.
        save: address of a server that keeps answers in the file instead.
        answers: `who`, `key`, `label` and `when` of those that it keeps about the only call.
    """
    content = {
        "draw": draw.fields(), "file": file, "calls": list(map(review_data, calls)), "save": save,
        "answers": list(answers),
    }  # fmt: skip
    return pieces(
        "review.html", script="review.js", style="review.css", title=f"Labels for {file}",
        who=who, file=file, again=EARLIER, calls=list(map(_view, calls)), content=content,
        served=save is not None,
    )  # fmt: skip


def review_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return what `review.js` needs of a call."""
    sentences = evaluation.sentences
    return {
        "row": whole_row(evaluation, {}),
        "asked": [sentence.key for sentence in asked(evaluation)],
        "claims": [sentence.key for sentence in sentences.claims],
        "documents": [sentence.key for sentence in sentences.documents],
    }


def _view(evaluation: Evaluation) -> dict[str, Any]:
    """Return what is shown of a call."""
    documents, labels = evaluation.sentences.documents, evaluation.labels
    claims = []
    for sentence in evaluation.sentences.claims:
        entry = labels and labels.entry(sentence.key)
        named = set(entry.supporting_sentence_keys if entry else ())
        evidence = [each for each in documents if each.key in named]
        claims.append({"key": sentence.key, "text": sentence.text, "evidence": evidence})
    names = dict(enumerate(evaluation.document_ids))
    return {
        "turns": evaluation.history,
        "question": evaluation.question,
        "claims": claims,
        "documents": [
            {"number": number, "name": names.get(number or 0) or "", "sentences": list(of),
             "earlier": number in evaluation.earlier}
            for number, of in groupby(documents, lambda each: document_number(each.key))
        ],
    }  # fmt: skip
