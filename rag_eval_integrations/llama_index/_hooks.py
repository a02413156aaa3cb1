"""Stage 1 for LlamaIndex: run the user's own extractors `question=`, `documents=`, `response=`."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.capture._calls import Snapshot
from rag_eval_integrations.capture._delivery import check_hooks
from rag_eval_integrations.llama_index._values import fields_of, given_documents

QuestionHook = Callable[[Mapping[str, Any]], str]
"""Returns the question, from the arguments of the outermost method."""
DocumentsHook = Callable[[Any], Iterable[Any] | None]
"""Returns the documents, from its result; None leaves them to the handler."""
ResponseHook = Callable[[Any], str | None]
"""Returns the answer, from its result or the text of a stream; None leaves it to the handler."""
OnFailure = Callable[[str, BaseException], None]
"""Counts a failure: its place and the exception."""

T = TypeVar("T")


class Hooks:
    """The user's own extractors; if one fails, that is reported, and the call is read without it.

    Args:
        on_failure: called with every failure.
        question: returns the question.
        documents: returns the documents.
        response: returns the answer.

    Raises:
        ConfigurationError: a hook cannot be called, or is async; the message names it.
    """

    def __init__(
        self,
        on_failure: OnFailure,
        *,
        question: QuestionHook | None = None,
        documents: DocumentsHook | None = None,
        response: ResponseHook | None = None,
    ) -> None:
        check_hooks(question=question, documents=documents, response=response)
        self.any = not (question is documents is response is None)
        self._on_failure = on_failure
        self._question = question
        self._documents = documents
        self._response = response

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """Run the question hook on an entry method's arguments; None without a result."""
        hook = self._question
        if hook is None:
            return None
        if "start_event" in arguments:
            arguments = fields_of(arguments["start_event"])
        return self._asked("question", lambda: _string(hook(arguments)))

    def documents(self, result: object) -> list[Snapshot] | None:
        """Run the documents hook on an entry method's result; None without a result."""
        hook = self._documents
        if hook is None:
            return None

        def ask() -> list[Snapshot] | None:
            given = hook(result)
            return None if given is None else given_documents(given)

        return self._asked("documents", ask)

    def response(self, result: object) -> str | None:
        """Run the response hook on a result or a stream's text; None without an answer."""
        hook = self._response
        return None if hook is None else self._asked("response", lambda: _string(hook(result)))

    def _asked(self, name: str, ask: Callable[[], T]) -> T | None:
        try:
            with suppress_capture():
                return ask()
        except (Exception, CancelledError) as error:  # noqa: BLE001 -- the app's call goes on
            self._on_failure(f"the `{name}` hook", error)
            return None


def _string(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"should return a string, not {type(value).__name__}")
    return value
