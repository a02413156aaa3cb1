"""All pages of the documentation: their links lead somewhere, and those of no other test run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import DOCS, ROOT, run_page, text_of

FILES = [*ROOT.glob("*.md"), *DOCS.glob("*.md")]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in FILES)
RELEASED = {"README.md", "docs/listings.md", "docs/releasing.md", "docs/start.md"}
"""Pages that say what holds once there is a release."""


def prose_of(path: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors_of(path: Path) -> set[str]:
    """Return what GitHub and Python-Markdown make of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", prose_of(path), re.M)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """To files and to headings in them; none of a page in `docs/` leads out of `docs/`."""
    page = ROOT / name
    for link in re.findall(r"\]\(([^)\s`]+)\)", re.sub(r"`!\[.*?`", "", prose_of(page))):
        if "://" in link:
            continue
        file, _, heading = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert page.parent != DOCS or target.resolve().is_relative_to(DOCS), link
        assert not heading or target.suffix != ".md" or heading in anchors_of(target), link


@pytest.mark.parametrize("name", PAGES)
def test_links_are_named_by_titles(name: str) -> None:
    """As a reader says them in the sentence; no link's text is the name of a file."""
    texts = re.findall(r"\[([^\]]+)\]\([^)\s]+\)", prose_of(ROOT / name))
    files = r"`?[\w./-]+\.(md|py|jsonl?|ya?ml|toml|prompty)`?"
    assert [text for text in texts if re.fullmatch(files, text)] == []


@pytest.mark.parametrize("name", sorted({*PAGES} - RELEASED))
def test_nothing_is_installed_from_the_index(name: str) -> None:
    """Nothing is released: `docs/start.md` says how an extra is installed, and pages point to it."""
    assert not re.search(r"""pip install\s+['"]?rag-eval-integrations""", text_of(name))


@pytest.mark.slow  # they import both frameworks
@pytest.mark.parametrize(
    "name",
    [
        "docs/start.md",
        "docs/cli.md",
        "docs/judges.md",
        "docs/model-judge.md",
        "docs/prompt-tests.md",
        "docs/store.md",
    ],
)
def test_every_block_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pasted in order into an empty folder, offline and without a key; comments say what is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    run_page(name, monkeypatch)

    printed = capsys.readouterr().out
    text = text_of(name)
    for promised in re.findall(r"^ *print\(.*\)  # (.+)$", text, re.M):
        assert promised in printed, promised
