"""The README and the pages about command line and production: what they show is so."""

from __future__ import annotations

import json
import re
import sys
from io import StringIO
from pathlib import Path

import pytest
from pages import ROOT, python_of, run_python, text_of
from rich.console import Console

from rag_eval_integrations.cli import app, main
from rag_eval_integrations.cli.demo import run_demo

README = text_of("README.md")
EXAMPLES = python_of("README.md")


@pytest.mark.parametrize("code", EXAMPLES, ids=["langchain", "llama_index"])
def test_examples_run(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, without a key, and they print what they promise."""
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})

    assert capsys.readouterr().out.strip()


def test_the_picture_is_the_demo(tmp_path: Path) -> None:
    """docs/start.md shows a call as the demo prints it, in a terminal of 80 columns."""
    shown = re.findall(r"```text\n(.*?)```", text_of("docs/start.md"), re.S)[0]
    screen = StringIO()
    assert run_demo(tmp_path, Console(file=screen, width=80)) == 0
    printed = "\n".join(line.rstrip() for line in screen.getvalue().splitlines())

    assert shown in printed, "put the demo's second call into docs/start.md as it is printed now"


def test_pictures_are_small_and_said_in_words() -> None:
    """Light and dark, with a text for those who do not see them; made by a script in the tree."""
    shown = re.findall(r'(?:srcset|src)="([^"]+)"', README)
    descriptions = re.findall(r'<img alt="([^"]+)"', README)

    assert len(shown) == 2 * len(descriptions) >= 2
    assert all(len(words) > 60 for words in descriptions)
    for name in shown:
        picture = (ROOT / name).read_bytes()
        assert picture.startswith(b"\x89PNG"), name
        assert len(picture) <= 150_000, name
    places = (r'dark\)" srcset', " src")
    dark, light = (re.findall(f'{where}="([^"]+)"', README) for where in places)
    assert [name.replace("-dark", "-light") for name in dark] == light


def test_the_pages_code_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The background evaluator of production.md, and the judge of cli.md, by its command."""
    monkeypatch.chdir(tmp_path)
    run_python("docs/production.md")
    assert "captured=1" in capsys.readouterr().out

    (code,) = python_of("docs/cli.md")
    (tmp_path / "my_judges.py").write_text(code, encoding="utf-8")
    call = {"question": "When?", "documents": ["At nine."], "response": "At nine."}
    (tmp_path / "calls.jsonl").write_text(json.dumps(call), encoding="utf-8")
    (tmp_path / "evals.jsonl").unlink()  # of the page before
    command = re.findall(r"`rag-eval (run [^`]*my_judges:model)`", text_of("docs/cli.md"))[0]
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["rag-eval", *command.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    sys.modules.pop("my_judges")

    assert ended.value.code == 1  # the model on the page writes no labels
    assert "mine" in (tmp_path / "evals.jsonl").read_text()


def test_cli_page_names_every_command() -> None:
    """And no other."""
    named = set(re.findall(r"^\| `rag-eval ([a-z-]+)", text_of("docs/cli.md"), re.M))

    groups = {"prompt-tests", "store"}
    assert named == {command.name for command in app.registered_commands} | groups


def test_the_commands_are_the_gates() -> None:
    """CI takes both from this page, each a line that needs nothing but Python."""
    gate = text_of(".ci/run")

    for end in ("rag-eval demo", "uv run .ci/tests"):
        (line,) = [line for line in README.splitlines() if line.endswith(end)]
        assert line.startswith("python3 -m venv .venv && ")
        assert f'readme_line "{end}"' in gate
