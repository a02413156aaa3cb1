"""Do corrected means cover what people say? A thousand draws of 50 random labels, on two sets.

    python benchmarks/corrected_means.py [--data ../shared/data] [--judged FILE] [--workers 2]

RAGTruth's answers are adherent where people marked no hallucination, MTRAG's where at least two of
three raters give faithfulness 3 or 4. The default judge's adherence stands beside; answers that it
has no value for are left out. *Covers* is the share of draws whose 95 % interval holds the mean of
all people's labels, *width* the intervals' mean width, and *x* that divided by the width of the
labels alone, whose interval is made in the same way, with nothing to learn from the judge. Below,
the same with Student's t around the means. MTRAG's answers are turns of few conversations, which
are clusters in a row of their own. --judged keeps what the judge says for the next time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.dataset import evaluate_calls
from rag_eval_integrations.evaluations import _corrected
from rag_eval_integrations.evaluations._corrected import LabelledCall, corrected
from rag_eval_integrations.records.mean import t_975

Rows = list[LabelledCall]
Ends = tuple[float, float]
HEADINGS = " calls   people   judge   covers   width       x    alone   width"


class Answer(NamedTuple):
    """An answer with what people say of it."""

    call: RagCall
    adherent: bool
    conversation: str


def ragtruth(data: Path) -> Iterator[Answer]:
    """Yield RAGTruth's answers to questions."""
    for row in lines_of(data / "ragtruth" / "qa_train.jsonl.gz"):
        passages = re.split(r"(?:^|\n)passage \d+:", row["passages"])
        documents = [passage for passage in passages if passage.strip()]
        call = RagCall(row["question"], documents, row["response"], id=row["id"])
        yield Answer(call, not row["hallucinated"], row["id"])


def mtrag(data: Path) -> Iterator[Answer]:
    """Yield MTRAG's turns that people have rated."""
    for row in lines_of(data / "answers" / "mtrag_human.jsonl.gz"):
        roles = {"user": "user", "agent": "assistant"}
        turns = [{"role": roles[turn["speaker"]], "content": turn["text"]} for turn in row["input"]]
        call = RagCall(
            turns[-1]["content"], [each["text"] for each in row["contexts"]], row["response"],
            id=f"{row['task_id']} {row['model']}", history=turns[:-1],
        )  # fmt: skip
        adherent = sum(mark >= 3 for mark in row["human"]["faithfulness"]) >= 2
        yield Answer(call, adherent, row["task_id"].partition("<")[0])


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def judged(answers: Iterable[Answer], workers: int) -> Rows:
    """Let the default judge label the answers; those without its adherence are left out."""
    calls = list(answers)
    evaluator = RagEvaluator("embedded")
    stream = evaluate_calls([answer.call for answer in calls], evaluator, workers=workers)
    rows = []
    for answer, evaluation in zip(calls, stream.collect_sync(), strict=True):
        value = evaluation.scores["adherence"].value
        if value is not None:
            rows.append(LabelledCall(value, float(answer.adherent), answer.conversation))
    return rows


def ends(judge: float, calls: int, labelled: Rows) -> Ends:
    """Return the interval of the corrected mean."""
    interval = corrected(judge, calls, labelled).interval
    return interval.low, interval.high


def student(judge: float, calls: int, labelled: Rows) -> Ends:
    """Return Student's t around the corrected mean, by the same variance."""
    mean, n = corrected(judge, calls, labelled).mean, len(labelled)
    units = _corrected._units(labelled)
    effective = n * n / sum(unit.n**2 for unit in units)
    half = t_975(effective - 1) * math.sqrt(_corrected._variance(units, judge) * (1 - n / calls))
    return max(0.0, mean - half), min(1.0, mean + half)


def line(name: str, rows: Rows, labels: int, draws: int, method: Callable[..., Ends]) -> str:
    """Say how often intervals cover the people's mean, and how wide they are."""
    people, judge = fmean(row.people for row in rows), fmean(row.judge for row in rows)
    unaided = [row._replace(judge=0.0) for row in rows]
    cells = []
    for judge_mean, population in ((judge, rows), (0.0, unaided)):
        generator = random.Random(20230111)
        intervals = [
            method(judge_mean, len(rows), generator.sample(population, labels))
            for _ in range(draws)
        ]
        covered = sum(low <= people <= high for low, high in intervals)
        cells.append((covered / draws, fmean(high - low for low, high in intervals)))
    (covers, width), (alone, alone_width) = cells
    return (
        f"{name:34}{len(rows):6,}{people:9.3f}{judge:8.3f}{covers:9.1%}{width:8.3f}"
        f"{width / alone_width:8.3f}{alone:9.1%}{alone_width:8.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--judged", type=Path, help="file for what the judge says")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--draws", type=int, default=1_000)
    given = parser.parse_args()
    if given.judged is not None and given.judged.exists():
        read = json.loads(given.judged.read_text())
    else:
        sets = {"RAGTruth QA": ragtruth, "MTRAG, human": mtrag}
        read = {name: judged(of(given.data), given.workers) for name, of in sets.items()}
        if given.judged is not None:
            given.judged.write_text(json.dumps(read))
    sets = {}
    for name, judged_rows in read.items():
        rows = [LabelledCall(*row) for row in judged_rows]
        sets[name] = [row._replace(conversation=place) for place, row in enumerate(rows)]
        if len({row.conversation for row in rows}) < len(rows):
            sets[f"{name}, by conversation"] = rows
    for title, method in (("the interval", ends), ("Student's t, for comparison", student)):
        print(f"{title:34}{HEADINGS}")
        for name, rows in sets.items():
            print(line(name, rows, given.labels, given.draws, method), flush=True)


if __name__ == "__main__":
    main()
