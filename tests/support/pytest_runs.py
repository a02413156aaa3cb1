"""Runs of pytest inside a test, in this process, with the plugin and no other."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

PLUGIN = "rag_eval_integrations.pytest_plugin"
ROOT = Path(__file__).resolve().parent.parent.parent


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load no plugin by its entry point, whichever the environment has; write nothing for CI."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "300")


class _Imported:
    """Sees what is in memory at the end of a run."""

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}

    def pytest_unconfigure(self) -> None:
        self.modules = dict(sys.modules)


def run_pytest(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest in the test's folder.

    pytester forgets the modules that a run imported. Those of the library are held by others, so
    that a later test would get a second copy of each class; all but the folder's own are kept.
    """
    imported = _Imported()
    result = pytester.runpytest_inprocess(*options, plugins=[imported])
    for name, module in imported.modules.items():
        file = getattr(module, "__file__", None)
        if file is None or not Path(file).is_relative_to(pytester.path):
            sys.modules.setdefault(name, module)
    return result
