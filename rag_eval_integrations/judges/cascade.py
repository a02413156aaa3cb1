"""`CascadeJudge`: a cheap judge labels, and a second one only the calls it is unsure about."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.judges.judge import JudgeBase, judge_base
from rag_eval_integrations.judges.llm import LLMJudge
from rag_eval_integrations.models import Model, with_retries
from rag_eval_integrations.records import Labelling, SentencizedCall

AskWhen = tuple[float, float] | Callable[[SentencizedCall, Labelling], bool]

CASCADE_FLAGS = NOT_ASKED, ASKED = "cascade_first", "cascade_second"
"""Flags of an evaluation that tell which of the two judges labelled it."""


class CascadeJudge(JudgeBase):
    """Labels with `first`, and asks `second` when `first` is unsure.

    The judge that labelled a call is named by `by.judge` of every score and by a flag of the
    evaluation (`cascade_first`, `cascade_second`). If the second judge fails, the call is an error:
    the labels of the first are not used instead.

    Args:
        first: a judge that gives probabilities, such as `EmbeddedJudge()`, or its name.
        second: a judge, a model, or a name, such as `openai:gpt-4o-mini`.
        ask_when: a band of P(adherent), both ends included, in which the second judge is asked, or
            a function of the call and the first judge's labelling that decides. With a band, the
            second is also asked when the first cannot label a call or gives no probability. None
            takes `first.unsure`: (0.7, 0.9) for the embedded judge, (0.3, 0.7) by default.

    Raises:
        ConfigurationError: for a first judge that is a model, an unknown judge, or a band that is
            not in [0, 1].
    """

    def __init__(
        self,
        first: str | Judge,
        second: str | Judge | Model,
        ask_when: AskWhen | None = None,
    ) -> None:
        cheap = judge_from(first)
        if not isinstance(cheap, Judge):
            raise ConfigurationError("first", first, "is a model; use a judge, such as 'embedded'")
        asked = judge_from(second)
        self._first = judge_base(cheap)
        self._second = (
            judge_base(asked) if isinstance(asked, Judge) else LLMJudge(with_retries(asked))
        )
        if ask_when is None:
            ask_when = self._first.unsure
        if not callable(ask_when) and not _is_band(ask_when):
            raise ConfigurationError(
                "ask_when", ask_when, "use two probabilities (low, high), or a function"
            )
        self.first: Judge = cheap
        self.second: Judge = asked if isinstance(asked, Judge) else self._second
        self.model = self._second.model
        self._ask_when = ask_when
        self.name = f"cascade({cheap.name}, {self._second.name})"
        versions = (self._first.version or "", self._second.version or "")
        self.version = "+".join([*versions, _rule(ask_when)])

    def __repr__(self) -> str:
        when = self._ask_when
        rule = _rule(when) if callable(when) else repr(tuple(when))
        return f"CascadeJudge({_shown(self.first)}, {_shown(self.second)}, ask_when={rule})"

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call.

        Raises:
            JudgeError: the second judge was asked and did not answer.
        """
        labelling = await self.first.label(call)
        if not self._asks(call, labelling):
            return labelling.model_copy(update={"flags": (*labelling.flags, NOT_ASKED)})
        second = await self.second.label(call)
        return second.model_copy(
            update={
                "flags": (*second.flags, ASKED),
                "usage": labelling.usage + second.usage,
            }
        )

    def _asks(self, call: SentencizedCall, labelling: Labelling) -> bool:
        if callable(self._ask_when):
            return bool(self._ask_when(call, labelling))
        probability = None if labelling.labels is None else labelling.labels.adherence_probability()
        low, high = self._ask_when
        return probability is None or low <= probability <= high


def _rule(ask_when: AskWhen) -> str:
    if not callable(ask_when):
        return f"{ask_when[0]}-{ask_when[1]}"
    return ask_when.__qualname__ if isinstance(ask_when, FunctionType) else repr(ask_when)


def _shown(judge: Judge) -> str:
    """Return a judge's repr, or its class and name: the default repr has a memory address."""
    if type(judge).__repr__ is not object.__repr__:
        return repr(judge)
    return f"{type(judge).__name__}({judge.name!r})"


def _is_band(value: object) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    low, high = value
    if not all(type(end) in (int, float) and math.isfinite(end) for end in (low, high)):
        return False
    return bool(0 <= low <= high <= 1)
