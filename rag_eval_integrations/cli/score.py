"""`rag-eval score`: score recorded labels without a judge; the end that `run` has, too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.cli._arguments import ScoreOptions
from rag_eval_integrations.cli._bad_rows import BadRows, NoRowsError
from rag_eval_integrations.cli._options import (
    Threshold,
    field_map_from,
    run_from,
    thresholds_from,
    trace_from,
)
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout, stderr_printer
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset._corrections import Corrections
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.dataset.calls import read_labelled
from rag_eval_integrations.dataset.files import evaluations_to
from rag_eval_integrations.dataset.rows import trace_of
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._corrected import CorrectedMeans
from rag_eval_integrations.evaluations._groups import Groups, means_of
from rag_eval_integrations.evaluations.console import KEYS
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.records.score import score_hint
from rag_eval_integrations.report import _page
from rag_eval_integrations.sentences import Punkt


def score(options: ScoreOptions) -> int:
    """Score every labelled row of a file and return the exit code.

    Returns:
        2 for invalid lines, unless `skip_invalid`, and for no row at all; 1 when none was scored,
        or a mean is below its threshold; else 0.

    Raises:
        ConfigurationError: for options that cannot work, before the first row.
        OSError: when a file cannot be read or written.
    """
    labelled, out = Input(options.labelled, field_map_from(options.field_map)), options.out
    metrics = [trace_from(options.formulas, options.relevance_baseline)]
    thresholds = thresholds_from(options.fail_under)
    groups = groups_from(options.per, options.min_calls, thresholds, out)
    corrections = corrections_from(options.labels, options.per, out)
    chosen = options.formulas or options.relevance_baseline
    check_name("--out", out, labelled)
    check_report(options.report, out, labelled)
    run_field = {"run": run_from(options.name, options.tag, revision=not options.no_revision)}
    summary = Summary()
    bad = BadRows(labelled)
    started = time.perf_counter()
    labelled.check(folder=True)
    try:
        with evaluations_to(out, overwrite=options.overwrite) as write:
            read = partial(labelled_from, splitter=Punkt())
            for row in bad.values(read_labelled(labelled, read, tell=stderr_printer(labelled))):
                recorded = row.evaluation and not chosen and trace_of(row.evaluation.scores)
                own = [recorded] if recorded else metrics
                evaluation = score_labelled(row, own, raw_keys=options.raw_keys)
                summary.add(evaluation)
                write(evaluation.model_copy(update=run_field))
            if not summary.calls:
                raise NoRowsError
    except NoRowsError:
        return bad.end_without_rows("labelled row", out, skip=options.skip_invalid)
    print_end(out, options.report, summary, time.perf_counter() - started, summary.calls)
    code = bad.end("left out of the output", skip=options.skip_invalid)
    failed = check_errors(summary, max_error_rate=1)
    below = check_thresholds(thresholds, summary, groups, corrections, out)
    return max(code, failed, below)


# --- The end of `run` and `score`: summary, report, and what makes them fail

_ENOUGH = 30
"""Calls from which labels that are all alike say more of the judge than of the calls."""


def print_end(
    out: Path,
    report: Path | None,
    summary: Summary,
    seconds: float,
    row_count: int,
    reused: int = 0,
) -> None:
    """Print the summary of a run, and write its report from the whole file.

    The summary has means with their counts, reasons for missing scores, warnings, errors and
    diagnoses.

    Args:
        out: where the evaluations went; `-` is standard output.
        report: where the report goes; None for none.
        summary: of all evaluations.
        seconds: duration of the run.
        row_count: number of evaluations in the file.
        reused: evaluations taken from an earlier run.

    Raises:
        ConfigurationError: a file that this program did not make is now where the report goes.
        OSError: it cannot be written.
    """
    piped = str(out) == "-"
    for line in _summary_lines(summary, seconds, reused):
        (print_stderr if piped else print_stdout)(line)
    if not piped:
        print_stdout(f"Wrote {counted(row_count, 'evaluation')} to {out}")
    if report is not None:
        from rag_eval_integrations.report.html import report_pieces  # noqa: PLC0415  # Jinja2

        content = report_pieces(_written_evaluations(out), title=f"Evaluations of {out.name}")
        _page.write(report, content, field="--report")
        print_stdout(f"Wrote the report to {report}")


def _written_evaluations(out: Path) -> Iterator[Evaluation]:
    """Read back the evaluations that this program has just written."""
    for line in read_evaluations(out):
        if line.value is None:  # this program has just written it
            raise ConfigurationError("--out", str(out), f"was changed meanwhile: {line.error}")
        yield line.value


def _summary_lines(summary: Summary, seconds: float, reused: int) -> Iterator[str]:
    """Yield the lines of a summary: scores, notes, errors, diagnoses, and how long it took."""
    if not summary.calls:
        yield "There are no rows, and so no scores."
    else:
        yield from (summary.verdict(), "")
    for table in summary.tables():
        yield from (*table, "")
    for warning, count in summary.warnings.most_common():
        yield f"NOTE ({counted(count, 'call')}): {warning}"
    by_labels = [figures for figures in summary.scores if figures.method == "labels"]
    if by_labels and all(f.scored >= _ENOUGH and f.deviation == 0 for f in by_labels):
        same = ", ".join(f"{figures.name} {figures.mean:.2f}" for figures in by_labels)
        yield f"NOTE: all calls have the same scores ({same}); does the judge read them?"
    for failure, count in summary.errors.most_common():
        yield f"ERROR ({counted(count, 'call')}): {failure}: {summary.reasons[failure]}"
    if summary.diagnoses:
        yield "Diagnoses:"
    labelled = counted(summary.labelled, "labelled call")
    for diagnosis, count in summary.advice():
        advice = f"{diagnosis.problem} {diagnosis.fix}"
        yield f"  {diagnosis.pattern} ({count:,} of {labelled}): {advice}"
    if summary.calls:
        yield KEYS
    new = summary.calls - reused
    rate = f", {new / seconds:.0f} per second" if new and seconds > 0 else ""
    earlier = f", {reused:,} reused from an earlier run" if reused else ""
    took = f"{counted(summary.calls, 'call')} in {seconds:.1f} s{rate}{earlier}"
    yield f"{took}; {summary.cost()}" if summary.usage.requests else took


def nothing_scored(summary: Summary) -> str | None:
    """Say that a run has no score at all; None when a call was scored."""
    if summary.scored:
        return None
    if summary.calls == 1:
        return "the call was not scored"
    return f"none of the {summary.calls:,} calls was scored"


def check_errors(summary: Summary, max_error_rate: float) -> int:
    """Return 1, and say why, if too many calls ended in an error or none was scored; else 0."""
    errors = summary.errors.total()
    why = nothing_scored(summary)
    if why is None and errors > max_error_rate * summary.calls:
        why = (
            f"{errors:,} of {counted(summary.calls, 'call')} ({errors / summary.calls:.1%}) ended "
            f"in an error; --max-error-rate is {max_error_rate:g}"
        )
    if why is None:
        return 0
    print_stderr(f"FAILED: {why}")
    return 1


def groups_from(
    per: str | None, min_calls: int | None, thresholds: Sequence[Threshold], out: Path | None = None
) -> Groups | None:
    """Make the groups of `--per`, empty at first; None without the option.

    Args:
        per: the field; None for none.
        min_calls: calls of a group from which it may fail.
        thresholds: thresholds of `--fail-under`.
        out: where a command that makes evaluations writes them.

    Raises:
        ConfigurationError: there is no threshold, or the evaluations go to standard output.
    """
    if per is None:
        return None
    if not thresholds:
        why = "needs a threshold, as in --fail-under adherence=0.8"
        raise ConfigurationError("--per", per, why)
    _check_read_again("--per", per, out)
    return Groups(per, least=min_calls, option="--per")


def corrections_from(
    labels: Path | None, per: str | None, out: Path | None = None
) -> Corrections | None:
    """Read people's labels of `--labels`; None without it.

    Raises:
        ConfigurationError: it is another file, thresholds are of groups, or the evaluations go to
            standard output.
        OSError: it cannot be read.
    """
    if labels is None:
        return None
    if per is not None:
        raise ConfigurationError("--per", per, "is not held for corrected means")
    _check_read_again("--labels", str(labels), out)
    return Corrections(labels)


def _check_read_again(option: str, value: str, out: Path | None) -> None:
    """Refuse an option that reads the evaluations back if they go to standard output."""
    if str(out) == "-":
        raise ConfigurationError(option, value, "is of a file: use one for --out")


def check_thresholds(
    thresholds: Sequence[Threshold],
    summary: Summary,
    groups: Groups | None,
    corrections: Corrections | None,
    out: Path | None = None,
    *,
    say: Callable[[str], object] = print_stdout,
) -> int:
    """Return 1, and say why, if the mean of a score is below its threshold; else 0.

    With corrected means, which are printed, the lower end of the interval counts.

    Args:
        thresholds: the thresholds.
        summary: of all evaluations.
        groups: groups whose means are checked; None to check the mean of all evaluations.
        corrections: what corrects the means; None to check the means of the judge.
        out: a file that this program has just written, whose evaluations are added to the groups
            or corrections.
        say: prints a line about corrected means.

    Raises:
        ConfigurationError: no call has the field of the groups; the labels correct nothing.
    """
    code = 0
    collected = corrections if groups is None else groups
    if collected is not None and out:
        for evaluation in _written_evaluations(out):
            collected.add(evaluation)
    if corrections is not None:
        for line in str(corrections.means).splitlines():
            say(line)
        return _check_corrected(thresholds, corrections.means)
    for threshold in thresholds:
        if groups is not None and means_of(summary, threshold.name):
            code = max(code, _check_groups(threshold, groups.ranked()))
        elif why := _shortfall(threshold, summary):
            print_stderr(f"FAILED {threshold.name}: {why}")
            code = 1
    return code


def _check_corrected(thresholds: Sequence[Threshold], corrected: CorrectedMeans) -> int:
    """Check the lower ends of corrected means, and print how they are; return 1 or 0."""
    code = 0
    for threshold in thresholds:
        figures = corrected.means.get(threshold.name)
        words, failed = f"people's labels correct {', '.join(corrected.means)} alone", True
        if figures is not None:
            low, failed = figures.interval.low, figures.interval.low < threshold.value
            words = (
                f"the lower end {low:.4f} of the corrected mean's 95 % interval is "
                f"{'' if failed else 'not '}below {threshold.value:g} "
                f"(corrected {figures.mean:.3f}, judge {figures.judge:.3f})"
            )
        print_stderr(f"{'FAILED' if failed else 'NOTE'} {threshold.name}: {words}")
        code = max(code, int(failed))
    return code


def _shortfall(threshold: Threshold, summary: Summary) -> str:
    """Say why a mean is below its threshold, or missing; empty if the threshold holds."""
    try:
        score = summary.means.mean(threshold.name)
    except ValueError as error:  # the scores come from different estimators, for example
        return f"no single mean: {error}"
    if score is None or score.mean is None:
        names = [figures.name for figures in summary.scores]
        hint = "" if threshold.name in names else f"; {score_hint(threshold.name, names)}"
        return f"no call has this score{hint}"
    if score.mean < threshold.value:
        return f"mean {score.mean:.4f} is below {threshold.value:g}"
    return ""


def _check_groups(threshold: Threshold, groups: Groups) -> int:
    """Name the groups below a threshold, and those that are too small to fail; return 1 or 0."""
    code = 0
    for value, group in groups.items():
        calls = sum(mean.n for mean in means_of(group, threshold.name))
        name = one_line(f"{threshold.name}: {groups.field} {value}", 120)
        if calls < groups.least:
            print_stderr(f"NOTE {name}: {counted(calls, 'call')} with a value, too few to fail")
        elif why := _shortfall(threshold, group):
            print_stderr(f"FAILED {name}: {why} ({counted(calls, 'call')})")
            code = 1
    if groups.without:
        print_stderr(f"NOTE {counted(groups.without, 'call')} without {one_line(groups.field)}")
    return code


# --- The files, before the first row


def check_name(option: str, path: Path | None, calls: Input, **taken: Path | None) -> None:
    """Refuse an output file that is the input, or a file of another option.

    Args:
        option: the option that names it.
        path: the file; None for none.
        calls: the input.
        **taken: files by the names of their options.
    """
    if path is None:
        return
    if calls.is_file(path):
        raise ConfigurationError(option, str(path), "is the input file")
    for name, other in taken.items():
        if other is None:
            continue
        end = os.path.realpath(path).removeprefix(os.path.realpath(other))
        if end in ("", ".partial", ".bak"):
            why = f"is a file of --{name}; use another name"
            raise ConfigurationError(option, str(path), why)


def check_report(report: Path | None, out: Path, calls: Input, **taken: Path | None) -> None:
    """Refuse a report that could not be written at the end, or would overwrite another file.

    Args:
        report: where the report goes; None for none.
        out: where the evaluations go.
        calls: the input.
        **taken: further files of the command by the names of their options.

    Raises:
        ConfigurationError: the evaluations go to standard output, or the report is the input, an
            output, or a file that this program did not make.
        OSError: its folder does not exist, or it cannot be read.
    """
    if report is None:
        return
    if str(out) == "-":
        why = "is made of a file: use one for --out"
        raise ConfigurationError("--report", str(report), why)
    check_name("--report", report, calls, out=out, **taken)
    _page.check(report, field="--report")
