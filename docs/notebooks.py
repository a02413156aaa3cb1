"""Execute the notebooks of examples/ and save them with their outputs.

    uv run python docs/notebooks.py

Run it when a notebook, or what one shows, changes; the tests compare the outputs.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs that it has now, and nothing about the machine."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=200, record_timing=False).execute(cwd=str(path.parent))
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        nbformat.write(executed(path), path)
