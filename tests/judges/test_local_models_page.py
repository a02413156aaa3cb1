"""docs/local-models.md: its Python example runs as it stands, with tiny models at the paths it names."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import tiny_readers as tiny

from rag_eval_integrations.judges import OnnxJudge, TransformersJudge
from rag_eval_integrations.judges._local_model import BATCH_TOKENS
from rag_eval_integrations.judges._reader import ALONE, SHORT
from rag_eval_integrations.testing import small_call


def test_examples_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What they print is what their comments say."""
    for package in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package)
    page = (root / "docs" / "local-models.md").read_text(encoding="utf-8")
    call = small_call().call
    words = tiny.vocabulary([call.question, *(d.text for d in call.documents), call.response or ""])
    tiny.pair_model(tmp_path / "models" / "nli", words)
    tiny.cross_encoder(tmp_path / "models" / "ranker", words)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)

    for code in blocks:
        exec(compile(code, "docs/local-models.md", "exec"), {"__name__": "docs"})

    said = re.findall(r"^# (.*)$", "\n".join(blocks), re.M)
    assert said
    assert capsys.readouterr().out.splitlines() == said


def test_the_limits_are_the_codes(root: Path) -> None:
    """Numbers of the page, and the options of both judges."""
    page = (root / "docs" / "local-models.md").read_text(encoding="utf-8")
    options = inspect.signature(OnnxJudge).parameters
    numbers = {name: options[name].default for name in ("batch_size", "max_windows", "max_pairs")}

    assert (SHORT, ALONE) == (5, 3)  # in words there
    for name, number in numbers.items():
        assert f"`{name}` ({number:,})" in page or f"`{name}` windows" in page
    assert f"{BATCH_TOKENS:,} tokens" in page
    assert options["threshold"].default == 0.5
    assert set(options) - {"threads"} <= set(inspect.signature(TransformersJudge).parameters)
