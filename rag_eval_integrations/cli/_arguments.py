"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
JUDGES = "embedded|openai:MODEL|onnx:PATH|transformers:NAME|cascade:A,B[,C]|MODULE:OBJECT"
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
MaxConcurrency = Annotated[
    int, typer.Option(metavar="N", min=1, help="Maximum number of concurrent calls.")
]
Rpm = Annotated[float | None, typer.Option(metavar="N", help="Judge requests per minute.")]
Tpm = Annotated[float | None, typer.Option(metavar="N", help="Judge tokens per minute.")]
Cache = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Cache the judge's answers in this file.")
]
