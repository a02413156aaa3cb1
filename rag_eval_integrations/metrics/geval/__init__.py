"""G-Eval: a criterion in words, steps, and the expectation of the judge's score.

presets | files → metric (params, rubric, plan)
steps            criteria ─▶ judge ─▶ evaluation steps, once
prompt           steps + sections of the call ─▶ messages
ladder           messages ─▶ judge ─▶ log-probabilities | samples | one answer
reply            text ─▶ score and its place (numbers, objects); paper: as published tables did
spans            place ─▶ token;  expectation: token ─▶ Σ k·p(k) / Σ p(k)
outcome, scoring what was found ─▶ Score
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.metrics.geval._settings import call_of_turns
from rag_eval_integrations.metrics.geval.files import (
    PRESET_NAMES,
    is_geval_file,
    named_geval,
    read_geval,
)
from rag_eval_integrations.metrics.geval.metric import GEval

__all__ = [
    "PRESET_NAMES",
    "GEval",
    "call_of_turns",
    "is_geval_file",
    "named_geval",
    "read_geval",
]

publish(__name__, __all__)
