"""`rag-eval doctor`: list installed packages and try a judge on a small call."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from rag_eval_integrations import _loop
from rag_eval_integrations.cli._judges import Limits, judge_of
from rag_eval_integrations.cli._terminal import print_stderr, safe, stdout
from rag_eval_integrations.evaluations.console import plain_table
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges._named import FORMS
from rag_eval_integrations.judges.judge import judge_base
from rag_eval_integrations.records import Evaluation, EvaluationError, RagCall

if TYPE_CHECKING:
    from rich.table import Table

_BASE = ("pydantic", "openai", "typer", "rich", "jinja2", "PyYAML")
_EXTRAS = {"langchain-core": "langchain", "llama-index-core": "llama-index", "nltk": "nltk"}
"""Optional packages, and our extras that install them."""

_CALL = RagCall(
    question="When does the ferry leave?",
    documents=("The ferry leaves at nine. It carries forty passengers.",),
    response="The ferry leaves at nine.",
)


_ANSWER = 20.0
"""Seconds for one answer, unless `--timeout` says otherwise."""
_REST = 5.0
"""Seconds for everything but the answer: the verdict comes within 30 s of the command."""


def doctor(
    judge: str | None, base_url: str | None = None, options: Mapping[str, Any] | None = None
) -> int:
    """Print packages and the judge's result; return 1 when the judge fails, else 0.

    Args:
        judge: the judge to try; None for the embedded judge.
        base_url: the judge's endpoint.
        options: more arguments of `judge_from`.

    Raises:
        ConfigurationError: for a judge that does not exist, or whose key is missing.
    """
    name, given = judge or "embedded", dict(options or {})
    seconds = given.get("timeout") or _ANSWER
    if "openai:" in name:
        given |= {"timeout": seconds, "deadline": seconds + _REST / 2}
    evaluator = RagEvaluator(judge_of(name, Limits(base_url, **given)))
    console = stdout()
    console.print(_packages())
    for line in _judge_lines(evaluator):
        console.print(safe(line), soft_wrap=True)
    if name.startswith("openai:"):
        print_stderr(f"asking {name} (at most {seconds:g} s; --timeout changes it)")
    evaluation = _loop.run(_evaluated(evaluator, seconds + _REST))
    if evaluation.error is not None:
        words = f"judge {evaluator.judge.name}: FAILED: {evaluation.error.message}"
        console.print(safe(words), soft_wrap=True)
        return 1
    for warning in dict.fromkeys(w for s in evaluation.scores.values() for w in s.warnings):
        console.print(safe(f"  {warning}"), soft_wrap=True)
    if evaluation.labels is None:
        reason = next(iter(evaluation.scores.values())).reason
        console.print(safe(f"judge {evaluator.judge.name}: FAILED: {reason}"), soft_wrap=True)
        return 1
    values = ", ".join(
        f"{name} {score.status if score.value is None else format(score.value, '.2f')}"
        for name, score in evaluation.scores.items()
    )
    console.print(safe(f"judge {evaluator.judge.name}: works ({values})"), soft_wrap=True)
    return 0


async def _evaluated(evaluator: RagEvaluator, seconds: float) -> Evaluation:
    """Evaluate the built-in call within some seconds, repeated questions included."""
    import asyncio  # noqa: PLC0415  # 40 ms

    try:
        async with asyncio.timeout(seconds):
            return await evaluator.evaluate(_CALL)
    except TimeoutError:
        why = (
            f"no usable answer within {seconds:g} s; a slow server may need a longer --timeout, "
            "or fewer --max-tokens"
        )
        failure = EvaluationError(type="TimeoutError", message=why, stage="judge")
        return evaluator.without_result(_CALL, failure)


def _packages() -> Table:
    table = plain_table("Installed packages", "package", "version")
    table.add_row("rag-eval-integrations", _installed("rag-eval-integrations"))
    table.add_row("python", f"{platform.python_version()} ({sys.platform})")
    for name in _BASE:
        table.add_row(name, _installed(name))
    for name, extra in _EXTRAS.items():
        found = _installed(name)
        missing = f"not installed; run: pip install 'rag-eval-integrations[{extra}]'"
        table.add_row(name, found if found != _NOT_INSTALLED else missing)
    return table


_NOT_INSTALLED = "not installed"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return _NOT_INSTALLED


def _judge_lines(evaluator: RagEvaluator) -> Iterator[str]:
    judge = judge_base(evaluator.judge)
    yield f"judges: {FORMS}; default: embedded (no key, no network)"
    yield f"judge {judge.name}: version {judge.version or 'not stated'}"
    if judge.card is not None:
        yield judge.card
    yield f"splitter: {evaluator.splitter.name}"
