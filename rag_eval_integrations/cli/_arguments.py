"""Arguments and options of the commands, each declared once.

A command's options are the fields of one dataclass, whose docstring is the command's help; those
that several commands have are in `_shared_arguments`, those of a store in `_store_arguments`.
Importing this is cheap: `--help` needs it.
"""

# ruff: noqa: RUF009  # what is called makes a field

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from pathlib import Path

from rag_eval_integrations.cli._grouped import argument, flag_of
from rag_eval_integrations.cli._shared_arguments import (
    Asking,
    EvaluationsOutput,
    FailUnder,
    FieldNames,
    Formulas,
    Judging,
    Overwrite,
    Scoring,
    SkipInvalid,
    Where,
    check_option,
    input_option,
    labels_option,
    limit_option,
    out_option,
    output_option,
    trace_option,
)


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Run and score two small RAG apps; no API key needed.

    One is made with LangChain, the other with LlamaIndex.
    """

    out: Path = output_option("Folder for the files.", metavar="DIR", default=Path("rag-eval-demo"))


@dataclass(frozen=True, kw_only=True)
class RunOptions(EvaluationsOutput, Scoring, FieldNames):
    """Label and score every call in a file."""

    calls: Path = argument(
        "RAG calls: JSONL, a JSON array, CSV or Parquet, plain or gzipped, with our "
        "field names or those of ragas, deepeval, LangSmith, LlamaIndex or RAGBench; or exported "
        "traces, also a folder of them; - is standard input.",
        metavar="CALLS",
    )
    form: str | None = input_option(
        "The tool whose traces the file holds; by default recognised by its columns.",
        "--format",
        metavar="phoenix|mlflow|langfuse|langsmith",
    )
    split_reference: str | None = input_option(
        "What stands between several references that are one text, such as /.", metavar="TEXT"
    )
    limit: int | None = input_option("Read only the first N lines.", metavar="N", min=1)
    workers: int | None = limit_option(
        "Number of processes that evaluate. The default is one per core for the embedded "
        "judge, and 1 for judges that wait for a model.",
        metavar="N",
        min=1,
    )
    max_error_rate: float = check_option(
        "Exit 1 if more than this share of the calls ended in an error.",
        metavar="SHARE",
        min=0,
        max=1,
        default=0.05,
    )
    dry_run: bool = check_option(
        "Check input and estimate cost; send and write nothing.", default=False
    )
    resume: bool = output_option(
        "Continue an earlier run of the same calls and output.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(EvaluationsOutput, Formulas, FieldNames):
    """Score recorded labels with TRACe, without a judge."""

    labelled: Path = argument(
        "Calls with labels, RAGBench rows, or a file of evaluations; - is standard input.",
        metavar="LABELLED.jsonl",
    )
    raw_keys: bool = trace_option(
        "Count key lists as recorded, with repeated and unknown keys.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class ReportOptions(SkipInvalid, Where, Overwrite, FailUnder):
    """Show evaluations: figures, and every call with its evidence.

    A report in HTML is one file, to open in a browser.
    """

    evals: Path = argument("The evaluations; - is standard input.", metavar="EVALS.jsonl")
    out: Path = out_option(
        "File for the report; - is standard output. A report in HTML replaces an earlier one.",
        "REPORT",
        MISSING,
    )
    form: str | None = output_option(
        "Format: html (one page to open in a browser), md or json (the figures), csv or parquet "
        "(one row per call), ragbench (rows with the labels in RAGBench's columns); by default "
        "as the file's name ends.",
        "--format",
        metavar="FORMAT",
    )
    review: bool = output_option(
        "Ask in each call of the page which sentences are supported and relevant, as `review` "
        "does.",
        default=False,
    )
    title: str | None = output_option("Title of the report.", metavar="TEXT")
    by: str | None = output_option(
        "Also show the means for each value of a field, as in metadata.route.", metavar="FIELD"
    )
    calls: int | None = output_option(
        "Number of calls that a page holds at most, 2,000 by default: of more, the newest, the "
        "gravest, and a sample of the others. Its figures are of all.",
        metavar="N",
        min=1,
    )


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """Show runs in a browser, as they grow, or a store.

    Whoever has the token of the address sees them; it is new at each start.
    """

    folder: Path | None = argument(
        "Folder with files of evaluations; by default this one, unless --store is given.",
        "[FOLDER]",
        None,
    )
    store: str | None = input_option(
        "A store: a path, sqlite:///PATH or postgresql://USER@HOST/NAME.", metavar="URL"
    )
    host: str = output_option(
        "Address to listen at; one that other machines reach needs --token.",
        metavar="HOST",
        default="127.0.0.1",
    )
    port: int = output_option(
        "Port to listen at; 0 is any.", metavar="PORT", min=0, max=65_535, default=8230
    )
    token: str | None = output_option("Token of the address.", metavar="WORD")
    labels: Path | None = output_option(
        "File that corrections are appended to; by default labels.jsonl in FOLDER, and without a "
        "folder there are none.",
        metavar="LABELS.jsonl",
    )
    open: bool = output_option("Open the browser.", default=False)


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(SkipInvalid):
    """Show the prompt of one call, its labels and their scores.

    The prompt is made anew from the row. Where that is not possible, the reason is shown.
    """

    evals: Path = argument("The evaluations; - is standard input.", metavar="EVALS.jsonl")
    call: str = input_option("Id of the call.", metavar="ID", default=MISSING)


@dataclass(frozen=True, kw_only=True)
class PullOptions(Overwrite):
    """Read calls from the traces that a tool holds.

    One call per trace. The keys of a tool, and without --url its address, are those of its own
    client, as for push. Nothing is changed at the tool.
    """

    source: str = input_option(
        "The tool that holds the traces.",
        "--from",
        metavar="phoenix|mlflow|langfuse|langsmith",
        default=MISSING,
    )
    url: str | None = input_option("Address of the tool's server.", metavar="URL")
    project: str | None = input_option(
        "Its project; of MLflow the experiment. By default the client's own.", metavar="NAME"
    )
    since: str | None = input_option(
        "Only traces since then: 90m, 24h, 7d or 2w ago, or a date such as 2026-11-25.",
        metavar="WHEN",
    )
    query: str | None = input_option(
        "Filter in the tool's own language, passed on.", metavar="QUERY"
    )
    settle: str = input_option(
        "Leave traces that ended less than this ago for the next pull: more of their spans may "
        "come.",
        metavar="TIME",
        default="60s",
    )
    limit: int | None = input_option("Read this many traces at most.", metavar="N", min=1)
    out: Path = out_option(
        "File for the calls, which must not exist; - is standard output. A name that ends in .gz "
        "is gzipped.",
        "CALLS.jsonl",
        MISSING,
    )
    resume: bool = output_option(
        "Go on with OUT: add the calls of traces that it lacks.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class PushOptions(SkipInvalid, Where):
    """Post the scores of evaluations to the traces of their calls.

    The addresses and keys of a tool are those of its own client: LANGFUSE_BASE_URL,
    LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY; PHOENIX_COLLECTOR_ENDPOINT; MLFLOW_TRACKING_URI;
    LANGSMITH_API_KEY; OTEL_EXPORTER_OTLP_ENDPOINT. What is posted is noted in EVALS.jsonl.pushed,
    and the same command goes on from there.
    """

    evals: Path = argument("The evaluations.", metavar="EVALS.jsonl")
    to: str = output_option(
        "The tool to which the calls were traced.",
        metavar="otel|langfuse|phoenix|mlflow|langsmith",
        default=MISSING,
    )
    metadata: list[str] | None = output_option(
        "A field of the metadata that goes along, such as user_id; repeatable.",
        metavar="FIELD",
    )
    texts: bool = output_option(
        "Post reasons as well, which may quote questions, documents and responses.",
        default=False,
    )
    dry_run: bool = output_option("Count what would be posted, and post nothing.", default=False)


@dataclass(frozen=True, kw_only=True)
class AgreementOptions(FieldNames):
    """Compare a judge's evaluations with gold labels."""

    evals: Path = argument("The judge's evaluations.", metavar="EVALS.jsonl")
    gold: Path = argument("Labelled rows, such as RAGBench's.", metavar="GOLD.jsonl")
    human: str | None = input_option(
        "Field of a gold row with a human rating to compare with; a.b reads b inside a.",
        metavar="FIELD",
    )
    document: str = input_option(
        "Field that identifies the source document.", metavar="FIELD", default="doc_id"
    )
    system: str = input_option(
        "Field that identifies the system that wrote the response.",
        metavar="FIELD",
        default="system_id",
    )
    baselines: bool = input_option(
        "Compare with the predictions published in the gold rows.", default=False
    )
    cascade: Path | None = input_option(
        "A second judge's evaluations: show the quality and cost of asking it only "
        "where the first judge is unsure.",
        metavar="SECOND.jsonl",
    )
    out: Path | None = out_option(
        "Write the figures, with ROC and reliability curves, as an HTML page.", "PAGE.html"
    )
    plots: Path | None = output_option(
        "Write the same page as agreement.html in this folder.", metavar="DIR"
    )
    as_json: bool = output_option(
        "Print one JSON object instead of tables.", "--json", default=False
    )


@dataclass(frozen=True, kw_only=True)
class ReviewOptions(SkipInvalid):
    """Ask you which sentences are supported and relevant.

    Each answer is kept at once, and the same command goes on from there. The file is gold for
    agreement, calibrate, score and compare.
    """

    evals: Path = argument("The evaluations to correct.", metavar="EVALS.jsonl")
    out: Path = out_option(
        "File to which the answers are appended; several people can share one.",
        "LABELS.jsonl",
        MISSING,
    )
    pick: str = input_option(
        "Which calls: random (for means of all calls), those of which the judge is the most "
        "unsure, or those with the lowest scores.",
        metavar="random|unsure|low",
        default="random",
    )
    n: int = input_option("Number of calls.", metavar="N", min=1, default=50)
    seed: int = input_option("Seed of the draw.", metavar="SEED", default=0)
    page: Path | None = output_option(
        "Write a page to label on instead, which downloads such a file.", metavar="REVIEW.html"
    )
    who: str | None = input_option("Your name; by default that of your account.", metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class CalibrateOptions(Overwrite, Formulas, Asking):
    """Fit a judge's estimates to your gold rows.

    The result is a file for `rag-eval run --calibration`.
    """

    files: list[Path] = argument(
        "Labelled rows, such as RAGBench's, whose calls the judge labels; or evaluations "
        "that you have, and the labelled rows.",
        metavar="[EVALS.jsonl] GOLD.jsonl",
    )
    out: Path = out_option(
        "File for the calibration, which must not exist.", "CALIBRATION.json", MISSING
    )
    name: str | None = output_option(
        "Name that stands on every score; by default the file's.", metavar="TEXT"
    )
    target_error: float = check_option(
        "Standard error that a calibrated score may have for lack of rows; fewer rows "
        "than that needs are refused.",
        metavar="ERROR",
        default=0.05,
    )


@dataclass(frozen=True, kw_only=True)
class CompareOptions(SkipInvalid):
    """Compare runs of the same calls.

    Says what became better or worse, and how sure that is.
    """

    evals: list[Path] = argument(
        "Evaluations of the same calls: the baseline A, and what to compare with it; one "
        "of them may be - for standard input.",
        metavar="A.jsonl B.jsonl [MORE.jsonl]",
    )
    by: str | None = input_option(
        "Pair calls by this alone; by default by your own ids where they are unique, "
        "else by question and reference.",
        metavar="id|question",
    )
    conversation: str | None = input_option(
        "Field of the metadata that names the conversation; calls of one conversation are "
        "kept together. Default: thread_id, conversation_id or session_id.",
        metavar="FIELD|none",
    )
    allow_mixed: bool = input_option(
        "Compare scores of different judges, prompts, formulas or estimators.",
        default=False,
    )
    labels: Path | None = labels_option(" of the runs that they are of.")
    fail_on_regression: list[str] | None = check_option(
        "Exit 1 if a score fell by more than DELTA beyond doubt: if the whole 95 % "
        "interval of B - A is below -DELTA; repeatable.",
        metavar="NAME=DELTA",
    )
    fail_on_new: str | None = check_option(
        "Exit 1 if more than N sentences (0 by default) are unsupported that the answers before "
        "did not have.",
        metavar="unsupported[=N]",
    )
    fail_on_unclear: bool = check_option(
        "Exit 1 also if there are too few calls to tell whether a score fell by more.",
        default=False,
    )
    out: Path | None = out_option(
        "File for a page with the changed calls side by side; - is standard output.", "diff.html"
    )
    form: str | None = output_option(
        "Format of the file; by default as its name ends. Without -o, print it.",
        "--format",
        metavar="html|md|json",
    )


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Judging):
    """Show packages and settings, and try a judge on a small call."""


def option_of(name: str) -> str | None:
    """Return the option that sets an argument of the library; None if no option has its name."""
    for options in (RunOptions, ScoreOptions, AgreementOptions, CalibrateOptions, CompareOptions):
        for each in fields(options):
            if each.name == name:
                return flag_of(each)
    return None
