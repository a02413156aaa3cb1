"""Say once that calls look like RAG and cannot be captured; take a tool's text as a document."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Literal

from rag_eval_integrations._answer import fields_of
from rag_eval_integrations._visible import LogOnce
from rag_eval_integrations.capture._delivery import is_async
from rag_eval_integrations.errors import ConfigurationError

ToolDocuments = Collection[str] | Callable[[str], bool]
"""Names of tools, or a function that takes a tool's name, whose plain text is a document."""


def takes_text_of(tool_documents: ToolDocuments | None) -> Callable[[str], bool] | None:
    """Return the function that decides by a tool's name whether its text is a document.

    Only None gives None. A function is returned as it is; an empty collection gives one that is
    always False.

    Raises:
        ConfigurationError: `tool_documents` is neither names nor a plain function.
    """
    if tool_documents is None:
        return None
    if callable(tool_documents):
        if is_async(tool_documents):
            raise ConfigurationError("tool_documents", tool_documents, "is async; use a function")
        return tool_documents
    if isinstance(tool_documents, str | bytes) or not isinstance(tool_documents, Collection):
        hint = 'should be names of tools, such as ("search",), or a function of a name'
        raise ConfigurationError("tool_documents", tool_documents, hint)
    if not all(isinstance(name, str) for name in tool_documents):
        raise ConfigurationError("tool_documents", tool_documents, "should hold names of tools")
    return frozenset(tool_documents).__contains__


# --- Calls that look like RAG


Kind = Literal["prompt", "retriever", "root", "tool", "turn"]

_SEARCHES = re.compile(
    r"search|retriev|look_?up|knowledge|vector|(?:^|_)(?:rag|kb|faq|docs?|documents?)(?:_|$)"
    r"|query_(?:engine|index|docs)|_index$",
    re.IGNORECASE,
)
_WORDS = (
    "context",
    "document",
    "passage",
    "excerpt",
    "snippet",
    "sources",
    "knowledge base",
    "retrieved",
    "reference text",
    "reference material",
)
_HEADING = re.compile(r"s?\b[^.?!\n]{0,60}(?:[:>]|\n)\s*\S")
_GRADER = re.compile(
    r"\bgrader\b|\bgrading\b|\bgrade the\b|\bassess\w* (?:the )?relevan"
    r"|\b(?:is|are|if)\b.{0,40} relevant to\b|\byes\W{1,3}or\W{1,3}no\b",
    re.IGNORECASE,
)
_MOST = 8_000  # characters of a prompt that are looked at
_MOST_NAMES = 20
_MOST_NAME = 40  # characters
_MOST_PROMPTS = 8
_MOST_PLACES = 8  # of one word
_LEAST = 40  # characters behind such a heading

_THREADS = (
    ". What runs in a thread pool needs the context of the app, `contextvars.copy_context().run`"
)
_MESSAGES: dict[Kind, str] = {
    "root": "%r answered, and nothing that runs in it reached the handler: it is not evaluated. "
    'Pass the handler to the call, config={"callbacks": [handler]}, since a constructor does not '
    f"pass it on; capture plain code with `capture_call`{_THREADS}",
    "tool": "a run ended in which the tool %r was called, but no retriever ran and no documents "
    "passed: it is not evaluated. If the tool finds documents, have it return them, or give the "
    f"handler tool_documents=(%r,){_THREADS}",
    "turn": "a run ended in which a model was given what the tool %r had found in an earlier turn, "
    "but no retriever ran and no documents passed: it is not evaluated. Use a hook `documents=`, "
    "or `capture_call`",
    "prompt": "a run ended in which a model was given what looks like documents (%r), but no "
    "retriever ran and no documents passed: it is not evaluated. Use a retriever, a hook "
    f"`documents=`, or `capture_call`{_THREADS}",
    "retriever": "%r ran by itself, and not as part of a chain, a query or a run: it is not "
    "evaluated. Where plain code retrieves and then asks a model, capture both with `capture_call`"
    f"{_THREADS}",
}


class Uncaptured:
    """Counts the runs that look like RAG calls and could not be captured.

    The first of each kind is logged, in one line.

    Args:
        logger: the framework's logger.
        handler: full name of the handler, whose docstring says what is not captured.
    """

    def __init__(self, logger: logging.Logger, handler: str) -> None:
        self._runs = LogOnce(logger, logging.WARNING)
        self._unread = LogOnce(logger, logging.WARNING)
        self._handler = handler

    @property
    def count(self) -> int:
        """Number of runs that could not be captured."""
        return self._runs.count

    def note(self, kind: Kind, name: str) -> None:
        """Count a run that could not be captured; log the first of each kind.

        Args:
            kind: what was seen.
            name: name of the tool or of the retriever, or the words of the prompt.
        """
        message = _MESSAGES[kind]
        names = [name] * message.count("%r")
        self._runs.log(
            kind,
            message + ". `python -m pydoc %s` says what is not captured. Further runs of this kind "
            "are counted in `handler.uncaptured`, and not logged.",
            *names,
            self._handler,
        )

    def note_unread(self, result: object) -> None:
        """Log once that no answer could be identified in the result of a run."""
        names = ", ".join(
            [repr(name)[:_MOST_NAME] for name in islice(fields_of(result), _MOST_NAMES)]
        )
        self._unread.log(
            "response",
            "a run returned no answer that could be told among the fields of its %s (%s), though "
            "models wrote texts: its response is None, and no score of a response is made. Say "
            "where it is by the handler's hook response=. Further such runs are not logged.",
            type(result).__name__,
            names or "it has none",
        )

    def note_answered(
        self, tools: Iterable[str], prompts: Iterable[str], earlier: Mapping[str, bool]
    ) -> None:
        """Count a run in which a model answered, if there are signs of a retrieval.

        The first sign counts: a tool whose name says search, documents of an earlier turn's tool, a
        heading in a prompt.

        Args:
            tools: names of the tools that were called.
            prompts: prompts of the models.
            earlier: names of the tools whose earlier results the model was given, and whether these
                are known to be documents.
        """
        name = next((tool for tool in tools if _SEARCHES.search(tool)), None)
        if name is not None:
            self.note("tool", name)
            return
        for name, sure in earlier.items():
            if sure or _SEARCHES.search(name):
                self.note("turn", name)
                return
        for prompt in islice(prompts, _MOST_PROMPTS):
            if heading := _heading(prompt):
                self.note("prompt", heading)
                return


def ask_a_question(prompts: Iterable[str]) -> bool:
    """Return whether one of the prompts asks a question, and not for a verdict."""
    return any(
        ("?" in prompt or "question" in prompt[:_MOST].lower()) and not is_grader_prompt(prompt)
        for prompt in prompts
    )


def is_grader_prompt(prompt: str) -> bool:
    """Return whether a prompt asks for a verdict on documents or an answer."""
    return _GRADER.search(prompt[:_MOST]) is not None


def _heading(prompt: str) -> str | None:
    """Return a prompt's heading, such as "Context:", that documents seem to follow; else None."""
    text = prompt[:_MOST].lower()
    for word in _WORDS:
        end = 0
        for _ in range(_MOST_PLACES):
            begin = text.find(word, end)
            if begin < 0:
                break
            end = begin + len(word)
            heading = _HEADING.match(text, end)
            if heading is not None and len(prompt) - heading.end() >= _LEAST:
                return " ".join(prompt[begin : heading.end() - 1].split())
    return None
