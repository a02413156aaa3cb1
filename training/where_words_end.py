"""Measure where the embedded judge's words end: AUROC of the calls that it doubts, and of the rest.

    python training/where_words_end.py --data ../shared/data

Every domain is judged by coefficients fitted without it. A pair is a response that is not adherent
and one that is, of the same data set; AUROC is the share of pairs in the right order. Intervals are
of the difference, by 400 resamples of the rows within sets. Needs the `training` group; 3 minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from embedded_training.judges import HeldOut
from embedded_training.rows import Data, read

from rag_eval_integrations.judges.embedded import EmbeddedJudge
from rag_eval_integrations.judges.embedded._doubts import COPIED, SPREAD, doubts, spread
from rag_eval_integrations.judges.embedded._features import call_features
from rag_eval_integrations.judges.embedded._response_features import RESPONSE_FEATURES

RESAMPLES = 400
LIMITS = (0.1, 0.15, 0.2, 0.25, 0.3)
"""Limits of `doubt_spread` that were tried."""
FOUND = RESPONSE_FEATURES.index("found")
SHORT, ALL = 25, 0.99


class Rows:
    """RAGBench's rows: set, gold, held-out P(adherent), and the doubts of each."""

    def __init__(self, path: Path) -> None:
        data = Data(path)
        held = HeldOut(data, data.masks("domain"), adherence_alone=True)
        self.set = data.set[: data.bench]
        self.sets = data.sets
        self.adherent = data.adherent[: data.bench]
        self.probability = held.adherent[: data.bench]
        flags, spreads, plain = [], [], []
        for file in sorted((path / "ragbench").glob("*.jsonl.gz")):
            for row in read(file):
                documents = [[text for _, text in part] for part in row["documents_sentences"]]
                response = [text for _, text in row["response_sentences"]]
                features = call_features(row["question"], documents, response)
                flags.append(doubts(features))
                spreads.append(spread(features))
                length = sum(len(sentence.stems) for sentence in features.overlap.response)
                found = min(one.features[FOUND] for one in features.response)
                plain.append(length <= SHORT and len(response) == 1 and found > ALL)
        self.spread = np.array(spreads)
        self.plain = np.array(plain)
        """Short responses all of whose words are found."""
        self.doubted = {
            name: np.array([name in found for found in flags]) for name in (SPREAD, COPIED)
        }
        self.doubted["either"] = self.doubted[SPREAD] | self.doubted[COPIED]

    def auroc(self, rows: np.ndarray, sets: list[str] | None = None) -> float:
        """Compute the AUROC of `not adherent` over the pairs within sets; NaN without any."""
        won = pairs = 0.0
        for name in sets or self.sets:
            own = rows[self.set[rows] == name]
            good = self.probability[own[self.adherent[own]]]
            bad = self.probability[own[~self.adherent[own]]]
            if len(good) and len(bad):
                gap = bad[:, None] - good[None]
                won += (gap < 0).sum() + (gap == 0).sum() / 2
                pairs += gap.size
        return won / pairs if pairs else float("nan")


def show(rows: Rows, name: str) -> None:
    """Print one kind of doubt: all sets, each set, the interval of the difference."""
    doubted = rows.doubted[name]
    own, rest = np.flatnonzero(doubted), np.flatnonzero(~doubted)
    bad = ~rows.adherent
    print(f"\n{name}: {len(own)} of {len(doubted)} rows ({doubted.mean():.3f})")
    print(f"  not adherent: {bad[own].sum()} ({bad[own].mean():.3f}; rest {bad[rest].mean():.3f})")
    generator = np.random.default_rng(0)
    gaps = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([
            generator.choice(found, len(found))
            for found in (np.flatnonzero(rows.set == one) for one in rows.sets)
        ])  # fmt: skip
        gaps.append(rows.auroc(drawn[doubted[drawn]]) - rows.auroc(drawn[~doubted[drawn]]))
    low, high = np.nanquantile(gaps, [0.025, 0.975])
    print(f"  AUROC {rows.auroc(own):.3f}, of the rest {rows.auroc(rest):.3f}; difference "
          f"{low:+.3f} to {high:+.3f}")  # fmt: skip
    for one in rows.sets:
        mine = own[rows.set[own] == one]
        share = doubted[rows.set == one].mean()
        inside, outside = rows.auroc(own, [one]), rows.auroc(rest, [one])
        print(f"  {one:11} {inside:.3f}, of the rest {outside:.3f}")
        print(f"{'':13} {bad[mine].sum()} not adherent; {share:.2f} of its rows")


def nested(rows: Rows) -> None:
    """Print the limit of `doubt_spread` that is best on four sets, and its worth on the fifth."""
    print("\ndoubt_spread, its limit chosen on the other four sets:")
    for one in rows.sets:
        others = [other for other in rows.sets if other != one]
        split = {
            limit: (np.flatnonzero(rows.spread > limit), np.flatnonzero(rows.spread <= limit))
            for limit in LIMITS
        }
        gap = {limit: rows.auroc(own, others) - rows.auroc(rest, others)
               for limit, (own, rest) in split.items()}  # fmt: skip
        limit = min(gap, key=lambda each: gap[each])
        own, rest = split[limit]
        inside, outside = rows.auroc(own, [one]), rows.auroc(rest, [one])
        print(f"  {one:11} {limit}: {inside:.3f}, of the rest {outside:.3f}")


def main() -> None:
    """Print the figures of docs/judges.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    rows = Rows(parser.parse_args().data)
    for name in rows.doubted:
        show(rows, name)
    nested(rows)
    plain, other = np.flatnonzero(rows.plain), np.flatnonzero(~rows.plain)
    print(f"\nshort, all words found: {rows.auroc(plain):.3f}, of the rest {rows.auroc(other):.3f}")
    low, high = EmbeddedJudge.unsure
    band = (rows.probability >= low) & (rows.probability <= high)
    either = rows.doubted["either"]
    print(f"\nin the band {EmbeddedJudge.unsure}: {band.mean():.3f} of the rows")
    print(f"doubted outside of it: {(either & ~band).mean():.3f}")
    print(f"passed on in all: {(either | band).mean():.3f}")


if __name__ == "__main__":
    main()
