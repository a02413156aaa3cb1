"""Upstream's files, read and written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzz import disturbed, fuzz, mangled, written
from prompt_test_models import PROMPT

from rag_eval_integrations.errors import ConfigurationError, InputError, RagEvalError
from rag_eval_integrations.prompt_tests import (
    Project,
    PromptTest,
    PromptUnderTest,
    Result,
    Spec,
    _upstream,
    read_upstream,
)
from rag_eval_integrations.prompt_tests._contents import Contents
from rag_eval_integrations.prompt_tests._replies import read_tests
from rag_eval_integrations.prompt_tests.project import new_folder, write_imported
from rag_eval_integrations.prompt_tests.records import (
    Judged,
    MetricResult,
    Rule,
    RuleCheck,
    TestCheck,
)


def test_everything_survives_a_context(prompt: PromptUnderTest, spec: Spec, tmp_path: Path) -> None:
    """Tests with inputs of any kind; results with all judges' verdicts, or an error; checks."""
    tests = [
        PromptTest(uid="a", rule_id=1, rule="R", inputs={"text": "x"}, expected="X", reasoning="why", test_id="7"),
        PromptTest(uid="b", rule_id=3, rule="I", inverse=True, inputs={"text": ["l", 1]}, scenario="s", generation=1, test_id="1"),
        PromptTest(uid="c", inputs={"text": ""}, baseline=True, test_id="1"),
        PromptTest(uid="d", rule_id=2, rule="R2", inputs={"text": "long"}, original={"text": "short"}, test_id="1",
                   groundtruth="G", groundtruth_model="m", groundtruth_score=-1.0),
    ]  # fmt: skip
    judged = Judged(outcome="err", reason="Bad.", raw="Bad.\nERR", judge="j")
    silent = Judged(outcome="unknown", reason="JudgeUnavailableError: down", judge="j")
    full = Result(
        test=tests[0], model="m", run=1, prompt_id="p", output="X", contexts=("c",), latency_s=0.5,
        compliance=Judged(outcome="ok", reason="Fine.", raw="Fine.\nOK", judge="j"),
        others=(Judged(outcome="unknown", reason="the reply was cut off", raw="Hm.", judge="k", failed=True),),
        metrics=(
            MetricResult(metric="a with b", judge="j", score=5.0, content="5"),
            MetricResult(metric="b", judge="j", outcome="unknown", problem="no", failed=True),
            MetricResult(metric="c", judge="j", outcome="ok", content="OK"),
        ),
    )  # fmt: skip
    written = Contents(
        prompt, spec, tests, [full, Result(test=tests[1], model="m", error="down")],
        [TestCheck(test=tests[0], validity=judged, agreement=judged, agreement_output="A"),
         TestCheck(test=tests[1], validity=silent, agreement=silent)],
        [RuleCheck(rule=Rule(id=1, text="R"), grounded=judged),
         RuleCheck(rule=Rule(id=2, text="S"), grounded=silent)],
        prompt_file=("shout.prompty", PROMPT),
    )  # fmt: skip
    path = tmp_path / "promptpex_context.json"
    path.write_text(written.context())

    read = read_upstream(path)

    write_imported(read, tmp_path / "out", print)
    project = Project(tmp_path / "out", print)
    assert project.tests() == tests
    assert read.context() == written.context()
    report = project.report()
    for name in ("results", "spec", "checks", "rule_checks"):
        assert getattr(report, name) == getattr(written, name)
    columns = "id promptid ruleid rule testinput model input output metrics"
    first, second = json.loads(json.loads(written.context())["testOutputs"]["content"])
    assert first.keys() & second.keys() >= {*columns.split()}
    assert all("content" in cell for cell in first["metrics"].values())
    for name in ("spec", "tests", "results", "checks", "rule_checks", "prompt_file", "lost"):
        assert getattr(read, name) == getattr(written, name)
    without_test = {"validity": "ok", "validityText": "OK", "input": "x"}
    without_input = {"validity": "ok", "testinput": None, "text": None, "input": None}
    [check] = _upstream.checks_from_rows([without_test, without_input], prompt, spec)
    assert check.test.inputs == {"text": "x"}


def test_rules_text_and_direction_are_never_guessed(prompt: PromptUnderTest, spec: Spec) -> None:
    """Looked up where the row has none; empty where the numbers are another list's."""
    for row, read in (
        ({"ruleid": "3"}, (3, "The output is in small letters.", True, False)),
        ({"ruleid": 3, "inverse": False}, (3, "", False, False)),
        ({"ruleid": "99"}, (99, "", False, False)),
        ({"ruleid": "1", "rule": "Mine."}, (1, "Mine.", False, False)),
        ({"ruleid": "x", "baseline": "True"}, (None, "", False, True)),
        ({"ruleid": "1", "baseline": True, "rule": "R"}, (None, "", False, True)),
    ):  # fmt: skip
        [test] = _upstream.from_test_rows([{**row, "testinput": "a"}], prompt, spec, [])
        assert (test.rule_id, test.rule, test.inverse, test.baseline) == read


def test_inputs_come_from_columns_objects_or_one_text(spec: Spec) -> None:
    """Several inputs in one text have to be an object; the columns are what is left otherwise."""
    put, lost = PromptUnderTest.from_text("{{a}} {{b}}"), list[str]()
    rows: list[dict[str, object]] = [
        {"inputs": {"a": 1, "b": 2}}, {"testinput": '{"a": "x", "b": "y"}', "a": "old"},
        {"testinput": "plain", "a": "x", "b": "y"}, {"testinput": "plain"}, {"testinput": 3},
        {"testinput": "{}", "testinputOriginal": "before"},
    ]  # fmt: skip
    tests = _upstream.from_test_rows(rows, put, spec, lost)

    xy = {"a": "x", "b": "y"}
    assert [t.inputs for t in tests] == [{"a": 1, "b": 2}, xy, xy, {}]
    assert tests[3].original == {"testinput": "before"}
    assert [reason.partition(":")[0] for reason in lost] == ["test 4", "test 5"]


def test_cells_of_odd_types_are_no_values(prompt: PromptUnderTest, spec: Spec) -> None:
    """Upstream's files differ by version: what is no number or verdict is none."""
    row = {
        "testinput": "x", "model": None, "output": None, "compliance": "", "run": True, "contexts": "no",
        "latencySeconds": "1", "ruleid": 2.0, "groundtruthScore": float("nan"),
        "metrics": {"a with j": {"score": None, "outcome": "odd"}, "b with average": {"score": 1}, "c": 3},
    }  # fmt: skip
    judges = ["x", None, {"judge": 7, "compliance": "ok"}]

    first, second = _upstream.results_from_rows([row, {**row, "judges": judges}], prompt, spec)

    assert (first.model, first.output, first.run, first.contexts) == ("?", "", 0, ())
    assert [(m.key, m.score, m.outcome) for m in first.metrics] == [("a with j", None, None)]
    assert first.test.rule_id == 2
    verdicts = [(v.outcome, v.judge) for v in first.verdicts + second.verdicts]
    assert verdicts == [("unknown", None), ("ok", "7")]
    odd = {**row, "metrics": None, "testinput": None}
    assert _upstream.results_from_rows([odd], prompt, spec, lost=[]) == []


def test_what_cannot_be_imported_is_named(tmp_path: Path, put: Path) -> None:
    """No files, no prompt, no JSON, no lists, fewer rules than none."""
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ConfigurationError, match="contains none of PromptPex's files"):
        read_upstream(empty)
    (empty / "rules.txt").write_text("1. One.\n")
    with pytest.raises(ConfigurationError, match="contains 0 prompts; pass the prompt under test"):
        read_upstream(empty)
    with pytest.raises(ConfigurationError, match="max_rules"):
        read_upstream(empty, put, max_rules=-1)
    assert read_upstream(empty, put).spec.rules[0].text == "One."
    path = tmp_path / "a.json"
    for text, error in (
        ("3", ConfigurationError), ("{", ConfigurationError), ('{"tests": 3}', InputError),
        ('{"tests": [3]}', InputError), ('{"tests": {"content": "{"}}', ConfigurationError),
        ("[1]", InputError),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(error):
            read_upstream(path, put)
    path.write_text('{"tests": {"content": " "}, "rules": ["A"], "intent": 3}')
    assert read_upstream(path, put).tests == []
    (tmp_path / "prompt.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="should be an object"):
        Project(tmp_path, print)


def context_file(folder: Path, **content: object) -> Path:
    """A context in the folder."""
    path = folder / "promptpex_context.json"
    path.write_text(json.dumps(content))
    return path


def test_a_context_says_itself_what_it_holds(tmp_path: Path, put: Path) -> None:
    """Tests as an array, or as CSV in older ones; how many rules were numbered; no groundtruth."""
    outputs = [
        {"testuid": "u", "model": "m", "output": "X"},
        {"testuid": "u", "model": "gt", "output": "X", "isGroundtruth": True},
    ]
    context: dict[str, Any] = {
        "rules": {"content": "A.\nB.\nC."},
        "inverseRules": {"content": "D.\nE.\nF."},
        "options": {"maxRules": 2},
        "tests": {"content": ""},
        "promptPexTests": [{"ruleid": 3, "testinput": "x", "testuid": "u"}],
        "testOutputs": {"content": json.dumps(outputs)},
    }
    path = context_file(tmp_path, **context)

    read = read_upstream(path, put)

    assert [(test.rule, test.inverse) for test in read.tests] == [("D.", True)]
    assert [result.model for result in read.results] == ["m"]
    assert read_upstream(path, put, max_rules=3).tests[0].rule == "C."
    assert read.spec.rules_text == "A.\nB.\nC."  # all are kept; the first ones come first
    numbers = {(rule.text, rule.id, rule.of_rule) for rule in read.spec.rules}
    direct = {("A.", 1, None), ("B.", 2, None), ("C.", 5, None)}
    assert numbers == direct | {("D.", 3, 1), ("E.", 4, 2), ("F.", 6, 5)}
    old = {"content": "ruleid, testid, testinput\n1, 1, old"}
    context_file(tmp_path, **context | {"tests": old})
    assert [test.testinput for test in read_upstream(path, put).tests] == ["old"]


def test_the_cut_is_told_from_the_tests_directions(tmp_path: Path, put: Path) -> None:
    """Without the option: three of five rules were numbered. The folder has them all, as numbered."""
    rows = [
        {"ruleid": str(n), "testinput": f"x{n}", "inverse": n > 3, "baseline": n > 6}
        for n in (1, 2, 3, 4, 5, 6, 9)
    ]
    rules = {name: {"content": "\n".join(f"{word} {n}." for n in range(1, 6))}
             for name, word in (("rules", "Rule"), ("inverseRules", "Not"))}  # fmt: skip

    read = read_upstream(context_file(tmp_path, **rules, tests=rows), put)

    cut = ["Rule 1.", "Rule 2.", "Rule 3.", "Not 1.", "Not 2.", "Not 3."]
    assert [test.rule for test in read.tests if not test.baseline] == cut
    write_imported(read, tmp_path / "out", print)
    project = Project(tmp_path / "out", print)
    assert len((tmp_path / "out" / "rules.txt").read_text().splitlines()) == 5
    assert project.workspace.spec() == read.spec
    Project.create(put, tmp_path / "out", print)  # a folder that is continued keeps its numbers
    assert project.workspace.spec() == read.spec
    rows[2]["inverse"] = True  # 1 and 2 direct, 3 to 6 inverse: these are no halves
    read = read_upstream(context_file(tmp_path, **rules, tests=rows), put)
    assert [test.rule for test in read.tests[2:4]] == ["Not 1.", "Not 2."]


def test_files_that_a_context_only_names_are_absent(tmp_path: Path) -> None:
    """PromptPex writes every file it could make; the folder beside has the prompt in there, too."""
    named = ("testOutputs", "testEvals", "ruleEvals", "intent", "baselineTests", "testData")
    path = context_file(
        tmp_path,
        **{name: {"filename": f"{name}.json", "type": "application/json"} for name in named},
        prompt={"filename": "p.prompty", "content": "user:\n{{x}}"},
        rules={"filename": "rules.txt", "content": "One."},
        tests={"filename": "tests.json", "content": '[{"ruleid": 1, "testinput": "a"}]'},
        metrics=[
            {"filename": "../a/good.metric.prompty", "content": "Score it.\nuser:\n{{output}}"},
            {"filename": "evil.txt", "content": "x"},
        ],
    )

    for source in (path, tmp_path):
        read = read_upstream(source)
        assert ([test.rule for test in read.tests], read.results) == (["One."], [])
        assert list(read.metric_files) == ["good.metric.prompty"]
        assert read.lost == ["metric 'evil.txt': its name does not end in .metric.prompty"]
    (tmp_path / "rules.txt").write_text("Two.\n")
    assert read_upstream(tmp_path).tests[0].rule == "Two."  # a file beats the context


def test_a_file_of_tests_or_results_alone_is_read(tmp_path: Path, put: Path) -> None:
    """Told by its columns; CSV as a model wrote it too."""
    row = {"testinput": "a", "output": "A", "model": "m"}
    (tmp_path / "t.json").write_text('[{"testinput": "a"}]')
    (tmp_path / "r.json").write_text(json.dumps([row]))
    assert len(read_upstream(tmp_path / "t.json", put).tests) == 1
    assert read_upstream(tmp_path / "r.json", put).results[0].output == "A"
    (tmp_path / "tests.csv").write_text('ruleid, testid, testinput\n1, 1, "a"\n')
    assert read_upstream(tmp_path, put).tests[0].inputs == {"text": "a"}


def test_a_folder_whose_prompt_is_nowhere_is_refused(tmp_path: Path, put: Path) -> None:
    """Neither the file nor the copy."""
    notices: list[str] = []
    project = Project.create(put, tmp_path / "out", notices.append)
    assert project.prompt.name == "shout"
    (tmp_path / "out" / "shout.prompty").unlink()
    put.unlink()
    with pytest.raises(FileNotFoundError):
        Project(tmp_path / "out", notices.append)
    assert "does not exist; using the copy in" in notices[0]


def test_the_name_of_an_imported_prompt_stays_in_the_folder(tmp_path: Path) -> None:
    """A context is somebody else's file."""
    for name, kept in (
        ("../../up.prompty", "up.prompty"), ("a\0b", "a_b.prompty"), ("..", "prompt.prompty"),
        (".hidden", "hidden.prompty"), ("x" * 300, "x" * 100 + ".prompty"),
        ("a/b\nc.prompty", "b_c.prompty"),
    ):  # fmt: skip
        context = context_file(tmp_path, prompt={"filename": name, "content": "Hi {{text}}"})
        assert read_upstream(context).prompt_file == (kept, "Hi {{text}}")


def test_a_folder_that_cannot_be_written_whole_is_as_it_was(tmp_path: Path) -> None:
    """The earlier one is put back, and the half of the new one is gone."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "rules.txt").write_text("mine")

    def write_half() -> None:
        with new_folder(out, [tmp_path / "elsewhere"], overwrite=True):
            (out / "rules.txt").write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()

    assert (out / "rules.txt").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [out]


# --- Rows and files that are beyond every limit

TEST_ROW = {
    "ruleid": "1", "testid": "2", "testinput": "x", "expectedoutput": "X", "reasoning": "why",
    "inverse": False, "baseline": "false", "generation": 1, "inputs": {"text": "x"},
    "groundtruth": "G", "groundtruthModel": "m", "groundtruthScore": 90, "testuid": "u",
}  # fmt: skip
RESULT_ROW = {
    **TEST_ROW, "model": "m", "run": 1, "output": "X", "contexts": ["c"], "latencySeconds": 0.5,
    "compliance": "ok", "complianceText": "Fine. OK", "judges": [{"judge": "j", "compliance": "ok"}],
    "metrics": {"loud with j": {"content": "80", "score": 80}}, "error": "",
}  # fmt: skip


@pytest.mark.parametrize(
    "number",
    ["²", "--5", "", "9" * 5_000, "1.5", "٣", 10**400, 1e308, float("nan"), float("inf"), True],
)
def test_what_is_no_number_is_unknown(number: Any, prompt: PromptUnderTest, spec: Spec) -> None:
    """Rule, round, score and seconds; digits that `int` does not read included."""
    row = {**RESULT_ROW, "testuid": "", "ruleid": number, "generation": number, "run": number,
           "groundtruthScore": number, "latencySeconds": number}  # fmt: skip
    [result] = _upstream.results_from_rows([row], prompt, spec)

    assert (result.test.rule_id, result.run) == (None, 0)
    assert result.latency_s in (None, 1e308)


def test_a_row_that_cannot_be_a_test_is_lost_and_named(prompt: PromptUnderTest, spec: Spec) -> None:
    """Inputs that JSON cannot hold; the row after it is read."""
    lost: list[str] = []
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    rows = [{**TEST_ROW, "inputs": {"text": value}} for value in (float("nan"), deep, "fine")]

    [test] = _upstream.from_test_rows(rows, prompt, spec, lost)
    assert test.inputs == {"text": "fine"}
    assert [line[:7] for line in lost] == ["test 1:", "test 2:"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tests.json.gz", b"\x1f\x8b\x08\x00 damaged"),
        ("tests.json.gz", gzip.compress(b"[{}]" * 1_000)[:-9]),
        ("tests.json", b"[" * 100_000),
        ("test_results.csv", b'model,output\n"' + b"x" * 11_000_000),
    ],
    ids=["not gzip", "cut off", "deep", "a huge cell"],
)
def test_a_damaged_file_is_named(tmp_path: Path, put: Path, name: str, data: bytes) -> None:
    """By its path, and not with a traceback."""
    (tmp_path / name).write_bytes(data)

    with pytest.raises(ConfigurationError, match=name):
        read_upstream(tmp_path, put)


def test_fuzz_contexts(tmp_path: Path) -> None:
    """Any context is read or refused by an error of ours, and what is read can be written."""
    texts = {"content": "1. One.\n2. Two."}
    rows = [RESULT_ROW, {**TEST_ROW, "coverage": "ok", "validity": "err", "grounded": "ok"}]
    context = {
        "prompt": {"filename": "p.prompty", "content": "user:\n{{text}}"}, "rules": texts,
        "inverseRules": texts, "intent": texts, "options": {"maxRules": 1},
        "metrics": [{"filename": "a.metric.prompty", "content": "{{output}}"}],
        **dict.fromkeys(("tests", "testOutputs", "testEvals", "ruleEvals"), rows),
    }  # fmt: skip
    path = tmp_path / "promptpex_context.json"

    def check(text: str) -> None:
        path.write_text(text, errors="surrogatepass")
        try:
            read = read_upstream(path)
        except RagEvalError:
            return
        read.context()

    fuzz("upstream", lambda rng: disturbed(rng, written(mangled(rng, context))), check)


def test_fuzz_generated_tests(prompt: PromptUnderTest, spec: Spec) -> None:
    """Any reply of a generator is read or lost."""
    table = 'ruleid,testid,testinput,expectedoutput,reasoning\n1,1,"x, y","X","why"\n2,²,z,Z,w'
    rows = {"tests": [TEST_ROW, {"rule": 2, "testinput": {"text": "y"}}]}

    def reply(rng: Random) -> str:
        return disturbed(rng, rng.choice((table, written(mangled(rng, rows)))))

    def check(text: str) -> None:
        parsed = read_tests(text, prompt, spec.output_rules)
        json.dumps(_upstream.to_test_rows(parsed.tests))

    fuzz("generated", reply, check)


def test_the_copy_of_a_prompt_replaces_nothing_of_somebody_else(tmp_path: Path) -> None:
    """Neither what a link leads to, nor another file of its name in a folder without tests."""
    prompt, precious = tmp_path / "p.md", tmp_path / "precious"
    copy, link = tmp_path / "out" / "p.md", tmp_path / "other" / "p.md"
    copy.parent.mkdir()
    link.parent.mkdir()
    prompt.write_text("Hi {{text}}")
    copy.write_text("mine")
    with pytest.raises(ConfigurationError, match=r"has another p\.md, which is kept"):
        Project.create(prompt, copy.parent, print)
    assert (list(copy.parent.iterdir()), copy.read_text()) == ([copy], "mine")
    precious.write_text("mine")
    link.symlink_to(precious)
    Project.create(prompt, link.parent, print)
    assert (precious.read_text(), link.read_text()) == ("mine", "Hi {{text}}")

    for text in ("Hi {{text}}", "Hello {{text}}"):  # the same text is not lost
        copy.write_text("Hi {{text}}")
        prompt.write_text(text)
        Project.create(prompt, copy.parent, print)
    assert copy.read_text() == "Hello {{text}}"


@pytest.mark.parametrize("name", ["README.md", "test_collection_review.md", "rules.txt"])
def test_a_prompt_is_not_named_like_a_result(tmp_path: Path, name: str) -> None:
    """Its copy would stand where the report, the review or a stage's result goes."""
    (tmp_path / name).write_text("Hi {{text}}")
    with pytest.raises(ConfigurationError, match="rename it"):
        Project.create(tmp_path / name, tmp_path / "out", print)


def test_a_row_of_a_table_that_does_not_fit_is_counted(tmp_path: Path, put: Path) -> None:
    """Both of a file and of a text inside a context."""
    table = "ruleid,testid,testinput\n1,1,a\n1,2\n"
    (tmp_path / "tests.csv").write_text(table)
    (tmp_path / "c.json").write_text(json.dumps({"tests": {"content": table}}))
    for source in (tmp_path, tmp_path / "c.json"):
        read = read_upstream(source, put)
        assert (len(read.tests), read.lost) == (1, ["line 3: 2 cells instead of 3"])
