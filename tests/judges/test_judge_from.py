"""From what a user passes as `judge=` to a judge."""

from __future__ import annotations

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import judge_from


def test_a_name_or_an_object() -> None:
    """`embedded` makes the judge; an object that labels is returned unchanged."""
    judge = ScriptedJudge(labels_of([], [], {}))

    assert judge_from("embedded").name == "embedded"
    assert judge_from(judge) is judge


@pytest.mark.parametrize("judge", ["gpt-4", "", 5, None])
def test_anything_else_raises_and_names_the_value(judge: object) -> None:
    """Never a fallback to another judge."""
    with pytest.raises(ConfigurationError, match="`judge` = "):
        judge_from(judge)  # type: ignore[arg-type]
