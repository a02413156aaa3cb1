"""`CascadeJudge`: a cheap judge labels, and a second one only the calls it is unsure about.

A cascade may stand in a cascade: `CascadeJudge(a, CascadeJudge(b, c))` asks b where a is unsure,
and c where b is unsure as well.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType

from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.judges.judge import AnyJudge, Judge, JudgeBase, judge_base
from rag_eval_integrations.judges.llm import LLMJudge
from rag_eval_integrations.models import with_retries
from rag_eval_integrations.records import Labelling, SentencizedCall, Usage

AskWhen = tuple[float, float] | Callable[[SentencizedCall, Labelling], bool]

PLACES = ("first", "second", "third", "fourth", "fifth")
"""Words for the judges of a cascade, the cheapest first."""
CASCADE_FLAGS = tuple([f"cascade_{place}" for place in PLACES])
"""Flags of an evaluation that tell which judge of a cascade labelled it."""
DOUBT = "doubt_"
"""Beginning of the flags by which a judge says that it doubts its labels, whatever their
probability."""
_WHY = ("unsure", "unlabelled", "no_probability", "rule")


def is_of_cascade(flag: str) -> bool:
    """Tell whether a flag says which judge of a cascade labelled, or why one before it did not."""
    if flag in CASCADE_FLAGS:
        return True
    place, _, why = flag.partition("_")
    return place in PLACES and (why in _WHY or why.startswith(DOUBT))


class CascadeJudge(JudgeBase):
    """Labels with `first`, and asks `second` when `first` is unsure.

    The judge that labelled a call is named by `by.judge` of every score and by a flag of the
    evaluation (`cascade_first`, `cascade_second`, `cascade_third`); further flags say why the call
    was passed on: `first_unsure` (its probability is in the band), `first_unlabelled`,
    `first_no_probability`, `first_rule` (the function said so), or `first_` and the doubt that the
    judge itself stated, such as `first_doubt_spread`. Usage is the sum over the judges that were
    asked. If a judge that is asked fails, the call is an error: the labels of the judge before it
    are not used instead.

    Args:
        first: a judge that gives probabilities, such as `EmbeddedJudge()`, or its name.
        second: a judge, a model, or a name, such as `openai:gpt-4o-mini`; for a cascade of three,
            a `CascadeJudge` of the other two.
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
            in [0, 1], a function without a name of its own if `name` is not given, or more than
            five judges.
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
        if ask_when is None:
            ask_when = self._first.unsure
        if not callable(ask_when) and not _is_band(ask_when):
            why = "use two probabilities (low, high), or a function"
            raise ConfigurationError("ask_when", ask_when, why)
        rule = _rule(ask_when)
        if rule is None and not name:
            why = "has no name of its own; use a function of a module, or name the cascade"
            raise ConfigurationError("ask_when", ask_when, f"{why} (`name=`)")
        self.judges = (*judges_of(self._first), *judges_of(self._second))
        if len(self.judges) > len(PLACES):
            raise ConfigurationError("second", len(self.judges), f"is more than {len(PLACES)}")
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
        own, placed = _placed(labelling, self._first, 0)
        why = self._why(call, labelling)
        if not why:
            return labelling.model_copy(update={"flags": (*own, *placed)})
        before = len(judges_of(self._first))
        passed = (*placed[1:], *(f"{PLACES[before - 1]}_{reason}" for reason in why))
        try:
            second = await self.second.label(call)
        except JudgeError as error:
            error.usage = labelling.usage + (error.usage or Usage())
            raise
        own, placed = _placed(second, self._second, before)
        flags = (*own, placed[0], *passed, *placed[1:])
        usage = labelling.usage + second.usage
        return second.model_copy(update={"flags": flags, "usage": usage})

    def _why(self, call: SentencizedCall, labelling: Labelling) -> tuple[str, ...]:
        """Say why the second judge is asked; empty if it is not.

        By the user's rule; else because the first gave no labels or no probability, is unsure, or
        doubts.
        """
        if callable(self._ask_when):
            return ("rule",) if self._ask_when(call, labelling) else ()
        if labelling.labels is None:
            return ("unlabelled",)
        probability = labelling.labels.adherence_probability()
        if probability is None:
            return ("no_probability",)
        low, high = self._ask_when
        doubts = tuple(flag for flag in labelling.flags if flag.startswith(DOUBT))
        return (("unsure",) if low <= probability <= high else ()) + doubts


def judges_of(judge: JudgeBase) -> tuple[JudgeBase, ...]:
    """List the judges of a cascade, the cheapest first; of another judge, itself."""
    return judge.judges if isinstance(judge, CascadeJudge) else (judge,)


def _placed(
    labelling: Labelling, judge: JudgeBase, before: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the flags into the labelling judge's own, and what a cascade tells of itself.

    The second part begins with the place of the judge that labelled; places are counted on by the
    number of judges `before` this one.
    """
    if not isinstance(judge, CascadeJudge):
        return labelling.flags, (CASCADE_FLAGS[before],)
    own = tuple(flag for flag in labelling.flags if not is_of_cascade(flag))
    moved = [flag for flag in labelling.flags if is_of_cascade(flag)]
    moved.sort(key=lambda flag: flag not in CASCADE_FLAGS)  # stable: the reasons stay in order
    return own, tuple(_moved(flag, before) for flag in moved)


def _moved(flag: str, by: int) -> str:
    """Move a flag by a number of judges, for a cascade that stands inside another."""
    last = len(PLACES) - 1
    if flag in CASCADE_FLAGS:
        return CASCADE_FLAGS[min(last, CASCADE_FLAGS.index(flag) + by)]
    place, _, why = flag.partition("_")
    return f"{PLACES[min(last, PLACES.index(place) + by)]}_{why}"


def _rule(ask_when: AskWhen) -> str | None:
    """Name a rule in the same way in every process; None for a function that has no such name."""
    if not callable(ask_when):
        return f"{ask_when[0]}-{ask_when[1]}+doubts"
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
    """Tell whether a value is a band (low, high) within [0, 1]."""
    ends = list(value) if isinstance(value, tuple | list) else []
    numbers = [end for end in ends if type(end) in (int, float)]
    return len(ends) == len(numbers) == 2 and 0 <= ends[0] <= ends[1] <= 1
