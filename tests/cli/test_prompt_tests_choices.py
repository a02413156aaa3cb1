"""`rag-eval prompt-tests`: settings, forecasts, choices of tests, thresholds and gates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ferries import Command
from loopback import Behaviour, Body, LoopbackServer, Reply

PROMPT = """---
name: Shout
model: {parameters: {temperature: 0.3, max_tokens: 50}}
outputs: {text: {type: string}, loud: {type: boolean}}
---
system:
Repeat the text in capitals.
user:
{{text}}
"""


def respond(body: Body) -> Reply:
    """Answer as a model under test, or as a judge who dislikes small letters."""
    system, user = (message["content"] for message in body["messages"][:2])
    if "rules that were set" in system:
        output = user.split("<<<output ")[1].split("\n")[1]
        kind = "strict" if body["model"] == "strict" else "mild"
        words = "OK" if output.isupper() or (kind == "mild" and "2" in output) else "ERR"
    elif "accepts. You are given" in system:
        words = "ERR" if "text 1" in user else "OK"
    elif "Score how loud" in system:
        words = "Score: 70"
    else:
        words = user if body["model"] == "lazy" else user.upper()
    return Reply.json(
        {"id": "1", "object": "chat.completion", "created": 1, "model": body["model"],
         "choices": [{"index": 0, "message": {"role": "assistant", "content": words},
                      "finish_reason": "stop"}],
         "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}}
    )  # fmt: skip


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(Behaviour(), respond) as running:
        yield running


@pytest.fixture
def put(tmp_path: Path) -> Path:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "loud.metric.prompty").write_text("Score how loud it is.\nuser:\n{{output}}")
    (folder / "shout.prompty").write_text(PROMPT)
    return folder / "shout.prompty"


@pytest.fixture
def folder(put: Path, tmp_path: Path) -> Path:
    """A folder with four tests of two rules and their contradictions."""
    out = tmp_path / "out"
    out.mkdir()
    files = {
        "prompt.json": {"schema": 2, "file": "shout.prompty", "source": str(put)},
        "tests.json": [
            {"ruleid": str(n), "testuid": f"u{n}", "text": f"text {n}", "testinput": f"text {n}",
             "inverse": n > 2, "rule": f"Rule {n}.", "scenario": "day" if n % 2 else "night"}
            for n in range(1, 5)
        ],
    }  # fmt: skip
    for name, content in files.items():
        (out / name).write_text(json.dumps(content))
    for name, text in {
        "shout.prompty": PROMPT, "intent.txt": "Shouts.", "input_spec.txt": "Any text.",
        "rules.txt": "Rule 1.\nRule 2.", "inverse_rules.txt": "Rule 3.\nRule 4.",
    }.items():  # fmt: skip
        (out / name).write_text(text)
    return out


Asked = Callable[..., Any]


@pytest.fixture
def asked(rag_eval: Command, server: LoopbackServer) -> Asked:
    def ask(*words: object) -> Any:
        return rag_eval("prompt-tests", *words, "--base-url", server.base_url)

    return ask


@pytest.fixture
def judged(asked: Asked, folder: Path) -> Path:
    """The folder with outputs of two models, judged by two judges."""
    assert asked("run", folder, "--mut", "openai:loud", "--mut", "openai:lazy").code == 0
    done = asked("evaluate", folder, "--judge", "openai:strict", "--judge", "openai:mild")
    assert done.code == 0, done.err
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = json.loads((folder / "test_results.json").read_text())
    return content


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_settings_reach_the_models_under_test_only(
    rag_eval: Command, asked: Asked, folder: Path, server: LoopbackServer
) -> None:
    """The prompt's, replaced by options; the judge has none of them."""
    done = asked("run", folder, "--mut", "openai:loud", "--temperature", 0.9, "--param", "top_p=0.5",
                 "--param", "stop=END")  # fmt: skip
    assert done.code == 0, done.err
    body = server.requests[0]
    assert [body[name] for name in ("temperature", "max_tokens", "top_p", "stop")] == [
        0.9, 50, 0.5, "END",
    ]  # fmt: skip
    assert rows(folder)[0]["parameters"] == {
        "temperature": 0.9, "max_tokens": 50, "top_p": 0.5, "stop": "END",
    }  # fmt: skip
    before = len(server.requests)
    asked("evaluate", folder, "--judge", "openai:strict")
    assert all("top_p" not in body for body in server.requests[before:])
    assert rows(folder)[0]["parameters"]["top_p"] == 0.5
    rag_eval("prompt-tests", "report", folder)
    page = (folder / "report.html").read_text()
    assert "openai:loud: temperature=0.9, max_tokens=50, top_p=0.5, stop=&#34;END&#34;" in page

    asked("run", folder, "--mut", "openai:loud", "--max-tokens", 9, "--param", "temperature=null")
    last = server.requests[-1]
    assert (last["max_tokens"], "temperature" in last) == (9, False)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--param", "top_p"], "use NAME=VALUE"),
        (["--param", "top_p=2"], "should be less than or equal to 1"),
        (["--param", "a=1", "--param", "a=2"], "a has a value already"),
        (["--param", "temperature=1", "--temperature", "1"], "has a value already"),
        (["--param", "max_tokens=1", "--max-tokens", "1"], "give one"),
        (["--param", "model=other"], "is not a setting"),
        (["--direction", "up"], "use positive or negative"),
        (["--rule", "9"], "none of the tests"),
        (["--only-valid"], "evaluate --validity"),
        (["--prices", "nowhere.json"], "nowhere.json"),
    ],
)
def test_mistakes_are_found_before_any_request(
    asked: Asked, folder: Path, server: LoopbackServer, words: list[str], why: str
) -> None:
    """With exit code 2."""
    done = asked("run", folder, "--mut", "openai:loud", *words)
    assert (done.code, len(server.requests)) == (2, 0)
    assert why in done.err


def test_costs_are_said_before_and_after(
    asked: Asked, folder: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    """A dry run sends and writes nothing; known prices give money, others `unknown`."""
    prices = tmp_path / "prices.yaml"
    prices.write_text("loud: {input: 1, output: 2}\n")
    before = contents(folder)
    words = ["run", folder, "--mut", "openai:loud", "--mut", "openai:lazy", "--prices", prices]

    dry = asked(*words, "--dry-run")

    assert (dry.code, dry.out) == (0, "Nothing was sent or written.\n")
    # Characters of the prompt and of each input, by four.
    loud = "run: at most 4 requests to openai:loud and about 44 prompt tokens, cost $0.0000 without"
    assert loud in dry.err
    assert "4 requests to openai:lazy and about 44 prompt tokens, cost unknown" in dry.err
    assert (contents(folder), len(server.requests)) == (before, 0)

    done = asked(*words)
    assert "run: spent 8 requests, 8,000 + 800 tokens, cost unknown" in done.err
    only = asked("run", folder, "--mut", "openai:loud", "--runs", 2, "--prices", prices)
    assert "run: spent 4 requests, 4,000 + 400 tokens, cost $0.0048" in only.err
    again = asked(*words)
    assert "spent" not in again.err

    judges = ["evaluate", folder, "--judge", "openai:strict", "--validity"]
    before = contents(folder)
    dry = asked(*judges, "--dry-run")
    # Of 8 outputs a verdict and a metric each, and 4 inputs.
    assert "evaluate: at most 20 requests to openai:strict" in dry.err
    assert contents(folder) == before
    assert "evaluate: spent 20 requests" in asked(*judges).err


def test_all_is_foreseen_by_formula(
    asked: Asked, put: Path, folder: Path, tmp_path: Path, server: LoopbackServer
) -> None:
    """Before the first request. A dry run needs no folder."""
    words = ["all", put, "--model", "openai:gen", "--mut", "openai:loud", "--mut", "openai:lazy",
             "--judge", "openai:strict", "--runs", 2, "--dry-run"]  # fmt: skip

    dry = asked(*words, "-o", tmp_path / "new", "--rules", 3)

    assert (dry.code, dry.out) == (0, "Nothing was sent or written.\n")
    # Three rules, three contradictions, three tests each, and as many baseline tests.
    assert "generate: at most 36 tests; 7 to 16 requests to openai:gen and about " in dry.err
    assert "run: at most 72 requests to openai:loud and about " in dry.err
    assert "evaluate: at most 288 requests to openai:strict and about " in dry.err
    assert not (tmp_path / "new").exists()
    assert not server.requests

    before = contents(folder)
    there = asked(*words, "-o", folder)
    assert "generate: there are 4 tests, no cost" in there.err
    assert "run: at most 8 requests to openai:loud" in there.err
    assert contents(folder) == before

    generate = asked("generate", put, "-o", tmp_path / "new", "--model", "openai:g", "--dry-run")
    assert "if the prompt has 10 rules" in generate.out
    assert "prompt tokens, cost unknown. Nothing was sent or written." in generate.out
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"m": 1}', '{"m": {"input": 1}}', '{"m": {"input": -1, "output": 1}}',
     '{"m": {"input": "1", "output": 1}}'],
)  # fmt: skip
def test_other_files_of_prices_are_refused(
    asked: Asked, folder: Path, tmp_path: Path, text: str
) -> None:
    """With the option's name; so is a package that is not installed."""
    (tmp_path / "p.json").write_text(text)
    words = ["run", folder, "--mut", "openai:loud", "--dry-run", "--prices"]
    done = asked(*words, tmp_path / "p.json")
    assert (done.code, "--prices" in done.err) == (2, True)


def test_some_tests_are_run_and_the_others_results_kept(
    asked: Asked, judged: Path, server: LoopbackServer
) -> None:
    """By rule, scenario, direction and validity; nothing that was there is lost."""
    whole = (judged / "test_results.json").read_bytes()
    done = asked(
        "run", judged, "--mut", "openai:loud", "--direction", "inverse", "--scenario", "day"
    )
    assert done.code == 0, done.err
    assert [row["testuid"] for row in rows(judged)] == ["u3"]
    assert (judged / "test_results.1.json").read_bytes() == whole
    assert "other tests: earlier results moved to" in done.err
    assert "spent" not in done.err  # recorded all the same

    asked("run", judged, "--mut", "openai:loud")
    asked("evaluate", judged, "--judge", "openai:strict", "--validity")
    asked("run", judged, "--mut", "openai:loud", "--only-valid", "--rule", 1, "--rule", 2)
    assert [row["testuid"] for row in rows(judged)] == ["u2"]


def test_inputs_are_judged_before_the_tests_are_run(asked: Asked, folder: Path) -> None:
    """So that invalid ones need not be run."""
    done = asked("evaluate", folder, "--judge", "openai:strict", "--validity")
    assert done.code == 0, done.err
    assert not (folder / "test_results.json").exists()
    asked("run", folder, "--mut", "openai:loud", "--only-valid")
    assert [row["testuid"] for row in rows(folder)] == ["u2", "u3", "u4"]


def test_reports_and_thresholds_of_some_tests(rag_eval: Command, judged: Path) -> None:
    """Of compliance and of any metric; a majority of judges; the free check is a metric too."""
    report = ["prompt-tests", "report", judged]
    assert rag_eval(*report, "--fail-under", "compliance=0.5").code == 1
    assert rag_eval(*report, "--fail-under", "loud=70").code == 0
    failed = rag_eval(*report, "--fail-under", "loud=70.5", "--fail-under", "0")
    assert failed.code == 1
    assert "FAILED openai:lazy: the mean of loud is 70.0000, below 70.5" in failed.err
    schema = rag_eval(*report, "--fail-under", "output schema=1")
    assert "FAILED openai:loud: the mean of output schema is 0.0000, below 1" in schema.err
    assert rag_eval(*report, "--fail-under", "nothing=1").code == 2
    assert rag_eval(*report, "--fail-under", "2").code == 2

    some = rag_eval(*report, "--rule", 2, "--fail-under", 0.5)
    assert (some.code, "openai:lazy: 0 outputs comply, 1 does not" in some.out) == (1, True)
    # The second judge accepts the lazy answer to rule 2, so that there is no majority.
    both = rag_eval(*report, "--rule", 2, "--majority")
    assert "Prompt tests of shout (rule 2)" in (judged / "README.md").read_text()
    assert "openai:lazy: 0 outputs comply, 0 do not, 1 without a verdict" in both.out
    notices = rag_eval(*report).out
    assert (
        "openai:strict and openai:mild: same verdict on 88% of 8 outputs, Cohen's kappa 0.75"
        in notices
    )
    content = json.loads(rag_eval(*report, "--format", "json").out)
    [judges] = content["judges"]
    assert (judges["n"], judges["kappa"]) == (8, pytest.approx(0.75))
    assert "Agreement of judges" in (judged / "README.md").read_text()
    assert "mean over judges" in (judged / "report.html").read_text()


def test_a_regression_fails_a_build(
    rag_eval: Command, judged: Path, tmp_path: Path, put: Path
) -> None:
    """By the interval of the difference; too few tests cannot tell, which fails if wanted."""
    later = tmp_path / "later"
    done = rag_eval("prompt-tests", "import", judged, "-o", later, "--prompt", put)
    assert done.code == 0, done.err
    many = [
        {**row, "testuid": f"{row['testuid']}-{n}", "testinput": f"{row['testinput']} {n}"}
        for row in rows(judged) if row["model"] == "openai:loud" for n in range(10)
    ]  # fmt: skip
    worse = [
        {**row, "compliance": "err", "judges": [{**row["judges"][0], "compliance": "err"}]}
        for row in many
    ]
    for path, content in ((judged, many), (later, worse)):
        (path / "tests.json").unlink()
        (path / "test_results.json").write_text(json.dumps(content))
    report = ["prompt-tests", "report", later, "--before", judged]

    gate = rag_eval(*report, "--fail-on-regression", "compliance=0.1")
    assert gate.code == 1
    assert "FAILED worse: compliance (openai:loud) " in gate.err
    fine = rag_eval(*report, "--fail-on-regression", "loud=0.1")
    assert fine.code == 0
    assert "fine: loud (openai:loud) " in fine.err
    few = [*report, "--rule", 1, "--fail-on-regression", "compliance=0.99"]
    notices = rag_eval(*few)
    assert (notices.code, "cannot tell: compliance (openai:loud)" in notices.err) == (0, True)
    assert rag_eval(*few, "--fail-on-unclear").code == 1
    assert rag_eval(*report, "--fail-on-regression", "nothing=0.1").code == 2
    assert rag_eval(*report, "--fail-on-unclear").code == 2
    alone = rag_eval("prompt-tests", "report", later, "--fail-on-regression", "compliance=0.1")
    assert (alone.code, "--before" in alone.err) == (2, True)
