"""A map that an error proposes reads the row right, if it is followed to the letter."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset._proposals import are_ids, holds

QUESTION, ANSWER = "When does the ferry leave?", "It leaves at nine, from the north quay."
TEXTS = ["The ferry leaves at nine. It is fast.", "It carries forty passengers."]
PAGES = [
    {"page_content": text, "metadata": {"source": f"guide-{number}.pdf", "title": "The guide"}}
    for number, text in enumerate(TEXTS)
]
HITS = [{"score": 0.5, "file": "a.pdf", "snippet": text} for text in TEXTS]


def proposed(row: dict[str, Any]) -> dict[str, Any]:
    """The map that the error of a row proposes, empty if it has none."""
    (line,) = read_calls([row])
    match = re.search(r"try field_map=(.*)$", str(line.error))
    return ast.literal_eval(match[1]) if match else {}


def read(row: dict[str, Any], names: dict[str, Any]) -> tuple[str, list[str], str | None]:
    """Question, texts of documents and response of a row, read by a map."""
    (line,) = read_calls([row], field_map=names)
    assert line.value is not None, line.error
    return (
        line.value.question,
        [document.text for document in line.value.documents],
        line.value.response,
    )


# --- Shapes as tools write them: the row, and the truth about what is not proposed

LOGGED = json.dumps({"input": QUESTION, "context": PAGES, "answer": ANSWER})
SHAPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "search_traces of MLflow": (
        {"trace_id": "tr-1", "request": json.dumps({"input": QUESTION}), "response": LOGGED,
         "spans": "[]", "state": "OK"},
        {},
    ),
    "MS MARCO": (
        {"answers": [ANSWER], "query": QUESTION, "query_id": 7, "query_type": "DESCRIPTION",
         "passages": {"is_selected": [1, 0], "passage_text": TEXTS, "url": ["https://a.b/c"] * 2},
         "wellFormedAnswers": "[]"},
        {},
    ),
    "CRAG": (
        {"query": QUESTION, "answer": ANSWER, "search_results": [
            {"page_name": "p.html", "page_url": "https://a.b", "page_snippet": text} for text in TEXTS]},
        {},
    ),
    "TREC RAG": (
        {"run_id": "r1", "topic_id": "t1", "topic": QUESTION, "passages_cited": PAGES,
         "references": ["msmarco_v2.1_doc_1#2", "msmarco_v2.1_doc_3#0"], "response_length": 8,
         "answer": [{"text": ANSWER, "citations": [0]}]},
        {"question": "topic"},
    ),
    "numbered columns": (
        {"user_question": QUESTION, "Kontext 1": TEXTS[0], "Kontext 2": TEXTS[1], "text": ANSWER},
        {"response": "text"},
    ),
    "a column per letter": ({"Q": QUESTION, "R": ANSWER, "D": TEXTS}, {}),
    "attributes of spans": (
        {"attributes.input.value": QUESTION, "attributes.output.value": ANSWER,
         "attributes.retrieval.documents": [
             {"document.content": text, "document.id": "7"} for text in TEXTS]},
        {},
    ),
    "a run of LangSmith": (
        {"inputs": {"question": QUESTION}, "outputs": {"answer": ANSWER, "source_docs": PAGES}}, {},
    ),
    "rivals, of which one holds ids": (
        {"query": QUESTION, "answer": ANSWER, "contexts": ["d1", "d2"], "context": TEXTS}, {},
    ),
    "rivals inside of a group": (
        {"inputs": {"question": QUESTION},
         "outputs": {"answer": ANSWER, "contexts": ["d1", "d2"], "context": TEXTS}},
        {},
    ),
    "documents under another key": (
        {"question": QUESTION, "response": ANSWER, "documents": [
            {"title": "The guide", "url": "https://a.b", "chunk_text": text} for text in TEXTS]},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_what_is_proposed_for_a_shape_reads_it_right(name: str) -> None:
    """Where NAME stands, the truth takes its place."""
    row, truth = SHAPES[name]
    (line,) = read_calls([row])
    match = re.search(r"(?:try|with) field_map=(.*)$", str(line.error))
    assert match is not None, line
    names = ast.literal_eval(match[1])
    assert {ours for ours, given in names.items() if given == "NAME"} == truth.keys()
    assert read(row, names | truth) == (QUESTION, TEXTS, ANSWER)


@pytest.mark.parametrize(
    ("row", "unsure"),
    [
        # The scores of ragas, as its CSV has them
        ({"user_input": QUESTION, "context_precision": "0.9", "answer_relevancy": "0.8"},
         ["documents", "response"]),
        # Ids, files, addresses, JSON, numbers, dates; what was expected; a prompt's template
        ({"query": QUESTION, "retrieved_docs_ids": ["a1", "b2"], "answer": ANSWER}, ["documents"]),
        ({"query": QUESTION, "source_docs": ["Annual report.pdf"], "answer": ANSWER}, ["documents"]),
        ({"query": QUESTION, "source_docs": ["https://a.b/c"], "answer": ANSWER}, ["documents"]),
        ({"query": QUESTION, "contexts": TEXTS, "answers": '{"text": "It lea'}, ["response"]),
        ({"query": QUESTION, "contexts": TEXTS, "answer_time": "2026-01-02 10:00"}, ["response"]),
        ({"query": QUESTION, "contexts": TEXTS, "expected_answer": ANSWER}, ["response"]),
        ({"query": QUESTION, "contexts": TEXTS, "correct_answer": ANSWER}, ["response"]),
        ({"system_prompt": "Be brief, please.", "contexts": TEXTS, "answer": ANSWER}, ["question"]),
        ({"question_type": "bridge", "contexts": TEXTS, "answer": ANSWER}, ["question"]),
        # Two that fit as well; a document's own metadata; messages
        ({"query": QUESTION, "contexts": TEXTS, "a_answer": "One of them.", "b_answer": "Or two."}, ["response"]),
        ({"query": QUESTION, "hits": [{"metadata": {"context": "The guide"}}], "answer": ANSWER}, ["documents"]),
        ({"query": QUESTION, "log": [{"role": "user", "content": "Hello there"}], "answer": ANSWER}, ["documents"]),
        ({"query": QUESTION, "one": HITS, "two": HITS, "answer": ANSWER}, ["documents"]),
    ],
    ids=lambda value: f"{value!s:.50}",
)  # fmt: skip
def test_what_is_not_sure_is_not_proposed(row: dict[str, Any], unsure: list[str]) -> None:
    """NAME stands in its place."""
    assert [ours for ours, name in proposed(row).items() if name == "NAME"] == unsure


NAMES: dict[str, list[str]] = {
    "question": ["user_question", "question_text", "Frage", "q", "x7", "querry", "first question"],
    "documents": [
        "source_docs",
        "kontexts",
        "retrieved_chunks",
        "c",
        "x8",
        "doc_texts",
        "evidence",
    ],
    "response": ["final_answer", "llm_response", "a", "x9", "responce", "answer_text", "said"],
}
FORMS: list[Any] = [
    TEXTS, json.dumps(TEXTS), repr(TEXTS), PAGES, HITS, json.dumps(PAGES), [TEXTS],
    [(text, 0.5) for text in TEXTS], {"documents": PAGES}, [{"node": {"text": t}} for t in TEXTS],
    {"title": ["A", "B"], "text": TEXTS}, [["A", TEXTS[:1]], ["B", TEXTS[1:]]],
    {"title": ["A", "B"], "sentences": [[TEXTS[0]], TEXTS[1:]]},
    [{"url": "https://a.b", "chunk_text": text} for text in TEXTS],
    {"ids": ["1", "2"], "passage_text": TEXTS}, {"results": HITS},
]  # fmt: skip
OTHERS: dict[str, Any] = {
    "context_precision": "0.9", "source": "guide.pdf", "answer_id": "a7-f3", "doc_ids": ["d1", "d2"],
    "document_url": "https://a.b/c", "response_json": '{"a": "b c d"}', "question_number": 7,
    "retrieved_files": ["a.pdf", "b c.txt"], "answer_relevancy": 0.5, "prompt_template": "Be {x}, please.",
    "expected_answer": "At nine sharp.", "metadata": {"origin": "s0", "context": "Something else."},
    "answer_language": "en", "context_titles": ["a_1", "b_2"], "response_ms": "81", "question_ids": [1],
}  # fmt: skip


@given(
    st.fixed_dictionaries({ours: st.sampled_from(names) for ours, names in NAMES.items()}),
    st.sampled_from(FORMS),
    st.lists(st.sampled_from(sorted(OTHERS)), unique=True),
    st.sampled_from(["", "data", "payload", "trace_info"]),
    st.randoms(use_true_random=False),
)
def test_every_proposal_reads_the_row_right(
    names: dict[str, str], documents: Any, others: list[str], inside: str, order: Any
) -> None:
    """Whatever the names, the form of the documents, the other fields and their order."""
    fields = {names["question"]: QUESTION, names["documents"]: documents, names["response"]: ANSWER}
    fields |= {name: OTHERS[name] for name in others}
    keys = list(fields)
    order.shuffle(keys)
    row = {key: fields[key] for key in keys}
    row = {inside: row, "run": "r-1"} if inside else row
    before = f"{inside}." if inside else ""
    text = {"passage_text": ".passage_text", "chunk_text": ".chunk_text", "results": ".results"}
    leaf = next((text[key] for key in text if key in str(documents)), "")
    truth = {ours: f"{before}{name}" for ours, name in names.items()}
    truth["documents"] += leaf

    given_names = {ours: name for ours, name in proposed(row).items() if name != "NAME"}

    assert read(row, truth | given_names) == (QUESTION, TEXTS, ANSWER)


@pytest.mark.parametrize(
    ("text", "is_text"),
    [
        ("At nine.", True), ("Paris", True), ("列车9点开。", True), ("See guide.pdf for more", True),
        ("[1] The ferry leaves.", True), ("“Nine”, he said.", True), ("7", False), ("1.5e3", False),
        ("2026-01-02 10:00:00", False), ("d1, d2; d3", False), ("", False), ("…", False),
        ('["a b"]', False), ("{'a': 'b c'}", False), ('{"a": "b c', False), ('"At nine."', False),
        ("guide.pdf", False), ("The annual report.docx", False), ("https://a.b/c d1", False),
    ],
)  # fmt: skip
def test_a_text_is_told_from_ids_files_numbers_and_json(text: str, is_text: bool) -> None:
    """By its words."""
    assert holds("response", text) == holds("documents", [text]) == is_text


@pytest.mark.timeout(20)
def test_a_long_word_takes_no_time() -> None:
    """Ids are short; what is longer is a text, and no pattern is tried on it."""
    for word in ("a" * 10**6 + " ", "1" * 10**6 + "é", '"' * 10**6 + "x", "a.pdf " * 10**6):
        assert not are_ids([word])
        holds("response", word)


def test_documents_that_are_ids_are_told() -> None:
    """Once; a map that gives ids is followed."""
    row = {"query": QUESTION, "references": ["doc_1#2", "doc_3#0"], "answer": ANSWER}
    notes: list[str] = []
    lines = list(read_calls([row, row], field_map={"documents": "references"}, tell=notes.append))
    assert [line.value and line.value.documents[0].text for line in lines] == ["doc_1#2"] * 2
    assert notes[1:] == ["`references` holds no sentences, but 'doc_1#2': are these ids?"]
