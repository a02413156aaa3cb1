"""A handler per request: many on one evaluator share a thread, and each has its own results."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of
from forked import forked
from processes import python, until

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.errors import ReentryError
from rag_eval_integrations.records import Evaluation, Labelling, SentencizedCall

from .test_delivered import (
    CAPTURING,
    Attach,
    langchain_handler,
    langchain_runnable,
    llama_index_engine,
    llama_index_handler,
)

WAIT = 60.0
LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


class Gate(ScriptedJudge):
    """Answers at once, but about slow questions when it is let."""

    def __init__(self) -> None:
        super().__init__(LABELS)
        self.open = threading.Event()

    async def label(self, call: SentencizedCall) -> Labelling:
        labelling = await super().label(call)
        while "slow" in call.call.question and not self.open.is_set():  # noqa: ASYNC110 -- set by another thread
            await asyncio.sleep(0.005)
        return labelling


def asked(capturing: Any) -> list[str]:
    """The questions of its evaluations."""
    return [evaluation.question for evaluation in capturing.evaluations]


def threads() -> set[threading.Thread]:
    """The library's threads that evaluate."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("rag-eval")}


def assert_end(those: Iterable[threading.Thread]) -> None:
    """Wait for the end of threads."""
    gc.collect()
    for thread in those:
        thread.join(WAIT)
        assert not thread.is_alive()


every = pytest.mark.parametrize("attach", CAPTURING)
both = pytest.mark.parametrize("attach", [langchain_handler, llama_index_handler])
for_one_call = pytest.mark.parametrize("attach", [a for a in CAPTURING if a != llama_index_handler])
"""A `RagEvalHandler` hears the whole process."""


@pytest.mark.parametrize("target", ["embedded", RagEvaluator(Gate())], ids=["name", "evaluator"])
@pytest.mark.parametrize(
    ("attach", "requests"),
    [
        (langchain_handler, 300), (llama_index_handler, 300), (langchain_runnable, 20),
        (llama_index_engine, 20),
    ],
)  # fmt: skip
def test_a_handler_per_request_costs_no_thread_and_no_memory(
    attach: Attach, requests: int, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads serve all of them, and end with the last; what a handler kept goes with it."""
    monkeypatch.setattr("rag_eval_integrations.background._worker._TICK", 0.001)
    before, seen = threads(), set[threading.Thread]()
    told: list[str] = []
    left: list[weakref.ref[Any]] = []
    first, ask = attach(target)
    ask()

    for number in range(requests):
        capturing, ask = attach(target, on_evaluation=lambda evaluation: told.append(evaluation.id))
        ask(f"Question {number}?")
        assert capturing.flush(WAIT)
        assert asked(capturing) == [f"Question {number}?"]
        left += [weakref.ref(capturing), weakref.ref(capturing.evaluations[0])]
        seen |= threads() - before
    assert len(told) == requests
    assert len(seen) == 2

    del first, ask, capturing
    assert_end(seen)
    assert not [ref for ref in left if ref() is not None]


@both
def test_the_next_handler_starts_anew(attach: Attach) -> None:
    """Also on the same evaluator, after the threads of the last handler have ended."""
    evaluator = RagEvaluator(Gate())
    for number in range(3):
        before = threads()
        capturing, ask = attach(evaluator)
        ask(f"Question {number}?")
        assert capturing.flush(WAIT)
        assert asked(capturing) == [f"Question {number}?"]

        own = threads() - before
        assert own
        del capturing, ask
        assert_end(own)


@for_one_call
def test_concurrent_handlers_have_their_own_evaluations(attach: Attach) -> None:
    """As in a web app whose requests are served by a pool of threads."""
    evaluator = RagEvaluator(Gate())

    def serve(question: str) -> tuple[list[str], list[str], int]:
        told: list[Evaluation] = []
        capturing, ask = attach(evaluator, on_evaluation=told.append)
        ask(question)
        ask(question)
        assert capturing.flush(WAIT)
        return asked(capturing), [evaluation.question for evaluation in told], capturing.pending

    questions = [f"Question {number}?" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(serve, questions)) == [([q, q], [q, q], 0) for q in questions]


@both
def test_flush_waits_for_its_own_calls(attach: Attach, caplog: pytest.LogCaptureFixture) -> None:
    """Not for those of another handler, whose judge has not answered; the log names the judge."""
    gate = Gate()
    evaluator = RagEvaluator(gate)
    slow, ask_slowly = attach(evaluator)
    quick, ask_quickly = attach(evaluator)
    ask_slowly("A slow question?")
    ask_quickly("A quick one?")

    assert quick.flush(WAIT)
    assert (slow.pending, quick.pending) == (1, 0)
    assert (asked(slow), asked(quick)) == ([], ["A quick one?"])
    assert not slow.flush(0.01)
    assert "1 call is not evaluated and 0 evaluations not written: the judge scripted" in (
        caplog.records[-1].getMessage()
    )

    gate.open.set()
    assert slow.flush(WAIT)
    assert (asked(slow), slow.pending) == (["A slow question?"], 0)


@both
def test_a_failing_on_evaluation_counts_for_its_handler(
    attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    """The other is told of its own, and neither loses an evaluation; one line for its kind."""

    def broken(evaluation: Evaluation) -> None:
        raise SystemExit("told")

    evaluator = RagEvaluator(Gate())
    told: list[Evaluation] = []
    failing, ask_failing = attach(evaluator, on_evaluation=broken)
    sound, ask_soundly = attach(evaluator, on_evaluation=told.append)
    for question in ("First?", "Second?"):
        ask_failing(question)
        ask_soundly(question)

    assert failing.flush(WAIT)
    assert sound.flush(WAIT)
    assert (failing.failed, sound.failed) == (2, 0)
    assert asked(failing) == asked(sound) == [evaluation.question for evaluation in told]
    (line,) = [record for record in caplog.records if "on_evaluation" in record.getMessage()]
    assert line.exc_info


@every
def test_the_calls_of_a_collected_handler_are_told(attach: Attach) -> None:
    """Those that it had captured, with nobody left to ask for the results; then the threads end."""
    before, gate = threads(), Gate()
    told: list[str] = []
    capturing, ask = attach(
        RagEvaluator(gate), on_evaluation=lambda evaluation: told.append(evaluation.question)
    )
    ask("A slow question?")
    until(lambda: len(gate.asked) == 1)
    ask("Another slow one?")
    until(lambda: len(gate.asked) == 2)
    own = threads() - before
    handler = weakref.ref(capturing)
    del capturing, ask
    gc.collect()
    assert handler() is None

    gate.open.set()
    until(lambda: len(told) == 2)

    assert sorted(told) == ["A slow question?", "Another slow one?"]
    assert_end(own | threads() - before)


@both
def test_the_calls_of_a_collected_handler_are_judged(attach: Attach) -> None:
    """Also where nobody is told of them; the thread that judged the last one ends itself."""
    before, gate = threads(), Gate()
    capturing, ask = attach(RagEvaluator(gate))
    ask("A slow question?")
    until(lambda: len(gate.asked) == 1)
    del capturing, ask
    gc.collect()

    gate.open.set()

    assert_end(threads() - before)


@both
def test_nobody_waits_for_itself(attach: Attach) -> None:
    """Neither handler in the thread that tells both of their evaluations."""
    evaluator = RagEvaluator(Gate())
    refused: list[str] = []

    def wait(evaluation: Evaluation) -> None:
        for handler in (capturing, other):
            with pytest.raises(ReentryError):
                handler.flush()
            refused.append(evaluation.question)

    capturing, ask = attach(evaluator, on_evaluation=wait)
    other, _ = attach(evaluator)
    ask("Who waits?")

    assert capturing.flush(WAIT)
    assert refused == ["Who waits?"] * 2


EXITS = """
import asyncio
from rag_eval_integrations import EmbeddedJudge, RagEvaluator
from rag_eval_integrations.cli.demo import langchain_app
from rag_eval_integrations.langchain import RagEvalCallbackHandler

class Slow(EmbeddedJudge):
    async def label(self, call):
        await asyncio.sleep(0.5)
        return await super().label(call)

evaluator, chain = RagEvaluator(Slow()), langchain_app.build_chain()

def serve(question):
    handler = RagEvalCallbackHandler(evaluator, on_evaluation=lambda each: print(each.question))
    chain.invoke(question, config={"callbacks": [handler]})

serve("First?")
serve("Second?")
"""


def test_the_end_of_the_program_waits_for_collected_handlers() -> None:
    """Their calls are evaluated and told before it, as those of a handler that is there."""
    done = python(EXITS)

    assert (sorted(done.stdout.split()), done.stderr) == (["First?", "Second?"], "")


@both
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
@pytest.mark.parametrize("waiting", [False, True])
def test_a_forked_child_has_its_own(attach: Attach, waiting: bool) -> None:
    """Its handlers begin empty and work; the parent evaluates what it had queued."""
    gate = Gate()
    evaluator = RagEvaluator(gate)
    told: list[str] = []
    own = [attach(evaluator, on_evaluation=lambda evaluation: told.append(evaluation.question))]
    capturing, ask = own[0]
    ask("A quick question?")
    assert capturing.flush(WAIT)
    if waiting:
        ask("A slow question?")
        until(lambda: len(gate.asked) == 2)

    def child() -> str:
        nonlocal capturing, ask
        at_start = [capturing.pending, asked(capturing)]
        told.clear()
        own.append(attach(evaluator))
        for number, (capturing, ask) in enumerate(own):
            ask(f"Question {number} of the child?")
            assert capturing.flush(WAIT)
        results = [asked(capturing) for capturing, _ in own]
        serving = threads()
        del capturing, ask
        own.clear()
        if not waiting:
            assert_end(serving)
        return json.dumps([at_start, results, told])

    printed = forked(child).printed()
    gate.open.set()
    assert capturing.flush(WAIT)

    first, second = "Question 0 of the child?", "Question 1 of the child?"
    assert json.loads(printed) == [[0, []], [[first], [second]], [first]]
    assert asked(capturing) == ["A quick question?", "A slow question?"][: 1 + waiting] == told
