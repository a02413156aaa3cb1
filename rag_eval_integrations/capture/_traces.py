"""Read in which traces other libraries record a call: by the context's span, and by the run's id.

Only libraries that the app has imported are asked; none is imported here. Whether a library's own
span is the context's depends on it, on sync or async code, and on which of the two was attached
first, so the context is read at the start and at the end of a call. In between, when all of them
have begun the call and none has ended it, libraries that know runs of LangChain by their id are
asked, and the context is read for LlamaIndex (`tests/tracers` shows what each one tells).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from rag_eval_integrations.capture._delivery import TargetDelivery
from rag_eval_integrations.records.call import TraceSource

_MAKERS: tuple[tuple[str, TraceSource], ...] = (
    ("openinference.", "openinference"),
    ("opentelemetry.instrumentation.langchain", "openllmetry"),
    ("opentelemetry.instrumentation.llamaindex", "openllmetry"),
    ("traceloop.", "openllmetry"),
    ("langfuse-sdk", "langfuse"),
)
"""The beginning of the name under which a library makes its OpenTelemetry spans."""
_OPENLLMETRY = "opentelemetry.instrumentation.langchain.callback_handler"
_LANGSMITH = "langchain_core.tracers.langchain"


class _SeenSpan(NamedTuple):
    trace_id: str
    span_id: str
    parent_id: str | None


_Spans = dict[TraceSource, _SeenSpan]


class CallTraces:
    """The spans that other libraries' tracers have for one call; made when the call starts.

    Args:
        delivery: counts and logs failures of the other libraries.
    """

    __slots__ = ("_delivery", "_end", "_ids", "_inside", "_start", "begun")

    def __init__(self, delivery: TargetDelivery) -> None:
        self._delivery = delivery
        self._start = self._current_spans()
        self._inside: _Spans = {}
        self._end: _Spans = {}
        self._ids: dict[TraceSource, tuple[str, str]] = {}
        """Ids that tracers gave for the root's run id, which are certain."""
        self.begun = False
        """Whether all tracers are known to have begun the call: something runs inside."""

    def look_inside(self) -> None:
        """Note the current spans as the first part of the call begins."""
        self.begun = True
        self._inside = self._current_spans()

    def look_at_end(self, run_id: object = None) -> None:
        """Note the current spans as the call ends.

        Args:
            run_id: id of the root run, of which LangChain's tracers are asked if nothing ran in it.
        """
        self._end = self._current_spans()
        if run_id is not None and not self.begun:
            self.ask(run_id, ())

    def _current_spans(self) -> _Spans:
        """Return this context's open spans of OpenTelemetry and MLflow, by source."""
        otel, mlflow = sys.modules.get("opentelemetry.trace"), sys.modules.get("mlflow")
        if otel is None and mlflow is None:
            return {}
        spans: _Spans = {}
        try:
            if otel is not None:
                here = otel.get_current_span()
                # Tracers leave spans in the context that have ended.
                if getattr(here, "end_time", None) is None and (seen := _otel_span(here)):
                    maker = getattr(getattr(here, "instrumentation_scope", None), "name", "")
                    named = (source for begin, source in _MAKERS if maker.startswith(begin))
                    spans[next(named, "otel")] = seen
            # Releases before 2.14 have no such function.
            active = getattr(mlflow, "get_current_active_span", None)
            if active is not None and (span := active()) is not None:
                spans["mlflow"] = _SeenSpan(span.trace_id, span.span_id, span.parent_id)
        except Exception as error:  # noqa: BLE001 -- of the other library; the call goes on
            self._delivery.failure("capture (traces)", error)
        return spans

    def ask(self, run_id: Any, handlers: Iterable[object]) -> None:
        """Ask LangChain's tracers for the span of a root run.

        Args:
            run_id: id of the run.
            handlers: the callback handlers that hear of the run.
        """
        self.begun = True
        try:
            openinference: Any = sys.modules.get("openinference.instrumentation.langchain")
            if openinference is not None:
                instrumentor = openinference.LangChainInstrumentor()
                # Asked for a span before it instruments, it would print to the app's output.
                if instrumentor.is_instrumented_by_opentelemetry:
                    self._keep_ids("openinference", instrumentor.get_span(run_id))
            for handler in handlers:
                known: Any = handler
                if isinstance(handler, _loaded_class("langfuse.langchain", "CallbackHandler")):
                    # It has no public getter: `last_trace_id` is that of any call in progress.
                    if (span := known._runs.get(run_id)) is not None:
                        self._ids["langfuse"] = span.trace_id, span.id
                elif isinstance(handler, _loaded_class(_OPENLLMETRY, "TraceloopCallbackHandler")):
                    self._keep_ids("openllmetry", getattr(known.spans.get(run_id), "span", None))
                elif isinstance(handler, _loaded_class(_LANGSMITH, "LangChainTracer")) and (
                    run := known.run_map.get(str(run_id))
                ):
                    self._ids["langsmith"] = str(run.trace_id), str(run.id)
        except Exception as error:  # noqa: BLE001 -- of the other library; the call goes on
            self._delivery.failure("capture (traces)", error)

    def ids(self) -> dict[TraceSource, tuple[str, str]]:
        """Return trace id and span id of the call's root, by source.

        The root's span is the one at the start, unless what was seen inside and at the end shows
        that this was a span around the call.
        """
        ids = {}
        for source in {**self._start, **self._inside, **self._end}:
            start, inside, end = (
                spans.get(source) for spans in (self._start, self._inside, self._end)
            )
            root = start or inside or end
            if inside is not None and inside == end:
                root = inside  # the tracer comes after us, and `start` is a span around the call
            elif inside is None and start and end and end.parent_id == start.span_id:
                root = end
            assert root is not None
            ids[source] = root.trace_id, root.span_id
        return ids | self._ids

    def _keep_ids(self, source: TraceSource, span: Any) -> None:
        """Keep the ids of the span that a tracer has for the call's root."""
        if (seen := _otel_span(span)) is not None:
            self._ids[source] = seen.trace_id, seen.span_id


def _loaded_class(module: str, name: str) -> Any:
    """Return a class if its module is imported; else `()`, of which no object is an instance."""
    return getattr(sys.modules.get(module), name, ())


def _otel_span(span: Any) -> _SeenSpan | None:
    """Read the ids of an OpenTelemetry span; None for one that is invalid or not sampled."""
    context = None if span is None else span.get_span_context()
    if context is None or not context.is_valid or not context.trace_flags.sampled:
        return None
    parent = getattr(span, "parent", None)
    return _SeenSpan(
        f"{context.trace_id:032x}",
        f"{context.span_id:016x}",
        None if parent is None else f"{parent.span_id:016x}",
    )
