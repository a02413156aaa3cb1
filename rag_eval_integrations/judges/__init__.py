"""Who is asked. Stage 3 of the flow: keyed sentences become a `Labelling`.

A `Labeller` labels a call: `EmbeddedJudge` (no key, no network, no model). A `Completer` answers
messages: `OpenAIJudge` (any OpenAI-compatible endpoint), `CallableJudge` (any async function), and
the judges of the host packages. `ThrottledJudge` (limits, retries) and `CachingJudge` (a file of
answers) wrap completers. `judge_from` makes one from its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rag_eval_integrations.judges.protocols import Completer, Labeller
from rag_eval_integrations.judges.resolve import JUDGES, judge_from, with_retries

if TYPE_CHECKING:
    from rag_eval_integrations.judges.caching import CachingJudge
    from rag_eval_integrations.judges.callable import CallableJudge
    from rag_eval_integrations.judges.embedded import EmbeddedJudge
    from rag_eval_integrations.judges.openai import OpenAIJudge
    from rag_eval_integrations.judges.throttling import ThrottledJudge

__all__ = [
    "JUDGES",
    "CachingJudge",
    "CallableJudge",
    "Completer",
    "EmbeddedJudge",
    "Labeller",
    "OpenAIJudge",
    "ThrottledJudge",
    "judge_from",
    "with_retries",
]

_HOMES = {
    "CachingJudge": "caching",
    "CallableJudge": "callable",
    "EmbeddedJudge": "embedded",
    "OpenAIJudge": "openai",
    "ThrottledJudge": "throttling",
}


def __getattr__(name: str) -> object:
    # Each is loaded where it is used: an app with one judge does not pay for the others.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
