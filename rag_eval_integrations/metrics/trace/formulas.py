"""TRACe's formulas as pure functions of counts and labels (arXiv:2407.11005, section 3).

There are two sets of formulas, and their scores are never averaged together. T is the number of
document sentences; R and U are the relevant and the utilized ones:

    score            `gpt-labeling`                         `ragbench` (the published columns)
    relevance        R / T, or min(1, R / baseline)         R / T
    utilization      min(1, U / R); R empty: 0              U / T
    completeness     both / R; R empty: 1 if U is empty,    both / R; R empty: 1
                     else 0
    adherence        1 iff every response sentence is       1 iff none is recorded as unsupported,
                     fully supported                        else the sentence rule

With T = 0 nothing can be relevant or utilized: R = 0, and under `ragbench` U = 0. C ≤ U ≤ R does
not hold in general: with R and U empty, `gpt-labeling` gives C = 1 and U = 0, and U often exceeds
R. With R not empty, C ≤ U holds under `gpt-labeling`. `docs/method.md` defines both sets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, Labels, Score, Sentence, SentencizedCall
from rag_eval_integrations.records.labels import Support
from rag_eval_integrations.records.score import Diagnosis, Pattern, patterns_in
from rag_eval_integrations.sentences._sentencize import document_number

Formulas = Literal["gpt-labeling", "ragbench"]


def context_relevance(relevant: float, total: int, baseline: int | None = None) -> float:
    """Compute the relevant share of the retrieved sentences: |R| / T, in [0, 1], 1 is best.

    Args:
        relevant: |R|, or its expectation.
        total: T, the number of document sentences.
        baseline: a fixed number to divide by instead of T, such as 20, so that long and short
            contexts can be compared.

    Returns:
        The share; 0 when nothing was retrieved.
    """
    divisor = total if baseline is None else baseline
    return min(1.0, relevant / divisor) if divisor else 0.0


def context_utilization(
    relevant: float, utilized: float, total: int, formulas: Formulas = "gpt-labeling"
) -> float:
    """Compute how much of the context was used, in [0, 1].

    `gpt-labeling` divides by the relevant sentences (|U| / |R|), `ragbench` by all (|U| / T).

    Args:
        relevant: |R|, or its expectation.
        utilized: |U|, or its expectation.
        total: T, the number of document sentences.
        formulas: the set of formulas.

    Returns:
        The share. `gpt-labeling`: 0 when R is empty, even if U is not. `ragbench`: 0 when nothing
        was retrieved.
    """
    divisor = relevant if formulas == "gpt-labeling" else total
    return min(1.0, utilized / divisor) if divisor else 0.0


def completeness(
    relevant: float, both: float, utilized: float, formulas: Formulas = "gpt-labeling"
) -> float:
    """Compute the used share of the relevant sentences: |R∩U| / |R|, in [0, 1], 1 is best.

    Args:
        relevant: |R|, or its expectation.
        both: |R∩U|, or its expectation.
        utilized: |U|, or its expectation; matters only when R is empty.
        formulas: the set of formulas.

    Returns:
        The share. With R empty: under `gpt-labeling` 1 if U is empty too, else 0; under `ragbench`
        always 1, which reproduces 100 % of the published rows.
    """
    if relevant:
        return min(1.0, both / relevant)
    return 1.0 if formulas == "ragbench" or not utilized else 0.0


def adherence(
    labels: Labels, keys: Sequence[str], formulas: Formulas = "gpt-labeling"
) -> float | None:
    """Decide whether the response is grounded in the documents: 1.0 if so, else 0.0.

    A single sentence without full support makes it 0.0.

    Args:
        labels: reconciled labels.
        keys: the keys of the response sentences.
        formulas: `ragbench` uses the recorded `unsupported_response_sentence_keys` where they
            exist, and the sentence rule otherwise.

    Returns:
        1.0 or 0.0; 1.0 when there is no response sentence. None when no labelled sentence is
        unsupported but some are unlabelled, so that adherence is unknown.
    """
    recorded = labels.unsupported_response_sentence_keys
    if formulas == "ragbench" and recorded is not None:
        return 0.0 if recorded else 1.0
    supports = {labels.support(key) for key in keys}
    if supports & {"partial", "none"}:
        return 0.0
    return None if "unlabelled" in supports else 1.0


def supported_fraction(supports: Sequence[Support]) -> float | None:
    """Compute the share of the response sentences that are fully supported, in [0, 1], 1 is best.

    Returns:
        The share; 1.0 when there is no response sentence; None when any is unlabelled.
    """
    if "unlabelled" in supports:
        return None
    return supports.count("full") / len(supports) if supports else 1.0


def overlap(relevant: Collection[str], utilized: Collection[str]) -> int:
    """Count the distinct keys in both: |R∩U|."""
    return len(set(relevant) & set(utilized))


# --- The counts that the formulas take: counted from the labels, or expected from probabilities


@dataclass(frozen=True)
class Counts:
    """Numbers of document sentences, or their expectations."""

    total: int
    """T, all document sentences."""
    relevant: float
    """|R|"""
    utilized: float
    """|U|"""
    both: float
    """|R∩U|"""
    relevant_variance: float = 0.0
    """Variance of |R| if sentences were independent; 0 for labels."""
    utilized_variance: float = 0.0
    """Variance of |U|, likewise."""


NOTHING_RETRIEVED = "nothing was retrieved in this turn"
"""Why a call with documents of earlier turns alone has no score of retrieval."""


def of_this_turn(call: SentencizedCall, labels: Labels) -> tuple[SentencizedCall, Labels]:
    """Return a call and its labels without the documents of earlier turns."""
    earlier = call.call.earlier
    if not earlier:
        return call, labels

    def of_turn(keys: Sequence[str]) -> tuple[str, ...]:
        return tuple([key for key in keys if document_number(key) not in earlier])

    lists = {
        "all_relevant_sentence_keys": of_turn(labels.all_relevant_sentence_keys),
        "all_utilized_sentence_keys": of_turn(labels.all_utilized_sentence_keys),
    }
    return call.of_this_turn(), labels.model_copy(update=lists)


def labelled_counts(labels: Labels, total: int) -> Counts:
    """Count the labelled keys; repeats count, since `--raw-keys` keeps them."""
    relevant, utilized = labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys
    return Counts(total, len(relevant), len(utilized), overlap(relevant, utilized))


def expected_counts(labels: Labels, keys: Sequence[str]) -> Counts | None:
    """Compute the expected counts over the document sentences `keys`.

    None unless every sentence has both probabilities.

    |R∩U| is expected as Σ min(p(R), p(U)): utilized sentences are nearly all relevant ones
    (U ⊄ R in 15.8 % of RAGBench rows), so the two are close to nested, not independent.
    """
    relevant, utilized = labels.relevant_probabilities, labels.utilized_probabilities
    if relevant is None or utilized is None:
        return None
    if not all(key in relevant and key in utilized for key in keys):
        return None
    return Counts(
        total=len(keys),
        relevant=math.fsum(relevant[key] for key in keys),
        utilized=math.fsum(utilized[key] for key in keys),
        both=math.fsum(min(relevant[key], utilized[key]) for key in keys),
        relevant_variance=_variance(relevant, keys),
        utilized_variance=_variance(utilized, keys),
    )


def _variance(probabilities: Mapping[str, float], keys: Sequence[str]) -> float:
    """Return the variance of the number of true labels (a Poisson binomial)."""
    return math.fsum(probabilities[key] * (1 - probabilities[key]) for key in keys)


# --- Patterns in the scores of a call

__all__ = ["Diagnosis", "Pattern", "diagnose"]


def diagnose(
    scores: Mapping[str, Score] | Evaluation,
    *,
    adherent: float = 1.0,
    irrelevant: float = 0.0,
    ignored: float = 0.4,
    incomplete: float = 0.5,
) -> list[Diagnosis]:
    """Name the patterns that a call's TRACe scores show; `docs/concepts.md` lists them with rates.

    Args:
        scores: an evaluation, or its scores by name, as in `Evaluation.scores`.
        adherent: lowest adherence, in [0, 1], that counts as grounded.
        irrelevant: highest context relevance, in [0, 1], that counts as nothing relevant.
        ignored: highest share of the relevant sentences, in [0, 1], that counts as context ignored:
            utilization, which under `ragbench` is divided by relevance.
        incomplete: highest completeness, in [0, 1], that counts as incomplete.

    Returns:
        Every pattern that holds, the gravest first. A pattern is left out unless all its scores
        have values, so the list is empty when nothing is scored.

    Raises:
        ConfigurationError: a cut-off is outside [0, 1]; `scores` are neither.
    """
    cuts = {
        "adherent": adherent,
        "irrelevant": irrelevant,
        "ignored": ignored,
        "incomplete": incomplete,
    }
    for name, cut in cuts.items():
        if not 0 <= cut <= 1:
            raise ConfigurationError(name, cut, "use a number from 0 to 1")
    by_name = scores.scores if isinstance(scores, Evaluation) else scores
    if not isinstance(by_name, Mapping):
        raise ConfigurationError(
            "scores", scores, "should be an evaluation, or its scores by name (`evaluation.scores`)"
        )
    return patterns_in(by_name, **cuts)


# --- Evidence: the `evidence` object and the `reason` sentence of each score


_MOST_KEYS = 12  # a reason is read by a person; the evidence beside it holds all keys
_MOST_TEXT = 160


def documents_without_relevant(labels: Labels, call: SentencizedCall) -> list[int]:
    """List the numbers of this turn's documents without a relevant sentence, also empty ones."""
    useful = {document_number(key) for key in labels.all_relevant_sentence_keys}
    useful.update(call.call.earlier)
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
    against = support_evidence(labels, unsupported(labels, call, formulas))
    return {"unsupported": against, "explanation": labels.overall_supported_explanation}


def support_evidence(labels: Labels, sentences: Sequence[Sentence]) -> list[JsonValue]:
    """List response sentences with their labels."""
    return [
        {
            "key": sentence.key,
            "text": sentence.text,
            "support": labels.support(sentence.key),
            "supporting_sentence_keys": list(entry.supporting_sentence_keys) if entry else [],
            "explanation": entry.explanation if entry else "",
            **_conflicts(labels, sentence.key),
        }
        for sentence in sentences
        for entry in [labels.entry(sentence.key)]
    ]


def _conflicts(labels: Labels, key: str) -> dict[str, JsonValue]:
    """Build the field `contradictions`, of a sentence that has any."""
    details = labels.contradictions.get(key)
    return {"contradictions": list(details)} if details else {}


def relevance_reason(labels: Labels, call: SentencizedCall) -> str:
    """Write the reason of context relevance: the relevant sentences, the documents without any."""
    total = len(call.documents)
    keys = labels.all_relevant_sentence_keys
    turn = " of this turn" if call.call.earlier else ""
    text = (
        f"{len(keys)} of {_sentences(total, 'document')}{turn} {_are(len(keys), total)} relevant "
    )
    text += f"to the question{_list(keys)}"
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
    """Write a clause that names relevant sentences left unused; empty if there are none."""
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
