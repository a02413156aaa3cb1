"""Stage 1 for LangChain: run the user's own extractors `question=`, `documents=`, `response=`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.capture._calls import Snapshot
from rag_eval_integrations.capture._delivery import TargetDelivery, check_hooks
from rag_eval_integrations.langchain._documents import snapshot
from rag_eval_integrations.langchain._values import plain
from rag_eval_integrations.records import Document

QuestionHook = Callable[[Any], str]
"""Returns the question, from the root's inputs."""
DocumentsHook = Callable[[Any, Any], Iterable[object] | None]
"""Returns the documents, from the root's inputs and outputs; None for the usual capture."""
ResponseHook = Callable[[Any], str | None]
"""Returns the response, from the root's outputs."""

FAILED = "rag_eval_hook_failed"
"""Key of `Capture.metadata` under which the failed hooks of a call are listed."""

T = TypeVar("T")


class Hooks:
    """The user's own extractors; each is optional.

    Raises:
        ConfigurationError: a hook cannot be called, or is async; the message names it.
    """

    def __init__(
        self,
        question: QuestionHook | None,
        documents: DocumentsHook | None,
        response: ResponseHook | None,
        delivery: TargetDelivery,
    ) -> None:
        check_hooks(question=question, documents=documents, response=response)
        self.question = question
        self.documents = documents
        self.response = response
        self._delivery = delivery

    def __bool__(self) -> bool:
        return any((self.question, self.documents, self.response))


class HooksOfCall:
    """The hooks as run on one call; a failure is recorded, and the hook's field stays empty."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self.failed: list[str] = []

    @property
    def has_question(self) -> bool:
        """Whether a hook of the user returns the question."""
        return self._hooks.question is not None

    def question(self, inputs: object) -> str | None:
        """Run the question hook; None without one, empty if it fails."""
        hook = self._hooks.question
        return None if hook is None else self._run("question", lambda: _text(hook(inputs)), "")

    def documents(self, inputs: object, outputs: object) -> list[Snapshot] | None:
        """Run the documents hook; None without one or if it returned None, empty if it fails."""
        hook = self._hooks.documents
        if hook is None:
            return None
        nothing: list[Snapshot] | None = []
        return self._run("documents", lambda: _documents(hook(inputs, outputs)), nothing)

    def response(self, outputs: object) -> tuple[str | None] | None:
        """Run the response hook; None without one, else a tuple of its result, None if it fails."""
        hook = self._hooks.response
        if hook is None:
            return None
        nothing: tuple[str | None] = (None,)
        return self._run("response", lambda: (_text_or_none(hook(outputs)),), nothing)

    def _run(self, name: str, read: Callable[[], T], empty: T) -> T:
        try:
            with suppress_capture():
                return read()
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- the app's call goes on
            self.failed.append(name)
            self._hooks._delivery.failure(f"the `{name}` hook", error)
            return empty


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"should return a string, not {type(value).__name__}")
    return plain(value)


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _documents(value: object) -> list[Snapshot] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"should return a list of documents or None, not {type(value).__name__}")
    return [_document(item) for item in value]


def _document(item: object) -> Snapshot:
    """Read a string, a `Document` of either kind, or a `(document, score)` pair."""
    if isinstance(item, str):
        return Snapshot(plain(item), None, {}, None)
    if isinstance(item, Document):
        return Snapshot(item.text, item.id, item.metadata, item.score)
    document, score = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    text = document.get("page_content") if isinstance(document, dict) else None
    if not isinstance(text or getattr(document, "page_content", None), str):
        raise TypeError(f"{type(item).__name__} is not a document")
    return snapshot(document, score)
