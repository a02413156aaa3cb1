"""`CascadeJudge`: a cheap judge labels, and a second one only the calls it is unsure about."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.judges.judge import AnyJudge, JudgeBase, judge_base
from rag_eval_integrations.judges.llm import LLMJudge
from rag_eval_integrations.models import with_retries
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
        name: name of the cascade; by default it is made of both judges' names. Needed with a
            function that has no name of its own, such as a lambda, a nested function or a
            `functools.partial`: two cascades that decide differently must differ in their names,
            or evaluations of the one would be reused for the other.

    Raises:
        ConfigurationError: for a first judge that is a model, an unknown judge, a band that is not
            in [0, 1], or a function without a name of its own if `name` is not given.
    """

    def __init__(
        self,
        first: str | Judge,
        second: AnyJudge,
        ask_when: AskWhen | None = None,
        *,
        name: str | None = None,
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
        rule = _rule(ask_when)
        if rule is None and not name:
            raise ConfigurationError(
                "ask_when",
                ask_when,
                "has no name of its own; use a function of a module, or name the cascade (`name=`)",
            )
        self.first: Judge = cheap
        self.second: Judge = asked if isinstance(asked, Judge) else self._second
        self.model = self._second.model
        self._ask_when = ask_when
        self.name = name or f"cascade({cheap.name}, {self._second.name})"
        versions = (self._first.version or "", self._second.version or "")
        self.version = "+".join([*versions, rule or "named"])

    def __repr__(self) -> str:
        when = self._ask_when
        rule = _rule(when) or self.name if callable(when) else repr(tuple(when))
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


def _rule(ask_when: AskWhen) -> str | None:
    """Name a rule in the same way in every process; None for a function that has no such name."""
    if not callable(ask_when):
        return f"{ask_when[0]}-{ask_when[1]}"
    if isinstance(ask_when, FunctionType):
        # `<lambda>` and `f.<locals>.g` are the names of any number of functions.
        name = f"{ask_when.__module__}.{ask_when.__qualname__}"
        return None if "<" in name else name
    shown = repr(ask_when)
    return None if " at 0x" in shown else shown


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
