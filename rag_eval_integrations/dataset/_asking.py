"""Asks an app questions and evaluates its answers: bounded, in order, resumable, all errors rows.

    questions ─▶ the app, captured ─▶ RagCall ─▶ RagEvaluator ─▶ Evaluation, in the questions' order

How an app is asked is its host's affair; here is what running any of them has in common.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

from rag_eval_integrations.dataset.files import EvaluationFile
from rag_eval_integrations.dataset.stream import evaluate_calls
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import (
    Capture,
    CaptureStatus,
    Evaluation,
    EvaluationError,
    RagCall,
    from_line,
)

# --- Asking an app of a host, whichever: threads for a sync one, and the call that its answer
# makes


InThread = Callable[..., Awaitable[object]]


@contextmanager
def threads_for(options: AskingOptions) -> Iterator[InThread]:
    """Give what calls a function in a thread, for apps that are asked by a sync method.

    Each call runs in a copy of the context here, as if it was made in this very thread. At the end
    what has not begun is given up, and what is running is not waited for.
    """
    context = copy_context()
    threads = ThreadPoolExecutor(options.get("max_concurrency", MAX_CONCURRENCY))

    async def in_thread(function: Callable[..., object], *arguments: Any) -> object:
        run = context.copy().run
        return await asyncio.get_running_loop().run_in_executor(threads, run, function, *arguments)

    try:
        yield in_thread
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


async def captured(
    question: Question,
    ask: Callable[[Callable[[RagCall], object]], Awaitable[object]],
    *,
    seconds: float | None,
    framework: str,
    answer_of: Callable[[object], str | None],
) -> Answered:
    """Ask the app and give the call that was captured, or one of what is known where none was.

    Args:
        question: what is asked.
        ask: asks it; what captures meanwhile gives its calls to the function passed.
        seconds: how long the app's own call may take; None for no limit.
        framework: stands on a call that nothing captured.
        answer_of: reads the text of an app's output.
    """
    calls: list[RagCall] = []
    output, error = await attempted(ask(calls.append), seconds)
    if calls:
        # Alternatives that stand outside of everything (`with_fallbacks`) are a call each.
        fine = [one for one in calls if one.capture is None or one.capture.status == "ok"]
        call = (fine or calls)[-1]
        # The app may have rewritten the question, and a stream may have broken off.
        known: dict[str, Any] = {"question": question.text or call.question}
        if error is not None:
            known["response"] = None
        return Answered(call.model_copy(update=known), error)
    status: CaptureStatus = "ok" if error is None else "error"
    call = RagCall(
        question=question.text,
        documents=(),
        # Not None for an answer that cannot be told: that would be a retrieval alone.
        response=answer_of(output) or "" if error is None else None,
        capture=Capture(framework=framework, status=status),
    )
    return Answered(call, error)


MAX_CONCURRENCY = 8


@dataclass(frozen=True)
class Question:
    """What an app is asked, and what is known about it."""

    text: str
    """Empty where only the app knows it; then a row is taken over by id and reference."""
    reference: str | None = None
    """The expected answer."""
    label: str = ""
    """The user's id; by default the first 16 hex digits of a digest of text and reference."""
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.label:
            text = json.dumps([self.text, self.reference])
            digest = hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
            object.__setattr__(self, "label", digest)


class Answered(NamedTuple):
    """What an app made of a question."""

    call: RagCall
    """As captured; without a response where the app failed."""
    error: BaseException | None = None


Ask = Callable[[Question], Awaitable[Answered]]


async def attempted(
    asking: Awaitable[object], seconds: float | None
) -> tuple[object, BaseException | None]:
    """Wait for an app's answer; what it raises is a result, and so is its own cancellation.

    Here, inside of what the host captures, and not around it: what was captured until a time
    limit is kept.

    Args:
        asking: the app's own call.
        seconds: how long at most; None for no limit.

    Returns:
        The answer and None, or None and what went wrong (`TimeoutError` beyond the limit).

    Raises:
        asyncio.CancelledError: the caller was cancelled, not the app.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await asking, None
    except Exception as failure:  # noqa: BLE001 -- a row of its own
        if limit.expired() and isinstance(failure, TimeoutError):
            return None, TimeoutError(f"no answer within {seconds:g} s")
        return None, failure
    except asyncio.CancelledError as failure:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return None, failure  # the app gave up by itself


class AskingOptions(TypedDict, total=False):
    """How an app is asked."""

    max_concurrency: int
    """Questions under way at once; 8."""
    timeout: float | None
    """Seconds for the app's own call, after which the row has the error `TimeoutError`; none by
    default. A thread cannot be stopped: in code that is not async it goes on, and keeps its
    place."""
    out: str | Path
    """A file for the evaluations, as `rag-eval run` writes it. None is written by default."""
    resume: bool
    """Take over the rows of `out` that have the id, question and reference of a question, no
    error, and this evaluator's fingerprint; these are not asked again. Of the app nothing is
    known: resume what was killed, not what was changed."""
    progress: Callable[[int, int], object]
    """Called with the number of rows done, and of all, after each row."""


def check_options(options: AskingOptions) -> None:
    """Refuse options that do not exist or cannot work, before anything is written.

    Raises:
        ConfigurationError: names the option.
    """
    for name, value in options.items():
        if name not in AskingOptions.__annotations__:
            known = ", ".join(AskingOptions.__annotations__)
            raise ConfigurationError(name, value, f"no such option; use one of {known}")
    most = options.get("max_concurrency", MAX_CONCURRENCY)
    if type(most) is not int or most < 1:
        raise ConfigurationError("max_concurrency", most, "use a whole number from 1")
    timeout = options.get("timeout")
    if timeout is not None and (type(timeout) not in (int, float) or not timeout > 0):
        raise ConfigurationError("timeout", timeout, "use a number of seconds above 0, or None")
    progress = options.get("progress")
    if progress is not None and not callable(progress):
        raise ConfigurationError("progress", progress, "should be a callable")
    out: object = options.get("out")
    if out is not None and not (isinstance(out, str | Path) and str(out)):
        raise ConfigurationError("out", out, "should be the path of a file")
    if options.get("resume") and out is None:
        raise ConfigurationError("resume", options["resume"], "needs `out`, the file to resume")


async def evaluate_asked(
    questions: Sequence[Question], ask: Ask, evaluator: RagEvaluator, options: AskingOptions
) -> list[Evaluation]:
    """Ask all questions and evaluate the answers; one evaluation a question, in their order.

    `ask` keeps to `timeout` itself, by `attempted`.

    Raises:
        ConfigurationError: an option cannot be used, or `out` cannot be resumed from.
        OSError: `out` cannot be written.
    """
    progress = options.get("progress")
    done: dict[int, Evaluation] = {}
    with ExitStack() as opened:
        file = None
        if out := options.get("out"):
            path, resume = Path(out), options.get("resume", False)
            earlier = _Earlier(path, evaluator.fingerprint) if resume else None
            file = opened.enter_context(EvaluationFile(path, evaluator.fingerprint, resume=resume))
            if earlier is not None:
                done = _taken_over(questions, earlier, file)
        pending = [index for index in range(len(questions)) if index not in done]
        stream = evaluate_calls(
            # A stream only calls `evaluate` on what it is given: here, questions to be asked first.
            cast("Sequence[RagCall]", [questions[index] for index in pending]),
            cast("RagEvaluator", _AskingEvaluator(ask, evaluator)),
            max_concurrency=options.get("max_concurrency", MAX_CONCURRENCY),
            ordered=False,
        )
        async for number, evaluation in stream.numbered():
            index = pending[number]
            done[index] = evaluation
            if file is not None:
                file.add(index, evaluation)
            if progress is not None:
                progress(len(done), len(questions))
        if file is not None:
            file.finish()
    return [done[index] for index in range(len(questions))]


@dataclass(frozen=True)
class _AskingEvaluator:
    """Asks a question and evaluates the answer."""

    ask: Ask
    evaluator: RagEvaluator

    async def evaluate(self, question: Question) -> Evaluation:
        answered = await self.ask(question)
        known = {
            "id": question.label, "reference": question.reference, "metadata": question.metadata,
        }  # fmt: skip
        call = answered.call
        fields = {name: getattr(call, name) for name in RagCall.model_fields}
        evaluation = await self.evaluator.evaluate(RagCall(**{**fields, **known}))
        if answered.error is None:
            return evaluation
        kind = type(answered.error).__name__
        message = str(answered.error) or repr(answered.error)
        failed = EvaluationError(type=kind, message=message, stage="app")
        return evaluation.model_copy(update={"error": failed})


class _Earlier:
    """The rows of an earlier run that may be taken over, by question."""

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._rows: dict[tuple[str, str | None], list[Evaluation]] = {}
        for file in (path.with_name(path.name + ".partial"), path):
            if file.exists():
                with file.open("rb") as lines:
                    self._add(lines, fingerprint)

    def _add(self, lines: Iterable[bytes], fingerprint: str) -> None:
        for line in lines:
            try:
                row = from_line(Evaluation, line)
            except InputError:
                continue  # `EvaluationFile` looks at it, and says what is wrong
            if row.error is None and row.fingerprint == fingerprint:
                self._rows.setdefault((row.id, row.reference), []).append(row)

    def take(self, question: Question) -> Evaluation | None:
        """Give the next row of a question."""
        rows = self._rows.get((question.label, question.reference), [])
        for at, row in enumerate(rows):
            if not question.text or row.question == question.text:
                return rows.pop(at)
        return None


def _taken_over(
    questions: Sequence[Question], earlier: _Earlier, file: EvaluationFile
) -> dict[int, Evaluation]:
    done = {}
    for index, question in enumerate(questions):
        row = earlier.take(question)
        if row is not None and (taken := file.take(index, row)) is not None:
            done[index] = taken
    return done
