"""The one reader of YAML: its bounds on both sides, and odd texts that fail with their line."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.metrics._yaml import YamlTextError, read_yaml_text


def aliases(number: int) -> str:
    return "a: &a 1\nb: [" + ", ".join(["*a"] * number) + "]"


@pytest.mark.parametrize(
    ("allowed", "refused", "why"),
    [
        ("x" * 200_000, "x" * 200_001, "more than 200,000 characters of YAML"),
        ("[" * 64 + "]" * 64, "[" * 65 + "]" * 65, "nested more than 64 levels deep"),
        (
            "{a: " * 64 + "1" + "}" * 64,
            "{a: " * 65 + "1" + "}" * 65,
            "nested more than 64 levels deep",
        ),
        (aliases(20), aliases(21), "more than 20 aliases"),
        ("a: " + "9" * 100, "a: " + "9" * 101, "literal of more than 100 characters"),
    ],
    ids=["characters", "lists", "mappings", "aliases", "digits"],
)
def test_bounds(allowed: str, refused: str, why: str) -> None:
    """The last that passes and the first that does not."""
    read_yaml_text(allowed)

    with pytest.raises(YamlTextError, match=why):
        read_yaml_text(refused)


@pytest.mark.slow
def test_values_are_counted() -> None:
    """One value costs up to 40 µs, so there may be 20,000."""
    read_yaml_text("[" + "a," * 19_999 + "]")

    with pytest.raises(YamlTextError, match="more than 20,000 values"):
        read_yaml_text("[" + "a," * 20_000 + "]")


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


@pytest.mark.parametrize("unit", ["a,", "k: v\n", "- ", "? ", "\n", "#\n", '"', "'", "!a ", "&a "])
def test_time_is_bounded(unit: str) -> None:
    """Whatever 200,000 characters repeat, they are read or refused within a few seconds."""
    began = time.process_time()
    for opening in ("", "a: ", "["):
        with contextlib.suppress(YamlTextError):
            read_yaml_text((opening + unit * 200_000)[:200_000])
    assert time.process_time() - began < 10


def test_a_character_in_two_escapes_is_one() -> None:
    """As JSON writes it; half of one has no form that a file can hold."""
    assert read_yaml_text(r'name: "\ud83d\ude00"').value == {"name": "\U0001f600"}
    with pytest.raises(YamlTextError, match="half of a character"):
        read_yaml_text(r'name: "\ud83d"')
