"""Write the reference pages: every command with its options, and every exported name.

    uv run python docs/reference/make.py

Writes beside this file: `commands.md` from the command line itself; `api.md` and `api-PACKAGE.md`,
which mkdocstrings fills with signatures and docstrings; and the notebooks of examples/ with their
outputs. None of them is in the repository: run this before a build of the site. It reads sources,
and needs the base install only.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer.main import get_command

from rag_eval_integrations.cli import app

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "rag_eval_integrations"
MODULES = ("errors", "testing")
"""Modules without an `__all__` that users import from."""


class MarkdownHelp:
    """What a command writes its help page to, in place of a terminal."""

    width = 1000  # no word of a short help is cut

    def __init__(self) -> None:
        self.text = ""

    def write_usage(self, program: str, arguments: str = "", prefix: str | None = None) -> None:
        """Write how the command is called."""
        self.text += f"```text\n{program} {arguments}\n```\n\n"

    def write_text(self, text: str) -> None:
        """Write a paragraph, or lines to be kept as they are."""
        kept = text.removeprefix("\b\n")
        self.text += f"{_escaped(kept)}\n\n" if kept == text else f"```bash\n{kept}\n```\n\n"

    def write_paragraph(self) -> None:
        """Paragraphs are apart already."""

    def write_dl(self, rows: list[tuple[str, str]], **widths: int) -> None:
        """Write options, or commands, with what they mean."""
        for name, meaning in rows:
            words = f"`{name.strip()}`".replace("|", r"\|")
            self.text += f"| {words} | {_escaped(' '.join(meaning.split()))} |\n"
        self.text += "\n"

    @contextmanager
    def section(self, title: str) -> Iterator[None]:
        """Write the heading of a table, or of examples."""
        self.text += f"**{title}**\n\n" if title == "Examples" else f"| {title} | |\n|---|---|\n"
        yield

    @contextmanager
    def indentation(self) -> Iterator[None]:
        """Markdown is not indented."""
        yield


def _escaped(text: str) -> str:
    """Escape the signs of Markdown."""
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)


def commands_page() -> str:
    """Return the page of all commands, each with the sections of its `--help`."""
    pages = ["# All commands and options\n\nEach command as its `--help` shows it.\n\n"]

    def add(command: Any, name: str, parent: Any) -> None:
        """Add a command, then those below it."""
        context = command.make_context(name, [], parent=parent, resilient_parsing=True)
        shown = MarkdownHelp()
        command.format_help(context, shown)
        pages.append(f"## {context.command_path}\n\n{shown.text}")
        for below in getattr(command, "commands", {}).items():
            add(*reversed(below), context)

    add(get_command(app), "rag-eval", None)
    return "".join(pages)


def exported(source: Path) -> list[str]:
    """Return the names that a module exports: its `__all__`, or all that is public in it."""
    names: list[str] = []
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.append(node.name)
        elif isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names if alias.asname == alias.name]
    return [name for name in names if not name.startswith("_")]


def api_pages() -> dict[str, str]:
    """Return the page of each package by its file; a name is shown where it is to be imported."""
    source = ROOT / PACKAGE
    top = exported(source / "__init__.py")
    pages = {"api.md": _api_page(source / "__init__.py", PACKAGE, top, [])}
    inits = [path for path in source.glob("*/__init__.py") if "__all__" in path.read_text()]
    for path in sorted([*inits, *(source / f"{name}.py" for name in MODULES)]):
        name = path.parent.name if path.name == "__init__.py" else path.stem
        names = exported(path)
        page = _api_page(path, f"{PACKAGE}.{name}", names, top)
        for below in sorted(path.parent.glob("*/__init__.py") if path in inits else []):
            more = exported(below)
            if set(more) - {*names, *top}:
                dotted = f"{PACKAGE}.{name}.{below.parent.name}"
                page += _api_page(below, dotted, more, [*names, *top]).replace("# ", "## ", 1)
        pages[f"api-{name.replace('_', '-')}.md"] = page
    return pages


def _api_page(path: Path, dotted: str, names: list[str], elsewhere: list[str]) -> str:
    """Return a page of a module: what it is for, where else its names stand, and the others."""
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")), clean=False) or ""
    # Lines that are indented list modules.
    what = "\n\n".join(part for part in words.strip().split("\n\n") if part[0] != " ")
    own = [name for name in names if name not in elsewhere]
    page = f"# {dotted}\n\n{what}\n\n"
    if len(own) < len(names):
        others = ", ".join(f"`{name}`" for name in names if name in elsewhere)
        page += f"Also exported here, and described with the package above: {others}.\n\n"
    return page + "".join(f"::: {dotted}.{name}\n\n" for name in own)


def notebook_page(path: Path) -> str:
    """Return a notebook as a page: its words, its code, and what the code showed."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            html = "".join(data.get("text/html", ""))
            plain = "".join(data.get("text/plain", ""))
            parts.append(f"<div>{html}</div>" if html else f"```text\n{plain}\n```")
    return "\n\n".join(parts) + "\n"


def main(folder: Path) -> None:
    """Write all pages."""
    pages = {"commands.md": commands_page(), **api_pages()}
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        pages[f"notebook-{path.stem.replace('_', '-')}.md"] = notebook_page(path)
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
