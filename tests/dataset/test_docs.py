"""The code of docs/data.md and docs/coming-from.md runs, and their tables are those of the code."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pages import run_page, text_of

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.dataset._names import OPTIONAL, REQUIRED
from rag_eval_integrations.dataset.rows import ragbench_row
from rag_eval_integrations.records._json import NAMES


@pytest.mark.parametrize("name", ["docs/data.md", "docs/data-python.md", "docs/coming-from.md"])
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
    for name in (*chain(*NAMES.values()), *REQUIRED, *OPTIONAL):
        assert f"`{name}`" in text, name


def test_the_page_lists_every_column_of_ragbench() -> None:
    """That `to_ragbench` writes."""
    call = RagCall("When?", ["It leaves at nine."], "At nine.", reference="Nine.")
    row: Any = ragbench_row(RagEvaluator().evaluate_sync(call))
    text = text_of("docs/evaluations.md")
    assert [name for name in row if f"`{name}`" not in text] == []
