"""`rag-eval prompt-tests` end to end, against a real endpoint on loopback."""

from __future__ import annotations

import gzip
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ferries import Command, read, write
from loopback import Behaviour, Body, LoopbackServer, Reply
from pages import DOCS, promised_by, run_python, text_of
from prompt_test_models import PROMPT, make_result
from scored_tokens import chat_body

from rag_eval_integrations.cli.prompt_tests._reporting import print_report
from rag_eval_integrations.metrics.prompty import PromptyMetric, parse_prompty
from rag_eval_integrations.prompt_tests import GenerateOptions, Report
from rag_eval_integrations.prompt_tests.generate import PRESETS

from .conftest import snapshot

RULES = ["The output is in capitals.", "The output repeats the input."]


def content_for(body: Body) -> str:
    """What generator, models under test and judge say, told by what they are asked."""
    system, user = (message["content"] for message in body["messages"][:2])
    tests = [
        {"rule": n, "inputs": {"text": f"text {n}"}} for n in (1, 2, 3, 4) if f"\n{n}. " in user
    ]
    output = user.partition("<<<output ")[2].partition("\n")[2].partition("\n")[0]
    fine = output.isupper() or (body["model"] == "mild" and "2" in output)
    verdict = "In capitals.\nOK" if fine else "Small letters.\nERR"
    replies = {
        "what the assistant is for": "Repeats text in capitals.",
        "what a program accepts": '{"rules": ["The input is any text."]}',
        "out of prompts": json.dumps({"rules": RULES if "capitals" in user else []}),
        "contradicts it in meaning": json.dumps({"inverse": ["No.", "Other."]}),
        "You test an assistant": json.dumps({"tests": tests}),
        "to test it with": "a\n===\nb\n===\nc\n===\nd",
        "rules that were set": verdict,
        "that its prompt allows": verdict,
        "accepts. You are given": "ERR" if "text 1" in user else "OK",
        "taken from a prompt": "As it should be.\nOK",
        "Score how loud": "Score: 70",
    }
    answer = user if body["model"] == "lazy" else user.upper()
    return next((reply for words, reply in replies.items() if words in system), answer)


@pytest.fixture
def put() -> Path:
    folder = Path("prompts")
    folder.mkdir()
    (folder / "shout.prompty").write_text(PROMPT)
    (folder / "loud.metric.prompty").write_text("Score how loud it is. <INPUT>\nuser:\n{{output}}")
    return folder / "shout.prompty"


@pytest.fixture
def server() -> Any:
    with LoopbackServer(Behaviour(), respond) as running:
        yield running


def respond(body: Body) -> Reply:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    return Reply.json(chat_body([content_for(body)]) | {"model": body["model"], "usage": usage})


@pytest.fixture
def command(rag_eval: Command, server: LoopbackServer) -> Command:
    """Runs a subcommand of `prompt-tests`, whose models are at the endpoint."""

    def run(*words: object, code: int | None = None) -> Any:
        asks = words[0] in ("generate", "run", "evaluate", "all") and "--help" not in words
        url = ["--base-url", server.base_url] if asks else ()
        return rag_eval("prompt-tests", *words, *url, code=code)

    return run


@pytest.fixture
def out() -> Path:
    return Path("out")


@pytest.fixture
def generate(command: Command, put: Path, out: Path) -> Command:
    """Runs `generate` with more words."""
    return partial(command, "generate", put, "-o", out, "--model", "openai:gen")


@pytest.fixture
def everything(command: Command, put: Path, out: Path) -> Command:
    """Runs `all` on a model, with more words."""
    judge = ("--judge", "openai:judge")
    return partial(command, "all", put, "-o", out, "--model", "openai:gen", *judge, "--mut")


@pytest.fixture
def generated(generate: Command, out: Path) -> Path:
    """A folder with tests of rules alone."""
    generate("--no-baseline", code=0)
    return out


@pytest.fixture
def answered(command: Command, generated: Path) -> Path:
    """The same with the outputs of one model, `x`."""
    assert command("run", generated, "--mut", "openai:x").code == 0
    return generated


SET = PROMPT.replace(
    "Shout\n",
    "Shout\nmodel: {parameters: {temperature: 0.3, max_tokens: 50}}\n"
    "outputs: {text: {type: string}, loud: {type: boolean}}\n",
)


@pytest.fixture
def folder(generated: Path, put: Path) -> Path:
    """The same of a prompt with settings and a schema, by day and by night."""
    put.write_text(SET)
    tests = json.loads((generated / "tests.json").read_text())
    for n, row in enumerate(tests, 1):
        row |= {"testuid": f"u{n}", "scenario": "day" if n % 2 else "night"}
    (generated / "tests.json").write_text(json.dumps(tests))
    return generated


@pytest.fixture
def judged(command: Command, folder: Path) -> Path:
    """The folder with outputs of two models, judged by two judges."""
    assert command("run", folder, "--mut", "openai:loud", "--mut", "openai:lazy").code == 0
    command("evaluate", folder, "--judge", "openai:strict", "--judge", "openai:mild", code=0)
    return folder


def results(folder: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads((folder / "test_results.json").read_text())
    return content


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the user's own code, most of which fail."""
    Path("theirs.py").write_text(
        "async def fails(messages):\n    raise ZeroDivisionError('mine')\n"
        "async def shouts(messages):\n    return messages[-1]['content'].upper()\n"
        "class App:\n    name = 'app'\n    async def answer(self, inputs, text):\n        raise OSError('gone')\n"
        "app = App()\n"
    )
    Path("quits.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_all_stages_in_one_go_then_a_second_time_for_nothing(
    everything: Command, out: Path, server: LoopbackServer
) -> None:
    """Every file is there; a second identical run makes no requests and says the same."""
    words = ["openai:eager", "--mut", "openai:lazy", "--tests-per-rule", 1, "--validity",
             "--groundedness", "--agreement", "openai:eager"]  # fmt: skip

    first = everything(*words, code=0)

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
    second = everything(*words, code=0)
    assert len(server.requests) == asked
    assert second.out.count("(0 requests)") == 2
    assert second.err.count("generate: there are 8 tests, no cost") == 1
    overview = (out / "overview.csv").read_text()
    assert "openai:eager,,0,4,100%,0,100%,2,2,2,2,4,3,3,4,51,100,70,4" in overview


def test_each_stage(command: Command, generate: Command, out: Path, server: LoopbackServer) -> None:
    """Options override the preset; reports in three formats; a threshold."""
    done = generate("--effort", "min", "--tests-per-rule", 2, "--max-rules", 1, "--split", code=0)
    assert "2 rule tests and 0 baseline tests" in done.out
    asked = [body["messages"][0]["content"] for body in server.requests]
    tests = [system for system in asked if "You test an assistant" in system]
    assert len(tests) == 2
    assert all("2 tests for every rule" in system for system in tests)

    done = command("run", out, "--mut", "openai:lazy", "--runs", 2, "--max-tests", 1, code=0)
    assert done.out == f"2 outputs from 1 model in {out}\n"
    judge = ["--judge", "openai:judge", "--basis", "prompt", "--no-see-input", "--metric", "loud"]
    done = command("evaluate", out, *judge, code=0)
    assert "2 outputs judged by openai:judge (2 requests)" in done.out  # both runs say the same

    report = ["report", out]
    assert command(*report, "--format", "csv").out.startswith("model,scenario,errors,tests,")
    assert json.loads(command(*report, "--format", "json").out)["failures"][0]["kind"] == "err"
    assert "# Prompt tests of shout" in command(*report, "--format", "md").out
    failed = command(*report, "--fail-under", 0.5, "--unknown-as-err", code=1)
    assert "FAILED openai:lazy: the share of compliant outputs is 0.0000, below 0.5\n" in failed.err
    assert command(*report, "--fail-under", 0).code == 0


def test_a_failing_model_is_told_and_stops_nobody(
    command: Command, everything: Command, out: Path, theirs: None
) -> None:
    """Models may come from the user's own code. `all` reports also where every one failed."""
    done = everything("theirs:fails", "--no-baseline", code=1)
    assert "0 without a verdict, 4 failed" in done.out
    assert "ZeroDivisionError: mine" in (out / "README.md").read_text()

    models = [word for name in ("fails", "shouts", "app") for word in ("--mut", f"theirs:{name}")]
    failed = command("run", out, *models, code=0).err
    assert "fails: 4 outputs failed; the first error: JudgeError: model 'fails' raised Z" in failed
    assert "app: 4 outputs failed; the first error: OSError: gone\n" in failed
    command("evaluate", out, "--judge", "openai:judge")
    done = command("report", out, "--fail-under", 0.9, code=1)
    assert "FAILED fails: no output has a verdict" in done.err


def test_a_prompt_without_rules_exits_1_and_says_how_to_go_on(
    command: Command, generate: Command, put: Path, out: Path
) -> None:
    """Nothing can be tested; rules can be written by hand."""
    put.write_text("user:\nSay anything about {{text}}.")
    assert "no output rules were found" in generate(code=1).err
    run = command("run", out, "--mut", "openai:x", code=2)
    assert "has no tests.json; generate tests first" in run.err

    (out / "rules.txt").write_text("\n".join(RULES))  # as the message says
    assert "2 rules, 2 inverse rules, 4 rule tests" in generate(code=0).out


def test_thresholds_say_what_they_leave_out(command: Command, answered: Path, theirs: None) -> None:
    """A judge that raises stops no other, and where none answers, the command exits 1.

    It is told of outputs, of 4 tests and 4 agreements, and of 2 rules. Outputs without a verdict
    are told beside the share; no results at all do not pass.
    """
    evaluate, fails = ("evaluate", answered, "--judge"), "theirs:fails"
    failed = "fails: {} judgements failed; the first error: JudgeError: model 'fails' raised Z"
    checks = ("--validity", "--agreement", "openai:x", "--groundedness")
    assert failed.format(18) in command(*evaluate, fails, *checks, code=1).err
    assert failed.format(8) in command(*evaluate, "openai:j", "--judge", fails, code=0).err
    report = ("report", answered, "--fail-under", "0.9")
    assert "4 outputs comply, 0 do not" in command(*report, code=0).out

    rows = results(answered)
    rows[0]["error"] = "gone"
    (answered / "test_results.json").write_text(json.dumps(rows))
    some = command(*report, code=0)
    assert "x: 1 of 4 outputs without a verdict (0 unknown, 1 failed) is left out" in some.err
    (answered / "test_results.json").write_text("[]")
    nothing = command(*report, code=1)
    assert "Prompt tests of shout: there are no results\n" in nothing.out
    assert "the report has no results" in nothing.err


def test_long_stages_tell_how_far(everything: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line on stderr every ten seconds: replies, outputs, judgements and their number."""
    monkeypatch.setattr("rag_eval_integrations.cli.prompt_tests.commands.SECONDS_PER_LINE", 0.0)
    done = everything("openai:x", "--no-baseline", code=0)
    for words in ("replies from openai:gen", "4 outputs", "8 of 8 judgements"):
        assert words in done.err


def test_no_baseline_leaves_nothing_to_run(command: Command, generate: Command, out: Path) -> None:
    """Said, instead of empty results that pass every threshold."""
    generate()
    rows = json.loads((out / "tests.json").read_text())
    (out / "tests.json").write_text(json.dumps([row for row in rows if row["baseline"]]))
    done = command("run", out, "--mut", "openai:x", "--no-baseline", code=2)
    assert "all tests are baseline tests" in done.err


def test_metric_files_are_listed(command: Command, generate: Command, put: Path) -> None:
    """Two whose names differ by the suffix's case; a broken one is named with its line.

    Expected outputs are judged by the metric beside the prompt.
    """
    metric = "---\ntags: [groundtruth]\n---\nScore how loud {{output}}\nuser:\nx"
    (put.parent / "gt.metric.prompty").write_text(metric)
    words = ("--tests-per-rule", 1, "--no-baseline", "--groundtruth", "openai:eager")
    assert "4 of 4 tests with a usable expected output" in generate(*words, code=0).out

    (put.parent / "loud.METRIC.prompty").write_text("{{output}}")
    listed = command("metrics", put, code=0).out
    assert listed.count("another metric file has this name") == 2
    assert "mentions <INPUT> and never inserts {{input}}" in listed
    (put.parent / "broken.metric.prompty").write_text("---\na: [\n---\nx")
    wrong = command("metrics", put, code=2)
    assert all(words in wrong.err for words in ("broken.metric.prompty", "line "))
    Path("alone.prompty").write_text("{{x}}")
    assert "no metric files" in command("metrics", "alone.prompty").out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("run dir --mut openai:x", "has no prompt tests; generate them first"),
        ("generate prompts/shout.prompty -o dir --model embedded", "`--model` = 'embedded': us"),
        ("generate other.prompty -o out --model openai:x", "contains the tests of shout.prompty"),
        ("import prompts/shout.prompty -o dir", "should be an object, or a list of objects"),
        ("report out", "run the tests first"),
        ("generate prompts/shout.prompty -o out --model openai:x --scenario night", "are: none"),
        ("report out --format pdf", "`--format` = 'pdf': use md, csv, json"),
        ("run out --mut theirs:nothing", "`--mut` = 'theirs:nothing': theirs has no 'nothing'"),
        # Above all a module that exits: with its exit code 0, nothing would seem to have failed.
        ("run out --mut quits:m", "ends"),
        ("run out --mut openai:x --param top_p", "use NAME=VALUE"),
        ("run out --mut openai:x --param a=1 --param a=2", "a has a value already"),
        ("run out --mut openai:x --param temperature=1 --temperature 1", "has a value already"),
        ("run out --mut openai:x --param max_tokens=1 --max-tokens 1", "give one"),
        ("run out --mut openai:x --direction up", "use positive or negative"),
        ("run out --mut openai:x --only-valid", "evaluate --validity"),
        ("run out --mut openai:x --prices nowhere.json", "nowhere.json"),
        ("evaluate out --judge theirs:app", "`--judge` = 'theirs:app': is an app"),
        ("evaluate out --judge openai:j --metric quiet", "no such metric file"),
        ("evaluate out --judge openai:j --metric-var rules", "= 'rules': use NAME=VALUE"),
        ("evaluate out --judge openai:j --metric-var tnoe=x", "'tnoe': no metric file has this va"),
        ("evaluate out --judge openai:j --metric-var tone=@binary", "binary': is not UTF-8"),
    ],
)
def test_mistakes_exit_2_before_anything_is_asked(
    command: Command, folder: Path, theirs: None, server: LoopbackServer, words: str, why: str
) -> None:
    """And they are named."""
    Path("other.prompty").write_text("{{x}}")
    Path("binary").write_bytes(b"\xff\xfe")
    asked = len(server.requests)
    assert why in command(*words.split(), code=2).err
    assert len(server.requests) == asked


def test_recorded_runs_of_promptpex_are_taken_over(command: Command, data: Path, out: Path) -> None:
    """A folder of its files; the report has its numbers, and rows that are lost are named."""
    done = command("import", data / "promptpex" / "v7" / "speech-tag", "-o", out, code=0)
    assert "7 rules, 42 tests and 336 results" in done.out
    report = command("report", out, "--unknown-as-err", "--format", "csv")
    rows = [line.split(",") for line in report.out.splitlines()]
    assert [row[4] for row in rows[1:]] == ["100%", "95%", "98%", "10%"]

    context = context_of(Path("promptpex_context.json"), "One.", {"ruleid": "1"})
    done = command("import", context, "-o", "second", code=0)
    assert "1 rule, 1 test and 0 results" in done.out
    assert "test 2: has no input" in done.err


def context_of(path: Path, rule: str, *more: object) -> Path:
    content = {
        "prompt": {"filename": "tag.prompty", "content": "Hi {{text}}"},
        "rules": {"content": rule},
        "tests": {"content": json.dumps([{"ruleid": "1", "testinput": "a"}, *more])},
        "testOutputs": [],
    }
    return write(path, content)


def test_an_import_replaces_a_folder_only_on_request(command: Command) -> None:
    """A folder that holds more than an import is kept as DIR.bak, whose place is not taken.

    Nothing that is damaged replaces it, and a folder is not its own source.
    """
    first = context_of(Path("1.json"), "Be first.")
    second = context_of(Path("2.json"), "Be second.")
    out, bak = Path("out"), Path("out.bak")
    Path("elsewhere").mkdir()
    out.symlink_to(Path("elsewhere"))

    def importing(source: Path, *words: str, code: int = 0) -> str:
        said: str = command("import", source, "-o", out, *words, code=code).err
        return said

    importing(first)
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} == {0o600}
    whole = snapshot(out)
    assert "is not empty; use another folder, or --overwrite" in importing(second, code=2)
    damaged = Path("bad.json.gz")
    damaged.write_bytes(gzip.compress(b"{}" * 9999)[:-30])
    assert "cannot be read" in importing(damaged, "--overwrite", code=2)
    damaged.unlink()
    assert "is the folder that is imported" in importing(out, "--overwrite", code=2)
    assert snapshot(out) == whole

    assert importing(second, "--overwrite") == ""
    assert (out / "rules.txt").read_text() == "Be second.\n"
    assert out.is_symlink()
    assert {path.name for path in Path().iterdir()} == {"1.json", "2.json", "elsewhere", "out"}

    out.unlink()
    Path("elsewhere").rename(out)
    (out / "replies.sqlite").write_text("paid")
    assert importing(first, "--overwrite") == f"the earlier folder is {bak.resolve()}\n"
    assert (bak / "replies.sqlite").read_text() == "paid"
    taken = importing(second, "--overwrite", code=2)
    assert "move it away before you overwrite a folder" in taken
    assert (out / "rules.txt").read_text() == "Be first.\n"


def test_files_of_others_are_not_replaced_by_a_report(command: Command, answered: Path) -> None:
    """A page of the user's own stays; the program's own are written anew.

    With `--format json`, what changed goes to stderr; `html` prints what `report.html` holds.
    """
    done = command("report", answered, "--format", "json", "--before", answered)
    assert json.loads(done.out)["name"] == "shout"
    assert "4 tests in both runs" in done.err
    page = command("report", answered, "--format", "html").out
    assert page == (answered / "report.html").read_text(encoding="utf-8")
    for name in ("README.md", "report.html"):
        command("report", answered, code=0)
        (answered / name).write_text("# My notes\n")
        assert "was not made by this program" in command("report", answered, code=2).err
        assert (answered / name).read_text() == "# My notes\n"
        (answered / name).unlink()


def test_a_metric_file_scores_plain_rag_calls(rag_eval: Command, server: LoopbackServer) -> None:
    """Variables from the call, its metadata or the command line; a missing one is exit 2."""
    metric = Path("shouting.metric.prompty")
    metric.write_text(
        "Score how loud. {{rules}} {{prompt}} {{groundtruth}}\nuser:\n{{output}} {{contexts}}"
    )
    out = Path("evals.jsonl")
    call = {"question": "q", "documents": ["d"], "response": "LOUD", "reference": "r",
            "metadata": {"prompt": "Be loud."}}  # fmt: skip
    calls = write(Path("calls.jsonl"), call, call | {"question": "q2"}, b"broken")
    Path("rules.txt").write_bytes(b"\xef\xbb\xbfRULE-TEXT")
    run = ["run", calls, "-o", out, "--metrics", metric]
    words = [*run, "--judge", "openai:judge", "--base-url", server.base_url]

    for more, why in (
        ([], f"needs rules, which line 1 of {calls} does not provide"),
        (["--metric-var", "nothing=1"], "no metric file has this variable"),
    ):
        wrong = rag_eval(*words, *more, code=2)
        assert (why in wrong.err, out.exists()) == (True, False)
    assert server.requests == []

    words += ["--metric-var", "rules=@rules.txt"]
    rag_eval(*words, "--skip-invalid", "--fail-under", "shouting=0.6", code=0)
    scores = [row.scores["shouting"] for row in read(out)]
    assert [(score.value, score.raw) for score in scores] == [(0.7, 70)] * 2
    asked = server.requests[0]["messages"]
    assert asked[0]["content"].startswith("Score how loud. RULE-TEXT Be loud. r")
    assert asked[1]["content"] == "LOUD [1] d"
    # A judge that only labels cannot be asked, and it is said before the first row.
    assert "asks a model" in rag_eval(*run, "--overwrite", "--metric-var", "rules=x", code=2).err


def test_other_models_results_are_kept(generate: Command, command: Command, out: Path) -> None:
    """The same models' are simply written anew."""
    generate(code=0)
    for model in ("first", "first", "second", "third"):
        done = command("run", out, "--mut", f"openai:{model}")
    aside = sorted(out.glob("test_results.*.json"))
    assert [path.name for path in aside] == ["test_results.1.json", "test_results.2.json"]
    assert {row["model"] for row in json.loads(aside[0].read_text())} == {"openai:first"}
    assert "openai:second: earlier results moved to " in done.err


def test_a_row_copied_by_hand_is_a_test_of_its_own(command: Command, generated: Path) -> None:
    """With other inputs under the same id, each output stays with its own input."""
    rows = json.loads((generated / "tests.json").read_text())
    edited = {**rows[0], "inputs": {"text": "copy"}}
    rows = [edited, *rows, edited | {"inputs": {"text": "another"}}]
    (generated / "tests.json").write_text(json.dumps(rows))
    command("run", generated, "--mut", "openai:x", code=0)
    command("evaluate", generated, "--judge", "openai:judge", code=0)  # reads the outputs again
    outputs = [(row["testinput"], row["output"]) for row in results(generated)]
    assert outputs[:2] == [("copy", "COPY"), ("text 1", "TEXT 1")]
    assert outputs[-1] == ("another", "ANOTHER")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_report_of_many_models_is_whole(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many models stand beside each other as fit; long names are folded, numbers never."""
    monkeypatch.setenv("COLUMNS", str(width))
    models = [f"openai:some-model-with-a-long-name-{n}" for n in range(5)] + ["small", "x" * 90]
    outcomes = [(k, n, "ok" if n < k else "err") for k in range(7) for n in range(7)]
    results = [make_result(o, model=models[k], uid=str(n)) for k, n, o in outcomes]

    print_report(Report("p", results))

    tables = capsys.readouterr().out.split("openai:some-model-with-a-long-name-0: ")[0]
    assert max(map(len, tables.splitlines())) <= width
    assert "…" not in tables
    shares = [cell for line in re.findall("tests compliant  (.*)", tables) for cell in line.split()]
    assert shares == [f"{100 * k / 7:.0f}%" for k in range(7)]


def test_the_authors_words_come_from_the_command_line(
    generate: Command, out: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    """As text or from a file; a later run that contradicts them exits 2 and names the file."""
    Path("words.txt").write_text("Only about form.\n")
    Path("samples.csv").write_text("text\nhello there\n")
    own = [
        "--output-rules-instructions", f"@{tmp_path / 'words.txt'}",
        "--input-spec-instructions", "Any language.", "--test-samples", Path("samples.csv"),
        "--custom-metric", "Score how loud it is.\nuser:\n{{output}}",
    ]  # fmt: skip

    generate(*own, code=0)

    sent = [json.dumps(body) for body in server.requests]
    assert sum("The author of the prompt adds: Only about form." in body for body in sent) == 1
    assert sum("The author of the prompt adds: Any language." in body for body in sent) == 1
    assert sum("hello there" in body for body in sent) >= 2
    assert (out / "custom.metric.prompty").read_text().startswith("Score how loud")
    assert generate(*own).code == 0
    assert generate("--output-rules-instructions", "Only about length.").code == 2


def test_tests_are_exported_and_come_back(command: Command, generated: Path) -> None:
    """Into the folder, to a path or to stdout; what a format cannot hold is on stderr."""
    export, data = ("export", generated, "--to"), Path("new/prompt_tests_shout.json")
    command(*export, "pytest", "-o", "new/", code=0)
    command("import", data, "-o", "back", code=0)
    assert Path("back/loud.metric.prompty").exists()

    command(*export, "openai", code=0)
    assert (generated / "evals.run.json").exists()

    shown = command(*export, "csv", "-o", "-").out
    assert shown.startswith("ruleid,testid,expectedoutput,reasoning,")
    assert "openai has 2 files" in command(*export, "openai", "-o", "-", code=2).err
    table, again = Path("x.csv"), (*export, "csv", "-o", "x.csv")
    table.write_text("mine")
    assert "exists with another content" in command(*again).err
    assert table.read_text() == "mine"
    command(*again, "--overwrite", code=0)
    names = sorted(path.name for path in Path("new").iterdir())
    assert names == ["prompt_tests_shout.json", "test_shout.py"]


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


def test_help_and_page_name_the_formats_of_exports(command: Command) -> None:
    """In one order; the page has a line for each."""
    formats = "openai|csv|pytest|langsmith"
    pages = "".join(path.read_text("utf-8") for path in DOCS.glob("prompt-tests*.md"))
    assert formats in command("export", "--help").out
    assert f"--to {formats}" in pages
    assert [name for name in formats.split("|") if f"| `{name}` | " not in pages] == []


def test_the_code_of_the_pages_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The app in Python, and the metric file."""
    run_python("docs/prompt-tests-models.md")
    assert capsys.readouterr().out.splitlines() == promised_by("docs/prompt-tests-models.md")

    (metric,) = re.findall(
        r"^```text\n(---.*?)^```", text_of("docs/prompt-tests-judging.md"), re.M | re.S
    )
    assert PromptyMetric(parse_prompty(metric, name="tone")).names == ("tone",)


# --- Settings, costs, choices of tests, thresholds and gates


def test_settings_reach_the_models_under_test_only(
    command: Command, folder: Path, server: LoopbackServer
) -> None:
    """The prompt's, replaced by options; the judge has none of them."""
    generated = len(server.requests)
    words = ["--temperature", 0.9, "--param", "top_p=0.5", "--param", "stop=END"]
    command("run", folder, "--mut", "openai:loud", *words, code=0)
    sent = {"temperature": 0.9, "max_tokens": 50, "top_p": 0.5, "stop": "END"}
    assert server.requests[generated].items() >= sent.items()
    assert results(folder)[0]["parameters"] == sent
    before = len(server.requests)
    command("evaluate", folder, "--judge", "openai:strict")
    assert all("top_p" not in body for body in server.requests[before:])
    assert results(folder)[0]["parameters"]["top_p"] == 0.5
    command("report", folder)
    page = (folder / "report.html").read_text()
    assert "openai:loud: temperature=0.9, max_tokens=50, top_p=0.5, stop=&#34;END&#34;" in page

    command("run", folder, "--mut", "openai:loud", "--max-tokens", 9, "--param", "temperature=null")
    last = server.requests[-1]
    assert (last["max_tokens"], "temperature" in last) == (9, False)


def test_costs_are_told(command: Command, folder: Path, server: LoopbackServer) -> None:
    """A dry run sends and writes nothing; known prices give money, others `unknown`."""
    prices = Path("prices.yaml")
    prices.write_text("loud: {input: 1, output: 2}\n")
    before, generated = snapshot(folder), len(server.requests)
    words = ["run", folder, "--mut", "openai:loud", "--mut", "openai:lazy", "--prices", prices]

    dry = command(*words, "--dry-run", code=0)

    assert dry.out == "Nothing was sent or written.\n"
    # Characters of the prompt and of each input, by four.
    loud = "run: at most 4 requests to openai:loud and about 44 prompt tokens, cost $0.0000 without"
    assert loud in dry.err
    assert "4 requests to openai:lazy and about 44 prompt tokens, cost unknown" in dry.err
    assert (snapshot(folder), len(server.requests)) == (before, generated)

    done = command(*words)
    assert "run: spent 8 requests, 8,000 + 800 tokens, cost unknown" in done.err
    only = command("run", folder, "--mut", "openai:loud", "--runs", 2, "--prices", prices)
    assert "run: spent 4 requests, 4,000 + 400 tokens, cost $0.0048" in only.err
    again = command(*words)
    assert "spent" not in again.err

    judges = ["evaluate", folder, "--judge", "openai:strict", "--validity"]
    before = snapshot(folder)
    dry = command(*judges, "--dry-run")
    # Of 8 outputs a verdict and a metric each, and 4 inputs.
    assert "evaluate: at most 20 requests to openai:strict" in dry.err
    assert snapshot(folder) == before
    assert "evaluate: spent 20 requests" in command(*judges).err


def test_all_is_foreseen_by_formula(
    command: Command, put: Path, folder: Path, server: LoopbackServer
) -> None:
    """Before the first request. A dry run needs no folder."""
    before, generated = snapshot(folder), len(server.requests)
    words = ["all", put, "--model", "openai:gen", "--mut", "openai:loud", "--mut", "openai:lazy",
             "--judge", "openai:strict", "--runs", 2, "--dry-run"]  # fmt: skip

    dry = command(*words, "-o", "new", "--rules", 3, code=0)

    assert dry.out == "Nothing was sent or written.\n"
    # Three rules, three contradictions, three tests each, and as many baseline tests.
    assert "generate: at most 36 tests; 7 to 16 requests to openai:gen and about " in dry.err
    assert "run: at most 72 requests to openai:loud and about " in dry.err
    assert "evaluate: at most 288 requests to openai:strict and about " in dry.err
    assert not Path("new").exists()

    there = command(*words, "-o", folder)
    assert "generate: there are 4 tests, no cost" in there.err
    assert "run: at most 8 requests to openai:loud" in there.err

    alone = command("generate", put, "-o", "new", "--model", "openai:g", "--dry-run")
    assert "if the prompt has 10 rules" in alone.out
    assert "prompt tokens, cost unknown. Nothing was sent or written." in alone.out
    assert (snapshot(folder), len(server.requests)) == (before, generated)


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"m": 1}', '{"m": {"input": 1}}', '{"m": {"input": -1, "output": 1}}',
     '{"m": {"input": "1", "output": 1}}'],
)  # fmt: skip
def test_other_files_of_prices_are_refused(command: Command, folder: Path, text: str) -> None:
    """With the option's name."""
    Path("p.json").write_text(text)
    words = ["--mut", "openai:loud", "--dry-run", "--prices", "p.json"]
    assert "--prices" in command("run", folder, *words, code=2).err


def test_some_tests_are_run_and_the_others_results_kept(
    command: Command, judged: Path, server: LoopbackServer
) -> None:
    """By rule, scenario, direction and validity; nothing that was there is lost."""
    whole = (judged / "test_results.json").read_bytes()
    done = command(
        "run", judged, "--mut", "openai:loud", "--direction", "inverse", "--scenario", "day", code=0
    )
    assert [row["testuid"] for row in results(judged)] == ["u3"]
    assert (judged / "test_results.1.json").read_bytes() == whole
    assert "other tests: earlier results moved to" in done.err
    assert "spent" not in done.err  # recorded all the same

    (judged / "test_results.json").unlink()  # inputs are judged before the tests are run, too
    command("evaluate", judged, "--judge", "openai:strict", "--validity")
    assert not (judged / "test_results.json").exists()
    command("run", judged, "--mut", "openai:loud", "--only-valid", "--rule", 1, "--rule", 2)
    assert [row["testuid"] for row in results(judged)] == ["u2"]

    for check in (["--agreement", "openai:loud"], ["--validity"]):  # neither erases the other
        command("evaluate", judged, "--judge", "openai:strict", *check)
        rows = json.loads((judged / "test_evals.json").read_text())
        assert {"validity", "coverage"} <= set(rows[0])

    tests = json.loads((judged / "tests.json").read_text())
    tests = [row | {"inputs": {"text": "another"}} for row in tests]
    (judged / "tests.json").write_text(json.dumps(tests))  # the verdicts are of other inputs now
    command("run", judged, "--mut", "openai:loud", "--only-valid", code=2)


def test_reports_and_thresholds_of_some_tests(command: Command, judged: Path) -> None:
    """Of compliance and of any metric; a majority of judges; the free check is a metric too."""
    report = ["report", judged]
    for gate, words, code, said in (
        ("compliance=0.5", [], 1, "FAILED openai:lazy: "),
        ("loud=70", [], 0, ""),
        ("loud=70.5", ["--fail-under", "0"], 1, "lazy: the mean of loud is 70.0000, below 70.5"),
        ("output schema=1", [], 1, "openai:loud: the mean of output schema is 0.0000, below 1"),
        ("nothing=1", [], 2, "no result has this metric"),
        ("2", [], 2, "use a number from 0 to 1"),
        ("0.5", ["--rule", 2], 1, "FAILED openai:lazy: "),
    ):
        assert said in command(*report, "--fail-under", gate, *words, code=code).err
    # The second judge accepts the lazy answer to rule 2, so that there is no majority.
    both = command(*report, "--rule", 2, "--majority")
    assert "Prompt tests of shout (rule 2)" in (judged / "README.md").read_text()
    assert "openai:lazy: 0 outputs comply, 0 do not, 1 without a verdict" in both.out
    agree = "openai:strict and openai:mild: same verdict on 88% of 8 outputs, Cohen's kappa 0.75"
    assert agree in command(*report).out
    [judges] = json.loads(command(*report, "--format", "json").out)["judges"]
    assert (judges["n"], judges["kappa"]) == (8, pytest.approx(0.75))
    assert "Agreement of judges" in (judged / "README.md").read_text()
    assert "mean over judges" in (judged / "report.html").read_text()


def test_a_regression_fails_a_build(command: Command, judged: Path, put: Path) -> None:
    """By the interval of the difference; too few tests cannot tell, which fails if wanted."""
    later = Path("later")
    command("import", judged, "-o", later, "--prompt", put, code=0)
    many = [
        {**row, "testuid": f"{row['testuid']}-{n}", "testinput": f"{row['testinput']} {n}"}
        for row in results(judged) if row["model"] == "openai:loud" for n in range(10)
    ]  # fmt: skip
    worse = [{**row, "compliance": "err"} for row in many]  # as one edits a verdict by hand
    for path, content in ((judged, many), (later, worse)):
        (path / "tests.json").unlink()
        (path / "test_results.json").write_text(json.dumps(content))
    report = ["report", later, "--before", judged]

    compared = command(*report)
    assert "40 tests in both runs, 40 broken, 0 fixed" in compared.out
    assert "broken: 'text 1 0'" in compared.err
    gate, few = "--fail-on-regression", ["--rule", 1, "--fail-on-regression", "compliance=0.99"]
    for words, code, said in (
        ([gate, "compliance=0.1"], 1, "FAILED worse: compliance (openai:loud) "),
        ([gate, "loud=0.1"], 0, "fine: loud (openai:loud) "),
        (few, 0, "cannot tell: compliance (openai:loud)"),
        ([*few, "--fail-on-unclear"], 1, "FAILED cannot tell: "),
        ([gate, "nothing=0.1"], 2, "no model has it in both runs"),
        (["--fail-on-unclear"], 2, "needs a score"),
    ):
        done = command(*report, *words)
        assert (done.code, said in done.err) == (code, True)
    assert "--before" in command("report", later, gate, "compliance=0.1", code=2).err
    other = json.dumps([{**row, "model": "new"} for row in worse])
    (later / "test_results.json").write_text(other)
    assert f"{judged} has no model of this run" in command(*report, code=0).err
