"""Gold rows scored straight from their lines, without reasons, evidence and flags.

Labels that `reconcile` would leave as they are need no more than the formulas. All others give
None, and are then read and scored in full.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rag_eval_integrations.agreement._lean import UNIT, Line, LineLabels, by_of, judge_of
from rag_eval_integrations.agreement._marks import marks_from
from rag_eval_integrations.agreement._side import BY_FIELDS, Kept, Maker, listed_of, origin_of
from rag_eval_integrations.agreement._table import Row
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.judges._reconcile import SPECIAL_KEYS
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.records import JudgeInfo
from rag_eval_integrations.sentences import RECORDED

_LONGEST_KEY = 6
"""Characters of a key; a longer one may name a document that no row has."""


def gold_row(line: Line, trace: Trace) -> Row | None:
    """Score the labels of an evaluation; None where it has to be read and scored in full."""
    labels, response, sentences = line.labels, line.response, line.sentences
    if labels is None or not response or not line.question.strip() or not line.id:
        return None
    others = (line.error, line.capture, line.history, line.relevant_ids)
    if any(one is not None for one in others):
        return None
    documents = [one[0] for one in sentences.documents]
    answers = [one[0] for one in sentences.response]
    if not _are_plain(documents, answers):
        return None
    verdicts = _verdicts(labels, frozenset(documents), answers)
    if verdicts is None:
        return None
    try:
        judge = judge_of(tuple(line.judge.items()))
        first = next(iter(line.scores.values()), None)
        own = {} if first is None else {k: one for k, one in first.by.items() if one is not None}
        by = by_of(tuple((line.by | own).items()))
    except InputError:
        return None
    makers = _makers(judge, by, trace.formulas, trace.relevance_baseline)
    values = _values(labels, len(documents), verdicts, answers, trace)
    usage = line.usage
    kept = Kept(
        [
            (name, maker, value, None, None, value)
            for name, maker, value in zip(TRACE_SCORES, makers, values, strict=True)
        ],
        origin_of(judge, None, ()),
        len(response),
        listed_of(labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys),
        (usage.requests, usage.prompt_tokens, usage.completion_tokens),
        usage.cost_usd,
    )
    return Row(line.id, line.row_key, line.question, kept, marks_from(labels, sentences))


def _are_plain(documents: Sequence[str], answers: Sequence[str]) -> bool:
    """Tell whether both sides have sentences, each with a key of its own as they are written."""
    written = "".join([*documents, *answers])
    return (
        bool(documents)
        and bool(answers)
        and written.isascii()
        and written.isalnum()
        and written == written.lower()
        and max(map(len, documents)) <= _LONGEST_KEY
        and len(set(documents)) == len(documents)
        and len(set(answers)) == len(answers)
    )


def _verdicts(
    labels: LineLabels, documents: Collection[str], answers: Sequence[str]
) -> dict[str, bool] | None:
    """Return the verdict of each response sentence; None if `reconcile` would change anything."""
    if labels.estimates is not None or labels.relevant_probabilities is not None:
        return None
    if labels.utilized_probabilities is not None or labels.supported_probabilities is not None:
        return None
    lists = [
        (labels.all_relevant_sentence_keys, documents),
        (labels.all_utilized_sentence_keys, documents),
        (labels.unsupported_response_sentence_keys or [], frozenset(answers)),
    ]
    for keys, known in lists:
        distinct = set(keys)
        if len(distinct) < len(keys) or not distinct.issubset(known):
            return None
    verdicts: dict[str, bool] = {}
    for entry in labels.sentence_support_information:
        if entry.fully_supported is None:
            return None
        for key in entry.supporting_sentence_keys:
            if key not in documents and key not in SPECIAL_KEYS:
                return None
        verdicts[entry.response_sentence_key] = entry.fully_supported
    if len(verdicts) < len(labels.sentence_support_information):
        return None
    return verdicts if verdicts.keys() == set(answers) else None


@lru_cache(4096)
def _makers(judge: JudgeInfo, of: tuple[Any, ...], by: str, baseline: int | None) -> list[Maker]:
    """Return the maker of each score of labels that a judge gave, told by its first score."""
    told: dict[str, Any] = dict(zip(BY_FIELDS, of, strict=True))
    made = {
        "judge": judge.name,
        "model": judge.model,
        "judge_version": judge.version,
        "prompt_version": told["prompt_version"],
        "formulas": by,
        "relevance_baseline": baseline,
        "splitter": told["splitter"] or RECORDED,
        "windows": told["windows"] or 1,
    }
    fields = by_of(tuple(made.items()))
    labels, mean = (Maker(method, UNIT, None, fields) for method in ("labels", "mean"))
    return [mean if name == "trace_average" else labels for name in TRACE_SCORES]


class _Verdicts:
    """What the formulas read of labels, of which every response sentence has a verdict."""

    def __init__(self, labels: LineLabels, verdicts: Mapping[str, bool]) -> None:
        self.unsupported_response_sentence_keys = labels.unsupported_response_sentence_keys
        self._verdicts = verdicts

    def support(self, key: str) -> str:
        return "full" if self._verdicts[key] else "none"


def _values(
    labels: LineLabels,
    total: int,
    verdicts: Mapping[str, bool],
    answers: Sequence[str],
    trace: Trace,
) -> list[float]:
    """Compute the scores in the order of `TRACE_SCORES`."""
    relevant, utilized = labels.all_relevant_sentence_keys, labels.all_utilized_sentence_keys
    by, n_relevant, n_utilized = trace.formulas, len(relevant), len(utilized)
    both = formulas.overlap(relevant, utilized)
    said: Any = _Verdicts(labels, verdicts)
    supported = formulas.supported_fraction([said.support(key) for key in answers])
    adherence = formulas.adherence(said, answers, by)
    assert supported is not None  # every sentence has a verdict
    assert adherence is not None
    four = [
        formulas.context_relevance(n_relevant, total, trace.relevance_baseline),
        formulas.context_utilization(n_relevant, n_utilized, total, by),
        formulas.completeness(n_relevant, both, n_utilized, by),
        adherence,
    ]
    return [*four, supported, math.fsum(four) / len(four)]
