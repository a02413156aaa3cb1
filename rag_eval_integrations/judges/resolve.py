"""From what a user passes as `judge=` to a judge."""

from __future__ import annotations

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.protocols import Completer, Labeller

JUDGES = ("embedded",)
"""Names that `judge_from` knows."""


def judge_from(judge: str | Labeller | Completer) -> Labeller | Completer:
    """Make a judge from its name, or check that an object is one.

    Args:
        judge: `embedded` (no key, no network), or an object with a `name` and `async label(call)`
            (a `Labeller`) or `async complete(request)` (a `Completer`: any model).

    Raises:
        ConfigurationError: for an unknown name or an object that is neither.
    """
    if isinstance(judge, str):
        if judge == "embedded":
            # Its parameters and features are loaded only where they are used.
            from rag_eval_integrations.judges.embedded import EmbeddedJudge  # noqa: PLC0415

            return EmbeddedJudge()
        raise ConfigurationError("judge", judge, f"no such judge; use {', '.join(JUDGES)}")
    if not isinstance(judge, Labeller | Completer):
        raise ConfigurationError(
            "judge", judge, "needs a `name` and `async label(call)` or `async complete(request)`"
        )
    return judge
