"""`Project`: runs, evaluates and reports a prompt's tests in their folder."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import PromptyMetric, discover_metrics, parse_prompty
from rag_eval_integrations.metrics.prompty.file import prompt_name
from rag_eval_integrations.metrics.prompty.metric import metric_files
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests import _upstream as files
from rag_eval_integrations.prompt_tests._contents import PARTS, Contents
from rag_eval_integrations.prompt_tests._export import Exported, Source, export_tests
from rag_eval_integrations.prompt_tests._pages import report_pieces, to_csv, to_json, to_markdown
from rag_eval_integrations.prompt_tests._rates import UnknownAs
from rag_eval_integrations.prompt_tests._workspace import Tell, Workspace
from rag_eval_integrations.prompt_tests.evaluate import OWN_METRICS, PromptEvaluation
from rag_eval_integrations.prompt_tests.prompt import AuthorWords, PromptUnderTest
from rag_eval_integrations.prompt_tests.records import (
    Choice,
    PromptTest,
    Result,
    TestCheck,
)
from rag_eval_integrations.prompt_tests.report import Report
from rag_eval_integrations.prompt_tests.run import run_tests
from rag_eval_integrations.records._json import SCHEMA
from rag_eval_integrations.report._page import write

CUSTOM_METRIC = "custom.metric.prompty"
REPORT_MD = "README.md"
_NO_TESTS = f"has no {files.TESTS}; generate tests first"


class Project:
    """A folder with a prompt's tests and results.

    Args:
        folder: the folder.
        tell: receives notices, one sentence each.
        prompt: the prompt under test; by default the one that the folder was made for.

    Raises:
        ConfigurationError: for a folder that was not made by `generate`, `all` or `import`.
    """

    def __init__(self, folder: str | Path, tell: Tell, *, prompt: object | None = None) -> None:
        self.workspace = Workspace(folder)
        self._tell = tell
        self.prompt = PromptUnderTest.of(prompt) if prompt is not None else self._own_prompt()

    @staticmethod
    def create(
        prompt: str | Path, folder: str | Path, tell: Tell, *, author: AuthorWords | None = None
    ) -> Project:
        """Make the folder for a prompt file and copy the prompt into it.

        An earlier copy is replaced, and so is a link with its name; the link's target is not
        changed. A folder that was made for this prompt before is continued.

        Args:
            prompt: the prompt file.
            folder: the folder; created if it does not exist.
            tell: receives warnings about the prompt, one sentence each.
            author: the author's words, which the folder keeps; None for those that it has.

        Raises:
            ConfigurationError: for a file that is not a prompt or has the name of a file of the
                folder's own, a folder of another prompt or with another file of this name, or words
                of the author that a finished stage was made without.
            OSError: when the prompt cannot be read or the folder cannot be written.
        """
        path = Path(prompt)
        project = Project(folder, tell, prompt=path)
        for warning in project.prompt.warnings:
            tell(warning)
        workspace = project.workspace
        continued = workspace.has(files.PROMPT)
        if continued and (before := workspace.about().get("file")) != path.name:
            raise ConfigurationError("folder", str(folder), f"contains the tests of {before}")
        words = _author_words(workspace)
        added = words if author is None else words.continued(author)
        _refuse_changed_words(workspace, words, added)
        own_files = {name for name, _ in PARTS.values()}
        if path.name in own_files | {files.BASELINE, files.REVIEW, REPORT_MD}:
            why = "has the name of a file that the folder is going to hold; rename it"
            raise ConfigurationError("prompt", str(prompt), why)
        copy = workspace.path(path.name)
        if not (copy.exists() and copy.samefile(path)):
            content = _target.read_whole(path, "prompt")
            if copy.is_symlink():
                copy.unlink()  # copying onto a link would write outside the folder
            elif copy.is_file() and not continued and _target.read_whole(copy) != content:
                why = f"has another {path.name}, which is kept; use another folder"
                raise ConfigurationError("folder", str(folder), why)
            workspace.write(path.name, content)
        own = {"instructions": dict(added.instructions), "samples": added.samples}
        workspace.note(
            schema=SCHEMA,
            file=path.name,
            source=str(path.resolve()),
            **(own if added != words else {}),
        )
        project.prompt = project.prompt.with_author(added)
        return project

    def _own_prompt(self) -> PromptUnderTest:
        """Read the folder's prompt: the source, or the copy if that is gone.

        The author's words that the folder keeps are added. A notice tells if the copy is used.

        Raises:
            ConfigurationError: for a folder that was not made for a prompt.
        """
        why = "has no prompt tests; generate them first"
        if self.workspace.has(files.TESTS):
            folder = self.workspace.folder
            add = f"`rag-eval prompt-tests generate PROMPT -o {folder} …` adds it, and no tests"
            why = f"has tests and not their prompt, as `Generation` leaves it; {add}"
        self._require_file(files.PROMPT, why)
        about = self.workspace.about()
        source = Path(str(about.get("source")))
        if not source.is_file():
            self._tell(f"{source} does not exist; using the copy in {self.workspace.folder}")
            source = self.workspace.path(Path(str(about.get("file"))).name)
        return PromptUnderTest.of(source).with_author(_author_words(self.workspace))

    def _require_file(self, name: str, why: str) -> None:
        """Refuse a folder in which a file is missing or blank.

        Raises:
            ConfigurationError: for such a folder, with `why` as the reason.
        """
        if not self.workspace.has(name):
            raise ConfigurationError("folder", str(self.workspace.folder), why)

    def add_metric(self, text: str) -> Path:
        """Write a metric file of the author's, `custom.metric.prompty`, into the folder.

        A file with the same text may be there. Returns its path.

        Raises:
            ConfigurationError: for a text that is not a metric or does not insert `{{output}}`, or
                a folder with another one.
            OSError: when the file cannot be written.
        """
        if "output" not in parse_prompty(text, name="custom").variables:
            raise ConfigurationError("custom_metric", text[:60], "does not insert {{output}}")
        path = self.workspace.path(CUSTOM_METRIC)
        if self.workspace.has(CUSTOM_METRIC) and self.workspace.read(CUSTOM_METRIC) != text:
            why = "is another metric, which is kept; edit it, or delete it first"
            raise ConfigurationError("custom_metric", str(path), why)
        self.workspace.write(CUSTOM_METRIC, text)
        return path

    def tests(self) -> list[PromptTest]:
        """Read the tests; rows that cannot be used are reported and left out.

        Raises:
            ConfigurationError: when there is no usable test.
        """
        self._require_file(files.TESTS, _NO_TESTS)
        tests = self.workspace.tests(self.prompt, self._tell)
        if not tests:
            path = str(self.workspace.path(files.TESTS))
            raise ConfigurationError("tests", path, "has no usable test")
        return tests

    @property
    def has_results(self) -> bool:
        """Whether the folder has results of a run, or imported ones."""
        return self.workspace.has(files.RESULTS)

    def results(self) -> list[Result]:
        """Read the results; rows that cannot be used are reported and left out.

        Raises:
            ConfigurationError: when there is no file of results, or a file of tests without any
                that is usable.
        """
        return self._contents_with_results().results

    def _contents_with_results(self) -> Contents:
        """Return the folder's contents; refuse a folder without results.

        Raises:
            ConfigurationError: when it has none.
        """
        self._require_file(files.RESULTS, f"has no {files.RESULTS}; run the tests first")
        return self._contents()

    def _contents(self) -> Contents:
        """Return the folder's contents; rows that cannot be used are reported and left out.

        What has no file is empty. Checks that cannot be used are left out without a report.

        Raises:
            ConfigurationError: for a file of tests without any that is usable.
        """
        rows, spec, lost = self.workspace.rows, self.workspace.spec(), list[str]()
        tests = self.tests() if self.workspace.has(files.TESTS) else []
        results = files.results_from_rows(rows(files.RESULTS), self.prompt, spec, tests, lost)
        for reason in lost:
            self._tell(f"{files.RESULTS}: {reason}")
        return Contents(
            self.prompt,
            spec,
            tests,
            results,
            self._checks(tests),
            files.rule_checks_from_rows(rows(files.RULE_EVALS)),
            self.workspace.cut(),
        )

    def _checks(self, tests: Sequence[PromptTest]) -> list[TestCheck]:
        """Read the checks of tests, without those that cannot be used; empty without a file.

        Verdicts on an input that was edited since are left out.
        """
        now = {test.uid: test.testinput for test in tests}
        rows = [
            row
            for row in self.workspace.rows(files.TEST_EVALS)
            if (was := row.get("testinput")) in (None, now.get(files.text_of(row, "testuid"), was))
        ]
        return files.checks_from_rows(rows, self.prompt, self.workspace.spec(), tests)

    async def run(
        self,
        models: Mapping[str, object] | Sequence[object],
        *,
        max_tests: int | None = None,
        baseline: bool = True,
        choice: Choice = Choice(),  # noqa: B008  # frozen
        **options: Any,
    ) -> list[Result]:
        """Run the tests and write `test_results.json`; recorded replies are not requested again.

        Earlier verdicts are not kept in the file. Evaluating again costs nothing for outputs that
        are the same, because judges' replies are recorded, too.

        Earlier results of models that are not run now are copied to `test_results.1.json`, or the
        next free number, with a notice.

        Args:
            models: the models under test; see `run_tests`.
            max_tests: maximum number of tests; None for all.
            baseline: whether to run baseline tests.
            choice: which tests to run. Earlier results of tests that are not run are set aside.
            options: `runs`, `parameters`, `max_concurrency` and `done` of `run_tests`.

        Raises:
            ConfigurationError: when there is no test to run, or for arguments that `run_tests`
                refuses.
        """
        tests = self.chosen(choice, baseline=baseline, max_tests=max_tests)
        with self.workspace.journal() as journal:
            results = await run_tests(
                self.prompt, tests, models, journal=journal, tell=self._tell, **options
            )
        every = choice == Choice() and baseline and max_tests is None
        uids = None if every else {test.uid for test in tests}
        self._set_aside({result.model for result in results}, uids)
        self.workspace.write_json(files.RESULTS, files.results_to_rows(results))
        return results

    def chosen(
        self, choice: Choice, *, baseline: bool = True, max_tests: int | None = None
    ) -> list[PromptTest]:
        """Read the tests to run, in the file's order; of those chosen, the first `max_tests`.

        Raises:
            ConfigurationError: when there is none, or for `only_valid` without any check of
                validity.
        """
        tests = [test for test in self.tests() if baseline or not test.baseline]
        if not tests:
            raise ConfigurationError("baseline", baseline, "all tests are baseline tests")
        checks = self._checks(tests) if choice.only_valid else []
        return choice.of(tests, lambda test: test, checks)[:max_tests]

    def _set_aside(self, models: set[str], uids: set[str] | None) -> None:
        """Copy results that a run is going to replace to a new file.

        These are results of other models, and of other tests if only those of `uids` were run. The
        whole file of results is copied. The new file is `test_results.N.json` with the first free
        number, and a notice names it. Nothing happens if there are no such results.
        """
        rows = self.workspace.rows(files.RESULTS)
        others = sorted({str(row.get("model")) for row in rows} - models)
        if uids is not None and any(str(row.get("testuid")) not in uids for row in rows):
            others.append("other tests")
        if others:
            paths = (self.workspace.path(f"test_results.{n}.json") for n in itertools.count(1))
            path = next(path for path in paths if not path.exists())
            self.workspace.write(path.name, self.workspace.path(files.RESULTS).read_bytes())
            self._tell(f"{', '.join(others)}: earlier results moved to {path}")

    def evaluation(
        self, judges: Sequence[Model | str], metrics: Sequence[PromptyMetric], **options: Any
    ) -> PromptEvaluation:
        """Make the evaluation of this folder; mistakes are found here, before the first request.

        Args:
            judges: models that judge.
            metrics: metric files; see `metrics`.
            options: `compliance`, `max_concurrency` and `done` of `PromptEvaluation`.

        Raises:
            ConfigurationError: for arguments that `PromptEvaluation` refuses.
        """
        spec, journal = self.workspace.spec(), self.workspace.journal()
        return PromptEvaluation(self.prompt, spec, judges, metrics, journal=journal, **options)

    async def evaluate(
        self,
        evaluation: PromptEvaluation,
        *,
        validity: bool = False,
        groundedness: bool = False,
        agreement_model: Model | str | None = None,
    ) -> list[Result]:
        """Judge the results and, if wanted, tests and rules; write the verdicts to the folder.

        Args:
            evaluation: made by `evaluation`.
            validity: whether to judge if each test's input is valid.
            groundedness: whether to judge if the prompt supports each rule.
            agreement_model: model that answers tests from the specification alone; None to skip
                this.

        Returns:
            The results with their verdicts; empty if there are none and the inputs are judged.

        Raises:
            ConfigurationError: when there are no results, unless the inputs are judged, or no
                tests to judge.
        """
        with self.workspace.journal():
            results = []
            if self.has_results or not validity:
                results = await evaluation.outputs(self.results())
                self.workspace.write_json(files.RESULTS, files.results_to_rows(results))
            if validity or agreement_model is not None:
                tests = self.tests()
                checks = await evaluation.tests(
                    tests, validity=validity, agreement_model=agreement_model
                )
                kept = [] if validity else ["validity"]
                kept += [] if agreement_model is not None else ["agreement", "agreement_output"]
                earlier = {check.test.uid: check for check in self._checks(tests)}
                checks = [_with_fields(c, earlier.get(c.test.uid), kept) for c in checks]
                self.workspace.write_json(files.TEST_EVALS, files.checks_to_rows(checks))
            if groundedness:
                rule_checks = await evaluation.rules()
                rows = files.rule_checks_to_rows(rule_checks, self.prompt.id)
                self.workspace.write_json(files.RULE_EVALS, rows)
        return results

    def metrics(
        self,
        named: Collection[str] = (),
        variables: Mapping[str, object] | None = None,
    ) -> list[PromptyMetric]:
        """Find metric files next to the prompt and in the folder, and built-in ones by name.

        Built-in metrics, and those tagged `experimental`, have to be named. Those tagged
        `groundtruth` are left out.

        Args:
            named: names of metrics, or paths of files; empty for all in the two folders.
            variables: values for variables of the metric files.

        Raises:
            ConfigurationError: for an unknown name, two metrics with the same name, or a variable
                that no metric file has.
        """
        metrics = find_metrics(self.prompt, named, more=[self.workspace.folder])
        for name in variables or {}:
            if not any(name in metric.prompt.variables for metric in metrics):
                raise ConfigurationError("variables", name, "no metric file has this variable")
        return [PromptyMetric(metric.prompt, variables=variables) for metric in metrics]

    def report(self, *, unknown_as: UnknownAs = None) -> Report:
        """Return a report of the folder's results.

        Args:
            unknown_as: `err` counts unknown verdicts as not compliant; None leaves them out.

        Raises:
            ConfigurationError: when there are no results.
        """
        own = self._contents_with_results()
        return Report(
            self.prompt.name, own.results, own.spec, own.checks, own.rule_checks, unknown_as
        )

    def export(self, to: str, *, model: str | None = None) -> Exported:
        """Return the tests in another tool's format.

        Args:
            to: `openai`, `csv`, `pytest` or `langsmith`.
            model: the model that the exported evaluation runs and asks; by default gpt-4o.

        Returns:
            The files, not yet written, and what the format cannot hold.

        Raises:
            ConfigurationError: for another format, no tests, or nothing that the format can hold.
        """
        self._require_file(files.TESTS, _NO_TESTS)
        metrics = () if to in ("csv", "langsmith") else self.metrics()
        source = Source(**vars(self._contents()), metrics=metrics, model=model)
        return export_tests(source, to)

    def write_report(self, report: Report) -> list[Path]:
        """Write `overview.csv`, `report.json`, `README.md` and `report.html`; return their paths.

        Raises:
            ConfigurationError: when one of these files is there and is not an earlier report.
        """
        pages = {
            "overview.csv": (to_csv(report), b"model,"),
            "report.json": (to_json(report), b'{\n "schema": '),
            REPORT_MD: (to_markdown(report), b"# Prompt tests of "),
        }
        for name, (text, begins) in pages.items():
            ours = partial(_begins_with, begins)
            _target.write_page(self.workspace.path(name), text, ours, field="file")
        page = write(self.workspace.path("report.html"), report_pieces(report), field="file")
        return [*map(self.workspace.path, pages), page]


def _with_fields(check: TestCheck, earlier: TestCheck | None, kept: Sequence[str]) -> TestCheck:
    """Return a check with the fields `kept` of an earlier check of the test, if there is one."""
    if earlier is None:
        return check
    return check.model_copy(update={name: getattr(earlier, name) for name in kept})


def _begins_with(begins: bytes, head: bytes) -> bool:
    """Return whether a file's head is that of an earlier report."""
    return head.startswith(begins)


def find_metrics(
    prompt: PromptUnderTest, named: Collection[str] = (), *, more: Sequence[Path] = ()
) -> list[PromptyMetric]:
    """Find metric files; see `Project.metrics`.

    Named files come first, then metrics of the prompt's folder, of the others, and built-in ones. A
    name is taken from the first folder that has it. Built-in metrics, and those tagged
    `experimental`, have to be named; those tagged `groundtruth` are left out, unless given by path.

    Args:
        prompt: the prompt, whose folder is searched first.
        named: names of metrics, or paths of files; empty for all in the folders.
        more: further folders to search.

    Raises:
        ConfigurationError: for an unknown name, or two metrics with the same name.
    """
    folders = {folder.resolve(): folder for folder in (prompt.folder, *more) if folder is not None}
    paths = [Path(name) for name in named if Path(name).suffix and Path(name).is_file()]
    names = {name for name in named if Path(name) not in paths}
    metrics = [PromptyMetric(path) for path in paths]
    for folder in (*folders.values(), OWN_METRICS):
        there = names & {prompt_name(path) for path in metric_files(folder)}
        names -= there
        if there or not (named or folder == OWN_METRICS):
            metrics += discover_metrics(folder, named=there)
    if names:
        where = ", ".join(map(str, folders.values())) or "no folder"
        raise ConfigurationError("metric", min(names), f"no such metric file in {where}")
    return metrics


# --- The author's words, which a folder keeps


_MADE_WITH = {
    "intent": (files.INTENT,),
    "inputSpec": (files.INPUT_SPEC,),
    "outputRules": (files.RULES,),
    "inverseOutputRules": (files.INVERSE_RULES,),
    "testExpansion": (files.TESTS,),
    "samples": (files.INPUT_SPEC, files.TESTS),
}
"""Files that are made with words of the author."""


def _author_words(workspace: Workspace) -> AuthorWords:
    """Return the author's words that a folder keeps: instructions and samples.

    Raises:
        ConfigurationError: for an unknown stage, or samples that are not a list.
    """
    about = workspace.about()
    instructions, samples = about.get("instructions"), about.get("samples")
    try:
        return AuthorWords(instructions or {}, None if samples is None else tuple(samples))
    except (ConfigurationError, TypeError) as error:
        raise ConfigurationError("file", str(workspace.path(files.PROMPT)), str(error)) from error


def _refuse_changed_words(workspace: Workspace, before: AuthorWords, added: AuthorWords) -> None:
    """Refuse an author's words that differ from those that a finished file was made with.

    Words of stages whose files do not exist may change.

    Raises:
        ConfigurationError: for the first such stage, with the file to delete.
    """
    changed = dict(added.instructions.items() - before.instructions.items())
    if added.samples != before.samples:
        changed["samples"] = "a new list"
    for stage, text in changed.items():
        for name in filter(workspace.has, _MADE_WITH[stage]):
            why = (
                f"differs from what {workspace.path(name)} was made with; delete that file to make "
                "it again, or use another folder"
            )
            raise ConfigurationError(stage, text[:60], why)


# --- A folder that is made of an import


def write_imported(imported: Contents, out: Path, tell: Tell) -> None:
    """Write what was imported into a folder, for `run`, `evaluate` and `report`.

    The prompt and metric files inside an import are written as well. A part without rows gets no
    file, except for the tests; a part without lines gets a comment.

    Args:
        imported: what was read.
        out: the folder.
        tell: receives warnings about the prompt, one sentence each.

    Raises:
        ConfigurationError: for a folder of another prompt.
        OSError: when the folder cannot be written.
    """
    path = Path(imported.prompt.source)
    if imported.prompt_file is not None:
        name, text = imported.prompt_file
        path = Workspace(out).path(name)
        Workspace(out).write(name, text)
    folder = Project.create(path, out, tell).workspace
    for key, part in imported.parts().items():
        name, comment = PARTS[key]
        if comment:
            folder.write_lines(name, part, comment)
        elif part or name == files.TESTS:
            folder.write_json(name, part)
    if imported.cut is not None:
        folder.note(rulesNumberedFirst=imported.cut)
    for name, text in imported.metric_files.items():
        folder.write(name, text)


@contextmanager
def new_folder(out: Path, sources: Sequence[Path], *, overwrite: bool) -> Iterator[list[Path]]:
    """Move an earlier folder out of the way of a new one, and back on an exception.

    Args:
        out: the folder. An empty one counts as absent.
        sources: folders that are read, and may not be replaced.
        overwrite: rename an earlier folder to `out`.bak, and remove it at the end if it holds
            nothing but files of an import: replies of models were paid for.

    Yields:
        A list, which at the end has the earlier folder's new path if it was not removed.

    Raises:
        ConfigurationError: when the folder exists and may not be replaced.
        OSError: when it cannot be renamed.
    """
    folder, backups = Path(os.path.realpath(out)), list[Path]()
    if not folder.is_dir() or not any(folder.iterdir()):
        yield backups  # anything but a folder is refused by `Workspace`
        return
    backup = _target.backup_of(folder)
    if any(source.resolve().is_relative_to(folder) for source in sources):
        raise ConfigurationError("--out", str(out), "is the folder that is imported")
    if not overwrite:
        why = "is not empty; use another folder, or --overwrite to replace it"
        raise ConfigurationError("--out", str(out), why)
    if os.path.lexists(backup):
        why = "is there and is kept; move it away before you overwrite a folder"
        raise ConfigurationError("--out", str(backup), why)
    folder.rename(backup)
    try:
        folder.mkdir()
        yield backups
    except BaseException:
        shutil.rmtree(folder)
        backup.rename(folder)
        raise
    if {path.name for path in backup.iterdir()} <= {path.name for path in folder.iterdir()}:
        shutil.rmtree(backup)
    else:
        backups.append(backup)
