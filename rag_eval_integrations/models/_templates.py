"""Prompt templates of LangChain and LlamaIndex as prompts under test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models.completion import Message

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
}


class FrameworkTemplate(ABC):
    """A prompt under test that the framework itself renders, message by message."""

    _framework: ClassVar[str]

    def __init__(self, name: str, input_names: Iterable[str]) -> None:
        self.name = name
        self.input_names: Sequence[str] = tuple(input_names)
        shown = self.render(
            {input_name: f"{{{{{input_name}}}}}" for input_name in self.input_names}
        )
        self.text = "\n\n".join(message.content for message in shown)

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Render the template with these values.

        Raises:
            ConfigurationError: a value is missing, or a message is not text.
        """
        given = {name: values[name] for name in self.input_names if name in values}
        try:
            rendered = self._rendered(given)
        except (KeyError, ValueError, TypeError) as error:
            why = f"{self._framework} cannot render it: {type(error).__name__}: {error}"
            raise ConfigurationError("prompt", self.name, why) from error
        return tuple(self._message(kind, content) for kind, content in rendered)

    @abstractmethod
    def _rendered(self, given: dict[str, object]) -> Sequence[tuple[str, str]]:
        """Render the template: the kind and the text of each message."""

    def _message(self, kind: str, content: str) -> Message:
        role = _ROLES.get(kind)
        if role is None:
            raise ConfigurationError("prompt", self.name, f"has a message of the kind {kind!r}")
        return Message(role=role, content=content)
