"""Implementations of the `rag-eval prompt-tests` commands; each returns its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

from rag_eval_integrations import _loop
from rag_eval_integrations.cli._interrupt import kept, kept_words
from rag_eval_integrations.cli._options import metric_variables
from rag_eval_integrations.cli._terminal import print_stderr, stdout
from rag_eval_integrations.cli.prompt_tests._cost import (
    NOTHING,
    Bill,
    Tests,
    bill_of,
    foresee_evaluation,
    foresee_run,
)
from rag_eval_integrations.cli.prompt_tests._exchange import created
from rag_eval_integrations.cli.prompt_tests._models import (
    model_from_option,
    model_under_test,
    parameters_of,
)
from rag_eval_integrations.cli.prompt_tests._options import (
    AuthorSettings,
    GenerateSettings,
    JudgeSettings,
    MutSettings,
    RequestSettings,
)
from rag_eval_integrations.cli.prompt_tests._printing import ProgressCounter, print_failed_judges
from rag_eval_integrations.evaluations.console import add_row, plain_table
from rag_eval_integrations.metrics.prompty import PromptyMetric, lint, metric_files
from rag_eval_integrations.metrics.prompty.file import prompt_name
from rag_eval_integrations.prompt_tests._foresight import foresee_generation
from rag_eval_integrations.prompt_tests.evaluators import Basis, NonCompliance
from rag_eval_integrations.prompt_tests.generate import GenerateOptions, Generation
from rag_eval_integrations.prompt_tests.project import Project
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest

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
    bill: Bill | None = None,
) -> int:
    """Generate rules and tests; return 1 without any test.

    Raises:
        RagEvalError: for a user's mistake, or a generator that does not answer.
        OSError: when a file cannot be read or written.
    """
    options = GenerateOptions.of(**asdict(settings))
    PromptUnderTest.of(put)  # a wrong file is reported before a missing key
    bill = bill or bill_of(requests)
    # Its failure ends the command, which then says it.
    generator = model_from_option(model, "--model", requests, tell=lambda _: None)
    strong = (
        None if groundtruth is None else model_from_option(groundtruth, "--groundtruth", requests)
    )
    project = None if requests.dry_run else created(put, out, author)
    generation = Generation(
        put if project is None else project.prompt, out, generator, options, scenarios=scenarios,
        max_concurrency=requests.max_concurrency, tell=print_stderr,
    )  # fmt: skip
    forecast = foresee_generation(generation, groundtruth=strong is not None)
    if project is None:
        stdout().print(f"{bill.generation_words(forecast)}. {NOTHING}", soft_wrap=True)
        return 0
    print_stderr(bill.generation_words(forecast))
    spent = generation.workspace.journal().spent
    generation.model.on_reply = ProgressCounter(
        f"replies from {generation.model.name}", spent=lambda: bill.words(spent)
    )
    with kept(lambda: _kept(project)):
        tests = generation.run()
        if strong is not None:
            tests = _loop.run(generation.groundtruth(strong, [strong]))
    bill.add("generate", spent)
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
    which: Tests,
    settings: MutSettings,
    requests: RequestSettings,
    bill: Bill | None = None,
) -> int:
    """Run the tests; return 1 when every output failed.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    bill = bill or bill_of(requests)
    parameters = parameters_of(muts, settings, requests)
    project = Project(folder, print_stderr)
    models = [model_under_test(name, "--mut", requests) for name in muts]
    forecasts = foresee_run(project, models, which, parameters)
    bill.foresee("run", forecasts)
    if requests.dry_run:
        stdout().print(NOTHING)
        return 0
    spent = project.workspace.journal().spent
    with kept(lambda: _kept(project)):
        results = _loop.run(
            project.run(
                models,
                runs=which.runs,
                max_tests=which.max_tests,
                baseline=which.baseline,
                choice=which.choice,
                parameters=parameters,
                max_concurrency=requests.max_concurrency,
                done=ProgressCounter("outputs", spent=lambda: bill.words(spent)),
            )
        )
    bill.add("run", spent)
    failed = [result for result in results if result.error is not None]
    for model in dict.fromkeys(result.model for result in failed):
        errors = [result.error for result in failed if result.model == model]
        print_stderr(f"{model}: {len(errors)} outputs failed; the first error: {errors[0]}")
    stdout().print(f"{len(results) - len(failed)} outputs from {len(models)} models in {folder}")
    return 0 if len(failed) < len(results) else _FAILED


def evaluate(
    folder: Path,
    judges: Sequence[str],
    settings: JudgeSettings,
    requests: RequestSettings,
    bill: Bill | None = None,
) -> int:
    """Judge the outputs; return 1 when judges failed and none answered.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    bill = bill or bill_of(requests)
    project = Project(folder, print_stderr)
    metrics = project.metrics(settings.metric or [], metric_variables(settings.metric_var or []))
    for metric in metrics:
        _print_lint(metric)
    models = [model_from_option(name, "--judge", requests) for name in judges]
    agreement_model = (
        None
        if settings.agreement is None
        else model_from_option(settings.agreement, "--agreement", requests)
    )
    spent = project.workspace.journal().spent
    progress = ProgressCounter(
        "judgements", lambda: evaluation.planned, spent=lambda: bill.words(spent)
    )
    evaluation = project.evaluation(
        models, metrics, compliance=NonCompliance(cast(Basis, settings.basis), settings.see_input),
        max_concurrency=requests.max_concurrency, done=progress,
    )  # fmt: skip
    bill.foresee("evaluate", foresee_evaluation(project, evaluation, settings, agreement_model))
    if requests.dry_run:
        stdout().print(NOTHING)
        return 0
    with kept(lambda: _kept(project)):
        results = _loop.run(
            project.evaluate(
                evaluation,
                validity=settings.validity,
                groundedness=settings.groundedness,
                agreement_model=agreement_model,
            )
        )
    bill.add("evaluate", spent)
    stdout().print(
        f"{len(results)} outputs judged by {', '.join(judge.name for judge in evaluation.judges)} "
        f"({evaluation.asked} requests)",
        soft_wrap=True,
    )
    return _FAILED if print_failed_judges(results) else 0


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
