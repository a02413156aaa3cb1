"""Exported names: resolved on first use, and shown under the module that users import from.

Importing a package must not load modules that the app does not use, and help, reprs and tracebacks
should show the public name instead of the file that defines it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import FunctionType

_ROOT = __name__.partition(".")[0]


def lazy(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make a package's `__getattr__` and `__dir__`.

    Args:
        package: the package's `__name__`.
        homes: submodule, relative to the package → the exported names that it defines.

    Returns:
        `__getattr__`, which imports the submodule of a name, and `__dir__`, which lists all names.
    """
    known = {name: home for home, names in homes.items() for name in names}

    def resolve(name: str) -> object:
        """Import a name from its module at its first use."""
        home = known.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home}"), name)
        _publish(package, name, value)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        """List the names of the package, also those not imported yet."""
        return sorted({*vars(sys.modules[package]), *known})

    return resolve, listed


def publish(package: str, names: Sequence[str]) -> None:
    """Set the public module of the names that a package has imported; `lazy` does the others."""
    known = vars(sys.modules[package])
    for name in names:
        if name in known:  # `lazy` resolves the others
            _publish(package, name, known[name])


def _publish(package: str, name: str, value: object) -> None:
    """Set `__module__` to the package that exports it, or to the top-level one if that does too.

    An alias stays known by its own name.
    """
    if not isinstance(value, type | FunctionType) or value.__name__ != name:
        return
    if value.__module__.startswith(f"{_ROOT}."):
        top = name in sys.modules[_ROOT].__all__
        value.__module__ = _ROOT if top else package
