"""`Citations`: which documents an answer cites, and whether they support it."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from rag_eval_integrations import Document, Evaluation, Evaluations, RagCall, RagEvaluator
from rag_eval_integrations.evaluations.console import call_details
from rag_eval_integrations.judges import LLMJudge
from rag_eval_integrations.metrics import Citations
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.sentences._citations import citations_of, without_citations
from rag_eval_integrations.testing import ScriptedModel

FACTS = (
    "The ferry leaves at nine.",
    "It carries forty passengers.",
    "A ticket costs six euros.",
    "Dogs travel free of charge.",
)


def reads(request: CompletionRequest) -> str:
    """Support each sentence by all document sentences of the same words."""
    lines = dict(re.findall(r"^(\d*[a-z]+): (.*)$", request.messages[1].content, re.M))
    words = {key: " ".join(re.findall(r"\w+", text)).lower() for key, text in lines.items()}
    entries = []
    for key, said in words.items():
        if key.isalpha():
            keys = [k for k, text in words.items() if text == said and not k.isalpha()]
            entry = {"response_sentence_key": key, "supporting_sentence_keys": keys[:1]}
            entries.append({**entry, "fully_supported": bool(keys)})
    lists: dict[str, list[str]] = {
        f"all_{word}_sentence_keys": [] for word in ("relevant", "utilized")
    }
    return json.dumps({**lists, "sentence_support_information": entries})


def evaluated(answer: str, documents: list[Document | str]) -> Evaluation:
    """Evaluate an answer by a model that compares words."""
    evaluator = RagEvaluator(LLMJudge(ScriptedModel(reads)), [Citations()])
    return evaluator.evaluate_sync(RagCall("When?", documents, answer))


def values(answer: str, documents: list[Document | str]) -> list[object]:
    """Return the values of the three scores, or the codes of why there are none."""
    scores = evaluated(answer, documents).scores.values()
    return [score.unscored if score.value is None else score.value for score in scores]


def cited(answer: str, documents: list[Document | str]) -> list[tuple[int, ...]]:
    """Return the documents of each citation."""
    call = sentencize(RagCall("When?", documents, answer), Punkt())
    return [citation.documents for citation in citations_of(call).citations]


NAMED: list[Document | str] = [
    Document(text, id=f"d{number}", metadata={"source": f"files/page-{number}.pdf"})
    for number, text in enumerate(FACTS)
]

MARKERS = [
    ("It leaves at nine [1].", [(0,)]),
    ("It leaves at nine.[4]", [(3,)]),
    ("It leaves at nine [1, 3].", [(0,), (2,)]),
    ("It leaves at nine [1][3].", [(0,), (2,)]),
    ("It leaves at nine [2-4].", [(1,), (2,), (3,)]),
    ("It leaves at nine.¹", [(0,)]),
    ("The ferry leaves early¹,³.", [(0,), (2,)]),
    ("It leaves at nine.[^2]", [(1,)]),
    ("It leaves at nine (doc 2).", [(1,)]),
    ("It leaves at nine (Document 4).", [(3,)]),
    ("It leaves at nine【1】.", [(0,)]),
    ("It leaves at nine [source: d2].", [(2,)]),
    ("It leaves at nine. (Source: page-3.pdf)", [(3,)]),
    ("It leaves at nine [page-1.pdf].", [(1,)]),
    ("It leaves at nine (page-1.pdf, p. 3).", [(1,)]),
    ("It leaves at nine [d1].", [(1,)]),
    ("It leaves at nine [d1, d3].", [(1,), (3,)]),
    ("It leaves at nine <source_id>d1</source_id>.", [(1,)]),
    ("It leaves at nine <source_id>2</source_id>.", [(1,)]),
    ("It leaves at nine [0] with forty [3].", [(0,), (3,)]),
    ("It leaves at nine [4] with forty [9].", [(3,), ()]),
    ("It leaves at nine [source: d9].", [()]),
    ("According to [1], it leaves at nine.", [(0,)]),
    ("It leaves at nine<sup>2</sup>.", [(1,)]),
    ("It leaves at nine [[2]].", [(1,)]),
    ("It leaves at nine [2](https://ferry.example).", [(1,)]),
    ("It leaves at nine [Source 3].", [(2,)]),
    ("It leaves at nine [doc_3].", [(2,)]),
    ("It leaves at nine 【2】【3】.", [(1,), (2,)]),
    ("It leaves at nine [files/page-2.pdf].", [(2,)]),
]
LOOK_ALIKES = [
    "Read array[1] first.", "Use x[1] = 3 here.", "Call `f[1]` twice.", "He said “noon [sic] ferry”.",
    "See ISBN [978-3-16-148410-0].", "It covers five km² of lake.", "Use 10⁶ litres.",
    "A value in [0, 1] is read.", "The matrix[2] row is read.", "See [chapter one] of it.",
    "It leaves (at nine).", "It leaves (1) early and (2) often.", "Call me [maybe].",
    "```\nprint(d[1])\n```", "The year [1990] was cold.", "It leaves at nine [citation needed].",
    "args[1] is the name.", "Write [name] here.", "[x] Buy a ticket.", "[ ] Buy a ticket.",
    "[1] Buy a ticket at the pier.", "It leaves (see below).", "Take the list[3] of it.",
    "It is x² now.", "It costs [six] euros.", "(a) It leaves at nine.", "It leaves at 9 (am).",
    "It leaves <b>early</b>.", "It leaves at nine [12].", "From (2020) on it leaves at nine.",
]  # fmt: skip


@pytest.mark.parametrize(("answer", "documents"), MARKERS)
def test_markers_name_documents(answer: str, documents: list[tuple[int, ...]]) -> None:
    """Numbers count from 1, unless 0 is cited; names are ids and files."""
    assert cited(answer, NAMED) == documents


@pytest.mark.parametrize("answer", LOOK_ALIKES)
def test_brackets_that_match_no_document_stay_text(answer: str) -> None:
    """They are no citations, and judges are shown them."""
    call = sentencize(RagCall("When?", NAMED, answer), Punkt())

    assert citations_of(call).citations == ()
    assert without_citations(call) is call


def test_a_quoted_footnote_is_the_documents_own() -> None:
    """What a document says with its brackets is its text."""
    documents: list[Document | str] = ["The castle was built in 1850.[2]", "It is red."]

    assert cited("The castle was built in 1850.[2]", documents) == []


def test_scores_and_evidence() -> None:
    """A wrong, a missing and a dangling citation are each named."""
    answer = f"{FACTS[0]} [1] {FACTS[1]} [3] {FACTS[2]} The king is old. [8]"
    scores = evaluated(answer, [*FACTS]).scores

    assert [score.value for score in scores.values()] == [1 / 3, 1 / 3, 3 / 4]
    evidence = scores["citation_precision"].evidence or {}
    assert evidence["missing"] == ["b", "c"]
    assert [c["state"] for c in evidence["citations"]] == ["right", "wrong", "dangling"]  # type: ignore[union-attr,call-overload,index]
    assert "[3] in b wrong, [8] in d dangling" in (scores["citation_precision"].reason or "")


def test_faults_stand_at_their_sentence(tmp_path: Path) -> None:
    """In the notebook's view, on the page and in print; escaped, for answers are hostile."""
    evaluation = evaluated(
        f"{FACTS[0]} [3] {FACTS[1]} [source: <i>x</i>] The king is old. [9]", NAMED
    )
    page = tmp_path / "report.html"
    Evaluations([evaluation]).report(page)

    for view in (evaluation._repr_html_(), page.read_text(encoding="utf-8")):
        assert "wrong citation [3]" in view
        assert "dangling citation [9]" in view
        assert "no citation of a document that supports it" in view
        assert "<i>x" not in view
    printed = Console(width=100, record=True, file=StringIO())
    printed.print(call_details(evaluation))
    assert "wrong citation [3]" in printed.export_text()


def test_citations_beside_the_answer() -> None:
    """Rows list them: by the place where their text ends, or for the whole answer."""
    cites: Any = [{"source": 2, "end": len(FACTS[0])}, {"source": "d1"}, "nowhere", {"source": 4}]
    call = RagCall("When?", NAMED, f"{FACTS[0]} {FACTS[1]}", metadata={"citations": cites})
    scores = RagEvaluator(LLMJudge(ScriptedModel(reads)), [Citations()]).evaluate_sync(call).scores

    evidence: Any = scores["citation_precision"].evidence
    assert [(c["key"], c["documents"], c["state"]) for c in evidence["citations"]] == [
        ("a", [1], "wrong"),
        ("", [1], "right"),
        ("", [], "dangling"),
        ("", [3], "wrong"),
    ]
    assert evidence["missing"] == ["a"]
    assert [score.value for score in scores.values()] == [1 / 4, 1 / 2, 1]


def test_unscored_cases() -> None:
    """Without citations precision, without supported claims recall has no value."""
    assert values(FACTS[0], [*FACTS]) == ["no_relevant", 0, 0]
    assert values("The king is old [4].", [*FACTS]) == [0, "no_relevant", 1]


def test_a_document_that_holds_the_same_sentence_counts() -> None:
    """The judge names one of two copies; the answer may cite the other."""
    assert values(f"{FACTS[0]} [2]", [FACTS[0], FACTS[0]]) == [1, 1, 1]


def test_judges_are_shown_spaces() -> None:
    """Of the same length; text, key and offsets keep the marker, and the version says so."""
    model = ScriptedModel(reads)
    call = RagCall("When?", [*FACTS], "The ferry leaves at nine [1]. Read array[1].")
    evaluation = RagEvaluator(LLMJudge(model)).evaluate_sync(call)

    shown = model.requests[0].messages[1].content
    assert "a: The ferry leaves at nine    .\nb: Read array[1]." in shown
    assert evaluation.sentences.response[0].text == "The ferry leaves at nine [1]."
    by = evaluation.scores["adherence"].by
    assert by.prompt_version == "labels-1+blanks-1"
    assert by.comparable().prompt_version == "labels-1"


def test_scores_of_the_embedded_judge_are_estimates() -> None:
    """It gives no verdicts on support, as reason and warnings say."""
    scores = (
        RagEvaluator(metrics=["citations"])
        .evaluate_sync(RagCall("When does it leave?", [*FACTS], f"{FACTS[0]} [1]"))
        .scores
    )

    assert (scores["citation_precision"].reason or "").startswith("Estimate: ")
    assert any("no verdicts" in warning for warning in scores["citation_recall"].warnings)


@given(st.permutations(range(4)), st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_permuted_documents_change_no_score(order: list[int], markers: list[int]) -> None:
    """With their markers permuted alike."""
    said = [f"{fact} [source: d{m - 1}]" for fact, m in zip(FACTS, markers, strict=True)]

    assert values(" ".join(said), [NAMED[n] for n in order]) == values(" ".join(said), NAMED)
    numbered = [f"{fact} [doc {n + 1}]" for n, fact in enumerate(FACTS)]
    moved = [f"{FACTS[n]} [doc {place + 1}]" for place, n in enumerate(order)]
    permuted: list[Document | str] = [FACTS[n] for n in order]
    assert values(" ".join(numbered), [*FACTS]) == values(" ".join(moved), permuted) == [1, 1, 1]


@given(st.sets(st.integers(0, 3), max_size=3))
def test_a_dropped_marker_lowers_recall_by_its_share(dropped: set[int]) -> None:
    """By exactly 1/n of the n supported claims."""
    said = [
        fact if number in dropped else f"{fact} [source: d{number}]"
        for number, fact in enumerate(FACTS)
    ]

    assert values(" ".join(said), NAMED)[1] == (4 - len(dropped)) / 4
