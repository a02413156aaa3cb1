"""Stage 1, on and off LlamaIndex's root dispatcher, which belongs to the whole process.

One lock for all of our handlers: the dispatcher's lists are replaced, and of two handlers that do
so at once, in two threads, one would be lost.
"""

from __future__ import annotations

import threading

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler

# Reentrant, and no other lock is taken inside: a garbage collection can end a stream, and with it
# a handler's last call, at any place, also where a recorder's lock is held.
CHANGING = threading.RLock()


def attach(spans: BaseSpanHandler[BaseSpan], events: BaseEventHandler) -> None:
    """Put handlers on the root dispatcher; does nothing where they are."""
    root = get_dispatcher()
    with CHANGING:
        # New lists, so that a thread that goes through the old ones is not disturbed.
        if not any(one is spans for one in root.span_handlers):
            root.span_handlers = [*root.span_handlers, spans]
        if not any(one is events for one in root.event_handlers):
            root.event_handlers = [*root.event_handlers, events]


def detach(spans: BaseSpanHandler[BaseSpan], events: BaseEventHandler) -> None:
    """Take handlers off the root dispatcher."""
    root = get_dispatcher()
    with CHANGING:
        root.span_handlers = [one for one in root.span_handlers if one is not spans]
        root.event_handlers = [one for one in root.event_handlers if one is not events]
