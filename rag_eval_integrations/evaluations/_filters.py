"""The conditions that choose evaluations: `--where`, of every command that has it.

    pattern=hallucination    a pattern of `diagnose` that the call shows
    route=billing            a field of the metadata, given or captured; a.b is b inside of a
    metadata.route=billing   the same, also where something else has its name
    id=7                     likewise app, judge, model, flags, framework, tags and conversation
    adherence<1              a score that has a value; also <=, >, >= and =
    adherence=unscored       a score without one: unscored, error, or a code such as no_context

Where a field holds a list, one of its items is enough. Numbers, true, false and null are written as
in JSON.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from rag_eval_integrations._visible import counted
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records._conversation import conversation_in
from rag_eval_integrations.records.score import Pattern, score_hint

_FORMS = "write FIELD=VALUE, pattern=NAME or 'SCORE<0.5', in quotes because of the <"
_SIGN = re.compile("<=|>=|<|>|=")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
_MOST_NAMES = 1_000
"""Names of scores and fields that are kept for a message."""
_MOST_TOLD = 20


@dataclass(frozen=True)
class Condition:
    """One condition on an evaluation."""

    text: str
    """As it was written."""
    field: str
    """Name of a score, or of a field."""
    sign: str
    """`=`, or an order: `<`, `<=`, `>`, `>=`."""
    value: str
    """Text that a field equals, or the number that a score is compared with."""

    def holds(self, evaluation: Evaluation) -> bool:
        """Tell whether the condition holds; not for an evaluation without the field.

        A score without a value is compared by its status or the code why.
        """
        score = evaluation.scores.get(self.field)
        if score is None:
            return self.sign == "=" and self.value in values_of(evaluation, self.field)
        if score.value is None:
            return self.sign == "=" and self.value in (score.status, score.unscored)
        return _is_share(self.value) and _ORDERS[self.sign](score.value, float(self.value))


class Filters:
    """Conditions that all have to hold; without any, every evaluation is kept.

    Args:
        conditions: each as a user writes it; None for no condition.
        option: name of the argument, for errors.
        of_calls: whether calls are chosen, which may have no evaluation (`keeps_call`).

    Raises:
        ConfigurationError: a condition has no sign; a pattern is unknown; a limit is not a number
            from 0 to 1; a condition on something else than metadata or the id of a call.
    """

    def __init__(
        self,
        conditions: Iterable[str] | None,
        option: str = "--where",
        *,
        of_calls: bool = False,
    ) -> None:
        self._option = option
        self.conditions = tuple(_parsed(text, option) for text in conditions or ())
        for condition in self.conditions if of_calls else ():
            if condition.sign != "=" or condition.field in _OWN.keys() - {"id"}:
                why = "calls are chosen by their metadata, as in metadata.user=X, or by id=X"
                raise ConfigurationError(option, condition.text, why)
        self._names: set[str] = set()
        self._calls_tested = 0

    def keep(self, evaluations: Iterable[Evaluation]) -> Iterator[Evaluation]:
        """Yield the evaluations for which all conditions hold, one by one as they are read."""
        self._calls_tested = 0
        for evaluation in evaluations:
            self._calls_tested += 1
            if all(condition.holds(evaluation) for condition in self.conditions):
                yield evaluation
            elif len(self._names) < _MOST_NAMES:
                self._names.update(evaluation.scores, *metadata_of(evaluation))

    def keeps_call(self, call: dict[str, Any]) -> bool:
        """Tell whether all conditions hold for a call as it is stored, judged or not.

        It has an id and metadata.
        """
        self._calls_tested += 1
        capture = call.get("capture") or {}
        metadata = [call.get("metadata") or {}, capture.get("metadata") or {}]
        for fields in metadata:
            self._names.update(fields if len(self._names) < _MOST_NAMES else ())
        return all(
            condition.value in _stored_values(call, metadata, condition.field)
            for condition in self.conditions
        )

    def none_kept(self) -> ConfigurationError | None:
        """Return the error for conditions that keep nothing; None if nothing was read.

        It names a field that no call has, with a suggestion.
        """
        if not self._calls_tested:
            return None
        conditions = " ".join(condition.text for condition in self.conditions)
        none_so = f"none of {counted(self._calls_tested, 'call')} is so"
        return self.unknown_field() or ConfigurationError(self._option, conditions, none_so)

    def unknown_field(self) -> ConfigurationError | None:
        """Return the error for a field or score that none of the calls has, with a suggestion.

        None if all are known, or nothing was read.
        """
        if not self._calls_tested:
            return None
        calls = counted(self._calls_tested, "call")
        for condition in self.conditions:
            field = condition.field.removeprefix("metadata.")
            if {field, field.partition(".")[0]} & {*self._names, *_OWN}:
                continue
            if condition.sign != "=":
                why = f"is a score of none of {calls}; {score_hint(field, sorted(self._names))}"
                return ConfigurationError(self._option, field, why)
            near = get_close_matches(field, self._names, 1)
            known = ", ".join(sorted({*self._names, *_OWN})[:_MOST_TOLD])
            hint = f"did you mean {near[0]!r}?" if near else f"the fields are {known}"
            return ConfigurationError(self._option, field, f"is a field of none of {calls}; {hint}")
        return None


def _parsed(text: str, option: str) -> Condition:
    """Parse a condition such as `adherence<0.5`."""
    match = _SIGN.search(text, 1)
    if match is None:
        raise ConfigurationError(option, text, f"has no =, <, <=, > or >=; {_FORMS}")
    field, sign, value = text[: match.start()].strip(), match[0], text[match.end() :].strip()
    patterns = get_args(Pattern)
    if field == "pattern" and (sign != "=" or value not in patterns):
        why = f"is not a pattern; use pattern= with {', '.join(patterns[:-1])} or {patterns[-1]}"
        raise ConfigurationError(option, text, why)
    if sign != "=" and not _is_share(value):
        why = f"a score is compared with a number from 0 to 1; {_FORMS}"
        raise ConfigurationError(option, text, why)
    return Condition(text, field, sign, value)


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


# --- Fields of an evaluation

_OWN: dict[str, Callable[[Evaluation], object]] = {
    "pattern": lambda evaluation: [diagnosis.pattern for diagnosis in evaluation.diagnosis],
    "id": lambda evaluation: evaluation.id,
    "judge": lambda evaluation: evaluation.judge.name,
    "model": lambda evaluation: evaluation.judge.model,
    "flags": lambda evaluation: evaluation.flags,
    "app": lambda evaluation: [*filter(None, [evaluation.app])],
    "framework": lambda evaluation: evaluation.capture and evaluation.capture.framework,
    "tags": lambda evaluation: evaluation.capture and evaluation.capture.tags,
    "conversation": lambda evaluation: [*filter(None, [conversation_in(metadata_of(evaluation))])],
}


def metadata_of(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the metadata of a call, and of its capture."""
    capture = evaluation.capture
    return [evaluation.metadata, capture.metadata if capture else {}]


def values_of(evaluation: Evaluation, field: str) -> list[str]:
    """Return all values of a field as texts; empty for an evaluation without the field."""
    if field in _OWN:
        return _as_texts([_OWN[field](evaluation)])
    return _metadata_values(metadata_of(evaluation), field)


def _stored_values(
    call: dict[str, Any], metadata: list[dict[str, Any]], field: str
) -> list[str | None]:
    """Return the id of a stored call, or all values of a field of its metadata."""
    return [call.get("id")] if field == "id" else [*_metadata_values(metadata, field)]


def _metadata_values(metadata: list[dict[str, Any]], field: str) -> list[str]:
    """Return all values of a field of metadata as texts."""
    path = field.removeprefix("metadata.")
    return _as_texts([value for fields in metadata for value in _lookup(fields, path)])


def _as_texts(values: list[object]) -> list[str]:
    """Write values as texts, lists flattened to their items."""
    items = [
        item for value in values for item in (value if isinstance(value, list | tuple) else [value])
    ]
    return [item if isinstance(item, str) else json.dumps(item) for item in items]


def _lookup(fields: dict[str, Any], path: str) -> list[object]:
    """Look up `a.b`: a field of this name, or else `b` inside of `a`."""
    if path in fields:
        return [fields[path]]
    name, _, rest = path.partition(".")
    inner = fields.get(name)
    return _lookup(inner, rest) if rest and isinstance(inner, dict) else []
