"""docs/judges.md: its Python examples run as they stand, offline."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from rag_eval_integrations.models.openai import Capabilities, OpenAIModel


def test_examples_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other; what they print is what their comments say."""
    page = (root / "docs" / "judges.md").read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "docs"}
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    for code in blocks:
        exec(compile(code, "docs/judges.md", "exec"), namespace)

    said = re.findall(r"^# (.*)$", "\n".join(blocks), re.M)
    assert capsys.readouterr().out.splitlines() == said
    model = namespace["model"]
    assert isinstance(model, OpenAIModel)
    assert model.base_url == "https://NAME.openai.azure.com/openai".lower()


def test_what_it_names_exists(root: Path) -> None:
    """Arguments of the table and fields of the learned record."""
    page = (root / "docs" / "judges.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^        ([a-z_]+): ", OpenAIModel.__doc__ or "", re.M)) - {"model"}
    fields = {field.name for field in dataclasses.fields(Capabilities)} | {"ignored"}

    assert known
    assert all(f"`{name}`" in page for name in known)
    assert {"refused", "limits", "observed", "ignored"} <= fields
