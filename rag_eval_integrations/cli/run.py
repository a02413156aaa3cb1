"""`rag-eval run`: evaluate a file of calls."""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
import time
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, cast

from rag_eval_integrations import _loop
from rag_eval_integrations._scoring import about_reference, nothing_to_judge
from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._arguments import RunOptions
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._judges import WatchedModel, judge_of, key_for
from rag_eval_integrations.cli._options import (
    check_rows,
    field_map_from,
    metrics_from,
    run_from,
    thresholds_from,
)
from rag_eval_integrations.cli._progress import Progress
from rag_eval_integrations.cli._terminal import (
    kept,
    kept_words,
    print_stderr,
    print_stdout,
    stderr_printer,
)
from rag_eval_integrations.cli.score import (
    check_errors,
    check_name,
    check_report,
    check_thresholds,
    corrections_from,
    groups_from,
    print_end,
)
from rag_eval_integrations.dataset import EvaluationFile, Line, evaluate_calls, read_calls
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset.files import EvaluationPipe, check_form, check_out
from rag_eval_integrations.dataset.stream import EvaluationStream, Processes, default_workers
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import CascadeJudge, EmbeddedJudge, LLMJudge
from rag_eval_integrations.judges._reader import ReaderJudge
from rag_eval_integrations.metrics import CallMetric, LabelMetric, ModelMetric
from rag_eval_integrations.records import RagCall, Run, SentencizedCall, Usage, to_line
from rag_eval_integrations.sentences import Splitter, sentencize


def run(options: RunOptions) -> int:
    """Evaluate every call of a file and return the exit code.

    Returns:
        2 for invalid lines; 1 for a failed threshold, too many errors, no score at all, or a judge
        that cannot be reached; else 0.

    Raises:
        ConfigurationError: for options that cannot work, before the first row.
        OSError: when a file cannot be read or written.
    """
    calls = Input(
        options.calls, field_map_from(options.field_map), options.form, options.split_reference
    )
    rows = _RunRows(calls, options.limit, skip_invalid=options.skip_invalid)
    piped = str(options.out) == "-"
    metrics = metrics_from(
        options.metrics, options.trace_settings(), options.metric_settings(), options.metric_var
    )
    names = [name for metric in metrics for name in metric.names]
    thresholds = thresholds_from(options.fail_under, names)
    groups = groups_from(options.per, options.min_calls, thresholds, options.out)
    corrections = corrections_from(options.labels, options.per, options.out)
    # Open it before anything is written, so that a wrong name leaves no files behind.
    calls.check()
    check_name("--out", options.out, calls)
    check_name("--cache", options.cache, calls, out=options.out)
    if piped and options.resume:
        raise ConfigurationError("--resume", True, "needs a file to go on with, not `-`")
    if not piped and not options.dry_run:
        check_form(options.out, "--out")
        check_out(options.out, resume=options.resume, overwrite=options.overwrite, field="--out")
    taken = {"cache": options.cache, "calibration": options.calibration}
    check_report(options.report, options.out, calls, **taken)
    check_rows(calls, rows.limit, metrics)
    new_run = run_from(options.name, options.tag, revision=not options.no_revision)
    progress = Progress(calls, rows.limit)
    # An estimate writes nothing.
    more = {"cache": None, **key_for(dry_run=True)} if options.dry_run else {}
    models: list[WatchedModel] = []
    judge = judge_of(
        options.judge,
        options.requests(),
        options.wording(),
        models,
        max_concurrency=options.max_concurrency,
        on_wait=progress.wait,
        **more,
    )
    # In a cascade, calls that need no model are scored without it.
    watched = models[0] if models and not isinstance(judge, CascadeJudge) else None
    if any(isinstance(metric, CallMetric) for metric in metrics):
        watched = None  # every call is scored, whether the judge can be used or not
    evaluator = RagEvaluator(judge, metrics, flags=options.flags)
    workers = default_workers(evaluator) if options.workers is None else options.workers
    processes = Processes(evaluator, workers, "--workers") if workers != 1 else None
    if options.dry_run:
        return _dry_run(rows, evaluator, options.out)
    started = time.perf_counter()
    output: EvaluationFile | EvaluationPipe
    keeping: AbstractContextManager[None] = contextlib.nullcontext()
    if piped:
        output = EvaluationPipe()
    else:
        output = EvaluationFile(
            options.out,
            evaluator.fingerprint,
            resume=options.resume,
            overwrite=options.overwrite,
            field="--out",
        )
        keeping = kept(partial(_kept_rows, output), add="--resume", drop="--overwrite")
    with output as file, keeping:
        if options.resume and isinstance(file, EvaluationFile):
            file.refuse_other_calls(line.value for line in rows.lines(tell=None))
        if file.stale:
            print_stderr(
                f"{counted(file.stale, 'row')} of the earlier run failed, and "
                f"{'is' if file.stale == 1 else 'are'} made again"
            )
        run_of_rows = file.run or new_run
        given = {"name": options.name, "tags": new_run.tags}
        if any(value and value != getattr(run_of_rows, name) for name, value in given.items()):
            print_stderr("NOTE: the rows keep the name and the tags of the earlier run")
        with contextlib.closing(rows.new_calls(file)) as new_calls:
            results = (
                _in_processes(processes, new_calls, rows.summary)
                if processes is not None
                else _in_this_process(
                    evaluate_calls(
                        new_calls,
                        evaluator,
                        max_concurrency=options.max_concurrency,
                        ordered=file.ordered,
                    ),
                    rows.summary,
                )
            )
            # With a cache, further calls may be scored though the model cannot be used.
            needed = watched if options.cache is None else None
            _loop.run(_write_results(results, rows, file, progress, needed, run_of_rows))
        if watched is not None and watched.never_answered and not rows.scored:
            print_stderr(f"FAILED: {_nothing_written(file, options.judge, options.out)}")
            return max(rows.exit_code(), 1)
        row_count = file.finish()
    if not row_count:
        return _no_rows(rows, options.out)
    seconds = time.perf_counter() - started
    print_end(options.out, options.report, rows.summary, seconds, row_count, rows.reused)
    failed = check_errors(rows.summary, options.max_error_rate)
    below = check_thresholds(thresholds, rows.summary, groups, corrections, options.out)
    return max(rows.exit_code(), failed, below)


def _kept_rows(file: EvaluationFile) -> str:
    """Say how many rows an interrupted run keeps; empty if there is none."""
    if not file.holds_rows:
        file.discard()
        return ""
    return kept_words(file.in_partial, "evaluation", "evaluations", file.partial)


def _nothing_written(file: EvaluationFile | EvaluationPipe, judge: str | None, out: Path) -> str:
    """Say why nothing was written, and what stays of an earlier run."""
    why = f"the judge {judge} cannot be used, so no call was scored"
    if isinstance(file, EvaluationPipe):
        return why
    if file.holds_rows:
        return f"{why}; what an earlier run made stays in {file.partial}"
    file.discard()
    return f"{why}; {out} was not written"


def _no_rows(rows: _RunRows, out: Path) -> int:
    """Report that no row was valid, and what a file of calls has; return the exit code."""
    left = "" if str(out) == "-" or not out.exists() else "; it is as it was"
    code = rows.bad.end_without_rows("call", out, left, skip=rows.skip_invalid)
    if rows.bad.count and not rows.bad.has_parsed:
        print_stderr(
            f"A file of calls has one JSON object per line: {_A_CALL}; or it is a JSON array, CSV "
            "or Parquet"
        )
    return code


_A_CALL = '{"question": "…", "documents": ["…"], "response": "…"}'

_EvaluatedRows = Iterable[tuple[str, bool, int]]
"""Rows of EVALS, whether each has an error, and the number of its call, from 0 as it was given."""


async def _write_results(
    results: AsyncGenerator[_EvaluatedRows],
    rows: _RunRows,
    file: EvaluationFile | EvaluationPipe,
    progress: Progress,
    watched: WatchedModel | None,
    run_of_rows: Run,
) -> None:
    """Write the results as they come, and add the run to the end of each line."""
    run = f',"run":{run_of_rows.model_dump_json(exclude_defaults=True, ensure_ascii=True)}}}'
    # Everything runs on the loop's thread, because reading recorded rows and writing new ones
    # share the file's index.
    async with progress, contextlib.aclosing(results):
        async for batch in results:
            for line, failed, number in batch:
                file.add_row(rows.places.pop(number), line[:-1] + run, failed=failed)
            progress.advance(rows.summary.calls + rows.bad.count)
            if watched is not None and watched.unusable:
                break


async def _in_this_process(
    stream: EvaluationStream[Any], summary: Summary
) -> AsyncGenerator[_EvaluatedRows]:
    """Evaluate in this process, and yield the lines one by one."""
    # What is imported by now stays. Without it, looking through openai's objects for garbage took a
    # sixteenth of the time: 6.5 against 6.1 ms of CPU per call, in four alternating runs.
    gc.freeze()
    async with contextlib.aclosing(cast(AsyncGenerator[Any], stream.numbered())) as results:
        async for number, evaluation in results:
            summary.add(evaluation)
            yield [(to_line(evaluation), evaluation.error is not None, number)]


async def _in_processes(
    processes: Processes, calls: Iterable[RagCall], summary: Summary
) -> AsyncGenerator[_EvaluatedRows]:
    """Evaluate in other processes, and yield the lines batch by batch."""
    numbers = itertools.count()
    try:
        async with contextlib.aclosing(cast(AsyncGenerator[Any], processes.rows(calls))) as batches:
            async for batch in batches:
                summary.merge(batch.summary)
                yield zip(batch.lines, batch.failed, numbers, strict=False)
    finally:
        processes.close()


class _RunRows:
    """The lines of the input, with what became of them: invalid, reused or evaluated.

    Args:
        calls: the input.
        limit: number of lines to read; None for all.
        skip_invalid: whether lines without a call leave the exit code as it is.
    """

    def __init__(self, calls: Input, limit: int | None, *, skip_invalid: bool) -> None:
        self.calls, self.skip_invalid = calls, skip_invalid
        # More than `islice` takes is all.
        self.limit = None if limit is None else min(limit, sys.maxsize)
        self.bad = BadRows(calls)
        self.summary = Summary()
        self.places: dict[int, int] = {}
        """Number of a call, as it was given to the evaluator → its place among the valid calls."""
        self.reused = 0
        self._reused_scored = 0

    def lines(self, tell: Callable[[str], object] | None) -> Iterator[Line[RagCall]]:
        """Yield the lines of the input, up to the limit."""
        return itertools.islice(read_calls(self.calls, tell=tell), self.limit)

    def valid(self) -> Iterator[RagCall]:
        """Yield the valid calls of the input."""
        return self.bad.values(self.lines(stderr_printer(self.calls)))

    def new_calls(self, file: EvaluationFile | EvaluationPipe) -> Generator[RagCall]:
        """Yield the calls that have no row yet, and note their places.

        Rows of an earlier run are added to the summary, and counted as reused.
        """
        given = itertools.count()
        for place, call in enumerate(self.valid()):
            recorded = file.take(place, call)
            if recorded is None:
                self.places[next(given)] = place
                yield call
            else:
                before = self.summary.scored
                self.summary.add(recorded)
                self.reused += 1
                self._reused_scored += self.summary.scored - before

    @property
    def scored(self) -> int:
        """The number of calls that this run scored."""
        return self.summary.scored - self._reused_scored

    def exit_code(self) -> int:
        """Report the invalid rows; return 2 if there are any that may not be skipped, else 0."""
        return self.bad.end("left out of the output", skip=self.skip_invalid)


def _dry_run(rows: _RunRows, evaluator: RagEvaluator, out: Path) -> int:
    """Print what a run would ask the judge; return the exit code."""
    calls, _, words = estimated_cost(rows.valid(), evaluator)
    if not calls:
        return _no_rows(rows, out)
    print_stdout(f"{words}. Nothing was sent or written.")
    return rows.exit_code()


def estimated_cost(calls: Iterable[RagCall], evaluator: RagEvaluator) -> tuple[int, Usage, str]:
    """Estimate what the evaluation of calls would cost, without a request.

    Returns:
        The number of calls, the usage of a judge that asks a model, and both in words.
    """
    count = characters = 0
    usage = Usage()
    of_labels = [metric for metric in evaluator.metrics if isinstance(metric, LabelMetric)]
    texts = {metric.judged for metric in of_labels}
    judge = evaluator.judge if of_labels else None
    about = "about"
    while isinstance(judge, CascadeJudge):  # its last judge is the one that asks
        judge, about = judge.second, "at most"
    for call in calls:
        count += 1
        characters += len(call.question) + len(call.response or "")
        characters += sum(len(document.text) for document in call.documents)
        if isinstance(judge, LLMJudge):
            for judged in _labelled_texts(call, texts, evaluator.splitter):
                if nothing_to_judge(judged) is None:
                    usage += judge.estimate(judged)
    if isinstance(judge, LLMJudge):
        requests = counted(usage.requests, "request")
        cost = f"{about} {requests} and {usage.prompt_tokens:,} prompt tokens"
    elif isinstance(judge, EmbeddedJudge | ReaderJudge | None):
        cost = "no requests, no cost"
    else:
        cost = "what it asks and costs is not known"
    if more := _direct_requests(evaluator, count):
        cost = f"{cost}, and {more}" if judge is not None else more
    work = f"{counted(count, 'call')}, {characters:,} characters; judge {evaluator.judge.name}"
    return count, usage, f"{work}: {cost}"


def _direct_requests(evaluator: RagEvaluator, calls: int) -> str:
    """Say how many requests are sent by metrics that ask a model directly; empty for none."""
    metrics = [metric for metric in evaluator.metrics if isinstance(metric, ModelMetric)]
    limits = [metric.most_requests for metric in metrics]
    # One request per score if the model returns log-probabilities or several answers per
    # request, otherwise one per sample.
    least = len(limits) * calls
    most = None if None in limits else sum(limit or 0 for limit in limits) * calls
    many = f"{least:,}" if most in (least, None) else f"{least:,} to {most:,}"
    many = many if most is not None else f"at least {many}"
    return f"{many} requests for metrics that send their own requests" if limits else ""


def _labelled_texts(
    call: RagCall, texts: Collection[str], splitter: Splitter
) -> Iterator[SentencizedCall]:
    """Yield the texts of a call that a judge labels: its response, its reference, or both."""
    split = sentencize(call, splitter)
    if "response" in texts:
        yield split
    if "reference" in texts:
        text = RagCall(question="", documents=(), response=call.reference)
        yield about_reference(split, sentencize(text, splitter))
