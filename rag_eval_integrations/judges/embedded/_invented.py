"""Response sentences with nothing, or with a figure, that the documents do not have: `invented`.

Rules and not a fit, since gold has few of them. Without them "Paris." had P(supported) .92 for
documents that do not name Paris, and "It was finished in 1899." passed beside 1889.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_eval_integrations.judges.embedded._features import CallFeatures
from rag_eval_integrations.judges.embedded._words import words

_INTRODUCES = re.compile(r"(?::|\d[.)]?)\s*\Z")
_FIGURE = re.compile(r"\d{3}")
_ASIDE = re.compile(r"\([^()]{0,40}\)")


def invented(features: CallFeatures, response: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of the sentences that say what is not in the documents.

    * None of its words is there. RAGBench has 17 of these, 12 of them unsupported, if those are
      left out that introduce what follows ("The context states:": 157 of 166 are supported), unless
      the whole response shares no word with the documents.
    * A number of three digits is neither there nor in the question. RAGTruth has 221 of these;
      humans marked 58 % of them, and 12 % of the others. Numbers in parentheses do not count: most
      are conversions ("400°F (200°C)").
    """
    o = features.overlap
    nothing = not any(o.found)
    for number, (text, found, row) in enumerate(
        zip(response, o.found, features.response, strict=True)
    ):
        if not row.new:
            continue
        if found:
            new = o.response[number].numbers.difference(o.idf, o.question.bag)
            figures = {one for one in new if _FIGURE.search(one)}
            if figures and not figures.isdisjoint(words(_ASIDE.sub(" ", text)).numbers):
                yield number
        elif nothing or not _INTRODUCES.search(text[-8:]):
            yield number
