"""The command line, `rag-eval`: commands and options; each command's work is in its own module.

Exit codes: 0 success; 1 a threshold or check failed, too many calls ended in an error, none was
scored, or a judge cannot be used; 2 bad input or usage, which takes precedence over 1; 130 after
Ctrl-C; 143 after SIGTERM; 129 after SIGHUP.
"""

# Commands import their modules when they run, so that `rag-eval --help` appears at once.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rag_eval_integrations._visible import visible_traceback
from rag_eval_integrations.cli._grouped import Command, Group
from rag_eval_integrations.cli._model_options import ExtraBody, MaxTokens, Timeout
from rag_eval_integrations.cli.prompt_tests import app as prompt_tests_app
from rag_eval_integrations.errors import ConfigurationError, JudgeError, RagEvalError

app = typer.Typer(
    name="rag-eval",
    cls=Group,
    help="Evaluate RAG calls: label their sentences with evidence and score them with TRACe.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Calls = Annotated[
    Path,
    typer.Argument(
        metavar="CALLS",
        help="RAG calls: JSONL, a JSON array, CSV or Parquet, plain or gzipped, with our field "
        "names or those of ragas, deepeval, LangSmith or RAGBench; - is standard input.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="EVALS.jsonl",
        help="File for the evaluations, which must not exist; - is standard output. A name that "
        "ends in .gz is gzipped, and one in .parquet is a folder of Parquet files.",
    ),
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite", help="Replace an output file that exists, once the new one is whole."
    ),
]
RunReport = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.html",
        help="Also write the report of the evaluations at the end, as one HTML file.",
    ),
]
_JUDGES = "embedded|openai:MODEL|onnx:PATH|transformers:NAME|cascade:A,B[,C]|MODULE:OBJECT"
Formulas = Annotated[
    str, typer.Option(metavar="gpt-labeling|ragbench", help="The set of TRACe formulas.")
]
Baseline = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Divide relevance by N instead of the number of sentences (gpt-labeling only).",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The judge's OpenAI-compatible endpoint, including /v1."),
]
SkipInvalid = Annotated[
    bool,
    typer.Option(
        "--skip-invalid", help="Report invalid lines, but do not exit with 2 because of them."
    ),
]


app.add_typer(prompt_tests_app)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rag-eval {version('rag-eval-integrations')}")
        raise typer.Exit


@app.callback()
def _callback(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@app.command("demo", cls=Command)
def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files.")] = Path(
        "rag-eval-demo"
    ),
) -> None:
    """Run and score two small RAG apps (LangChain, LlamaIndex); no API key needed."""
    from rag_eval_integrations.cli._terminal import stdout
    from rag_eval_integrations.cli.demo import run_demo

    raise typer.Exit(run_demo(out, stdout()))


@app.command("run", cls=Command)
def run_command(
    calls: Calls,
    out: Out,
    judge: Annotated[
        str,
        typer.Option(
            metavar=_JUDGES,
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
    max_concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of concurrent calls.")
    ] = 32,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of processes that evaluate. The default is one per core for the embedded "
            "judge, and 1 for judges that wait for a model.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ray", help="Evaluate on a Ray cluster; --workers is the number of its actors."
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|auto",
            help="Address of the Ray cluster; by default RAY_ADDRESS, else one that is started on "
            "this machine.",
        ),
    ] = None,
    rpm: Annotated[
        float | None, typer.Option(metavar="N", help="Judge requests per minute.")
    ] = None,
    tpm: Annotated[float | None, typer.Option(metavar="N", help="Judge tokens per minute.")] = None,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Cache the judge's answers in this file."),
    ] = None,
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
        report=report, workers=workers, engine=engine, address=address,
        model_options=model_options(timeout, max_tokens, extra_body),
        geval={"estimator": geval_estimator, "samples": geval_samples},
        retrieval={"k": k, "match": match, "id_key": id_key}, calibration=calibration,
    )  # fmt: skip
    raise typer.Exit(command.run(settings))


@app.command("score", cls=Command)
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


@app.command("report", cls=Command)
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


@app.command("agreement", cls=Command)
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


@app.command("calibrate", cls=Command)
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
            metavar=_JUDGES,
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
    max_concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of concurrent calls.")
    ] = 32,
    rpm: Annotated[
        float | None, typer.Option(metavar="N", help="Judge requests per minute.")
    ] = None,
    tpm: Annotated[float | None, typer.Option(metavar="N", help="Judge tokens per minute.")] = None,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Cache the judge's answers in this file."),
    ] = None,
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


@app.command("compare", cls=Command)
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


@app.command("doctor", cls=Command)
def doctor_command(
    judge: Annotated[
        str | None,
        typer.Option(metavar=_JUDGES, help="The judge to try on a small built-in call."),
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


_MISTAKE, _FAILED = 2, 1


def main() -> None:
    """Run `rag-eval` and exit: errors go to stderr in one line, without a traceback."""
    from rag_eval_integrations.cli._interrupt import INTERRUPTED, signals_as_ctrl_c

    if None in (sys.stdin, sys.stdout, sys.stderr):
        from rag_eval_integrations.cli._terminal import open_standard_streams

        open_standard_streams()
    with signals_as_ctrl_c() as signals:
        try:
            app()
        except (RagEvalError, OSError) as error:
            from rag_eval_integrations.cli._terminal import print_stderr

            print_stderr(f"rag-eval: {_words(error)}")
            sys.exit(_FAILED if isinstance(error, JudgeError) else _MISTAKE)
        except KeyboardInterrupt:
            sys.exit(signals.code)
        except SystemExit as end:  # typer makes it of an interrupt
            sys.exit(signals.code if end.code == INTERRUPTED else end.code)
        except Exception as error:  # noqa: BLE001  # a message may hold text that acts
            print(visible_traceback(error), file=sys.stderr)  # noqa: T201  # our own output
            sys.exit(1)


def _words(error: RagEvalError | OSError) -> str:
    """Say in one line what is wrong, the file or the reason first."""
    if isinstance(error, ConfigurationError) and error.missing:
        return error.why
    if isinstance(error, OSError) and not isinstance(error, RagEvalError) and error.strerror:
        words = error.strerror[:1].lower() + error.strerror[1:]
        # Files are opened by name, so what has none is a stream.
        name = "standard output" if error.filename is None else error.filename
        return f"{name}: {words}"
    return str(error)
