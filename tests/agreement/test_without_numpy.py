"""Without numpy, one error names the extra, and all else works."""

from __future__ import annotations

from subprocess import CompletedProcess

from processes import fresh_python


def run(code: str, *words: str) -> CompletedProcess[str]:
    hidden = f"import sys; sys.modules['numpy'] = None\n{code}"
    return fresh_python(hidden, *words)


def test_a_command_names_the_extra() -> None:
    """Once, with exit 2, before it looks for its files."""
    done = run("from rag_eval_integrations.cli import main; main()", "agreement", "a", "b")

    assert done.returncode == 2
    assert done.stderr.count("pip install 'rag-eval-integrations[agreement]'") == 1
    assert "Traceback" not in done.stderr


def test_everything_else_is_imported_without() -> None:
    """The report, prompt tests and their judges, the other commands; the module says what it needs."""
    done = run(
        "import rag_eval_integrations.report, rag_eval_integrations.prompt_tests.report\n"
        "from rag_eval_integrations.cli import compare, report, run\n"
        "from rag_eval_integrations import RagEvaluator; RagEvaluator('embedded')\n"
        "print('fine')\n"
        "import rag_eval_integrations.agreement"
    )

    assert done.stdout == "fine\n", done.stderr
    assert "MissingDependencyError: numpy is not installed" in done.stderr
