"""Texts of other people: every character is seen, none acts, and no line of a log is forged."""

from __future__ import annotations

import ast
import io
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hostile import HOSTILE, acting
from hypothesis import given
from hypothesis import strategies as st

import rag_eval_integrations
from rag_eval_integrations._visible import (
    LogOnce,
    counted,
    hanging,
    logger_of,
    one_line,
    visible,
    visible_traceback,
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_seen_and_do_not_act(text: str) -> None:
    """Nothing of them is lost but white space, and nothing is left that acts."""
    for written in (visible(text), hanging(text), one_line(text)):
        assert acting(written) == []
    assert "\n" not in one_line(text)
    assert all(line.startswith("  ") for line in hanging(text).split("\n")[1:])
    assert len(visible(text)) >= len(text)


@given(st.text(alphabet=st.characters(codec=None), max_size=40))
def test_any_text_is_seen(text: str) -> None:
    """Whatever Unicode has; a visible text stays as it is."""
    written = visible(text)

    assert acting(written) == []
    assert visible(written) == written


@pytest.mark.parametrize(
    "text",
    [
        "Grüße – “naïve” café", "日本語、全角\u3000空白", "עברית", "❤️ 1️⃣ ⚠️ ✅", "می\u200cخواهم",
        "👩\u200d👧 🏳️\u200d🌈 👩🏽\u200d💻", "क्\u200dया", "a\u00a0b", "x\ny",
    ],
)  # fmt: skip
def test_what_people_write_stays(text: str) -> None:
    """Other scripts, typographic marks, wide spaces and emoji are no danger."""
    assert visible(text) == text


def test_escapes_can_be_read() -> None:
    """Short for bytes, with the code for everything else."""
    assert visible("\x1b \x7f \x9b \u202e \U000e0041 \ud800 \t\r") == (
        r"\x1b \x7f \x9b \u202e \U000e0041 \ud800 \t\r"
    )
    assert visible("a\ufe0f ❤\ufe0f\ufe0f") == "a\\ufe0f ❤\ufe0f\\ufe0f"


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("text", ["\x1b", "\u202e", "\ufe0f", "漢", "a\n"])
def test_a_megabyte_takes_little_time(text: str) -> None:
    """Whatever it is full of; a step that reads all of it for each character would take hours."""
    shown = hanging(text * (1_000_000 // len(text.encode())))

    assert len(shown) >= 300_000
    assert not acting(shown.replace("\n", ""))


# --- Loggers


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What a plain handler writes for our loggers."""
    screen = io.StringIO()
    handler = logging.StreamHandler(screen)
    handler.setFormatter(logging.Formatter("LOG %(message)s"))
    ours = logging.getLogger("rag_eval_integrations")
    ours.addHandler(handler)
    yield screen
    ours.removeHandler(handler)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_log_line_is_one_line_that_does_not_act(text: str, log: io.StringIO) -> None:
    """Message and arguments, also those of other types than text."""
    logger = logger_of("rag_eval_integrations.test")

    logger.warning("%s, %s, %d, %r", text, ValueError(text), 1, text)
    logger.warning(text)

    first, second = log.getvalue().splitlines()
    assert acting(log.getvalue()) == []
    assert (first.startswith("LOG "), second.startswith("LOG ")) == (True, True)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_logged_traceback_does_not_act(text: str, log: io.StringIO) -> None:
    """Not even through the message of the cause; no line of it begins like a line of the log."""
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise ValueError(text) from cause
    except ValueError as error:
        logger_of("rag_eval_integrations.test").error("failed", exc_info=error)
        shown = visible_traceback(error)

    assert acting(log.getvalue()) == []
    assert log.getvalue() == f"LOG failed\n{shown}\n"
    begins = ("Traceback", "KeyError:", "ValueError:", "The above exception", " ")
    assert all(line.startswith(begins) for line in shown.split("\n") if line)


def test_the_exception_stays_for_other_handlers(caplog: pytest.LogCaptureFixture) -> None:
    """A service that collects errors gets the exception itself, and arguments of their types."""
    error = ValueError("plain")
    logger_of("rag_eval_integrations.test").warning("%s %d", error, 3, exc_info=error)

    [record] = caplog.records
    assert (record.args, record.exc_info and record.exc_info[1]) == ((error, 3), error)


def test_an_argument_without_text_does_not_fail_the_app(log: io.StringIO) -> None:
    """A foreign object may raise as it is printed."""

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    logger_of("rag_eval_integrations.test").warning("got %s", Broken())

    assert log.getvalue() == "LOG got <Broken without text>\n"


# --- One mechanism

_PACKAGE = Path(rag_eval_integrations.__file__).parent
_OURS = {"cli/__init__.py", "cli/_terminal.py"}
_PRINTING = {
    "print": _OURS,
    "echo": {"cli/__init__.py"},  # the version
    # `agreement`, `review` and `_terminal` ask whether it is a terminal; rows are ASCII without
    # DEL; what a page shows was made visible as it was rendered; git's own is read by `_options`.
    "stdout": {
        *_OURS,
        *("cli/_console.py", "cli/_options.py", "cli/agreement.py", "cli/report.py"),
        *("cli/review.py", "dataset/files.py"),
    },
    "stderr": {*_OURS, "cli/_console.py", "cli/_progress.py"},
    "Console": {"cli/_progress.py", "evaluations/console.py"},  # which writes to a text
    "getLogger": {"_visible.py"},
    "writer": {"evaluations/_cells.py", "prompt_tests/_export.py"},  # the latter's texts are data
    "DictWriter": set(),
}
"""Names by which text comes before a person, and the modules that may use them."""


def printing(node: ast.AST) -> str | None:
    """The name by which a piece of code prints; None if it does not."""
    if isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr"):
        return node.attr
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name):
        return node.func.id if node.func.id != "stdout" else None  # our console, which escapes
    if isinstance(node.func, ast.Attribute):
        return node.func.attr if node.func.attr != "print" else None  # such a console's
    return None


def test_nothing_is_printed_past_the_escapes() -> None:
    """A new path to a terminal, a log or a spreadsheet goes through the functions above."""
    past = []
    for path in _PACKAGE.rglob("*.py"):
        module = path.relative_to(_PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            name = printing(node)
            if name in _PRINTING and module not in _PRINTING[name]:
                past.append(f"{module} {name}")
    assert past == []


@pytest.mark.parametrize(
    "text",
    ["a\u200db", "a\u200c", "\u200dم", "م\u200c\u200cم", "👩\u200d", "x\u200d👩", "م\u200db"],
)
def test_a_joiner_that_joins_nothing_is_seen(text: str) -> None:
    """Between other signs, at an end or twice, it would only hide."""
    assert acting(visible(text)) == []
    assert "\\u200" in visible(text)


@pytest.mark.parametrize(
    ("count", "words", "shown"),
    [
        (0, ("call",), "0 calls"), (1, ("call",), "1 call"), (1_234, ("call",), "1,234 calls"),
        (1, ("call was", "calls were"), "1 call was"), (0, ("call was", "calls were"), "0 calls were"),
    ],
)  # fmt: skip
def test_one_is_no_plural(count: int, words: tuple[str, ...], shown: str) -> None:
    """Neither "1 calls" nor "1 call were"; thousands are parted."""
    assert counted(count, *words) == shown


LOGGER = logging.getLogger("test_visible")


def test_the_first_of_each_kind_is_logged_and_all_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With its values, its level and its traceback, and as a line of the place that reports it."""
    once = LogOnce(LOGGER, logging.ERROR)
    error = ValueError("down")
    for number in range(3):
        once.log("sink", "sink %s failed", number, error=error)
    once.log(("sink", KeyError), "%d%% are lost", 5)

    assert once.count == 4
    assert [record.getMessage() for record in caplog.records] == ["sink 0 failed", "5% are lost"]
    first = caplog.records[0]
    assert (first.levelno, first.filename) == (logging.ERROR, "test_visible.py")
    assert [one.exc_info and one.exc_info[1] for one in caplog.records] == [error, None]


def test_kinds_without_end_are_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A message with a request id makes every failure a kind of its own."""
    once = LogOnce(LOGGER, max_kinds=3)
    for number in range(10):
        once.log(number, "failed")
        once.log(0, "failed")

    assert once.count == 20
    assert len(caplog.records) == 3


def test_threads_lose_no_count_and_log_no_kind_twice(caplog: pytest.LogCaptureFixture) -> None:
    """Eight of them, all at once."""
    once = LogOnce(LOGGER)

    def fail(number: int) -> None:
        once.log(number % 7, "kind %d failed", number % 7)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(fail, range(7000)))

    assert once.count == 7000
    expected = [f"kind {number} failed" for number in range(7)]
    assert sorted(record.getMessage() for record in caplog.records) == expected


def test_a_failure_may_be_reported_while_another_is(caplog: pytest.LogCaptureFixture) -> None:
    """A garbage collection can end a stream, and so report, wherever Python runs code."""
    once = LogOnce(LOGGER)

    class Kind:
        def __hash__(self) -> int:
            once.log("inner", "inner")
            return 1

        def __eq__(self, other: object) -> bool:
            return self is other

    once.log(Kind(), "outer")

    assert once.count >= 2
    assert sorted(record.getMessage() for record in caplog.records) == ["inner", "outer"]
