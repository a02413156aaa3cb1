"""Agreement of a judge with gold labels: pairs of evaluations become figures with 95 % intervals.

`match` joins the rows of two files, `agree` compares them.

matching                  predicted rows + gold rows ─▶ pairs
scores | _keys | levels   pairs ─▶ what is compared: scores, sentence keys, a human's numbers
_resampled, _statistics   columns ─▶ statistics that can be computed again on a draw of rows
_bootstrap, figures       statistics ─▶ figures with intervals ─▶ JSON
compare                   `agree`: all figures, with baselines (published: RAGBench's columns)
_curves, _cascades        ROC and reliability curves; the curve of a cascade
calibrating | _fits       `calibrate`: maps from a judge's estimates to gold
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.agreement._bootstrap import RESAMPLES, SEED, Figure
from rag_eval_integrations.agreement._cascades import CascadePoint, cascade_curve, curve_json
from rag_eval_integrations.agreement._curves import Curves, curves
from rag_eval_integrations.agreement.calibrating import calibrate
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
    "calibrate",
    "cascade_curve",
    "curve_json",
    "curves",
    "dataset_of",
    "match",
]

publish(__name__, __all__)
