"""Stage 1 for LangChain: run the user's own extractors `question=`, `documents=`, `response=`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rag_eval_integrations.capture._calls import Snapshot
from rag_eval_integrations.capture._hooks import Hooks, documents, text, text_or_none
from rag_eval_integrations.langchain._documents import snapshot

QuestionHook = Callable[[Any], str]
"""Returns the question, from the root's inputs."""
DocumentsHook = Callable[[Any, Any], Iterable[object] | None]
"""Returns the documents, from the root's inputs and outputs; None for the usual capture."""
ResponseHook = Callable[[Any], str | None]
"""Returns the response, from the root's outputs."""

FAILED = "rag_eval_hook_failed"
"""Key of `Capture.metadata` under which the failed hooks of a call are listed."""


class HooksOfCall:
    """The hooks as run on one call; a failure is recorded, and the hook's field stays empty."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.failed: list[str] = []

    @property
    def has_question(self) -> bool:
        """Whether a hook of the user returns the question."""
        return "question" in self._hooks

    def question(self, inputs: object) -> str | None:
        """Run the question hook; None without one, empty if it fails."""
        return self._hooks.run("question", inputs, read=text, empty="", failed=self.failed)

    def documents(self, inputs: object, outputs: object) -> list[Snapshot] | None:
        """Run the documents hook; None without one or if it returned None, empty if it fails."""
        return self._hooks.run(
            "documents", inputs, outputs, read=_documents, empty=[], failed=self.failed
        )

    def response(self, outputs: object) -> tuple[str | None] | None:
        """Run the response hook; None without one, else a tuple of its result, None if it fails."""
        return self._hooks.run(
            "response", outputs, read=_response, empty=(None,), failed=self.failed
        )


def _response(value: object) -> tuple[str | None]:
    return (text_or_none(value),)


def _documents(value: object) -> list[Snapshot] | None:
    return documents(value, _document)


def _document(item: Any) -> Snapshot:
    """Copy a document of LangChain, as an object or a dict, or a `(document, score)` pair."""
    document, score = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    content = document.get("page_content") if isinstance(document, dict) else None
    if not isinstance(content or getattr(document, "page_content", None), str):
        raise TypeError(f"{type(item).__name__} is not a document")
    return snapshot(document, score)
