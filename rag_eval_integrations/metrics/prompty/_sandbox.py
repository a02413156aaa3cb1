"""Jinja for prompts: a sandboxed subset of the language, with a bound on size.

A prompt file may insert variables, branch, loop over values and use harmless filters. It may not
call functions, import, define macros, or produce unlimited text. A value is data: it is inserted as
it is and never run as a template. A file is its user's own, and may take its time.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from traceback import walk_tb
from typing import Any

from jinja2 import StrictUndefined, Template, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.filters import FILTERS
from jinja2.meta import TrackingCodeGenerator
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from markupsafe import escape

_MOST_CHARACTERS = 4_000_000
"""Limit on a rendered message; more than any model reads."""
_LARGEST = 10**18
_MOST_PLACES = 15
_MOST_TOKENS = 30_000
_MOST_NODES = 10_000
"""Compiling takes up to 50 µs per node."""
_DEEPEST = 60
"""Jinja and Python go through a template recursively."""
_ALLOWED = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.Name,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.Dict,
    nodes.Pair,
    nodes.Keyword,
    nodes.Slice,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Filter,
    nodes.Test,
    nodes.If,
    nodes.CondExpr,
    nodes.For,
    nodes.Assign,
    nodes.Compare,
    nodes.Operand,
    nodes.Not,
    nodes.And,
    nodes.Or,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Neg,
    nodes.Pos,
    nodes.Concat,
)
_OF_JINJA = ("self", "super", "caller", "varargs", "kwargs")
_TEXT_FILTERS = ("capitalize", "lower", "title", "trim", "upper", "wordcount")
_TESTS = (
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "true",
    "undefined",
    "upper",
)

_ASKING = ("d", "default", "defined", "undefined")
"""The filters and tests that take a variable without a value."""


class PromptTemplateError(ValueError):
    """A template that is not valid Jinja or uses something not allowed; `line` says where."""

    def __init__(self, why: str, line: int | None) -> None:
        super().__init__(why)
        self.line = line
        """Line of the template, from 1; None where it is not known."""


class Texts(tuple[str, ...]):
    """Texts that a template may loop over; inserted as one value, they are numbered paragraphs."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(self, start=1))


class CompiledTemplate:
    """The compiled template of one message.

    Raises:
        PromptTemplateError: the template is not valid Jinja, or uses something not allowed.
    """

    def __init__(self, source: str) -> None:
        environment = _environment()
        try:
            if sum(1 for _ in islice(environment.lex(source), _MOST_TOKENS + 1)) > _MOST_TOKENS:
                raise ValueError(f"more than {_MOST_TOKENS:,} words and signs")
            tree = environment.parse(source)
            self.size = _check_nodes(tree)
            """The number of the template's parts."""
            tracker = TrackingCodeGenerator(environment)
            tracker.optimizer = None  # `find_undeclared_variables` would calculate with constants
            tracker.visit(tree)
            self.variables: frozenset[str] = frozenset(tracker.undeclared_identifiers)
            """Names of the variables that the template inserts or tests."""
            asked = (n for n in tree.find_all((nodes.Filter, nodes.Test)) if n.name in _ASKING)
            optional = {n.node.name for n in asked if isinstance(n.node, nodes.Name)}
            self.needed = self.variables - optional
            """Those without `default` and `is defined`, which have to have a value."""
            code = environment.compile(tree)
        except TemplateSyntaxError as error:
            raise PromptTemplateError(str(error.message), error.lineno) from error
        except (RecursionError, ArithmeticError, MemoryError, SyntaxError, ValueError) as error:
            raise PromptTemplateError(f"too deep or too large: {error}", None) from error
        self._template = Template.from_code(environment, code, environment.globals)

    def render(self, values: Mapping[str, object]) -> str:
        """Insert values, given by variable: text as it is, anything else as JSON.

        Raises:
            PromptTemplateError: a variable has no value, an expression fails, or the text is too
                long.
        """
        parts: list[str] = []
        size = 0
        try:
            for part in self._template.generate(**values):
                size += len(part)
                _check_size(size)
                parts.append(part)
        except Exception as error:  # what a template does with values may raise anything
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            why = str(error) if isinstance(error, UndefinedError) else why
            raise PromptTemplateError(why, _line_of(error)) from error
        return "".join(parts)


def _line_of(error: BaseException) -> int | None:
    """Return the template's line in an error's traceback; None if it is not there."""
    trace = walk_tb(error.__traceback__)
    lines = [line for frame, line in trace if frame.f_code.co_filename == "<template>"]
    return lines[-1] if lines else None


# --- What is refused before anything is compiled


def _check_nodes(tree: nodes.Template) -> int:
    """Refuse a template with nodes that are not allowed; return the number of its nodes."""
    number = 0
    for number, (node, depth) in enumerate(_walk(tree), start=1):
        why = _refusal(node)
        if number > _MOST_NODES:
            why = f"has more than {_MOST_NODES} parts"
        elif depth > _DEEPEST:
            why = f"is nested more than {_DEEPEST} levels deep"
        if why is not None:
            raise TemplateSyntaxError(f"a prompt {why}", node.lineno)
    return number


def _walk(tree: nodes.Node) -> Iterator[tuple[nodes.Node, int]]:
    """Yield the nodes of a tree with their depth."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in node.iter_child_nodes()]


def _refusal(node: nodes.Node) -> str | None:
    """Return why a node of a template may not be used; None if it may.

    The nodes inside of it are not checked here. The answer goes on after "a prompt".
    """
    if not isinstance(node, _ALLOWED):
        return f"cannot use `{type(node).__name__.lower()}`"
    if isinstance(node, nodes.Name) and node.name in _OF_JINJA:
        return f"cannot use `{node.name}`"
    if isinstance(node, nodes.Const) and isinstance(node.value, int | float):
        return "has a number that is too large" if abs(node.value) > _LARGEST**2 else None
    if isinstance(node, nodes.Filter | nodes.Test):
        known = _FILTERS if isinstance(node, nodes.Filter) else _TESTS
        if node.name not in known:
            return f"has no {type(node).__name__.lower()} `{node.name}`"
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            return "cannot use * or ** for options"
    if isinstance(node, nodes.For) and node.recursive:
        return "cannot loop recursively"
    if isinstance(node, nodes.List | nodes.Tuple | nodes.Dict) and any(
        isinstance(name, nodes.Name) and name.ctx == "load" for name, _ in _walk(node)
    ):
        # A list of two lists of two lists … is short to write and takes for ever to print.
        return "can only list constants"
    return None


def _check_size(size: int) -> None:
    """Refuse a size that is beyond the limit of a rendered text."""
    if size > _MOST_CHARACTERS:
        raise SecurityError(f"the text grows beyond {_MOST_CHARACTERS:,} characters")


def _bounded_number(value: Any) -> Any:
    """Return a number; refuse anything else, since `%` formats texts and `*` repeats them."""
    if isinstance(value, Undefined):
        str(value)  # raises an error with its name
    if not isinstance(value, int | float) or abs(value) > _LARGEST:
        raise SecurityError("only numbers up to 10^18 can be calculated with")
    return value


# --- Values as text


def _insertable(value: Any) -> Any:
    """Return what is inserted for a value: text and numbers unchanged, anything else as JSON.

    Raises:
        SecurityError: the value is a method or another object that is not data.
    """
    if isinstance(value, str | int | float | Undefined) and not isinstance(value, bool):
        return value  # undefined: raises an error with its name when it is turned into text
    if value is None:
        return ""
    if isinstance(value, Texts):
        return str(value)
    return _as_json(value) if isinstance(value, bool | dict | list | tuple) else _object_text(value)


def _as_json(value: Any) -> str:
    """Return a value as JSON, within the size limit."""
    text = json.dumps(value, ensure_ascii=False, default=_object_text)
    _check_size(len(text))
    return text


def _object_text(value: Any) -> str:
    """Return the text of an object that is not JSON, such as a date.

    Raises:
        SecurityError: the object is a method, or its text shows its address in memory.
    """
    if callable(value):
        raise SecurityError("a method cannot be inserted")
    if isinstance(value, Iterator):
        return _as_json(list(value))
    text = str(value)
    if f"{id(value):x}" in text.lower():
        raise SecurityError(f"an object of the type {type(value).__name__} cannot be inserted")
    return text


# --- Filters


def _join(parts: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    """Join values as Jinja's `join` does, each as it would be inserted."""
    items: Iterable[Any] = parts
    if attribute is not None:
        items = [p[attribute] if isinstance(p, dict | list) else p for p in parts]  # type: ignore[index]
    text = d.join([str(_insertable(item)) for item in items])
    _check_size(len(text))
    return text


def _round(value: Any, precision: object = 0, method: str = "common") -> Any:
    """Round a number as Jinja's `round` does, to a limited number of places."""
    if not isinstance(precision, int) or abs(precision) > _MOST_PLACES:
        raise SecurityError(f"round takes from -{_MOST_PLACES} to {_MOST_PLACES} places")
    return FILTERS["round"](_bounded_number(value), precision, method)


def _reverse(value: Any) -> Any:
    """Reverse a text or a list."""
    return value[::-1] if isinstance(value, str | list | tuple) else [*reversed(value)]


def _text_filter(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that takes any value as the text that would be inserted."""
    return lambda value, *given, **options: make(str(_insertable(value)), *given, **options)


def _number_test(make: Any) -> Callable[..., Any]:
    """Return a test that takes numbers alone: `%` would format a text."""
    return lambda value, *given: make(_bounded_number(value), *given)


def _list_filter(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that gives a list in place of an iterator."""

    @functools.wraps(make)  # keeps Jinja's mark on filters that take the environment
    def filter_(*given: Any, **options: Any) -> Any:
        """Run the filter."""
        result = make(*given, **options)
        return list(result) if isinstance(result, Iterator) else result

    return filter_


_OWN: dict[str, Callable[..., Any]] = {
    "join": _join,
    "list": list,
    "reverse": _reverse,
    "round": _round,
    "tojson": _as_json,
    "e": _text_filter(lambda text: str(escape(text))),
    "safe": _text_filter(str),
    "escape": _text_filter(lambda text: str(escape(text))),
}
_OF_JINJA_ITSELF = (
    "count",
    "length",
    "d",
    "default",
    "first",
    "last",
    "float",
    "int",
    "items",
    "max",
    "min",
    "sort",
    "unique",
)
_FILTERS: dict[str, Callable[..., Any]] = {
    **{name: _list_filter(FILTERS[name]) for name in _OF_JINJA_ITSELF},
    **{name: _text_filter(FILTERS[name]) for name in _TEXT_FILTERS},
    **_OWN,
}
"""The filters that a template may name."""


# --- The language


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])
    intercepted_unops = frozenset(["+", "-"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Add, or calculate with numbers, within bounds; of texts and lists only `+` is allowed."""
        if operator == "+" and all(isinstance(side, str | list | tuple) for side in (left, right)):
            _check_size(len(left) + len(right))
        else:
            left, right = _bounded_number(left), _bounded_number(right)
        return super().call_binop(context, operator, left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        return super().call_unop(context, operator, _bounded_number(arg))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute, a mapping's key first; refuse a method."""
        # The key of a mapping comes first: `row.items` is what the row says.
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return _checked_data(super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return _checked_data(super().getitem(obj, argument))


def _checked_data(value: Any) -> Any:
    """Return an attribute's or item's value; refuse a method."""
    if callable(value) and not isinstance(value, Undefined):
        raise SecurityError("a method cannot be used")
    return value


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    """Return the sandbox with its filters and tests, made once."""
    environment = _Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        finalize=_finalize,
        cache_size=0,
        optimized=False,
    )
    environment.globals.clear()
    environment.filters = dict(_FILTERS)
    environment.tests = {name: TESTS[name] for name in _TESTS} | {
        name: _number_test(TESTS[name]) for name in ("divisibleby", "even", "odd")
    }
    return environment


@pass_context  # so that Jinja cannot call it while it compiles
def _finalize(context: object, value: Any) -> Any:
    """Return what a template inserts for a value; Jinja calls this for every expression."""
    return _insertable(value)
