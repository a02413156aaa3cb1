"""`rag-eval store`: look at a store, write files and pages of it, and keep it in order."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from math import inf
from pathlib import Path

from rag_eval_integrations._visible import counted, one_line
from rag_eval_integrations.cli._options import moment
from rag_eval_integrations.cli._store_arguments import (
    StoreExportOptions,
    StoreInfoOptions,
    StorePruneOptions,
    StoreReportOptions,
    StoreRetryOptions,
)
from rag_eval_integrations.cli._terminal import print_stderr, print_stdout
from rag_eval_integrations.dataset._corrections import Corrections
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._corrected import CorrectedMeans
from rag_eval_integrations.evaluations._filters import Filters
from rag_eval_integrations.report import _page
from rag_eval_integrations.report._store_page import (
    STATES,
    drift_of,
    maker_of,
    store_page,
    waiting_in,
)
from rag_eval_integrations.store import Store
from rag_eval_integrations.store.spool import SUFFIX


def info(options: StoreInfoOptions) -> int:
    """Print how many calls are in each state, what waits, and figures of each evaluator."""
    with closing(Store(options.store, create=False)) as store:
        counts = store.counts()
        lines = [f"{store.name}: {counted(sum(calls for *_, calls in counts), 'call')}"]
        for state, why, calls in counts:
            lines.append(f"  {calls:,} {STATES[state]}{f': {one_line(why)}' if why else ''}")
        lines += [f"  {line}" for line in waiting_in(store)]
        for judge, fingerprint, calls, seconds, usd in store.evaluators():
            each = "" if seconds is None else f", {seconds:.2f} s each"
            each += "" if usd is None else f", ${usd:.5f} each"
            evaluated = counted(calls, "evaluation")
            lines.append(f"  {evaluated} by {one_line(judge)} ({fingerprint}){each}")
        means = store.means(store.now() - 86_400)
        several = Counter(mean.made.name for mean in means)
        for maker, mean, total in (period[1:] for period in means):
            value = "no value" if mean.mean is None else f"mean {mean.mean:.3f}"
            by = f" ({maker_of(maker)})" if several[maker.name] > 1 else ""
            lines.append(
                f"  last day: {one_line(maker.name)}{by}, {value}, {mean.n:,} of {total:,} scored"
            )
    for line in [*lines, *map(_files_of, options.spool or ())]:
        print_stdout(line)
    return 0


def _files_of(folder: Path) -> str:
    """Count the files of a spool.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such spool")
    ends = Counter(path.suffix for path in folder.iterdir())
    aside = ends[".damaged"] + ends[".aside"]
    left = f"; {aside:,} put aside" if aside else ""
    return f"  {folder}: {counted(ends[SUFFIX], 'file')}{left}"


def export(options: StoreExportOptions) -> int:
    """Write evaluations as a file of EVALS, in the order of the calls' time."""
    from rag_eval_integrations.dataset.files import evaluations_to  # noqa: PLC0415  # as `run`

    filters, row_count = Filters(options.where), 0
    with closing(Store(options.store, create=False)) as store:
        since = moment(options.since, "--since", store.now())
        with evaluations_to(options.out, overwrite=options.overwrite) as write:
            for evaluation in filters.keep(store.evaluations(since)):
                write(evaluation)
                row_count += 1
            if not row_count:
                why = "the store has no evaluation since then"
                raise filters.none_kept() or ConfigurationError("--store", store.name, why)
    if str(options.out) != "-":
        print_stdout(f"Wrote {counted(row_count, 'evaluation')} to {options.out}")
    return 0


def retry(options: StoreRetryOptions) -> int:
    """Make parked calls due again."""
    with closing(Store(options.store, create=False)) as store:
        done = 0 if options.id else store.retry()
        for uid in options.id or ():
            if not store.retry(uid):
                raise ConfigurationError("--id", uid, "is not a parked call of the store")
            done += 1
        print_stdout(f"{counted(done, 'call is', 'calls are')} due again")
    return 0


def prune(options: StorePruneOptions) -> int:
    """Delete old calls or chosen ones, with their evaluations; say what is out of reach."""
    filters = Filters(options.where, of_calls=True)
    if options.older_than is None and not filters.conditions:
        why = "say which calls to delete: --older-than 30d, --where metadata.user=X, or both"
        raise ConfigurationError("--older-than", None, why, missing=True)
    with closing(Store(options.store, create=False)) as store:
        before = inf
        if options.older_than is not None:
            before = moment(options.older_than, "--older-than", store.now())
        deleted = store.prune(before, filters.keeps_call if filters.conditions else None)
    if not deleted and (unknown := filters.unknown_field()):
        raise unknown
    print_stdout(f"{counted(deleted, 'call')} deleted")
    if not filters.conditions:
        return 0
    print_stderr(
        "Out of reach: calls of spools that no worker has imported yet, and what --to, push or "
        "export has taken elsewhere."
    )
    return 0


def report(options: StoreReportOptions) -> int:
    """Write the page, once or at intervals; then a failure is printed once and retried."""
    if options.every is not None and not options.every > 0:
        raise ConfigurationError("--every", options.every, "use a number of seconds above 0")
    _page.check(options.out, field="--out")
    told = ""
    with closing(Store(options.store, create=False)) as store:
        while True:
            try:
                corrected = None if options.labels is None else _corrected(store, options.labels)
                content = store_page(store, every=options.every, corrected=corrected)
                _page.write(options.out, content, field="--out")
            except OSError as error:
                if options.every is None:
                    raise
                if str(error) != told:  # the database or the disk may be back
                    told = str(error)
                    print_stderr(f"{told}; tried again every {options.every:g} s")
            if options.every is None:
                print_stdout(f"Wrote the page to {options.out}")
                for line in (*str(corrected or "").splitlines(), *drift_of(store, store.now())):
                    print_stdout(line)
                return 0
            time.sleep(options.every)


def _corrected(store: Store, labels: Path) -> CorrectedMeans:
    """Correct the means of the evaluations that the store had when people's labels were drawn.

    Raises:
        ConfigurationError: they are no longer what they were, or no draw is whole.
        OSError: the labels cannot be read.
    """
    corrections = Corrections(labels)
    for evaluation in store.recorded():
        corrections.add(evaluation)
        if corrections.is_full:
            break
    return corrections.means
