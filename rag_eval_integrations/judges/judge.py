"""`Judge`, the protocol that turns keyed sentences into labels (stage 3 of the flow).

`JudgeBase` declares its optional members; `judge_from` makes a judge from its name.
"""

# The module of a judge is imported on first use: see `judges/__init__.py`.
# ruff: noqa: PLC0415

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Model,
    ModelBase,
    WrappedModel,
)
from rag_eval_integrations.records.call import adapted

if TYPE_CHECKING:
    from pydantic import JsonValue

    from rag_eval_integrations.models.throttling import Permits, Waiting
    from rag_eval_integrations.records import JudgeInfo, Labelling, SentencizedCall


@runtime_checkable
class Judge(Protocol):
    """Labels sentences as relevant, utilized and supported.

    Any object with a `name` and `async label(call)` is a judge; `JudgeBase` declares the optional
    members. Implementations may be called concurrently. For a call that cannot be judged they
    return a `Labelling` with `labels=None` and the reason; an exception becomes the
    `Evaluation.error`.
    """

    @property
    def name(self) -> str:
        """Name stamped on every score."""

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call."""


class JudgeBase(ABC):
    """Base class of judges: a `Judge` with its optional members.

    `name` and `version` are part of every evaluator's fingerprint: two judges that may label
    differently must differ in one of them.
    """

    name: str
    """Name stamped on every score."""
    version: str | None = None
    """Version stamped on every score; None if there is none."""
    model: ModelBase | None = None
    """The model behind the judge, shared with metrics that need one; None if there is none."""
    keeps_keys: bool = False
    """Whether its labels name only sentences that exist, each once and with its key unchanged, and
    list those that are missing: then they are not checked again."""
    max_concurrency: int | None = None
    """Most requests at once, where the judge sees to that itself; None where it does not."""
    unsure: tuple[float, float] = (0.3, 0.7)
    """Range of P(adherent) in which a second judge is worth asking; both ends are included."""
    card: str | None = None
    """The judge and its limits in a few sentences, shown by `rag-eval doctor`."""

    @abstractmethod
    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call; see `Judge.label`."""

    def __repr__(self) -> str:
        shown = repr(self.name) if self.model is None else repr(self.model)
        return f"{type(self).__name__}({shown})"


class _ForeignJudge(JudgeBase):
    """Wraps a user's object that does not inherit `JudgeBase`; keeps the members that it has."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.name = judge.name
        for member in ("version", "keeps_keys", "unsure", "card"):
            if hasattr(judge, member):
                setattr(self, member, getattr(judge, member))

    def __repr__(self) -> str:
        return f"{type(self._judge).__name__}({self.name!r})"

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call with the user's object."""
        return await self._judge.label(call)


def judge_base(judge: Judge) -> JudgeBase:
    """Return a judge with its optional members: itself if it inherits `JudgeBase`."""
    return judge if isinstance(judge, JudgeBase) else _ForeignJudge(judge)


def judge_info(judge: JudgeBase) -> JudgeInfo:
    """Return what a judge's labellings say of it, before it has labelled anything.

    Of a judge that asks a model it is the model's version: the judge's own holds the prompt's too.
    """
    from rag_eval_integrations.records import JudgeInfo

    version = judge.version if judge.model is None else judge.model.version
    return JudgeInfo(name=judge.name, version=version)


class _Limited(WrappedModel):
    """Asks with the user's `max_tokens` instead of those of the request."""

    def __init__(self, model: Model, max_tokens: int) -> None:
        super().__init__(model)
        self._max_tokens = max_tokens

    async def complete(self, request: CompletionRequest) -> Completion:
        return await super().complete(request.model_copy(update={"max_tokens": self._max_tokens}))


class LangChainChat(Protocol):
    """A LangChain chat model, as far as a type checker has to know one."""

    @property
    def bind_tools(self) -> Any:
        """LangChain's method."""


class LlamaIndexLLM(Protocol):
    """A LlamaIndex LLM, as far as a type checker has to know one."""

    @property
    def astream_chat(self) -> Any:
        """LlamaIndex's method."""


AnyModel = str | Model | LangChainChat | LlamaIndexLLM
"""What answers messages: a name such as `openai:gpt-4o-mini`, a model, or a framework's model."""
AnyJudge = AnyModel | Judge
"""A judge as `RagEvaluator` takes it: its name, a judge, or what is asked to label."""

JUDGES = (
    "embedded",
    "openai:MODEL",
    "onnx:PATH[+RELEVANCE]",
    "transformers:NAME[+RELEVANCE]",
    "cascade:A,B[,C]",
)
"""Names accepted by `judge_from`."""

ENDPOINT = "openai:"
LOCAL = ("onnx:", "transformers:")
CASCADE = "cascade:"
"""Beginnings of the names of models behind an endpoint, of local models, and of cascades."""


def meant(name: str) -> str:
    """Suggest what an unknown judge name stands for; empty if it has a colon or nothing at all.

    It may be the word before a form's colon, a misspelling, or a model.
    """
    if not name or ":" in name:
        return ""
    near = [form for form in JUDGES if form.startswith(f"{name}:")]
    near += get_close_matches(name, ("embedded",), 1)
    near += [f"{ENDPOINT}{name.removeprefix('openai/')}"]  # as LiteLLM writes it
    return f"did you mean {near[0]!r}? Else "


def parts_of(name: str) -> list[str]:
    """List the names of a cascade's judges; of any other name, the name itself."""
    if not name.startswith(CASCADE):
        return [name]
    return [part.strip() for part in name.removeprefix(CASCADE).split(",")]


def asks_endpoint(name: str) -> bool:
    """Tell whether a name has an `openai:MODEL` in it."""
    return any(part.startswith(ENDPOINT) for part in parts_of(name))


def judge_from(
    judge: AnyJudge,
    *,
    base_url: str | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    max_concurrency: int | None = None,
    cache: str | Path | None = None,
    on_wait: Callable[[Waiting], None] | None = None,
    api_key: str | None = None,
    timeout: float | None = None,
    max_tokens: int | None = None,
    extra_body: Mapping[str, JsonValue] | None = None,
    deadline: float | None = None,
    permits: Permits | None = None,
) -> Judge | Model:
    """Make a judge from its name, or check that an object is one.

    Args:
        judge: `embedded` (no key, no network); `openai:MODEL` (any OpenAI-compatible endpoint,
            with limits, retries and, if `cache` is given, a cache); `onnx:PATH` or
            `transformers:NAME` (a local model that reads, `+RELEVANCE` behind it names a second
            one); `cascade:A,B` or `cascade:A,B,C` of such names (`CascadeJudge`); a LangChain chat
            model or a LlamaIndex LLM; or an object with a `name` and `async label(call)` (a
            `Judge`) or `async complete(request)` (a `Model`). The options that follow are for
            `openai:MODEL`, also in a cascade.
        base_url: URL up to and including `/v1`; by default OPENAI_BASE_URL, else OpenAI's.
        rpm: requests per minute; None for no limit.
        tpm: tokens per minute; None for no limit.
        max_concurrency: most concurrent requests, from 1; None for 32.
        cache: an SQLite file of answers, created when absent; None for no cache.
        on_wait: called when a wait with a known end begins, as in `ThrottledModel`.
        api_key: by default OPENAI_API_KEY.
        timeout: seconds for one answer, as in `OpenAIModel`; None for 60.
        max_tokens: most tokens of one answer, whatever the judge or metric asks for; None leaves it
            to them.
        extra_body: more fields of the request body, as in `OpenAIModel`.
        deadline: seconds for all attempts of a request, as in `ThrottledModel`; None for 300.
        permits: a limit shared with other models or processes, as in `ThrottledModel`; None for
            none.

    Raises:
        ConfigurationError: for an unknown name, an object that is neither, a missing key, or an
            option that the judge does not have.
    """
    options = {name: value for name, value in locals().items() if name != "judge"}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if isinstance(judge, str) and judge.startswith(CASCADE) and (asks_endpoint(judge) or not given):
        from rag_eval_integrations.judges.cascade import cascade_named

        return cascade_named(
            judge,
            "judge",
            lambda name: judge_from(name, **given if name.startswith(ENDPOINT) else {}),
        )
    if isinstance(judge, str) and judge.startswith(ENDPOINT):
        from rag_eval_integrations.models.openai import OpenAIModel
        from rag_eval_integrations.models.throttling import ThrottledModel

        if judge == ENDPOINT:
            raise ConfigurationError("judge", judge, "name a model, as in 'openai:gpt-4o-mini'")
        asked: Model = OpenAIModel(
            judge.removeprefix(ENDPOINT), base_url=base_url, api_key=api_key,
            timeout=60.0 if timeout is None else timeout, max_tokens=max_tokens,
            extra_body=extra_body,
        )  # fmt: skip
        model = ThrottledModel(
            asked if max_tokens is None else _Limited(asked, max_tokens),
            rpm=rpm,
            tpm=tpm,
            max_concurrency=32 if max_concurrency is None else max_concurrency,
            on_wait=on_wait,
            deadline=300.0 if deadline is None else deadline,
            permits=permits,
        )
        if cache is None:
            return model
        from rag_eval_integrations.models.caching import CachedModel

        return CachedModel(model, cache)
    shown = repr(judge) if isinstance(judge, str) else type(judge).__name__
    if given:
        name, value = next(iter(given.items()))
        raise ConfigurationError(name, value, f"is for openai:MODEL, not for judge {shown}")
    if isinstance(judge, str):
        if judge == "embedded":
            from rag_eval_integrations.judges.embedded import EmbeddedJudge

            return EmbeddedJudge()
        if judge.startswith(LOCAL):
            return _local(judge)
        raise ConfigurationError(
            "judge", judge, f"no such judge; {meant(judge)}use {' or '.join(JUDGES)}"
        )
    labeller = adapted(judge, _MODELS)
    if labeller is None:
        labeller = judge
    if isinstance(labeller, type) or not isinstance(labeller, Judge | Model):
        # Only the class of anybody's object: its `repr` may hold a key.
        plain = isinstance(judge, int | float | type | None)
        raise ConfigurationError("judge", judge if plain else type(judge), _USE)
    return labeller


def _local(judge: str) -> Judge:
    """Make the judge of `onnx:PATH[+RELEVANCE]` or `transformers:NAME[+RELEVANCE]`.

    A path that exists may have a + itself.
    """
    kind, _, given = judge.partition(":")
    model, relevance = given, None
    if "+" in given and not Path(given).exists():  # a folder's name may have one
        model, _, relevance = given.partition("+")
    if not model or relevance == "":
        why = "name a model, and behind a + one for relevance"
        raise ConfigurationError("judge", judge, why)
    from rag_eval_integrations.judges import OnnxJudge, TransformersJudge

    made = OnnxJudge if kind == "onnx" else TransformersJudge
    return made(model, relevance=relevance)


_MODELS = {
    ("langchain", "BaseChatModel"): "langchain:LangChainModel",
    ("llama_index", "LLM"): "llama_index:LlamaIndexModel",
}
"""Classes of the frameworks' models, each with our model around it."""

_USE = (
    f"use {', '.join(JUDGES)}, a LangChain chat model, a LlamaIndex LLM, or an object with a "
    "`name` and `async label(call)` (a judge) or `async complete(request)` (a model)"
)
