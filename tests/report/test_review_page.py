"""The page of `rag-eval review --page` in a real browser: keys, what is kept, what is downloaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import axe
from report_rows import attacks, broken, graded, oven

from rag_eval_integrations import Evaluation
from rag_eval_integrations.dataset._labels_file import (
    Draw,
    LabelsFile,
    LabelsWriter,
    Population,
    asked,
)
from rag_eval_integrations.report._page import write
from rag_eval_integrations.report._review_page import review_page
from rag_eval_integrations.report.html import report_pieces

from .conftest import Open, context_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

DRAW = Draw("random", 2, 7, Population.of(["k", "l"]))
NAME = "review.html"
OF_ITS_OWN: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
"""Another context than that of other tests, with nothing kept."""


@pytest.fixture(autouse=True)
def _page(pages: Path) -> None:
    """A page that asks about two calls; the first has had an earlier turn."""
    first = oven().model_copy(update={"earlier": (1,)})
    write_review(pages / NAME, [first, graded()])


def write_review(path: Path, calls: Sequence[Evaluation], draw: Draw = DRAW) -> None:
    write(path, review_page(calls, draw, "ann", "labels.jsonl"))


def downloaded(page: Page, path: Path) -> list[dict[str, Any]]:
    """Press the key that downloads, and read the lines."""
    with page.expect_download() as download:
        page.keyboard.press("d")
    assert download.value.suggested_filename == "labels.jsonl"
    download.value.save_as(path)
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def said(page: Page) -> str:
    """What the live region says."""
    return page.locator("#status").inner_text()


def pressed(page: Page) -> list[str]:
    """The buttons that are pressed."""
    texts: list[str] = page.locator("[aria-pressed=true]").all_inner_texts()
    return texts


def test_the_keyboard_alone_labels_and_downloads_what_the_terminal_writes(
    opened: Open, tmp_path: Path
) -> None:
    """Line for line: of a first call that is whole, and a second that is half labelled."""
    page = opened(NAME, **OF_ITS_OWN)
    page.keyboard.press("u")
    for key in "nynyyynyy":  # 5 claims, 3 sentences of this turn, and a claim of the other call
        page.keyboard.press(key)
    assert said(page) == "9 of 10 sentences answered, 1 of 2 calls labelled whole."
    lines = downloaded(page, tmp_path / "down.jsonl")

    first = oven().model_copy(update={"earlier": (1,)})
    clock = datetime(2026, 1, 2, tzinfo=UTC)
    written = tmp_path / "written.jsonl"
    with LabelsWriter(written, "ann", DRAW, now=lambda: clock) as labels:
        for sentence, key in zip(asked(first), "nynyyyny", strict=True):
            labels.answer(first, sentence.key, key == "y")
        labels.answer(graded(), "a", True)
    ours = [json.loads(line) for line in written.read_bytes().splitlines()]
    for line in lines:
        assert datetime.fromisoformat(line.pop("when")).utcoffset() is not None
    for line in ours:
        del line["when"]
    assert lines == ours
    assert not LabelsFile(tmp_path / "down.jsonl").bad


def test_an_answer_can_be_changed_and_the_place_moves(opened: Open) -> None:
    """`k` goes back, `j` on; the last answer counts; keys in the name's field are letters."""
    page = opened(NAME, **OF_ITS_OWN)
    for key in "uynkkn":
        page.keyboard.press(key)
    assert pressed(page) == ["not supported", "not supported"]
    assert page.evaluate("document.activeElement.parentElement.ariaLabel") == "Answer sentence c"
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.parentElement.ariaLabel") == "Answer sentence d"
    page.get_by_label("Your name").fill("")
    page.get_by_label("Your name").press_sequentially("ynd")
    assert pressed(page) == []  # another person's
    page.get_by_role("button", name="supported", exact=True).first.click()
    assert pressed(page) == ["supported"]
    page.get_by_label("Your name").fill("ann")
    assert pressed(page) == ["not supported", "not supported"]


def test_without_a_name_nothing_is_kept(opened: Open) -> None:
    page = opened(NAME, **OF_ITS_OWN)
    page.get_by_label("Your name").fill(" ")
    page.get_by_role("button", name="supported", exact=True).first.click()
    assert said(page) == "Give your name first: it stands beside your labels."
    assert pressed(page) == []


def test_nothing_is_lost_on_reload_or_beside_another_tab(opened: Open, tmp_path: Path) -> None:
    """Each tab shows and downloads the answers of both; another draw has its own."""
    page = opened(NAME, **OF_ITS_OWN)
    other = page.context.new_page()
    other.goto(page.url)
    tabs = (page, other)
    for count, (tab, keys) in enumerate(((page, "uy"), (other, "ujjn"), (page, "jn")), 1):
        for key in keys:
            tab.keyboard.press(key)
        for each in tabs:  # `u` goes to the first sentence that no tab has answered
            each.get_by_text(f"{count} of 10 sentences answered").wait_for()
    page.reload()
    page.get_by_text("3 of 10 sentences answered").wait_for()
    page.keyboard.press("u")
    answers = {line["key"]: line["label"] for line in downloaded(page, tmp_path / "both.jsonl")}
    assert answers == {"a": True, "c": False, "d": False}

    write_review(tmp_path / "other.html", [oven()], DRAW._replace(seed=8))
    other.goto((tmp_path / "other.html").as_uri())
    assert said(other).startswith("0 of 10 sentences answered")
    other.close()


def test_a_browser_that_keeps_nothing_says_so(browser: Browser, pages: Path) -> None:
    """As in a frame of a build's page: answers count until it is closed."""
    frame = f'<!doctype html><iframe sandbox="allow-scripts" src="{NAME}" width=900></iframe>'
    (pages / "frame.html").write_text(frame)
    context = context_of(browser)
    try:
        page = context.new_page()
        page.goto((pages / "frame.html").as_uri())
        inside = page.frame_locator("iframe")
        inside.get_by_role("button", name="not supported").first.click()
        assert inside.locator("[aria-pressed=true]").all_inner_texts() == ["not supported"]
        status = inside.get_by_role("status").inner_text()
        assert "1 of 10 sentences answered" in status
        assert "download before you close the page" in status
    finally:
        context.close()


@pytest.mark.slow
def test_axe_finds_nothing(opened: Open) -> None:
    """At both widths, in both schemes; and no line is wider than a telephone."""
    for width in (390, 1280):
        page = opened(NAME, viewport={"width": width, "height": 844})
        page.keyboard.press("u")
        page.keyboard.press("y")
        assert axe(page) == []
        page.emulate_media(color_scheme="dark")
        assert axe(page, "color-contrast") == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_texts_do_nothing_and_are_downloaded_as_they_are(
    opened: Open, pages: Path, tmp_path: Path
) -> None:
    """Nothing runs or is fetched; a word of 100,000 characters is no wider than the page."""
    calls = [each for each in attacks() if asked(each)]
    write_review(pages / "hostile-review.html", calls)
    page = opened("hostile-review.html", viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="supported", exact=True).first.click()
    for _ in range(9):
        page.keyboard.press("y")
    lines = downloaded(page, tmp_path / "hostile.jsonl")
    whole = [line for line in lines if "question" in line]
    assert len(whole) >= 3
    assert [line["question"] for line in whole] == [c.question for c in calls[: len(whole)]]
    assert not LabelsFile(tmp_path / "hostile.jsonl").bad


def test_without_a_script_the_texts_are_there(opened: Open) -> None:
    page = opened(NAME, java_script_enabled=False)
    assert page.get_by_text("The buttons need JavaScript.").is_visible()
    assert page.get_by_text("A tray fits at three heights.").is_visible()
    assert not page.get_by_label("Your name").is_visible()


# --- The report


def test_a_report_has_the_same_buttons_in_each_call(
    opened: Open, pages: Path, tmp_path: Path
) -> None:
    """By keys on the buttons; what was said of other calls, and before a reload, is downloaded too."""
    write(pages / "labels-report.html", report_pieces([oven(), graded(), broken()], review="ann"))
    page = opened("labels-report.html", "#row=graded", **OF_ITS_OWN)
    page.locator("#one .ask button").first.focus()
    for key in "yn":
        page.keyboard.press(key)
    assert said(page) == "2 of 2 sentences answered, 1 of 1 call labelled whole."
    page.keyboard.press("Escape")
    page.get_by_role("link", name="How fast does the oven heat up?").last.click()
    page.get_by_role("group", name="Answer sentence a").get_by_role("button").last.focus()
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.parentElement.ariaLabel") == "Answer sentence b"
    page.reload()
    page.locator("#one .ask button").first.wait_for()
    assert said(page) == "1 of 10 sentences answered, 0 of 1 call labelled whole."
    page.get_by_role("group", name="Answer sentence b").get_by_role("button").first.focus()
    downloaded(page, tmp_path / "report.jsonl")
    read = LabelsFile(tmp_path / "report.jsonl")
    draw = Draw("single", None, 0, Population.of([oven().row_key, graded().row_key]))

    assert read.calls[oven().row_key, "ann"].answers == {"a": False}
    assert read.calls[graded().row_key, "ann"].answers == {"a": True, "0a": False}
    assert list(read.calls[graded().row_key, "ann"].draws) == [draw]
    assert list(read.gold()) == [graded().row_key]
    assert axe(page) == []

    page.goto((pages / "labels-report.html").as_uri() + "#row=broken")
    assert page.locator("#one .ask").count() == 0
    assert not page.get_by_label("Your name").is_visible()


def test_a_report_without_review_asks_nothing(opened: Open) -> None:
    page = opened("small.html", "#row=oven")
    assert page.locator("#one .call").is_visible()
    assert page.locator(".ask, #who").count() == 0
