"""False alarms of `compare`: how often equal runs are told apart, by the shape of the calls.

python benchmarks/null_comparisons.py [--samples N]

In every design the two runs have no true difference. `excludes 0` is the share of samples whose
95 % interval does not hold 0 (nominal: 5 %), `worse` that of samples which fail the gate at a
margin of 0 (nominal: 2.5 %) or of .02, and `p < .05` that of the sign flips. Of 400 samples, a
share near 5 % has a standard error of 1.1 %, one near 2.5 % of .8 %; the last line says what lies
above the nominal share by more than two of them.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable

from rag_eval_integrations.evaluations._paired import Values, paired

Sampler = Callable[[random.Random, list[int]], list[Values]]
"""Makes the pairs of conversations of these lengths, one after the other."""


def binary(share: float, redrawn: float, *, together: bool = False) -> Sampler:
    """Make pairs of 0/1 scores; a share of calls, or of conversations, has its second anew."""

    def sample(generator: random.Random, lengths: list[int]) -> list[Values]:
        pairs: list[Values] = []
        for length in lengths:
            whole = generator.random() < redrawn
            for _ in range(length):
                before = float(generator.random() < share)
                anew = whole if together else generator.random() < redrawn
                pairs.append((before, float(generator.random() < share) if anew else before))
        return pairs

    return sample


def continuous(changed: float = 1.0, between: float = 0.15, within: float = 0.1) -> Sampler:
    """Make pairs of which a share differs, by two normal effects: conversation's and call's."""

    def sample(generator: random.Random, lengths: list[int]) -> list[Values]:
        pairs: list[Values] = []
        for length in lengths:
            shared = generator.gauss(0, between)
            for _ in range(length):
                before = generator.uniform(0.4, 0.6)
                change = shared + generator.gauss(0, within)
                after = before + (change if generator.random() < changed else 0)
                pairs.append((before, min(1.0, max(0.0, after))))
        return pairs

    return sample


def zipf(conversations: int, calls: int) -> list[int]:
    """Make lengths that fall as 1, 1/2, 1/3 and so on."""
    whole = sum(1 / rank for rank in range(1, conversations + 1))
    return [max(1, round(calls / rank / whole)) for rank in range(1, conversations + 1)]


DESIGNS: dict[str, tuple[Sampler, list[int]]] = {
    **{f"0/1, .8, n = {n}": (binary(0.8, 0.2), [1] * n) for n in (20, 100, 200)},
    **{f"0/1, .97, n = {n}": (binary(0.97, 1.0), [1] * n) for n in (20, 100, 200)},
    **{f"continuous, n = {n}": (continuous(), [1] * n) for n in (20, 100)},
    **{f"continuous, 7 % change, n = {n}": (continuous(0.07), [1] * n) for n in (20, 100)},
    "12 conversations of 5": (continuous(), [5] * 12),
    "12 conversations of 5, 0/1": (binary(0.8, 0.2), [5] * 12),
    "20 conversations of 10, 0/1": (binary(0.8, 0.2), [10] * 20),
    "12 conversations of 20": (continuous(), [20] * 12),
    "12 conversations of 20, 0/1": (binary(0.8, 0.2), [20] * 12),
    "half in one of 11": (continuous(), [50] + [5] * 10),
    "half in one of 11, no effect": (continuous(between=0), [50] + [5] * 10),
    "half in one of 61": (continuous(), [120] + [2] * 60),
    "nine tenths in one of 11": (continuous(), [180] + [2] * 10),
    "a quarter in one of 76": (continuous(), [25] + [1] * 75),
    "Zipf, 15 conversations": (continuous(), zipf(15, 150)),
    "Zipf, 60 conversations": (continuous(), zipf(60, 300)),
    "Zipf, 60 conversations, 0/1": (binary(0.8, 0.3, together=True), zipf(60, 300)),
    "Zipf, 200 conversations": (continuous(), zipf(200, 1_000)),
    "1 to 9 calls, 60 conversations": (continuous(), [1 + place % 9 for place in range(60)]),
}


def shares(name: str, samples: int) -> tuple[float, float, float, float]:
    """Return the shares of samples: excludes 0, worse at 0, worse at .02, p < .05."""
    sample, lengths = DESIGNS[name]
    groups = [place for place, length in enumerate(lengths) for _ in range(length)]
    excluded = worse = worse_by_more = significant = 0
    for number in range(samples):
        pairs = sample(random.Random(f"{name} {number}"), lengths)
        figures = paired({"score": pairs}, groups if max(lengths) > 1 else None)["score"]
        assert figures.interval is not None
        assert figures.p is not None
        low, high = figures.interval.low, figures.interval.high
        excluded += low > 0 or high < 0
        worse += high < 0
        worse_by_more += high < -0.02
        significant += figures.p < 0.05
    return excluded / samples, worse / samples, worse_by_more / samples, significant / samples


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=400)
    samples = parser.parse_args().samples
    headings = ("n", "effective", "excludes 0", "worse", "at .02", "p < .05")
    print(f"{'no true difference':32}" + "".join(f"{heading:>11}" for heading in headings))
    above = []
    for name, (_, lengths) in DESIGNS.items():
        effective = sum(lengths) ** 2 / sum(length**2 for length in lengths)
        of_design = shares(name, samples)
        cells = "".join(f"{share:11.1%}" for share in of_design)
        print(f"{name:32}{sum(lengths):11,}{effective:11.1f}{cells}", flush=True)
        for share, nominal in zip(of_design, (0.05, 0.025), strict=False):
            if share > nominal + 2 * math.sqrt(nominal * (1 - nominal) / samples):
                above.append(f"{name} ({share:.1%} for {nominal:.1%})")
    print(f"above the nominal share by two standard errors: {', '.join(above) or 'none'}")


if __name__ == "__main__":
    main()
