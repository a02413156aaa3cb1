"""CONTRIBUTING.md: its code runs and prints what its comments say, its lists are those of the tree."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

import rag_eval_integrations
from rag_eval_integrations.judges import JudgeBase
from rag_eval_integrations.models import ModelBase
from rag_eval_integrations.testing import JudgeContract, ModelContract

PAGE = (Path(__file__).resolve().parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = dict(
    zip(
        ("metric", "judge", "model", "sink"),
        re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL),
        strict=True,
    )
)


def run(block: str) -> dict[str, object]:
    """Names that a block defines."""
    names: dict[str, object] = {"__name__": "contributing"}
    exec(compile(BLOCKS[block], "CONTRIBUTING.md", "exec", dont_inherit=True), names)
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


def test_every_part_of_the_package_has_its_line() -> None:
    """Packages and modules at the top, and no others."""
    package = Path(rag_eval_integrations.__file__).parent
    parts = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in package.iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
    }
    rows = re.findall(r"^\| ((?:`[\w.]+/?`(?:, )?)+) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+/|\w+\.py)`", row)}

    assert named == parts - {"__init__.py"}


@pytest.mark.parametrize(("base", "heading"), [(JudgeBase, "judge"), (ModelBase, "model")])
def test_every_optional_member_has_its_line(
    base: type[JudgeBase] | type[ModelBase], heading: str
) -> None:
    """With the default that the base class gives it."""
    section = PAGE.split(f"## Add a {heading}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE)

    members = {name for name in base.__annotations__ if hasattr(base, name)}
    assert {name: default for name, default in rows} == {
        name: str(getattr(base, name)) for name in members
    }


def test_links_lead_somewhere(root: Path) -> None:
    """Files of the checkout."""
    links = [link for link in re.findall(r"\]\(([^)]+)\)", PAGE) if "://" not in link]

    assert links
    assert all((root / link).exists() for link in links)


def test_every_file_that_the_page_names_is_there(root: Path) -> None:
    """Paths below the checkout, and those below the package."""
    paths = re.findall(r"`((?:tests|benchmarks|cli|judges|metrics|sinks)/[\w/.]+)`", PAGE)

    assert paths
    for path in paths:
        assert (root / path).exists() or (root / "rag_eval_integrations" / path).exists(), path
