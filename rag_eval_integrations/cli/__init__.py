"""The command line: `rag-eval`. Options here; what a command does is in its own module.

Exit codes: 0 ok, 1 a threshold or a check failed, 2 bad input or usage (2 beats 1), 130 on Ctrl-C.
"""

# The commands' modules are imported where they run: `rag-eval --help` has to come up at once.
# ruff: noqa: PLC0415

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rag_eval_integrations.cli.prompt_tests import app as prompt_tests_app
from rag_eval_integrations.errors import RagEvalError

app = typer.Typer(
    name="rag-eval",
    help="Evaluate RAG calls: keyed sentences, labels with evidence, TRACe scores.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Calls = Annotated[
    Path, typer.Argument(metavar="CALLS.jsonl", help="Calls, one JSON object a line; or RAGBench.")
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="EVALS.jsonl", help="Where to write.")]
Formulas = Annotated[
    str, typer.Option(metavar="seed|ragbench", help="Which set of TRACe formulas.")
]
Baseline = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Divide relevance by N instead of the number of sentences (seed only)."
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="The judge's OpenAI-compatible endpoint, with /v1."),
]
SkipInvalid = Annotated[bool, typer.Option("--skip-invalid", help="Do not exit 2 for bad lines.")]


app.add_typer(prompt_tests_app)


@app.callback()
def _callback() -> None:
    pass


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write the files.")] = Path(
        "rag-eval-demo"
    ),
) -> None:
    """Run LangChain and LlamaIndex RAG apps over a small corpus and score them; no key."""
    from rag_eval_integrations.cli._terminal import stdout
    from rag_eval_integrations.cli.demo import run_demo

    raise typer.Exit(run_demo(out, stdout()))


@app.command("run")
def run_command(
    calls: Calls,
    out: Out,
    judge: Annotated[
        str, typer.Option(metavar="embedded|openai:MODEL", help="Who labels.")
    ] = "embedded",
    base_url: BaseUrl = None,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="trace,geval:NAME,FILE.geval.yaml,FILE.metric.prompty",
            help="What to score; geval: coherence, consistency, fluency, relevance (each also "
            "as NAME:summary), correctness, groundedness.",
        ),
    ] = "trace",
    metric_var: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE|@FILE", help="A variable of metric files; may repeat."),
    ] = None,
    formulas: Formulas = "gpt-labeling",
    relevance_baseline: Baseline = None,
    max_concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="Calls under way at once.")
    ] = 8,
    rpm: Annotated[float | None, typer.Option(metavar="N", help="Judge requests a minute.")] = None,
    tpm: Annotated[float | None, typer.Option(metavar="N", help="Judge tokens a minute.")] = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the judge's answers in this file.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run to the same file stopped.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the first N lines.")
    ] = None,
    skip_invalid: SkipInvalid = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and count; ask no judge, write nothing.")
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Exit 1 when the mean is lower; may repeat."),
    ] = None,
) -> None:
    """Label and score every call of a file."""
    from rag_eval_integrations.cli import run as command

    settings = command.Settings(
        calls, out, judge=judge, base_url=base_url, metrics=metrics, formulas=formulas,
        relevance_baseline=relevance_baseline, max_concurrency=max_concurrency, rpm=rpm, tpm=tpm,
        cache=cache, resume=resume, limit=limit, skip_invalid=skip_invalid, dry_run=dry_run,
        fail_under=fail_under or [], metric_var=metric_var or [],
    )  # fmt: skip
    raise typer.Exit(command.run(settings))


@app.command("score")
def score_command(
    labelled: Annotated[
        Path,
        typer.Argument(
            metavar="LABELLED.jsonl", help="Calls with labels, RAGBench rows, or an EVALS file."
        ),
    ],
    out: Out,
    formulas: Formulas = "gpt-labeling",
    relevance_baseline: Baseline = None,
    raw_keys: Annotated[
        bool,
        typer.Option("--raw-keys", help="Count the key lists as recorded, odd keys included."),
    ] = False,
    skip_invalid: SkipInvalid = False,
) -> None:
    """Score recorded labels with TRACe; no judge is asked."""
    from rag_eval_integrations.cli import score as command

    raise typer.Exit(
        command.score(
            labelled,
            out,
            formulas=formulas,
            relevance_baseline=relevance_baseline,
            raw_keys=raw_keys,
            skip_invalid=skip_invalid,
        )
    )


@app.command("agreement")
def agreement_command(
    evals: Annotated[Path, typer.Argument(metavar="EVALS.jsonl", help="What a judge said.")],
    gold: Annotated[
        Path, typer.Argument(metavar="GOLD.jsonl", help="Labelled rows, such as RAGBench's.")
    ],
    human: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD", help="Compare with this number of each gold row; a.b for b in a."
        ),
    ] = None,
    document: Annotated[
        str, typer.Option(metavar="FIELD", help="Names the document that systems wrote about.")
    ] = "doc_id",
    system: Annotated[
        str, typer.Option(metavar="FIELD", help="Names the system that wrote the response.")
    ] = "system_id",
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Add the predictors published in the rows.")
    ] = False,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write ROC and reliability plots as HTML into DIR."),
    ] = None,
    cascade: Annotated[
        Path | None,
        typer.Option(
            metavar="SECOND.jsonl",
            help="A second judge's evaluations: what asking it only where EVALS is unsure gives.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure a judge against gold labels."""
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
            cascade=cascade,
        )
    )


@app.command("doctor")
def doctor_command(
    judge: Annotated[
        str | None,
        typer.Option(metavar="embedded|openai:MODEL", help="Try this judge on a small call."),
    ] = None,
    base_url: BaseUrl = None,
) -> None:
    """Say what is installed, what works, and what the judge is."""
    from rag_eval_integrations.cli import doctor as command

    raise typer.Exit(command.doctor(judge, base_url))


def main() -> None:
    """Entry point of `rag-eval`."""
    try:
        app()
    except (RagEvalError, OSError) as error:
        print(f"rag-eval: {error}", file=sys.stderr)  # noqa: T201  # the command's own voice
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
