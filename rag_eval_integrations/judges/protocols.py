"""Who can be asked. A `Completer` answers messages, a `Labeller` labels a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rag_eval_integrations.judges.completion import Completion, CompletionRequest
    from rag_eval_integrations.records import Labelling, SentencizedCall


@runtime_checkable
class Completer(Protocol):
    """A model that answers messages.

    Implementations may be called concurrently, from one loop at a time. What the endpoint does
    not know is left out and said in `Completion.warnings`.
    """

    @property
    def name(self) -> str:
        """Name stamped on every score, such as `openai:gpt-4o-mini`."""
        ...

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        Raises:
            JudgeUnavailableError: no answer; asking again may help.
            JudgeRejectedError: the request itself is refused; asking again is no use.
        """
        ...


@runtime_checkable
class Labeller(Protocol):
    """A judge that labels sentences: which are relevant, utilized, supported.

    Implementations may be called concurrently. What they cannot judge is a `Labelling` with
    `labels=None` and the reason; what they raise becomes an `Evaluation.error`.
    """

    @property
    def name(self) -> str:
        """Name stamped on every score."""
        ...

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call."""
        ...
