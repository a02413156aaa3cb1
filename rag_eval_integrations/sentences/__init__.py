"""Stage 2, sentences: `sentencize` turns a call's texts into keyed sentences with offsets.

`Punkt` is the default splitter. Any object with a `name` and `spans(text)` is a splitter
(`Splitter`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_eval_integrations._lazy import lazy, publish
from rag_eval_integrations.sentences._sentencize import (
    Splitter,
    document_number,
    sentencize,
)

if TYPE_CHECKING:
    from rag_eval_integrations.sentences.punkt import Punkt

__all__ = [
    "Punkt",
    "Splitter",
    "document_number",
    "sentencize",
]

# Its patterns take 30 ms to compile, a third of what importing an evaluator may cost.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "punkt": ["Punkt"],
    },
)
publish(__name__, __all__)
