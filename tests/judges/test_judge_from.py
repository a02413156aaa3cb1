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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("base_url", "http://127.0.0.1/v1"),
        ("rpm", 5.0),
        ("tpm", 5.0),
        ("max_concurrency", 4),
        ("cache", "cache.db"),
        ("on_wait", print),
    ],
)
def test_an_option_that_the_judge_lacks_is_refused(option: str, value: object) -> None:
    """A limit that is silently not kept is worse than none."""
    scripted = ScriptedJudge(labels_of([], [], {}))

    for judge in ("embedded", scripted):
        with pytest.raises(ConfigurationError, match=f"`{option}` = .*openai:MODEL"):
            judge_from(judge, **{option: value})  # type: ignore[arg-type]
