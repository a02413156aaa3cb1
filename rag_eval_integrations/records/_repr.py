"""Scores and evaluations as `repr` and `str` write them: on one line, or on a line per score.

What is shown is other people's text: all of it is made visible.
"""

from __future__ import annotations

from typing import Any

from rag_eval_integrations._visible import one_line

_ON_ONE_LINE = 200
"""Characters of a `repr`: pytest cuts the middle out of longer ones, at 240."""
_OF_A_SENTENCE = 100
_OF_A_REASON = 400

LEXICAL = "lexical_estimate"
"""Flag of an evaluation whose judge compared words, and asked no model."""

EARLIER = "from an earlier turn"
"""Beside a document that an earlier turn retrieved."""

Score = Any
"""A `records.Score`, whose module imports this one."""
Evaluation = Any
"""A `records.Evaluation`, likewise."""


# --- One score


def score_line(score: Score) -> str:
    """Show a score on one short line; what is wrong with the response comes first.

    That is the list of sentences that are not supported; without any, the reason is shown. Cut to
    200 characters.
    """
    sentences = (score.evidence or {}).get("unsupported")
    against = [
        f"not supported: {sentence.get('key')} “{one_line(words, _OF_A_SENTENCE)}”"
        for sentence in (sentences if isinstance(sentences, list) else ())
        if isinstance(sentence, dict) and isinstance(words := sentence.get("text"), str)
    ]
    why = ", ".join(against) or score.reason
    line = f"{score.name} {_verdict(score)}"
    return one_line(f"{line}: {why}" if why else line, _ON_ONE_LINE)


def score_text(score: Score) -> str:
    """Show a score with its reason, up to 400 characters of it, on one line."""
    line = f"{one_line(score.name)} {_verdict(score)}"
    return f"{line}: {one_line(score.reason, _OF_A_REASON)}" if score.reason else line


def _figure(score: Score) -> str:
    """Write a value with two decimals; without one, the status and the code of why.

    The status stands alone where there is no code, as for an error.
    """
    if score.value is not None:
        return f"{score.value:.2f}"
    return f"{score.status} ({score.unscored})" if score.unscored else score.status


def _verdict(score: Score) -> str:
    """Write a score, and whether it passed where it has a threshold."""
    if score.passed is None:
        return _figure(score)
    verdict = "passed" if score.passed else "failed"
    return f"{_figure(score)} ({verdict}, threshold {score.threshold:g})"


# --- One evaluation


def evaluation_line(evaluation: Evaluation) -> str:
    """Show an evaluation on one short line: question and scores, or what failed."""
    scores = ", ".join(f"{name} {_figure(score)}" for name, score in evaluation.scores.items())
    return one_line(f"“{one_line(evaluation.question, 50)}”: {_failure(evaluation) or scores}", 300)


def evaluation_text(evaluation: Evaluation) -> str:
    """Show an evaluation on a line per score, with each score's reason.

    A reason is cut to 200 characters, and `as above` where it repeats the one before. Then come the
    diagnosis and the makers.
    """
    lines = [f"Evaluation of “{one_line(evaluation.question, 200)}”"]
    if failure := _failure(evaluation):
        lines.append(f"  {failure}")
    width = max(map(len, evaluation.scores), default=0)
    before = None
    for name, score in evaluation.scores.items():
        same, before = score.reason == before, score.reason
        words = "as above" if same else one_line(score.reason or "", _ON_ONE_LINE)
        reason = f"  {words}" if score.reason else ""
        lines.append(f"  {one_line(name):{width}}  {_verdict(score)}{reason}")
    if evaluation.earlier:
        numbers = ", ".join(map(str, evaluation.earlier))
        lines.append(f"  {EARLIER}: document {one_line(numbers, _ON_ONE_LINE)}")
    lines += [f"  diagnosis  {each.pattern}: {each.problem}" for each in evaluation.diagnosis]
    return "\n".join([*lines, f"  {makers(evaluation)}"])


def _failure(evaluation: Evaluation) -> str:
    """Say what failed; empty if nothing did."""
    error = evaluation.error
    return one_line(f"failed ({error.stage}): {error.type}: {error.message}", 200) if error else ""


def makers(evaluation: Evaluation) -> str:
    """Name the judge, its model, and the flags; say where no model read the call."""
    judge = evaluation.judge
    model = f", model {judge.model}" if judge.model else ""
    flags = [flag for flag in evaluation.flags if flag != LEXICAL]
    lexical = ", which compares words: no model read this" if LEXICAL in evaluation.flags else ""
    more = f"; flags: {', '.join(flags)}" if flags else ""
    return one_line(f"judge {judge.name}{model}{lexical}{more}", 200)
