"""The code of docs/data.md and docs/coming-from.md runs, and their tables are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pages import run_page, text_of

from rag_eval_integrations.dataset._names import OPTIONAL, REQUIRED
from rag_eval_integrations.dataset.rows import ragbench_row
from rag_eval_integrations.records._json import NAMES
from rag_eval_integrations.report import Evaluations

RAGAS = {
    "user_input": "When?", "retrieved_contexts": ["It leaves at nine."], "response": "At nine.",
}  # fmt: skip


@pytest.mark.parametrize("name", ["docs/data.md", "docs/coming-from.md"])
def test_every_block_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other, in one empty folder; the mapping is told as the page shows it."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)

    run_page(name, monkeypatch)

    output = "".join(capsys.readouterr())
    for shown in re.findall(r"^```text\n(ragas\.jsonl: .*?)^```", text_of(name), re.M | re.S):
        assert shown in output


def test_the_page_lists_every_name() -> None:
    """That is known without a mapping, and every field that can be mapped."""
    text = text_of("docs/data.md")
    for names in NAMES.values():
        for name in names:
            assert f"`{name}`" in text, name
    for name in (*REQUIRED, *OPTIONAL):
        assert f"`{name}`" in text, name


def test_the_page_lists_every_column_of_ragbench(tmp_path: Path) -> None:
    """That `to_ragbench` writes."""
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({**RAGAS, "reference": "Nine."}))
    from rag_eval_integrations import RagEvaluator, evaluate_calls
    from rag_eval_integrations.dataset import read_calls

    result: Evaluations = evaluate_calls(read_calls(path), RagEvaluator()).collect_sync()
    row = ragbench_row(result[0])
    assert row is not None
    text = text_of("docs/evaluations.md")
    assert [name for name in row if f"`{name}`" not in text] == []
