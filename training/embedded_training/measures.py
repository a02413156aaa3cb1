"""Agreement figures for each data set, and their means over the data sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score

from embedded_training.judges import HeldOut
from embedded_training.rows import SCORES, TRUTH, Data
from rag_eval_integrations.judges.embedded._features import RESPONSE_FEATURES
from rag_eval_integrations.judges.embedded.judge import SPREAD, SPREAD_LIMIT, EmbeddedJudge

BINS = 10


def before(own: np.ndarray, other: np.ndarray) -> float:
    """Compute the AUROC of a row's own value against another's."""
    return float(roc_auc_score(np.repeat([1, 0], len(own)), np.concatenate([own, other])))


def rmse(a: np.ndarray, b: np.ndarray | float) -> float:
    """Compute the root mean square of the differences."""
    return float(np.sqrt(np.mean((a - b) ** 2)))


def balanced_accuracy(gold: np.ndarray, said: np.ndarray) -> float:
    """Compute the mean of the hit rates on both classes."""
    return float((said[gold].mean() + (~said[~gold]).mean()) / 2)


def bins(probability: np.ndarray, gold: np.ndarray) -> list[tuple[float, float, int]]:
    """Compute mean probability, true share and size of each tenth of the sorted items."""
    order = np.argsort(probability, kind="stable")
    return [
        (float(probability[part].mean()), float(gold[part].mean()), len(part))
        for part in np.array_split(order, BINS)
    ]


def calibration_error(probability: np.ndarray, gold: np.ndarray) -> float:
    """Compute the mean distance of probability and frequency, over tenths of equal size."""
    parts = bins(probability, gold)
    return sum(abs(p - share) * size for p, share, size in parts) / len(gold)


def show(
    sets: Sequence[str], of_row: np.ndarray, name: str, measure: Callable[[np.ndarray], float]
) -> float:
    """Print one measure for each data set, and the mean over the sets, which is returned."""
    values = [measure(of_row == one) for one in sets]
    print(f"  {name:38}" + "".join(f"{v:12.3f}" for v in values) + f"{np.mean(values):12.3f}")
    return float(np.mean(values))


def table(data: Data, title: str, held_out: HeldOut) -> None:
    """Print one cross-validation."""
    print(f"\n{title}\n  {'':38}" + "".join(f"{name:>12}" for name in [*data.sets, "mean"]))
    bad, of_row, of_bench = ~data.adherent, data.set, data.set[: data.bench]

    def line(name: str, measure: Callable[[np.ndarray], float], of: np.ndarray = of_row) -> None:
        show(data.sets, of, name, measure)

    line("AUROC not adherent", lambda m: roc_auc_score(bad[m], -held_out.adherent[m]))
    line("  response length", lambda m: roc_auc_score(bad[m], data.length[m]))
    line(
        "calibration error of adherent", lambda m: calibration_error(held_out.adherent[m], ~bad[m])
    )
    for at, name in enumerate(SCORES):
        for kind, values in (
            (f"RMSE {name}", held_out.calibrated),
            ("  constant (mean of the others)", held_out.constant),
        ):
            line(kind, lambda m, v=values, at=at: rmse(v[m, at], data.gold[m, at]), of_bench)
        z = (data.gold[:, at] - held_out.calibrated[:, at]) / held_out.error[:, at]
        line("  size of (gold - score) / its error", lambda m, z=z: rmse(z[m], 0), of_bench)
        line("  gold within 1.96 errors", lambda m, z=z: np.mean(np.abs(z[m]) < 1.96), of_bench)
    own = data.documents.mean(held_out.relevant), data.documents.mean(held_out.alone)
    for name, p in held_out.swapped.items():
        other = data.documents.mean(p[:, 0])
        line(f"mean relevance, {name}", lambda m, v=other: np.mean(v[m]), of_bench)
        line("  own before it", lambda m, v=other: before(own[0][m], v[m]), of_bench)
    for name, closed in held_out.off_topic.items():
        line(f"off topic, {name}", lambda m, v=closed: np.mean(v[m]), of_bench)
    other = data.documents.mean(held_out.swapped["foreign_question"][:, 1])
    line("own before foreign_question, alone", lambda m: before(own[1][m], other[m]), of_bench)
    for name, gold, p, part in (
        ("relevant", data.relevant, held_out.relevant, data.documents),
        ("utilized", data.utilized, held_out.utilized, data.documents),
        ("relevant (no response)", data.relevant, held_out.alone, data.documents),
        ("supported", data.supported, held_out.supported, data.response),
    ):
        own = of_row[part.row]
        line(f"AUROC {name} sentence", lambda m, g=gold, p=p: roc_auc_score(g[m], p[m]), own)
        if name != "supported":
            cuts = nested_cuts(data, gold, p, own)
            values = [f1_score(gold[own == s], p[own == s] >= cuts[s]) for s in data.sets]
            print(f"  {f'F1 {name}, threshold of other sets':38}"
                  + "".join(f"{v:12.3f}" for v in [*values, np.mean(values)]))  # fmt: skip
    pooled = of_row != TRUTH
    print(f"  calibration error, {len(data.sets)} sets pooled: "
          f"{calibration_error(held_out.adherent[pooled], data.adherent[pooled]):.3f}")  # fmt: skip
    flags(data, held_out)
    doubts(data, held_out)
    truth = of_row == TRUTH
    sentences = truth[data.response.row]
    print(
        "  RAGTruth (human labels): AUROC of hallucinated responses "
        f"{roc_auc_score(bad[truth], -held_out.adherent[truth]):.3f}, of unsupported sentences "
        f"{roc_auc_score(data.supported[sentences], held_out.supported[sentences]):.3f}"
    )


GRID = np.arange(0.1, 0.7, 0.025)
HIGH = np.arange(0.5, 0.995, 0.005)


def nested_cuts(data: Data, gold: np.ndarray, p: np.ndarray, own: np.ndarray) -> dict[str, float]:
    """Choose for each set the threshold with the best mean F1 over the other sets."""
    return {s: best_f1(gold, p, own, [other for other in data.sets if other != s])
            for s in data.sets}  # fmt: skip


def best_f1(gold: np.ndarray, p: np.ndarray, own: np.ndarray, sets: Sequence[str]) -> float:
    """Choose the threshold with the best mean F1 over some sets."""
    parts = [(gold[own == s], p[own == s]) for s in sets]
    return _best(lambda t: np.mean([f1_score(g, q >= t) for g, q in parts]), GRID)


def as_many(gold: np.ndarray, p: np.ndarray, own: np.ndarray, sets: Sequence[str]) -> float:
    """Choose the threshold that flags the same share as gold does, in the mean over some sets.

    Where the threshold of the best balanced accuracy flags half of all responses, as most of them
    are adherent, this one flags few and misses many: precision and recall are about equal.
    """
    parts = [(~gold[own == s], p[own == s]) for s in sets]
    bad = np.mean([g.mean() for g, _ in parts])
    return _best(lambda t: -abs(np.mean([(q < t).mean() for _, q in parts]) - bad), HIGH)


def nested_said(
    data: Data, gold: np.ndarray, p: np.ndarray, own: np.ndarray
) -> dict[str, np.ndarray]:
    """Decide the items of each set by the threshold of the other sets; RAGTruth by that of all."""
    return {
        s: p[own == s] >= as_many(gold, p, own, [other for other in data.sets if other != s])
        for s in [*data.sets, TRUTH]
    }


def flags(data: Data, held_out: HeldOut) -> None:
    """Print what is flagged at a threshold that no item of the set was chosen on."""
    names = [*data.sets, TRUTH]
    print(f"  {'':38}" + "".join(f"{name:>12}" for name in names))
    for kind, gold, p, own in (
        ("not adherent", data.adherent, held_out.adherent, data.set),
        ("unsupported sentence", data.supported, held_out.supported, data.set[data.response.row]),
    ):
        said = nested_said(data, gold, p, own)
        bad = {s: ~gold[own == s] for s in names}
        for name, values in (
            (f"share {kind}, gold", [bad[s].mean() for s in names]),
            ("  flagged", [(~said[s]).mean() for s in names]),
            ("  precision", [(bad[s] & ~said[s]).sum() / max(1, (~said[s]).sum()) for s in names]),
            ("  recall", [(~said[s])[bad[s]].mean() for s in names]),
            ("  balanced accuracy", [balanced_accuracy(~bad[s], said[s]) for s in names]),
        ):
            print(f"  {name:38}" + "".join(f"{v:12.3f}" for v in values))


def doubts(data: Data, held_out: HeldOut) -> None:
    """Print how adherence ranks where words end, and what a cascade passes on by default.

    AUROC is over pairs of one data set, pooled over the sets.
    """
    found, best = map(RESPONSE_FEATURES.index, ("found", "found_in_document"))
    spread = np.zeros(len(data.rows))
    np.maximum.at(spread, data.response.row, data.response.x[:, found] - data.response.x[:, best])
    bench = data.set != TRUTH
    doubted = (spread > SPREAD_LIMIT) & bench
    low, high = EmbeddedJudge.unsure
    band = (low <= held_out.adherent) & (held_out.adherent <= high) & bench
    parts = {SPREAD: doubted, "the rest": bench & ~doubted}
    parts |= {f"P from {low} to {high}": band, "passed on": doubted | band}
    for name, rows in parts.items():
        won = pairs = 0.0
        for own in (rows & (data.set == s) for s in data.sets):
            bad, good = (held_out.adherent[own & (data.adherent == kind)] for kind in (False, True))
            gap = good - bad[:, None]
            won += (gap > 0).sum() + (gap == 0).sum() / 2
            pairs += gap.size
        print(f"  {name}: {rows.sum()} rows ({rows.sum() / bench.sum():.3f}), not adherent "
              f"{(~data.adherent[rows]).mean():.3f}; AUROC {won / pairs:.3f}")  # fmt: skip


def thresholds(data: Data, held_out: HeldOut) -> dict[str, float]:
    """Choose the thresholds of the labels on domains unseen in fitting."""
    own = data.set[data.documents.row]
    said = data.set[data.response.row]
    return {
        "relevant": best_f1(data.relevant, held_out.relevant, own, data.sets),
        "relevant_alone": best_f1(data.relevant, held_out.alone, own, data.sets),
        "utilized": best_f1(data.utilized, held_out.utilized, own, data.sets),
        "supported": as_many(data.supported, held_out.supported, said, data.sets),
        "adherent": as_many(data.adherent, held_out.adherent, data.set, data.sets),
    }


def _best(measure: Callable[[float], float], grid: np.ndarray) -> float:
    """Return the grid point with the highest measure, the middle one of equal ones."""
    values = np.array([measure(point) for point in grid])
    best = grid[values >= values.max() - 1e-12]
    return round(float(best[len(best) // 2]), 4)


def short(data: Data, held_out: HeldOut) -> str:
    """Compute the figures of one ablation: adherence only."""
    names = [*data.sets, TRUTH]
    own = data.set[data.response.row]
    row = [roc_auc_score(~data.adherent[data.set == s], -held_out.adherent[data.set == s])
           for s in names]  # fmt: skip
    sentence = [
        roc_auc_score(data.supported[own == s], held_out.supported[own == s]) for s in names
    ]
    return f"{np.mean(row[:-1]):.3f} {np.mean(sentence[:-1]):.3f} {row[-1]:.3f} {sentence[-1]:.3f}"


def numbers_of(*names: str) -> tuple[int, ...]:
    """Return the indexes of named features of response sentences."""
    return tuple(RESPONSE_FEATURES.index(name) for name in names)
