"""Stage 3 of the flow: a judge's answer. SentenceSupport, Labels, Usage, JudgeInfo, Labelling."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from rag_eval_integrations.records._json import MOST, Count, Record, Text

Support = Literal["full", "partial", "none", "unlabelled"]
Probability = Annotated[float, Field(ge=0, le=1)]
Estimate = tuple[Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0)] | None]
"""Mean and standard error of a score; None where the judge does not know its error."""
BY_WORDS = "adherence@words"
"""Name in `Labels.estimates` of the embedded judge's estimate beside a local model's."""

UTILIZED, SUPPORTING = "utilized", "supporting"
"""Words in `Labels.unasked_keys`: which sentences the response used, and which support it."""

UnscoredCode = Literal[
    "no_context",
    "no_question",
    "empty_response",
    "no_relevant",
    "refusal",
    "content_filter",
    "truncated",
    "judge_output_invalid",
    "judge_incapable",
    "unlabelled_sentences",
    "out_of_range",
    "missing_param",
    "over_budget",
]
"""Why a score has no value; `refusal` means that the judge refused, not the answer."""


def _as_text(value: object) -> object:
    """Return a value as it is; an empty text for null."""
    return "" if value is None else value


def _as_keys(value: object) -> object:
    """Return keys as a list: none for null, one for a text; other values as they are."""
    # null stands for no keys, one key without its list for itself.
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


Explanation = Annotated[Text, BeforeValidator(_as_text)]
Keys = Annotated[tuple[Text, ...], BeforeValidator(_as_keys)]


class SentenceSupport(Record):
    """The support of one response sentence."""

    # Judges add fields of their own; these are not errors.
    model_config = ConfigDict(extra="ignore")

    response_sentence_key: Text
    explanation: Explanation = ""
    supporting_sentence_keys: Keys = ()
    """Document sentences that support it, fully or in part; also the special words
    (`general`, `well_known_fact` …) where the judge used them."""
    fully_supported: bool | None = None
    """None in most RAGBench rows; the reconciler fills it."""


class Labels(Record):
    """A judge's labels of one call: the labelling JSON and what was found wrong in it.

    Missing explanations and overall fields parse; unknown fields are ignored.
    """

    model_config = ConfigDict(extra="ignore")

    relevance_explanation: Explanation = ""
    all_relevant_sentence_keys: Keys
    """Document sentences that help to answer the question."""
    overall_supported_explanation: Explanation = ""
    overall_supported: bool | None = None
    """The judge's verdict on the whole response; recorded, never used for a score."""
    sentence_support_information: tuple[SentenceSupport, ...]
    """One entry per response sentence."""
    all_utilized_sentence_keys: Keys
    """Document sentences that the response used."""
    unsupported_response_sentence_keys: tuple[Text, ...] | None = None
    """As recorded in RAGBench; None where it was not recorded."""

    unknown_keys: tuple[Text, ...] = ()
    """Keys of sentences that do not exist, as the judge wrote them; dropped from the lists."""
    special_keys: tuple[Text, ...] = ()
    """Special words that were given instead of keys, such as `general`."""
    missing_keys: tuple[Text, ...] = ()
    """Response sentences without an entry: they are unlabelled."""
    duplicate_keys: tuple[Text, ...] = ()
    """Keys that stood more than once in a list, and response sentences with several entries."""
    unasked_keys: tuple[Text, ...] = ()
    """What a person was not asked, which is unknown, not empty: keys of document sentences whose
    relevance nobody said, `utilized` and `supporting`. Empty for a judge."""
    overall_conflict: bool = False
    """Whether `overall_supported` contradicts the sentence entries."""

    relevant_probabilities: dict[Text, Probability] | None = None
    """P(relevant) of each document sentence, where the judge gives probabilities."""
    utilized_probabilities: dict[Text, Probability] | None = None
    supported_probabilities: dict[Text, Probability] | None = None
    """P(fully supported) of each response sentence."""
    estimates: dict[Text, Estimate] | None = None
    """Calibrated score-level estimates of a judge: `{score name: (mean, standard error)}`.

    A name may end in `@gpt-labeling` or `@ragbench`: an estimate of what only those formulas
    define. `context_relevance` is the share of all sentences, whatever the baseline.
    `adherence@words` is the embedded judge's, which a local model keeps beside its own.
    """

    contradictions: dict[Text, tuple[Text, ...]] = Field(default_factory=dict)
    """Response sentence → the details that a document contradicts, in words: `number 60 (documents:
    30)`. Empty where the judge does not look for them."""

    @cached_property
    def _entries(self) -> dict[str, SentenceSupport]:
        """Index the entries by response sentence; the last of several counts."""
        return {entry.response_sentence_key: entry for entry in self.sentence_support_information}

    def entry(self, key: str) -> SentenceSupport | None:
        """Look up what was said of a response sentence; None when nothing was."""
        return self._entries.get(key)

    def support(self, key: str) -> Support:
        """Tell how far a response sentence is supported.

        `full`; `partial` (not fully, but with supporting keys); `none`; `unlabelled` (no entry,
        or an entry without a verdict).
        """
        entry = self._entries.get(key)
        if entry is None or entry.fully_supported is None:
            return "unlabelled"
        if entry.fully_supported:
            return "full"
        return "partial" if entry.supporting_sentence_keys else "none"

    def adherence_probability(self) -> float | None:
        """Return P(every response sentence is fully supported); None where the judge gives none.

        The judge's own estimate where there is one, else the product over its sentences, which is 1
        without sentences; None where one of them has no probability.
        """
        estimate = (self.estimates or {}).get("adherence")
        if estimate is not None:
            return estimate[0]
        probabilities = self.supported_probabilities
        keys = [entry.response_sentence_key for entry in self.sentence_support_information]
        if probabilities is None or any(key not in probabilities for key in keys):
            return None
        return math.prod(probabilities[key] for key in keys)

    def adherence_by_words(self) -> float | None:
        """Return P(adherent) by the embedded judge; None where no local model kept it."""
        estimate = (self.estimates or {}).get(BY_WORDS)
        return None if estimate is None else estimate[0]


class Usage(Record):
    """The cost of labels and scores."""

    requests: Count = 0
    """Requests that were sent, those that failed included."""
    failed: Count = 0
    """Requests without a reply that could be read; nobody knows their tokens and what they cost."""
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost_usd: float | None = Field(default=None, ge=0)
    """None where the price is not known (never 0 for unknown)."""

    def __add__(self, other: Usage) -> Usage:
        unknown = [part for part in (self, other) if part.cost_usd is None]
        # What was not answered costs nothing; of nothing at all, no price is known.
        known = len(unknown) < 2 and all(part.requests == part.failed for part in unknown)
        cost = (self.cost_usd or 0) + (other.cost_usd or 0) if known else math.inf
        return Usage(
            requests=min(MOST, self.requests + other.requests),
            failed=min(MOST, self.failed + other.failed),
            prompt_tokens=min(MOST, self.prompt_tokens + other.prompt_tokens),
            completion_tokens=min(MOST, self.completion_tokens + other.completion_tokens),
            cost_usd=cost if math.isfinite(cost) else None,
        )


class JudgeInfo(Record):
    """The judge that labelled."""

    name: Text
    """`embedded`, `openai` …"""
    model: Text | None = None
    """The model's name at its endpoint; None for a judge that is not a model."""
    version: Text | None = None
    """Version of the judge's own parameters or prompt."""
    instructions: Text | None = None
    """What its user added to its prompt; None for nothing."""


class Labelling(Record):
    """A judge's answer for one call: labels, or the reason why there are none."""

    labels: Labels | None
    judge: JudgeInfo
    usage: Usage = Usage()
    windows: int = Field(default=1, ge=1, le=MOST)
    """How many pieces the call was labelled in."""
    warnings: tuple[Text, ...] = ()
    """Shown with every score made from these labels."""
    flags: tuple[Text, ...] = ()
    """Words for `Evaluation.flags`, such as `lexical_estimate`."""
    unscored: UnscoredCode | None = None
    """Why there are no labels; None when there are."""
    reason: Text | None = None
    """`unscored` in words."""
    prompt_version: Text | None = None
    """Version of the labelling prompt; None for a judge without one."""
    adherence_threshold: Probability | None = None
    """Lowest P(adherent) with which the judge labels a response as supported; None where it has
    none."""
