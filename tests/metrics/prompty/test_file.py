"""`.prompty` files as people write them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import Prompty, load_prompty, parse_prompty
from rag_eval_integrations.metrics.prompty.file import Input

FILE = """\
---
name: Lengths
description: measures words
tags: [scorer, 3]
model: {api: chat}
inputs:
  sentence: {type: string, description: a sentence}
  word: {kind: string, default: cat}
  n: 3
sample: {sentence: The cat sleeps.}
---
You measure words.
system:
Return one number.

user:
{{sentence}} / {{word}} / {{n}}
"""


def rendered(prompt: Prompty, **values: object) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in prompt.render(values)]


def test_a_file_becomes_messages_and_inputs(tmp_path: Path) -> None:
    """Front matter, roles, defaults, sample; what is not known is kept."""
    path = tmp_path / "lengths.prompty"
    path.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())

    prompt = load_prompty(path)

    assert (prompt.name, prompt.description) == ("lengths", "measures words")
    assert prompt.tags == ("scorer", "3")
    assert dict(prompt.inputs) == {
        "sentence": Input("sentence", "string", "a sentence"),
        "word": Input("word", "string", "", "cat"),
        "n": Input("n", "number", "", 3),
    }
    assert prompt.sample == {"sentence": "The cat sleeps."}
    assert prompt.extra["model"] == {"api": "chat"}
    system = "You measure words.\n\nReturn one number."
    assert rendered(prompt, sentence="A dog.") == [("system", system), ("user", "A dog. / cat / 3")]
    assert prompt.text == f"{system}\n\n{{{{sentence}}}} / {{{{word}}}} / {{{{n}}}}"
    assert prompt.missing({}) == ("sentence",)


def test_inputs_may_be_a_list_and_a_plain_text_is_a_prompt() -> None:
    """The form of newer Prompty files; without front matter and roles it is one system message."""
    inputs = "inputs: [{name: a, kind: number}, {name: b, default: x}]"
    prompt = parse_prompty(f"---\n{inputs}\n---\n{{{{a}}}}{{{{b}}}}", name="p")

    assert prompt.inputs["a"].type == "number"
    assert rendered(prompt, a=1) == [("system", "1x")]
    assert rendered(parse_prompty("Say {{x}}.", name="p"), x="hi") == [("system", "Say hi.")]


@pytest.mark.parametrize("line", ["user:", " # USER :", "User:\t", "#user:"])
def test_role_lines_have_several_spellings(line: str) -> None:
    """Upstream's, and `developer:` for the system."""
    prompt = parse_prompty(f"developer:\na\n{line}\nb\nassistant:\nc", name="p")

    assert rendered(prompt) == [("system", "a"), ("user", "b"), ("assistant", "c")]


@settings(deadline=None)  # on a busy machine the first example takes longer
@given(st.text())
@example("a\n# assistant:\nb")
@example("{{output}}{% raw %}")
def test_no_value_changes_the_messages(value: str) -> None:
    """Values are inserted after the roles were split: they make no message and no template."""
    prompt = parse_prompty("system:\nJudge.\nuser:\n[{{output}}]", name="p")

    assert rendered(prompt, output=value) == [("system", "Judge."), ("user", f"[{value}]")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("---\nname: x\ninputs: [1\nother: 2\n---\nhi", "line 4: not YAML"),
        ("---\nname: x\nhi", "line 1: the front matter begins with --- and has no closing ---"),
        ("---\n- a\n---\nhi", "line 2: the front matter should be a mapping"),
        ("---\ninputs: 3\n---\nhi", "`inputs` should map"),
        ("---\ninputs: [3]\n---\nhi", "without a `name`"),
        ("\udcff", "line 1: not UTF-8"),
        ("---\n? {a: 1}\n: 2\n---\nhi", "not YAML"),
        ("---\nname: x\n---\n\n", "holds no text"),
        ("---\nname: x\n---\nsystem:\na\nuser:\n{{your name}}", "line 7:"),
    ],
)
def test_a_mistake_names_the_file_and_the_line(tmp_path: Path, text: str, why: str) -> None:
    """Counted in the file, not in its front matter or message."""
    path = tmp_path / "broken.metric.prompty"
    path.write_text(text, errors="surrogateescape")

    with pytest.raises(ConfigurationError) as raised:
        load_prompty(path)

    assert "broken.metric.prompty" in str(raised.value)
    assert why in str(raised.value)


def test_what_is_no_jinja_is_replaced_literally_with_a_warning() -> None:
    """Only `{{name}}`, also with several words; the other messages stay templates."""
    text = "system:\nDear {{ your name }}, 100 {% of {{x}} {{y}}\nuser:\n{{ x | upper }}"
    prompt = parse_prompty(text, name="p", strict=False)

    assert prompt.variables == {"your name", "x", "y"}
    [warning] = prompt.warnings
    assert "line 2" in warning
    for values, shown in (
        ({"your name": "Ann {{x}}", "x": "a", "y": [1]}, "Dear Ann {{x}}, 100 {% of a [1]"),
        ({"x": "a"}, "Dear {{ your name }}, 100 {% of a {{y}}"),
    ):
        assert rendered(prompt, **values) == [("system", shown), ("user", "A")]


def test_a_variable_that_is_not_given_is_an_error() -> None:
    """Never an empty text; named, with the file."""
    prompt = parse_prompty("user:\n{{x}}", name="p", source="p.prompty")

    with pytest.raises(ConfigurationError, match=r"p\.prompty.*user message: 'x' is undefined"):
        prompt.render({})


@pytest.mark.parametrize("part", [" ", "\n", "#", "{{", "{{ a ", "<a>", "user:\n", "---\n"])
def test_runaway_files_are_read_or_refused(part: str) -> None:
    """A hundred thousand characters of anything; patterns that go back and forth would hang."""
    with contextlib.suppress(ConfigurationError):
        assert parse_prompty(part * (100_000 // len(part)), name="p", strict=False).messages


def test_front_matter_may_follow_blank_lines() -> None:
    """Also behind a mark of the byte order; the lines of mistakes are the file's."""
    assert parse_prompty("\ufeff\n\n---\ntags: [scorer]\n---\n{{x}}", name="p").tags == ("scorer",)
    with pytest.raises(ConfigurationError, match="line 4: `inputs`"):
        parse_prompty("\n---\ntags: []\ninputs: 3\n---\n{{x}}", name="p")
