"""Jinja for untrusted prompts: a sandboxed subset of the language, with bounds on time and size.

A prompt file often comes from the web. It may insert variables, branch, loop over values and use
harmless filters. It may not call functions, import, define macros, or produce unlimited text. A
value is data: it is inserted as it is and never run as a template.

Nothing is calculated while a template is compiled: Jinja's folding of constants is off. Whatever
its constants alone say is tried once at load, within the bounds of a rendering, so that a mistake
in it is told with its line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from jinja2 import StrictUndefined, Template, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.meta import TrackingCodeGenerator
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rag_eval_integrations.metrics.prompty._operations import (
    ADDED_FILTERS,
    ALLOWED_TESTS,
    MOST_CHARACTERS,
    WRITABLE_FILTERS,
    Budget,
    Texts,
    calculated,
    charged_to,
    written,
)

__all__ = ["Budget", "CompiledTemplate", "PromptTemplateError", "Texts"]

_MOST_TOKENS = 30_000
_MOST_NODES = 10_000
"""Compiling takes up to 50 µs per node."""
_DEEPEST = 60
"""Jinja and Python go through a template recursively."""
_LONGEST_NUMBER = 30
_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const,
    nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword, nodes.Slice, nodes.Getattr,
    nodes.Getitem, nodes.Filter, nodes.Test, nodes.If, nodes.CondExpr, nodes.For, nodes.Assign,
    nodes.Compare, nodes.Operand, nodes.Not, nodes.And, nodes.Or, nodes.Add, nodes.Sub, nodes.Mul,
    nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Concat,
)  # fmt: skip
_OF_JINJA = ("self", "super", "caller", "varargs", "kwargs")


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
            _check_tokens(environment, source)
            tree = environment.parse(source)
            self.size = _check(tree)
            """The number of the template's parts."""
            self.variables: frozenset[str] = _variables(environment, tree)
            _bound(tree)
            self._template = _compiled(environment, tree)
        except TemplateSyntaxError as error:
            raise PromptTemplateError(str(error.message), error.lineno) from error
        except (RecursionError, ArithmeticError, MemoryError, SyntaxError, ValueError) as error:
            raise PromptTemplateError(f"too deep or too large: {error}", None) from error
        constants = _constants(tree)
        if constants:
            trial = nodes.Template([nodes.Output([one], lineno=one.lineno) for one in constants])
            trial.set_environment(environment)
            _render(_compiled(environment, trial), {}, Budget())

    def render(self, values: Mapping[str, object], budget: Budget | None = None) -> str:
        """Insert values: text as it is, anything else as JSON.

        Args:
            values: the values, by variable.
            budget: shared by the messages of one prompt; by default this one has its own.

        Raises:
            PromptTemplateError: a variable has no value, an expression fails, or a text or a loop
                exceeds its bounds.
        """
        return _render(self._template, values, budget or Budget())


def _render(template: Template, values: Mapping[str, object], budget: Budget) -> str:
    parts: list[str] = []
    size = 0
    try:
        with charged_to(budget):
            for part in template.generate(**values):
                size += len(part)
                if size > MOST_CHARACTERS:
                    raise SecurityError(f"the text grows beyond {MOST_CHARACTERS:,} characters")
                parts.append(part)
    except UndefinedError as error:
        raise PromptTemplateError(str(error), _line_of(error)) from error
    except Exception as error:  # what a template does with values may raise anything
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise PromptTemplateError(why, _line_of(error)) from error
    return "".join(parts)


def _line_of(error: BaseException) -> int | None:
    """Find the template's line in the traceback, in which Jinja has put it."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])
    intercepted_unops = frozenset(["+", "-"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        calculated(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        calculated(operator, arg)
        return super().call_unop(context, operator, arg)

    def getattr(self, obj: Any, attribute: str) -> Any:
        # The key of a mapping comes first: `row.items` is what the row says.
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return _data(super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return _data(super().getitem(obj, argument))


def _data(value: Any) -> Any:
    if callable(value) and not isinstance(value, Undefined):
        raise SecurityError("a method cannot be used")
    return value


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    environment = _Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True,
        finalize=_inserted, cache_size=0, optimized=False,
    )  # fmt: skip
    environment.globals.clear()
    environment.filters = {**WRITABLE_FILTERS, **ADDED_FILTERS}
    environment.tests = dict(ALLOWED_TESTS)
    return environment


@pass_context  # so that Jinja cannot call it while it compiles
def _inserted(context: object, value: Any) -> Any:
    return written(value)


def _compiled(environment: _Environment, tree: nodes.Template) -> Template:
    return Template.from_code(environment, environment.compile(tree), environment.globals)


def _variables(environment: _Environment, tree: nodes.Template) -> frozenset[str]:
    tracker = TrackingCodeGenerator(environment)
    tracker.optimizer = None  # `find_undeclared_variables` would calculate with constants
    tracker.visit(tree)
    return frozenset(tracker.undeclared_identifiers)


# --- What is refused before anything is compiled


def _check_tokens(environment: _Environment, source: str) -> None:
    """Refuse what cannot even be parsed in a short time: long numbers, deep brackets."""
    depth = 0
    for number, (line, kind, text) in enumerate(environment.lex(source)):
        if number >= _MOST_TOKENS:
            raise TemplateSyntaxError(
                f"a prompt has more than {_MOST_TOKENS} words and signs", line
            )
        if kind in ("integer", "float") and (
            len(text) > _LONGEST_NUMBER or (kind == "float" and math.isinf(float(text)))
        ):
            raise TemplateSyntaxError(f"the number {text[:12]}… is too large", line)
        if kind == "operator":
            depth += (text in "([{") - (text in ")]}")
            if depth > _DEEPEST:
                raise TemplateSyntaxError("a prompt has too many brackets in brackets", line)


def _check(tree: nodes.Template) -> int:
    """Refuse nodes that are not allowed, and return how many there are."""
    number = 0
    for number, (node, depth) in enumerate(_walk(tree), start=1):
        why = _refused(node)
        if number > _MOST_NODES:
            why = f"has more than {_MOST_NODES} parts"
        elif depth > _DEEPEST:
            why = f"is nested more than {_DEEPEST} levels deep"
        if why is not None:
            raise TemplateSyntaxError(f"a prompt {why}", node.lineno)
    return number


def _walk(tree: nodes.Node) -> Iterator[tuple[nodes.Node, int]]:
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting += [(child, depth + 1) for child in node.iter_child_nodes()]


def _refused(node: nodes.Node) -> str | None:
    if not isinstance(node, _ALLOWED):
        return f"cannot use `{type(node).__name__.lower()}`"
    if isinstance(node, nodes.Name) and node.name in _OF_JINJA:
        return f"cannot use `{node.name}`"
    if isinstance(node, nodes.Filter | nodes.Test):
        known = WRITABLE_FILTERS if isinstance(node, nodes.Filter) else ALLOWED_TESTS
        if node.name not in known:
            return f"has no {type(node).__name__.lower()} `{node.name}`"
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            return "cannot use * or ** for options"
    if isinstance(node, nodes.For) and node.recursive:
        return "cannot loop recursively"
    if isinstance(node, nodes.Compare) and len(node.ops) > 1 and _tests_membership(node):
        return "cannot chain `in` with another comparison"
    if isinstance(node, nodes.List | nodes.Tuple | nodes.Dict) and any(
        isinstance(name, nodes.Name) and name.ctx == "load" for name, _ in _walk(node)
    ):
        # A list of two lists of two lists … is short to write and takes for ever to print.
        return "can only list constants"
    return None


def _tests_membership(node: nodes.Compare) -> bool:
    return any(one.op in ("in", "notin") for one in node.ops)


# --- What is put in the place of Jinja's own operations, which have no bounds


def _bound(parent: nodes.Node) -> None:
    for field, value in list(parent.iter_fields()):
        if isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, nodes.Node):
                    _bound(item)
                    value[index] = _bounded(item)
        elif isinstance(value, nodes.Node):
            _bound(value)
            setattr(parent, field, _bounded(value))


def _bounded(node: nodes.Node) -> nodes.Node:
    if isinstance(node, nodes.For):
        parts = sum(1 for _ in _walk(node))
        node.iter = _filtered(cast(nodes.Expr, node.iter), "_rounds", nodes.Const(parts))
    elif isinstance(node, nodes.Concat):
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_joined")
    elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice):
        ends = [node.arg.start, node.arg.stop, node.arg.step]
        return _filtered(node.node, "_sliced", *(one or nodes.Const(None) for one in ends))
    elif isinstance(node, nodes.Compare):
        if _tests_membership(node):
            within = _filtered(node.ops[0].expr, "_within", node.expr)
            negated = node.ops[0].op == "notin"
            return nodes.Not(within, lineno=node.lineno) if negated else within
        node.expr = _filtered(node.expr, "_compared")
        for operand in node.ops:
            operand.expr = _filtered(operand.expr, "_compared")
    return node


def _filtered(node: nodes.Expr, name: str, *options: nodes.Expr) -> nodes.Filter:
    made = nodes.Filter(node, name, list(options), [], None, None, lineno=node.lineno)
    made.set_environment(_environment())
    return made


def _constants(tree: nodes.Template) -> list[nodes.Expr]:
    """Find the largest expressions without variables that have something to calculate."""
    found = []
    waiting: list[nodes.Node] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Literal):
            continue
        if isinstance(node, nodes.Expr) and not any(
            isinstance(one, nodes.Name) for one, _ in _walk(node)
        ):
            found.append(node)
        else:
            waiting += node.iter_child_nodes()
    return found
