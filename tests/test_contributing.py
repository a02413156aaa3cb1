"""CONTRIBUTING.md and docs/contributing.md: their lists are those of the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import text_of

import rag_eval_integrations


def test_every_part_of_the_package_has_its_line() -> None:
    """Packages and modules at the top, and no others."""
    package = Path(rag_eval_integrations.__file__).parent
    parts = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in package.iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
    }
    rows = re.findall(r"^\| ((?:`[\w.]+/?`(?:, )?)+) \|", text_of("CONTRIBUTING.md"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+/|\w+\.py)`", row)}

    assert named == parts - {"__init__.py"}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/contributing.md"])
def test_every_file_that_the_page_names_is_there(page: str, root: Path) -> None:
    """Paths below the checkout, and those below the package."""
    paths = re.findall(r"`((?:tests|benchmarks|cli|judges|metrics|sinks)/[\w/.]+)`", text_of(page))

    assert paths
    for path in paths:
        assert (root / path).exists() or (root / "rag_eval_integrations" / path).exists(), path
