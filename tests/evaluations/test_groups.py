"""`Evaluations.by`: means of groups beside each other, the worst first."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hostile import HOSTILE
from runs import call

from rag_eval_integrations import Evaluation, Evaluations
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations import _formats, _groups
from rag_eval_integrations.records import By, Capture


def routed(route: object, values: list[float], **more: Any) -> list[Evaluation]:
    """Calls with one route."""
    return [
        call(f"{route}{n}", {"completeness": 0.5, "adherence": value},
             metadata={"route": route, **more})
        for n, value in enumerate(values)
    ]  # fmt: skip


ROUTES = Evaluations([
    *routed("billing", [1.0] * 9 + [0.0]), *routed("returns", [0.0] * 6 + [1.0] * 6),
    *routed("jobs", [0.0] * 3), call("none", {"adherence": 1.0}),
])  # fmt: skip


def test_the_worst_group_comes_first_and_small_ones_last() -> None:
    """By adherence, with the intervals of the summaries; calls without the field are counted."""
    groups = ROUTES.by("metadata.route")

    assert list(groups) == ["returns", "billing", "jobs"] == list(ROUTES.by("route"))
    assert (groups["returns"].calls, groups.without) == (12, 1)
    (adherence,) = (s for s in groups["returns"].scores if s.name == "adherence")
    lines = str(groups).splitlines()
    assert adherence.interval is not None
    assert f"0.500, {adherence.interval.low:.2f} to {adherence.interval.high:.2f}" in lines[1]
    assert [("too few" in line) for line in lines[1:4]] == [False, False, True]
    assert lines[-1] == "1 call without metadata.route."


def test_groups_are_those_of_every_field_of_where() -> None:
    """Metadata, app, judge, pattern, tags and conversation; of a list, a call is in each group."""
    tagged = call(
        "t", {"adherence": 0.0}, supported=False, metadata={"session_id": 7, "n": {"deep": True}},
        capture=Capture(framework="plain", tags=("a", "b"), metadata={"thread_id": "x"}),
        app="help",
    )  # fmt: skip
    rows = Evaluations([tagged])

    fields = ("app", "tags", "conversation", "n.deep", "judge", "pattern", "metadata.session_id")
    assert [list(rows.by(field)) for field in fields] == [
        ["help"], ["a", "b"], ["x"], ["true"], ["by hand"], ["hallucination"], ["7"],
    ]  # fmt: skip
    assert rows.by("conversation").least == 1
    assert list(Evaluations().by("route")) == []


def test_a_field_that_no_call_has_is_refused() -> None:
    """With the fields that there are; and one with a value per call is no group."""
    with pytest.raises(ConfigurationError, match="none of 25 calls; the last has route"):
        ROUTES[:-1].by("metadata.rout")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_groups, "MOST_GROUPS", 2)
        with pytest.raises(ConfigurationError, match="has more than 2 values"):
            ROUTES.by("route")


def test_scores_of_different_makers_have_no_common_mean() -> None:
    """Neither in a group nor beside each other."""
    other = call("o", {"adherence": 0.0}, by=By(judge="other"), metadata={"route": "jobs"})
    told = str(Evaluations([*ROUTES, other]).by("route"))

    assert "made in several ways" in told
    assert told.endswith("Scores were made in different ways: such groups cannot be compared.")


def test_hostile_names_of_groups_stay_on_their_line() -> None:
    """On a terminal and in Markdown; JSON has them as they are."""
    texts = ("x" * 3_000, *HOSTILE)
    rows = Evaluations([row for text in texts for row in routed(text, [1.0])])
    groups = rows.by("route")

    lines = str(groups).splitlines()
    assert len(lines) == 1 + min(len(groups), 100) + (len(groups) > 100)
    assert not any(ord(sign) < 32 or 0x7F <= ord(sign) < 0xA0 for line in lines for sign in line)
    assert max(map(len, lines)) < 200
    page = _formats.to_markdown(rows.summary(), "t", groups)
    section = page.split("## Groups")[1].split("\n## ")[0]
    assert "<" not in re.sub("(`+).*?[^`]\\1(?!`)", "", section)  # all in code spans
    assert len(json.loads(_formats.to_json(rows.summary(), groups))["groups"]) == len(groups)
