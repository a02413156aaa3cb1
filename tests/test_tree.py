"""The tree keeps its own rules: a public surface that says where it ends, and no circles."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import rag_eval_integrations

PACKAGE = "rag_eval_integrations"
SOURCE = Path(rag_eval_integrations.__file__).parent

# Entries without an `__all__` above them: the commands, and modules that are imported as they are.
_COMMANDS = f"{PACKAGE}.cli"

# Makes judges by the names that users write, so it imports the chosen one inside a function.
_BY_NAME = {f"{PACKAGE}.judges.judge"}


def modules() -> list[str]:
    """Every module by its dotted name, packages included."""
    below = pkgutil.walk_packages([str(SOURCE)], f"{PACKAGE}.")
    return [PACKAGE, *(module.name for module in below)]


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


def arrows() -> Iterator[tuple[str, str]]:
    """Every import of one module by another, in functions and for types alone included."""
    known = set(modules())
    for module in known:
        for node in ast.walk(ast.parse(path_of(module).read_text())):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            if module in _BY_NAME and node.col_offset > 4:
                continue
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                target = submodule if submodule in known else node.module
                if target in known and target != module and not is_init_of(target, module):
                    yield module, target


def is_init_of(target: str, module: str) -> bool:
    """Whether one is the package that the other is part of: its `__init__` gathers its parts."""
    return module.startswith(f"{target}.") or target.startswith(f"{module}.")


def test_modules_import_each_other_in_no_circle() -> None:
    """Not even for types alone: two modules that need each other are one module."""
    below: dict[str, set[str]] = {}
    for module, target in arrows():
        below.setdefault(module, set()).add(target)

    assert len(below) > 100
    TopologicalSorter(below).prepare()  # or an error that shows the circle
