"""Lines, lists and refusals, as generators write them."""

from __future__ import annotations

import pytest

from rag_eval_integrations.prompt_tests._replies import (
    is_refusal,
    json_in,
    lines_in,
    read_tests_csv,
    statements_in,
)


def test_lines_lose_their_bullets_numbers_headings_and_fences() -> None:
    """One statement a line is left, and no statement is cut."""
    text = "```\n**Output rules:**\n1. One.\n2) Two.\n- Three.\n* Four.\n\n# comment\n_ Five.\n```"
    kept = ["3D models are named.", "10 words at most.", "_under_ is kept"]

    assert lines_in(text) == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert lines_in("\n".join(kept)) == kept


@pytest.mark.parametrize(
    "text",
    ['{"rules": ["a", " b\\n c ", ""]}', '{"items": ["a", "b c"]}', '```json\n["a", "b c"]\n```',
     "- a\n- b c", 'Here it is:\n```\n{"rules": ["a", "b c",]}\n```\n'],
)  # fmt: skip
def test_statements_come_as_json_or_lines(text: str) -> None:
    """Whatever the model made of the schema."""
    assert statements_in(text, "rules") == ["a", "b c"]


@pytest.mark.parametrize(
    "text", ['{"rules": ["a", "b', "no json", "{" * 20_000 + "}", "[" * 100_000 + "]"]
)
def test_json_that_was_cut_off_is_none(text: str) -> None:
    """What is missing must not pass for what was never there."""
    assert json_in(text) is None


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("Sorry, but I cannot do this.", True), ("I can’t help with this request.", True),
        ("As an AI, I cannot assist with that.", True), ("I'm sorry " + "x" * 700, False),
        ('The output begins with "I\'m sorry" when the input is empty.', False), ("", False),
    ],
)  # fmt: skip
def test_refusals_are_known_from_rules_that_quote_them(text: str, refusal: bool) -> None:
    """A whole short reply that begins as refusals do."""
    assert is_refusal(text) == refusal


def test_rows_with_trouble_are_mended_or_named() -> None:
    """Spaces before quotes, escaped quotes, unquoted lists, extra cells; never guessed."""
    table = read_tests_csv(
        "Here are the tests:\n```csv\n"
        "Rule ID, Test ID, testinput, expected_output, reasoning\n"
        '1, 1, "He said \\"hi\\", twice", "A", "plain"\n'
        '1, 2, "two", ["A", "B"], "a list"\n'
        '1, 3, "three", "A", "one", "more"\n'
        '2, 1, four, with, commas, "A", "unclear"\n'
        "2, 2, short\n"
        '2, 3, "six", "A", "end",\n'
        "```\n"
    )

    assert [(row["testinput"], row["expectedoutput"]) for row in table.rows] == [
        ('He said "hi", twice', "A"), ("two", '["A", "B"]'), ("three", "A"), ("six", "A"),
    ]  # fmt: skip
    assert table.rows[2]["reasoning"] == "one more"
    assert table.lost == ["line 5: 7 cells instead of 5", "line 6: 3 cells instead of 5"]


def test_tables_without_a_header_or_with_other_names_are_read() -> None:
    """The families of headers that were recorded."""
    assert read_tests_csv('1, 1, "a", "B", "c"\n\n2, 1, "d", "E", "f"').rows[1] == {
        "ruleid": "2", "testid": "1", "testinput": "d", "expectedoutput": "E", "reasoning": "f",
    }  # fmt: skip
    old = read_tests_csv('"rule id","test type","rule","test case"\n"ab12","negative","No.","x"')
    row = {"ruleid": "ab12", "test type": "negative", "rule": "No.", "testinput": "x"}
    assert old.rows == [row]
    own = read_tests_csv("ruleid,testid,expectedoutput,reasoning,Word\n1,1,a,b,c", ["word"])
    assert own.rows[0]["word"] == "c"


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("I'm sorry, I can't assist with that.",
         ["the reply is a refusal: I'm sorry, I can't assist with that."]),
        ("There is nothing here.", ["there is no header and no row with a rule, a test and an input"]),
        ("", []),
    ],
)  # fmt: skip
def test_what_is_no_table_has_no_rows(text: str, lost: list[str]) -> None:
    """A refusal and prose are named."""
    table = read_tests_csv(text)
    assert (table.rows, table.lost) == ([], lost)
