"""docs/retrieval.md: its code prints what its comments say, its lists are those of the code."""

from __future__ import annotations

import re

import pytest
from pages import run_python, text_of

from rag_eval_integrations.metrics import ContextRecall, LabelRetrieval, Retrieval
from rag_eval_integrations.metrics.retrieval import MEASURES

PAGE = "docs/retrieval.md"
TEXT = text_of(PAGE)


@pytest.mark.slow  # it imports both frameworks
def test_the_code_prints_what_its_comments_say(capsys: pytest.CaptureFixture[str]) -> None:
    """Block after block, offline, without a key."""
    run_python(PAGE)

    promised = re.findall(r"^print\(.*\)\n# (.+)$", TEXT, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == promised
    assert len(promised) == TEXT.count("print(")


def test_every_score_is_described() -> None:
    """In the table of the metrics, and each with its value."""
    named = re.findall(r"`([a-z_]+(?:@k)?)`", TEXT.split("```python")[0])

    ours = [f"{measure}@k" for measure in MEASURES]
    ours += [*LabelRetrieval().names, *ContextRecall().names]
    assert [name for name in named if name in ours] == ours
    valued = re.findall(r"^\| `([a-z_]+(?:@k)?)` \| [^|]*[a-z1(Σ]", TEXT, re.M)
    assert set(ours) - set(valued) == {"context_recall"}


def test_every_setting_is_described() -> None:
    """All of them, and no other."""
    section = TEXT.split("### Settings")[1].split("\n#")[0]

    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == ["k", "match", "id_key"]
    assert "`(1, 3, 5, 10)`" in section
    assert Retrieval().k == (1, 3, 5, 10)
