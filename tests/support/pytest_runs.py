"""Runs of pytest inside a test, in this process, with the plugin and no other."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from _pytest.pytester import SysModulesSnapshot

PLUGIN = "rag_eval_integrations.pytest_plugin"
ROOT = Path(__file__).resolve().parent.parent.parent


def alone(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Load no plugin by its entry point, whichever the environment has; write nothing for CI.

    Args:
        monkeypatch: pytest's fixture.
        folder: that of the run, whose modules are forgotten after it.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "300")

    forget_all = SysModulesSnapshot.restore

    def forget_own(snapshot: SysModulesSnapshot) -> None:
        """Forget the modules of the folder alone.

        pytester forgets all that a run imported. Modules of the library are held by others, so that
        a later test would get a second copy of each class.
        """
        kept = dict(sys.modules)
        forget_all(snapshot)
        for name, module in kept.items():
            file = getattr(module, "__file__", None)
            if file is None or not Path(file).is_relative_to(folder):
                sys.modules.setdefault(name, module)

    monkeypatch.setattr(SysModulesSnapshot, "restore", forget_own)
