"""Commands that evaluate: `demo`, `run`, `score`, `doctor`, with their options."""

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
    Calls,
    Formulas,
    MaxConcurrency,
    Out,
    Overwrite,
    Rpm,
    RunReport,
    SkipInvalid,
    Tpm,
)
from rag_eval_integrations.cli._model_options import ExtraBody, MaxTokens, Timeout


def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files.")] = Path(
        "rag-eval-demo"
    ),
) -> None:
    """Run and score two small RAG apps (LangChain, LlamaIndex); no API key needed."""
    from rag_eval_integrations.cli._terminal import stdout
    from rag_eval_integrations.cli.demo import run_demo

    raise typer.Exit(run_demo(out, stdout()))


def run_command(
    calls: Calls,
    out: Out,
    judge: Annotated[
        str,
        typer.Option(
            metavar=JUDGES,
            help="The judge: `embedded` (lexical, no key), a model, a cascade that asks B "
            "only where A is unsure (and C where B is), or an object in your own code.",
        ),
    ] = "embedded",
    base_url: BaseUrl = None,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="trace,retrieval,label_retrieval,context_recall,geval:NAME,FILE.geval.yaml,"
            "FILE.metric.prompty",
            help="Metrics, separated by commas. `retrieval` needs `relevant_ids` in the calls, "
            "`label_retrieval` a judge, `context_recall` a judge and `reference`. NAME of a G-Eval "
            "metric: coherence, consistency, fluency, relevance (each also as NAME:summary), "
            "correctness, groundedness.",
        ),
    ] = "trace",
    metric_var: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE|NAME=@FILE",
            help="Value for a variable of the metric files; repeatable.",
        ),
    ] = None,
    geval_estimator: Annotated[
        str | None,
        typer.Option(
            metavar="auto|logprobs|monte_carlo|single",
            help="How G-Eval metrics estimate a score; by default as each metric says (auto).",
        ),
    ] = None,
    geval_samples: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of answers averaged for a G-Eval score without log-probabilities.",
        ),
    ] = None,
    k: Annotated[
        str | None,
        typer.Option(
            "--k", metavar="N,N,…", help="Ranks at which `retrieval` cuts (1,3,5,10 by default)."
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="id|text",
            help="Whether `relevant_ids` are the ids of documents (default) or their texts.",
        ),
    ] = None,
    id_key: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Field of a document's metadata to match instead of its id."
        ),
    ] = None,
    field_map: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=NAME",
            help="Field of the calls that holds a question, documents, response, reference, id, "
            "history or relevant_ids under another NAME; a.b is b inside of a; repeatable.",
        ),
    ] = None,
    formulas: Formulas = "gpt-labeling",
    relevance_baseline: Baseline = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            metavar="CALIBRATION.json",
            help="Calibrate the estimates by a file of `rag-eval calibrate` for the same judge.",
        ),
    ] = None,
    flags: Annotated[
        bool,
        typer.Option(
            "--flags/--no-flags",
            help="Look for text that addresses a judge (suspected_injection); no score needs it.",
        ),
    ] = True,
    max_concurrency: MaxConcurrency = 32,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of processes that evaluate. The default is one per core for the embedded "
            "judge, and 1 for judges that wait for a model.",
        ),
    ] = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    cache: Cache = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue an earlier run of the same calls to the same output file."
        ),
    ] = False,
    overwrite: Overwrite = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Read only the first N lines.")
    ] = None,
    skip_invalid: SkipInvalid = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check the input and estimate the cost; send and write nothing."
        ),
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Exit 1 if the mean of a score is below VALUE; repeatable."
        ),
    ] = None,
    max_error_rate: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            min=0,
            max=1,
            help="Exit 1 if more than this share of the calls ended in an error.",
        ),
    ] = 0.05,
    report: RunReport = None,
    timeout: Timeout = None,
    max_tokens: MaxTokens = None,
    extra_body: ExtraBody = None,
) -> None:
    """Label and score every call in a file."""
    from rag_eval_integrations.cli import run as command
    from rag_eval_integrations.cli._model_options import model_options
    from rag_eval_integrations.cli._options import field_map_from
    from rag_eval_integrations.dataset._input import Input

    settings = command.Settings(
        Input(calls, field_map_from(field_map or [])), out, overwrite=overwrite,
        judge=judge, base_url=base_url, metrics=metrics, formulas=formulas,
        relevance_baseline=relevance_baseline, max_concurrency=max_concurrency, rpm=rpm, tpm=tpm,
        cache=cache, resume=resume, limit=limit, skip_invalid=skip_invalid, dry_run=dry_run,
        fail_under=fail_under or [], metric_var=metric_var or [], max_error_rate=max_error_rate,
        report=report, workers=workers,
        model_options=model_options(timeout, max_tokens, extra_body),
        geval={"estimator": geval_estimator, "samples": geval_samples},
        retrieval={"k": k, "match": match, "id_key": id_key}, calibration=calibration,
        flags=flags,
    )  # fmt: skip
    raise typer.Exit(command.run(settings))


def score_command(
    labelled: Annotated[
        Path,
        typer.Argument(
            metavar="LABELLED.jsonl",
            help="Calls with labels, RAGBench rows, or a file of evaluations; - is standard input.",
        ),
    ],
    out: Out,
    formulas: Formulas = "gpt-labeling",
    relevance_baseline: Baseline = None,
    raw_keys: Annotated[
        bool,
        typer.Option(
            "--raw-keys",
            help="Count the key lists as recorded, including repeated and unknown keys.",
        ),
    ] = False,
    skip_invalid: SkipInvalid = False,
    overwrite: Overwrite = False,
    report: RunReport = None,
) -> None:
    """Score recorded labels with TRACe, without a judge."""
    from rag_eval_integrations.cli import score as command
    from rag_eval_integrations.dataset._input import Input

    raise typer.Exit(
        command.score(
            Input(labelled),
            out,
            overwrite=overwrite,
            formulas=formulas,
            relevance_baseline=relevance_baseline,
            raw_keys=raw_keys,
            skip_invalid=skip_invalid,
            report=report,
        )
    )


def doctor_command(
    judge: Annotated[
        str | None,
        typer.Option(metavar=JUDGES, help="The judge to try on a small built-in call."),
    ] = None,
    base_url: BaseUrl = None,
    timeout: Timeout = None,
    max_tokens: MaxTokens = None,
    extra_body: ExtraBody = None,
) -> None:
    """Show installed packages and try a judge on a small call."""
    from rag_eval_integrations.cli import doctor as command
    from rag_eval_integrations.cli._model_options import model_options

    options = model_options(timeout, max_tokens, extra_body)
    raise typer.Exit(command.doctor(judge, base_url, options))
