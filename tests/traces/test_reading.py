"""Traces that are odd, hostile, apart from each other or too many; and the rules of one call."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from exported_traces import ANSWER, PROMPT, QUESTION, TEXTS, observations, phoenix, runs
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.records import Capture, RagCall
from rag_eval_integrations.traces import read_traces, reading


def told_of(rows: Any) -> tuple[list[RagCall], str]:
    """The calls of rows, and what is told."""
    told: list[str] = []
    calls = [line.value for line in read_calls(rows, tell=told.append) if line.value is not None]
    return calls, told[-1]


def how(call: RagCall) -> Capture:
    assert call.capture is not None
    return call.capture


# --- What has no call


def test_what_has_no_call_is_counted_by_reason() -> None:
    """Of traces beside sound ones; nothing is a bad row."""
    rows = phoenix()

    def other(trace: str, spans: list[dict[str, Any]], **changes: Any) -> list[dict[str, Any]]:
        return [{**span, "context.trace_id": trace, **changes} for span in spans]

    root, retriever, model = rows
    no_documents = {**retriever, "attributes.retrieval.documents": None}
    masked = {**root, "attributes.input.value": "__REDACTED__"}
    no_text = {**root, "attributes.input.value": "{}"}
    no_query = {**retriever, "attributes.input.value": None}
    calls, told = told_of([
        *rows, *other("a", [root, model]), *other("b", [root, no_documents, model]),
        *other("c", [masked, retriever]), *other("d", [no_text, no_query]),
        *other("e", [retriever], parent_id=None), *other("f", rows, parent_id="a1"),
    ])  # fmt: skip
    assert [call.question for call in calls] == [QUESTION]
    assert told == (
        "read as spans of Phoenix: 16 spans, 7 traces, 1 call; left out: "
        "1 trace without a retriever, 1 trace whose retrievers hold no documents, "
        "1 trace with masked content, 1 trace without a question, 1 trace of a retriever alone, "
        "1 trace without a root span"
    )


def test_what_an_export_lacks_is_told() -> None:
    """Roots without the spans below them, and spans without what went in and came out."""
    root, *_ = runs()
    assert (
        "export the spans below the roots, too"
        in told_of([root, {**root, "id": "2", "trace_id": "2"}])[1]
    )
    bare = [{**row, "input": None} for row in observations()]
    bare[2] |= {"output": None}
    assert told_of(bare)[1].endswith("1 trace whose export lacks inputs and outputs")


def test_hostile_spans_end_as_counted_reasons() -> None:
    """10 MB, circles of parents, doubled ids, NUL, and values of other types."""
    root, retriever, model = phoenix()
    circle = [{**root, "parent_id": "a1"}, {**retriever, "parent_id": "a0"}]
    large = {**model, "attributes.output.value": "x" * 10_000_000}
    calls, told = told_of([{**span, "context.trace_id": "c"} for span in circle])
    assert (calls, told.partition("left out: ")[2]) == ([], "1 trace without a root span")
    calls, _ = told_of([root, root, retriever, {**retriever, "name": "twin"}, large])
    assert [how(call).retrievers for call in calls] == [("retriever",)]
    nul = {**root, "attributes.input.value": "Is it\0 so?"}
    assert [call.question for call in told_of([nul, retriever, model])[0]] == ["Is it\0 so?"]
    for odd in (7, ["x"], {"a": 1}):
        lines = list(read_calls([{**root, "context.span_id": odd}, *phoenix()]))
        assert [bool(line.error) for line in lines] == [True, False]


def test_a_time_that_no_date_has_is_none() -> None:
    """Its trace is a call without a start, and no other call is lost."""
    root, *others = phoenix()
    for odd in (1e27, 1e300, -1e27, float("inf")):
        calls = read_traces([{**root, "start_time": odd}, *others])
        assert [(call.response, call.started_at) for call in calls] == [(ANSWER, None)], odd


def test_a_span_that_is_nested_too_deeply_is_a_bad_row() -> None:
    """In rows in memory, which no parser of JSON has refused; the others are read."""
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    root = {**phoenix()[0], "attributes.input.value": deep}
    lines = list(read_calls([root, *phoenix()]))
    assert [bool(line.error) for line in lines] == [True, False]


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["[", "{", '{"messages": [', "[" * 3000, "<generator object>", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.sampled_from([phoenix, runs, observations]), st.integers(0, 2), st.data())
def test_no_value_ends_the_reading(make: Any, place: int, data: st.DataObject) -> None:
    """A row with something odd is a bad row, or its trace is left out; the others are read."""
    rows = make()
    field = data.draw(st.sampled_from(sorted(rows[place])))
    rows[place] = {**rows[place], field: data.draw(ODD)}
    sound = [json.loads(json.dumps(row).replace('"t1"', '"t2"')) for row in make()]
    if make is runs:
        sound = [json.loads(json.dumps(r).replace("00000000-0000-0000", "10000000-0000-0000"))
                 for r in make()]  # fmt: skip
    lines = list(
        read_calls([*sound, *rows], tool={phoenix: "phoenix", runs: "langsmith"}.get(make))
    )
    assert QUESTION in [line.value.question for line in lines if line.value is not None]


# --- How one call is made


def test_a_stream_s_answer_is_the_last_model_s_text() -> None:
    """Where the root shows a generator, an empty text or a workflow's event."""
    root, *others = phoenix()
    outputs = [
        "<generator object gen at 0x7f>", '{"response": "", "source_nodes": []}', None,
        "StopEvent(result=AgentOutput(response='...",
    ]  # fmt: skip
    for output in outputs:
        (call,) = read_traces([{**root, "attributes.output.value": output}, *others])
        assert call.response == ANSWER, output


@pytest.mark.parametrize("text", ["len(x)", "print('nine')", "os.path.join(a, b)", "<unknown>"])
def test_code_is_a_question_and_an_answer(text: str) -> None:
    """What looks like an object that Python shows, and is none."""
    root, *others = phoenix()
    asked = {**root, "attributes.input.value": text, "attributes.output.value": text}
    (call,) = read_traces([asked, *others[:1]])
    assert (call.question, call.response) == (text, text)


def test_documents_that_the_model_was_not_shown_are_apart() -> None:
    """In the prompt's order, with a reranker's scores; without any in it, as they were retrieved."""
    root, retriever, model = phoenix()
    listed = retriever["attributes.retrieval.documents"]
    extra = {"document.content": "Never shown, since it was ranked last.", "document.id": "p9"}
    retriever["attributes.retrieval.documents"] = [listed[1], extra, listed[0]]
    ranked = {
        **retriever, "span_kind": "RERANKER", "context.span_id": "a9",
        "attributes.reranker.output_documents": [{**listed[0], "document.score": 0.9}],
    }  # fmt: skip
    (call,) = read_traces([root, retriever, ranked, model])
    assert [(document.id, document.score) for document in call.documents] == [
        ("p0", 0.9),
        ("p1", 0.5),
    ]
    assert [document.id for document in how(call).not_in_prompt] == ["p9"]
    model["attributes.llm.input_messages"] = [{"message.role": "user", "message.content": QUESTION}]
    (call,) = read_traces([root, retriever, model])
    assert ([document.id for document in call.documents], how(call).documents_from) == (
        ["p1", "p9", "p0"], "retriever",
    )  # fmt: skip


def test_only_the_outermost_retriever_counts() -> None:
    """An ensemble lists what its parts found; an outer one without documents is looked into."""
    root, retriever, model = runs()
    inner = {
        **retriever, "id": "i", "parent_run_id": retriever["id"],
        "outputs": {"documents": [{"page_content": "Found by a part alone.", "metadata": {}}]},
    }  # fmt: skip
    (call,) = read_traces([root, retriever, inner, model])
    assert [document.text for document in call.documents] == TEXTS
    retriever["outputs"] = {}
    (call,) = read_traces([root, retriever, inner, {**model, "inputs": {}}])
    assert [document.text for document in call.documents] == ["Found by a part alone."]


def test_earlier_turns_are_history_and_their_documents_earlier() -> None:
    """What a tool returned to an earlier question comes behind this turn's documents."""
    root, retriever, model = phoenix()
    older = "The ticket office closes at noon on Sundays."
    talk = [
        ("system", "Be brief."), ("user", "When does the office close?"), ("tool", older),
        ("assistant", "At noon."), ("user", QUESTION), ("tool", PROMPT),
    ]  # fmt: skip
    model["attributes.llm.input_messages"] = [
        {"message.role": role, "message.content": text} for role, text in talk
    ]
    (call,) = read_traces([root, retriever, model])
    assert [(turn.role, turn.content) for turn in call.history] == talk[1:4]
    assert [document.text for document in call.documents] == [*TEXTS, older]
    assert call.earlier == (2,)
    assert how(call).metadata == {"conversation_id": "s1"}


def test_a_trace_without_its_root_is_read() -> None:
    """The span of a web server around the app may not have been exported."""
    rows = [{**row, "parent_id": row["parent_id"] or "web"} for row in phoenix()]
    (call,) = read_traces(rows)
    assert (call.question, how(call).traces["openinference"]) == (QUESTION, ("t1", "a0"))


# --- Many


def many(count: int) -> Any:
    """Rows of traces, one behind the other."""
    for number in range(count):
        for row in phoenix():
            yield {**row, "context.trace_id": f"t{number}"}


def test_traces_end_where_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted rows stream; a span behind the end of its trace is told with the remedy."""
    monkeypatch.setattr(reading, "_MOST_HELD", 2_000)
    lines = read_calls(many(1_000))
    assert next(lines).value is not None
    tracemalloc.start()
    assert sum(line.value is not None for line in lines) == 999
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    late = list(read_calls([*many(20), next(many(1))]))
    assert [str(line.error).partition("; ")[2] for line in late if line.error] == [
        "sort the rows by the id of the trace"
    ]


def test_the_metadata_of_waiting_spans_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a trace apart from its model, which is told as a bad row."""
    monkeypatch.setattr(reading, "_MOST_HELD", 3_000)
    metadata = {"attributes.metadata": {"note": "x" * 4_000}}
    rows = [{**span, **metadata} for span in phoenix()]
    others = [{**span, "context.trace_id": "other"} for span in rows]
    lines = list(read_calls([*rows[:2], *others, rows[2]]))
    assert [line.error is not None and "sort the rows" in str(line.error) for line in lines] == [
        False, True, False,
    ]  # fmt: skip
