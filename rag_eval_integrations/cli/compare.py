"""`rag-eval compare`: runs of the same calls, as a table and a page, and a gate for a build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import cast

from rag_eval_integrations import _target
from rag_eval_integrations._visible import counted, one_line, visible_json
from rag_eval_integrations.cli._arguments import CompareOptions
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._console import stdout
from rag_eval_integrations.cli._options import named_share
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout, write_stdout
from rag_eval_integrations.cli.report import format_of
from rag_eval_integrations.dataset._corrections import Corrections
from rag_eval_integrations.dataset._evals import read_evaluations
from rag_eval_integrations.dataset._input import Input
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._cells import inline, markdown_table, named_rows
from rag_eval_integrations.evaluations._corrected import CorrectedRun
from rag_eval_integrations.evaluations._difference_words import calls, decimal
from rag_eval_integrations.evaluations._gate import GateVerdict, gate_verdicts, worst_calls
from rag_eval_integrations.evaluations._pairing import EvaluationsFile, PairedBy
from rag_eval_integrations.evaluations.comparison import (
    GENERATOR,
    Comparison,
    answer_changes,
    heading,
    moves,
    outcome_lines,
    places_of,
    remarks,
    table,
    table_lines,
)
from rag_eval_integrations.report import _page
from rag_eval_integrations.report import compare as compare_runs
from rag_eval_integrations.report._compare_html import compare_page

_SHOWN = 3
"""Calls that are listed below a table; the page shows more of them, and side by side."""


def compare(options: CompareOptions) -> int:
    """Compare the runs and return the exit code.

    Returns:
        2 for invalid lines, unless `skip_invalid`, and for a gate on a score that no call has in
        both runs; 1 when a score became worse than its gate allows, or may have with
        `fail_on_unclear`, or more sentences than `fail_on_new` allows are new and unsupported;
        else 0.

    Raises:
        ConfigurationError: for options or files that cannot be compared.
        OSError: when a file cannot be read or written.
    """
    words = options.fail_on_regression or ()
    gates = regression_gates(words, fail_on_unclear=options.fail_on_unclear)
    most_new = _most_new(options.fail_on_new)
    form = format_of(options.form, options.out, ("html", "md", "json"))
    evals = [Input(path) for path in options.evals]
    _check_inputs(options.evals, options.by)
    for file in evals:
        if options.out is not None and file.is_file(options.out):
            raise ConfigurationError("--out", str(options.out), "is one of the input files")
        file.check(folder=True)
    invalid = [BadRows(file) for file in evals]
    comparison = compare_runs(
        *[EvaluationsFile(file, bad.tell) for file, bad in zip(evals, invalid, strict=True)],
        by=cast(PairedBy | None, options.by),
        conversation=False if options.conversation == "none" else options.conversation,
        allow_mixed=options.allow_mixed,
    )
    verdicts = list(gate_verdicts(comparison, gates, "--fail-on-regression"))
    corrected = _corrected(options.labels, evals, comparison)
    piped = str(options.out) == "-" or (options.out is None and options.form is not None)
    width = stdout(to_stderr=piped).width
    for line in _lines(comparison, verdicts, width):
        (print_stderr if piped else print_stdout)(line)
    for name, means, why in corrected:
        title = f"Corrected means of {name}: {f'none: {why}' if means is None else ''}"
        for line in [one_line(title.rstrip()), *str(means or "").splitlines()]:
            (print_stderr if piped else print_stdout)(line)
    if options.out is not None or piped:
        lines = [verdict.line for verdict in verdicts]
        _write(comparison, form, None if piped else options.out, lines, corrected)
    codes = [bad.end("left out", skip=options.skip_invalid) for bad in invalid]
    return max(
        *codes,
        _gate_code(verdicts, fail_on_unclear=options.fail_on_unclear),
        _new_unsupported_code(comparison, most_new),
    )


def _check_inputs(paths: Sequence[Path], by: str | None) -> None:
    """Refuse inputs and options that cannot be compared."""
    if len(paths) < 2:
        raise ConfigurationError("evals", str(paths[0]), "name a second file to compare")
    if sum(str(path) == "-" for path in paths) > 1:
        raise ConfigurationError("evals", "-", "standard input can be only one of the files")
    if by not in (None, "id", "question"):
        raise ConfigurationError("--by", by, "use id or question")


def _corrected(
    path: Path | None, evals: Sequence[Input], comparison: Comparison
) -> list[CorrectedRun]:
    """Correct the means of each run by people's labels; empty without labels.

    Raises:
        ConfigurationError: they are of no run.
        OSError: they cannot be read.
    """
    if path is None:
        return []
    corrected: list[CorrectedRun] = []
    names = [comparison.names[0], *(run.names[1] for run in comparison.all)]
    refused: list[ConfigurationError] = []
    for name, file in zip(names, evals, strict=True):
        corrections = Corrections(path)
        for line in read_evaluations(file):
            if line.value is not None:
                corrections.add(line.value)
        try:
            corrected.append(CorrectedRun(name, corrections.means))
        except ConfigurationError as error:
            refused.append(error)
            corrected.append(CorrectedRun(name, None, error.why))
    if len(refused) == len(corrected):
        raise refused[0]
    return corrected


def _lines(comparison: Comparison, verdicts: Sequence[GateVerdict], width: int) -> Iterator[str]:
    """Yield the comparison's tables, remarks, most changed calls and verdicts."""
    for run in comparison.all:
        yield from (*table_lines(run, width), *remarks(run))
        for line in (*_new_unsupported(run), *_most_changed(run)):
            yield from wrap(
                line,
                width,
                subsequent_indent="    ",
                break_on_hyphens=False,
                break_long_words=False,
            )
    yield from (verdict.line for verdict in verdicts)


def _most_changed(run: Comparison) -> Iterator[str]:
    """List the calls that changed most, with every score that changed."""
    changes = run.changed_calls(_SHOWN)
    if changes:
        count = run.changed_count
        yield (
            f"The {len(changes)} of {count:,} changed calls that changed most:"
            if count > len(changes)
            else f"{calls(count)} changed:"
        )
    places = places_of(run)
    for change in changes:
        moved = ", ".join(
            f"{one_line(name)} {decimal(old, places)} to {decimal(new, places)}"
            for name, old, new in moves(change, run)
        )
        yield f"  {change.named(60)}: {moved}"


def _new_unsupported(run: Comparison) -> Iterator[str]:
    """List unsupported sentences that the answers of the baseline did not have."""
    changes = run.with_new_unsupported(_SHOWN)
    if changes:
        yield "New unsupported sentences:"
    for change in changes:
        for sentence in change.new_unsupported[:_SHOWN]:
            yield f"  {change.named(60)}: {sentence.key} “{one_line(sentence.text, 120)}”"


# --- The gate


def _most_new(option: str | None) -> int | None:
    """Read `--fail-on-new unsupported[=N]`; None without it.

    Raises:
        ConfigurationError: for another form.
    """
    if option is None:
        return None
    name, equals, count = option.partition("=")
    if name != "unsupported" or (equals and not (count.isascii() and count.isdigit())):
        why = "use unsupported, or unsupported=N with the number of sentences that may be"
        raise ConfigurationError("--fail-on-new", option, why)
    return int(count or 0)


def _new_unsupported_code(comparison: Comparison, most: int | None) -> int:
    """Return 1, and say why, if a run has too many new unsupported sentences; else 0."""
    code = 0
    for run in comparison.all:
        new = run.new_unsupported
        if most is not None and new > most:
            words = counted(new, "new unsupported sentence")
            print_stderr(f"FAILED {one_line(run.names[1])}: {words}; --fail-on-new allows {most}")
            code = 1
    return code


def regression_gates(words: Sequence[str], *, fail_on_unclear: bool) -> dict[str, float]:
    """Read every `--fail-on-regression NAME=DELTA`.

    Raises:
        ConfigurationError: for another form, a name given twice, or `--fail-on-unclear` alone.
    """
    gates: dict[str, float] = {}
    for word in words:
        why = "is the fall that does not matter: a number from 0 to 1"
        name, delta = named_share("--fail-on-regression", word, "DELTA", why)
        if name in gates:  # one of the two would not be checked
            why = f"{name} has a DELTA already, {gates[name]:g}; give one"
            raise ConfigurationError("--fail-on-regression", word, why)
        gates[name] = delta
    if fail_on_unclear and not gates:
        why = "--fail-on-unclear needs a score: --fail-on-regression NAME=DELTA"
        raise ConfigurationError("--fail-on-unclear", None, why, missing=True)
    return gates


def _gate_code(verdicts: Sequence[GateVerdict], *, fail_on_unclear: bool) -> int:
    """Print the verdicts that failed; return 2 for a score without pairs, 1 for a regression."""
    code = 0
    for run, score, outcome, line in verdicts:
        if not score.n:
            print_stderr(f"FAILED {score.name}: no call has a value in both runs")
            code = 2
        elif outcome == "worse" or (outcome == "cannot tell" and fail_on_unclear):
            print_stderr(f"FAILED {line}")
            for call in worst_calls(run, score.name) if outcome == "worse" else ():
                print_stderr(f"  {call}")
            code = max(code, 1)
    return code


# --- Files


def _write(
    comparison: Comparison,
    form: str,
    out: Path | None,
    verdicts: Sequence[str],
    corrected: Sequence[CorrectedRun],
) -> None:
    """Write the comparison as a page, JSON or Markdown, to a file or standard output.

    A file that is not an earlier comparison is not replaced.
    """
    if form == "html":
        text = "".join(compare_page(comparison, verdicts=verdicts, corrected=corrected))
    elif form == "json":
        content = comparison.to_json() | {"verdicts": list(verdicts)}
        if corrected:
            content["corrected"] = [
                run._asdict() | {"means": run.means and asdict(run.means)} for run in corrected
            ]
        text = f"{visible_json(content)}\n"
    else:
        text = _markdown(comparison, verdicts, corrected)
    if out is None:
        write_stdout(text)
        return
    mark = GENERATOR.encode("ascii")
    ours = _page.is_page if form == "html" else lambda head: mark in head
    _target.write_page(out, text, ours, field="--out")
    print_stderr(f"Wrote the comparison to {out}")


def _markdown(
    comparison: Comparison, verdicts: Sequence[str], corrected: Sequence[CorrectedRun]
) -> str:
    """Write tables for a pull request or a job's summary; no text in them acts as Markdown."""
    lines = [f"<!-- {GENERATOR} -->", *(f"- {inline(line, most=None)}" for line in verdicts), ""]
    for run in comparison.all:
        for line in (heading(run), *answer_changes(run)):
            lines += [inline(line, most=None), ""]
        lines += [*(f"- {inline(line, most=None)}" for line in outcome_lines(run)), ""]
        lines += [*markdown_table(named_rows(table(run))), ""]
        lines += [*(f"- {inline(line, most=None)}" for line in remarks(run)), ""]
    for name, means, why in corrected:
        lines += [inline(f"Corrected means of {name}: {why or 'by people'}", most=None), ""]
        if means is not None:
            lines += [*markdown_table(named_rows(means.rows())), ""]
            lines += [*(f"- {line}" for line in means.remarks()), ""]
    return "\n".join(lines)
