"""From what a user passes as `judge=` to a judge."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import ScriptedJudge, labels_of

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import CascadeJudge, judge_from


def test_a_name_or_an_object() -> None:
    """`embedded` makes the judge; an object that labels is returned unchanged."""
    judge = ScriptedJudge(labels_of([], [], {}))

    assert judge_from("embedded").name == "embedded"
    assert judge_from(judge) is judge


def test_a_cascade_by_its_name() -> None:
    """As on the command line: two judges or three, with the options for what asks an endpoint."""
    at = "http://h/v1"
    two: Any = judge_from("cascade:embedded, openai:large", base_url=at, api_key="k")

    assert [judge.name for judge in two.judges] == ["embedded", "openai:large"]
    assert two.model.model == "large"
    assert isinstance(judge_from("cascade:embedded,embedded"), CascadeJudge)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ("cascade:embedded", "`judge` = 'cascade:embedded': use cascade:A,B"),
        ("cascade:embedded,embedded,embedded", "use cascade:A,B"),
        ("cascade:embedded,", "use cascade:A,B"),
        ("cascade:openai:m,embedded", "openai:m is a model, which does not say how sure it is"),
        ("cascade:embedded,os:path", "`judge` = 'os:path': no such judge"),
    ],
)
def test_a_cascade_that_cannot_be_is_refused(
    judge: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Naming what was written; nothing is imported by its name."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(ConfigurationError, match=why):
        judge_from(judge)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ("openai", "did you mean 'openai:MODEL'"),
        ("openai:", "name a model, as in 'openai:gpt-4o-mini'"),
        *((judge, "") for judge in ("gpt-4", "", 5, None)),
    ],
)
def test_anything_else_raises_and_names_the_value(judge: Any, why: str) -> None:
    """Never a fallback to another judge; a form without its model is told what is missing."""
    with pytest.raises(ConfigurationError, match=f"`judge` = {judge!r}: .*{why}"):
        judge_from(judge)


@pytest.mark.parametrize(
    ("option", "value"),
    [("base_url", "http://h/v1"), ("rpm", 5.0), ("cache", "cache.db"), ("on_wait", print)],
)
def test_an_option_that_the_judge_lacks_is_refused(option: str, value: object) -> None:
    """A limit that is silently not kept is worse than none."""
    scripted = ScriptedJudge(labels_of([], [], {}))

    for judge in ("embedded", "cascade:embedded,embedded", scripted):
        with pytest.raises(ConfigurationError, match=f"`{option}` = .*openai:MODEL"):
            judge_from(judge, **{option: value})  # type: ignore[arg-type]
