"""Cost of background evaluation for the app: enqueue, latency under load, failures, memory.

    python benchmarks/background.py [--seconds 10] [--rate 200] [--app-ms 300] [--freeze]
    python benchmarks/background.py --soak 30 [--rate 200]

The judge is scripted and answers after 500 ms. An open-loop client sends `rate` requests per second
to an app whose calls take `app-ms` (retrieval and generation, waited for) plus about 0.2 ms of
work of its own; evaluation off and on take turns of 5 s, so that a busy machine disturbs both
alike. `--freeze` calls `gc.freeze()` after the first evaluations, as prefork servers advise: a
full garbage collection stops the whole process, and evaluations allocate.

`--soak` runs for so many minutes instead: calls at `rate`, every tenth evaluation fails, and the
resident memory is printed as it goes.

Promised: enqueue <= 20 us median and <= 200 us p99; p99 latency on <= 1.05 x off; resident memory
flat; 1,000 failing evaluations counted, one log line per kind. The full measurement is
`--seconds 60`, then `--soak 30`.
"""

from __future__ import annotations

import argparse
import gc
import logging
import resource
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from rag_eval_integrations.background import BackgroundEvaluator
from rag_eval_integrations.errors import JudgeRejectedError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.models import ThrottledModel
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.sinks import CallbackSink
from rag_eval_integrations.testing import ScriptedModel, labels_reply

TURN = 5.0  # seconds
DOCUMENTS = tuple(
    f"Ferry {number} leaves the harbour at nine. It carries forty passengers and ten bicycles. "
    "Tickets are sold on board and cost two coins. Dogs travel free of charge."
    for number in range(5)
)
REPLY = labels_reply([f"{d}{s}" for d in range(5) for s in "abcd"], ["a", "b"])


def make_call(number: int) -> RagCall:
    """Make a call of 5 documents with 20 sentences; no two calls share labels."""
    return RagCall(
        question=f"When does ferry {number} leave?",
        documents=DOCUMENTS,
        response="The ferry leaves at nine. It carries forty passengers.",
        id=str(number),
    )


class _Closed(ThrottledModel):
    """Its circuit never opens."""

    _max_failures = 10**9


def background(reply: Callable[[CompletionRequest], str]) -> BackgroundEvaluator:
    judge = ScriptedModel(reply, latency=0.5)
    judge.requests = Forgetful()
    sink = CallbackSink(lambda evaluation: None)
    # 200 per second at 500 ms are 100 at once; by default a judge has 32 requests in flight.
    throttled = _Closed(judge, max_concurrency=200)
    return BackgroundEvaluator(RagEvaluator(throttled), [sink], max_concurrency=200)


def answer(request: CompletionRequest) -> str:
    """Answer that everything is relevant, used and supported."""
    return REPLY


class Forgetful(list):  # type: ignore[type-arg]  # the scripted judge keeps its requests in it
    """A list that stays empty, so that the soak does not measure the script's own memory."""

    def append(self, item: object) -> None:
        """Discard the item."""


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def drive(
    rate: float, seconds: float, app: Callable[[int], float], pool: ThreadPoolExecutor
) -> list[float]:
    """Send requests at a fixed rate regardless of the app; return their latencies."""
    began = time.perf_counter()
    answers: list[Future[float]] = []
    for number in range(int(rate * seconds)):
        wait = began + number / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        answers.append(pool.submit(app, number))
    return [answer.result() for answer in answers]


def discard(call: RagCall) -> None:
    """Do nothing, to measure the cost of any call in an app that has just slept."""


class App:
    """Retrieves and generates (a wait), then hands its call on."""

    def __init__(self, seconds: float, target: Callable[[RagCall], None]) -> None:
        self.seconds = seconds
        self.target = target
        self.enqueue: list[float] = []

    def __call__(self, number: int) -> float:
        """Answer a request and return the seconds taken."""
        began = time.perf_counter()
        time.sleep(self.seconds / 2)  # retrieval
        call = make_call(number)
        for _ in range(4):
            REPLY.encode().decode()  # prompt building
        time.sleep(self.seconds / 2)  # generation
        start = time.perf_counter()
        self.target(call)
        self.enqueue.append(time.perf_counter() - start)
        return time.perf_counter() - began


def full_collections() -> list[float]:
    """Record the seconds of every full garbage collection from now on in a list."""
    pauses: list[float] = []
    began = [0.0]

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            began[0] = time.perf_counter()
        elif info["generation"] == 2:
            pauses.append(time.perf_counter() - began[0])

    gc.callbacks.append(note)
    return pauses


def latency(seconds: float, rate: float, app_seconds: float, *, freeze: bool) -> None:
    evaluating = background(answer)
    pauses = full_collections()
    off, on = App(app_seconds, discard), App(app_seconds, evaluating)
    taken: dict[str, list[float]] = {"off": [], "on": []}
    with ThreadPoolExecutor(int(rate * app_seconds * 2) + 8) as pool, evaluating:
        for app in (off, on):
            drive(rate, 2.0, app, pool)  # threads, caches
            evaluating.flush()
            app.enqueue.clear()
        if freeze:  # only now is everything imported that evaluations need
            gc.collect()
            gc.freeze()
        pauses.clear()
        for _ in range(max(1, round(seconds / TURN))):
            taken["off"] += drive(rate, min(seconds, TURN), off, pool)
            taken["on"] += drive(rate, min(seconds, TURN), on, pool)
            evaluating.flush()
        counters = evaluating.counters
    for name, values in taken.items():
        print(
            f"  {name:<4} median {statistics.median(values) * 1e3:7.2f} ms, "
            f"p99 {quantile(values, 0.99) * 1e3:7.2f} ms, {len(values)} requests"
        )
    ratio = quantile(taken["on"], 0.99) / quantile(taken["off"], 0.99)
    print(f"  p99 on / off: {ratio:.3f} (promised <= 1.05)")
    enqueue = [value * 1e6 for value in on.enqueue]
    print(
        f"  enqueue under load: median {statistics.median(enqueue):.1f} us (promised <= 20), "
        f"p99 {quantile(enqueue, 0.99):.1f} us (promised <= 200), max {max(enqueue):.0f} us"
    )
    print(
        f"  full garbage collections: {len(pauses)}, longest {max(pauses, default=0) * 1e3:.0f} ms"
    )
    nothing = statistics.median(off.enqueue) * 1e6
    print(f"  a call of an empty function in its place: median {nothing:.1f} us")
    print(f"  {counters.captured} captured, {counters.scored} scored, {counters.dropped} dropped")


def alone(calls: int) -> None:
    """Enqueue from one thread as fast as possible while the worker evaluates."""
    made = [make_call(number) for number in range(calls)]
    for rate in (1.0, 0.5):
        evaluating = BackgroundEvaluator(
            RagEvaluator(ScriptedModel(lambda request: REPLY, latency=0.5)),
            sample_rate=rate,
            max_pending=calls,
        )
        times = []
        for call in made:
            start = time.perf_counter()
            evaluating.submit(call)
            times.append((time.perf_counter() - start) * 1e6)
        print(
            f"  sample_rate {rate}: median {statistics.median(times):.2f} us, "
            f"p99 {quantile(times, 0.99):.1f} us, {calls} calls"
        )
        logging.disable()  # what is not evaluated here is meant not to be
        evaluating.close(0.0)
        logging.disable(logging.NOTSET)


def resident_mb() -> float:
    """Return the resident memory in MB, or its peak where there is no /proc."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


class EveryTenthFails:
    """A judge's answers; every tenth request is refused for good."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: CompletionRequest) -> str:
        """Answer or raise."""
        self.asked += 1
        if self.asked % 10 == 0:
            raise JudgeRejectedError("401: scripted")
        return REPLY


def failing(calls: int) -> None:
    """Fail every evaluation in one of four ways; print the effect on app, log and counters."""
    kinds = (JudgeRejectedError("401"), TypeError("a bug"), ValueError("odd"), KeyError("none"))
    asked = iter(range(10**9))

    def reply(request: CompletionRequest) -> str:
        raise kinds[next(asked) % len(kinds)]

    lines: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = lines.append  # type: ignore[assignment,method-assign]  # a class for one method
    logger = logging.getLogger("rag_eval_integrations.background")
    logger.addHandler(handler)
    logger.propagate = False
    with BackgroundEvaluator(RagEvaluator(ScriptedModel(reply)), max_pending=calls) as evaluating:
        for number in range(calls):
            evaluating.submit(make_call(number))
        evaluating.flush(120.0)
        counters = evaluating.counters
    logger.removeHandler(handler)
    logger.propagate = True
    print(
        f"  {counters.captured} captured, {counters.failed} failed, none raised into the app, "
        f"{len(lines)} log lines for {len(kinds)} kinds"
    )


def soak(minutes: float, rate: float) -> None:
    """Print memory and counters while calls arrive; the first tenth of the time fills caches."""
    seconds = minutes * 60
    step = max(1.0, seconds / 30)
    evaluating = background(EveryTenthFails())
    warm = 0.0
    began = time.perf_counter()
    due = 0.0
    with evaluating:
        for number in range(int(rate * seconds)):
            wait = began + number / rate - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            evaluating.submit(make_call(number))
            now = number / rate
            if now >= due:
                due += step
                if not warm and now >= seconds / 10:
                    warm = resident_mb()
                print(
                    f"  {now:6.0f} s  RSS {resident_mb():7.1f} MB  {told(evaluating)}", flush=True
                )
        evaluating.flush()
        gc.collect()
        end = resident_mb()
        print(f"  at the end    RSS {end:7.1f} MB  {told(evaluating)}")
    print(f"  {end - warm:+.1f} MB since a tenth of the time (promised: flat)")


def told(evaluating: BackgroundEvaluator) -> str:
    """Format the counters on one line, without those that are 0 or follow from the others."""
    c = evaluating.counters
    written = c.sinks[0].written
    return (
        f"captured {c.captured}, scored {c.scored}, failed {c.failed}, dropped {c.dropped}, "
        f"pending {c.pending}, written {written}; {threading.active_count()} threads, "
        f"{len(gc.get_objects())} objects"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=10.0, help="for off and on each")
    parser.add_argument("--rate", type=float, default=200.0, help="calls per second")
    parser.add_argument("--app-ms", type=float, default=300.0)
    parser.add_argument("--freeze", action="store_true", help="call gc.freeze() when warm")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="only watch the memory")
    chosen = parser.parse_args()
    if chosen.soak is not None:
        print(f"Soak of {chosen.soak:g} min at {chosen.rate:g} calls/s, judge at 500 ms:")
        soak(chosen.soak, chosen.rate)
        return
    print("Enqueue, one thread, the queue filling up:")
    alone(5_000)
    print(f"App of {chosen.app_ms:g} ms at {chosen.rate:g} requests/s, judge at 500 ms:")
    latency(chosen.seconds, chosen.rate, chosen.app_ms / 1e3, freeze=chosen.freeze)
    print("Evaluations that all fail:")
    failing(1_000)


if __name__ == "__main__":
    main()
