"""Fit the weights of `judges/_intents/_weights.py`: `python training/suspicion.py --data DIR`.

A logistic regression over concepts and their pairs. Attacks and plain texts are those of
`tests/judges/suspicion_cases.json`, without the half that is kept aside; the rows of RAGBench,
RAGTruth and SummEval in DIR, and this documentation, are plain.

Rows that share a document are one group. Groups are fitted in five folds; every row is weighed by
weights that no row of its fold was fitted with. The cut-off is where at most one row of RAGBench in
a thousand is above it. The weights that are written are then fitted on all of it, so the rates that
are printed as held out are those to expect. Two runs write the same file, as long as cases and
pages are the same.
"""

from __future__ import annotations

import argparse
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from rag_eval_integrations.judges._intents._weighing import NAMES
from rag_eval_integrations.judges.suspicion import concepts_in

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/judges/suspicion_cases.json"
WEIGHTS = ROOT / "rag_eval_integrations/judges/_intents/_weights.py"
COUNT = len(NAMES)
FIRST, SECOND = np.triu_indices(COUNT, 1)
WIDTH = COUNT + len(FIRST) + 1  # the last is the constant
PLACE = np.zeros((COUNT, COUNT), int)
PLACE[FIRST, SECOND] = COUNT + np.arange(len(FIRST))
FOLDS, ROUNDS, STEPS = 5, 3, 60
PENALTY_ALONE, PENALTY_PAIR = 0.9, 3.0
ROWS_ABOVE = 0.001

Bag = Any  # the numbers of the passages of a text


def features(about: Iterable[int]) -> Any:
    """Return one row per passage: its concepts, their pairs, and a constant."""
    columns: list[int] = []
    ends = [0]
    for one in about:
        own = [at for at in range(COUNT) if one >> at & 1]
        columns += own
        for at, first in enumerate(own):
            columns += PLACE[first, own[at + 1 :]].tolist()
        columns.append(WIDTH - 1)
        ends.append(len(columns))
    return csr_matrix((np.ones(len(columns)), columns, ends), (len(ends) - 1, WIDTH))


def fit(x: Any, attacks: Sequence[Bag], plain: Sequence[Bag]) -> Any:
    """Fit with that passage of every attack which has most concepts, then which weighs most."""
    unwanted = np.unique(np.concatenate([bag for bag in plain if len(bag)]))
    penalty = np.r_[np.full(COUNT, PENALTY_ALONE), np.full(len(FIRST), PENALTY_PAIR), 0]
    concepts = x[:, :COUNT].sum(axis=1).A1
    fitted = np.zeros(WIDTH)
    for turn in range(ROUNDS):
        scores = x @ fitted if turn else concepts
        wanted = np.array([bag[np.argmax(scores[bag])] for bag in attacks if len(bag)])
        of = x[np.r_[wanted, unwanted]]
        y = np.r_[np.ones(len(wanted)), -np.ones(len(unwanted))]

        def loss(at: Any, of: Any = of, y: Any = y) -> tuple[float, Any]:
            margin = y * (of @ at)
            slope = -y / (1 + np.exp(np.clip(margin, -50, 50)))
            value = np.logaddexp(0, -margin).sum() + (penalty * at**2).sum() / 2
            return value, of.T @ slope + penalty * at

        fitted = minimize(loss, fitted, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return fitted


def highest(scores: Any, bags: Iterable[Bag]) -> Any:
    return np.array([scores[bag].max() if len(bag) else -np.inf for bag in bags])


def cross_fitted(x: Any, bags: dict[str, list[Bag]], folds: dict[str, Any]) -> dict[str, Any]:
    """Return the highest score of every text by weights that were not fitted with its fold."""
    found = {kind: np.full(len(of), -np.inf) for kind, of in bags.items()}
    for fold in range(FOLDS):
        others = {
            kind: [bag for bag, its in zip(of, folds[kind], strict=True) if its != fold]
            for kind, of in bags.items()
        }
        scores = x @ fit(x, others["attacks"], others["benign"] + others["rows"])
        for kind, of in bags.items():
            held = folds[kind] == fold
            found[kind][held] = highest(scores, of)[held]
    return found


def rows_of(data: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the set of every row, its texts, and the documents that it may share."""
    for path in sorted(data.glob("*/*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                if "documents" in row:
                    yield "ragbench", [row["question"], row["response"]], row["documents"]
                elif "passages" in row:
                    yield "ragtruth", [row["question"], row["response"]], [row["passages"]]
                elif "system_output" in row:
                    yield "summeval", [row["system_output"]], [row["source"]]


def fold_of_groups(documents: Sequence[Iterable[str]]) -> Any:
    """Return a fold for every row, the same for rows that share a document."""
    group = list(range(len(documents)))

    def first_of(row: int) -> int:
        while group[row] != row:
            group[row] = group[group[row]]
            row = group[row]
        return row

    seen: dict[str, int] = {}
    for row, its in enumerate(documents):
        for document in its:
            group[first_of(row)] = first_of(seen.setdefault(document, row))
    firsts = [first_of(row) for row in range(len(documents))]
    rows_in = [0] * FOLDS
    fold = {}
    for first, rows in Counter(firsts).most_common():
        fold[first] = int(np.argmin(rows_in))
        rows_in[fold[first]] += rows
    return np.array([fold[first] for first in firsts])


def written(fitted: Any, cut_off: float) -> str:
    """Write the weights in hundredths, a concept's own weight beside its own name."""
    rows: dict[str, list[str]] = {name: [] for name in NAMES}
    for name, value in zip(NAMES, fitted[:COUNT], strict=True):
        rows[name].append(f"{name} {round(value * 100)}")
    for one, other, value in zip(FIRST, SECOND, fitted[COUNT:-1], strict=True):
        if round(value * 100):
            rows[NAMES[one]].append(f"{NAMES[other]} {round(value * 100)}")
    lines = [
        '"""Weights of concepts and of their pairs, in hundredths, by `training/suspicion.py`."""',
        "",
        "from __future__ import annotations",
        "",
        f"BIAS = {round((fitted[-1] - cut_off) * 100)}",
        "WEIGHTS = {",
    ]
    for name, pairs in rows.items():
        texts = [""]
        for pair in pairs:
            if len(texts[-1]) + len(pair) > 80:
                texts.append("")
            texts[-1] += f"{pair} "
        if len(texts) == 1:
            lines.append(f'    "{name}": "{texts[0]}",')
        else:
            lines += [f'    "{name}": ""', *(f'    "{text}"' for text in texts)]
            lines[-1] += ","
    return "\n".join([*lines, "}", ""])


def looked_at(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if zlib.crc32(text.encode()) % 2 == 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="has ragbench/, ragtruth/, geval/")
    data = parser.parse_args().data
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    rows = list(rows_of(data))
    pages = (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "LICENSE", ROOT / "NOTICE")
    texts = {
        "attacks": [[text] for text in looked_at(cases["attacks"]) + cases["fitted_attacks"]],
        "benign": [[text] for text in looked_at(cases["benign"]) + cases["fitted_benign"]],
        "rows": [own + documents for _, own, documents in rows]
        + [[path.read_text(encoding="utf-8")] for path in sorted(pages)],
    }
    numbers: dict[int, int] = {}
    bags = {
        kind: [
            np.array(
                [numbers.setdefault(one, len(numbers)) for one in sorted(concepts_in(its))], int
            )
            for its in of
        ]
        for kind, of in texts.items()
    }
    x = features(numbers)
    folds = {kind: np.arange(len(of)) % FOLDS for kind, of in bags.items()}
    folds["rows"][: len(rows)] = fold_of_groups([documents for _, _, documents in rows])
    held = cross_fitted(x, bags, folds)
    of_rows = held["rows"][: len(rows)]
    names = np.array([name for name, _, _ in rows])
    of_ragbench = np.sort(of_rows[names == "ragbench"])[::-1]
    cut_off = of_ragbench[int(len(of_ragbench) * ROWS_ABOVE)]
    print(f"{len(numbers)} kinds of passages; held out, by the weights alone:")
    for kind in ("attacks", "benign"):
        print(f"  {kind}: {np.mean(held[kind] > cut_off):.1%} of {len(held[kind])}")
    for name in dict.fromkeys(names):
        above = of_rows[names == name] > cut_off
        print(f"  rows of {name}: {above.sum()} of {len(above)}")
    print(f"  pages: {(held['rows'][len(rows) :] > cut_off).sum()} of {len(pages)}")
    fitted = fit(x, bags["attacks"], bags["benign"] + bags["rows"])
    WEIGHTS.write_text(written(fitted, cut_off), encoding="utf-8")


if __name__ == "__main__":
    main()
