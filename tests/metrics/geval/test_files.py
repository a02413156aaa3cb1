"""User metrics from YAML: every field, and mistakes with file, line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_eval_integrations import GEval
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.metrics.geval import read_geval
from rag_eval_integrations.metrics.geval.metric import named_geval


def write(folder: Path, text: str, name: str = "politeness.geval.yaml") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_a_metric_is_read(tmp_path: Path) -> None:
    """Every field means what the argument of its name means."""
    fields: dict[str, Any] = {
        "name": "politeness", "criteria": "The response is polite, also where it has to refuse.",
        "params": ["question", "response", "metadata.audience"], "scale": [1, 3],
        "rubric": {"1": "rude", "2-3": "polite"}, "threshold": 0.6, "strict": True,
        "estimator": "monte_carlo", "samples": 10, "temperature": 0.7, "form": "paper",
    }  # fmt: skip
    path = write(tmp_path, "\n".join(f"{name}: {json.dumps(it)}" for name, it in fields.items()))

    assert repr(read_geval(path)) == repr(GEval(**fields))


def test_a_file_without_a_name_gives_its_own(tmp_path: Path) -> None:
    """`tone.geval.yml` is `geval:tone`."""
    path = write(tmp_path, "steps: [Look at the tone.]\nthreshold: null\n", "tone.geval.yml")

    geval = read_geval(path)

    assert geval.names == ("geval:tone",)
    assert geval.threshold is None


@pytest.mark.parametrize(
    ("text", "line", "field", "why"),
    [
        ("criteria: a\nscle: [1, 5]\n", 2, "scle", "is not a field"),
        ("name: x\ncriteria: a\nscale: [5, 1]\n", 3, "scale", "lowest < highest"),
        ("name: x\n", None, "criteria", "give criteria"),
        ("criteria: a\nrubric:\n  1-3: a\n  3-5: b\n", 2, "rubric", "overlaps"),
        ("criteria: [unclosed\n", 2, None, "not YAML"),
        ("", None, None, "should hold fields"),
        ("samples: 5\npreset: politness\n", 2, "preset", "use one of coherence"),
        ("preset: groundedness\ntask: summary\n", 2, "task", "available for qa only"),
        ("criteria: x\ntask: summary\n", 2, "task", "needs a `preset`"),
    ],
)
def test_mistakes_name_file_line_and_field(
    tmp_path: Path, text: str, line: int | None, field: str | None, why: str
) -> None:
    """What a user has to look at."""
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=why) as caught:
        read_geval(path)

    assert (caught.value.line, caught.value.field) == (line, field)
    assert "politeness.geval.yaml" in str(caught.value)


def test_files_that_cannot_be_metrics(tmp_path: Path) -> None:
    """Not UTF-8, far too large, absent."""
    binary = tmp_path / "b.geval.yaml"
    binary.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(InputError, match="cannot be read"):
        read_geval(binary)
    with pytest.raises(InputError, match="larger than"):
        read_geval(write(tmp_path, "#" * 1_000_001))
    with pytest.raises(FileNotFoundError):
        read_geval(tmp_path / "none.geval.yaml")


def test_ready_made_metrics_by_name() -> None:
    """`coherence`, `coherence:summary`; anything else is a mistake."""
    assert repr(named_geval("coherence")) == repr(GEval.coherence())
    assert repr(named_geval("coherence:summary")) == repr(GEval.coherence("summary"))
    assert repr(named_geval("correctness")) == repr(GEval.correctness())
    for name in ("beauty", "coherence:poem", "correctness:summary", ""):
        with pytest.raises(ConfigurationError):
            named_geval(name)


def test_a_file_may_start_from_a_preset(tmp_path: Path) -> None:
    """Its fields replace the preset's; the metric is named after the file, or by `name`."""
    path = write(tmp_path, "preset: coherence\ntask: summary\nsamples: 5\nthreshold: 0.7\n")

    made = GEval.coherence("summary", name="politeness", samples=5, threshold=0.7)
    assert repr(read_geval(path)) == repr(made)
    named = write(tmp_path, "preset: fluency\nname: style\n", "other.geval.yaml")
    assert read_geval(named).names == ("geval:style",)
