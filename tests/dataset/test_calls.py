"""`read_calls`: rows of other tools become calls, whatever holds them, and bad rows are counted."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from any_records import JSON
from ferries import write
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rag_eval_integrations import Document, RagCall, RagEvaluator, evaluate_calls
from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.metrics import LabelRetrieval, Retrieval
from rag_eval_integrations.records import Turn
from rag_eval_integrations.records._json import NAMES

TEXTS = ["At nine.", "Or ten."]
PAGES = [{"page_content": text} for text in TEXTS]
PLAIN = RagCall("When?", TEXTS, "At nine.")


def said(who: str, words: str, **more: Any) -> dict[str, Any]:
    """A message as LangChain writes it."""
    return {"type": who, "content": words, **more}


HUMAN, ANSWER = said("human", "When?"), said("ai", "At nine.")

RAGAS_ROW = {"user_input": "When?", "retrieved_contexts": TEXTS, "response": "At nine."}
RAGAS = {**RAGAS_ROW, "reference": "Nine."}
RAGAS_TURNS = {
    "user_input": [
        said("human", "Hello"), said("ai", "Hello to you."), HUMAN,
        said("ai", "", tool_calls=[{"name": "search", "args": {}}]),
        *(said("tool", text) for text in TEXTS), ANSWER, said("human", "Thanks!"),
    ],
    "reference": "Nine.",
}  # fmt: skip
DEEPEVAL = {
    "input": "When?", "actual_output": "At nine.", "retrieval_context": TEXTS,
    "expected_output": "Nine.", "context": ["At nine sharp."],
}  # fmt: skip
LANGSMITH = {
    "id": "7", "run_type": "chain", "inputs": {"question": "When?"},
    "outputs": {"answer": "At nine.", "documents": [{**PAGES[0], "type": "Document"}, PAGES[1]]},
    "reference_outputs": {"answer": "Nine."}, "events": [{"name": "start"}],
}  # fmt: skip
RETRIEVER = {"run_type": "retriever", "outputs": {"documents": PAGES}}
MESSAGES = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "When?"}]},
        {"role": "assistant", "content": "At nine."},
    ],
    "contexts": TEXTS, "ground_truth": "Nine.",
}  # fmt: skip
COMMON = {
    "query": "When?", "contexts": [{"content": "At nine."}, {"text": "Or ten."}],
    "answer": "At nine.", "expected_answer": "Nine.",
}  # fmt: skip
CHAIN = {"input": "When?", "context": PAGES, "answer": "At nine.", "reference": "Nine."}
LOG = {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello to you."}
HISTORY = tuple(Turn.model_validate(turn) for turn in LOG)
FOREIGN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (RAGAS, {}), (RAGAS_TURNS, {"history": HISTORY}),
    (DEEPEVAL, {"metadata": {"context": ["At nine sharp."]}}),
    (LANGSMITH, {"metadata": {"run_type": "chain"}}),
    (MESSAGES, {"history": (Turn(role="system", content="Be brief."),)}), (COMMON, {}), (CHAIN, {}),
]  # fmt: skip
"""Rows of other tools, and what their calls have beside question, documents, answer, reference."""


def call_of(source: Any, **options: Any) -> RagCall:
    """The only call of a source."""
    (line,) = read_calls(source, **options)
    assert line.value is not None, line.error
    return line.value


def why(source: Any, **options: Any) -> list[str]:
    """The faults of a source, empty for a call."""
    return [str(line.error or "") for line in read_calls(source, **options)]


def as_lines(*rows: Any) -> io.StringIO:
    """Rows as a file of JSON lines."""
    return io.StringIO("".join(f"{json.dumps(row)}\n" for row in rows))


def texts(call: RagCall) -> list[str]:
    return [document.text for document in call.documents]


def questions(calls: Iterable[RagCall | None]) -> list[str | None]:
    return [call.question if call else None for call in calls]


# --- Rows that are calls

Q = {"query": "q", "answer": "r"}
"""A row that lacks its documents."""
OWN = {"question": "q", "documents": ["d"], "response": "r"}
SCHEMAS: tuple[Any, ...] = ("table t", {"type": "object"}, None)
TURNS = [
    *LOG, {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "At nine.", "retrieval_context": TEXTS},
]  # fmt: skip
TALK = RagCall("When?", TEXTS, "At nine.", history=HISTORY)
CRAG = {
    "query": "When?", "answer": "At nine.",
    "search_results": [
        {"page_name": "p1", "page_snippet": "At nine.", "page_result": "<html>"},
        {"page_name": "p2", "page_snippet": "Or ten.", "page_result": "<html>"},
    ],
}  # fmt: skip
CRAG_NAMES = {
    "documents": "search_results.page_snippet", "document_ids": "search_results.page_name",
}  # fmt: skip
CRAG_CALL = RagCall("When?", [Document("At nine.", "p1"), Document("Or ten.", "p2")], "At nine.")
HITS = {"pages": [{"hits": [{"t": "At nine."}, {"t": "Or ten."}]}]}
GOLD = RagCall("q", ["d"], "r", reference="g")
SEVERAL = RagCall("q", ["d"], "r", reference=["g", "h"])
HOTPOT = [
    Document("It is. It was.", None, {"title": "A"}), Document("Or not.", None, {"title": "B"}),
]  # fmt: skip
MLFLOW = {"retrieved_context": [{"content": "d", "doc_uri": "u"}],
          "expectations": {"expected_response": "g"}}  # fmt: skip
JOINED = {"input": "q", "actual_output": "r", "retrieval_context": "a|b"}
WHOLE = RagCall("q", ["a|b"], "r")
SMITH = {
    "inputs.question": "q", "outputs.answer": "r", "outputs.documents": ["d"], "feedback.x": 1.0,
}  # fmt: skip
FORMS: tuple[object, ...] = (
    "d", '["d"]', "['d']", '[{"page_content": "d", "metadata": {}}]', [{"content": "d"}],
    [{"node": {"id_": None, "text": "d", "metadata": {}}, "score": None}],
    [{"text_resource": {"text": "d"}, "metadata": {}}],
    [{"lc": 1, "type": "constructor", "id": ["Document"], "kwargs": {"page_content": "d"}}],
    ["d"], [["d"]], {"documents": ["d"]}, ("d",),
)  # fmt: skip
"""A document as text, objects of LangChain and LlamaIndex as JSON, and cells of a table."""
NODE = {"node": {"id_": "n1", "text": "At nine.", "metadata": {"page": 3}, "start_char_idx": 0},
        "score": 0.5}  # fmt: skip
PAIR = ({"page_content": "Or ten.", "metadata": {"p": 1}, "source": "s"}, 0.25)


@pytest.mark.parametrize(
    ("row", "names", "expected"),
    [
        # The trace of a run is not metadata: it would fill every row
        *((row, None, RagCall("When?", TEXTS, "At nine.", reference="Nine.", **more))
          for row, more in FOREIGN),
        # Conversations: what came before the last answered question is history
        ({"scenario": "s", "turns": TURNS}, None, TALK.model_copy(update={"metadata": {"scenario": "s"}})),
        ({"turns": json.dumps(TURNS)}, None, TALK),
        ({"log": {"turns": TURNS}}, {"question": "log.turns"}, TALK),
        *(({**Q, "contexts": ["d"], "chat_history": history}, None,
           RagCall("q", ["d"], "r", history=HISTORY))
          for history in ([["Hello", "Hello to you."]], [("human", "Hello"), ("ai", "Hello to you.")],
                          LOG, '[["Hello", "Hello to you."]]')),
        # Other spellings, as spreadsheets and JavaScript write names
        ({"Question": "q", "Contexts": ["d"], "Answer": "r", "Ground Truth": "g"}, None, GOLD),
        ({"input": "q", "retrievalContext": ["d"], "actualOutput": "r", "Expected-Output": "g"}, None, GOLD),
        ({"query": "q", "sourceDocuments": [{"pageContent": "d"}], "result": "r", "groundTruth": "g"},
         None, GOLD),
        ({**Q, "contexts": ["d"], "expectedOutput": "g", "Question": "?", "Contexts": 5}, None,
         GOLD.model_copy(update={"metadata": {"Question": "?", "Contexts": 5}})),
        # Several references are a text, as ragas wrote them before `ground_truth`
        ({**Q, "contexts": ["d"], "ground_truths": ["g", "h"]}, None,
         SEVERAL),
        *(({**Q, "contexts": ["d"], name: "['g', 'h']"}, None,
           SEVERAL) for name in ("ground_truths", "Ground Truths")),
        ({**Q, "contexts": ["d"], "ground_truths": []}, None, RagCall("q", ["d"], "r")),
        # Frames of LangSmith have a column for each name
        *(({**SMITH, f"{reference}.answer": "g"}, None, GOLD.model_copy(update={"metadata": {"feedback.x": 1.0}}))
          for reference in ("reference", "reference_outputs")),
        # A map, also into objects, lists of objects and their cells, and to a name with a dot
        ({"q": "When?", "hits": {"list": TEXTS}, "out.text": "At nine."},
         {"question": "q", "documents": "hits.list", "response": "out.text"}, PLAIN),
        (CRAG, CRAG_NAMES, CRAG_CALL),
        ({**CRAG, "search_results": json.dumps(CRAG["search_results"])}, CRAG_NAMES, CRAG_CALL),
        ({**CRAG, "search_results": HITS}, {"documents": "search_results.pages.hits.t"}, PLAIN),
        ({**Q, "contexts": ["d"], "gold": "g"}, {"reference": "gold"}, GOLD),
        ({"query": "q", "contexts": ["d"], "said": {"it": "g"}},
         {"response": "said.it", "reference": "said.it"}, RagCall("q", ["d"], "g", reference="g")),
        # Only documents that deepeval joined are split
        (JOINED, None, RagCall("q", ["a", "b"], "r")),
        ({**JOINED, "retrieval_context": ["a|b"]}, None, WHOLE),
        ({**Q, "contexts": "a|b"}, None, WHOLE),
        (JOINED, {"documents": "retrieval_context"}, WHOLE),
        # Two names for one field: our own, or the one of a map
        ({**Q, "contexts": ["c"], "context": "b", "documents": ["d"], "reference": "g"}, None,
         GOLD.model_copy(update={"metadata": {"contexts": ["c"], "context": "b"}})),
        ({**Q, "contexts": ["c"], "context": "d"}, {"documents": "context"},
         RagCall("q", ["d"], "r", metadata={"contexts": ["c"]})),
        ({"input": "q", "output": "r", "context": ["d"], "reference": "g"}, None, GOLD),
        # Optional fields of other tools beside our own names; null is none
        ({**OWN, "document_ids": ["a"]}, None, RagCall("q", [Document("d", "a")], "r")),
        ({**OWN, "documents": [("d", 0.5)]}, None, RagCall("q", [Document("d", None, {}, 0.5)], "r")),
        ({**OWN, "n": None}, None, RagCall("q", ["d"], "r", metadata={"n": None})),
        ({**OWN, "ground_truth": "g", "chat_history": LOG}, None,
         GOLD.model_copy(update={"history": HISTORY})),
        ({**OWN, **dict.fromkeys(("id", "reference", "history", "relevant_ids", "metadata"))}, None,
         RagCall("q", ["d"], "r")),
        # What other tools put under our own names; a number may be a reference, and no mere object
        ({**OWN, "reference": ["g"], "history": [("Hello", "Hello to you.")],
         "documents": [{"text": "d", "title": "t"}]}, None,
         RagCall("q", [Document("d", None, {"title": "t"})], "r", reference="g", history=HISTORY)),
        *(({**OWN, "expected": number}, None, GOLD.model_copy(update={"reference": text}))
          for number, text in ((0.5, "0.5"), (42.0, "42"), (True, "True"))),
        ({**OWN, "expected": {"grounded": True}}, None,
         RagCall("q", ["d"], "r", metadata={"expected": {"grounded": True}})),
        # An app's answers beside those of a data set of LlamaIndex are not gold
        ({**Q, "query_by": None, "reference_contexts": ["b"], "contexts": ["d"], "reference_answer": "g"},
         None, GOLD.model_copy(update={"metadata": {"query_by": None, "reference_contexts": ["b"]}})),
        # Ids of ragas
        ({"user_input": "q", "retrieved_contexts": ["d", "e"], "response": "r",
          "retrieved_context_ids": ["a", 2], "reference_context_ids": ["a"]}, None,
         RagCall("q", [Document("d", "a"), Document("e", "2")], "r", relevant_ids=["a"])),
        # Documents in every form; a text may begin with a bracket
        *(({**Q, "contexts": documents}, None, RagCall("q", ["d"], "r")) for documents in FORMS),
        *(({**Q, "contexts": cell}, None, RagCall("q", [cell], "r")) for cell in ("[1, 2", "['a'")),
        # A list of sentences is a document's text: HotpotQA's two forms, and by a map
        *(({**Q, "context": context}, None, RagCall("q", HOTPOT, "r")) for context in [
            {"title": ["A", "B"], "sentences": [["It is.", " It was."], ["Or not."]]},
            [["A", ["It is.", " It was."]], ["B", ["Or not."]]],
            [{"title": "A", "sentences": ["It is.", "It was."]}, {"title": "B", "text": ["Or not."]}],
        ]),
        ({**Q, "context": [["A", ["It is."]]]}, None, RagCall("q", [Document("It is.", None, {"title": "A"})], "r")),
        ({**Q, "p": {"title": ["A"], "sentences": [["It is.", "It was."]]}}, {"documents": "p.sentences"},
         RagCall("q", ["It is. It was."], "r", metadata={"p": {"title": ["A"]}})),
        ({**Q, "p": [{"title": "A", "sentences": ["It is.", "It was."]}]}, {"documents": "p.sentences"},
         RagCall("q", ["It is. It was."], "r")),
        ({**Q, "context": [["It is.", "It was."], ["Or not."]]}, None,
         RagCall("q", ["It is. It was.", "Or not."], "r")),
        # A list per field, as Hugging Face writes a list of objects
        ({**Q, "passages": {"text": TEXTS, "id": [1, 2]}}, None,
         RagCall("q", [Document(TEXTS[0], "1"), Document(TEXTS[1], "2")], "r")),
        ({**Q, "passages": {"text": [], "id": []}}, None, RagCall("q", [], "r")),
        # Tables of MLflow and Databricks; sentences with citations have no spaces between them
        *((row, None, RagCall("q", [Document("d", "u")], "r", reference="g")) for row in [
            {"inputs": "q", "outputs": "r", **MLFLOW},
            {"inputs": {"question": "q"}, "outputs": "r", **MLFLOW},
            {"inputs": {"question": "q"}, "outputs": {"response": "r"}, **MLFLOW},
            {"inputs": '{"anything": "q"}', "outputs": "r", **MLFLOW},
            {"request": "q", "response": "r", "retrieved_context": MLFLOW["retrieved_context"],
             "expected_response": "g"},
            {"request": {"messages": [{"role": "user", "content": "q"}]}, "response": "r", **MLFLOW},
        ]),
        ({"query": "q", "contexts": ["d"], "answer": [{"text": "It is.", "citations": [0]},
                                                      {"text": "It was.", "citations": []}]}, None,
         RagCall("q", ["d"], "It is. It was.")),
        # What is known about a document; metadata as an object, its JSON or a text
        ({**Q, "contexts": [NODE, PAIR]}, None,
         RagCall("q", [Document("At nine.", "n1", {"page": 3}, 0.5),
                       Document("Or ten.", None, {"p": 1, "source": "s"}, 0.25)], "r")),
        ({**Q, "contexts": [("d", 0.5)]}, None, RagCall("q", [Document("d", None, {}, 0.5)], "r")),
        ({"question": "q", "documents": [{"page_content": "d", "metadata": {"a": 1}}], "response": "r"},
         None, RagCall("q", [Document("d", None, {"a": 1})], "r")),
        ({**Q, "contexts": [], "metadata": '{"a": 1}'}, None, RagCall("q", [], "r", metadata={"a": 1})),
        ({**Q, "contexts": [], "metadata": "n"}, None, RagCall("q", [], "r", metadata={"metadata": "n"})),
        ({**Q, "contexts": [], "history": "[]", "relevant_ids": "[]", "metadata": "{}"}, None,
         RagCall("q", [], "r", relevant_ids=[])),
        # Another tool's `schema`, and its scores under RAGBench's names, which are no call's
        *(({**Q, "contexts": [], "schema": schema, "relevance_score": "high", "adherence_score": [1]},
           None, RagCall("q", [], "r", metadata={"schema": schema})) for schema in SCHEMAS),
    ],
)  # fmt: skip
def test_rows_of_any_tool_are_calls(row: Any, names: Any, expected: RagCall) -> None:
    """Question, documents, response, reference, ids, history; other fields are metadata."""
    for source in ([row], as_lines(row)):
        call = call_of(source, field_map=names)
        assert call.model_copy(update={"id": expected.id}) == expected
        assert call.row_key == expected.row_key


def test_numbers_are_ids() -> None:
    """Those of a pandas column with a gap are floats: `1.0` is `1`."""
    documents = [{"text": "d", "id": 2.0}, {"text": "e", "id": 3}]
    for row in ({**OWN, "documents": documents}, {**Q, "contexts": documents}):
        each = {**row, "id": 1.0, "relevant_ids": [2.0, 3]}
        for source in ([each], as_lines(each)):
            call = call_of(source)
            assert (call.id, call.relevant_ids) == ("1", ("2", "3"))
            assert [document.id for document in call.documents] == ["2", "3"]


def test_a_table_of_text_numbers_the_ids_as_others_do(tmp_path: Path) -> None:
    """In CSV, pandas' `1.0` is `1`, and other texts stay; in JSON, a text stays."""
    labels = ["1.0", "-2.0", "007", "1.50", "v1.0"]
    table = "id,question,documents,response\n" + "".join(f"{label},q,d,r\n" for label in labels)
    calls, _ = told(write(tmp_path / "calls.csv", table.encode()))
    assert [call and call.id for call in calls] == ["1", "-2", "007", "1.50", "v1.0"]
    assert call_of(as_lines({**OWN, "id": "1.0"})).id == "1.0"


def test_numbers_are_texts_by_their_digits() -> None:
    """As question and response, as whole numbers where they are; a bool stays refused."""
    row = {"question": 0.5, "documents": ["d"], "response": 12.0}
    for source in ([row], as_lines(row)):
        call = call_of(source)
        assert (call.question, call.response) == ("0.5", "12")
    for value in (True, 10**5000):
        assert "should be text" in why([{**row, "response": value}])[0]


# --- Rows that are none


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"messages": [HUMAN], "contexts": []}, "has no answer"),
        ({"messages": [ANSWER], "contexts": []}, "has no question"),
        ({"messages": [HUMAN, 5, ANSWER], "contexts": []}, "field `messages[1]`: should be a message"),
        ({**RAGAS, "retrieved_context_ids": ["a"]},
         "field `retrieved_context_ids`: has 1 ids for 2 documents"),
        ({**COMMON, "context": "Else."},
         "field `documents`: is ambiguous: the row has `contexts` and `context`; say which with "
         "field_map={'documents': 'contexts'}"),
        ({**RAGAS, **DEEPEVAL}, "ragas (user_input"),
        ({"Query": "q", "QUERY": "p", "contexts": ["d"], "answer": "r"},
         "`question`: is ambiguous: the row has `Query` and `QUERY`"),
        ({"user_question": "q", "Kontext 1": "c", "Kontext 2": "d", "text": "a"},
         "field `question`: is missing, and so are `documents` and `response`; the row has "
         "`Kontext 1`, `Kontext 2`, `text`, `user_question`; try field_map={'question': "
         "'user_question', 'documents': ['Kontext 1', 'Kontext 2'], 'response': 'NAME'}"),
        (CRAG, "try field_map={'documents': 'search_results.page_snippet'}"),
        ({"user_input": "q", "reference_contexts": ["c"], "reference": "a"}, "'documents': 'reference_contexts'"),
        ({"input": "q", "actual_output": "r", "context": ["gold"]}, "deepeval's `context` is the expected one"),
        ({"inputs": "q", "outputs": "r"}, "`documents`: is missing; the row has `inputs`, `outputs`"),
        ({**COMMON, "chat_history": "Hello"}, "should be a list of messages"),
        ({**COMMON, "metadata": 5}, "field `metadata`"),
        *(({**Q, "contexts": ["d"], "relevant_ids": ids}, "field `relevant_ids`: should be a list of ids")
          for ids in ("times", "a,b", "{}")),
        *(({**Q, "contexts": documents}, fault) for documents, fault in [
            (None, "is null"),
            (5, "should be a list of documents, not 5"),
            ([5], "field `contexts[0]`: is not a document: 5"),
            ([{"title": "t"}], "is not a document: it has `title`"),
            # Two texts may be an id and a text
            ([["A", "At nine."], ["B", "Or ten."]], "field `contexts[0]`: is not a document: ['A'"),
            # Numpy's notation has no commas, and Python would join its texts into one
            *((cell, "looks like a list and is not JSON") for cell in (
                "['a' 'b']", "[a]", "['a', f('b')]", "[Document('a')]",
                "[" + "'a', " * 60_000 + "]", "[" * 300 + "'a'" + "]" * 300)),
        ]),
    ],
    ids=lambda value: f"{value!s:.40}",
)  # fmt: skip
def test_what_is_no_call_is_said(row: Any, fault: str) -> None:
    """By field and reason, and with what to try."""
    assert fault in why([row])[0]


def test_a_later_row_lacks_what_the_first_one_has() -> None:
    """It is a bad row, and names its own fields; a bad first row decides nothing."""
    broken = {**CRAG, "search_results": [{"page_snippet": "At nine."}, {"page_name": "p"}]}
    assert why([{"x": 1}, "text", RAGAS, DEEPEVAL, 5, Angry(), RAGAS])[1:] == [
        "row 2: is not a row: 'text'",
        "",
        "row 4: field `user_input`: is missing; the row has `actual_output`, `context`, "
        "`expected_output`, `input`, `retrieval_context`",
        "row 5: is not a row: 5",
        "row 6: not usable: RuntimeError: not today",
        "",
    ]
    assert why([CRAG, broken], field_map={"documents": "search_results.page_snippet"}) == [
        "", "row 2: field `search_results.page_snippet`: is missing in item 1",
    ]  # fmt: skip


class Angry:
    """An object whose attributes fail."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError("not today")


def test_what_to_try_is_worked_out_for_some_sets_of_names() -> None:
    """It compares names, which takes time; rows of other names each say what they lack."""
    faults = why([{f"n{number}-{place}": 1 for place in range(9)} for number in range(50)])
    assert [" try field_map=" in fault for fault in faults] == [True] * 20 + [False] * 30
    assert all("is missing, and so are `documents` and `response`" in fault for fault in faults)


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ({"questoin": "q"}, "is not a field of a call; did you mean `question`?"),
        ({"question": 5}, "should give the name of a field"),
        ("question=q", "use a dict such as"),
        ({"question": "qq"}, "the first row has `q`, and no field `qq`; did you mean `q`?"),
        ({"question": "q.a"}, "no field `q.a`"),
    ],
)
def test_mistakes_in_a_field_map_are_named(names: Any, fault: str) -> None:
    """With the fields that the first row has."""
    with pytest.raises(ConfigurationError, match="field_map") as raised:
        list(read_calls([{"q": "When?"}], field_map=names))
    assert fault in str(raised.value)


# --- What is told


def told(source: Any, **options: Any) -> tuple[list[RagCall | None], list[str]]:
    """The calls of a source, and the notes."""
    notes: list[str] = []
    calls = [line.value for line in read_calls(source, tell=notes.append, **options)]
    return calls, notes


def test_the_mapping_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """In words; nothing is told of our own names; without `tell` it is logged."""
    assert told([RAGAS, RAGAS])[1] == [
        "read as ragas: user_input → question, retrieved_contexts → documents, response, reference"
    ]
    assert told([{"question": "q", "documents": [], "response": "r"}])[1] == []
    example = {"query": "q", "reference_contexts": ["d"], "reference_answer": "r"}
    assert "of the data set, not of an app" in told([example])[1][0]
    with caplog.at_level("INFO"):
        list(read_calls([LANGSMITH]))
    assert "read as langsmith: inputs.question → question" in caplog.text


def test_documents_may_lie_in_several_fields() -> None:
    """In the order of the names; a field that is empty or null holds none."""
    row = {"question": "When?", "Text 1": "At nine.", "Text 2": "Or ten.", "answer": "At nine."}
    rows = [row, {**row, "Text 1": ""}, {**row, "Text 2": None}]
    calls, notes = told(rows, field_map={"documents": ["Text 1", "Text 2"]})
    assert [texts(call) for call in calls if call] == [TEXTS, ["Or ten."], ["At nine."]]
    assert notes == ["read as calls: question, Text 1 + Text 2 → documents, answer → response"]


def test_a_reference_may_come_with_a_later_row() -> None:
    """Not every writer writes a null, and objects hold nothing but None."""
    for row in ({**Q, "contexts": ["d"]}, OWN):
        calls, notes = told(as_lines(row, {**row, "ground_truth": "g", "chat_history": LOG}, row))

        assert [call and call.reference for call in calls] == [None, "g", None]
        assert [call and len(call.history) for call in calls] == [0, 2, 0]
        names = "ground_truth → reference, chat_history → history"
        assert notes[row is not OWN :] == [f"a later row has also: {names}"]


def test_a_later_row_with_nothing_to_read_is_not_told() -> None:
    """A field that has a known name, and an object without a text in it."""
    row = {**Q, "contexts": ["d"]}
    notes = told(as_lines(row, {**row, "ground_truth": {"pages": 3}}))[1]

    assert len(notes) == 1


@pytest.mark.parametrize("name", ["examples", "results", "testCases", "samples", "goldens", "data"])
@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_rows_under_one_key_are_read_and_told(tmp_path: Path, name: str, ending: str) -> None:
    """As other tools write their data sets, on one line or many; or the only list of objects."""
    path = tmp_path / f"rows{ending}"
    rows = [DEEPEVAL if name == "testCases" else RAGAS, "text"]
    for indent in (None, 1):
        path.write_text(json.dumps({"version": 1, name: rows[:1] * 2}, indent=indent))
        calls, notes = told(path)
        assert questions(calls) == ["When?", "When?"]
        assert notes[0] == f"rows are read from `{name}`"
    path.write_text(json.dumps({name: rows}))  # which are not all rows
    assert "is missing" in why(path)[0]


def test_lists_that_are_left_out_are_counted(tmp_path: Path) -> None:
    """A file of test cases and of conversations has rows of two kinds, of which one is read."""
    both = {**TEST_RUN, "testCases": EXCHANGES}
    calls, notes = told(write(tmp_path / "run.json", both))
    assert questions(calls) == ["Who?", "When?"]
    assert notes[0] == "rows are read from `testCases`; left out: 1 of `conversationalTestCases`"


@pytest.mark.parametrize("orient", ["columns", "index", "split"])
def test_a_frame_that_pandas_wrote_as_json_is_read(tmp_path: Path, orient: Any) -> None:
    """Without `orient` it is an object of columns; a filtered frame has gaps in its index."""
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "frame.json"
    frame = pandas.DataFrame([RAGAS, {**RAGAS, "user_input": "Why?"}, RAGAS])
    frame[1:].to_json(path, orient=orient)
    calls, notes = told(path)
    assert questions(calls) == questions(told(frame[1:].to_dict())[0]) == ["Why?", "When?"]
    assert notes[0] == "rows are read from a data frame as pandas writes it"
    frame[1:].rename(columns={"user_input": "q"}).to_json(path, orient=orient)
    assert questions(told(path, field_map={"question": "q"})[0]) == ["Why?", "When?"]


@pytest.mark.parametrize("frame", [
    {"columns": ["a"], "index": [0], "data": [["x", "y"]]},
    {"columns": [{}], "index": [0], "data": [["x"]]},
    {"columns": 1, "index": [0], "data": 2},
    {"user_input": {"0": "q"}, "response": {"1": "r"}},
    {"testRunData": 1},
])  # fmt: skip
def test_what_only_looks_like_a_frame_is_one_bad_row(tmp_path: Path, frame: Any) -> None:
    """It ends no run."""
    assert len(why(write(tmp_path / "frame.json", frame))) == 1


TEST_RUN = {"testCases": [], "conversationalTestCases": [{"name": "c", "turns": [
    {"role": "user", "content": "When?", "order": 0},
    {"role": "assistant", "content": "At nine.", "order": 1, "retrievalContext": ["At 9."]},
]}]}  # fmt: skip
EXCHANGES = [
    {"input": "Who?", "actualOutput": "Ann.", "retrievalContext": ["Ann."]},
    {"input": "When?", "actualOutput": "At nine.", "retrievalContext": ["At 9."]},
]


@pytest.mark.parametrize(
    ("content", "calls"),
    [
        ({"results": {"results": [{"question": "q", "context": "d", "answer": "a"}]}},
         [("q", "a", ["d"], 0)]),  # promptfoo's
        (TEST_RUN, [("When?", "At nine.", ["At 9."], 0)]),
        ({"testRunData": TEST_RUN}, [("When?", "At nine.", ["At 9."], 0)]),
        ({"turns": EXCHANGES}, [("When?", "At nine.", ["At 9."], 2)]),  # as version 2 writes them
        ({"testCases": []}, []),
    ],
)  # fmt: skip
def test_the_files_of_test_runs_are_read(tmp_path: Path, content: Any, calls: Any) -> None:
    """Deepeval's latest lies under `testRunData`; conversations have a list of their own."""
    lines = [line.value for line in read_calls(write(tmp_path / "run.json", content))]
    assert calls == [
        call and (call.question, call.response, texts(call), len(call.history)) for call in lines
    ]


@pytest.mark.parametrize(
    ("row", "tried"),
    [
        ({"data": {"question": "q", "contexts": ["d"], "answer": "a"}},
         ["data.question", "data.contexts", "data.answer"]),
        ({"prompt": {"content": [{"text": "q"}]},
          "output": {"passages": {"results": [{"content": {"text": "d"}}]}, "text": "a"}},
         ["prompt.content", "output.passages.results.content", "output.text"]),
        ({"attributes.input.value": "q", "attributes.output.value": "a",
          "attributes.retrieval.documents": [{"document.content": "d", "document.score": 0.5}]},
         ["attributes.input.value", "attributes.retrieval.documents", "attributes.output.value"]),
        ({"query": {"id": 7, "text": "q"}, "hits": [{"snippet": "d", "rank": 1}],
          "answers": [{"answer": "a", "answer_start": 5}]},
         ["query.text", "hits.snippet", "answers.answer"]),
    ],
)  # fmt: skip
def test_names_inside_of_objects_are_proposed(tmp_path: Path, row: Any, tried: list[str]) -> None:
    """The mapping to try is one that reads the row; a list of documents is not taken for rows."""
    path = write(tmp_path / "rows.jsonl", row)
    names = dict(zip(("question", "documents", "response"), tried, strict=True))
    assert f"field_map={names}" in why(path)[0]
    call = call_of(path, field_map=names)
    assert (call.question, call.response, texts(call)) == ("q", "a", ["d"])


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_an_answer_of_several_parts_is_not_taken_for_rows(tmp_path: Path, ending: str) -> None:
    """As in TREC RAG; a list of rows under the same name is."""
    row = {
        "topic": "When?",
        "references": TEXTS,
        "answer": [{"text": "At nine.", "citations": [0]}],
    }
    names = {"question": "topic", "documents": "references"}
    path = write(tmp_path / f"rows{ending}", row)
    assert "the row has `answer`, `references`, `topic`" in why(path)[0]
    assert call_of(path, field_map=names) == PLAIN
    assert questions(told(write(path, {"version": 1, "result": [RAGAS_ROW]}))[0]) == ["When?"]


def test_a_row_that_holds_a_list_stays_a_row(tmp_path: Path) -> None:
    """By known names, or by a map."""
    for results in (CRAG["search_results"], {"hits": CRAG["search_results"]}):
        path = write(tmp_path / "rows.json", {"query": "When?", "results": results})
        assert "is missing, and so is `response`; the row has `query`, `results`" in why(path)[0]
    write(path, {"q": "When?", "hits": CRAG["search_results"], "a": "At nine."})
    names = {"question": "q", "documents": "hits.page_snippet", "response": "a"}
    assert len(call_of(path, field_map=names).documents) == 2


# --- Cells of a table


@pytest.mark.parametrize("separator", [",", "\t"])
def test_a_table_with_capitals_is_known_without_its_name(tmp_path: Path, separator: str) -> None:
    """Standard input has none; rows of empty cells are blank lines, as spreadsheets write them."""
    path = tmp_path / "calls"
    table = "\ufeffQuestion,Contexts,Answer\r\nq,d,r\r\n,,\r\n"
    path.write_text(table.replace(",", separator), newline="")

    calls, notes = told(path)

    assert calls == [RagCall("q", ["d"], "r")]
    assert (notes[0] == "columns are separated by tabs") == (separator == "\t")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_documents_that_deepeval_joined_are_several(tmp_path: Path, suffix: str) -> None:
    """Its CSV and JSONL have one text where its JSON has a list; what is done is told once."""
    rows = [
        {"input": "When?", "actual_output": "At nine.", "retrieval_context": joined}
        for joined in ("At nine.", "At nine.|Or ten.", "Or ten.|At nine.", '["a|b"]', "")
    ]
    path = write(tmp_path / f"goldens.{suffix}", *rows)
    if suffix == "csv":
        pytest.importorskip("pandas").DataFrame(rows).to_csv(path, index=False)

    calls, notes = told(path)

    assert [texts(call) for call in calls if call] == [
        ["At nine."], TEXTS, TEXTS[::-1], ["a|b"], [],
    ]  # fmt: skip
    assert len(notes) == 2
    assert "`retrieval_context` is split at `|`" in notes[1]


def test_cells_hold_what_pandas_writes(tmp_path: Path) -> None:
    """`to_csv` writes lists of dicts, messages, and LangSmith's objects in Python's notation."""
    documents = [{"text": 'It\'s "nine".\n', "id": 1, "metadata": {"a": None, "b": (True, 0.5)}}]
    asked = [said("human", "q"), said("ai", "r")]
    path = tmp_path / "calls.csv"
    document = Document('It\'s "nine".\n', "1", {"a": None, "b": [True, 0.5]})
    for row in (
        {"user_input": asked, "retrieved_contexts": documents},
        {"inputs": {"question": "q"}, "outputs": {"answer": "r", "documents": documents}},
    ):
        pytest.importorskip("pandas").DataFrame([row]).to_csv(path, index=False)
        assert call_of(path) == RagCall("q", [document], "r")


@given(JSON | st.lists(st.just(float("nan"))))
def test_every_value_in_pythons_notation_is_read(value: Any) -> None:
    """A list in Python's notation is the list that JSON would be."""
    cell = {**Q, "contexts": ["d"], "metadata": repr({"m": [value]})}
    expected = {**cell, "metadata": json.dumps({"m": [value]})}

    assert call_of([cell]).metadata == call_of([expected]).metadata


# --- One text of several documents


def test_one_text_of_several_documents_is_told_and_its_documents_are_not_scored() -> None:
    """Phoenix joins them by blank lines. Not so a list, one column of several, deepeval's text."""
    joined = "\n\n".join(TEXTS)
    row = {**Q, "context": joined}
    calls, notes = told([row, row])
    assert notes[1:] == [
        "`context` is one text: documents cannot be told apart; scores of documents are left out"
    ]
    assert [document.metadata for call in calls if call for document in call.documents] == [
        {"one_text": True}
    ] * 2
    for other, names in (
        ({**Q, "context": [joined]}, None), ({**Q, "context": "At nine.\n"}, None),
        ({**JOINED, "retrieval_context": joined}, None),
        ({**Q, "a": joined, "b": ""}, {"documents": ["a", "b"]}),
    ):  # fmt: skip
        calls, notes = told([other], field_map=names)
        assert calls[0]
        assert calls[0].documents[0].metadata == {}
        assert "one text" not in "".join(notes)

    call = call_of([{**row, "relevant_ids": ["At nine."]}])
    metrics = [Retrieval(k=1, match="text"), LabelRetrieval()]
    scores = RagEvaluator(metrics=metrics).evaluate_sync(call).scores
    assert {score.unscored for score in scores.values()} == {"missing_param"}
    assert {score.reason for score in scores.values()} == {
        "the documents are one text, and cannot be told apart"
    }


# --- A function in place of names


def test_a_function_makes_the_calls_of_any_shape(tmp_path: Path) -> None:
    """Of each row as it is; what it raises, and what is not a call, is the row's error."""

    def to_call(row: dict[str, Any]) -> RagCall:
        if row["step"] == "exit":
            raise SystemExit(3)
        steps = {step["name"]: step["value"] for step in row["step"]}
        return RagCall(steps["ask"], steps["find"], steps["say"])

    steps = [{"name": "ask", "value": "When?"}, {"name": "find", "value": TEXTS},
             {"name": "say", "value": "At nine."}]  # fmt: skip
    rows = [{"step": steps}, {"step": steps[:1]}, {"step": "exit"}, {}, {"step": steps}]
    path = write(tmp_path / "rows.jsonl", *rows)
    for source in (rows, path, as_lines(*rows)):
        lines = list(read_calls(source, to_call=to_call))
        assert [line.value for line in lines] == [PLAIN, None, None, None, PLAIN]
        assert [str(line.error or "").partition("to_call")[2] for line in lines] == [
            "", "` raised KeyError: 'find'", "` raised EscapedError: SystemExit: 3",
            "` raised KeyError: 'step'", "",
        ]  # fmt: skip
    single = write(tmp_path / "single.json", rows[0])  # whose only list is not taken for the rows
    assert call_of(single, to_call=to_call) == PLAIN
    wrong: Any = dict
    assert why(rows[:1], to_call=wrong)[0].startswith(
        "row 1: `to_call` should return a RagCall, not {"
    )
    with pytest.raises(ConfigurationError, match=r"`field_map`.*`to_call` makes the calls"):
        read_calls(rows, to_call=to_call, field_map={"question": "q"})


# --- What holds the rows


@dataclass
class TestCase:
    """Like a test case of deepeval."""

    __test__ = False
    input: str
    actual_output: str
    retrieval_context: list[str]
    expected_output: str | None = None


CASE = TestCase("When?", "At nine.", TEXTS)


def thing(text: str) -> SimpleNamespace:
    """Like a document, of no framework."""
    return SimpleNamespace(page_content=text, metadata={"client": object(), "n": 1})


RUN = SimpleNamespace(
    id=UUID(int=7), inputs={"question": "When?"}, start_time=datetime(2026, 1, 2, tzinfo=UTC),
    outputs={"answer": "At nine.", "documents": [*map(thing, TEXTS)]},
    client=object(),
)  # fmt: skip


def test_objects_are_read_by_their_attributes() -> None:
    """What JSON has no form for is left out; an unset reference is none."""
    assert call_of([CASE]).row_key == PLAIN.row_key
    run = call_of([RUN])
    assert run.row_key == PLAIN.row_key
    assert run.id == str(UUID(int=7))
    assert run.metadata == {"start_time": "2026-01-02T00:00:00+00:00"}
    assert run.documents[0].metadata == {"n": 1}
    assert call_of([PLAIN]) is PLAIN


class Sample(BaseModel):
    """Like a sample of ragas: iterating over it gives its fields."""

    user_input: str
    retrieved_contexts: list[str]
    response: str


class Examples(BaseModel):
    """Like a labelled data set of LlamaIndex."""

    examples: list[Sample]


class Cases:
    """Like a data set of deepeval, which cannot be iterated over."""

    @property
    def test_cases(self) -> list[TestCase]:
        return [CASE]


SAMPLE = Sample(user_input="When?", retrieved_contexts=TEXTS, response="At nine.")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("test case", CASE), ("sample", SAMPLE), ("call", PLAIN), ("dict", RAGAS_ROW),
        ("data set", Examples(examples=[SAMPLE])), ("data set without iteration", Cases()),
        ("result of deepeval", SimpleNamespace(test_results=[CASE])),
        # whose scores are no rows
        ("result of ragas", SimpleNamespace(dataset=Cases(), scores=[{"faithfulness": 1.0}])),
        ("test set of ragas", [SimpleNamespace(eval_sample=SAMPLE, synthesizer_name="s")]),
    ],
)  # fmt: skip
def test_one_object_is_one_call_and_a_data_set_object_its_rows(name: str, source: object) -> None:
    """A pydantic object is not iterated over its fields."""
    assert call_of(source).row_key == PLAIN.row_key, name


def test_langsmiths_own_objects_are_read() -> None:
    """An example with an answer and documents, and a run with its retriever below it."""
    schemas = pytest.importorskip("langsmith.schemas")
    now = datetime(2026, 1, 2, tzinfo=UTC)
    example = schemas.Example(
        id=UUID(int=1), dataset_id=UUID(int=2), inputs={"question": "When?"}, created_at=now,
        outputs={"answer": "At nine.", "contexts": TEXTS},
    )  # fmt: skip
    common = {"id": UUID(int=4), "name": "r", "start_time": now, "trace_id": UUID(int=4)}
    run = schemas.Run(
        run_type="chain", inputs={"input": "When?"}, outputs={"output": "At nine."}, **common,
        child_runs=[schemas.Run(inputs={}, **RETRIEVER, **{**common, "id": UUID(int=5)})],
    )  # fmt: skip
    assert [call_of([thing]).row_key for thing in (example, run)] == [PLAIN.row_key] * 2


ROWS: list[dict[str, Any]] = [{**RAGAS, "n": 1.5}, {**RAGAS, "response": None, "n": None}]


def test_frames_and_data_sets_are_read() -> None:
    """pandas, polars, pyarrow and Hugging Face; a missing answer is None and not NaN."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("datasets")
    np = pytest.importorskip("numpy")
    nested = pd.DataFrame(ROWS)
    nested["retrieved_contexts"] = [np.array(TEXTS, dtype=object)] * 2
    nested["at"] = [pd.Timestamp("2026-01-02"), pd.NaT]
    kept = datasets.Dataset.from_list(ROWS)
    for source in (
        ROWS, iter(ROWS), nested, pl.DataFrame(ROWS), pa.Table.from_pylist(ROWS), kept,
        kept.to_iterable_dataset(), kept.with_format("numpy"),
    ):  # fmt: skip
        calls = [line.value for line in read_calls(source) if line.value]
        said = [(call.question, call.response, texts(call), call.metadata["n"]) for call in calls]
        assert said == [("When?", "At nine.", TEXTS, 1.5), ("When?", None, TEXTS, None)], source
    assert call_of(nested[:1]).metadata["at"] == "2026-01-02T00:00:00"


@pytest.mark.parametrize("source", [{"train": []}, 5, b"x", object(), None])
def test_what_has_no_rows_is_refused(source: Any) -> None:
    """At once, with what to pass instead."""
    with pytest.raises(ConfigurationError, match="`source`"):
        read_calls(source)


def test_lazy_frames_and_double_columns_are_refused() -> None:
    """One of two columns would be lost."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    with pytest.raises(ConfigurationError, match="collect"):
        read_calls(pl.LazyFrame(ROWS))
    for source in (pd.DataFrame([[1, 2]], columns=["a", "a"]), io.StringIO("query,query\n1,2\n")):
        with pytest.raises(ConfigurationError, match="two columns"):
            list(read_calls(source))


def test_open_files_are_read(tmp_path: Path) -> None:
    """Of bytes, of text, compressed, and those that cannot go back."""
    text = f"{json.dumps(RAGAS)}\n" * 2
    path = tmp_path / "calls"
    path.write_bytes(gzip.compress(text.encode()))

    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    piped = os.fdopen(reading, "rb")
    for source in (io.StringIO(text), io.BytesIO(text.encode()), path.open("rb"), piped):
        with source:
            assert questions(told(source)[0]) == ["When?"] * 2
    with pytest.raises(ConfigurationError, match="bytes or text"):
        read_calls(type("Odd", (), {"read": lambda self, size: 5})())


async def test_evaluations_of_what_was_read() -> None:
    """A bad row is an evaluation with an error, in its place, and asks no judge."""
    lines = read_calls([RAGAS, {"x": 1}, RAGAS])
    result = await evaluate_calls(lines, RagEvaluator()).collect()

    assert [row.error and row.error.type for row in result] == [None, "InputError", None]
    assert "row 2: field `user_input`: is missing" in repr(result[1].error)
    assert result[1].usage.requests == 0


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And how to install it."""
    path = tmp_path / "calls.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"rag-eval-integrations\[parquet\]"):
        list(read_calls(path))


# --- Whatever a row holds


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["[", "['a'", '["a"', "\ud800", "9" * 5000, "[" * 3000 + "]" * 3000, "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["role", "type", "content", "text", "node", "kwargs", "lc", "metadata",
                         "score", "id", "documents", "messages", "x"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
FIELDS = st.sampled_from(["inputs", "outputs", "child_runs", "x", *chain(*NAMES.values())])


@given(st.lists(st.dictionaries(FIELDS, ODD, max_size=6) | ODD, max_size=5))
def test_no_row_ends_the_reading(rows: list[Any]) -> None:
    """Each is a call or a fault."""
    lines = list(read_calls(rows))
    assert len(lines) == len(rows)
    assert all((line.value is None) != (line.error is None) for line in lines)


@given(st.sampled_from([row for row, _ in FOREIGN]), st.data())
def test_no_value_ends_the_reading_of_a_shape(row: dict[str, Any], data: st.DataObject) -> None:
    """Something odd in the place of a field of a row that is understood."""
    odd = {**row, data.draw(st.sampled_from(sorted(row))): data.draw(ODD)}
    lines = list(read_calls([row, odd, row]))
    assert [line.error for line in lines[::2]] == [None, None]
