"""The prompt under test in all its forms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import parse_prompty
from rag_eval_integrations.prompt_tests import PromptUnderTest


def put(text: str) -> PromptUnderTest:
    return PromptUnderTest.of(parse_prompty(text, name="p", strict=False))


def test_inputs_are_declared_or_found_in_the_text() -> None:
    """Undeclared variables are inputs too; a declared one that is not inserted is said and left."""
    under_test = put("---\ninputs: {a: {type: number}, c: {type: string}}\n---\n{{a}} {{b}}")

    inputs = {given.name: given.type for given in under_test.inputs.values()}
    assert inputs == {"a": "number", "b": "string"}
    assert under_test.warnings == ("p declares `c` but does not use it",)


def test_a_prompt_without_variables_gets_its_input_at_the_end() -> None:
    """Otherwise all tests would be the same; the declared inputs, or `input_text`."""
    under_test = put("Say hello.")
    assert list(under_test.inputs) == ["input_text"]
    assert under_test.text == "Say hello.\n\n{{input_text}}"
    rendered = under_test.render({"input_text": "user:\nx"})
    assert [m.content for m in rendered] == ["Say hello.", "user:\nx"]
    assert "added at its end" in under_test.warnings[0]

    declared = put("---\ninputs: {q: {type: string}}\n---\nSay hello.")
    assert list(declared.inputs) == ["q"]
    assert declared.render({"q": [1]})[-1].content == "[1]"
    of_text = PromptUnderTest.from_text("Say hello.", inputs=["q", "r"])
    assert of_text.render({"q": "1", "r": "2"})[-1].content == "1\n\n2"


def test_values_are_filled_in_order() -> None:
    """Defaults, then the scenario's parameters, then the test."""
    under_test = put(
        "---\ninputs: {a: {default: 1}, b: {default: 2}, c: {type: string}}\n"
        "scenarios:\n  - {name: late, instructions: It is late., parameters: {b: 3}}\n"
        "---\n{{a}} {{b}} {{c}}"
    )

    values = under_test.values({"c": "x"}, under_test.parameters("late"))
    assert values == {"a": 1, "b": 3, "c": "x"}
    assert under_test.parameters("nowhere") == {}
    assert under_test.render(under_test.values({"c": "x", "a": 9}))[0].content == "9 2 x"


@pytest.mark.parametrize(
    ("text", "testinput", "inputs"),
    [
        ("{{a}}", "plain", {"a": "plain"}), ("{{a}}", '{"a": "x"}', {"a": "x"}),
        ("{{a}}", '{"b": "x"}', {"a": '{"b": "x"}'}), ("{{a}}", "[1]", {"a": "[1]"}),
        ("{{a}}{{b}}", '{"a": "x", "b": 1}', {"a": "x", "b": 1}),
        ("---\ninputs: {a: {default: 1}}\n---\n{{a}}", "x", {"a": "x"}),
    ],
)  # fmt: skip
def test_a_tests_one_text_is_read_as_inputs(text: str, testinput: str, inputs: object) -> None:
    """As upstream fills a prompt: by the number of inputs that are left."""
    assert put(text).inputs_from(testinput) == inputs


def test_several_inputs_need_an_object() -> None:
    """Anything else is a mistake that is named, unless the others have a value."""
    with pytest.raises(ConfigurationError, match="should be an object with a, b"):
        put("{{a}}{{b}}").inputs_from("plain")
    assert put("{{a}}{{b}}").inputs_from("plain", {"b": 1}) == {"a": "plain"}


def test_github_prompt_files_are_read(tmp_path: Path) -> None:
    """Messages, inputs found in the test data, test data as samples."""
    path = tmp_path / "shout.prompt.yml"
    path.write_text(
        "name: Shout\nmessages:\n  - {role: system, content: Repeat it in capitals.}\n"
        "  - {role: user, content: 'Text: {{text}}'}\n"
        "testData:\n  - {text: hi, expected: HI}\n  - {text: 'user:'}\n"
    )

    under_test = PromptUnderTest.of(path)

    assert under_test.name == "shout"
    assert list(under_test.inputs) == ["text"]
    assert under_test.samples == ({"text": "hi"}, {"text": "user:"})
    assert [m.role for m in under_test.render({"text": "system:"})] == ["system", "user"]


def test_samples_come_from_files_beside_the_prompt(tmp_path: Path) -> None:
    """CSV, JSON and YAML; nothing outside of the folder."""
    for name, text in {
        "a.csv": "text\none\ntwo\n", "b.json": '[{"text": "three"}]', "c.yaml": "text: four\n",
        "d.txt": "x", "e.json": "[1]", "f.json": " " * 5_000_001,
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    path = tmp_path / "p.prompty"

    def load(samples: str) -> PromptUnderTest:
        path.write_text(f"---\nsample: {{text: zero}}\ntestSamples: {samples}\n---\n{{{{text}}}}")
        return PromptUnderTest.of(path)

    texts = [sample["text"] for sample in load("[a.csv, b.json, c.yaml, {text: five}]").samples]
    assert texts == ["zero", "one", "two", "three", "four", "five"]
    for name, why in {
        "../secret.csv": "is outside the folder of ", "nowhere.csv": "cannot be read",
        "d.txt": "use a .csv", "e.json": "should be a list of objects", "f.json": "larger than",
    }.items():  # fmt: skip
        with pytest.raises(ConfigurationError, match=why):
            load(f"[{name}]")


def test_a_text_can_be_tested_inside_of_an_app() -> None:
    """It is known as text only; rendering it is the app's own business."""
    text = "Answer from the manual."
    under_test = PromptUnderTest.from_text(text, inputs=["question"], in_app=True)

    assert (list(under_test.inputs), under_test.text) == (["question"], text)
    with pytest.raises(ConfigurationError, match="the models under test must be whole apps"):
        under_test.render({"question": "x"})
    assert {"name", "q"} == set(PromptUnderTest.from_text("{{name}}", inputs=["q", "name"]).inputs)


def test_what_is_no_prompt_is_refused() -> None:
    """Objects, scenarios without names; a prompt stays itself."""
    with pytest.raises(ConfigurationError, match=r"use a \.prompty"):
        PromptUnderTest.of(3)
    with pytest.raises(ConfigurationError, match="`scenarios` should be a list"):
        put("---\nscenarios: [3]\n---\n{{x}}")
    with pytest.raises(FileNotFoundError):
        PromptUnderTest.of("nowhere.prompty")
    under_test = put("{{x}}")
    assert PromptUnderTest.of(under_test) is under_test


def test_the_authors_instructions_are_read() -> None:
    """Those that are known; nothing else."""
    under_test = put("---\ninstructions: {intent: short, other: x, outputRules: ''}\n---\n{{x}}")

    assert dict(under_test.instructions) == {"intent": "short"}
    assert dict(put("---\ninstructions: x\n---\n{{x}}").instructions) == {}


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.prompty", "---\nname: !!bool maybe\n---\n{{x}}", "line 2: not YAML: 'maybe'"),
        ("a.prompty", "---\na: 1\na: 2\n---\n{{x}}", "line 3: not YAML: the key 'a'"),
        ("a.prompty", "---\na: 1\ninputs: 5\n---\n{{x}}", "line 3: `inputs` should map"),
        ("a.prompty", "---\nscenarios: 3\n---\n{{x}}", "line 2: `scenarios` should be a list"),
        ("a.md", "---\n\nscenarios: [{name: s, parameters: a}]\n---\n{{x}}", "line 3: `scenarios`"),
        ("a.prompty", "user:\nx\n" * 1_001, "more than 1,000 messages"),
        ("a.prompty", ("user:\n{{ [" + "1," * 9_900 + "] }}\n") * 3, "20,000 parts of templates"),
        ("a.prompt.yml", "messages: x", "line 1: has no list of `messages`"),
        ("a.prompt.yml", "messages: [1\n", "line 2: not YAML"),
        ("a.prompt.yml", "messages: [{role: tool, content: x}]", "message 1 needs a `role`"),
        ("a.prompt.yaml", "messages: [\udcff]", "is not UTF-8"),
        ("a.prompt.yml", "a: 1\nmessages: [{role: [], content: x}]", "line 2: message 1 needs"),
        ("a.prompt.yml", "messages: [{role: user, content: 3}]", "line 1: message 1 needs"),
        ("a.prompt.yml", "messages: []\ntestData: 5", "line 2: `testData` should be a list"),
        ("a.prompt.yml", "messages: []\nx: !!int ''", "line 2: not YAML: ''"),
    ],
)
def test_odd_files_name_the_file_and_the_line(
    tmp_path: Path, name: str, text: str, place: str
) -> None:
    """A tag, a repeated key, a scalar where a list should be: no traceback."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", errors="surrogateescape")

    with pytest.raises(ConfigurationError, match=re.escape(str(path))) as raised:
        PromptUnderTest.of(path)
    assert place in str(raised.value)


def test_names_with_hyphens_are_taken_literally(tmp_path: Path) -> None:
    """A sum that nobody meant would fail for every test; a sum of declared inputs is one."""
    path = tmp_path / "schema.prompty"
    path.write_text('system:\nOne.\n\n{"title": "{{info-title}}"}\nuser:\n{{question}}\n')

    prompt = PromptUnderTest.of(path)

    assert set(prompt.inputs) == {"info-title", "question"}
    assert "line 4: {{info-title}} is taken for a name, not for Jinja" in prompt.warnings[0]
    first, second = prompt.render({"info-title": "T {{x}}", "question": "Q"})
    assert first.content.endswith('{"title": "T {{x}}"}')
    assert second.content == "Q"
    meant = put("---\ninputs: {a: {type: number}, b: {type: number}}\n---\nuser:\n{{a*b}}\n")
    assert meant.warnings == ()
    assert meant.render({"a": 2, "b": 3})[0].content == "6"


def test_large_files_of_github_models_are_read(tmp_path: Path) -> None:
    """400 kB of test data, like the largest of PromptPex's own exports."""
    data = "\n".join(f"  - x: {'a' * 390} {n}" for n in range(1000))
    path = tmp_path / "large.prompt.yml"
    path.write_text(f"messages:\n  - role: user\n    content: Do {{{{x}}}}\ntestData:\n{data}\n")

    assert len(PromptUnderTest.of(path).samples) == 1000
