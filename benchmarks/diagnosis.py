"""How often `diagnose` names each pattern: on gold labels, and on calls with exchanged documents.

    python benchmarks/diagnosis.py [--data ../shared/data] [--seed 7]

A pattern is worth naming if it is rare in calls that nothing was done to, and common in calls that
were spoilt. The first table scores gold labels, the second the embedded judge's, on the rows as
they are and with the documents of another question of the same data set. *Kept aside* is the half
of the rows, by a hash of the question, on which no cut-off and no gate was chosen.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from embedded_judge import read, sentencized

from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.judges.embedded.judge import label_call
from rag_eval_integrations.metrics import Trace, diagnose
from rag_eval_integrations.metrics.trace.formulas import Pattern
from rag_eval_integrations.records import By, Score
from rag_eval_integrations.sentences import Punkt

PATTERNS: tuple[str, ...] = get_args(Pattern)
Named = list[tuple[str, bool, set[str]]]
"""Data set of a row, whether it was kept aside, and the patterns named."""


def kept_aside(row: dict) -> bool:
    digest = hashlib.sha256((row["_subset"] + row["question"]).encode()).digest()
    return digest[0] % 2 == 1


def exchanged(rows: Sequence[dict], seed: int) -> list[dict]:
    """Give every row the documents of another question of its data set."""
    chosen = random.Random(seed)
    of_set: dict[str, list[dict]] = {}
    for row in rows:
        of_set.setdefault(row["_subset"], []).append(row)
    with_others = []
    for row in rows:
        other = row
        while other["question"] == row["question"] or other["documents"] == row["documents"]:
            other = chosen.choice(of_set[row["_subset"]])
        documents = {name: other[name] for name in ("documents", "documents_sentences")}
        with_others.append({**row, **documents})
    return with_others


def patterns(scores: Iterable[Score]) -> set[str]:
    by_name = {score.name: score for score in scores}
    return {diagnosis.pattern for diagnosis in diagnose(by_name)}


def of_gold(rows: Sequence[dict]) -> Named:
    trace, splitter = Trace(), Punkt()
    return [
        (
            row["_subset"],
            kept_aside(row),
            patterns(score_labelled(labelled_from(row, splitter), [trace]).scores.values()),
        )
        for row in rows
    ]


def of_judge(rows: Sequence[dict]) -> Named:
    trace = Trace()
    named = []
    for row in rows:
        call = sentencized(row)
        named.append(
            (row["_subset"], kept_aside(row), patterns(trace.score(call, label_call(call), By())))
        )
    return named


def table(title: str, named: Named) -> None:
    print(f"\n{title}\n  {'':28}{'rows':>6}" + "".join(f"{name[:16]:>18}" for name in PATTERNS))
    groups: dict[str, Named] = {}
    for row in sorted(named, key=lambda row: row[0]):
        groups.setdefault(row[0], []).append(row)
    groups["pooled"] = named
    groups["pooled, kept aside"] = [row for row in named if row[1]]
    for name, rows in groups.items():
        counts = Counter(pattern for *_, of_row in rows for pattern in of_row)
        shares = "".join(f"{counts[pattern] / len(rows):>18.3f}" for pattern in PATTERNS)
        print(f"  {name:28}{len(rows):6}{shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seed", type=int, default=7, help="random seed of the exchange")
    arguments = parser.parse_args()
    rows = read(arguments.data)
    table("Gold labels", of_gold(rows))
    table("Embedded judge, rows as they are", of_judge(rows))
    table(
        "Embedded judge, documents of another question", of_judge(exchanged(rows, arguments.seed))
    )


if __name__ == "__main__":
    main()
