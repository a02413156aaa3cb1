"""docs/judges.md, endpoints.md and local-models.md: their examples run as they stand, offline."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
import tiny_readers as tiny
from pages import promised_by, run_python, text_of

from rag_eval_integrations.judges import OnnxJudge, TransformersJudge
from rag_eval_integrations.judges._local_model import BATCH_TOKENS
from rag_eval_integrations.judges._reader import ALONE, SHORT
from rag_eval_integrations.models.openai import OpenAIModel
from rag_eval_integrations.models.openai._capabilities import Capabilities
from rag_eval_integrations.testing import small_call

PAGE = "docs/judges.md"
ENDPOINTS = "docs/endpoints.md"
LOCAL = "docs/local-models.md"


@pytest.mark.parametrize("page", [PAGE, ENDPOINTS])
def test_examples_run(
    page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other; what they print is what their comments say."""
    monkeypatch.chdir(tmp_path)

    run_python(page)

    assert capsys.readouterr().out.splitlines() == promised_by(page) != []


def test_azure_is_known_by_its_address() -> None:
    """The page's last model asks the deployment."""
    model = run_python(ENDPOINTS)["model"]

    assert isinstance(model, OpenAIModel)
    assert model.base_url == "https://NAME.openai.azure.com/openai".lower()


def test_what_it_names_exists() -> None:
    """Arguments of the table and fields of the learned record."""
    known = set(re.findall(r"^        ([a-z_]+): ", OpenAIModel.__doc__ or "", re.M)) - {"model"}
    fields = {field.name for field in dataclasses.fields(Capabilities)} | {"ignored"}

    assert known
    assert all(f"`{name}`" in text_of(ENDPOINTS) for name in known)
    assert {"refused", "limits", "observed", "ignored"} <= fields


def test_local_models_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With tiny models at the paths that the page names."""
    for package in ("onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package)
    call = small_call().call
    words = tiny.vocabulary([call.question, *(d.text for d in call.documents), call.response or ""])
    tiny.pair_model(tmp_path / "models" / "nli", words)
    tiny.cross_encoder(tmp_path / "models" / "ranker", words)
    monkeypatch.chdir(tmp_path)

    run_python(LOCAL)

    assert capsys.readouterr().out.splitlines() == promised_by(LOCAL) != []


def test_the_limits_are_the_codes() -> None:
    """Numbers of the page, and the options of both judges."""
    page = text_of(LOCAL)
    options = inspect.signature(OnnxJudge).parameters
    numbers = {name: options[name].default for name in ("batch_size", "max_windows", "max_pairs")}

    assert (SHORT, ALONE) == (5, 3)  # in words there
    for name, number in numbers.items():
        assert f"`{name}` ({number:,})" in page or f"`{name}` windows" in page
    assert f"{BATCH_TOKENS:,} tokens" in page
    assert options["threshold"].default == 0.5
    assert set(options) - {"threads"} <= set(inspect.signature(TransformersJudge).parameters)
