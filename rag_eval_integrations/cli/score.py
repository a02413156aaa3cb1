"""`rag-eval score`: score recorded labels with TRACe, without a judge."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from rag_eval_integrations._counted import counted
from rag_eval_integrations.cli._bad_rows import BadRows
from rag_eval_integrations.cli._options import trace_from
from rag_eval_integrations.cli._run_report import check_report, write_run_report
from rag_eval_integrations.cli._summary import nothing_scored, print_summary
from rag_eval_integrations.cli._terminal import print_stderr, stdout
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset._input import Input, read_rows
from rag_eval_integrations.dataset.files import evaluations_to
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.sentences import Punkt


def score(
    labelled: Input,
    out: Path,
    *,
    formulas: str,
    relevance_baseline: int | None,
    raw_keys: bool,
    skip_invalid: bool,
    overwrite: bool = False,
    report: Path | None = None,
) -> int:
    """Score every labelled row of a file and return the exit code.

    Args:
        labelled: calls with labels, RAGBench rows, or evaluations.
        out: file for the evaluations, or `-`; replaced when all rows are scored.
        formulas: the set of TRACe formulas.
        relevance_baseline: divisor of relevance; None for the number of sentences.
        raw_keys: whether to count key lists as recorded, with repeated and unknown keys.
        skip_invalid: whether to return 0 despite invalid lines.
        overwrite: whether to replace a file that exists.
        report: file for the report, written at the end; None for none.

    Returns:
        2 for invalid lines, unless `skip_invalid`, and for no row at all; 1 when none was scored;
        else 0.

    Raises:
        ConfigurationError: for options that cannot work, before the first row.
        OSError: when a file cannot be read or written.
    """
    metrics = [trace_from(formulas, relevance_baseline)]
    if labelled.is_file(out):
        raise ConfigurationError("--out", str(out), "is the input file")
    check_report(report, labelled, out, {})
    splitter = Punkt()
    summary = Summary()
    bad = BadRows(labelled)
    started = time.perf_counter()
    labelled.check(folder=True)
    try:
        with evaluations_to(out, overwrite=overwrite) as write:
            read = partial(labelled_from, splitter=splitter)
            for line in read_rows(labelled, read):
                if line.value is None:
                    bad.tell(line)
                    continue
                evaluation = score_labelled(line.value, metrics, raw_keys=raw_keys)
                summary.add(evaluation)
                write(evaluation)
            if not summary.calls:
                raise _NoRowsError
    except _NoRowsError:
        bad.rest()
        found = f"{bad.count} invalid line(s) and no labelled row" if bad.count else "no rows"
        print_stderr(f"{labelled}: has {found}, so nothing was written to {out}")
        return 1 if bad.count and skip_invalid else 2
    piped = str(out) == "-"
    console = stdout(to_stderr=piped)
    print_summary(console, summary, time.perf_counter() - started)
    if not piped:
        console.print(f"Wrote {counted(summary.calls, 'evaluation')} to {out}", soft_wrap=True)
        write_run_report(report, out, console)
    bad.end("were left out of the output")
    why = nothing_scored(summary)
    if why is not None:
        print_stderr(f"FAILED: {why}")
    return 2 if bad.count and not skip_invalid else int(why is not None)


class _NoRowsError(Exception):
    """There is nothing to write, so whatever is there stays."""
