"""TRACe and its sums worked out a second time: plain loops and fractions over rows of JSON.

Written from the definitions (TRACe, arXiv:2407.11005, section 3; the published columns; the
labelling formulas as documented), slow and in the open, and without a line of the library's: where
both say the same of the same rows, the library's formulas, key cleaning and sums are right.

A row is a JSON object as RAGBench publishes it, or the same with its labels under `labels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

GPT_LABELING = "gpt-labeling"
RAGBENCH = "ragbench"

Row = Mapping[str, Any]
Worth = Fraction | str
"""The value of a score, or the code of why it has none."""

FOUR = ("context_relevance", "context_utilization", "completeness", "adherence")
SIX = (*FOUR, "supported_fraction", "trace_average")
_SCORES = ("relevance_score", "utilization_score", "completeness_score", "adherence_score")
COLUMNS = dict(zip(FOUR, _SCORES, strict=True))

SPECIAL_WORDS = [
    "general",
    "numerical_reasoning",
    "support_without_sentence",
    "supported_without_sentence",
    "well_known_fact",
]


def labels_of(row: Row) -> Row:
    """The labels of a row, wherever they stand."""
    return row["labels"] if row.get("labels") is not None else row


def document_keys(row: Row) -> list[str]:
    """Keys of the document sentences."""
    return [key for document in row["documents_sentences"] for key, _ in document]


def response_keys(row: Row) -> list[str]:
    """Keys of the response sentences."""
    return [key for key, _ in row["response_sentences"]]


# --- what a judge wrote, and which sentences it means ------------------------------------------


def meant(written: str, existing: Sequence[str]) -> list[str]:
    """The sentences that one string names: a key, several keys, a range; none it cannot mean."""
    text = written.strip(" \t\r\n.,;:'\"`()[]{}<>*").lower()
    if text in existing:
        return [text]
    for separator in (",", ";", "&"):
        text = text.replace(separator, " ")
    several = [part.strip(".,;:'\"`()[]{}<>*") for part in text.split()]
    if len(several) > 1 and all(part in existing for part in several):
        return several
    for word in ("through", "to", "-", "–"):
        first, separator, last = text.partition(word)
        first, last = first.strip(), last.strip()
        document = first.rstrip("abcdefghijklmnopqrstuvwxyz")
        if not last.startswith(document):  # "0b to d"
            last = document + last
        if separator and first in existing and last in existing and last[len(document) :].isalpha():
            return list(existing[existing.index(first) : existing.index(last) + 1])
    return []


def cleaned(written: Iterable[str] | None, existing: Sequence[str]) -> list[str]:
    """The sentences that a list names, each once, in the order written."""
    keys: list[str] = []
    for text in written or []:
        for key in meant(text, existing):
            if key not in keys:
                keys.append(key)
    return keys


def is_special(written: str) -> bool:
    """Whether a word stands where no sentence is meant."""
    return written.strip(" \t\r\n.,;:'\"`()[]{}<>*").lower() in SPECIAL_WORDS


def unsupported_list(row: Row) -> list[str] | None:
    """The response sentences recorded as unsupported; None where no list is recorded."""
    written = labels_of(row).get("unsupported_response_sentence_keys")
    return None if written is None else cleaned(written, response_keys(row))


def supporting(row: Row) -> dict[str, list[str]]:
    """Response sentence → the document sentences that are said to support it."""
    keys: dict[str, list[str]] = {}
    for entry in labels_of(row)["sentence_support_information"]:
        for key in meant(entry["response_sentence_key"], response_keys(row)):
            listed = keys.setdefault(key, [])
            for document in cleaned(entry.get("supporting_sentence_keys"), document_keys(row)):
                if document not in listed:
                    listed.append(document)
    return keys


def verdicts(row: Row) -> dict[str, str]:
    """Response sentence → `full`, `partial`, `none`, or `unlabelled` where nothing is said of it.

    A verdict that is null is what the list of unsupported sentences says; without that list, a
    sentence is supported if a document sentence or a special word is given for it. The worst of
    several entries counts.
    """
    unsupported = unsupported_list(row)
    answers: dict[str, list[bool]] = {}
    for entry in labels_of(row)["sentence_support_information"]:
        given = entry.get("supporting_sentence_keys") or []
        for key in meant(entry["response_sentence_key"], response_keys(row)):
            verdict = entry.get("fully_supported")
            if verdict is None and unsupported is not None:
                verdict = key not in unsupported
            elif verdict is None:
                verdict = False
                for text in given:
                    if is_special(text) or meant(text, document_keys(row)):
                        verdict = True
            answers.setdefault(key, []).append(verdict)
    evidence = supporting(row)
    verdict_of = {}
    for key in response_keys(row):
        if key not in answers:
            verdict_of[key] = "unlabelled"
        elif all(answers[key]):
            verdict_of[key] = "full"
        else:
            verdict_of[key] = "partial" if evidence[key] else "none"
    return verdict_of


# --- the scores --------------------------------------------------------------------------------


def why_not(row: Row) -> str | None:
    """Why a row cannot be scored at all."""
    if not row["response_sentences"]:
        return "empty_response"
    if not document_keys(row):
        return "no_context"
    if not row["question"].strip():
        return "no_question"
    return None


def counts(
    row: Row, *, raw_keys: bool = False, expected: bool = False
) -> tuple[Fraction, Fraction, Fraction, int]:
    """Count |R|, |U|, |R∩U| and T, or expect them where all sentences have both probabilities.

    |R∩U| is expected as if the less likely of the two never came without the other.
    """
    labels, existing = labels_of(row), document_keys(row)
    relevant: Any = labels.get("relevant_probabilities")
    utilized: Any = labels.get("utilized_probabilities")
    total = len(existing)
    known = expected and relevant is not None and utilized is not None
    if known and all(key in relevant and key in utilized for key in existing):
        r = u = both = Fraction(0)
        for key in existing:
            r += Fraction(relevant[key])
            u += Fraction(utilized[key])
            both += Fraction(min(relevant[key], utilized[key]))
        return r, u, both, total
    listed_r = labels["all_relevant_sentence_keys"] or []
    listed_u = labels["all_utilized_sentence_keys"] or []
    if not raw_keys:
        listed_r, listed_u = cleaned(listed_r, existing), cleaned(listed_u, existing)
    common = 0
    for number, key in enumerate(listed_r):
        if key in listed_u and key not in listed_r[:number]:
            common += 1
    return Fraction(len(listed_r)), Fraction(len(listed_u)), Fraction(common), total


def trace(
    row: Row,
    formulas: str,
    *,
    raw_keys: bool = False,
    baseline: int | None = None,
    expected: bool = False,
) -> dict[str, Worth]:
    """The six scores of a row, or the code of why one has no value."""
    nothing = why_not(row)
    if nothing is not None:
        return dict.fromkeys(SIX, nothing)
    r, u, both, total = counts(row, raw_keys=raw_keys, expected=expected)
    scores: dict[str, Worth] = {"context_relevance": min(Fraction(1), r / (baseline or total))}
    if formulas == RAGBENCH:
        scores["context_utilization"] = min(Fraction(1), u / total)
    else:
        scores["context_utilization"] = min(Fraction(1), u / r) if r else Fraction(0)
    if r:
        scores["completeness"] = both / r
    elif formulas == RAGBENCH or not u:
        scores["completeness"] = Fraction(1)
    else:
        scores["completeness"] = Fraction(0)
    scores["adherence"] = _adherence(row, formulas, raw_keys=raw_keys)
    supports = list(verdicts(row).values())
    if "unlabelled" in supports:
        scores["supported_fraction"] = "unlabelled_sentences"
    else:
        scores["supported_fraction"] = Fraction(supports.count("full"), len(supports))
    total_of_four = Fraction(0)
    for name in FOUR:
        worth = scores[name]
        if isinstance(worth, str):
            return scores | {"trace_average": worth}
        total_of_four += worth
    return scores | {"trace_average": total_of_four / 4}


def estimates(row: Row, formulas: str) -> dict[str, Fraction]:
    """The first three scores over expected counts; shares of nothing have no estimate."""
    if why_not(row) is not None or labels_of(row).get("relevant_probabilities") is None:
        return {}
    relevant, utilized, _, _ = counts(row)
    expected = {}
    for name, worth in list(trace(row, formulas, expected=True).items())[:3]:
        share_of_all = name == "context_relevance" or (
            name == "context_utilization" and formulas == RAGBENCH
        )
        if not isinstance(worth, str) and (share_of_all or (relevant and utilized)):
            expected[name] = worth
    return expected


def _adherence(row: Row, formulas: str, *, raw_keys: bool) -> Worth:
    listed = labels_of(row).get("unsupported_response_sentence_keys")
    if formulas == RAGBENCH and listed is not None:
        against = listed if raw_keys else cleaned(listed, response_keys(row))
        return Fraction(0 if against else 1)
    unlabelled = False
    for verdict in verdicts(row).values():
        if verdict in ("partial", "none"):
            return Fraction(0)
        unlabelled = unlabelled or verdict == "unlabelled"
    return "unlabelled_sentences" if unlabelled else Fraction(1)


def adherence_probability(row: Row) -> Fraction | None:
    """P(every labelled response sentence is supported), if sentences were independent."""
    probabilities = labels_of(row).get("supported_probabilities")
    if probabilities is None:
        return None
    product = Fraction(1)
    for key, verdict in verdicts(row).items():
        if verdict != "unlabelled":
            if key not in probabilities:
                return None
            product *= Fraction(probabilities[key])
    return product


def published(row: Row) -> dict[str, Any]:
    """The four columns as RAGBench publishes them: its lists as they were recorded."""
    total = len(document_keys(row))
    relevant = row["all_relevant_sentence_keys"]
    utilized = row["all_utilized_sentence_keys"]
    common = [key for key in set(relevant) if key in utilized]
    return {
        "relevance_score": len(relevant) / total,
        "utilization_score": len(utilized) / total,
        "completeness_score": len(common) / len(relevant) if relevant else 1.0,
        "adherence_score": row["unsupported_response_sentence_keys"] == [],
    }


# --- sums over many rows -----------------------------------------------------------------------


def totals(worths: Iterable[Worth]) -> tuple[float | None, int, int, dict[str, int]]:
    """Mean over the scored rows, how many these are, of how many, and why the others are not."""
    scored: list[Fraction] = []
    reasons: dict[str, int] = {}
    for worth in worths:
        if isinstance(worth, str):
            reasons[worth] = reasons.get(worth, 0) + 1
        else:
            scored.append(worth)
    mean = float(sum(scored, Fraction(0)) / len(scored)) if scored else None
    return mean, len(scored), len(scored) + sum(reasons.values()), reasons
