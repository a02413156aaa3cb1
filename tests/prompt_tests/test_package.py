"""The package as a user imports it."""

from __future__ import annotations

import pytest

import rag_eval_integrations.prompt_tests as package
from rag_eval_integrations.prompt_tests import GenerateOptions


def test_every_public_name_exists() -> None:
    """And only these."""
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        package.Nothing  # noqa: B018  # type: ignore[attr-defined]
    assert package.GenerateOptions is GenerateOptions
