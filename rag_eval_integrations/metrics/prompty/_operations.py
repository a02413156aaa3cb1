"""Operators and filters of untrusted templates; the cost of each is known before it is done.

Python cannot be stopped within a single operation, so no operation may be long: it first charges
the length of everything that it reads to the `Budget` of the message.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from jinja2 import Undefined
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.tests import TESTS
from markupsafe import escape

MOST_CHARACTERS = 4_000_000
"""Limit on a rendered message; more than any model reads."""
_MOST_MADE = 20_000_000
"""Limit on the characters and items that all operations of a prompt read and make together. One
costs up to 0.1 µs, so all of them cost two seconds."""
_MOST_ROUNDS = 20_000
"""Limit on the iterations of all loops of a prompt together."""
_MOST_STEPS = 1_000_000
"""Limit on the parts of the template that these iterations evaluate; one costs up to 2 µs."""
_COSTS = {"sort": 30, "unique": 15, "max": 10, "min": 10, "title": 8, "wordcount": 4}
"""Cost per item of the filters that take longer than 0.1 µs; sorting takes 3 µs."""
_PART = 50
"""Cost of a joined part in addition to its length."""
_LONGEST_OPTION = 100
_LARGEST = 10**18
_LARGEST_FACTOR = 1e12
_MOST_PLACES = 15
_SEARCHED_FAST = 30_000
"""From this length on, Python searches a text in linear time."""


class Budget:
    """What the rendering of one prompt has used so far."""

    __slots__ = ("made", "rounds", "steps")

    def __init__(self) -> None:
        self.made = self.rounds = self.steps = 0

    def charge(self, cost: int, why: str = "filters read more than") -> None:
        """Add to the characters and items that were read and made.

        Raises:
            SecurityError: there are too many.
        """
        self.made += cost
        if self.made > _MOST_MADE:
            raise SecurityError(f"{why} {_MOST_MADE:,} characters")


class _Current(threading.local):
    budget = Budget()


_current = _Current()


@contextmanager
def charged_to(budget: Budget) -> Iterator[None]:
    """Charge every operation of this thread to a budget."""
    before, _current.budget = _current.budget, budget
    try:
        yield
    finally:
        _current.budget = before


class Texts(tuple[str, ...]):
    """Texts that a template may loop over; inserted as one value, they are numbered paragraphs."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(self, start=1))


def _charge_all_of(value: Any, cost: int = 1) -> None:
    """Charge a value with everything inside of it; an item costs so much, a character one."""
    budget = _current.budget
    if isinstance(value, str):
        budget.charge(cost * len(value))
        return
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str | bytes):
            budget.charge(cost + len(one))
        elif isinstance(one, dict):
            budget.charge(cost * (2 * len(one) + 1))
            waiting += one
            waiting += one.values()
        elif isinstance(one, list | tuple | set | frozenset):
            budget.charge(cost * (len(one) + 1))
            waiting += one
        else:
            digits = one.bit_length() // 64 if isinstance(one, int) else 0
            budget.charge(cost * (1 + digits))


def _sized(value: Any) -> Any:
    if isinstance(value, str | list | tuple):
        if len(value) > MOST_CHARACTERS:
            raise SecurityError(f"the text grows beyond {MOST_CHARACTERS:,} characters")
        _current.budget.charge(len(value))
    return value


# --- Values as text


def written(value: Any) -> Any:
    """Return a value as it is inserted: text and numbers as they are, anything else as JSON.

    Raises:
        SecurityError: the value is a method or another object that is not data.
    """
    if isinstance(value, str | int | float | Undefined) and not isinstance(value, bool):
        return value  # undefined: raises an error with its name when it is turned into text
    if value is None:
        return ""
    if isinstance(value, Texts):
        _charge_all_of(value)
        return str(value)
    return as_json(value) if isinstance(value, bool | dict | list | tuple) else _plain(value)


def as_json(value: Any) -> str:
    """Write a value as JSON, in one line."""
    _charge_all_of(value)
    return str(_sized(json.dumps(value, ensure_ascii=False, default=_plain)))


def _plain(value: Any) -> str:
    """Write another object, such as a date; its address in memory must not show."""
    if callable(value):
        raise SecurityError("a method cannot be inserted")
    if isinstance(value, Iterator):
        return as_json(list(rounds(value)))
    text = str(value)
    if f"{id(value):x}" in text.lower():
        raise SecurityError(f"an object of the type {type(value).__name__} cannot be inserted")
    return str(_sized(text))


def _text_of(value: Any) -> str:
    text = str(written(value))
    _current.budget.charge(len(text))
    return text


# --- Operators


def calculated(operator: str, *operands: Any) -> None:
    """Charge an arithmetic operation before it is done.

    Raises:
        SecurityError: an operand is not a number, or too large; only `+` also puts texts together.
    """
    if operator == "+" and len(operands) == 2:
        left, right = operands
        if isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
            size = len(left) + len(right)
            if size > MOST_CHARACTERS:
                raise SecurityError(f"the text grows beyond {MOST_CHARACTERS:,} characters")
            _current.budget.charge(size)
            return
    for operand in operands:
        if not isinstance(operand, int | float):
            if isinstance(operand, Undefined):
                str(operand)  # raises an error with its name
            raise SecurityError(f"{operator} works on numbers only")
        if abs(operand) > _LARGEST_FACTOR and (operator == "*" or isinstance(operand, int)):
            if operator != "*" and abs(operand) <= _LARGEST:
                continue
            raise SecurityError("the numbers are too large")


def _compared(value: Any) -> Any:
    """Charge a value that is going to be compared."""
    _charge_all_of(value)
    return value


def _within(container: Any, item: Any) -> bool:
    _charge_all_of(item)
    if isinstance(container, str) and isinstance(item, str):
        _current.budget.charge(len(container))
        if len(container) < _SEARCHED_FAST:
            _current.budget.charge(len(container) * len(item) // 64)
    elif not isinstance(container, dict):
        _charge_all_of(container)
    return item in container


def _sliced(value: Any, start: Any, stop: Any, step: Any) -> Any:
    part = slice(start, stop, step)
    if not isinstance(value, str | list | tuple):
        raise SecurityError("only texts and lists have slices")
    _current.budget.charge(1 + len(range(*part.indices(len(value)))))
    return value[part]


def rounds(items: Iterable[Any], parts: int = 1) -> Iterator[Any]:
    """Count the iterations of a loop, whose body has so many parts."""
    budget = _current.budget
    for item in items:
        budget.rounds += 1
        budget.steps += parts
        if budget.rounds > _MOST_ROUNDS:
            raise SecurityError(f"more than {_MOST_ROUNDS} iterations of loops")
        if budget.steps > _MOST_STEPS:
            raise SecurityError(f"loops take more than {_MOST_STEPS:,} steps")
        yield item


# --- Filters


def _joined(parts: Iterable[Any]) -> str:
    return _join(parts)


def _join(parts: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    """Join texts as Jinja's `join` does, which has no bound on the result."""
    texts = []
    size = 0
    for part in parts:
        item = part
        if attribute is not None and isinstance(part, dict | list):
            item = part[attribute]  # type: ignore[index]
        texts.append(str(written(item)))
        cost = len(texts[-1]) + len(d)
        size += cost
        if size - len(d) > MOST_CHARACTERS:
            raise SecurityError(f"the text grows beyond {MOST_CHARACTERS:,} characters")
        _current.budget.charge(cost + _PART, "the text grows beyond")
    return d.join(texts)


def _round(value: Any, precision: object = 0, method: str = "common") -> Any:
    calculated("round", value)
    if not isinstance(precision, int) or abs(precision) > _MOST_PLACES:
        raise SecurityError(f"round takes from -{_MOST_PLACES} to {_MOST_PLACES} places")
    return FILTERS["round"](value, precision, method)


def _int(value: Any, default: Any = 0, base: int = 10) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_OPTION:
        raise SecurityError(f"int reads at most {_LONGEST_OPTION} characters")
    return FILTERS["int"](value, default, base)


def _float(value: Any, default: Any = 0.0) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_OPTION:
        raise SecurityError(f"float reads at most {_LONGEST_OPTION} characters")
    return FILTERS["float"](value, default)


def _items(value: Any) -> list[Any]:
    _current.budget.charge(3 * len(value) if isinstance(value, dict) else 0)
    return list(FILTERS["items"](value))


def _reverse(value: Any) -> Any:
    if isinstance(value, str | list | tuple):
        return _sliced(value, None, None, -1)
    return list(rounds(reversed(value)))


def _list(value: Any) -> list[Any]:
    if isinstance(value, str | list | tuple | dict):
        _current.budget.charge(len(value))
        return list(value)
    return list(rounds(value))


def _of_text(name: str) -> Callable[..., Any]:
    make = FILTERS[name]
    environment_first = hasattr(make, "jinja_pass_arg")

    @functools.wraps(make)  # keeps Jinja's mark on filters that take the environment
    def filter_(*args: Any, **named: Any) -> Any:
        first = 1 if environment_first else 0
        text = _text_of(args[first])
        _current.budget.charge(_COSTS.get(name, 1) * len(text))
        _check_options((*args[first + 1 :], *named.values()))
        return _sized(make(*args[:first], text, *args[first + 1 :], **named))

    return filter_


def _of_items(name: str) -> Callable[..., Any]:
    """Make a filter that compares items charge all of them, and return a list."""
    make = FILTERS[name]

    @functools.wraps(make)
    def filter_(environment: Any, value: Any, *args: Any, **named: Any) -> Any:
        dots = _check_options((*args, *named.values()))
        _charge_all_of(value, _COSTS[name] * (1 + dots))
        made = make(environment, value, *args, **named)
        return list(made) if isinstance(made, Iterator) else made

    return filter_


def _check_options(options: Iterable[Any]) -> int:
    """Refuse long options; return how many parts a path such as `a.b` has at most."""
    most = 0
    for option in options:
        if isinstance(option, str):
            if len(option) > _LONGEST_OPTION:
                raise SecurityError(f"an option has more than {_LONGEST_OPTION} characters")
            most = max(most, 1 + option.count("."))
    return most


def _escape(value: Any) -> str:
    text = _text_of(value)
    return str(_sized(str(escape(text))))


def _safe(value: Any) -> str:
    return _text_of(value)  # no template escapes by itself


WRITABLE_FILTERS: dict[str, Callable[..., Any]] = {
    **{name: FILTERS[name] for name in ("count", "length", "d", "default", "first", "last")},
    **{name: _of_text(name) for name in ("capitalize", "lower", "title", "trim", "upper")},
    **{name: _of_items(name) for name in ("max", "min", "sort", "unique")},
    "wordcount": _of_text("wordcount"),
    "e": _escape,
    "escape": _escape,
    "float": _float,
    "int": _int,
    "items": _items,
    "join": _join,
    "list": _list,
    "reverse": _reverse,
    "round": _round,
    "safe": _safe,
    "tojson": as_json,
}
"""The filters that a template may name."""
ADDED_FILTERS: dict[str, Callable[..., Any]] = {
    "_compared": _compared,
    "_joined": _joined,
    "_rounds": rounds,
    "_sliced": _sliced,
    "_within": _within,
}
"""The filters that stand for what Jinja would do without asking."""


_TESTS: dict[str, Callable[..., Any]] = dict(TESTS)  # type: ignore[arg-type]


def _of_number(name: str) -> Callable[..., bool]:
    def test(*numbers: Any) -> bool:
        calculated(name, *numbers)
        return bool(_TESTS[name](*numbers))

    return test


def _of_both(name: str) -> Callable[..., bool]:
    def test(left: Any, right: Any) -> bool:
        return bool(_TESTS[name](_compared(left), _compared(right)))

    return test


_EQUALITIES = (
    "!=", "<", "<=", "==", ">", ">=", "eq", "equalto", "ge", "greaterthan", "gt", "le", "lessthan",
    "lt", "ne",
)  # fmt: skip
_KINDS = (
    "boolean", "defined", "false", "float", "integer", "iterable", "mapping", "none", "number",
    "sameas", "sequence", "string", "true", "undefined",
)  # fmt: skip
ALLOWED_TESTS: dict[str, Callable[..., Any]] = {
    **{name: _TESTS[name] for name in _KINDS},
    **{name: _of_number(name) for name in ("divisibleby", "even", "odd")},
    **{name: _of_both(name) for name in _EQUALITIES},
    "in": lambda item, container: _within(container, item),
    "lower": lambda value: _text_of(value).islower(),
    "upper": lambda value: _text_of(value).isupper(),
}
"""The tests that may follow `is`."""
