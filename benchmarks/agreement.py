"""Seconds, CPU and memory per row of `rag-eval agreement`, beside reading the same rows.

    python benchmarks/agreement.py [--rows 100000] [--sentences 12]

Rows are made up: ten data sets, a judge with probabilities and estimates, and gold that it often
agrees with. Each line is a process of its own. The baseline reads both files; all else is
agreement: 400 resamples, per data set and pooled. Memory is the peak of the process less what it
has before the first row. The last column is CPU beside the baseline's.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODES = ("reading", "agreement")
TEMPLATES = 200


def make(folder: Path, rows: int, sentences: int) -> None:
    """Write EVALS and gold rows: templates with other questions, keys and numbers."""
    from rag_eval_integrations import RagCall, RagEvaluator, Trace

    generator = random.Random(1)
    evaluator = RagEvaluator("embedded", [Trace()])
    templates = []
    for number in range(TEMPLATES):
        texts = [
            f"Ferry {number} carries {generator.randrange(900)} people on day {at}."
            for at in range(sentences)
        ]
        response = " ".join([*texts[:2], f"It costs {generator.randrange(90)} pounds."])
        call = RagCall(f"Ferry {number}?", [" ".join(texts)], response)
        templates.append(json.loads(evaluator.evaluate_sync(call).model_dump_json()))
    with (folder / "evals.jsonl").open("w") as evals, (folder / "gold.jsonl").open("w") as gold:
        for number in range(rows):
            row = dict(templates[number % TEMPLATES])
            row |= {"id": f"row {number}", "row_key": generator.randbytes(32).hex()}
            row["metadata"] = {"dataset": f"set {number % 10}"}
            labels = dict(row["labels"])
            for name in ("relevant", "utilized", "supported"):
                chances = labels[f"{name}_probabilities"]
                labels[f"{name}_probabilities"] = {
                    key: round(generator.random() * p, 6) for key, p in chances.items()
                }
            scores = {name: dict(score) for name, score in row["scores"].items()}
            for score in scores.values():
                if score.get("estimate"):
                    value = round(generator.random(), 6)
                    score["estimate"] = {**score["estimate"], "value": value}
                if "probability" in score:
                    score["probability"] = round(generator.random(), 6)
            evals.write(json.dumps({**row, "labels": labels, "scores": scores}) + "\n")
            other = templates[generator.randrange(TEMPLATES)]["labels"]
            supports = [
                {**entry, "fully_supported": generator.random() < 0.8}
                for entry in labels["sentence_support_information"]
            ]
            keys = [sentence[0] for sentence in row["sentences"]["documents"]]
            labels = {
                "all_relevant_sentence_keys": generator.sample(
                    keys, generator.randrange(len(keys))
                ),
                "all_utilized_sentence_keys": other["all_utilized_sentence_keys"],
                "sentence_support_information": supports,
            }
            recorded = {
                name: value for name, value in row.items() if name not in ("usage", "flags")
            }
            gold.write(json.dumps({**recorded, "labels": labels}) + "\n")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child(folder: Path, mode: str) -> None:
    """Read, or compare; print seconds, CPU seconds and bytes."""
    from rag_eval_integrations.cli import agreement
    from rag_eval_integrations.cli._arguments import AgreementOptions

    evals, gold = folder / "evals.jsonl", folder / "gold.jsonl"
    before, started, cpu = peak(), time.perf_counter(), time.process_time()
    if mode == "reading":
        reader = agreement.RowReader()
        rows, trace = agreement.predicted_rows(reader, evals)
        rows += reader.gold(gold, trace)
    else:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            agreement.agreement(AgreementOptions(evals=evals, gold=gold, as_json=True))
    took = time.perf_counter() - started, time.process_time() - cpu
    print(json.dumps([*took, peak() - before]), file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sentences", type=int, default=12)
    parser.add_argument("--only", default=",".join(MODES))
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mode:
        child(options.folder, options.mode)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, options.rows, options.sentences)
        sizes = " + ".join(f"{path.stat().st_size / 1e6:.0f}" for path in sorted(folder.iterdir()))
        print(f"{options.rows:,} rows of {options.sentences} sentences, {sizes} MB")
        print(f"{'':26}{'seconds':>9}{'CPU s':>9}{'less reading':>14}{'bytes/row':>11}{'CPU':>8}")
        baseline = 0.0
        for mode in options.only.split(","):
            words = [sys.executable, __file__, "--folder", name, "--mode", mode]
            limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(
                words, stderr=subprocess.PIPE, text=True, check=True, env={**os.environ, **limits}
            )
            seconds, cpu, grown = json.loads(done.stderr.splitlines()[-1])
            baseline = baseline or cpu
            print(
                f"{mode:26}{seconds:9.1f}{cpu:9.1f}{cpu - baseline:14.1f}"
                f"{grown / options.rows:11,.0f}{cpu / baseline:7.2f}x"
            )


if __name__ == "__main__":
    main()
