"""What becomes of captured calls: the same for all that captures in either framework."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_integrations import (
    BackgroundEvaluator,
    Evaluations,
    RagEvaluator,
    langchain,
    llama_index,
)
from rag_eval_integrations.capture import _delivery
from rag_eval_integrations.capture._calls import to_call
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, RagCall
from rag_eval_integrations.records.call import EndedCall
from rag_eval_integrations.sinks import CallbackSink

from ..langchain import conftest as langchain_app
from ..llama_index import conftest as llama_index_app

QUESTION = "How many minutes does the kettle boil?"


Attach = Callable[..., tuple[Any, Callable[..., object]]]
"""Takes a target (and `on_evaluation`); gives what captures, and what makes it capture a call."""


def langchain_handler(target: Any, sections: Any = None, **options: Any) -> Any:
    handler = langchain.RagEvalCallbackHandler(target, **options)
    chain = langchain_app.rag_chain(langchain_app.Sections(found=sections))
    return handler, lambda question=QUESTION: chain.invoke(question, {"callbacks": [handler]})


def langchain_runnable(target: Any, **options: Any) -> Any:
    chain = langchain.evaluated(langchain_app.rag_chain(), target, **options)
    return chain, lambda question=QUESTION: chain.invoke(question)


def langchain_retriever(target: Any, **options: Any) -> Any:
    retriever = langchain.EvaluatedRetriever(langchain_app.Sections(), target, **options)
    return retriever, lambda question=QUESTION: retriever.invoke(question)


def llama_index_handler(target: Any, sections: Any = None, **options: Any) -> Any:
    handler = llama_index.RagEvalHandler(target, **options)
    engine = llama_index_app.engine(sections and llama_index_app.Sections(sections))

    def ask(question: str = QUESTION) -> object:
        with handler:
            return engine.query(question)

    return handler, ask


def llama_index_engine(target: Any, **options: Any) -> Any:
    engine = llama_index.EvaluatedQueryEngine(llama_index_app.engine(), target, **options)
    return engine, lambda question=QUESTION: engine.query(question)


def llama_index_retriever(target: Any, **options: Any) -> Any:
    nodes = llama_index_app.Sections(llama_index_app.nodes())
    retriever = llama_index.EvaluatedRetriever(nodes, target, **options)
    return retriever, lambda question=QUESTION: retriever.retrieve(question)


CAPTURING = [
    langchain_handler, langchain_runnable, langchain_retriever,
    llama_index_handler, llama_index_engine, llama_index_retriever,
]  # fmt: skip


@pytest.fixture(params=CAPTURING, ids=lambda attach: attach.__name__)
def attach(request: pytest.FixtureRequest) -> Attach:
    return request.param  # type: ignore[no-any-return]  # one of the above


def test_an_evaluator_is_run_in_the_background(attach: Attach) -> None:
    """Its evaluations are kept and told, one a call; a background evaluator keeps its sinks."""
    told: list[Evaluation] = []
    written: list[Evaluation] = []
    capturing, ask = attach(RagEvaluator(), on_evaluation=told.append)
    with BackgroundEvaluator(RagEvaluator(), [CallbackSink(written.append)]) as background:
        other, ask_other = attach(background)
        ask_other()
        assert other.flush()

    ask()
    ask()

    assert capturing.flush()
    assert [evaluation.question for evaluation in capturing.evaluations] == [QUESTION] * 2
    assert capturing.evaluations == told
    assert isinstance(capturing.evaluations, Evaluations)
    assert [evaluation.question for evaluation in written] == [QUESTION]
    assert other.evaluations == written
    assert told[0].scores["context_relevance"].value is not None
    assert capturing.failed == 0


def test_a_plain_function_leaves_nothing_to_wait_for(
    attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the call itself, and nothing is kept, also where nobody has loaded an evaluator."""
    calls: list[RagCall] = []

    for evaluating in (_delivery._EVALUATING, {"never.loaded"}):
        monkeypatch.setattr(_delivery, "_EVALUATING", evaluating)
        capturing, ask = attach(calls.append)
        ask()

        assert capturing.flush(timeout=0)
        assert [call.question for call in calls] == [QUESTION]
        assert capturing.evaluations == ()
        calls.clear()


# --- The default id


def test_whoever_gets_a_call_finds_its_id(attach: Attach) -> None:
    """A function, what decides what is judged, a class of the user's own, and the evaluation."""
    calls: list[RagCall] = []
    given: list[str] = []
    asked: list[tuple[str, str]] = []

    def rate(call: RagCall) -> float:
        asked.append((call.__dict__["id"], call.row_key[:16]))
        return 1.0

    class Own(BackgroundEvaluator):
        def submit(self, call: RagCall) -> None:
            given.append(call.__dict__["id"])

    attach(calls.append)[1]()
    with BackgroundEvaluator(RagEvaluator(), sample_rate=rate) as background:
        attach(background)[1]()
    with Own(RagEvaluator()) as own:
        attach(own)[1]()
    evaluated, ask = attach(RagEvaluator())
    ask()

    assert evaluated.flush()
    wanted = calls[0].row_key[:16]
    assert calls[0].__dict__["id"] == wanted
    assert asked == [(wanted, wanted)]
    assert given == [wanted]
    assert [evaluation.id for evaluation in evaluated.evaluations] == [wanted]


# --- The record is made off the app's thread where an evaluator is the target


@pytest.mark.parametrize(
    ("handler", "retrieved", "text"),
    [
        (langchain_handler, langchain_app.sections, "page_content"),
        (llama_index_handler, llama_index_app.nodes, "text"),
    ],
)
def test_a_record_made_later_shows_what_was_then(
    handler: Any, retrieved: Callable[[], Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal to the one that a function gets at once, whatever the app did to its objects since."""
    calls: list[RagCall] = []
    waiting: list[EndedCall] = []
    monkeypatch.setattr(BackgroundEvaluator, "submit", lambda _, ended: waiting.append(ended))
    for target in (calls.append, RagEvaluator()):
        sections = retrieved()
        result = handler(target, sections)[1]()
        for section in sections:
            setattr(section, text, "Changed.")
            section.metadata["page"] = 99
        getattr(result, "source_nodes", []).clear()

    later = waiting[0].record()

    assert later is not None
    assert later.documents == calls[0].documents != ()
    assert later.row_key == calls[0].row_key
    assert later.__dict__["id"] == later.row_key[:16]
    origins = [call.capture.documents_from for call in (later, calls[0]) if call.capture]
    assert origins == ["prompt", "prompt"]


with_their_places = pytest.mark.parametrize(
    ("handler", "place"),
    [(langchain_handler, "langchain._finish"), (llama_index_handler, "llama_index._call")],
)


@with_their_places
def test_the_prompt_is_searched_in_the_evaluators_thread(
    handler: Attach, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the app's thread only for a function, which is to have the record when the call ends."""
    threads: list[int] = []

    def noted(*args: Any, **fields: Any) -> RagCall:
        threads.append(threading.get_ident())
        return to_call(*args, **fields)

    monkeypatch.setattr(f"rag_eval_integrations.{place}.to_call", noted)
    handler(lambda call: None)[1]()
    capturing, ask = handler(RagEvaluator())
    ask()
    assert capturing.flush()

    assert [thread == threading.get_ident() for thread in threads] == [True, False]


@with_their_places
def test_a_record_that_fails_later_is_counted(
    handler: Attach, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what captures, as if it had failed at once, and as a failed call by the evaluator."""

    def broken(*args: Any, **fields: Any) -> RagCall:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(f"rag_eval_integrations.{place}.to_call", broken)
    background = BackgroundEvaluator(RagEvaluator())
    capturing, ask = handler(background)
    ask()
    assert background.close()

    assert (capturing.failed, background.counters.failed) == (1, 1)


def test_a_broken_target_is_not_felt(attach: Attach, caplog: pytest.LogCaptureFixture) -> None:
    """The app gets its result; the failure is counted, and logged once with its traceback."""

    def broken(call: RagCall) -> None:
        raise ZeroDivisionError("target")

    _, ask_well = attach(lambda call: None)
    capturing, ask = attach(broken)

    results = [str(ask()), str(ask()), str(ask_well())]

    assert results == [results[-1]] * 3
    assert capturing.failed == 2
    (ours,) = [record for record in caplog.records if "rag_eval_integrations." in record.name]
    assert (ours.levelno, ours.exc_info and ours.exc_info[0]) == (logging.ERROR, ZeroDivisionError)


def test_a_target_that_cannot_be_used_is_refused(
    attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the object is made: nothing to call, nothing to await, nobody to tell."""

    async def later(given: object) -> None:
        """Never runs."""

    refused: list[tuple[Any, dict[str, Any], str]] = [
        (7, {}, "`target`"), (later, {}, r"`target`.*async"),
        (print, {"on_evaluation": print}, "`on_evaluation`"),
        (RagEvaluator(), {"on_evaluation": later}, "async"),
    ]  # fmt: skip
    for target, options, words in refused:
        with pytest.raises(ConfigurationError, match=words):
            attach(target, **options)
    monkeypatch.setattr(_delivery, "_EVALUATING", {"never.loaded"})
    with pytest.raises(ConfigurationError, match="`target`"):
        attach(7)
