"""Views of the calls that a handler, a decorator or a wrapper of any framework delivered."""

from __future__ import annotations

from typing import Any

from rag_eval_integrations.records import Capture, Evaluation, RagCall


def capture_of(call: RagCall | Evaluation | None) -> Capture:
    assert call is not None
    assert call.capture is not None
    return call.capture


def substance(call: RagCall) -> dict[str, Any]:
    """A record without what differs from run to run."""
    content = call.model_dump(exclude={"started_at"})
    del content["capture"]["run_id"], content["capture"]["latency_s"]
    return content


class CapturedCalls:
    """The calls that were delivered, in their order."""

    def __init__(self) -> None:
        self.calls: list[RagCall] = []

    @property
    def only(self) -> RagCall:
        (call,) = self.calls
        return call

    @property
    def how(self) -> Capture:
        return capture_of(self.only)

    @property
    def statuses(self) -> list[str]:
        """How the calls ended."""
        return [capture_of(call).status for call in self.calls]

    @property
    def questions(self) -> list[str]:
        return [call.question for call in self.calls]

    @property
    def responses(self) -> list[str | None]:
        return [call.response for call in self.calls]

    @property
    def ended(self) -> tuple[str | None, str]:
        """The answer, and what became of the call."""
        return self.only.response, self.how.status

    @property
    def substances(self) -> list[dict[str, Any]]:
        return [substance(call) for call in self.calls]

    @property
    def ids(self) -> list[str | None]:
        """Ids of the documents."""
        return [document.id for document in self.only.documents]

    @property
    def left_out(self) -> list[str | None]:
        """Ids of the documents that did not reach the prompt."""
        return [document.id for document in self.how.not_in_prompt]

    @property
    def found(self) -> tuple[list[str | None], str, list[str | None]]:
        return self.ids, self.how.documents_from, self.left_out
