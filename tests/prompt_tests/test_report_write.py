"""Pages and spreadsheets of prompt tests: a real Markdown parser finds our structure and no other."""

from __future__ import annotations

import re

import pytest
from hostile import HOSTILE, acting, formulas
from hypothesis import assume, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from prompt_test_models import make_result, planted

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.evaluations._cells import paragraphs
from rag_eval_integrations.prompt_tests import Report
from rag_eval_integrations.prompt_tests._pages import to_csv, to_json, to_markdown

GFM = MarkdownIt("commonmark").enable(["table", "strikethrough"])
GITHUB = re.compile(r"://|www\.|@|#|:[\w+-]+:|\$|\b[A-Z]+-\d|\b[0-9a-f]{7,}\b")
"""What GitHub reads beyond Markdown, outside of code: links, names, numbers, emoji, formulas."""


def inlines(page: str) -> list[Token]:
    return [token for token in GFM.parse(page) if token.type == "inline"]


def rendered(token: Token) -> str:
    """The text that a reader of the rendered page sees."""
    return "".join(child.content for child in token.children or ())


def blocks(page: str) -> list[tuple[str, str]]:
    return [(token.type, token.tag) for token in GFM.parse(page)]


STRUCTURE = blocks(to_markdown(planted("word")))


def check(text: str) -> None:
    page = to_markdown(planted(text))
    shown = one_line(text, 500)

    assert acting(page) == []
    assert blocks(page) == STRUCTURE
    for token in inlines(page):
        assert {child.type for child in token.children or ()} <= {"text", "code_inline"}, page
        outside = [child.content for child in token.children or () if child.type == "text"]
        assert not [part for part in outside if GITHUB.search(part)], page
    everything = [rendered(token) for token in inlines(page)]
    assert everything[:2] == [f"Prompt tests of {shown}", shown]
    assert everything.count(shown) >= 7  # the intent and six cells: models, scenario, rule
    metric = one_line(f"{text} with {text}", 500)
    for part in (f"{shown}: err", f"rule: {shown}", f"output: {shown}", f"reason: {shown}", metric):
        assert part in everything


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_as_they_are(text: str) -> None:
    """In headings, paragraphs, lists and tables: no link, image, HTML, emphasis or block."""
    check(text)


MARKS = st.text(alphabet="`*_{}[]()#+-!|~$<>&;:@\\/.,\"'=%^? \n\tabGH1xw", min_size=1, max_size=30)


@given(
    st.one_of(
        MARKS, st.text(min_size=1, max_size=30), st.lists(st.sampled_from(HOSTILE)).map("".join)
    )
)
def test_any_text_is_shown_as_it_is(text: str) -> None:
    """Above all, any order of the marks that Markdown reads."""
    assume(text.strip() and len(text) < 200)
    check(text)


@pytest.mark.parametrize(
    "text",
    ["openai:gone", "https://api.example/v1?a=1&b=2", "api_operation_id", "a*b", "[1]", "2 < 3", "C:\\dir",
     "me@example.org", "#12", "~5 & {x} (y)! 'z'", "snake_case and __init__", "a | b"],
)  # fmt: skip
def test_the_source_of_the_page_can_be_read(text: str) -> None:
    """Nothing is escaped outside of tables, and there only a pipe is."""
    page = to_markdown(planted(text))

    assert page.startswith(f"# Prompt tests of `{text}`\n\n`{text}`\n")
    assert f"| `{text}` |".replace("a | b", "a \\| b") in page
    assert "&#" not in page


def test_plain_words_are_not_set_in_code() -> None:
    """Sentences with the usual marks and numbers read as prose."""
    text = 'The output is "yes" or "no" (one word), isn\'t it? 95.5% – größer; well-known'

    assert f"\n{text}\n" in to_markdown(planted(text))
    assert "`1. one`" in to_markdown(planted("1. one"))  # not a list


@given(st.one_of(MARKS, st.lists(st.sampled_from(HOSTILE)).map("\n".join)))
def test_a_text_of_many_lines_is_paragraphs(text: str) -> None:
    """One per line, as in a generator's review, which is a page of its own."""
    page = paragraphs(text)

    assert acting(page) == []
    assert {kind for kind, _ in blocks(page)} <= {"paragraph_open", "inline", "paragraph_close"}
    shown = [one_line(line) for line in text.splitlines() if line.strip()]
    assert [rendered(token) for token in inlines(page)] == shown


STARTS = ("=", "+", "-", "@", " =", "\u3000=", "\u00a0+", "\uff1d", " \uff20", "\n=", "\uff0d")


@pytest.mark.parametrize("text", [*HOSTILE, *(f"{start}1+1" for start in STARTS)])
def test_no_cell_is_calculated_and_no_heading(text: str) -> None:
    """Neither a name of a model nor the name of a metric, which stands in the first line.

    Behind white space and in full width neither; a line break is written out.
    """
    report = planted(text)
    page = to_csv(report)

    assert acting(page) == []
    assert formulas(page) == []
    assert len(page.splitlines()) == 3
    assert acting(to_json(report)) == []
    assert to_csv(Report("p", [make_result("ok", model="a=1")])).count("'") == 0
