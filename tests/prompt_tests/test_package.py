"""The package as a user imports it."""

from __future__ import annotations

from pathlib import Path

import pytest

import rag_eval_integrations.prompt_tests as package
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests import GenerateOptions
from rag_eval_integrations.prompt_tests._workspace import Workspace


def test_every_public_name_exists() -> None:
    """And only these."""
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        package.Nothing  # noqa: B018  # type: ignore[attr-defined]
    assert package.GenerateOptions is GenerateOptions


def test_a_file_of_endless_brackets_is_refused(tmp_path: Path) -> None:
    """With its name; nothing else breaks."""
    (tmp_path / "tests.json").write_text("[" * 100_000)
    with pytest.raises(ConfigurationError, match=r"tests\.json"):
        Workspace(tmp_path).read_json("tests.json")


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """Nothing is left beside it; lone surrogates and blank files are no trouble."""
    workspace = Workspace(tmp_path / "new")
    workspace.write("a.txt", "\ud800")
    workspace.write("b.txt", " \n")

    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a.txt", "b.txt"]
    assert (workspace.has("a.txt"), workspace.has("b.txt"), workspace.has("c.txt")) == (
        True,
        False,
        False,
    )
