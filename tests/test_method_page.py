"""docs/method.md, concepts.md and metrics.md: what they print and list is what the code does."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from pages import promised_by, run_python, text_of

from rag_eval_integrations.metrics import TRACE_SCORES, ContextRecall, LabelRetrieval
from rag_eval_integrations.metrics.geval._presets import PRESETS
from rag_eval_integrations.metrics.retrieval import MEASURES
from rag_eval_integrations.metrics.trace.formulas import Pattern
from rag_eval_integrations.records.labels import UnscoredCode


def rows(page: str, heading: str) -> list[str]:
    """Names in the first cells of the table below a heading."""
    section = text_of(page).split(f"# {heading}\n")[1]
    cells = re.findall(r"^\| (`.*?) \|", re.split(r"^#+ ", section, flags=re.M)[0], re.M)
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("page", ["docs/concepts.md", "docs/method.md", "docs/metrics.md"])
def test_the_code_prints_what_its_comments_say(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a `print`, or in the lines below it."""
    run_python(page)

    printed = capsys.readouterr().out.splitlines()
    assert printed
    assert printed == promised_by(page)


def test_every_score_of_trace_is_explained() -> None:
    """In the order in which `Trace` gives them."""
    assert rows("docs/method.md", "Formulas") == list(TRACE_SCORES)
    assert rows("docs/concepts.md", "Scores") == list(TRACE_SCORES)


def test_the_overview_has_every_score() -> None:
    """Of every metric that the library has."""
    names = rows("docs/metrics.md", "Metrics")

    ours = [*TRACE_SCORES, *(f"{measure}@k" for measure in MEASURES)]
    ours += [*LabelRetrieval().names, *ContextRecall().names]
    ours += [f"geval:{name}" for name in PRESETS]
    assert set(ours) == set(names) & set(ours)


def test_every_unscored_code_is_explained() -> None:
    """All of them, and no other."""
    codes = rows("docs/metrics.md", "Scores without a value")
    assert sorted(codes) == sorted(get_args(UnscoredCode))


def test_every_pattern_is_explained() -> None:
    """In the order of gravity."""
    assert rows("docs/concepts.md", "Patterns") == list(get_args(Pattern))
