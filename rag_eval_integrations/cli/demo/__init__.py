"""`rag-eval demo`: capture calls of real LangChain and LlamaIndex apps and score them, no key."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations import _target
from rag_eval_integrations._visible import one_line
from rag_eval_integrations.cli._arguments import DemoOptions
from rag_eval_integrations.cli._console import stdout
from rag_eval_integrations.cli.demo.corpus import LANGCHAIN_EXCHANGES, LLAMA_INDEX_EXCHANGES
from rag_eval_integrations.evaluations.console import (
    KEYS,
    call_details,
    calls_overview,
    marks_legend,
)
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.metrics import diagnose
from rag_eval_integrations.records import Evaluation, RagCall, to_line
from rag_eval_integrations.report import _page
from rag_eval_integrations.report.html import report_pieces

if TYPE_CHECKING:
    from rich.console import Console

_EXTRAS = {"langchain": "langchain_core", "llama-index": "llama_index"}

ESTIMATES = (
    "These scores are LEXICAL ESTIMATES: the embedded judge compares words and uses no model. "
    "It misses paraphrases and most contradictions; use a model as judge before you rely on a "
    "score."
)


INTRODUCTION = (
    "Two small RAG apps, one made with LangChain and one with LlamaIndex, answer six questions "
    "from the manual of a weather station (nine documents, two retrieved per question). Their "
    "models are scripted, so that no key is needed; retrieval, capture and scores are real. One "
    "answer invents a sentence; for another question the retrieval finds nothing relevant, and the "
    "app says that it does not know."
)

_NEXT = (
    "Next: open the report in a browser. The last file has the same calls without the invented "
    "sentence; `rag-eval compare` shows what a change mends or breaks:",
    "`rag-eval run CALLS.jsonl -o EVALS.jsonl --report REPORT.html` scores calls of your own, and "
    "`python -m pydoc rag_eval_integrations.langchain.RagEvalCallbackHandler` (or "
    "`rag_eval_integrations.llama_index.RagEvalHandler`) says how to attach a handler to your app.",
)


def demo(options: DemoOptions) -> int:
    """Run the demo; see `run_demo`."""
    return run_demo(options.out, stdout())


def run_demo(out: Path, console: Console) -> int:
    """Run both apps, print each call as it is scored, and write calls, evaluations and report.

    Args:
        out: folder for `calls.jsonl`, `evals.jsonl`, `report.html`, and `mended.jsonl`, evaluations
            of the same calls without the invented sentence; created if it does not exist.
        console: where the result is printed.

    Returns:
        The exit code: 0, or 2 for a missing framework or when capturing failed.

    Raises:
        ConfigurationError: when `out` holds files of these names that no demo wrote.
        OSError: when `out` cannot be created or written.
    """
    if missing := [extra for extra, module in _EXTRAS.items() if find_spec(module) is None]:
        wanted = missing[0] if len(missing) == 1 else "all"
        console.print(
            "The demo runs LangChain and LlamaIndex apps. Not installed: "
            f"{' and '.join(missing)}. Run: pip install 'rag-eval-integrations[{wanted}]'",
            markup=False,
            soft_wrap=True,
        )
        return 2
    _target.make_folder(out, "--out")
    _page.check(out / _REPORT, field="--out")
    console.width = min(console.width, _WIDTH)
    _introduce(console)
    calls: list[RagCall] = []
    evaluations: list[Evaluation] = []
    evaluate = RagEvaluator().evaluate_sync
    failed = 0
    for name, ask in _apps():
        asked = ask()
        try:
            while True:
                calls.append(call := next(asked))
                evaluations.append(evaluate(call))
                _print_call(name, len(calls), evaluations[-1], console)
        except StopIteration as ended:
            failed += ended.value
    _write(out / "calls.jsonl", calls)
    _write(out / "evals.jsonl", evaluations)
    _write(out / _MENDED, [evaluate(_mended(call)) for call in calls])
    content = report_pieces(evaluations, title="A weather station's manual: six questions")
    _page.write(out / _REPORT, content, field="--out")
    _print_overview(evaluations, console)
    for path in ("calls.jsonl", "evals.jsonl", _REPORT, _MENDED):
        console.print(f"Wrote {one_line(str(out / path))}", soft_wrap=True)
    pair = shlex.join([str(out / "evals.jsonl"), str(out / _MENDED)])
    console.print(_NEXT[0])
    console.print(f"rag-eval compare {one_line(pair)}", soft_wrap=True)
    console.print(_NEXT[1])
    console.print("A browser shows these runs, and others as they grow:")
    view = shlex.join(["rag-eval", "view", str(out)])
    console.print(one_line(view), soft_wrap=True)
    if failed:
        console.print(f"{failed} calls could not be captured; see the log for the reasons.")
        return 2
    return 0


_REPORT, _MENDED = "report.html", "mended.jsonl"
_WIDTH = 80
"""Columns at most: longer lines are hard to read."""


def _apps() -> Iterator[tuple[str, Callable[[], Generator[RagCall, None, int]]]]:
    """Yield name and app of each framework, imported when its turn comes."""
    # Each framework takes seconds to import and may not be installed.
    from rag_eval_integrations.cli.demo import langchain_app  # noqa: PLC0415

    yield "LangChain", langchain_app.ask
    from rag_eval_integrations.cli.demo import llama_index_app  # noqa: PLC0415

    yield "LlamaIndex", llama_index_app.ask


def _mended(call: RagCall) -> RagCall:
    """Return the call with its planted fault removed, as after a change of the app."""
    exchanges = (*LANGCHAIN_EXCHANGES, *LLAMA_INDEX_EXCHANGES)
    answers = {asked.question: asked.mended or asked.answer for asked in exchanges}
    return call.model_copy(update={"response": answers.get(call.question, call.response)})


def _write(path: Path, records: list[RagCall] | list[Evaluation]) -> None:
    """Write records as JSON lines, over files of an earlier demo only."""
    text = "".join(f"{to_line(record)}\n" for record in records)
    _target.write_page(path, text, _is_ours, field="--out")


def _is_ours(head: bytes) -> bool:
    """Return whether a file begins with a row of the demo, so that it may be replaced."""
    exchanges = (*LANGCHAIN_EXCHANGES, *LLAMA_INDEX_EXCHANGES)
    return any(json.dumps(asked.question).encode("ascii") in head for asked in exchanges)


# --- What is printed


def _introduce(console: Console) -> None:
    """Print the introduction and the legend of signs."""
    console.print(INTRODUCTION)
    console.print()
    console.print(f"{KEYS} Signs in front of a key:")
    console.print(marks_legend())


def _print_call(name: str, number: int, evaluation: Evaluation, console: Console) -> None:
    """Print a call with its sentences, scores and diagnosis."""
    console.print()
    console.rule(f"Call {number}, {name}", align="left", characters="-", style="dim")
    console.print(call_details(evaluation))
    patterns = [diagnosis.pattern for diagnosis in diagnose(evaluation.scores)]
    if patterns:
        console.print(f"Diagnosis  {', '.join(patterns)}")


def _print_overview(evaluations: list[Evaluation], console: Console) -> None:
    """Print the table of all calls, and what the diagnoses mean."""
    from rich.padding import Padding  # noqa: PLC0415 -- takes 0.1 s, needed for printing only

    console.print()
    console.rule("All calls", align="left", characters="-", style="dim")
    console.print(Summary.of(evaluations).verdict(), style="bold")
    console.print()
    console.print(calls_overview(evaluations))
    patterns = {
        diagnosis.pattern: diagnosis for row in evaluations for diagnosis in diagnose(row.scores)
    }
    if patterns:
        console.print("What the diagnoses mean:")
        for diagnosis in patterns.values():
            console.print(f"  {diagnosis.pattern}", style="bold")
            console.print(Padding(f"{diagnosis.problem} {diagnosis.fix}", (0, 0, 0, 4)))
        console.print()
    console.print(ESTIMATES, style="bold yellow")
    console.print()
