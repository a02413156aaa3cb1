"""`rag-eval run` with options that cannot work: each is named, before anything is sent or written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ferries import CALL, Command, write

NOWHERE = "http://127.0.0.1:9/v1"
MODEL = ("--judge", "openai:m", "--base-url", NOWHERE)
ENDPOINTS = "is for openai:MODEL, not for judge"


@pytest.fixture(autouse=True)
def _calls_and_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    write(Path("calls.jsonl"), CALL)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        # Metrics and their settings
        (["--metrics", "magic"], "`--metrics` = 'magic': no such metric; use trace, retrieval"),
        (["--metrics", "faithfulness"], "`supported_fraction` is nearest to it, by the metric `tr"),
        (["--metrics", "relevance"], "`geval:relevance` is nearest to it; use trace"),
        (["--metrics", "geval:bogus"], "no such metric; use one of coherence"),
        (["--metrics", "geval:coherence"], "asks a model, and the judge embedded"),
        (["--metrics", "none.geval.yaml", *MODEL], "none.geval.yaml: no such file"),
        (["--metrics", "bad.geval.yaml", *MODEL], "field `scale`"),
        (["--metrics", "geval:fluency,geval:fluency", *MODEL], "two metrics"),
        (["--geval-samples", "5"], "`--geval-samples` = 5: --metrics names no G-Eval metric"),
        (["--metrics", "retrieval", "--k", "0"], "`--k` = '0': use whole numbers from 1"),
        (["--metrics", "retrieval", "--k", "3,3"], "`--k` = '3,3': has a number twice"),
        (["--metrics", "retrieval", "--match", "name"], "`--match` = 'name': use id or text"),
        (["--metrics", "retrieval", "--match", "text", "--id-key", "a"], "`--id-key` = 'a'"),
        (["--k", "3"], "`--k` = '3': --metrics does not name retrieval"),
        (["--metrics", "label_retrieval", "--id-key", "a"], "`--id-key` = 'a': --metrics does not"),
        (["--formulas", "paper"], "`--formulas` = 'paper': use one of gpt-labeling, ragbench"),
        (["--relevance-baseline", "0"], "`--relevance-baseline` = 0: use a whole number from 1"),
        (["--formulas", "ragbench", "--relevance-baseline", "20"], "`--relevance-baseline` = 20"),
        # Thresholds
        (["--fail-under", "adherence"], "`--fail-under` = 'adherence': use NAME=VALUE"),
        (["--fail-under", "truth=0.5"], "no score 'truth'; the scores are context_relevance"),
        (["--fail-under", "adherence=high"], "VALUE should be a number from 0 to 1"),
        (["--fail-under", "adherence=nan"], "VALUE should be a number from 0 to 1"),
        # The judge and its requests
        (["--judge", "openai:", "--base-url", NOWHERE], "`--judge` = 'openai:': name a model"),
        (["--judge", "openai:m", "--base-url", "ftp://x"], "`--base-url`"),
        ([*MODEL, "--rpm", "0"], "`--rpm`"),
        (["--judge", "embedded", "--rpm", "30"], f"`--rpm` = 30.0: {ENDPOINTS} 'embedded'"),
        (["--judge", "os:getcwd", "--rpm", "5"], "os:getcwd is an object of builtin"),
        (["--base-url", NOWHERE], "`--base-url`"),
        (["--max-concurrency", "0"], "--max-concurrency"),
        # Files
        (["-o", "-", "--report", "r.html"], "is made of a file: use one for --out"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_each_is_named_before_the_first_row(rag_eval: Command, words: list[str], why: str) -> None:
    """Option, value and what to use, with exit code 2; no file is made, and nothing printed."""
    Path("bad.geval.yaml").write_text("criteria: x\nscale: [5, 1]\n")
    before = sorted(os.listdir())

    done = rag_eval("run", "calls.jsonl", "-o", "evals.jsonl", *words, code=2)

    assert done.out == ""
    assert why in done.err
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run", "no.jsonl", "-o", "x.jsonl"], "no.jsonl: no such file or directory"),
        (["run", "calls.jsonl", "-o", "x.jsonl", "--resume", "--overwrite"], "`--resume` = True"),
        (["report", ".", "-o", "x.html"], ".: is a folder, not a file of rows, and holds no Parquet"),
        (["compare", "empty.jsonl", "calls.jsonl"], "empty.jsonl: has no evaluations; `rag-eval run CALLS"),
        (["compare", "calls.jsonl"], "calls.jsonl: name a second file to compare"),
        (["calibrate", "empty.jsonl", "-o", "c.json"], "empty.jsonl: the gold file has no rows"),
        (["evaluate", "calls.jsonl"], "No such command 'evaluate'. Did you mean 'run'?"),
        (["gate", "evals.jsonl"], "Did you mean 'run', 'report' or 'score' with --fail-under, or 'com"),
        (["watch"], "No such command 'watch'. Did you mean 'worker', or 'store report' with --every?"),
    ],
)  # fmt: skip
def test_errors_speak_of_options_and_files(rag_eval: Command, words: list[str], why: str) -> None:
    """Options by their names, files by theirs: no name of an argument in Python."""
    Path("empty.jsonl").touch()
    said = rag_eval(*words, code=2).err
    assert why in said
    assert "Error: " in said or f"rag-eval: {why}" in said


def test_a_missing_key_is_told(rag_eval: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to set; a file that is not there is the mistake one can see first."""
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    said = rag_eval("doctor", "--judge", "openai:m", code=2).err
    assert said == "rag-eval: no API key: set the environment variable OPENAI_API_KEY\n"
    missing = ("prompt-tests", "generate", "no.prompty", "-o", "t", "--model", "openai:m")
    assert "no.prompty" in rag_eval(*missing, code=2).err
