"""Implementations of the `rag-eval prompt-tests` commands; each returns its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from rag_eval_integrations import _loop
from rag_eval_integrations.cli._interrupt import kept, kept_words
from rag_eval_integrations.cli._model_options import model_options
from rag_eval_integrations.cli._options import metric_variables
from rag_eval_integrations.cli._terminal import print_stderr, stdout, write_stdout
from rag_eval_integrations.cli._watched import WatchedModel
from rag_eval_integrations.cli.prompt_tests._exchange import created
from rag_eval_integrations.cli.prompt_tests._options import (
    AuthorSettings,
    GenerateSettings,
    JudgeSettings,
    RequestSettings,
)
from rag_eval_integrations.cli.prompt_tests._printing import (
    ProgressCounter,
    check_threshold,
    print_comparison,
    print_failed_judges,
    print_report,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import judge_from
from rag_eval_integrations.judges._named import imported
from rag_eval_integrations.metrics.prompty import PromptyMetric, lint, metric_files
from rag_eval_integrations.metrics.prompty.file import prompt_name
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests.evaluators import Basis, NonCompliance
from rag_eval_integrations.prompt_tests.generate import GenerateOptions, Generation
from rag_eval_integrations.prompt_tests.models import ModelUnderTest, model_of
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.report import Report
from rag_eval_integrations.prompt_tests.report._html import report_pieces
from rag_eval_integrations.prompt_tests.report._write import to_csv, to_json, to_markdown
from rag_eval_integrations.report.console import add_row, plain_table

_FORMATS = ("md", "csv", "json", "html")
_FAILED = 1


def generate(
    put: Path,
    out: Path,
    model: str,
    settings: GenerateSettings,
    scenarios: Sequence[str] | None,
    groundtruth: str | None,
    author: AuthorSettings,
    requests: RequestSettings,
) -> int:
    """Generate rules and tests; return 1 without any test.

    Raises:
        RagEvalError: for a user's mistake, or a generator that does not answer.
        OSError: when a file cannot be read or written.
    """
    options = GenerateOptions.of(**asdict(settings))
    PromptUnderTest.of(put)  # a wrong file is reported before a missing key
    # Its failure ends the command, which then says it.
    generator = _model(model, "--model", requests, tell=lambda _: None)
    strong = None if groundtruth is None else _model(groundtruth, "--groundtruth", requests)
    project = created(put, out, author)
    generation = Generation(
        project.prompt, out, generator, options, scenarios=scenarios,
        max_concurrency=requests.max_concurrency, tell=print_stderr,
    )  # fmt: skip
    generation.model.on_reply = ProgressCounter(f"replies from {generation.model.name}")
    with kept(lambda: _kept(project)):
        tests = generation.run()
        if strong is not None:
            tests = _loop.run(generation.groundtruth(strong, [strong]))
    if strong is not None:
        usable = sum(test.usable_groundtruth is not None for test in tests)
        stdout().print(f"{usable} of {len(tests)} tests have a usable expected output")
    spec = project.workspace.spec()
    rule_tests = sum(not test.baseline for test in tests)
    stdout().print(
        f"{len(spec.output_rules)} rules, {len(spec.inverse_rules)} inverse rules, "
        f"{rule_tests} rule tests and {len(tests) - rule_tests} baseline tests in {out} "
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
    requests: RequestSettings,
) -> int:
    """Run the tests; return 1 when every output failed.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    project = Project(folder, print_stderr)
    models = [_model_under_test(name, "--mut", requests) for name in muts]
    with kept(lambda: _kept(project)):
        results = _loop.run(
            project.run(
                models,
                runs=runs,
                max_tests=max_tests,
                baseline=baseline,
                max_concurrency=requests.max_concurrency,
                done=ProgressCounter("outputs"),
            )
        )
    failed = [result for result in results if result.error is not None]
    for model in dict.fromkeys(result.model for result in failed):
        errors = [result.error for result in failed if result.model == model]
        print_stderr(f"{model}: {len(errors)} outputs failed; the first error: {errors[0]}")
    stdout().print(f"{len(results) - len(failed)} outputs from {len(models)} models in {folder}")
    return 0 if len(failed) < len(results) else _FAILED


def evaluate(
    folder: Path, judges: Sequence[str], settings: JudgeSettings, requests: RequestSettings
) -> int:
    """Judge the outputs; return 1 when judges failed and none answered.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    project = Project(folder, print_stderr)
    metrics = project.metrics(settings.metric or [], metric_variables(settings.metric_var or []))
    for metric in metrics:
        _print_lint(metric)
    models = [_model(name, "--judge", requests) for name in judges]
    agreement_model = (
        None if settings.agreement is None else _model(settings.agreement, "--agreement", requests)
    )
    progress = ProgressCounter("judgements", lambda: evaluation.planned)
    evaluation = project.evaluation(
        models, metrics, compliance=NonCompliance(cast(Basis, settings.basis), settings.see_input),
        max_concurrency=requests.max_concurrency, done=progress,
    )  # fmt: skip
    with kept(lambda: _kept(project)):
        results = _loop.run(
            project.evaluate(
                evaluation,
                validity=settings.validity,
                groundedness=settings.groundedness,
                agreement_model=agreement_model,
            )
        )
    stdout().print(
        f"{len(results)} outputs judged by {', '.join(judge.name for judge in evaluation.judges)} "
        f"({evaluation.asked} requests)",
        soft_wrap=True,
    )
    return _FAILED if print_failed_judges(results) else 0


def report(
    folder: Path,
    format_: str | None,
    before: Path | None,
    unknown_as_err: bool,
    fail_under: float | None,
) -> int:
    """Print and write the report; return 1 when a model complies less than `fail_under`.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    if format_ is not None and format_ not in _FORMATS:
        raise ConfigurationError("--format", format_, f"use {', '.join(_FORMATS)}")
    project = Project(folder, print_stderr)
    found = project.report(unknown_as="err" if unknown_as_err else None)
    written = project.write_report(found)
    if format_ is None:
        print_report(found)
        stdout().print(f"Wrote {', '.join(map(str, written))}", soft_wrap=True)
    else:
        formats: dict[str, Callable[[Report], str]] = {
            "md": to_markdown,
            "csv": lambda one: to_csv(one.overview()),
            "json": to_json,
            "html": lambda one: "".join(report_pieces(one)),
        }
        write_stdout(formats[format_](found))
    if before is not None:
        for comparison in found.compare(Project(before, print_stderr).report()):
            print_comparison(comparison, to_stderr=format_ is not None)
    return 0 if fail_under is None else check_threshold(found, fail_under)


def metrics(put: Path) -> int:
    """List the metric files next to a prompt, with warnings about each.

    Raises:
        RagEvalError: for a file that is not a prompt.
        OSError: when a file cannot be read.
    """
    prompt = PromptUnderTest.of(put)
    paths = metric_files(put.parent)
    names = Counter(prompt_name(path) for path in paths)
    table = plain_table(
        f"Metric files next to {prompt.name}", "metric", "variables", "tags", "warnings"
    )
    for path in paths:
        metric = PromptyMetric(path)
        add_row(
            table,
            metric.name,
            ", ".join(sorted(metric.prompt.variables)),
            ", ".join(metric.prompt.tags),
            "; ".join(
                [
                    *(["another metric file has this name"] if names[metric.name] > 1 else []),
                    *lint(metric.prompt),
                ]
            ),
        )
    if paths:
        stdout().print(table)
    else:
        stdout().print(f"no metric files (*.metric.prompty) in {put.parent}", soft_wrap=True)
    return 0


def _kept(project: Project) -> str:
    """Say how many replies an interrupted stage keeps; empty if there is none."""
    with project.workspace.journal() as journal:
        replies = len(journal)
    return kept_words(replies, "reply", "replies", journal.path) if replies else ""


def _print_lint(metric: PromptyMetric) -> None:
    for warning in lint(metric.prompt):
        print_stderr(f"{metric.prompt.source}: {warning}")


def _model_under_test(
    name: str,
    option: str,
    requests: RequestSettings,
    tell: Callable[[str], None] = print_stderr,
) -> ModelUnderTest:
    """Make the model `openai:NAME`, or import `MODULE:OBJECT`.

    Args:
        name: the model, as given on the command line.
        option: the option that it was given to, for error messages.
        requests: endpoint and limits; for `openai:NAME` only.
        tell: shows that an `openai:NAME` cannot be used.

    Raises:
        ConfigurationError: for a model, module or object that does not exist.
    """
    if name.startswith("openai:"):
        found = judge_from(
            name, base_url=requests.base_url, rpm=requests.rpm, tpm=requests.tpm,
            max_concurrency=requests.max_concurrency,
            **model_options(requests.timeout, requests.max_tokens, requests.extra_body),
        )  # fmt: skip
        return WatchedModel(cast(Model, found), tell)
    return model_of(imported(name, option, "use openai:NAME or MODULE:OBJECT"))


def _model(
    name: str,
    option: str,
    requests: RequestSettings,
    tell: Callable[[str], None] = print_stderr,
) -> Model:
    """Make a model that answers messages; see `_model_under_test`.

    Raises:
        ConfigurationError: for a model that does not exist, or a whole app.
    """
    found = _model_under_test(name, option, requests, tell)
    if not isinstance(found, Model):
        raise ConfigurationError(option, name, "is an app; use a model that answers messages")
    return found
