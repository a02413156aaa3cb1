"""`rag-eval store report`: a page of the last hour, day and week, replaced as a whole."""

from __future__ import annotations

import itertools
import re
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ferries import Command
from forked import WarmPopen
from runs import call as evaluation_of

from rag_eval_integrations import RagCall
from rag_eval_integrations.records import to_line
from rag_eval_integrations.store import Store
from rag_eval_integrations.store.database import Outcome
from rag_eval_integrations.store.spool import Refusal, SpooledCall, new_uid

from .conftest import in_process

NOW = datetime(2026, 11, 29, 9, 4, tzinfo=UTC).timestamp()


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    milliseconds = itertools.count()
    monkeypatch.setattr(time, "time", lambda: NOW + next(milliseconds) / 1_000)


@pytest.fixture
def path() -> Path:
    """A store with calls of the last minutes, of yesterday and of last month."""
    now = time.time()
    with closing(Store(Path("e.db"))) as store:
        for days in (0.001, 0.002, 1.5, 30):
            call = RagCall(f"<b>When, {days:g}?", ["It leaves at nine."], "At ten.")
            store.add([SpooledCall(new_uid(), now - days * 86_400, to_line(call))])
        for number, claimed in enumerate(store.claim("w", 9)):
            evaluation = evaluation_of(
                claimed.call().id, {"adherence": float(number == 1)}, supported=False,
                question=claimed.call().question, fingerprint="f",
            )  # fmt: skip
            store.settle([Outcome(claimed, "judged", evaluation=evaluation)], "w")
        store.submit(call)
        store.settle(
            [Outcome(c, "left_out", "not in the sample") for c in store.claim("w", 1)], "w"
        )
        store.add([], [Refusal("r", now, "the <disk> is full", 7)])
    return Path("e.db")


def test_the_page_shows_means_reasons_and_failing_calls(path: Path, rag_eval: Command) -> None:
    """The verdict and failing calls first; per window intervals and points; texts cannot act."""
    page = Path("index.html")
    done = rag_eval("store", "report", "--store", path, "-o", page)
    text = page.read_text()

    assert done.out == f"Wrote the page to {page}\n"
    sections = {name: text.split(f'id="{name}-heading"')[1].split("</section>")[0]
                for name in ("hour", "day", "week")}  # fmt: skip
    assert [section.count("<circle") for section in sections.values()] == [1, 1, 2]
    assert [re.findall(r"\d of \d", section) for section in sections.values()] == [
        ["2 of 2"], ["2 of 2"], ["3 of 3"],
    ]  # fmt: skip
    assert ">0.333<" in sections["week"]
    assert '<th scope="row">left out</th>' in sections["hour"]
    assert "the &lt;disk&gt; is full" in sections["hour"]
    assert text.index("1 of 3 answers is sound; 2 invent something") < text.index("<main")
    failing = text.split('id="failing-heading"')[1].split('id="hour-heading"')[0]
    assert failing.count('<details class="worst"') == 2
    assert failing.index("&lt;b&gt;When, 0.001?") < failing.index("&lt;b&gt;When, 1.5?")
    assert 'http-equiv="refresh"' not in text


def test_an_empty_store_has_a_page(rag_eval: Command) -> None:
    """It says that nothing was judged, and a page of others is not replaced."""
    Path("notes.html").write_text("<p>mine")
    Store("e.db").close()
    rag_eval("store", "report", "--store", "e.db", "-o", "i.html")
    other = rag_eval("store", "report", "--store", "e.db", "-o", "notes.html", code=2)

    text = Path("i.html").read_text()
    assert text.count("No call of this time has been judged") == 1
    assert '<p class="verdict-of">No calls</p>' in text
    assert "was not made by this program" in other.err
    assert Path("notes.html").read_text() == "<p>mine"


def test_charts_have_axes_times_and_counts(path: Path, rag_eval: Command) -> None:
    """A bar per period with its number of calls; a line between neighbours, none over a gap."""
    with closing(Store(path)) as store:
        judged(store, 0.01, [1.0, 0.0])  # two periods before those of the last minutes
        judged(store, 0.0055, [1.0])
    page = Path("index.html")
    rag_eval("store", "report", "--store", path, "-o", page)
    calls, adherence = re.findall(
        r'<svg class="chart".*?</svg>', page.read_text().split('id="hour-heading"')[1], re.DOTALL
    )[:2]

    assert "Calls per 5 minutes: 11-29 08:45 2, 11-29 08:55 1, 11-29 09:00 3" in calls
    assert calls.count('class="bar"') == 3
    for chart, most in ((calls, "3"), (adherence, "1")):
        texts = re.findall(r"<text[^>]*>([^<]*)", chart)
        assert texts == [most, "0", "08:00", "08:15", "08:30", "08:45", "09:00"]
    (line,) = re.findall(r'class="line-of" d="([^"]*)"', adherence)
    assert re.sub(r"[^ML]", "", line) == "MML"
    assert "11-29 09:00 0.500 (2 calls)" in adherence


def test_a_right_refusal_does_not_fail(rag_eval: Command) -> None:
    """An answer that only says that the documents do not tell, where nothing relevant was found."""
    with closing(Store("e.db")) as store:
        for response in ("I could not find a price in the documents.", "It costs $900."):
            store.submit(RagCall("What does a cabin cost?", ["The ferry is green."], response))
        assert rag_eval("worker", "--store", "e.db", "--once").code == 0
        assert [call.response for call in store.failing(0.0, 9)] == ["It costs $900."]
    rag_eval("store", "report", "--store", "e.db", "-o", "i.html")
    text = Path("i.html").read_text()
    assert "1 of 2 answers is sound (1 rightly says that the documents do not tell)" in text


@pytest.mark.slow
def test_it_is_made_again_and_again(path: Path) -> None:
    """Until a signal ends it; a browser that shows the page loads it again."""
    page = Path("index.html")
    words = ("store", "report", "--store", path, "-o", page, "--every", 0.01)
    process = WarmPopen(in_process(*words))
    seen: set[int] = set()
    try:
        while len(seen) < 3:
            assert process.poll() is None
            if page.exists():
                seen.add(page.stat().st_mtime_ns)
                assert "</html>" in page.read_text()
    finally:
        process.terminate()
        assert process.wait() == 143
    assert '<meta http-equiv="refresh" content="1">' in page.read_text()


def test_the_page_says_where_no_model_read_the_calls(path: Path, rag_eval: Command) -> None:
    """Of all calls, or of some; and each figure has its heading, for a narrow screen."""
    page, fresh = Path("index.html"), Path("fresh.db")
    rag_eval("store", "report", "--store", path, "-o", page)
    assert "Estimates by comparing words" not in page.read_text()
    for store in (path, fresh):
        with closing(Store(store)) as opened:
            opened.submit(RagCall("When does the ferry leave?", ["It leaves at nine."], "At nine."))
        assert rag_eval("worker", "--store", store, "--once").code == 0

    rag_eval("store", "report", "--store", path, "-o", page)
    assert "Estimates by comparing words in 1 of 5 scored calls: no model" in page.read_text()
    rag_eval("store", "report", "--store", fresh, "-o", page)
    text = page.read_text()
    assert "Estimates by comparing words: no model read this." in text
    tables = re.findall(r'<table class="overview stack">.*?</table>', text, re.DOTALL)
    assert len(tables) == 1  # the day and the week would show the same
    assert all("data-label=" in cell for cell in re.findall("<td[^>]*>", "".join(tables)))


def judged(store: Store, days: float, values: list[float], thread: str = "") -> None:
    """Add judged calls of some days ago, a second after each other."""
    for number, value in enumerate(values):
        call = RagCall(f"{thread} at {days}, {number}?", ["It leaves."], "At ten.")
        at = time.time() - days * 86_400 + number
        store.add([SpooledCall(new_uid(), at, to_line(call))])
        (claimed,) = store.claim("w", 1)
        evaluation = evaluation_of(
            claimed.call().id, {"adherence": value}, supported=value == 1.0, fingerprint="f",
            question=call.question, metadata={"thread_id": thread} if thread else {},
        )  # fmt: skip
        store.settle([Outcome(claimed, "judged", evaluation=evaluation)], "w")


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ([1.0] * 20, [0.0] * 10, "fell to 0.000 (0.000–0.278), from 1.000 (0.839–1.000)"),
        ([0.0] * 20, [1.0] * 10, "rose to 1.000 (0.722–1.000), from 0.000 (0.000–0.161)"),
        ([1.0] * 20, [0.0] * 9, ""), ([1.0] * 9, [0.0] * 20, ""),
        ([1.0, 0.0] * 10, [1.0, 0.0, 0.0] * 4, ""),
    ],
)  # fmt: skip
def test_the_last_day_is_held_against_the_week_before(
    rag_eval: Command, before: list[float], now: list[float], said: str
) -> None:
    """On the page and on the terminal, where the intervals of ten values do not touch."""
    with closing(Store(Path("e.db"))) as store:
        judged(store, 3, before)
        judged(store, 0.2, now)
        judged(store, 20, [0.5] * 12)

    told = rag_eval("store", "report", "--store", "e.db", "-o", "i.html").out
    line = f"Last day: adherence {said} in the seven days before." if said else ""
    assert told == "Wrote the page to i.html\n" + (f"{line}\n" if said else "")
    assert Path("i.html").read_text().count("in the seven days before") == bool(said)


def test_conversations_of_the_newest_calls(rag_eval: Command) -> None:
    """Turn by turn, in the order of time, with the turn that went wrong first."""
    with closing(Store(Path("e.db"))) as store:
        judged(store, 0.2, [1.0, 0.0, 1.0], "<b>ferry")
        judged(store, 0.2, [1.0], "single")
    rag_eval("store", "report", "--store", "e.db", "-o", "i.html")

    section = Path("i.html").read_text().split('id="conversations-heading"')[1]
    section = section.split("</section>")[0]
    assert "1 of 1 conversations" in section
    assert "&lt;b&gt;ferry</bdi>: 3 turns, turn 2 went wrong first" in section
    turns = section.split("<li>")[1:]
    assert [", ".join(re.findall(r"\d(?=\?</bdi>)", turn)) for turn in turns] == ["0", "1", "2"]
    assert "The first turn" in turns[1]
