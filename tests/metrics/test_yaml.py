"""The one reader of YAML: its bounds on both sides, and odd texts that fail with their line."""

from __future__ import annotations

import contextlib

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rag_eval_integrations.metrics import _yaml
from rag_eval_integrations.metrics._yaml import YamlText, YamlTextError, read_yaml_text

IN_C = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML has no parser in C here")


def aliases(number: int) -> str:
    return "a: &a 1\nb: [" + ", ".join(["*a"] * number) + "]"


@pytest.mark.parametrize(
    ("allowed", "refused", "why"),
    [
        ("[" * 64 + "]" * 64, "[" * 65 + "]" * 65, "nested more than 64 levels deep"),
        (
            "{a: " * 64 + "1" + "}" * 64,
            "{a: " * 65 + "1" + "}" * 65,
            "nested more than 64 levels deep",
        ),
        (aliases(20), aliases(21), "more than 20 aliases"),
        ("a: " + "9" * 100, "a: " + "9" * 101, "literal of more than 100 characters"),
    ],
    ids=["lists", "mappings", "aliases", "digits"],
)
def test_bounds(allowed: str, refused: str, why: str) -> None:
    """The last that passes and the first that does not."""
    read_yaml_text(allowed)

    with pytest.raises(YamlTextError, match=why):
        read_yaml_text(refused)


def test_a_text_may_be_as_long_as_a_file() -> None:
    """The parser in C reads 5 million characters, which no file exceeds that is read."""
    if yaml.__with_libyaml__:
        assert len(read_yaml_text("x" * 5_000_000).value) == 5_000_000

    with pytest.raises(YamlTextError, match="characters of YAML"):
        read_yaml_text("x" * 5_000_001)


@pytest.mark.slow
def test_the_parser_in_python_reads_less() -> None:
    """It takes up to 40 µs per value, and so reads 200,000 characters and 20,000 values."""
    _yaml._read("x" * 200_000, in_c=False)
    _yaml._read("[" + "a," * 19_999 + "]", in_c=False)

    with pytest.raises(YamlTextError, match="more than 200,000 characters of YAML"):
        _yaml._read("x" * 200_001, in_c=False)
    with pytest.raises(YamlTextError, match="more than 20,000 values"):
        _yaml._read("[" + "a," * 20_000 + "]", in_c=False)


@IN_C
def test_values_need_no_bound_of_their_own() -> None:
    """The parser in C reads 100,000 values as they are."""
    assert read_yaml_text("[" + "a," * 100_000 + "]").value == ["a"] * 100_000


def test_aliases_of_aliases_are_counted_as_often_as_they_repeat() -> None:
    """A text of a kilobyte that stands for a million values is refused before it is read."""
    values = "a0: &a0 [" + "x," * 30 + "]\n"
    values += "".join(f"a{i}: &a{i} [" + f"*a{i - 1}," * 4 + "]\n" for i in range(1, 6))
    text = "a0: &a0 " + "x" * 150_000 + "\n"
    text += "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 9))

    with pytest.raises(YamlTextError, match="values"):
        read_yaml_text(values)
    with pytest.raises(YamlTextError, match="repeat too much text"):
        read_yaml_text(text)
    with pytest.raises(YamlTextError, match="holds itself"):
        read_yaml_text("a: &a [*a]")


def test_what_is_side_by_side_is_not_deep() -> None:
    """A list of 200 lists is two deep."""
    read_yaml_text("[" + "[], " * 100 + "{}, " * 100 + "]")


def test_depth_counts_before_the_end_is_seen() -> None:
    """Brackets that never close are too deep, not broken; a few of them are broken."""
    with pytest.raises(YamlTextError, match="deep"):
        read_yaml_text("[" * 20_000)
    with pytest.raises(YamlTextError, match="not YAML"):
        read_yaml_text("[" * 20)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: !!bool maybe", 2),
        ("a: 1\n\nb: !!int ''", 3),
        ("a: 1\nb: !!int 0b2", 2),
        ("a: 1\nb: !!float .", 2),
        ("a: 1\nb: !!timestamp nope", 2),
        ("a: 1\nb: !!python/object/apply:os.getcwd []", 2),
        ("a: 1\nb: !!binary AAAA", 2),
        ("a: 1\nb: !!set {x}", 2),
        ("a: 1\nb: !own x", 2),
        ("a: 1\nb: !!str {c: d}", 2),
        ("a: 1\nb: !!map [c]", 2),
        ("a: 1\nb: .nan", 2),
        ("a: 1\nb: -.inf", 2),
        ("a: 1\nb: 2\na: 3", 3),
        ("1: a\n'1': b", 2),
        ("a: 1\n? [b]\n: c", 2),
        ("a: 1\n<<: 5", 2),
        ("a: 1\n\tb: c", 2),
        ("a: 1\nb: \0", 2),
        ("a: 1\nb: \ud800", 2),
        ('a: 1\nb: "\\uD800"', 2),
        ('a: 1\nb: "\\UFFFFFFFF"', 2),
        ("a: 1\nb: *c", 2),
        ("a: 1\nb: @c", 2),
        ("a: 1\n--- \nb: 1", 2),
        ("a: " + "1" * 5_000, 1),
        ("a: 1" + ":59" * 20_000, 1),
    ],
)
def test_odd_yaml_names_its_line(text: str, line: int) -> None:
    """Tags, literals and characters that the library's own loader fails at in ten different ways."""
    with pytest.raises(YamlTextError) as raised:
        read_yaml_text(text)

    assert raised.value.line == line
    assert str(raised.value)


def test_values_are_of_types_of_json() -> None:
    """A date stays as it was written; keys that are merged may be overridden."""
    text = (
        "d: 2024-13-45\ne: !!timestamp 2024-01-31\na: &a {q: 1, r: ~}\nb: {<<: *a, q: 2.5}\n= : ="
    )
    read = read_yaml_text(text)

    assert read.value == {
        "d": "2024-13-45", "e": "2024-01-31", "a": {"q": 1, "r": None}, "b": {"q": 2.5, "r": None},
        "=": "=",
    }  # fmt: skip
    assert read.lines == {"d": 1, "e": 2, "a": 3, "b": 4, "=": 5}


@given(st.text(alphabet="ab01:-?*&!|>%@,[]{}#'\"\\~<=.\n\t \0\ud800é"))
def test_any_text_is_read_or_refused_with_a_line_that_exists(text: str) -> None:
    """Nothing else is raised."""
    lines = [1]
    try:
        read_yaml_text(text)
    except YamlTextError as error:
        lines.append(error.line)
    assert 1 <= lines[-1] <= text.count("\n") + 2


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ["a,", "k: v\n", "- ", "? ", "\n", "#\n", '"', "'", "!a ", "&a "])
def test_time_is_bounded(unit: str) -> None:
    """A text in which any step reads all before it again would take minutes."""
    for opening in ("", "a: ", "["):
        with contextlib.suppress(YamlTextError):
            read_yaml_text((opening + unit * 500_000)[:500_000])


def outcome(text: str, *, in_c: bool) -> YamlText | tuple[str, int]:
    try:
        return _yaml._read(text, in_c=in_c)
    except YamlTextError as error:
        return str(error), error.line


PIECES = (
    *"ab01:-?*&!|>%@,[]{}#'\"\\~<=.\n\n\n \t", "é", "\x85", "\u2028", "\ufeff", "\r\n", ": ", "- ", "? ",
    "a: ", "- x\n", "|\n", ">-\n", "|#", " #", "&a ", "*a", "!!str ", "!t ", "<<: ", "<<: *a\n", "{a: 1}",
    "[b, 2]", "---\n", "%YAML 1.1\n", '"\\x41"', r'"\ud83d\ude00"', r"'\ud83d\ude00'", r'"\ud83d"', "1.5", "yes",
)  # fmt: skip


@IN_C
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
@example("a:\tb")
@example("!'!")
@example("|#")
@example("\ufeff\ufeff-")
@example("[")
def test_both_parsers_give_the_same_result(text: str) -> None:
    """Values, lines, refusals and their words do not depend on how PyYAML was built."""
    assert outcome(text, in_c=True) == outcome(text, in_c=False)


@IN_C
def test_long_texts_are_read_as_short_ones() -> None:
    """Beyond the length at which odd texts are left to the parser in Python, values are equal."""
    text = "".join(
        f'- {{k{at}: [1, 2.5, yes, ~, "\\u00e9", x y], e: "\\ud83d\\ude00"}} # c\n'
        for at in range(300)
    )
    assert len(text) > _yaml._SHORT

    assert outcome(text, in_c=True) == outcome(text, in_c=False)


@IN_C
def test_a_long_text_that_is_broken_names_its_line() -> None:
    """The words of the error are libyaml's there; the line is the same."""
    found = outcome("- a\n" * 5_000 + "]", in_c=True)

    assert isinstance(found, tuple)
    assert found[1] == 5_001


@IN_C
@pytest.mark.parametrize("style", ["'%s'", "%s", "|\n  %s"], ids=["quoted", "plain", "block"])
def test_escapes_outside_of_double_quotes_stay(style: str) -> None:
    """A long text of an escaped pair where escapes have no meaning is read as it is written."""
    read = read_yaml_text("a: " + "x" * 20_000 + "\nb: " + style % r"\ud83d\ude00")

    assert read.value["b"] == r"\ud83d\ude00"


def test_the_first_of_two_errors_is_told() -> None:
    """A bound holds before more is read."""
    with pytest.raises(YamlTextError, match="for the second time") as raised:
        read_yaml_text("a: 1\na: 2\nb: [")
    assert raised.value.line == 2


def test_merged_keys_have_the_lines_of_their_own_mapping() -> None:
    """Errors about a merged field name the line that holds it."""
    read = read_yaml_text("x: &a\n  q: 1\n<<: *a\nr: 2")

    assert read.value == {"q": 1, "x": {"q": 1}, "r": 2}
    assert read.lines == {"q": 2, "x": 1, "r": 4}


def test_a_character_in_two_escapes_is_one() -> None:
    """As JSON writes it; half of one has no form that a file can hold."""
    assert read_yaml_text(r'name: "\ud83d\ude00"').value == {"name": "\U0001f600"}
    with pytest.raises(YamlTextError, match="half of a character"):
        read_yaml_text(r'name: "\ud83d"')
