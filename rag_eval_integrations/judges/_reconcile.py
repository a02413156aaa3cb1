"""Check a judge's labels against the sentences that exist (stage 3 of the flow).

`reconcile` records on the labels everything that it changed, dropped or filled in. Of 5,897
RAGBench rows, 418 (7.1 %) have at least one of these oddities: trailing dots (`0b.`, 549 keys;
`a.`, 871), sentences that do not exist (`0ae`, 57), special words for "no sentence" (`general`,
2,217), two keys in one string (1), a spelled-out range (`i through v`, 2), repeated keys (18 rows),
response sentences without an entry (22 rows).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from rag_eval_integrations.records import Labels, Sentence, SentenceSupport
from rag_eval_integrations.sentences._sentencize import letters, position

SPECIAL_KEYS = frozenset(
    {
        "general",
        "numerical_reasoning",
        "support_without_sentence",
        "supported_without_sentence",
        "well_known_fact",
    }
)
"""Words that RAGBench's annotators used when no sentence is meant; one is misspelt there."""

_NO_KEYS = frozenset({"", "none", "n/a", "null"})
"""Words that small models write into a list in place of leaving it empty."""

_DECORATION = " \t\r\n.,;:'\"`()[]{}<>*"
_SEPARATORS = re.compile(r"[\s,;&]+")
_RANGE = re.compile(r"(\d*)([a-z]{1,3})\s*(?:-|–|through|to)\s*(\d*)([a-z]{1,3})")
_LONGEST_RANGE = 1_000  # a hostile "a-zzzzz" would be 12 million keys


def _cleaned(text: str) -> str:
    """Strip brackets, quotes and the like from a key."""
    return text.strip(_DECORATION).lower()


class _Keys:
    """Resolver of a judge's keys of documents or of the response; collects unknown ones."""

    def __init__(self, existing: Iterable[str]) -> None:
        self.existing = frozenset(existing)
        self.unknown: list[str] = []
        self.special: list[str] = []
        self.repeated: list[str] = []

    def resolve(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return the existing keys that texts name, each once and in order."""
        resolved: dict[str, None] = {}
        for text in texts:
            for key in self._read(text):
                if key in resolved:
                    self.repeated.append(key)
                resolved[key] = None
        return tuple(resolved)

    def _read(self, text: str) -> tuple[str, ...]:
        """Return the existing keys that a text names; note those that do not exist.

        Several keys in a text, or a range, count only if all of them exist; special words are noted
        apart.
        """
        cleaned = _cleaned(text)
        if cleaned in self.existing:
            return (cleaned,)
        if cleaned in SPECIAL_KEYS:
            self.special.append(cleaned)
        if cleaned in SPECIAL_KEYS or cleaned in _NO_KEYS:
            return ()
        # Two keys in a string, or a range: accepted only if every key exists.
        parts = [part.strip(_DECORATION) for part in _SEPARATORS.split(cleaned)]
        if len(parts) > 1 and all(part in self.existing for part in parts):
            return tuple(parts)
        spelled_out = _range(cleaned)
        if spelled_out and all(key in self.existing for key in spelled_out):
            return spelled_out
        self.unknown.append(text)
        return ()


def _range(text: str) -> tuple[str, ...]:
    """Spell out a range of keys such as `0a-0c`, or `0a-c` for short; empty if it is not one.

    Empty as well if it is too long, goes backwards, or has two different numbers.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        return ()
    number, first, other_number, last = match.groups()
    if other_number not in ("", number):
        return ()
    start, stop = position(first), position(last)
    if not 0 <= stop - start < _LONGEST_RANGE:
        return ()
    return tuple(number + letters(index) for index in range(start, stop + 1))


class ShownSentences(Protocol):
    """The sentences that a judge was shown: a `SentencizedCall`, or a window of it."""

    @property
    def documents(self) -> Sequence[Sentence]:
        """The sentences of the documents."""

    @property
    def response(self) -> Sequence[Sentence]:
        """The sentences of the response."""


def reconcile(labels: Labels, call: ShownSentences) -> Labels:
    """Check a judge's labels against the sentences of the call; twice changes nothing.

    * Keys are stripped of dots, spaces and brackets, lower-cased and deduplicated. Keys of
      sentences that do not exist are dropped and recorded (`unknown_keys`), and so are special
      words (`special_keys`).
    * Response sentences without an entry are unlabelled (`missing_keys`). Several entries for one
      sentence are merged: it is unsupported if any of them says so.
    * A `fully_supported` of null is filled in: from `unsupported_response_sentence_keys` if that
      list is recorded, otherwise it is true if the sentence has supporting keys. A special word
      counts as support: that reproduces 98.46 % of RAGBench's recorded adherence. A key that does
      not exist does not.
    * `overall_conflict` is true if `overall_supported` contradicts the entries. It changes no
      score: RAGBench's own lists disagree with its verdict in 1.5 % of rows.
    """
    documents = _Keys(sentence.key for sentence in call.documents)
    responses = _Keys(sentence.key for sentence in call.response)
    relevant = documents.resolve(labels.all_relevant_sentence_keys)
    utilized = documents.resolve(labels.all_utilized_sentence_keys)
    recorded = labels.unsupported_response_sentence_keys
    unsupported = None if recorded is None else responses.resolve(recorded)
    entries = _entries(labels, documents, responses, unsupported)
    ordered = tuple(entries[sentence.key] for sentence in call.response if sentence.key in entries)
    missing = tuple(sentence.key for sentence in call.response if sentence.key not in entries)
    all_supported = all(entry.fully_supported for entry in ordered)
    return labels.model_copy(
        update={
            "all_relevant_sentence_keys": relevant,
            "all_utilized_sentence_keys": utilized,
            "sentence_support_information": ordered,
            "unsupported_response_sentence_keys": unsupported,
            "unknown_keys": _union(labels.unknown_keys, documents.unknown, responses.unknown),
            "special_keys": _union(labels.special_keys, documents.special, responses.special),
            "missing_keys": missing,
            "duplicate_keys": _union(labels.duplicate_keys, documents.repeated, responses.repeated),
            "overall_conflict": bool(ordered) and labels.overall_supported is (not all_supported),
            "relevant_probabilities": _existing(labels.relevant_probabilities, documents),
            "utilized_probabilities": _existing(labels.utilized_probabilities, documents),
            "supported_probabilities": _existing(labels.supported_probabilities, responses),
        }
    )


def _entries(
    labels: Labels, documents: _Keys, responses: _Keys, unsupported: tuple[str, ...] | None
) -> dict[str, SentenceSupport]:
    """Return the support of each response sentence, with existing keys only.

    A verdict of null is filled in; several entries of a sentence are merged by the strictest.
    """
    entries: dict[str, list[SentenceSupport]] = {}
    for raw_entry in labels.sentence_support_information:
        specials_before = len(documents.special)
        supporting = documents.resolve(raw_entry.supporting_sentence_keys)
        backed = bool(supporting) or len(documents.special) > specials_before
        for key in responses.resolve([raw_entry.response_sentence_key]):
            verdict = raw_entry.fully_supported
            if verdict is None:
                verdict = backed if unsupported is None else key not in unsupported
            entry = SentenceSupport(
                response_sentence_key=key,
                explanation=raw_entry.explanation,
                supporting_sentence_keys=supporting,
                fully_supported=verdict,
            )
            if key in entries:
                responses.repeated.append(key)
            entries.setdefault(key, []).append(entry)
    return {key: _strictest(same) for key, same in entries.items()}


def _strictest(entries: Sequence[SentenceSupport]) -> SentenceSupport:
    """Merge the entries of a sentence at once: one by one would take quadratic time."""
    if len(entries) == 1:
        return entries[0]
    keys = dict.fromkeys(key for entry in entries for key in entry.supporting_sentence_keys)
    explanations = dict.fromkeys(entry.explanation for entry in entries if entry.explanation)
    return entries[0].model_copy(
        update={
            "supporting_sentence_keys": tuple(keys),
            "explanation": " ".join(explanations),
            "fully_supported": all(entry.fully_supported for entry in entries),
        }
    )


# --- Labels that say nothing, which is not "none"


def only_unknown_keys(labels: Labels, checked: Labels) -> str | None:
    """Describe the first list of a judge whose keys are all unknown; None if there is no such list.

    Such a list is not an empty one: nothing is known of what the judge meant. A special word stands
    for no sentence.

    Args:
        labels: the labels as the judge gave them.
        checked: the same after `reconcile`.
    """
    for name in ("all_relevant_sentence_keys", "all_utilized_sentence_keys"):
        given = _keys_in(getattr(labels, name))
        if (
            given
            and not getattr(checked, name)
            and not any(_cleaned(key) in SPECIAL_KEYS for key in given)
        ):
            return f"none of the {len(given)} keys of the judge's `{name}` exists"
    entries = labels.sentence_support_information
    if entries and not checked.sentence_support_information and checked.missing_keys:
        return f"none of the {len(entries)} response sentences that the judge labelled exists"
    return None


def without_empty_entries(labels: Labels, call: ShownSentences) -> Labels:
    """Drop the entries of a judge's reply that do not say whether a sentence is supported.

    These have neither a verdict nor supporting sentences, or name only sentences that do not exist
    (recorded in `unknown_keys`). Their sentences are then missing, and are asked for again.
    """
    entries = labels.sentence_support_information
    known = {sentence.key for sentence in call.documents}
    if all(_clearly_says_something(entry, known) for entry in entries):
        return labels  # nearly always: without reading every key
    documents = _Keys(known)
    kept = tuple(entry for entry in entries if _says_something(entry, documents))
    if len(kept) == len(entries):
        return labels
    unknown = _union(labels.unknown_keys, documents.unknown)
    return labels.model_copy(update={"sentence_support_information": kept, "unknown_keys": unknown})


def _clearly_says_something(entry: SentenceSupport, known: Collection[str]) -> bool:
    """Tell without resolving keys that an entry says something; False where it may or may not."""
    keys = entry.supporting_sentence_keys
    if not keys:
        return entry.fully_supported is not None
    return any(key in known and _cleaned(key) == key for key in keys)


def _keys_in(texts: Iterable[str]) -> list[str]:
    """Return a reply's list of keys as written, less words for "no sentence" such as `none`."""
    return [text for text in texts if _cleaned(text) not in _NO_KEYS]


def _says_something(entry: SentenceSupport, documents: _Keys) -> bool:
    """Tell whether an entry has a verdict, or keys that can be read."""
    keys = _keys_in(entry.supporting_sentence_keys)
    if not keys:
        return entry.fully_supported is not None
    specials_before = len(documents.special)
    known = documents.resolve(keys)
    return bool(known) or len(documents.special) > specials_before


def _union(*lists: Iterable[str]) -> tuple[str, ...]:
    """Join lists without repeated items."""
    # Reconciling twice changes nothing: earlier findings are kept, each once.
    return tuple(dict.fromkeys(item for items in lists for item in items))


def _existing(probabilities: Mapping[str, float] | None, keys: _Keys) -> dict[str, float] | None:
    """Keep the probabilities of keys that exist."""
    if probabilities is None:
        return None
    return {key: value for key, value in probabilities.items() if key in keys.existing}
