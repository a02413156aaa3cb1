"""Conversations of a page: turns in their order, and the first one that went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import axe
from hostile import HOSTILE, acting
from parsed import Parsed
from runs import call

from rag_eval_integrations import Evaluation
from rag_eval_integrations.evaluations import Groups
from rag_eval_integrations.report import _conversations
from rag_eval_integrations.report._conversations import Conversations
from rag_eval_integrations.report._page import write
from rag_eval_integrations.report.html import report_pieces

if TYPE_CHECKING:
    from .conftest import Open

START = datetime(2026, 11, 1, tzinfo=UTC)


def turn(name: str, number: int, value: float | str = 1.0, **more: Any) -> Evaluation:
    """A turn of a conversation; one of the value 0 is a hallucination."""
    fields: dict[str, Any] = {
        "metadata": {"conversation_id": name}, "started_at": START + timedelta(0, number),
        "question": f"{name} turn {number}?", "supported": value == 1.0,
    }  # fmt: skip
    return call(f"{name}{number}", {"adherence": value}, **{**fields, **more})


def gathered(*turns: Evaluation) -> Conversations:
    conversations = Conversations()
    for each in turns:
        conversations.add(each)
    return conversations


def test_turns_stand_in_the_order_of_their_time() -> None:
    """Else in that of the file; the conversation that went wrong comes first."""
    mixed = gathered(
        turn("good", 2), turn("good", 1), turn("single", 1),
        turn("bad", 3, 0.0), turn("bad", 1), turn("bad", 2, 0.0),
        turn("file", 2), turn("file", 1, started_at=None),
    )  # fmt: skip

    views = mixed.views()
    assert [(view["name"], view["first"]) for view in views] == [
        ("bad", 2), ("good", 0), ("file", 0),
    ]  # fmt: skip
    assert [[each["question"][-2] for each in view["turns"]] for view in views] == [
        ["1", "2", "3"], ["1", "2"], ["2", "1"],
    ]  # fmt: skip


def test_a_short_conversation_counts_as_much_as_a_long_one() -> None:
    """The mean per conversation is that of their means; an unscored turn is in none."""
    conversations = gathered(
        *[turn("long", n, 0.0) for n in range(9)], turn("short", 1), turn("unscored", 1, "refusal")
    )
    (mean,) = conversations.means().values()

    assert (mean.mean, mean.n) == (0.5, 2)


def test_a_turn_shows_what_it_retrieved() -> None:
    """The documents of its own turn alone, with their ids, else numbers."""
    (view,) = gathered(
        turn("t", 1, documents=["One.", "Two."], document_ids=["one", None]),
        turn("t", 2, documents=["Old.", "New."], document_ids=["old", "new"], earlier=(0,)),
    ).views()

    assert [each["documents"] for each in view["turns"]] == [
        [("one", False), ("document 1", False)], [("new", False)],
    ]  # fmt: skip


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first calls that name one; the page says so."""
    monkeypatch.setattr(_conversations, "_MOST", 3)
    (view,) = gathered(*[turn("t", n) for n in range(9)]).views()

    assert len(view["turns"]) == 3


def test_a_page_without_conversations_has_no_section() -> None:
    """Nor one whose conversations have one turn each."""
    page = "".join(report_pieces([turn("a", 1), turn("b", 1), call("c", {"adherence": 1.0})]))

    assert "conversations-heading" not in page
    assert "groups-heading" not in page


def hostile_rows() -> list[Evaluation]:
    """Conversations and routes whose names attack a page."""
    return [
        turn(text or "empty", n, float(n % 2), question=text, document_ids=[text], documents=[text],
             metadata={"conversation_id": text or "empty", "route": text})
        for text in [*sorted(HOSTILE, key=lambda text: "<" not in text), "x" * 3_000] for n in range(2)
    ]  # fmt: skip


def page_of(rows: list[Evaluation]) -> str:
    """A report with both sections."""
    groups = Groups("metadata.route")

    def read() -> Iterator[Evaluation]:
        for row in rows:
            groups.add(row)
            yield row
        groups.ranked()

    return "".join(report_pieces(read(), groups=groups))


def test_hostile_names_cannot_act() -> None:
    """Neither of groups nor of conversations, questions and documents."""
    text = page_of(hostile_rows())

    assert acting(text) == []
    assert not re.findall(r"<(?:script>alert|img|b>bold|iframe|a href=.http)", text)
    assert len(Parsed(text).texts("h2")) > 4


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_browser_shows_both_sections(opened: Open, tmp_path: Path, width: int) -> None:
    """No wider than a telephone; a conversation unfolds; axe finds nothing."""
    rows = [turn(name, n, float(n != 2)) for name in ("ada", "bob") for n in range(4)]
    rows = [row.model_copy(update={"metadata": {**row.metadata, "route": row.id}}) for row in rows]
    path = tmp_path / "threads.html"
    for name, given in (("threads", rows), ("hostile", hostile_rows())):
        write(path.with_stem(name), [page_of(given)])
    page = opened(str(path), viewport={"width": width, "height": 844})
    page.locator("summary", has_text="ada: 4 turns").click()

    assert page.get_by_text("The first turn that went wrong").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe(page) == []
    hostile = opened(str(path.with_stem("hostile")), viewport={"width": width, "height": 844})
    hostile.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert hostile.evaluate("document.documentElement.scrollWidth") <= width
