"""`Judge`, the protocol that turns keyed sentences into labels (stage 3 of the flow).

`JudgeBase` declares its optional members.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

from rag_eval_integrations.models.completion import Model, ModelBase
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
    instructions: str | None = None
    """What its user added to its prompt, as its `JudgeInfo` says; None for nothing."""
    card: str | None = None
    """The judge and its limits in a few sentences, shown by `rag-eval doctor`."""

    @abstractmethod
    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call; see `Judge.label`."""

    def __repr__(self) -> str:
        argument = repr(self.name) if self.model is None else repr(self.model)
        return f"{type(self).__name__}({argument})"


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
    """Return the `JudgeInfo` that a judge will put into its labellings.

    Of a judge that asks a model it is the model's version: the judge's own holds the prompt's too.
    """
    version = judge.version if judge.model is None else judge.model.version
    return JudgeInfo(name=judge.name, version=version, instructions=judge.instructions)


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
