"""Stage 3 of the flow: keyed sentences become honest Labels.

    prompt → completer → parse → reconcile → windows joined

`LLMLabeller` asks a model; `reconcile` holds labels against the sentences that exist, whoever
wrote them; `speaks_to_a_judge` notices text that tries to decide its own labels.
"""

from rag_eval_integrations.labels.labeller import LLMLabeller
from rag_eval_integrations.labels.prompt import PROMPT_VERSION
from rag_eval_integrations.labels.reconcile import SPECIAL_KEYS, reconcile
from rag_eval_integrations.labels.suspicion import speaks_to_a_judge

__all__ = ["PROMPT_VERSION", "SPECIAL_KEYS", "LLMLabeller", "reconcile", "speaks_to_a_judge"]
