"""`rag-eval calibrate`: fit a judge's estimates to gold rows, and say what that is worth."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_eval_integrations import _loop, _target
from rag_eval_integrations._counted import counted
from rag_eval_integrations.agreement._table import Row, Table
from rag_eval_integrations.agreement.calibrating import calibration_of, check_enough
from rag_eval_integrations.cli._agreement_tables import foldable, show
from rag_eval_integrations.cli._gold_rows import RowReader, predicted_rows
from rag_eval_integrations.cli._judges import Limits, judge_of
from rag_eval_integrations.cli._options import trace_from
from rag_eval_integrations.cli._terminal import Progress, print_stderr, safe, stdout, write_stdout
from rag_eval_integrations.dataset import evaluate_calls, read_calls
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset.files import check_out
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.evaluations.console import add_row
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import Calibration
from rag_eval_integrations.judges.calibration import ScoreMap
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, Usage


@dataclass(frozen=True)
class Settings:
    """The options of `rag-eval calibrate`, which `rag-eval calibrate --help` describes."""

    files: Sequence[Path]
    out: Path
    judge: str | None = None
    name: str | None = None
    target_error: float = 0.05
    formulas: str | None = None
    relevance_baseline: int | None = None
    max_concurrency: int = 32
    base_url: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    cache: Path | None = None
    model_options: Mapping[str, Any] = field(default_factory=dict)
    overwrite: bool = False


def calibrate_files(settings: Settings) -> int:
    """Fit, write the file, print what each map is worth; return 2 for invalid lines, else 0.

    Raises:
        ConfigurationError: options that cannot work, too few rows, or rows that cannot be compared.
        JudgeError: the judge scored no call.
        OSError: when a file cannot be read or written.
    """
    *evals, gold = settings.files
    _check(settings, evals)
    for path in settings.files:
        if settings.out.exists() and path.exists() and settings.out.samefile(path):
            raise ConfigurationError("--out", str(settings.out), "is an input file")
    target = check_out(settings.out, overwrite=settings.overwrite, field="--out", resumable=False)
    reader = RowReader()
    if evals:
        predicted, trace = predicted_rows(reader, evals[0])
    else:
        trace = trace_from(settings.formulas or "gpt-labeling", settings.relevance_baseline)
    rows = reader.gold(gold, trace)
    check_enough(rows, settings.target_error)
    if not evals:
        predicted = [Row.of(one) for one in _judged(settings, gold, trace)]
    table, joined = Table.joined(predicted, rows)
    if not joined.rows:
        raise ConfigurationError(
            "gold", str(gold), "has no labelled row in common with the judge's"
        )
    if joined.unmatched:
        print_stderr(f"{joined.unmatched} rows are on one side only and were left out")
    name = settings.out.stem if settings.name is None else settings.name
    found = calibration_of(table, name=name, target_error=settings.target_error)
    with _target.replacing(target, new=not settings.overwrite, mode=_target.PUBLIC) as stream:
        stream.write(found.to_json().encode("ascii"))
    _print(found)
    write_stdout(f"Wrote {safe(str(settings.out))}\n")
    return reader.exit_code()


def _check(settings: Settings, evals: Sequence[Path]) -> None:
    if len(settings.files) > 2:
        names = ", ".join(map(str, settings.files))
        raise ConfigurationError("files", names, "give GOLD.jsonl, or EVALS.jsonl GOLD.jsonl")
    if any(str(path) == "-" for path in settings.files):
        raise ConfigurationError("files", "-", "is read more than once; use a file")
    if not evals:
        return
    for option in ("judge", "formulas", "relevance_baseline", "base_url", "rpm", "tpm", "cache"):
        value = getattr(settings, option)
        if value is not None:
            raise ConfigurationError(
                f"--{option.replace('_', '-')}", str(value),
                f"is for a judge that is asked, and {evals[0]} holds its evaluations already",
            )  # fmt: skip


def _judged(settings: Settings, gold: Path, trace: Trace) -> list[Evaluation]:
    """Have the judge label the calls of the gold rows."""
    calls = Input(gold)
    calls.check()
    progress = Progress(calls, None)
    limits = Limits(
        settings.base_url, settings.rpm, settings.tpm, settings.max_concurrency, settings.cache,
        progress.wait, **settings.model_options,
    )  # fmt: skip
    judge = judge_of(settings.judge or "embedded", limits)
    found = _loop.run(
        _evaluated(calls, RagEvaluator(judge, [trace], flags=False), settings, progress)
    )
    failed = [one.error for one in found if one.error is not None]
    if failed and len(failed) == len(found):
        raise JudgeError(f"no call was scored: {failed[0].type}: {failed[0].message}")
    if failed:
        left = "was left out" if len(failed) == 1 else "were left out"
        every = counted(len(found), "call")
        print_stderr(f"{len(failed)} of {every} ended in an error and {left}")
    usage = sum([one.usage for one in found], Usage())
    print_stderr(
        f"{counted(len(found), 'call')} labelled, {counted(usage.requests, 'judge request')}"
    )
    return [one for one in found if one.error is None]


async def _evaluated(
    calls: Input, evaluator: RagEvaluator, settings: Settings, progress: Progress
) -> list[Evaluation]:
    lines = (line.value for line in read_calls(calls) if line.value is not None)
    stream = evaluate_calls(lines, evaluator, max_concurrency=settings.max_concurrency)
    found: list[Evaluation] = []
    with progress:
        ticking = asyncio.create_task(progress.tick())
        try:
            async for evaluation in stream:
                found.append(evaluation)
                progress.advance(len(found))
        finally:
            ticking.cancel()
    return found


def _print(found: Calibration) -> None:
    """Print a table per judge, and why scores are left as they are."""
    tables, notes = [], []
    for maps in found.judges:
        title = f"Calibration of {maps}: errors on held-out questions, before → after"
        table = foldable(
            title, "score", "n>", "questions>", "needed>", "RMSE>", "calibration error>", "map"
        )
        for name, one in maps.scores.items():
            add_row(
                table, name, str(one.n), str(one.questions), str(one.needed),
                _change(one.rmse), _change(one.calibration_error), _map_of(one),
            )  # fmt: skip
            if one.why:
                notes.append(f"{name} is left as it is: {one.why}")
        tables.append(table)
    show(tables)
    console = stdout()
    for note in notes:
        console.print(safe(note), soft_wrap=True)
    console.print(
        f"{found.n} gold rows, {found.questions} questions, {found.formulas} formulas; errors are "
        "cross-validated in folds that hold out whole questions.",
        soft_wrap=True,
    )


def _change(errors: tuple[float, float] | None) -> str:
    if errors is None:
        return "–"
    before, after = errors
    return f"{before:.3f}" if before == after else f"{before:.3f} → {after:.3f}"


def _map_of(one: ScoreMap) -> str:
    if one.method == "identity":
        return "as it is"
    if one.method == "platt":
        return f"Platt: slope {one.slope:.2f}, intercept {one.intercept:+.2f}"
    return f"isotonic, {len(one.knots)} knots"
