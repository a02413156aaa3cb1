"""Metric files beside a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import (
    PromptyMetric,
    discover_metrics,
    load_prompty,
    parse_prompty,
)
from rag_eval_integrations.metrics.prompty.metric import distinct, lint, metric_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A prompt, three kinds of metrics, and a file of another kind."""
    tags_of = {"b": "", "a": "scorer", "trial": "experimental", "gt": "groundtruth"}
    for name, tags in tags_of.items():
        text = f"---\ntags: [{tags}]\n---\n{{{{output}}}}"
        (tmp_path / f"{name}.metric.prompty").write_text(text)
    (tmp_path / "put.prompty").write_text("{{x}}")
    return tmp_path


def names(folder: Path, **options: Any) -> list[str]:
    return [metric.name for metric in discover_metrics(folder, **options)]


def test_metric_files_are_found_by_their_names(folder: Path) -> None:
    """In order of their names; experimental ones and those for expected outputs are left out."""
    stems = [path.name.removesuffix(".metric.prompty") for path in metric_files(folder)]
    assert stems == ["a", "b", "gt", "trial"]
    assert names(folder) == ["a", "b"]
    assert names(folder, groundtruth=True) == ["gt"]
    assert metric_files(folder / "nowhere") == []


def test_metrics_can_be_named(folder: Path) -> None:
    """Also an experimental one; others are not read; one that is not of the kind is a mistake."""
    assert names(folder, named=["trial", "b"]) == ["b", "trial"]
    (folder / "broken.metric.prompty").write_text("---\nname: [\n---\n{{output}}")
    assert names(folder, named=["a"]) == ["a"]
    for named, why in (
        (["c"], r"no c\.metric\.prompty in"),
        (["gt"], "is a metric for expected outputs"),
        ((), "line 2"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            discover_metrics(folder, named=named)


def test_two_metrics_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    """Both files are named."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.metric.prompty").write_text("{{output}}")
    both = [PromptyMetric(tmp_path / "other" / "a.metric.prompty"), *discover_metrics(folder)]

    with pytest.raises(ConfigurationError, match=r"two metrics have this name: .*other.* and "):
        distinct(both)


def test_nothing_is_odd_about_the_examples_metric(root: Path) -> None:
    """Every variable that it speaks of is inserted."""
    folder = root / "examples" / "prompt_tests" / "help_desk"

    assert lint(load_prompty(folder / "keeps_rules.metric.prompty")) == []


def test_odd_metric_files_are_told() -> None:
    """Declared or mentioned and unused, blind to the output, or in need of what nobody gives."""
    told: list[tuple[str, list[str]]] = [
        ("{{output}}", []),
        ("system:\nWhere a rule needs it, look into <INPUT>.\nuser:\n{{output}}",
         ["mentions <INPUT> and never inserts {{input}}"]),
        ("{{rules}}", ["never inserts {{output}}: every output gets the same score"]),
        ("---\ninputs: {rules: {type: string}}\n---\n{{output}}",
         ["declares `rules` and never inserts it"]),
        ("{{output}}{{customer}}",
         ["inserts {{customer}}, which has a value only if the call or the user provides one"]),
    ]  # fmt: skip

    assert [(text, lint(parse_prompty(text, name="m"))) for text, _ in told] == told
