"""Commands that read evaluations: `report`, `agreement`, `calibrate`, `compare`, with options."""

# Commands import their modules when they run, so that `rag-eval --help` appears at once.
# ruff: noqa: PLC0415

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rag_eval_integrations.cli._arguments import (
    JUDGES,
    Baseline,
    BaseUrl,
    Cache,
    MaxConcurrency,
    Overwrite,
    Rpm,
    SkipInvalid,
    Tpm,
)
from rag_eval_integrations.cli._model_options import ExtraBody, MaxTokens, Timeout


def report_command(
    evals: Annotated[
        Path,
        typer.Argument(metavar="EVALS.jsonl", help="The evaluations; - is standard input."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="REPORT",
            help="File for the report; - is standard output. A report in HTML replaces an earlier "
            "one.",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="html|md|csv|json|parquet|ragbench",
            help="One page to open in a browser, the figures as Markdown or JSON, one row per call "
            "as CSV or Parquet, or rows with the labels in RAGBench's columns; by default as the "
            "file's name ends.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the report.")] = None,
    skip_invalid: SkipInvalid = False,
    overwrite: Overwrite = False,
) -> None:
    """Show evaluations: figures, every call with its evidence, as one HTML file."""
    from rag_eval_integrations.cli import report as command
    from rag_eval_integrations.dataset._input import Input

    raise typer.Exit(
        command.report(
            Input(evals),
            out,
            form=form,
            title=title,
            skip_invalid=skip_invalid,
            overwrite=overwrite,
        )
    )


def agreement_command(
    evals: Annotated[
        Path,
        typer.Argument(metavar="EVALS.jsonl", help="The judge's evaluations."),
    ],
    gold: Annotated[
        Path,
        typer.Argument(metavar="GOLD.jsonl", help="Labelled rows, such as RAGBench's."),
    ],
    human: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Field of a gold row with a human rating to compare with; a.b reads b inside a.",
        ),
    ] = None,
    document: Annotated[
        str, typer.Option(metavar="FIELD", help="Field that identifies the source document.")
    ] = "doc_id",
    system: Annotated[
        str,
        typer.Option(
            metavar="FIELD", help="Field that identifies the system that wrote the response."
        ),
    ] = "system_id",
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines", help="Compare with the predictions published in the gold rows."
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PAGE.html",
            help="Write the figures, with ROC and reliability curves, as an HTML page.",
        ),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the same page as agreement.html in this folder."),
    ] = None,
    cascade: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="SECOND.jsonl",
            help="A second judge's evaluations: show the quality and cost of asking it only "
            "where the first judge is unsure. Given once more with a third judge's: of asking that "
            "one only where the second is unsure, too.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Compare a judge's evaluations with gold labels."""
    from rag_eval_integrations.cli import agreement as command

    raise typer.Exit(
        command.agreement(
            evals,
            gold,
            human=human,
            baselines=baselines,
            as_json=as_json,
            document=document,
            system=system,
            plots=plots,
            out=out,
            cascade=cascade or [],
        )
    )


def calibrate_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[EVALS.jsonl] GOLD.jsonl",
            help="Labelled rows, such as RAGBench's, whose calls the judge labels; or evaluations "
            "that you have, and the labelled rows.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="CALIBRATION.json",
            help="File for the calibration, which must not exist.",
        ),
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            metavar=JUDGES,
            help="The judge to ask, as for `run`; by default embedded. Without EVALS.jsonl only.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Name that stands on every score; by default the file's."
        ),
    ] = None,
    target_error: Annotated[
        float,
        typer.Option(
            metavar="ERROR",
            help="Standard error that a calibrated score may have for lack of rows; fewer rows "
            "than that needs are refused.",
        ),
    ] = 0.05,
    formulas: Annotated[
        str | None,
        typer.Option(
            metavar="gpt-labeling|ragbench",
            help="The set of TRACe formulas; by default gpt-labeling, or as in EVALS.jsonl.",
        ),
    ] = None,
    relevance_baseline: Baseline = None,
    base_url: BaseUrl = None,
    max_concurrency: MaxConcurrency = 32,
    rpm: Rpm = None,
    tpm: Tpm = None,
    cache: Cache = None,
    timeout: Timeout = None,
    max_tokens: MaxTokens = None,
    extra_body: ExtraBody = None,
    overwrite: Overwrite = False,
) -> None:
    """Fit a judge's estimates to your gold rows, for `run --calibration`."""
    from rag_eval_integrations.cli import calibrate as command
    from rag_eval_integrations.cli._model_options import model_options

    settings = command.Settings(
        files, out, judge, name, target_error, formulas, relevance_baseline, max_concurrency,
        base_url, rpm, tpm, cache, model_options(timeout, max_tokens, extra_body), overwrite,
    )  # fmt: skip
    raise typer.Exit(command.calibrate_files(settings))


def compare_command(
    evals: Annotated[
        list[Path],
        typer.Argument(
            metavar="A.jsonl B.jsonl [MORE.jsonl]",
            help="Evaluations of the same calls: the baseline A, and what to compare with it; one "
            "of them may be - for standard input.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="diff.html",
            help="File for a page with the changed calls side by side; - is standard output.",
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="html|md|json",
            help="Format of the file; by default as its name ends. Without -o, print it.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="id|question",
            help="Pair calls by this alone; by default by your own ids where they are unique, "
            "else by question and reference.",
        ),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD|none",
            help="Field of the metadata that names the conversation; calls of one conversation are "
            "resampled together. Default: thread_id, conversation_id or session_id.",
        ),
    ] = None,
    fail_on_regression: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DELTA",
            help="Exit 1 if a score fell by more than DELTA beyond doubt: if the whole 95 % "
            "interval of B - A is below -DELTA; repeatable.",
        ),
    ] = None,
    fail_on_unclear: Annotated[
        bool,
        typer.Option(
            "--fail-on-unclear",
            help="Exit 1 also if there are too few calls to tell whether a score fell by more.",
        ),
    ] = False,
    allow_mixed: Annotated[
        bool,
        typer.Option(
            "--allow-mixed",
            help="Compare scores of different judges, prompts, formulas or estimators.",
        ),
    ] = False,
    skip_invalid: SkipInvalid = False,
) -> None:
    """Compare runs of the same calls: what became better or worse, and how sure that is."""
    from rag_eval_integrations.cli import compare as command
    from rag_eval_integrations.dataset._input import Input

    settings = command.Settings(
        [Input(one) for one in evals], out, form, by, fail_on_regression or [],
        fail_on_unclear=fail_on_unclear, allow_mixed=allow_mixed, skip_invalid=skip_invalid,
        conversation=conversation,
    )  # fmt: skip
    raise typer.Exit(command.compare_files(settings))
