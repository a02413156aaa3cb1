"""The tree keeps its own rules: a public surface that says where it ends, and no circles."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import rag_eval_integrations

PACKAGE = "rag_eval_integrations"
SOURCE = Path(rag_eval_integrations.__file__).parent

# Entries without an `__all__` above them: the commands, and modules that are imported as they are.
_COMMANDS = f"{PACKAGE}.cli"

# Functions that import by a string, whose arrows no tool sees. One leads up: `adapted` imports our
# package for the framework that an object is from.
_BY_STRING = {
    "_lazy.lazy",
    "cli._grouped.command_of",
    "judges._named.imported",
    "prompt_tests.prompt.adapter_of",
    "records.call.adapted",
    "sinks._traced.client_library",
}

# An error has the usage of the requests that failed, which is a record, and records raise errors.
# The arrow from errors to records is for types alone, so no import runs in a circle.
_TYPES_ALONE = (f"{PACKAGE}.errors", f"{PACKAGE}.records")


def modules() -> list[str]:
    """Every module by its dotted name, packages included, without importing any."""
    paths = (path.relative_to(SOURCE.parent).with_suffix("") for path in SOURCE.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def path_of(module: str) -> Path:
    """The file of a module."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def packages() -> list[str]:
    """Packages that users import from: those with an `__all__`."""
    homes = [name for name in modules() if path_of(name).name == "__init__.py"]
    return [name for name in homes if "__all__ = [" in path_of(name).read_text()]


def exported() -> set[str]:
    """Every exported name."""
    return {name for home in packages() for name in importlib.import_module(home).__all__}


def defined(module: str) -> set[str]:
    """Names that a module defines at its top level."""
    named = r"^(?:(?:async )?def |class |(?=\w+(?:: .*)? = ))(\w+)"
    return set(re.findall(named, path_of(module).read_text(), re.M))


def private(module: str) -> bool:
    """Whether a module, or a package around it, is underscored."""
    return any(part.startswith("_") for part in module.split("."))


def test_a_module_without_an_exported_name_is_underscored() -> None:
    """By semantic versioning a move of any other module would break somebody."""
    names = exported()

    looks_public = [
        module
        for module in modules()
        if not private(module)
        and not module.startswith(_COMMANDS)
        and path_of(module).name != "__init__.py"
        and module not in {f"{PACKAGE}.{name}" for name in ("errors", "testing", "pytest_plugin")}
        and defined(module).isdisjoint(names)
    ]

    assert looks_public == []


@pytest.mark.parametrize("package", packages())
def test_exported_names_are_known_by_the_module_that_users_import(package: str) -> None:
    """Help, reprs and tracebacks show `rag_eval_integrations.RagCall`, not the file behind it."""
    module = importlib.import_module(package)

    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type | FunctionType) and value.__module__.startswith(PACKAGE):
            home = importlib.import_module(value.__module__)
            assert value.__name__ in home.__all__, f"{package}.{name} says {value.__module__}"


def test_no_public_name_is_also_a_submodule() -> None:
    """`from package import name` gives one thing, whatever was imported before."""
    for package in packages():
        module: ModuleType = importlib.import_module(package)
        below = {name.rpartition(".")[2] for name in modules() if name.startswith(f"{package}.")}
        assert below.isdisjoint(module.__all__), package


# --- Imports

Arrow = tuple[str, str]
"""A module, and one that it imports."""


def imports(source: str) -> Iterator[tuple[str, str, bool]]:
    """Every `from MODULE import NAME`, in functions as well, and whether it is for types alone."""
    nodes = list(ast.walk(ast.parse(source)))
    guarded = [
        statement
        for node in nodes
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        for statement in node.body
    ]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                yield node.module, alias.name, node in guarded


def arrows(sources: Mapping[str, str]) -> Iterator[tuple[Arrow, bool]]:
    """Every import of one module by another, and whether it is for types alone.

    A package's `__init__` is a module like any other: the arrow to a name that it gathers leads to
    it. What it exports by `lazy` is not loaded with it but with the name's first use: that arrow
    leads to the name's own module, which is the one that the `__init__` tells type checkers.
    """
    statements = {module: list(imports(source)) for module, source in sources.items()}
    lazy = {module for module, source in sources.items() if "lazy(" in source}
    exports = {
        (module, name): home for module in lazy for home, name, typed in statements[module] if typed
    }

    def loaded(home: str, name: str) -> Iterator[str]:
        """Yield the modules that an import of a name leads to."""
        if f"{home}.{name}" in sources:
            yield f"{home}.{name}"
            return
        if home in sources:
            yield home
        if (home, name) in exports:
            yield from loaded(exports[home, name], name)

    for module in sources:
        for home, name, typed in statements[module]:
            if not (typed and module in lazy):
                yield from (((module, to), typed) for to in loaded(home, name) if to != module)


def circle_in(sources: Mapping[str, str], ways_up: Collection[Arrow] = ()) -> list[str]:
    """A circle of modules that import each other, by other ways than those; empty without one."""
    below: dict[str, set[str]] = {}
    for arrow, typed in arrows(sources):
        if arrow not in ways_up and not (typed and arrow == _TYPES_ALONE):
            below.setdefault(arrow[0], set()).add(arrow[1])
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def texts() -> dict[str, str]:
    """The source of every module."""
    return {module: path_of(module).read_text() for module in modules()}


def test_modules_import_each_other_in_no_circle(root: Path) -> None:
    """Not even in functions, through a package or for types: they would be one module.

    The exceptions are those of the import contract.
    """
    tools = tomllib.loads((root / "pyproject.toml").read_text())["tool"]
    listed = tools["importlinter"]["contracts"][0]["ignore_imports"]
    ways_up = {tuple(arrow.split(" -> ")) for arrow in listed}

    assert circle_in(texts(), ways_up) == []


_GATHERED = "from p.judges.own import Own"
_IN_FUNCTION = "def judge_from():\n    from p.judges import Own"


@pytest.mark.parametrize(
    "sources",
    [
        {"p.judge": _IN_FUNCTION, "p.judges": _GATHERED},
        {
            "p.judge": _IN_FUNCTION,
            "p.judges": f"if TYPE_CHECKING:\n    {_GATHERED}\nlazy(__name__, {{}})",
        },
        {"p.judge": f"if TYPE_CHECKING:\n    {_GATHERED}"},
    ],
    ids=["gathered by a package", "exported on first use", "for types"],
)
def test_a_circle_is_seen_wherever_its_imports_stand(sources: dict[str, str]) -> None:
    """A factory in the module of the protocol that its products implement."""
    own = {"p.judges.own": "from p.judge import Judge"}

    assert {"p.judge", "p.judges.own"} <= set(circle_in(sources | own))
    assert circle_in(sources) == []
    assert circle_in(sources | own, [("p.judges.own", "p.judge")]) == []


def test_imports_by_a_string_are_named_here() -> None:
    """Neither a type checker nor the import contract follows them, so there are few."""
    by_string = {
        f"{module.removeprefix(f'{PACKAGE}.')}.{getattr(statement, 'name', '')}"
        for module, text in texts().items()
        if "import_module(" in text
        for statement in ast.parse(text).body
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module")
    }

    assert by_string == _BY_STRING
