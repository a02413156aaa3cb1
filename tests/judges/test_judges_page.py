"""docs/judges.md: its Python examples run as they stand, offline."""

from __future__ import annotations

import dataclasses
import re

import pytest
from pages import promised_by, run_python, text_of

from rag_eval_integrations.models.openai import Capabilities, OpenAIModel

PAGE = "docs/judges.md"


def test_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    """One after the other; what they print is what their comments say."""
    model = run_python(PAGE)["model"]

    assert capsys.readouterr().out.splitlines() == promised_by(PAGE)
    assert isinstance(model, OpenAIModel)
    assert model.base_url == "https://NAME.openai.azure.com/openai".lower()


def test_what_it_names_exists() -> None:
    """Arguments of the table and fields of the learned record."""
    known = set(re.findall(r"^        ([a-z_]+): ", OpenAIModel.__doc__ or "", re.M)) - {"model"}
    fields = {field.name for field in dataclasses.fields(Capabilities)} | {"ignored"}

    assert known
    assert all(f"`{name}`" in text_of(PAGE) for name in known)
    assert {"refused", "limits", "observed", "ignored"} <= fields
