"""Run a chain over examples, capture what it does, evaluate it; nothing leaves the machine.

    examples ─▶ chain, captured ─▶ RagCall ─▶ RagEvaluator ─▶ Evaluation, in the examples' order

LangSmith's `evaluate(upload_results=False)` does leave it: it posts the contents of runs (measured
on 0.15).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs

from rag_eval_integrations import _loop
from rag_eval_integrations.dataset import EvaluationFile, evaluate_calls
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.langchain.examples import Example, example_from
from rag_eval_integrations.langchain.extract import answer_of
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler
from rag_eval_integrations.records import (
    Capture,
    CaptureStatus,
    Evaluation,
    EvaluationError,
    RagCall,
    from_line,
)

Chain = Runnable[Any, Any] | Callable[[Any], Any]


class Options(TypedDict, total=False):
    """How a chain is run over examples."""

    make_input: Callable[[Any], object]
    """Makes the chain's input of an example, as for an agent: `lambda example: {"messages":
    [("user", example["question"])]}`. Default: the example's `inputs`, else its `question`."""
    config: RunnableConfig
    """Passed to the chain with every call; its callbacks stay."""
    max_concurrency: int
    """Examples under way at once; 8."""
    timeout: float | None
    """Seconds for the chain's own call, after which the row has the error `TimeoutError`; none by
    default. A thread cannot be stopped: in code that is not async it goes on, and keeps its
    place."""
    out: str | Path
    """A file for the evaluations, as `rag-eval run` writes it. None is written by default."""
    resume: bool
    """Take over the rows of `out` that have the id, question and reference of an example, no
    error, and this evaluator's fingerprint; these examples are not run again. Of the chain
    nothing is known: resume what was killed, not what was changed."""
    progress: Callable[[int, int], object]
    """Called with the number of rows done, and of all, after each row. What it raises ends the
    run."""


def evaluate_dataset(
    chain: Chain, examples: Iterable[object], evaluator: RagEvaluator, **options: Unpack[Options]
) -> list[Evaluation]:
    """Run a chain over examples and evaluate each call; in code that is not async.

    The chain is run by its `invoke` in threads, never on a loop of ours, which its async client
    might not belong to. Otherwise as `aevaluate_dataset`.
    """
    runnable = _runnable(chain)
    context = copy_context()
    threads = ThreadPoolExecutor(max(1, options.get("max_concurrency", _CONCURRENCY)))

    async def ask(given: object, config: RunnableConfig) -> object:
        invoke = context.copy().run  # the caller's context, as if called in the caller's thread
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, invoke, runnable.invoke, given, config)

    try:
        return _loop.run(_evaluated(ask, examples, evaluator, options))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


async def aevaluate_dataset(
    chain: Chain, examples: Iterable[object], evaluator: RagEvaluator, **options: Unpack[Options]
) -> list[Evaluation]:
    """Run a chain over examples and evaluate each call; the chain is run by its `ainvoke`.

    An example is a string (the question), a dict with `question` or `inputs` and, if known,
    `reference` (or `reference_outputs`, `outputs`), `id` and `metadata`; a `RagCall`, whose
    documents and response are those of the chain then; or LangSmith's `Example`.

    An example on which the chain fails gives a row, too: without response, its scores unscored
    (`empty_response`), the exception in `evaluation.error` with the stage `app`. Nothing is judged
    then, and the run goes on.

    Args:
        chain: a runnable, or a function of the input.
        examples: read whole before the first is run.
        evaluator: what evaluates.
        **options: see `Options`.

    Returns:
        One evaluation an example, in the examples' order; `id`, `reference` and `metadata` are
        the example's.

    Raises:
        ConfigurationError: an example cannot be read, an option cannot be used, or `out` cannot
            be resumed from.
        OSError: `out` cannot be written.
    """
    return await _evaluated(_runnable(chain).ainvoke, examples, evaluator, options)


_CONCURRENCY = 8
_Ask = Callable[[Any, RunnableConfig], Awaitable[object]]


def _runnable(chain: Chain) -> Runnable[Any, Any]:
    if isinstance(chain, Runnable):
        return chain
    if not callable(chain):
        raise ConfigurationError("chain", chain, "should be a runnable, or a function of the input")
    return RunnableLambda(chain)


async def _evaluated(
    ask: _Ask, examples: Iterable[object], evaluator: RagEvaluator, options: Options
) -> list[Evaluation]:
    for name, value in options.items():
        if name not in Options.__annotations__:
            known = ", ".join(Options.__annotations__)
            raise ConfigurationError(name, value, f"no such option; use one of {known}")
    make_input, progress = options.get("make_input"), options.get("progress")
    read = [example_from(item, f"examples[{at}]", make_input) for at, item in enumerate(examples)]
    done: dict[int, Evaluation] = {}
    with ExitStack() as opened:
        file = None
        if out := options.get("out"):
            path, resume = Path(out), options.get("resume", False)
            earlier = _Earlier(path, evaluator.fingerprint) if resume else None
            file = opened.enter_context(EvaluationFile(path, evaluator.fingerprint, resume=resume))
            if earlier is not None:
                done = _taken_over(read, earlier, file)
        pending = [index for index in range(len(read)) if index not in done]
        worker = _Worker(ask, evaluator, options.get("config"), options.get("timeout"))
        stream = evaluate_calls(
            # A stream only calls `evaluate` on what it is given: here, examples to be run first.
            cast("Iterable[RagCall]", [read[index] for index in pending]),
            cast("RagEvaluator", worker),
            max_concurrency=options.get("max_concurrency", _CONCURRENCY),
            ordered=False,
        )
        async for number, evaluation in stream.numbered():
            index = pending[number]
            done[index] = evaluation
            if file is not None:
                file.add(index, evaluation)
            if progress is not None:
                progress(len(done), len(read))
        if file is not None:
            file.finish()
    return [done[index] for index in range(len(read))]


@dataclass(frozen=True)
class _Worker:
    """Runs an example and evaluates what was captured."""

    ask: _Ask
    evaluator: RagEvaluator
    config: RunnableConfig | None
    timeout: float | None

    async def evaluate(self, example: Example) -> Evaluation:
        calls: list[RagCall] = []
        handler = RagEvalCallbackHandler(calls.append)
        config = merge_configs(self.config, {"callbacks": [handler]})
        output: object = None
        error: BaseException | None = None
        try:
            async with asyncio.timeout(self.timeout):
                output = await self.ask(example.given, config)
        except Exception as failure:  # noqa: BLE001 -- a row of its own
            error = failure
        except asyncio.CancelledError as failure:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            error = failure  # the chain gave up by itself
        call = _call(example, calls, output, error)
        evaluation = await self.evaluator.evaluate(call)
        if error is None:
            return evaluation
        kind, message = type(error).__name__, str(error) or repr(error)
        failed = EvaluationError(type=kind, message=message, stage="app")
        return evaluation.model_copy(update={"error": failed})


def _call(
    example: Example, calls: list[RagCall], output: object, error: BaseException | None
) -> RagCall:
    """Make the row's call; where nothing was captured, of what the example and the output say."""
    known: dict[str, Any] = {
        "id": example.label,
        "reference": example.reference,
        "metadata": example.metadata,
    }
    if calls:
        # Alternatives that stand outside of everything (`with_fallbacks`) are a call each.
        fine = [one for one in calls if one.capture is None or one.capture.status == "ok"]
        call = (fine or calls)[-1]
        if error is not None:
            known["response"] = None
        return call.model_copy(update={**known, "question": example.question or call.question})
    status: CaptureStatus = "ok" if error is None else "error"
    return RagCall(
        question=example.question,
        documents=(),
        # Not None for a chain whose answer cannot be told: that would be a retrieval alone.
        response=answer_of(output) or "" if error is None else None,
        capture=Capture(framework="langchain", status=status),
        **known,
    )


class _Earlier:
    """The rows of an earlier run that may be taken over, by example."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._rows: dict[tuple[str, str | None], list[Evaluation]] = {}
        for file in (path.with_name(path.name + ".partial"), path):
            if file.exists():
                with file.open("rb") as lines:
                    for line in lines:
                        self._keep(line, fingerprint)

    def _keep(self, line: bytes, fingerprint: str) -> None:
        try:
            row = from_line(Evaluation, line)
        except InputError:
            return  # `EvaluationFile` looks at it, and says what is wrong
        if row.error is None and row.fingerprint == fingerprint:
            self._rows.setdefault((row.id, row.reference), []).append(row)

    def take(self, example: Example) -> Evaluation | None:
        """Give the next row of an example."""
        rows = self._rows.get((example.label, example.reference), [])
        for row in rows:
            if not example.question or row.question == example.question:
                rows.remove(row)
                return row
        return None


def _taken_over(
    examples: list[Example], earlier: _Earlier, file: EvaluationFile
) -> dict[int, Evaluation]:
    done = {}
    for index, example in enumerate(examples):
        row = earlier.take(example)
        if row is not None and (taken := file.take(index, row)) is not None:
            done[index] = taken
    return done
