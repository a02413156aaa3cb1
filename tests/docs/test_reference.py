"""The reference pages, as docs/reference/make.py writes them, leave out nothing."""

from __future__ import annotations

import importlib
import pkgutil
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

import rag_eval_integrations
from rag_eval_integrations.cli import app


@pytest.fixture(scope="module")
def pages(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The generated pages by their names."""
    folder = tmp_path_factory.mktemp("reference")
    runpy.run_path(str(root / "docs" / "reference" / "make.py"))["main"](folder)
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_every_command_and_option_has_its_line(pages: dict[str, str]) -> None:
    """Below its command, in code."""
    sections = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", pages["commands.md"], re.M))

    def check(command: Any, path: str) -> int:
        names = [
            name
            for parameter in command.params
            for name in (*parameter.opts, *parameter.secondary_opts, parameter.metavar or "")
            if parameter.param_type_name == "option" or name == parameter.metavar
        ]
        section = sections[path].replace("\\|", "|")
        for name in names:
            line = rf"`[^`\n]*(?<![\w-]){re.escape(name)}(?![\w-])"
            assert re.search(line, section), (path, name)
        below = getattr(command, "commands", {})
        return 1 + sum(check(each, f"{path} {name}") for name, each in below.items())

    assert check(get_command(app), "rag-eval") == len(sections)


@pytest.mark.slow  # it imports everything
def test_every_exported_name_is_described(pages: dict[str, str]) -> None:
    """By a directive whose path leads to the object that users import."""
    directives = re.findall(r"^::: ([\w.]+)$", "".join(pages.values()), re.M)
    assert len(directives) == len(set(directives))
    described: dict[str, list[object]] = {}
    for directive in directives:
        module, _, name = directive.rpartition(".")
        described.setdefault(name, []).append(getattr(importlib.import_module(module), name))
    exported = {
        f"{module.name}.{name}"
        for module in pkgutil.walk_packages(
            rag_eval_integrations.__path__, f"{rag_eval_integrations.__name__}."
        )
        if module.ispkg
        for name in getattr(importlib.import_module(module.name), "__all__", ())
    }
    errors = importlib.import_module("rag_eval_integrations.errors")
    exported |= {f"{errors.__name__}.{name}" for name in vars(errors) if name.endswith("Error")}

    for path in exported:
        module, _, name = path.rpartition(".")
        value = getattr(importlib.import_module(module), name)
        assert any(value is each for each in described[name]), path


def test_every_page_stands_in_the_navigation(root: Path, pages: dict[str, str]) -> None:
    """Written or generated, each once; and no page stands there that is not."""

    def files(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        below = entry.values() if isinstance(entry, dict) else entry
        return [file for each in below for file in files(each)]

    docs = root / "docs"
    written = {path.name for path in docs.glob("*.md")}
    listed = files(yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])

    assert sorted(listed) == sorted(written | {f"reference/{name}" for name in pages})


def test_no_page_is_long(root: Path) -> None:
    """1,500 words, code included; first pages 900, the README 700; generated ones as many as it takes."""
    most = {"README.md": 700, "judges.md": 900, "llama-index.md": 900, "prompt-tests.md": 900}
    for path in (root / "README.md", *(root / "docs").glob("*.md")):
        words = path.read_text(encoding="utf-8").split()
        assert len(words) <= most.get(path.name, 1_500), path.name


def test_every_exported_name_stands_on_a_page_written_by_hand(root: Path) -> None:
    """In code: a name that no page needs is not the users' to import."""
    exported = runpy.run_path(str(root / "docs" / "reference" / "make.py"))["exported"]
    package = root / "rag_eval_integrations"
    homes = [package / "errors.py", package / "testing.py"]
    homes += [path for path in package.rglob("__init__.py") if "__all__" in path.read_text("utf-8")]
    pages = [root / "README.md", *(root / "docs").glob("*.md")]
    code = re.compile(r"^```.*?^```|`[^`\n]+`|^    [^\n]+", re.M | re.S)
    words: set[str] = set()
    for page in pages:
        for span in code.findall(page.read_text(encoding="utf-8")):
            words |= set(re.findall(r"\w+", span))
    names = {name for home in homes for name in exported(home)}

    assert sorted(names - words) == []
