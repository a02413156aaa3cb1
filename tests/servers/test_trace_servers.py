"""Scores of a LangChain and of a LlamaIndex app in real Phoenix, MLflow and Prometheus.

Each server runs in an environment of its own, see docs/test-environments.md; its address is given by
RAG_EVAL_PHOENIX, RAG_EVAL_MLFLOW, and the folder of its programs by RAG_EVAL_PROMETHEUS.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import processes
import pytest
from span_apps import traced_apps

from rag_eval_integrations.records import Capture, Evaluation

pytestmark = [pytest.mark.slow, pytest.mark.servers]

ROOT = Path(__file__).resolve().parents[2]
WAIT = 60.0
APP = """
import json, sys
framework, tool, path = sys.argv[1:]
from rag_eval_integrations import BackgroundEvaluator, RagEvaluator
from rag_eval_integrations.sinks import JsonlSink, MLflowSink, PhoenixSink
if tool == "phoenix":
    import os
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    provider = TracerProvider()
    exporter = OTLPSpanExporter(os.environ["RAG_EVAL_PHOENIX"] + "/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
    trace.set_tracer_provider(provider)
    if framework == "langchain":
        from openinference.instrumentation.langchain import LangChainInstrumentor as Instrumentor
    else:
        from openinference.instrumentation.llama_index import LlamaIndexInstrumentor as Instrumentor
    Instrumentor().instrument(tracer_provider=provider)
    from phoenix.client import Client
    sink = PhoenixSink(Client(base_url=os.environ["RAG_EVAL_PHOENIX"]), texts=True)
else:
    import mlflow
    mlflow.set_experiment("rag-eval")  # without one, the tracing client alone starts no span
    if framework == "langchain":
        mlflow.langchain.autolog(run_tracer_inline=True)
    else:
        mlflow.llama_index.autolog()
    sink = MLflowSink(texts=True)
background = BackgroundEvaluator(RagEvaluator(), [sink, JsonlSink(path)])
if framework == "langchain":
    from rag_eval_integrations.langchain import RagEvalCallbackHandler
    rag_chain().invoke("How fast is it?", {"callbacks": [RagEvalCallbackHandler(background)]})
else:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.schema import TextNode
    from rag_eval_integrations.llama_index import RagEvalHandler
    index = VectorStoreIndex([TextNode(text="Two minutes a litre.")], embed_model=MockEmbedding(8))
    handler = RagEvalHandler(background)
    handler.install()
    index.as_query_engine(llm=MockLLM(max_tokens=20)).query("How fast is it?")
    handler.flush()
assert background.flush(60), background.counters
print(json.dumps(background.counters.sinks[0].__dict__))
"""


def address(name: str) -> str:
    if name not in os.environ:
        pytest.skip(f"needs {name}, see docs/test-environments.md")
    return os.environ[name]


def python(code: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    env = {**os.environ, **environment, "MLFLOW_DISABLE_TELEMETRY": "true"}
    done = processes.python(code, *words, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    return done


def app_run(framework: str, tool: str, path: Path) -> tuple[Evaluation, Capture]:
    """Run an app in a process of its own; give its one evaluation."""
    done = python(_CHAIN + APP, framework, tool, str(path))
    counts = json.loads(done.stdout.splitlines()[-1])
    assert (counts["written"], counts["failed"]) == (1, 0), done.stderr
    evaluation = Evaluation.model_validate_json(path.read_text())
    assert evaluation.capture is not None
    return evaluation, evaluation.capture


_CHAIN = """
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough

class Manual(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("It takes two minutes a litre.")]

def rag_chain():
    prompt = ChatPromptTemplate.from_template("{context} {question}")
    context = Manual() | (lambda found: found[0].page_content)
    model = FakeListChatModel(responses=["It takes two minutes a litre. It is green."])
    return {"context": context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
"""


def values_of(evaluation: Evaluation) -> dict[str, float | None]:
    return {name: score.value for name, score in evaluation.scores.items()}


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_phoenix_shows_the_scores(framework: str, tmp_path: Path) -> None:
    """As annotations of the root span, by its own client; pushing the file adds none."""
    url = address("RAG_EVAL_PHOENIX")
    from phoenix.client import Client

    evaluation, capture = app_run(framework, "phoenix", tmp_path / "evals.jsonl")
    client = Client(base_url=url)

    def annotations() -> list[Any]:
        spans: Any = {"span_ids": [capture.traces["openinference"][1]]}
        return list(client.spans.get_span_annotations(**spans, project_identifier="default"))

    seen = {one["name"]: one["result"] for one in annotations()}
    assert {name: result.get("score") for name, result in seen.items()} == values_of(evaluation)
    assert seen["adherence"]["explanation"] == evaluation.scores["adherence"].reason
    push(tmp_path / "evals.jsonl", "phoenix", PHOENIX_COLLECTOR_ENDPOINT=url)
    assert len(annotations()) == len(evaluation.scores)


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_mlflow_shows_the_scores(framework: str, tmp_path: Path) -> None:
    """As assessments of the trace, by its own client; pushing the file adds none."""
    url = address("RAG_EVAL_MLFLOW")
    os.environ["MLFLOW_TRACKING_URI"] = url
    import mlflow

    evaluation, capture = app_run(framework, "mlflow", tmp_path / "evals.jsonl")
    trace_id = capture.traces["mlflow"][0]

    def assessments() -> list[Any]:
        trace = mlflow.get_trace(trace_id)
        assert trace is not None
        return list(trace.info.assessments)

    seen = {one.name: one for one in assessments()}
    assert {name: one.feedback.value for name, one in seen.items()} == values_of(evaluation)
    assert seen["adherence"].rationale == evaluation.scores["adherence"].reason
    push(tmp_path / "evals.jsonl", "mlflow", MLFLOW_TRACKING_URI=url)
    assert len(assessments()) == len(evaluation.scores)


def push(path: Path, tool: str, **environment: str) -> None:
    command = "from rag_eval_integrations.cli import main; main()"
    done = python(command, "push", str(path), "--to", tool, "--texts", **environment)
    assert "Posted the scores of 1 call" in done.stdout


# --- Calls pulled from what is traced already, and their scores put back


def pulled(tool: str, framework: str, tmp_path: Path, *words: str, **environment: str) -> list[Any]:
    """Pull the traces of some apps, killed three times on the way; give the calls."""
    out = tmp_path / "calls.jsonl"
    command = "from rag_eval_integrations.cli import main; main()"
    given = [
        sys.executable,
        "-c",
        command,
        "pull",
        "--from",
        tool,
        "-o",
        str(out),
        "--resume",
        *words,
    ]
    env = {**os.environ, **environment, "MLFLOW_DISABLE_TELEMETRY": "true"}
    for seconds in (1.5, 2.0, 2.5):
        with subprocess.Popen([*given, "--settle", "0s"], env=env, cwd=ROOT) as process:
            time.sleep(seconds)
            process.kill()
    python(command, *given[3:], "--settle", "0s", **environment)
    return [json.loads(line) for line in out.read_text().splitlines()]


def assert_equal(calls: list[Any], apps: dict[str, Any], source: str) -> None:
    """Hold that the pulled calls are the captured ones, each once."""
    by_trace = {next(iter(call["capture"]["traces"][source])): call for call in calls}
    assert len(by_trace) == len(calls)
    for name, app in apps.items():
        for captured in app["calls"]:
            call = by_trace[captured["capture"]["traces"][source][0]]
            for field in ("question", "response", "history"):
                assert call[field] == captured[field], name
            assert [(d["text"], d["id"]) for d in call["documents"]] == [
                (d["text"], d["id"]) for d in captured["documents"]
            ], name


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_phoenix_s_traces_are_pulled_and_scored(framework: str, tmp_path: Path) -> None:
    """Question, answer, documents and history are the captured ones; scores reach their spans."""
    url = address("RAG_EVAL_PHOENIX")
    from phoenix.client import Client

    apps = traced_apps(framework, "phoenix", url)
    wanted = {c["capture"]["traces"]["openinference"][0] for a in apps.values() for c in a["calls"]}
    client, spans = Client(base_url=url), list[Any]()
    deadline = time.monotonic() + WAIT
    while {span["context"]["trace_id"] for span in spans} < wanted:
        assert time.monotonic() < deadline, "the spans did not arrive"
        time.sleep(0.5)
        spans = client.spans.get_spans(
            project_identifier="default", trace_ids=[*wanted], parent_id="null", limit=1_000
        )
    calls = pulled("phoenix", framework, tmp_path, PHOENIX_COLLECTOR_ENDPOINT=url)
    assert_equal([c for c in calls if c["id"] in wanted], apps, "openinference")
    scored(tmp_path, "phoenix", PHOENIX_COLLECTOR_ENDPOINT=url)
    ids = [c["capture"]["traces"]["openinference"][1] for c in calls if c["id"] in wanted]
    of: Any = {"span_ids": ids, "project_identifier": "default", "limit": 1_000}
    seen = {annotation["span_id"] for annotation in client.spans.get_span_annotations(**of)}
    assert seen == set(ids)


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_mlflow_s_traces_are_pulled_and_scored(framework: str, tmp_path: Path) -> None:
    """Of an experiment; the same as for Phoenix."""
    url = address("RAG_EVAL_MLFLOW")
    os.environ["MLFLOW_TRACKING_URI"] = url
    import mlflow

    apps = traced_apps(framework, "mlflow_server", url)
    project = ("--project", f"apps of {framework}")
    calls = pulled("mlflow", framework, tmp_path, *project, MLFLOW_TRACKING_URI=url)
    assert_equal(calls, apps, "mlflow")
    scored(tmp_path, "mlflow", MLFLOW_TRACKING_URI=url)
    for call in calls:
        trace = mlflow.get_trace(call["id"])
        assert trace is not None
        assert len(trace.info.assessments) >= 6


def scored(folder: Path, tool: str, **environment: str) -> None:
    """Score the pulled calls, and push the scores."""
    command = "from rag_eval_integrations.cli import main; main()"
    python(command, "run", str(folder / "calls.jsonl"), "-o", str(folder / "evals.jsonl"))
    python(command, "push", str(folder / "evals.jsonl"), "--to", tool, **environment)


# --- Prometheus: the metrics of a running app, the dashboard's expressions, the alert rules

EXPORTING = """
import sys
from prometheus_client import start_http_server
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator
from rag_eval_integrations.sinks import OpenTelemetrySink
sink = OpenTelemetrySink(meter_provider=MeterProvider([PrometheusMetricReader()]))
background = BackgroundEvaluator(RagEvaluator(), [sink], sample_rate=lambda call: float(call.id != "0"))
start_http_server(int(sys.argv[1]), addr="127.0.0.1")
number = 0
def judge_some():
    global number
    for _ in range(5):
        number += 1
        background(RagCall(f"Is it {number}?", ["It is so."], "It is blue.", id=str(number)))
        background(RagCall(f"Is it {number}?", [], "It is so.", id="none"))
    background(RagCall("Is it?", ["It is so."], "It is so.", id="0"))
    background.flush(30)
    failed = background.evaluations[0].model_copy(update={"scores": {
        name: score.model_copy(update={"status": "error", "value": None, "unscored": None})
        for name, score in background.evaluations[0].scores.items()}})
    sink.write([failed])
import time
while True:
    judge_some()
    time.sleep(1)
"""


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """A Prometheus that scrapes an app and has our alert rules; asks it something."""
    programs = Path(address("RAG_EVAL_PROMETHEUS"))
    app, own = free_port(), free_port()
    rules = ROOT / "docs/grafana/alerts.yml"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": "app", "static_configs": [{"targets": [f"127.0.0.1:{app}"]}]}
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    subprocess.run([programs / "promtool", "check", "rules", rules], check=True)
    commands: tuple[list[Any], ...] = (
        [sys.executable, "-c", EXPORTING, str(app)],
        [
            programs / "prometheus", f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{own}",
        ],
    )  # fmt: skip
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]

    def ask(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{own}/api/v1/{path}", timeout=10) as reply:
            return json.load(reply)["data"]

    try:
        yield ask
    finally:
        for process in running:
            process.terminate()
            process.wait(20)


def until(claim: Callable[[], bool]) -> None:
    for _ in range(int(WAIT)):
        try:
            if claim():
                return
        except OSError:
            pass
        time.sleep(1)
    pytest.fail("it did not become true in time")


def test_every_expression_of_the_dashboard_has_data(prometheus: Callable[[str], Any]) -> None:
    """In a real Prometheus, with the range that Grafana fills in; alerts see low scores."""
    board = json.loads((ROOT / "docs/grafana/dashboard.json").read_text())
    expressions = [
        target["expr"] for panel in board["panels"] for target in panel.get("targets", ())
    ]
    assert len(expressions) >= 6

    def series(expression: str) -> list[Any]:
        filled = expression.replace("$__rate_interval", "1m").replace("$__range", "5m")
        found = prometheus(f"query?query={urllib.parse.quote(filled)}")["result"]
        return [one for one in found if one["value"][1] != "NaN"]

    for expression in expressions:
        until(lambda expression=expression: bool(series(expression)))  # type: ignore[misc]
        print(expression, "→", [(one["metric"], one["value"][1]) for one in series(expression)][:2])

    def states() -> dict[str, str]:
        groups = prometheus("rules")["groups"]
        return {rule["name"]: rule["state"] for group in groups for rule in group["rules"]}

    until(lambda: states()["RagAdherenceLow"] == states()["RagEvaluationFails"] == "pending")
    assert states()["RagCallsDropped"] == "inactive"
