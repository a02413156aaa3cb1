"""Options that several commands share, each declared once, as bases of the commands' dataclasses.

Importing this is cheap: `--help` needs it.
"""

# ruff: noqa: RUF009  # what is called makes a field

from __future__ import annotations

import json
import math
from dataclasses import MISSING, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rag_eval_integrations.cli._grouped import option
from rag_eval_integrations.cli._settings import ENVIRONMENT
from rag_eval_integrations.errors import ConfigurationError

# The sections of a help page, in the order of `_grouped.Command`.
input_option = partial(option, "Input")
judge_option = partial(option, "Judge")
metric_option = partial(option, "Metrics")
trace_option = partial(option, "TRACe scores")
limit_option = partial(option, "Requests and limits")
check_option = partial(option, "Checks")
output_option = partial(option, "Output")


def out_option(help_: str, metavar: str, default: Any = None) -> Any:
    """Declare the option `--out`."""
    return output_option(help_, "--out", "-o", metavar=metavar, default=default)


def labels_option(more: str) -> Any:
    """Declare the option `--labels`."""
    help_ = (
        f"People's labels of a random draw, by `rag-eval review`: show the corrected means{more}"
    )
    return check_option(help_, metavar="LABELS.jsonl")


@dataclass(frozen=True, kw_only=True)
class SkipInvalid:
    """Option to accept invalid lines."""

    skip_invalid: bool = input_option(
        "Report invalid lines, but do not exit with 2 for them.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class FieldNames:
    """Option that says which names a file has for the fields of calls."""

    field_map: list[str] | None = input_option(
        "Field of the calls that holds a question, documents, response, reference, id, "
        "history, earlier or relevant_ids under another NAME; a.b is b inside of a, or of every "
        "item of the list a; repeatable, also for documents in several fields.",
        "--map",
        metavar="FIELD=NAME",
    )


@dataclass(frozen=True, kw_only=True)
class Where:
    """Option that selects evaluations; `Filters` reads it."""

    where: list[str] | None = input_option(
        "Only the evaluations for which this holds: a field of the metadata (or id, judge, model, "
        "flags, app, framework, tags), a pattern, or a score, as in 'adherence<1'; repeatable, and "
        "then all have to hold.",
        metavar="FIELD=VALUE|pattern=NAME|SCORE<x",
    )


@dataclass(frozen=True, kw_only=True)
class Overwrite:
    """Option to replace an existing output."""

    overwrite: bool = output_option(
        "Replace a file that exists, once the new one is whole.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class FailUnder:
    """Options for thresholds of means."""

    fail_under: list[str] | None = check_option(
        "Exit 1 if the mean of a score is below VALUE; repeatable.", metavar="NAME=VALUE"
    )
    per: str | None = check_option(
        "Hold --fail-under for each conversation, or for each value of a field.",
        metavar="conversation|FIELD",
    )
    min_calls: int | None = check_option(
        "With --per, fail no group of fewer calls; 10, or 1 of a conversation, by default.",
        metavar="N",
        min=1,
    )
    labels: Path | None = labels_option(
        ", and hold --fail-under for the lower end of its 95 % interval."
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationsOutput(SkipInvalid, Overwrite, FailUnder):
    """Options for the output of `run` and `score`."""

    out: Path = out_option(
        "File for the evaluations, which must not exist; - is standard output. A name "
        "that ends in .gz is gzipped, and one in .parquet is a Parquet file.",
        "EVALS.jsonl",
        MISSING,
    )
    report: Path | None = output_option(
        "Also write their report as one HTML file.", metavar="FILE.html"
    )
    name: str | None = output_option("Name of the run, written in every row.", metavar="TEXT")
    tag: list[str] | None = output_option(
        "A tag of the run, such as model=gpt-4o; repeatable.", metavar="KEY=VALUE"
    )
    no_revision: bool = output_option(
        "Do not write the git revision of the working folder in the rows.", default=False
    )


@dataclass(frozen=True, kw_only=True)
class Formulas:
    """Options for the formulas of TRACe."""

    formulas: str | None = trace_option(
        "The set of TRACe formulas; by default gpt-labeling, or that of given evaluations.",
        metavar="gpt-labeling|ragbench",
    )
    relevance_baseline: int | None = trace_option(
        "Divide relevance by N instead of the number of sentences (gpt-labeling only).", metavar="N"
    )


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Options for the answers of an `openai:` model."""

    timeout: float | None = limit_option(
        "Time limit for one answer of an openai: model.", metavar="SECONDS"
    )
    max_tokens: int | None = limit_option(
        "Maximum number of tokens in one answer of an openai: model.", metavar="N", min=1
    )
    extra_body: str | None = limit_option(
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
    """Options for the judge, and for the requests of an `openai:MODEL` in it."""

    judge: str | None = judge_option(
        "The judge: embedded (lexical, no key, the default), openai:MODEL, onnx:PATH, "
        "transformers:NAME, cascade:A,B (asks B only where A is unsure), "
        "or MODULE:OBJECT in your own code.",
        metavar="JUDGE",
        envvar=ENVIRONMENT["judge"],
    )
    base_url: str | None = judge_option(
        "Its OpenAI-compatible endpoint, including /v1.",
        metavar="URL",
        envvar=ENVIRONMENT["base-url"],
    )
    instructions: str | None = judge_option(
        "What an openai: model is told besides our instructions, at most 2,000 characters.",
        metavar="TEXT|@FILE",
    )
    explanations: str | None = judge_option(
        "Of which labels an openai: model gives an explanation: all (default), or only that a "
        "sentence is not fully supported, which takes less than half of the tokens.",
        metavar="all|unsupported",
    )

    def requests(self) -> dict[str, Any]:
        """Check the options for requests, and return them as arguments of `judge_from`.

        Raises:
            ConfigurationError: for a value that cannot be used; names the option.
        """
        return {"base_url": self.base_url, **self.answers()}

    def wording(self) -> dict[str, str | None]:
        """Return the options about the prompt of an `openai:` model, as arguments of `LLMJudge`."""
        return {"instructions": self.instructions, "explanations": self.explanations}


@dataclass(frozen=True, kw_only=True)
class Asking(Judging):
    """Options for asking a judge about many calls."""

    max_concurrency: int = limit_option(
        "Maximum of concurrent calls.", metavar="N", min=1, default=32
    )
    rpm: float | None = limit_option("Judge requests per minute.", metavar="N")
    tpm: float | None = limit_option("Judge tokens per minute.", metavar="N")
    cache: Path | None = judge_option("Cache the judge's answers in this file.", metavar="FILE")

    def requests(self) -> dict[str, Any]:
        """Check the options for requests, and return them with the limits and the cache.

        Raises:
            ConfigurationError: for a value that cannot be used; names the option.
        """
        more = {"rpm": self.rpm, "tpm": self.tpm, "cache": self.cache}
        return {**super().requests(), **more}


@dataclass(frozen=True, kw_only=True)
class Scoring(Formulas, Asking):
    """Options for the metrics of a call, and for its judge."""

    flags: bool | None = judge_option(
        "Look for text that addresses a judge (suspected_injection); no score needs it. By "
        "default where a model reads the texts.",
        "--flags/--no-flags",
    )
    metrics: str = metric_option(
        "Metrics: trace, retrieval (needs relevant_ids in the calls), label_retrieval (a "
        "judge), citations (a judge), context_recall and correctness (a judge and reference), "
        "FILE.geval.yaml, FILE.metric.prompty, and geval:NAME with coherence, consistency, "
        "fluency, relevance (each also as NAME:summary), correctness or groundedness.",
        metavar="NAME,NAME,…",
        default="trace",
    )
    calibration: Path | None = trace_option(
        "Calibrate the estimates by a file of `rag-eval calibrate` for the same judge.",
        metavar="CALIBRATION.json",
    )
    metric_var: list[str] | None = metric_option(
        "Value for a variable of the metric files, or NAME=@FILE; repeatable.", metavar="NAME=VALUE"
    )
    geval_estimator: str | None = metric_option(
        "How G-Eval metrics estimate a score: auto, logprobs, monte_carlo or single; by "
        "default as each metric says (auto).",
        metavar="HOW",
    )
    geval_samples: int | None = metric_option(
        "Number of answers averaged for a G-Eval score without log-probabilities.", metavar="N"
    )
    k: str | None = metric_option(
        "Ranks at which `retrieval` cuts (1,3,5,10 by default).", metavar="N,N,…"
    )
    match: str | None = metric_option(
        "Whether `relevant_ids` are the ids of documents (default) or their texts.",
        metavar="id|text",
    )
    id_key: str | None = metric_option(
        "Field of a document's metadata to match, not its id.", metavar="FIELD"
    )

    def trace_settings(self) -> dict[str, Any]:
        """Return the arguments of `trace_from`."""
        return {
            "formulas": self.formulas,
            "relevance_baseline": self.relevance_baseline,
            "calibration": self.calibration,
        }

    def metric_settings(self) -> dict[str, Any]:
        """Return the options for G-Eval and `retrieval` that were given, as their arguments."""
        settings = {
            "estimator": self.geval_estimator,
            "samples": self.geval_samples,
            "k": self.k,
            "match": self.match,
            "id_key": self.id_key,
        }
        return {name: value for name, value in settings.items() if value is not None}


def _json_object(text: str) -> dict[str, Any]:
    """Read the JSON object of `--extra-body`.

    Raises:
        ConfigurationError: it is not JSON, or not an object. NaN and Infinity are not JSON.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        why = f"is not JSON ({error}); quote it for the shell, as in '{{\"top_k\": 20}}'"
        raise ConfigurationError("--extra-body", "…", why) from None
    if not isinstance(value, dict):
        raise ConfigurationError("--extra-body", "…", "use a JSON object, as in '{\"top_k\": 20}'")
    return value


def _refuse_constant(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{constant} is not JSON")
