"""Metric files beside a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import (
    PromptyMetric,
    discover_metrics,
    lint,
    load_prompty,
    metric_files,
    parse_prompty,
)
from rag_eval_integrations.metrics.prompty.metric import distinct


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A prompt, three kinds of metrics, and a file of another kind."""
    for name, tags in (
        ("b", ""),
        ("a", "scorer"),
        ("trial", "experimental"),
        ("gt", "groundtruth"),
    ):
        text = f"---\ntags: [{tags}]\n---\n{{{{output}}}}"
        (tmp_path / f"{name}.metric.prompty").write_text(text)
    (tmp_path / "put.prompty").write_text("{{x}}")
    return tmp_path


def test_metric_files_are_found_by_their_names(folder: Path) -> None:
    """In order of their names; experimental ones and those for expected outputs are left out."""
    assert [path.name for path in metric_files(folder)] == [
        "a.metric.prompty",
        "b.metric.prompty",
        "gt.metric.prompty",
        "trial.metric.prompty",
    ]
    assert [metric.name for metric in discover_metrics(folder)] == ["a", "b"]
    assert [metric.name for metric in discover_metrics(folder, groundtruth=True)] == ["gt"]
    assert metric_files(folder / "nowhere") == []


def test_metrics_can_be_named(folder: Path) -> None:
    """Also an experimental one; a name that is not there is a mistake."""
    assert [metric.name for metric in discover_metrics(folder, named=["trial", "b"])] == [
        "b",
        "trial",
    ]
    with pytest.raises(ConfigurationError, match=r"no c\.metric\.prompty in"):
        discover_metrics(folder, named=["c"])


def test_two_metrics_of_one_name_are_refused(folder: Path, tmp_path: Path) -> None:
    """Both files are named."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.metric.prompty").write_text("{{output}}")
    both = [PromptyMetric(tmp_path / "other" / "a.metric.prompty"), *discover_metrics(folder)]

    with pytest.raises(ConfigurationError, match=r"two metrics have this name: .*other.* and "):
        distinct(both)


def test_nothing_is_odd_about_the_examples_metric(root: Path) -> None:
    """Every variable that it speaks of is inserted."""
    prompt = load_prompty(
        root / "examples" / "prompt_tests" / "help_desk" / "keeps_rules.metric.prompty"
    )

    assert lint(prompt) == []


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("{{output}}", []),
        (
            "system:\nWhere a rule needs it, look into <INPUT>.\nuser:\n{{output}}",
            ["mentions <INPUT> and never inserts {{input}}"],
        ),
        ("{{rules}}", ["never inserts {{output}}: every output gets the same score"]),
        (
            "---\ninputs: {rules: {type: string}}\n---\n{{output}}",
            ["declares `rules` and never inserts it"],
        ),
        (
            "{{output}}{{customer}}",
            ["inserts {{customer}}, which has a value only if the call or the user provides one"],
        ),
    ],
)
def test_odd_metric_files_are_told(text: str, odd: list[str]) -> None:
    """Declared or mentioned and unused, blind to the output, or in need of what nobody gives."""
    assert lint(parse_prompty(text, name="m")) == odd


def test_a_named_metric_does_not_read_the_others(folder: Path) -> None:
    """A broken file beside it is in nobody's way; one of the other kind says so."""
    (folder / "broken.metric.prompty").write_text("---\nname: [\n---\n{{output}}")

    assert [metric.name for metric in discover_metrics(folder, named=["a"])] == ["a"]
    with pytest.raises(ConfigurationError, match="line 2"):
        discover_metrics(folder)
    with pytest.raises(ConfigurationError, match="is a metric for expected outputs"):
        discover_metrics(folder, named=["gt"])
