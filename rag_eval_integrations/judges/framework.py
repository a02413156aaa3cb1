"""A judge over a framework's model: everything but the framework's own objects.

request ─▶ settings that the model has ─▶ the model, borrowed ─▶ Reply ─▶ Completion
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from rag_eval_integrations.errors import JudgeError
from rag_eval_integrations.judges.borrowed import Borrowed, answered
from rag_eval_integrations.judges.completion import (
    Choice,
    Completion,
    CompletionRequest,
    Token,
    finish_reason_of,
)
from rag_eval_integrations.judges.extras import Extras, fewer, left_out
from rag_eval_integrations.judges.openai.logprobs import tokens_of
from rag_eval_integrations.judges.reasoning import answer_in
from rag_eval_integrations.records import Usage

M = TypeVar("M")
R = TypeVar("R")


class Reply(NamedTuple):
    """One answer, as a framework's object has it."""

    written: str
    """What the model wrote, its reasoning included."""
    finished: object
    """The vendor's word for why it ended."""
    logprobs: object = None
    """In the shape that OpenAI documents."""
    tokens: Callable[[], tuple[Token, ...] | None] = lambda: None
    """Reads the framework's own list, where `logprobs` gives none."""
    refusal: str | None = None


class FrameworkJudge(ABC, Generic[M, R]):
    """Asks a model of type `M`, whose answers are of type `R`: a `Completer`.

    Settings that the model refuses are left out from then on; several answers that it does not
    give at once are asked for one by one.
    """

    _who: ClassVar[str]
    """Stands in warnings."""

    def __init__(
        self, borrowed: Borrowed[M], kind: str, *, model: str | None, name: str | None
    ) -> None:
        self._borrowed = borrowed
        self._extras = Extras()
        self.model = model
        self.name = name or (f"{kind}:{model}" if model else kind)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        Raises:
            JudgeUnavailableError: no answer; asking again may help.
            JudgeRejectedError: the model refuses the request itself.
            JudgeError: anything else that the framework raised.
        """
        while True:
            sent: dict[str, Any] = {}
            try:
                replies, requests = await self._replies(request, sent)
            except JudgeError as error:
                if not self._extras.learn(error, sent):
                    raise
                continue
            warnings = [*left_out(request, sent, self._who), *fewer(request, replies)]
            return Completion(
                choices=tuple(_choice(self._read(reply), sent, warnings) for reply in replies),
                usage=self._usage(replies, requests),
                model=self._answered_by(replies[0]) or self.model,
                warnings=tuple(dict.fromkeys(warnings)),
            )

    async def _replies(
        self, request: CompletionRequest, sent: dict[str, Any]
    ) -> tuple[list[R], int]:
        """Get all answers, and say how many requests that took; `sent` is filled in."""

        def settings(model: M) -> dict[str, Any]:
            sent.update(self._extras.of(request, self._settings(model)))
            return sent

        def sync(model: M) -> Sequence[R]:
            return self._ask(model, request, settings(model))

        async def native(model: M) -> Sequence[R]:
            return await self._aask(model, request, settings(model))

        first = await self._borrowed.ask(self.name, sync, native)
        missing = 0 if "n" in sent else request.n - len(first)
        others = await answered(self._borrowed.ask(self.name, sync, native) for _ in range(missing))
        return [reply for replies in (first, *others) for reply in replies], 1 + len(others)

    # --- the framework's part ---------------------------------------------------------------------

    @abstractmethod
    def _settings(self, model: M) -> Collection[str]:
        """Name the settings that a request may change."""

    @abstractmethod
    def _ask(self, model: M, request: CompletionRequest, sent: dict[str, Any]) -> Sequence[R]:
        """Ask once, by the sync method; `sent` are settings of this request."""

    @abstractmethod
    async def _aask(
        self, model: M, request: CompletionRequest, sent: dict[str, Any]
    ) -> Sequence[R]:
        """Ask once, by the async method."""

    @abstractmethod
    def _read(self, reply: R) -> Reply:
        """Read an answer."""

    @abstractmethod
    def _usage(self, replies: Sequence[R], requests: int) -> Usage:
        """Say what all answers took together."""

    def _answered_by(self, reply: R) -> str | None:
        """Name the model that answered, where the answer says it."""
        return None


def _choice(reply: Reply, sent: Mapping[str, Any], warnings: list[str]) -> Choice:
    answer = answer_in(reply.written)
    tokens = None
    if "logprobs" in sent:
        tokens = tokens_of(reply.logprobs, reply.written, answer.start, answer.text, warnings)
        if tokens is None:
            tokens = reply.tokens()
        if tokens is None:
            warnings.append("log-probabilities were asked for and accepted, but not given")
    return Choice(
        text=answer.text,
        finish_reason=finish_reason_of(reply.finished),
        tokens=tokens,
        refusal=reply.refusal,
    )
