"""Running an app on a list of questions and evaluating its answers; resumable, errors become rows.

    questions ─▶ the app, captured ─▶ RagCall ─▶ RagEvaluator ─▶ Evaluation, in the questions' order

The frameworks' packages know how an app is called; this module holds the part that they share.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from rag_eval_integrations._contain import EscapedError, contained
from rag_eval_integrations._scoring import failure_of
from rag_eval_integrations.dataset.files import EvaluationFile
from rag_eval_integrations.dataset.stream import EvaluationStream
from rag_eval_integrations.errors import ConfigurationError, InputError, whole_number
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import Capture, Evaluation, RagCall
from rag_eval_integrations.records._json import from_object
from rag_eval_integrations.records.call import CaptureStatus

# --- Calling an app of any framework: threads for synchronous apps, and the captured call


InThread = Callable[..., Awaitable[object]]


@contextmanager
def threads_for(options: AskingOptions) -> Iterator[InThread]:
    """Provide a function that runs another one in a thread, for apps with a synchronous method.

    Each call runs in a copy of the current context, as if called from this thread. On exit, calls
    that have not begun are cancelled, and running ones are not waited for.
    """
    context = copy_context()
    threads = ThreadPoolExecutor(options.get("max_concurrency", MAX_CONCURRENCY))

    def call(function: Callable[..., object], *arguments: Any) -> object:
        """Call a function in the thread."""
        with contained:  # in the thread: a `StopIteration` would not come out of it
            return function(*arguments)

    async def in_thread(function: Callable[..., object], *arguments: Any) -> object:
        """Call a function in a thread, with the caller's context."""
        run = context.copy().run
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, run, call, function, *arguments)

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
    """Ask the app, and return the call that was captured, else one of question and answer.

    Of several captured calls it is the last that went well. It has the question that was asked, and
    no response where the app raised.

    Args:
        question: the question.
        ask: asks the app; every call that is captured meanwhile is passed to its argument.
        seconds: time limit of the app's own call in seconds; None for no limit.
        framework: name of the framework for a call that was not captured.
        answer_of: reads the text of the app's output; None when there is no text.
    """
    calls: list[RagCall] = []
    output, error = await attempted(ask(calls.append), seconds)
    if calls:
        # Top-level alternatives (`with_fallbacks`) are captured as one call each.
        fine = [call for call in calls if call.capture is None or call.capture.status == "ok"]
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
        # An unknown answer is "" and not None, which would mean a retrieval without a response.
        response=answer_of(output) or "" if error is None else None,
        capture=Capture(framework=framework, status=status),
    )
    return Answered(call, error)


# --- Questions and answers


MAX_CONCURRENCY = 8


@dataclass(frozen=True)
class Question:
    """A question to an app, with its reference and metadata."""

    text: str
    """The question; empty when only the app knows it, and rows are then resumed by id and
    reference."""
    reference: str | None = None
    """The expected answer; None without one."""
    label: str = ""
    """The user's id; by default the first 16 hex digits of a digest of text and reference."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Metadata of the call."""
    relevant_ids: tuple[str, ...] | None = None
    """Ids of the relevant documents; None where they are not known."""

    def __post_init__(self) -> None:
        if not self.label:
            text = json.dumps([self.text, self.reference])
            digest = hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
            object.__setattr__(self, "label", digest)


class Answered(NamedTuple):
    """An app's answer to a question."""

    call: RagCall
    """The call as captured; without a response when the app failed."""
    error: BaseException | None = None
    """The app's exception; None for an answer."""


Ask = Callable[[Question], Awaitable[Answered]]


async def attempted(
    asking: Awaitable[object], seconds: float | None
) -> tuple[object, BaseException | None]:
    """Await an app's answer; an exception is returned instead of raised.

    That holds for `SystemExit` and for its own cancellation as well. Call this inside of the
    framework's capture and not around it, so that the call captured up to a time limit is kept.

    Args:
        asking: the app's own call.
        seconds: time limit in seconds; None for no limit.

    Returns:
        The answer and None, or None and the exception (`TimeoutError` beyond the limit).

    Raises:
        asyncio.CancelledError: the caller was cancelled, and not the app.
        KeyboardInterrupt: Ctrl-C.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            with contained:
                return await asking, None
    except EscapedError as escaped:
        return None, escaped.original
    except Exception as failure:  # noqa: BLE001 -- becomes the error of a row
        if limit.expired() and isinstance(failure, TimeoutError):
            return None, TimeoutError(f"no answer within {seconds:g} s")
        return None, failure


# --- Asking all questions


class AskingOptions(TypedDict, total=False):
    """Options for asking an app a list of questions."""

    max_concurrency: int
    """Number of questions in progress at once; 8 by default."""
    timeout: float | None
    """Time limit of the app's own call in seconds, after which the row has the error
    `TimeoutError`; none by default. Threads cannot be stopped, so a synchronous call goes on and
    keeps its thread."""
    out: str | Path
    """File for the evaluations, in the format of `rag-eval run`; none by default."""
    resume: bool
    """Go on with `out`: reuse its rows that have the id, question, reference and relevant ids of a
    question and no error, instead of asking again. A file with rows of other questions, or made by
    another evaluator, is refused. The app itself is not compared: resume a run that was
    interrupted, not one of a changed app."""
    overwrite: bool
    """Replace an `out` that exists, which is refused otherwise."""
    progress: Callable[[int, int], object]
    """Called after each row with the number of finished rows and the number of all rows."""


def check_options(options: AskingOptions) -> None:
    """Refuse unknown and unusable options before anything is written.

    Raises:
        ConfigurationError: an option is unknown or unusable; names the option.
    """
    for name, value in options.items():
        if name not in AskingOptions.__annotations__:
            known = ", ".join(AskingOptions.__annotations__)
            raise ConfigurationError(name, value, f"no such option; use one of {known}")
    whole_number("max_concurrency", options.get("max_concurrency", MAX_CONCURRENCY))
    timeout = options.get("timeout")
    if timeout is not None and (type(timeout) not in (int, float) or not timeout > 0):
        raise ConfigurationError("timeout", timeout, "use a number of seconds above 0, or None")
    progress = options.get("progress")
    if progress is not None and not callable(progress):
        raise ConfigurationError("progress", progress, "should be a callable")
    out: object = options.get("out")
    if out is not None and not (isinstance(out, str | Path) and str(out)):
        raise ConfigurationError("out", out, "use the path of a file")
    if options.get("resume") and out is None:
        raise ConfigurationError("resume", options["resume"], "give `out`, the file to resume")
    if options.get("overwrite") and out is None:
        raise ConfigurationError("overwrite", options["overwrite"], "give `out`, the file to write")


async def evaluate_asked(
    questions: Sequence[Question], ask: Ask, evaluator: RagEvaluator, options: AskingOptions
) -> Evaluations:
    """Ask all questions and evaluate the answers, with one evaluation per question in their order.

    Rows of an earlier run in `out` are taken over, and their questions not asked again.

    Args:
        questions: the questions.
        ask: asks one question; it applies `timeout` itself, with `attempted`.
        evaluator: the evaluator of the answers.
        options: see `AskingOptions`.

    Raises:
        ConfigurationError: an option cannot be used, or `out` cannot be resumed.
        OSError: `out` cannot be written.
    """
    progress = options.get("progress")
    done: dict[int, Evaluation] = {}
    with ExitStack() as opened:
        file = None
        if out := options.get("out"):
            resume, overwrite = options.get("resume", False), options.get("overwrite", False)
            file = opened.enter_context(
                EvaluationFile(Path(out), evaluator.fingerprint, resume=resume, overwrite=overwrite)
            )
            done = _earlier_rows(questions, file)
        pending = [index for index in range(len(questions)) if index not in done]
        stream = EvaluationStream(
            [questions[index] for index in pending],
            _AskingEvaluator(ask, evaluator),
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
    return Evaluations(done[index] for index in range(len(questions)))


@dataclass(frozen=True)
class _AskingEvaluator:
    """Evaluates a question by asking the app first."""

    ask: Ask
    evaluator: RagEvaluator

    async def evaluate(self, question: Question) -> Evaluation:
        """Ask a question and evaluate the answer; a failure of the app is data."""
        try:
            with contained:
                call, error = await self._answered(question)
        except Exception as failure:  # noqa: BLE001 -- the framework's side of it, not the app
            call, error = _fallback_call(question), failure
        evaluation = await self.evaluator.evaluate(call)
        if error is None:
            return evaluation
        return evaluation.model_copy(update={"error": failure_of(call, "app", error)})

    async def _answered(self, question: Question) -> Answered:
        """Ask the app; return its call with the question's id, reference and gold ids."""
        answered = await self.ask(question)
        fields = {name: getattr(answered.call, name) for name in RagCall.model_fields}
        return Answered(RagCall(**{**fields, **_call_fields(question)}), answered.error)


def _call_fields(question: Question) -> dict[str, Any]:
    """Return the fields of a call that its question sets."""
    return {
        "id": question.label,
        "reference": question.reference,
        "metadata": question.metadata,
        "relevant_ids": question.relevant_ids,
    }


def _fallback_call(question: Question) -> RagCall:
    """Make a call of those fields of a question that are usable."""
    fields: dict[str, Any] = {"question": "", "documents": (), "response": None}
    for name, value in {"question": question.text, **_call_fields(question)}.items():
        with suppress(InputError):
            from_object(RagCall, {**fields, name: value})
            fields[name] = value
    return RagCall(**fields)


_QuestionKey = tuple[str, str | None, frozenset[str] | None]
"""What a row and its question have in common: id, reference and relevant ids."""


def _question_key(of: Question | Evaluation) -> _QuestionKey:
    """Return what identifies a question: id, reference and gold ids."""
    label = of.label if isinstance(of, Question) else of.id
    return label, of.reference, None if of.relevant_ids is None else frozenset(of.relevant_ids)


def _earlier_rows(questions: Sequence[Question], file: EvaluationFile) -> dict[int, Evaluation]:
    """Reuse the rows of an earlier run, each for the first question that it answers.

    Those with an error are not; a file with evaluations of other questions is refused.
    """
    texts: dict[_QuestionKey, set[str]] = defaultdict(set)
    for question in questions:
        texts[_question_key(question)].add(question.text)
    rows: dict[_QuestionKey, list[Evaluation]] = defaultdict(list)
    others = 0
    for row in file.earlier():
        others += {"", row.question}.isdisjoint(texts[_question_key(row)])
        if row.error is None:
            rows[_question_key(row)].append(row)
    if others:
        raise ConfigurationError(
            "out",
            str(file.path),
            f"holds {others} evaluations of other questions; resume with the questions that it was "
            "made from, or use another file",
        )
    done = {}
    for index, question in enumerate(questions):
        answers = rows[_question_key(question)]
        answer = next((row for row in answers if question.text in ("", row.question)), None)
        if answer is not None and (taken := file.take(index, answer)) is not None:
            answers.remove(answer)
            done[index] = taken
    return done
