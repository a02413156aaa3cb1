"""docs/extending.md: its code runs and prints what its comments say, and it names every member."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from pages import python_of, text_of

from rag_eval_integrations.judges import JudgeBase
from rag_eval_integrations.models import ModelBase
from rag_eval_integrations.testing import JudgeContract, ModelContract

NAMES = ("metric", "judge", "model", "sink")
BLOCKS = dict(zip(NAMES, python_of("docs/extending.md"), strict=True))


def run(block: str) -> dict[str, object]:
    """Names that a block defines."""
    names: dict[str, object] = {"__name__": "extending"}
    exec(compile(BLOCKS[block], "docs/extending.md", "exec", dont_inherit=True), names)
    return names


# The page's own test classes: pytest collects them here, as it does in a reader's file.
with contextlib.redirect_stdout(io.StringIO()):
    TestExactCopies = run("judge")["TestExactCopies"]
    TestGateway = run("model")["TestGateway"]


def test_the_pages_contracts_are_those_of_the_library() -> None:
    """What is collected above are the library's own rules, applied to the page's objects."""
    assert isinstance(TestExactCopies, type)
    assert isinstance(TestGateway, type)
    assert issubclass(TestExactCopies, JudgeContract)
    assert issubclass(TestGateway, ModelContract)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_code_prints_what_its_comments_say(
    block: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the comment below its last line."""
    monkeypatch.chdir(tmp_path)
    run(block)

    promised = re.findall(r"^# (.+)$", BLOCKS[block], re.MULTILINE)
    assert promised
    assert capsys.readouterr().out.splitlines() == promised


@pytest.mark.parametrize(("base", "heading"), [(JudgeBase, "judge"), (ModelBase, "model")])
def test_every_optional_member_has_its_line(
    base: type[JudgeBase] | type[ModelBase], heading: str
) -> None:
    """With the default that the base class gives it."""
    section = text_of("docs/extending.md").split(f"## A {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE)

    members = {name for name in base.__annotations__ if hasattr(base, name)}
    assert dict(rows) == {name: str(getattr(base, name)) for name in members}
