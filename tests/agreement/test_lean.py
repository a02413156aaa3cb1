"""Lines of EVALS read without their records give what the records give, or are left to them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_rows import made_rows

from rag_eval_integrations import Evaluation, RagEvaluator, Trace
from rag_eval_integrations.agreement._lean import Line, line_of, predicted_row
from rag_eval_integrations.agreement._table import Row, row_of
from rag_eval_integrations.dataset import call_from, labelled_from, score_labelled
from rag_eval_integrations.errors import InputError, SchemaError
from rag_eval_integrations.records._json import from_line, from_object
from rag_eval_integrations.sentences import Punkt

ROWS = made_rows(12)


def _lines() -> list[str]:
    """A judge's rows, with probabilities and estimates, and rows of recorded labels."""
    judge = RagEvaluator("embedded", [Trace()])
    made = [judge.evaluate_sync(call_from(row)) for row in ROWS[:6]]
    made += [score_labelled(labelled_from(row, Punkt()), [Trace("ragbench")]) for row in ROWS[6:]]
    return [one.model_dump_json() for one in made]


LINES = _lines()

TRUSTED = {
    "reason", "evidence", "threshold", "passed", "n", "mass", "std_error", "distribution",
    "warnings", "reference", "history", "metadata", "capture", "relevant_ids", "document_ids",
    "error", "estimates", "relevance_explanation", "overall_supported", "explanation",
    "overall_supported_explanation", "unsupported_response_sentence_keys", "unknown_keys",
    "special_keys", "missing_keys", "duplicate_keys", "overall_conflict", "contradictions",
    "unscored",
}  # fmt: skip
"""Fields in which a line is trusted: no figure rests on them."""


def lean(line: str) -> Row | None:
    found = line_of(line.encode())
    return None if found is None else predicted_row(found)


@pytest.mark.parametrize("line", LINES)
def test_a_line_as_written_is_read_as_its_record(line: str) -> None:
    """None of them needs the record, so that the fast way is the one that is taken."""
    assert lean(line) == row_of(from_line(Evaluation, line))


def test_a_line_has_the_fields_of_the_record() -> None:
    """A field that is added to the record and not here would send every line the long way."""
    assert Line.__annotations__.keys() == {*Evaluation.model_fields, "schema", "by", "warnings"}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _paths(one, (*path, name))
    elif isinstance(value, list):
        for at, one in enumerate(value[:3]):
            yield from _paths(one, (*path, at))


PLACES = [(number, path) for number in (0, 7) for path in _paths(json.loads(LINES[number]))]
ODD = [
    None, True, 0, 1, -1, 1.5, 0.25, 10**30, "", "0a", "x", "scored", "1", [], ["0a", "0a"], {},
    {"x": 1}, [["a", "b"]], "\ud800", 2**63,
]  # fmt: skip
GONE = object()


@settings(max_examples=400, deadline=None)
@given(place=st.sampled_from(PLACES), odd=st.sampled_from([*ODD, GONE]))
def test_a_changed_line_is_read_as_its_record_or_left_to_it(
    place: tuple[int, tuple[Any, ...]], odd: object
) -> None:
    """Whatever stands in any field; only in trusted ones may the record refuse what is read."""
    number, path = place
    content = json.loads(LINES[number])
    inside = content
    for name in path[:-1]:
        inside = inside[name]
    if odd is GONE:
        del inside[path[-1]]
    else:
        inside[path[-1]] = copy.deepcopy(odd)

    found = lean(json.dumps(content))

    if found is None:
        return
    try:
        expected = row_of(from_object(Evaluation, content))
    except InputError:
        assert TRUSTED & set(path), path
        return
    assert found == expected


@pytest.mark.parametrize(
    "line",
    [
        LINES[0].replace('"schema":2', '"schema":1'),
        LINES[0].replace('"schema":2,', ""),
        LINES[0].replace('"schema":2', '"schema":2,"rating":3'),
        LINES[0].replace('"value":', '"value":NaN,"m":', 1),
        LINES[0].replace('"value":', '"value":-Infinity,"m":', 1),
        LINES[0][:-1],
        "\ufeff" + LINES[0],
        "[1]",
        "NaN",
        "[" * 100_000,
    ],
)
def test_other_lines_are_left_to_the_record(line: str) -> None:
    """Another schema, an unknown field, a number that is none, what is not JSON."""
    assert lean(line) is None


def test_schemas_are_still_refused_by_the_record() -> None:
    """A line of another version is not read by the rules of this one."""
    with pytest.raises(SchemaError):
        from_line(Evaluation, LINES[0].replace('"schema":2', '"schema":1'))
