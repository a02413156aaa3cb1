"""The conversation of a call: in metadata that are given or captured, and of the frameworks."""

from __future__ import annotations

from rag_eval_integrations.records._conversation import conversation_in, with_conversation


def test_the_first_field_that_holds_an_id() -> None:
    """Texts and numbers; given metadata before captured ones within a field."""
    assert conversation_in([{}, {"session_id": 7}]) == "7"
    assert conversation_in([{"session_id": "s"}, {"thread_id": "t"}]) == "t"
    assert conversation_in([{"thread_id": "a"}, {"thread_id": "b"}]) == "a"
    assert (
        conversation_in([{"thread_id": "", "conversation_id": None, "session_id": ["x"]}]) is None
    )
    assert conversation_in([{"user": 1, "thread_id": "t"}], ["user"]) == "1"


def test_a_framework_fills_what_the_app_leaves_open() -> None:
    """Nothing that the app says is changed."""
    given = {"user": 1}
    assert with_conversation(given, "f") == {"user": 1, "conversation_id": "f"}
    assert given == {"user": 1}
    for named in ({"thread_id": "t"}, {"conversation_id": 3}, {"session_id": "s"}):
        assert with_conversation(named, "f") == named
    assert with_conversation(given, None) == given
