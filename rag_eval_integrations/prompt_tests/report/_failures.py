"""Failures on the page: which of them, in which order, and what each shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.prompt_tests.records import Judged, PromptTest, Result, digest
from rag_eval_integrations.prompt_tests.report.rates import verdicts_of
from rag_eval_integrations.report._page import shown

PER_PAGE = 25
LINE = 160
"""Characters of a text that stands on one line."""
SIGNS = {"ok": "✓", "err": "✗", "unknown": "?", "error": "!"}
STATES = {"ok": "complies", "err": "does not comply", "unknown": "no verdict", "error": "no output"}
Group = tuple[str, str]
"""A rule's name on the page, and a model: a cell of the matrix."""
_MOST_FAILURES = 1_000
"""Failures on the page; of more, each rule and model keeps the same number. JSON has all."""
_CHOICE = 60
_TEXT = 2_000
"""Characters of an input, an output or a judge's reply from which on it is cut."""


def state_of(result: Result) -> str:
    """Return what became of an output: a key of `STATES`; empty if it was not judged."""
    if result.error is not None:
        return "error"
    return "" if result.compliance is None else result.compliance.outcome


def rule_name(test: PromptTest) -> str:
    """Name a test's rule on the page; a number alone may stand for several texts over time."""
    if test.baseline:
        return "baseline"
    if test.rule_id is None:
        return "none"
    return f"{test.rule_id}-{digest(f'{test.inverse} {test.rule}')[:6]}"


def title_of(test: PromptTest) -> str:
    """Title a test's rule for people."""
    if test.baseline:
        return "Baseline tests"
    if test.rule_id is None:
        return "Tests without a rule"
    return f"{'Inverse rule' if test.inverse else 'Rule'} {test.rule_id}"


def order_of(test: PromptTest) -> tuple[bool, bool, int, str]:
    """Order tests by their rules, baseline tests last."""
    return (test.baseline, test.rule_id is None, test.rule_id or 0, test.rule)


def failures_of(results: Iterable[Result]) -> tuple[int, list[Result]]:
    """Count the failures, and choose those of a page, in the order of their rules.

    As many as a page takes, and of each rule and model the same number at most.
    """
    kinds = list(SIGNS)
    failed = sorted(
        (one for one in results if state_of(one) in ("err", "unknown", "error")),
        key=lambda one: (order_of(one.test), one.model, kinds.index(state_of(one))),
    )
    if len(failed) <= _MOST_FAILURES:
        return len(failed), failed
    groups = Counter((rule_name(one.test), one.model) for one in failed)
    most = max(1, _MOST_FAILURES // len(groups))
    taken: Counter[Group] = Counter()
    kept = []
    for one in failed:
        group = (rule_name(one.test), one.model)
        taken[group] += 1
        if taken[group] <= most:
            kept.append(one)
    return len(failed), kept[:_MOST_FAILURES]


def pages_of(kept: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield the pages of failures, each as its template shows it."""
    for start in range(0, len(kept), PER_PAGE):
        some = kept[start : start + PER_PAGE]
        yield {
            "from": start + 1,
            "to": start + len(some),
            "failures": [_failure(one, start + at) for at, one in enumerate(some, 1)],
        }


def _failure(result: Result, number: int) -> dict[str, Any]:
    test = result.test
    said = [
        {
            "judge": shown(_judge_words(one)),
            "state": one.outcome,
            "reason": _cut(one.reason),
            "raw": "" if one.raw.strip() in ("", one.reason.strip()) else _cut(one.raw),
        }
        for one in verdicts_of(result)
    ]
    facts = [
        ("test", test.uid),
        ("repetition", str(result.run + 1) if result.run else ""),
        ("scenario", test.scenario),
        ("expected by the generator", test.expected),
        ("expected output", test.usable_groundtruth or ""),
        ("why it is a test", test.reasoning),
        *((f"document {at}", text) for at, text in enumerate(result.contexts)),
        *((one.key, _metric_words(one.score, one.outcome, one.problem)) for one in result.metrics),
    ]
    return {
        "number": number,
        "state": state_of(result),
        "model": shown(result.model),
        "rule": rule_name(test),
        "title": title_of(test),
        "rule_text": shown(test.rule),
        "line": one_line(test.testinput, LINE) or "(empty input)",
        "input": _cut(test.testinput),
        "output": _cut(result.output),
        "error": None if result.error is None else _cut(result.error),
        "said": said,
        "facts": [(shown(name), _cut(value)) for name, value in facts if value],
    }


def _judge_words(said: Judged) -> str:
    name = said.judge or "no judge was asked"
    return name if said.probability is None else f"{name} (P(OK) = {said.probability:.2f})"


def _metric_words(score: float | None, outcome: str | None, problem: str | None) -> str:
    if score is not None:
        return f"{score:g}"
    return problem or outcome or ""


def _cut(text: str) -> str:
    if len(text) <= _TEXT:
        return shown(text)
    return f"{shown(text[:_TEXT])} … ({len(text) - _TEXT:,} more characters)"


def choices_of(kept: Sequence[Result]) -> dict[str, list[tuple[str, str]]]:
    """List what the failures can be filtered by, as value and words."""
    rules = {rule_name(one.test): one.test for one in kept}
    models = [shown(name) for name in dict.fromkeys(one.model for one in kept)]
    return {
        "rule": [(name, _choice(test)) for name, test in rules.items()],
        "model": [(name, name) for name in models],
        "kind": [(kind, STATES[kind]) for kind in dict.fromkeys(map(state_of, kept))],
    }


def _choice(test: PromptTest) -> str:
    of_rule = test.rule_id is not None and not test.baseline and test.rule
    return f"{title_of(test)}: {one_line(test.rule, _CHOICE)}" if of_rule else title_of(test)
