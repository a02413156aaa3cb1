"""Agreement of local models with gold labels, and their speed, beside the embedded judge.

    python benchmarks/local_models.py --data ../shared/data --relevance PATH [--support PATH]
        [--rows 40] [--threads 1] [--max-windows 4]

PATH is a folder with an ONNX model, as `OnnxJudge` takes it. The same rows of every data set,
chosen with a fixed random seed, are judged by the embedded judge and by the models. An encoder's
cosines become probabilities by a line that is fitted on the other data sets; the line fitted on all
of them is printed, and so is the mixture of both judges' P(adherent). AUROC is of document
sentences (relevant, utilized) and of responses (not adherent), RMSE of the expected score. The
embedded judge's coefficients were fitted on these data sets, so that its figures here are too good;
docs/embedded-judge-figures.md has those on unseen domains.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import math
import random
import time
from collections import defaultdict
from pathlib import Path
from threading import Event

import numpy as np

from rag_eval_integrations.agreement.calibrating import mixture
from rag_eval_integrations.judges import OnnxJudge
from rag_eval_integrations.judges._reader import relevance
from rag_eval_integrations.judges.calibration import log_odds
from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.judges.onnx import _OnnxModel
from rag_eval_integrations.records import RagCall, Sentence, Sentences, SentencizedCall

UNIT = ((0.0, 1.0), (0.0, 1.0))  # log-odds that are the cosines themselves


def read(data: Path, rows: int) -> list[dict]:
    chosen = []
    for path in sorted((data / "ragbench").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found = [json.loads(line) | {"set": path.name.split("_")[0]} for line in lines]
        random.Random(0).shuffle(found)
        chosen += found[:rows]
    return [row for row in chosen if row["documents_sentences"] and row["response_sentences"]]


def sentencized(row: dict) -> SentencizedCall:
    return SentencizedCall(
        call=RagCall(
            question=row["question"], documents=row["documents"], response=row["response"]
        ),
        sentences=Sentences(
            documents=tuple(
                Sentence(key, text) for part in row["documents_sentences"] for key, text in part
            ),
            response=tuple(Sentence(key, text) for key, text in row["response_sentences"]),
        ),
        splitter="recorded",
    )


def auroc(scores: list[float], positive: list[bool]) -> float:
    order = sorted(range(len(scores)), key=scores.__getitem__)
    ranks = [0.0] * len(scores)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and scores[order[end]] == scores[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + end + 1) / 2
        start = end
    good = sum(positive)
    bad = len(positive) - good
    if not good or not bad:
        return math.nan
    return (sum(r for r, p in zip(ranks, positive, strict=True) if p) - good * (good + 1) / 2) / (
        good * bad
    )


def fit(cosines: list[float], positive: list[bool]) -> tuple[float, float]:
    """Fit log-odds = a + b · cosine by Newton's method."""
    a = b = 0.0
    for _ in range(25):
        ga = gb = haa = hab = hbb = 0.0
        for x, y in zip(cosines, positive, strict=True):
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, a + b * x))))
            w = p * (1 - p) + 1e-9
            ga += y - p
            gb += (y - p) * x
            haa += w
            hab += w * x
            hbb += w * x * x
        determinant = haa * hbb - hab * hab
        a += (hbb * ga - hab * gb) / determinant
        b += (haa * gb - hab * ga) / determinant
    return a, b


def odds(p: float) -> float:
    return math.log(p / (1 - p))


def by_line(line: tuple[float, float], cosine: float) -> float:
    return 1 / (1 + math.exp(-line[0] - line[1] * cosine))


def table(title: str, found: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}")
    names = list(next(iter(found.values())))
    print("  " + "set".ljust(12) + "".join(name.rjust(20) for name in names))
    for name, line in found.items():
        print("  " + name.ljust(12) + "".join(f"{line[one]:20.3f}" for one in names))
    means = [[line[one] for line in found.values() if not math.isnan(line[one])] for one in names]
    print("  " + "mean".ljust(12) + "".join(f"{sum(one) / len(one):20.3f}" for one in means))


def judge_documents(
    path: str, threads: int, rows: list[dict], calls: list[SentencizedCall]
) -> None:
    options = dict.fromkeys(("labels", "max_length", "pooling"))
    options |= {"device": "cpu", "batch_size": 16, "threads": threads}
    backend = _OnnxModel(path, "relevance", options)
    own = {"relevant": [], "utilized": []}
    start = time.process_time()
    for call in calls:
        found = relevance(backend, call, UNIT, Event())
        for name, one in zip(own, found, strict=True):
            own[name].append(one)
    spent = time.process_time() - start
    start = time.process_time()
    words = [label_call(call).labels for call in calls]
    words_spent = time.process_time() - start
    sentences = sum(len(call.documents) + len(call.response) for call in calls)
    print(
        f"{backend.name} ({backend.kind}): {len(calls) / spent:.1f} rows per CPU s, "
        f"{sentences / spent:.0f} sentences; embedded: {len(calls) / words_spent:.0f} rows "
        f"({spent / words_spent:.0f} times the rows)"
    )
    sets = list(dict.fromkeys(row["set"] for row in rows))
    for kind in own:
        gold = [
            [s.key in set(row[f"all_{kind}_sentence_keys"]) for s in call.documents]
            for row, call in zip(rows, calls, strict=True)
        ]
        if backend.kind == "embedding":
            cosines = [[odds(p) for p in one] for one in own[kind]]
            lines = {}
            for name in (*sets, None):
                used = [n for n, row in enumerate(rows) if row["set"] != name]
                lines[name] = fit(
                    [x for n in used for x in cosines[n]], [y for n in used for y in gold[n]]
                )
            print(f"line of {kind}: ({lines[None][0]:.2f}, {lines[None][1]:.2f})")
            own[kind] = [
                [by_line(lines[row["set"]], x) for x in one]
                for row, one in zip(rows, cosines, strict=True)
            ]
        result: dict[str, dict[str, float]] = {}
        for name in sets:
            inside = [n for n, row in enumerate(rows) if row["set"] == name and words[n]]
            truth = [sum(gold[n]) / len(gold[n]) for n in inside]
            of_words = [
                list((getattr(words[n], f"{kind}_probabilities") or {}).values()) for n in inside
            ]
            of_model = [own[kind][n] for n in inside]
            line = {}
            for maker, probabilities in (("embedded", of_words), ("model", of_model)):
                line[f"AUROC {maker}"] = auroc(
                    [p for one in probabilities for p in one], [y for n in inside for y in gold[n]]
                )
                line[f"RMSE {maker}"] = math.sqrt(
                    sum(
                        (sum(p) / len(p) - t) ** 2
                        for p, t in zip(probabilities, truth, strict=True)
                    )
                    / len(truth)
                )
            mean = sum(truth) / len(truth)
            line["RMSE set's mean"] = math.sqrt(sum((t - mean) ** 2 for t in truth) / len(truth))
            result[name] = line
        table(f"document sentences: {kind}", result)


def judge_support(
    path: str, threads: int, windows: int, rows: list[dict], calls: list[SentencizedCall]
) -> None:
    judge = OnnxJudge(path, threads=threads, max_windows=windows)

    async def label() -> list:
        return [await judge.label(call) for call in calls]

    start = time.process_time()
    found = asyncio.run(label())
    spent = time.process_time() - start
    start = time.process_time()
    for call in calls:
        label_call(call)
    of_words = time.process_time() - start
    print(
        f"\n{judge!r}: {len(calls) / spent:.1f} rows per CPU s; embedded: "
        f"{len(calls) / of_words:.0f} ({spent / of_words:.0f} times the rows)"
    )
    scores = defaultdict(list)
    for row, call, labelling in zip(rows, calls, found, strict=True):
        words = label_call(call).labels
        if labelling.labels is None or words is None:
            continue
        scores[row["set"]].append(
            (
                1 - (words.adherence_probability() or 0.0),
                1 - (labelling.labels.adherence_probability() or 0.0),
                float(len(row["response"])),
                not row["adherence_score"],
            )
        )
    result = {}
    for name, lines in scores.items():
        others = [line for other, own in scores.items() if other != name for line in own]
        *columns, gold = (list(column) for column in zip(*lines, strict=True))
        columns.append(mixed(others, columns))
        makers = ("embedded", "model", "length", "mixture")
        result[name] = {
            f"AUROC {one}": auroc(c, gold) for one, c in zip(makers, columns, strict=True)
        }
    table("responses: not adherent", result)


def mixed(others: list[tuple], columns: list[list[float]]) -> list[float]:
    """Mix the judges' probabilities of *not adherent* by a fit to the rows of the other sets."""
    if not others:
        return columns[1]
    words, model, _, wrong = (np.array(column, "f8") for column in zip(*others, strict=True))
    slope, weight, intercept = mixture(1 - model, 1 - words, 1 - wrong)
    print(f"weights: model {slope:.2f}, words {weight:.2f}, intercept {intercept:+.2f}")
    rows = zip(columns[1], columns[0], strict=True)
    return [-slope * log_odds(1 - m) - weight * log_odds(1 - w) for m, w in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--relevance")
    parser.add_argument("--support")
    parser.add_argument("--rows", type=int, default=40, help="of each file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--max-windows", type=int, default=4)
    asked = parser.parse_args()
    rows = read(asked.data, asked.rows)
    calls = [sentencized(row) for row in rows]
    label_call(calls[0])  # reads its coefficients
    sets = len({row["set"] for row in rows})
    print(f"{len(rows)} rows of {sets} data sets, {asked.threads} thread(s)")
    if asked.relevance:
        judge_documents(asked.relevance, asked.threads, rows, calls)
    if asked.support:
        judge_support(asked.support, asked.threads, asked.max_windows, rows, calls)


if __name__ == "__main__":
    main()
