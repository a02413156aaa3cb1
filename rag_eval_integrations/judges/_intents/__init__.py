"""Signs of text that wants to direct a judge: orders, verdicts, addresses, imitated messages.

Every repetition in a pattern is bounded, so that searching takes linear time.
"""

from __future__ import annotations

from collections.abc import Callable

from rag_eval_integrations.judges._intents._joined import JOINED
from rag_eval_integrations.judges._intents._latin import LATIN
from rag_eval_integrations.judges._intents._messages import MESSAGES
from rag_eval_integrations.judges._intents._orders import ORDERS
from rag_eval_integrations.judges._intents._scripts import OTHER
from rag_eval_integrations.judges._intents._sign import Sign
from rag_eval_integrations.judges._intents._verdicts import VERDICTS

__all__ = ["signs"]


def signs(fold: Callable[[str], str]) -> tuple[Sign, ...]:
    """Return all signs; those of other scripts are folded as the texts are that they are for."""
    folded = (
        Sign(
            "other", fold(one.pattern), parts=tuple(tuple(map(fold, group)) for group in one.parts)
        )
        for one in OTHER
    )
    return (*ORDERS, *VERDICTS, *MESSAGES, *JOINED, *LATIN, *folded)
