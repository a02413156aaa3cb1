"""Agreement of a judge with gold labels: pairs of evaluations become figures with 95 % intervals.

`match` joins the rows of two files, `agree` compares them. Needs numpy: the extra `agreement`.

matching               predicted rows + gold rows ─▶ pairs
_table                 pairs ─▶ rows of numbers: scores, and labels sentence by sentence
_statistics, figures   columns ─▶ statistics ─▶ figures with intervals, and curves ─▶ JSON
_provenance            one maker per score and side
levels                 scores against a human's ratings
compare                `agree`: scores and labels against gold, baselines, all figures
_cascades              the curve of a cascade
calibrating            `calibrate`: maps from a judge's estimates to gold
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.errors import extra

with extra("agreement", "numpy"):
    import numpy  # noqa: F401  # every module below computes with it

from rag_eval_integrations.agreement._cascades import CascadePoint, cascade_curve
from rag_eval_integrations.agreement.calibrating import calibrate
from rag_eval_integrations.agreement.compare import Agreement, agree, curves
from rag_eval_integrations.agreement.figures import Curves, Figure, Group
from rag_eval_integrations.agreement.levels import agree_by_level
from rag_eval_integrations.agreement.matching import (
    Gold,
    Pair,
    match,
)

__all__ = [
    "Agreement",
    "CascadePoint",
    "Curves",
    "Figure",
    "Gold",
    "Group",
    "Pair",
    "agree",
    "agree_by_level",
    "calibrate",
    "cascade_curve",
    "curves",
    "match",
]

publish(__name__, __all__)
