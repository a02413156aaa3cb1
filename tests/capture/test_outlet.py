"""What becomes of captured calls: the same for all that captures in either framework."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from rag_eval_integrations import (
    BackgroundEvaluator,
    Evaluations,
    RagEvaluator,
    langchain,
    llama_index,
)
from rag_eval_integrations.capture import _outlet as outlet
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation, RagCall

from ..langchain import conftest as langchain_app
from ..llama_index import conftest as llama_index_app

QUESTION = "How many minutes does the kettle boil?"


class Capturing(Protocol):
    """What has an outlet."""

    failed: int
    evaluations: tuple[Evaluation, ...]

    def flush(self, timeout: float = 30.0) -> bool: ...


Attach = Callable[..., tuple[Capturing, Callable[[], object]]]
"""Takes a target (and `on_evaluation`); gives what captures, and what makes it capture a call."""


def langchain_handler(target: Any, **options: Any) -> Any:
    handler = langchain.RagEvalCallbackHandler(target, **options)
    chain = langchain_app.rag_chain()
    return handler, lambda: chain.invoke(QUESTION, {"callbacks": [handler]})


def langchain_runnable(target: Any, **options: Any) -> Any:
    chain = langchain.evaluated(langchain_app.rag_chain(), target, **options)
    return chain, lambda: chain.invoke(QUESTION)


def langchain_retriever(target: Any, **options: Any) -> Any:
    retriever = langchain.EvaluatedRetriever(langchain_app.Sections(), target, **options)
    return retriever, lambda: retriever.invoke(QUESTION)


def llama_index_handler(target: Any, **options: Any) -> Any:
    handler = llama_index.RagEvalHandler(target, **options)
    engine = llama_index_app.engine()

    def ask() -> object:
        with handler:
            return engine.query(QUESTION)

    return handler, ask


def llama_index_engine(target: Any, **options: Any) -> Any:
    engine = llama_index.EvaluatedQueryEngine(llama_index_app.engine(), target, **options)
    return engine, lambda: engine.query(QUESTION)


def llama_index_retriever(target: Any, **options: Any) -> Any:
    nodes = llama_index_app.Sections(llama_index_app.nodes())
    retriever = llama_index.EvaluatedRetriever(nodes, target, **options)
    return retriever, lambda: retriever.retrieve(QUESTION)


@pytest.fixture(
    params=[
        langchain_handler,
        langchain_runnable,
        langchain_retriever,
        llama_index_handler,
        llama_index_engine,
        llama_index_retriever,
    ],
    ids=lambda attach: attach.__name__,
)
def attach(request: pytest.FixtureRequest) -> Attach:
    made: Attach = request.param
    return made


def test_an_evaluator_is_run_in_the_background(attach: Attach) -> None:
    """Its evaluations are kept and told, one a call; what is not judged is unscored."""
    told: list[Evaluation] = []
    capturing, ask = attach(RagEvaluator(), on_evaluation=told.append)

    ask()
    ask()

    assert capturing.flush()
    assert [one.question for one in capturing.evaluations] == [QUESTION] * 2
    assert capturing.evaluations == told
    assert isinstance(capturing.evaluations, Evaluations)
    assert told[0].scores["context_relevance"].value is not None
    assert capturing.failed == 0


def test_a_background_evaluator_keeps_its_sinks(attach: Attach) -> None:
    """It can be flushed here; evaluations are where the user wants them, and the latest here."""
    written: list[Evaluation] = []

    class Sink:
        def write(self, batch: Any) -> None:
            written.extend(batch)

    with BackgroundEvaluator(RagEvaluator(), [Sink()]) as background:
        capturing, ask = attach(background)
        ask()

        assert capturing.flush()
        assert [one.question for one in written] == [QUESTION]
        assert capturing.evaluations == written


def test_a_plain_function_leaves_nothing_to_wait_for(attach: Attach) -> None:
    """It gets the call itself, and nothing is kept."""
    calls: list[RagCall] = []
    capturing, ask = attach(calls.append)

    ask()

    assert capturing.flush(timeout=0)
    assert [call.question for call in calls] == [QUESTION]
    assert capturing.evaluations == ()


def test_nothing_evaluates_where_no_evaluator_was_made(
    attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as nobody has loaded one, a plain function is called without what runs one."""
    monkeypatch.setattr(outlet, "_EVALUATING", {"never.loaded"})
    calls: list[RagCall] = []
    capturing, ask = attach(calls.append)

    ask()

    assert [call.question for call in calls] == [QUESTION]
    assert capturing.flush(timeout=0)
    assert capturing.evaluations == ()
    with pytest.raises(ConfigurationError, match="`target`"):
        attach(7)


def test_a_broken_target_is_not_felt(attach: Attach, caplog: pytest.LogCaptureFixture) -> None:
    """The app gets its result; the failure is counted, and logged once with its traceback."""

    def broken(call: RagCall) -> None:
        raise ZeroDivisionError("target")

    _, ask_well = attach(lambda call: None)
    capturing, ask = attach(broken)

    results = [str(ask()), str(ask()), str(ask_well())]

    assert results == [results[-1]] * 3
    assert capturing.failed == 2
    logged = [one for one in caplog.records if one.name.startswith("rag_eval_integrations.")]
    assert [one.levelno for one in logged] == [logging.ERROR]
    assert logged[0].exc_info is not None
    assert isinstance(logged[0].exc_info[1], ZeroDivisionError)


def test_a_target_that_cannot_be_used_is_refused(attach: Attach) -> None:
    """Where the object is made: nothing to call, nothing to await, nobody to tell."""

    async def later(call: RagCall) -> None:
        """Never runs."""

    with pytest.raises(ConfigurationError, match="`target`"):
        attach(7)
    with pytest.raises(ConfigurationError, match=r"`target`.*async"):
        attach(later)
    with pytest.raises(ConfigurationError, match="`on_evaluation`"):
        attach(lambda call: None, on_evaluation=print)
