"""The pages beside the report, and the cell of a notebook, in a real browser, opened from disk."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import axe
from hostile import MARKUP
from runs import call

from rag_eval_integrations.report import compare
from rag_eval_integrations.report._compare_html import compare_page
from rag_eval_integrations.report._page import write

from .conftest import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"

# --- All of them


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agreement.html", "diff.html", "prompts.html"])
def test_axe_finds_nothing(opened: Open, name: str) -> None:
    """With everything unfolded, in both schemes; and nothing is written to the console."""
    page = opened(name)
    page.evaluate(UNFOLD)

    assert axe(page) == []
    page.emulate_media(color_scheme="dark")  # which changes the colours only
    assert axe(page, "color-contrast") == []


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("agreement.html", 'section[aria-labelledby="baselines-heading"] > div.scroll'),
        ("diff.html", "table >> nth=0"),
        ("prompts.html", "section > div.scroll"),
        ("small.html", ""),
        ("hostile.html", ""),
    ],
)
def test_a_telephone_shows_every_figure(opened: Open, name: str, tables: str) -> None:
    """No page is wider, whatever its words, and no table of figures is cut."""
    page = opened(name, viewport={"width": 390, "height": 844})
    ends = "(all) => all.map((one) => one.getBoundingClientRect().right)"
    places = page.locator(f"{tables} >> td").evaluate_all(ends) if tables else []
    page.evaluate(UNFOLD)

    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert max(places, default=0) <= 390
    assert len(places) > 5 or not tables
    signs = page.locator("table.matrix td.err").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one, '::before').content)"
    )
    assert {sign[1] for sign in signs} == ({"✗"} if signs else set())
    assert bool(signs) == (name in ("prompts.html", "hostile.html"))


def test_plots_are_drawn_and_named(opened: Open) -> None:
    """By their titles, with the curve inside of the picture, also when colours are forced."""
    page = opened("agreement.html", forced_colors="active")

    plot = page.get_by_role("img", name="ROC of “not adherent”, all 40 rows").first
    assert plot.is_visible()
    box, curve = plot.bounding_box(), plot.locator(".curve").bounding_box()
    assert box is not None
    assert curve is not None
    assert curve["width"] > 200
    assert box["x"] <= curve["x"] <= box["x"] + box["width"]


def test_a_notebook_breaks_no_name_of_a_score(opened: Open) -> None:
    """In a cell of 820 pixels every name is on one line, and nothing is beside the cell."""
    page = opened("cell.html", viewport={"width": 820, "height": 600})
    lines = """() => [...document.querySelectorAll('th')].map((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return [one.textContent, new Set([...range.getClientRects()].map((box) => box.top)).size];
    })"""

    names = dict(page.evaluate(lines))
    assert names["context_utilization"] == names["nothing_relevant_retrieved"] == 1
    assert {count for name, count in names.items() if name} == {1}
    assert page.evaluate("document.documentElement.scrollWidth") <= 820


# --- A comparison


def test_changes_are_told_without_colours(opened: Open) -> None:
    """Struck and underlined in forced colours too, with words for screen readers."""
    page = opened("diff.html", forced_colors="active")

    assert page.title().startswith("old compared with </title><script>1</script>, new")
    for tag, line, said in (("del", "line-through", "removed"), ("ins", "underline", "added")):
        first = page.locator(tag).first
        style = first.evaluate("(one) => getComputedStyle(one).textDecorationLine")
        assert style == line
        assert said in (first.text_content() or "")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_verdicts_stand_on_the_first_screen(opened: Open, width: int) -> None:
    """Behind the sentence and before any table."""
    page = opened("diff.html", viewport={"width": width, "height": 844})

    line = page.locator(".outcomes").first.locator("li").last.bounding_box()
    table = page.locator("table").first.bounding_box()
    assert line is not None
    assert table is not None
    assert line["y"] + line["height"] < min(844, table["y"])


def test_a_whole_call_is_opened_by_keys(opened: Open) -> None:
    """A side's documents, with what each of its sentences is linked to."""
    page = opened("diff.html")
    side = page.locator("details.whole").first

    side.locator("summary").first.focus()
    page.keyboard.press("Enter")

    assert side.get_by_role("heading", name="Documents, as the model saw them").is_visible()
    sentence = side.locator("a.s").first
    sentence.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector(':target').closest('details.whole') !== null")


@pytest.mark.parametrize("width", [390, 1280])
def test_an_interval_has_an_axis_with_figures(opened: Open, pages: Path, width: int) -> None:
    """Drawn at its full size, so that they can be read."""
    runs = [
        [call(f"{n}", {"adherence": float(n % worse > 0)}) for n in range(60)] for worse in (20, 4)
    ]
    write(pages / "axis.html", compare_page(compare(*runs)))
    page = opened("axis.html", viewport={"width": width, "height": 844})
    plot = page.get_by_role("img", name="on an axis from -0.5 to 0.5")
    box, texts = plot.bounding_box(), plot.locator("text")

    assert texts.all_text_contents() == ["-0.5", "0", "+0.5"]
    assert box is not None
    assert (box["width"], box["x"] + box["width"] <= width) == (300, True)
    assert page.locator("td.plot").inner_text().startswith("-0.")


def test_the_line_of_no_difference_and_a_fall_are_seen_in_the_dark(
    opened: Open, pages: Path
) -> None:
    """The line has the contrast of a drawing, 3 to 1; a fall and a rise have colour and sign."""
    runs = [
        [
            call(f"{n}", {"adherence": float(n % worse > 0), "recall": float(n % worse == 0),
                          "completeness": 0.5})
            for n in range(60)
        ]
        for worse in (20, 2)
    ]  # fmt: skip
    write(pages / "fall.html", compare_page(compare(*runs)))
    page = opened("fall.html", color_scheme="dark")
    luminance = """(one, name) => {
        const [r, g, b] = getComputedStyle(one)[name].match(/[0-9]+/g).map((part) => part / 255)
            .map((part) => (part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4));
        return .2126 * r + .7152 * g + .0722 * b;
    }"""
    line = page.locator("svg .axis").first.evaluate(luminance, "stroke")
    ground = page.locator("body").evaluate(luminance, "backgroundColor")
    fall = page.locator("tr", has_text="adherence").first.locator(".change")

    assert (line + 0.05) / (ground + 0.05) >= 3
    assert re.fullmatch(r"-\d\.\d{3} ▼", fall.inner_text())
    tints = "(one) => getComputedStyle(one).backgroundColor"
    rise = page.locator("tr", has_text="recall").first.locator(".change")
    assert re.fullmatch(r"\+\d\.\d{3} ▲", rise.inner_text())
    same = page.locator("tr", has_text="completeness").first.locator(".change")
    assert len({one.evaluate(tints) for one in (fall, rise, same)}) == 3


# --- Prompt tests


def failures(page: Page) -> list[str]:
    """The failures that are shown, by their first lines."""
    lines: list[str] = page.locator("details.failure").evaluate_all(
        "(all) => all.filter((one) => !one.hidden)"
        ".map((one) => one.querySelector('.line').textContent)"
    )
    return lines


def test_failures_are_shown_page_by_page(opened: Open) -> None:
    """Buttons turn the pages, the address keeps the place, and so it can be shared."""
    page = opened("prompts.html")

    assert len(failures(page)) == 25
    page.get_by_role("button", name="Next page").click()
    page.get_by_role("button", name="Next page").click()
    assert len(failures(page)) == 10
    assert page.get_by_role("status").inner_text() == "60 failures, page 3 of 3"
    assert page.get_by_role("button", name="Next page").is_disabled()
    assert page.evaluate("location.hash") == "#page=3"
    assert failures(opened("prompts.html", "#page=3")) == failures(page)


def test_failures_are_found_by_cell_by_words_and_by_address(opened: Open) -> None:
    """Whichever page they are on; all are back at a button's push."""
    page = opened("prompts.html")
    status = page.get_by_role("status")

    page.get_by_role("link", name="Rule 2, b").click()
    assert status.inner_text() == "10 of 60 failures"
    assert all(int(line.split()[1]) % 6 == 1 for line in failures(page))
    assert failures(opened("prompts.html", page.evaluate("location.hash"))) == failures(page)
    page.get_by_role("button", name="All failures").click()
    assert status.inner_text() == "60 failures, page 1 of 3"
    page.get_by_label("Words").fill("why 59")
    assert failures(page) == ["Input 59"]
    page.get_by_label("Words").fill("nowhere")
    assert status.inner_text() == "0 of 60 failures"

    page = opened("prompts.html", "#failure-30")
    assert page.locator("#failure-30").get_attribute("open") is not None
    assert page.locator("#failure-30").is_visible()
    assert len(failures(page)) == 25


def test_without_a_script_everything_is_there(opened: Open) -> None:
    """Figures, all failures, and links between their pages that lead somewhere."""
    page = opened("prompts.html", java_script_enabled=False)

    assert page.locator("details.failure:visible").count() == 60
    assert page.locator("#filter").is_hidden()
    page.get_by_role("link", name="Next page").first.click()
    assert page.locator("#page-2").is_visible()
    page.locator("details.failure summary").first.click()
    assert page.get_by_text("Why 0", exact=True).is_visible()


def test_hostile_texts_do_nothing(opened: Open) -> None:
    """They are read as they are, and found by a search for them."""
    page = opened("hostile.html")

    page.get_by_label("Words").fill(MARKUP[4])
    assert len(failures(page)) == 2
    assert page.locator("main script, main img, main b").count() == 0
    assert page.evaluate("typeof window.x") == "undefined"


def test_print_shows_what_is_filtered_and_no_controls(opened: Open) -> None:
    """All pages of it; on paper nothing turns them."""
    page = opened("prompts.html")

    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert len(failures(page)) == 60
    assert page.locator("#filter").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(failures(page)) == 25
