"""Gold rows scored straight from their lines get the scores of the full way, or go it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_rows import made_rows

from rag_eval_integrations import Trace
from rag_eval_integrations.agreement._lean import line_of
from rag_eval_integrations.agreement._table import Row, row_of
from rag_eval_integrations.cli._gold_rows import Fields, Sides, gold_from
from rag_eval_integrations.cli._lean_gold import gold_row
from rag_eval_integrations.dataset import labelled_from, score_labelled
from rag_eval_integrations.errors import InputError
from rag_eval_integrations.sentences import Punkt

TRACES = [Trace(), Trace("ragbench"), Trace(relevance_baseline=7)]
FIELDS = Fields(None, "doc_id", "system_id")
CONTENTS: list[dict[str, Any]] = [
    json.loads(score_labelled(labelled_from(row, Punkt()), [Trace()]).model_dump_json())
    for row in made_rows(40)
]
KEYS = ["0a", "0b", "1a", "a", "b", "0a.", "0A", "general", "0zz", "b through d", ""]


def lean(content: dict[str, Any], trace: Trace) -> Row | None:
    found = line_of(json.dumps(content).encode())
    return None if found is None else gold_row(found, trace)


def full(content: dict[str, Any], trace: Trace) -> Row:
    return row_of(gold_from(copy.deepcopy(content), trace, FIELDS).evaluation)


@pytest.mark.parametrize("trace", TRACES)
def test_rows_have_the_scores_of_the_full_way(trace: Trace) -> None:
    """With every set of formulas; most rows need nothing but the formulas."""
    found = [lean(content, trace) for content in CONTENTS]

    assert sum(one is not None for one in found) > len(found) / 2
    for content, one in zip(CONTENTS, found, strict=True):
        assert one is None or one == full(content, trace)


lists = st.lists(st.sampled_from(KEYS), max_size=4)
entries = st.fixed_dictionaries(
    {
        "response_sentence_key": st.sampled_from(KEYS),
        "supporting_sentence_keys": lists,
        "fully_supported": st.sampled_from([True, True, False, None]),
    }
)
sides = st.lists(st.sampled_from(KEYS), max_size=4, unique=True)


@settings(max_examples=300, deadline=None)
@given(
    labels=st.fixed_dictionaries(
        {
            "all_relevant_sentence_keys": lists,
            "all_utilized_sentence_keys": lists,
            "sentence_support_information": st.lists(entries, max_size=3),
        },
        optional={
            "unsupported_response_sentence_keys": lists,
            "relevant_probabilities": st.dictionaries(st.sampled_from(KEYS), st.just(0.5)),
            "estimates": st.just({"adherence": [0.5, None]}),
        },
    ),
    documents=sides,
    response=sides,
    changed=st.dictionaries(
        st.sampled_from(["response", "question", "id", "error", "scores", "relevant_ids"]),
        st.sampled_from(["", " ", "x", None, [""], {}]),
        max_size=1,
    ),
    trace=st.sampled_from(TRACES),
)
def test_any_labels_are_scored_as_the_full_way_or_left_to_it(
    labels: dict[str, Any],
    documents: list[str],
    response: list[str],
    changed: dict[str, Any],
    trace: Trace,
) -> None:
    """Repairs, empty cases and what a record refuses: all stay with `reconcile` and the records."""
    texts = {
        "documents": [[key, "One.", 0, 4] for key in documents],
        "response": [[key, "Two.", 0, 4] for key in response],
    }
    content = {**CONTENTS[0], "labels": labels, "sentences": texts, **changed}

    found = lean(content, trace)

    if found is not None:
        assert found == full(content, trace)


plain = st.sampled_from(["0a", "0b", "1a"])


@settings(max_examples=200, deadline=None)
@given(
    relevant=st.lists(plain, unique=True),
    utilized=st.lists(plain, unique=True),
    support=st.lists(st.tuples(st.lists(plain), st.booleans()), min_size=2, max_size=2),
    unsupported=st.none() | st.lists(st.sampled_from("ab"), unique=True),
    trace=st.sampled_from(TRACES),
)
def test_labels_without_a_flaw_never_go_the_full_way(
    relevant: list[str],
    utilized: list[str],
    support: list[tuple[list[str], bool]],
    unsupported: list[str] | None,
    trace: Trace,
) -> None:
    """And have its scores."""
    content = {
        **CONTENTS[0],
        "labels": {
            "all_relevant_sentence_keys": relevant,
            "all_utilized_sentence_keys": utilized,
            "sentence_support_information": [
                {"response_sentence_key": key, "supporting_sentence_keys": keys,
                 "fully_supported": verdict}
                for key, (keys, verdict) in zip("ab", support, strict=True)
            ],
            "unsupported_response_sentence_keys": unsupported,
        },
        "sentences": {
            "documents": [[key, "One.", 0, 4] for key in ("0a", "0b", "1a")],
            "response": [[key, "Two.", 0, 4] for key in "ab"],
        },
    }  # fmt: skip

    assert lean(content, trace) == full(content, trace)


def test_a_rating_in_a_field_of_the_record_is_found(tmp_path: Path) -> None:
    """A dotted name may lead into what is not kept: then every row is read in full."""
    path = tmp_path / "gold.jsonl"
    usage = {"requests": 4}
    path.write_text(json.dumps({**CONTENTS[0], "usage": usage}) + "\n")
    read = Sides()

    read.gold_numbers(path, Fields("usage.requests", "doc_id", "system_id"))

    assert read.joining.rated


def test_a_bad_rating_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the full way, with the field's name."""
    path = tmp_path / "gold.jsonl"
    rows = [{**CONTENTS[0], "metadata": {"rating": rating}} for rating in ("good", 3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = Sides()

    read.gold_numbers(path, Fields("rating", "doc_id", "system_id"))

    assert "rating" in capsys.readouterr().err
    assert read.joining.gold == 1
    with pytest.raises(InputError):
        gold_from(rows[0], Trace(), Fields("rating", "doc_id", "system_id"))
