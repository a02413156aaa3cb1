"""Who is asked. Stage 3 of the flow: keyed sentences become a `Labelling`.

`EmbeddedJudge` needs no key, no network and no model; anything with a `name` and
`async label(call)` is a judge (`Labeller`). `judge_from` makes one from its name.
"""

from rag_eval_integrations.judges.callable import CallableJudge
from rag_eval_integrations.judges.protocols import Completer, Labeller
from rag_eval_integrations.judges.resolve import JUDGES, judge_from

__all__ = ["JUDGES", "CallableJudge", "Completer", "Labeller", "judge_from"]
