"""Scores and evaluations as a person reads them: on one line, and on a few lines.

What is shown is other people's text: all of it is made visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.records._patterns import Diagnosis, patterns_in

_ON_ONE_LINE = 200
"""Characters of a `repr`: pytest cuts the middle out of longer ones, at 240."""
_OF_A_SENTENCE = 100
_OF_A_REASON = 400


class Score(Protocol):
    """What is read of a `records.Score`, whose module imports this one."""

    name: Any
    status: Any
    value: Any
    threshold: Any
    reason: Any
    evidence: Any
    unscored: Any

    @property
    def passed(self) -> bool | None:
        """The verdict."""


class Evaluation(Protocol):
    """What is read of a `records.Evaluation`."""

    question: Any
    response: Any
    scores: Any
    judge: Any
    flags: Any
    error: Any


# --- One score


def score_line(score: Score) -> str:
    """Show a score on one short line; what is wrong with the response comes first."""
    found = ", ".join(_unsupported(score)) or score.reason or ""
    line = f"{score.name} {_figure(score)}{_verdict(score)}"
    return one_line(f"{line}: {found}" if found else line, _ON_ONE_LINE)


def score_text(score: Score) -> str:
    """Show a score with its whole reason, on one line."""
    line = f"{one_line(score.name)} {_figure(score)}{_verdict(score)}"
    return f"{line}: {one_line(score.reason, _OF_A_REASON)}" if score.reason else line


def figure_and_verdict(score: Score) -> str:
    """Show a value, or why there is none, and whether it passed."""
    return _figure(score) + _verdict(score)


def _figure(score: Score) -> str:
    if score.value is not None:
        return f"{score.value:.2f}"
    return f"{score.status} ({score.unscored})" if score.unscored else score.status


def _verdict(score: Score) -> str:
    if score.passed is None:
        return ""
    return f" ({'passed' if score.passed else 'failed'}, threshold {score.threshold:g})"


def _unsupported(score: Score) -> Iterator[str]:
    """Quote the response sentences that the score's evidence lists as unsupported."""
    found = (score.evidence or {}).get("unsupported")
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict) and isinstance(text := one.get("text"), str):
            yield f"not supported: {one.get('key')} “{one_line(text, _OF_A_SENTENCE)}”"


# --- One evaluation


def evaluation_line(evaluation: Evaluation) -> str:
    """Show an evaluation on one short line."""
    scores = ", ".join(f"{name} {_figure(one)}" for name, one in evaluation.scores.items())
    return one_line(f"“{one_line(evaluation.question, 50)}”: {failure(evaluation) or scores}", 300)


def evaluation_text(evaluation: Evaluation) -> str:
    """Show an evaluation on a line per score, with each score's reason."""
    lines = [f"Evaluation of “{one_line(evaluation.question, 200)}”"]
    if said := failure(evaluation):
        lines.append(f"  {said}")
    width = max(map(len, evaluation.scores), default=0)
    for name, score in evaluation.scores.items():
        reason = f"  {one_line(score.reason, _ON_ONE_LINE)}" if score.reason else ""
        lines.append(f"  {one_line(name):{width}}  {_figure(score)}{_verdict(score)}{reason}")
    lines += [f"  diagnosis  {one.pattern}: {one.problem}" for one in patterns(evaluation)]
    return "\n".join([*lines, f"  {makers(evaluation)}"])


def patterns(evaluation: Evaluation) -> list[Diagnosis]:
    """Return the patterns of the scores, the gravest first."""
    return patterns_in(evaluation.scores)


def failure(evaluation: Evaluation) -> str:
    """Say what failed; empty if nothing did."""
    error = evaluation.error
    if error is None:
        return ""
    return one_line(f"failed ({error.stage}): {error.type}: {error.message}", 200)


def makers(evaluation: Evaluation) -> str:
    """Name the judge, its model, and the flags."""
    judge = evaluation.judge
    model = f", model {judge.model}" if judge.model else ""
    flags = f"; flags: {', '.join(evaluation.flags)}" if evaluation.flags else ""
    return one_line(f"judge {judge.name}{model}{flags}", 200)
