"""Any record: hypothesis strategies made of the fields of a record's class, with whatever they hold."""

from __future__ import annotations

from datetime import UTC, datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from pydantic import AwareDatetime, JsonValue

from rag_eval_integrations.records import Evaluation, Record, Score

R = TypeVar("R", bound=Record)

# Every character that a string can hold: lone surrogates, NUL and line ends of all kinds included.
TEXTS = st.text(
    st.characters(exclude_categories=())
    | st.sampled_from("\n\r\u2028\u2029\u0085\ud800\U0001f600"),
    max_size=4,
)
FEW = st.sampled_from(["a", "b", "\ufffd", ""])
"""Texts that are alike often enough to be shared."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda children: st.lists(children, max_size=2) | st.dictionaries(TEXTS, children, max_size=2),
    max_leaves=5,
)  # fmt: skip


def records(kind: type[R], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[R]:
    """Any record of a class; some fields may have strategies of their own."""
    made = {
        name: fields[name] if name in fields else values(field.annotation, *field.metadata)
        for name, field in kind.model_fields.items()
    }
    needed = {
        name for name, field in kind.model_fields.items() if field.is_required()
    } | fields.keys()
    contents = st.fixed_dictionaries(
        {name: made[name] for name in made if name in needed},
        optional={name: made[name] for name in made if name not in needed},
    )
    return contents.map(lambda content: kind(**content))


ALIKE = st.sampled_from([0.0, 0.5, 1.0])
SCALES = st.sampled_from([None, (0.0, 1.0), (1.0, 5.0)])
SCORED = {"status": st.just("scored"), "unscored": st.none()}
STATES: tuple[dict[str, st.SearchStrategy[Any]], ...] = (
    {**SCORED, "value": st.floats(0, 1)},
    {**SCORED, "value": ALIKE, "raw": ALIKE, "scale": SCALES},
    {"status": st.just("error"), "value": st.none(), "unscored": st.none()},
    {"status": st.just("unscored"), "value": st.none(), "unscored": st.just("no_context")},
)
"""The fields that depend on which of its three states a score is in."""


def scores() -> st.SearchStrategy[Score]:
    """Any score; values are often alike, and so are warnings of several."""
    warnings = st.lists(FEW, max_size=2)
    return st.one_of(*(records(Score, warnings=warnings, **state) for state in STATES))


def evaluations() -> st.SearchStrategy[Evaluation]:
    """Any evaluation."""
    by_name = st.lists(scores(), max_size=3).map(lambda made: {each.name: each for each in made})
    return records(Evaluation, scores=by_name)


def values(hint: Any, *limits: Any) -> st.SearchStrategy[Any]:
    """Whatever a type may hold, within limits such as `Field(ge=0)`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return values(inner[0], *inner[1:])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of(*(values(each, *limits) for each in inner))
    if origin is dict:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=2)
    if origin is tuple and inner[1:] == (...,):
        return st.lists(values(inner[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, inner))
    if hint is JsonValue:
        return JSON
    if isinstance(hint, type) and issubclass(hint, Record):
        return records(hint)
    if isinstance(hint, type) and issubclass(hint, tuple):  # a named one
        return st.builds(
            hint, *(values(each) for each in get_type_hints(hint, include_extras=True).values())
        )
    bounds = {name: getattr(part, name) for limit in limits for part in getattr(limit, "metadata", [limit])
              for name in ("ge", "le") if hasattr(part, name)}  # fmt: skip
    kinds: dict[Any, st.SearchStrategy[Any]] = {
        str: FEW | TEXTS,
        bool: st.booleans(),
        NoneType: st.none(),
        int: st.integers(bounds.get("ge", -3), min(3, bounds.get("le", 3))),
        float: st.floats(bounds.get("ge", -5), bounds.get("le", 5)),
        datetime: st.datetimes(timezones=st.just(UTC)),
        AwareDatetime: st.datetimes(timezones=st.just(UTC)),
    }
    return kinds[hint]
