"""A small prompt and rules by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_test_models import PROMPT

from rag_eval_integrations.metrics.prompty import parse_prompty
from rag_eval_integrations.prompt_tests import PromptUnderTest, Rule, Spec


@pytest.fixture
def prompt() -> PromptUnderTest:
    """One input, `text`."""
    return PromptUnderTest.of(parse_prompty(PROMPT, name="shout"))


@pytest.fixture
def put(tmp_path: Path) -> Path:
    """The same in a file, with a metric beside it."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    path = folder / "shout.prompty"
    path.write_text(PROMPT)
    (folder / "loud.metric.prompty").write_text("Score 0 to 100 how loud it is.\nuser:\n{{output}}")
    return path


@pytest.fixture
def spec() -> Spec:
    """Two rules and their contradictions."""
    return Spec(
        intent="Repeats text in capitals.",
        input_spec=("The input is any text.",),
        rules=(
            Rule(id=1, text="The output is in capitals."),
            Rule(id=2, text="The output repeats the input."),
            Rule(id=3, text="The output is in small letters.", inverse=True, of_rule=1),
            Rule(id=4, text="The output is something new.", inverse=True, of_rule=2),
        ),
    )
