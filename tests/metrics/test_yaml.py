"""YAML of prompt and metric files: its bounds on both sides, and odd texts that fail with a line."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.metrics.geval.metric import read_geval
from rag_eval_integrations.metrics.prompty import parse_prompty


def read(text: str) -> tuple[dict[str, object], dict[str, int]]:
    """Read a text as front matter: its values, and the lines of its keys from its first."""
    prompt = parse_prompty(f"---\n{text}\n---\nGo", name="p")
    return dict(prompt.extra), {key: line - 1 for key, line in prompt.lines.items()}


def line_of(error: ConfigurationError) -> int:
    found = re.search(r"line (\d+):", str(error))
    assert found
    return int(found[1]) - 1


def aliases(number: int) -> str:
    return "a: &a 1\nb: [" + ", ".join(["*a"] * number) + "]"


DEEP = "nested more than 64 levels deep"


@pytest.mark.parametrize(
    ("allowed", "refused", "why"),
    [
        ("a: " + "[" * 63 + "]" * 63, "a: " + "[" * 64 + "]" * 64, DEEP),
        ("{a: " * 64 + "1" + "}" * 64, "{a: " * 65 + "1" + "}" * 65, DEEP),
        (aliases(20), aliases(21), "more than 20 aliases"),
        ("a: " + "9" * 100, "a: " + "9" * 101, "literal of more than 100 characters"),
        ("a: " + "x" * 999_997, "a: " + "x" * 999_998, "more than 1,000,000 characters"),
    ],
    ids=["lists", "mappings", "aliases", "digits", "length"],
)  # fmt: skip
def test_bounds(allowed: str, refused: str, why: str) -> None:
    """The last that passes and the first that does not."""
    read(allowed)

    with pytest.raises(ConfigurationError, match=why):
        read(refused)


def test_a_value_that_holds_itself_is_refused() -> None:
    """Before it is built."""
    with pytest.raises(ConfigurationError, match="holds itself"):
        read("a: &a [*a]")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: !!bool maybe", 2),
        ("a: 1\nb: !!python/object/apply:os.getcwd []", 2),
        ("a: 1\nb: !!str {c: d}", 2),
        ("a: 1\nb: .nan", 2),
        ("a: 1\nb: 2\na: 3", 3),
        ("1: a\n'1': b", 2),
        ("a: 1\n<<: 5", 2),
        ("a: 1\nb: \0", 2),
        ('a: 1\nb: "\\UFFFFFFFF"', 2),
        ("a: 1\nb: *c", 2),
        ("a: 1\n--- \nb: 1", 2),
        ("a: " + "9" * 20_000, 1),
    ],
)
def test_odd_yaml_names_its_line(text: str, line: int, tmp_path: Path) -> None:
    """Tags, literals and characters that the library fails at in ten different ways."""
    if "\n---" not in text:  # that would end the front matter
        with pytest.raises(ConfigurationError) as raised:
            read(text)
        assert line_of(raised.value) == line
    file = tmp_path / "m.geval.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError) as refused:
        read_geval(file)
    assert refused.value.line == line


def test_values_are_of_types_of_json() -> None:
    """A date stays as it was written; keys that are merged may be overridden."""
    text = "d: 2024-13-45\ne: 2024-01-31\na: &a {q: 1, r: ~}\nb: {<<: *a, q: 2.5}\n= : ="

    values = {"d": "2024-13-45", "e": "2024-01-31", "a": {"q": 1, "r": None}}
    values |= {"b": {"q": 2.5, "r": None}, "=": "="}
    assert read(text) == (values, {"d": 1, "e": 2, "a": 3, "b": 4, "=": 5})


def test_words_and_numbers_are_those_of_yaml_1_2() -> None:
    """`yes` and `10:30` are texts; a number that begins with 0 has the base ten."""
    assert read("a: [yes, No, on, 10:30, 1_000, 01234, -010, 1e-3, .5, True]")[0] == {
        "a": ["yes", "No", "on", "10:30", "1_000", 1234, -10, 0.001, 0.5, True]
    }


@given(st.text(alphabet="ab01:-?*&!|>%@,[]{}#'\"\\~<=.\n\t \0\ud800é"))
def test_any_text_is_read_or_refused_with_a_line_that_exists(text: str) -> None:
    """Nothing else is raised."""
    lines = [1]
    try:
        read(f"{text}\n")
    except ConfigurationError as error:
        lines.append(line_of(error))
    assert 0 <= lines[-1] <= text.count("\n") + 3


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", ["a,", "k: v\n", "- ", "\n", '"', "&a "])
def test_time_is_bounded(unit: str) -> None:
    """A text in which any step reads all before it again would take minutes."""
    for opening in ("", "a: ", "["):
        with contextlib.suppress(ConfigurationError):
            read((opening + unit * 500_000)[:500_000])


def test_a_character_in_two_escapes_is_one() -> None:
    """As JSON writes it; half of one has no form that a file can hold."""
    assert read(r"name: x" + "\n" + r'b: "\ud83d\ude00"')[0] == {"b": "\U0001f600"}
    with pytest.raises(ConfigurationError, match="not YAML"):
        read(r'b: "\ud83d"')
