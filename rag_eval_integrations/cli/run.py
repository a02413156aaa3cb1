"""`rag-eval run`: evaluate a file of calls."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rag_eval_integrations import _loop
from rag_eval_integrations._counted import counted
from rag_eval_integrations._scoring import about_reference, nothing_to_judge
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._interrupt import kept, kept_words
from rag_eval_integrations.cli._judges import Limits, judge_of
from rag_eval_integrations.cli._options import (
    check_rows,
    metrics_from,
    set_variables,
    thresholds_from,
)
from rag_eval_integrations.cli._run_report import check_report, write_run_report
from rag_eval_integrations.cli._summary import check_errors, check_thresholds, print_summary
from rag_eval_integrations.cli._terminal import Progress, print_stderr, stdout
from rag_eval_integrations.cli._watched import WatchedModel
from rag_eval_integrations.dataset import EvaluationFile, Line, evaluate_calls, read_calls
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset._processes import Processes, default_workers
from rag_eval_integrations.dataset.files import EvaluationPipe, check_form, check_out
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import CascadeJudge, EmbeddedJudge, Judge, LLMJudge
from rag_eval_integrations.judges._reader._judge import ReaderJudge
from rag_eval_integrations.metrics import CallMetric, LabelMetric, ModelMetric
from rag_eval_integrations.models import Model
from rag_eval_integrations.records import RagCall, SentencizedCall, Usage
from rag_eval_integrations.sentences import Splitter, sentencize


@dataclass(frozen=True)
class Settings:
    """The options of `rag-eval run`, which `rag-eval run --help` describes."""

    calls: Input
    out: Path
    judge: str = "embedded"
    metrics: str = "trace"
    formulas: str = "gpt-labeling"
    relevance_baseline: int | None = None
    max_concurrency: int = 32
    workers: int | None = None
    base_url: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    cache: Path | None = None
    resume: bool = False
    overwrite: bool = False
    limit: int | None = None
    skip_invalid: bool = False
    dry_run: bool = False
    fail_under: list[str] = field(default_factory=list)
    max_error_rate: float = 0.05
    report: Path | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    metric_var: list[str] = field(default_factory=list)
    flags: bool = True
    geval: Mapping[str, object] = field(default_factory=dict)
    retrieval: Mapping[str, object] = field(default_factory=dict)
    calibration: Path | None = None


def run(settings: Settings) -> int:
    """Evaluate every call of a file and return the exit code.

    Returns:
        2 for invalid lines; 1 for a failed threshold, too many errors, no score at all, or a judge
        that cannot be reached; else 0.

    Raises:
        ConfigurationError: for options that cannot work, before the first row.
        OSError: when a file cannot be read or written.
    """
    if settings.limit is not None:  # more than `islice` takes is all
        settings = replace(settings, limit=min(settings.limit, sys.maxsize))
    metrics = metrics_from(
        settings.metrics, settings.formulas, settings.relevance_baseline, settings.geval,
        settings.retrieval, settings.calibration,
    )  # fmt: skip
    set_variables(metrics, settings.metric_var)
    names = [name for metric in metrics for name in metric.names]
    thresholds = thresholds_from(settings.fail_under, names)
    rows = _Rows(settings)
    _check_out(settings)
    check_rows(settings.calls, settings.limit, metrics)
    progress = Progress(settings.calls, settings.limit)
    judge, watched = _judge(settings, progress)
    if any(isinstance(metric, CallMetric) for metric in metrics):
        watched = None  # every call is scored, whether the judge can be used or not
    evaluator = RagEvaluator(judge, metrics, flags=settings.flags)
    workers = default_workers(evaluator) if settings.workers is None else settings.workers
    processes = Processes(evaluator, workers, "--workers") if workers != 1 else None
    if settings.dry_run:
        return _dry_run(rows, evaluator)
    summary = Summary()
    started = time.perf_counter()
    keeping = (
        contextlib.nullcontext()
        if _piped(settings)
        else kept(lambda: _kept(file), add="--resume", drop="--overwrite")
    )
    with _output(settings, evaluator.fingerprint) as file, keeping:
        if settings.resume and isinstance(file, EvaluationFile):
            lines = itertools.islice(read_calls(settings.calls), settings.limit)
            file.refuse_other_calls(line.value for line in lines)
        if file.stale:
            print_stderr(
                f"{counted(file.stale, 'row')} of the earlier run failed, and "
                f"{'is' if file.stale == 1 else 'are'} made again"
            )
        if processes is not None:
            _loop.run(_evaluate_in(processes, rows, file, summary, progress, watched))
        else:
            _loop.run(_evaluate(rows, evaluator, file, summary, progress, watched))
        if watched is not None and watched.never_answered and rows.scored(summary) == 0:
            print_stderr(f"FAILED: {_nothing_written(file, settings)}")
            return max(rows.exit_code(), 1)
        written = file.finish()
    if not written:
        return _no_rows(rows)
    console = stdout(to_stderr=isinstance(file, EvaluationPipe))
    print_summary(console, summary, time.perf_counter() - started, rows.reused)
    if isinstance(file, EvaluationFile):
        console.print(f"Wrote {counted(written, 'evaluation')} to {settings.out}", soft_wrap=True)
        write_run_report(settings.report, settings.out, console)
    failed = check_errors(summary, settings.max_error_rate)
    return max(rows.exit_code(), failed, check_thresholds(thresholds, summary))


def _judge(settings: Settings, progress: Progress) -> tuple[Judge | Model, WatchedModel | None]:
    """Make the judge; and the model that it is, which tells when it cannot be used."""
    # An estimate is wanted before there is a key.
    no_key = settings.dry_run and not os.environ.get("OPENAI_API_KEY")
    watched: list[WatchedModel] = []
    limits = Limits(
        settings.base_url, settings.rpm, settings.tpm, settings.max_concurrency,
        None if settings.dry_run else settings.cache, progress.wait,
        api_key="none" if no_key else None, on_watched=watched.append, **settings.model_options,
    )  # fmt: skip
    judge = judge_of(settings.judge, limits)
    # In a cascade, calls that need no model are scored without it.
    return judge, watched[0] if isinstance(judge, Model) and watched else None


def _kept(file: EvaluationFile | EvaluationPipe) -> str:
    """Say how many rows an interrupted run keeps; empty if there is none."""
    if isinstance(file, EvaluationPipe):
        return ""
    if not file.holds_rows:
        file.discard()
        return ""
    return kept_words(file.in_partial, "evaluation", "evaluations", file.partial)


def _nothing_written(file: EvaluationFile | EvaluationPipe, settings: Settings) -> str:
    why = f"the judge {settings.judge} cannot be used, so no call was scored"
    if isinstance(file, EvaluationPipe):
        return why
    if file.holds_rows:
        return f"{why}; what an earlier run made stays in {file.partial}"
    file.discard()
    return f"{why}; {settings.out} was not written"


def _check_out(settings: Settings) -> None:
    """Refuse OUT before the judge is made; a dry run writes none."""
    if settings.calls.is_file(settings.out):
        raise ConfigurationError("--out", str(settings.out), "is the input file")
    _check_cache(settings)
    if _piped(settings):
        if settings.resume:
            raise ConfigurationError("--resume", True, "needs a file to go on with, not `-`")
    elif not settings.dry_run:
        check_form(settings.out, "--out")
        check_out(
            settings.out, resume=settings.resume, overwrite=settings.overwrite, field="--out",
        )  # fmt: skip
    check_report(
        settings.report, settings.calls, settings.out,
        {"--cache": settings.cache, "--calibration": settings.calibration},
    )  # fmt: skip


def _check_cache(settings: Settings) -> None:
    """Refuse a cache that is one of the run's own files: each would spoil the other."""
    cache = settings.cache
    if cache is None:
        return
    if settings.calls.is_file(cache):
        raise ConfigurationError("--cache", str(cache), "is the input file")
    if not _piped(settings):
        out, named = (os.path.realpath(path) for path in (settings.out, cache))
        if named.removeprefix(out) in ("", ".partial", ".bak"):
            raise ConfigurationError("--cache", str(cache), "is a file of --out; use another name")


def _piped(settings: Settings) -> bool:
    return str(settings.out) == "-"


def _output(settings: Settings, fingerprint: str) -> EvaluationFile | EvaluationPipe:
    if _piped(settings):
        return EvaluationPipe()
    return EvaluationFile(
        settings.out, fingerprint, resume=settings.resume, overwrite=settings.overwrite
    )


def _no_rows(rows: _Rows) -> int:
    settings = rows.settings
    rows.bad.rest()
    left = "" if _piped(settings) or not settings.out.exists() else "; it is as it was"
    found = f"{rows.bad.count} invalid line(s) and no call" if rows.bad.count else "no rows"
    print_stderr(f"{settings.calls}: has {found}, so nothing was written to {settings.out}{left}")
    if rows.bad.count:
        print_stderr(
            f"A file of calls has one JSON object per line: {_A_CALL}; or it is a JSON array, CSV "
            "or Parquet. Say what other fields are with --map FIELD=NAME"
        )
    return (1 if settings.skip_invalid else 2) if rows.bad.count else 2


_A_CALL = '{"question": "…", "documents": ["…"], "response": "…"}'


async def _evaluate(
    rows: _Rows,
    evaluator: RagEvaluator,
    file: EvaluationFile | EvaluationPipe,
    summary: Summary,
    progress: Progress,
    watched: WatchedModel | None,
) -> None:
    # Everything runs on the loop's thread, because reading recorded rows and writing new ones
    # share the file's index.
    numbers: dict[int, int] = {}
    stream = evaluate_calls(
        _new_calls(rows, file, summary, numbers),
        evaluator,
        max_concurrency=rows.settings.max_concurrency,
        ordered=file.ordered,
    )
    with progress:
        ticking = asyncio.create_task(progress.tick())
        results = stream.numbered()
        try:
            async for index, evaluation in results:
                file.add(numbers.pop(index), evaluation)
                summary.add(evaluation)
                progress.advance(summary.calls + rows.bad.count)
                if watched is not None and watched.unusable and rows.settings.cache is None:
                    break  # with a cache, further calls may still be scored
        finally:
            ticking.cancel()
            await results.aclose()  # type: ignore[attr-defined]  # an async generator


async def _evaluate_in(
    processes: Processes,
    rows: _Rows,
    file: EvaluationFile | EvaluationPipe,
    summary: Summary,
    progress: Progress,
    watched: WatchedModel | None,
) -> None:
    numbers: dict[int, int] = {}
    counter = itertools.count()
    with progress:
        ticking = asyncio.create_task(progress.tick())
        results = processes.rows(_new_calls(rows, file, summary, numbers))
        try:
            async for made in results:
                for line, failed in zip(made.lines, made.failed, strict=True):
                    file.add_row(numbers.pop(next(counter)), line, failed=failed)
                summary.merge(made.summary)
                progress.advance(summary.calls + rows.bad.count)
                if watched is not None and watched.unusable:
                    break
        finally:
            ticking.cancel()
            await results.aclose()  # type: ignore[attr-defined]  # an async generator
            processes.close()


def _new_calls(
    rows: _Rows,
    file: EvaluationFile | EvaluationPipe,
    summary: Summary,
    numbers: dict[int, int],
) -> Iterator[RagCall]:
    """Yield the calls that have no row yet, and note the number of each in the input."""
    counter = itertools.count()
    for number, call in enumerate(rows.valid()):
        recorded = file.take(number, call)
        if recorded is None:
            numbers[next(counter)] = number
            yield call
        else:
            before = summary.scored
            summary.add(recorded)
            rows.reused += 1
            rows.reused_scored += summary.scored - before


class _Rows:
    """The lines of the input file; reports and counts invalid lines."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.bad = BadRows(settings.calls)
        self.reused = 0
        self.reused_scored = 0
        # Open it before anything is written, so that a wrong name leaves no files behind.
        settings.calls.check()

    def valid(self) -> Iterator[RagCall]:
        lines: Iterator[Line[RagCall]] = read_calls(self.settings.calls, tell=self._tell)
        for line in itertools.islice(lines, self.settings.limit):
            if line.value is None:
                self.bad.tell(line)
            else:
                yield line.value

    def _tell(self, mapping: str) -> None:
        print_stderr(f"{self.settings.calls}: {mapping}")

    def scored(self, summary: Summary) -> int:
        """Count the calls that this run scored."""
        return summary.scored - self.reused_scored

    def exit_code(self) -> int:
        self.bad.end("were left out of the output")
        return 2 if self.bad.count and not self.settings.skip_invalid else 0


def _dry_run(rows: _Rows, evaluator: RagEvaluator) -> int:
    calls = characters = 0
    usage = Usage()
    asking = [metric for metric in evaluator.metrics if isinstance(metric, ModelMetric)]
    of_labels = [metric for metric in evaluator.metrics if isinstance(metric, LabelMetric)]
    texts = {metric.judged for metric in of_labels}
    labeller = evaluator.judge if of_labels else None
    about = "about"
    while isinstance(labeller, CascadeJudge):  # its last judge is the one that asks
        labeller, about = labeller.second, "at most"
    for call in rows.valid():
        calls += 1
        characters += len(call.question) + len(call.response or "")
        characters += sum(len(document.text) for document in call.documents)
        if isinstance(labeller, LLMJudge):
            for judged in _judged(call, texts, evaluator.splitter):
                if nothing_to_judge(judged) is None:
                    usage += labeller.estimate(judged)
    if isinstance(labeller, LLMJudge):
        requests = counted(usage.requests, "request")
        cost = f"{about} {requests} and {usage.prompt_tokens:,} prompt tokens"
    elif isinstance(labeller, EmbeddedJudge | ReaderJudge | None):
        cost = "no requests, no cost"
    else:
        cost = "what it asks and costs is not known"
    if asking:
        # One request per score if the model returns log-probabilities or several answers per
        # request, otherwise one per sample.
        least, limits = len(asking) * calls, [metric.most_requests for metric in asking]
        known = [limit for limit in limits if limit is not None]
        most = sum(known) * calls
        many = f"{least:,}" if most == least else f"{least:,} to {most:,}"
        if len(known) < len(limits):
            many = f"at least {least:,}"
        more = f"{many} requests for metrics that send their own requests"
        cost = f"{cost}, and {more}" if labeller is not None else more
    if not calls:
        return _no_rows(rows)
    stdout().print(
        f"{counted(calls, 'call')}, {characters:,} characters; judge {evaluator.judge.name}: "
        f"{cost}. Nothing was sent or written.",
        soft_wrap=True,
    )
    return rows.exit_code()


def _judged(call: RagCall, texts: Collection[str], splitter: Splitter) -> Iterator[SentencizedCall]:
    """Yield what a judge is asked about for a call: its response, its reference, or both."""
    split = sentencize(call, splitter)
    if "response" in texts:
        yield split
    if "reference" in texts:
        text = RagCall(question="", documents=(), response=call.reference)
        yield about_reference(split, sentencize(text, splitter))
