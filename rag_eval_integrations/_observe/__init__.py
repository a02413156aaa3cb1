"""Stage 1, shared by the hosts: from what a framework shows to a `RagCall`, and out of the way.

Nothing here knows a framework. Four jobs: keep what a host gives as JSON values (`json_object`),
tell which documents a prompt holds (`reached`), hold the open calls within bounds (`OpenCalls`),
and hand a finished call to the target without ever disturbing the app (`Delivery`).
"""

from rag_eval_integrations._observe.calls import Context, Seen, distinct, to_call
from rag_eval_integrations._observe.delivery import Delivery, Target
from rag_eval_integrations._observe.functions import check_hooks
from rag_eval_integrations._observe.json_values import finite, json_object, json_value
from rag_eval_integrations._observe.open_calls import OpenCalls
from rag_eval_integrations._observe.prompts import Place, in_order, reached

__all__ = [
    "Context",
    "Delivery",
    "OpenCalls",
    "Place",
    "Seen",
    "Target",
    "check_hooks",
    "distinct",
    "finite",
    "in_order",
    "json_object",
    "json_value",
    "reached",
    "to_call",
]
