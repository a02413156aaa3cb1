"""`rag-eval score`: score recorded labels with TRACe, without a judge."""

from __future__ import annotations

import time
from pathlib import Path

from rag_eval_integrations.cli._options import trace_from
from rag_eval_integrations.cli._terminal import print_stderr, stdout
from rag_eval_integrations.cli.run import nothing_scored, print_summary
from rag_eval_integrations.dataset import labelled_from, read_lines, score_labelled
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import to_line
from rag_eval_integrations.report._summary import Summary
from rag_eval_integrations.sentences import Punkt


def score(
    labelled: Path,
    out: Path,
    *,
    formulas: str,
    relevance_baseline: int | None,
    raw_keys: bool,
    skip_invalid: bool,
) -> int:
    """Score every labelled row of a file and return the exit code.

    Args:
        labelled: calls with labels, RAGBench rows, or evaluations.
        out: file for the evaluations; replaced when all rows are scored.
        formulas: the set of TRACe formulas.
        relevance_baseline: divisor of relevance; None for the number of sentences.
        raw_keys: whether to count key lists as recorded, with repeated and unknown keys.
        skip_invalid: whether to return 0 despite invalid lines.

    Returns:
        2 for invalid lines, unless `skip_invalid`; 1 when nothing was scored; else 0.

    Raises:
        ConfigurationError: for options that cannot work, before the first row.
        OSError: when a file cannot be read or written.
    """
    metrics = [trace_from(formulas, relevance_baseline)]
    if out.exists() and out.samefile(labelled):
        raise ConfigurationError("--out", str(out), "is the input file")
    splitter = Punkt()
    summary = Summary()
    invalid = 0
    started = time.perf_counter()
    lines = read_lines(labelled, lambda content: labelled_from(content, splitter))
    unfinished = out.with_name(out.name + ".unfinished")
    try:
        with unfinished.open("w", encoding="ascii") as target:
            for line in lines:
                if line.value is None:
                    invalid += 1
                    print_stderr(f"{labelled}: {line.error}")
                    continue
                evaluation = score_labelled(line.value, metrics, raw_keys=raw_keys)
                summary.add(evaluation)
                target.write(to_line(evaluation) + "\n")
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
    console = stdout()
    print_summary(console, summary, time.perf_counter() - started)
    console.print(f"Wrote {summary.calls} evaluations to {out}", soft_wrap=True)
    if invalid:
        print_stderr(f"{labelled}: {invalid} invalid line(s) were left out of the output")
    why = nothing_scored(labelled, summary, invalid)
    if why is not None:
        print_stderr(f"FAILED: {why}")
    return 2 if invalid and not skip_invalid else int(why is not None)
