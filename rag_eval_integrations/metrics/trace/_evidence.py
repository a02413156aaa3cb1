"""Evidence of the TRACe scores: the `evidence` object and the `reason` sentence of each score."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from rag_eval_integrations.metrics.trace.formulas import Formulas
from rag_eval_integrations.records import Labels, Sentence, SentencizedCall
from rag_eval_integrations.sentences._sentencize import document_number

_MOST_KEYS = 12  # a reason is read by a person; the evidence beside it holds all keys
_MOST_TEXT = 160


def documents_without_relevant(labels: Labels, call: SentencizedCall) -> list[int]:
    """List the numbers of the documents without a relevant sentence, empty documents included."""
    useful = {document_number(key) for key in labels.all_relevant_sentence_keys}
    return [number for number in range(len(call.call.documents)) if number not in useful]


def relevance_evidence(labels: Labels, call: SentencizedCall) -> dict[str, JsonValue]:
    """Build the evidence of context relevance: `relevant_keys`, `documents_without_relevant`."""
    return {
        "relevant_keys": list(labels.all_relevant_sentence_keys),
        "documents_without_relevant": list(documents_without_relevant(labels, call)),
        "explanation": labels.relevance_explanation,
    }


def use_evidence(labels: Labels) -> dict[str, JsonValue]:
    """Build the evidence of utilization: `utilized_keys`, `relevant_unused_keys`, as labelled."""
    return {
        "utilized_keys": list(labels.all_utilized_sentence_keys),
        "relevant_unused_keys": list(relevant_unused(labels)),
    }


def relevant_unused(labels: Labels) -> tuple[str, ...]:
    """List the keys that are relevant and were not used."""
    used = set(labels.all_utilized_sentence_keys)
    return tuple(key for key in labels.all_relevant_sentence_keys if key not in used)


def unsupported(labels: Labels, call: SentencizedCall, formulas: Formulas) -> list[Sentence]:
    """List the response sentences that speak against adherence.

    Under `ragbench` these are the recorded unsupported keys, where a record exists; otherwise every
    sentence that is not fully supported.
    """
    recorded = labels.unsupported_response_sentence_keys
    if formulas == "ragbench" and recorded is not None:
        return [sentence for sentence in call.response if sentence.key in recorded]
    return [s for s in call.response if labels.support(s.key) != "full"]


def adherence_evidence(
    labels: Labels, call: SentencizedCall, formulas: Formulas
) -> dict[str, JsonValue]:
    """Build the evidence of adherence: each `unsupported` sentence with its labels."""
    against: list[JsonValue] = []
    for sentence in unsupported(labels, call, formulas):
        entry = labels.entry(sentence.key)
        against.append(
            {
                "key": sentence.key,
                "text": sentence.text,
                "support": labels.support(sentence.key),
                "supporting_sentence_keys": list(entry.supporting_sentence_keys) if entry else [],
                "explanation": entry.explanation if entry else "",
                **_conflicts(labels, sentence.key),
            }
        )
    return {"unsupported": against, "explanation": labels.overall_supported_explanation}


def _conflicts(labels: Labels, key: str) -> dict[str, JsonValue]:
    """Build the field `contradictions`, of a sentence that has any."""
    details = labels.contradictions.get(key)
    return {"contradictions": list(details)} if details else {}


def relevance_reason(labels: Labels, call: SentencizedCall) -> str:
    """Write the reason of context relevance: the relevant sentences, the documents without any."""
    total = len(call.documents)
    keys = labels.all_relevant_sentence_keys
    text = (
        f"{len(keys)} of {_sentences(total, 'document')} {_are(len(keys), total)} relevant to the "
    )
    text += f"question{_list(keys)}"
    without = documents_without_relevant(labels, call)
    if without and keys:
        text += "; nothing relevant in document" + ("s " if len(without) > 1 else " ")
        text += _list([str(number) for number in without], bare=True)
    return text + "."


def utilization_reason(labels: Labels) -> str:
    """Write the reason of utilization: the sentences used, the relevant ones left unused."""
    used, relevant = labels.all_utilized_sentence_keys, labels.all_relevant_sentence_keys
    text = f"The response used {_sentences(len(used))}{_list(used)}; "
    text += f"{len(relevant)} {_are(len(relevant))} relevant"
    return text + _unused(labels) + "."


def completeness_reason(labels: Labels, formulas: Formulas) -> str:
    """Write the reason of completeness: how many relevant sentences were used, which were not."""
    relevant, used = labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys
    if not relevant and used and formulas == "gpt-labeling":
        return f"No document sentence is relevant, but the response used {len(used)}{_list(used)}."
    if not relevant:
        return "No document sentence is relevant, so there was nothing to cover."
    both = len(relevant) - len(relevant_unused(labels))
    were = "was" if 1 in (both, len(relevant)) else "were"
    return f"{both} of {_sentences(len(relevant), 'relevant')} {were} used{_unused(labels)}."


def adherence_reason(
    labels: Labels,
    call: SentencizedCall,
    formulas: Formulas,
    value: float,
    probability: float | None,
    threshold: float | None = None,
) -> str:
    """Write the reason of adherence: the sentences that speak against it, with their verdicts.

    Args:
        labels: the judge's labels.
        call: the call that they are of.
        formulas: the set of formulas.
        value: the score.
        probability: P(adherent); None where the judge gives none, or it was calibrated.
        threshold: the lowest with which the judge labels a response as supported, if it has one.
    """
    recorded = labels.unsupported_response_sentence_keys
    if formulas == "ragbench" and recorded is not None:
        text = (
            f"Recorded as unsupported: {_list(recorded, bare=True)}."
            if recorded
            else "No response sentence is recorded as unsupported."
        )
    else:
        text = _by_sentences(labels, call, unsupported(labels, call, formulas))
    if labels.contradictions:
        sentences = [
            f"{key}: {', '.join(details)}" for key, details in labels.contradictions.items()
        ]
        # A probability made of words would speak against what was found in spite of it.
        return f"{text} Contradicted in {'; '.join(sentences[:_MOST_KEYS])}."
    if value == 0 and probability is not None and threshold is not None:
        # Unsaid, an estimate above an even chance would seem to speak for the response.
        text += f" Probability that all are supported: {probability:.2f}; needs {threshold:.2f}."
    return text


def _by_sentences(labels: Labels, call: SentencizedCall, against: Sequence[Sentence]) -> str:
    """Write the reason of adherence by the sentences that speak against it."""
    total = len(call.response)
    if not against:
        every = (
            "The one response sentence is" if total == 1 else f"All {total} response sentences are"
        )
        return f"{every} fully supported by the documents."
    parts = [f"{s.key} ({labels.support(s.key)}): “{_short(s.text)}”" for s in against]
    text = (
        f"{len(parts)} of {_sentences(total, 'response')} {_are(len(parts))} not fully supported: "
    )
    return text + "; ".join(parts[:_MOST_KEYS]) + ("; …" if len(parts) > _MOST_KEYS else "")


def _unused(labels: Labels) -> str:
    """List the relevant sentences that the response did not use."""
    unused = relevant_unused(labels)
    return f"; relevant but unused: {_list(unused, bare=True)}" if unused else ""


def _list(keys: Sequence[str], *, bare: bool = False) -> str:
    """List keys in brackets, the first few only."""
    if not keys:
        return ""
    text = ", ".join(keys[:_MOST_KEYS]) + (", …" if len(keys) > _MOST_KEYS else "")
    return text if bare else f" ({text})"


def _sentences(count: int, kind: str = "") -> str:
    """Write a count with its noun: "1 document sentence", "2 document sentences"."""
    return " ".join(filter(None, (str(count), kind, "sentence" if count == 1 else "sentences")))


def _are(*counts: int) -> str:
    return "is" if 1 in counts else "are"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 1]}…"
