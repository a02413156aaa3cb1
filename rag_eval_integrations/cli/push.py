"""`rag-eval push`: post the scores of a file of evaluations to the traces of their calls."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations._visible import counted
from rag_eval_integrations.background._sink_delivery import pause_after
from rag_eval_integrations.cli._arguments import PushOptions
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._terminal import kept, print_stderr, print_stdout
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._filters import Filters
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.sinks import (
    LangfuseSink,
    LangSmithSink,
    MLflowSink,
    OpenTelemetrySink,
    PartlyWrittenError,
    PhoenixSink,
)
from rag_eval_integrations.sinks._traced import TraceSink, client_library, score_id

_BATCH = 100
_TRIES = 6
"""Times that a batch is sent, with pauses of together half a minute, before the command ends."""
_SECONDS_PER_LINE = 10.0

_Entry = tuple[str, Evaluation]
"""The key of an evaluation in the file of those that are posted, and the evaluation."""


def push(options: PushOptions) -> int:
    """Post the scores of every evaluation that is not noted as posted; return the exit code.

    Returns:
        2 for invalid lines, unless `skip_invalid`; 1 when the tool did not take all; else 0.

    Raises:
        ConfigurationError: there is no such tool, or nothing that `--where` asks for.
        MissingDependencyError: the tool's client is not installed.
        OSError: a file cannot be read or written.
    """
    evals = Input(options.evals)
    filters = Filters(options.where)
    if str(options.evals) == "-":
        raise ConfigurationError("EVALS", "-", "name a file: what is posted is noted beside it")
    evals.check(folder=True)
    sink = tool_sink(options.to, metadata=options.metadata or (), texts=options.texts)
    bad = BadRows(evals)
    posted = _PostedFile(Path(f"{options.evals}.pushed"), options.to)
    rows = posted.unposted(filters.keep(bad.values(read_evaluations(evals))), sink)
    failed = 0
    if options.dry_run:
        scores = posted.count_scores(rows)
        words = f"Would post {counted(scores, 'score')} of"
    else:
        with LineFile(_target.resolved(posted.path), wait=False) as file:
            file.end_last_line()
            with kept(lambda: f"{counted(posted.count, 'evaluation')} posted, see {posted.path}."):
                for batch in iter(lambda: list(islice(rows, _BATCH)), []):
                    failed += _post(sink, batch, partial(posted.record, file))
        words = "Posted the scores of"
    if (
        nothing := filters.none_kept()
    ) and not posted.count + posted.before + posted.untraced + failed:
        raise nothing
    words = f"{words} {counted(posted.count, 'call')} to {sink.tool}"
    words += f"; {posted.before:,} had been posted before" if posted.before else ""
    print_stdout(words)
    if posted.untraced:
        known = " or ".join(sink.sources)
        print_stderr(f"{counted(posted.untraced, 'call')} without a trace of {known}")
    return max(bad.end("not posted", skip=options.skip_invalid), int(failed > 0))


class _PostedFile:
    """File that lists the evaluations posted so far, in a line per batch: tool and keys."""

    def __init__(self, path: Path, tool: str) -> None:
        self.path = path
        self.count = self.before = self.untraced = 0
        self._tool = tool
        self._reported_at = time.monotonic()
        self._keys: set[str] = set()
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                note = json.loads(line)
            except ValueError:  # a killed run was writing it
                continue
            self._keys.update(note.get(tool, ()))

    def unposted(self, evaluations: Iterator[Evaluation], sink: TraceSink) -> Iterator[_Entry]:
        """Yield the evaluations that are still to be posted, each with its key.

        Those posted before, and those without a trace, are counted.
        """
        seen: Counter[str] = Counter()
        for evaluation in evaluations:
            own = score_id(evaluation, "").hex
            seen[own] += 1  # a call may be in the file twice
            key = own if seen[own] == 1 else f"{own}-{seen[own]}"
            place = sink.traced(evaluation)
            self.untraced += place is None or place.span_id is None
            if key in self._keys:
                self.before += 1
            elif place is not None:
                yield key, evaluation

    def count_scores(self, entries: Iterator[_Entry]) -> int:
        """Count what would be posted; return the number of scores."""
        scores = 0
        for _, evaluation in entries:
            self.count += 1
            scores += len(evaluation.scores)
        return scores

    def record(self, file: LineFile, entries: Sequence[_Entry]) -> None:
        """Record evaluations as posted, and print the progress once per ten seconds."""
        file.append(json.dumps({self._tool: [key for key, _ in entries]}).encode("ascii"))
        self.count += len(entries)
        if time.monotonic() - self._reported_at >= _SECONDS_PER_LINE:
            self._reported_at = time.monotonic()
            print_stderr(f"{self.count:,} posted")


def _post(sink: TraceSink, batch: list[_Entry], note: Callable[[list[_Entry]], None]) -> int:
    """Post a batch, and retry what fails; return how many evaluations the tool refused.

    Raises:
        OSError: the tool cannot be reached.
    """
    for tries in range(1, _TRIES + 1):
        try:
            sink.write([evaluation for _, evaluation in batch])
        except PartlyWrittenError as error:
            left = {id(evaluation) for evaluation in error.left}
            if done := [entry for entry in batch if id(entry[1]) not in left]:
                note(done)
            batch = [entry for entry in batch if id(entry[1]) in left]
            why = str(error)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if tries == _TRIES:
                raise OSError(f"{sink.tool} takes no scores: {why}") from error
        else:
            note(batch)
            return 0
        if tries == 1:
            print_stderr(f"{sink.tool}: {why}; it is tried again")
        if tries < _TRIES:
            time.sleep(pause_after(tries))
    print_stderr(f"{sink.tool}: {counted(len(batch), 'call')} not posted: {why}")
    return len(batch)


# --- The sinks


def tool_sink(to: str, *, others: Sequence[str] = (), **settings: Any) -> TraceSink:
    """Make the sink of a tool.

    Args:
        to: its name, as `--to` has it.
        others: what the option may also name, for the error.
        **settings: arguments of the sink.

    Raises:
        ConfigurationError: there is no such tool.
        MissingDependencyError: the tool's client is not installed.
    """
    makers: dict[str, Callable[..., TraceSink]] = {
        "otel": _OtlpSink,
        "langfuse": LangfuseSink,
        "phoenix": PhoenixSink,
        "mlflow": MLflowSink,
        "langsmith": LangSmithSink,
    }
    if to not in makers:
        raise ConfigurationError("--to", to, f"use one of {', '.join([*makers, *others])}")
    return makers[to](**settings)


class _OtlpSink(OpenTelemetrySink):
    """OpenTelemetry sink that exports each batch by OTLP, and raises if that fails.

    An SDK's own processors only log failures. There are no metrics of the past.
    """

    def __init__(self, **options: Any) -> None:
        package = "opentelemetry-exporter-otlp-proto-http"  # which brings the SDK
        otlp = client_library(
            "opentelemetry.exporter.otlp.proto.http._log_exporter", package, "otel"
        )
        from opentelemetry.metrics import NoOpMeterProvider  # noqa: PLC0415 -- for this tool only
        from opentelemetry.sdk import _logs  # noqa: PLC0415
        from opentelemetry.sdk._logs import export  # noqa: PLC0415

        self._exporter = otlp.OTLPLogExporter()
        self._memory = export.InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        provider = _logs.LoggerProvider(shutdown_on_exit=False)
        provider.add_log_record_processor(export.SimpleLogRecordProcessor(self._memory))
        super().__init__(logger_provider=provider, meter_provider=NoOpMeterProvider(), **options)

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Write the events, and export them at once."""
        super().write(batch)
        events = self._memory.get_finished_logs()
        self._memory.clear()
        if self._exporter.export(events).name != "SUCCESS":
            raise ConnectionError("the OTLP endpoint did not take the events")
