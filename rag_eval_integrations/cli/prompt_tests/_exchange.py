"""What comes into a folder of prompt tests and goes out: the author's words, imports, exports."""

from __future__ import annotations

import os
from pathlib import Path

from rag_eval_integrations._target import make_folder, read_whole, replacing, resolved
from rag_eval_integrations.cli._options import text_of
from rag_eval_integrations.cli._terminal import print_stderr, stdout, write_stdout
from rag_eval_integrations.cli.prompt_tests._options import GenerateSettings
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests._import import (
    Imported,
    new_folder,
    read_upstream,
    write_imported,
)
from rag_eval_integrations.prompt_tests._workspace import Workspace
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.prompt import AuthorWords, read_samples


def created(prompt_file: Path, out: Path, author: GenerateSettings) -> Project:
    """Make or continue the folder of a prompt, with its author's words and metric.

    Raises:
        RagEvalError: for words that cannot be used, or a folder that they contradict.
        OSError: when a file cannot be read or written.
    """
    project = Project.create(prompt_file, out, print_stderr, author=_author_words(author))
    if author.custom_metric is not None:
        project.add_metric(text_of(author.custom_metric, "--custom-metric"))
    return project


def _author_words(author: GenerateSettings) -> AuthorWords:
    given = {
        "intent": author.intent_instructions,
        "inputSpec": author.input_spec_instructions,
        "outputRules": author.output_rules_instructions,
        "inverseOutputRules": author.inverse_output_rules_instructions,
        "testExpansion": author.test_expansion_instructions,
    }
    instructions = {
        stage: text_of(text, f"instructions for {stage}").strip()
        for stage, text in given.items()
        if text is not None
    }
    path = author.test_samples
    samples = None
    if path is not None:
        samples = tuple(read_samples(path.resolve().parent, path.name, "--test-samples"))
    return AuthorWords(instructions, samples)


def import_(
    source: Path, out: Path, prompt: Path | None, max_rules: int | None, overwrite: bool
) -> int:
    """Import PromptPex's files.

    Raises:
        RagEvalError: when there is nothing to import, or the folder exists and may not be replaced.
        OSError: when a file cannot be read or written.
    """
    imported = read_upstream(source, prompt, max_rules=max_rules)
    sources = [source, source.parent, Path(imported.prompt.source).parent]
    with new_folder(out, sources, overwrite=overwrite) as kept:
        project = Project.create(_prompt_file(imported, out), out, print_stderr)
        write_imported(imported, project.workspace)
    for reason in imported.lost:
        print_stderr(reason)
    if kept:
        print_stderr(f"the earlier folder is {kept[0]}")
    stdout().print(
        f"{len(imported.spec.output_rules)} rules, {len(imported.tests)} tests and "
        f"{len(imported.results)} results in {out}; {len(imported.lost)} rows could not be used",
        soft_wrap=True,
    )
    return 0


def _prompt_file(imported: Imported, out: Path) -> Path:
    if imported.prompt_file is None:
        return Path(imported.prompt.source)
    name, text = imported.prompt_file
    workspace = Workspace(out)
    workspace.write(name, text)
    return workspace.path(name)


def export(
    folder: Path, to: str, out: str | None, model: str | None, azure: bool, overwrite: bool
) -> int:
    """Export the tests to another tool's format.

    Raises:
        RagEvalError: for a user's mistake, or a file that exists.
        OSError: when a file cannot be read or written.
    """
    exported = Project(folder, print_stderr).export(to, model=model, azure=azure)
    first, *beside = exported.files
    for note in exported.notes:
        print_stderr(f"{to}: {note}")
    if out == "-":
        if beside:
            raise ConfigurationError("--out", out, f"{to} has {1 + len(beside)} files")
        write_stdout(exported.files[first])
        return 0
    target = folder / first if out is None else Path(out)
    if target.is_dir() or (out is not None and out.endswith(("/", os.sep))):
        make_folder(target)
        target /= first
    paths = [target, *(target.parent / name for name in beside)]
    texts = [text.encode("utf-8") for text in exported.files.values()]
    for path, text in zip(paths, texts, strict=True):
        if not overwrite and path.is_file() and read_whole(path) != text:
            why = "exists with another content; use another name, or --overwrite to replace it"
            raise ConfigurationError("--out", str(path), why)
    for path, text in zip(paths, texts, strict=True):
        with replacing(resolved(path, "--out")) as stream:
            stream.write(text)
    stdout().print(f"Wrote {', '.join(map(str, paths))}", soft_wrap=True)
    return 0
