"""Options of the commands of a store, as in `_arguments`."""

# ruff: noqa: RUF009  # what is called makes a field

from __future__ import annotations

from dataclasses import MISSING, dataclass
from pathlib import Path

from rag_eval_integrations.cli._settings import ENVIRONMENT
from rag_eval_integrations.cli._shared_arguments import (
    Overwrite,
    Scoring,
    Where,
    check_option,
    input_option,
    labels_option,
    limit_option,
    out_option,
    output_option,
)


@dataclass(frozen=True, kw_only=True)
class InStore:
    """Option that names the store."""

    store: str = input_option(
        "The store: a path, sqlite:///PATH or postgresql://USER@HOST/NAME.",
        metavar="URL",
        envvar=ENVIRONMENT["store"],
        default=MISSING,
    )


@dataclass(frozen=True, kw_only=True)
class Since:
    """Option that selects the calls since a time."""

    since: str | None = input_option(
        "Only calls since then: 90m, 24h, 7d or 2w ago, or a date such as 2026-11-25.",
        metavar="TIME",
    )


@dataclass(frozen=True, kw_only=True)
class WorkerOptions(InStore, Scoring):
    """Judge the calls of a store, as they come.

    Any number of workers may share a store, and --rpm and --tpm hold for all of them together.
    """

    spool: list[Path] | None = input_option(
        "Folder of a Spool, whose files are imported; repeatable.", metavar="DIR"
    )
    sample_rate: float = limit_option(
        "Share of the calls to judge.", metavar="SHARE", min=0, max=1, default=1.0
    )
    per_minute: float | None = limit_option(
        "Evaluations per minute of this worker; calls beyond are left out.", metavar="N"
    )
    dollars_per_day: float | None = limit_option(
        "US dollars per day of the whole store; calls beyond are left out.", metavar="USD"
    )
    to: list[str] | None = output_option(
        "Where evaluations go once they are recorded: a tool as in `push`, a file that they are "
        "appended to, or the log; repeatable.",
        metavar="TOOL|FILE.jsonl|log",
    )
    once: bool = input_option("End when no call is due.", default=False)
    max_age: str = limit_option(
        "While the judge cannot be reached, park calls that are older: 7d, 12h.",
        metavar="TIME",
        default="7d",
    )


@dataclass(frozen=True, kw_only=True)
class RescoreOptions(InStore, Since, Where, Scoring):
    """Judge calls of a store by another judge or metric.

    Says first how many calls that are, and what it costs. Calls that it has evaluated are left out.
    """

    dry_run: bool = check_option("Say what it would cost; send and write nothing.", default=False)


@dataclass(frozen=True, kw_only=True)
class StoreInfoOptions(InStore):
    """Count the calls of a store, and say what waits, and why some were not judged."""

    spool: list[Path] | None = input_option(
        "Folder of a Spool, whose files are counted; repeatable.", metavar="DIR"
    )


@dataclass(frozen=True, kw_only=True)
class StoreExportOptions(InStore, Since, Where, Overwrite):
    """Write evaluations of a store to a file."""

    out: Path = out_option(
        "File for the evaluations; - is standard output. A name that ends in .gz is gzipped, and "
        "one in .parquet is Parquet.",
        "EVALS.jsonl",
        MISSING,
    )


@dataclass(frozen=True, kw_only=True)
class StoreRetryOptions(InStore):
    """Make parked calls due again, all of them or those of --id."""

    id: list[str] | None = input_option(
        "Call id, as `submit` returned it; repeatable.", metavar="ID"
    )


@dataclass(frozen=True, kw_only=True)
class StorePruneOptions(InStore):
    """Delete old calls, or those of a person, with their evaluations."""

    older_than: str | None = input_option(
        "Delete calls that are older: 30d, or before a date.", metavar="TIME"
    )
    where: list[str] | None = input_option(
        "Delete the calls for which this holds: a field of the metadata, as in metadata.user=X, or "
        "the id; repeatable, and then all have to hold.",
        metavar="FIELD=VALUE",
    )


@dataclass(frozen=True, kw_only=True)
class StoreReportOptions(InStore):
    """Write a page about the last hour, day and week.

    It shows means over time, why calls were not judged, and the newest failing calls.
    """

    out: Path = out_option(
        "File for the page, which replaces an earlier one.", "PAGE.html", MISSING
    )
    every: float | None = output_option(
        "Write it again after so many seconds, until interrupted.", metavar="SECONDS"
    )
    labels: Path | None = labels_option(" of the evaluations that they were drawn from.")
