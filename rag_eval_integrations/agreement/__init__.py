"""Agreement of a judge with gold labels: pairs of evaluations become figures with 95 % intervals.

`match` joins the rows of two files, `agree` compares them. Needs numpy: the extra `agreement`.

matching               predicted rows + gold rows ─▶ pairs
_table                 pairs ─▶ rows of numbers: scores, and labels sentence by sentence
_statistics, figures   columns ─▶ statistics ─▶ figures with intervals, and curves ─▶ JSON
levels                 scores against a human's ratings
compare                `agree`: scores and labels against gold, baselines, all figures
_cascades              the curve of a cascade
calibrating            `calibrate`: maps from a judge's estimates to gold
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.errors import extra

with extra("agreement", "numpy"):
    import numpy  # noqa: F401  # every module below computes with it

from rag_eval_integrations.agreement._cascades import CascadePoint, cascade_curve, curve_json
from rag_eval_integrations.agreement.calibrating import calibrate
from rag_eval_integrations.agreement.compare import Agreement, agree, curves
from rag_eval_integrations.agreement.figures import RESAMPLES, SEED, Curves, Figure, Figures, Group
from rag_eval_integrations.agreement.levels import Levels, agree_by_level, agree_with_numbers
from rag_eval_integrations.agreement.matching import (
    BASELINE_COLUMNS,
    Baseline,
    Gold,
    Matched,
    Pair,
    dataset_of,
    match,
)

__all__ = [
    "BASELINE_COLUMNS",
    "RESAMPLES",
    "SEED",
    "Agreement",
    "Baseline",
    "CascadePoint",
    "Curves",
    "Figure",
    "Figures",
    "Gold",
    "Group",
    "Levels",
    "Matched",
    "Pair",
    "agree",
    "agree_by_level",
    "agree_with_numbers",
    "calibrate",
    "cascade_curve",
    "curve_json",
    "curves",
    "dataset_of",
    "match",
]

publish(__name__, __all__)
