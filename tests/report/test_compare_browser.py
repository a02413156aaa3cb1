"""The page of a comparison in a real browser, opened from disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import Opened, axe, chromium
from hostile import HOSTILE
from runs import call

from rag_eval_integrations.report import _page, compare
from rag_eval_integrations.report._compare_html import compare_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def diff(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all that it can show, of texts that attack it, one of them very long."""
    texts = [*HOSTILE[::9], "x" * 30_000]
    before = [
        call(f"{n}", {"adherence": 1.0, "completeness": 0.5}, question=text, documents=[text])
        for n, text in enumerate(texts)
    ]
    after = [
        call(
            f"{n}",
            {"adherence": "refusal" if n % 7 == 0 else 0.0, "completeness": 0.75},
            question=f"{text}?",
            response=[text, "It leaves at ten."],
            documents=["Other.", text],
            supported=False,
        )
        for n, text in enumerate(texts)
    ]
    found = compare(before, after, after, names=["old", "</title><script>1</script>", "new"])
    path = tmp_path_factory.mktemp("compare") / "diff.html"
    return _page.write(path, compare_page(found, verdicts=["worse: adherence"], calls=20))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_silent_and_keeps_the_rules_of_accessibility(
    browser: Browser, diff: Path, scheme: str
) -> None:
    """Nothing is asked for or said; contrast, names and headings are in order."""
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    opened = Opened(context.new_page())
    page = opened.go(diff)
    assert page.title().startswith("old compared with </title><script>1</script>, new")
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => (one.open = true))")

    # The scheme changes the colours only, so that the other rules need one look.
    assert axe(page, *(["color-contrast"] if scheme == "dark" else [])) == []
    assert opened.messages == []
    assert len(opened.requests) == 1
    context.close()


def test_no_width_makes_the_page_scroll_sideways(browser: Browser, diff: Path) -> None:
    """The table scrolls inside its frame; a word of 30,000 characters is broken."""
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page = Opened(context.new_page()).go(diff)

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_changes_are_told_without_colours(browser: Browser, diff: Path) -> None:
    """Struck and underlined in forced colours too, with words for screen readers."""
    context = browser.new_context(forced_colors="active")
    page = Opened(context.new_page()).go(diff)

    for tag, line, said in (("del", "line-through", "removed"), ("ins", "underline", "added")):
        first = page.locator(tag).first
        style = first.evaluate("(one) => getComputedStyle(one).textDecorationLine")
        assert style == line
        assert said in (first.text_content() or "")
    context.close()


def test_the_line_of_no_difference_and_a_fall_are_seen_in_the_dark(
    browser: Browser, tmp_path: Path
) -> None:
    """The line has the contrast of a drawing, 3 to 1; a fall has colour and sign in the table."""
    runs = [
        [call(f"{n}", {"adherence": float(n % worse > 0), "completeness": 0.5}) for n in range(60)]
        for worse in (20, 2)
    ]
    path = _page.write(tmp_path / "diff.html", compare_page(compare(*runs)))
    context = browser.new_context(color_scheme="dark")
    page = Opened(context.new_page()).go(path)
    luminance = """(one, name) => {
        const [r, g, b] = getComputedStyle(one)[name].match(/[0-9]+/g).map((part) => part / 255)
            .map((part) => (part <= .03928 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4));
        return .2126 * r + .7152 * g + .0722 * b;
    }"""
    line = page.locator("svg .axis").first.evaluate(luminance, "stroke")
    ground = page.locator("body").evaluate(luminance, "backgroundColor")
    fall = page.locator("tr", has_text="adherence").first.locator(".bad")

    assert (line + 0.05) / (ground + 0.05) >= 3
    assert re.fullmatch(r"-\d\.\d{3} ▼", fall.inner_text())
    assert not page.locator("tr", has_text="completeness").first.locator(".bad").count()
    context.close()


def test_a_telephone_shows_all_figures_of_a_score(browser: Browser, diff: Path) -> None:
    """A row is a block at 390 pixels, each figure behind its heading."""
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = Opened(context.new_page()).go(diff)
    cells = page.locator("table").first.locator("tbody td")

    boxes = cells.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().right)")
    assert len(boxes) >= 20
    assert max(boxes) <= 390
    context.close()
