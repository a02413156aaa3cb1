"""Models of LangChain and LlamaIndex as `Model`s: all that does not depend on the framework.

    request ─▶ Extras: settings the model has ─▶ Borrowed: call the model ─▶ Reply ─▶ Completion

`FrameworkModel` is the base class of both adapters. `Borrowed` calls the user's model object
without touching the app's event loop; prompts under test use it as well. `FrameworkTemplate` is
the base class of prompts under test that the frameworks render.
"""

from __future__ import annotations

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence, Sized
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from rag_eval_integrations._contain import contained
from rag_eval_integrations._loop import Threads
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeOutputError,
    JudgeUnavailableError,
)
from rag_eval_integrations.models._failures import judge_error
from rag_eval_integrations.models._reading import answer_in, tokens_of
from rag_eval_integrations.models.completion import (
    Choice,
    Completion,
    CompletionRequest,
    Message,
    ModelBase,
    Token,
    finish_reason_of,
)
from rag_eval_integrations.records import Usage

M = TypeVar("M")
R = TypeVar("R")
T = TypeVar("T")


class Reply(NamedTuple):
    """One answer, read from a framework's object."""

    text: str
    """The model's text, its reasoning included."""
    finished: object
    """The vendor's finish reason."""
    logprobs: object = None
    """In the shape that OpenAI documents."""
    tokens: Callable[[], tuple[Token, ...] | None] = lambda: None
    """Reads the framework's own list of tokens when `logprobs` has none."""
    refusal: str | None = None


class FrameworkModel(ModelBase, Generic[M, R]):
    """Asks a framework's model of type `M`, whose answers have the type `R`.

    Settings that the model refuses are not sent any more. A model that cannot return several
    answers at once is asked once per answer.
    """

    _who: ClassVar[str]
    """The model in the words of warnings."""

    def __init__(
        self, borrowed: Borrowed[M], kind: str, *, model: str | None, name: str | None
    ) -> None:
        self._borrowed = borrowed
        self._extras = Extras()
        self.model = model
        self.name = name or (f"{kind}:{model}" if model else kind)

    async def complete(self, request: CompletionRequest) -> Completion:
        """Answer a request.

        A setting that the model refuses is left out, and the request is made again. Fewer answers
        than requested and settings that were not sent are warnings of the completion.

        Raises:
            JudgeUnavailableError: no answer; a retry may help.
            JudgeRejectedError: the model refuses the request itself.
            JudgeError: any other exception of the framework.
        """
        while True:
            sent: dict[str, Any] = {}
            try:
                replies, requests = await self._replies(request, sent)
            except JudgeError as error:
                if not self._extras.learn(error, sent):
                    raise
                continue
            warnings = [*left_out(request, sent, self._who), *fewer_answers(request, replies)]
            return Completion(
                choices=tuple(_choice(self._read(reply), sent, warnings) for reply in replies),
                usage=self._usage(replies, requests),
                model=self._answered_by(replies[0]) or self.model,
                warnings=tuple(dict.fromkeys(warnings)),
            )

    async def _replies(
        self, request: CompletionRequest, sent: dict[str, Any]
    ) -> tuple[list[R], int]:
        """Return all answers and the number of requests; fill in `sent`.

        Where `n` could not be sent, the missing answers are asked for one by one, at once; those
        that fail with `JudgeUnavailableError` are dropped.
        """

        def settings(model: M) -> dict[str, Any]:
            """Note and return the settings that are sent."""
            sent.update(self._extras.of(request, self._settings(model)))
            return sent

        def sync(model: M) -> Sequence[R]:
            """Make the request by the model's sync method."""
            return self._ask(model, request, settings(model))

        async def native(model: M) -> Sequence[R]:
            """Make the request by the model's async method."""
            return await self._aask(model, request, settings(model))

        first = await self._borrowed.ask(self.name, sync, native)
        if not first:
            raise JudgeOutputError(f"{self.name} gave no answer", "")
        missing = 0 if "n" in sent else request.n - len(first)
        others = await answered(self._borrowed.ask(self.name, sync, native) for _ in range(missing))
        return [reply for replies in (first, *others) for reply in replies], 1 + len(others)

    def not_sent(self, request: CompletionRequest) -> tuple[str, ...]:
        """Name the settings of a request that the model does not have, and `images`.

        Where the model is made per loop, every setting is named, since none is known before.
        """
        known = () if self._borrowed.model is None else self._settings(self._borrowed.model)
        asked = super().not_sent(request)
        return tuple(name for name in asked if name not in known)

    # --- Implemented for each framework

    @abstractmethod
    def _settings(self, model: M) -> Collection[str]:
        """Return the names of the settings that a request may change."""

    @abstractmethod
    def _ask(self, model: M, request: CompletionRequest, sent: dict[str, Any]) -> Sequence[R]:
        """Make one request by the sync method, with the settings in `sent`."""

    @abstractmethod
    async def _aask(
        self, model: M, request: CompletionRequest, sent: dict[str, Any]
    ) -> Sequence[R]:
        """Make one request by the async method, with the settings in `sent`."""

    @abstractmethod
    def _read(self, reply: R) -> Reply:
        """Read an answer."""

    @abstractmethod
    def _usage(self, replies: Sequence[R], requests: int) -> Usage:
        """Return the usage of all answers together."""

    def _answered_by(self, reply: R) -> str | None:
        """Return the name of the model that answered; None if the answer does not have it.

        Always None here; a framework whose answers name their model overrides it.
        """
        return None


_ENDED = ("finish_reason", "stop_reason", "done_reason", "stopReason")
"""Names of why an answer ended: OpenAI's, Anthropic's, Ollama's and Bedrock's."""


def finished_in(metadata: Mapping[str, Any]) -> Any:
    """Return the finish reason in an answer's metadata, in its vendor's words; None without."""
    return next((metadata[name] for name in _ENDED if metadata.get(name)), None)


def _choice(reply: Reply, sent: Mapping[str, Any], warnings: list[str]) -> Choice:
    """Read a framework's answer as a `Choice`: without reasoning, with requested tokens.

    Adds to `warnings` when log-probabilities were asked for and none came.
    """
    answer = answer_in(reply.text)
    tokens = None
    if "logprobs" in sent:
        tokens = tokens_of(reply.logprobs, reply.text, answer.start, answer.text, warnings)
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


_LOGPROBS = ("logprobs", "top_logprobs")


class Extras:
    """Request settings besides messages, without those that the model has refused."""

    def __init__(self) -> None:
        self._refused: frozenset[str] = frozenset()

    def of(self, request: CompletionRequest, known: Collection[str]) -> dict[str, Any]:
        """Return the settings to send.

        Only what the model declares and has not refused: log-probabilities, `n` above 1, the seed,
        `parameters`, and the temperature where one of the first three is wanted. The two settings
        of log-probabilities are sent together or not at all. Where several answers cannot be asked
        for at once, no seed is sent.

        Args:
            request: the request.
            known: names of settings that the model declares.
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
        wanted |= request.parameters
        if not set(_LOGPROBS) <= set(known):
            wanted = {name: value for name, value in wanted.items() if name not in _LOGPROBS}
        sent = {
            name: value
            for name, value in wanted.items()
            if name in known and name not in self._refused
        }
        if request.n > 1 and "n" not in sent:  # asked one by one: one seed would give equal answers
            sent.pop("seed", None)
        return sent

    def learn(self, error: JudgeError, sent: Collection[str]) -> bool:
        """Stop sending what a refusal names, or all that was sent; False if it cannot help.

        False for an outage, no answer, when nothing was sent, and for a status other than 400, 403
        and 422; another error without a status counts as a refusal.
        """
        if isinstance(error, JudgeUnavailableError | JudgeOutputError) or not sent:
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
    """Return warnings about requested settings that were not sent.

    These are log-probabilities, the seed and `parameters`; nothing is said about others.
    """
    asked = {
        "log-probabilities": (request.top_logprobs, "logprobs"),
        "a seed": (request.seed is not None, "seed"),
    }
    asked |= {f"`{name}`": (True, name) for name in request.parameters}
    return tuple(
        f"{who} was not asked for {name}"
        for name, (wanted, setting) in asked.items()
        if wanted and setting not in sent
    )


def fewer_answers(request: CompletionRequest, replies: Sized) -> tuple[str, ...]:
    """Return a warning when there are fewer answers than requested; else nothing."""
    if len(replies) >= request.n:
        return ()
    return (f"{request.n} answers were asked for and {len(replies)} given",)


_THREADS = 16
"""Concurrent calls of a sync method."""


class Borrowed(Generic[M]):
    """A framework's model: the user's own object, or one made per event loop.

    Args:
        model: the user's model; its sync method is called in threads.
        make_model: makes a model for the running loop instead; its async method is awaited.
        timeout: seconds for one answer, above 0. A thread that is still busy then goes on in the
            background and keeps its place in the pool.
        captured: whether its calls may be captured as RAG calls: those of an app under test are,
            those made for an evaluation are not.

    Raises:
        ConfigurationError: unless exactly one of `model` and `make_model` is given, or for
            numbers that are not above 0.
    """

    def __init__(
        self,
        model: M | None,
        make_model: Callable[[], M] | None,
        *,
        timeout: float = 120.0,
        captured: bool = False,
    ) -> None:
        if (model is None) == (make_model is None):
            raise ConfigurationError("model", model, "give either a model or `make_model`")
        if not timeout > 0:
            raise ConfigurationError("timeout", timeout, "use seconds above 0")
        self.model = model
        self._make_model = make_model
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, M] = WeakKeyDictionary()
        self._threads = Threads(_THREADS, "rag-eval-model")
        self._timeout = timeout
        self._captured = captured

    async def ask(
        self, who: str, sync: Callable[[M], T], native: Callable[[M], Awaitable[T]] | None = None
    ) -> T:
        """Call the user's model by `sync`, or one made here by `native`.

        An exception that is a `JudgeError` already is raised as it is.

        Raises:
            JudgeUnavailableError: no answer in time, or a temporary failure (429, 5xx …).
            JudgeRejectedError: a permanent failure (401, 404 …).
            JudgeError: any other exception of the framework.
        """
        try:
            async with asyncio.timeout(self._timeout) as limit:
                if self.model is None:
                    assert native is not None
                    with suppress_capture():
                        return await native(self._model_here())
                return await self._in_thread(sync, self.model)
        except JudgeError:
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and limit.expired():
                raise JudgeUnavailableError(f"{who}: no answer in {self._timeout:g} s") from error
            raise judge_error(error, who) from error

    def _model_here(self) -> M:
        """Return the running loop's own model; make it at the first request."""
        assert self._make_model is not None
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = self._make_model()
        return self._by_loop[loop]

    async def _in_thread(self, sync: Callable[[M], T], model: M) -> T:
        """Call the sync method in a thread, where it may block.

        Waits for a free thread. The call sees none of the context variables of this task, and is
        not captured unless the model is the app's.
        """

        def call() -> T:
            """Make the request, without capture unless it is the app's."""
            with contained:  # in the thread: a `StopIteration` would not come out of it
                if self._captured:
                    return sync(model)
                with suppress_capture():
                    return sync(model)

        # An empty context: a run of the app in progress (its callbacks, its tracer's parent) must
        # not become the parent of these calls.
        context = contextvars.Context()
        return await self._threads.run(lambda: context.run(call))


async def answered(asking: Iterable[Awaitable[T]]) -> list[T]:
    """Await several requests at once; drop those that failed with `JudgeUnavailableError`.

    If one of twenty hits a limit, the other nineteen should not be paid for twice. Answers come in
    the order of the requests; empty if all failed so.

    Raises:
        Exception: the first other failure, after all have ended.
    """

    async def ask(request: Awaitable[T]) -> T:
        """Await the request, with its exits turned into exceptions."""
        with contained:  # out of a task, `SystemExit` would end the loop
            return await request

    answers = await asyncio.gather(*map(ask, asking), return_exceptions=True)
    for item in answers:
        if isinstance(item, BaseException) and not isinstance(item, JudgeUnavailableError):
            raise item
    return [item for item in answers if not isinstance(item, BaseException)]


# --- Prompt templates of the frameworks as prompts under test


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
        messages = self.render(
            {input_name: f"{{{{{input_name}}}}}" for input_name in self.input_names}
        )
        self.text = "\n\n".join(message.content for message in messages)

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Render the template with these values.

        Values that are not inputs of the template are ignored.

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
        """Make the message of a framework's kind, such as `human`.

        Raises:
            ConfigurationError: the kind is not a system, user or assistant message.
        """
        role = _ROLES.get(kind)
        if role is None:
            raise ConfigurationError("prompt", self.name, f"has a message of the kind {kind!r}")
        return Message(role=role, content=content)
