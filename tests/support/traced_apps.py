"""Run an app beside a tracer of another library, in a process of its own; tell what each recorded.

    python traced_apps.py langchain openinference ours-first

prints a JSON object: way to call the app → the calls as they were captured, each with the root span
that the tracer itself has for its question.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
WAYS = ("invoke", "ainvoke", "stream", "astream", "batch")
ORDERS = ("ours-first", "theirs-first")
QUESTIONS = ("How fast is kettle 1?", "How fast is kettle 2?", "How fast is kettle 3?")

ASKED: dict[str, int] = {}
"""The time at which each question was asked, in ns since 1970."""

Roots = dict[str, list[str]]


def _asked(*questions: str) -> tuple[str, ...]:
    ASKED.update(dict.fromkeys(questions, time.time_ns()))
    return questions


def traced(framework: str, tracer: str, order: str) -> dict[str, list[dict[str, Any]]]:
    """Return what the script prints, run in a process whose servers cannot be reached."""
    calls: dict[str, list[dict[str, Any]]] = json.loads(_printed(framework, tracer, order))
    return calls


@cache
def _printed(framework: str, tracer: str, order: str) -> str:
    environment = {
        **os.environ,
        "LANGFUSE_PUBLIC_KEY": "public", "LANGFUSE_SECRET_KEY": "secret",
        "LANGFUSE_HOST": "http://127.0.0.1:9",
        "MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "PYTHONPATH": os.pathsep.join([str(TESTS / "support"), str(TESTS.parent)]),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, framework, tracer, order],
        env=environment, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


SILENT = {("langchain", "mlflow"): {"ainvoke", "astream", "batch"}}
"""Ways in which a tracer's span is not in the context, and the tracer does not tell it by run."""
LEAKING = {("llama_index", "openllmetry"): {"stream"}}
"""Ways in which a tracer leaves spans in the context that have not ended: the trace is the right one."""


def assert_traced(
    traced_calls: dict[str, list[dict[str, Any]]],
    alone: dict[str, list[dict[str, Any]]],
    tracer: str,
) -> None:
    """Hold that calls have the ids of the tracer's root spans, and are the calls without a tracer."""
    for way in WAYS:
        assert len(traced_calls[way]) == len(QUESTIONS)
        for call, without in zip(traced_calls[way], alone[way], strict=True):
            framework, ids, theirs = call["framework"], call.pop("traces"), call.pop("theirs")
            assert theirs, (way, call)
            if way in SILENT.get((framework, tracer), ()):
                assert ids == {}, way
            elif way in LEAKING.get((framework, tracer), ()):
                assert [trace for trace, _ in ids.values()] == theirs[:1], way
            else:
                assert [trace[: len(theirs)] for trace in ids.values()] == [theirs], way
            source = "openinference" if (framework, tracer) == OF_LANGFUSE else tracer
            assert ids.keys() <= {source}
            del without["traces"], without["theirs"]
            assert call == without, way


OF_LANGFUSE = ("llama_index", "langfuse")
"""Langfuse traces LlamaIndex by OpenInference's instrumentor."""


# --- The tracers: each starts to trace, and returns what gives its root spans by question


def _questions_in(values: object) -> list[str]:
    return [question for question in QUESTIONS if question in str(values)]


def _otel(attach: Callable[[Any], object]) -> Callable[[], Roots]:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

    begun: dict[int, Any] = {}

    class Keep(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            begun[span.context.span_id] = span

    provider = TracerProvider()
    provider.add_span_processor(Keep())
    attach(provider)

    def roots() -> Roots:
        by_question: Roots = {}
        for span in begun.values():
            for question in _questions_in(list(span.attributes.values())):
                root = span
                while root.parent is not None:
                    above = begun.get(root.parent.span_id)
                    # OpenLLMetry leaves spans in the context, and other calls' spans below them.
                    if above is None or above.start_time < ASKED[question]:
                        break
                    if question not in (_questions_in(list(above.attributes.values())) or question):
                        break
                    root = above
                ids = [f"{root.context.trace_id:032x}", f"{root.context.span_id:016x}"]
                by_question.setdefault(question, ids)
        begun.clear()
        return by_question

    return roots


def _instrumented(module: str, name: str) -> Callable[[], Roots]:
    instrumentor = getattr(import_module(module), f"{name}Instrumentor")
    return _otel(lambda provider: instrumentor().instrument(tracer_provider=provider))


def openinference(framework: str, handlers: list[Any]) -> Callable[[], Roots]:
    name = "LangChain" if framework == "langchain" else "LlamaIndex"
    return _instrumented(f"openinference.instrumentation.{framework}", name)


def openllmetry(framework: str, handlers: list[Any]) -> Callable[[], Roots]:
    name = "Langchain" if framework == "langchain" else "LlamaIndex"
    return _instrumented(f"opentelemetry.instrumentation.{framework.replace('_', '')}", name)


def langfuse(framework: str, handlers: list[Any]) -> Callable[[], Roots]:
    from langfuse import Langfuse

    def attach(provider: Any) -> None:
        Langfuse(tracer_provider=provider)
        if framework == "langchain":
            from langfuse.langchain import CallbackHandler

            handlers.append(CallbackHandler())
        else:  # as Langfuse's own page has it
            from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

            LlamaIndexInstrumentor().instrument(tracer_provider=provider)

    return _otel(attach)


def mlflow(framework: str, handlers: list[Any]) -> Callable[[], Roots]:
    import mlflow
    import mlflow.langchain
    import mlflow.llama_index
    from mlflow.entities.trace_location import MlflowExperimentLocation

    ended: list[Any] = []
    mlflow.tracing.set_destination(MlflowExperimentLocation(experiment_id="0"))
    mlflow.tracing.configure(span_processors=[ended.append])
    (mlflow.langchain if framework == "langchain" else mlflow.llama_index).autolog()

    def roots() -> Roots:
        by_question: Roots = {}
        for span in ended:
            # The root of a stream of LlamaIndex never ends.
            ids = [span.trace_id, *([] if span.parent_id else [span.span_id])]
            by_question |= {question: ids for question in _questions_in(span.inputs)}
        ended.clear()
        return by_question

    return roots


def langsmith(framework: str, handlers: list[Any]) -> Callable[[], Roots]:
    from langchain_core.tracers.langchain import LangChainTracer
    from langsmith import Client

    ended: list[Any] = []

    class Tracer(LangChainTracer):
        def _persist_run(self, run: Any) -> None:
            ended.append(run)

        def _persist_run_single(self, run: Any) -> None: ...

        @staticmethod
        def _update_run_single(run: Any) -> None: ...

    client = Client(api_url="http://127.0.0.1:9", api_key="key", auto_batch_tracing=False)
    handlers.append(Tracer(client=client))

    def roots() -> Roots:
        by_question: Roots = {}
        for run in ended:
            ids = [str(run.trace_id), str(run.id)]
            by_question |= {question: ids for question in _questions_in(run.inputs)}
        ended.clear()
        return by_question

    return roots


def none(framework: str, handlers: list[Any]) -> Callable[[], Roots]:
    """Trace by no library at all: what calls look like without one."""
    return dict


TRACERS = {
    made.__name__: made for made in (openinference, openllmetry, langfuse, mlflow, langsmith, none)
}


# --- The apps


def _langchain(order: str, attach: Callable[[list[Any]], object]) -> tuple[Any, Any]:
    from rag_eval_integrations.langchain import RagEvalCallbackHandler
    from tests.langchain.conftest import rag_chain, run

    calls: list[Any] = []
    handler = RagEvalCallbackHandler(calls.append)
    handlers: list[Any] = []
    if order == "ours-first":
        handlers.append(handler)
        attach(handlers)
    else:
        attach(handlers)
        # After an instrumentor's, which is added as a callback manager is made.
        handler.attach_globally()

    async def ask(way: str) -> list[str]:
        config = {"callbacks": handlers}
        if way == "batch":
            return rag_chain().batch([*_asked(*QUESTIONS)], config)  # type: ignore[arg-type]
        asked = (_asked(question)[0] for question in QUESTIONS)
        return [await run(rag_chain(), question, way, config) for question in asked]

    return calls, ask


def _llama_index(order: str, attach: Callable[[list[Any]], object]) -> tuple[Any, Any]:
    from rag_eval_integrations.llama_index import RagEvalHandler
    from tests.llama_index.conftest import engine

    calls: list[Any] = []
    handler = RagEvalHandler(calls.append)
    steps: list[Callable[[], object]] = [handler.install, lambda: attach([])]
    for step in steps if order == "ours-first" else steps[::-1]:
        step()

    async def ask(way: str) -> list[str]:
        if way == "invoke":
            return [str(engine().query(*_asked(question))) for question in QUESTIONS]
        if way == "ainvoke":
            return [str(await engine().aquery(*_asked(question))) for question in QUESTIONS]
        if way == "batch":
            every = [engine().aquery(question) for question in _asked(*QUESTIONS)]
            return [str(response) for response in await asyncio.gather(*every)]
        answers = []
        for question in QUESTIONS:
            _asked(question)
            if way == "stream":
                response: Any = engine(streaming=True).query(question)
                answers.append("".join(response.response_gen))
            else:
                response = await engine(streaming=True).aquery(question)
                answers.append("".join([token async for token in response.response_gen]))
        return answers

    return calls, ask


async def _main(framework: str, tracer: str, order: str) -> dict[str, list[dict[str, Any]]]:
    roots: list[Callable[[], Roots]] = []
    app = _langchain if framework == "langchain" else _llama_index
    calls, ask = app(order, lambda given: roots.append(TRACERS[tracer](framework, given)))
    ask_typed: Callable[[str], Awaitable[list[str]]] = ask
    calls_by_way = {}
    for way in WAYS:
        answers = await ask_typed(way)
        theirs = roots[0]()
        calls_by_way[way] = [
            {
                "framework": framework,
                "question": call.question,
                "answer": answer,
                "call": call.model_dump(mode="json", exclude={"capture", "started_at"}),
                "status": call.capture.status,
                "from": call.capture.documents_from,
                "traces": call.capture.traces,
                "theirs": theirs.get(call.question),
            }
            for call, answer in zip(
                sorted(calls, key=lambda call: call.question), answers, strict=True
            )
        ]
        calls.clear()
    return calls_by_way


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(TESTS.parent))
    sys.stdout.write("\n" + json.dumps(asyncio.run(_main(*sys.argv[1:]))) + "\n")
    sys.stdout.flush()
    os._exit(0)  # without the exporters' last attempts
