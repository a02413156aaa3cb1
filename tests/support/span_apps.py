"""Run apps beside a tracer in a process of its own; tell what it traced and what was captured.

    python span_apps.py langchain openinference OUT

writes a JSON object: name of an app → `rows`, as the tracer's tool exports them, and the `calls` as
they were captured.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
Rows = Callable[[], list[dict[str, Any]]]


@cache
def traced_apps(framework: str, tracer: str, server: str = "") -> dict[str, dict[str, Any]]:
    """Return what the script writes, run in a process that can reach at most one server."""
    environment = {
        **os.environ,
        "LANGFUSE_PUBLIC_KEY": "public", "LANGFUSE_SECRET_KEY": "secret",
        "LANGFUSE_HOST": "http://127.0.0.1:9", "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_TRACKING_URI": server or "http://127.0.0.1:9",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0", "RAG_EVAL_PHOENIX": server,
        "PYTHONPATH": os.pathsep.join([str(TESTS / "support"), str(TESTS.parent)]),
    }  # fmt: skip
    with TemporaryDirectory() as folder:
        out = Path(folder, "apps.json")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, framework, tracer, str(out)],
            env=environment, capture_output=True, text=True, timeout=250, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        apps: dict[str, dict[str, Any]] = json.loads(out.read_text())
    return apps


# --- The tracers: each starts to trace, and returns what gives the rows since it was asked last


def _exported(attach: Callable[[Any], object]) -> Callable[[], list[Any]]:
    """Return what gives the spans that ended since it was asked last."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    attach(provider)

    def spans() -> list[Any]:
        ended = list(exporter.get_finished_spans())
        exporter.clear()
        return ended

    return spans


def _instrument(framework: str, provider: Any) -> None:
    if framework == "langchain":
        from openinference.instrumentation.langchain import LangChainInstrumentor

        LangChainInstrumentor().instrument(tracer_provider=provider)
    else:
        from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

        LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def openinference(framework: str, handlers: list[Any]) -> Rows:
    """As the SDK's exporter writes spans."""
    spans = _exported(lambda provider: _instrument(framework, provider))
    return lambda: [json.loads(span.to_json()) for span in spans()]


def phoenix(framework: str, handlers: list[Any]) -> Rows:
    """Into a server, which is asked by others."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    exporter = OTLPSpanExporter(os.environ["RAG_EVAL_PHOENIX"] + "/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    _instrument(framework, provider)
    return lambda: [] if provider.force_flush() else [{"exported": False}]


def mlflow_server(framework: str, handlers: list[Any]) -> Rows:
    """Into an experiment of a server, named after the framework."""
    import mlflow

    mlflow.set_experiment(f"apps of {framework}")
    if framework == "langchain":
        mlflow.langchain.autolog(run_tracer_inline=True)
    else:
        mlflow.llama_index.autolog()

    def rows() -> list[dict[str, Any]]:
        mlflow.flush_trace_async_logging()
        return []

    return rows


def mlflow(framework: str, handlers: list[Any]) -> Rows:
    """As `Trace.to_json()` has them."""
    import mlflow
    import mlflow.langchain
    import mlflow.llama_index
    from mlflow.entities.trace_location import MlflowExperimentLocation

    ended: list[Any] = []
    mlflow.tracing.set_destination(MlflowExperimentLocation(experiment_id="0"))
    mlflow.tracing.configure(span_processors=[ended.append])
    if framework == "langchain":
        mlflow.langchain.autolog(run_tracer_inline=True)
    else:
        mlflow.llama_index.autolog()

    def rows() -> list[dict[str, Any]]:
        traces: dict[str, list[Any]] = {}
        for span in ended:
            traces.setdefault(span.trace_id, []).append(span.to_dict())
        ended.clear()
        return [
            {"info": {"trace_id": trace, "trace_metadata": {}}, "data": {"spans": spans}}
            for trace, spans in traces.items()
        ]

    return rows


def langsmith(framework: str, handlers: list[Any]) -> Rows:
    """Flat, as `list_runs` gives them, with values in the form of the server."""
    from langchain_core.tracers.langchain import LangChainTracer
    from langsmith import Client
    from langsmith._internal._serde import dumps_json

    ended: list[Any] = []

    class Tracer(LangChainTracer):
        def _persist_run(self, run: Any) -> None:
            ended.append(run)

        def _persist_run_single(self, run: Any) -> None: ...

        @staticmethod
        def _update_run_single(run: Any) -> None: ...

    client = Client(api_url="http://127.0.0.1:9", api_key="key", auto_batch_tracing=False)
    handlers.append(Tracer(client=client))
    names = (
        "id", "trace_id", "parent_run_id", "dotted_order", "name", "run_type", "error", "tags",
        "start_time", "end_time", "inputs", "outputs", "extra",
    )  # fmt: skip

    def every(run: Any) -> Iterator[Any]:
        yield run
        for child in run.child_runs:
            yield from every(child)

    def rows() -> list[dict[str, Any]]:
        flat = [run for root in ended for run in every(root)]
        ended.clear()
        return [{n: json.loads(dumps_json(getattr(run, n))) for n in names} for run in flat]

    return rows


def langfuse(framework: str, handlers: list[Any]) -> Rows:
    """As the API lists observations; made of the SDK's spans, since no server can be had."""
    from langfuse import Langfuse

    def attach(provider: Any) -> None:
        Langfuse(tracer_provider=provider)
        if framework == "langchain":
            from langfuse.langchain import CallbackHandler

            handlers.append(CallbackHandler())
        else:
            _instrument(framework, provider)

    spans = _exported(attach)
    kinds = {"LLM": "GENERATION", "CHAIN": "CHAIN", "RETRIEVER": "RETRIEVER"}

    def observation(span: Any) -> dict[str, Any]:
        said = dict(span.attributes)
        kind = str(said.get("langfuse.observation.type", "SPAN")).upper()
        kind = kinds.get(str(said.get("openinference.span.kind")), kind)
        row = {
            "id": f"{span.context.span_id:016x}", "traceId": f"{span.context.trace_id:032x}",
            "parentObservationId": span.parent and f"{span.parent.span_id:016x}",
            "type": kind, "name": span.name, "level": "DEFAULT",
            "startTime": span.start_time, "endTime": span.end_time,
            "metadata": {"attributes": {n: v for n, v in said.items() if "value" not in n}},
        }  # fmt: skip
        for side in ("input", "output"):
            text = said.get(f"langfuse.observation.{side}", said.get(f"{side}.value"))
            try:
                row[side] = json.loads(text) if text else None
            except ValueError:
                row[side] = text
        return row

    return lambda: [observation(span) for span in spans()]


TRACERS = {
    each.__name__: each
    for each in (openinference, phoenix, mlflow, mlflow_server, langsmith, langfuse)
}


# --- The apps


def _langchain(start: Callable[[list[Any]], Rows], calls: list[Any]) -> Iterator[tuple[str, Rows]]:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough
    from langchain_core.tools import create_retriever_tool
    from langgraph.checkpoint.memory import InMemorySaver

    from rag_eval_integrations.langchain import RagEvalCallbackHandler
    from tests.langchain.conftest import (
        ANSWER,
        PROMPT,
        Sections,
        joined,
        model,
        rag_chain,
        run,
    )

    handlers: list[Any] = []
    rows = start(handlers)
    config: Any = {"callbacks": [*handlers, RagEvalCallbackHandler(calls.append)]}
    for way in ("invoke", "ainvoke", "stream", "astream"):
        asyncio.run(run(rag_chain(), "How fast is kettle 1?", way, config))
        yield f"chain, {way}", rows

    talk = ChatPromptTemplate.from_messages(
        [
            ("system", "Use:\n{context}"),
            MessagesPlaceholder("chat_history"),
            ("human", "{question}"),
        ]
    )
    parts: Any = {
        "context": RunnableLambda(lambda given: given["question"]) | Sections() | joined,
        "question": lambda given: given["question"],
        "chat_history": lambda given: given["chat_history"],
    }
    earlier = [HumanMessage("What boils?"), AIMessage("The kettle.")]
    (parts | talk | model()).invoke({"question": "And that?", "chat_history": earlier}, config)
    yield "chain with history", rows

    def answered(given: Any) -> str:
        return str(model().invoke(f"Q {joined(given['context'])}{given['input']}").content)

    found = RunnablePassthrough.assign(context=lambda given: Sections().invoke(given["input"]))
    found.assign(answer=answered).invoke({"input": "How fast?"}, config)
    yield "chain that returns its documents", rows

    kept = Sections() | RunnableLambda(lambda documents: [documents[2], documents[0]])
    chain: Any = {"context": kept | joined, "question": RunnablePassthrough()}
    (chain | PROMPT | model()).invoke("How fast?", config)
    yield "chain with a reranker", rows

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    def agent(turns: int) -> Any:
        said: list[Any] = []
        for turn in range(turns):
            wanted = {"name": "kb", "args": {"query": "kettle"}, "id": f"c{turn}"}
            said += [AIMessage("", tool_calls=[wanted]), AIMessage(ANSWER)]
        tools = [create_retriever_tool(Sections(), "kb", "Finds sections.")]
        return create_agent(Scripted(messages=iter(said)), tools, checkpointer=InMemorySaver())

    remembering = {**config, "configurable": {"thread_id": "t1"}}
    twice = agent(2)
    for question in ("How fast is it?", "And the lid?"):
        twice.invoke({"messages": [("user", question)]}, remembering)
    yield "agent with a memory", rows

    async def streamed() -> None:
        given = {"messages": [("user", "How fast is it?")]}
        async for _ in agent(1).astream(given, remembering, stream_mode="values"):
            pass

    asyncio.run(streamed())
    yield "agent, streamed", rows


def _llama_index(
    start: Callable[[list[Any]], Rows], calls: list[Any]
) -> Iterator[tuple[str, Rows]]:
    from llama_index.core.agent.workflow import ReActAgent
    from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
    from llama_index.core.llms import CompletionResponse
    from llama_index.core.llms.callbacks import llm_completion_callback
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.tools import QueryEngineTool

    from rag_eval_integrations.llama_index import RagEvalHandler
    from tests.llama_index.conftest import ANSWER, QUESTION, Model, Sections, engine

    rows = start([])
    RagEvalHandler(calls.append).install()
    engine().query(QUESTION)
    yield "query", rows
    asyncio.run(engine().aquery(QUESTION))
    yield "query, async", rows
    response: Any = engine(streaming=True).query(QUESTION)
    "".join(response.response_gen)
    yield "query, streamed", rows

    async def streamed() -> str:
        response: Any = await engine(streaming=True).aquery(QUESTION)
        return "".join([token async for token in response.response_gen])

    asyncio.run(streamed())
    yield "query, streamed async", rows

    class Last(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes: Any, query_bundle: Any = None) -> Any:
            return [nodes[2], nodes[0]]

    engine(postprocessors=[Last()]).query(QUESTION)
    yield "query with a reranker", rows

    chat = ContextChatEngine.from_defaults(retriever=Sections(), llm=Model())
    for question in ("How fast is it?", "And the lid?"):
        chat.chat(question)
    yield "chat", rows
    response = chat.stream_chat("And again?")
    "".join(response.response_gen)
    yield "chat, streamed", rows
    condense = CondensePlusContextChatEngine.from_defaults(retriever=Sections(), llm=Model())
    for question in ("How fast is it?", "And the lid?"):
        condense.chat(question)
    yield "chat that rewrites its question", rows

    class Planner(Model):
        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            text = 'Thought: I look.\nAction: kb\nAction Input: {"input": "kettle speed"}'
            if "Observation:" in prompt.split("Current Conversation")[-1]:
                text = f"Thought: I can answer.\nAnswer: {ANSWER}"
            return CompletionResponse(text=text)

    tool = QueryEngineTool.from_defaults(engine(), name="kb", description="Finds sections.")

    async def planned() -> object:
        return await ReActAgent(tools=[tool], llm=Planner(), streaming=False).run(QUESTION)

    asyncio.run(planned())
    yield "agent", rows


def _main(framework: str, tracer: str, out: str) -> None:
    calls: list[Any] = []
    apps = _langchain if framework == "langchain" else _llama_index
    written = {}
    for name, rows in apps(lambda handlers: TRACERS[tracer](framework, handlers), calls):
        written[name] = {
            "rows": rows(),
            "calls": [call.model_dump(mode="json") for call in calls],
        }
        calls.clear()
    Path(out).write_text(json.dumps(written))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(TESTS.parent))
    _main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # without the exporters' last attempts
