"""Options in `rag-eval.toml`, `[tool.rag-eval]` of `pyproject.toml`, or the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from ferries import CALL, LABELS, Command, read, write
from loopback import LoopbackServer

FILE, PROJECT = Path("rag-eval.toml"), Path("pyproject.toml")
RUN = ("run", "calls.jsonl", "-o", "evals.jsonl", "--overwrite")
RAGBENCH = 'formulas = "ragbench"\n'


@pytest.fixture(autouse=True)
def _calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAG_EVAL_JUDGE", raising=False)
    monkeypatch.delenv("RAG_EVAL_BASE_URL", raising=False)
    write(Path("calls.jsonl"), CALL)


def formulas() -> str:
    """The set of formulas of the evaluations just made."""
    stamp = read(Path("evals.jsonl"))[0].scores["adherence"].by.formulas
    assert stamp is not None
    return stamp


def table(text: str) -> str:
    """Settings as a `pyproject.toml` has them."""
    return f"[tool.rag-eval]\n{text}"


def test_the_command_line_precedes_the_file(rag_eval: Command) -> None:
    """An option of the file holds for every command that has it, until it is typed."""
    FILE.write_text(RAGBENCH + 'fail-under = ["adherence=1", "completeness=1"]\nrpm = 5\n')

    rag_eval(*RUN, code=0)
    assert formulas() == "ragbench"
    rag_eval("score", "evals.jsonl", "-o", "again.jsonl", code=0)
    rag_eval(*RUN, "--formulas", "gpt-labeling", "--fail-under", "adherence=0.5", code=0)
    assert formulas() == "gpt-labeling"


def test_the_environment_precedes_the_file_and_both_find_the_endpoint(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint of a project is left out where a judge that is typed has none."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    FILE.write_text('judge = "nobody"\nbase-url = "http://127.0.0.1:9/v1"\nmax-tokens = 700\n')
    monkeypatch.setenv("RAG_EVAL_JUDGE", "openai:small")
    with LoopbackServer(LABELS) as server:
        monkeypatch.setenv("RAG_EVAL_BASE_URL", server.base_url)
        rag_eval(*RUN, code=0)
    assert len(server.requests) == 1
    rag_eval(*RUN, "--judge", "embedded", code=0)
    assert "is for openai:MODEL" in rag_eval(*RUN, "--judge", "embedded", "--rpm", 3, code=2).err


def test_the_nearest_file_up_to_the_root_of_the_repository_holds(
    rag_eval: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`rag-eval.toml` before a table in `pyproject.toml`; nothing above the root, or without one."""
    (tmp_path / "rag-eval.toml").write_text('formulas = "nothing"\n')
    inner = tmp_path / "repository" / "inner"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    write(Path("calls.jsonl"), CALL)
    rag_eval(*RUN, code=0)  # without a repository

    (inner.parent / ".git").mkdir()
    rag_eval(*RUN, code=0)
    assert formulas() == "gpt-labeling"

    (inner.parent / PROJECT).write_text(table(RAGBENCH))
    PROJECT.write_text("[tool.other]\n")
    rag_eval(*RUN, code=0)
    assert formulas() == "ragbench"

    PROJECT.write_text(table(""))
    rag_eval(*RUN, code=0)
    assert formulas() == "gpt-labeling"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('jugde = "x"', "`jugde` is not a setting; did you mean `judge`?"),
        ('base_url = "x"', "`base_url` is not a setting; did you mean `base-url`?"),
        ('out = "evals.jsonl"', "`out` is not an option that may be a setting"),
        ('where = "id=1"', "`where` is not an option that may be a setting"),
        ('rpm = "many"', "`rpm` cannot be used: "),
        ("max-error-rate = 2", "`max-error-rate` cannot be used: "),
        ("flags = 1", "`flags` is 1; use true or false"),
        ("rpm = true", "`rpm` is True; use a text or a number"),
        ("extra-body = {seed = 1}", "`extra-body` is {'seed': 1}; use a text or a number"),
        ('metrics = ["trace"]', "`metrics` is ['trace']; use a text or a number"),
        ("fail-under = {adherence = 1}", "`fail-under` is [{'adherence': 1}]; use a text"),
        ("judge = ", "is not TOML"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told(rag_eval: Command, text: str, why: str) -> None:
    """One line with the file and the key, before anything is read; help is there all the same."""
    FILE.write_text(text)
    said = rag_eval(*RUN, code=2).err
    assert said.startswith("rag-eval: ")
    assert "rag-eval.toml: " in said
    assert why in said
    assert said.count("\n") == 1
    rag_eval("run", "--help", code=0)


def test_two_files_in_a_folder_are_an_error(rag_eval: Command) -> None:
    """Which of them holds, nobody could tell."""
    FILE.write_text(RAGBENCH)
    PROJECT.write_text(table(RAGBENCH))
    said = rag_eval(*RUN, code=2).err
    assert "rag-eval.toml and [tool.rag-eval] in" in said
    PROJECT.write_text("[project]\n")
    rag_eval(*RUN, code=0)


def test_doctor_says_where_each_value_comes_from(
    rag_eval: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without passwords, and without the fields of a request."""
    assert "settings: none" in rag_eval("doctor", code=0).out
    FILE.write_text(
        'judge = "openai:m"\nstore = "postgresql://app:secret@db/evals"\n'
        'extra-body = \'{"token": "secret"}\'\nmetrics = "trace"\n'
    )
    monkeypatch.setenv("RAG_EVAL_BASE_URL", "http://me:secret@localhost/v1")

    lines = rag_eval("doctor", "--judge", "embedded", code=0).out.splitlines()

    assert not any("secret" in line for line in lines)
    rows = {line.split()[0]: line for line in lines if line.split()}
    assert rows["judge"].split()[1:3] == ["embedded:", "works:"]  # the verdict, further below
    settings = "\n".join(lines)
    assert "the command line, in place of" in settings
    assert rows["base-url"].split()[1:] == ["http://***@localhost/v1", "RAG_EVAL_BASE_URL"]
    assert rows["metrics"].split()[1] == "trace"
    assert rows["metrics"].split()[2].endswith("rag-eval.toml")
    assert rows["store"].split()[1] == "postgresql://***@db/evals"
    assert rows["extra-body"].split()[1] == "…"


def test_prompt_tests_take_the_endpoint(rag_eval: Command) -> None:
    """Their judges, endpoint and limits are settings; thresholds and metrics of theirs are not."""
    Path("put.prompty").write_text("---\nname: p\n---\nsystem:\nSay yes.\n")
    FILE.write_text('base-url = "ftp://x"\nfail-under = ["adherence=1"]\nmetrics = "trace"\n')
    said = rag_eval(
        "prompt-tests", "generate", "put.prompty", "-o", "t", "--model", "openai:m", code=2
    ).err
    assert "ftp://x" in said
