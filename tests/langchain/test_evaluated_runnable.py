"""`evaluated` on real chains, agents and graphs: the runnable itself, and captured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.load import dumpd
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain import evaluated
from rag_eval_integrations.langchain.wrappers import EvaluatedRunnable
from rag_eval_integrations.records import RagCall

from .apps import QUESTION, graph
from .conftest import ANSWER, Sections, capture_of, rag_chain


class Starts(BaseCallbackHandler):
    """A handler of the app's own: which runs started, under what."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.names.append(kwargs["name"])


def wrapped(chain: Runnable[Any, Any] | None = None) -> tuple[EvaluatedRunnable, list[RagCall]]:
    calls: list[RagCall] = []
    return evaluated(rag_chain() if chain is None else chain, calls.append), calls


async def _collected(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


async def _once(value: Any) -> AsyncIterator[Any]:
    yield value


async def _events(runnable: Runnable[Any, Any]) -> list[tuple[str, str]]:
    found = [event async for event in runnable.astream_events(QUESTION, version="v2")]
    return sorted((event["event"], event["name"]) for event in found)


WAYS: dict[str, Callable[[Runnable[Any, Any]], Any]] = {
    "invoke": lambda it: it.invoke(QUESTION),
    "batch": lambda it: it.batch([QUESTION]),
    "batch of configs": lambda it: it.batch([QUESTION], [{"tags": ["t"]}]),
    "batch_as_completed": lambda it: list(it.batch_as_completed([QUESTION])),
    "stream": lambda it: list(it.stream(QUESTION)),
    "transform": lambda it: list(it.transform(iter([QUESTION]))),
    "ainvoke": lambda it: asyncio.run(it.ainvoke(QUESTION)),
    "abatch": lambda it: asyncio.run(it.abatch([QUESTION])),
    "abatch_as_completed": lambda it: asyncio.run(_collected(it.abatch_as_completed([QUESTION]))),
    "astream": lambda it: asyncio.run(_collected(it.astream(QUESTION))),
    "atransform": lambda it: asyncio.run(_collected(it.atransform(_once(QUESTION)))),
    "astream_events": lambda it: asyncio.run(_events(it)),
    "bind": lambda it: it.bind().invoke(QUESTION),
    "with_config": lambda it: it.with_config(run_name="x", callbacks=[]).invoke(QUESTION),
    "with_retry": lambda it: it.with_retry(stop_after_attempt=2).invoke(QUESTION),
    "with_listeners": lambda it: it.with_listeners(on_end=lambda run: None).invoke(QUESTION),
    "with_types": lambda it: it.with_types(input_type=str).invoke(QUESTION),
    "with_fallbacks": lambda it: it.with_fallbacks([RunnableLambda(str)]).invoke(QUESTION),
    "map": lambda it: it.map().invoke([QUESTION]),
    "| before": lambda it: (it | RunnableLambda(str.upper)).invoke(QUESTION),
    "| after": lambda it: (RunnableLambda(str) | it).invoke(QUESTION),
    "in a dict": lambda it: (RunnableLambda(str) | {"answer": it}).invoke(QUESTION),
}


class TestBehavesAsTheRunnable:
    @pytest.mark.parametrize("way", WAYS)
    def test_same_result_and_one_call(self, way: str) -> None:
        """Every way to run it gives what the chain gives, and one record."""
        chain, calls = wrapped()

        result = WAYS[way](chain)

        assert result == WAYS[way](rag_chain())
        assert [(call.question, call.response) for call in calls] == [(QUESTION, ANSWER)]

    def test_same_looks(self) -> None:
        """Name, schemas, graph, config fields and attributes are the chain's own; JSON has none."""
        inner = rag_chain().with_config(run_name="kettle")
        chain, _ = wrapped(inner)
        named = evaluated(RunnableLambda(str, name="kettle"), print)

        assert (named.name, named.bind().name) == ("kettle", "kettle")
        assert dumpd(chain)["type"] == "not_implemented"  # a handler is no JSON
        assert chain.get_name() == inner.get_name()
        for name in ("InputType", "config_specs", "steps"):
            assert getattr(chain, name) == getattr(inner, name)
        assert chain.get_input_schema().model_json_schema() == inner.get_input_jsonschema()  # type: ignore[union-attr]
        assert chain.get_output_jsonschema() == inner.get_output_jsonschema()
        assert chain.get_graph().to_json() == inner.get_graph().to_json()
        with pytest.raises(AttributeError, match="no_such_thing"):
            chain.no_such_thing  # noqa: B018

    def test_configurable_fields_go_through(self) -> None:
        """What a call configures is configured; what is given by keyword, or bound, is passed on."""
        chain, _ = wrapped(RunnableLambda(lambda given, **more: more))
        assert chain.bind(a=1).invoke("x", b=2) == {"a": 1, "b": 2}

        retriever = Sections(name="one").configurable_fields(name=ConfigurableField(id="who"))
        chain, calls = wrapped(rag_chain(retriever))

        chain.invoke(QUESTION, {"configurable": {"who": "other"}})

        assert capture_of(calls[0]).retrievers == ("other",)

    def test_a_call_s_own_callbacks_stay(self) -> None:
        """A handler given with the call sees every run, and the capture is there as well, once."""
        chain, calls = wrapped()
        own, bare = Starts(), Starts()

        # One branch after the other: the order of parallel ones is the threads' own.
        chain.invoke(QUESTION, {"callbacks": [own, chain.handler], "max_concurrency": 1})
        rag_chain().invoke(QUESTION, {"callbacks": [bare], "max_concurrency": 1})

        assert own.names == bare.names
        assert len(calls) == 1

    def test_is_part_of_the_run_around_it(self) -> None:
        """Called without config inside of a runnable, its runs are still below that runnable.

        `with_config(callbacks=…)` cuts them off there: the events of the inner chain were missing.
        """
        chain, calls = wrapped()

        def around(inner: Runnable[Any, Any]) -> list[tuple[str, str]]:
            outer = RunnableLambda(lambda question: inner.invoke(question))
            return asyncio.run(_events(outer))

        assert around(chain) == around(rag_chain())
        assert [call.question for call in calls] == [QUESTION]

    def test_a_graph_keeps_its_arguments_and_methods(self) -> None:
        """A wrapped graph streams in its own modes and shows its state."""

        def answer(state: Any) -> dict[str, Any]:
            return {"answer": rag_chain().invoke(state["question"])}

        wrapper, calls = wrapped(graph(dict, answer=answer, checkpointer=InMemorySaver()))
        config: Any = {"configurable": {"thread_id": "1"}}

        updates = list(wrapper.stream({"question": QUESTION}, config, stream_mode="updates"))

        assert updates == [{"answer": {"answer": ANSWER}}]
        assert wrapper.get_state(config).values["answer"] == ANSWER
        assert [call.response for call in calls] == [ANSWER]


class TestTarget:
    def test_options_are_the_handlers(self) -> None:
        """Hooks, bounds and `on_evaluation` are passed on."""
        calls: list[RagCall] = []
        chain = evaluated(rag_chain(), calls.append, question=lambda inputs: f"<{inputs}>")

        chain.invoke(QUESTION)

        assert [call.question for call in calls] == [f"<{QUESTION}>"]
        with pytest.raises(ConfigurationError, match="max_open"):
            evaluated(rag_chain(), calls.append, max_open=0)

    def test_a_function_is_no_runnable(self) -> None:
        """The message names the field and what to use instead."""
        with pytest.raises(ConfigurationError, match=r"runnable.*capture_call"):
            evaluated(len, print)  # type: ignore[arg-type]
