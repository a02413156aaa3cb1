"""Replies become labels, or a reason; never labels that were not said."""

from __future__ import annotations

import json

import pytest
from fuzz import disturbed, fuzz, mangled, written

from rag_eval_integrations._scoring import score_labelling
from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges._prompt import (
    NullListError,
    parse_labels,
    parse_support,
)
from rag_eval_integrations.judges._reconcile import (
    only_unknown_keys,
    reconcile,
    without_empty_entries,
)
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import Evaluation, JudgeInfo, Labelling, from_line, to_line
from rag_eval_integrations.testing import labels_reply, small_call

REPLY = labels_reply(["0a", "0b"], ["a", "b"])
FAKE = labels_reply(["9z"], ["a"])
CALL = small_call()


@pytest.mark.parametrize(
    "text",
    [
        REPLY,
        json.dumps(json.loads(REPLY), indent=2),
        f"```json\n{REPLY}\n```",
        f"Let me think {{about}} it.\n\n```json\n{REPLY}\n```",
        f"Sure! {REPLY} I hope this helps.",
        f"The set {{a, b}} and {{c}} are covered. {REPLY}",
        f"The document says {FAKE}, which I ignore. {REPLY}",
        REPLY.replace('"', "'").replace("true", "True"),
        REPLY[:-1] + ",}",
        REPLY.replace(": true", ": true // yes\n"),
    ],
    ids=["plain", "indented", "fenced", "braces before", "prose", "sets", "quoted", "python", "comma", "comment"],
)  # fmt: skip
def test_what_models_write_around_json_is_read_through(text: str) -> None:
    """Fences, prose, single quotes, trailing commas."""
    labels = parse_labels(text)

    assert labels.all_relevant_sentence_keys == ("0a", "0b")
    assert [e.response_sentence_key for e in labels.sentence_support_information] == ["a", "b"]


@pytest.mark.parametrize("cut", range(1, len(REPLY), 60))
def test_a_reply_that_was_cut_off_is_never_completed(cut: int) -> None:
    """Keys that are missing because the answer ended would count as not relevant."""
    with pytest.raises(JudgeOutputError) as caught:
        parse_labels(REPLY[:cut])

    assert caught.value.raw == REPLY[:cut]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot do that.",
        "{}",
        '{"all_relevant_sentence_keys": ["0a"]}',
        "{" * 50_000,
    ],
)
def test_what_holds_no_labels_is_refused(text: str) -> None:
    """With the text attached, so that a person can look."""
    with pytest.raises(JudgeOutputError) as caught:
        parse_labels(text)

    assert caught.value.raw == text


def test_the_repair_reply() -> None:
    """Entries only."""
    entries = parse_support('{"sentence_support_information": [{"response_sentence_key": "b"}]}')

    assert [entry.response_sentence_key for entry in entries] == ["b"]
    with pytest.raises(JudgeOutputError):
        parse_support('{"labels": []}')


@pytest.mark.parametrize(
    "name",
    ["all_relevant_sentence_keys", "sentence_support_information", "all_utilized_sentence_keys"],
)
def test_null_is_not_an_empty_list(name: str) -> None:
    """Of a reply; in recorded labels it stands for no keys."""
    for content in ({**json.loads(REPLY), name: None}, json.loads(REPLY)):
        if content[name] is not None:
            del content[name]
        with pytest.raises(NullListError, match=f"`{name}` is null or missing"):
            parse_labels(json.dumps(content))


def check_reply(text: str) -> None:
    """Labels that can be scored and written, or the reason why there are none."""
    try:
        labels = parse_labels(text)
    except JudgeOutputError:
        return
    checked = reconcile(without_empty_entries(labels, CALL), CALL)
    assert only_unknown_keys(checked, checked) is None
    labelling = Labelling(labels=checked, judge=JudgeInfo(name="fuzz"))
    evaluation = score_labelling(CALL, labelling, [Trace()])
    assert evaluation.error is None
    assert from_line(Evaluation, to_line(evaluation)).labels == checked


def test_fuzz_replies() -> None:
    """Any reply becomes labels or a reason."""
    content = json.loads(REPLY)
    fuzz("labels", lambda rng: disturbed(rng, written(mangled(rng, content))), check_reply)


@pytest.mark.parametrize("own", [[], "none", {"a": "Paris"}, {"a": ["Paris"]}])
def test_contradictions_of_a_models_own_are_ignored(own: object) -> None:
    """They are the embedded judge's; a model that adds such a field has still given labels."""
    reply = {
        "all_relevant_sentence_keys": ["0a"],
        "all_utilized_sentence_keys": ["0a"],
        "sentence_support_information": [],
        "contradictions": own,
    }

    assert parse_labels(json.dumps(reply)).contradictions == {}
