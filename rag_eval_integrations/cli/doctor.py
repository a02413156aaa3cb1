"""`rag-eval doctor`: list installed packages and try a judge on a small call."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from rag_eval_integrations import _loop
from rag_eval_integrations.cli._arguments import DoctorOptions
from rag_eval_integrations.cli._console import stdout
from rag_eval_integrations.cli._judges import judge_of
from rag_eval_integrations.cli._settings import FILE, origins
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout
from rag_eval_integrations.evaluations.console import add_row, plain_table
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges._named import FORMS
from rag_eval_integrations.judges.judge import judge_base
from rag_eval_integrations.records import Evaluation, Labels, RagCall

if TYPE_CHECKING:
    from rich.table import Table

_BASE = ("pydantic", "openai", "typer", "rich", "jinja2", "PyYAML")
_EXTRAS = {"langchain-core": "langchain", "llama-index-core": "llama-index", "nltk": "nltk"}
"""Optional packages, and our extras that install them."""

_CALL = RagCall(
    question="When does the ferry leave?",
    documents=("The ferry leaves at nine. It carries forty passengers.",),
    response="The ferry leaves at nine. An admiral built it.",
)
"""A copied sentence, and one that is invented: a judge that calls all supported is of no use."""


_ANSWER = 20.0
"""Seconds for one answer, unless `--timeout` says otherwise."""
_REST = 5.0
"""Seconds for everything but the answer: the verdict comes within 30 s of the command."""


def doctor(options: DoctorOptions) -> int:
    """Print packages and what the judge says of one call; return 1 when it fails, else 0.

    A judge that gives no usable answer in time has failed.

    Raises:
        ConfigurationError: for a judge that does not exist, or whose key is missing.
    """
    name, seconds = options.judge or "embedded", options.timeout or _ANSWER
    given, deadline = options.requests(), seconds + _REST / 2
    judge = judge_of(name, given, options.wording(), timeout=seconds, deadline=deadline)
    evaluator = RagEvaluator(judge)
    stdout().print(_packages())
    stdout().print(_settings(vars(options)))
    for line in _judge_lines(evaluator):
        print_stdout(line)
    if name.startswith("openai:"):
        print_stderr(f"asking {name} (at most {seconds:g} s; --timeout changes it)")
    limit = seconds + _REST
    try:  # repeated questions included
        evaluation = _loop.run(asyncio.wait_for(evaluator.evaluate(_CALL), limit))
    except TimeoutError:
        works, verdict = (
            False,
            (
                f"FAILED: no usable answer within {limit:g} s; a slow server may need a longer "
                "--timeout, or fewer --max-tokens"
            ),
        )
    else:
        works, verdict = _verdict(evaluation)
    print_stdout(f"judge {evaluator.judge.name}: {verdict}")
    return 0 if works else 1


def _verdict(evaluation: Evaluation) -> tuple[bool, str]:
    """Return whether the judge works, with a verdict in words; print warnings of its scores.

    It fails with an error or without labels.
    """
    if evaluation.error is not None:
        return False, f"FAILED: {evaluation.error.message}"
    scores = evaluation.scores.values()
    for warning in dict.fromkeys(warning for score in scores for warning in score.warnings):
        print_stdout(f"  {warning}")
    if evaluation.labels is None:
        return False, f"FAILED: {next(iter(scores)).reason}"
    values = ", ".join(
        f"{score.name} {score.status if score.value is None else format(score.value, '.2f')}"
        for score in scores
    )
    return True, f"works{_tells_apart(evaluation.labels)} ({values})"


def _tells_apart(labels: Labels) -> str:
    """Say whether the judge tells the copied sentence from the invented one.

    Returns:
        What follows `works` in the verdict. The copied one, `a`, should be fully supported; the
        invented one, `b`, should not.
    """
    if labels.support("b") == "full":
        return ", but calls an invented sentence supported"
    if labels.support("a") != "full":
        return ", but does not call a copied sentence supported"
    return ": calls a copied sentence supported, and an invented one not"


def _packages() -> Table:
    table = plain_table("Installed packages", "package", "version")
    table.add_row("rag-eval-integrations", _installed("rag-eval-integrations"))
    table.add_row("python", f"{platform.python_version()} ({sys.platform})")
    for name in (*_BASE, *_EXTRAS):
        table.add_row(name, _installed(name))
    return table


def _settings(typed: Mapping[str, Any]) -> Table | str:
    """Return a table of the settings that hold, and where each comes from.

    Args:
        typed: options of the command line by name; these precede the settings.
    """
    rows = origins(typed)
    if not rows:
        return f"settings: none in the environment, {FILE} or [tool.rag-eval] of pyproject.toml"
    table = plain_table("Settings", "option", "value", "from")
    for row in rows:
        add_row(table, *row)
    return table


def _installed(name: str) -> str:
    """Return a package's version, or how to install it."""
    try:
        return version(name)
    except PackageNotFoundError:
        extra = _EXTRAS.get(name)
        run = f"; run: pip install 'rag-eval-integrations[{extra}]'" if extra else ""
        return f"not installed{run}"


def _judge_lines(evaluator: RagEvaluator) -> Iterator[str]:
    """Yield lines about the judge and the splitter."""
    judge = judge_base(evaluator.judge)
    yield f"judges: {FORMS}; default: embedded (no key, no network)"
    yield f"judge {judge.name}: version {judge.version or 'not stated'}"
    if judge.card is not None:
        yield judge.card
    yield f"splitter: {evaluator.splitter.name}"
