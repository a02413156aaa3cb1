"""The page of `rag-eval store report` in a real browser, opened from disk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import Opened, axe, chromium
from hostile import MARKUP
from runs import call as evaluation_of

from rag_eval_integrations import RagCall
from rag_eval_integrations.cli._store_arguments import StoreReportOptions
from rag_eval_integrations.cli.store import report
from rag_eval_integrations.records import to_line
from rag_eval_integrations.store import Store
from rag_eval_integrations.store.database import Outcome
from rag_eval_integrations.store.spool import SpooledCall

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a store with two days of calls, some with texts that attack a page."""
    folder = tmp_path_factory.mktemp("store")
    with closing(Store(folder / "e.db")) as store:
        for number in range(60):
            question = MARKUP[number % len(MARKUP)] if number % 7 == 0 else f"When, {number}?"
            call = RagCall(question, ["It leaves at nine."], "At ten.")
            at = time.time() - number * 2_900
            store.add([SpooledCall(f"{number}", at, to_line(call))])
            (claimed,) = store.claim("w", 1)
            evaluation = evaluation_of(
                f"id {number}", {"context_relevance": 0.5, "adherence": float(number % 3 > 0)},
                supported=number % 3 > 0, question=question, fingerprint="f",
            )  # fmt: skip
            store.settle([Outcome(claimed, "judged", evaluation=evaluation)], "w")
    page = folder / "index.html"
    report(StoreReportOptions(store=str(folder / "e.db"), out=page))
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, off the network."""
    with chromium() as started:
        yield started


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable(browser: Browser, written: Path, width: int, scheme: str) -> None:
    """On a telephone and a desktop, in both schemes: no faults, the first failing call in sight.

    Nothing is wider than the screen; charts are wide, and their texts are not small.
    """
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    tab = Opened(page)
    tab.go(written)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    first = page.locator("details.worst").first.bounding_box()
    assert first is not None
    assert first["y"] + first["height"] < 844
    charts = page.locator("svg.chart")
    assert charts.count() == 9  # calls and two scores, each of an hour, a day and a week
    assert all(box["width"] >= 300 for box in map(box_of, charts.all()))
    texts = page.locator("svg.chart text").all()
    assert min(box_of(text)["height"] for text in texts) >= 11
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert axe(page) == []
    assert tab.messages == []
    assert {url.partition("#")[0] for url in tab.requests} == {written.as_uri()}
    page.close()


def test_a_failing_call_is_opened_by_keyboard(browser: Browser, written: Path) -> None:
    """By the link to the section, then the tab key, and Enter."""
    page = browser.new_page()
    Opened(page).go(written)
    page.get_by_role("link", name="Failing calls").press("Enter")
    first = page.locator("details.worst").first
    assert not is_open(page)
    page.keyboard.press("Tab")
    assert first.locator("summary").first.evaluate("(one) => one === document.activeElement")
    page.keyboard.press("Enter")
    assert is_open(page)
    page.close()


def box_of(place: object) -> dict[str, float]:
    box: dict[str, float] = place.bounding_box()  # type: ignore[attr-defined]
    return box


def is_open(page: Page) -> bool:
    opened: bool = page.locator("details.worst").first.evaluate("(one) => one.open")
    return opened
