"""Stage 1, process-wide: handlers that LangChain adds to every call by itself.

LangChain asks its configure hooks for a handler at every call. A context variable, which it
expects, is not seen in threads that the app starts plainly, and a hook cannot be taken back: so
ours are slots with the one method that is asked for, registered once, and used again and again.
"""

from __future__ import annotations

import threading
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler

_LOCK = threading.Lock()


class _Idle(BaseCallbackHandler):
    """Stands in an empty slot: LangChain asks twice, and would call None the second time."""

    run_inline = True
    ignore_llm = True
    ignore_chain = True
    ignore_agent = True
    ignore_retriever = True
    ignore_chat_model = True
    ignore_custom_event = True
    ignore_retry = True


class _Slot:
    """A configure hook: gives the handler that it holds."""

    def __init__(self, handler: BaseCallbackHandler) -> None:
        self.handler = handler

    def get(self) -> BaseCallbackHandler:
        """What LangChain calls at the start of every run."""
        return self.handler


_IDLE = _Idle()
_SLOTS: list[_Slot] = []


def attach(handler: BaseCallbackHandler) -> None:
    """Have LangChain add the handler to every call of the process; once, however often asked."""
    # Its module takes a second to load, which only an app that attaches globally pays.
    from langchain_core.tracers.context import register_configure_hook  # noqa: PLC0415

    with _LOCK:
        if any(slot.handler is handler for slot in _SLOTS):
            return
        for slot in _SLOTS:
            if slot.handler is _IDLE:
                slot.handler = handler
                return
        slot = _Slot(handler)
        register_configure_hook(cast(Any, slot), inheritable=True)
        _SLOTS.append(slot)


def detach(handler: BaseCallbackHandler) -> None:
    """Take the handler out; calls that have begun go on with it."""
    with _LOCK:
        for slot in _SLOTS:
            if slot.handler is handler:
                slot.handler = _IDLE
