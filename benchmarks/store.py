"""Spool, worker and store: what the app pays, and how fast calls go through.

    python benchmarks/store.py [submit] [app] [import] [claims] [workers] [means] [--postgresql URL]

Without names, all of them. `--postgresql` names an empty database for `claims` and `import`; else
only SQLite is measured.

submit   a call of 4 kB, serialization included, while a worker imports, beside a bare `os.write`
app      an app of LangChain with handler and spool, in turns with the app alone and with a handler
         that does nothing, which is what LangChain itself takes to call one, per call
import   spool files into a store
claims   claims of 32 and settling them, without a judge
workers  one against four worker processes, at a judge that takes 500 ms
means    of the last hour, over a million evaluations of a week

Promised: submit <= 80 us median, <= 1 ms at 99.9 %; app <= 1.05 x; import >= 5,000 calls/s; claims
>= 1,000/s; four workers >= 3.5 x one; means <= 200 ms.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from rag_eval_integrations import RagCall, RagEvaluator, Spool
from rag_eval_integrations._visible import LogOnce
from rag_eval_integrations.records import to_line
from rag_eval_integrations.store import Store
from rag_eval_integrations.store._import import SpoolImport
from rag_eval_integrations.store.database import Outcome
from rag_eval_integrations.store.spool import SpooledCall, new_uid

FAILURES = LogOnce(logging.getLogger("benchmark"))
CALL = RagCall(
    "When does the ferry leave?", ["The ferry leaves at nine. " * 30] * 5, "It leaves at nine."
)
WORKER = """
import asyncio, os, sys
from rag_eval_integrations.cli import main
from rag_eval_integrations.judges import EmbeddedJudge

class Slow:
    name, version = "slow", "1"
    own = EmbeddedJudge()
    async def label(self, call):
        await asyncio.sleep(.5)
        return await self.own.label(call)

judge = Slow()
sys.modules["slow"] = sys.modules["__main__"]
sys.argv = ["rag-eval", "worker", "--store", sys.argv[1], "--judge", "slow:judge", "--once",
            "--max-concurrency", "8", "--no-flags"]
main()
"""


def at(values: list[float], share: float) -> float:
    """Return a quantile in microseconds."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1e6


def timed(work: Callable[[], object], times: int, pause: float = 0.0005) -> list[float]:
    """Time a piece of work so many times, as calls of an app come: not back to back."""
    taken = []
    for _ in range(times):
        time.sleep(pause)
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return taken


def submit(folder: Path, url: str) -> None:
    line = to_line(CALL).encode()
    spool = Spool(folder / "spool")
    for _ in range(8):  # files for the worker
        for _ in range(2_000):
            spool.submit(CALL)
        spool.close()
    code = (
        "import sys, logging, time; from pathlib import Path; "
        "from rag_eval_integrations.store import Store; "
        "from rag_eval_integrations._visible import LogOnce; "
        "from rag_eval_integrations.store._import import SpoolImport; "
        "importing = SpoolImport(Store(sys.argv[1]), "
        "[Path(sys.argv[2])], LogOnce(logging.getLogger()))\n"
        "while True: importing.run(); time.sleep(1)"  # as a worker does
    )
    command = [sys.executable, "-c", code, url, str(folder / "spool")]
    with subprocess.Popen(command) as importing:
        file = os.open(folder / "bare", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        bare = timed(lambda: os.write(file, line), 5_000)
        ours = timed(lambda: spool.submit(CALL), 10_000)
        importing.kill()
    spool.close()
    for name, values in (("bare os.write", bare), ("submit", ours)):
        print(f"{name}, {len(line):,} bytes: median {at(values, 0.5):.0f} us, "
              f"99 % {at(values, 0.99):.0f}, 99.9 % {at(values, 0.999):.0f}")  # fmt: skip


def app(folder: Path, url: str) -> None:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    from rag_eval_integrations.langchain import RagEvalCallbackHandler

    found = [Document(text) for text in CALL.documents[0].text.split(". ")[:5]]

    def slow(question: str) -> list[Document]:
        time.sleep(0.005)  # a retriever and a model that are waited for
        return found

    context = RunnableLambda(slow) | (lambda docs: "\n".join(d.page_content for d in docs))
    prompt = ChatPromptTemplate.from_template("Answer from {context}\n\n{question}")
    model = FakeListChatModel(responses=["It leaves at nine."])
    chain = {"context": context, "question": RunnablePassthrough()} | prompt | model

    class Nothing(BaseCallbackHandler):
        run_inline = True

    ways: dict[str, list[Any]] = {
        "alone": [],
        "with a handler that does nothing": [Nothing()],
        "with handler and spool": [RagEvalCallbackHandler(Spool(folder / "app"))],
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(750):  # in turns, so that a busy machine disturbs all alike
        for way, callbacks in ways.items():
            began = time.perf_counter()
            chain.invoke("When does the ferry leave?", {"callbacks": callbacks})
            taken[way].append(time.perf_counter() - began)
    for share in (0.5, 0.99):
        alone = at(taken["alone"], share)
        figures = [f"{way} {at(values, share):.0f} us ({at(values, share) / alone:.3f} x)"
                   for way, values in taken.items()]  # fmt: skip
        print(f"app at {share:.0%}: {', '.join(figures)}")


def imported(folder: Path, url: str) -> None:
    spool = Spool(folder / "import")
    for _ in range(20_000):
        spool.submit(CALL)
    spool.close()
    with closing(Store(url)) as store:
        began = time.perf_counter()
        calls = SpoolImport(store, [folder / "import"], FAILURES).run()
        taken = time.perf_counter() - began
    print(f"import: {calls / taken:,.0f} calls/s of {len(to_line(CALL)):,} bytes")


def claims(folder: Path, url: str) -> None:
    with closing(Store(url)) as store:
        for _ in range(10):
            store.add([SpooledCall(new_uid(), time.time(), to_line(CALL)) for _ in range(1_000)])
        claimed, began = 0, time.perf_counter()
        while calls := store.claim("worker", 32):
            store.settle([Outcome(call, "left_out", "measured") for call in calls], "worker")
            claimed += len(calls)
        taken = time.perf_counter() - began
    print(f"claims: {claimed / taken:,.0f}/s, settled too")


def workers(folder: Path, url: str) -> None:
    rates = []
    for number in (1, 4):
        path = folder / f"workers{number}.db"
        with closing(Store(path)) as store:
            lines = [  # no two alike: an evaluator asks about equal calls once
                to_line(RagCall(f"When does ferry {n} leave?", CALL.documents, CALL.response))
                for n in range(160 * number)
            ]
            store.add([SpooledCall(new_uid(), time.time(), line) for line in lines])
        processes = [subprocess.Popen([sys.executable, "-c", WORKER, path]) for _ in range(number)]
        with closing(Store(path)) as store:
            for process in processes:
                process.wait()
            # From the first evaluation to the last: without the start of Python.
            first, last, calls = store._read(
                "SELECT min(finished), max(finished), count(*) FROM rag_evaluation"
            )[0]
        rates.append(calls / (last - first + 0.5))
    print(f"workers at 500 ms, 8 at once: one {rates[0]:.1f} calls/s, four {rates[1]:.1f} "
          f"({rates[1] / rates[0]:.2f} x)")  # fmt: skip


def means(folder: Path, url: str) -> None:
    path = folder / "means.db"
    week, total = 604_800, 1_000_000
    with closing(Store(path)) as store:
        store.submit(CALL)
        (claimed,) = store.claim("w", 1)
        evaluation = RagEvaluator().evaluate_sync(claimed.call())
        store.settle([Outcome(claimed, "judged", evaluation=evaluation)], "w")
        with store._running(writing=True) as run:
            numbers = (
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :total) "
            )
            run(
                f"INSERT INTO rag_score SELECT i, id, {{now}} - :week * (i / (:total + 1.0)), "
                f"(i % 5) / 4.0, NULL FROM ({numbers} SELECT i FROM n), rag_maker",
                total=total, week=week,
            )  # fmt: skip
        now = store.now()
        hour = statistics.median(timed(lambda: store.means(now - 3_600), 5))
        all_of_it = timed(lambda: store.means(now - week, step=21_600), 1)[0]
        figures = store.means(now - 3_600)
    print(f"means of the last hour, {figures[0].total:,} of {total:,} evaluations, "
          f"{len(figures)} scores: {hour * 1e3:.0f} ms; of the week, per 6 hours: "
          f"{all_of_it:.1f} s")  # fmt: skip


def main() -> None:
    parts: dict[str, Any] = {
        "submit": submit, "app": app, "import": imported, "claims": claims, "workers": workers,
        "means": means,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[[], *parts])
    parser.add_argument("--postgresql", metavar="URL")
    options = parser.parse_args()
    for name in options.parts or parts:
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Path(folder), str(Path(folder) / "store.db"))
            if name in ("import", "claims") and options.postgresql:
                print("on PostgreSQL,", end=" ")
                parts[name](Path(folder), options.postgresql)


if __name__ == "__main__":
    main()
