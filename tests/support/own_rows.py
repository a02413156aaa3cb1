"""Labelled rows of our own, in RAGBench's published format: written by hand, and generated.

`HAND_MADE`: each shows one thing that labels do, with its scores worked out on paper. `made_row`:
any number of rows drawn from a `random.Random`, as odd as recorded ones and somewhat more often.
`second_opinion`: the labels of somebody who looks at the same rows and errs. `any_rows`: rows with
whatever labels hypothesis thinks of.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from naive import COLUMNS, SPECIAL_WORDS, Row, cleaned, document_keys, published, response_keys

Json = dict[str, Any]
Support = Sequence[tuple[str, str, bool | None]]
"""Of each entry: response key, supporting keys (separated by spaces), verdict."""


def letters(number: int) -> str:
    """Count a … z, aa, ab … up to a sentence's letters, one by one."""
    names = [""]
    for _ in range(number // 26 + 1):
        names += [names[len(names) // 26] + chr(ord("a") + place) for place in range(26)]
    return names[number + 1]


@dataclass(frozen=True)
class HandMade:
    """A row with its scores as worked out on paper."""

    shows: str
    row: Json
    by_labels: tuple[str, ...]
    """Under the labelling formulas, cleaned keys: relevance, utilization, completeness, adherence,
    supported fraction; a fraction, or why there is none."""
    plain: bool
    """Whether its sentences are what any splitter finds in its texts."""


def row_of(
    shows: str,
    documents: Sequence[str],
    response: str,
    *,
    relevant: Sequence[str],
    utilized: Sequence[str],
    support: Support,
    unsupported: Sequence[str] | None = (),
    columns: str = "",
    by_labels: str,
    question: str = "What should I know about it?",
    dataset: str | None = "workshop_test",
    plain: bool = True,
    **more: object,
) -> HandMade:
    """A row from short notes: sentences between bars, columns as four fractions."""
    keyed = [
        [[f"{number}{letters(place)}", text] for place, text in enumerate(_cut(document))]
        for number, document in enumerate(documents)
    ]
    row: Json = {
        "id": shows.replace(" ", "-"),
        "question": question,
        "documents": [" ".join(text for _, text in document) for document in keyed],
        "response": " ".join(_cut(response)),
        "generation_model_name": "by hand",
        "annotating_model_name": "by hand",
        "documents_sentences": keyed,
        "response_sentences": [[letters(place), text] for place, text in enumerate(_cut(response))],
        "sentence_support_information": [
            {
                "response_sentence_key": key,
                "explanation": f"Looked at {key}.",
                "supporting_sentence_keys": keys.split(),
                "fully_supported": verdict,
            }
            for key, keys, verdict in support
        ],
        "all_relevant_sentence_keys": list(relevant),
        "all_utilized_sentence_keys": list(utilized),
        "relevance_explanation": "",
        "overall_supported_explanation": "",
        **more,
    }
    if dataset is not None:
        row["dataset_name"] = dataset
    if unsupported is not None:
        row["unsupported_response_sentence_keys"] = list(unsupported)
    if columns:
        *shares, adherent = columns.split()
        worked = [float(Fraction(share)) for share in shares]
        row |= dict(zip(COLUMNS.values(), [*worked, adherent == "yes"], strict=True))
    return HandMade(shows, row, tuple(by_labels.split()), plain)


def _cut(text: str) -> list[str]:
    return [part.strip() for part in text.split("|")] if text else []


BREAD = [
    "Yeast turns sugar into gas. | The gas makes dough rise.",
    "Salt slows yeast down. | A hot oven browns the crust.",
]
CHAIN = ["A dry chain squeaks. | Oil stops the squeak. | Grit wears the teeth down."]
TIDES = [
    "The moon pulls the sea up. | Twice a day the water comes in.",
    "Harbours print tables of it. | A strong wind can delay it. | Fishermen know the tables well.",
]
WATER = "Wells reach the water below. | Pumps lift it. | Sand keeps it clean."
ONE_YES = [("a", "0a", True)]

HAND_MADE: tuple[HandMade, ...] = (
    row_of(
        "everything relevant is used",
        BREAD,
        "Yeast makes gas. | That gas lifts the dough.",
        relevant=["0a", "0b"],
        utilized=["0a", "0b"],
        support=[("a", "0a", True), ("b", "0b", True)],
        columns="2/4 2/4 2/2 yes",
        by_labels="1/2 1 1 1 1",
    ),
    row_of(
        "nothing relevant and nothing used",
        BREAD,
        "Paris is the capital of France.",
        relevant=[],
        utilized=[],
        support=[("a", "general", None)],
        columns="0/4 0/4 1 yes",
        by_labels="0 0 1 1 1",
        dataset="kitchen_test",
    ),
    row_of(
        "nothing relevant but one sentence used",
        CHAIN,
        "A dry chain squeaks.",
        relevant=[],
        utilized=["0a"],
        support=ONE_YES,
        columns="0/3 1/3 1 yes",
        by_labels="0 0 0 1 1",
    ),
    row_of(
        "relevant sentences and nothing used",
        CHAIN,
        "I would buy a new bicycle.",
        relevant=["0a", "0b"],
        utilized=[],
        support=[("a", "", None)],
        unsupported=["a"],
        columns="2/3 0/3 0/2 no",
        by_labels="2/3 0 0 0 0",
    ),
    row_of(
        "what is used is not what is relevant",
        CHAIN,
        "Oil stops the squeak. | Grit wears the teeth down.",
        relevant=["0a"],
        utilized=["0b", "0c"],
        support=[("a", "0b", True), ("b", "0c", True)],
        columns="1/3 2/3 0/1 yes",
        by_labels="1/3 1 0 1 1",
    ),
    row_of(
        "every sentence is relevant and used",
        CHAIN,
        "Oil the chain and keep it free of grit.",
        relevant=["0a", "0b", "0c"],
        utilized=["0a", "0b", "0c"],
        support=[("a", "0a 0b 0c", True)],
        columns="1 1 1 yes",
        by_labels="1 1 1 1 1",
        overall_supported=True,
    ),
    row_of(
        "one of two sentences is unsupported",
        TIDES,
        "The moon pulls the sea up. | Whales push it down.",
        relevant=["0a", "0b"],
        utilized=["0a"],
        support=[("a", "0a", True), ("b", "", False)],
        unsupported=["b"],
        columns="2/5 1/5 1/2 no",
        by_labels="2/5 1/2 1/2 0 1/2",
        dataset="coast_validation",
        overall_supported=True,
    ),
    row_of(
        "one of three sentences is supported in part",
        TIDES,
        "The moon pulls the sea up. | Wind never delays it. | Harbours print tables of it.",
        relevant=["0a", "1a", "1b"],
        utilized=["0a", "1a", "1b"],
        support=[("a", "0a", True), ("b", "1b", False), ("c", "1a", True)],
        unsupported=["b"],
        columns="3/5 3/5 3/3 no",
        by_labels="3/5 1 1 0 2/3",
        dataset="coast_validation",
    ),
    row_of(
        "keys with a dot behind",
        BREAD,
        "Yeast makes gas. | Gas smells of roses.",
        relevant=["0a.", "0b"],
        utilized=["0b."],
        support=[("a.", "0a.", None), ("b.", "", None)],
        unsupported=["b."],
        columns="2/4 1/4 0/2 no",
        by_labels="1/2 1/2 1/2 0 1/2",
        dataset="kitchen_test",
    ),
    row_of(
        "keys of sentences that do not exist",
        BREAD,
        "Yeast makes gas.",
        relevant=["0a", "9z"],
        utilized=["0a", "0q"],
        support=[("a", "0a 5c", True), ("k", "0b", False)],
        columns="2/4 2/4 1/2 yes",
        by_labels="1/4 1 1 1 1",
        dataset="kitchen_test",
    ),
    row_of(
        "keys that stand twice",
        TIDES,
        "The moon pulls the sea up.",
        relevant=["0a", "0a", "0b"],
        utilized=["0a", "0a"],
        support=[("a", "0a 0a", True)],
        columns="3/5 2/5 1/3 yes",
        by_labels="2/5 1/2 1/2 1 1",
        dataset="coast_validation",
    ),
    row_of(
        "two keys in one string",
        BREAD,
        "Yeast makes gas. | That gas lifts the dough.",
        relevant=["0a, 0b"],
        utilized=["0a, 0b"],
        support=[("a and b", "0a", True), ("a, b", "0a", True)],
        columns="1/4 1/4 1/1 yes",
        by_labels="2/4 1 1 1 1",
        dataset="kitchen_test",
    ),
    row_of(
        "a range of keys",
        ["Glue sets slowly. | Clamps hold the boards. | Dowels line them up. | Wax resists glue."],
        "Clamp the boards. | Wait a day. | Then sand them.",
        relevant=["0b through 0d"],
        utilized=["0b", "0c"],
        support=[("a through c", "0b", True)],
        columns="1/4 2/4 0/1 yes",
        by_labels="3/4 2/3 2/3 1 1",
    ),
    row_of(
        "capital and bracketed keys",
        CHAIN,
        "A dry chain squeaks.",
        relevant=["[0A]", "`0b`"],
        utilized=["(0a)"],
        support=[("A", "0A", True)],
        columns="2/3 1/3 0/2 yes",
        by_labels="2/3 1/2 1/2 1 1",
    ),
    row_of(
        "keys of the other side",
        CHAIN,
        "A dry chain squeaks.",
        relevant=["a", "0a"],
        utilized=["0a"],
        support=[("a", "a", None), ("0a", "0b", False)],
        unsupported=None,
        by_labels="1/3 1 1 0 0",
    ),
    row_of(
        "special words are support where no list says otherwise",
        CHAIN,
        "Machines wear. | Water is wet. | Two and two are four. | So it goes. | And on.",
        relevant=["0c"],
        utilized=[],
        support=[
            ("a", "general", None),
            ("b", "well_known_fact", None),
            ("c", "numerical_reasoning", None),
            ("d", "supported_without_sentence", None),
            ("e", "support_without_sentence", None),
        ],
        unsupported=None,
        by_labels="1/3 0 0 1 1",
    ),
    row_of(
        "a special word beside a real key",
        CHAIN,
        "A dry chain squeaks.",
        relevant=["0a"],
        utilized=["0a", "general"],
        support=[("a", "0a General.", None)],
        columns="1/3 2/3 1/1 yes",
        by_labels="1/3 1 1 1 1",
    ),
    row_of(
        "no verdict and no support",
        CHAIN,
        "A dry chain squeaks. | Chains are made of gold.",
        relevant=["0a"],
        utilized=["0a"],
        support=[("a", "0a", None), ("b", "", None)],
        unsupported=None,
        by_labels="1/3 1 1 0 1/2",
    ),
    row_of(
        "no verdict and a key that does not exist",
        CHAIN,
        "A dry chain squeaks. | Chains are made of gold.",
        relevant=["0a"],
        utilized=["0a"],
        support=[("a", "0a", None), ("b", "4c", None)],
        unsupported=None,
        by_labels="1/3 1 1 0 1/2",
    ),
    row_of(
        "no support but not listed as unsupported",
        BREAD,
        "Yeast makes gas. | Bakers rise early.",
        relevant=["0a"],
        utilized=["0a"],
        support=[("a", "0a", None), ("b", "", None)],
        columns="1/4 1/4 1/1 yes",
        by_labels="1/4 1 1 1 1",
        dataset="kitchen_test",
    ),
    row_of(
        "the list and the verdict disagree",
        BREAD,
        "Yeast makes gas. | Bakers rise early.",
        relevant=["0a"],
        utilized=["0a"],
        support=[("a", "0a", True), ("b", "", False)],
        columns="1/4 1/4 1/1 yes",
        by_labels="1/4 1 1 0 1/2",
        dataset="kitchen_test",
        overall_supported=False,
        question="When do bakers rise?",
    ),
    row_of(
        "the list names a sentence that does not exist",
        BREAD,
        "Yeast makes gas.",
        relevant=["0a"],
        utilized=["0a"],
        support=ONE_YES,
        unsupported=["z"],
        columns="1/4 1/4 1/1 no",
        by_labels="1/4 1 1 1 1",
        dataset="kitchen_test",
        question="Where does the gas come from?",
    ),
    row_of(
        "a sentence without an entry",
        TIDES,
        "The moon pulls the sea up. | So they say.",
        relevant=["0a"],
        utilized=["0a"],
        support=ONE_YES,
        columns="1/5 1/5 1/1 yes",
        by_labels="1/5 1 1 unlabelled_sentences unlabelled_sentences",
        dataset="coast_validation",
    ),
    row_of(
        "a sentence without an entry beside an unsupported one",
        TIDES,
        "Whales push the sea down. | So they say.",
        relevant=["0a"],
        utilized=["0a"],
        support=[("a", "", False)],
        unsupported=["a"],
        columns="1/5 1/5 1/1 no",
        by_labels="1/5 1 1 0 unlabelled_sentences",
        dataset="coast_validation",
    ),
    row_of(
        "two entries of one sentence",
        TIDES,
        "The moon pulls the sea up. | Twice a day it comes in.",
        relevant=["0a", "0b"],
        utilized=["0a", "0b"],
        support=[("a", "0a", True), ("b", "0b", True), ("a", "1b", False)],
        unsupported=["a"],
        columns="2/5 2/5 2/2 no",
        by_labels="2/5 1 1 0 1/2",
        dataset="coast_validation",
    ),
    row_of(
        "one document of one sentence",
        ["Bees dance to point at flowers."],
        "They dance.",
        relevant=["0a"],
        utilized=["0a"],
        support=ONE_YES,
        columns="1 1 1 yes",
        by_labels="1 1 1 1 1",
        dataset="garden_train",
    ),
    row_of(
        "many documents",
        [f"Shelf {number} holds the volumes on letter {number}." for number in range(12)],
        "Look on shelf three and shelf eleven.",
        relevant=["3a", "11a", "1a"],
        utilized=["3a", "11a"],
        support=[("a", "3a 11a", True)],
        columns="3/12 2/12 2/3 yes",
        by_labels="1/4 2/3 2/3 1 1",
        dataset="garden_train",
    ),
    row_of(
        "document keys past z",
        [" | ".join(f"Bed {number} grows beans." for number in range(30)), "Beans like sun."],
        "Beds near the end grow beans. | Beans like sun.",
        relevant=["0z", "0aa", "0ad", "1a", "0ae"],
        utilized=["0aa", "1a"],
        support=[("a", "0z 0aa", True), ("b", "1a", True)],
        columns="5/31 2/31 2/5 yes",
        by_labels="4/31 1/2 1/2 1 1",
        dataset="garden_train",
    ),
    row_of(
        "response keys past z",
        ["Bed six grows beans. | Bed seven lies fallow."],
        " | ".join(f"Row {number} is full." for number in range(28)),
        relevant=["0a"],
        utilized=["0a"],
        support=[(letters(place), "0a", place != 27) for place in range(28)],
        unsupported=["ab"],
        columns="1/2 1/2 1/1 no",
        by_labels="1/2 1 1 0 27/28",
        dataset="garden_train",
    ),
    row_of(
        "an empty document keeps its number",
        ["Bees dance.", "", "Drones do not. | Queens lay eggs."],
        "Bees dance but drones do not.",
        relevant=["0a", "2a"],
        utilized=["2a", "1a"],
        support=[("a", "0a 2a", True)],
        columns="2/3 2/3 1/2 yes",
        by_labels="2/3 1/2 1/2 1 1",
        dataset="garden_train",
    ),
    row_of(
        "one document given twice",
        [WATER, WATER],
        "Pumps lift the water.",
        relevant=["0a", "0b", "1a", "1b"],
        utilized=["0b"],
        support=[("a", "0b", True)],
        columns="4/6 1/6 1/4 yes",
        by_labels="2/3 1/4 1/4 1 1",
        dataset="garden_train",
    ),
    row_of(
        "a recorded response sentence without text",
        [WATER],
        "Pumps lift the water. | ",
        relevant=["0b"],
        utilized=["0b"],
        support=[("a", "0b", True), ("b", "", None)],
        columns="1/3 1/3 1/1 yes",
        by_labels="1/3 1 1 1 1",
        plain=False,
        dataset=None,
    ),
    row_of(
        "recorded sentences that no English splitter finds",
        ["水は低い所へ流れる | 砂は水をきれいにする"],
        "水は流れる",
        relevant=["0a"],
        utilized=["0a"],
        support=ONE_YES,
        columns="1/2 1/2 1/1 yes",
        by_labels="1/2 1 1 1 1",
        plain=False,
        dataset=None,
    ),
    row_of(
        "an empty response",
        [WATER],
        "",
        relevant=["0a"],
        utilized=[],
        support=[],
        by_labels=" ".join(["empty_response"] * 5),
    ),
    row_of(
        "no documents",
        [],
        "Pumps lift the water.",
        relevant=[],
        utilized=[],
        support=[("a", "general", None)],
        by_labels=" ".join(["no_context"] * 5),
    ),
    row_of(
        "no question",
        [WATER],
        "Pumps lift the water.",
        question=" ",
        relevant=["0b"],
        utilized=["0b"],
        support=[("a", "0b", True)],
        by_labels=" ".join(["no_question"] * 5),
    ),
)  # fmt: skip


# --- generated ---------------------------------------------------------------------------------

SETS = ("harbour_test", "orchard_validation", "quarry_train")
_WHO = {
    "harbour_test": ["pilot", "crane", "ferry", "buoy", "diver", "tug", "gull", "rope"],
    "orchard_validation": ["grower", "ladder", "bee", "frost", "pear", "hedge", "basket", "crow"],
    "quarry_train": ["mason", "drill", "cart", "ledge", "hammer", "dust", "slab", "horse"],
}
_DOES = ["waits for", "moves", "finds", "outlasts", "follows", "needs", "covers", "stops"]


def _sentence(random: random.Random, who: Sequence[str]) -> str:
    return f"The {random.choice(who)} {random.choice(_DOES)} the {random.choice(who)}."


def _some(random: random.Random, keys: Sequence[str], share: float) -> list[str]:
    return [key for key in keys if random.random() < share]


def _written(random: random.Random, keys: Sequence[str], existing: Sequence[str]) -> list[str]:
    """Keys as somebody writes them: now and then with a dot, twice, or one too many."""
    written = list(keys)
    odd = random.random()
    if written and odd < 0.05:
        place = random.randrange(len(written))
        written[place] = random.choice(["{}.", " {} ", "`{}`"]).format(written[place])
    elif written and odd < 0.08:
        # RAGBench's own shares stay within 1, so a list is never longer than the documents.
        if len(written) < len(existing):
            written.append(random.choice(written))
    elif odd < 0.11 and len(written) < len(existing):
        written.append(random.choice(["9zz", "0q", "general"]))
    elif len(written) > 1 and odd < 0.13:
        last = written.pop()
        written[-1] = f"{written[-1]}, {last}"
    return written


def made_row(random: random.Random, number: int = 0) -> Json:
    """A gold row in RAGBench's format with its published columns, drawn from `random`."""
    dataset = random.choice(SETS)
    who = _WHO[dataset]
    sizes = [random.choice((1, 1, 2, 3, 4)) for _ in range(random.choice((1, 2, 2, 3, 5)))]
    if random.random() < 0.05:
        sizes[-1] = 29
    if random.random() < 0.05:
        sizes.append(0)
    documents = [
        [[f"{place}{letters(inner)}", _sentence(random, who)] for inner in range(size)]
        for place, size in enumerate(sizes)
    ]
    answers = 28 if random.random() < 0.02 else random.choice((1, 1, 2, 3, 4))
    response = [[letters(place), _sentence(random, who)] for place in range(answers)]
    row: Json = {
        "id": str(number),
        "dataset_name": dataset,
        "question": f"What about the {random.choice(who)} ({number})?",
        "documents": [" ".join(text for _, text in document) for document in documents],
        "response": " ".join(text for _, text in response),
        "generation_model_name": "made",
        "annotating_model_name": "made",
        "documents_sentences": documents,
        "response_sentences": response,
    }
    keys = document_keys(row)
    relevant = _some(random, keys, random.choice((0.0, 0.2, 0.5, 0.9)))
    utilized = _some(random, relevant, random.choice((0.0, 0.5, 0.9))) + _some(
        random, [key for key in keys if key not in relevant], 0.05
    )
    row["all_relevant_sentence_keys"] = _written(random, relevant, keys)
    row["all_utilized_sentence_keys"] = _written(random, utilized, keys)
    entries, unsupported = _support(random, row, random.choice((0.0, 0.0, 0.3)))
    row["sentence_support_information"] = entries
    row["unsupported_response_sentence_keys"] = unsupported
    row |= published(row)
    if row["dataset_name"] == "harbour_test":
        row |= {
            "gpt3_adherence": float(random.random() < 0.8),
            "gpt3_context_relevance": random.randrange(9) / 4,
            "gpt35_utilization": random.randrange(9) / 4,
            "ragas_faithfulness": random.choice((None, 0.25, 0.5, 0.75, 1.0)),
            "ragas_context_relevance": random.randrange(5) / 4,
            "trulens_groundedness": random.randrange(5) / 4,
            "trulens_context_relevance": random.choice((None, 0.0, 0.5)),
        }
    row["rating"] = random.choice((None, 1, 2, 3, 4, 5))
    row["doc_id"] = f"text {number % 12}"
    row["system_id"] = f"system {number % 7}"
    return row


def _support(random: random.Random, row: Row, bad: float) -> tuple[list[Json], list[str]]:
    """Entries of every response sentence, and the list of the unsupported ones."""
    entries, unsupported = [], []
    documents = document_keys(row)
    for key in response_keys(row):
        fails = random.random() < bad
        given = _some(random, documents, 0.3)[:3]
        if not given and random.random() < 0.7:
            given = [random.choice(SPECIAL_WORDS)]
        verdict = None if random.random() < 0.6 else not fails
        if fails and random.random() < 0.7:
            given = []
        if fails:
            unsupported.append(key + random.choice(("", "", "", ".")))
        entry = {
            "response_sentence_key": key + random.choice(("", "", "", ".")),
            "explanation": "",
            "supporting_sentence_keys": _written(random, given, documents),
            "fully_supported": verdict,
        }
        if random.random() > 0.03:
            entries.append(entry)
        if random.random() < 0.03:
            entries.append({**entry, "supporting_sentence_keys": [], "fully_supported": False})
    if random.random() < 0.03:
        unsupported = []
    return entries, unsupported


def made_rows(count: int, *, start: int = 7) -> list[Json]:
    """The same rows every time."""
    source = random.Random(start)
    return [made_row(source, number) for number in range(count)]


def second_opinion(random: random.Random, row: Row, *, probabilities: bool) -> Json:
    """The row with the labels of somebody who errs, and is sure or says how sure.

    One in twenty splits the documents otherwise, and one in twenty the response.
    """
    keys, answers = document_keys(row), response_keys(row)
    copy: Json = {
        name: row[name]
        for name in ("id", "question", "documents", "response", "documents_sentences",
                     "response_sentences", "dataset_name")
        if name in row
    }  # fmt: skip
    labels: Json = {}
    for kind in ("relevant", "utilized"):
        gold = cleaned(row[f"all_{kind}_sentence_keys"], keys)
        chances = {key: _chance(random, key in gold) for key in keys}
        likely = [key for key in keys if chances[key] >= 0.5]
        labels[f"all_{kind}_sentence_keys"] = _written(random, likely, keys)
        if probabilities:
            labels[f"{kind}_probabilities"] = chances
    listed = cleaned(row["unsupported_response_sentence_keys"], answers)
    chances = {key: _chance(random, key not in listed) for key in answers}
    labels["sentence_support_information"] = [
        {
            "response_sentence_key": key,
            "supporting_sentence_keys": _some(random, keys, 0.3),
            "fully_supported": chances[key] >= 0.5,
        }
        for key in answers
        if random.random() > 0.03
    ]
    if probabilities:
        labels["supported_probabilities"] = chances
    copy["labels"] = labels
    # The same words, so that the rows are still the same call.
    apart = random.random()
    if apart < 1 / 20:
        copy["documents_sentences"] = [
            [[key, text + " "] for key, text in part] for part in row["documents_sentences"]
        ]
    elif apart < 2 / 20:
        copy["response_sentences"] = [[key, text + " "] for key, text in row["response_sentences"]]
    return copy


def _chance(random: random.Random, true: bool) -> float:
    # Sixteenths: their products and sums are exact, so that ties are ties in any arithmetic.
    sixteenths = random.choice((9, 12, 14, 15, 16) if true else (0, 1, 2, 4, 7))
    return (16 - sixteenths if random.random() < 0.15 else sixteenths) / 16


@st.composite
def any_rows(draw: st.DrawFn) -> Json:
    """Small rows whose lists hold any strings that look like keys, in any number."""
    sizes = draw(st.lists(st.integers(0, 4), max_size=3))
    answers = [letters(place) for place in range(draw(st.integers(0, 3)))]
    documents = [
        [[f"{place}{letters(inner)}", f"Line {inner}."] for inner in range(size)]
        for place, size in enumerate(sizes)
    ]
    keys = [key for document in documents for key, _ in document]
    odd = ["0a, 0b", "1a;1b & 1c", "0a through c", "1b-1d", "0d to 0a", "0a–1a", "a, b", "a to c",
           "9z", "Aa", "", "0a9z", "a 0a", *SPECIAL_WORDS, "General."]  # fmt: skip
    decorated = [f"[{key.upper()}]." for key in (*keys, *answers)]
    written = st.sampled_from([*keys, *keys, *answers, *answers, *decorated, *odd])
    lists = st.lists(written, max_size=5)
    entry = st.fixed_dictionaries(
        {
            "response_sentence_key": written,
            "supporting_sentence_keys": st.none() | lists,
            "fully_supported": st.none() | st.booleans(),
        }
    )
    row = {
        "question": draw(st.sampled_from(["What is on the lines?", " "])),
        "documents": [" ".join(text for _, text in document) for document in documents],
        "response": " ".join(f"Answer {key}." for key in answers),
        "documents_sentences": documents,
        "response_sentences": [[key, f"Answer {key}."] for key in answers],
        "all_relevant_sentence_keys": draw(st.none() | lists),
        "all_utilized_sentence_keys": draw(lists),
        "sentence_support_information": draw(st.lists(entry, max_size=4)),
    }
    unsupported = draw(st.none() | lists)
    return row if unsupported is None else row | {"unsupported_response_sentence_keys": unsupported}
