"""What the commands of `rag-eval prompt-tests` do."""

from __future__ import annotations

import importlib
import sys
from collections import Counter as Counted
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from rag_eval_integrations import _loop
from rag_eval_integrations.cli._options import metric_variables
from rag_eval_integrations.cli._terminal import complain, stdout
from rag_eval_integrations.cli.prompt_tests._options import Asking, Judging, Planning
from rag_eval_integrations.cli.prompt_tests._printing import (
    Counter,
    check,
    complain_about_judges,
    print_comparison,
    print_report,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.metrics.prompty import PromptyMetric, lint, metric_files
from rag_eval_integrations.metrics.prompty.file import prompt_name
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests._workspace import Workspace
from rag_eval_integrations.prompt_tests.evaluators import Basis, NonCompliance
from rag_eval_integrations.prompt_tests.generate import GenerateOptions, Generation
from rag_eval_integrations.prompt_tests.models import ModelUnderTest, model_of
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.report._write import to_csv, to_json, to_markdown
from rag_eval_integrations.prompt_tests.upstream.files import (
    Imported,
    read_upstream,
    write_imported,
)
from rag_eval_integrations.report.console import plain_table

_FORMATS = ("md", "csv", "json")
_FAILED = 1


def generate(
    put: Path,
    out: Path,
    model: str,
    plan: Planning,
    scenarios: Sequence[str] | None,
    groundtruth: str | None,
    asking: Asking,
) -> int:
    """Make rules and tests.

    Raises:
        RagEvalError: a mistake of the user, or a generator that does not answer.
    """
    options = GenerateOptions.of(**asdict(plan))
    generator = _completer(model, asking)
    strong = None if groundtruth is None else _completer(groundtruth, asking)
    project = Project.create(put, out, complain)
    generation = Generation(
        project.prompt, out, generator, options, scenarios=scenarios,
        max_concurrency=asking.max_concurrency, tell=complain,
    )  # fmt: skip
    generation.model.replied = Counter(f"replies of {generation.model.name}")
    tests = generation.run()
    if strong is not None:
        tests = _loop.run(generation.groundtruth(strong, [strong]))
        usable = sum(test.usable_groundtruth is not None for test in tests)
        stdout().print(f"{usable} of {len(tests)} tests have a usable expected output")
    spec = project.workspace.spec()
    of_rules = sum(not test.baseline for test in tests)
    stdout().print(
        f"{len(spec.output_rules)} rules, {len(spec.inverse_rules)} inverse rules, "
        f"{of_rules} tests of rules, {len(tests) - of_rules} baseline tests in {out} "
        f"({generation.model.asked} requests)",
        soft_wrap=True,
    )
    return 0 if tests else _FAILED


def run(
    folder: Path,
    muts: Sequence[str],
    runs: int,
    max_tests: int | None,
    baseline: bool,
    asking: Asking,
) -> int:
    """Run the tests; 1 when every output failed.

    Raises:
        RagEvalError: a mistake of the user.
    """
    project = Project(folder, complain)
    models = [_model(name, asking) for name in muts]
    results = _loop.run(
        project.run(
            models,
            runs=runs,
            max_tests=max_tests,
            baseline=baseline,
            max_concurrency=asking.max_concurrency,
            done=Counter("outputs"),
        )
    )
    failed = [result for result in results if result.error is not None]
    for model in dict.fromkeys(result.model for result in failed):
        of_it = [result for result in failed if result.model == model]
        complain(f"{model}: {len(of_it)} outputs failed, the first by {of_it[0].error}")
    stdout().print(f"{len(results) - len(failed)} outputs of {len(models)} models in {folder}")
    return 0 if len(failed) < len(results) else _FAILED


def evaluate(folder: Path, judges: Sequence[str], what: Judging, asking: Asking) -> int:
    """Judge the outputs; 1 when no judge answered.

    Raises:
        RagEvalError: a mistake of the user.
    """
    project = Project(folder, complain)
    metrics = project.metrics(what.metric or [], metric_variables(what.metric_var or []))
    for metric in metrics:
        _complain_about(metric)
    found = [_completer(name, asking) for name in judges]
    agreement = None if what.agreement is None else _completer(what.agreement, asking)
    progress = Counter("questions to judges", lambda: evaluation.planned)
    evaluation = project.evaluation(
        found, metrics, compliance=NonCompliance(cast(Basis, what.basis), what.see_input),
        max_concurrency=asking.max_concurrency, done=progress,
    )  # fmt: skip
    results = _loop.run(
        project.evaluate(
            evaluation,
            validity=what.validity,
            groundedness=what.groundedness,
            agreement_model=agreement,
        )
    )
    stdout().print(
        f"{len(results)} outputs judged by {', '.join(judge.name for judge in evaluation.judges)} "
        f"({evaluation.asked} requests)",
        soft_wrap=True,
    )
    return _FAILED if complain_about_judges(results) else 0


def report(
    folder: Path,
    format_: str | None,
    before: Path | None,
    unknown_as_err: bool,
    fail_under: float | None,
) -> int:
    """Print and write the report; 1 when a model complies less than asked for.

    Raises:
        RagEvalError: a mistake of the user.
    """
    if format_ is not None and format_ not in _FORMATS:
        raise ConfigurationError("format", format_, f"use {', '.join(_FORMATS)}")
    project = Project(folder, complain)
    found = project.report(unknown_as="err" if unknown_as_err else None)
    written = project.write_report(found)
    if format_ is None:
        print_report(found)
        stdout().print(f"written: {', '.join(map(str, written))}", soft_wrap=True)
    else:
        forms = {"md": to_markdown, "csv": lambda one: to_csv(one.overview()), "json": to_json}
        sys.stdout.write(forms[format_](found))
    if before is not None:
        for comparison in found.compare(Project(before, complain).report()):
            print_comparison(comparison, aside=format_ is not None)
    return 0 if fail_under is None else check(found, fail_under)


def metrics(put: Path) -> int:
    """List metric files with what is odd about them.

    Raises:
        RagEvalError: a file that is no prompt.
    """
    prompt = PromptUnderTest.of(put)
    found = metric_files(put.parent)
    names = Counted(prompt_name(path) for path in found)
    table = plain_table(f"Metrics beside {prompt.name}", "metric", "inserts", "tags", "odd")
    for path in found:
        metric = PromptyMetric(path)
        table.add_row(
            metric.name,
            ", ".join(sorted(metric.prompt.variables)),
            ", ".join(metric.prompt.tags),
            "; ".join(
                [
                    *(["another has this name"] if names[metric.name] > 1 else []),
                    *lint(metric.prompt),
                ]
            ),
        )
    if found:
        stdout().print(table)
    else:
        stdout().print(f"no metric files (*.metric.prompty) in {put.parent}", soft_wrap=True)
    return 0


def import_(source: Path, out: Path, prompt: Path | None, max_rules: int | None) -> int:
    """Take over upstream's files.

    Raises:
        RagEvalError: nothing that can be taken over.
    """
    read = read_upstream(source, prompt, max_rules=max_rules)
    project = Project.create(_prompt_file(read, out), out, complain)
    for one in read.lost:
        complain(one)
    write_imported(read, project.workspace)
    stdout().print(
        f"{len(read.spec.output_rules)} rules, {len(read.tests)} tests and {len(read.results)} "
        f"results in {out}, {len(read.lost)} rows lost",
        soft_wrap=True,
    )
    return 0


def _prompt_file(read: Imported, out: Path) -> Path:
    if read.prompt_file is None:
        return Path(read.prompt.source)
    name, text = read.prompt_file
    workspace = Workspace(out)
    workspace.write(name, text)
    return workspace.path(name)


def _complain_about(metric: PromptyMetric) -> None:
    for odd in lint(metric.prompt):
        complain(f"{metric.prompt.source}: {odd}")


def _model(name: str, asking: Asking) -> ModelUnderTest:
    """Make a model of `openai:NAME`, or find `MODULE:OBJECT`.

    Raises:
        ConfigurationError: no such model, module or object.
    """
    if name.startswith("openai:"):
        found = judge_from(
            name, base_url=asking.base_url, rpm=asking.rpm, tpm=asking.tpm,
            max_concurrency=asking.max_concurrency,
        )  # fmt: skip
        return cast(Model, found)
    module, colon, path = name.partition(":")
    if not colon or not module or not path:
        raise ConfigurationError("model", name, "use openai:NAME or MODULE:OBJECT")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found_object: object = importlib.import_module(module)
        for part in path.split("."):
            found_object = getattr(found_object, part)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError("model", name, f"cannot be loaded: {error}") from error
    return model_of(found_object)


def _completer(name: str, asking: Asking) -> Model:
    """Make a model that answers messages.

    Raises:
        ConfigurationError: no such model, or a whole app.
    """
    found = _model(name, asking)
    if not isinstance(found, Model):
        raise ConfigurationError("model", name, "is an app; a model that answers is needed")
    return found
