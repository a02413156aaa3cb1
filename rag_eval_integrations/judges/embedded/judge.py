"""Stage 3 of the flow without a model: labels from the words that sentences share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from math import fsum, sqrt
from string import ascii_lowercase
from typing import NamedTuple

from rag_eval_integrations.judges.embedded._absence import ABSENCE_STEMS, says_documents_do_not_tell
from rag_eval_integrations.judges.embedded._explain import (
    EXPLAIN_ABSENCE,
    explain_adherence,
    explain_relevance,
    explain_support,
    supporting,
)
from rag_eval_integrations.judges.embedded._features import call_features
from rag_eval_integrations.judges.embedded._language import not_covered
from rag_eval_integrations.judges.embedded._model import (
    DIGITS,
    Calibration,
    adherence_features,
    document_probabilities,
    load_model,
    relevance,
    support_probability,
)
from rag_eval_integrations.records import (
    Estimate,
    JudgeInfo,
    Labelling,
    Labels,
    Sentence,
    SentenceSupport,
    SentencizedCall,
    trusted,
)

# --- From the sentences' probabilities to estimates of scores, each with an honest standard error


class Expected(NamedTuple):
    """An expected score."""

    value: float
    independent: float = 0.0
    """Its variance if sentences were independent of each other; 0 where it is a ratio."""


def expected_scores(relevant: Sequence[float], utilized: Sequence[float]) -> dict[str, Expected]:
    """Expectations of the scores over the probabilities of document sentences, of which there are.

    By name in `Labels.estimates`: utilization under each of the two sets of formulas. Completeness
    is Σ min(p(R), p(U)) / Σ p(R): utilized sentences are nearly all relevant ones.
    """
    size, every, used = len(relevant), fsum(relevant), fsum(utilized)
    return (
        {
            "context_relevance": _share(relevant),
            "context_utilization@ragbench": _share(utilized),
            "context_utilization@gpt-labeling": Expected(min(1.0, used / every)),
            "completeness": Expected(fsum(map(min, relevant, utilized)) / every),
        }
        if size
        else {}
    )


def score_estimates(
    scores: Mapping[str, Calibration], relevant: Sequence[float], utilized: Sequence[float]
) -> dict[str, Estimate]:
    """Estimates with standard errors of a call with a response; none without documents."""
    return {
        name: scores[name].estimate(*expected)
        for name, expected in expected_scores(relevant, utilized).items()
    }


def estimates_alone(
    scores: Mapping[str, Calibration], relevant: Sequence[float]
) -> dict[str, Estimate]:
    """The estimate of a retrieval for which there is no response; none without documents."""
    if not relevant:
        return {}
    return {"context_relevance": scores["context_relevance_alone"].estimate(*_share(relevant))}


def _share(probabilities: Sequence[float]) -> Expected:
    size = len(probabilities)
    return Expected(
        fsum(probabilities) / size, fsum([p * (1 - p) for p in probabilities]) / size**2
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

_UNFOUND = 0.5
"""Most P(supported) of a sentence with new words in a response of which the documents hold no word.
The development data have two such responses, one of them adherent: a rule, not a fit. "Paris."
alone, of documents without it, had .92."""

_BIG_CALL = 100_000
"""Characters from which labelling leaves the event loop for a thread: about 25 ms of work."""


class EmbeddedJudge:
    """Labels calls by lexical features with frozen coefficients: no key, no network, no download.

    Deterministic, the same on every platform and Python version. English only: a call in another
    language is unscored (`judge_incapable`). Gives a probability for every sentence, and for every
    score an estimate with its standard error, which is what `Trace` takes. Mean agreement with
    RAGBench's gold labels over five data sets, each domain judged by coefficients fitted without
    it: AUROC of not-adherent .69, RMSE of relevance .16 and of utilization .10
    (docs/embedded-judge.md). About 1 to 3 ms a call; may be used from any number of tasks and
    threads.
    """

    name = "embedded"
    card = (
        "It compares words: it cannot see a wrong negation, one wrong detail in copied text, "
        "arithmetic, or what everybody knows. English only. Agreement with RAGBench's gold, "
        "domains unseen in fitting: AUROC of not adherent .69, RMSE of relevance .16, utilization "
        ".10."
    )
    """What it is and what it cannot do, in short; `rag-eval doctor` shows it."""
    unsure = (0.7, 0.9)
    """P(adherent) where another judge is worth asking: 47 % of rows of unseen domains, of which
    15 % are not adherent. Its threshold, .88, is inside; in (0.3, 0.7) are 3 %."""
    keeps_keys = True
    """Its labels name every sentence once, by the very key it was given: nothing to reconcile."""

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
    documents, response = call.sentences.documents, call.sentences.response
    texts = _by_document(documents)
    strange = not_covered(
        call.call.question, call.call.response or "", [" ".join(part[:3]) for part in texts[:10]]
    )
    judge = _info(load_model().version)
    if strange is not None:
        return trusted(
            Labelling,
            labels=None,
            judge=judge,
            warnings=(WARNING,),
            flags=(FLAG,),
            unscored="judge_incapable",
            reason=f"the embedded judge compares English words only, not {strange}; use a judge "
            "that asks a model, such as OpenAIModel",
        )
    return trusted(
        Labelling,
        labels=_labels(call.call.question, documents, response, texts),
        judge=judge,
        warnings=(WARNING,),
        flags=(FLAG,),
    )


@cache
def _info(version: str) -> JudgeInfo:
    return JudgeInfo(name=EmbeddedJudge.name, version=version)


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
    if response:
        by_response, utilized = document_probabilities(
            features.documents, model.relevant, model.utilized
        )
        relevant = relevance(model, features.documents, by_response)
        relevant_threshold = model.relevant_threshold
        estimates = score_estimates(model.scores, relevant, utilized)
    else:
        relevant = relevance(model, features.documents, None)
        utilized = [0.0] * len(relevant)
        relevant_threshold = model.relevant_alone_threshold
        estimates = estimates_alone(model.scores, relevant)
    absences: list[bool] = []
    supported: list[float] = []
    for sentence, row, words in zip(
        response, features.response, features.overlap.response, strict=True
    ):
        absent = not ABSENCE_STEMS.isdisjoint(words.stems) and says_documents_do_not_tell(
            sentence.text
        )
        p = support_probability(model, row, words.stems)
        absences.append(absent)
        supported.append(max(_ABSENCE, p) if absent else p)
    if not any(features.overlap.found):
        supported = [
            min(p, _UNFOUND) if row.new and not absent else p
            for p, row, absent in zip(supported, features.response, absences, strict=True)
        ]
    probability = model.adherent.probability(adherence_features(supported))
    adherent = probability >= model.adherent_threshold
    verdicts = _verdicts(supported, adherent, model.supported_threshold)
    keys = [sentence.key for sentence in documents]
    entries = []
    for number, sentence in enumerate(response):
        matched = supporting(features.response[number].cover)
        cited = tuple([keys[i] for i in matched])
        entries.append(
            trusted(
                SentenceSupport,
                response_sentence_key=sentence.key,
                explanation=EXPLAIN_ABSENCE
                if absences[number]
                else explain_support(
                    features,
                    number,
                    sentence.text,
                    cited,
                    supported[number],
                    [documents[i].text for i in matched],
                ),
                supporting_sentence_keys=cited,
                fully_supported=verdicts[number],
            )
        )
    chosen = [k for k, p in zip(keys, relevant, strict=True) if p >= relevant_threshold]
    used = [k for k, p in zip(keys, utilized, strict=True) if p >= model.utilized_threshold]
    response_keys = [sentence.key for sentence in response]
    if response:
        # Standard error: how far the gold score, 0 or 1, lies from the estimate (RMS).
        estimates["adherence"] = (
            probability,
            round(sqrt(probability * (1 - probability)), DIGITS),
        )
    return trusted(
        Labels,
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
