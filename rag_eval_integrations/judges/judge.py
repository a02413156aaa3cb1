"""`Judge`: turns keyed sentences into labels (stage 3); `judge_from` makes one from its name."""

# A judge's module is imported when it is asked for: see `judges/__init__.py`.
# ruff: noqa: PLC0415

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models.completion import Model, ModelBase

if TYPE_CHECKING:
    from rag_eval_integrations.models.throttling import Waiting
    from rag_eval_integrations.records import Labelling, SentencizedCall


@runtime_checkable
class Judge(Protocol):
    """Labels sentences: relevant, utilized, supported.

    Any object with a `name` and `async label(call)` is a judge; `JudgeBase` declares the optional
    members. Implementations may be called concurrently. A call that they cannot judge gets a
    `Labelling` with `labels=None` and the reason; an exception becomes an `Evaluation.error`.
    """

    @property
    def name(self) -> str:
        """Name stamped on every score."""
        ...

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call."""
        ...


class JudgeBase(ABC):
    """A `Judge` with its optional members; inherit it to state them.

    `name` and `version` are part of every evaluator's fingerprint: two judges that may label
    differently must differ in one of them.
    """

    name: str
    """Name stamped on every score."""
    version: str | None = None
    """Version stamped on every score; None where there is none."""
    model: ModelBase | None = None
    """The model behind the judge, lent to metrics that ask one; None where there is none."""
    keeps_keys: bool = False
    """Whether its labels name every sentence once, by the very key that it was given."""
    unsure: tuple[float, float] = (0.3, 0.7)
    """P(adherent) where a second judge is worth asking, its ends included."""
    card: str | None = None
    """The judge and its limits in a few sentences, shown by `rag-eval doctor`."""

    @abstractmethod
    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call; see `Judge.label`."""


class _Foreign(JudgeBase):
    """A user's object that does not inherit `JudgeBase`; the members that it has are kept."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.name = judge.name
        for member in ("version", "keeps_keys", "unsure", "card"):
            if hasattr(judge, member):
                setattr(self, member, getattr(judge, member))

    async def label(self, call: SentencizedCall) -> Labelling:
        """Let the user's object label."""
        return await self._judge.label(call)


def judge_base(judge: Judge) -> JudgeBase:
    """Return a judge with its optional members declared: itself where it inherits `JudgeBase`."""
    return judge if isinstance(judge, JudgeBase) else _Foreign(judge)


# --- From what a user passes as `judge=` to a judge


JUDGES = ("embedded", "openai:MODEL")
"""Names that `judge_from` knows."""


def judge_from(
    judge: str | Judge | Model,
    *,
    base_url: str | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    max_concurrency: int = 32,
    cache: str | Path | None = None,
    on_wait: Callable[[Waiting], None] | None = None,
) -> Judge | Model:
    """Make a judge from its name, or check that an object is one.

    Args:
        judge: `embedded` (no key, no network); `openai:MODEL` (any OpenAI-compatible endpoint,
            with limits, retries and, where asked for, a cache); or an object with a `name` and
            `async label(call)` (a `Judge`) or `async complete(request)` (a `Model`).
        base_url: the endpoint, up to and with `/v1`; by default OPENAI_BASE_URL, else OpenAI's.
        rpm: requests a minute; None for no limit.
        tpm: tokens a minute; None for no limit.
        max_concurrency: requests at once.
        cache: an SQLite file of answers; made when it is not there.
        on_wait: told what is waited for.

    Raises:
        ConfigurationError: for an unknown name, an object that is neither, a missing key, or an
            option that the judge cannot use.
    """
    options = {"base_url": base_url, "rpm": rpm, "tpm": tpm, "cache": cache}
    if isinstance(judge, str) and judge.startswith("openai:"):
        from rag_eval_integrations.models.openai import OpenAIModel
        from rag_eval_integrations.models.throttling import ThrottledModel

        asked = ThrottledModel(
            OpenAIModel(judge.removeprefix("openai:"), base_url=base_url),
            rpm=rpm,
            tpm=tpm,
            max_concurrency=max_concurrency,
            on_wait=on_wait,
        )
        if cache is None:
            return asked
        from rag_eval_integrations.models.caching import CachedModel

        return CachedModel(asked, cache)
    for name, value in options.items():
        if value is not None:
            raise ConfigurationError(name, value, f"is for openai:MODEL, not for judge {judge!r}")
    if isinstance(judge, str):
        if judge == "embedded":
            from rag_eval_integrations.judges.embedded import EmbeddedJudge

            return EmbeddedJudge()
        raise ConfigurationError("judge", judge, f"no such judge; use {' or '.join(JUDGES)}")
    if not isinstance(judge, Judge | Model):
        raise ConfigurationError(
            "judge", judge, "needs a `name` and `async label(call)` or `async complete(request)`"
        )
    return judge
