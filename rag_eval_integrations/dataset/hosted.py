"""Asking an app of a host, whichever: threads for a sync one, and the call that its answer makes.

a question ─▶ the app, captured by the host's own handler ─▶ Answered
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from rag_eval_integrations.dataset.asking import (
    MAX_CONCURRENCY,
    Answered,
    AskingOptions,
    Question,
    attempted,
)
from rag_eval_integrations.records import Capture, CaptureStatus, RagCall

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
