"""Contradictions of one detail: found, named in the reason, and not seen where nothing differs."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from by_hand import keyed
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator, diagnose
from rag_eval_integrations.judges.embedded import _alignment as alignment
from rag_eval_integrations.judges.embedded import _details as details_module
from rag_eval_integrations.judges.embedded import label_call
from rag_eval_integrations.judges.embedded._alignment import Difference, _has_others
from rag_eval_integrations.judges.embedded._contradictions import contradictions
from rag_eval_integrations.judges.embedded._details import Details, same_words
from rag_eval_integrations.judges.embedded._overlap import Overlap, overlap
from rag_eval_integrations.judges.embedded._reading import Reader
from rag_eval_integrations.judges.embedded._words import NOT_PLAIN, words

PAIRS = json.loads(Path(__file__).with_name("conflict_pairs.json").read_text("utf-8"))["pairs"]
EVALUATOR = RagEvaluator()


def evaluated(pair: dict[str, Any], response: str) -> Evaluation:
    call = RagCall(question=pair["question"], documents=[pair["document"]], response=pair[response])
    return EVALUATOR.evaluate_sync(call)


def found(document: str, response: str, question: str = "What is it?") -> list[str]:
    sentences = [f"{text}." for text in document.removesuffix(".").split(". ")]
    o = overlap(question, [sentences], [response])
    return [str(one) for one in contradictions(o, [response], sentences).get(0, [])]


def test_there_are_pairs_of_every_kind_in_both_halves() -> None:
    """Sixty and more, half of which no rule was chosen on."""
    halves = {pair["half"] for pair in PAIRS}

    assert len(PAIRS) >= 60
    assert halves == {"development", "kept aside"}
    for half in halves:
        kinds = {pair["conflict"] for pair in PAIRS if pair["half"] == half}
        assert kinds == {
            "number", "name", "lost", "added", "date", "unit", "antonym", "combined"
        }  # fmt: skip


@pytest.mark.parametrize("half", ["development", "kept aside"])
def test_one_wrong_detail_is_unsupported_and_named(half: str) -> None:
    """Nine of ten: adherence 0, the detail in the reason, a flag, and no good health."""
    pairs = [pair for pair in PAIRS if pair["half"] == half]
    named = 0
    for pair in pairs:
        evaluation = evaluated(pair, "false")
        adherence = evaluation.scores["adherence"]
        if "contradiction" in evaluation.flags:
            named += 1
            assert adherence.value == 0
            assert "(documents: " in (adherence.reason or "")
            assert "healthy" not in [one.pattern for one in diagnose(evaluation.scores)]
            assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation

    assert named >= 0.9 * len(pairs)


@pytest.mark.parametrize("half", ["development", "kept aside"])
def test_the_same_in_other_words_stays_supported(half: str) -> None:
    """Nineteen of twenty: clauses in another order, 40 and "forty", a unit spelled out."""
    pairs = [pair for pair in PAIRS if pair["half"] == half]

    supported = sum(evaluated(pair, "true").scores["adherence"].value == 1 for pair in pairs)

    assert supported >= 0.94 * len(pairs)


@pytest.mark.parametrize(
    ("document", "response", "said"),
    [
        ("Paris is the capital of France.", "Lyon is the capital of France.",
         ["name Lyon (documents: Paris)"]),
        ("The refund window is 30 days.", "The refund window is 60 days.",
         ["number 60 (documents: 30)"]),
        ("The station is not waterproof.", "The station is waterproof.",
         ["“waterproof” is affirmed (documents: denied)"]),
        ("The station is waterproof.", "The station isn't waterproof.",
         ["“waterproof” is denied (documents: affirmed)"]),
        ("It opens in March.", "It opens in June.", ["date June (documents: March)"]),
        ("The cable is 3 metres long.", "The cable is 3 feet long.",
         ["unit feet (documents: metres)"]),
        ("Anna Weber runs the shop. Paul Sahl repairs bicycles in town.",
         "In town, bicycles are what Paul Sahl repairs.", []),
        ("The warranty lasts 24 months.", "The warranty lasts 2 years.", []),
        ("The warranty lasts two years.", "The warranty lasts 24 months.", []),
        ("The lake is 3,987 metres wide.", "The lake is about 4,000 metres wide.", []),
        ("The shop opens at 9 am on weekdays.", "The shop opens at 10 am on weekdays.",
         ["number 10 (documents: 9)"]),
        ("The shop opens at 9 a.m. on weekdays.", "The shop opens at 10 a.m. on weekdays.",
         ["number 10 (documents: 9)"]),
        ("The shop opens at 9 a.m. on weekdays.", "The shop opens at 9 am on weekdays.", []),
        ("The tram costs 2.50 euros.", "The tram costs €2.50.", []),
        ("It is not only fast but also cheap.", "It is fast and cheap.", []),
        ("The lamp is not waterproof and should be kept indoors.", "The lamp should be kept indoors.",
         []),
        ("Check whether the cable is not damaged.", "The cable is damaged.", []),
        ("The town lies in Portugal.", "The town is Portuguese.", []),
        ("The road is 5 km long.", "The road is 5000 m long.", []),
        ("The road is 5km long.", "The road is 5 kilometres long.", []),
        ("The share is 4 per cent.", "The share is 4%.", []),
        ("It opened on 12 March 2020.", "It opened on 2020-03-12.", []),
        ("It opened on 3/12/2020.", "It opened on 12 March 2020.", []),
        ("It opened on 3/12/2020.", "It opened on 3 December 2020.", []),
        ("It opened on 25/12/2020.", "It opened on 25 November 2020.",
         ["date November (documents: December)"]),
        ("The level of salt rises with higher tides.", "The level of salt rises with lower tides.",
         ["opposite lower (documents: higher)"]),
        ("Anna met Rolf in Bonn. Rolf studied in Oslo.", "Anna met Rolf in Oslo.",
         ["name Oslo (documents: Bonn)"]),
        ("Do not open the valve, and do not use oil.", "Do open the valve, and do not use oil.",
         ["“open” is affirmed (documents: denied)"]),
        ("Caps keep out birds (see above).", "Caps keep out birds (Passage 3).", []),
        ("High loads and low cell counts delay healing.",
         "High loads and high cell counts delay healing.",
         ["opposite High (documents: low)"]),
        ("The lamp may not be available in all countries where it is sold.",
         "If you order it, the lamp may be available in all countries where it is sold.",
         ["“available” is affirmed (documents: denied)"]),
        ("Note that the pump must run. The valve must be open.", "The pump must run.", []),
        ("You can turn the lamp on and off.", "You can turn the lamp off.", []),
        ("Julian Paul Berger founded the club in Bonn.", "Julian Berger founded the club in Bonn.",
         []),
        ("3 Fold the dough into a ball.", "4. Fold the dough into a ball.", []),
    ],
)  # fmt: skip
def test_details(document: str, response: str, said: list[str]) -> None:
    """What is named, and what is not, because it says the same or no more than the document."""
    assert found(document, response) == said


def test_the_question_may_be_what_an_answer_contradicts() -> None:
    """The opposite, or another name, in what the question asks: said to be the question's."""
    question, document = "Can I turn off the hall lamp?", "Press the round button of the remote."
    for response, said in (
        ("Yes, you can turn on the hall lamp by the round button.", "opposite on (question: off)"),
        ("Yes, you can turn off the hall lamp by the round button.", None),
    ):
        o = overlap(question, [[document]], [response])
        named = contradictions(o, [response], [document], question).get(0, [])
        assert [str(one) for one in named] == ([said] if said else [])


def test_a_note_is_no_negation() -> None:
    """Without its ending, "Note" would be "not"."""
    assert not words("Note the time. It was noted in notes.").negated
    assert words("It was not.").negated


def test_only_the_contradicted_sentence_loses_its_support() -> None:
    """The others of the response keep theirs; the probability stays below the threshold."""
    documents = [["The ferry to Kos leaves at nine.", "Tickets cost 12 euros."]]
    response = ["The ferry to Kos leaves at nine.", "Tickets cost 19 euros."]

    labels = label_call(keyed(documents, response, question="When does the ferry leave?")).labels

    assert labels is not None
    assert [labels.support(key) for key in "ab"] == ["full", "partial"]
    assert labels.contradictions == {"b": ("number 19 (documents: 12)",)}
    assert (labels.adherence_probability() or 1) < 0.88
    entry = labels.entry("b")
    assert entry is not None
    assert "conflict: number 19 (documents: 12); " in entry.explanation


def test_a_changed_detail_ranks_below_its_original() -> None:
    """Also where nothing is labelled: probabilities fall with each detail that differs."""
    document = ["The ferry to Kos leaves the old harbour at nine and arrives before noon."]
    for changed in (
        "The ferry to Kos leaves the new harbour at nine.",
        "The ferry to Kos leaves the old harbour at ten.",
        "The ferry to Kos leaves the old harbour at nine and arrives after noon.",
        "The ferry to Kos does not leave the old harbour at nine.",
    ):
        probabilities = []
        for response in (document[0], changed):
            labels = label_call(keyed([document], [response], question="When does it go?")).labels
            assert labels is not None
            probabilities.append((labels.supported_probabilities or {})["a"])
        assert probabilities[1] < probabilities[0]


def test_a_long_sentence_costs_no_more_than_its_length() -> None:
    """A response and documents of a megabyte without a full stop are read to a limit."""
    text = "Paris 12 not Monday metres " * 40_000

    assert isinstance(found(text, text + "Lyon"), list)


@pytest.mark.slow
def test_gold_is_rarely_contradicted(ragbench: list[Path]) -> None:
    """Of supported sentences of 60 rows a file, at most 2 % are said to be contradicted."""
    supported = contradicted = 0
    for path in ragbench:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, itertools.islice(lines, 60)):
                documents = [[text for _, text in part] for part in row["documents_sentences"]]
                response = [text for _, text in row["response_sentences"]]
                against = contradictions(
                    overlap(row["question"], documents, response),
                    response,
                    list(itertools.chain.from_iterable(documents)),
                )
                unsupported = {key.strip(". ") for key in row["unsupported_response_sentence_keys"]}
                for number, (key, _) in enumerate(row["response_sentences"]):
                    supported += key not in unsupported
                    contradicted += key not in unsupported and number in against

    assert supported > 1000
    assert contradicted <= 0.02 * supported


# --- Short cuts, which must not change what is found


DETAILS = [
        "Paris", "Mores", "the", "The", "open", "closed", "not", "isn't", "five", "forty", "7",
        "5km", "2021-03-04", "days", "May", "monday", "per cent", "per", "cent", "%", "$", "-",
        "1.", "caf\u00e9", "O'Neil", "a_b", "x9", ",", ".", "Rome", "high", "low", "\u2014",
]  # fmt: skip
PIECES = st.sampled_from(DETAILS)
SENTENCES = st.builds(
    "".join,
    st.lists(
        st.builds("".join, st.tuples(PIECES, st.sampled_from(["", " ", " ", " "]))),
        min_size=1,
        max_size=9,
    ),
)


@given(SENTENCES | st.text(st.characters(max_codepoint=127), max_size=40))
def test_tokens_are_those_of_the_general_pattern(text: str) -> None:
    """The patterns for ASCII split as the general one; `same_words` says so of the words."""
    if text.isascii():
        every = details_module._TOKEN.findall(text)
        assert details_module._ASCII_TOKEN.findall(text) == every
        if not NOT_PLAIN.search(text):
            assert details_module._PLAIN_TOKEN.findall(text) == every
    if same_words(text):
        assert [t.stem for t in Details(text).tokens if t.written not in ".,;:!?()"] == [
            *words(text).stems
        ]


def test_a_sentence_that_is_not_read_has_no_other_details() -> None:
    """Where words alone say that a document sentence has none, reading it finds none."""
    spared = 0
    for there, said in itertools.product([*DETAILS, "Rome 7", "$ x9", "Mores 2 %"], repeat=2):
        document, response = f"It saw {there} town", f"It saw {said} town"
        o = overlap("What is it?", [[document]], [response])
        read = Reader(o, [document])
        if not _has_others(o, read.said(response), 0, read):
            spared += 1
            assert _every_detail(o, response, read) == []
    assert spared > 300


def _every_detail(o: Overlap, response: str, read: Reader) -> list[Difference]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "_has_others", lambda *_: True)
        return [*alignment._details(o, 0, read.said(response), 0, read)]
