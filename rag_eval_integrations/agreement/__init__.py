"""How far a judge agrees with gold labels: Evaluation pairs → figures with 95 % intervals.

`match` joins two files' rows, `agree` compares them:

    matching → scores | keys | baselines | human | levels → resampled (statistics, influence)
             → bootstrap → figures → compare
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, Figure
from rag_eval_integrations.agreement._curves import (
    CascadePoint,
    Curves,
    cascade_curve,
    curve_json,
    curves,
)
from rag_eval_integrations.agreement.compare import Agreement, agree
from rag_eval_integrations.agreement.figures import Figures, Group
from rag_eval_integrations.agreement.levels import Levels, agree_by_level
from rag_eval_integrations.agreement.matching import Gold, Matched, Pair, dataset_of, match
from rag_eval_integrations.agreement.published import BASELINE_COLUMNS, Baseline
from rag_eval_integrations.agreement.scores import agree_with_numbers

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
    "cascade_curve",
    "curve_json",
    "curves",
    "dataset_of",
    "match",
]

publish(__name__, __all__)
