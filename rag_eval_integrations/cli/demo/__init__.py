"""`rag-eval demo`: capture calls of real LangChain and LlamaIndex apps and score them, no key."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations import _target
from rag_eval_integrations.report import calls_table, plain, unsupported_sentences

if TYPE_CHECKING:
    from rich.console import Console

    from rag_eval_integrations.records import Evaluation, RagCall

_EXTRAS = {"langchain": "langchain_core", "llama-index": "llama_index.core"}

ESTIMATES = (
    "These scores are LEXICAL ESTIMATES: the embedded judge compares words and uses no model. "
    "It misses paraphrases and contradictions; use a model as judge before you rely on a score."
)


def missing_extras() -> list[str]:
    """Return the extras whose framework is not installed."""
    return [extra for extra, module in _EXTRAS.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent package is not installed either
        return False


def run_demo(out: Path, console: Console) -> int:
    """Run both apps, write `calls.jsonl` and `evals.jsonl`, and print the evaluations.

    Args:
        out: folder for the two files; created if it does not exist.
        console: where the result is printed.

    Returns:
        The exit code: 0, or 2 for a missing framework or when capturing failed.

    Raises:
        ConfigurationError: when `out` holds files of these names that no demo wrote.
        OSError: when `out` cannot be created or written.
    """
    missing = missing_extras()
    if missing:
        wanted = missing[0] if len(missing) == 1 else "all"
        console.print(
            "The demo runs LangChain and LlamaIndex apps. Not installed: "
            f"{' and '.join(missing)}. Run: pip install 'rag-eval-integrations[{wanted}]'",
            markup=False,
            soft_wrap=True,
        )
        return 2
    _target.make_folder(out, "--out")
    calls, failed = _run_apps()
    evaluations = _evaluate(calls)
    _write(out / "calls.jsonl", calls)
    _write(out / "evals.jsonl", evaluations)
    _print(evaluations, console)
    for path in ("calls.jsonl", "evals.jsonl"):
        console.print(f"Wrote {plain(str(out / path))}", markup=False, emoji=False, soft_wrap=True)
    if failed:
        console.print(f"{failed} calls could not be captured; see the log for the reasons.")
        return 2
    return 0


def _run_apps() -> tuple[list[RagCall], int]:
    # The frameworks take seconds to import and may not be installed.
    from rag_eval_integrations.cli.demo import langchain_app, llama_index_app  # noqa: PLC0415

    calls: list[RagCall] = []
    failed = langchain_app.run(calls.append) + llama_index_app.run(calls.append)
    return calls, failed


def _evaluate(calls: list[RagCall]) -> list[Evaluation]:
    from rag_eval_integrations.evaluator import RagEvaluator  # noqa: PLC0415 -- the judge

    evaluator = RagEvaluator()
    return [evaluator.evaluate_sync(call) for call in calls]


def _write(path: Path, records: list[RagCall] | list[Evaluation]) -> None:
    from rag_eval_integrations.records import to_line  # noqa: PLC0415 -- pydantic

    text = "".join(f"{to_line(record)}\n" for record in records)
    _target.write_page(path, text, _is_ours, field="--out")


def _is_ours(head: bytes) -> bool:
    """Whether a file begins with a row of the demo; calls of others are not replaced."""
    from rag_eval_integrations.cli.demo import corpus  # noqa: PLC0415 -- for the demo alone

    exchanges = (*corpus.LANGCHAIN_EXCHANGES, *corpus.LLAMA_INDEX_EXCHANGES)
    return any(json.dumps(one.question).encode("ascii") in head for one in exchanges)


def _print(evaluations: list[Evaluation], console: Console) -> None:
    from rag_eval_integrations.metrics import diagnose  # noqa: PLC0415 -- pydantic

    console.print(calls_table(evaluations, console.width))
    found = {}
    for evaluation in evaluations:
        sentences = unsupported_sentences(evaluation)
        diagnoses = diagnose(evaluation.scores)
        found.update({diagnosis.pattern: diagnosis for diagnosis in diagnoses})
        if not (sentences or diagnoses):
            continue
        console.print()
        console.print(plain(evaluation.question, 200), markup=False, emoji=False, style="bold")
        if sentences:
            console.print(sentences)
        if diagnoses:
            patterns = ", ".join(diagnosis.pattern for diagnosis in diagnoses)
            console.print(f"  diagnosis: {patterns}", markup=False, highlight=False)
    console.print()
    console.print("Diagnoses:", style="bold")
    for diagnosis in found.values():
        text = f"  {diagnosis.pattern}: {diagnosis.problem} {diagnosis.fix}"
        console.print(text, markup=False, highlight=False)
    console.print()
    console.print(ESTIMATES, markup=False, highlight=False, style="bold yellow")
