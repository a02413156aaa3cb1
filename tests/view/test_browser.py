"""The served pages in a real browser: they change while they are open, and nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import axe
from report_rows import evaluations

from .conftest import serving, tab, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

ROWS = evaluations()[3:]


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(browser: Browser, tmp_path: Path, width: int) -> None:
    """In both schemes, on a list with a trend, a run that goes on, and a page without a token."""
    rows = [row.model_copy(update={"app": "shop"}) for row in ROWS[:40]]
    write(tmp_path / "a.jsonl", rows[:20])
    write(tmp_path / "b.jsonl", rows[20:])
    write(tmp_path / "c.jsonl.partial", rows[:10])
    (tmp_path / "other.txt").touch()
    size = {"width": width, "height": 900}
    with serving(tmp_path) as served, tab(browser, served, viewport=size) as opened:
        page = opened.page
        page.get_by_text("Trend of shop over 3 runs").wait_for()
        page.locator("details summary").click()
        for place in ("", "run/c.jsonl.partial", "run/none"):
            if place:
                page.goto(f"{served.address}/{place}")
            opened.messages = [text for text in opened.messages if "404" not in text]
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert axe(page) == []
            page.emulate_media(color_scheme="dark")
            assert axe(page, "color-contrast") == []
            page.emulate_media(color_scheme="light")


@pytest.mark.slow
def test_the_list_follows_the_folder(browser: Browser, tmp_path: Path) -> None:
    """New runs appear and figures change; what is picked and focused stays, rows too."""
    write(tmp_path / "a.jsonl", ROWS[:20])
    with serving(tmp_path) as served, tab(browser, served) as opened:
        page = opened.page
        row = page.locator("tr[id='run-a.jsonl']")
        row.get_by_text("20 calls").wait_for()
        box = row.get_by_role("checkbox")
        box.check()
        box.focus()
        write(tmp_path / "b.jsonl.partial", ROWS[:5])
        page.get_by_text("5 calls").wait_for()
        assert page.locator("h2").first.inner_text() == "2 runs, the newest first"
        write(tmp_path / "a.jsonl", ROWS[20:25], "a")
        row.get_by_text("25 calls").wait_for()

        assert box.is_checked()
        assert box.evaluate("(one) => one === document.activeElement")
        (tmp_path / "b.jsonl.partial").unlink()
        page.get_by_role("heading", name="1 run, the newest first").wait_for()


def test_calls_come_to_a_page_that_is_open(browser: Browser, tmp_path: Path) -> None:
    """The call that is open stays the same element, with its sentence pinned and its place."""
    path = write(tmp_path / "a.jsonl.partial", ROWS[:30])
    with serving(tmp_path) as served, tab(browser, served) as opened:
        page = opened.page
        page.goto(f"{served.address}/run/a.jsonl.partial")
        page.get_by_text("This run goes on: 30 calls so far").wait_for()
        page.locator(".body .row").nth(7).locator("a").click()
        page.locator("#one .s[data-side='a']").first.click()
        page.evaluate("window.scrollTo(0, 120)")
        call = page.locator("#one .call").element_handle()
        begin = call.inner_html()
        write(path, ROWS[30:60], "a")
        page.get_by_text("60 calls so far").wait_for()

        assert call.evaluate("(one) => one.isConnected")
        assert call.inner_html() == begin
        assert page.evaluate("scrollY") == 120
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        page.locator("#count").get_by_text("60 calls", exact=True).wait_for()
        # By the keyboard alone: to the last row, which came later, and into it.
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        title = page.locator("#one h2").inner_text()
        assert title == ROWS[59].question
        assert ROWS[59].response is not None
        assert (
            page.locator("#one .answer .s")
            .first.inner_text()
            .endswith(ROWS[59].sentences.response[0].text)
        )
        path.rename(tmp_path / "a.jsonl")
        page.get_by_role("link", name="Its calls are here now.").click()
        page.locator("#count").get_by_text("60 calls", exact=True).wait_for()


def test_calls_that_come_are_sorted_filtered_and_searched(browser: Browser, tmp_path: Path) -> None:
    """As those that were there; a pattern and a reason that are new have their names."""
    healthy = [row for row in ROWS if not row.diagnosis][:5]
    failing = [row for row in ROWS if row.diagnosis][:40]
    path = write(tmp_path / "a.jsonl.partial", healthy)
    with serving(tmp_path) as served, tab(browser, served) as opened:
        page = opened.page
        page.goto(f"{served.address}/run/a.jsonl.partial#sort=adherence")
        page.locator("#count").get_by_text("5 calls").wait_for()
        write(path, failing, "a")
        page.locator("#count").get_by_text("45 calls").wait_for()

        values = [
            row.scores["adherence"].value
            for row in (*healthy, *failing)
            if "adherence" in row.scores
        ]
        shown = page.locator(".body .row [data-label='adherence']").all_text_contents()
        figures = [float(text.split()[0]) for text in shown if not text.startswith("–")]
        assert figures == sorted(value for value in values if value is not None)
        name = failing[0].diagnosis[0].pattern
        page.locator("#pattern").select_option(name)
        count = sum(name in [d.pattern for d in row.diagnosis] for row in failing)
        page.locator("#count").get_by_text(f"{count} of 45 calls").wait_for()


@pytest.mark.slow
def test_a_run_is_followed_while_2_000_calls_come(browser: Browser, tmp_path: Path) -> None:
    """Up to the end of the page; its list grows, and what a browser holds beside it does not."""
    path = write(tmp_path / "a.jsonl.partial", ROWS[:20])
    with serving(tmp_path) as served, tab(browser, served) as opened:
        page = opened.page
        page.goto(f"{served.address}/run/a.jsonl.partial")
        page.locator("#count").get_by_text("20 calls").wait_for()
        page.locator(".body .row").first.locator("a").click()
        call = page.locator("#one .call").element_handle()
        for _ in range(10):
            write(path, (ROWS * 2)[:198], "a")
            page.wait_for_timeout(1000)
        page.get_by_text("2,000 calls so far").wait_for()
        page.get_by_role("link", name="Further calls are on the next page.").wait_for()

        assert call.evaluate("(one) => one.isConnected")
        page.keyboard.press("Escape")
        page.locator("#count").get_by_text("1,000 calls").wait_for()
        page.get_by_role("link", name="Further calls are on the next page.").click()
        page.locator("#count").get_by_text("1,000 calls").wait_for()
        assert (page.locator(".body .row").first.text_content() or "").startswith("1001")


def test_a_server_that_has_gone_is_told(browser: Browser, tmp_path: Path) -> None:
    """And one that was started anew wants its token; the address stays."""
    write(tmp_path / "a.jsonl", ROWS[:5])
    with serving(tmp_path) as served, tab(browser, served) as opened:
        page = opened.page
        page.context.clear_cookies()
        page.get_by_text("open the address that it printed").wait_for()
        opened.messages = [text for text in opened.messages if "403" not in text]
        page.route("**/*", lambda route: route.abort())
        page.get_by_text("The server does not answer").wait_for()
        opened.messages.clear()
