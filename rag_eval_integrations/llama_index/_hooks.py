"""What users say about their own app where its objects do not tell."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.capture._calls import Seen
from rag_eval_integrations.capture._delivery import check_hooks
from rag_eval_integrations.llama_index._values import fields_of, given_documents

QuestionHook = Callable[[Mapping[str, Any]], str]
DocumentsHook = Callable[[Any], Iterable[Any] | None]
ResponseHook = Callable[[Any], str | None]
OnFailure = Callable[[str, BaseException], None]

T = TypeVar("T")


class Hooks:
    """The user's functions. One that fails is reported, and counts as not given for that call.

    Raises:
        ConfigurationError: one cannot be called, or would have to be awaited; names it.
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
        """What the question hook makes of an entry method's arguments."""
        hook = self._question
        if hook is None:
            return None
        if "start_event" in arguments:
            arguments = fields_of(arguments["start_event"])
        return self._asked("question", lambda: _string(hook(arguments)))

    def documents(self, result: object) -> list[Seen] | None:
        """What the documents hook finds in an entry method's result."""
        hook = self._documents
        if hook is None:
            return None

        def ask() -> list[Seen] | None:
            given = hook(result)
            return None if given is None else given_documents(given)

        return self._asked("documents", ask)

    def response(self, result: object) -> str | None:
        """What the response hook finds in an entry method's result, or in a stream's text."""
        hook = self._response
        return None if hook is None else self._asked("response", lambda: _string(hook(result)))

    def _asked(self, name: str, ask: Callable[[], T]) -> T | None:
        try:
            with suppress_capture():
                return ask()
        except (Exception, CancelledError) as error:  # noqa: BLE001 -- the app's call goes on
            self._on_failure(f"the {name} hook", error)
            return None


def _string(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"should return a string, not {type(value).__name__}")
    return value
