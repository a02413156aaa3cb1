"""A call's default id: told only when it is asked for, and the same however it is asked for."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from rag_eval_integrations.records import RagCall, from_line, to_line


def unread() -> RagCall:
    """A call whose id nobody has looked at yet."""
    call = RagCall("How fast?", ["Four minutes."], "Four.")
    assert call.__dict__["id"] == ""
    return call


WANTED = unread().row_key[:16]


@pytest.mark.parametrize(
    "look",
    [
        lambda call: call.id,
        lambda call: call.model_dump()["id"],
        lambda call: call.model_dump(include={"id"})["id"],
        lambda call: RagCall.model_validate_json(call.model_dump_json()).__dict__["id"],
        lambda call: dict(call)["id"],
        lambda call: from_line(RagCall, to_line(call)).__dict__["id"],
        lambda call: copy.copy(call).__dict__["id"],
        lambda call: copy.deepcopy(call).__dict__["id"],
        lambda call: pickle.loads(pickle.dumps(call)).__dict__["id"],
        lambda call: call.model_copy(update={"response": "Five."}).id,
        lambda call: repr(call).split("id=")[2].split("'")[1],
    ],
)
def test_is_the_same_however_asked(look: Callable[[RagCall], Any]) -> None:
    """Every way to look at a record's fields finds the id, even the first."""
    assert look(unread()) == WANTED


def test_equality_does_not_depend_on_looking() -> None:
    """A call whose id was read equals one whose id was not, and hashes alike."""
    read = unread()
    assert read.id == WANTED

    assert read == unread()
    assert unread() == read
    assert hash(read) == hash(unread())
    assert read != RagCall("How fast?", ["Four minutes."], "Five.")
    assert read != "a string"


def test_a_given_id_stays() -> None:
    """A label of the user's own is kept, and read without a hash."""
    call = RagCall("How fast?", [], None, id="mine")

    assert call.id == "mine"
    assert "row_key" not in call.__dict__
    assert call != RagCall("How fast?", [], None)


def test_cannot_be_set() -> None:
    """A record is frozen, its id included."""
    with pytest.raises((ValueError, AttributeError)):
        unread().id = "other"
    assert unread().id == WANTED
