"""The README and the pages about command line and production: what they show is so."""

from __future__ import annotations

import json
import re
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from rag_eval_integrations.cli import app, main
from rag_eval_integrations.cli.demo import run_demo

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/cli.md", "docs/production.md")
}
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize(
    "code", EXAMPLES, ids=["score", "langchain", "llama_index", "app", "geval"]
)
def test_examples_run(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, without a key, and they print what they promise."""
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})

    assert capsys.readouterr().out.strip()


def test_the_invented_sentence_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """The first example shows what the library is for."""
    exec(compile(EXAMPLES[0], "README.md", "exec"), {"__name__": "readme"})

    assert "famous admiral" in capsys.readouterr().out


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    """Files, and headings of this page or of another."""
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[name]):
        if link.startswith("https://"):
            continue
        file, _, heading = link.partition("#")
        target = (ROOT / name).parent / file if file else ROOT / name
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            anchors = [re.sub(r"[^\w -]", "", title).strip().lower() for title in titles]
            assert heading in [anchor.replace(" ", "-") for anchor in anchors], link


def test_the_picture_is_the_demo(tmp_path: Path) -> None:
    """The first page shows a call as the demo prints it, in a terminal of 80 columns."""
    shown = re.findall(r"```text\n(.*?)```", README, re.S)[0]
    screen = StringIO()
    assert run_demo(tmp_path, Console(file=screen, width=80)) == 0
    printed = "\n".join(line.rstrip() for line in screen.getvalue().splitlines())

    assert shown in printed, "put the demo's second call into README.md as it is printed now"


def test_pictures_are_small_and_said_in_words() -> None:
    """Light and dark, with a text for those who do not see them; made by a script in the tree."""
    shown = re.findall(r'(?:srcset|src)="([^"]+)"', README)
    descriptions = re.findall(r'<img alt="([^"]+)"', README)

    assert len(shown) == 2 * len(descriptions) >= 4
    assert all(len(words) > 60 for words in descriptions)
    for name in shown:
        picture = (ROOT / name).read_bytes()
        assert picture.startswith(b"\x89PNG"), name
        assert len(picture) <= 150_000, name
    dark = re.findall(r'dark\)" srcset="([^"]+)"', README)
    assert [name.replace("-dark", "-light") for name in dark] == re.findall(
        r' src="([^"]+)"', README
    )


def test_the_pages_code_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The background evaluator of production.md, and the judge of cli.md, by its command."""
    monkeypatch.chdir(tmp_path)
    (background,) = re.findall(r"```python\n(.*?)```", PAGES["docs/production.md"], re.S)
    exec(compile(background, "docs/production.md", "exec"), {"__name__": "production"})
    assert "captured=1" in capsys.readouterr().out

    (code,) = re.findall(r"```python\n(.*?)```", PAGES["docs/cli.md"], re.S)
    (tmp_path / "my_judges.py").write_text(code, encoding="utf-8")
    call = {"question": "When?", "documents": ["At nine."], "response": "At nine."}
    (tmp_path / "calls.jsonl").write_text(json.dumps(call), encoding="utf-8")
    (tmp_path / "evals.jsonl").unlink()  # of the page before
    command = re.findall(r"`rag-eval (run [^`]*my_judges:model)`", PAGES["docs/cli.md"])[0]
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["rag-eval", *command.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    sys.modules.pop("my_judges")

    assert ended.value.code == 1  # the model on the page writes no labels
    assert "mine" in (tmp_path / "evals.jsonl").read_text()


def test_cli_page_names_every_command() -> None:
    """And no other."""
    named = set(re.findall(r"^\| `rag-eval ([a-z-]+)", PAGES["docs/cli.md"], re.M))

    groups = {"prompt-tests", "store"}
    assert named == {command.name for command in app.registered_commands} | groups


def test_the_commands_are_the_gates(root: Path) -> None:
    """CI takes both from this page, each a line that needs nothing but Python."""
    gate = (root / ".ci" / "run").read_text()

    for end in ("rag-eval demo", "uv run pytest"):
        lines = [line for line in README.splitlines() if line.endswith(end)]
        assert len(lines) == 1
        assert lines[0].startswith("python3 -m venv .venv && ")
        assert f'readme_line "{end}"' in gate
