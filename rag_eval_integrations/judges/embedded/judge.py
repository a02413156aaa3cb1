"""Stage 3 without a model: `EmbeddedJudge` labels sentences by the words that they share."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, compress, groupby
from math import fsum, sqrt
from operator import not_
from string import ascii_lowercase
from typing import NamedTuple

from rag_eval_integrations._recent import Recent
from rag_eval_integrations.judges.embedded._features import CallFeatures, call_features
from rag_eval_integrations.judges.embedded._language import not_covered
from rag_eval_integrations.judges.embedded._model import (
    DIGITS,
    adherence_features,
    document_probabilities,
    load_model,
    relevance,
    score_estimates,
    support_probability,
)
from rag_eval_integrations.judges.embedded._near_copies import (
    Difference,
    Reading,
    near_copies,
    read,
)
from rag_eval_integrations.judges.embedded._overlap import Cover
from rag_eval_integrations.judges.embedded._words import (
    FUNCTION_WORDS,
    Words,
    raw_words,
    stem,
    words,
)
from rag_eval_integrations.judges.judge import JudgeBase
from rag_eval_integrations.records import (
    JudgeInfo,
    Labelling,
    Labels,
    RagCall,
    Sentence,
    SentenceSupport,
    SentencizedCall,
)
from rag_eval_integrations.records._json import trusted

WARNING = (
    "Lexical estimate: the embedded judge compares words and does not understand them; it names a "
    "number, name, date, unit or negation that differs in copied text, and misses other errors."
)
"""Warning on every labelling, and so on every score made from it."""

FLAG = "lexical_estimate"
"""Flag of every labelling, for `Evaluation.flags`."""

CONTRADICTED = "contradiction"
"""Flag of a labelling in which a document contradicts a detail of the response."""

SPREAD = "doubt_spread"
"""Flag: the words of a response sentence are in the documents, but spread over several of them.
Words do not tell whether they belong together, as in answers to two-hop questions."""

SPREAD_LIMIT = 0.25
"""Most weight of a sentence that the documents hold and the best single one does not, as a share,
without that doubt."""

_ABSENCE = 0.95
"""Lower limit of P(supported) for a sentence that says that the documents do not tell; in gold,
96 % of these are supported."""

_UNFOUND = 0.5
"""Upper limit of P(supported) for a sentence that shares no word with the documents, if the fit
knows none of its words either (as of "Sure!") and it does not introduce others ("Key points:").
Without it "Paris." had .92 for documents that do not name Paris."""

_BELOW = 0.01
"""How far below the threshold of adherence P(supported) of a sentence that a document contradicts,
and P(adherent), are at most. A lower limit ranks such responses too low: some are right in gold."""

_HEADER = 2_000
"""Characters of a header that are read, as many as a model is shown."""

_WORD = re.compile(r"[^\W_]")
_ENTRY = set(SentenceSupport.model_fields)

_BIG_CALL = 100_000
"""Characters from which a call is labelled in a thread instead of on the event loop; about 25 ms of
work."""

# Sentences come again, as documents do, and cutting them is half of the work on a call.
_REMEMBERED = 4_096
_REMEMBERED_LENGTH = 400  # characters; at most about 20 MB in all


class EmbeddedJudge(JudgeBase):
    """Labels calls by lexical features with frozen coefficients; needs no key, network or download.

    Deterministic on all platforms and Python versions. English only: a call in another language is
    unscored (`judge_incapable`). The labels hold a probability for every sentence, and an estimate
    with a standard error for every score, which `Trace` uses. Takes about 1 to 3 ms per call; one
    object may be used from any number of tasks and threads.

    Mean agreement with RAGBench's gold labels over five data sets, with each domain judged by
    coefficients fitted without it: AUROC of not adherent .68, RMSE of relevance .16 and of
    utilization .11 (docs/embedded-judge.md).
    """

    name = "embedded"
    card = (
        "It compares words: in copied text it sees a number, name, date, unit or negation that "
        "differs, but no other wrong detail, no arithmetic, no common knowledge. English only. "
        "Agreement with RAGBench's gold, on domains unseen in fitting: AUROC of not adherent .68, "
        "RMSE of relevance .16, utilization .11."
    )
    """Summary of its abilities and limits, shown by `rag-eval doctor`."""
    unsure = (0.7, 0.9)
    """Band of P(adherent) in which asking another judge is worthwhile. It holds 54 % of the rows of
    unseen domains, 13 % of them not adherent, and the threshold of .77."""
    keeps_keys = True
    """True: labels name every sentence once by its own key, so there is nothing to reconcile."""

    def __init__(self) -> None:
        self.version = load_model().version
        self._words = Recent(words, _REMEMBERED, _REMEMBERED_LENGTH)
        self._read = Recent(read, _REMEMBERED, _REMEMBERED_LENGTH)

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call; see `label_call`. A large call is labelled in a thread."""
        size = sum([len(s.text) for s in (*call.documents, *call.response)])
        if size < _BIG_CALL:
            return label_call(call, self._words, self._read)
        return await asyncio.to_thread(label_call, call, self._words, self._read)

    def __repr__(self) -> str:
        return "EmbeddedJudge()"


def label_call(
    call: SentencizedCall,
    words: Callable[[str], Words] = words,
    read: Callable[[str], Reading] = read,
) -> Labelling:
    """Label one call; the only I/O is reading the coefficients once per process.

    The header of a document counts as part of it, but has no key and is in none of the labels. When
    question, response or documents are clearly not English, `labels` is None and `unscored` is
    `judge_incapable`; when no document has a letter or digit, it is `no_context`. A call without
    documents or response has labels, which are empty where there is nothing to label.

    Args:
        call: the call with its keyed sentences.
        words: splits a sentence into words; `EmbeddedJudge` passes one that remembers.
        read: reads a sentence for comparison; likewise.
    """
    documents, response = call.documents, call.response
    parts = _by_document(call)
    heads = [part.beginning for part in parts[:10]]
    strange = not_covered(call.call.question, call.call.response or "", heads)
    model = load_model()
    judge = JudgeInfo(name=EmbeddedJudge.name, version=model.version)
    labelling = partial(Labelling, judge=judge, warnings=(WARNING,), flags=(FLAG,))
    if documents and not any(_WORD.search(sentence.text) for sentence in documents):
        reason = "no document has a letter or digit, and the embedded judge compares words"
        return labelling(labels=None, unscored="no_context", reason=reason)
    if strange is not None:
        reason = f"the embedded judge supports English only, and not {strange}; "
        reason += "use a judge that asks a model, such as OpenAIModel"
        return labelling(labels=None, unscored="judge_incapable", reason=reason)
    question = standalone_question(call.call)
    labels, flags = _labels(question, parts, response, words, read)
    if call.call.earlier:
        # The weights of words are the call's: documents of earlier turns would change them.
        own, _ = _labels(question, _by_document(call.of_this_turn()), response, words, read)
        labels = labels.model_copy(update=_retrieval_fields(own, labels))
    needed = model.thresholds["adherent"]
    return labelling(labels=labels, flags=(FLAG, *flags), adherence_threshold=needed)


_REFER = """
another former he her him his it its latter more one ones other same she that their them then
there these they this those
"""
_REFERRING = frozenset(_REFER.split())
_MOST_TURNS = 3


def standalone_question(call: RagCall) -> str:
    """Return the question as it can be read alone: a follow-up behind the turns that it refers to.

    They are the user's, back to one that can be read alone; where none can, the assistant's last as
    well, which then names the topic. Words of an answer would also hold for what was asked before.
    """
    texts = [call.question]
    if not call.history or not _is_follow_up(call.question):
        return call.question
    turns = [turn.content for turn in call.history if turn.role == "user"]
    for turn in turns[: -_MOST_TURNS - 1 : -1]:
        texts.append(turn)
        if not _is_follow_up(turn):
            break
    else:
        answers = [turn.content for turn in call.history if turn.role == "assistant"]
        texts += answers[-1:]
    return "\n".join(reversed(texts))


def _is_follow_up(question: str) -> bool:
    """Tell whether a question says too little to be read alone: "And how long does that take?"."""
    asked = [word.lower() for word in raw_words(question)]
    content = len(asked) - sum(map(FUNCTION_WORDS.__contains__, asked))
    return content < 3 or (content < 5 and not _REFERRING.isdisjoint(asked))


class _Document(NamedTuple):
    """A document that has sentences."""

    number: str
    header: list[str]
    """Lines in front of its text, which are read like sentences and have no key."""
    sentences: list[Sentence]

    @property
    def beginning(self) -> str:
        """Its first three sentences, from which its language is told."""
        return " ".join([sentence.text for sentence in self.sentences[:3]])

    @property
    def texts(self) -> list[str]:
        """Header lines and sentences, in order."""
        return self.header + [sentence.text for sentence in self.sentences]

    @property
    def sources(self) -> list[str]:
        """Names of these texts: keys, and the same name for all lines of the header."""
        header = [f"the header of document {self.number}"] * len(self.header)
        return header + [sentence.key for sentence in self.sentences]


def _by_document(call: SentencizedCall) -> list[_Document]:
    """Group the sentences by document, from the numbers in their keys, with the headers."""
    headers = {str(n): d.header[:_HEADER] for n, d in enumerate(call.call.documents) if d.header}
    documents = []
    for number, part in groupby(call.documents, lambda s: s.key.rstrip(ascii_lowercase)):
        lines = headers.get(number, "").splitlines()
        header = [line for line in lines if _WORD.search(line)]
        documents.append(_Document(number, header, list(part)))
    return documents


def _labels(
    question: str,
    documents: list[_Document],
    response: tuple[Sentence, ...],
    words: Callable[[str], Words],
    read: Callable[[str], Reading],
) -> tuple[Labels, list[str]]:
    """Return the labels, and the flags besides `FLAG`.

    A sentence that contradicts a document in a detail is unsupported, and so is the response.
    """
    model = load_model()
    texts = [document.texts for document in documents]
    features = call_features(question, texts, [sentence.text for sentence in response], words)
    rows = zip(features.documents, documents, strict=True)
    features = features._replace(documents=[of.without(len(d.header)) for of, d in rows])
    keys = [sentence.key for document in documents for sentence in document.sentences]
    by_response = None
    utilized = [0.0] * len(keys)
    if response:
        by_response, utilized = document_probabilities(
            features.documents, model.relevant, model.utilized
        )
    relevant = relevance(model, features, by_response)
    estimates = score_estimates(model, features, relevant, utilized)
    o = features.overlap
    supported: list[float] = []
    claims: list[str] = []
    for sentence, row, own, known in zip(
        response, features.response, o.response, o.known, strict=True
    ):
        p = support_probability(model, row, own.stems)
        introduces = any(o.known) and sentence.text.rstrip().endswith(":")
        if row.absent:
            p = max(_ABSENCE, p)
        elif row.new and not (known or introduces or own.bag & model.new.keys()):
            p = min(_UNFOUND, p)
        supported.append(p)
        claims.append("" if row.absent else sentence.text)
    contradicted = near_copies(o, claims, list(chain(*texts)), question, read)
    probability = model.adherent.probability(adherence_features(supported))
    adherent = probability >= model.thresholds["adherent"]
    verdicts = _verdicts(supported, adherent, model.thresholds["supported"])
    if contradicted:
        most = round(model.thresholds["adherent"] - _BELOW, DIGITS)
        adherent, probability = False, min(probability, most)
        for number in contradicted:
            verdicts[number] = False
            # Below the limit, and in the order of the probabilities.
            supported[number] = round(most * supported[number], DIGITS)
    sources = list(chain.from_iterable([document.sources for document in documents]))
    labelled = set(keys)
    entries = []
    for number, (sentence, row) in enumerate(zip(response, features.response, strict=True)):
        cited = [sources[i] for i in supporting(row.cover)]
        explanation = explain_support(
            features, number, sentence.text, cited, supported[number], contradicted.get(number)
        )
        entry = {
            "response_sentence_key": sentence.key,
            "explanation": explanation,
            "supporting_sentence_keys": tuple(filter(labelled.__contains__, cited)),
            "fully_supported": verdicts[number],
        }
        entries.append(trusted(SentenceSupport, entry, _ENTRY))
    alone = "relevant" if response else "relevant_alone"
    chosen = _likeliest(keys, relevant, model.thresholds[alone])
    response_keys = [sentence.key for sentence in response]
    if response:
        # Standard error: RMS distance of the gold score, 0 or 1, from the estimate.
        error = round(sqrt(probability * (1 - probability)), DIGITS)
        estimates["adherence"] = (probability, error)
    # Validated, it takes three times as long (21 against 6 µs); this function made every part.
    labels = Labels.model_construct(
        relevance_explanation=explain_relevance(keys, relevant, len(chosen)),
        all_relevant_sentence_keys=chosen,
        overall_supported_explanation=explain_adherence(
            response_keys, supported, probability, adherent
        ),
        overall_supported=all(verdicts),
        sentence_support_information=tuple(entries),
        all_utilized_sentence_keys=_likeliest(keys, utilized, model.thresholds["utilized"]),
        unsupported_response_sentence_keys=tuple(compress(response_keys, map(not_, verdicts))),
        relevant_probabilities=dict(zip(keys, relevant, strict=True)),
        utilized_probabilities=dict(zip(keys, utilized, strict=True)),
        supported_probabilities=dict(zip(response_keys, supported, strict=True)),
        estimates=estimates,
        contradictions={
            response_keys[number]: (str(detail),) for number, detail in contradicted.items()
        },
    )
    doubtful = any(row.spread > SPREAD_LIMIT for row in features.response)
    flags = [*([CONTRADICTED] if contradicted else []), *([SPREAD] if doubtful else [])]
    return labels, flags


_OF_RETRIEVAL = (
    "relevance_explanation",
    "all_relevant_sentence_keys",
    "all_utilized_sentence_keys",
    "relevant_probabilities",
    "utilized_probabilities",
)


def _retrieval_fields(own: Labels, every: Labels) -> dict[str, object]:
    """Return the labels of this turn's documents, with the whole call's estimate of adherence."""
    adherence = {name: e for name, e in (every.estimates or {}).items() if name == "adherence"}
    fields = {name: getattr(own, name) for name in _OF_RETRIEVAL}
    return {**fields, "estimates": {**(own.estimates or {}), **adherence}}


_POSSIBLE, _SURE = 0.15, 0.6
"""A sentence below the first probability is never labelled, one from the second always."""


def _likeliest(keys: list[str], probabilities: list[float], threshold: float) -> tuple[str, ...]:
    """List the likeliest sentences: on average as many as pass the threshold, and are expected.

    By the threshold alone, scores counted in the labels are farther from gold (docs).
    """
    over = sum([p >= threshold for p in probabilities])
    count = int((fsum(probabilities) + over) / 2 + 0.5)
    ranked = sorted(range(len(keys)), key=lambda i: (-probabilities[i], i))
    likely = [i for i in ranked[:count] if probabilities[i] >= _POSSIBLE]
    sure = [i for i, p in enumerate(probabilities) if p >= _SURE]
    return tuple([keys[i] for i in sorted({*likely, *sure})])


def _verdicts(supported: list[float], adherent: bool, threshold: float) -> list[bool]:
    """Decide on sentence labels that agree with the response's.

    All sentences of an adherent response are supported; otherwise at least the one with the lowest
    probability is not.
    """
    if adherent or not supported:
        return [True] * len(supported)
    least = min(supported)
    return [p >= threshold and p > least for p in supported]


# --- Explanations of the labels
#
# Every explanation says that it is lexical, because the judge only compares words.

SHOWN = 5
"""Limit on the keys or words in one explanation."""

_QUOTED = 40
"""Limit on the characters of one quoted word."""

LEAST_GAIN = 0.1
"""Share of a response sentence's weight that a document sentence must add to support it."""


EXPLAIN_ABSENCE = (
    "Lexical estimate: the sentence only refuses, or only says that the documents do not tell; "
    "whether they do was not checked."
)
"""Explanation of a sentence that claims nothing of its own."""


def supporting(cover: Cover) -> tuple[int, ...]:
    """List the document sentences that support a response sentence: at most four, or none.

    The best match must hold twice `LEAST_GAIN` of the weight, and each further one must add
    `LEAST_GAIN`.
    """
    if not cover.gains or cover.gains[0] < 2 * LEAST_GAIN:
        return ()
    pairs = zip(cover.sentences, cover.gains, strict=True)
    return tuple([sentence for sentence, gain in pairs if gain >= LEAST_GAIN])


def explain_support(
    features: CallFeatures,
    number: int,
    text: str,
    cited: Sequence[str],
    probability: float,
    contradicted: Difference | None = None,
) -> str:
    """Explain the label of one response sentence: what supports it, what is in no document.

    Args:
        features: the call's features.
        number: index of the response sentence.
        text: its text.
        cited: keys of the document sentences, and names of the headers, that support it.
        probability: its P(fully supported).
        contradicted: the detail that a document sentence contradicts.
    """
    row = features.response[number]
    if row.absent:
        return EXPLAIN_ABSENCE
    if cited:
        share = fsum(row.cover.gains[: len(cited)])
        match = f"{share:.0%} of its word weight is in {_first_few([*dict.fromkeys(cited)])}"
    else:
        match = "no document sentence shares enough of its words"
    content = features.overlap.response[number].bag
    missing = content.difference(features.overlap.idf)
    if missing:
        # Cut into words again, so that the hot path need not keep the spellings.
        spelled = [word for word in dict.fromkeys(raw_words(text)) if stem(word) in missing]
        cut = [w if len(w) <= _QUOTED else f"{w[: _QUOTED - 1]}…" for w in spelled]
        absent = "; in no document: " + _first_few([f'"{word}"' for word in cut])
    elif content:
        absent = "; all its words are in the documents"
    else:
        absent = "; it has no word to look for"
    conflict = f"conflict: {contradicted}; " if contradicted else ""
    return f"Lexical estimate {probability:.2f}: {conflict}{match}{absent}."


def explain_relevance(keys: Sequence[str], probabilities: Sequence[float], relevant: int) -> str:
    """Explain which document sentences were labelled relevant."""
    if not keys:
        return "Lexical estimate: there are no document sentences."
    ranked = sorted(range(len(keys)), key=lambda i: (-probabilities[i], i))[:SHOWN]
    best = ", ".join(f"{keys[i]} ({probabilities[i]:.2f})" for i in ranked)
    return (
        f"Lexical estimate: {relevant} of {len(keys)} document sentences share enough weighted "
        f"words with question and response; highest: {best}."
    )


def explain_adherence(
    keys: Sequence[str], supported: Sequence[float], probability: float, adherent: bool
) -> str:
    """Explain the verdict on the whole response."""
    verdict = "taken as supported" if adherent else "not taken as supported"
    text = f"Lexical estimate {probability:.2f} that the documents support all of the response"
    if not keys:
        return f"{text}: it has no sentences."
    least = min(range(len(keys)), key=lambda i: (supported[i], i))
    return f"{text}, {verdict}; least supported: {keys[least]} ({supported[least]:.2f})."


def _first_few(items: Sequence[str]) -> str:
    """List the first items, and the number of the rest."""
    rest = len(items) - SHOWN
    return ", ".join(items[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
