"""Stage 3 of the flow without a model: labels from the words that sentences share."""

from __future__ import annotations

import asyncio
from itertools import groupby
from math import sqrt
from string import ascii_lowercase

from rag_eval_integrations.judges.embedded.absence import says_documents_do_not_tell
from rag_eval_integrations.judges.embedded.explain import (
    EXPLAIN_ABSENCE,
    explain_adherence,
    explain_relevance,
    explain_support,
    supporting,
)
from rag_eval_integrations.judges.embedded.features import call_features
from rag_eval_integrations.judges.embedded.language import not_covered
from rag_eval_integrations.judges.embedded.model import (
    adherence_features,
    expected_completeness,
    load_model,
    probabilities_of_both,
)
from rag_eval_integrations.records import (
    Estimate,
    JudgeInfo,
    Labelling,
    Labels,
    Sentence,
    SentenceSupport,
    SentencizedCall,
)

WARNING = (
    "Lexical estimate: the embedded judge compares words and understands nothing; a wrong negation "
    "or one wrong detail in copied text passes."
)
"""Carried by every labelling, and so by every score made from it."""

FLAG = "lexical_estimate"
"""The same for `Evaluation.flags`."""

_ABSENCE = 0.95
"""Least P(supported) of a sentence that says the documents do not tell: gold agrees in 96 %."""

_BIG_CALL = 100_000
"""Characters from which labelling leaves the event loop for a thread: about 25 ms of work."""


class EmbeddedJudge:
    """Labels calls by lexical features with frozen coefficients: no key, no network, no download.

    Deterministic. English only: a call in another language is unscored (`judge_incapable`). Gives
    probabilities for every sentence, from which `Trace` takes expected scores, and calibrated
    estimates of completeness and adherence. Mean agreement with RAGBench's gold labels over five
    data sets, each judged by coefficients fitted without it: AUROC of not-adherent .68, RMSE of
    relevance .15 and of utilization .10 (`benchmarks/embedded_judge.py`). About 3 ms a call; may be
    used from any number of tasks and threads.
    """

    name = "embedded"
    card = (
        "It compares words: it cannot see a wrong negation, one wrong detail in copied text, "
        "arithmetic, or what everybody knows. English only. Agreement with RAGBench's gold, data "
        "sets unseen in fitting: AUROC of not adherent .68, RMSE of relevance .15, utilization .10."
    )
    """What it is and what it cannot do, in short; `rag-eval doctor` shows it."""

    @property
    def version(self) -> str:
        """Version of the coefficients, stamped on every score."""
        return load_model().version

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call; see `label_call`. A big call is labelled in a thread."""
        sentences = call.sentences
        size = sum([len(s.text) for s in (*sentences.documents, *sentences.response)])
        if size < _BIG_CALL:
            return label_call(call)
        return await asyncio.to_thread(label_call, call)

    def __repr__(self) -> str:
        return "EmbeddedJudge()"


def label_call(call: SentencizedCall) -> Labelling:
    """Label one call, without I/O beyond reading the coefficients once per process.

    `labels` is None, `unscored` is `judge_incapable`, when question, response or documents are
    clearly not English. A call without documents or response gets labels: empty where there is
    nothing to label.
    """
    judge = JudgeInfo(name=EmbeddedJudge.name, version=load_model().version)
    documents, response = call.sentences.documents, call.sentences.response
    texts = _by_document(documents)
    strange = not_covered(
        call.call.question, call.call.response or "", [" ".join(part[:3]) for part in texts[:10]]
    )
    if strange is not None:
        return Labelling(
            labels=None,
            judge=judge,
            warnings=(WARNING,),
            flags=(FLAG,),
            unscored="judge_incapable",
            reason=f"the embedded judge compares English words only, not {strange}; use a judge "
            "that asks a model, such as OpenAIJudge",
        )
    return Labelling(
        labels=_labels(call.call.question, documents, response, texts),
        judge=judge,
        warnings=(WARNING,),
        flags=(FLAG,),
    )


def _by_document(documents: tuple[Sentence, ...]) -> list[list[str]]:
    """Texts of the sentences of each document, from the number in their keys."""
    return [
        [sentence.text for sentence in part]
        for _, part in groupby(documents, lambda sentence: sentence.key.rstrip(ascii_lowercase))
    ]


def _labels(
    question: str,
    documents: tuple[Sentence, ...],
    response: tuple[Sentence, ...],
    texts: list[list[str]],
) -> Labels:
    model = load_model()
    features = call_features(question, texts, [sentence.text for sentence in response])
    relevant, utilized = probabilities_of_both(model.relevant, model.utilized, features.documents)
    supported = model.supported.probabilities(features.response)
    absences = [says_documents_do_not_tell(sentence.text) for sentence in response]
    supported = [max(p, _ABSENCE) if a else p for p, a in zip(supported, absences, strict=True)]
    probability = model.adherent.probability(adherence_features(supported))
    adherent = probability >= model.adherent_threshold
    verdicts = _verdicts(supported, adherent, model.supported_threshold)
    keys = [sentence.key for sentence in documents]
    entries = []
    for number, sentence in enumerate(response):
        cover = features.covers[number]
        cited = tuple([keys[i] for i in supporting(cover)])
        entries.append(
            SentenceSupport(
                response_sentence_key=sentence.key,
                explanation=EXPLAIN_ABSENCE
                if absences[number]
                else explain_support(
                    features.overlap, number, sentence.text, cover, cited, supported[number]
                ),
                supporting_sentence_keys=cited,
                fully_supported=verdicts[number],
            )
        )
    chosen = [k for k, p in zip(keys, relevant, strict=True) if p >= model.relevant_threshold]
    used = [k for k, p in zip(keys, utilized, strict=True) if p >= model.utilized_threshold]
    response_keys = [sentence.key for sentence in response]
    intercept, slope, error = model.completeness
    completeness = intercept + slope * expected_completeness(relevant, utilized)
    estimates: dict[str, Estimate] = {"completeness": (min(1.0, max(0.0, completeness)), error)}
    if response:
        # Standard error: how far the gold score, 0 or 1, lies from the estimate (RMS).
        estimates["adherence"] = (probability, sqrt(probability * (1 - probability)))
    return Labels(
        relevance_explanation=explain_relevance(keys, relevant, len(chosen)),
        all_relevant_sentence_keys=tuple(chosen),
        overall_supported_explanation=explain_adherence(
            response_keys, supported, probability, adherent
        ),
        overall_supported=all(verdicts),
        sentence_support_information=tuple(entries),
        all_utilized_sentence_keys=tuple(used),
        unsupported_response_sentence_keys=tuple(
            [key for key, verdict in zip(response_keys, verdicts, strict=True) if not verdict]
        ),
        relevant_probabilities=dict(zip(keys, relevant, strict=True)),
        utilized_probabilities=dict(zip(keys, utilized, strict=True)),
        supported_probabilities=dict(zip(response_keys, supported, strict=True)),
        estimates=estimates,
    )


def _verdicts(supported: list[float], adherent: bool, threshold: float) -> list[bool]:
    """Sentence labels that agree with the response's: all supported, or not the least one."""
    if adherent or not supported:
        return [True] * len(supported)
    least = min(supported)
    return [p >= threshold and p > least for p in supported]
