"""The sink of OpenTelemetry: its SDK and exporters, and a receiver that decodes OTLP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from trace_tools import OtlpService, running

from rag_eval_integrations import BackgroundEvaluator, RagCall
from rag_eval_integrations.metrics import TRACE_SCORES
from rag_eval_integrations.records import Evaluation, EvaluationError
from rag_eval_integrations.sinks import OpenTelemetrySink

from .test_trace_tools import BEGAN, SPAN, TRACE, call, evaluated, evaluator, with_all_states

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider

WAIT = 30.0


@dataclass
class Receiver:
    """What an OpenTelemetry backend receives."""

    service: OtlpService
    logs: LoggerProvider
    meters: MeterProvider

    def sink(self, **options: Any) -> OpenTelemetrySink:
        return OpenTelemetrySink(logger_provider=self.logs, meter_provider=self.meters, **options)

    @property
    def records(self) -> list[Any]:
        self.logs.force_flush()
        return self.service.records

    def events(self) -> dict[str, dict[str, Any]]:
        """Attributes of each event, by the score's name."""
        events = [_attributes(record.attributes) for record in self.records]
        return {event["gen_ai.evaluation.name"]: event for event in events}

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and value of each data point of a metric."""
        self.meters.force_flush()
        metric = self.service.metrics[name]
        points = getattr(metric, metric.WhichOneof("data")).data_points
        return [(_attributes(point.attributes), point) for point in points]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    with running(OtlpService()) as service:
        assert isinstance(service, OtlpService)
        logs = LoggerProvider(shutdown_on_exit=False)
        exporter = OTLPLogExporter(endpoint=f"{service.url}/v1/logs")
        logs.add_log_record_processor(BatchLogRecordProcessor(exporter))
        metrics = OTLPMetricExporter(endpoint=f"{service.url}/v1/metrics")
        reader = PeriodicExportingMetricReader(metrics, export_interval_millis=600_000)
        meters = MeterProvider([reader], shutdown_on_exit=False)
        yield Receiver(service, logs, meters)
        logs.shutdown()
        meters.shutdown()


def failed() -> Evaluation:
    """A score of each state, the last of which failed by a KeyError."""
    error = EvaluationError(type="KeyError", message="SECRET", stage="metrics")
    return with_all_states().model_copy(update={"error": error})


def test_an_event_stands_on_the_span_of_its_call(receiver: Receiver) -> None:
    """With the names of the semantic conventions, and the time at which the call ended."""
    made = evaluated()
    receiver.sink().write(made)

    record = receiver.records[0]
    assert {one.event_name for one in receiver.records} == {"gen_ai.evaluation.result"}
    assert (record.trace_id.hex(), record.span_id.hex()) == (TRACE, SPAN)
    assert record.time_unix_nano == int((BEGAN.timestamp() + 1.0) * 1e9)
    events = receiver.events()
    assert list(events) == list(TRACE_SCORES)
    uid = events["supported_fraction"].pop("log.record.uid")
    assert len(uid) == 32 + len("/supported_fraction")
    assert events["supported_fraction"] == {
        "gen_ai.evaluation.name": "supported_fraction",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.evaluator.name": "scripted",
        "gen_ai.evaluation.evaluator.version": made[0].fingerprint,
    }
    assert events["adherence"]["gen_ai.evaluation.explanation"] == "unsupported: b"


def test_verdicts_and_scores_without_a_value(receiver: Receiver) -> None:
    """A label is a verdict or the code of why; an error is a warning and has its type.

    The conventions have a word for a type that is not known.
    """
    receiver.sink().write([failed()])

    label, value = "gen_ai.evaluation.score.label", "gen_ai.evaluation.score.value"
    events = receiver.events()
    assert {name: (event.get(label), event.get(value)) for name, event in events.items()} == {
        "good": ("pass", 0.75), "bad": ("fail", 0.25), "none": ("no_context", None),
        "broken": ("error", None),
    }  # fmt: skip
    assert events["broken"]["error.type"] == "KeyError"
    assert "error.type" not in events["none"]
    assert [record.severity_number for record in receiver.records] == [9, 13, 9, 13]
    assert "SECRET" not in str(receiver.records)
    receiver.sink().write([with_all_states()])  # without the exception that was raised
    assert receiver.events()["broken"]["error.type"] == "_OTHER"


def test_texts_and_metadata_go_along_if_asked_for(receiver: Receiver) -> None:
    """A structured value is JSON; a field does not take the place of a name of ours."""
    name = "gen_ai.evaluation.name"
    chosen = call().model_copy(update={"metadata": {"plan": {"seats": 2}, name: "forged"}})
    receiver.sink(texts=True, metadata=["tenant", "plan", name]).write(evaluated(chosen))

    assert list(receiver.events()) == list(TRACE_SCORES)
    event = receiver.events()["adherence"]
    assert "“SECRET it is not.”" in event["gen_ai.evaluation.explanation"]
    assert (event["tenant"], event["plan"]) == ("blue", '{"seats": 2}')


def test_a_call_without_a_span_has_its_event_nevertheless(receiver: Receiver) -> None:
    """It stands alone, and is counted."""
    sink = receiver.sink()
    sink.write(evaluated(RagCall("Is it so?", ["It is."], "It is.", id="ours")))

    assert len(receiver.records) == len(TRACE_SCORES)
    assert receiver.events()["adherence"]["rag_eval.call.id"] == "ours"
    assert receiver.records[0].trace_id == b""
    assert sink.left_out == 1


def test_a_repeat_has_the_same_record_ids(receiver: Receiver) -> None:
    """By which a backend that looks at them drops duplicates."""
    made = evaluated(call(0), call(1))
    receiver.sink().write(made)
    receiver.sink().write(made)

    ids = [_attributes(record.attributes)["log.record.uid"] for record in receiver.records]
    assert len(ids) == 4 * len(TRACE_SCORES)
    assert len(set(ids)) == 2 * len(TRACE_SCORES)


def test_metrics_of_scores(receiver: Receiver) -> None:
    """A histogram by score, with the unit 1; what has no value and what failed is counted apart."""
    receiver.sink().write([failed()] * 3)

    name = "gen_ai.evaluation.name"
    (good, bad) = receiver.points("rag_eval.score")
    assert receiver.service.metrics["rag_eval.score"].unit == "1"
    assert (good[0], good[1].count, good[1].sum) == ({name: "good"}, 3, 2.25)
    assert list(bad[1].explicit_bounds) == [tenth / 10 for tenth in range(11)]
    ((unscored, point),) = receiver.points("rag_eval.unscored")
    assert (unscored, point.as_int) == ({name: "none", "rag_eval.unscored": "no_context"}, 3)
    ((errors, point),) = receiver.points("rag_eval.errors")
    assert (errors, point.as_int) == ({name: "broken", "error.type": "KeyError"}, 3)


def test_calls_that_are_not_judged_are_a_metric(receiver: Receiver) -> None:
    """By reason, of all background evaluators that the sink serves and that still live."""
    sink = receiver.sink()
    with (
        BackgroundEvaluator(evaluator(), [sink], sample_rate=0.0) as first,
        BackgroundEvaluator(evaluator(), [sink], sample_rate=0.0) as second,
    ):
        for background in (first, second, first, second, second):
            background(call())
        assert second.flush(WAIT)

        counted = {attributes["rag_eval.reason"]: point.as_int
                   for attributes, point in receiver.points("rag_eval.not_judged")}  # fmt: skip
        assert counted["sampled_out"] == 5
        assert counted["queue_full"] == 0


def test_without_an_sdk_nothing_happens() -> None:
    """The api alone has no exporter: emitting is silent."""
    OpenTelemetrySink().write(evaluated())
