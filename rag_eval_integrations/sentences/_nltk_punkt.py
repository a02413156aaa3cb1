"""Punkt of other languages than English, by NLTK: its search for data, its reader, its decision.

Importing NLTK takes seconds and leaves 100,000 objects behind, so that `Punkt` imports this module
only for a language that needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec

from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError

if find_spec("nltk") is None:
    raise MissingDependencyError("nltk", "nltk")

import nltk.data  # type: ignore[import-untyped]  # nltk has no stubs
from nltk.tokenize.punkt import (  # type: ignore[import-untyped]
    PunktSentenceTokenizer,
    load_punkt_params,
)

_INSTALL = "To install the data, run: python -m nltk.downloader punkt_tab"


def decision(language: str) -> tuple[Callable[[str], bool], frozenset[str]]:
    """Load Punkt's decision and words of a language from NLTK's data folders.

    Args:
        language: name of the language's folder in NLTK's `punkt_tab` data: "german".

    Returns:
        The function that tells whether "word. Next" holds a sentence boundary, and the words whose
        full stop need not be one: abbreviations and the first words of collocations.

    Raises:
        ConfigurationError: NLTK does not find data of this language, or refuses to read it.
    """
    try:
        parameters = load_punkt_params(nltk.data.find(f"tokenizers/punkt_tab/{language}/"))
    except LookupError as error:
        looked = ", ".join(map(str, nltk.data.path)) or "no folder: `nltk.data.path` is empty"
        raise ConfigurationError(
            "language",
            language,
            "NLTK has no complete Punkt data of this language ('english' needs none; others have "
            f"English names in lower case: 'german'). It looked in: {looked}. {_INSTALL}",
        ) from error
    except (OSError, ValueError) as error:
        why = f"NLTK cannot read its Punkt data: {error}. {_INSTALL}"
        raise ConfigurationError("language", language, why) from error
    # NLTK adds every word that it looks up to its own dictionary; a `Counter` does not grow. The
    # pairs are a list, searched from its beginning, until NLTK 3.10.
    parameters.ortho_context = Counter(parameters.ortho_context)
    parameters.collocations = set(parameters.collocations)
    special = frozenset(parameters.abbrev_types).union(pair[0] for pair in parameters.collocations)
    return PunktSentenceTokenizer(parameters).text_contains_sentbreak, special
