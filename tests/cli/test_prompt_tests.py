"""`rag-eval prompt-tests` end to end, against a real endpoint on loopback."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from ferries import Command
from loopback import Behaviour, Body, LoopbackServer, Reply
from pages import DOCS, promised_by, run_python, text_of
from prompt_test_models import make_result

from rag_eval_integrations.cli._options import metric_variables
from rag_eval_integrations.cli.prompt_tests._reporting import print_report
from rag_eval_integrations.metrics.prompty import PromptyMetric, parse_prompty
from rag_eval_integrations.prompt_tests import GenerateOptions, Report
from rag_eval_integrations.prompt_tests.generate import PRESETS

PROMPT = "---\nname: Shout\n---\nsystem:\nRepeat the text in capitals.\nuser:\n{{text}}\n"
RULES = ["The output is in capitals.", "The output repeats the input."]


def content_for(body: Body) -> str:
    """What generator, models under test and judge say, told by what they are asked."""
    system, user = (message["content"] for message in body["messages"][:2])
    if "what the assistant is for" in system:
        return "Repeats text in capitals."
    if "what a program accepts" in system:
        return '{"rules": ["The input is any text."]}'
    if "take requirements out of prompts" in system:
        return json.dumps({"rules": RULES})
    if "contradicts it in meaning" in system:
        return '{"inverse": [{"number": 1, "text": "No."}, {"number": 2, "text": "Other."}]}'
    if "You test an assistant" in system:
        rules = [number for number in (1, 2, 3, 4) if f"\n{number}. " in user]
        tests = [
            {"rule": n, "inputs": {"text": f"text {n}"}, "expected": "", "reasoning": ""}
            for n in rules
        ]
        return json.dumps({"tests": tests})
    if "to test it with" in system:
        return "a\n===\nb\n===\nc\n===\nd"
    if "rules that were set" in system or "that its prompt allows" in system:
        output = user.split("<<<output ")[1].split("\n")[1]
        return "In capitals.\nOK" if output.isupper() else "Small letters.\nERR"
    if "accepts. You are given" in system or "taken from a prompt" in system:
        return "As it should be.\nOK"
    if "Score how loud" in system:
        return "Score: 70"
    if "Answer the user's input" in system or "Repeat the text" in system:
        return str(user.upper() if body["model"] != "lazy" else user)
    raise AssertionError(system)


@pytest.fixture
def put(tmp_path: Path) -> Path:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "shout.prompty").write_text(PROMPT)
    (folder / "loud.metric.prompty").write_text("Score how loud it is. <INPUT>\nuser:\n{{output}}")
    return folder / "shout.prompty"


@pytest.fixture
def server() -> Any:
    with LoopbackServer(Behaviour(), respond) as running:
        yield running


def respond(body: Body) -> Reply:
    message = {"role": "assistant", "content": content_for(body)}
    return Reply.json(
        {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
         "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
         "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}
    )  # fmt: skip


def endpoint(server: LoopbackServer) -> list[str]:
    return ["--base-url", server.base_url]


@pytest.fixture
def command(rag_eval: Command, server: LoopbackServer) -> Command:
    """Runs a subcommand of `prompt-tests`, whose models are at the endpoint."""

    def run(*words: object) -> Any:
        asks = words[0] in ("generate", "run", "evaluate", "all") and "--help" not in words
        return rag_eval("prompt-tests", *words, *(endpoint(server) if asks else ()))

    return run


@pytest.fixture
def generated(command: Command, put: Path, tmp_path: Path) -> Path:
    """A folder with tests of rules alone."""
    out = tmp_path / "out"
    words = ["-o", out, "--model", "openai:gen", "--no-baseline"]
    assert command("generate", put, *words).code == 0
    return out


@pytest.fixture
def answered(command: Command, generated: Path) -> Path:
    """The same with the outputs of one model, `x`."""
    done = command("run", generated, "--mut", "openai:x")
    assert done.code == 0
    return generated


def test_all_stages_in_one_go_then_a_second_time_for_nothing(
    command: Command, put: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    """Every file is there; a second identical run makes no requests and says the same."""
    out = tmp_path / "out"
    words = ["all", put, "-o", out, "--model", "openai:gen", "--mut", "openai:eager",
        "--mut", "openai:lazy", "--judge", "openai:judge", "--tests-per-rule", 1, "--validity",
        "--groundedness", "--agreement", "openai:eager",
    ]  # fmt: skip

    first = command(*words)

    assert first.code == 0, first.err
    assert "2 rules, 2 inverse rules, 4 rule tests and 4 baseline tests" in first.out
    assert (
        "openai:eager: 4 outputs comply, 0 do not, 0 without a verdict, 0 failed; compliant 100% [51%, 100%]"
        in first.out
    )
    assert "openai:lazy: 0 outputs comply, 4 do not" in first.out
    assert "mentions <INPUT> and never inserts {{input}}" in first.err
    assert {path.name for path in out.iterdir()} == {
        "prompt.json", "shout.prompty", "intent.txt", "input_spec.txt", "rules.txt",
        "inverse_rules.txt", "tests.json", "baseline_tests.txt", "replies.sqlite",
        "test_results.json", "test_evals.json", "rule_evals.json", "overview.csv", "report.json",
        "README.md", "report.html",
    }  # fmt: skip
    asked = len(server.requests)
    second = command(*words)
    assert second.code == 0
    assert len(server.requests) == asked
    assert second.out.count("(0 requests)") == 2
    overview = (out / "overview.csv").read_text()
    assert "openai:eager,,0,4,100%,0,100%,2,2,2,2,4,4,4,4,51,100,70,4" in overview


def test_stages_one_by_one(
    command: Command, put: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    """Options override the preset; reports in three formats; a threshold; two runs compared."""
    out = tmp_path / "out"
    done = command(
        "generate",
        put,
        "-o",
        out,
        "--model",
        "openai:gen",
        "--effort",
        "min",
        "--tests-per-rule",
        2,
        "--max-rules",
        1,
        "--split",
    )
    assert done.code == 0, done.err
    assert "2 rule tests and 0 baseline tests" in done.out
    tests = [
        body
        for body in server.requests
        if "You test an assistant" in body["messages"][0]["content"]
    ]
    assert len(tests) == 2
    assert all("2 tests for every rule" in body["messages"][0]["content"] for body in tests)

    done = command("run", out, "--mut", "openai:lazy", "--runs", 2, "--max-tests", 1)
    assert (done.code, done.out) == (0, f"2 outputs from 1 model in {out}\n")
    done = command(
        "evaluate",
        out,
        "--judge",
        "openai:judge",
        "--basis",
        "prompt",
        "--no-see-input",
        "--metric",
        "loud",
    )
    assert done.code == 0, done.err
    assert "2 outputs judged by openai:judge (2 requests)" in done.out  # both runs say the same

    report = ["report", out]
    assert command(*report, "--format", "csv").out.startswith("model,scenario,errors,tests,")
    assert json.loads(command(*report, "--format", "json").out)["failures"][0]["kind"] == "err"
    assert "# Prompt tests of shout" in command(*report, "--format", "md").out
    failed = command(*report, "--fail-under", 0.5, "--unknown-as-err")
    assert failed.code == 1
    assert "FAILED openai:lazy: the share of compliant outputs is 0.0000, below 0.5\n" in failed.err
    assert command(*report, "--fail-under", 0).code == 0

    better = tmp_path / "better"
    command("import", out, "-o", better, "--prompt", put)
    results = json.loads((better / "test_results.json").read_text())
    for row in results:
        row["compliance"] = "ok"
        row.pop("judges")
    (better / "test_results.json").write_text(json.dumps(results))
    compared = command("report", out, "--before", better)
    assert "2 tests in both runs, 2 broken, 0 fixed" in compared.out
    assert "broken: 'text 1'" in compared.err


def test_groundtruth_and_scenarios(command: Command, put: Path, tmp_path: Path) -> None:
    """Expected outputs are made and judged; an unknown scenario is a mistake."""
    (put.parent / "gt.metric.prompty").write_text(
        "---\ntags: [groundtruth]\n---\nScore how loud {{output}}\nuser:\nx"
    )
    words = ["generate", put, "-o", tmp_path / "out", "--model", "openai:gen"]

    done = command(*words, "--tests-per-rule", 1, "--no-baseline", "--groundtruth", "openai:eager")

    assert done.code == 0, done.err
    assert "4 of 4 tests with a usable expected output" in done.out
    wrong = command(*words, "--scenario", "night")
    assert (wrong.code, "the prompt's scenarios are: none" in wrong.err) == (2, True)


def test_a_failing_model_is_told_and_stops_nobody(
    command: Command, put: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models may come from the user's own code; the failing one has no verdicts."""
    (tmp_path / "my_models.py").write_text(
        "async def fails(messages):\n    raise ZeroDivisionError('mine')\n"
        "async def shouts(messages):\n    return messages[-1]['content'].upper()\n"
        "class App:\n    name = 'app'\n    async def answer(self, inputs, text):\n        raise OSError('gone')\n"
        "app = App()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    command("generate", put, "-o", out, "--model", "openai:gen", "--no-baseline")
    muts = ["--mut", "my_models:fails", "--mut", "my_models:shouts", "--mut", "my_models:app"]

    done = command("run", out, *muts)

    assert done.code == 0
    assert (
        "fails: 4 outputs failed; the first error: JudgeError: model 'fails' raised "
        "ZeroDivisionError: mine\n"
    ) in done.err
    assert "app: 4 outputs failed; the first error: OSError: gone\n" in done.err
    command("evaluate", out, "--judge", "openai:judge")
    done = command("report", out, "--fail-under", 0.9)
    assert done.code == 1
    assert "FAILED fails: no output has a verdict" in done.err
    for name, why in (
        ("my_models:nothing", "`--mut` = 'my_models:nothing': my_models has no 'nothing'"),
        ("plain", "`--mut` = 'plain': use openai:NAME or MODULE:OBJECT"),
        ("no_such:x", "`--mut` = 'no_such:x': no module 'no_such' in "),
    ):
        wrong = command("run", out, "--mut", name)
        assert (wrong.code, why in wrong.err) == (2, True)
    wrong = command("evaluate", out, "--judge", "my_models:app")
    assert (wrong.code, "`--judge` = 'my_models:app': is an app" in wrong.err) == (2, True)


def test_a_prompt_without_rules_exits_1_and_says_how_to_go_on(
    rag_eval: Command, put: Path, tmp_path: Path
) -> None:
    """Nothing can be tested; rules can be written by hand."""

    def none(body: Body) -> Reply:
        reply = content_for(body)
        message = {"role": "assistant", "content": '{"rules": []}' if RULES[0] in reply else reply}
        return Reply.json(
            {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "m"}
        )

    out = tmp_path / "out"
    with LoopbackServer(Behaviour(), none) as server:
        words = [
            "prompt-tests",
            "generate",
            put,
            "-o",
            out,
            "--model",
            "openai:gen",
            *endpoint(server),
        ]
        done = rag_eval(*words)
    assert done.code == 1
    assert "no output rules were found" in done.err
    run = rag_eval(
        "prompt-tests", "run", out, "--mut", "openai:x", "--base-url", "http://127.0.0.1:9/v1"
    )
    assert (run.code, "has no tests.json; generate tests first" in run.err) == (2, True)

    (out / "rules.txt").write_text("\n".join(RULES))  # as the message says
    with LoopbackServer(Behaviour(), respond) as server:
        again = rag_eval(*words[:-1], server.base_url)
    assert (again.code, "2 rules, 2 inverse rules, 4 rule tests" in again.out) == (0, True)


def test_two_metrics_of_one_name_are_told_by_the_list(command: Command, put: Path) -> None:
    """Names differ by the suffix's case only; `evaluate` refuses them."""
    (put.parent / "loud.METRIC.prompty").write_text("{{output}}")

    done = command("metrics", put)

    assert (done.code, done.out.count("another metric file has this name")) == (0, 2)


def test_judges_that_do_not_answer_are_told(
    command: Command, answered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two that raises anything stops nobody; where none answers, the command exits 1."""
    (tmp_path / "their_judges.py").write_text(
        "async def down(messages):\n    raise ConnectionResetError('gone')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    none = command("evaluate", answered, "--judge", "their_judges:down")
    both = command("evaluate", answered, "--judge", "openai:j", "--judge", "their_judges:down")

    failed = (
        "down: 8 judgements failed; the first error: JudgeError: model 'down' raised "
        "ConnectionResetError: gone\n"
    )
    assert (none.code, failed in none.err) == (1, True)
    assert (both.code, failed in both.err) == (0, True)
    report = command("report", answered, "--fail-under", "0.9")
    assert (report.code, "4 outputs comply, 0 do not" in report.out) == (0, True)


def test_all_reports_also_where_every_model_failed(
    command: Command, put: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command exits 1, and the report says why."""
    (tmp_path / "my_failing.py").write_text(
        "async def fails(messages):\n    raise ZeroDivisionError('mine')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"

    done = command(
        "all",
        put,
        "-o",
        out,
        "--model",
        "openai:gen",
        "--mut",
        "my_failing:fails",
        "--judge",
        "openai:judge",
        "--no-baseline",
    )

    assert (done.code, "0 without a verdict, 4 failed" in done.out) == (1, True)
    assert "ZeroDivisionError: mine" in (out / "README.md").read_text()


def test_a_threshold_says_what_it_leaves_out(command: Command, answered: Path) -> None:
    """Outputs without a verdict are told beside the share; no results at all do not pass."""
    command("evaluate", answered, "--judge", "openai:judge")
    path = answered / "test_results.json"
    rows = json.loads(path.read_text())
    rows[0]["error"] = "gone"
    path.write_text(json.dumps(rows))

    some = command("report", answered, "--fail-under", "0.9")
    path.write_text("[]")
    nothing = command("report", answered, "--fail-under", "0.9")

    assert some.code == 0
    assert "x: 1 of 4 outputs without a verdict (0 unknown, 1 failed) is left out" in some.err
    assert (nothing.code, "the report has no results" in nothing.err) == (1, True)


def test_a_comparison_does_not_break_the_report_on_stdout(command: Command, answered: Path) -> None:
    """With `--format json`, what changed goes to stderr."""
    done = command("report", answered, "--format", "json", "--before", answered)

    assert json.loads(done.out)["name"] == "shout"
    assert "4 tests in both runs" in done.err


def test_long_stages_say_how_far_they_are(
    command: Command, put: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line on stderr every ten seconds: replies, outputs, judgements and their number."""
    monkeypatch.setattr("rag_eval_integrations.cli.prompt_tests.commands.SECONDS_PER_LINE", 0.0)
    out = tmp_path / "out"

    done = command(
        "all",
        put,
        "-o",
        out,
        "--model",
        "openai:gen",
        "--mut",
        "openai:x",
        "--judge",
        "openai:judge",
        "--no-baseline",
    )

    assert done.code == 0
    assert "replies from openai:gen" in done.err
    assert "4 outputs" in done.err
    assert "8 of 8 judgements" in done.err


def test_metric_variables_that_nobody_inserts_are_refused(
    command: Command, generated: Path, put: Path, tmp_path: Path
) -> None:
    """So is one whose value is the call's own, and a file that is no text; a BOM is none of it."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    metric = put.parent / "loud.metric.prompty"
    metric.write_text(metric.read_text() + "{{tone}}")
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfcalm")

    for given, why in (
        ("tnoe=x", "= 'tnoe': no metric file has this variable"),
        ("output=x", "`--metric-var` = 'output=x': the value of `output` comes from each call"),
        (f"tone=@{tmp_path / 'binary'}", "binary': is not UTF-8"),
    ):
        wrong = command("evaluate", generated, "--judge", "openai:j", "--metric-var", given)
        assert (wrong.code, why in wrong.err) == (2, True)
    assert metric_variables([f"tone=@{tmp_path / 'bom'}"]) == {"tone": "calm"}


def test_only_baseline_tests_left_out_is_nothing_to_run(
    command: Command, put: Path, tmp_path: Path
) -> None:
    """Said, instead of empty results that pass every threshold."""
    out = tmp_path / "out"
    command("generate", put, "-o", out, "--model", "openai:gen")
    path = out / "tests.json"
    rows = [row for row in json.loads(path.read_text()) if row["baseline"]]
    path.write_text(json.dumps(rows))

    done = command("run", out, "--mut", "openai:x", "--no-baseline")

    assert (done.code, "all tests are baseline tests" in done.err) == (2, True)


def test_metric_files_are_listed_with_what_is_odd(
    command: Command, put: Path, tmp_path: Path
) -> None:
    """A broken one is named with its line."""
    done = command("metrics", put)
    assert done.code == 0
    assert "loud" in done.out
    assert "mentions <INPUT> and never inserts {{input}}" in done.out
    (put.parent / "broken.metric.prompty").write_text("---\na: [\n---\nx")
    wrong = command("metrics", put)
    assert (wrong.code, "broken.metric.prompty" in wrong.err, "line " in wrong.err) == (
        2,
        True,
        True,
    )
    alone = tmp_path / "alone.prompty"
    alone.write_text("{{x}}")
    assert "no metric files" in command("metrics", alone).out


@pytest.mark.parametrize("width", [60, 80])
def test_warnings_about_metric_files_are_whole_in_a_narrow_terminal(
    command: Command, put: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """The table wraps its cells in a narrow terminal."""
    monkeypatch.setenv("COLUMNS", str(width))
    named = "{{" + "}} {{".join(["prompt", "intent", "groundtruth", "contexts", "rules"]) + "}}"
    metric = put.parent / "loud.metric.prompty"
    metric.write_text(metric.read_text() + named)

    done = command("metrics", put)

    assert "…" not in done.out
    assert max(map(len, done.out.splitlines())) <= width
    words = ["mentions", "<INPUT>", "and", "never", "inserts", "{{input}}"]
    assert all(word in done.out for word in words)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run", "DIR", "--mut", "openai:x"], "has no prompt tests; generate them first"),
        (["report", "DIR"], "has no prompt tests; generate them first"),
        (["generate", "nowhere.prompty", "-o", "DIR", "--model", "openai:x"], "nowhere.prompty"),
        (
            ["generate", "PUT", "-o", "DIR", "--model", "embedded"],
            "`--model` = 'embedded': use openai:NAME or MODULE:OBJECT",
        ),
        (["generate", "PUT", "-o", "DIR", "--model", "openai:x", "--effort", "max"], "effort"),
        (
            ["generate", "PUT", "-o", "DIR", "--model", "openai:x", "--tests-per-rule", "0"],
            "tests_per_rule",
        ),
        (["import", "PUT", "-o", "DIR"], "should be an object, or a list of objects"),
    ],
)
def test_mistakes_exit_2_and_are_named(
    command: Command,
    put: Path,
    tmp_path: Path,
    words: list[str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before anything is asked."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    places = {"DIR": str(tmp_path / "dir"), "PUT": str(put)}
    done = command(*[places.get(word, word) for word in words])
    assert (done.code, why in done.err) == (2, True), done.err


def test_a_missing_prompt_is_named_before_a_missing_key(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is the mistake that the user can see."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    words = ["generate", tmp_path / "none.prompty", "-o", tmp_path / "out", "--model", "openai:m"]
    done = command(*words)

    assert (done.code, "none.prompty" in done.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_mistakes_within_a_folder_exit_2(command: Command, put: Path, tmp_path: Path) -> None:
    """No results yet, unknown metrics, formats, bases and variables; another prompt's folder."""
    out = tmp_path / "out"
    command("generate", put, "-o", out, "--model", "openai:gen")
    judge = ["evaluate", out, "--judge", "openai:judge"]
    for words, why in (
        (["report", out], "run the tests first"),
        ([*judge, "--metric", "quiet"], "no such metric file"),
        ([*judge, "--basis", "both"], "use rules or prompt"),
        ([*judge, "--metric-var", "rules"], "`--metric-var` = 'rules': use NAME=VALUE"),
        (judge, "run the tests first"),
        (["report", out, "--format", "pdf"], "`--format` = 'pdf': use md, csv, json"),
    ):
        done = command(*words)
        assert (done.code, why in done.err) == (2, True), done.err
    other = tmp_path / "other.prompty"
    other.write_text("{{x}}")
    done = command("generate", other, "-o", out, "--model", "openai:gen")
    assert (done.code, "contains the tests of shout.prompty" in done.err) == (2, True)
    (out / "tests.json").unlink()
    done = command("run", out, "--mut", "openai:eager")
    assert (done.code, "has no tests.json; generate tests first" in done.err) == (2, True)


def test_the_copy_of_a_prompt_is_used_when_the_prompt_is_gone(
    command: Command, put: Path, tmp_path: Path
) -> None:
    """It is said; own metrics are found by their names."""
    out = tmp_path / "out"
    command("generate", put, "-o", out, "--model", "openai:gen")
    put.unlink()

    done = command("run", out, "--mut", "openai:eager", "--no-baseline")

    assert done.code == 0
    assert f"{put} does not exist; using the copy in {out}\n" in done.err


def test_recorded_runs_of_promptpex_are_taken_over(
    command: Command, data: Path, tmp_path: Path
) -> None:
    """A folder of its files, and a context in one file; the report has its numbers."""
    source = data / "promptpex" / "v7" / "speech-tag"
    out = tmp_path / "out"
    done = command("import", source, "-o", out)
    assert done.code == 0, done.err
    assert "7 rules, 42 tests and 336 results" in done.out
    report = command("report", out, "--unknown-as-err", "--format", "csv")
    rows = [line.split(",") for line in report.out.splitlines()]
    assert [row[4] for row in rows[1:]] == ["100%", "95%", "98%", "10%"]

    context = tmp_path / "promptpex_context.json"
    context.write_text(
        json.dumps(
            {
                "prompt": {
                    "filename": "x/tag.prompty",
                    "content": (source / "put.prompty").read_text(),
                },
                "rules": {"content": (source / "rules.txt").read_text()},
                "inverseRules": {"content": ""},
                "tests": {
                    "content": json.dumps([{"ruleid": "1", "testinput": "a; b"}, {"ruleid": "1"}])
                },
                "testOutputs": [],
            }
        )
    )
    done = command("import", context, "-o", tmp_path / "second")
    assert done.code == 0, done.err
    assert "7 rules, 1 test and 0 results" in done.out
    assert (tmp_path / "second" / "tag.prompty").exists()
    assert "test 2: has no input" in done.err


def context_of(path: Path, rule: str) -> Path:
    content = {
        "prompt": {"filename": "tag.prompty", "content": "Hi {{text}}"},
        "rules": {"content": rule},
        "tests": {"content": json.dumps([{"ruleid": "1", "testinput": "a"}])},
        "testOutputs": [],
    }
    path.write_text(json.dumps(content))
    return path


def test_an_import_replaces_a_folder_only_on_request(command: Command, tmp_path: Path) -> None:
    """And a folder that holds more than an import is kept as DIR.bak, whose place is not taken."""
    first = context_of(tmp_path / "1.json", "Be first.")
    second = context_of(tmp_path / "2.json", "Be second.")
    out, bak = tmp_path / "out", tmp_path / "out.bak"
    (tmp_path / "elsewhere").mkdir()
    out.symlink_to(tmp_path / "elsewhere")

    def importing(source: Path, *words: str) -> tuple[int, str]:
        done = command("import", source, "-o", out, *words)
        return done.code, done.err

    assert importing(first)[0] == 0
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
    code, stderr = importing(second)
    assert (code, "is not empty; use another folder, or --overwrite" in stderr) == (2, True)
    assert (out / "rules.txt").read_text() == "Be first.\n"

    assert importing(second, "--overwrite") == (0, "")
    assert (out / "rules.txt").read_text() == "Be second.\n"
    assert out.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1.json",
        "2.json",
        "elsewhere",
        "out",
    ]

    out.unlink()
    (tmp_path / "elsewhere").rename(out)
    (out / "replies.sqlite").write_text("paid")
    code, stderr = importing(first, "--overwrite")
    assert (code, stderr) == (0, f"the earlier folder is {bak}\n")
    assert (bak / "replies.sqlite").read_text() == "paid"
    code, stderr = importing(second, "--overwrite")
    assert (code, "move it away before you overwrite a folder" in stderr) == (2, True)
    assert (out / "rules.txt").read_text() == "Be first.\n"


def test_an_import_that_fails_leaves_the_folder_as_it_was(command: Command, tmp_path: Path) -> None:
    """Nothing that is damaged replaces it, and a folder is not its own source."""
    out = tmp_path / "out"
    command("import", context_of(tmp_path / "c.json", "One."), "-o", out)
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    (tmp_path / "bad.json.gz").write_bytes(gzip.compress(b"{}" * 9999)[:-30])

    bad = command("import", tmp_path / "bad.json.gz", "-o", out, "--overwrite")
    own = command("import", out, "-o", out, "--overwrite")

    assert (bad.code, "cannot be read" in bad.err) == (2, True)
    assert (own.code, "is the folder that is imported" in own.err) == (2, True)
    assert not (tmp_path / "out.bak").exists()
    assert {path: path.read_bytes() for path in before} == before


def test_files_of_others_are_not_replaced_by_a_report(command: Command, answered: Path) -> None:
    """A page of the user's own stays; the program's own are written anew."""
    for name in ("README.md", "report.html"):
        assert command("report", answered).code == 0
        assert command("report", answered).code == 0
        (answered / name).write_text("# My notes\n")

        done = command("report", answered)

        assert (done.code, "was not made by this program" in done.err) == (2, True)
        assert (answered / name).read_text() == "# My notes\n"
        (answered / name).unlink()


def test_the_page_is_printed_as_it_is_written(command: Command, answered: Path) -> None:
    """`--format html` prints what `report.html` holds."""
    done = command("report", answered, "--format", "html")

    assert done.code == 0
    assert done.out == (answered / "report.html").read_text(encoding="utf-8")
    assert "Prompt tests of " in done.out


CALL = {"question": "q", "documents": ["d"], "response": "LOUD", "reference": "r"}


def test_a_metric_file_scores_plain_rag_calls(
    rag_eval: Command, tmp_path: Path, server: LoopbackServer
) -> None:
    """Variables from the call, its metadata or the command line; a missing one is exit 2."""
    metric = tmp_path / "shouting.metric.prompty"
    metric.write_text(
        "Score how loud. {{rules}} {{prompt}} {{groundtruth}}\nuser:\n{{output}} {{contexts}}"
    )
    calls, out = tmp_path / "calls.jsonl", tmp_path / "evals.jsonl"
    rows = [
        {**CALL, "metadata": {"prompt": "Be loud."}},
        {**CALL, "question": "q2", "metadata": {"prompt": "p"}},
    ]
    calls.write_text("".join(json.dumps(row) + "\n" for row in rows) + "broken\n")
    rules = tmp_path / "rules.txt"
    rules.write_text("RULE-TEXT")
    words = [
        "run",
        calls,
        "-o",
        out,
        "--judge",
        "openai:judge",
        "--metrics",
        metric,
        *endpoint(server),
    ]

    missing = rag_eval(*words)
    assert (missing.code, out.exists()) == (2, False)
    assert f"needs rules, which line 1 of {calls} does not provide" in missing.err
    wrong = rag_eval(*words, "--metric-var", "nothing=1")
    assert (wrong.code, "no metric file has this variable" in wrong.err) == (2, True)
    assert server.requests == []

    done = rag_eval(
        *words, "--metric-var", f"rules=@{rules}", "--skip-invalid", "--fail-under", "shouting=0.6"
    )
    assert done.code == 0, done.err
    scores = [json.loads(line)["scores"]["shouting"] for line in out.read_text().splitlines()]
    assert [(score["value"], score["raw"]) for score in scores] == [(0.7, 70)] * 2
    asked = server.requests[0]["messages"]
    assert asked[0]["content"].startswith("Score how loud. RULE-TEXT ")
    assert asked[1]["content"] == "LOUD [1] d"
    # A judge that only labels cannot be asked, and it is said before the first row.
    words = ["run", calls, "-o", out, "--overwrite", "--metrics", metric]
    embedded = rag_eval(*words, "--metric-var", "rules=x")
    assert (embedded.code, "asks a model" in embedded.err) == (2, True)


def test_results_of_other_models_are_set_aside(command: Command, generated: Path) -> None:
    """Imported ones are nowhere else; the same models' are simply written anew."""
    for model in ("first", "first", "second", "third"):
        done = command("run", generated, "--mut", f"openai:{model}")

    aside = sorted(path.name for path in generated.glob("test_results.*.json"))
    assert aside == ["test_results.1.json", "test_results.2.json"]
    rows = json.loads((generated / "test_results.1.json").read_text())
    assert {row["model"] for row in rows} == {"openai:first"}
    assert "openai:second: earlier results moved to " in done.err


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_report_of_many_models_is_whole(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many models stand beside each other as fit; long names are folded, numbers never."""
    monkeypatch.setenv("COLUMNS", str(width))
    models = [f"openai:some-model-with-a-long-name-{n}" for n in range(5)] + ["small", "x" * 90]
    results = [
        make_result("ok" if n < k else "err", model=model, uid=str(n))
        for k, model in enumerate(models)
        for n in range(7)
    ]

    print_report(Report("p", results))

    tables = capsys.readouterr().out.split("openai:some-model-with-a-long-name-0: ")[0]
    assert max(map(len, tables.splitlines())) <= width
    assert "…" not in tables
    lines = [line.split() for line in tables.splitlines()]
    rows = [line for line in lines if line[:2] == ["tests", "compliant"]]
    assert [cell for row in rows for cell in row[2:]] == [f"{100 * k / 7:.0f}%" for k in range(7)]


def test_a_report_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """No table without a column."""
    print_report(Report("p", []))

    assert capsys.readouterr().out == "Prompt tests of p: there are no results\n"


@pytest.mark.parametrize(("name", "why"), [(".own:m", "use openai:NAME"), ("quits:m", "ends")])
def test_a_module_that_cannot_be_imported_is_a_mistake(
    command: Command, put: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    name: str, why: str
) -> None:  # fmt: skip
    """Above all one that exits: with its exit code 0, nothing would seem to have failed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    (tmp_path / "quits.py").write_text("raise SystemExit(0)\n")
    done = command("generate", put, "-o", tmp_path / "d", "--model", name)
    assert (done.code, why in done.err) == (2, True), done.err


def test_the_authors_words_come_from_the_command_line(
    command: Command, put: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    """As text or from a file; a later run that contradicts them exits 2 and names the file."""
    out = tmp_path / "out"
    (tmp_path / "words.txt").write_text("Only about form.\n")
    (tmp_path / "samples.csv").write_text("text\nhello there\n")
    words = ["generate", put, "-o", out, "--model", "openai:gen"]
    own = [
        "--output-rules-instructions", f"@{tmp_path / 'words.txt'}",
        "--input-spec-instructions", "Any language.", "--test-samples", tmp_path / "samples.csv",
        "--custom-metric", "Score how loud it is.\nuser:\n{{output}}",
    ]  # fmt: skip

    done = command(*words, *own)

    assert done.code == 0, done.err
    sent = [json.dumps(body) for body in server.requests]
    assert sum("The author of the prompt adds: Only about form." in body for body in sent) == 1
    assert sum("The author of the prompt adds: Any language." in body for body in sent) == 1
    assert sum("hello there" in body for body in sent) >= 2
    assert (out / "custom.metric.prompty").read_text().startswith("Score how loud")
    assert command(*words, *own).code == 0
    refused = command(*words, "--output-rules-instructions", "Only about length.")
    assert refused.code == 2
    assert "rules.txt was made with; delete that file" in refused.err


def test_tests_are_exported_and_come_back(
    command: Command, generated: Path, tmp_path: Path
) -> None:
    """Into the folder, to a path or to stdout; what a format cannot hold is on stderr."""
    done = command("export", generated, "--to", "context")
    assert done.code == 0, done.err
    assert done.out == f"Wrote {generated / 'promptpex_context.json'}\n"
    back = tmp_path / "back"
    assert command("import", generated / "promptpex_context.json", "-o", back).code == 0
    assert (back / "tests.json").read_text() == (generated / "tests.json").read_text()
    assert (back / "loud.metric.prompty").exists()

    azure = ["export", generated, "--to", "openai", "--azure"]
    done = command(*azure)
    assert "openai: `model` is gpt-4o; Azure needs the name of your deployment" in done.err
    assert (generated / "evals.azure.run.json").exists()

    table = tmp_path / "x.csv"
    csv = command("export", generated, "--to", "csv", "-o", "-")
    assert csv.out.startswith("ruleid,testid,expectedoutput,reasoning,")
    two = command("export", generated, "--to", "openai", "-o", "-")
    assert (two.code, "openai has 2 files" in two.err) == (2, True)
    table.write_text("mine")
    again = ["export", generated, "--to", "csv", "-o", table]
    assert "exists with another content" in command(*again).err
    assert table.read_text() == "mine"
    assert command(*again, "--overwrite").code == 0
    done = command("export", generated, "--to", "pytest", "-o", f"{tmp_path}/new/")
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {"test_shout.py", "prompt_tests_shout.json"}
    unknown = command("export", generated, "--to", "xml")
    assert (unknown.code, "use openai, context" in unknown.err) == (2, True)


def test_the_help_has_the_presets_numbers(command: Command) -> None:
    """The table of `--effort` says what the presets are."""
    shown = command("generate", "--help").out
    for name, options in PRESETS.items():
        [line] = [line for line in shown.splitlines() if line.split()[:1] == [name]]
        assert line.split()[1:] == [
            str(number) for number in (
                options.max_rules, options.tests_per_rule, options.rules_per_group,
                options.generations, options.expansions
            )
        ]  # fmt: skip
        assert options.split_rules == options.baseline == (name != "min")
    for name in ("tests_per_rule", "rules_per_group"):
        assert f"{getattr(GenerateOptions(), name)} {name.split('_')[0]}" in " ".join(shown.split())


def test_the_pages_name_options_that_exist(command: Command, rag_eval: Command) -> None:
    """Every option in docs/prompt-tests*.md is one of a command; so are the formats of exports."""
    pages = "".join(path.read_text("utf-8") for path in DOCS.glob("prompt-tests*.md"))
    commands = ("generate", "run", "evaluate", "report", "all", "import", "export")
    helps = " ".join(command(name, "--help").out for name in commands)
    known = set(re.findall(r"--[a-z][a-z-]+", helps + rag_eval("run", "--help").out))
    assert set(re.findall(r"--[a-z][a-z-]+", pages)) <= known
    formats = ("openai", "context", "csv", "pytest", "langsmith")
    assert "|".join(formats) in helps
    assert f"--to {'|'.join(formats)}" in pages
    for name in formats:
        assert f"| `{name}` | " in pages


def test_the_code_of_the_pages_runs(
    rag_eval: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The app in Python, the metric file, and the first command, which counts its requests."""
    run_python("docs/prompt-tests-models.md")
    assert capsys.readouterr().out.splitlines() == promised_by("docs/prompt-tests-models.md")

    (metric,) = re.findall(
        r"^```text\n(---.*?)^```", text_of("docs/prompt-tests-judging.md"), re.M | re.S
    )
    assert PromptyMetric(parse_prompty(metric, name="tone")).names == ("tone",)

    monkeypatch.chdir(DOCS.parent)
    lines = re.findall(r"^rag-eval (prompt-tests .*)$", text_of("docs/prompt-tests.md"), re.M)
    assert [line.split()[1] for line in lines] == ["generate", "run", "evaluate", "report"]
    assert rag_eval(*lines[0].split(), "--dry-run").code == 0
