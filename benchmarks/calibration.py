"""What a calibration of the embedded judge is worth on rows that it was not fitted to.

    python benchmarks/calibration.py --data ../shared/data

For each RAGBench set: calibrated on half of its questions and measured on the other half, and
calibrated on the other four sets and measured on the whole set. Prints the root mean squared error
and the calibration error of the estimates as they are, and of the calibrated ones on the same rows.
The shipped coefficients have seen these rows, so that the estimates as they are look better than on
a user's own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.agreement import Gold, Pair, calibrate, match
from rag_eval_integrations.agreement.calibrating import CALIBRATED
from rag_eval_integrations.agreement.figures import calibration_error
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.judges.calibration import Calibration
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.sentences import Punkt


def read(data: Path) -> dict[str, list[Pair]]:
    """Label all rows with the embedded judge; return them with gold, by set."""
    evaluator, trace, splitter = RagEvaluator(), Trace(), Punkt()
    by_set: dict[str, list[Pair]] = defaultdict(list)
    for path in sorted((data / "ragbench").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            labelled = [labelled_from(json.loads(line), splitter) for line in lines]
        predicted = [evaluator.evaluate_sync(row.call.call) for row in labelled]
        gold = [Gold(score_labelled(row, [trace])) for row in labelled]
        by_set[path.name.split("_")[0]] += match(predicted, gold).pairs
    return dict(by_set)


def errors(
    pairs: Sequence[Pair], name: str, calibration: Calibration | None
) -> tuple[float, float]:
    """Return RMSE and calibration error of a score's estimates, mapped by a calibration."""
    items = []
    for pair in pairs:
        score, gold = pair.predicted.scores.get(name), pair.gold.scores[name].value
        if score is None or score.estimate is None or gold is None:
            continue
        estimate = score.estimate.value
        if calibration is not None:
            estimate = calibration.judges[0].scores[name](estimate)
        items.append((estimate, gold))
    squares = math.fsum([(estimate - gold) ** 2 for estimate, gold in items])
    scores, gold = (np.array(column) for column in zip(*items, strict=True))
    return math.sqrt(squares / len(items)), calibration_error(scores, gold)


def compared(test: Sequence[Pair], train: Sequence[Pair]) -> dict[str, tuple[str, list[float]]]:
    """Calibrate on some rows; return, by score, the map and the errors before and after."""
    calibration = calibrate(train, name="benchmark")
    return {
        name: (
            calibration.judges[0].scores[name].method,
            [*errors(test, name, None), *errors(test, name, calibration)],
        )
        for name in CALIBRATED
    }


def main() -> None:
    """Print both tables, and the means over sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    by_set = read(parser.parse_args().data)
    for title, way in (("half of the set", True), ("the other four sets", False)):
        print(f"\nCalibrated on {title}: RMSE, calibration error; before → after")
        sums: dict[str, list[list[float]]] = defaultdict(list)
        for name, pairs in by_set.items():
            if way:
                digests = [sha256(pair.predicted.question.encode()).digest() for pair in pairs]
                places = {digest: at for at, digest in enumerate(sorted(set(digests)))}
                side = [places[digest] % 2 for digest in digests]
                test = [pair for pair, of in zip(pairs, side, strict=True) if of]
                train = [pair for pair, of in zip(pairs, side, strict=True) if not of]
            else:
                test = pairs
                train = [pair for other, own in by_set.items() if other != name for pair in own]
            for score, (method, figures) in compared(test, train).items():
                sums[score].append(figures)
                print(f"  {name:11}{score:21}{line(figures)}  {method}")
        for score, of_sets in sums.items():
            columns = zip(*of_sets, strict=True)
            mean = [math.fsum(column) / len(of_sets) for column in columns]
            print(f"  {'mean':11}{score:21}{line(mean)}")


def line(figures: Sequence[float]) -> str:
    """Write the four errors of a score."""
    rmse, error, after, error_after = figures
    return f"{rmse:.3f} → {after:.3f}   {error:.3f} → {error_after:.3f}"


if __name__ == "__main__":
    main()
