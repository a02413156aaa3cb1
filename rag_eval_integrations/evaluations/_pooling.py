"""Relevant sentences that runs share, as assessors of TREC share pools.

What is relevant belongs to question, history and documents, and a judge reads the answer, too.
Calls with equal ones count what any of their labels calls relevant, so that a changed answer is not
a changed retriever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast, get_args

from rag_eval_integrations._visible import counted
from rag_eval_integrations.evaluations._pairing import (
    POOLED,
    CallInBrief,
    Retrieval,
    RunInBrief,
    interned,
)
from rag_eval_integrations.metrics.retrieval import LABEL_RETRIEVAL_SCORES, LabelRetrieval
from rag_eval_integrations.metrics.trace import Formulas, Trace
from rag_eval_integrations.records import By, Evaluation

OF_RETRIEVAL = ("context_relevance", *LABEL_RETRIEVAL_SCORES)
"""Pooled scores that nothing but the retrieval decides."""

Pairs = Sequence[tuple[CallInBrief, CallInBrief]]

_OTHERS = ("other formulas", "another relevance baseline", "another splitter", "another judge")
_AS_RECORDED = "keys as recorded, by `--raw-keys`"


class Agreement(NamedTuple):
    """How far the labels of two runs agree on the relevant sentences of the same retrievals."""

    calls: int
    """Number of calls whose relevant sentences are pooled."""
    both: int
    """Number of their sentences that both runs label relevant."""
    either: int
    """Number of those that at least one of them does."""


class Pools:
    """The pooled relevant sentences of each retrieval: those relevant in any run.

    Args:
        runs: the runs.
    """

    def __init__(self, runs: Iterable[RunInBrief]) -> None:
        self._by_texts: dict[bytes, Retrieval | str] = {}  # or why there is none
        for run in runs:
            for call in run.calls:
                if call.retrieval is not None:
                    self._add(call.retrieval)

    def _add(self, mine: Retrieval) -> None:
        """Add the relevant sentences of a call."""
        pool = self._by_texts.setdefault(mine.texts, mine)
        if isinstance(pool, str):
            return
        if other := _AS_RECORDED if mine.as_recorded else _difference_of_makers(mine, pool):
            self._by_texts[mine.texts] = other
        elif more := mine.relevant & ~pool.relevant:
            self._by_texts[mine.texts] = pool._replace(relevant=pool.relevant | more)

    def pooled(self, run: RunInBrief) -> RunInBrief:
        """Return a run whose calls have the values that follow from the pools.

        Raises:
            ConfigurationError, OSError: as for `RunInBrief.some`.
        """
        lacking: dict[int, int] = {}
        for position, call in enumerate(run.calls):
            if (mine := call.retrieval) is None:
                continue
            pool = self._by_texts[mine.texts]
            if isinstance(pool, Retrieval) and mine.relevant != pool.relevant:
                lacking[position] = pool.relevant
        calls = list(run.calls)
        for position, evaluation in run.some(lacking):
            call = calls[position]
            values = dict(zip(call.names, call.values, strict=True))
            values |= _recomputed(evaluation, lacking[position])
            calls[position] = call._replace(pooled=tuple(map(interned, values.values())))
        return replace(run, calls=tuple(calls))

    def share(self, before: CallInBrief, after: CallInBrief) -> bool:
        """Tell whether two calls are the same retrieval with a common pool."""
        a, b = before.retrieval, after.retrieval
        if a is None or b is None or a.texts != b.texts:
            return False
        return isinstance(self._by_texts[a.texts], Retrieval)

    def _is_pooled(self, before: CallInBrief, after: CallInBrief) -> bool:
        """Tell whether two calls share a pool, or another run's pool changed one of them."""
        return self.share(before, after) or bool(before.pooled) or bool(after.pooled)

    def agreement(self, pairs: Pairs) -> Agreement:
        """Count how far the labels of pairs that share a pool agree."""
        marks = [
            (before.retrieval.relevant, after.retrieval.relevant)
            for before, after in pairs
            if self.share(before, after) and before.retrieval and after.retrieval
        ]
        return Agreement(
            sum(self._is_pooled(*pair) for pair in pairs),
            sum((a & b).bit_count() for a, b in marks),
            sum((a | b).bit_count() for a, b in marks),
        )

    def notes(self, pairs: Pairs, agreement: Agreement) -> Iterator[str]:
        """Say what is pooled, how far labels agree, and what is not pooled and why."""
        calls, both, either = agreement
        if calls:
            yield (
                f"Pooled: in {counted(calls, 'call')} with the same question, history and "
                "documents, a sentence is relevant if any run labels it so: a changed answer is "
                "not a changed retriever. `report` shows each run's own values, which can differ."
            )
        if either:
            yield (
                f"Of {counted(either, 'sentence')} there that either run labels relevant, both "
                f"label {both:,} ({both / either:.0%}); the rest is the judge's own noise."
            )
        if reasons := Counter(filter(None, (self._unpooled_reason(*pair) for pair in pairs))):
            why = ", ".join(f"{counted(n, 'call')} ({reason})" for reason, n in reasons.items())
            yield f"Not pooled: {why}; there, relevance can differ by the judge's noise."

    def _unpooled_reason(self, before: CallInBrief, after: CallInBrief) -> str | None:
        """Say why two calls that may be the same retrieval have no common pool."""
        a, b = before.retrieval, after.retrieval
        if a is None or b is None:
            return None
        if a.texts != b.texts:  # by another splitter, sentences are others
            return _difference_of_makers(a, b) if a.counted[2] != b.counted[2] else None
        pool = self._by_texts[a.texts]
        return pool if isinstance(pool, str) else None


def _difference_of_makers(a: Retrieval, b: Retrieval) -> str | None:
    """Name the first difference between the makers of two calls' scores; None if there is none."""
    parts = zip(_OTHERS, a.counted, b.counted, strict=True)
    return next((words for words, *both in parts if both[0] != both[1]), None)


def _recomputed(evaluation: Evaluation, relevant: int) -> Iterator[tuple[str, float]]:
    """Recompute the scores of an evaluation from pooled relevant sentences, as names and values."""
    # Up: rows are read in `dataset`.
    from rag_eval_integrations.dataset.rows import labelled_from_evaluation  # noqa: PLC0415

    labelled = labelled_from_evaluation(evaluation)
    assert evaluation.labels is not None
    sentences = enumerate(evaluation.sentences.documents)
    keys = tuple([sentence.key for place, sentence in sentences if relevant >> place & 1])
    labels = evaluation.labels.model_copy(update={"all_relevant_sentence_keys": keys})
    labelling = labelled.labelling.model_copy(update={"labels": labels})
    scores = LabelRetrieval().score(labelled.call, labelling, By())
    by = next(evaluation.scores[name].by for name in POOLED if name in evaluation.scores)
    if by.formulas in get_args(Formulas):
        trace = Trace(cast(Formulas, by.formulas), by.relevance_baseline, hard=True)
        scores += trace.numbers(labelled.call, labels, By())
    for score in scores:
        own = evaluation.scores.get(score.name)
        if score.name in POOLED and own and own.value is not None and score.value is not None:
            yield score.name, score.value
