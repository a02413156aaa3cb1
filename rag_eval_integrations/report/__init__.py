"""Pages for people, one file each: of evaluations, of a comparison, of an agreement.

html   `write_report`: one HTML file to look at, with every call and its evidence

What the pages show is worked out in `rag_eval_integrations.evaluations`; its names are exported
from here, too.
"""

from typing import TYPE_CHECKING, Any

from rag_eval_integrations import evaluations
from rag_eval_integrations._lazy import lazy

if TYPE_CHECKING:
    from rag_eval_integrations.evaluations import *  # noqa: F403
    from rag_eval_integrations.report.html import write_report

__all__ = ["write_report"]
__all__ += evaluations.__all__

_own, __dir__ = lazy(__name__, {"html": __all__})


def __getattr__(name: str) -> Any:
    return getattr(evaluations, name) if name in evaluations.__all__ else _own(name)
