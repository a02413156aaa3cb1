"""Exports of a folder's tests: `rag-eval prompt-tests export DIR --to FORMAT`."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._cells import FORMULA
from rag_eval_integrations.prompt_tests._evals import github, openai_evals
from rag_eval_integrations.prompt_tests._workspace import CONTEXT
from rag_eval_integrations.prompt_tests.records import PromptTest, digest
from rag_eval_integrations.prompt_tests.upstream import to_test_rows
from rag_eval_integrations.prompt_tests.upstream._context import Source, as_text, to_context

TRAIN = 0.75
"""Share of the tests that are for training, as in PromptPex."""


@dataclass(frozen=True)
class Exported:
    """The files of an export."""

    files: Mapping[str, str]
    """Texts by file name; the first is the export itself, others belong beside it."""
    notes: tuple[str, ...] = ()
    """What the format cannot hold, one sentence each."""


def export_tests(source: Source, to: str) -> Exported:
    """Write tests in another tool's format.

    Args:
        source: what to export.
        to: a key of `FORMATS`.

    Raises:
        ConfigurationError: for an unknown format, or one that has nothing to write.
    """
    if to not in FORMATS:
        raise ConfigurationError("--to", to, f"use {', '.join(FORMATS)}")
    files = FORMATS[to](source)
    return Exported(files, tuple(source.notes))


# --- Tables and data sets


def _csv(source: Source) -> dict[str, str]:
    rows = to_test_rows(source.tests)
    for row, test in zip(rows, source.tests, strict=True):
        del row["inputs"]
        row.pop("inputsOriginal", None)
        row |= {name: value for name, value in test.inputs.items() if name not in row}
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    guarded = 0
    for cells in (names, *([as_text(row.get(name)) for name in names] for row in rows)):
        guarded += sum(cell.lstrip().startswith(FORMULA) for cell in cells)
        writer.writerow(f"'{c}" if c.lstrip().startswith(FORMULA) else c for c in cells)
    if guarded:
        source.notes.append(
            f"{guarded} cells that a spreadsheet would calculate have a ' in front; "
            "`context` keeps texts as they are"
        )
    return {"tests.csv": out.getvalue()}


def split_of(test: PromptTest) -> str:
    """Return `train` or `test`: always the same for a test's inputs, and so for equal ones."""
    share = int(digest(json.dumps([test.inputs, test.scenario], sort_keys=True))[:8], 16) / 2**32
    return "train" if share < TRAIN else "test"


def _jsonl(source: Source) -> dict[str, str]:
    compliant = {
        result.test.uid: result.output
        for result in reversed(source.results)
        if result.compliance is not None and result.compliance.outcome == "ok"
    }
    splits: dict[str, dict[str, None]] = {"train": {}, "test": {}}
    left = 0
    for test in source.tests:
        answer = test.usable_groundtruth
        if answer is None:
            answer = compliant.get(test.uid)
        if answer is None or source.prompt.renderer is None:
            left += 1
            continue
        messages = [
            {"role": one.role, "content": one.content}
            for one in source.prompt.render(source.values(test))
        ]
        line = json.dumps(
            {"messages": [*messages, {"role": "assistant", "content": answer}]}, ensure_ascii=True
        )
        splits[split_of(test)][line] = None
    if left:
        source.notes.append(
            f"{left} tests are left out, because they have neither an expected output that judges "
            "accepted nor an output that complies"
        )
    if not any(splits.values()):
        raise ConfigurationError("--to", "jsonl", "no test has an output to learn from")
    return {
        f"test_data.{name}.jsonl": "".join(f"{line}\n" for line in lines)
        for name, lines in splits.items()
    }


def _langsmith(source: Source) -> dict[str, str]:
    source.say_unchecked("the output")
    lines = []
    for test in source.tests:
        output, written_by = source.output(test)
        row = {
            "id": str(uuid5(NAMESPACE_URL, f"{source.prompt.id}/{test.uid}")),
            "inputs": source.values(test),
            "outputs": {"output": output} if output else None,
            "metadata": {
                "testuid": test.uid, "ruleid": test.rule_id, "rule": test.rule,
                "inverse": test.inverse, "baseline": test.baseline, "scenario": test.scenario,
                "reasoning": test.reasoning, "output_by": written_by,
            },
            "split": split_of(test),
        }  # fmt: skip
        lines.append(json.dumps(row, ensure_ascii=True))
    return {"langsmith.jsonl": "".join(f"{line}\n" for line in lines)}


# --- Files of PromptPex, and a file for pytest


def _context(source: Source) -> dict[str, str]:
    return {CONTEXT: json.dumps(to_context(source), ensure_ascii=True, indent=2) + "\n"}


_TEST_FILE = '''\
"""Prompt tests that `rag-eval prompt-tests export --to pytest` wrote; the data is beside them.

RAG_EVAL_MUT names the model under test, RAG_EVAL_JUDGE the judge: openai:NAME, or MODULE:OBJECT.
"""

import importlib
import os
from pathlib import Path

import pytest

from rag_eval_integrations.prompt_tests import (
    PromptEvaluation,
    Report,
    assert_compliance,
    read_upstream,
    run_tests_sync,
)

DATA = read_upstream(Path(__file__).with_name({data}))


def named(variable):
    """Return the model that an environment variable names, or skip the tests."""
    name = os.environ.get(variable)
    if not name:
        pytest.skip(variable + " names no model")
    if name.startswith("openai:"):
        return name
    module, _, found = name.partition(":")
    return getattr(importlib.import_module(module), found)


@pytest.fixture(scope="module")
def results():
    """Run all tests at once and judge the outputs."""
    model, judge = named("RAG_EVAL_MUT"), named("RAG_EVAL_JUDGE")
    outputs = run_tests_sync(DATA.prompt, DATA.tests, [model])
    judged = PromptEvaluation(DATA.prompt, DATA.spec, [judge]).outputs_sync(outputs)
    return {{result.test.uid: result for result in judged}}


@pytest.mark.parametrize("uid", [test.uid for test in DATA.tests])
def test_output_complies(results, uid):
    """One output keeps the rules of the prompt."""
    assert_compliance(Report(DATA.prompt.name, [results[uid]]), 1.0)
'''


def _pytest(source: Source) -> dict[str, str]:
    tests = [test for test in source.tests if not test.baseline]
    if not tests:
        raise ConfigurationError("--to", "pytest", "all tests are baseline tests")
    if len(tests) < len(source.tests):
        more = len(source.tests) - len(tests)
        source.notes.append(f"{more} baseline tests are left out: they are for comparison only")
    stem = re.sub(r"\W+", "_", source.prompt.name, flags=re.ASCII).strip("_").lower() or "prompt"
    data = f"prompt_tests_{stem}.json"
    only = Source(
        source.prompt, source.spec, tests, metrics=source.metrics, cut=source.cut,
        notes=source.notes,
    )  # fmt: skip
    [content] = _context(only).values()
    # The code is the same for all prompts, apart from a file name of letters, digits and _: no text
    # of a test is ever part of it.
    return {f"test_{stem}.py": _TEST_FILE.format(data=repr(data)), data: content}


def _github(source: Source) -> dict[str, str]:
    return {"evals.prompt.yml": github(source)}


def _openai(source: Source) -> dict[str, str]:
    create, run = openai_evals(source)
    return {"evals.create.json": create, "evals.run.json": run}


def _azure(source: Source) -> dict[str, str]:
    create, run = openai_evals(source, azure=True)
    return {"evals.azure.create.json": create, "evals.azure.run.json": run}


FORMATS: Mapping[str, Callable[[Source], dict[str, str]]] = {
    "github": _github,
    "openai": _openai,
    "azure": _azure,
    "context": _context,
    "jsonl": _jsonl,
    "csv": _csv,
    "pytest": _pytest,
    "langsmith": _langsmith,
}
"""Writers by the name of their format."""
