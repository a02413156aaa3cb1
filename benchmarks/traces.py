"""Measure OpenTelemetrySink beside plain loops of the SDK: emitting and draining scores.

    uv run python benchmarks/traces.py [--evaluations 2000] [--rounds 5]

The receiver is a process of its own that reads OTLP requests and answers 200. A plain loop emits
events with as many attributes on a span, alone and with a histogram, as the sink does. Rounds take
turns, and the medians are printed: microseconds of the emitting thread per event, and events per
second until the last one is received.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from rag_eval_integrations import Evaluation, RagEvaluator
from rag_eval_integrations.records import Capture
from rag_eval_integrations.sinks import OpenTelemetrySink
from rag_eval_integrations.testing import small_call

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
BATCH = 100


class Receiver(BaseHTTPRequestHandler):
    """Reads what it is sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer 200."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Not to stderr."""


def receive() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    print(server.server_port, flush=True)
    server.serve_forever()


def evaluations(number: int) -> list[Evaluation]:
    made = RagEvaluator().evaluate_sync(small_call().call)
    traces = {"otel": (TRACE, SPAN)}
    return [
        made.model_copy(
            update={
                "id": str(n),
                "capture": Capture(framework="plain", run_id=str(n), traces=traces),
            }
        )
        for n in range(number)
    ]


def plain(provider: LoggerProvider, rows: Sequence[Evaluation], metric: bool = False) -> None:
    """Emit one event per score, written by hand."""
    logger = provider.get_logger("plain")
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    histogram = meters.get_meter("plain").create_histogram("score")
    for row in rows:
        span = trace.SpanContext(int(TRACE, 16), int(SPAN, 16), True, trace.TraceFlags(1))
        context = trace.set_span_in_context(trace.NonRecordingSpan(span))
        for score in row.scores.values():
            attributes = {
                "gen_ai.evaluation.name": score.name,
                "gen_ai.evaluation.score.value": score.value or 0.0,
                "gen_ai.evaluation.evaluator.name": "embedded",
                "gen_ai.evaluation.evaluator.version": row.fingerprint,
                "gen_ai.evaluation.explanation": "unsupported: b",
                "log.record.uid": str(uuid4()),
            }
            if metric:
                histogram.record(score.value or 0.0, {"name": score.name}, context)
            logger.emit(
                LogRecord(
                    timestamp=time.time_ns(), context=context, attributes=attributes,
                    severity_number=SeverityNumber.INFO, event_name="gen_ai.evaluation.result",
                )
            )  # fmt: skip


def sink(provider: LoggerProvider, rows: Sequence[Evaluation]) -> None:
    """Write the same in batches, as the background does."""
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    writes = OpenTelemetrySink(logger_provider=provider, meter_provider=meters)
    for start in range(0, len(rows), BATCH):
        writes.write(rows[start : start + BATCH])


Emit = Callable[[LoggerProvider, Sequence[Evaluation]], None]


def measured(emit: Emit, rows: Sequence[Evaluation], endpoint: str) -> tuple[float, float]:
    """Return microseconds of the thread per event, and events per second until all are received."""
    events = sum(len(row.scores) for row in rows)
    provider = LoggerProvider(shutdown_on_exit=False)
    exporter = OTLPLogExporter(endpoint=endpoint)
    processor = BatchLogRecordProcessor(exporter, max_queue_size=2 * events)
    provider.add_log_record_processor(processor)
    began, cpu = time.perf_counter(), time.thread_time()
    emit(provider, rows)
    taken = time.thread_time() - cpu
    provider.force_flush(120_000)
    seconds = time.perf_counter() - began
    provider.shutdown()
    return taken / events * 1e6, events / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--receive", action="store_true")
    options = parser.parse_args()
    if options.receive:
        receive()
        return
    rows = evaluations(options.evaluations)
    receiver = subprocess.Popen(
        [sys.executable, __file__, "--receive"], stdout=subprocess.PIPE, text=True
    )
    assert receiver.stdout is not None
    endpoint = f"http://127.0.0.1:{int(receiver.stdout.readline())}/v1/logs"
    emitters: dict[str, Emit] = {
        "SDK, event alone": plain,
        "SDK, with histogram": partial(plain, metric=True),
        "OpenTelemetrySink": sink,
    }
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in emitters}
    try:
        for _ in range(options.rounds):
            for name, emit in emitters.items():
                results[name].append(measured(emit, rows, endpoint))
    finally:
        receiver.terminate()
        receiver.wait()
    scores = sum(len(row.scores) for row in rows)
    print(f"{scores:,} events per round, medians of {options.rounds} rounds in turn")
    for name, rounds in results.items():
        emitting, drained = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name:20} {emitting:6.1f} µs of the thread per event, {drained:8,.0f} events/s")


if __name__ == "__main__":
    main()
