"""Exports: every format is what its platform takes, round trips lose nothing, losses are said."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from langsmith.schemas import ExampleCreate
from openai.types.eval_create_params import EvalCreateParams
from openai.types.evals.run_create_params import RunCreateParams
from pydantic import TypeAdapter

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests import Project, PromptTest, PromptUnderTest, read_upstream
from rag_eval_integrations.prompt_tests._contents import Contents
from rag_eval_integrations.prompt_tests._upstream import to_test_rows
from rag_eval_integrations.prompt_tests.records import make_uid

HOSTILE = '"""\nimport os; os.system("touch HACKED")\n{{text}} {% raw %} \\ \' {data} =1+1 \u2028 \x85 é 🙂'


def make_test(text: str, number: int = 1, **more: Any) -> PromptTest:
    inputs: dict[str, Any] = {"text": text}
    rule = more.pop("rule", "The output is in capitals.")
    uid = make_uid(rule=rule, inverse=False, inputs=inputs, scenario="", baseline=False)
    return PromptTest(uid=uid, rule_id=1, rule=rule, inputs=inputs, test_id=str(number), **more)


TESTS = [
    make_test("plain", 1, expected="PLAIN", reasoning="easy"),
    make_test(HOSTILE, 2, expected=HOSTILE, reasoning=HOSTILE),
    make_test("good", 3, expected="caps", groundtruth="GOOD", groundtruth_model="m",
            groundtruth_score=95.0),
]  # fmt: skip


@pytest.fixture
def project(put: Path, tmp_path: Path) -> Project:
    """Two rules, their contradictions, three tests; one is hostile, one has a checked output."""
    made = Project.create(put, tmp_path / "out", print)
    made.workspace.write_lines("rules.txt", ["The output is in capitals.", "Two."], "")
    made.workspace.write_lines("inverse_rules.txt", ["Small letters.", "Not two."], "")
    made.workspace.write_json("tests.json", to_test_rows(TESTS))
    return made


def test_promptpexs_own_prompt_yml_is_read(data: Path) -> None:
    """With its test data, in all three recorded folders."""
    for folder in sorted((data / "promptpex" / "paper_2025").iterdir()):
        path = folder / "evals.prompt.yml"
        content = yaml.safe_load(path.read_text("utf-8"))
        read = read_upstream(path)
        [name] = read.prompt.inputs
        whole = [row[name] for row in content["testData"] if row.get(name) is not None]
        assert [test.inputs[name] for test in read.tests] == whole != []
        assert len(read.lost) == len(content["testData"]) - len(whole)


def test_openais_types_accept_both_requests(project: Project) -> None:
    """The evaluation with its graders, and the run with every test."""
    exported = project.export("openai", model="judge-1")
    assert list(exported.files) == ["evals.create.json", "evals.run.json"]
    create, run = (json.loads(text) for text in exported.files.values())
    TypeAdapter(EvalCreateParams).validate_python(create)
    TypeAdapter(RunCreateParams).validate_python(run)
    criteria = [" ".join((c["name"], c["type"], c["model"])) for c in create["testing_criteria"]]
    assert criteria == ["compliance label_model judge-1", "loud score_model judge-1"]
    items = [entry["item"] for entry in run["data_source"]["source"]["content"]]
    for item in items:
        jsonschema.validate(item, create["data_source_config"]["item_schema"])
    assert [item["text"] for item in items] == [test.testinput for test in TESTS]
    template = run["data_source"]["input_messages"]["template"]
    assert [message["content"] for message in template] == [
        "Repeat the text in capitals.",
        "{{item.text}}",
    ]


def test_langsmith_takes_every_example(project: Project) -> None:
    """Its own class validates them; the output is the checked one where there is one."""
    exported = project.export("langsmith")
    rows = [json.loads(line) for line in exported.files["langsmith.jsonl"].splitlines()]
    examples = [
        ExampleCreate(reference_outputs=row.pop("outputs"), **row)  # type: ignore[no-untyped-call]
        for row in rows
    ]

    assert [example.inputs for example in examples] == [test.inputs for test in TESTS]
    expected = [{"output": text} for text in ("PLAIN", HOSTILE, "GOOD")]
    assert [example.reference_outputs for example in examples] == expected
    assert len({example.id for example in examples}) == 3
    assert rows[1]["metadata"]["rule"] == "The output is in capitals."
    assert "the output of 2 tests is what their generator expects" in exported.notes[0]


def test_the_split_is_the_same_every_time_and_about_three_quarters(project: Project) -> None:
    """Equal inputs are never on both sides, whatever rule they test."""
    tests = [make_test(f"text {n}", rule=rule) for rule in ("One.", "Another.") for n in range(400)]
    project.workspace.write_json("tests.json", to_test_rows(tests))
    lines = project.export("langsmith").files["langsmith.jsonl"].splitlines()
    splits = [json.loads(line)["split"] for line in lines]

    assert 270 <= splits[:400].count("train") <= 330
    assert splits[:400] == splits[400:]


def test_a_table_has_every_test_and_calculates_nothing(project: Project) -> None:
    """One row per test; what begins like a formula is guarded, and that is said."""
    tests = [*TESTS, make_test("=1+1", 4)]
    project.workspace.write_json("tests.json", to_test_rows(tests))
    exported = project.export("csv")
    rows = list(csv.DictReader(io.StringIO(exported.files["tests.csv"], newline="")))

    assert [row["text"] for row in rows[:3]] == [test.testinput for test in TESTS]
    assert rows[3]["text"] == "'=1+1"
    assert rows[2]["groundtruth"] == "GOOD"
    assert "2 cells that a spreadsheet would calculate" in exported.notes[0]


MODELS = """\
async def shout(messages):
    return messages[-1]["content"].upper()


async def judge(messages):
    return "Fine.\\nERR" if "PLAIN" in messages[-1]["content"] else "Fine.\\nOK"
"""


@pytest.mark.slow
def test_the_file_for_pytest_runs_and_no_test_becomes_code(
    project: Project, tmp_path: Path
) -> None:
    """Hostile texts stay data; an output that does not comply fails its own test."""
    folder = tmp_path / "suite"
    folder.mkdir()
    exported = project.export("pytest")
    assert list(exported.files) == ["test_shout.py", "prompt_tests_shout.json"]
    for name, text in exported.files.items():
        (folder / name).write_text(text)
    assert "HACKED" not in exported.files["test_shout.py"]
    (folder / "models_here.py").write_text(MODELS)
    path = f"{folder}:{Path(__file__).parents[2]}"

    def run(**more: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
             "-p", "rag_eval_integrations.pytest_plugin", "-rf", "."],
            cwd=folder, capture_output=True, text=True, check=False,
            env={"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more},
        ).stdout  # fmt: skip

    assert "3 skipped" in run()
    done = run(RAG_EVAL_MUT="models_here:shout", RAG_EVAL_JUDGE="models_here:judge")
    failed = f"test_output_complies[{TESTS[0].uid}]"
    for words in ("1 failed, 2 passed", failed, "'plain' → 'PLAIN'"):
        assert words in done
    assert not list(tmp_path.rglob("HACKED"))


def project_of(path: Path, text: str, inputs: dict[str, Any], **test: Any) -> Project:
    """A project of a prompt with one test."""
    path.write_text(text)
    project = Project.create(path, path.parent / "out", print)
    rows = to_test_rows([PromptTest(uid="u", inputs=inputs, **test)])
    project.workspace.write_json("tests.json", rows)
    return project


def read_back(project: Project, folder: Path) -> Contents:
    """Export the data of a test file, which is a context, and read it."""
    _, text = project.export("pytest").files.values()
    (folder / "promptpex_context.json").write_text(text)
    return read_upstream(folder / "promptpex_context.json")


def test_a_context_holds_a_prompt_in_its_own_form(tmp_path: Path) -> None:
    """A file of GitHub Models comes back as one, with its messages and test data."""
    path = tmp_path / "g.prompt.yml"
    text = (
        "messages:\n  - role: system\n    content: |\n      Be: kind.\n  - role: user\n"
        "    content: '{{question}}'\ntestData:\n  - question: What?\n"
    )

    back = read_back(project_of(path, text, {"question": "Why?"}), tmp_path)

    assert back.prompt_file == ("g.prompt.yml", text)
    values = {"question": "Q"}
    assert back.prompt.render(values) == PromptUnderTest.of(path).render(values)


def test_inverse_rules_keep_their_rules_in_a_context(project: Project, tmp_path: Path) -> None:
    """Also where some rules have none; and the numbers of a cut. A list's mark is said."""
    project.workspace.write_lines("rules.txt", ["1. The output is short.", "Two."], "")
    assert "1 rules begin with the mark" in " ".join(project.export("pytest").notes)
    project.workspace.write_lines("rules.txt", ["The output is in capitals.", "Two."], "")
    project.workspace.write_lines("inverse_rules.txt", ["2. Not two."], "")
    project.workspace.note(rulesNumberedFirst=1)
    spec = project.workspace.spec()
    assert read_back(project, tmp_path).spec == spec


def test_an_unknown_format_is_refused(project: Project) -> None:
    """With the formats that there are."""
    with pytest.raises(ConfigurationError, match="use openai, csv, pytest"):
        project.export("xml")


def test_names_with_hyphens_and_blanks_are_no_fields(tmp_path: Path) -> None:
    """OpenAI cannot have `info-title` as a field: such a prompt is exported as it is rendered."""
    text = "user:\n{{ info-title }} and {{ your name }}: { {x} }\n"
    project = project_of(tmp_path / "h.prompty", text, {"info-title": "T", "your name": "N"})

    run = json.loads(project.export("openai").files["evals.run.json"])["data_source"]
    assert run["input_messages"]["template"][0]["content"] == "{{item.message_1}}"
    assert run["source"]["content"][0]["item"]["message_1"] == "T and N: { {x} }"


def test_a_prompt_that_branches_is_exported_as_it_is_rendered(tmp_path: Path) -> None:
    """OpenAI inserts names alone; a rule with `{{text}}`, and a column's name, are said."""
    text = "system:\n{% if mode == 'a' %}A{% else %}B{% endif %}\nuser:\n{{ rule }}\n"
    inputs = {"mode": "a", "rule": "mine"}
    project = project_of(tmp_path / "branch.prompty", text, inputs, rule_id=1, rule="R")
    assert "nothing evaluates compliance" in " ".join(project.export("openai").notes)
    project.workspace.write_lines("rules.txt", ["Say {{text}} and {{item.text}}."], "")

    exported = project.export("openai")

    run = json.loads(exported.files["evals.run.json"])["data_source"]
    template = [message["content"] for message in run["input_messages"]["template"]]
    assert template == ["{{item.message_1}}", "{{item.message_2}}"]
    [item] = [entry["item"] for entry in run["source"]["content"]]
    assert (item["message_1"], item["message_2"], item["rule"]) == ("A", "mine", "mine")
    for words in ("does more than insert names", "inputs named rule stand in place"):
        assert words in " ".join(exported.notes)
    assert "Say { {text} } and { {item.text} }." in exported.files["evals.create.json"]


def test_an_exported_table_is_read_back_with_the_rules_of_its_tests(
    project: Project, put: Path, tmp_path: Path
) -> None:
    """Also with a form feed or U+2028 within a cell, as texts of PDFs have them."""
    table = tmp_path / "tests.csv"
    table.write_text(project.export("csv").files["tests.csv"], encoding="utf-8", newline="")

    read = read_upstream(table, prompt=put)
    back, of_table = (
        [(t.uid, t.rule, t.inputs, t.expected) for t in ts] for ts in (read.tests, TESTS)
    )
    assert (back, read.lost) == (of_table, [])
