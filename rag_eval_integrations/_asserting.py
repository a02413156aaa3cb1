"""`assert_scores`: scores that have to reach a minimum, and the message that says what is wrong.

It needs no test runner. Whatever it shows of a call is other people's text and is made visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from numbers import Real
from typing import TYPE_CHECKING

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError

if TYPE_CHECKING:
    from rag_eval_integrations.records import Evaluation, Score

AllowUnscored = bool | str | Collection[str]
"""True for all scores, or the names of those that need no value."""

_DUST = 1e-9
"""How far a value may be below its minimum: what is left of adding and dividing floats."""
_MOST_EVALUATIONS = 5
_MOST_SENTENCES = 5
_OF_A_SENTENCE = 200
_OF_A_REASON = 400


def assert_scores(
    evaluation: Evaluation | Iterable[Evaluation],
    minimums: Mapping[str, float] | None = None,
    /,
    *,
    allow_unscored: AllowUnscored = (),
    **named: float,
) -> None:
    """Assert that scores of one evaluation, or of each of several, reach their minimums.

        assert_scores(evaluation, adherence=1.0, coherence=0.6)
        assert_scores(evaluations, {"hit_rate@5": 0.8}, allow_unscored=["completeness"])

    A name may be given without its prefix (`coherence` for `geval:coherence`) where that means one
    score only. Without any minimum, the thresholds of the scores themselves are taken. A value may
    be 1e-9 below its minimum, which is what computing in floats may lose.

    Args:
        evaluation: one evaluation, or several; without any, the assertion fails.
        minimums: score name → minimum in [0, 1], for names that are not Python identifiers.
        allow_unscored: True, or names of scores that may be unscored or in error; without it, a
            score without a value fails.
        named: as `minimums`.

    Raises:
        AssertionError: the message has each score that fails, with its value and reason, and the
            sentences that it fails for; of five evaluations at most.
        ConfigurationError: an evaluation does not have a score of this name, a minimum is not in
            [0, 1], or there is neither a minimum nor a threshold.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    asked = checked_minimums(minimums, named)
    checked = _evaluations(evaluation)
    if not checked:
        raise AssertionError("there is no evaluation, so no score can reach its minimum")
    results = [
        (evaluation, list(_failures(evaluation, asked, allow_unscored))) for evaluation in checked
    ]
    failed = [(evaluation, failures) for evaluation, failures in results if failures]
    if failed:
        raise AssertionError(_message(failed, len(checked)))


def is_of_scores(error: BaseException) -> bool:
    """Tell whether an assertion error comes from `assert_scores`.

    Only an `AssertionError` raised in its own frame counts, not one from what it calls.
    """
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    raised = frame is not None and frame.tb_frame.f_code is assert_scores.__code__
    return raised and isinstance(error, AssertionError)


def checked_minimums(
    minimums: Mapping[str, float] | None, named: Mapping[str, float]
) -> dict[str, float]:
    """Join the minimums of a mapping and of keywords.

    Raises:
        ConfigurationError: a minimum is not in [0, 1], or a name is given twice.
    """
    if not isinstance(minimums, Mapping | None):
        why = "use a mapping of score names to minimums, or keywords (adherence=1.0)"
        raise ConfigurationError("minimums", minimums, why)
    asked = dict(minimums or {})
    for name, minimum in named.items():
        if name in asked:
            raise ConfigurationError(name, minimum, f"is given twice; the other is {asked[name]!r}")
        asked[name] = minimum
    for name, minimum in asked.items():
        number = isinstance(minimum, Real) and not isinstance(minimum, bool)
        if not number or not 0 <= minimum <= 1:
            raise ConfigurationError(str(name), minimum, "a minimum is a number from 0 to 1")
    return asked


def _evaluations(given: object) -> list[Evaluation]:
    """Return what was passed, one evaluation or several, as a list; refuse other objects.

    Raises:
        ConfigurationError: it is, or holds, something else.
    """
    from rag_eval_integrations.records import Evaluation  # noqa: PLC0415  # pydantic, when used

    if isinstance(given, Evaluation):
        return [given]
    evaluations: list[Evaluation] = []
    for item in given if isinstance(given, Iterable) else [given]:
        if not isinstance(item, Evaluation):
            why = (
                f"should be an Evaluation, not {type(item).__name__}; use what "
                "`evaluate_sync(call)` or `await evaluate(call)` returned"
            )
            raise ConfigurationError("evaluation", item, why, missing=True)
        evaluations.append(item)
    return evaluations


# --- One evaluation


def _failures(
    evaluation: Evaluation, asked: Mapping[str, float], allow: AllowUnscored
) -> Iterator[tuple[Score, float]]:
    """Yield the scores that fail, with their minimums: those asked for, else their thresholds.

    A score without a value fails unless it is allowed to.
    """
    minimums = {_name(evaluation, name): minimum for name, minimum in asked.items()}
    if not asked:
        minimums = {
            name: score.threshold
            for name, score in evaluation.scores.items()
            if score.threshold is not None
        }
        if not minimums:
            why = "name a score and its minimum (adherence=1.0); none has a threshold of its own"
            raise ConfigurationError("minimums", {}, why)
    allowed = _allowed(evaluation, minimums, allow)
    for name, minimum in minimums.items():
        score = evaluation.scores[name]
        if score.value is None:
            if name not in allowed:
                yield score, minimum
        elif score.value < minimum - _DUST:
            yield score, minimum


def _allowed(
    evaluation: Evaluation, minimums: Mapping[str, float], allow: AllowUnscored
) -> Collection[str]:
    """Return the names of scores that may be unscored: all, none, or those that are named.

    A name that has no minimum is refused.
    """
    if isinstance(allow, bool):
        return minimums if allow else ()
    names = [allow] if isinstance(allow, str) else allow
    allowed = {_name(evaluation, name) for name in names}
    unasked = sorted(allowed - set(minimums))
    if unasked:
        asked = ", ".join(minimums)
        raise ConfigurationError("allow_unscored", unasked, f"has no minimum; {asked} have")
    return allowed


def _name(evaluation: Evaluation, given: str) -> str:
    """Return the whole name of a score, which may be given without its prefix.

    Refuses one that several scores have, or none.
    """
    if given in evaluation.scores:
        return given
    names_with = [name for name in evaluation.scores if name.partition(":")[2] == given]
    if len(names_with) == 1:
        return names_with[0]
    if names_with:
        why = f"may be {' or '.join(names_with)}; give the whole name, in a mapping"
    else:
        from rag_eval_integrations.records.score import score_hint  # noqa: PLC0415  # as above

        why = f"is not a score of the evaluation: {score_hint(given, evaluation.scores)}"
    raise ConfigurationError("minimums", given, why)


# --- The message


def _message(failed: list[tuple[Evaluation, list[tuple[Score, float]]]], checked: int) -> str:
    """Write the message of the assertion, with the first evaluations and their failed scores."""
    lines = [_first_line(failed, checked)]
    keys = False
    for evaluation, failures in failed[:_MOST_EVALUATIONS]:
        words = [line for score, minimum in failures for line in _lines(evaluation, score, minimum)]
        keys = keys or any(line.startswith(_DEEP) for line in words)
        lines += [_heading(evaluation), *words]
    if len(failed) > _MOST_EVALUATIONS:
        lines.append(f"and {len(failed) - _MOST_EVALUATIONS} more evaluations")
    if keys:
        from rag_eval_integrations.evaluations.console import KEYS  # noqa: PLC0415  # for a failure only

        lines.append(KEYS)
    return "\n".join(lines)


def _first_line(failed: list[tuple[Evaluation, list[tuple[Score, float]]]], checked: int) -> str:
    """Say what fails on one line, which is all that a runner's list of failures shows."""
    if checked == 1:
        return ", ".join(_shortfall(score, minimum) for score, minimum in failed[0][1])
    counts = Counter(score.name for _, failures in failed for score, _ in failures)
    named = ", ".join(f"{one_line(name, 100)} in {count}" for name, count in counts.items())
    return f"{len(failed)} of {checked} evaluations fail: {named}"


def _shortfall(score: Score, minimum: float) -> str:
    """Write the value that is below a minimum, or why there is none."""
    name = one_line(score.name, 100)
    if score.value is not None:
        return f"{name} {_below(score.value, minimum)} < {minimum:g}"
    if score.unscored is not None:
        return f"{name} is unscored ({score.unscored})"
    return f"{name} ended in an error"


_DEEP = "    "


def _heading(evaluation: Evaluation) -> str:
    """Introduce a failed evaluation: question, id, judge and error."""
    judge = one_line(evaluation.judge.name, 60)
    head = f"“{one_line(evaluation.question, 200)}” (id {one_line(evaluation.id, 100)}"
    if evaluation.error is not None:
        error = evaluation.error
        words = one_line(f"{error.type}: {error.message}", _OF_A_REASON)
        return f"{head}, judge {judge}) failed ({error.stage}): {words}"
    return f"{head}, judge {judge})"


def _lines(evaluation: Evaluation, score: Score, minimum: float) -> Iterator[str]:
    """Write a failed score with its reason and the sentences behind it."""
    reason = f": {one_line(score.reason, _OF_A_REASON)}" if score.reason else ""
    yield f"  {_shortfall(score, minimum)}{reason}"
    sentences = list(_lowering_sentences(evaluation, score))
    yield from sentences[:_MOST_SENTENCES]
    if len(sentences) > _MOST_SENTENCES:
        yield f"{_DEEP}and {len(sentences) - _MOST_SENTENCES} more sentences"


def _below(value: float, minimum: float) -> str:
    """Write a value with two decimals, or with more where it would look like the minimum."""
    digits = 2
    while digits < 10 and float(f"{value:.{digits}f}") >= minimum:
        digits += 1
    return f"{value:.{digits}f}"


def _lowering_sentences(evaluation: Evaluation, score: Score) -> Iterator[str]:
    """Yield the sentences that lower a score, as far as its evidence names them.

    Unsupported sentences with their contradictions; for context relevance, documents without a
    relevant sentence; for others, relevant sentences that were not used.
    """
    proof = score.evidence or {}
    for sentence in _as_list(proof.get("unsupported")):
        if isinstance(sentence, dict):
            why = str(sentence.get("explanation") or "")
            conflicts = map(str, _as_list(sentence.get("contradictions")))
            if untold := ", ".join(each for each in conflicts if each not in why):
                why = f"{why.rstrip('.')}; {untold}" if why else untold
            yield _sentence(
                _SUPPORT.get(str(sentence.get("support")), "not supported"), sentence, why
            )
    if score.name == "context_relevance":
        for number in _as_list(proof.get("documents_without_relevant")):
            yield f"{_DEEP}nothing relevant in document {_document(evaluation, number)}"
    else:
        texts = {sentence.key: sentence.text for sentence in evaluation.sentences.documents}
        for key in _as_list(proof.get("relevant_unused_keys")):
            if isinstance(key, str):
                yield _sentence("relevant but unused", {"key": key, "text": texts.get(key)}, "")


_SUPPORT = {"partial": "partly supported", "unlabelled": "not labelled"}


def _sentence(kind: str, sentence: Mapping[str, object], why: str) -> str:
    """Write a sentence behind a score: kind, key, text and why it counts."""
    text = one_line(str(sentence.get("text") or ""), _OF_A_SENTENCE)
    reason = f": {one_line(why, _OF_A_SENTENCE)}" if why else ""
    return f"{_DEEP}{kind}: {one_line(str(sentence.get('key')), 20)} “{text}”{reason}"


def _document(evaluation: Evaluation, number: object) -> str:
    """Name a document in a message: its place, and its id if it has one."""
    place = number if isinstance(number, int) else -1
    name = evaluation.document_ids[place] if 0 <= place < len(evaluation.document_ids) else None
    return f"{place} ({one_line(name, 100)})" if name else str(place)


def _as_list(value: object) -> list[object]:
    """Return a list or a tuple as a list; an empty one for any other value."""
    return list(value) if isinstance(value, list | tuple) else []
