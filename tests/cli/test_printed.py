"""Hostile texts at every place where users' text enters a command: nothing of them acts.

Every command runs in this process on real files, against a real endpoint on loopback where it asks
a model.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from by_hand import labels_of
from ferries import CALL, Command, write
from hostile import HOSTILE, MARKUP, acting, formulas
from loopback import Body, LoopbackServer, Reply
from prompt_test_models import planted
from scored_tokens import chat_body

from rag_eval_integrations.prompt_tests._upstream import results_to_rows
from rag_eval_integrations.prompt_tests.project import Project

from .conftest import in_process

pytestmark = pytest.mark.slow

FORGED = ("FAILED: forged", "rag-eval: forged")
SOME = ["".join(HOSTILE[start::6]) for start in range(6)]
"""All of them, ten in each: no longer than the name of a file may be."""
NAMES = [text.replace("/", "∕").replace("\0", "") for text in SOME]
"""The same as names of files, which hold neither."""


@pytest.fixture
def clean(rag_eval: Command) -> Command:
    """Run a command and hold what it prints to the rules."""

    def run(*words: object, code: int | None = None) -> Any:
        done = rag_eval(*words, code=code)
        for stream in (done.out, done.err):
            assert acting(stream) == [], stream
            assert not [line for line in stream.splitlines() if line.startswith(FORGED)], stream
        return done

    return run


def call(number: int, text: str) -> dict[str, Any]:
    return {
        "id": f"{number} {text}",
        "dataset": text,
        "question": f"When? {text}",
        "documents": [f"The ferry leaves at nine. {text}"],
        "response": f"The ferry leaves at nine. {text} Dogs are welcome.",
        "metadata": {text: text, "doc_id": text, "system_id": text, "human": number % 5},
    }


def labelled(number: int, text: str) -> dict[str, Any]:
    support = {"a": (["0a"], bool(number % 2), text)}
    labels = labels_of(["0a", text], ["0a"], support, relevance_explanation=text)
    said = {"labels": labels.model_dump(exclude_unset=True), "ragas_faithfulness": number % 3 / 2}
    return call(number, text) | said


def answer(reply: Reply, _: Body) -> Reply:
    return reply


def broken(text: str) -> Iterator[object]:
    """Lines that are refused with a word about what they hold."""
    yield {**call(0, text), text: text}
    yield {"question": text, "documents": [{"text": {text: 1}}], "response": text}
    yield {"question": [text], "documents": text, "response": {text: text}}
    yield text
    yield {"schema": text, **call(0, text)}


# --- run, score, agreement, doctor


def test_calls_and_lines_that_are_no_calls(clean: Command) -> None:
    """`run` on sixty hostile calls and three hundred hostile lines."""
    rows = [call(number, text) for number, text in enumerate(HOSTILE)]
    bad = [line for text in HOSTILE for line in broken(text)]
    calls = write(Path("calls.jsonl"), *rows, *bad)
    with calls.open("a") as file:
        file.write("".join(f"{text.splitlines()[0]}\n" for text in MARKUP))

    done = clean("run", calls, "-o", "evals.jsonl", "--fail-under", "adherence=1", code=2)

    assert " evaluations to " in done.out
    assert "[red]" in done.err  # shown as it was written
    assert clean("run", calls, "-o", "x", "--dry-run").code == 2


def test_recorded_labels_and_their_agreement(clean: Command) -> None:
    """`score` and `agreement`: keys, explanations, names of data sets, documents and systems."""
    sets = [{"dataset": SOME[number % 6]} for number in range(len(HOSTILE))]
    rows = [labelled(n, text) | sets[n] for n, text in enumerate(HOSTILE)]
    bad = [{**row, "labels": {text: text}} for row, text in zip(rows, HOSTILE, strict=True)]
    gold, evals = write(Path("gold.jsonl"), *rows), Path("evals.jsonl")
    labels = Path("labels.jsonl")
    done = clean("score", write(Path("labelled.jsonl"), *rows, *bad), "-o", labels, code=2)
    assert f"Wrote {len(rows)} evaluations" in done.out
    assert clean("run", gold, "-o", evals).code == 0

    plots = Path("plots")
    tables = clean(
        "agreement", evals, gold, "--baselines", "--human", "human", "--plots", plots, code=0
    )
    as_json = clean("agreement", evals, gold, "--cascade", evals, "--json", code=0)

    assert "[red]loud[/red]" in tables.out
    assert json.loads(as_json.out)
    assert acting((plots / "agreement.html").read_text()) == []
    assert clean("agreement", write(Path("bad.jsonl"), *bad), gold).code == 2


@pytest.mark.parametrize("text", NAMES)
def test_names_of_files_options_and_fields(
    clean: Command, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are there or not, options, commands, judges, metrics, thresholds, variables."""
    monkeypatch.chdir(tmp_path)
    calls = write(Path(f"c{text}"), call(0, "x"), {"no": "call"})

    assert clean("run", calls, "-o", f"o{text}").code == 2  # after it was written
    for words in (
        ["run", f"n{text}", "-o", "out"],
        ["run", calls, "-o", f"n{text}/out"],
        ["run", calls, "-o", "out", "--judge", text],
        ["run", calls, "-o", "out", "--judge", "openai:x", "--base-url", f"a{text}"],
        ["run", calls, "-o", "out", "--metrics", f"a{text}"],
        ["run", calls, "-o", "out", "--metrics", f"geval:{text}"],
        ["run", calls, "-o", "out", "--metrics", f"{text}.metric.prompty"],
        ["run", calls, "-o", "out", "--formulas", text],
        ["run", calls, "-o", "out", "--fail-under", f"{text}=1"],
        ["run", calls, "-o", "out", "--metric-var", f"a{text}"],
        ["run", calls, "-o", "out", "--limit", text],
        ["run", calls, "-o", "out", f"--{text}"],
        ["run", calls, "-o", "out", calls, f"o{text}"],
        ["prompt-tests", "metrics", f"n{text}"],
        ["prompt-tests", "report", f"n{text}"],
        ["prompt-tests", "run", f"n{text}", "--mut", f"m:{text}"],
        ["prompt-tests", f"a{text}"],
    ):
        assert clean(*words).code == 2, words


METRIC_FILES = {
    "a.geval.yaml": (
        "criteria: fine\n{key}: 1\n", "name: {value}\ncriteria: [1]\n", "criteria: x\nparams: [{value}]\n",
        "criteria: x\nrubric:\n  - {key}: 3\n", "{raw}: [", "criteria: {raw}",
    ),
    "a.metric.prompty": (
        "---\n{key}: 1\nname: [{value}]\n---\nx", "---\nname: {value}\ntags: {value}\n---\nuser:\n{{{{input}}}} {raw}",
        "---\n{raw}: [\n---\nx", "---\nname: a\n---\nuser:\n{{{{ {value} + nothing }}}} {{% {raw} %}}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", SOME)
def test_keys_and_values_of_metric_files(clean: Command, tmp_path: Path, text: str) -> None:
    """YAML written with escapes, and raw."""
    calls = write(Path("calls.jsonl"), call(0, "x"))
    filled = {"key": json.dumps(text), "value": json.dumps(text), "raw": text}
    prompt = Path("p.prompty")
    prompt.write_text(f"---\nname: {json.dumps(text)}\n---\nuser:\n{{{{text}}}}")
    for name, templates in METRIC_FILES.items():
        for template in templates:
            path = tmp_path / name
            path.write_bytes(template.format(**filled).encode("utf-8", "surrogatepass"))
            clean("run", calls, "-o", "out", "--metrics", path)
            if name.endswith("prompty"):
                clean("prompt-tests", "metrics", prompt)
    path.write_text(
        f"---\nname: {json.dumps(text)}\ntags: [{json.dumps(text)}]\n---\nuser:\n{{{{input}}}}"
    )
    clean("prompt-tests", "metrics", prompt, code=0)


@pytest.mark.parametrize("text", SOME)
def test_what_an_endpoint_says(clean: Command, text: str, caplog: pytest.LogCaptureFixture) -> None:
    """Error bodies, answers that are no labels, labels, and the model's name in the reply."""
    calls = write(Path("calls.jsonl"), call(0, "x"))
    error = {"message": text, "type": text, "param": text, "code": text}
    for reply in (
        Reply.json({"error": error}, 400),
        Reply.json(chat_body([text]) | {"model": text}),
        Reply(status=401, body=text.encode()),
    ):
        with LoopbackServer(respond=partial(answer, reply)) as server:
            words = ["--judge", f"openai:{text}", "--base-url", server.base_url]
            clean("run", calls, "-o", "out", *words)
            clean("doctor", *words)
    assert acting(caplog.text) == []


# --- prompt-tests


def project(folder: Path, text: str) -> Path:
    """A folder with results in which every text is the one given."""
    put = folder / "put.prompty"
    put.write_text(f"---\nname: {json.dumps(text)}\n---\nsystem:\nShout.\nuser:\n{{{{text}}}}\n")
    made = Project.create(put, folder / "out", lambda _: None)
    made.workspace.write_lines("rules.txt", [text], "none")
    made.workspace.write("intent.txt", f"{text}\n")
    made.workspace.write_json("test_results.json", results_to_rows(planted(text).results))
    return folder / "out"


@pytest.mark.parametrize("text", SOME)
def test_reports_of_prompt_tests(clean: Command, tmp_path: Path, text: str) -> None:
    """Names of prompts, models, metrics and scenarios, rules, inputs, outputs, reasons, errors."""
    folder = project(tmp_path, text)
    report = ("prompt-tests", "report", folder)

    table = clean(*report, "--before", folder, "--fail-under", 0.5, code=1)
    assert "50.0" in table.out
    assert formulas(clean(*report, "--format", "csv", code=0).out) == []
    for form in ("md", "json"):
        clean(*report, "--format", form, code=0)
    for name in ("overview.csv", "report.json", "README.md", "report.html"):
        assert acting((folder / name).read_text()) == []


@pytest.mark.parametrize("text", SOME)
def test_generators_models_and_judges(clean: Command, text: str) -> None:
    """Whatever a generator writes, and models under test and judges answer or fail with."""
    put = Path("put.prompty")
    put.write_text("---\nname: Shout\n---\nsystem:\nShout.\nuser:\n{{text}}\n")

    def respond(body: Body) -> Reply:
        asked = body["messages"][0]["content"]
        answer = text
        if "take requirements out of prompts" in asked:
            answer = json.dumps({"rules": [text, "It shouts."]})
        elif "You test an assistant" in asked:
            tests = [{"rule": n, "inputs": {"text": text}, "expected": text} for n in (1, 2)]
            answer = json.dumps({"tests": tests})
        elif "judge" in body["model"]:
            return Reply.json({"error": {"message": text}}, 400)
        return Reply.json(chat_body([answer]))

    with LoopbackServer(respond=respond) as server:
        at = ["--base-url", server.base_url]
        clean(
            "prompt-tests", "all", put, "-o", "out", "--model", f"openai:{text}", "--mut",
            f"openai:{text}", "--judge", f"openai:judge{text}", "--validity", *at,
        )  # fmt: skip
    context = Path("context.json")
    rows = [{"ruleid": text, "testinput": text}, {text: text}]
    content = {
        "prompt": {"filename": "x/tag.prompty", "content": put.read_text()},
        "rules": {"content": text}, "tests": {"content": json.dumps(rows)},
        "testOutputs": [{"model": text, "input": text, text: text}], text: text,
    }  # fmt: skip
    context.write_text(json.dumps(content))
    clean("prompt-tests", "import", context, "-o", "imported")


# --- What nobody expected


@pytest.mark.parametrize("text", SOME)
def test_modules_of_users_may_raise_anything(
    clean: Command, tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback of an unexpected error is escaped, and exits 1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "own_model", raising=False)
    Path("own_model.py").write_text(f"raise RuntimeError({text!r})\n")
    folder = project(tmp_path, "x")

    done = clean("prompt-tests", "run", folder, "--mut", "own_model:model", code=1)

    assert "RuntimeError: " in done.err


def test_a_process_prints_the_same(tmp_path: Path) -> None:
    """Bytes on real pipes, in an encoding that lacks most characters."""
    text = "".join(HOSTILE)
    folder = project(tmp_path, text.replace("\0", ""))
    done = subprocess.run(
        in_process("prompt-tests", "report", folder), capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert acting((done.stdout + done.stderr).decode("ascii")) == []


def test_a_terminal_gets_colours_of_ours_alone(tmp_path: Path) -> None:
    """In a real terminal the only sequences are those that make our own text bold or coloured."""
    folder = project(tmp_path, "".join(HOSTILE).replace("\0", ""))
    calls = write(Path("calls.jsonl"), *(call(n, text) for n, text in enumerate(HOSTILE)), {})
    for words in (
        ["prompt-tests", "report", folder],
        ["run", calls, "-o", Path("evals.jsonl")],
        ["run", NAMES[0], "-o", Path("x")],
    ):
        shown = in_terminal(*words)
        ours = re.sub(r"\x1b\[(?:[0-9;]*m|\d*[AK]|\?25[lh])|\r", "", shown)
        assert acting(ours) == [], ours
        assert len(ours) > 50
        assert not re.search(r"\x1b\[(31mred|8mhidden)", shown)


def test_prose_is_wrapped_at_the_width_of_a_terminal() -> None:
    """Between words; in a pipe a line stays a line, and a judge without a model has no cost line."""
    write(Path("calls.jsonl"), CALL)
    words = ("run", Path("calls.jsonl"), "-o", Path("evals.jsonl"), "--overwrite")

    lines = (
        re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", in_terminal(*words)).replace("\r", "\n").split("\n")
    )

    assert max(map(len, lines)) <= 80
    note = next(number for number, line in enumerate(lines) if line.startswith("NOTE"))
    assert lines[note + 2].startswith("  ")
    piped = subprocess.check_output(in_process(*words), text=True)
    assert max(map(len, piped.splitlines())) > 120
    assert re.search(r"^1 call in .*per second$", piped, re.MULTILINE)


def in_terminal(*words: object) -> str:
    """What `rag-eval` writes to a terminal."""
    ours, its = pty.openpty()
    running = subprocess.Popen(
        in_process(*words), stdin=its, stdout=its, stderr=its,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(its)
    found = b""
    try:
        while piece := os.read(ours, 1 << 16):
            found += piece
    except OSError:  # on Linux, the end of a terminal that nobody writes to
        pass
    finally:
        os.close(ours)
    running.wait(30)
    return found.decode()
