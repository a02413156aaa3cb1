"""Stage 1 for LlamaIndex: run the user's own extractors `question=`, `documents=`, `response=`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rag_eval_integrations.capture._calls import Snapshot
from rag_eval_integrations.capture._hooks import Hooks, documents, text_or_none
from rag_eval_integrations.llama_index._values import document_snapshot, fields_of, nodes_of

QuestionHook = Callable[[Mapping[str, Any]], str]
"""Returns the question, from the arguments of the outermost method."""
DocumentsHook = Callable[[Any], Iterable[Any] | None]
"""Returns the documents, from its result; None leaves them to the handler."""
ResponseHook = Callable[[Any], str | None]
"""Returns the answer, from its result or the text of a stream; None leaves it to the handler."""


class LlamaIndexHooks(Hooks):
    """The user's own extractors; if one fails, the call is read without it."""

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """Run the question hook on an entry method's arguments; None without a result."""
        if "question" in self and "start_event" in arguments:
            arguments = fields_of(arguments["start_event"])
        return self.run("question", arguments, read=text_or_none, empty=None)

    def documents(self, result: object) -> list[Snapshot] | None:
        """Run the documents hook on an entry method's result; None without a result."""
        return self.run("documents", result, read=_documents, empty=None)

    def response(self, result: object) -> str | None:
        """Run the response hook on a result or a stream's text; None without an answer."""
        return self.run("response", result, read=text_or_none, empty=None)


def _documents(value: object) -> list[Snapshot] | None:
    return documents(value, _document)


def _document(item: Any) -> Snapshot:
    """Copy a node, scored or not."""
    if scored := nodes_of([item]):
        return document_snapshot(*scored[0])
    if callable(getattr(item, "get_content", None)):
        return document_snapshot(item, None)
    raise TypeError(f"{type(item).__name__} is not a document")
