"""`rag-eval score`: score recorded labels with TRACe, without a judge."""

from __future__ import annotations

import time
from functools import partial

from rag_eval_integrations.cli._arguments import ScoreOptions
from rag_eval_integrations.cli._bad_rows import BadRows, NoRowsError
from rag_eval_integrations.cli._ending import check_errors, check_name, check_report, print_end
from rag_eval_integrations.cli._options import trace_from
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.dataset._input import Input, read_rows
from rag_eval_integrations.dataset.files import evaluations_to
from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.sentences import Punkt


def score(options: ScoreOptions) -> int:
    """Score every labelled row of a file and return the exit code.

    Returns:
        2 for invalid lines, unless `skip_invalid`, and for no row at all; 1 when none was scored;
        else 0.

    Raises:
        ConfigurationError: for options that cannot work, before the first row.
        OSError: when a file cannot be read or written.
    """
    labelled, out = Input(options.labelled), options.out
    metrics = [trace_from(options)]
    check_name("--out", out, labelled)
    check_report(options, labelled)
    summary = Summary()
    bad = BadRows(labelled)
    started = time.perf_counter()
    labelled.check(folder=True)
    try:
        with evaluations_to(out, overwrite=options.overwrite) as write:
            for row in bad.values(read_rows(labelled, partial(labelled_from, splitter=Punkt()))):
                evaluation = score_labelled(row, metrics, raw_keys=options.raw_keys)
                summary.add(evaluation)
                write(evaluation)
            if not summary.calls:
                raise NoRowsError
    except NoRowsError:
        return bad.nothing("labelled row", out, skip=options.skip_invalid)
    print_end(options, summary, time.perf_counter() - started, summary.calls)
    code = bad.end("left out of the output", skip=options.skip_invalid)
    return max(code, check_errors(summary, max_error_rate=1))
