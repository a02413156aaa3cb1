"""What rooms above do with evaluations: `dataset` reads and writes files, `report` makes pages.

They import this room, so it names their functions here, and a function is imported when it is first
used. These are the only arrows that point up: imports elsewhere point down (`pyproject.toml`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ABOVE = {
    "read": "dataset._input:read_evaluations",
    "read some": "dataset._input:evaluations_at",
    "write evaluations": "dataset.files:evaluations_to",
    "write rows": "dataset.files:rows_to",
    "RAGBench's row": "dataset.rows:ragbench_line",
    "write a page": "report.html:write_report",
}
"""What is done → the module of this package, and its function."""


def above(name: str) -> Any:
    """Look up a function that a higher layer has registered, by what it does."""
    module, _, function = ABOVE[name].partition(":")
    package = __name__.partition(".")[0]
    return getattr(import_module(f"{package}.{module}"), function)
