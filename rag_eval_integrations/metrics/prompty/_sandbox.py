"""Jinja for untrusted prompts: a sandboxed subset of the language, with bounds on time and size.

A prompt file often comes from the web. It may insert variables, branch, loop over values and use
harmless filters. It may not call functions, import, define macros, or produce unlimited text. A
value is data: it is inserted as it is and never run as a template.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, Template, Undefined, nodes
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError, UndefinedError
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

_MOST_CHARACTERS = 4_000_000
"""Limit on a rendered message; more than any model reads."""
_MOST_MADE = 64_000_000
"""Limit on the characters and items of all intermediate results of one message together."""
_COSTS = {"sort": 25, "unique": 10, "max": 5, "min": 5, "title": 5, "wordcount": 2}
"""Cost per item of the filters that take longer than 0.1 µs. Sorting takes 2.4 µs per item, so the
limit keeps all sorting of one message to seconds instead of minutes."""
_PART = 50
"""Cost of a joined part in addition to its length: 2.2 µs."""
_MOST_ROUNDS = 20_000
"""Limit on the iterations of all loops of one message together."""
_MOST_NODES = 20_000
_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const,
    nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword, nodes.Slice, nodes.Getattr,
    nodes.Getitem, nodes.Filter, nodes.Test, nodes.If, nodes.CondExpr, nodes.For, nodes.Assign,
    nodes.Compare, nodes.Operand, nodes.Not, nodes.And, nodes.Or, nodes.Add, nodes.Sub, nodes.Mul,
    nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Concat,
)  # fmt: skip
_FILTERS = (
    "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "items", "join",
    "last", "length", "list", "lower", "max", "min", "reverse", "round", "safe", "sort",
    "title", "tojson", "trim", "unique", "upper", "wordcount",
)  # fmt: skip


class _Bounds(threading.local):
    """Resources used so far by the rendering of one message."""

    rounds = 0
    made = 0


_bounds = _Bounds()


class Texts(tuple[str, ...]):
    """Texts that a template may loop over; inserted as one value, they are numbered paragraphs."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(self, start=1))


class PromptTemplateError(ValueError):
    """A template that is not valid Jinja or uses something not allowed; `line` says where."""

    def __init__(self, why: str, line: int | None) -> None:
        super().__init__(why)
        self.line = line
        """Line of the template, from 1; None where it is not known."""


class CompiledTemplate:
    """The compiled template of one message.

    Raises:
        PromptTemplateError: the template is not valid Jinja, or uses something not allowed.
    """

    def __init__(self, source: str) -> None:
        environment = _environment()
        try:
            tree = environment.parse(source)
            self.variables: frozenset[str] = frozenset(find_undeclared_variables(tree))
            _check_and_bound(tree)
            code = environment.compile(tree)
        except TemplateSyntaxError as error:
            raise PromptTemplateError(str(error.message), error.lineno) from error
        except (RecursionError, OverflowError, MemoryError, SyntaxError) as error:
            raise PromptTemplateError(f"too deep or too large: {error}", None) from error
        self._template = Template.from_code(environment, code, environment.globals)

    def render(self, values: Mapping[str, object]) -> str:
        """Insert values: text as it is, anything else as JSON.

        Raises:
            PromptTemplateError: a variable has no value, an expression fails, or a text or a loop
                exceeds its bounds.
        """
        _bounds.rounds = _bounds.made = 0
        parts: list[str] = []
        size = 0
        try:
            for part in self._template.generate(**values):
                size += len(part)
                if size > _MOST_CHARACTERS:
                    raise PromptTemplateError(
                        f"the text grows beyond {_MOST_CHARACTERS:,} characters", None
                    )
                parts.append(part)
        except PromptTemplateError:
            raise
        except UndefinedError as error:
            raise PromptTemplateError(str(error), None) from error
        except (TemplateError, ArithmeticError, TypeError, ValueError, LookupError) as error:
            raise PromptTemplateError(f"{type(error).__name__}: {error}", None) from error
        except (RecursionError, MemoryError) as error:
            raise PromptTemplateError(f"{type(error).__name__} in the template", None) from error
        return "".join(parts)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "*", "%"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        # With these three operators a short template can make a long text.
        if operator == "%" and not isinstance(left, int | float):
            raise SecurityError("% works on numbers only")
        if operator == "*" and not (
            isinstance(left, int | float) and isinstance(right, int | float)
        ):
            raise SecurityError("* works on numbers only")
        if operator == "*" and max(abs(left), abs(right)) > 1e12:
            raise SecurityError("the numbers are too large")
        result = super().call_binop(context, operator, left, right)
        return _sized(result) if operator == "+" else result


def _sized(value: Any) -> Any:
    if isinstance(value, str | list | tuple):
        _bounds.made += len(value)
        if len(value) > _MOST_CHARACTERS or _bounds.made > _MOST_MADE:
            raise SecurityError(f"the text grows beyond {_MOST_CHARACTERS:,} characters")
    return value


def _charged(make: Callable[..., Any], cost: int) -> Callable[..., Any]:
    """Make a filter count its input; otherwise a loop could sort a long text in every iteration."""
    position = 1 if hasattr(make, "jinja_pass_arg") else 0

    @functools.wraps(make)  # keeps Jinja's mark on filters that take the environment
    def filter_(*args: Any, **named: Any) -> Any:
        value = args[position]
        if isinstance(value, str | list | tuple | dict):
            _bounds.made += cost * len(value)
            if _bounds.made > _MOST_MADE:
                raise SecurityError(f"filters read more than {_MOST_MADE:,} characters")
        return make(*args, **named)

    return filter_


def _join(parts: Iterable[Any]) -> Any:
    return _sized("".join(str(_written(part)) for part in parts))


def _join_with(parts: Iterable[Any], d: str = "", attribute: str | int | None = None) -> Any:
    """Join texts as Jinja's `join` does, which has no bound on the result."""
    texts = []
    for part in parts:
        item = part
        if attribute is not None and isinstance(part, dict | list):
            item = part[attribute]  # type: ignore[index]
        texts.append(str(_written(item)))
        _bounds.made += len(texts[-1]) + len(d) + _PART
        if _bounds.made > _MOST_MADE:
            raise SecurityError(f"the text grows beyond {_MOST_CHARACTERS:,} characters")
    return _sized(d.join(texts))


def _rounds(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _bounds.rounds += 1
        if _bounds.rounds > _MOST_ROUNDS:
            raise SecurityError(f"more than {_MOST_ROUNDS} iterations of loops")
        yield item


def _json(value: Any) -> str:
    return str(_sized(json.dumps(value, ensure_ascii=False, default=str)))


def _written(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, Texts):
        return str(value)
    if isinstance(value, Undefined):
        return value  # raises an error with its name when it is turned into text
    if isinstance(value, Iterator):
        value = list(_rounds(value))
    if callable(value):
        raise SecurityError("a method cannot be inserted")
    return _json(value) if isinstance(value, bool | dict | list | tuple) else value


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True,
        finalize=_written, cache_size=0,
    )  # fmt: skip
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in _FILTERS}
    environment.filters.update(join=_join_with, tojson=_json)
    environment.filters = {
        name: _charged(one, _COSTS.get(name, 1)) for name, one in environment.filters.items()
    }
    environment.filters.update(_rounds=_rounds, _join=_join)
    return environment


def _check_and_bound(tree: nodes.Template) -> None:
    """Refuse nodes that are not allowed, and bound loops and concatenations."""
    for number, node in enumerate(tree.find_all(nodes.Node)):
        why = _refused(node) if number < _MOST_NODES else f"has more than {_MOST_NODES} parts"
        if why is not None:
            raise TemplateSyntaxError(f"a prompt {why}", node.lineno)
    for loop in list(tree.find_all(nodes.For)):
        loop.iter = _filtered(loop.iter, "_rounds")
    _bound_concatenations(tree)


def _refused(node: nodes.Node) -> str | None:
    if not isinstance(node, _ALLOWED):
        return f"cannot use `{type(node).__name__.lower()}`"
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        return f"has no filter `{node.name}`"
    if isinstance(node, nodes.For) and node.recursive:
        return "cannot loop recursively"
    if isinstance(node, nodes.List | nodes.Tuple | nodes.Dict) and any(
        name.ctx == "load" for name in node.find_all(nodes.Name)
    ):
        # A list of two lists of two lists … is short to write and takes for ever to print.
        return "can only list constants"
    return None


def _bound_concatenations(parent: nodes.Node) -> None:
    for field, value in list(parent.iter_fields()):
        if isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, nodes.Node):
                    _bound_concatenations(item)
                    value[index] = _counted(item)
        elif isinstance(value, nodes.Node):
            _bound_concatenations(value)
            setattr(parent, field, _counted(value))


def _counted(node: nodes.Node) -> nodes.Node:
    if not isinstance(node, nodes.Concat):
        return node
    return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_join")


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    made = nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)
    made.set_environment(_environment())
    return made
