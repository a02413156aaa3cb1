"""After 1,000 bad rows, those that are seen to be bad at a glance are counted, and none is lost."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_eval_integrations.dataset import Line, _line, labelled_from, read_calls, read_lines
from rag_eval_integrations.dataset._input import EVALUATION_NEEDS
from rag_eval_integrations.dataset._line import first_rows
from rag_eval_integrations.dataset.calls import read_rows
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Evaluation, from_object
from rag_eval_integrations.sentences import Punkt

ROW = '{"question": "Q", "documents": ["d"], "response": "r"}'
OTHER = '{"query": "Q", "contexts": ["d"], "answer": "r"}'
ASKED = '{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "r"}]}'
SPLITTER = Punkt()


def read(source: Any, **options: Any) -> tuple[list[tuple[int, str]], int]:
    """The rows that are calls, with their places; and how many rows there are."""
    lines = list(read_calls(source, tell=lambda _: None, **options))
    good = [(line.number, line.value.row_key) for line in lines if line.value]
    return good, sum(line.count for line in lines)


def alike(reading: Callable[[], object]) -> None:
    """Reading gives the same whether bad rows are told or counted from the beginning."""
    told = reading()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_line, "TOLD", 0)
        assert reading() == told


PIECES = (
    ROW, OTHER, ASKED, "a", "1", "[]", "[[{}]]", "{}", '{"a": 1}', '{"query": 1}', '{"":}', "{a}", '""',
    '"a', "[", "{", "]", "}", ",", ":", "\\", " ", "\n", "é", "\udc80", "null", "[[[[[]]]]]",
    '{"inputs": {"question": "Q"}, "outputs": {"answer": "r", "documents": ["d"]}}',
    '{"Query": "Q", "Contexts": [], "ANSWER": ""}', '{"a": NaN}', '{"question": "Q",\n',
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=20), st.sampled_from([1, 40, 1 << 18]))
@example([ROW, ",", "{", ROW, ",", "a", '"a', ",", ROW], 1 << 18)
@example(["a", "[", "]", ",", ROW, '"', ROW], 1 << 18)
def test_an_array_has_the_same_calls(pieces: list[str], block: int) -> None:
    """And as many rows, at the same places, however it is damaged."""
    content = ("[" + "".join(pieces)).encode("utf-8", "surrogateescape")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag_eval_integrations.dataset._json_array._BLOCK", block)
        alike(lambda: read(io.BytesIO(content)))


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_objects_have_the_same_calls(pieces: list[str]) -> None:
    """One behind the other, over several lines each."""
    content = ('{\n"a": 1}' + "".join(pieces)).encode("utf-8", "surrogateescape")
    alike(lambda: read(io.BytesIO(content)))


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_lines_have_the_same_calls(pieces: list[str]) -> None:
    """Whichever rows are bad, and whatever the first good one calls its fields."""
    content = "\n".join(pieces).encode("utf-8", "surrogateescape")
    alike(lambda: read(io.BytesIO(content)))


CELLS = (
    "question",
    "query",
    "answer",
    "contexts",
    "documents",
    "response",
    "a",
    "",
    "[]",
    '"',
    "[",
    "b;c",
)


@given(
    st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4), min_size=1, max_size=12),
    st.sampled_from(["query,contexts,answer", "question,documents,response,a", "question,answer"]),
)
def test_a_table_has_the_same_calls(rows: list[list[str]], head: str) -> None:
    """Rows with other numbers of cells, and tables without a column that is needed."""
    content = "\n".join([head, *(",".join(row) for row in rows)]).encode()
    alike(lambda: read(io.BytesIO(content)))


def test_other_rows_are_the_same(tmp_path: Path) -> None:
    """Those of EVALS and of labelled files, of which a field is looked for at a glance."""
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "\n".join(
            [ROW, '{"a": 1}', "a", '{"scores": {}, "judge": 1}', ROW[:-1] + ', "labels": {}}']
        )
    )

    def labelled() -> object:
        needed = (EVALUATION_NEEDS, ("question", "documents", "response"))
        lines = list(read_rows(path, lambda row: labelled_from(row, SPLITTER), needed=needed))
        return [line.number for line in lines if line.value], sum(line.count for line in lines)

    def evaluations() -> object:
        lines = read_lines(path, lambda row: from_object(Evaluation, row), needed=EVALUATION_NEEDS)
        return sum(line.count for line in lines)

    alike(labelled)
    alike(evaluations)
    assert {"question", "scores", "judge"} <= EVALUATION_NEEDS


def test_the_first_bad_rows_are_told_in_full() -> None:
    """Each with its place and reason; those behind them as one, up to the next call."""
    content = "no\n" * 1_500 + ROW + "\n" + "{}\n" * 20_500
    lines = list(read_calls(io.StringIO(content)))

    assert [line.count for line in lines[:1_000]] == [1] * 1_000
    assert str(lines[999].error) == "line 1000: not JSON: Expecting value at column 1"
    assert [(line.number, line.count, str(line.error)) for line in lines[1_000:]] == [
        (1_001, 500, "line 1001: not a JSON object; 499 bad rows follow"),
        (1_501, 1, "None"),
        (1_502, 10_000, "line 1502: not a JSON object; 9,999 bad rows follow"),
        (11_502, 10_000, "line 11502: not a JSON object; 9,999 bad rows follow"),
        (21_502, 500, "line 21502: not a JSON object; 499 bad rows follow"),
    ]


def test_a_limit_counts_rows() -> None:
    """A line that stands for several counts as all of them."""
    lines = [Line(1, "a"), Line(2, None, InputError("bad"), 5), Line(7, "b"), Line(8, "c")]
    limits = {None: 4, 0: 0, 1: 1, 2: 2, 6: 2, 7: 3, 8: 4}
    assert {limit: len(list(first_rows(lines, limit))) for limit in limits} == limits
