"""Nested cross-validation: the worth of the choices of `--ablations` on domains they did not see.

The shipped choice was made on the cross-validations that the tables show, so the tables are
optimistic. Here each domain is judged by the choice with the best mean AUROC over the *other*
domains, each of them judged by coefficients that saw neither.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.metrics import roc_auc_score

from embedded_training.judges import SHARES, Choice, HeldOut
from embedded_training.measures import rmse, show
from embedded_training.rows import SCORES, TRUTH, Data


def nested(data: Data, choices: Mapping[str, Choice]) -> None:
    """Print for each domain the choice made on the others, and its AUROC of not adherent."""
    domains = [mask for mask in data.masks("domain") if not (data.set[mask] == TRUTH).all()]
    print("\nAUROC of not adherent, unseen domain, every choice made on the other domains")
    chosen, shipped = [], []
    for outer, test in enumerate(domains):
        rest = [mask for number, mask in enumerate(domains) if number != outer]
        best = max(choices, key=lambda name: _inner(data, rest, choices[name], ~test))
        figures = {}
        for name in (best, next(iter(choices))):
            held_out = HeldOut(data, [test], choices[name], adherence_alone=True)
            figures[name] = areas(data, held_out.adherent, test)
        chosen += figures[best].values()
        shipped += figures[next(iter(choices))].values()
        print(f"  {best:32}" + "  ".join(f"{s} {v:.3f}" for s, v in figures[best].items()),
              flush=True)  # fmt: skip
    print(f"  mean of {len(chosen)} sets: {np.mean(chosen):.3f}; as shipped {np.mean(shipped):.3f}")


def _inner(data: Data, masks: list[np.ndarray], choice: Choice, within: np.ndarray) -> float:
    held_out = HeldOut(data, masks, choice, within=within, adherence_alone=True)
    return float(np.mean(list(areas(data, held_out.adherent, np.any(masks, axis=0)).values())))


def areas(data: Data, adherent: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    """Compute the AUROC of not adherent in each data set of the rows."""
    by_set = {}
    for name in sorted(set(data.set[rows])):
        own = data.set == name
        by_set[name] = float(roc_auc_score(~data.adherent[own], -adherent[own]))
    return by_set


def nested_levels(data: Data) -> None:
    """Print RMSE of corrected scores, corrected by what was fitted without the domain throughout.

    In the table of unseen domains the correction is fitted on judgements of the other domains by
    coefficients that saw the domain; here by coefficients that saw neither.
    """
    domains = [mask for mask in data.masks("domain") if mask[: data.bench].any()]
    held_out = HeldOut(data, domains)
    estimated = np.zeros(data.gold.shape)
    for outer, test in enumerate(domains):
        rest = [mask for number, mask in enumerate(domains) if number != outer]
        inner = HeldOut(data, rest, within=~test)
        part, rows = test[: data.bench][data.documents.row], test[: data.bench]
        for name in ("relevant", "utilized", "alone"):
            getattr(inner, name)[part] = getattr(held_out, name)[part]
        inner.expect(data, [test])
        estimated[rows] = inner.calibrated[rows]
    print("\nRMSE, unseen domain, corrections nested")
    for name in SHARES:
        number = SCORES.index(name)
        show(data.sets, data.set[: data.bench], name,
             lambda m, number=number: rmse(estimated[m, number], data.gold[m, number]))  # fmt: skip
