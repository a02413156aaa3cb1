"""The overview of a report: figures as they are printed, and the lengths that are drawn of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from rag_eval_integrations._visible import counted
from rag_eval_integrations.evaluations._call_view import drawn, flag_words, page_text
from rag_eval_integrations.evaluations._filters import values_of
from rag_eval_integrations.evaluations.summary import (
    PatternFigures,
    ScoreFigures,
    Summary,
    maker_words,
    usage_words,
)
from rag_eval_integrations.records import Evaluation, Run
from rag_eval_integrations.records._repr import LEXICAL

_BARS = 208
_HEIGHT = 36
_SHARE = 160
_MEANINGS = {
    "context_relevance": "Share of the retrieved sentences that help to answer the question: after "
    "a good retrieval usually .2 to .4, as in gold labels (RAGBench: .22 to .37 on average).",
    "context_utilization": "How much of the relevant text the answer used.",
    "completeness": "Share of the relevant sentences that reached the answer.",
    "adherence": "1 if the documents support every sentence of the answer, else 0; the mean is the "
    "share of such answers.",
    "supported_fraction": "Share of an answer's sentences that the documents support; other tools "
    "call it faithfulness.",
    "trace_average": "Mean of a call's context_relevance, context_utilization, completeness and "
    "adherence.",
}
_OF_ALL_SENTENCES = "Share of the retrieved sentences that the answer used."
_MOST_LISTED = 20


def overview(summary: Summary) -> dict[str, Any]:
    """Return what the report shows above the calls: figures, patterns, failures and versions.

    Args:
        summary: the figures.
    """
    figures = summary.scores
    several = Counter(score.name for score in figures)
    methods = Counter(score.interval.method for score in figures if score.interval)
    return {
        "verdict": page_text(summary.verdict()),
        "lead": lead_of(summary),
        "usual": max(methods, key=lambda method: methods[method], default=""),
        "unscored": any(score.unscored for score in figures),
        "scores": [_score(score, several[score.name] > 1) for score in figures],
        "patterns": [_pattern(pattern) for pattern in summary.patterns],
        "ranks": list(_ranks(summary)),
        "retrieval": _retrieval(summary),
        "failures": [
            (page_text(kind), f"{count:,}", page_text(summary.reasons.get(kind, "")))
            for kind, count in summary.errors.most_common(_MOST_LISTED)
        ],
        "made": [(name, values) for name, values in _makers(summary) if values],
        "versions": [
            (name.replace("_", " "), _counted(values))
            for name, values in summary.versions.items()
            if name != "judge_version"
        ],
    }


def lead_of(summary: Summary) -> str:
    """Say who judged how many calls, and how far to trust that; empty without calls.

    Of several judges, the three most frequent.
    """
    if not summary.calls:
        return ""
    parts = [counted(summary.calls, "call")]
    if summary.failed:
        parts.append(f"{summary.failed:,} could not be evaluated")
    judges = [_judge(judge.name, judge.model) for judge, _ in summary.judges.most_common(3)]
    if len(summary.judges) > 3:
        judges.append("others")
    trust = summary.caution()
    if not trust and any(judge.name != "recorded" for judge in summary.judges):
        trust = "How often people agree with it: rag-eval agreement."
    return f"{', '.join(parts)}. Judge: {', '.join(dict.fromkeys(judges))}. {trust}".rstrip()


def _judge(name: str, model: str | None) -> str:
    """Name a judge with its model, where that has another name; `recorded` as recorded labels."""
    name = "recorded labels" if name == "recorded" else name
    return page_text(f"{name} ({model})" if model and model != name else name)


# --- Scores


def _score(score: ScoreFigures, several: bool) -> dict[str, Any]:
    """Return what the page shows of a score, with its histogram."""
    interval = score.interval
    return {
        "name": score.name,
        "maker": page_text(_maker(score)) if several else "",
        "meaning": _meaning(score),
        "mean": "–" if score.mean is None else f"{score.mean:.3f}",
        "mean_at": "" if score.mean is None else drawn(score.mean, _BARS),
        "interval": "–" if interval is None else f"{interval.low:.3f}–{interval.high:.3f}",
        "interval_method": "" if interval is None else interval.method,
        "scored": f"{score.scored:,}",
        "total": f"{score.total:,}",
        "passed": f"{score.passed:,} of {score.with_threshold:,} passed"
        if score.with_threshold
        else "",
        "bins": [f"{count:,}" for count in score.bins],
        "bars": list(_histogram_bars(score.bins)),
        "in_words": _in_words(score),
        "deviation": "–" if score.deviation is None else f"{score.deviation:.3f}",
        "unscored": [(page_text(code), f"{count:,}") for code, count in score.unscored.items()],
        "filter": f"{quote(page_text(score.name), safe='')}=unscored",
    }


def _histogram_bars(bins: Sequence[int]) -> Iterator[dict[str, str]]:
    """Yield the bars of a histogram as places in an SVG, without empty ones."""
    most = max(bins, default=0)
    for tenth, count in enumerate(bins):
        if count:
            x, height = tenth * 20.8 + 1.4, _HEIGHT * count / most
            yield {"x": f"{x:.1f}", "y": f"{40 - height:.2f}", "height": f"{height:.2f}"}


def _in_words(score: ScoreFigures) -> str:
    """Describe the histogram of a score for screen readers."""
    tenths = [
        f"{count:,} from {tenth / 10:.1f} to {(tenth + 1) / 10:.1f}"
        for tenth, count in enumerate(score.bins)
        if count
    ]
    return page_text(f"Calls per tenth of {score.name}: {', '.join(tenths) or 'none'}")


def _meaning(score: ScoreFigures) -> str:
    """Say what a score measures; empty for a user's own score."""
    if score.name == "context_utilization" and score.by.formulas == "ragbench":
        return _OF_ALL_SENTENCES
    if score.name == "context_relevance" and score.by.relevance_baseline:
        baseline = score.by.relevance_baseline
        return f"Retrieved sentences that help to answer the question, of {baseline}."
    return _MEANINGS.get(score.name, "")


def _maker(score: ScoreFigures) -> str:
    """Say what made a score: model, prompt version and method, or `maker not known`."""
    prompt = score.by.prompt_version and f"prompt version {score.by.prompt_version}"
    method = score.method and f"by {score.method}"
    return ", ".join(filter(None, (maker_words(score.by), prompt, method))) or "maker not known"


# --- Patterns and retrieval


def _pattern(pattern: PatternFigures) -> dict[str, str]:
    """Return what the page shows of a diagnosis."""
    return {
        "name": pattern.pattern,
        "filter": f"pattern={pattern.pattern}",
        "meaning": pattern.meaning,
        "fix": "" if pattern.pattern == "healthy" else pattern.fix,
        "calls": f"{pattern.calls:,}",
        "share": f"{pattern.share:.1%}",
        "interval": f"{pattern.interval.low:.1%}–{pattern.interval.high:.1%}",
        "width": drawn(pattern.share, _SHARE),
        "low": drawn(pattern.interval.low, _SHARE),
        "high": drawn(pattern.interval.high, _SHARE),
    }


def _retrieval(summary: Summary) -> str:
    """Say how often something relevant was retrieved; empty where that is not known."""
    retrieval = summary.retrieval
    if retrieval.share is None or retrieval.interval is None:
        return ""
    first = ""
    if retrieval.first_relevant is not None:
        before = f"{retrieval.first_relevant - 1:.2f}"
        first = f" Where there was one, {before} others stood before it on average."
    return (
        f"In {retrieval.share:.1%} of the calls ({retrieval.relevant:,} of {retrieval.calls:,}; "
        f"95 % interval {retrieval.interval.low:.1%}–{retrieval.interval.high:.1%}), a document "
        f"that held something relevant was retrieved.{first}"
    )


def _ranks(summary: Summary) -> Iterator[dict[str, Any]]:
    """Yield a row per rank of the documents, 20 at most: how often relevant and used."""
    ranks = summary.ranks
    for rank in ranks[:_MOST_LISTED]:
        yield {
            "number": str(rank.rank - 1),
            "calls": f"{rank.calls:,}",
            "shares": [
                {
                    "calls": f"{count:,}",
                    "percent": f"{count / rank.calls:.1%}" if rank.calls else "–",
                    "width": drawn(count / rank.calls if rank.calls else 0, _SHARE),
                }
                for count in (rank.relevant, rank.used)
            ],
        }


# --- How it was made


class Origin:
    """Apps, times and runs of the evaluations, as far as they tell."""

    def __init__(self) -> None:
        self._apps: dict[str, None] = {}
        self._runs: dict[str, Run] = {}
        self._began: list[datetime] = []

    def add(self, evaluation: Evaluation) -> None:
        """Record the app of a call, its start, and the run that evaluated it."""
        if len(self._apps) < _MOST_LISTED:
            self._apps |= dict.fromkeys(values_of(evaluation, "app"))
        if evaluation.run is not None and len(self._runs) < _MOST_LISTED:
            self._runs.setdefault(evaluation.run.id, evaluation.run)
        if (began := evaluation.started_at) is not None:
            began = began.astimezone(UTC) if began.tzinfo else began.replace(tzinfo=UTC)
            self._began = [min([*self._began[:1], began]), max([*self._began[1:], began])]

    def lines(self) -> list[str]:
        """List app, times, run, revision and tags, each in a few words."""
        lines = [f"app {page_text(app)}" for app in self._apps]
        times = dict.fromkeys(map(_minute, self._began))
        lines += [f"calls of {' to '.join(times)} UTC"] if times else []
        for run in self._runs.values():
            time = f"evaluated {_minute(run.start.astimezone(UTC))} UTC"
            revision = f"revision {run.revision[:12]}" if run.revision else None
            tags = (f"{name}={value}" for name, value in run.tags.items())
            lines += [page_text(word) for word in (run.name, time, revision, *tags) if word]
        return lines


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _makers(summary: Summary) -> Iterator[tuple[str, list[str]]]:
    """Yield what made the evaluations: judge, cost and versions.

    The list of a heading may be empty.
    """
    usage = summary.usage
    judges = [
        _judge(judge.name, judge.model)
        + (f", version {page_text(judge.version)}" if judge.version else "")
        + (f" ({counted(count, 'call')})" if len(summary.judges) > 1 else "")
        for judge, count in summary.judges.most_common(_MOST_LISTED)
    ]
    yield "judge", judges
    if usage.requests:
        yield "cost", [usage_words(usage)]
    else:
        yield "cost", ["no requests to a model"]
    # The caution says what that of the embedded judge does.
    flags = Counter(
        {flag_words(flag): calls for flag, calls in summary.flags.items() if flag != LEXICAL}
    )
    yield "flags", _counted(flags, always=True)
    yield "warnings", _counted(summary.warnings, always=True)


def _counted(values: Counter[str], *, always: bool = False) -> list[str]:
    """List the 20 most frequent values, and how many more there are.

    Each with its number of calls, which a single value has only with `always`.
    """
    tell = always or len(values) > 1
    listed = [
        page_text(value) + (f" ({counted(count, 'call')})" if tell else "")
        for value, count in values.most_common(_MOST_LISTED)
    ]
    more = len(values) - len(listed)
    return [*listed, f"and {more:,} more"] if more > 0 else listed
