"""What tools found, for the later turns in which a model is shown it again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

from rag_eval_integrations.capture._calls import Snapshot

_MOST = 1_024


class ToolResults:
    """The latest texts of tools with the documents in them; shared by all calls of a handler."""

    def __init__(self) -> None:
        # By hash: the texts themselves would hold the documents twice.
        self._latest: OrderedDict[int, tuple[str, list[Snapshot]]] = OrderedDict()

    def keep(self, name: str, text: str, documents: Sequence[Snapshot]) -> None:
        """Keep the documents in a tool's text; the least recently used text is dropped."""
        self._latest[hash(text)] = name, list(documents)
        if len(self._latest) > _MOST:
            with suppress(KeyError):  # another thread was faster
                self._latest.popitem(last=False)

    def lookup(self, text: str) -> tuple[str, list[Snapshot]] | None:
        """Return a tool's name and the documents in its text; None for any other text."""
        key = hash(text)
        with suppress(KeyError):
            self._latest.move_to_end(key)
        return self._latest.get(key)
