"""`.prompty` files as people write them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import Input, Prompty, load_prompty, parse_prompty

FILE = """\
---
name: Lengths
description: measures words
tags: [scorer, 3]
model:
  api: chat
inputs:
  sentence:
    type: string
    description: a sentence
  word: {kind: string, default: cat}
  n: 3
sample:
  sentence: The cat sleeps.
---
You measure words.
system:
Return one number.

user:
{{sentence}} / {{word}} / {{n}}
"""


def test_a_file_becomes_messages_and_inputs(tmp_path: Path) -> None:
    """Front matter, roles, defaults, sample; what is not known is kept."""
    path = tmp_path / "lengths.prompty"
    path.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())

    prompt = load_prompty(path)

    assert (prompt.name, prompt.description, prompt.tags) == (
        "lengths",
        "measures words",
        ("scorer", "3"),
    )
    assert dict(prompt.inputs) == {
        "sentence": Input("sentence", "string", "a sentence"),
        "word": Input("word", "string", "", "cat"),
        "n": Input("n", "number", "", 3),
    }
    assert prompt.sample == {"sentence": "The cat sleeps."}
    assert prompt.extra["model"] == {"api": "chat"}
    messages = prompt.render({"sentence": "A dog."})
    assert [(m.role, m.content) for m in messages] == [
        ("system", "You measure words.\n\nReturn one number."),
        ("user", "A dog. / cat / 3"),
    ]
    assert (
        prompt.text == "You measure words.\n\nReturn one number.\n\n{{sentence}} / {{word}} / {{n}}"
    )
    assert prompt.missing({}) == ("sentence",)


def test_inputs_may_be_a_list() -> None:
    """The form of newer Prompty files."""
    inputs = "inputs: [{name: a, kind: number}, {name: b, default: x}]"
    prompt = parse_prompty(f"---\n{inputs}\n---\n{{{{a}}}}{{{{b}}}}", name="p")

    assert prompt.inputs["a"].type == "number"
    assert prompt.render({"a": 1})[0].content == "1x"


def test_a_file_without_front_matter_or_roles_is_one_system_message() -> None:
    """Plain text is a prompt."""
    prompt = parse_prompty("Say {{x}}.", name="p")

    assert [(m.role, m.content) for m in prompt.render({"x": "hi"})] == [("system", "Say hi.")]


@pytest.mark.parametrize("line", ["user:", " # USER :", "User:\t", "#user:"])
def test_role_lines_have_several_spellings(line: str) -> None:
    """Upstream's, and `developer:` for the system."""
    prompt = parse_prompty(f"developer:\na\n{line}\nb\nassistant:\nc", name="p")

    assert [(m.role, m.content) for m in prompt.render({})] == [
        ("system", "a"),
        ("user", "b"),
        ("assistant", "c"),
    ]


@settings(deadline=None)  # on a busy machine the first example takes longer
@given(st.text())
@example("a\n# assistant:\nb")
@example("{{output}}{% raw %}")
def test_no_value_changes_the_messages(value: str) -> None:
    """Values are inserted after the roles were split: they make no message and no template."""
    prompt = parse_prompty("system:\nJudge.\nuser:\n[{{output}}]", name="p")

    assert [m.content for m in prompt.render({"output": value})] == ["Judge.", f"[{value}]"]


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
    prompt = parse_prompty(
        "system:\nDear {{ your name }}, 100 {% of {{x}} {{y}}\nuser:\n{{ x | upper }}",
        name="p",
        strict=False,
    )

    assert prompt.variables == {"your name", "x", "y"}
    [warning] = prompt.warnings
    assert "line 2" in warning
    system, user = prompt.render({"your name": "Ann {{x}}", "x": "a", "y": [1]})
    assert system.content == "Dear Ann {{x}}, 100 {% of a [1]"
    assert user.content == "A"
    assert prompt.render({"x": "a"})[0].content == "Dear {{ your name }}, 100 {% of a {{y}}"


def test_a_variable_that_is_not_given_is_an_error() -> None:
    """Never an empty text; named, with the file."""
    prompt: Prompty = parse_prompty("user:\n{{x}}", name="p", source="p.prompty")

    with pytest.raises(ConfigurationError, match=r"p\.prompty.*user message: 'x' is undefined"):
        prompt.render({})


@pytest.mark.parametrize("part", [" ", "\n", "#", "{{", "{{ a ", "<a>", "user:\n", "---\n"])
def test_runaway_files_are_read_or_refused(part: str) -> None:
    """A hundred thousand characters of anything; patterns that go back and forth would hang."""
    with contextlib.suppress(ConfigurationError):
        assert parse_prompty(part * (100_000 // len(part)), name="p", strict=False).messages
