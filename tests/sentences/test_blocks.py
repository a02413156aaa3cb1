"""The block pass, by cases marked by hand and by properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.sentences._blocks import blocks

from .conftest import assert_whole

LINES = st.lists(
    st.sampled_from([
        "", "# Head", "word word word", "- item", "| a | b |", "---", "```", "> quoted", "a\tb",
        "===", "\x0c", "\r",
    ]), max_size=12,
).map("\n".join)  # fmt: skip


def found(text: str) -> list[tuple[str, str]]:
    return [(kind.value, text[start:end]) for start, _, end, kind in blocks(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("One.\n\nTwo.", [("paragraph", "One."), ("paragraph", "Two.")]),
        ("One.\r\n \r\nTwo.", [("paragraph", "One."), ("paragraph", "Two.")]),
        ("# Top\nBody.", [("heading", "# Top"), ("paragraph", "Body.")]),
        ("#hashtag first", [("paragraph", "#hashtag first")]),
        ("Top\n===\nBody.", [("heading", "Top\n==="), ("paragraph", "Body.")]),
        ("It ends.\n---", [("paragraph", "It ends."), ("rule", "---")]),
        ("**Top:**\nBody.", [("heading", "**Top:**"), ("paragraph", "Body.")]),
        ("Introduction\nIt begins.", [("paragraph", "Introduction"), ("paragraph", "It begins.")]),
        ("Size: 4\nColour: red", [("paragraph", "Size: 4"), ("paragraph", "Colour: red")]),
    ],
)
def test_paragraphs_and_headings_are_kept_apart(text: str, expected: list[tuple[str, str]]) -> None:
    """Blank lines and headings of every form separate; a hashtag is no heading."""
    assert expected == found(text)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("- a\n- b", ["- a", "- b"]),
        ("1. a\n2. b\n10) c", ["1. a", "2. b", "10) c"]),
        ("- [ ] open\n- [x] done", ["- [ ] open", "- [x] done"]),
        ("- Runs on\n  below it.\n- b", ["- Runs on\n  below it.", "- b"]),
        ("1.\nFirst step", ["1.\nFirst step"]),
    ],
)
def test_list_items_are_one_block_each_with_their_marker(text: str, items: list[str]) -> None:
    """The marker and the indented lines below belong to the item."""
    assert [("list_item", item) for item in items] == found(text)


def test_the_words_of_a_list_item_begin_after_its_marker() -> None:
    """The body skips "1. " and "> ", so that no sentence can end inside them."""
    text = "> 1. Press."

    [(_, body, end, _)] = blocks(text)

    assert text[body:end] == "Press."


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|:-:|\n| 1. x | 2 |",
        "a | b\n--- | ---\n1 | 2\n3 | 4",
        "Year\tSales\n2019\t5\n2020\t6",
        "Name   Age\nAnn    30\nBob    40",
    ],
)
def test_every_table_row_is_a_block(text: str) -> None:
    """Rows with borders, rows below a header, and rows in columns are kept whole and apart."""
    assert [("table_row", line) for line in text.split("\n")] == found(text)


def test_one_bar_or_tab_in_prose_makes_no_table() -> None:
    """A single line with a tab, or with a conditional probability, is a paragraph."""
    assert [kind for kind, _ in found("It is P(A | B) here.")] == ["paragraph"]
    assert [kind for kind, _ in found("One\ttab in a line.")] == ["paragraph"]
    long = "a\tb\t" + "word " * 100  # a line of prose, whatever it holds
    assert {kind for kind, _ in found(f"{long}\n{long}")} == {"paragraph"}


def test_fenced_code_is_one_block_whatever_it_holds() -> None:
    """Blank lines, headings, lists and full stops inside a fence are code."""
    code = "```python\nx = 1. \n\n# no heading\n- y\n~~~\n```"

    assert [("paragraph", "See:"), ("code", code), ("paragraph", "Done.")] == found(
        f"See:\n{code}\nDone."
    )


@pytest.mark.parametrize(
    "text",
    [
        # Wrapped by hand at a fixed width, with a capital letter after some of the breaks.
        "The committee met on the second floor of the\nTown Hall, where it was decided that the old\n"
        "bridge should be closed until the engineers\nhad looked at it.",
        "A word is hyphen-\nated here.",
        "She went to see Dr.\nSmith about it.",
        "> quoted text\n> goes on here",
        "The page ends in the middle of the sentence\n\x0cand the next page goes on.",
    ],
)
def test_hard_wrapped_prose_is_one_block(text: str) -> None:
    """A line break inside a sentence is a space."""
    assert len(list(blocks(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "apples\nbananas\nred pears",
        "Install the package from the web site\nOpen the menu and choose the folder\nPress the key",
        "Use the following:\nwater and some salt",
        "Dear John,\nThank you for your letter.",
    ],
)
def test_lines_that_stand_alone_stay_apart(text: str) -> None:
    """Lists without markers, steps and salutations are not glued."""
    assert text.split("\n") == [words for _, words in found(text)]


def test_quotation_marks_without_words_go_to_their_neighbour() -> None:
    """A lone ">" is no block of its own, unless there is nothing else."""
    assert [words for _, words in found("> a.\n>\n> b.\n>")] == ["> a.", ">\n> b.\n>"]
    assert found(">\n>") == [("rule", ">\n>")]


def test_a_number_that_opens_a_wrapped_line_is_no_list_marker() -> None:
    """Inside a sentence "12." is text; after a finished line it opens an item."""
    assert {"paragraph"} == {kind for kind, _ in found("The results are on page\n12. They are")}
    assert found("These are the steps:\n12. Press it.")[1][0] == "list_item"


@given(st.one_of(st.text(), LINES))
def test_every_character_lies_in_exactly_one_block(text: str) -> None:
    """Blocks are in order, trimmed, not empty, and leave nothing but white space between them."""
    pieces = [*blocks(text)]
    assert_whole(text, ((start, end) for start, _, end, _ in pieces))
    assert all(start <= body <= end for start, body, end, _ in pieces)
