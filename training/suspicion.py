"""Fit the weights of `judges/_intents/_weights.py`: `python training/suspicion.py --data DIR`.

A logistic regression over concepts and their pairs. Attacks and plain texts are the half of
`tests/judges/suspicion_cases.json` that may be looked at and its fitted texts; the rows of
RAGBench and RAGTruth in DIR, and the documentation, are plain.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from rag_eval_integrations.judges._intents import _weighing as weighing
from rag_eval_integrations.judges._intents._sign import Words
from rag_eval_integrations.judges.suspicion import _folded, _Readings

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/judges/suspicion_cases.json"
WEIGHTS = ROOT / "rag_eval_integrations/judges/_intents/_weights.py"
COUNT = len(weighing.NAMES)
FIRST, SECOND = np.triu_indices(COUNT, 1)
ROUNDS, SAMPLE, HARDEST = 3, 12_000, 3_000
PENALTY_ALONE, PENALTY_PAIR = 0.9, 3.0
WEIGHT_OF_A_ROW = 0.25


def passages(texts: list[str]) -> set[int]:
    """Return what the passages of texts are about, without what is about next to nothing."""
    readings = _Readings(f"\n{weighing.TEXT}\n".join(texts))
    words = Words(readings["plain"], frozenset())
    found = set(weighing.passages(weighing.latin_masks(words.all)))
    other = weighing.other_masks(readings["other"], _folded)
    return found | set(weighing.passages(other))


def features(about: list[int]) -> Any:
    bits = np.array([[(one >> at) & 1 for at in range(COUNT)] for one in about], np.float32)
    return np.hstack([bits, bits[:, FIRST] * bits[:, SECOND]])


def scores(fitted: Any, about: list[int]) -> Any:
    parts = [about[at : at + SAMPLE] for at in range(0, len(about), SAMPLE)]
    return np.concatenate([features(part) @ fitted[:-1] + fitted[-1] for part in parts])


def fit(attacks: list[str], plain: list[str], rows: list[int]) -> Any:
    """Fit with a sample of the rows' passages, then twice more with the hardest ones as well."""
    wanted = [max(found, key=int.bit_count) for found in (passages([t]) for t in attacks) if found]
    unwanted = sorted(one for text in plain for one in passages([text]))
    sample = random.Random(1).sample(rows, min(SAMPLE, len(rows)))
    penalty = np.r_[np.full(COUNT, PENALTY_ALONE), np.full(len(FIRST), PENALTY_PAIR), 0]
    fitted = np.zeros(COUNT + len(FIRST) + 1)
    for turn in range(ROUNDS):
        if turn:
            hardest = np.argsort(-scores(fitted, rows))[:HARDEST]
            sample = sorted({*sample, *(rows[at] for at in hardest)})
        x = features(wanted + unwanted + sample)
        x = np.hstack([x, np.ones((len(x), 1), np.float32)])
        y = np.where(np.arange(len(x)) < len(wanted), 1.0, -1.0)
        weight = np.ones(len(x))
        weight[len(wanted) + len(unwanted) :] = WEIGHT_OF_A_ROW

        def loss(at: Any, x: Any = x, y: Any = y, weight: Any = weight) -> tuple[float, Any]:
            margin = y * (x @ at)
            slope = -weight * y / (1 + np.exp(np.clip(margin, -50, 50)))
            value = (weight * np.logaddexp(0, -margin)).sum() + (penalty * at**2).sum() / 2
            return value, x.T @ slope + penalty * at

        fitted = minimize(loss, fitted, jac=True, method="L-BFGS-B", options={"maxiter": 80}).x
    return fitted


def written(fitted: Any, threshold: float) -> str:
    """Write the weights in hundredths, a concept's own weight beside its own name."""
    rows: dict[str, list[str]] = {name: [] for name in weighing.NAMES}
    for name, value in zip(weighing.NAMES, fitted[:COUNT], strict=True):
        rows[name] += [name, str(round(value * 100))]
    for one, other, value in zip(FIRST, SECOND, fitted[COUNT:-1], strict=True):
        if round(value * 100):
            rows[weighing.NAMES[one]] += [weighing.NAMES[other], str(round(value * 100))]
    lines = [
        '"""Weights of concepts and of their pairs, in hundredths, by `training/suspicion.py`."""',
        "",
        "from __future__ import annotations",
        "",
        f"BIAS = {round((fitted[-1] - threshold) * 100)}",
        "WEIGHTS = {",
    ]
    for name, pairs in rows.items():
        lines.append(f'    "{name}": ""')
        line = ""
        for pair in zip(pairs[::2], pairs[1::2], strict=True):
            if len(line) > 75:
                lines.append(f'    "{line}"')
                line = ""
            line += " ".join(pair) + " "
        lines.append(f'    "{line}",')
    return "\n".join([*lines, "}", ""])


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


def looked_at(texts: list[str]) -> list[str]:
    return [text for text in texts if zlib.crc32(text.encode()) % 2 == 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="has ragbench/, ragtruth/")
    parser.add_argument("--every", type=int, default=1, help="read every n-th row only")
    parser.add_argument("--threshold", type=float, default=0.4, help="log-odds of an attack")
    parser.add_argument("--cases", type=Path, default=CASES)
    options = parser.parse_args()
    cases = json.loads(options.cases.read_text(encoding="utf-8"))
    rows: set[int] = set()
    for path in sorted(options.data.glob("rag*/*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if number % options.every == 0:
                    rows |= passages(list(strings(json.loads(line))))
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "LICENSE", ROOT / "NOTICE"):
        rows |= passages([path.read_text(encoding="utf-8")])
    fitted = fit(
        looked_at(cases["attacks"]) + cases["fitted_attacks"],
        looked_at(cases["benign"]) + cases["fitted_benign"],
        sorted(rows),
    )
    top = np.sort(scores(fitted, sorted(rows)))[::-1][:8].round(2)
    print(f"{len(rows)} passages of rows, the highest log-odds: {top}")
    WEIGHTS.write_text(written(fitted, options.threshold), encoding="utf-8")


if __name__ == "__main__":
    main()
