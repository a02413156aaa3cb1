"""Stage 3 of the flow: keyed sentences become honest Labels.

    prompt → completer → parse → reconcile → windows joined

`LLMLabeller` asks a model; `CascadeJudge` only where a cheaper judge is unsure; `reconcile` holds
labels against the sentences that exist, whoever wrote them; `speaks_to_a_judge` notices text that
tries to decide its own labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations.labels.reconcile import SPECIAL_KEYS, reconcile
from rag_eval_integrations.labels.suspicion import speaks_to_a_judge

if TYPE_CHECKING:
    from rag_eval_integrations.labels.cascade import CascadeJudge
    from rag_eval_integrations.labels.labeller import LLMLabeller

__all__ = ["SPECIAL_KEYS", "CascadeJudge", "LLMLabeller", "reconcile", "speaks_to_a_judge"]


def __getattr__(name: str) -> object:
    # Only a judge that is a model needs it; the embedded one should not pay for its import.
    if name == "LLMLabeller":
        from rag_eval_integrations.labels.labeller import LLMLabeller  # noqa: PLC0415

        return LLMLabeller
    if name == "CascadeJudge":
        from rag_eval_integrations.labels.cascade import CascadeJudge  # noqa: PLC0415

        return CascadeJudge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
