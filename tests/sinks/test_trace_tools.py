"""The sinks of Langfuse, Phoenix, MLflow and LangSmith, by their own clients against loopback."""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter, methodcaller
from typing import Any
from uuid import uuid4

import pytest
from by_hand import ScriptedJudge, labels_of
from trace_tools import (
    LangfuseService,
    LangSmithService,
    MLflowService,
    PhoenixService,
    running,
)

from rag_eval_integrations import BackgroundEvaluator, RagCall, RagEvaluator
from rag_eval_integrations.background import _sink_delivery as delivery
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.records import Capture, Evaluation, Score
from rag_eval_integrations.sinks import (
    LangfuseSink,
    LangSmithSink,
    LoggingSink,
    MLflowSink,
    OpenTelemetrySink,
    PartlyWrittenError,
    PhoenixSink,
    Sink,
)

WAIT = 30.0
"""Seconds after which a test gives up."""
BEGAN = datetime(2026, 11, 25, 23, 59, 58, tzinfo=UTC)
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
RUN = "6a1f9a3c-55cd-4a7e-9e5f-4a8e1f0a1b2c"
TRACES: dict[Any, tuple[str, str]] = {
    "openinference": (TRACE, SPAN), "mlflow": (f"tr-{TRACE}", SPAN), "langsmith": (RUN, RUN),
}  # fmt: skip


def call(number: int = 0, traces: Any = TRACES, **fields: Any) -> RagCall:
    """A captured call of which sentence b is not supported; every text says SECRET."""
    capture = Capture(
        framework="langchain", run_id=f"run-{number}", latency_s=1.0, traces=traces,
        metadata={"tenant": "blue", "user_id": "hidden by the call's own"},
    )  # fmt: skip
    return RagCall(
        f"SECRET {number}?", ["SECRET it is so."], "SECRET it is so. SECRET it is not.",
        capture=capture, started_at=BEGAN, metadata={"user_id": "zoe-17", "plan": {"seats": 2}},
        **fields,
    )  # fmt: skip


LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True), "b": ([], False)})


def evaluator() -> RagEvaluator:
    return RagEvaluator(ScriptedJudge(LABELS))


def evaluated(*calls: RagCall) -> list[Evaluation]:
    return [evaluator().evaluate_sync(call) for call in calls or [call()]]


def with_all_states() -> Evaluation:
    """A passing, a failing, an unscored and a failed score."""
    scores = [
        Score(name="good", status="scored", value=0.75, threshold=0.5, reason="SECRET"),
        Score(name="bad", status="scored", value=0.25, threshold=0.5, method="labels"),
        Score(name="none", status="unscored", unscored="no_context", reason="SECRET"),
        Score(name="broken", status="error", reason="KeyError: SECRET"),
    ]
    (made,) = evaluated()
    return made.model_copy(update={"scores": {score.name: score for score in scores}})


@dataclass
class Tool:
    """A sink and its service; what is kept, in the same words for all tools."""

    name: str
    service: Any
    sink: Callable[..., Any]
    value: Callable[[dict[str, Any]], Any]
    without_value: Callable[[dict[str, Any]], Any]
    """Why a score has no value, as it was received."""
    place: Callable[[dict[str, Any]], Any]
    metadata: Callable[[dict[str, Any]], dict[str, Any]] = itemgetter("metadata")
    comment: Callable[[dict[str, Any]], Any] = methodcaller("get", "comment")

    def values(self) -> dict[str, Any]:
        return {self.service.name_of(score): self.value(score) for score in self.service.scores}


def _langfuse(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> Tool:
    from langfuse import Langfuse

    service = stack.enter_context(running(LangfuseService()))
    client = Langfuse(
        public_key=f"pk-{uuid4()}", secret_key="sk", base_url=service.url, tracing_enabled=False,
        environment="staging",
    )  # fmt: skip
    stack.callback(client.shutdown)
    return Tool(
        "langfuse", service, lambda **options: LangfuseSink(client, **options),
        value=lambda one: one["value"] if one["dataType"] == "NUMERIC" else None,
        without_value=lambda one: (one["dataType"], one["value"]),
        place=lambda one: (one["traceId"], one["observationId"]),
    )  # fmt: skip


def _phoenix(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> Tool:
    from phoenix.client import Client

    service = stack.enter_context(running(PhoenixService()))
    client = Client(base_url=service.url)
    return Tool(
        "phoenix", service, lambda **options: PhoenixSink(client, **options),
        value=lambda one: one["result"].get("score"),
        without_value=lambda one: one["result"]["label"],
        place=lambda one: one["span_id"],
        comment=lambda one: one["result"].get("explanation"),
    )  # fmt: skip


def _mlflow(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    service = stack.enter_context(running(MLflowService()))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", service.url)
    return Tool(
        "mlflow", service, MLflowSink,
        value=lambda one: one["feedback"].get("value"),
        without_value=lambda one: one["feedback"]["error"]["error_code"],
        place=lambda one: (one["trace_id"], one["span_id"]),
        comment=lambda one: one.get("rationale"),
    )  # fmt: skip


def _langsmith(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> Tool:
    from langsmith import Client

    service = stack.enter_context(running(LangSmithService()))
    with warnings.catch_warnings():
        client = Client(api_url=service.url, api_key="none")
    stack.callback(client.flush)
    return Tool(
        "langsmith", service, lambda **options: LangSmithSink(client, **options),
        value=lambda one: one.get("score"),
        without_value=lambda one: one["comment"],
        place=lambda one: (one["trace_id"], one["run_id"]),
        metadata=lambda one: one["feedback_source"]["metadata"],
    )  # fmt: skip


MAKERS = {"langfuse": _langfuse, "phoenix": _phoenix, "mlflow": _mlflow, "langsmith": _langsmith}


def only(name: str) -> pytest.MarkDecorator:
    """Mark a test that has one of the tools."""
    return pytest.mark.parametrize("tool", [name], indirect=True)


@pytest.fixture(params=MAKERS)
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tool]:
    with ExitStack() as stack:
        yield MAKERS[request.param](stack, monkeypatch)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """The one line that sinks have logged."""
    logger = "rag_eval_integrations.sinks"
    (message,) = [record.getMessage() for record in caplog.records if record.name == logger]
    return message


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat without a pause."""
    monkeypatch.setattr(delivery, "_FIRST_PAUSE", 0.0)


class TestEveryTool:
    def test_scores_land_on_the_trace(self, tool: Tool) -> None:
        """Each score of each call, on the span that was captured; the sink keeps the protocol."""
        sink = tool.sink()
        sink.write(evaluated())

        assert isinstance(sink, Sink)
        values = tool.values()
        assert list(values) == list(TRACE_SCORES)
        assert (values["adherence"], values["supported_fraction"]) == (0.0, 0.5)
        expected = {
            "langfuse": (TRACE, SPAN), "phoenix": SPAN, "mlflow": (f"tr-{TRACE}", SPAN),
            "langsmith": (RUN, RUN),
        }  # fmt: skip
        assert {tool.place(one) for one in tool.service.scores} == {expected[tool.name]}
        facts = tool.metadata(tool.service.of("adherence"))
        made_by = (facts["judge"], facts["evaluator_version"])
        assert made_by == ("scripted", evaluator().fingerprint)

    def test_a_score_without_a_value_says_why(self, tool: Tool) -> None:
        """It is neither 0 nor left out; verdicts go along."""
        tool.sink().write([with_all_states()])

        assert tool.values() == {"good": 0.75, "bad": 0.25, "none": None, "broken": None}
        unscored: dict[str, Any] = {
            "langfuse": ("CATEGORICAL", "no_context"), "langsmith": "unscored (no_context)",
        }  # fmt: skip
        assert tool.without_value(tool.service.of("none")) == unscored.get(tool.name, "no_context")
        assert "error" in str(tool.without_value(tool.service.of("broken")))
        passed = [tool.metadata(tool.service.of(name))["passed"] for name in ("good", "bad")]
        assert list(map(str, passed)) == ["True", "False"]

    def test_texts_go_along_only_if_asked_for(self, tool: Tool) -> None:
        """Otherwise the comment names the keys of sentences, and nothing of the call is quoted."""
        rows = [*evaluated(), with_all_states()]
        tool.sink().write(rows)

        assert "SECRET" not in json.dumps(tool.service.scores)
        assert tool.comment(tool.service.of("adherence")) == "unsupported: b"

        tool.service.kept.clear()
        tool.sink(texts=True).write(rows)
        assert "“SECRET it is not.”" in tool.comment(tool.service.of("adherence"))

    def test_chosen_metadata_goes_along(self, tool: Tool) -> None:
        """The call's own before the captured; nothing that was not chosen.

        A single name, which would be read letter by letter, is refused.
        """
        tool.sink(metadata=("user_id", "tenant", "plan", "missing")).write(evaluated())

        facts = tool.metadata(tool.service.of("adherence"))
        assert (facts["user_id"], facts["tenant"]) == ("zoe-17", "blue")
        assert facts["plan"] in ({"seats": 2}, '{"seats": 2}')
        assert "missing" not in facts

        tool.service.kept.clear()
        tool.sink().write(evaluated())
        assert "zoe-17" not in json.dumps(tool.service.scores)
        with pytest.raises(ConfigurationError, match="`metadata` = 'user_id': use a list of names"):
            tool.sink(metadata="user_id")

    @pytest.mark.parametrize(("lost", "status"), [(3, 0), (0, 503)], ids=["lost", "down"])
    def test_every_score_is_there_once(
        self, tool: Tool, at_once: None, lost: int, status: int
    ) -> None:
        """Where answers were lost after the scores were kept; after the service was down.

        Scoring goes on meanwhile.
        """
        tool.service.lose, tool.service.status = lost, status
        with BackgroundEvaluator(evaluator(), [tool.sink()]) as background:
            for number in range(3):
                background(call(number))
            assert background._worker.drain(WAIT)
            assert background.counters.scored == 3
            assert background.counters.sinks[0].pending == 3 or not status
            tool.service.status = 0
            assert background.flush(WAIT)
            counts = background.counters.sinks[0]

        assert (counts.written, counts.failed, counts.dropped) == (3, 0, 0)
        assert tool.service.lose == 0
        assert len(tool.service.scores) == 3 * len(TRACE_SCORES)

    def test_a_service_that_takes_nothing_is_not_asked_for_every_score(self, tool: Tool) -> None:
        """As with a wrong key: the first failure is that of the whole batch, also of single scores."""
        tool.service.status = 401
        batch = evaluated(*[call(number) for number in range(8)])
        single = [e.model_copy(update={"scores": dict([*e.scores.items()][:1])}) for e in batch]

        for given in (batch, single):
            tool.service.requests.clear()
            with pytest.raises(Exception, match=r"401|Unauthorized|not now") as raised:
                tool.sink().write(given)

            assert not isinstance(raised.value, PartlyWrittenError)
            posts = [path for method, path in tool.service.requests if method == "POST"]
            assert len(posts) <= 6

    def test_a_call_without_a_trace_is_told_once(
        self, tool: Tool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It is left out and counted; that is no failure."""
        sink, plain = tool.sink(), {"capture": Capture(framework="plain")}
        sink.write(evaluated(*[call(n).model_copy(update=plain) for n in range(2)]))

        assert tool.service.scores == []
        assert sink.left_out == 2
        source = {"phoenix": "openinference"}.get(tool.name, tool.name)
        assert f"{type(sink).__name__}: a call has no trace of {source}" in logged(caplog)


@only("langfuse")
def test_langfuse_repeats_with_the_same_date(tool: Tool) -> None:
    """The time of a score is that of its call: a repeat after midnight replaces it.

    Its environment is the client's, as `create_score` sets it: its page shows traces and scores.
    """
    made = evaluated()
    tool.sink().write(made)
    tool.sink().write(made)

    assert len(tool.service.scores) == len(TRACE_SCORES)
    score = tool.service.of("adherence")
    assert (score["timestamp"], score["environment"]) == (BEGAN.isoformat(), "staging")


@only("langfuse")
def test_langfuse_takes_its_own_trace_first(tool: Tool) -> None:
    """Else one of OpenTelemetry, whose ids are its own."""
    both: Any = {"openinference": (TRACE, SPAN), "langfuse": ("f" * 32, "e" * 16)}
    tool.sink().write(evaluated(call(traces=both)))

    assert tool.place(tool.service.of("adherence")) == ("f" * 32, "e" * 16)


@only("langfuse")
def test_langfuse_that_rejects_some_of_a_batch(tool: Tool) -> None:
    """Answers 207 and does not say which: all of the batch is sent again, a few times."""
    reply = {"accepted": 5, "rejected": 1, "errors": [{"message": "too long"}]}
    tool.service.answer = lambda *request: (207, reply)

    with pytest.raises(PartlyWrittenError, match="rejected 1 of 6 scores: too long"):
        tool.sink().write(evaluated())


@only("phoenix")
def test_a_batch_that_comes_again_counts_its_calls_without_a_trace_once(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the tool was away before the first score was sent."""
    sink, batch = tool.sink(), evaluated(call(0), call(1, traces={}))

    def away() -> None:
        raise ConnectionError("away")

    with monkeypatch.context() as broken:
        broken.setattr(sink, "_prepare", away)
        for _ in range(2):
            with pytest.raises(ConnectionError):
                sink.write(batch)
    sink.write(batch)

    assert sink.left_out == 1


@only("phoenix")
def test_phoenix_gets_the_spans_first(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The spans that wait in this process are sent before their annotations, in the same order."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, sent = InMemorySpanExporter(), []
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=600_000))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    provider.get_tracer("t").start_span("rag").end()
    answer = tool.service.answer

    def noting(*request: Any) -> Any:
        sent.append(len(exporter.get_finished_spans()))
        return answer(*request)

    tool.service.answer = noting
    tool.sink().write(evaluated())
    provider.shutdown()

    assert sent == [1]


@pytest.mark.parametrize(
    ("tool", "order", "status"),
    [*(("langfuse", "+-+", status) for status in (400, 413, 422)),
     ("phoenix", "+-+", 0), ("mlflow", "---+", 0)],
    indirect=["tool"],
)  # fmt: skip
def test_calls_that_a_tool_does_not_take_keep_no_others_away(
    tool: Tool, order: str, status: int, at_once: None
) -> None:
    """One that Langfuse refuses, such as too large; those whose trace is not there, as sampled out.

    They are tried again, as a span may arrive later: then they are taken.
    """
    lost: Any = {"openinference": ("f" * 32, "c" * 16), "mlflow": ("tr-lost", SPAN)}
    take = tool.service.answer
    tool.service.answer = lambda method, path, body: (
        (status, {"message": "no"}) if status and "f" * 32 in json.dumps(body)
        else take(method, path, body)
    )  # fmt: skip
    tool.service.unknown.update(("c" * 16, "tr-lost"))
    batch = evaluated(*(call(n, lost if c == "-" else TRACES) for n, c in enumerate(order)))
    with pytest.raises(PartlyWrittenError) as raised:
        tool.sink().write(batch)

    left = [one for one, c in zip(batch, order, strict=True) if c == "-"]
    assert [*raised.value.left] == left
    assert len(tool.service.scores) == order.count("+") * len(TRACE_SCORES)
    tool.service.unknown.clear()
    tool.service.answer = take
    tool.sink().write(left)
    assert len(tool.service.scores) == len(order) * len(TRACE_SCORES)


@only("mlflow")
def test_mlflow_updates_what_is_there(tool: Tool) -> None:
    """A value that changed, of the same call and evaluator, takes the place of the former."""
    first = with_all_states()
    tool.sink().write([first])
    better = first.scores["bad"].model_copy(update={"value": 1.0})
    tool.sink().write([first.model_copy(update={"scores": {**first.scores, "bad": better}})])

    assert len(tool.service.scores) == 4
    assert tool.values()["bad"] == 1.0
    assert all(key.startswith("a-") and len(key) == 34 for (key,) in tool.service.kept)


def test_mlflow_s_client_repeats_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default would hold up the sink for minutes; what the user has set stays."""
    name = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
    monkeypatch.setenv(name, "5")
    for kept in ("5", "2"):
        MLflowSink()
        assert os.environ.pop(name) == kept


@only("langsmith")
def test_langsmith_does_not_extend_retention_unless_asked(tool: Tool) -> None:
    """With it the client sends in batches, which the sink waits for."""
    tool.sink().write(evaluated())
    assert tool.service.of("adherence")["extend_trace_retention"] is False
    assert tool.service.of("adherence")["trace_id"] == RUN

    tool.service.kept.clear()
    tool.sink(extend_trace_retention=True).write(evaluated())
    assert (tool.service.scores, tool.service.multipart) == ([], 1)


@only("langsmith")
def test_langsmith_finds_a_run_of_langchain_by_its_id(tool: Tool) -> None:
    """Where its tracer told no trace: the id that capture has is the run's."""
    known = {"capture": Capture(framework="langchain", run_id=RUN)}
    tool.sink().write(evaluated(call().model_copy(update=known)))

    assert tool.service.of("adherence")["run_id"] == RUN
    assert "trace_id" not in tool.service.of("adherence")


def test_langsmith_tells_that_its_client_samples(caplog: pytest.LogCaptureFixture) -> None:
    """It drops feedback without a word: the sink says so, once."""
    from langsmith import Client

    with running(LangSmithService()) as service:
        client = Client(api_url=service.url, api_key="none", tracing_sampling_rate=0.0)
        sink = LangSmithSink(client)
        for _ in range(2):
            sink.write(evaluated())

        assert service.scores == []
        assert "samples runs (tracing_sampling_rate = 0.0) and drops the feedback" in logged(caplog)


@pytest.mark.parametrize(
    ("sink", "module", "extra"),
    [
        (OpenTelemetrySink, "opentelemetry", "otel"), (LangfuseSink, "langfuse", "langfuse"),
        (PhoenixSink, "phoenix", "phoenix"), (MLflowSink, "mlflow", "mlflow"),
        (LangSmithSink, "langsmith", "langchain"),
    ],
)  # fmt: skip
def test_a_client_that_is_not_installed(
    sink: Any, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is told as the sink is made, with the extra that installs it."""
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingDependencyError, match=rf"rag-eval-integrations\[{extra}\]"):
        sink()


def test_logging_has_chosen_metadata_too(caplog: pytest.LogCaptureFixture) -> None:
    """As a field of the record, and nothing that was not chosen."""
    with caplog.at_level(logging.INFO, logger="rag_eval_integrations.scores"):
        LoggingSink(metadata=["user_id", "missing"]).write(evaluated())

    assert caplog.records[0].rag_eval["metadata"] == {"user_id": "zoe-17"}  # type: ignore[attr-defined]
    assert "SECRET" not in caplog.text
