"""The pages of `agreement` and prompt tests, and the cell of a notebook, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agreement_rows import judged
from browser import Opened, axe, chromium
from hostile import HOSTILE, MARKUP
from prompt_test_models import make_result
from report_rows import evaluations

from rag_eval_integrations import Evaluations
from rag_eval_integrations.agreement import agree, cascade_curve, curves
from rag_eval_integrations.prompt_tests import Report, Result
from rag_eval_integrations.prompt_tests._pages import report_pieces
from rag_eval_integrations.prompt_tests.records import Judged
from rag_eval_integrations.report._agreement_page import write_agreement
from rag_eval_integrations.report._page import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Open = Callable[..., "Page"]
PAGES = ("agreement.html", "prompts.html", "hostile.html")


def result(number: int, model: str, outcome: str = "err", text: str = "") -> Result:
    made = make_result(
        outcome, model=f"{model}{text}", uid=f"t{number}", rule_id=1 + number % 3,
        rule=f"Rule text {1 + number % 3}. {text}", inputs={"text": f"Input {number} {text}"},
    )  # fmt: skip
    said = Judged.model_validate(
        {"outcome": outcome, "reason": f"Why {number} {text}", "judge": f"j{text}"}
    )
    return made.model_copy(update={"output": f"Output {number} {text}", "compliance": said})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agreement with all there is, sixty failures of two models, and hostile texts."""
    folder = tmp_path_factory.mktemp("pages")
    matched, second = judged()
    pairs = [replace(pair, dataset="set" if pair.dataset else None) for pair in matched.pairs]
    write_agreement(
        agree(pairs, baselines=True, resamples=50), folder / "agreement.html",
        title="Agreement", cascade=cascade_curve(pairs, second, steps=3),
        curves={"all 40 rows": dict([*curves(pairs).items()][:1])},
    )  # fmt: skip
    results = [result(number, "ab"[number % 2]) for number in range(60)]
    results += [result(number, "a", "ok") for number in range(60, 66)]
    write(folder / "prompts.html", report_pieces(Report("prompts", results)))
    every = "".join(HOSTILE) + "W" * 5_000
    texts = [
        result(at, "m", text=text) for at, text in enumerate((*HOSTILE[1::9], MARKUP[4], every))
    ]
    write(folder / "hostile.html", report_pieces(Report(every, texts)))
    return folder


# Of the module, not the session: while it lasts, playwright's loop runs, and no other may.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Open]:
    """`opened("prompts.html", "#page=2")`; afterwards the page must have kept silent."""
    contexts, pages = [], []

    def open_page(name: str, address: str = "", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **options})
        context.set_default_timeout(10_000)
        contexts.append(context)
        pages.append(Opened(context.new_page()))
        return pages[-1].go(folder / name, address)

    yield open_page
    for page in pages:
        assert page.messages == []
        assert {url.partition("#")[0].rpartition("/")[2] for url in page.requests} <= {*PAGES}
    for context in contexts:
        context.close()


def failures(page: Page) -> list[str]:
    """The failures that are shown, by their first lines."""
    found: list[str] = page.evaluate(
        "() => [...document.querySelectorAll('details.failure')].filter((one) => !one.hidden)"
        ".map((one) => one.querySelector('.line').textContent)"
    )
    return found


@pytest.mark.parametrize(
    ("name", "scheme"),
    [*((name, "light") for name in PAGES), ("prompts.html", "dark"), ("agreement.html", "dark")],
)
def test_axe_finds_nothing(opened: Open, name: str, scheme: str) -> None:
    """With everything unfolded, in both schemes; and nothing is written to the console."""
    page = opened(name, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    # The scheme changes the colours only, so that the other rules need one look.
    assert axe(page, *(["color-contrast"] if scheme == "dark" else [])) == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_a_telephone(opened: Open, name: str) -> None:
    """Long words break; a wide table scrolls inside of itself."""
    page = opened(name, viewport={"width": 380, "height": 700})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_failures_are_shown_page_by_page(opened: Open) -> None:
    """Buttons turn the pages, the address keeps the place, and so it can be shared."""
    page = opened("prompts.html")

    assert len(failures(page)) == 25
    page.get_by_role("button", name="Next page").click()
    page.get_by_role("button", name="Next page").click()
    assert len(failures(page)) == 10
    assert page.get_by_role("status").inner_text() == "60 failures, page 3 of 3"
    assert page.get_by_role("button", name="Next page").is_disabled()
    assert page.url.endswith("#page=3")
    assert failures(opened("prompts.html", "#page=3")) == failures(page)


def test_a_cell_leads_to_its_failures(opened: Open) -> None:
    """Of this rule and this model; all are back at a button's push."""
    page = opened("prompts.html")

    page.get_by_role("link", name="Rule 2, b").click()
    assert page.get_by_role("status").inner_text() == "10 of 60 failures"
    assert all(int(line.split()[1]) % 6 == 1 for line in failures(page))
    assert failures(opened("prompts.html", page.url[page.url.index("#") :])) == failures(page)
    page.get_by_role("button", name="All failures").click()
    assert page.get_by_role("status").inner_text() == "60 failures, page 1 of 3"


def test_failures_are_searched_by_their_words(opened: Open) -> None:
    """In input, output, and the judge's words, whichever page they are on."""
    page = opened("prompts.html")

    page.get_by_label("Words").fill("why 59")
    assert failures(page) == ["Input 59"]
    page.get_by_label("Words").fill("nowhere")
    assert failures(page) == []
    assert page.get_by_role("status").inner_text() == "0 of 60 failures"


def test_a_failure_has_an_address(opened: Open) -> None:
    """It opens on whichever page it is."""
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


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("agreement.html", 'section[aria-labelledby="baselines-heading"] > div.scroll'),
        ("prompts.html", "section > div.scroll"),
    ],
)
def test_a_telephone_shows_every_figure(
    browser: Browser, folder: Path, name: str, tables: str
) -> None:
    """Nothing is cut at 390 pixels; a cell that fails keeps its sign beside its heading."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((folder / name).as_uri())

    places = page.locator(f"{tables} td").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().right)"
    )
    assert len(places) > 6
    assert max(places) <= 390
    signs = page.locator("table.matrix td.err").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one, '::before').content)"
    )
    assert {sign[1] for sign in signs} == ({"✗"} if name == "prompts.html" else set())
    page.close()


def test_a_notebook_breaks_no_name_of_a_score(browser: Browser, folder: Path) -> None:
    """In a cell of 820 pixels every name is on one line, and nothing is beside the cell."""
    cell = Evaluations(evaluations()[3:6])._repr_html_()
    path = folder / "cell.html"
    path.write_text(f"<!doctype html><meta charset='utf-8'><body>{cell}</body>", "utf-8")
    page = browser.new_page(viewport={"width": 820, "height": 600})
    page.goto(path.as_uri())
    lines = """() => [...document.querySelectorAll('th')].map((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return [one.textContent, new Set([...range.getClientRects()].map((box) => box.top)).size];
    })"""

    names = dict(page.evaluate(lines))
    assert names["context_utilization"] == names["nothing_relevant_retrieved"] == 1
    assert {count for name, count in names.items() if name} == {1}
    assert page.evaluate("document.documentElement.scrollWidth") <= 820
    page.close()
