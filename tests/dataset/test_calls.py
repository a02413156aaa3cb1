"""`read_calls`: rows of other tools become calls, whatever holds them, and bad rows are counted."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rag_eval_integrations import Document, RagCall, RagEvaluator, evaluate_calls
from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.records import Turn

PLAIN = RagCall("When?", ["At nine.", "Or ten."], "At nine.")
WITH_REFERENCE = RagCall("When?", ["At nine.", "Or ten."], "At nine.", reference="Nine.")
HUMAN = {"type": "human", "content": "When?"}
ANSWER = {"type": "ai", "content": "At nine."}

RAGAS = {
    "user_input": "When?", "retrieved_contexts": ["At nine.", "Or ten."], "response": "At nine.",
    "reference": "Nine.",
}  # fmt: skip
RAGAS_TURNS = {
    "user_input": [
        {"type": "human", "content": "Hello"},
        {"type": "ai", "content": "Hello to you."},
        HUMAN,
        {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {}}]},
        {"type": "tool", "content": "At nine."},
        {"type": "tool", "content": "Or ten."},
        ANSWER,
        {"type": "human", "content": "Thanks!"},
    ],
    "reference": "Nine.",
}
DEEPEVAL = {
    "input": "When?", "actual_output": "At nine.", "retrieval_context": ["At nine.", "Or ten."],
    "expected_output": "Nine.", "context": ["At nine sharp."],
}  # fmt: skip
LANGSMITH = {
    "id": "7", "run_type": "chain", "inputs": {"question": "When?"},
    "outputs": {
        "answer": "At nine.",
        "documents": [{"page_content": "At nine.", "type": "Document"}, {"page_content": "Or ten."}],
    },
    "reference_outputs": {"answer": "Nine."},
    "events": [{"name": "start"}],
}  # fmt: skip
RETRIEVER = {"run_type": "retriever", "outputs": {"documents": [
    {"page_content": "At nine."}, {"page_content": "Or ten."}]}}  # fmt: skip
LANGSMITH_RUNS = {
    "inputs": {"input": "When?"}, "outputs": {"output": "At nine."}, "reference": "Nine.",
    "child_runs": [{"run_type": "chain", "child_runs": [RETRIEVER]}],
}  # fmt: skip
MESSAGES = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "When?"}]},
        {"role": "assistant", "content": "At nine."},
    ],
    "contexts": ["At nine.", "Or ten."],
    "ground_truth": "Nine.",
}
COMMON = {
    "query": "When?", "contexts": [{"content": "At nine."}, {"text": "Or ten."}],
    "answer": "At nine.", "expected_answer": "Nine.",
}  # fmt: skip
CHAIN = {
    "input": "When?", "context": [{"page_content": "At nine."}, {"page_content": "Or ten."}],
    "answer": "At nine.", "reference": "Nine.",
}  # fmt: skip
FOREIGN: dict[str, dict[str, Any]] = {
    "ragas": RAGAS, "ragas_turns": RAGAS_TURNS, "deepeval": DEEPEVAL, "langsmith": LANGSMITH,
    "langsmith_runs": LANGSMITH_RUNS, "messages": MESSAGES, "common": COMMON, "chain": CHAIN,
}  # fmt: skip


def call_of(source: Any, **options: Any) -> RagCall:
    """The only call of a source."""
    (line,) = read_calls(source, **options)
    assert line.value is not None, line.error
    return line.value


def why(source: Any, **options: Any) -> list[str]:
    """The faults of a source, empty for a call."""
    return [str(line.error or "") for line in read_calls(source, **options)]


# --- Names of other tools


@pytest.mark.parametrize("name", FOREIGN)
def test_rows_of_other_tools_are_the_same_call(name: str) -> None:
    """Question, documents, response and reference of each; a conversation has its history."""
    call = call_of([FOREIGN[name]])

    if name in ("ragas_turns", "messages"):
        assert call.history
        call = RagCall(call.question, call.documents, call.response, reference=call.reference)
    assert call.row_key == WITH_REFERENCE.row_key


def test_a_conversation_is_its_last_answered_question() -> None:
    """What came before is history; tools' messages in between are documents; the rest is left."""
    call = call_of([RAGAS_TURNS])

    assert call.history == (
        Turn(role="user", content="Hello"), Turn(role="assistant", content="Hello to you."),
    )  # fmt: skip
    assert call.documents == (Document("At nine."), Document("Or ten."))


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([HUMAN], "has no answer"),
        ([ANSWER], "has no question"),
        ([HUMAN, 5, ANSWER], "field `messages[1]`: should be a message"),
    ],
)
def test_a_conversation_without_question_or_answer_is_a_bad_row(
    messages: list[Any], fault: str
) -> None:
    """And says which is missing."""
    assert fault in why([{"messages": messages, "contexts": []}])[0]


def test_the_mapping_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """In words; nothing is told of our own names; without `tell` it is logged."""
    notes: list[str] = []
    list(read_calls([RAGAS, RAGAS], tell=notes.append))
    assert notes == [
        "read as ragas: user_input → question, retrieved_contexts → documents, response, reference"
    ]
    list(read_calls([{"question": "q", "documents": [], "response": "r"}], tell=notes.append))
    assert len(notes) == 1
    with caplog.at_level("INFO"):
        list(read_calls([LANGSMITH]))
    assert "read as langsmith: inputs.question → question" in caplog.text


def test_other_fields_are_metadata() -> None:
    """A run's trace is not: it would fill every row."""
    assert call_of([DEEPEVAL]).metadata == {"context": ["At nine sharp."]}
    assert call_of([LANGSMITH]).metadata == {"run_type": "chain"}


def test_ids_of_ragas_are_gold_ids() -> None:
    """Of the documents, in their order, and of those that are relevant."""
    call = call_of([{**RAGAS, "retrieved_context_ids": ["a", 2], "reference_context_ids": ["a"]}])

    assert [document.id for document in call.documents] == ["a", "2"]
    assert call.relevant_ids == ("a",)
    row = {**RAGAS, "retrieved_context_ids": ["a"]}
    assert why([row]) == ["row 1: field `retrieved_context_ids`: has 1 ids for 2 documents"]


def test_two_names_for_one_field_are_refused_by_both() -> None:
    """Unless one is our own, which is no guess, or a map says which."""
    row = {**COMMON, "context": "Else."}
    assert why([row]) == [
        "row 1: field `documents`: is ambiguous: the row has `contexts` and `context`; say which "
        "with field_map={'documents': 'contexts'}"
    ]
    assert call_of([row], field_map={"documents": "context"}).documents == (Document("Else."),)
    assert call_of([{**row, "documents": ["Own."]}]).documents == (Document("Own."),)
    assert "ragas (user_input" in why([{**RAGAS, **DEEPEVAL}])[0]


def test_a_later_row_lacks_what_the_first_one_has() -> None:
    """It is a bad row, and names its own fields; another tool's row is not guessed."""
    assert why([RAGAS, DEEPEVAL, 5, RAGAS]) == [
        "",
        "row 2: field `user_input`: is missing; the row has `actual_output`, `context`, "
        "`expected_output`, `input`, `retrieval_context`",
        "row 3: is not a row: 5",
        "",
    ]


def test_a_bad_first_row_decides_nothing() -> None:
    """The first row with a shape does."""
    assert [bool(fault) for fault in why([{"x": 1}, "text", RAGAS])] == [True, True, False]


def test_a_field_map_reads_any_names() -> None:
    """Also inside of objects, and names with dots; the rest is found by name."""
    row = {"q": "When?", "hits": {"list": ["At nine.", "Or ten."]}, "out.text": "At nine."}
    names = {"question": "q", "documents": "hits.list", "response": "out.text"}
    assert call_of([row], field_map=names).row_key == PLAIN.row_key
    assert (
        call_of([{**COMMON, "gold": "Else."}], field_map={"reference": "gold"}).reference == "Else."
    )


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ({"questoin": "q"}, "is not a field of a call; did you mean `question`?"),
        ({"question": ""}, "should give the name of a field"),
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


CRAG = {
    "query": "When?", "answer": "At nine.",
    "search_results": [
        {"page_name": "p1", "page_snippet": "At nine.", "page_result": "<html>"},
        {"page_name": "p2", "page_snippet": "Or ten.", "page_result": "<html>"},
    ],
}  # fmt: skip
TWO_COLUMNS = {"question": "When?", "Text 1": "At nine.", "Text 2": "Or ten.", "answer": "At nine."}


@pytest.mark.parametrize("cell", [False, True])
def test_a_dotted_name_goes_through_lists(cell: bool) -> None:
    """`a.b` is `b` of every item, also in a cell; nothing else of the list is kept."""
    hits = CRAG["search_results"]
    row = {**CRAG, "search_results": json.dumps(hits) if cell else hits}
    names = {"documents": "search_results.page_snippet", "document_ids": "search_results.page_name"}
    call = call_of([row], field_map=names)
    assert call.documents == (Document("At nine.", "p1"), Document("Or ten.", "p2"))
    assert call.metadata == {}
    deep = {**CRAG, "search_results": {"pages": [{"hits": [{"t": "At nine."}, {"t": "Or ten."}]}]}}
    texts = call_of([deep], field_map={"documents": "search_results.pages.hits.t"}).documents
    assert [document.text for document in texts] == ["At nine.", "Or ten."]


def test_an_item_of_a_list_without_the_field_is_a_bad_row() -> None:
    """A document is not left out without a word."""
    row = {**CRAG, "search_results": [{"page_snippet": "At nine."}, {"page_name": "p"}]}
    names = {"documents": "search_results.page_snippet"}
    (line,) = read_calls([row], field_map=names)
    assert str(line.error) == "row 1: field `search_results.page_snippet`: is missing in item 1"


def test_documents_may_lie_in_several_fields() -> None:
    """In the order of the names; a field that is empty or null holds none."""
    heard: list[str] = []
    names = {"documents": ["Text 1", "Text 2"]}
    rows = [TWO_COLUMNS, {**TWO_COLUMNS, "Text 1": ""}, {**TWO_COLUMNS, "Text 2": None}]
    calls = [line.value for line in read_calls(rows, field_map=names, tell=heard.append)]
    texts = [[document.text for document in call.documents] for call in calls if call is not None]
    assert texts == [["At nine.", "Or ten."], ["Or ten."], ["At nine."]]
    assert heard == ["read as calls: question, Text 1 + Text 2 → documents, answer → response"]


def test_a_row_without_known_names_says_what_to_try() -> None:
    """In the caller's language: all missing fields, the names of the row, and a mapping."""
    (fault,) = why([{"user_question": "q", "Kontext 1": "c", "Kontext 2": "d", "text": "a"}])
    assert fault == (
        "row 1: field `question`: is missing, and so are `documents` and `response`; the row has "
        "`Kontext 1`, `Kontext 2`, `text`, `user_question`; try field_map={'question': "
        "'user_question', 'documents': ['Kontext 1', 'Kontext 2'], 'response': 'NAME'}"
    )
    (fault,) = why([CRAG])
    assert fault.endswith("try field_map={'documents': 'search_results.page_snippet'}")
    (fault,) = why([{"user_input": "q", "reference_contexts": ["c"], "reference": "a"}])
    assert "'documents': 'reference_contexts'" in fault


PLAIN_FIELDS = (PLAIN.question, PLAIN.documents, PLAIN.response)


def test_what_to_try_is_worked_out_for_some_sets_of_names() -> None:
    """It compares names, which takes time; rows of other names each say what they lack."""
    faults = why([{f"n{number}-{place}": 1 for place in range(100)} for number in range(500)])
    assert [" try field_map=" in fault for fault in faults] == [True] * 20 + [False] * 480
    assert all("is missing, and so are `documents` and `response`" in fault for fault in faults)


TURNS = [
    {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello to you."},
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "At nine.", "retrieval_context": ["At nine.", "Or ten."]},
]  # fmt: skip


@pytest.mark.parametrize("turns", [TURNS, json.dumps(TURNS)])
def test_conversations_of_deepeval_are_read(turns: object) -> None:
    """The last exchange, with the documents of its answer."""
    call = call_of([{"scenario": "s", "turns": turns, "expected_outcome": "o"}])
    assert (call.question, call.documents, call.response) == PLAIN_FIELDS
    assert [turn.content for turn in call.history] == ["Hello", "Hello to you."]


def test_several_references_are_a_text() -> None:
    """As ragas wrote them before `ground_truth`."""
    row = {name: value for name, value in COMMON.items() if name != "expected_answer"}
    assert call_of([{**row, "ground_truths": ["Nine."]}]).reference == "Nine."
    assert call_of([{**row, "ground_truths": ["Nine.", "9."]}]).reference == "Nine.\n9."


@pytest.mark.parametrize("name", ["examples", "results", "testCases", "samples", "goldens"])
@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_rows_under_one_key_are_read_and_told(tmp_path: Path, name: str, ending: str) -> None:
    """As LlamaIndex, RAGChecker, deepeval and ragas write their data sets, on one line or many."""
    path = tmp_path / f"rows{ending}"
    rows = [DEEPEVAL if name == "testCases" else RAGAS, "text"]
    for indent in (None, 1):
        heard: list[str] = []
        path.write_text(json.dumps({"version": 1, name: rows[:1] * 2}, indent=indent))
        lines = list(read_calls(path, tell=heard.append))
        assert [line.value and line.value.question for line in lines] == ["When?", "When?"]
        assert heard[0] == f"rows are read from `{name}`"
    path.write_text(json.dumps({name: rows}))  # which are not all rows
    assert "is missing" in why(path)[0]


def test_the_only_list_of_objects_is_the_rows_of_what_is_no_row(tmp_path: Path) -> None:
    """Whatever its name; a row that holds a list, by known names or by a map, stays a row."""
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"version": "1", "data": [RAGAS, RAGAS]}))
    assert why(path) == ["", ""]
    path.write_text(json.dumps({"query": "When?", "results": CRAG["search_results"]}))
    assert "is missing, and so is `response`; the row has `query`, `results`" in why(path)[0]
    path.write_text(json.dumps({"q": "When?", "hits": CRAG["search_results"], "a": "At nine."}))
    names = {"question": "q", "documents": "hits.page_snippet", "response": "a"}
    assert len(call_of(path, field_map=names).documents) == 2


def test_a_spreadsheet_is_told(tmp_path: Path) -> None:
    """It is a ZIP archive; no row of it is text."""
    path = tmp_path / "calls.xlsx"
    path.write_bytes(b"PK\3\4\x14\0\6\0\x08\0\n" + bytes(100))
    assert why(path)[0] == "line 1: not text, but probably a spreadsheet; save it as CSV"


def test_a_labelled_data_set_of_llama_index_is_read(tmp_path: Path) -> None:
    """Its own contexts and answers, which is told; an app's answers beside them are not gold."""
    example = {"query": "When?", "query_by": None, "reference_contexts": ["At nine.", "Or ten."],
               "reference_answer": "At nine."}  # fmt: skip
    path = tmp_path / "rag_dataset.json"
    path.write_text(json.dumps({"examples": [example]}))
    heard: list[str] = []
    (line,) = read_calls(path, tell=heard.append)
    assert line.value is not None
    assert (line.value.question, line.value.documents, line.value.response) == PLAIN_FIELDS
    assert "of the data set, not of an app" in heard[1]
    answered = {**example, "response": "It leaves.", "contexts": ["It leaves."]}
    assert call_of([answered]).response == "It leaves."


@pytest.mark.parametrize(
    "history",
    [
        [["Hello", "Hello to you."]],
        [("human", "Hello"), ("ai", "Hello to you.")],
        [{"role": "user", "content": "Hello"}, {"type": "ai", "content": "Hello to you."}],
        '[["Hello", "Hello to you."]]',
    ],
)
def test_a_history_is_read_in_every_form(history: object) -> None:
    """Pairs of question and answer, pairs of role and text, messages; text alone is none."""
    call = call_of([{**COMMON, "chat_history": history}])
    assert [turn.content for turn in call.history] == ["Hello", "Hello to you."]
    assert [turn.role for turn in call.history] == ["user", "assistant"]
    assert "should be a list of messages" in why([{**COMMON, "chat_history": "Hello"}])[0]


def test_metadata_may_be_an_object_its_json_or_a_text() -> None:
    """Nothing of it is lost; a number is refused by the record."""
    for given_metadata in ({"a": 1}, '{"a": 1}'):
        assert call_of([{**COMMON, "metadata": given_metadata}]).metadata == {"a": 1}
    assert call_of([{**COMMON, "metadata": "note"}]).metadata == {"metadata": "note"}
    assert "field `metadata`" in why([{**COMMON, "metadata": 5}])[0]


class Angry:
    """An object whose attributes fail."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError("not today")


def test_an_object_that_fails_is_a_bad_row() -> None:
    """And ends nothing."""
    assert why([Angry(), COMMON]) == ["row 1: not usable: RuntimeError: not today", ""]


# --- Documents and texts


@pytest.mark.parametrize(
    "documents",
    [
        ["At nine."],
        "At nine.",
        '["At nine."]',
        "['At nine.']",
        '[{"page_content": "At nine.", "metadata": {}}]',
        [{"content": "At nine."}],
        [{"node": {"id_": None, "text": "At nine.", "metadata": {}}, "score": None}],
        [{"text_resource": {"text": "At nine."}, "metadata": {}}],
        [{"lc": 1, "type": "constructor", "id": ["Document"], "kwargs": {"page_content": "At nine."}}],
        [["At nine."]],
        {"documents": ["At nine."]},
        ("At nine.",),
    ],
)  # fmt: skip
def test_documents_are_read_in_every_form(documents: object) -> None:
    """Strings, objects of LangChain and LlamaIndex as JSON, a cell of a table."""
    row = {"query": "q", "contexts": documents, "answer": "r"}

    assert call_of([row]).documents == (Document("At nine."),)


def test_what_is_known_about_a_document_is_kept() -> None:
    """Its id, score and metadata; a pair of a document and its score, too."""
    node = {"node": {"id_": "n1", "text": "At nine.", "metadata": {"page": 3}, "start_char_idx": 0},
            "score": 0.5}  # fmt: skip
    pair = ({"page_content": "Or ten.", "metadata": {"p": 1}, "source": "s"}, 0.25)
    call = call_of([{"query": "q", "contexts": [node, pair], "answer": "r"}])

    assert call.documents == (
        Document("At nine.", "n1", {"page": 3}, 0.5),
        Document("Or ten.", None, {"p": 1, "source": "s"}, 0.25),
    )


@pytest.mark.parametrize(
    ("documents", "fault"),
    [
        (None, "is null"),
        (5, "should be a list of documents, not 5"),
        ([5], "field `contexts[0]`: is not a document: 5"),
        ([{"title": "t"}], "is not a document: it has `title`"),
        ("['a' 'b']", "looks like a list and is not JSON"),
        ("[" + "'a', " * 60_000 + "]", "looks like a list and is not JSON"),
        ("[" * 300 + "'a'" + "]" * 300, "looks like a list and is not JSON"),
        ("[1, 2", ""),
    ],
)
def test_what_is_no_document_is_said(documents: object, fault: str) -> None:
    """Numpy's notation has no commas, and Python would join its texts into one; sizes are limited."""
    assert fault in why([{"query": "q", "contexts": documents, "answer": "r"}])[0]


def test_documents_of_our_own_rows_may_be_langchains(tmp_path: Path) -> None:
    """Rows with our field names need not have our documents."""
    path = tmp_path / "calls.jsonl"
    row = {"question": "q", "documents": [{"page_content": "d", "metadata": {"a": 1}}],
           "response": "r"}  # fmt: skip
    path.write_text(json.dumps(row))

    assert call_of(path).documents == (Document("d", None, {"a": 1}),)


@pytest.mark.parametrize(
    "row",
    [
        {"Question": "q", "Contexts": ["d"], "Answer": "r", "Ground Truth": "g"},
        {"USER_INPUT": "q", "RETRIEVED_CONTEXTS": ["d"], "RESPONSE": "r", "REFERENCE": "g"},
        {"input": "q", "retrievalContext": ["d"], "actualOutput": "r", "Expected-Output": "g"},
        {
            "query": "q",
            "sourceDocuments": [{"pageContent": "d"}],
            "result": "r",
            "groundTruth": "g",
        },
        {"query": "q", "contexts": ["d"], "answer": "r", "expectedOutput": "g"},
    ],
)
def test_names_may_be_spelt_in_other_ways(row: dict[str, Any]) -> None:
    """Spreadsheets and JavaScript write them so; what they were read as is told."""
    notes: list[str] = []
    (line,) = read_calls([row], tell=notes.append)

    assert line.value == RagCall("q", ["d"], "r", reference="g")
    assert all(f"{name} → " in notes[0] or name == "input" for name in row)


def test_the_exact_name_counts_more_than_a_spelling() -> None:
    """A row that is clear does not become ambiguous; of two other spellings none is chosen."""
    row = {"query": "q", "contexts": ["d"], "answer": "r"}

    assert call_of([{**row, "Question": "?", "Contexts": 5}]).question == "q"
    (fault,) = why([{"Query": "q", "QUERY": "p", "contexts": ["d"], "answer": "r"}])
    assert "`question`: is ambiguous: the row has `Query` and `QUERY`" in fault


def test_a_table_with_capitals_is_known_without_its_name(tmp_path: Path) -> None:
    """Standard input has none."""
    path = tmp_path / "calls"
    path.write_text("Question,Contexts,Answer\nq,d,r\n")

    assert call_of(path).question == "q"
    path.write_text("Question\tContexts\tAnswer\nq\td\tr\n")
    notes: list[str] = []
    assert len(list(read_calls(path, tell=notes.append))) == 1
    assert notes[0] == "columns are separated by tabs"


def test_a_reference_may_come_with_a_later_row() -> None:
    """Not every writer writes a null, and objects hold nothing but None."""
    row = {"query": "q", "contexts": ["d"], "answer": "r"}
    notes: list[str] = []
    lines = list(read_calls([row, {**row, "ground_truth": "g"}, row], tell=notes.append))

    assert [line.value and line.value.reference for line in lines] == [None, "g", None]
    assert notes[1:] == ["a later row has also: ground_truth → reference"]


def test_the_gold_context_of_deepeval_was_not_retrieved() -> None:
    """A test case without `retrieval_context` has no documents to be judged by."""
    fault = why([{"input": "q", "actual_output": "r", "context": ["gold"]}])[0]

    assert "field `documents`: is missing" in fault
    assert "deepeval's `context` is the expected one" in fault
    assert call_of([{"input": "q", "output": "r", "context": ["d"]}]).documents == (Document("d"),)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_documents_that_deepeval_joined_are_several(tmp_path: Path, suffix: str) -> None:
    """Its CSV and JSONL have one text where its JSON has a list; what is done is told once."""
    rows = [
        {"input": "When?", "actual_output": "At nine.", "retrieval_context": joined}
        for joined in ("At nine.", "At nine.|Or ten.", "Or ten.|At nine.", '["a|b"]', "")
    ]
    path = tmp_path / f"goldens.{suffix}"
    with path.open("w", newline="") as file:
        if suffix == "csv":
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    notes: list[str] = []

    calls = [line.value for line in read_calls(path, tell=notes.append)]

    assert [[document.text for document in call.documents] for call in calls if call] == [
        ["At nine."], ["At nine.", "Or ten."], ["Or ten.", "At nine."], ["a|b"], [],
    ]  # fmt: skip
    assert len(notes) == 2
    assert "`retrieval_context` is split at `|`" in notes[1]


def test_only_documents_that_deepeval_joined_are_split() -> None:
    """Not those of a list, of other tools, or of a field that the user named."""
    joined = {"input": "q", "actual_output": "r", "retrieval_context": "a|b"}
    whole = (Document("a|b"),)

    assert call_of([{**joined, "retrieval_context": ["a|b"]}]).documents == whole
    assert call_of([{"query": "q", "answer": "r", "contexts": "a|b"}]).documents == whole
    assert call_of([joined], field_map={"documents": "retrieval_context"}).documents == whole


def test_a_mapped_conversation_holds_its_answer() -> None:
    """As `messages` does, wherever it is."""
    row = {"log": {"turns": [HUMAN, ANSWER]}, "contexts": ["d"]}
    (line,) = read_calls([row], field_map={"question": "log.turns"})

    assert line.value == RagCall("When?", ["d"], "At nine.")


def test_one_field_may_be_two() -> None:
    """Both have its value: the second is not lost."""
    row = {"query": "q", "contexts": ["d"], "said": {"it": "r"}}
    for name, value in (("said.it", row["said"]), ("said", "r")):
        (line,) = read_calls(
            [{**row, "said": value}], field_map={"response": name, "reference": name}
        )
        assert line.value == RagCall("q", ["d"], "r", reference="r")


@pytest.mark.parametrize("reference", ["reference", "reference_outputs"])
def test_frames_of_langsmith_have_a_column_for_each_name(reference: str) -> None:
    """As the results of an experiment are written."""
    row = {"inputs.question": "q", "outputs.answer": "r", "outputs.documents": ["d"],
           f"{reference}.answer": "g", "feedback.x": 1.0}  # fmt: skip
    notes: list[str] = []
    (line,) = read_calls([row], tell=notes.append)

    assert line.value == RagCall("q", ["d"], "r", reference="g", metadata={"feedback.x": 1.0})
    assert notes[0].startswith("read as langsmith: inputs.question → question, outputs.documents →")


# --- Cells of a table


def test_cells_hold_what_pandas_writes(tmp_path: Path) -> None:
    """`to_csv` writes a list of dicts, and messages, in Python's notation."""
    documents = [{"text": 'It\'s "nine".\n', "id": 1, "metadata": {"a": None, "b": (True, 0.5)}}]
    asked = [{"content": "When?", "type": "human"}, {"content": "Nine.", "type": "ai"}]
    path = tmp_path / "calls.csv"
    pd = pytest.importorskip("pandas")
    pd.DataFrame([{"user_input": asked, "retrieved_contexts": documents}]).to_csv(path)

    call = call_of(path)

    assert (call.question, call.response) == ("When?", "Nine.")
    result = Document('It\'s "nine".\n', "1", {"a": None, "b": [True, 0.5]})
    assert call.documents == (result,)


def test_a_cell_of_objects_is_read_as_pandas_writes_it(tmp_path: Path) -> None:
    """Runs of LangSmith have objects in their columns."""
    path = tmp_path / "runs.csv"
    row = {"inputs": {"question": "q"}, "outputs": {"answer": "r", "documents": ["d"]}}
    pd = pytest.importorskip("pandas")
    pd.DataFrame([row]).to_csv(path)

    call = call_of(path)

    assert (call.question, call.documents, call.response) == ("q", (Document("d"),), "r")


@pytest.mark.parametrize("cell", ["[Document('a')]", "['a' 'b']", "[a]", "['a', f('b')]", "['a'"])
def test_nothing_in_a_cell_is_evaluated(cell: str) -> None:
    """Only texts, numbers, lists and dicts are read; the rest is refused, or one text."""
    lines = list(read_calls([{"query": "q", "contexts": cell, "answer": "r"}]))

    assert lines[0].error or (lines[0].value and lines[0].value.documents[0].text == cell)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    )
)
def test_every_value_in_pythons_notation_is_read(value: Any) -> None:
    """A list in Python's notation is the list that JSON would be."""
    cell = {"query": "q", "contexts": ["d"], "answer": "r", "metadata": repr({"m": [value]})}
    expected = {**cell, "metadata": json.dumps({"m": [value]})}

    assert call_of([cell]).metadata == call_of([expected]).metadata


@pytest.mark.parametrize("ids", ["times", "a,b", "{}"])
def test_ids_that_are_no_list_are_a_bad_row(ids: str) -> None:
    """A gold that was dropped without a word would be a score that is missing without a reason."""
    fault = why([{"query": "q", "contexts": ["d"], "answer": "r", "relevant_ids": ids}])[0]

    assert "field `relevant_ids`: should be a list of ids" in fault


def test_rows_of_empty_cells_are_blank_lines(tmp_path: Path) -> None:
    """Spreadsheets write `;;` below a table."""
    path = tmp_path / "calls.csv"
    path.write_bytes("\ufeffquestion;contexts;answer\r\nq;d;r\r\n;;\r\n;;\r\n".encode())

    assert [line.number for line in read_calls(path)] == [2]


# --- What holds the rows


@dataclass
class TestCase:
    """Like a test case of deepeval."""

    __test__ = False
    input: str
    actual_output: str
    retrieval_context: list[str]
    expected_output: str | None = None
    tags: list[str] = field(default_factory=list)


class Run:
    """Like a run of LangSmith."""

    def __init__(self) -> None:
        self.id = UUID(int=7)
        self.inputs = {"question": "When?"}
        self.outputs = {"answer": "At nine.", "documents": [Thing("At nine."), Thing("Or ten.")]}
        self.start_time = datetime(2026, 1, 2, tzinfo=UTC)
        self.client = object()


class Thing:
    """Like a document, of no framework."""

    def __init__(self, text: str) -> None:
        self.page_content = text
        self.metadata = {"client": object(), "n": 1}


def test_objects_are_read_by_their_attributes() -> None:
    """What JSON has no form for is left out; an unset reference is none."""
    case = call_of([TestCase("When?", "At nine.", ["At nine.", "Or ten."])])
    assert case.row_key == PLAIN.row_key
    run = call_of([Run()])
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

    def __init__(self, cases: list[TestCase]) -> None:
        self._cases = cases

    @property
    def test_cases(self) -> list[TestCase]:
        return self._cases


@dataclass
class Evaluated:
    """Like a result of deepeval."""

    test_results: list[TestCase]


@dataclass
class Scored:
    """Like a result of ragas, whose scores are no rows."""

    dataset: Cases
    scores: list[dict[str, float]]


@dataclass
class Generated:
    """Like a row of ragas' test set, which holds the sample."""

    eval_sample: Sample
    synthesizer_name: str = "s"


SAMPLE = Sample(user_input="When?", retrieved_contexts=["At nine.", "Or ten."], response="At nine.")
RAGAS_ROW = {name: value for name, value in RAGAS.items() if name != "reference"}
CASE = TestCase("When?", "At nine.", ["At nine.", "Or ten."])


@pytest.mark.parametrize(
    "source",
    [
        CASE,
        SAMPLE,
        PLAIN,
        RAGAS_ROW,
        Examples(examples=[SAMPLE]),
        Cases([CASE]),
        Evaluated([CASE]),
        Scored(Cases([CASE]), [{"faithfulness": 1.0}]),
        [Generated(SAMPLE)],
    ],
    ids=[
        "test case",
        "sample",
        "call",
        "dict",
        "data set",
        "data set without iteration",
        "result of deepeval",
        "result of ragas",
        "test set",
    ],
)
def test_one_object_is_one_call_and_a_data_set_object_its_rows(source: object) -> None:
    """A pydantic object is not iterated over its fields."""
    assert call_of(source).row_key == PLAIN.row_key


def test_langsmiths_own_objects_are_read() -> None:
    """An example with an answer and documents, and a run with its retriever below it."""
    schemas = pytest.importorskip("langsmith.schemas")
    now = datetime(2026, 1, 2, tzinfo=UTC)
    outputs = {"answer": "At nine.", "contexts": ["At nine.", "Or ten."]}
    example = schemas.Example(
        id=UUID(int=1), dataset_id=UUID(int=2), inputs={"question": "When?"}, outputs=outputs,
        created_at=now,
    )  # fmt: skip
    common = {"start_time": now, "trace_id": UUID(int=4), "end_time": now}
    below = schemas.Run(
        id=UUID(int=3), name="r", run_type="retriever", inputs={}, **common,
        outputs={"documents": [{"page_content": "At nine."}, {"page_content": "Or ten."}]},
    )  # fmt: skip
    run = schemas.Run(
        id=UUID(int=4), name="c", run_type="chain", inputs={"input": "When?"}, **common,
        outputs={"output": "At nine."}, child_runs=[below],
    )  # fmt: skip
    for thing in (example, run):
        assert call_of([thing]).row_key == PLAIN.row_key


def rows() -> list[dict[str, Any]]:
    return [
        {"query": "When?", "contexts": ["At nine.", "Or ten."], "answer": "At nine.", "n": 1.5},
        {"query": "When?", "contexts": ["At nine.", "Or ten."], "answer": None, "n": None},
    ]


def test_frames_and_data_sets_are_read() -> None:
    """pandas, polars, pyarrow and Hugging Face; a missing answer is None and not NaN."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa, datasets = pytest.importorskip("pyarrow"), pytest.importorskip("datasets")
    np = pytest.importorskip("numpy")
    nested = pd.DataFrame(rows())
    nested["contexts"] = [np.array(["At nine.", "Or ten."], dtype=object)] * 2
    nested["at"] = [pd.Timestamp("2026-01-02"), pd.NaT]
    kept = datasets.Dataset.from_list(rows())
    for source in (
        rows(), iter(rows()), nested, pl.DataFrame(rows()), pa.Table.from_pylist(rows()), kept,
        kept.to_iterable_dataset(), kept.with_format("numpy"),
    ):  # fmt: skip
        first, second = (line.value for line in read_calls(source))
        assert first is not None, source
        assert second is not None
        assert first.row_key == PLAIN.row_key
        assert first.metadata["n"] == 1.5
        assert second.response is None
        assert second.metadata["n"] is None
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
        read_calls(pl.LazyFrame(rows()))
    with pytest.raises(ConfigurationError, match="two columns"):
        list(read_calls(pd.DataFrame([[1, 2]], columns=["a", "a"])))


def test_open_files_are_read(tmp_path: Path) -> None:
    """Of bytes, of text, compressed, and those that cannot go back."""
    text = "".join(json.dumps(row) + "\n" for row in (RAGAS, RAGAS))
    path = tmp_path / "calls"
    path.write_bytes(gzip.compress(text.encode()))

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.below = io.BytesIO(text.encode())

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            return self.below.readinto(buffer)

    for source in (io.StringIO(text), io.BytesIO(text.encode()), path.open("rb"), Pipe()):
        with source:
            assert [line.value.question for line in read_calls(source) if line.value] == [
                "When?"
            ] * 2
    with pytest.raises(ConfigurationError, match="bytes or text"):
        read_calls(type("Odd", (), {"read": lambda self, size: 5})())


async def test_evaluations_of_what_was_read() -> None:
    """A bad row is an evaluation with an error, in its place, and asks no judge."""
    lines = read_calls([RAGAS, {"x": 1}, RAGAS])
    result = await evaluate_calls(lines, RagEvaluator()).collect()

    assert [call_of.error is None for call_of in result] == [True, False, True]
    assert result[1].error is not None
    assert result[1].error.type == "InputError"
    assert "row 2: field `user_input`: is missing" in result[1].error.message
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
NAMES = st.sampled_from(
    ["question", "query", "input", "inputs", "outputs", "user_input", "messages", "contexts",
     "retrieved_contexts", "retrieval_context", "documents", "response", "answer", "actual_output",
     "reference", "metadata", "id", "history", "relevant_ids", "child_runs", "document_ids", "x"]
)  # fmt: skip


@given(st.lists(st.dictionaries(NAMES, ODD, max_size=6) | ODD, max_size=5))
def test_no_row_ends_the_reading(rows: list[Any]) -> None:
    """Each is a call or a fault."""
    lines = list(read_calls(rows))
    assert len(lines) == len(rows)
    assert all((line.value is None) != (line.error is None) for line in lines)


@given(st.sampled_from(sorted(FOREIGN)), st.data())
def test_no_value_ends_the_reading_of_a_shape(name: str, data: st.DataObject) -> None:
    """Something odd in the place of a field of a row that is understood."""
    row = FOREIGN[name]
    odd = {**row, data.draw(st.sampled_from(sorted(row))): data.draw(ODD)}
    lines = list(read_calls([row, odd, row]))
    assert [line.error for line in lines[::2]] == [None, None]
