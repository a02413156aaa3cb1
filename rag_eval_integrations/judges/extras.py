"""What a framework's model is asked for beside its messages, where it has a setting of that name.

Frameworks have no common word for log-probabilities or several answers, but models that speak
OpenAI's dialect declare OpenAI's own: `logprobs` with `top_logprobs`, `n`, `seed`, `temperature`.
Requests for log-probabilities or samples are the ones that change settings; all others are
answered by the model as its owner has set it.
"""

from __future__ import annotations

from collections.abc import Collection, Sized
from typing import Any

from rag_eval_integrations.errors import JudgeError, JudgeUnavailableError
from rag_eval_integrations.judges.completion import CompletionRequest

_LOGPROBS = ("logprobs", "top_logprobs")


class Extras:
    """The settings of one judge's requests, and which of them its model has refused."""

    def __init__(self) -> None:
        self._refused: frozenset[str] = frozenset()

    def of(self, request: CompletionRequest, known: Collection[str]) -> dict[str, Any]:
        """Choose what to send.

        Args:
            request: what is asked for.
            known: settings that the model declares.
        """
        wanted: dict[str, Any] = {}
        if request.top_logprobs:
            wanted |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        if request.n > 1:
            wanted["n"] = request.n
        if request.seed is not None:
            wanted["seed"] = request.seed
        if wanted and request.temperature is not None:
            wanted["temperature"] = request.temperature
        if not set(_LOGPROBS) <= set(known):
            wanted = {name: value for name, value in wanted.items() if name not in _LOGPROBS}
        sent = {
            name: value
            for name, value in wanted.items()
            if name in known and name not in self._refused
        }
        if request.n > 1 and "n" not in sent:  # asked one by one: one seed would give one answer
            sent.pop("seed", None)
        return sent

    def learn(self, error: JudgeError, sent: Collection[str]) -> bool:
        """Leave out what a refusal names, else all that was sent; False when nothing is left."""
        if isinstance(error, JudgeUnavailableError) or not sent:
            return False
        status = getattr(error, "status", None)
        if status is not None and status not in (400, 403, 422):
            return False
        words = str(error)
        named = {name for name in sent if name in words} or set(sent)
        if named & set(_LOGPROBS):
            named |= set(_LOGPROBS)
        self._refused |= named
        return True


def left_out(request: CompletionRequest, sent: Collection[str], who: str) -> tuple[str, ...]:
    """Say what was asked for and is not in the model's settings."""
    asked = {
        "log-probabilities": (request.top_logprobs, "logprobs"),
        "a seed": (request.seed is not None, "seed"),
    }
    return tuple(
        f"{who} was not asked for {name}"
        for name, (wanted, setting) in asked.items()
        if wanted and setting not in sent
    )


def fewer(request: CompletionRequest, replies: Sized) -> tuple[str, ...]:
    """Say where fewer answers came than were asked for."""
    if len(replies) >= request.n:
        return ()
    return (f"{request.n} answers were asked for and {len(replies)} given",)
