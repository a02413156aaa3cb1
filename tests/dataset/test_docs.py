"""The code of docs/data.md and docs/coming-from.md runs, and their tables are those of the code."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from rag_eval_integrations.cli import main
from rag_eval_integrations.dataset._names import NAMES, OPTIONAL, REQUIRED
from rag_eval_integrations.dataset.rows import ragbench_row
from rag_eval_integrations.report import Evaluations

BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```", re.M | re.S)
RAGAS = {
    "user_input": "When?", "retrieved_contexts": ["It leaves at nine."], "response": "At nine.",
}  # fmt: skip


def page(root: Path, name: str) -> str:
    return (root / "docs" / name).read_text(encoding="utf-8")


def commands(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in block.splitlines():
        piped, _, words = line.rpartition("| ")
        file = re.fullmatch(r"cat (\S+) ", piped)
        with open(file[1] if file else "/dev/null", encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            monkeypatch.setattr(sys, "argv", shlex.split(words, comments=True))
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code in (0, None), line


@pytest.mark.parametrize("name", ["data.md", "coming-from.md"])
def test_every_block_runs(
    root: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """One after the other, in one folder; the mapping is told as the page shows it."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    Path("ragas.jsonl").write_text(json.dumps(RAGAS))
    names: dict[str, object] = {}
    blocks = BLOCK.findall(page(root, name))
    assert blocks
    for kind, block in blocks:
        if kind == "bash":
            commands(block, monkeypatch)
        else:
            exec(compile(block, name, "exec"), names)
    output = "".join(capsys.readouterr())
    for shown in re.findall(r"^```text\n(ragas\.jsonl: .*?)^```", page(root, name), re.M | re.S):
        assert shown in output


def test_the_page_lists_every_name(root: Path) -> None:
    """That is known without a mapping, and every field that can be mapped."""
    text = page(root, "data.md")
    for names in NAMES.values():
        for name in names:
            assert f"`{name}`" in text, name
    for name in (*REQUIRED, *OPTIONAL):
        assert f"`{name}`" in text, name


def test_the_page_lists_every_column_of_ragbench(root: Path, tmp_path: Path) -> None:
    """And the page of comparison its fields."""
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({**RAGAS, "reference": "Nine."}))
    from rag_eval_integrations import RagEvaluator, evaluate_calls
    from rag_eval_integrations.dataset import read_calls

    result: Evaluations = evaluate_calls(read_calls(path), RagEvaluator()).collect_sync()
    row = ragbench_row(result[0])
    assert row is not None
    text = page(root, "data.md")
    assert [name for name in row if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", ["data.md", "coming-from.md"])
def test_links_lead_somewhere(root: Path, name: str) -> None:
    """Files, and headings in them."""
    for link in re.findall(r"\]\(([^)]+)\)", page(root, name)):
        file, _, heading = link.partition("#")
        target = root / "docs" / file
        assert target.exists(), link
        titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
        anchors = [
            re.sub(r"[^\w -]", "", each).strip().lower().replace(" ", "-") for each in titles
        ]
        assert not heading or heading in anchors, link
