"""Judges: turn a call's keyed sentences into labels (stage 3 of the flow).

`EmbeddedJudge` needs no key, network or model; `LLMJudge` asks a model; `OnnxJudge` and
`TransformersJudge` read with local models; `CascadeJudge` asks a second judge only when a cheaper
one is unsure. `judge_from` makes a judge from its name.
`Calibration` maps a judge's estimates to what a user's gold says of them.
`reconcile` checks labels from any source against the sentences that exist; `speaks_to_a_judge`
detects text that tries to decide its own labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.judges._named import judge_from
    from rag_eval_integrations.judges.calibration import Calibration
    from rag_eval_integrations.judges.cascade import CascadeJudge
    from rag_eval_integrations.judges.embedded import EmbeddedJudge
    from rag_eval_integrations.judges.judge import Judge, JudgeBase
    from rag_eval_integrations.judges.llm import LLMJudge
    from rag_eval_integrations.judges.onnx import OnnxJudge
    from rag_eval_integrations.judges.suspicion import speaks_to_a_judge
    from rag_eval_integrations.judges.transformers import TransformersJudge

__all__ = [
    "Calibration",
    "CascadeJudge",
    "EmbeddedJudge",
    "Judge",
    "JudgeBase",
    "LLMJudge",
    "OnnxJudge",
    "TransformersJudge",
    "judge_from",
    "speaks_to_a_judge",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "_named": ["judge_from"],
        "calibration": ["Calibration"],
        "cascade": ["CascadeJudge"],
        "embedded": ["EmbeddedJudge"],
        "judge": ["Judge", "JudgeBase"],
        "llm": ["LLMJudge"],
        "onnx": ["OnnxJudge"],
        "suspicion": ["speaks_to_a_judge"],
        "transformers": ["TransformersJudge"],
    },
)
