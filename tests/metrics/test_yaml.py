"""What is refused before YAML is read: each bound on both of its sides."""

from __future__ import annotations

import pytest
import yaml

from rag_eval_integrations.metrics._yaml import check_yaml


def aliases(number: int) -> str:
    return "a: &a 1\nb: [" + ", ".join(["*a"] * number) + "]"


@pytest.mark.parametrize(
    ("allowed", "refused", "why"),
    [
        ("x" * 200_000, "x" * 200_001, "more than 200,000 characters of YAML"),
        ("[" * 64 + "]" * 64, "[" * 65 + "]" * 65, "nested more than 64 levels deep"),
        (
            "{a: " * 64 + "1" + "}" * 64,
            "{a: " * 65 + "1" + "}" * 65,
            "nested more than 64 levels deep",
        ),
        (aliases(20), aliases(21), "more than 20 aliases"),
    ],
    ids=["characters", "lists", "mappings", "aliases"],
)
def test_bounds(allowed: str, refused: str, why: str) -> None:
    """The last that passes and the first that does not."""
    check_yaml(allowed)

    with pytest.raises(ValueError, match=why):
        check_yaml(refused)


def test_what_is_side_by_side_is_not_deep() -> None:
    """A list of 200 lists is two deep."""
    check_yaml("[" + "[], " * 100 + "{}, " * 100 + "]")


def test_depth_counts_before_the_end_is_seen() -> None:
    """Brackets that never close are too deep, not broken; a few of them are broken."""
    with pytest.raises(ValueError, match="deep"):
        check_yaml("[" * 20_000)
    with pytest.raises(yaml.YAMLError):
        check_yaml("[" * 20)
