"""Every page of this library, and a browser that opens them from disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from agreement_rows import contested, judged, numbered
from browser import Opened, chromium
from hostile import HOSTILE, MARKUP
from prompt_test_models import make_result
from report_rows import attacks, evaluations
from runs import call

from rag_eval_integrations import Evaluations
from rag_eval_integrations.agreement import agree, cascade_curve, curves
from rag_eval_integrations.prompt_tests import Report, Result
from rag_eval_integrations.prompt_tests._pages import report_pieces
from rag_eval_integrations.prompt_tests.records import Judged
from rag_eval_integrations.report import compare, write_report
from rag_eval_integrations.report._agreement_page import agreement_pieces
from rag_eval_integrations.report._compare_html import compare_page
from rag_eval_integrations.report._page import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

Open = Callable[..., "Page"]


def result(number: int, model: str, outcome: str = "err", text: str = "") -> Result:
    """A result of a prompt test, with other people's text in every field."""
    rule = 1 + number % 3
    made = make_result(
        outcome, model=f"{model}{text}", uid=f"t{number}", rule_id=rule,
        rule=f"Rule text {rule}. {text}", inputs={"text": f"Input {number} {text}"},
    )  # fmt: skip
    reason = {"reason": f"Why {number} {text}", "judge": f"j{text}"}
    said = Judged.model_validate({"outcome": outcome, **reason})
    return made.model_copy(update={"output": f"Output {number} {text}", "compliance": said})


def write_comparison(path: Path) -> None:
    """Write a page with all that it can show, of texts that attack it, one of them very long."""
    texts = [*HOSTILE[::9], "x" * 30_000]
    before = [
        call(f"{n}", {"adherence": 1.0, "completeness": 0.5}, question=text, documents=[text])
        for n, text in enumerate(texts)
    ]
    after = [
        call(
            f"{n}", {"adherence": "refusal" if n % 7 == 0 else 0.0, "completeness": 0.75},
            question=f"{text}?", response=[text, "It leaves at ten."], documents=["Other.", text],
            supported=False,
        )
        for n, text in enumerate(texts)
    ]  # fmt: skip
    found = compare(before, after, after, names=["old", "</title><script>1</script>", "new"])
    write(path, compare_page(found, verdicts=["worse: adherence"], calls=20))


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: reports of our own rows, of few and of hostile ones, and the other pages."""
    folder = tmp_path_factory.mktemp("pages")
    write_report(evaluations(), folder / "report.html", title="Our own rows")
    write_report(evaluations()[:4], folder / "small.html", title="A few")
    write_report(attacks(), folder / "attacks.html", title="</title><script>1</script>")
    write_comparison(folder / "diff.html")
    matched, second = judged()
    pairs = [replace(pair, dataset="set" if pair.dataset else None) for pair in matched.pairs]
    found = agree(pairs, baselines=True, resamples=50)
    drawn = {"all 40 rows": dict([*curves(pairs).items()][:1])}
    cascade = cascade_curve(pairs, second, steps=3)
    pieces = agreement_pieces(
        found, title="Agreement", cascade=cascade, curves=drawn, calls=numbered(pairs)
    )
    write(folder / "agreement.html", pieces)
    pairs = contested(attacks())
    pieces = agreement_pieces(
        agree(pairs, resamples=0), title=MARKUP[0], curves={}, calls=numbered(pairs)
    )
    write(folder / "contested.html", pieces)
    results = [result(number, "ab"[number % 2]) for number in range(60)]
    results += [result(number, "a", "ok") for number in range(60, 66)]
    write(folder / "prompts.html", report_pieces(Report("prompts", results)))
    every = "".join(HOSTILE) + "W" * 5_000
    texts = enumerate((*HOSTILE[1::9], MARKUP[4], every))
    hostile = Report(every, [result(at, "m", text=text) for at, text in texts])
    write(folder / "hostile.html", report_pieces(hostile))
    cell = Evaluations(evaluations()[3:6])._repr_html_()
    cell = f"<!doctype html><meta charset='utf-8'><body>{cell}</body>"
    (folder / "cell.html").write_text(cell, "utf-8")
    return folder


# Of the module, not the session: while it lasts, playwright's loop runs, and no other may.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, off the network."""
    with chromium() as started:
        yield started


def context_of(browser: Browser, **options: Any) -> BrowserContext:
    """A context of a desktop's size, or of others."""
    context = browser.new_context(**{"viewport": {"width": 1300, "height": 900}, **options})
    context.set_default_timeout(20_000)
    return context


@pytest.fixture(scope="module")
def used(browser: Browser) -> Iterator[Opened]:
    """The tab of the tests that need nothing special: another context takes twice as long."""
    context = context_of(browser)
    yield Opened(context.new_page())
    context.close()


@pytest.fixture
def opened(browser: Browser, used: Opened, pages: Path) -> Iterator[Open]:
    """`opened("report.html", "#row=1", color_scheme="dark")`; it must then have kept silent."""
    tabs: list[Opened] = []
    files: set[str] = set()

    def open_page(name: str, address: str = "", **options: Any) -> Page:
        files.add((pages / name).as_uri())
        if options or used in tabs:
            tabs.append(Opened(context_of(browser, **options).new_page()))
        else:
            tabs.append(used)
            used.page.emulate_media(media="null", color_scheme="null")
            used.page.goto("about:blank")  # else another address of one file is no new page
            used.messages.clear()
            used.requests.clear()
        return tabs[-1].go(pages / name, address)

    yield open_page
    for tab in tabs:
        assert tab.messages == []
        assert {url.partition("#")[0] for url in tab.requests} <= files
        if tab is not used:
            tab.page.context.close()
