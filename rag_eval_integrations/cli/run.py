"""`rag-eval run`: evaluate a file of calls; also the summary that `rag-eval score` prints."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations import _loop
from rag_eval_integrations._scoring import nothing_to_judge
from rag_eval_integrations.cli._judges import Limits, judge_of
from rag_eval_integrations.cli._options import (
    Threshold,
    check_rows,
    metrics_from,
    set_variables,
    thresholds_from,
)
from rag_eval_integrations.cli._terminal import Progress, print_stderr, safe, stdout
from rag_eval_integrations.dataset import EvaluationFile, Line, evaluate_calls, read_calls
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import CascadeJudge, EmbeddedJudge, LLMJudge
from rag_eval_integrations.metrics import ModelMetric
from rag_eval_integrations.records import RagCall, Usage
from rag_eval_integrations.report._summary import Summary, summary_tables
from rag_eval_integrations.report.console import KEYS
from rag_eval_integrations.sentences import sentencize

if TYPE_CHECKING:
    from rich.console import Console


# --- The summary at the end of `run` and `score`


def print_summary(console: Console, summary: Summary, seconds: float, reused: int = 0) -> None:
    """Print means with their counts, reasons for missing scores, warnings, errors and diagnoses.

    Args:
        console: where to print.
        summary: of all evaluations.
        seconds: duration of the run.
        reused: evaluations taken from an earlier run.
    """
    if not summary.calls:
        console.print("There are no rows, and so no scores.")
    for table in summary_tables(summary):
        console.print(table)
    for warning, count in summary.warnings.most_common():
        console.print(safe(f"NOTE ({count} calls): {warning}"), soft_wrap=True)
    for failure, count in summary.errors.most_common():
        console.print(safe(f"ERROR ({count} calls): {failure}"), soft_wrap=True)
    if summary.diagnoses:
        console.print("Diagnoses:")
        for diagnosis, count in summary.advice():
            console.print(
                f"  {diagnosis.pattern} ({count} of {summary.calls} calls): "
                f"{diagnosis.problem} {diagnosis.fix}",
                soft_wrap=True,
            )
    if summary.calls:
        console.print(KEYS, soft_wrap=True)
    made = summary.calls - reused
    rate = f", {made / seconds:.0f} per second" if made and seconds > 0 else ""
    earlier = f", {reused} reused from an earlier run" if reused else ""
    usage = summary.usage
    cost = "unknown" if usage.requests and usage.cost_usd is None else f"${usage.cost_usd or 0:.4f}"
    console.print(
        f"{summary.calls} calls in {seconds:.1f} s{rate}{earlier}; {usage.requests} judge "
        f"requests, {usage.prompt_tokens} + {usage.completion_tokens} tokens, cost {cost}",
        soft_wrap=True,
    )


# --- The command


@dataclass(frozen=True)
class Settings:
    """The options of `rag-eval run`, which `rag-eval run --help` describes."""

    calls: Path
    out: Path
    judge: str = "embedded"
    metrics: str = "trace"
    formulas: str = "gpt-labeling"
    relevance_baseline: int | None = None
    max_concurrency: int = 8
    base_url: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    cache: Path | None = None
    resume: bool = False
    limit: int | None = None
    skip_invalid: bool = False
    dry_run: bool = False
    fail_under: list[str] = field(default_factory=list)
    metric_var: list[str] = field(default_factory=list)


def run(settings: Settings) -> int:
    """Evaluate every call of a file and return the exit code.

    Returns:
        2 for invalid lines, 1 for a failed threshold, else 0.

    Raises:
        ConfigurationError: for options that cannot work, before the first row.
        OSError: when a file cannot be read or written.
    """
    metrics = metrics_from(settings.metrics, settings.formulas, settings.relevance_baseline)
    set_variables(metrics, settings.metric_var)
    names = [name for metric in metrics for name in metric.names]
    thresholds = thresholds_from(settings.fail_under, names)
    rows = _Rows(settings)
    if settings.out.exists() and settings.out.samefile(settings.calls):
        raise ConfigurationError("--out", str(settings.out), "is the input file")
    check_rows(settings.calls, settings.limit, metrics)
    progress = Progress(settings.calls, settings.limit)
    limits = Limits(
        settings.base_url, settings.rpm, settings.tpm, settings.max_concurrency, settings.cache,
        progress.wait,
    )  # fmt: skip
    judge = judge_of(settings.judge, limits)
    evaluator = RagEvaluator(judge, metrics)
    if settings.dry_run:
        return _dry_run(rows, evaluator)
    summary = Summary()
    started = time.perf_counter()
    with EvaluationFile(settings.out, evaluator.fingerprint, resume=settings.resume) as file:
        _loop.run(_evaluate(rows, evaluator, file, summary, progress))
        file.finish()
    console = stdout()
    print_summary(console, summary, time.perf_counter() - started, rows.reused)
    console.print(f"Wrote {summary.calls} evaluations to {settings.out}", soft_wrap=True)
    return max(rows.exit_code(), _check(thresholds, summary))


async def _evaluate(
    rows: _Rows,
    evaluator: RagEvaluator,
    file: EvaluationFile,
    summary: Summary,
    progress: Progress,
) -> None:
    # Everything runs on the loop's thread, because reading recorded rows and writing new ones
    # share the file's index.
    numbers: dict[int, int] = {}
    counter = itertools.count()

    def calls() -> Iterator[RagCall]:
        for number, call in enumerate(rows.valid()):
            recorded = file.take(number, call)
            if recorded is None:
                numbers[next(counter)] = number
                yield call
            else:
                rows.reused += 1
                summary.add(recorded)

    stream = evaluate_calls(
        calls(), evaluator, max_concurrency=rows.settings.max_concurrency, ordered=False
    )
    with progress:
        async for index, evaluation in stream.numbered():
            file.add(numbers.pop(index), evaluation)
            summary.add(evaluation)
            progress.advance(summary.calls + rows.invalid)


class _Rows:
    """The lines of the input file; reports and counts invalid lines."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.invalid = 0
        self.reused = 0
        # Open it before anything is written, so that a wrong name leaves no files behind.
        settings.calls.open("rb").close()

    def valid(self) -> Iterator[RagCall]:
        lines: Iterator[Line[RagCall]] = read_calls(self.settings.calls)
        for line in itertools.islice(lines, self.settings.limit):
            if line.value is None:
                self.invalid += 1
                print_stderr(f"{self.settings.calls}: {line.error}")
            else:
                yield line.value

    def exit_code(self) -> int:
        if not self.invalid:
            return 0
        print_stderr(
            f"{self.settings.calls}: {self.invalid} invalid line(s) were left out of the output"
        )
        return 0 if self.settings.skip_invalid else 2


def _dry_run(rows: _Rows, evaluator: RagEvaluator) -> int:
    calls = characters = 0
    usage = Usage()
    asking = sum(isinstance(metric, ModelMetric) for metric in evaluator.metrics)
    labeller = evaluator.judge if asking < len(evaluator.metrics) else None
    about = "about"
    while isinstance(labeller, CascadeJudge):  # its last judge is the one that asks
        labeller, about = labeller.second, "at most"
    for call in rows.valid():
        calls += 1
        characters += len(call.question) + len(call.response or "")
        characters += sum(len(document.text) for document in call.documents)
        if isinstance(labeller, LLMJudge):
            sentencized = sentencize(call, evaluator.splitter)
            if nothing_to_judge(sentencized) is None:
                usage += labeller.estimate(sentencized)
    if isinstance(labeller, LLMJudge):
        cost = f"{about} {usage.requests} requests and {usage.prompt_tokens:,} prompt tokens"
    elif isinstance(labeller, EmbeddedJudge | None):
        cost = "no requests, no cost"
    else:
        cost = "what it asks and costs is not known"
    if asking:
        # One request per score if the model returns log-probabilities or several answers per
        # request, otherwise up to 20.
        more = f"at least {asking * calls} requests for metrics that send their own requests"
        cost = f"{cost}, and {more}" if labeller is not None else more
    stdout().print(
        f"{calls} calls, {characters:,} characters; judge {evaluator.judge.name}: {cost}. "
        "Nothing was sent or written.",
        soft_wrap=True,
    )
    return rows.exit_code()


def _check(thresholds: list[Threshold], summary: Summary) -> int:
    code = 0
    for threshold in thresholds:
        try:
            score = summary.means.mean(threshold.name)
        except ValueError as mixed:  # the scores come from different estimators, for example
            print_stderr(f"FAILED {threshold.name}: no single mean: {mixed}")
            code = 1
            continue
        mean = None if score is None else score.mean
        if mean is None:
            print_stderr(f"FAILED {threshold.name}: no call has this score")
        elif mean < threshold.value:
            print_stderr(f"FAILED {threshold.name}: mean {mean:.4f} is below {threshold.value:g}")
        else:
            continue
        code = 1
    return code
