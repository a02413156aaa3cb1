"""Accuracy of the measures of words beside people's verdicts, per set and system.

    uv run python benchmarks/correctness.py --data ../shared/data/answers

EVOUNA's answers with a verdict: one counts as right from .5; several references are separated by
`/`, and a null answer is empty. Intervals are Wilson's, 95 %. The baseline, whether a reference is
contained, and what a constant reaches stand beside.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from math import sqrt
from pathlib import Path

from rag_eval_integrations.metrics.correctness import best_reference, contains, token_recall


def interval(right: int, count: int) -> tuple[float, float]:
    """Wilson's interval of a share."""
    share, z = right / count, 1.959964
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count**2)) / (1 + z * z / count)
    return middle - half, middle + half


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    data: Path = parser.parse_args().data
    verdicts: dict[tuple[str, str], list[tuple[bool, bool, bool]]] = defaultdict(list)
    with gzip.open(data / "evouna.jsonl.gz", "rt") as file:
        for line in file:
            row = json.loads(line)
            if row["correct"] is None:
                continue
            references = [part.strip() for part in row["reference"].split("/") if part.strip()]
            response = row["response"] or ""
            best = references[best_reference(references, response)]
            verdicts[row["set"], row["system"]].append((
                row["correct"],
                token_recall(best, response) >= 0.5,
                any(contains(reference, response) for reference in references),
            ))  # fmt: skip
    for (name, system), rows in verdicts.items():
        recall = sum(correct == said for correct, said, _ in rows)
        contained = sum(correct == held for correct, _, held in rows)
        low, high = interval(recall, len(rows))
        always = sum(correct for correct, _, _ in rows) / len(rows)
        print(
            f"{name:9} {system:8} token recall {recall / len(rows):.4f} [{low:.3f}, {high:.3f}]  "
            f"contained {contained / len(rows):.4f}  constant {max(always, 1 - always):.4f}"
        )


if __name__ == "__main__":
    main()
