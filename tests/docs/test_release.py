"""A release can be pressed: what it says of itself agrees, and its placeholder is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

FILES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "rag_eval_integrations/__init__.py",
         ".ci/release")  # fmt: skip


def ready(tree: Path, tag: str) -> subprocess.CompletedProcess[str]:
    """What the check of a tree says."""
    command = [sys.executable, str(tree / ".ci" / "release"), tag]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def tree(root: Path, tmp_path: Path) -> Path:
    """A tree as it is when somebody has followed docs/releasing.md."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    for name in ("pyproject.toml", "CITATION.cff"):
        edit(tmp_path / name, "OWNER", "somebody")
    edit(tmp_path / "CHANGELOG.md", ", unreleased", ", 2026-12-01")
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    """Replace words that are there."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_tree_in_which_all_agrees_is_built(tree: Path) -> None:
    """By the tag of its version only."""
    good = ready(tree, f"v{version('rag-eval-integrations')}")
    assert (good.returncode, good.stdout) == (0, f"ready: v{version('rag-eval-integrations')}\n")

    other = ready(tree, "v9.9.9")
    assert other.returncode == 1
    assert "the tag says 9.9.9" in other.stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("pyproject.toml", "somebody/", "OWNER/", "pyproject.toml: put the account"),
        ("pyproject.toml", "somebody.", "OWNER.", "pyproject.toml: put the account"),
        ("CITATION.cff", "somebody", "OWNER", "CITATION.cff: put the account"),
        ("CITATION.cff", "\nversion: ", "\nversion: 9", "CITATION.cff says 9"),
        ("CHANGELOG.md", ", 2026-12-01", ", unreleased", "CHANGELOG.md says nothing"),
    ],
)
def test_a_tree_that_is_not_ready_is_refused(
    tree: Path, name: str, old: str, new: str, problem: str
) -> None:
    """The line says the file, and what to do."""
    edit(tree / name, old, new)

    said = ready(tree, f"v{version('rag-eval-integrations')}")

    assert said.returncode == 1
    assert said.stdout.startswith(problem)


def test_the_project_as_it_is_has_the_placeholder(root: Path) -> None:
    """Nobody is promised an address that does not exist."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert set(project["urls"]) == {"Homepage", "Documentation", "Source", "Changelog", "Issues"}
    assert all("OWNER" in url for url in project["urls"].values())
    assert ready(root, f"v{version('rag-eval-integrations')}").returncode == 1


def workflow(root: Path, name: str) -> dict[str, Any]:
    """A workflow, as read."""
    read: dict[str, Any] = yaml.safe_load((root / ".github" / "workflows" / name).read_text())
    return read


def test_only_the_job_that_publishes_may_speak_for_the_project(root: Path) -> None:
    """It runs no code of the tree, and the job that does has no right to publish."""
    read = workflow(root, "release.yml")
    build, publish = read["jobs"]["build"], read["jobs"]["publish"]

    assert read["permissions"] == {}
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert not any("run" in step for step in publish["steps"])
    words = [step["run"].split()[0] for step in build["steps"] if "run" in step]
    assert [word for word in words if word.startswith(".ci/")] == [".ci/release", ".ci/wheel"]
    assert build["needs"] == "deep"


@pytest.mark.parametrize("name", ["release.yml", "test.yml", "deep.yml"])
def test_actions_are_pinned(root: Path, name: str) -> None:
    """By a major version, a release branch or a hash."""
    jobs = workflow(root, name)["jobs"].values()
    used = [step["uses"] for job in jobs for step in job.get("steps", ()) if "uses" in step]

    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+|[0-9a-f]{40})", action), action


def test_classifiers_are_the_pythons_of_the_matrix(root: Path) -> None:
    """The matrix takes its rows from them, the oldest being the lowest that is required."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    matrix = subprocess.run(
        [root / ".ci" / "matrix", "--pythons"], capture_output=True, text=True, check=True
    )
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))

    assert matrix.stdout.split() == named
    assert project["requires-python"] == f">={named[0]}"
    assert not re.search(r"3\.\d\d", (root / ".ci" / "matrix").read_text().replace("3, 11", ""))


def test_the_citation_is_complete(root: Path) -> None:
    """The required fields of the format, and the licence of the package."""
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))

    assert citation.keys() >= {"cff-version", "message", "title", "authors"}
    assert citation["license"] == "Apache-2.0"


def test_the_listings_name_what_exists(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The row is YAML and names our package and class; the snippet runs on an engine."""
    from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    from llama_index.core.llms import MockLLM

    import rag_eval_integrations.langchain as langchain

    page = (root / "docs" / "listings.md").read_text(encoding="utf-8")
    (row,) = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)[0])["callbacks"]
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    index = VectorStoreIndex.from_documents(
        [Document(text="The author wrote stories.")], embed_model=MockEmbedding(embed_dim=8)
    )
    exec(compile(code, "listings.md", "exec"), {"query_engine": index.as_query_engine(MockLLM())})

    assert "1 call" in capsys.readouterr().out
    assert row["pypi"] == "rag-eval-integrations"
    assert hasattr(langchain, row["name"])
    assert f"`{row['docs_url']}`" in page
    assert not re.search(r"`llama-index-|`langchain-(?!ai)", page)
