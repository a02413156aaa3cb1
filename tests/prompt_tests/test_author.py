"""The author's words: they reach the generator, the folder keeps them, contradictions are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_test_models import generator, stage_of

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests import GenerateOptions, Generation, Project
from rag_eval_integrations.prompt_tests.prompt import AuthorWords
from rag_eval_integrations.testing import ScriptedModel

WORDS = AuthorWords(
    {
        "intent": "Words for intent.", "inputSpec": "Words for input-spec.",
        "outputRules": "Words for rules.", "inverseOutputRules": "Words for inverse-rules.",
        "testExpansion": "Words for expand.",
    },
    ({"text": "a sample"},),
)  # fmt: skip
ONE_EACH = GenerateOptions(tests_per_rule=1, baseline=False, expansions=1)


def generate(put: Path, out: Path, author: AuthorWords | None = None) -> ScriptedModel:
    model = generator(expand='{"text": "longer"}')
    project = Project.create(put, out, print, author=author)
    Generation(project.prompt, out, model, ONE_EACH, tell=print).run()
    return model


def test_every_stage_gets_its_own_words(put: Path, tmp_path: Path) -> None:
    """And no other stage does; samples go to the stages that show them."""
    model = generate(put, tmp_path / "out", WORDS)

    for request in model.requests:
        stage, text = stage_of(request), "\n".join(message.content for message in request.messages)
        own = [words for words in WORDS.instructions.values() if words in text]
        assert own == ([] if stage == "tests" else [f"Words for {stage}."])
        assert ("a sample" in text) == (stage in ("input-spec", "tests", "expand"))


def test_a_folder_keeps_the_words(put: Path, tmp_path: Path) -> None:
    """A stage that is repeated later gets them without being told; the same words are no change."""
    out = tmp_path / "out"
    generate(put, out, WORDS)
    for path in (out / "rules.txt", *out.glob("replies*")):
        path.unlink()

    [request] = generate(put, out).requests

    assert "Words for rules." in request.messages[0].content
    assert Project(out, print).prompt.instructions == WORDS.instructions
    assert Project(out, print).prompt.samples == WORDS.samples
    assert generate(put, out, WORDS).requests == []


def test_words_that_contradict_what_is_made_are_refused(put: Path, tmp_path: Path) -> None:
    """With the file to delete; nothing is changed, and without the file they are taken."""
    out = tmp_path / "out"
    generate(put, out, WORDS)
    for words, made in (
        (AuthorWords({"outputRules": "Others."}), "outputRules.*rules.txt"),
        (AuthorWords({"testExpansion": "Others."}), "testExpansion.*tests.json"),
        (AuthorWords(samples=({"text": "another"},)), "samples.*input_spec.txt"),
    ):
        before = (out / "prompt.json").read_text()
        with pytest.raises(ConfigurationError, match=f"{made} was made with; delete that file"):
            Project.create(put, out, print, author=words)
        assert (out / "prompt.json").read_text() == before
        (out / made.rpartition("*")[2]).unlink()
        Project.create(put, out, print, author=words)
        assert (out / "prompt.json").read_text() != before


def test_a_metric_of_the_author_is_found(put: Path, tmp_path: Path) -> None:
    """It is kept in the folder as `custom`; another one, or one without an output, is refused."""
    project = Project.create(put, tmp_path / "out", print)
    with pytest.raises(ConfigurationError, match="use intent, inputSpec, outputRules"):
        AuthorWords({"rules": "x"})

    for _ in range(2):
        project.add_metric("Is it kind? OK or ERR.\nuser:\n{{output}}\n")
        assert {metric.name for metric in project.metrics()} == {"loud", "custom"}
    with pytest.raises(ConfigurationError, match="is another metric"):
        project.add_metric("Is it rude? OK or ERR.\nuser:\n{{output}}\n")
    with pytest.raises(ConfigurationError, match="does not insert"):
        project.add_metric("Is it kind?")
