"""Comparison of runs: coverage of the intervals by n and method, and time for 1,000 pairs.

python benchmarks/compare.py [--samples N] [--skip-coverage]
python benchmarks/compare.py --memory 100000

Coverage is the share of simulated samples whose interval holds the true difference; the aim is .95.
Beside it are the methods that `compare` chooses for such samples. Time is that of 1,000 pairs of
four scores.

Memory is that of two files of so many calls whose relevant sentences are all pooled anew.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.evaluations import compare
from rag_eval_integrations.evaluations._paired import Values, paired

Sampler = Callable[[random.Random], Values]


def binary(up: float, down: float) -> tuple[Sampler, float]:
    """Make pairs of 0/1 scores, of which shares rise and fall, and their true difference."""

    def sample(generator: random.Random) -> Values:
        at = generator.random()
        return (0.0, 1.0) if at < up else (1.0, 0.0) if at < up + down else (1.0, 1.0)

    return sample, up - down


def continuous(shift: float, spread: float) -> tuple[Sampler, float]:
    """Make pairs of continuous scores away from the ends of the range."""

    def sample(generator: random.Random) -> Values:
        before = generator.uniform(0.35, 0.65)
        return before, before + shift + generator.uniform(-spread, spread)

    return sample, shift


def inflated(share: float, low: float, high: float) -> tuple[Sampler, float]:
    """Make pairs of which a share changes by a skewed amount, and the rest does not."""

    def sample(generator: random.Random) -> Values:
        if generator.random() >= share:
            return 0.5, 0.5
        return 0.5, 0.5 + low + (high - low) * generator.random() ** 3

    return sample, share * (low + (high - low) / 4)


KINDS = {
    "0/1, 8 % up, 12 % down": binary(0.08, 0.12),
    "0/1, 2 % up, 5 % down": binary(0.02, 0.05),
    "0/1, 20 % down": binary(0.0, 0.2),
    "continuous": continuous(0.05, 0.3),
    "10 % change, skewed": inflated(0.1, 0.0, -0.5),
    "25 % change, skewed": inflated(0.25, 0.0, -0.5),
}
SIZES = (10, 20, 30, 50, 100, 200, 500)


def coverage(sample: Sampler, truth: float, n: int, samples: int) -> tuple[float, str]:
    """Return the coverage of the methods that are used, and their shares."""
    generator = random.Random(n)
    methods: Counter[str] = Counter()
    covered = 0
    for _ in range(samples):
        pairs = [sample(generator) for _ in range(n)]
        interval = paired({"score": pairs})["score"].interval
        assert interval is not None
        methods[interval.method] += 1
        covered += interval.low <= truth <= interval.high
    shares = ", ".join(f"{name} {count / samples:.0%}" for name, count in methods.most_common())
    return covered / samples, shares


def peak(pairs: int) -> None:
    """Print memory and CPU of comparing two files of equal calls whose labels all differ.

    Forty calls with up to forty documents are judged; the rows are theirs with other ids.
    """
    evaluator = RagEvaluator(metrics=["trace", "label_retrieval"])
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.jsonl" for name in ("before", "after")]
        for number, path in enumerate(paths):
            lines = [relabelled(evaluator, size, number) for size in range(1, 41)]
            with path.open("w", encoding="ascii") as file:
                for n in range(pairs):
                    file.write(f"{lines[n % 40].replace('N0', str(n))}\n")
        print(f"{pairs:,} pairs, files of {paths[0].stat().st_size / 1e6:.0f} MB each:", flush=True)
        child = multiprocessing.get_context("spawn").Process(target=compared, args=paths)
        child.start()
        child.join()


def relabelled(evaluator: RagEvaluator, size: int, number: int) -> str:
    """Return the row of a call with so many documents, of which other sentences are relevant."""
    documents = [f"Ferry {n} leaves at nine. It carries forty passengers." for n in range(size)]
    call = RagCall("When does ferry N0 leave?", documents, "Ferry 0 leaves at nine.", id="N0")
    row = evaluator.evaluate_sync(call)
    assert row.labels is not None
    relevant = tuple(f"{n}{'ab'[number]}" for n in range(0, size, 3))
    labels = row.labels.model_copy(update={"all_relevant_sentence_keys": relevant})
    return row.model_copy(update={"labels": labels}).model_dump_json()


def compared(before: Path, after: Path) -> None:
    """Compare two files and print what it took."""
    comparison = compare(before, after)
    assert comparison.pooled.calls == comparison.pairs
    assert comparison.scores["context_relevance"].same_documents
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{most:.0f} MB of memory, the whole process (at most 400), all pooled anew; ", end="")
    print(f"{time.process_time():.0f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", type=int, metavar="PAIRS", help="measure this alone")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--skip-coverage", action="store_true")
    arguments = parser.parse_args()
    if arguments.memory:
        peak(arguments.memory)
        return
    generator, pairs = random.Random(7), 1_000
    scores = {}
    for number in range(4):
        values = [(generator.random(), generator.random()) for _ in range(pairs)]
        scores[f"score {number}"] = values
    started, wall = time.process_time(), time.perf_counter()
    paired(scores)
    ours, wall = time.process_time() - started, time.perf_counter() - wall
    print(f"{pairs:,} pairs, 4 scores: {ours:.2f} s CPU, {wall:.2f} s (at most 2)")
    if arguments.skip_coverage:
        return
    print(f"\n{'coverage of 95 % intervals':28} {'n':>4} {'held':>6}  methods")
    for kind, (sample, truth) in KINDS.items():
        for n in SIZES:
            share, methods = coverage(sample, truth, n, arguments.samples)
            print(f"{kind:28} {n:4} {share:6.3f}  {methods}", flush=True)


if __name__ == "__main__":
    main()
