"""Gold rows scored straight from their lines, without reasons, evidence and flags.

Labels that `reconcile` would leave as they are need no more than the formulas. All others give
None, and are then read and scored in full.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rag_eval_integrations.agreement._lean import (
    Line,
    LineLabels,
    LineScore,
    by_of,
    judge_of,
    listed_in,
    made_by,
    marks_in,
    usage_of,
)
from rag_eval_integrations.agreement._side import BY_FIELDS, UNIT, Kept, Maker, origin_of
from rag_eval_integrations.agreement._table import Row
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.judges._reconcile import SPECIAL_KEYS
from rag_eval_integrations.metrics import TRACE_SCORES, Trace
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.records import JudgeInfo
from rag_eval_integrations.sentences import RECORDED

_LONGEST_KEY = 6
"""Characters of a key; a longer one may name a document that no row has."""
_OF_JUDGES = (
    "estimates", "relevant_probabilities", "utilized_probabilities", "supported_probabilities",
)  # fmt: skip
_NO_SCORE: LineScore = {"status": "unscored"}


def gold_row(line: Line, trace: Trace) -> Row | None:
    """Score the labels of an evaluation; None where it has to be read and scored in full."""
    labels, response = line["labels"], line["response"]
    if labels is None or not response or not line["question"].strip() or not line["id"]:
        return None
    others = ("error", "capture", "history", "relevant_ids")
    if any([line.get(name) is not None for name in others]):
        return None
    documents = [one[0] for one in line["sentences"].get("documents", ())]
    answers = [one[0] for one in line["sentences"].get("response", ())]
    if not _are_plain(documents, answers):
        return None
    verdicts = _verdicts(labels, frozenset(documents), answers)
    if verdicts is None:
        return None
    try:
        judge = judge_of(tuple(line["judge"].items()))
        by = made_by(line, next(iter(line["scores"].values()), _NO_SCORE))
    except InputError:
        return None
    makers = _makers(judge, by, trace.formulas, trace.relevance_baseline)
    values = _values(labels, len(documents), verdicts, answers, trace)
    kept = Kept(
        [
            (name, maker, value, None, None, None)
            for name, maker, value in zip(TRACE_SCORES, makers, values, strict=True)
        ],
        origin_of(judge, None, ()),
        len(response),
        listed_in(labels),
        *usage_of(line),
    )
    return Row(line["id"], line["row_key"], line["question"], kept, marks_in(line))


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
    labels: LineLabels, documents: frozenset[str], answers: Sequence[str]
) -> dict[str, bool] | None:
    """Return the verdict of each response sentence; None if `reconcile` would change anything."""
    if any([labels.get(name) is not None for name in _OF_JUDGES]):
        return None
    lists = [
        (labels["all_relevant_sentence_keys"], documents),
        (labels["all_utilized_sentence_keys"], documents),
        (labels.get("unsupported_response_sentence_keys") or [], frozenset(answers)),
    ]
    for keys, known in lists:
        distinct = set(keys)
        if len(distinct) < len(keys) or not distinct.issubset(known):
            return None
    verdicts: dict[str, bool] = {}
    entries = labels["sentence_support_information"]
    for entry in entries:
        verdict = entry.get("fully_supported")
        if verdict is None:
            return None
        verdicts[entry["response_sentence_key"]] = verdict
        evidence = entry.get("supporting_sentence_keys")
        if evidence and not (documents.issuperset(evidence) or _are_known(evidence, documents)):
            return None
    if len(verdicts) < len(entries):
        return None
    return verdicts if verdicts.keys() == set(answers) else None


def _are_known(keys: Iterable[str], documents: Collection[str]) -> bool:
    return all(key in documents or key in SPECIAL_KEYS for key in keys)


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
        self.unsupported_response_sentence_keys = labels.get("unsupported_response_sentence_keys")
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
    relevant = labels["all_relevant_sentence_keys"]
    utilized = labels["all_utilized_sentence_keys"]
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
