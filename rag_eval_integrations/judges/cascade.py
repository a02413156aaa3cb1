"""`CascadeJudge`: a cheap judge labels, and a second one only the calls it is unsure about."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.judges.judge import AnyJudge, Judge, JudgeBase, judge_base
from rag_eval_integrations.judges.llm import LLMJudge
from rag_eval_integrations.models.throttling.model import with_retries
from rag_eval_integrations.records import Labelling, SentencizedCall, Usage

AskWhen = tuple[float, float] | Callable[[SentencizedCall, Labelling], bool]

CASCADE_FLAGS = ("cascade_first", "cascade_second")
"""Flags of an evaluation that tell which judge of a cascade labelled it."""
DOUBT = "doubt_"
"""Beginning of the flags by which a judge says that it doubts its labels, whatever their
probability."""
_WHY = ("first_unsure", "first_unlabelled", "first_no_probability", "first_rule")


def is_of_cascade(flag: str) -> bool:
    """Tell whether a flag says which judge of a cascade labelled, or why the first did not."""
    return flag in (*CASCADE_FLAGS, *_WHY) or flag.startswith(f"first_{DOUBT}")


class CascadeJudge(JudgeBase):
    """Labels with `first`, and asks `second` when `first` is unsure.

    The judge that labelled a call is named by `by.judge` of every score and by a flag of the
    evaluation (`cascade_first`, `cascade_second`); further flags say why the call was passed on:
    `first_unsure` (its probability is in the band), `first_unlabelled`, `first_no_probability`,
    `first_rule` (the function said so), or `first_` and the doubt that the judge itself stated,
    such as `first_doubt_spread`. Usage is the sum over the judges that were asked. If the second
    judge fails, the call is an error: the labels of the first are not used instead.

    Args:
        first: a judge that gives probabilities, such as `EmbeddedJudge()`, or its name.
        second: a judge, a model, or a name, such as `openai:gpt-4o-mini`.
        ask_when: a band of P(adherent), both ends included, in which the second judge is asked, or
            a function of the call and the first judge's labelling that decides alone. With a band,
            the second is also asked when the first cannot label a call, gives no probability, or
            doubts its labels: a flag of its labelling begins with `doubt_`. None takes
            `first.unsure`: (0.7, 0.9) for the embedded judge, (0.3, 0.7) by default.
        name: name of the cascade; by default it is made of both judges' names. Needed with a
            function that has no name of its own, such as a lambda, a nested function or a
            `functools.partial`: two cascades that decide differently must differ in their names,
            or evaluations of the one would be reused for the other.

    Raises:
        ConfigurationError: for a first judge that is a model, an unknown judge, a band that is not
            in [0, 1], a function without a name of its own if `name` is not given, or a judge that
            is a cascade itself.
    """

    def __init__(
        self,
        first: str | Judge,
        second: AnyJudge,
        ask_when: AskWhen | None = None,
        *,
        name: str | None = None,
    ) -> None:
        # Up: it takes names, and the grammar of names knows cascades.
        from rag_eval_integrations.judges._named import judge_from  # noqa: PLC0415

        cheap = judge_from(first)
        if not isinstance(cheap, Judge):
            raise ConfigurationError("first", first, "is a model; use a judge, such as 'embedded'")
        asked = judge_from(second)
        self.first: Judge = cheap
        self.second: Judge = asked if isinstance(asked, Judge) else LLMJudge(with_retries(asked))
        self._first, self._second = judge_base(cheap), judge_base(self.second)
        for field, judge in (("first", self._first), ("second", self._second)):
            if isinstance(judge, CascadeJudge):
                raise ConfigurationError(field, judge.name, "is a cascade; use a judge")
        if ask_when is None:
            ask_when = self._first.unsure
        if not callable(ask_when) and not _is_band(ask_when):
            why = "use two probabilities (low, high), or a function"
            raise ConfigurationError("ask_when", ask_when, why)
        rule = _rule(ask_when)
        if rule is None and not name:
            why = "has no name of its own; use a function of a module, or name the cascade"
            raise ConfigurationError("ask_when", ask_when, f"{why} (`name=`)")
        self.judges = (self._first, self._second)
        self.model = self._second.model
        self._ask_when = ask_when
        self.name = name or f"cascade({cheap.name}, {self._second.name})"
        versions = (self._first.version or "", self._second.version or "")
        self.version = "+".join([*versions, rule or "named"])

    def __repr__(self) -> str:
        when = self._ask_when
        rule = _rule(when) or self.name if callable(when) else repr(tuple(when))
        judges = f"{_stable_repr(self.first)}, {_stable_repr(self.second)}"
        return f"CascadeJudge({judges}, ask_when={rule})"

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call.

        Raises:
            JudgeError: the second judge was asked and did not answer.
        """
        labelling = await self.first.label(call)
        why = self._why(call, labelling)
        if not why:
            flags = (*labelling.flags, "cascade_first")
            return labelling.model_copy(update={"flags": flags})
        try:
            second = await self.second.label(call)
        except JudgeError as error:
            error.usage = labelling.usage + (error.usage or Usage())
            raise
        flags = (*second.flags, "cascade_second", *why)
        usage = labelling.usage + second.usage
        return second.model_copy(update={"flags": flags, "usage": usage})

    def _why(self, call: SentencizedCall, labelling: Labelling) -> tuple[str, ...]:
        """Say why the second judge is asked, as flags; none if it is not.

        By the user's rule; else because the first gave no labels or no probability, is unsure, or
        doubts.
        """
        if callable(self._ask_when):
            return ("first_rule",) if self._ask_when(call, labelling) else ()
        if labelling.labels is None:
            return ("first_unlabelled",)
        probability = labelling.labels.adherence_probability()
        if probability is None:
            return ("first_no_probability",)
        low, high = self._ask_when
        doubts = tuple(f"first_{flag}" for flag in labelling.flags if flag.startswith(DOUBT))
        return (("first_unsure",) if low <= probability <= high else ()) + doubts


def _rule(ask_when: AskWhen) -> str | None:
    """Return a name of a rule that is the same in every process; None where there is none."""
    if not callable(ask_when):
        return f"{ask_when[0]}-{ask_when[1]}+doubts"
    if isinstance(ask_when, FunctionType):
        # `<lambda>` and `f.<locals>.g` are the names of any number of functions.
        name = f"{ask_when.__module__}.{ask_when.__qualname__}"
        return None if "<" in name else name
    rule = repr(ask_when)
    return None if " at 0x" in rule else rule


def _stable_repr(judge: Judge) -> str:
    """Return a judge's repr, or its class and name: the default repr has a memory address."""
    if type(judge).__repr__ is not object.__repr__:
        return repr(judge)
    return f"{type(judge).__name__}({judge.name!r})"


def _is_band(value: object) -> bool:
    """Tell whether a value is a band (low, high) within [0, 1]."""
    ends = list(value) if isinstance(value, tuple | list) else []
    numbers = [end for end in ends if type(end) in (int, float)]
    return len(ends) == len(numbers) == 2 and 0 <= ends[0] <= ends[1] <= 1
