"""Reliability and ROC of the probability of adherence, on rows that the model did not see."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.metrics import roc_auc_score, roc_curve

from embedded_training.judges import HeldOut
from embedded_training.measures import bins, calibration_error
from embedded_training.rows import TRUTH, Data


def plots(data: Data, held_out: dict[str, HeldOut], folder: Path) -> list[Path]:
    """Write one PNG for each cross-validation: reliability beside ROC curves."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for by, judged in held_out.items():
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5))
        own = data.set != TRUTH
        for name, p, gold in (
            ("adherent", judged.adherent[own], data.adherent[own]),
            (
                "supported sentence",
                judged.supported[own[data.response.row]],
                data.supported[own[data.response.row]],
            ),
            ("relevant sentence", judged.relevant, data.relevant),
            ("utilized sentence", judged.utilized, data.utilized),
        ):
            parts = np.array([part[:2] for part in bins(p, gold)])
            error = calibration_error(p, gold)
            left.plot(parts[:, 0], parts[:, 1], "o-", ms=4, label=f"{name}, error {error:.3f}")
        left.plot([0, 1], [0, 1], ":", color="grey")
        left.set(xlabel="probability", ylabel="share that is true", title=f"Unseen {by}")
        left.legend()
        for name in [*data.sets, TRUTH]:
            mask = data.set == name
            false, true, _ = roc_curve(~data.adherent[mask], -judged.adherent[mask])
            area = roc_auc_score(~data.adherent[mask], -judged.adherent[mask])
            right.plot(false, true, label=f"{name} {area:.2f}")
        right.plot([0, 1], [0, 1], ":", color="grey")
        right.set(xlabel="false alarms", ylabel="found", title="Responses that are not adherent")
        right.legend()
        path = folder / f"embedded_judge_unseen_{by}.png"
        figure.savefig(path, dpi=110, bbox_inches="tight")
        plt.close(figure)
        written.append(path)
    return written
