"""`rag-eval agreement`: compare a judge's evaluations with gold labels, row by row."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rag_eval_integrations import _target
from rag_eval_integrations._visible import visible_json
from rag_eval_integrations.agreement import Curves, curve_json
from rag_eval_integrations.agreement._cascades import cascade_of
from rag_eval_integrations.agreement._curves import curves_of
from rag_eval_integrations.agreement._table import Table
from rag_eval_integrations.agreement.compare import agreement_of
from rag_eval_integrations.cli._agreement_tables import print_agreement
from rag_eval_integrations.cli._arguments import AgreementOptions
from rag_eval_integrations.cli._gold_rows import RowReader, predicted_rows
from rag_eval_integrations.cli._terminal import print_stderr, write_stdout
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.report._agreement_page import write_agreement
from rag_eval_integrations.report._page import check


def agreement(options: AgreementOptions) -> int:
    """Compare two files and return the exit code: 2 for invalid lines, else 0.

    Raises:
        ConfigurationError: when the rows cannot be compared, a file has no rows, no rows match,
            or no row has the human rating.
        OSError: when a file cannot be read or written.
    """
    evals, gold, human = options.evals, options.gold, options.human
    cascade = options.cascade or ()
    if len(cascade) > 2:
        names = ", ".join(map(str, cascade))
        raise ConfigurationError(
            "--cascade", names, "use one or two files, of judges two and three"
        )
    pages = _pages(options.out, options.plots)
    reader = RowReader()
    predicted, trace = predicted_rows(reader, evals)
    labelled = reader.gold(
        gold, trace, human=human, document=options.document, system=options.system
    )
    if human is not None and all(row.human is None for row in labelled):
        raise ConfigurationError("--human", human, f"no row of {gold} has a number in this field")
    table, joined = Table.joined(predicted, labelled)
    if not joined.rows:
        raise ConfigurationError("gold", str(gold), f"has no row in common with {evals}")
    if human is not None and all(number is None for number in table.humans()):
        raise ConfigurationError(
            "--human", human, f"no row of {gold} that is in {evals} has a number in this field"
        )
    if joined.unmatched:
        print_stderr(f"{joined.unmatched} rows are in only one of the files and were left out")
    if joined.ambiguous:
        print_stderr(
            f"{joined.ambiguous} rows are not unique and were matched in order of appearance"
        )
    later = [reader.evaluations(path) for path in cascade]
    curve = cascade_of(table, *later) if later else ()
    agreement = agreement_of(table, joined, baselines=options.baselines)
    if options.as_json:
        content = agreement.to_json() | ({"cascade": curve_json(curve)} if curve else {})
        write_stdout(f"{visible_json(content)}\n")
    else:
        print_agreement(agreement, curve)
    drawn = _drawn(table) if pages else {}
    for option, page in pages:
        if option == "--plots":
            _target.make_folder(page.parent, option)
        title = f"Agreement of {evals.name} with {gold.name}"
        write_agreement(agreement, page, title=title, curves=drawn, cascade=curve, field=option)
        print_stderr(f"Wrote {page}")
    return reader.exit_code()


def _pages(out: Path | None, plots: Path | None) -> list[tuple[str, Path]]:
    """List the pages to write, each with its option; refuse those that may not be replaced."""
    pages = [] if out is None else [("--out", out)]
    if plots is not None:
        pages.append(("--plots", plots / "agreement.html"))
    for option, page in pages:
        if option == "--out" or os.path.lexists(page.parent):  # the folder is made at the end
            check(page, field=option)
    return pages


def _drawn(table: Table) -> dict[str, Mapping[str, Curves]]:
    """Compute the curves of all rows and, if there are several data sets, of each."""
    parts = table.by_dataset()
    groups: dict[str, Mapping[str, Curves]] = {f"all {len(table)} rows": curves_of(table)}
    for name, part in parts.items() if len(parts) > 1 else ():
        groups[name] = curves_of(part)
    return groups
