"""Stage 1, LangGraph's own events: it tells of pauses at breakpoints, but only its own handlers.

`interrupt()` raises in its node, which any handler sees. `interrupt_before=[…]` does not: the graph
ends as if it was done. Newer LangGraphs (1.2 does) tell handlers of a class of theirs, if given in
the graph's config; where it is loaded, ours become such, and it need not be imported here.
"""

from __future__ import annotations

import sys

from langchain_core.callbacks import BaseCallbackHandler


def tell_of_pauses(handler: BaseCallbackHandler) -> bool:
    """Have LangGraph call the handler's `on_interrupt`; whether it is loaded and able to."""
    base = getattr(sys.modules.get("langgraph.callbacks"), "GraphCallbackHandler", None)
    if base is None:
        return False
    if not isinstance(handler, base):
        handler.__class__ = _joined(type(handler), base)
    return True


_JOINED: dict[type, type] = {}


def _joined(kind: type, base: type) -> type:
    if kind not in _JOINED:
        about = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
        _JOINED[kind] = type(kind.__name__, (kind, base), about)
    return _JOINED[kind]
