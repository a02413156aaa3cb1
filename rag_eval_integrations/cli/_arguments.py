"""Arguments and options of the commands, each declared once; a store's are in `_store_arguments`.

A command's options are the fields of one dataclass, whose docstring is the command's help. What
several commands share is a base of their dataclasses. Importing this is cheap: `--help` needs it.
"""

# ruff: noqa: RUF009  # what is called makes a field

from __future__ import annotations

import json
import math
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rag_eval_integrations.cli._grouped import argument, flag_of, option
from rag_eval_integrations.cli._settings import ENVIRONMENT
from rag_eval_integrations.errors import ConfigurationError

# The sections of a help page, in the order of `_grouped.Command`.
_input = partial(option, "Input")
_judge = partial(option, "Judge")
_metric = partial(option, "Metrics")
_trace = partial(option, "TRACe scores")
_limit = partial(option, "Requests and limits")
_check = partial(option, "Checks")
_output = partial(option, "Output")


def _out(help_: str, metavar: str, default: Any = None) -> Any:
    """Declare the option `--out`."""
    return _output(help_, "--out", "-o", metavar=metavar, default=default)


def labels_option(more: str) -> Any:
    """Declare the option `--labels`."""
    help_ = (
        f"People's labels of a random draw, by `rag-eval review`: show the corrected means{more}"
    )
    return _check(help_, metavar="LABELS.jsonl")


# --- Options that several commands have


@dataclass(frozen=True, kw_only=True)
class SkipInvalid:
    """Whether invalid lines matter."""

    skip_invalid: bool = _input(
        "Report invalid lines, but do not exit with 2 for them.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class FieldNames:
    """Where the fields of calls are in a file."""

    field_map: list[str] | None = _input(
        "Field of the calls that holds a question, documents, response, reference, id, "
        "history, earlier or relevant_ids under another NAME; a.b is b inside of a, or of every "
        "item of the list a; repeatable, also for documents in several fields.",
        "--map",
        metavar="FIELD=NAME",
    )


@dataclass(frozen=True, kw_only=True)
class Where:
    """Which evaluations a command is about; `Filters` reads it."""

    where: list[str] | None = _input(
        "Only the evaluations for which this holds: a field of the metadata (or id, judge, model, "
        "flags, app, framework, tags), a pattern, or a score, as in 'adherence<1'; repeatable, and "
        "then all have to hold.",
        metavar="FIELD=VALUE|pattern=NAME|SCORE<x",
    )


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """Whether an output may be replaced."""

    overwrite: bool = _output(
        "Replace a file that exists, once the new one is whole.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class FailUnder:
    """Thresholds of means."""

    fail_under: list[str] | None = _check(
        "Exit 1 if the mean of a score is below VALUE; repeatable.", metavar="NAME=VALUE"
    )
    per: str | None = _check(
        "Hold --fail-under for each conversation, or for each value of a field.",
        metavar="conversation|FIELD",
    )
    min_calls: int | None = _check(
        "With --per, fail no group of fewer calls; 10, or 1 of a conversation, by default.",
        metavar="N",
        min=1,
    )
    labels: Path | None = labels_option(
        ", and hold --fail-under for the lower end of its 95 % interval."
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationsOutput(SkipInvalid, Overwrite, FailUnder):
    """The output of `run` and `score`."""

    out: Path = _out(
        "File for the evaluations, which must not exist; - is standard output. A name "
        "that ends in .gz is gzipped, and one in .parquet is a Parquet file.",
        "EVALS.jsonl",
        MISSING,
    )
    report: Path | None = _output("Also write their report as one HTML file.", metavar="FILE.html")
    name: str | None = _output("Name of the run, written in every row.", metavar="TEXT")
    tag: list[str] | None = _output(
        "A tag of the run, such as model=gpt-4o; repeatable.", metavar="KEY=VALUE"
    )
    no_revision: bool = _output(
        "Do not write the git revision of the working folder in the rows.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class Formulas:
    """The formulas of TRACe."""

    formulas: str | None = _trace(
        "The set of TRACe formulas; by default gpt-labeling, or that of given evaluations.",
        metavar="gpt-labeling|ragbench",
    )
    relevance_baseline: int | None = _trace(
        "Divide relevance by N instead of the number of sentences (gpt-labeling only).", metavar="N"
    )


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What is asked of the answers of an `openai:` model."""

    timeout: float | None = _limit(
        "Time limit for one answer of an openai: model.", metavar="SECONDS"
    )
    max_tokens: int | None = _limit(
        "Maximum number of tokens in one answer of an openai: model.", metavar="N", min=1
    )
    extra_body: str | None = _limit(
        'Additional request fields for an openai: model: \'{"reasoning_effort": "low"}\'.',
        metavar="JSON",
    )

    def answers(self) -> dict[str, Any]:
        """Check these options, and return them as arguments of `judge_from`.

        Raises:
            ConfigurationError: for a value that cannot be used; names the option.
        """
        if self.timeout is not None and not (math.isfinite(self.timeout) and self.timeout > 0):
            raise ConfigurationError("--timeout", self.timeout, "use a number of seconds above 0")
        body = None if self.extra_body is None else _json_object(self.extra_body)
        return {"timeout": self.timeout, "max_tokens": self.max_tokens, "extra_body": body}


@dataclass(frozen=True, kw_only=True)
class Judging(Answers):
    """The judge, and the requests of an `openai:MODEL`, alone or in a cascade."""

    judge: str | None = _judge(
        "The judge: embedded (lexical, no key, the default), openai:MODEL, onnx:PATH, "
        "transformers:NAME, cascade:A,B (asks B only where A is unsure), "
        "or MODULE:OBJECT in your own code.",
        metavar="JUDGE",
        envvar=ENVIRONMENT["judge"],
    )
    base_url: str | None = _judge(
        "Its OpenAI-compatible endpoint, including /v1.",
        metavar="URL",
        envvar=ENVIRONMENT["base-url"],
    )
    instructions: str | None = _judge(
        "What an openai: model is told besides our instructions, at most 2,000 characters.",
        metavar="TEXT|@FILE",
    )
    explanations: str | None = _judge(
        "Of which labels an openai: model gives an explanation: all (default), or only that a "
        "sentence is not fully supported, which takes less than half of the tokens.",
        metavar="all|unsupported",
    )

    def requests(self) -> dict[str, Any]:
        """Check these options, and return them by the name of the field.

        Raises:
            ConfigurationError: for a value that cannot be used; names the option.
        """
        return {"base_url": self.base_url, **self.answers()}

    def wording(self) -> dict[str, str | None]:
        """Return what an `openai:` model is told and asked to tell, by the name of the field."""
        return {"instructions": self.instructions, "explanations": self.explanations}


@dataclass(frozen=True, kw_only=True)
class Asking(Judging):
    """How a judge is asked about many calls."""

    max_concurrency: int = _limit("Maximum of concurrent calls.", metavar="N", min=1, default=32)
    rpm: float | None = _limit("Judge requests per minute.", metavar="N")
    tpm: float | None = _limit("Judge tokens per minute.", metavar="N")
    cache: Path | None = _judge("Cache the judge's answers in this file.", metavar="FILE")

    def requests(self) -> dict[str, Any]:
        """Check these options, and return them by name, but for the number of calls at once.

        Raises:
            ConfigurationError: for a value that cannot be used; names the option.
        """
        more = {"rpm": self.rpm, "tpm": self.tpm, "cache": self.cache}
        return {**super().requests(), **more}


@dataclass(frozen=True, kw_only=True)
class Scoring(Formulas, Asking):
    """What is scored of a call, and by whom."""

    flags: bool | None = _judge(
        "Look for text that addresses a judge (suspected_injection); no score needs it. By "
        "default where a model reads the texts.",
        "--flags/--no-flags",
    )
    metrics: str = _metric(
        "Metrics: trace, retrieval (needs relevant_ids in the calls), label_retrieval (a "
        "judge), citations (a judge), context_recall and correctness (a judge and reference), "
        "FILE.geval.yaml, FILE.metric.prompty, and geval:NAME with coherence, consistency, "
        "fluency, relevance (each also as NAME:summary), correctness or groundedness.",
        metavar="NAME,NAME,…",
        default="trace",
    )
    calibration: Path | None = _trace(
        "Calibrate the estimates by a file of `rag-eval calibrate` for the same judge.",
        metavar="CALIBRATION.json",
    )
    metric_var: list[str] | None = _metric(
        "Value for a variable of the metric files, or NAME=@FILE; repeatable.", metavar="NAME=VALUE"
    )
    geval_estimator: str | None = _metric(
        "How G-Eval metrics estimate a score: auto, logprobs, monte_carlo or single; by "
        "default as each metric says (auto).",
        metavar="HOW",
    )
    geval_samples: int | None = _metric(
        "Number of answers averaged for a G-Eval score without log-probabilities.", metavar="N"
    )
    k: str | None = _metric(
        "Ranks at which `retrieval` cuts (1,3,5,10 by default).", metavar="N,N,…"
    )
    match: str | None = _metric(
        "Whether `relevant_ids` are the ids of documents (default) or their texts.",
        metavar="id|text",
    )
    id_key: str | None = _metric(
        "Field of a document's metadata to match, not its id.", metavar="FIELD"
    )

    def trace(self) -> dict[str, Any]:
        """Return the arguments of `trace_from`."""
        return {
            "formulas": self.formulas,
            "relevance_baseline": self.relevance_baseline,
            "calibration": self.calibration,
        }

    def metric_settings(self) -> dict[str, Any]:
        """Return the settings of G-Eval and of `retrieval` that were given, by their arguments."""
        settings = {
            "estimator": self.geval_estimator,
            "samples": self.geval_samples,
            "k": self.k,
            "match": self.match,
            "id_key": self.id_key,
        }
        return {name: value for name, value in settings.items() if value is not None}


# --- The commands


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Run and score two small RAG apps; no API key needed.

    One is made with LangChain, the other with LlamaIndex.
    """

    out: Path = _output("Folder for the files.", metavar="DIR", default=Path("rag-eval-demo"))


@dataclass(frozen=True, kw_only=True)
class RunOptions(EvaluationsOutput, Scoring, FieldNames):
    """Label and score every call in a file."""

    calls: Path = argument(
        "RAG calls: JSONL, a JSON array, CSV or Parquet, plain or gzipped, with our "
        "field names or those of ragas, deepeval, LangSmith, LlamaIndex or RAGBench; or exported "
        "traces, also a folder of them; - is standard input.",
        metavar="CALLS",
    )
    form: str | None = _input(
        "The tool whose traces the file holds; by default recognised by its columns.",
        "--format",
        metavar="phoenix|mlflow|langfuse|langsmith",
    )
    split_reference: str | None = _input(
        "What stands between several references that are one text, such as /.", metavar="TEXT"
    )
    limit: int | None = _input("Read only the first N lines.", metavar="N", min=1)
    workers: int | None = _limit(
        "Number of processes that evaluate. The default is one per core for the embedded "
        "judge, and 1 for judges that wait for a model.",
        metavar="N",
        min=1,
    )
    max_error_rate: float = _check(
        "Exit 1 if more than this share of the calls ended in an error.",
        metavar="SHARE",
        min=0,
        max=1,
        default=0.05,
    )
    dry_run: bool = _check("Check input and estimate cost; send and write nothing.", default=False)
    resume: bool = _output("Continue an earlier run of the same calls and output.", default=False)


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(EvaluationsOutput, Formulas, FieldNames):
    """Score recorded labels with TRACe, without a judge."""

    labelled: Path = argument(
        "Calls with labels, RAGBench rows, or a file of evaluations; - is standard input.",
        metavar="LABELLED.jsonl",
    )
    raw_keys: bool = _trace(
        "Count key lists as recorded, with repeated and unknown keys.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class ReportOptions(SkipInvalid, Where, Overwrite, FailUnder):
    """Show evaluations: figures, and every call with its evidence.

    A report in HTML is one file, to open in a browser.
    """

    evals: Path = argument("The evaluations; - is standard input.", metavar="EVALS.jsonl")
    out: Path = _out(
        "File for the report; - is standard output. A report in HTML replaces an earlier one.",
        "REPORT",
        MISSING,
    )
    form: str | None = _output(
        "Format: html (one page to open in a browser), md or json (the figures), csv or parquet "
        "(one row per call), ragbench (rows with the labels in RAGBench's columns); by default "
        "as the file's name ends.",
        "--format",
        metavar="FORMAT",
    )
    review: bool = _output(
        "Ask in each call of the page which sentences are supported and relevant, as `review` "
        "does.",
        default=False,
    )
    title: str | None = _output("Title of the report.", metavar="TEXT")
    by: str | None = _output(
        "Also show the means for each value of a field, as in metadata.route.", metavar="FIELD"
    )
    calls: int | None = _output(
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
    store: str | None = _input(
        "A store: a path, sqlite:///PATH or postgresql://USER@HOST/NAME.", metavar="URL"
    )
    host: str = _output(
        "Address to listen at; one that other machines reach needs --token.",
        metavar="HOST",
        default="127.0.0.1",
    )
    port: int = _output(
        "Port to listen at; 0 is any.", metavar="PORT", min=0, max=65_535, default=8230
    )
    token: str | None = _output("Token of the address.", metavar="WORD")
    labels: Path | None = _output(
        "File that corrections are appended to; by default labels.jsonl in FOLDER, and without a "
        "folder there are none.",
        metavar="LABELS.jsonl",
    )
    open: bool = _output("Open the browser.", default=False)


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(SkipInvalid):
    """Show the prompt of one call, its labels and their scores.

    The prompt is made anew from the row. Where that is not possible, the reason is shown.
    """

    evals: Path = argument("The evaluations; - is standard input.", metavar="EVALS.jsonl")
    call: str = _input("Id of the call.", metavar="ID", default=MISSING)


@dataclass(frozen=True, kw_only=True)
class PullOptions(Overwrite):
    """Read calls from the traces that a tool holds.

    One call per trace. The keys of a tool, and without --url its address, are those of its own
    client, as for push. Nothing is changed at the tool.
    """

    source: str = _input(
        "The tool that holds the traces.",
        "--from",
        metavar="phoenix|mlflow|langfuse|langsmith",
        default=MISSING,
    )
    url: str | None = _input("Address of the tool's server.", metavar="URL")
    project: str | None = _input(
        "Its project; of MLflow the experiment. By default the client's own.", metavar="NAME"
    )
    since: str | None = _input(
        "Only traces since then: 90m, 24h, 7d or 2w ago, or a date such as 2026-11-25.",
        metavar="WHEN",
    )
    query: str | None = _input("Filter in the tool's own language, passed on.", metavar="QUERY")
    settle: str = _input(
        "Leave traces that ended less than this ago for the next pull: more of their spans may "
        "come.",
        metavar="TIME",
        default="60s",
    )
    limit: int | None = _input("Read this many traces at most.", metavar="N", min=1)
    out: Path = _out(
        "File for the calls, which must not exist; - is standard output. A name that ends in .gz "
        "is gzipped.",
        "CALLS.jsonl",
        MISSING,
    )
    resume: bool = _output("Go on with OUT: add the calls of traces that it lacks.", default=False)


@dataclass(frozen=True, kw_only=True)
class PushOptions(SkipInvalid, Where):
    """Post the scores of evaluations to the traces of their calls.

    The addresses and keys of a tool are those of its own client: LANGFUSE_BASE_URL,
    LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY; PHOENIX_COLLECTOR_ENDPOINT; MLFLOW_TRACKING_URI;
    LANGSMITH_API_KEY; OTEL_EXPORTER_OTLP_ENDPOINT. What is posted is noted in EVALS.jsonl.pushed,
    and the same command goes on from there.
    """

    evals: Path = argument("The evaluations.", metavar="EVALS.jsonl")
    to: str = _output(
        "The tool to which the calls were traced.",
        metavar="otel|langfuse|phoenix|mlflow|langsmith",
        default=MISSING,
    )
    metadata: list[str] | None = _output(
        "A field of the metadata that goes along, such as user_id; repeatable.",
        metavar="FIELD",
    )
    texts: bool = _output(
        "Post reasons as well, which may quote questions, documents and responses.",
        default=False,
    )
    dry_run: bool = _output("Count what would be posted, and post nothing.", default=False)


@dataclass(frozen=True, kw_only=True)
class AgreementOptions(FieldNames):
    """Compare a judge's evaluations with gold labels."""

    evals: Path = argument("The judge's evaluations.", metavar="EVALS.jsonl")
    gold: Path = argument("Labelled rows, such as RAGBench's.", metavar="GOLD.jsonl")
    human: str | None = _input(
        "Field of a gold row with a human rating to compare with; a.b reads b inside a.",
        metavar="FIELD",
    )
    document: str = _input(
        "Field that identifies the source document.", metavar="FIELD", default="doc_id"
    )
    system: str = _input(
        "Field that identifies the system that wrote the response.",
        metavar="FIELD",
        default="system_id",
    )
    baselines: bool = _input(
        "Compare with the predictions published in the gold rows.", default=False
    )
    cascade: Path | None = _input(
        "A second judge's evaluations: show the quality and cost of asking it only "
        "where the first judge is unsure.",
        metavar="SECOND.jsonl",
    )
    out: Path | None = _out(
        "Write the figures, with ROC and reliability curves, as an HTML page.", "PAGE.html"
    )
    plots: Path | None = _output(
        "Write the same page as agreement.html in this folder.", metavar="DIR"
    )
    as_json: bool = _output("Print one JSON object instead of tables.", "--json", default=False)


@dataclass(frozen=True, kw_only=True)
class ReviewOptions(SkipInvalid):
    """Ask you which sentences are supported and relevant.

    Each answer is kept at once, and the same command goes on from there. The file is gold for
    agreement, calibrate, score and compare.
    """

    evals: Path = argument("The evaluations to correct.", metavar="EVALS.jsonl")
    out: Path = _out(
        "File to which the answers are appended; several people can share one.",
        "LABELS.jsonl",
        MISSING,
    )
    pick: str = _input(
        "Which calls: random (for means of all calls), those of which the judge is the most "
        "unsure, or those with the lowest scores.",
        metavar="random|unsure|low",
        default="random",
    )
    n: int = _input("Number of calls.", metavar="N", min=1, default=50)
    seed: int = _input("Seed of the draw.", metavar="SEED", default=0)
    page: Path | None = _output(
        "Write a page to label on instead, which downloads such a file.", metavar="REVIEW.html"
    )
    who: str | None = _input("Your name; by default that of your account.", metavar="NAME")


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
    out: Path = _out("File for the calibration, which must not exist.", "CALIBRATION.json", MISSING)
    name: str | None = _output(
        "Name that stands on every score; by default the file's.", metavar="TEXT"
    )
    target_error: float = _check(
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
    by: str | None = _input(
        "Pair calls by this alone; by default by your own ids where they are unique, "
        "else by question and reference.",
        metavar="id|question",
    )
    conversation: str | None = _input(
        "Field of the metadata that names the conversation; calls of one conversation are "
        "kept together. Default: thread_id, conversation_id or session_id.",
        metavar="FIELD|none",
    )
    allow_mixed: bool = _input(
        "Compare scores of different judges, prompts, formulas or estimators.",
        default=False,
    )
    labels: Path | None = labels_option(" of the runs that they are of.")
    fail_on_regression: list[str] | None = _check(
        "Exit 1 if a score fell by more than DELTA beyond doubt: if the whole 95 % "
        "interval of B - A is below -DELTA; repeatable.",
        metavar="NAME=DELTA",
    )
    fail_on_new: str | None = _check(
        "Exit 1 if more than N sentences (0 by default) are unsupported that the answers before "
        "did not have.",
        metavar="unsupported[=N]",
    )
    fail_on_unclear: bool = _check(
        "Exit 1 also if there are too few calls to tell whether a score fell by more.",
        default=False,
    )
    out: Path | None = _out(
        "File for a page with the changed calls side by side; - is standard output.", "diff.html"
    )
    form: str | None = _output(
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


def _json_object(text: str) -> dict[str, Any]:
    """Read the JSON object of `--extra-body`.

    Raises:
        ConfigurationError: it is not JSON, or not an object. NaN and Infinity are not JSON.
    """
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        why = f"is not JSON ({error}); quote it for the shell, as in '{{\"top_k\": 20}}'"
        raise ConfigurationError("--extra-body", "…", why) from None
    if not isinstance(value, dict):
        raise ConfigurationError("--extra-body", "…", "use a JSON object, as in '{\"top_k\": 20}'")
    return value


def _refuse(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{constant} is not JSON")
