"""The report in a real browser, opened from disk: what a person can do with it, and what it cannot do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import axe
from report_rows import ATTACKS, LONG_WORD, evaluations, labelled

from rag_eval_integrations._visible import visible
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.report.html import write_report

from .conftest import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

REPORT = "report.html"


def rows(page: Page) -> list[list[str]]:
    """The cells of the table's rows that are shown, in order."""
    cells: list[list[str]] = page.locator(".body .row").evaluate_all(
        "(all) => all.filter((row) => !row.hidden)"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    return cells


def lit(page: Page) -> list[str]:
    """The keys of the sentences that are lit."""
    keys = "(all) => all.map((one) => one.dataset.key)"
    return sorted(page.locator("#one .s.lit").evaluate_all(keys))


def column(page: Page, name: str) -> int:
    """Where a column stands."""
    heads: list[str] = page.locator(".head [role=columnheader] button").all_inner_texts()
    names = ["".join(head.split()).rstrip(" ▲▼") for head in heads]
    return names.index(name)


def count(page: Page) -> str:
    """What the live region says."""
    return page.locator("#count").inner_text()


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def of_focus(page: Page, expression: str) -> object:
    """What holds of the element with the focus."""
    return page.evaluate(f"document.activeElement.{expression}")


PLACE = "closest('.row').dataset.at"


def address(page: Page) -> str:
    """The part of the address that holds the state."""
    # Not `page.url`, which follows behind the page.
    return str(page.evaluate("location.hash.slice(1)"))


# --- The first screen


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_verdict_and_first_call_are_on_the_first_screen(
    opened: Open, width: int, height: int
) -> None:
    """The sentence of shares, the gravest call and its words; then the figures, and a way back."""
    page = opened(REPORT, viewport={"width": width, "height": height})
    ends = "(one) => one.getBoundingClientRect().bottom"
    first = page.locator("details.worst > summary").first

    assert page.locator("header p").first.inner_text() == Summary.of(evaluations()).verdict()
    assert first.locator("q").first.inner_text()
    assert page.locator("header").evaluate(ends) < first.evaluate(ends) <= height
    for heading in ("patterns", "scores", "retrieval", "list"):
        assert page.locator(f"#{heading}-heading").evaluate(ends) > height
    top = page.get_by_role("link", name="Back to the top")
    assert top.evaluate("(link) => link.getBoundingClientRect().top") >= height
    page.locator("#made-heading").scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > height
    assert top.evaluate(ends) <= height
    top.focus()
    press(page, "Enter")
    assert page.evaluate("scrollY") == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_paragraphs_are_as_wide_as_tables(opened: Open, width: int) -> None:
    """And nothing is wider than the page."""
    page = opened(REPORT, viewport={"width": width, "height": 800})
    wide = "(one) => one.getBoundingClientRect().width"

    table = page.locator("table.overview").first.evaluate(wide)
    assert page.locator("#overview > section > p").first.evaluate(wide) == table
    assert page.evaluate("document.documentElement.scrollWidth") == width


# --- The table


def test_the_table_holds_every_call_with_its_figures(opened: Open) -> None:
    """Each value is the evaluation's, rounded as Python rounds; one without has its reason."""
    page = opened(REPORT)
    names = list(evaluations()[0].scores)

    shown = rows(page)

    assert count(page) == f"{len(evaluations())} calls"
    first = column(page, names[0])
    for evaluation, cells in zip(evaluations(), shown, strict=True):
        for at, score in enumerate(map(evaluation.scores.__getitem__, names), first):
            why = (score.unscored or score.status).replace("_", " ")
            expected = f"– ({why})" if score.value is None else f"{score.value:.2f}"
            assert cells[at].rstrip(" ✗◐") == expected


def test_sorting_says_so_and_puts_calls_without_a_value_last_both_ways(opened: Open) -> None:
    """Up, down, and back to the order of the file."""
    page = opened(REPORT)
    place = column(page, "completeness")
    button = page.locator("[role=columnheader] button").nth(place)
    before, orders = rows(page), list[list[str]]()
    for order in ("ascending", "descending"):
        button.click()
        assert page.locator(f"[aria-sort={order}]").inner_text().startswith("completeness")
        orders.append([cells[place].rstrip(" ✗◐") for cells in rows(page)])
    assert address(page) == "sort=-completeness"
    button.click()

    up, down = ([cell for cell in of if not cell.startswith("–")] for of in orders)
    assert up == sorted(up) == down[::-1]
    assert [of[: len(up)] for of in orders] == [up, down]
    assert len(before) - len(up) > 2
    assert rows(page) == before
    assert page.locator("[aria-sort]").count() == 0


def test_calls_are_filtered_by_score_by_pattern_and_by_reason(opened: Open) -> None:
    """Each filter can be taken off again, and the address holds all of them."""
    page = opened(REPORT)
    total = len(evaluations())
    page.get_by_label("Score", exact=True).select_option(label="adherence")
    page.get_by_label("value", exact=True).fill("0.5")
    page.get_by_role("button", name="Add filter").click()
    values = [each.scores["adherence"].value for each in evaluations()]
    low = sum(value is not None and value <= 0.5 for value in values)
    assert count(page) == f"{low} of {total} calls"

    page.get_by_label("Pattern", exact=True).select_option("context_ignored")
    both = rows(page)
    assert 0 < len(both) < low
    assert "adherence%3C%3D0.5%2Cpattern%3Dcontext_ignored" in address(page)

    page.get_by_role("button", name=re.compile("adherence at most")).click()
    assert len(rows(page)) > len(both)
    page.get_by_role("button", name="Show all calls").click()
    assert count(page) == f"{total} calls"
    page.locator("[data-filter='adherence=unscored'] a").first.click()
    unscored = [one for one in evaluations() if one.scores["adherence"].value is None]
    assert [cells[-1] for cells in rows(page)] == [one.id for one in unscored]
    page.locator("[data-filter='failed'] a").click()
    assert [(cells[-1], cells[3]) for cells in rows(page)] == [("broken", "not evaluated")]


def test_search_finds_questions_and_ids_and_where_asked_all_texts(opened: Open) -> None:
    """A sentence of a document is found only with the box ticked."""
    page = opened(REPORT)
    for words, box, found in (("OVEN", False, 1), ("turin", False, 0), ("turin", True, 1)):
        page.get_by_label("Search questions and ids").fill(words)
        page.get_by_label("also documents").set_checked(box)
        page.get_by_text(f"{found} of {len(evaluations())} calls").wait_for()

    assert rows(page)[0][-1] == "oven"
    assert address(page) == "q=turin&full=1"


def test_one_link_brings_back_the_call_the_sentence_and_the_table(opened: Open) -> None:
    """Row, sentence, order, filter and search; leaving the call shows the table as it was."""
    link = "#row=oven&s=c&sort=-completeness&f=pattern%3Dhallucination&q=oven"
    page = opened(REPORT, link)
    page.locator("#one .s.lit").first.wait_for()

    assert lit(page) == ["c"]
    assert "#" + address(page) == link
    press(page, "Escape", "Escape")
    assert page.locator("[aria-sort=descending]").inner_text().startswith("completeness")
    assert count(page) == f"1 of {len(evaluations())} calls"
    assert of_focus(page, PLACE) == "0"


# --- One call


def test_a_call_opens_with_its_texts_labels_scores_and_data(opened: Open) -> None:
    """The wrong sentences stand first, with sign, evidence, words, and the detail that is wrong."""
    page = opened(REPORT)
    page.get_by_role("row", name=re.compile("How fast does the oven")).get_by_role("link").click()
    one = page.locator("#one")
    one.wait_for()

    assert of_focus(page, "innerText") == "How fast does the oven heat up?"
    assert "How fast does the oven" in page.title()
    text, content = one.inner_text(), one.text_content() or ""
    for words in (
        "The document says four minutes.", "number nine (documents: four)",
        "It heats up in four minutes.", "assistant: The small one.", "Shelf", "kitchen", "t-7",
        "manual-2", "The grill is sold apart.",
    ):  # fmt: skip
        assert words in content
    assert text.index("No document names a place.") < text.index("Stated.")
    assert one.locator(".answer .s b").all_inner_texts() == ["nine", "five"]
    keys = [key.strip() for key in one.locator(".text .key").all_inner_texts()]
    assert keys == ["a ◐", "b ✓", "c ✗", "d ✗", "e ?", "0a RU", "0b U", "0c R", "1a U", "1b"]
    assert "(not supported)" in one.locator(".s[data-key=c]").first.inner_text()


def test_g_eval_scores_show_distribution_reason_and_verdict(opened: Open) -> None:
    """A bar per score of the scale, each with its figure."""
    page = opened(REPORT, "#row=graded")
    score = page.locator("#one tr", has_text="coherence")
    score.wait_for()
    score.get_by_text("How it was measured").click()

    for words in ("0.40", "✗ failed (threshold 0.5)", "It leaves the reader with a question.",
                  "2.60 on the scale from 1 to 5; by logprobs; n = 20"):  # fmt: skip
        assert words in score.inner_text()
    bars = [" ".join(bar.split()) for bar in score.locator(".bars li").all_inner_texts()]
    assert bars == ["1 0.10", "2 0.40", "3 0.30", "4 0.20"]
    widths = [rect.get_attribute("width") for rect in score.locator("rect.bar").all()]
    assert widths == ["10", "40", "30", "20"]


def test_evidence_is_lit_by_hover_and_focus_and_pinned_by_enter(opened: Open) -> None:
    """From the answer to the documents and back; Escape frees it, and only then leaves the call."""
    page = opened(REPORT, "#row=oven")
    sentence = page.locator("#one .s[data-side=a][data-key=b]")
    sentence.hover()
    assert lit(page) == ["0b", "b"]
    assert page.locator("#one li.lit").get_attribute("data-why") == "b"
    page.mouse.move(0, 0)
    assert lit(page) == []

    page.locator("#one .s[data-side=a][data-key=a]").focus()
    assert lit(page) == ["0a", "a"]
    press(page, "Tab")
    assert lit(page) == ["0b", "b"]
    press(page, "Enter")
    page.locator("#one .s[data-side=a][data-key=d]").hover()
    page.mouse.move(0, 0)
    assert lit(page) == ["0b", "b"]
    assert address(page) == "row=oven&s=b"
    assert "Evidence of b: 0b" in page.locator("p.unseen[role=status]").inner_text()

    press(page, "Escape")
    assert address(page) == "row=oven"
    page.locator("#one .s[data-side=d][data-key='0a']").hover()
    assert lit(page) == ["0a", "a"]
    page.locator("#one .support .evidence", has_text="0b").click()  # a key in the judge's words
    assert of_focus(page, "dataset.key") == "0b"
    assert "0b" in lit(page)


def test_all_of_it_can_be_done_with_the_keyboard(opened: Open) -> None:
    """Search, move, open, go on, come back to the row, ask for the keys."""
    page = opened(REPORT)
    press(page, "/")
    assert of_focus(page, "id") == "q"
    page.keyboard.type("jk?n")
    assert page.get_by_label("Search questions and ids").input_value() == "jk?n"
    press(page, "Escape")
    page.get_by_text(f"{len(evaluations())} calls", exact=True).wait_for()
    press(page, "Enter", "j", "j", "k", "Enter")
    page.locator("#one article").wait_for()
    assert address(page) == "row=graded"
    press(page, "n")
    page.get_by_text("Not evaluated:").wait_for()
    press(page, "p", "p")
    page.locator("#one article[data-call='1']").wait_for()
    press(page, "Escape")
    assert of_focus(page, PLACE) == "0"

    press(page, "?")
    assert page.get_by_role("dialog").is_visible()
    press(page, "Escape")
    assert not page.get_by_role("dialog").is_visible()
    assert of_focus(page, PLACE) == "0"


def test_a_link_to_a_call_that_is_not_there_says_so(opened: Open) -> None:
    """Until something else is done; of its filters, each asked of every call, it brings twenty."""
    page = opened(REPORT, "#row=gone&f=" + "adherence<=0.5," * 5_000)
    note = page.get_by_text('No call of this report has the name in the link: "gone"')
    note.wait_for()
    assert page.locator("#list-heading").bounding_box()["y"] < 900  # type: ignore[index]
    assert 0 < page.locator(".chips button").count() <= 20

    page.locator("[role=columnheader] button").first.click()
    assert not note.is_visible()


def test_leaving_a_call_loses_neither_focus_nor_the_way_back(opened: Open) -> None:
    """Also of a call that the table does not show; links of the static part are steps, too."""
    page = opened(REPORT, "#row=oven&q=nothing")
    page.locator("#one article").wait_for()
    press(page, "Escape")
    assert of_focus(page, "id") == "list-heading"

    page = opened(REPORT)
    page.get_by_role("link", name="All calls").click()
    page.locator(".body .row a").first.click()
    page.locator("#one article").wait_for()
    page.go_back()
    page.locator("#list").wait_for()
    assert address(page) == "list-heading"


def test_keys_stay_whole_in_texts_from_right_to_left(opened: Open, pages: Path) -> None:
    """A digit takes the direction of the Arabic before it: `0b` would be torn apart."""
    text = "يغلي الماء عند مئة درجة. هذا صحيح."
    made = labelled("arabic", [text], text, support=(("a", "0a", True, ""),), relevant="0a")
    write_report([made], pages / "other.html")
    page = opened("other.html", "#row=arabic")
    page.locator("#one article").wait_for()
    pieces = """(all) => all.map((key) => {
        const range = document.createRange();
        range.selectNodeContents(key.firstChild);
        return range.getClientRects().length;
    })"""

    assert page.locator("#one .text .key").evaluate_all(pieces) == [1, 1, 1, 1]
    for paragraph in page.locator("#one .text").all():
        assert paragraph.evaluate("(one) => getComputedStyle(one).direction") == "rtl"


def test_the_static_call_and_the_opened_one_say_the_same(opened: Open) -> None:
    """Template and script render the same data: every text and every link's purpose."""
    page = opened(REPORT)
    static = page.locator(".worst").evaluate_all(
        "(all) => all.map((one) => [one.id.slice(5), one.querySelector('.call').textContent])"
    )
    assert len(static) == 20
    for number, text in static[:4]:
        name = page.locator(f".row[data-at='{int(number) - 1}'] a").get_attribute("href")
        page.evaluate("(address) => { location.hash = address; }", name)
        page.locator(f"#one article[data-call='{number}']").wait_for()
        again = page.locator("#one .call").first.text_content() or ""
        assert "".join(again.split()) == "".join(text.split())


# --- How it looks


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_bad_value_looks_bad(opened: Open, pages: Path, scheme: str) -> None:
    """By sign and colour, in the table and in the call; a good one looks as text does."""
    half = labelled("half", ["It is red. It is old."], "It is red. It is new.", relevant="0a",
                    used="0a", support=(("a", "0a", True, ""), ("b", "", False, "")))  # fmt: skip
    write_report([half, *evaluations()[:2]], pages / "other.html")
    page = opened("other.html", "#row=half&s=b", color_scheme=scheme)
    call = page.locator("#one table.scores")
    call.wait_for()
    colours = "(one) => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]"

    assert call.locator(".bad").all_inner_texts() == ["0.00 ✗", "0.50 ◐"]
    looks = [one.evaluate(colours) for one in (*call.locator(".bad").all(), page.locator("body"))]
    assert all(len(set(look)) == 3 for look in zip(*looks, strict=True))
    press(page, "Escape", "Escape")
    shown, _, graded = rows(page)
    assert shown[column(page, "adherence")] == "0.00 ✗"
    assert shown[column(page, "supported_fraction")] == "0.50 ◐"
    assert graded[column(page, "adherence")] == "1.00"
    assert graded[column(page, "coherence")] == "0.40 ✗"  # below its threshold


def test_a_telephone_shows_pattern_and_scores_of_every_call(opened: Open) -> None:
    """Nothing is cut at 390 pixels: neither the calls nor the scores with their figures."""
    page = opened("small.html", viewport={"width": 390, "height": 844})
    ends = "(all) => all.map((one) => one.getBoundingClientRect()).map((b) => [b.left, b.right])"

    page.locator(".body .row").first.scroll_into_view_if_needed()
    cells = page.locator(".body .row").first.locator("> span:not(:empty)")
    assert "hallucination" in cells.all_text_contents()
    labels = cells.evaluate_all("(all) => all.map((one) => one.dataset.label)")
    assert {"adherence", "context_relevance"} <= {*labels}
    adherence = page.locator(".body .row span[data-label='adherence']")
    values = {one.inner_text(): one.is_visible() for one in adherence.all()}
    assert values.pop("1.00") is False  # what is best is left out
    assert all(shown for value, shown in values.items() if "✗" in value)
    cells = page.locator(".body .row").first.locator("> span:visible:not(:empty)")
    for found in (cells, page.locator("table.overview td:visible, table.overview svg")):
        places = found.evaluate_all(ends)
        assert len(places) > 6
        assert all(0 <= left < right <= 390 for left, right in places)
    cut = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1).length"
    assert cells.evaluate_all(cut) == 0


def test_a_score_has_one_name_and_what_means_nothing_to_readers_is_folded(opened: Open) -> None:
    """The name that files and options take; ids that the library made, versions, estimates."""
    page = opened(REPORT)
    text = page.locator("body").inner_text()

    assert "context relevance" not in text.lower()
    column(page, "context_relevance")
    for digest in {one.row_key[:16] for one in evaluations()}:
        assert digest not in text
    assert "gpt-labeling" not in text
    versions = page.get_by_text("punkt-en@2").all()
    assert versions
    assert not any(version.is_visible() for version in versions)
    healthy = page.locator("tr", has_text="Relevant text was found and used").locator("td").last
    assert healthy.inner_text() == "–"
    assert page.locator("#overview th", has_text=re.compile("^Document 0$")).count() == 1


# --- Hostile content


@pytest.mark.slow
def test_hostile_texts_stay_text(opened: Open) -> None:
    """Nothing runs, nothing is asked for, no element comes of them, and every call opens."""
    page = opened("attacks.html")
    elements = "() => [...document.querySelectorAll('*')].map((one) => one.localName)"
    plain = set(opened(REPORT).evaluate(elements))

    assert set(page.evaluate(elements)) <= plain
    ids = [cells[-1] for cells in rows(page)]
    assert len(ids) == len(ATTACKS) + 1
    assert len(set(ids)) == len(ids)
    for at in range(0, len(ATTACKS), 8):
        link = page.locator(f".row[data-at='{at}'] a").get_attribute("href")
        page.evaluate("(address) => { location.hash = address; }", link)
        page.locator(f"#one article[data-call='{at + 1}']").wait_for()
        question = page.locator("#one h2").inner_text()
        assert "".join(question.split()) == "".join(visible(ATTACKS[at]).split())
        assert set(page.evaluate(elements)) <= plain
        assert not page.locator("#one [onmouseover], #one [style], #one img").count()
    links = page.locator("a").evaluate_all("(all) => all.map((one) => one.getAttribute('href'))")
    assert {link[0] for link in links} == {"#"}
    assert "owned" not in page.title()


def test_a_word_of_100_kb_does_not_make_the_page_wide(opened: Open) -> None:
    """It breaks anywhere, in the table and in the call."""
    page = opened("attacks.html", viewport={"width": 360, "height": 800})
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) <= 360

    page.evaluate("() => { location.hash = '#row=long'; }")
    page.locator("#one article").wait_for()
    assert LONG_WORD[:1000] in page.locator("#one .answer").inner_text()
    assert page.evaluate(width) <= 360


# --- Other ways to look at it


def test_without_a_script_the_figures_and_the_worst_calls_are_there(opened: Open) -> None:
    """What is wrong and why, in plain HTML; the evidence is a link."""
    page = opened(REPORT, java_script_enabled=False)

    assert page.get_by_text("The table of all calls needs JavaScript").is_visible()
    text = page.locator("#overview").inner_text()
    assert "context_relevance" in text
    assert "hallucination" in text
    first = page.locator("details.worst").first
    first.locator("summary").first.click()
    assert first.locator(".support").is_visible()
    first.locator("a.evidence").first.click()
    assert page.locator(".s:target").count() == 1


@pytest.mark.slow
def test_it_keeps_the_rules_of_accessibility(opened: Open) -> None:
    """Contrast, labels, roles, names, order of headings: no violation, light or dark."""
    page = opened("small.html", "#sort=adherence&q=o")
    for address, call in (("#sort=adherence&q=o", 0), ("#row=oven&s=b", 1), ("#row=graded", 2)):
        page.evaluate("(address) => { location.hash = address; }", address)
        if call:
            page.locator(f"#one article[data-call='{call}']").wait_for()
        page.locator("details").evaluate_all("(all) => all.forEach((one) => (one.open = true))")
        page.emulate_media(color_scheme="light")
        assert axe(page) == []
        page.emulate_media(color_scheme="dark")  # which changes the colours only
        assert axe(page, "color-contrast") == []


def test_forced_colours_keep_signs_and_underlines(opened: Open) -> None:
    """Where tints vanish, each state of a side is still another one."""
    page = opened(REPORT, "#row=oven&s=b", forced_colors="active")
    lit = page.locator("#one .s.lit").first
    lit.wait_for()

    for states in (("full", "partial", "none", "unlabelled"), ("ru", "r", "u")):
        style = "(one) => getComputedStyle(one).textDecorationStyle"
        looks = {page.locator(f"#one .s.{state}").first.evaluate(style) for state in states}
        assert len(looks) == len(states)
    assert lit.evaluate("(one) => getComputedStyle(one).outlineWidth") == "3px"


def test_print_shows_the_filtered_rows_capped_and_says_so(opened: Open) -> None:
    """Black on white whatever the scheme, without controls; the first 200 rows, or the call."""
    page = opened(REPORT, color_scheme="dark")
    page.emulate_media(media="print")
    visible_rows = page.locator(".body .row:visible")

    assert visible_rows.count() == 200
    assert page.get_by_text(f"Printed: the first 200 of {len(evaluations())} calls").is_visible()
    assert not page.get_by_role("search").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
    page.get_by_label("Pattern", exact=True).select_option("hallucination")
    page.emulate_media(media="print")
    assert 0 < visible_rows.count() < 200
    assert not page.locator(".printed").inner_text()
