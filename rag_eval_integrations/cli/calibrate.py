"""`rag-eval calibrate`: fit a judge's estimates to gold rows, and say what that is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_eval_integrations import _loop, _target
from rag_eval_integrations._visible import counted
from rag_eval_integrations.agreement._table import Row, Table
from rag_eval_integrations.agreement.calibrating import calibration_of, check_enough
from rag_eval_integrations.cli._arguments import CalibrateOptions
from rag_eval_integrations.cli._judges import judge_of
from rag_eval_integrations.cli._options import trace_from
from rag_eval_integrations.cli._progress import Progress
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout
from rag_eval_integrations.cli.agreement import RowReader, foldable, predicted_rows, show
from rag_eval_integrations.dataset import evaluate_calls, read_calls
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset.files import check_out
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.evaluations.console import add_row
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.judges import Calibration
from rag_eval_integrations.judges.calibration import ScoreMap
from rag_eval_integrations.records import Evaluation, Usage


def calibrate(options: CalibrateOptions) -> int:
    """Fit a calibration, write and print it; return 2 for invalid lines, else 0.

    With one file, of gold rows, the judge is asked; with two, the first has its evaluations.

    Raises:
        ConfigurationError: options that cannot work, too few rows, or rows that cannot be compared.
        JudgeError: the judge scored no call.
        OSError: when a file cannot be read or written.
    """
    *evals, gold = options.files
    _check_files(options.files)
    if evals:
        judge_options = {
            "judge": options.judge,
            "formulas": options.formulas,
            "relevance_baseline": options.relevance_baseline,
            **options.requests(),
        }
        _refuse_for_evaluations(evals[0], judge_options)
    for path in options.files:
        if options.out.exists() and path.exists() and options.out.samefile(path):
            raise ConfigurationError("--out", str(options.out), "is an input file")
    target = check_out(options.out, overwrite=options.overwrite, field="--out", resumable=False)
    reader = RowReader()
    if evals:
        predicted, trace = predicted_rows(reader, evals[0])
    else:
        trace = trace_from(options.formulas, options.relevance_baseline)
    rows = reader.gold(Input(gold), trace)
    check_enough(rows, options.target_error)
    if not evals:
        calls = Input(gold)
        calls.check()
        progress = Progress(calls, None)
        judge = judge_of(
            options.judge,
            options.requests(),
            options.wording(),
            on_wait=progress.wait,
            max_concurrency=options.max_concurrency,
        )
        evaluator = RagEvaluator(judge, [trace], flags=False)
        judged = _judged(calls, evaluator, options.max_concurrency, progress)
        predicted = [Row.of(evaluation) for evaluation in judged]
    table, joined = Table.joined(predicted, rows)
    if not joined.rows:
        raise ConfigurationError(
            "gold", str(gold), "has no labelled row in common with the judge's"
        )
    if joined.unmatched:
        print_stderr(f"{joined.unmatched} rows are on one side only and were left out")
    name = options.out.stem if options.name is None else options.name
    calibration = calibration_of(table, name=name, target_error=options.target_error)
    with _target.replacing(target, new=not options.overwrite, mode=_target.PUBLIC) as stream:
        stream.write(calibration.to_json().encode("ascii"))
    _print_calibration(calibration)
    print_stdout(f"Wrote {options.out}")
    return reader.exit_code()


def _check_files(files: Sequence[Path]) -> None:
    """Refuse too many files, and standard input."""
    if len(files) > 2:
        names = ", ".join(map(str, files))
        raise ConfigurationError("files", names, "give GOLD.jsonl, or EVALS.jsonl GOLD.jsonl")
    if any(str(path) == "-" for path in files):
        raise ConfigurationError("files", "-", "is read more than once; use a file")


def _refuse_for_evaluations(evals: Path, judge_options: Mapping[str, object]) -> None:
    """Refuse options for asking a judge when its evaluations are given."""
    for name, value in judge_options.items():
        if value is not None:
            raise ConfigurationError(
                f"--{name.replace('_', '-')}",
                str(value),
                f"is for a judge that is asked, and {evals} holds its evaluations already",
            )


def _judged(
    calls: Input, evaluator: RagEvaluator, max_concurrency: int, progress: Progress
) -> list[Evaluation]:
    """Evaluate the calls of the gold rows; leave out those that end in an error."""
    evaluations = _loop.run(_evaluated(calls, evaluator, max_concurrency, progress))
    failed = [evaluation.error for evaluation in evaluations if evaluation.error is not None]
    if failed and len(failed) == len(evaluations):
        raise JudgeError(f"no call was scored: {failed[0].type}: {failed[0].message}")
    every = counted(len(evaluations), "call")
    if failed:
        left = "was left out" if len(failed) == 1 else "were left out"
        print_stderr(f"{len(failed)} of {every} ended in an error and {left}")
    usage = sum([evaluation.usage for evaluation in evaluations], Usage())
    print_stderr(f"{every} labelled, {counted(usage.requests, 'judge request')}")
    return [evaluation for evaluation in evaluations if evaluation.error is None]


async def _evaluated(
    calls: Input, evaluator: RagEvaluator, max_concurrency: int, progress: Progress
) -> list[Evaluation]:
    """Evaluate the calls of a file, with a line of progress.

    Lines without a call are skipped. Evaluations that ended in an error are returned, too.
    """
    lines = (line.value for line in read_calls(calls) if line.value is not None)
    evaluations: list[Evaluation] = []
    async with progress:
        async for evaluation in evaluate_calls(lines, evaluator, max_concurrency=max_concurrency):
            evaluations.append(evaluation)
            progress.advance(len(evaluations))
    return evaluations


def _print_calibration(calibration: Calibration) -> None:
    """Print a table per judge, and why some scores have no map."""
    tables, notes = [], []
    for maps in calibration.judges:
        title = f"Calibration of {maps}: errors on held-out questions, before → after"
        table = foldable(
            title, "score", "n>", "questions>", "needed>", "RMSE>", "calibration error>", "map"
        )
        for name, score_map in maps.scores.items():
            counts = map(str, (score_map.n, score_map.questions, score_map.needed))
            errors = map(_error_change, (score_map.rmse, score_map.calibration_error))
            add_row(table, name, *counts, *errors, _map_of(score_map))
            if score_map.why:
                notes.append(f"{name} is left as it is: {score_map.why}")
        tables.append(table)
    show(tables)
    for note in notes:
        print_stdout(note)
    print_stdout(
        f"{calibration.n} gold rows, {calibration.questions} questions, {calibration.formulas} "
        "formulas; errors are cross-validated in folds that hold out whole questions."
    )


def _error_change(errors: tuple[float, float] | None) -> str:
    """Format an error before and after the map."""
    if errors is None:
        return "–"
    before, after = errors
    return f"{before:.3f}" if before == after else f"{before:.3f} → {after:.3f}"


def _map_of(score_map: ScoreMap) -> str:
    """Describe a score map in words."""
    if score_map.method == "identity":
        return "as it is"
    if score_map.method == "platt":
        return f"Platt: slope {score_map.slope:.2f}, intercept {score_map.intercept:+.2f}"
    if score_map.method == "mixture":
        weights = f"model {score_map.slope:.2f}, words {score_map.words:.2f}"
        return f"mixture: {weights}, intercept {score_map.intercept:+.2f}"
    return f"isotonic, {len(score_map.knots)} knots"
