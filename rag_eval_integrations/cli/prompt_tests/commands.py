"""Implementations of the `rag-eval prompt-tests` commands; each returns its exit code."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import cast

from rag_eval_integrations import _loop
from rag_eval_integrations.cli._interrupt import kept, kept_words
from rag_eval_integrations.cli._options import metric_variables
from rag_eval_integrations.cli._terminal import print_stderr, stdout
from rag_eval_integrations.cli.prompt_tests import _reporting
from rag_eval_integrations.cli.prompt_tests._exchange import created
from rag_eval_integrations.cli.prompt_tests._models import (
    ASSUMED,
    Bill,
    model_from_option,
    model_under_test,
    parameters_of,
)
from rag_eval_integrations.cli.prompt_tests._options import (
    GenerateSettings,
    JudgeSettings,
    ReportSettings,
    RequestSettings,
    RunSettings,
)
from rag_eval_integrations.evaluations.console import add_row, plain_table
from rag_eval_integrations.metrics.prompty import PromptyMetric, lint, metric_files
from rag_eval_integrations.metrics.prompty.file import prompt_name
from rag_eval_integrations.prompt_tests._schema import METRIC
from rag_eval_integrations.prompt_tests.evaluators import Basis, NonCompliance
from rag_eval_integrations.prompt_tests.generate import GenerateOptions, Generation
from rag_eval_integrations.prompt_tests.project import Project, find_metrics
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import Choice, Result
from rag_eval_integrations.prompt_tests.run import App

_FAILED = 1
_NOTHING = "Nothing was sent or written."


def generate(
    prompt_file: Path,
    out: Path,
    model: str,
    settings: GenerateSettings,
    requests: RequestSettings,
    bill: Bill | None = None,
) -> int:
    """Generate rules and tests; return 1 without any test.

    Raises:
        RagEvalError: for a user's mistake, or a generator that does not answer.
        OSError: when a file cannot be read or written.
    """
    PromptUnderTest.of(prompt_file)  # a wrong file is reported before a missing key
    bill = bill or Bill(requests.prices)
    strong = None
    if settings.groundtruth is not None:
        strong = model_from_option(settings.groundtruth, "--groundtruth", requests)
    generation, project = _generation(
        prompt_file, out, model, settings, requests, make=not requests.dry_run
    )
    _, words = bill.generation(generation, groundtruth=strong is not None)
    if project is None:
        stdout().print(f"{words}. {_NOTHING}", soft_wrap=True)
        return 0
    print_stderr(words)
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


def _generation(
    prompt_file: Path,
    out: Path,
    model: str,
    settings: GenerateSettings,
    requests: RequestSettings,
    *,
    make: bool,
) -> tuple[Generation, Project | None]:
    """Prepare a generation; a mistake is found before the folder is made."""
    names = {field.name for field in fields(GenerateOptions)}
    explicit = {name: value for name, value in vars(settings).items() if name in names}
    options = GenerateOptions.of(settings.effort, **explicit)
    # Its failure ends the command, which then says it.
    generator = model_from_option(model, "--model", requests, tell=lambda _: None)
    project = created(prompt_file, out, settings) if make else None
    generation = Generation(
        prompt_file if project is None else project.prompt, out, generator, options,
        scenarios=settings.scenario, max_concurrency=requests.max_concurrency, tell=print_stderr,
    )  # fmt: skip
    return generation, project


def run(
    folder: Path,
    muts: Sequence[str],
    settings: RunSettings,
    choice: Choice,
    without_baseline: bool,
    requests: RequestSettings,
    bill: Bill | None = None,
) -> int:
    """Run the tests; return 1 when every output failed.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    bill = bill or Bill(requests.prices)
    parameters = parameters_of(muts, settings, requests)
    project = Project(folder, print_stderr)
    models = [model_under_test(name, "--mut", requests) for name in muts]
    tests = project.chosen(choice, baseline=not without_baseline, max_tests=settings.max_tests)
    inputs = sum(len(test.testinput) for test in tests)
    characters = len(project.prompt.text) + inputs / max(1, len(tests))
    for model in models:
        size = None if isinstance(model, App) else characters
        bill.print_estimate("run", model.name, len(tests) * settings.runs, size)
    if requests.dry_run:
        return _nothing(project)
    spent = project.workspace.journal().spent
    with kept(lambda: _kept(project)):
        results = _loop.run(
            project.run(
                models, runs=settings.runs, max_tests=settings.max_tests,
                baseline=not without_baseline, choice=choice, parameters=parameters,
                max_concurrency=requests.max_concurrency,
                done=ProgressCounter("outputs", spent=lambda: bill.words(spent)),
            )
        )  # fmt: skip
    bill.add("run", spent)
    failed = [result for result in results if result.error is not None]
    for name in dict.fromkeys(result.model for result in failed):
        errors = [result.error for result in failed if result.model == name]
        print_stderr(f"{name}: {len(errors)} outputs failed; the first error: {errors[0]}")
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
    bill = bill or Bill(requests.prices)
    project = Project(folder, print_stderr)
    metrics = project.metrics(settings.metric or [], metric_variables(settings.metric_var or []))
    for metric in metrics:
        for warning in lint(metric.prompt):
            print_stderr(f"{metric.prompt.source}: {warning}")
    models = [model_from_option(name, "--judge", requests) for name in judges]
    agreement_model = None
    if settings.agreement is not None:
        agreement_model = model_from_option(settings.agreement, "--agreement", requests)
    spent = project.workspace.journal().spent
    progress = ProgressCounter(
        "judgements", lambda: evaluation.planned, spent=lambda: bill.words(spent)
    )
    evaluation = project.evaluation(
        models, metrics, compliance=NonCompliance(cast(Basis, settings.basis), settings.see_input),
        max_concurrency=requests.max_concurrency, done=progress,
    )  # fmt: skip
    outputs = []
    if project.has_results or not settings.validity:
        outputs = [result for result in project.results() if result.error is None]
    tests = len(project.tests()) if settings.validity or agreement_model else 0
    asked = len(outputs) * (1 + len(metrics))
    more = tests * (settings.validity + (agreement_model is not None))
    more += len(project.workspace.spec().output_rules) * settings.groundedness
    characters = len(project.prompt.text) + ASSUMED
    for number, judge in enumerate(evaluation.judges):
        most = asked + (0 if number else more)
        bill.print_estimate("evaluate", judge.name, most, characters)
    if agreement_model is not None:
        bill.print_estimate("evaluate", agreement_model.name, tests, characters)
    if requests.dry_run:
        return _nothing(project)
    with kept(lambda: _kept(project)):
        results = _loop.run(
            project.evaluate(
                evaluation, validity=settings.validity, groundedness=settings.groundedness,
                agreement_model=agreement_model,
            )
        )  # fmt: skip
    bill.add("evaluate", spent)
    stdout().print(
        f"{len(results)} outputs judged by {', '.join(judge.name for judge in evaluation.judges)} "
        f"({evaluation.asked} requests)",
        soft_wrap=True,
    )
    return _FAILED if print_failed_judges(results) else 0


def all_stages(
    prompt_file: Path,
    out: Path,
    model: str,
    muts: Sequence[str],
    judges: Sequence[str],
    settings: GenerateSettings,
    running: RunSettings,
    judging: JudgeSettings,
    reporting: ReportSettings,
    requests: RequestSettings,
) -> int:
    """Say what all stages together ask at most; then generate, run, evaluate and report.

    Raises:
        RagEvalError: for a user's mistake, or a generator that does not answer.
        OSError: when a file cannot be read or written.
    """
    bill = Bill(requests.prices)
    parameters_of(muts, running, requests)  # a mistake is found before the first request
    prompt = PromptUnderTest.of(prompt_file)
    generation, _ = _generation(prompt_file, out, model, settings, requests, make=False)
    most, words = bill.generation(generation, groundtruth=settings.groundtruth is not None)
    print_stderr(words)
    runs = min(most, running.max_tests or most) * running.runs
    for name in muts:
        bill.print_estimate("run", name, runs, len(prompt.text))
    asked = runs * len(muts) * (1 + len(find_metrics(prompt, judging.metric or [], more=[out])))
    for name in judges:
        bill.print_estimate("evaluate", name, asked, len(prompt.text) + ASSUMED)
    if of_tests := most * (judging.validity + 2 * (judging.agreement is not None)):
        print_stderr(f"evaluate: at most {of_tests:,} requests about the tests themselves")
    if requests.dry_run:
        stdout().print(_NOTHING)
        return 0
    if generate(prompt_file, out, model, settings, requests, bill):
        return _FAILED
    # Continue when models or judges failed: the report shows the failures best.
    without_baseline = settings.baseline is False
    failed = run(out, muts, running, Choice(), without_baseline, requests, bill)
    failed = evaluate(out, judges, judging, requests, bill) or failed
    failed = _reporting.report(out, None, reporting) or failed
    bill.print_total()
    return failed


def _nothing(project: Project) -> int:
    project.workspace.journal().close()
    stdout().print(_NOTHING)
    return 0


def metrics(prompt_file: Path) -> int:
    """List the metric files next to a prompt, with warnings about each.

    Raises:
        RagEvalError: for a file that is not a prompt.
        OSError: when a file cannot be read.
    """
    prompt = PromptUnderTest.of(prompt_file)
    paths = metric_files(prompt_file.parent)
    names = Counter(prompt_name(path) for path in paths)
    table = plain_table(
        f"Metric files next to {prompt.name}", "metric", "variables", "tags", "warnings"
    )
    for path in paths:
        metric = PromptyMetric(path)
        twice = ["another metric file has this name"] if names[metric.name] > 1 else []
        add_row(
            table, metric.name, ", ".join(sorted(metric.prompt.variables)),
            ", ".join(metric.prompt.tags), "; ".join([*twice, *lint(metric.prompt)]),
        )  # fmt: skip
    if paths:
        stdout().print(table)
    else:
        stdout().print(
            f"no metric files (*.metric.prompty) in {prompt_file.parent}", soft_wrap=True
        )
    return 0


def _kept(project: Project) -> str:
    """Say how many replies an interrupted stage keeps; empty if there is none."""
    with project.workspace.journal() as journal:
        replies = len(journal)
    return kept_words(replies, "reply", "replies", journal.path) if replies else ""


def print_failed_judges(results: Sequence[Result]) -> bool:
    """Print the judges that failed; return True when some failed and none answered."""
    failed: dict[str, list[str]] = {}
    answered = 0
    for result in results:
        replies = [(verdict.judge, verdict.failed, verdict.reason) for verdict in result.verdicts]
        replies += [
            (metric.judge, metric.failed, metric.problem or "")
            for metric in result.metrics
            if metric.metric != METRIC
        ]
        for judge, has_failed, reason in replies:
            if has_failed:
                failed.setdefault(judge or "?", []).append(reason)
            elif judge is not None:
                answered += 1
    for judge, reasons in failed.items():
        print_stderr(f"{judge}: {len(reasons)} judgements failed; the first error: {reasons[0]}")
    return bool(failed) and not answered


# --- Progress of long stages, on stderr


SECONDS_PER_LINE = 10.0


class ProgressCounter:
    """Counts finished items and prints the count every ten seconds; quick stages print nothing.

    Args:
        what: the items, in the plural, such as `outputs`.
        total: returns the expected number; None when it is not known.
        spent: returns what was spent so far; empty to say nothing.
    """

    def __init__(
        self,
        what: str,
        total: Callable[[], int] | None = None,
        spent: Callable[[], str] = lambda: "",
    ) -> None:
        self._what = what
        self._spent = spent
        self._total = total
        self._done = 0
        self._printed_at = time.monotonic()

    def __call__(self, _: object = None) -> None:
        """Count one item."""
        self._done += 1
        now = time.monotonic()
        if now - self._printed_at < SECONDS_PER_LINE:
            return
        self._printed_at = now
        of = "" if self._total is None else f" of {self._total():,}"
        spent = self._spent()
        print_stderr(f"{self._done:,}{of} {self._what}{f'; spent {spent}' if spent else ''}")
