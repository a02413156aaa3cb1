"""Work of the `rag-eval prompt-tests` commands, except `report`; each returns its exit code."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import JsonValue

from rag_eval_integrations import _loop
from rag_eval_integrations._target import make_folder, read_whole, replacing, resolved
from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._console import stdout
from rag_eval_integrations.cli._options import metric_variables, text_of
from rag_eval_integrations.cli._terminal import kept, kept_words, print_stderr, write_stdout
from rag_eval_integrations.cli.prompt_tests import _reporting
from rag_eval_integrations.cli.prompt_tests._models import (
    ASSUMED,
    Bill,
    generator_of,
    model_from_option,
    models_under_test,
    optional_model,
)
from rag_eval_integrations.cli.prompt_tests._options import (
    AllOptions,
    EvaluateOptions,
    ExportOptions,
    GenerateOptions,
    ImportOptions,
    MetricsOptions,
    RunOptions,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.console import add_row, plain_table
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.metrics.prompty.metric import lint, metric_files
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests._contents import read_upstream
from rag_eval_integrations.prompt_tests.evaluate import NonCompliance
from rag_eval_integrations.prompt_tests.generate import Generation
from rag_eval_integrations.prompt_tests.project import (
    Project,
    find_metrics,
    new_folder,
    write_imported,
)
from rag_eval_integrations.prompt_tests.prompt import AuthorWords, PromptUnderTest
from rag_eval_integrations.prompt_tests.records import Choice
from rag_eval_integrations.prompt_tests.run import App, ModelUnderTest

_FAILED = 1
_NOTHING = "Nothing was sent or written."

# --- The stages


def generate_command(options: GenerateOptions) -> int:
    """Generate rules and tests, and expected outputs if wanted; return 1 without any test.

    The estimated cost is printed first; a dry run ends there with 0. What was made is printed, and
    what was spent, if anything was asked.

    Raises:
        RagEvalError: for a user's mistake, or a generator that does not answer.
        OSError: when a file cannot be read or written.
    """
    PromptUnderTest.of(options.prompt_file)  # a wrong file is reported before a missing key
    bill, requests = Bill(options.prices), options.requests()
    groundtruth = optional_model(options.groundtruth, "--groundtruth", requests)
    amounts = options.amounts()
    generator = generator_of(options.model, requests)
    project = None
    if not options.dry_run:
        words = options.author()
        project = _create_project(options.prompt_file, options.out, words, options.custom_metric)
    generation = Generation(
        options.prompt_file if project is None else project.prompt,
        options.out,
        generator,
        amounts,
        scenarios=options.only_scenario,
        max_concurrency=options.max_concurrency,
        tell=print_stderr,
    )
    _, estimate = bill.generation(generation, groundtruth=groundtruth is not None)
    if project is None:
        stdout().print(f"{estimate}. {_NOTHING}", soft_wrap=True)
        return 0
    print_stderr(estimate)
    return _generate(project, generation, groundtruth, bill)


def _create_project(
    prompt_file: Path, folder: Path, author: AuthorWords, custom_metric: str | None
) -> Project:
    """Make or continue the folder of a prompt, with its author's words and metric.

    Raises:
        ConfigurationError: for a file that cannot be used, or a folder that is of another prompt or
            was made with other words or another metric.
        OSError: when a file cannot be read or written.
    """
    project = Project.create(prompt_file, folder, print_stderr, author=author)
    if custom_metric is not None:
        project.add_metric(text_of(custom_metric, "--custom-metric"))
    return project


def _generate(
    project: Project, generation: Generation, groundtruth: Model | None, bill: Bill
) -> int:
    """Run a generation in its project's folder; return the exit code: 1 without any test.

    The model `groundtruth` writes and rates expected outputs. What was made and spent is printed.
    """
    spent = generation.workspace.journal().spent
    generation.model.on_reply = progress(
        f"replies from {generation.model.name}", spent=lambda: bill.words(spent)
    )
    with kept(lambda: _kept_replies(project)):
        tests = generation.run()
        if groundtruth is not None:
            tests = _loop.run(generation.groundtruth(groundtruth, [groundtruth]))
    bill.add("generate", spent)
    if groundtruth is not None:
        usable = sum(test.usable_groundtruth is not None for test in tests)
        stdout().print(f"{usable} of {counted(len(tests), 'test')} with a usable expected output")
    spec = project.workspace.spec()
    rule_tests = sum(not test.baseline for test in tests)
    parts = {
        "rule": len(spec.output_rules),
        "inverse rule": len(spec.inverse_rules),
        "rule test": rule_tests,
        "baseline test": len(tests) - rule_tests,
    }
    *first, last = (counted(count, what) for what, count in parts.items())
    folder, asked = project.workspace.folder, counted(generation.model.asked, "request")
    stdout().print(f"{', '.join(first)} and {last} in {folder} ({asked})", soft_wrap=True)
    return 0 if tests else _FAILED


def run_command(options: RunOptions) -> int:
    """Get the outputs of the models under test, unjudged; return 1 if no output came.

    A dry run prints the estimate and returns 0.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    choice, bill = options.choice(), Bill(options.prices)
    parameters = options.parameters()
    project = Project(options.folder, print_stderr)
    return _run(
        project,
        models_under_test(options.mut, options.requests(), options.max_tokens),
        bill,
        choice=choice,
        baseline=options.baseline is not False,
        max_tests=options.max_tests,
        runs=options.runs,
        parameters=parameters,
        max_concurrency=options.max_concurrency,
        dry_run=options.dry_run,
    )


def _run(
    project: Project,
    models: Sequence[ModelUnderTest],
    bill: Bill,
    *,
    choice: Choice,
    baseline: bool,
    max_tests: int | None,
    runs: int,
    parameters: Mapping[str, JsonValue],
    max_concurrency: int,
    dry_run: bool = False,
) -> int:
    """Run a project's tests on models; return the exit code: 1 if every output failed.

    The cost is estimated first; a dry run ends there with 0. Failures are printed per model.
    """
    tests = project.chosen(choice, baseline=baseline, max_tests=max_tests)
    inputs = sum(len(test.testinput) for test in tests)
    characters = len(project.prompt.text) + inputs / max(1, len(tests))
    for model in models:
        size = None if isinstance(model, App) else characters
        bill.print_estimate("run", model.name, len(tests) * runs, size)
    if dry_run:
        return _end_dry_run(project)
    spent = project.workspace.journal().spent
    with kept(lambda: _kept_replies(project)):
        results = _loop.run(
            project.run(
                models,
                runs=runs,
                max_tests=max_tests,
                baseline=baseline,
                choice=choice,
                parameters=parameters,
                max_concurrency=max_concurrency,
                done=progress("outputs", spent=lambda: bill.words(spent)),
            )
        )
    bill.add("run", spent)
    failed = [(result.model, result.error) for result in results if result.error is not None]
    _reporting.print_failures(failed, "output")
    outputs = counted(len(results) - len(failed), "output")
    folder = project.workspace.folder
    stdout().print(f"{outputs} from {counted(len(models), 'model')} in {folder}", soft_wrap=True)
    return 0 if len(failed) < len(results) else _FAILED


def evaluate_command(options: EvaluateOptions) -> int:
    """Judge the outputs; return 1 when judges failed and none answered. A dry run returns 0.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read or written.
    """
    bill, project = Bill(options.prices), Project(options.folder, print_stderr)
    metrics = _load_metrics(project, options.metric or (), options.metric_var or ())
    requests = options.requests()
    return _evaluate(
        project,
        [model_from_option(name, "--judge", requests) for name in options.judge],
        metrics,
        bill,
        agreement_model=optional_model(options.agreement, "--agreement", requests),
        compliance=options.compliance(),
        validity=options.validity,
        groundedness=options.groundedness,
        max_concurrency=options.max_concurrency,
        dry_run=options.dry_run,
    )


def _load_metrics(
    project: Project, names: Sequence[str], variables: Sequence[str]
) -> list[PromptyMetric]:
    """Load the metric files of `--metric`, with the values of `--metric-var`; print their warnings.

    Raises:
        ConfigurationError: for an unknown name, or a variable that no metric file has.
    """
    metrics = project.metrics(names, metric_variables(variables))
    for metric in metrics:
        for warning in lint(metric.prompt):
            print_stderr(f"{metric.prompt.source}: {warning}")
    return metrics


def _evaluate(
    project: Project,
    judges: Sequence[Model],
    metrics: Sequence[PromptyMetric],
    bill: Bill,
    *,
    agreement_model: Model | None,
    compliance: NonCompliance,
    validity: bool,
    groundedness: bool,
    max_concurrency: int,
    dry_run: bool = False,
) -> int:
    """Judge a project's results by judges and metrics; return the exit code.

    Tests and rules, too, if wanted. The cost is estimated first; a dry run ends there with 0. The
    code is 1 when judges failed and none answered.
    """
    spent = project.workspace.journal().spent
    evaluation = project.evaluation(
        judges,
        metrics,
        compliance=compliance,
        max_concurrency=max_concurrency,
        done=progress("judgements", lambda: evaluation.planned, lambda: bill.words(spent)),
    )
    outputs = 0
    if project.has_results or not validity:
        outputs = sum(result.error is None for result in project.results())
    tests = len(project.tests()) if validity or agreement_model else 0
    more = tests * (validity + (agreement_model is not None))
    more += len(evaluation.spec.output_rules) * groundedness
    characters = len(project.prompt.text) + ASSUMED
    for number, judge in enumerate(evaluation.judges):
        most = outputs * (1 + len(metrics)) + (0 if number else more)
        bill.print_estimate("evaluate", judge.name, most, characters)
    if agreement_model is not None:
        bill.print_estimate("evaluate", agreement_model.name, tests, characters)
    if dry_run:
        return _end_dry_run(project)
    with kept(lambda: _kept_replies(project)):
        results = _loop.run(
            project.evaluate(
                evaluation,
                validity=validity,
                groundedness=groundedness,
                agreement_model=agreement_model,
            )
        )
    bill.add("evaluate", spent)
    stdout().print(
        f"{counted(len(results), 'output')} judged by "
        f"{', '.join(judge.name for judge in evaluation.judges)} "
        f"({counted(evaluation.asked, 'request')})",
        soft_wrap=True,
    )
    return _FAILED if _reporting.print_failed_judges(results, evaluation.verdicts) else 0


def all_command(options: AllOptions) -> int:
    """Say what all stages together ask at most; then generate, run, evaluate and report.

    Without tests nothing follows; after failures of models or judges the report does. Returns 1
    after such failures, without tests, or below a threshold. A dry run only estimates, and returns
    0.

    Raises:
        RagEvalError: for a user's mistake, or a generator that does not answer.
        OSError: when a file cannot be read or written.
    """
    bill = Bill(options.prices)
    parameters = options.parameters()  # a mistake is found before the first request
    thresholds = _reporting.thresholds_of(options.fail_under or ())
    prompt, out = PromptUnderTest.of(options.prompt_file), options.out
    amounts, requests = options.amounts(), options.requests()
    generation_of = partial(
        Generation,
        folder=out,
        model=generator_of(options.model, requests),
        options=amounts,
        scenarios=options.only_scenario,
        max_concurrency=options.max_concurrency,
        tell=print_stderr,
    )
    most, estimate = bill.generation(
        generation_of(prompt), groundtruth=options.groundtruth is not None
    )
    print_stderr(estimate)
    runs = min(most, options.max_tests or most) * options.runs
    for name in options.mut:
        bill.print_estimate("run", name, runs, len(prompt.text))
    metrics = find_metrics(prompt, options.metric or (), more=[out])
    asked = runs * len(options.mut) * (1 + len(metrics))
    for name in options.judge:
        bill.print_estimate("evaluate", name, asked, len(prompt.text) + ASSUMED)
    if of_tests := most * (options.validity + 2 * (options.agreement is not None)):
        print_stderr(f"evaluate: at most {of_tests:,} requests about the tests themselves")
    if options.dry_run:
        stdout().print(_NOTHING)
        return 0
    groundtruth = optional_model(options.groundtruth, "--groundtruth", requests)
    project = _create_project(options.prompt_file, out, options.author(), options.custom_metric)
    if _generate(project, generation_of(project.prompt), groundtruth, bill):
        return _FAILED
    # Continue when models or judges failed: the report shows the failures best. Each stage opens
    # the folder anew, so that it counts only what it spends itself.
    project = Project(out, print_stderr)
    ran = _run(
        project,
        models_under_test(options.mut, requests, options.max_tokens),
        bill,
        choice=Choice(),
        baseline=options.baseline is not False,
        max_tests=options.max_tests,
        runs=options.runs,
        parameters=parameters,
        max_concurrency=options.max_concurrency,
    )
    project = Project(out, print_stderr)
    metrics = _load_metrics(project, options.metric or (), options.metric_var or ())
    evaluated = _evaluate(
        project,
        [model_from_option(name, "--judge", requests) for name in options.judge],
        metrics,
        bill,
        agreement_model=optional_model(options.agreement, "--agreement", requests),
        compliance=options.compliance(),
        validity=options.validity,
        groundedness=options.groundedness,
        max_concurrency=options.max_concurrency,
    )
    report = _reporting.report_of(
        out, Choice(), unknown_as_err=options.unknown_as_err, majority=options.majority
    )
    _reporting.write_and_print(out, report)
    checked = _reporting.check_thresholds(report, thresholds)
    bill.print_total()
    return max(ran, evaluated, checked)


def _end_dry_run(project: Project) -> int:
    """Print that nothing was sent or written, close the journal, and return the exit code 0."""
    project.workspace.journal().close()
    stdout().print(_NOTHING)
    return 0


def _kept_replies(project: Project) -> str:
    """Return in words how many replies an interrupted stage keeps; empty for none.

    The journal is closed.
    """
    with project.workspace.journal() as journal:
        replies = len(journal)
    return kept_words(replies, "reply", "replies", journal.path) if replies else ""


SECONDS_PER_LINE = 10.0


def progress(
    what: str, total: Callable[[], int] | None = None, spent: Callable[[], str] = lambda: ""
) -> Callable[..., None]:
    """Return a function that counts an item, and prints the count to stderr every ten seconds.

    Args:
        what: the items, in the plural, such as `outputs`.
        total: returns the expected number; None when it is not known.
        spent: returns what was spent so far; empty to say nothing.
    """
    done, printed_at = 0, time.monotonic()

    def count(_: object = None) -> None:
        """Count an item, and print a line of progress now and then."""
        nonlocal done, printed_at
        done += 1
        if time.monotonic() - printed_at >= SECONDS_PER_LINE:
            printed_at = time.monotonic()
            of = "" if total is None else f" of {total():,}"
            words = f"; spent {spent()}" if spent() else ""
            print_stderr(f"{done:,}{of} {what}{words}")

    return count


# --- Metric files, imports and exports


def metrics_command(options: MetricsOptions) -> int:
    """List the metric files next to a prompt, with warnings about each.

    Two files with the same name are a warning. Returns 0, also without any file.

    Raises:
        RagEvalError: for a file that is not a prompt.
        OSError: when a file cannot be read.
    """
    prompt, folder = PromptUnderTest.of(options.prompt_file), options.prompt_file.parent
    metrics = [PromptyMetric(path) for path in metric_files(folder)]
    names = Counter(metric.name for metric in metrics)
    table = plain_table(
        f"Metric files next to {prompt.name}", "metric", "variables", "tags", "warnings"
    )
    for metric in metrics:
        twice = ["another metric file has this name"] if names[metric.name] > 1 else []
        add_row(
            table,
            metric.name,
            ", ".join(sorted(metric.prompt.variables)),
            ", ".join(metric.prompt.tags),
            "; ".join([*twice, *lint(metric.prompt)]),
        )
    none = f"no metric files (*.metric.prompty) in {folder}"
    stdout().print(table if metrics else none, soft_wrap=not metrics)
    return 0


def import_command(options: ImportOptions) -> int:
    """Import PromptPex's files into a new folder, and print what was imported; return 0.

    Rows that could not be used, and the new path of an earlier folder that is kept, are printed to
    stderr.

    Raises:
        RagEvalError: when there is nothing to import, or the folder exists and may not be replaced.
        OSError: when a file cannot be read or written.
    """
    source, out = options.source, options.out
    imported = read_upstream(source, options.prompt, max_rules=options.max_rules)
    sources = [source, source.parent, Path(imported.prompt.source).parent]
    with new_folder(out, sources, overwrite=options.overwrite) as earlier:
        write_imported(imported, out, print_stderr)
    for reason in imported.lost:
        print_stderr(reason)
    if earlier:
        print_stderr(f"the earlier folder is {earlier[0]}")
    rules = counted(len(imported.spec.output_rules), "rule")
    tests, results = counted(len(imported.tests), "test"), counted(len(imported.results), "result")
    lost = counted(len(imported.lost), "row")
    stdout().print(
        f"{rules}, {tests} and {results} in {out}; {lost} could not be used", soft_wrap=True
    )
    return 0


def export_command(options: ExportOptions) -> int:
    """Export the tests to another tool's format: into the folder, a path, or standard output.

    A file with another content is not replaced without `--overwrite`; then nothing is written. An
    export of several files does not go to standard output. What the format cannot hold is printed
    to stderr. Returns 0.

    Raises:
        RagEvalError: for a user's mistake, or a file that exists.
        OSError: when a file cannot be read or written.
    """
    to, out = options.to, options.out
    project = Project(options.folder, print_stderr)
    exported = project.export(to, model=options.model)
    first, *beside = exported.files
    for note in exported.notes:
        print_stderr(f"{to}: {note}")
    if out == "-":
        if beside:
            raise ConfigurationError("--out", out, f"{to} has {1 + len(beside)} files")
        write_stdout(exported.files[first])
        return 0
    target = options.folder / first if out is None else Path(out)
    if target.is_dir() or (out is not None and out.endswith(("/", os.sep))):
        make_folder(target)
        target /= first
    texts = {
        target.parent / (target.name if name == first else name): text.encode("utf-8")
        for name, text in exported.files.items()
    }
    for path, text in texts.items():
        if not options.overwrite and path.is_file() and read_whole(path) != text:
            why = "exists with another content; use another name, or --overwrite to replace it"
            raise ConfigurationError("--out", str(path), why)
    for path, text in texts.items():
        with replacing(resolved(path, "--out")) as stream:
            stream.write(text)
    stdout().print(f"Wrote {', '.join(map(str, texts))}", soft_wrap=True)
    return 0
