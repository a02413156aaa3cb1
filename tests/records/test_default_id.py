"""A call's default id: the same however it is asked for, and not among the fields that were set."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.records import Document, RagCall, Turn, from_line, to_line


def unlabelled() -> RagCall:
    """A call without an id of the user's own."""
    return RagCall("How fast?", ["Four minutes."], "Four.")


WANTED = unlabelled().row_key[:16]


def unset(call: RagCall) -> dict[str, Any]:
    """The fields that were given; the default id is not among them."""
    return {name: getattr(call, name) for name in call.model_fields_set}


@pytest.mark.parametrize(
    "look",
    [
        lambda call: call.id,
        lambda call: RagCall("How fast?", ["Four minutes."], "Four.", id=None).id,
        lambda call: RagCall("How fast?", ["Four minutes."], "Four.", id="").id,
        lambda call: call.model_dump()["id"],
        lambda call: call.model_dump(include={"id"})["id"],
        lambda call: RagCall.model_validate_json(call.model_dump_json()).__dict__["id"],
        lambda call: RagCall.model_construct(**unset(call)).id,
        lambda call: dict(call)["id"],
        lambda call: from_line(RagCall, to_line(call)).__dict__["id"],
        lambda call: copy.copy(call).__dict__["id"],
        lambda call: copy.deepcopy(call).__dict__["id"],
        lambda call: pickle.loads(pickle.dumps(call)).__dict__["id"],
        lambda call: call.model_copy(update={"response": "Five."}).id,
        lambda call: repr(call).split(", id=")[1].split("'")[1],
    ],
)
def test_is_the_same_however_asked(look: Callable[[RagCall], Any]) -> None:
    """Every way to look at a record's fields finds the id, even the first."""
    assert look(unlabelled()) == WANTED


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', "\\", "a\x00\x1f\x7f\n", "\u2028é\U0001f600", "[null]", ""]
)
CALLS = st.builds(
    RagCall,
    question=TEXTS,
    documents=st.lists(
        st.builds(Document, text=TEXTS, header=st.none() | TEXTS, id=st.none() | TEXTS), max_size=3
    ),
    response=st.none() | TEXTS,
    reference=st.none() | TEXTS,
    history=st.lists(st.builds(Turn, role=st.just("user"), content=TEXTS), max_size=2),
)


@given(CALLS)
def test_the_key_is_the_hash_of_the_content_as_json(call: RagCall) -> None:
    """Of the bytes that `json.dumps` writes, in ASCII and without spaces: files hold such keys."""
    content = [
        call.question,
        [[each.header, each.text] if each.header else each.text for each in call.documents],
        call.response,
        call.reference,
        [[turn.role, turn.content] for turn in call.history],
    ]
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))

    assert call.row_key == hashlib.sha256(text.encode("ascii")).hexdigest()
    assert call.id == call.row_key[:16]


def test_is_not_a_field_that_was_set() -> None:
    """So `exclude_unset` leaves it out, and a call read back gets it again."""
    assert unlabelled().model_fields_set == {"question", "documents", "response"}
    assert "id" not in unlabelled().model_dump(exclude_unset=True)


def test_calls_without_a_label_are_equal_by_content() -> None:
    """Whether the key was read or not; another response is another call."""
    read = unlabelled()
    assert read.id == WANTED

    assert read == unlabelled()
    assert hash(read) == hash(unlabelled())
    assert read != RagCall("How fast?", ["Four minutes."], "Five.")
    assert read != "a string"


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("label", ["", "mine"])
def test_a_changed_copy_has_the_key_of_its_own_content(label: str, deep: bool) -> None:
    """The id is the user's label and stays; the row's identity is never that of the original."""
    call = RagCall("How fast?", ["Four minutes."], "Four.", id=label)
    assert call.row_key.startswith(WANTED)

    changed = call.model_copy(update={"response": "Five."}, deep=deep)

    assert changed.id == call.id
    assert changed.row_key == RagCall("How fast?", ["Four minutes."], "Five.").row_key
    assert changed.row_key != call.row_key


def test_a_given_id_stays() -> None:
    """A label of the user's own is kept, and read without a hash."""
    call = RagCall("How fast?", [], None, id="mine")

    assert call.id == "mine"
    assert from_line(RagCall, '{"question":"q","documents":[],"response":"r","id":7}').id == "7"
    assert "row_key" not in call.__dict__
    assert call != RagCall("How fast?", [], None)


def test_cannot_be_set() -> None:
    """A record is frozen, its id included."""
    with pytest.raises((ValueError, AttributeError)):
        unlabelled().id = "other"
    assert unlabelled().id == WANTED
