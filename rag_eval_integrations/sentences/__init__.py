"""Stage 2 of the flow: texts become keyed sentences with character offsets.

`sentencize(call, splitter)` does it; `Punkt` is the default splitter; anything with a `name` and
`spans(text)` is a splitter (`Splitter`).
"""

from rag_eval_integrations.sentences.keys import document_number, letters, position
from rag_eval_integrations.sentences.punkt import Punkt
from rag_eval_integrations.sentences.sentencize import RECORDED, locate, sentencize
from rag_eval_integrations.sentences.splitter import Splitter

__all__ = [
    "RECORDED",
    "Punkt",
    "Splitter",
    "document_number",
    "letters",
    "locate",
    "position",
    "sentencize",
]
