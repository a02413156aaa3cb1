"""Corrections: each is in the file of labels as it is made, and nothing else is ever written."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import axe
from report_rows import evaluations

from rag_eval_integrations.dataset._labels_file import (
    Draw,
    LabelsFile,
    LabelsWriter,
    Population,
    asked,
)

from .conftest import Served, serving, tab, write

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROWS = evaluations()[3:23]
CALL = ROWS[4]
PLACE = "/run/a.jsonl/label"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """The file of corrections, which is not there yet, beside a run."""
    write(tmp_path / "a.jsonl", ROWS)
    return tmp_path / "labels.jsonl"


def post(served: Served, **changed: object) -> tuple[int, str]:
    """Send a correction of the first sentence that is asked, as the page does."""
    sent = {
        "call": 5,
        "row_key": CALL.row_key,
        "key": asked(CALL)[0].key,
        "label": False,
        "who": "ann",
    }
    body = json.dumps({**sent, **changed})
    status, _, content = served.ask(PLACE, method="POST", body=body, Origin=served.address)
    return status, content


def test_each_answer_is_appended(labels: Path, served: Served) -> None:
    """By person, and the whole row with the last one; a page that is opened later has them."""
    assert post(served) == (200, "saved")
    assert post(served, who="bob", label=True) == (200, "saved")
    for sentence in asked(CALL):
        assert post(served, key=sentence.key, label=True)[0] == 200

    held = LabelsFile(labels).calls
    assert set(held) == {(CALL.row_key, "ann"), (CALL.row_key, "bob")}
    assert held[CALL.row_key, "ann"].whole is not None
    assert held[CALL.row_key, "bob"].answers == {asked(CALL)[0].key: True}
    assert '"who":"bob"' in served.text("/run/a.jsonl")
    assert labels.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "changed",
    [{"row_key": "other"}, {"call": 6}, {"call": 99}, {"call": 0}, {"key": "zz"}, {"label": "yes"}, {"who": " "}, {"who": "x" * 201},
     {"more": 1}, {"who": "x" * 5_000}],
)  # fmt: skip
def test_what_is_no_correction_is_refused(
    labels: Path, served: Served, changed: dict[str, object]
) -> None:
    """And makes no file."""
    assert post(served, **changed)[0] in (409, 413)
    assert not labels.exists()


def test_only_a_page_of_this_server_corrects(labels: Path, served: Served) -> None:
    """A form of another site, or one without an origin, changes nothing, with the cookie either."""
    body = json.dumps({"call": 5, "row_key": CALL.row_key, "key": "a", "label": True, "who": "eve"})
    for given in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert served.ask(PLACE, method="POST", body=body, **given)[0] == 403
    assert served.ask(PLACE, method="POST", body=body, Origin=served.address, Cookie="")[0] == 403
    assert served.ask("/run/none/label", method="POST", body=body, Origin=served.address)[0] == 409
    assert not labels.exists()


def test_a_file_that_cannot_be_continued_is_told(labels: Path, served: Served) -> None:
    """It holds something else, or `rag-eval review` is writing it; it stays as it is."""
    labels.write_text("mine\n")
    assert "something else" in post(served)[1]
    assert labels.read_text() == "mine\n"
    labels.unlink()
    assert post(served)[0] == 200
    before = labels.read_text()
    draw = Draw("single", None, 0, Population.of([CALL.row_key]))
    with LabelsWriter(labels, "ann", draw):
        status, words = post(served)
    assert status == 409
    assert "another process" in words
    assert labels.read_text() == before


def test_answers_of_many_at_once_are_all_kept(labels: Path, served: Served) -> None:
    """Each request is answered once its line is there."""
    keys = [sentence.key for sentence in asked(CALL)]
    found: list[int] = []

    def correct(who: str) -> None:
        found.extend(post(served, who=who, key=key)[0] for key in keys)

    threads = [threading.Thread(target=correct, args=[f"p{at}"]) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [200] * 4 * len(keys)
    held = LabelsFile(labels)
    assert held.bad == []
    assert [len(call.answers) for call in held.calls.values()] == [len(keys)] * 4


@pytest.mark.browser
def test_two_tabs_correct_at_once(browser: Browser, labels: Path, tmp_path: Path) -> None:
    """From the run's page, by the keyboard; each sees after a reload what the other said."""
    first, second, *_ = [sentence.key for sentence in asked(CALL)]
    with serving(tmp_path) as served, tab(browser, served) as opened:
        page = opened.page
        page.goto(f"{served.address}/run/a.jsonl")
        page.locator(".body .row").nth(4).locator("a").click()
        other = page.context.new_page()
        other.goto(page.url)
        for one, key, said in ((page, first, "n"), (other, second, "y")):
            group = one.get_by_role("group", name=f"sentence {key}")
            group.get_by_role("button").first.focus()
            one.keyboard.press(said)
            one.get_by_text("1 of 5 sentences answered").wait_for()
            one.get_by_text("They are in labels.jsonl.").wait_for()
            assert axe(one) == []
        page.reload()
        page.get_by_text("2 of 5 sentences answered").wait_for()

    (call,) = LabelsFile(labels).calls.values()
    assert call.who == "ann"
    assert call.answers == {first: False, second: True}
