"""The pytest plugin, in runs of pytest of its own.

No plugin is loaded by its entry point in these runs, so that they are the same whether or not the
environment has one of this plugin; `test_the_entry_point` has one of its own.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from pytest_runs import PLUGIN, ROOT, alone

from rag_eval_integrations import Evaluation

pytest_plugins = "pytester"

CALLS = """
import pytest
from rag_eval_integrations import RagCall
from rag_eval_integrations.testing import assert_scores

DOCUMENTS = ["The ferry leaves at nine. It carries forty passengers."]
GOOD = {"question": "When does the ferry leave?", "documents": DOCUMENTS,
        "response": "The ferry leaves at nine."}
BAD = GOOD | {"response": "The ferry leaves at nine. It is painted green."}
"""


@pytest.fixture(autouse=True)
def _alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    alone(monkeypatch, pytester.path)


def run(pytester: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    """Run a test file with the plugin, in this process."""
    pytester.makepyfile(test_app=CALLS + code)
    return pytester.runpytest_inprocess("-p", PLUGIN, *options)


def named_tests(path: Path) -> list[Any]:
    """The tests that the lines of a report are of."""
    lines = path.read_text().splitlines()
    return [Evaluation.model_validate_json(line).metadata["test"] for line in lines]


def summary(result: pytest.RunResult) -> list[str]:
    """The lines of the section at the end."""
    text = result.stdout.str().split("RAG evaluation ===")[1]
    return re.split(r"^=", text.split("\n", 1)[1], flags=re.MULTILINE)[0].strip().splitlines()


# --- The fixture


def test_the_fixture_evaluates(pytester: pytest.Pytester) -> None:
    """A call or its fields, offline, as the target of a capture; recorded once if made elsewhere.

    After the end of its test it refuses, since what came then would be in no report.
    """
    code = """
from rag_eval_integrations import RagEvaluator, record_call

def test_fields(rag_eval):
    one = rag_eval.evaluate_sync(**GOOD)
    assert one.id == "test_app.py::test_fields" and one.judge.name == "embedded"
    assert rag_eval.evaluate_sync(**GOOD).id == "test_app.py::test_fields#2"
    assert "test" not in one.metadata
    rag_eval.assert_scores(adherence=1.0)

def test_a_call(rag_eval):
    one = rag_eval.evaluate_sync(RagCall(id="mine", **GOOD), only=["adherence"])
    assert one.id == "mine" and rag_eval.evaluations == (one,)

@pytest.mark.rag_eval(adherence=1.0)
def test_captured(rag_eval):
    record_call(rag_eval.evaluate_sync, **GOOD)
    assert len(rag_eval.evaluations) == 1

def test_made_elsewhere(rag_eval):
    one = RagEvaluator().evaluate_sync(RagCall(**BAD))
    rag_eval.record(one, one)
    rag_eval.record(one)
    assert rag_eval.evaluations == (one,)
    with pytest.raises(AssertionError, match="painted green"):
        rag_eval.assert_scores(adherence=1.0)

@pytest.mark.parametrize(("args", "fields"), [((), {}), ((RagCall(**GOOD),), GOOD), (("x",), {})])
def test_mistakes(rag_eval, args, fields):
    with pytest.raises(ValueError, match="`call`"):
        rag_eval.evaluate_sync(*args, **fields)
    with pytest.raises(ValueError, match="is not an Evaluation; write record"):
        rag_eval.record([])

kept = []
def test_keeps(rag_eval): kept.append(rag_eval)
def test_too_late():
    with pytest.raises(ValueError, match="after the end of its test test_app.py::test_keeps"):
        kept[0].evaluate_sync(**GOOD)
"""
    run(pytester, code).assert_outcomes(passed=9)


def test_async_tests(pytester: pytest.Pytester) -> None:
    """`await rag_eval.evaluate` on the test's loop, marked, and concurrently.

    Each evaluation is numbered when it is asked for: equal ids could not be compared with another
    run's.
    """
    code = """
import asyncio
from rag_eval_integrations.judges import EmbeddedJudge

class Slow(EmbeddedJudge):
    async def label(self, call, **options):
        await asyncio.sleep(0)
        return await super().label(call, **options)

@pytest.fixture(scope="session")
def rag_eval_judge(): return Slow()

@pytest.mark.rag_eval(adherence=1.0)
@pytest.mark.parametrize(("call", "numbers"), [(GOOD, ["", "#2", "#3"]), (BAD, [""])])
async def test_async(rag_eval, request, call, numbers):
    await asyncio.gather(*(rag_eval.evaluate(**call) for _ in numbers))
    ids = sorted(evaluation.id for evaluation in rag_eval.evaluations)
    assert ids == [request.node.nodeid + number for number in numbers]
"""
    options = "-p pytest_asyncio.plugin -o asyncio_mode=auto"
    scope = "asyncio_default_fixture_loop_scope=function"
    result = run(pytester, code, *options.split(), "-o", scope)
    result.assert_outcomes(passed=1, failed=1)
    assert summary(result)[-1] == "4 evaluations in 2 tests; 1 test failed by scores"
    result.stdout.fnmatch_lines(["*Failed: adherence 0.00 < 1*"])


# --- The judge


JUDGES = """
from rag_eval_integrations.testing import ScriptedModel, labels_reply
model = ScriptedModel(lambda _: labels_reply(["0a", "0b"], ["a"]), name="mine")
"""


@pytest.mark.parametrize(
    ("options", "judge"),
    [
        (("-o", "rag_eval_judge=own_judges:model"), "mine"),
        (("--rag-eval-judge=cascade:embedded,own_judges:model",), "embedded"),
        (("-o", "rag_eval_judge=no:such", "--rag-eval-judge=own_judges:model"), "mine"),
    ],
)
def test_the_judge_is_named(
    pytester: pytest.Pytester, options: tuple[str, ...], judge: str
) -> None:
    """As for `rag-eval run --judge`; the option wins over the ini value."""
    pytester.makepyfile(own_judges=JUDGES)
    code = f"""
def test_judge(rag_eval):
    assert rag_eval.evaluate_sync(**GOOD).judge.name == {judge!r}
"""
    run(pytester, code, "--strict-config", *options).assert_outcomes(passed=1)


def test_a_judge_that_does_not_exist_is_named(pytester: pytest.Pytester) -> None:
    """By option or ini, without a traceback; tests that ask for no judge pass."""
    code = """
def test_judge(rag_eval): rag_eval.evaluate_sync(**GOOD)
def test_other(): pass
"""
    result = run(pytester, code, "--rag-eval-judge=gpt")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["`--rag-eval-judge` = 'gpt': no such judge; did you mean 'openai:gpt'[?] Else use*"]
    )
    result.stdout.no_fnmatch_line("During handling of the above exception*")  # told once
    result = run(pytester, code, "-o", "rag_eval_judge=openai:x")
    result.stdout.fnmatch_lines(["*OPENAI_API_KEY*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_evaluator_can_be_overridden(pytester: pytest.Pytester) -> None:
    """With the judge of the option and metrics of one's own."""
    code = """
from rag_eval_integrations import RagEvaluator, Trace

@pytest.fixture(scope="session")
def rag_evaluator(rag_eval_judge):
    return RagEvaluator(rag_eval_judge, [Trace(thresholds={"adherence": 1.0})])

@pytest.mark.rag_eval
@pytest.mark.parametrize("call", [GOOD, BAD])
def test_call(rag_eval, call): rag_eval.evaluate_sync(**call)
"""
    run(pytester, code).assert_outcomes(passed=1, failed=1)


# --- The marker


MARKED = """
pytestmark = pytest.mark.rag_eval(adherence=1.0)

def test_good(rag_eval): rag_eval.evaluate_sync(**GOOD)
def test_bad(rag_eval):
    rag_eval.evaluate_sync(**GOOD)
    rag_eval.evaluate_sync(**BAD)
def test_nothing(): pass
def test_body(rag_eval):
    rag_eval.evaluate_sync(**BAD)
    assert "the body" == "fails"
def test_skipped(): pytest.skip()
@pytest.mark.xfail(strict=True)
def test_expected(rag_eval): rag_eval.evaluate_sync(**BAD)
@pytest.mark.rag_eval({"supported_fraction": 0.5}, adherence=0.0)
def test_closest(rag_eval): rag_eval.evaluate_sync(**BAD)
def test_unscored(rag_eval): rag_eval.evaluate_sync(**GOOD | {"documents": []})
@pytest.mark.rag_eval(allow_unscored=True)
def test_allowed(rag_eval): rag_eval.evaluate_sync(**GOOD | {"documents": []})
@pytest.mark.rag_eval(adherence=7)
def test_wrong(rag_eval): raise SystemExit("the judge is asked in vain")
@pytest.mark.rag_eval(adherance=1.0)
def test_unknown(rag_eval): rag_eval.evaluate_sync(**GOOD)
@pytest.fixture
def answered(rag_eval): assert_scores(rag_eval.evaluate_sync(**BAD), adherence=1.0)
def test_broken(answered): pass
"""


def test_the_marker_checks_every_evaluation(pytester: pytest.Pytester) -> None:
    """In the call phase: failures, not errors; the body's own failure comes first.

    A fixture that fails reports what it evaluated: there is no body then, whose report could.
    """
    result = run(pytester, MARKED, "--strict-markers", "-rA")
    result.assert_outcomes(passed=3, failed=6, skipped=1, xfailed=1, errors=1)

    text = result.stdout.str()
    line = r"^(?:FAILED|PASSED) test_app.py::test_(\w+)(?: - )?(.*)"
    outcomes = dict(re.findall(line, text, re.M))
    assert outcomes == {
        "good": "",
        "closest": "",
        "allowed": "",
        "bad": "Failed: 1 of 2 evaluations fail: adherence in 1",
        "nothing": "Failed: marker rag_eval: nothing was evaluated in this test; use the fixture `rag_eval`: rag_eval.evaluate_sync(call), or rag_eval.record(evaluation) for one made elsewhere",
        "body": "AssertionError: assert 'the body' == 'fails'",
        "unscored": "Failed: adherence is unscored (no_context)",
        "wrong": "Failed: marker rag_eval: `adherence` = 7: a minimum is a number from 0 to 1",
        "unknown": "Failed: marker rag_eval: `minimums` = 'adherance': is not a score of the evaluation: "
        "did you mean 'adherence'?",
    }
    result.stdout.fnmatch_lines(["    not supported: b “It is painted green.”*"])
    result.stdout.no_fnmatch_line("*During handling*")
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert summary(result)[-1] == "10 evaluations in 9 tests; 3 tests failed by scores"


def test_unittest(pytester: pytest.Pytester) -> None:
    """`TestCase` takes the fixture by an autouse fixture of its own, and is marked as a class."""
    code = """
import unittest

@pytest.mark.rag_eval(adherence=1.0)
class TestApp(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _with(self, rag_eval):
        self.rag_eval = rag_eval
    def test_good(self): self.rag_eval.evaluate_sync(**GOOD)
    def test_bad(self): self.rag_eval.evaluate_sync(**BAD)
    def test_body(self): self.fail("the body")
    def test_skipped(self): self.skipTest("not now")
    def test_asserted(self):
        assert_scores(self.rag_eval.evaluate_sync(**BAD), adherence=1.0)
"""
    result = run(pytester, code, "-rf")
    result.assert_outcomes(passed=1, failed=3, skipped=1)
    result.stdout.fnmatch_lines(["FAILED *::TestApp::test_body - AssertionError: the body"])
    assert summary(result)[-1] == "3 evaluations in 3 tests; 2 tests failed by scores"


# --- Reports


BOTH_OUTCOMES = """
def test_good(rag_eval):
    rag_eval.evaluate_sync(**GOOD)
    rag_eval.evaluate_sync(**GOOD | {"documents": []})

def test_bad(rag_eval):
    assert_scores(rag_eval.evaluate_sync(**BAD), adherence=1.0)

@pytest.fixture
def around(rag_eval):
    rag_eval.evaluate_sync(**GOOD)
    yield
    rag_eval.evaluate_sync(**GOOD)

def test_around(around): pass
"""


def test_the_report_holds_all_evaluations(pytester: pytest.Pytester) -> None:
    """Those of setup and teardown too; each names its test; the file of a run before is replaced.

    A path that ends in `.html` is that of a page, as `rag-eval report` writes it.
    """
    for _ in range(2):
        result = run(pytester, BOTH_OUTCOMES, "--rag-eval-report=evals.jsonl")
    result.assert_outcomes(passed=2, failed=1)
    path = pytester.path / "evals.jsonl"

    assert summary(result) == [
        "context_relevance    0.50  4/5 scored (no_context 1)",
        "context_utilization  1.00  4/5 scored (no_context 1)",
        "completeness         1.00  4/5 scored (no_context 1)",
        "adherence            0.75  4/5 scored (no_context 1)",
        "supported_fraction   0.88  4/5 scored (no_context 1)",
        "trace_average        0.81  4/5 scored (no_context 1)",
        "5 evaluations in 3 tests; 1 test failed by scores",
        f"report: {path}",
    ]
    names = ["good", "good", "bad", "around", "around"]
    assert named_tests(path) == [f"test_app.py::test_{name}" for name in names]
    left = {file.name for file in pytester.path.iterdir()} - {"__pycache__", ".pytest_cache"}
    assert left == {"evals.jsonl", "test_app.py"}

    page = pytester.path / "report.html"
    result = run(pytester, BOTH_OUTCOMES, f"--rag-eval-report={page.name}")
    assert summary(result)[-1] == f"report: {page}"
    assert "The ferry leaves at nine." in page.read_text()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nowhere/evals.jsonl", "the folder */nowhere does not exist"),
        ("folder.jsonl", "is a folder; use a regular file"),
        ("evals.xlsx", "should end in .html or .jsonl"),
        ("notes.jsonl", "was not made by this program"),
        ("notes.html", "was not made by this program"),
        ("/proc/evals.jsonl", "/proc/evals.jsonl: "),
    ],
)
def test_a_path_that_cannot_be_written_is_reported_at_once(
    pytester: pytest.Pytester, path: str, words: str
) -> None:
    """A usage error: no test runs, and nothing is left."""
    (pytester.path / "folder.jsonl").mkdir()
    notes = [pytester.path / name for name in ("notes.html", "notes.jsonl")]
    for note in notes:
        note.write_text("mine\n")
    result = run(pytester, BOTH_OUTCOMES, f"--rag-eval-report={path}")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --rag-eval-report: *{words}*"])
    assert {note.read_text() for note in notes} == {"mine\n"}
    left = sorted(file.name for file in pytester.path.iterdir())
    assert left == ["folder.jsonl", "notes.html", "notes.jsonl", "test_app.py"]


def test_a_report_that_fails_at_the_end_fails_the_run(pytester: pytest.Pytester) -> None:
    """Its folder is gone; the tests' own results are shown all the same."""
    (pytester.path / "out").mkdir()
    code = """
def test_good(rag_eval):
    rag_eval.evaluate_sync(**GOOD)
    __import__("shutil").rmtree("out")
"""
    result = run(pytester, code, "--rag-eval-report=out/evals.jsonl")

    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert summary(result)[-1].startswith("the report was not written: ")
    assert summary(result)[-1].endswith("/out does not exist")


def test_a_report_without_evaluations_is_not_written(pytester: pytest.Pytester) -> None:
    """And that is said: the file of an earlier run would be taken for this one's."""
    result = run(pytester, "def test_plain(): pass", "--rag-eval-report=evals.jsonl")

    assert result.ret == 0
    path = pytester.path / "evals.jsonl"
    assert summary(result) == [f"no test evaluated anything: {path} was not written"]
    assert not path.exists()
    collected = run(pytester, BOTH_OUTCOMES, "--rag-eval-report=evals.jsonl", "--collect-only")
    collected.stdout.no_fnmatch_line("*RAG evaluation*")  # nobody expects any


def test_files_that_ci_reads(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Properties for JUnit: short scalars, of several evaluations numbered, of twenty at most.

    A summary for GitHub is appended; what cannot be written is one line, and fails nothing.
    """
    path = pytester.path / "summary.md"
    path.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    many = "\ndef test_many(rag_eval):\n    for _ in range(22): rag_eval.evaluate_sync(**GOOD)\n"
    result = run(pytester, BOTH_OUTCOMES + many, "--junitxml=junit.xml")
    properties = {
        case.get("name"): [(p.get("name"), p.get("value")) for p in case.iter("property")]
        for case in ElementTree.parse(pytester.path / "junit.xml").iter("testcase")
    }

    assert result.ret == 1
    assert ("rag_eval.supported_fraction", "0.5") in properties["test_bad"]
    assert ("rag_eval.adherence", "1") in properties["test_good"]
    assert ("rag_eval[2].adherence", "unscored: no_context") in properties["test_good"]
    assert (len(properties["test_around"]), len(properties["test_many"])) == (12, 120)
    lines = path.read_text().splitlines()
    counts = "27 evaluations in 4 tests; 1 test failed by scores."
    assert lines[:6] == ["before", "", "### RAG evaluation", "", counts, ""]
    assert "| adherence | 0.96 | 26/27 | `no_context 1` |" in lines
    assert lines[-1].startswith("| `test_app.py::test_bad` | `adherence 0.00 < 1`")

    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path))
    result = run(pytester, "def test_good(rag_eval): rag_eval.evaluate_sync(**GOOD)")
    assert result.ret == 0
    assert summary(result)[-1].startswith("no summary for GitHub: ")


@pytest.mark.slow
def test_xdist(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers, one of which crashes: what was evaluated before is in the reports."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    crash = """
def test_before(rag_eval): rag_eval.evaluate_sync(**GOOD)
def test_crash(rag_eval):
    rag_eval.evaluate_sync(**GOOD)
    __import__("os")._exit(1)
"""
    pytester.makepyfile(test_app=CALLS + BOTH_OUTCOMES, test_crash=CALLS + crash)
    files = ("--rag-eval-report=evals.jsonl", "--junitxml=junit.xml")
    workers = ("-p", PLUGIN, "-p", "xdist", "-n2", "--max-worker-restart=1")
    result = pytester.runpytest_subprocess(*workers, *files)

    result.assert_outcomes(passed=3, failed=2)
    result.stdout.no_fnmatch_line("*INTERNALERROR*")
    assert summary(result)[-2] == "6 evaluations in 4 tests; 1 test failed by scores"
    names = ["app.py::test_around"] * 2 + ["app.py::test_bad"] + ["app.py::test_good"] * 2
    expected = [f"test_{name}" for name in (*names, "crash.py::test_before")]
    assert sorted(named_tests(pytester.path / "evals.jsonl")) == expected
    assert (pytester.path / "summary.md").read_text().count("### RAG evaluation") == 1
    assert "rag_eval[2].adherence" in (pytester.path / "junit.xml").read_text()


def test_subtests(pytester: pytest.Pytester) -> None:
    """What a subtest evaluates stands on its report, once."""
    if not hasattr(pytest, "Subtests"):
        pytest.skip("this pytest has no subtests")
    code = """
def test_sub(rag_eval, subtests):
    for call in (GOOD, BAD):
        with subtests.test():
            assert_scores(rag_eval.evaluate_sync(**call), adherence=1.0)
"""
    assert summary(run(pytester, code))[-1] == "2 evaluations in 1 test; 1 test failed by scores"


RERUN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for again in (True, False):
        item._initrequest()
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if again and report.failed:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_a_test_that_is_run_again_counts_once(pytester: pytest.Pytester) -> None:
    """As by pytest-rerunfailures: the last run decides, also on what a fixture evaluated."""
    pytester.makeconftest(RERUN)
    code = """
calls = [GOOD, GOOD, BAD, BAD]

@pytest.fixture
def answered(rag_eval): return rag_eval.evaluate_sync(**calls.pop())

@pytest.mark.rag_eval(adherence=1.0)
def test_flaky(rag_eval, answered): rag_eval.evaluate_sync(**calls.pop())
"""
    result = run(pytester, code, "--junitxml=junit.xml", "--rag-eval-report=evals.jsonl")
    properties = ElementTree.parse(pytester.path / "junit.xml").iter("property")

    assert summary(result)[-2] == "2 evaluations in 1 test"
    assert named_tests(pytester.path / "evals.jsonl") == ["test_app.py::test_flaky"] * 2
    adherence = [p.get("value") for p in properties if p.get("name") == "rag_eval.adherence"]
    assert adherence[-1] == "1"
    assert len(set(adherence)) == len(adherence)


# --- Where nobody uses it


def test_it_is_silent_where_nobody_uses_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same output with and without it, and no file."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    pytester.makepyfile(test_app="def test_one(): pass\ndef test_two(): assert 1 == 2\n")
    plain = pytester.runpytest_inprocess("-p", "no:cacheprovider").stdout.str()
    ours = pytester.runpytest_inprocess("-p", PLUGIN, "-p", "no:cacheprovider").stdout.str()

    assert re.sub(r"in [\d.]+s", "", ours) == re.sub(r"in [\d.]+s", "", plain)
    assert {file.name for file in pytester.path.iterdir()} <= {"test_app.py", "__pycache__"}


def test_it_imports_next_to_nothing(pytester: pytest.Pytester) -> None:
    """A whole session that does not use it loads the package's root and the plugin, no pydantic."""
    pytester.makepyfile(test_app="def test_one(): pass\n")
    code = (
        "import sys, pytest\n"
        f"assert pytest.main(['-q', '-p', {PLUGIN!r}, '-p', 'no:cacheprovider']) == 0\n"
        "heavy = {'pydantic', 'asyncio', 'rich', 'openai', 'numpy'} & set(sys.modules)\n"
        "print(sorted(heavy), sorted(n for n in sys.modules if n.startswith('rag_eval')))"
    )
    done = pytester.run(sys.executable, "-c", code)

    root = "rag_eval_integrations"
    assert done.outlines[-1] == f"[] {[root, f'{root}._lazy', PLUGIN]}"


@pytest.mark.slow
def test_the_entry_point(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed library brings the plugin; `-p no:rag_eval` leaves it out."""
    info = pytester.path / "site" / "rag_eval_integrations-0.1.0.dist-info"
    info.mkdir(parents=True)
    about = "Metadata-Version: 2.1\nName: rag-eval-integrations\nVersion: 0.1.0\n"
    (info / "METADATA").write_text(about)
    project = (ROOT / "pyproject.toml").read_text()
    (entry,) = re.findall(r"^\[project\.entry-points\.pytest11\]\n(.*)$", project, re.M)
    (info / "entry_points.txt").write_text("[pytest11]\n" + entry.replace('"', "") + "\n")
    (info / "RECORD").write_text("")
    monkeypatch.setenv("PYTHONPATH", f"{info.parent}:{ROOT}")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    pytester.makepyfile(test_app=CALLS + "def test_good(rag_eval): rag_eval.evaluate_sync(**GOOD)")
    others = ("no:langsmith_plugin", "no:anyio", "no:codspeed", "no:benchmark", "no:hypothesispytest",
              "no:syrupy", "no:recording", "no:asyncio", "no:xdist", "no:pytest_cov")  # fmt: skip
    options = [part for name in others for part in ("-p", name)]

    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)
    without = pytester.runpytest_subprocess(*options, "-p", "no:rag_eval")
    without.assert_outcomes(errors=1)
    without.stdout.fnmatch_lines(["E *fixture 'rag_eval' not found"])
