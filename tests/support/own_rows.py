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


def _texts(documents: Sequence[Sequence[str]], response: Sequence[str]) -> Json:
    """The part of a row that holds its sentences, keyed."""
    keyed = [
        [[f"{number}{letters(place)}", text] for place, text in enumerate(document)]
        for number, document in enumerate(documents)
    ]
    return {
        "documents": [" ".join(document) for document in documents],
        "response": " ".join(response),
        "documents_sentences": keyed,
        "response_sentences": [[letters(place), text] for place, text in enumerate(response)],
    }


def row_of(
    shows: str,
    documents: Sequence[str],
    response: str,
    relevant: str,
    utilized: str,
    support: str,
    by_labels: str,
    columns: str = "",
    *,
    unsupported: str | None = "",
    question: str = "What should I know about it?",
    dataset: str | None = "workshop_test",
    plain: bool = True,
    **more: object,
) -> HandMade:
    """A row from short notes: sentences and keys between bars, columns as four fractions.

    Of each entry of `support`: response key, supporting keys, verdict.
    """
    row: Json = {
        "id": shows.replace(" ", "-"),
        "question": question,
        "generation_model_name": "by hand",
        "annotating_model_name": "by hand",
        **_texts([_cut(document) for document in documents], _cut(response)),
        "sentence_support_information": [_entry(note) for note in _cut(support)],
        "all_relevant_sentence_keys": _cut(relevant),
        "all_utilized_sentence_keys": _cut(utilized),
        **more,
    }
    if dataset is not None:
        row["dataset_name"] = dataset
    if unsupported is not None:
        row["unsupported_response_sentence_keys"] = _cut(unsupported)
    if columns:
        *shares, adherent = columns.split()
        worked = [float(Fraction(share)) for share in shares]
        row |= dict(zip(COLUMNS.values(), [*worked, adherent == "yes"], strict=True))
    return HandMade(shows, row, tuple(by_labels.split()), plain)


def _entry(note: str) -> Json:
    key, rest = note.split(":")
    *keys, verdict = rest.split()
    return {
        "response_sentence_key": key,
        "explanation": f"Looked at {key}.",
        "supporting_sentence_keys": keys,
        "fully_supported": {"yes": True, "no": False, "-": None}[verdict],
    }


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

# What a row shows, documents, response; relevant, utilized, support, worth by labels, columns.
HAND_MADE: tuple[HandMade, ...] = (
    row_of("everything relevant is used", BREAD, "Yeast makes gas. | That gas lifts the dough.",
           "0a | 0b", "0a | 0b", "a: 0a yes | b: 0b yes", "1/2 1 1 1 1", "2/4 2/4 2/2 yes"),
    row_of("nothing relevant and nothing used", BREAD, "Paris is the capital of France.",
           "", "", "a: general -", "0 0 1 1 1", "0/4 0/4 1 yes"),
    row_of("nothing relevant but one sentence used", CHAIN, "A dry chain squeaks.",
           "", "0a", "a: 0a yes", "0 0 0 1 1", "0/3 1/3 1 yes"),
    row_of("relevant sentences and nothing used", CHAIN, "I would buy a new bicycle.",
           "0a | 0b", "", "a: -", "2/3 0 0 0 0", "2/3 0/3 0/2 no", unsupported="a"),
    row_of("what is used is not what is relevant", CHAIN,
           "Oil stops the squeak. | Grit wears the teeth down.",
           "0a", "0b | 0c", "a: 0b yes | b: 0c yes", "1/3 1 0 1 1", "1/3 2/3 0/1 yes"),
    row_of("every sentence is relevant and used", CHAIN, "Oil the chain and keep it free of grit.",
           "0a | 0b | 0c", "0a | 0b | 0c", "a: 0a 0b 0c yes", "1 1 1 1 1", "1 1 1 yes"),
    row_of("one of two sentences is unsupported", TIDES,
           "The moon pulls the sea up. | Whales push it down.",
           "0a | 0b", "0a", "a: 0a yes | b: no", "2/5 1/2 1/2 0 1/2", "2/5 1/5 1/2 no",
           unsupported="b", overall_supported=True),
    row_of("one of three sentences is supported in part", TIDES,
           "The moon pulls the sea up. | Wind never delays it. | Harbours print tables of it.",
           "0a | 1a | 1b", "0a | 1a | 1b", "a: 0a yes | b: 1b no | c: 1a yes", "3/5 1 1 0 2/3",
           "3/5 3/5 3/3 no", unsupported="b"),
    row_of("keys with a dot behind", BREAD, "Yeast makes gas. | Gas smells of roses.",
           "0a. | 0b", "0b.", "a.: 0a. - | b.: -", "1/2 1/2 1/2 0 1/2", "2/4 1/4 0/2 no",
           unsupported="b."),
    row_of("keys of sentences that do not exist", BREAD, "Yeast makes gas.",
           "0a | 9z", "0a | 0q", "a: 0a 5c yes | k: 0b no", "1/4 1 1 1 1", "2/4 2/4 1/2 yes"),
    row_of("keys that stand twice", TIDES, "The moon pulls the sea up.",
           "0a | 0a | 0b", "0a | 0a", "a: 0a 0a yes", "2/5 1/2 1/2 1 1", "3/5 2/5 1/3 yes"),
    row_of("two keys in one string", BREAD, "Yeast makes gas. | That gas lifts the dough.",
           "0a, 0b", "0a, 0b", "a and b: 0a yes | a, b: 0a yes", "2/4 1 1 1 1", "1/4 1/4 1/1 yes"),
    row_of("a range of keys",
           ["Glue sets slowly. | Clamps hold the boards. | Dowels line them up. | Wax resists glue."],
           "Clamp the boards. | Wait a day. | Then sand them.",
           "0b through 0d", "0b | 0c", "a through c: 0b yes", "3/4 2/3 2/3 1 1", "1/4 2/4 0/1 yes"),
    row_of("capital and bracketed keys", CHAIN, "A dry chain squeaks.",
           "[0A] | `0b`", "(0a)", "A: 0A yes", "2/3 1/2 1/2 1 1", "2/3 1/3 0/2 yes"),
    row_of("keys of the other side", CHAIN, "A dry chain squeaks.",
           "a | 0a", "0a", "a: a - | 0a: 0b no", "1/3 1 1 0 0", unsupported=None),
    row_of("special words are support where no list says otherwise", CHAIN,
           "Machines wear. | Water is wet. | Two and two are four. | So it goes. | And on.",
           "0c", "",
           " | ".join(f"{key}: {word} -" for key, word in zip("abcde", SPECIAL_WORDS, strict=True)),
           "1/3 0 0 1 1", unsupported=None),
    row_of("a special word beside a real key", CHAIN, "A dry chain squeaks.",
           "0a", "0a | general", "a: 0a General. -", "1/3 1 1 1 1", "1/3 2/3 1/1 yes"),
    row_of("no verdict and no support", CHAIN, "A dry chain squeaks. | Chains are made of gold.",
           "0a", "0a", "a: 0a - | b: -", "1/3 1 1 0 1/2", unsupported=None),
    row_of("no verdict and a key that does not exist", CHAIN,
           "A dry chain squeaks. | Chains are made of gold.",
           "0a", "0a", "a: 0a - | b: 4c -", "1/3 1 1 0 1/2", unsupported=None),
    row_of("no support but not listed as unsupported", BREAD,
           "Yeast makes gas. | Bakers rise early.",
           "0a", "0a", "a: 0a - | b: -", "1/4 1 1 1 1", "1/4 1/4 1/1 yes"),
    row_of("the list and the verdict disagree", BREAD, "Yeast makes gas. | Bakers rise early.",
           "0a", "0a", "a: 0a yes | b: no", "1/4 1 1 0 1/2", "1/4 1/4 1/1 yes",
           question="When do bakers rise?"),
    row_of("the list names a sentence that does not exist", BREAD, "Yeast makes gas.",
           "0a", "0a", "a: 0a yes", "1/4 1 1 1 1", "1/4 1/4 1/1 no", unsupported="z",
           question="Where does the gas come from?"),
    row_of("a sentence without an entry", TIDES, "The moon pulls the sea up. | So they say.",
           "0a", "0a", "a: 0a yes", "1/5 1 1 unlabelled_sentences unlabelled_sentences",
           "1/5 1/5 1/1 yes"),
    row_of("a sentence without an entry beside an unsupported one", TIDES,
           "Whales push the sea down. | So they say.",
           "0a", "0a", "a: no", "1/5 1 1 0 unlabelled_sentences", "1/5 1/5 1/1 no",
           unsupported="a"),
    row_of("two entries of one sentence", TIDES,
           "The moon pulls the sea up. | Twice a day it comes in.",
           "0a | 0b", "0a | 0b", "a: 0a yes | b: 0b yes | a: 1b no", "2/5 1 1 0 1/2",
           "2/5 2/5 2/2 no", unsupported="a"),
    row_of("one document of one sentence", ["Bees dance to point at flowers."], "They dance.",
           "0a", "0a", "a: 0a yes", "1 1 1 1 1", "1 1 1 yes"),
    row_of("many documents",
           [f"Shelf {number} holds the volumes on letter {number}." for number in range(12)],
           "Look on shelf three and shelf eleven.",
           "3a | 11a | 1a", "3a | 11a", "a: 3a 11a yes", "1/4 2/3 2/3 1 1", "3/12 2/12 2/3 yes"),
    row_of("document keys past z",
           [" | ".join(f"Bed {number} grows beans." for number in range(30)), "Beans like sun."],
           "Beds near the end grow beans. | Beans like sun.",
           "0z | 0aa | 0ad | 1a | 0ae", "0aa | 1a", "a: 0z 0aa yes | b: 1a yes", "4/31 1/2 1/2 1 1",
           "5/31 2/31 2/5 yes"),
    row_of("response keys past z", ["Bed six grows beans. | Bed seven lies fallow."],
           " | ".join(f"Row {number} is full." for number in range(28)),
           "0a", "0a",
           " | ".join(f"{letters(at)}: 0a {'no' if at == 27 else 'yes'}" for at in range(28)),
           "1/2 1 1 0 27/28", "1/2 1/2 1/1 no", unsupported="ab"),
    row_of("an empty document keeps its number",
           ["Bees dance.", "", "Drones do not. | Queens lay eggs."],
           "Bees dance but drones do not.",
           "0a | 2a", "2a | 1a", "a: 0a 2a yes", "2/3 1/2 1/2 1 1", "2/3 2/3 1/2 yes"),
    row_of("one document given twice", [WATER, WATER], "Pumps lift the water.",
           "0a | 0b | 1a | 1b", "0b", "a: 0b yes", "2/3 1/4 1/4 1 1", "4/6 1/6 1/4 yes"),
    row_of("a recorded response sentence without text", [WATER], "Pumps lift the water. | ",
           "0b", "0b", "a: 0b yes | b: -", "1/3 1 1 1 1", "1/3 1/3 1/1 yes", dataset=None,
           plain=False),
    row_of("recorded sentences that no English splitter finds", ["水は低い所へ流れる | 砂は水をきれいにする"], "水は流れる",
           "0a", "0a", "a: 0a yes", "1/2 1 1 1 1", "1/2 1/2 1/1 yes", dataset=None, plain=False),
    row_of("an empty response", [WATER], "",
           "0a", "", "", " ".join(["empty_response"] * 5)),
    row_of("no documents", [], "Pumps lift the water.",
           "", "", "a: general -", " ".join(["no_context"] * 5)),
    row_of("no question", [WATER], "Pumps lift the water.",
           "0b", "0b", "a: 0b yes", " ".join(["no_question"] * 5), question=" "),
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
    documents = [[_sentence(random, who) for _ in range(size)] for size in sizes]
    answers = 28 if random.random() < 0.02 else random.choice((1, 1, 2, 3, 4))
    response = [_sentence(random, who) for _ in range(answers)]
    row: Json = {
        "id": str(number),
        "dataset_name": dataset,
        "question": f"What about the {random.choice(who)} ({number})?",
        "generation_model_name": "made",
        "annotating_model_name": "made",
        **_texts(documents, response),
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
    names = "id question documents response documents_sentences response_sentences dataset_name"
    copy: Json = {name: row[name] for name in names.split()}
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
    documents = [[f"Line {inner}." for inner in range(size)] for size in sizes]
    texts = _texts(documents, [f"Answer {key}." for key in answers])
    keys = document_keys(texts)
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
        **texts,
        "all_relevant_sentence_keys": draw(st.none() | lists),
        "all_utilized_sentence_keys": draw(lists),
        "sentence_support_information": draw(st.lists(entry, max_size=4)),
    }
    unsupported = draw(st.none() | lists)
    return row if unsupported is None else row | {"unsupported_response_sentence_keys": unsupported}
