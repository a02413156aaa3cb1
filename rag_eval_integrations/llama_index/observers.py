"""Stage 1, what LlamaIndex's dispatcher is given: it calls these two for every span and event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

from rag_eval_integrations.llama_index.recorder import WANTED

if TYPE_CHECKING:
    from rag_eval_integrations.llama_index.recorder import Recorder


class SpanObserver(BaseSpanHandler[BaseSpan]):
    """Hands spans on; LlamaIndex's own bookkeeping of spans is not used."""

    # The recorder's own methods, called without a step in between: some 28 times a query. In
    # slots, because a pydantic model's private attributes cost 1 µs a read.
    __slots__ = ("span_drop", "span_enter", "span_exit")

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        object.__setattr__(self, "span_enter", recorder.enter)
        object.__setattr__(self, "span_exit", recorder.exit)
        object.__setattr__(self, "span_drop", recorder.drop)

    @classmethod
    def class_name(cls) -> str:
        """Name it in traces."""
        return "RagEvalSpanHandler"

    def new_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used; the base class asks for it."""
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used; the base class asks for it."""
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None:
        """Not used; the base class asks for it."""
        return None


class EventObserver(BaseEventHandler):
    """Hands on the few events that are of use: prompts, and what a chat engine streams."""

    __slots__ = ("recorder",)
    if TYPE_CHECKING:
        recorder: Recorder

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        object.__setattr__(self, "recorder", recorder)

    @classmethod
    def class_name(cls) -> str:
        """Name it in traces."""
        return "RagEvalEventHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """Look at an event."""
        name = type(event).__name__
        if name in WANTED:
            self.recorder.event(name, event)
