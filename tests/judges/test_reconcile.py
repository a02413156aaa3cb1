"""Replies become labels or a reason; the reconciler: every oddity that RAGBench's labels hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from by_hand import keyed, labels_of
from fuzz import disturbed, fuzz, mangled, written
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations._scoring import score_labelling
from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges._prompt import parse_labels
from rag_eval_integrations.judges._reconcile import (
    only_unknown_keys,
    reconcile,
    without_empty_entries,
)
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import (
    Evaluation,
    JudgeInfo,
    Labelling,
    Labels,
    from_line,
    to_line,
)
from rag_eval_integrations.testing import labels_reply, small_call

CALL = keyed([["One.", "Two.", "Three."], ["Four."]], ["A.", "B.", "C."])
SUPPORT: dict[str, Any] = {"a": (["0a"], True), "b": (["0b"], True), "c": (["1a"], True)}


def relevant(*keys: str) -> Labels:
    return reconcile(labels_of(list(keys), [], SUPPORT), CALL)


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        *(([one], ("0b",)) for one in ("0b.", "[0b]", "0B")),
        *(([several], ("0a", "0b", "0c")) for several in ("0a-c", "0a-0c", "0a through 0c")),
        (["0a", "0a", "0a."], ("0a",)),
        (["0a, 1a"], ("0a", "1a")),
    ],
)
def test_keys_are_cleaned(written: list[str], keys: tuple[str, ...]) -> None:
    """Dots, spaces, brackets, case, repeats, two in a string, ranges."""
    labels = relevant(*written)

    assert (labels.all_relevant_sentence_keys, labels.unknown_keys) == (keys, ())


@pytest.mark.parametrize("key", ["0ae", "2a", "a", "0a, 9z", "0c-0a", "0a-1a", "0a" * 500])
def test_keys_of_sentences_that_do_not_exist_are_dropped_and_recorded(key: str) -> None:
    """An invented key neither counts nor vanishes."""
    labels = relevant("0a", key)

    assert (labels.all_relevant_sentence_keys, labels.unknown_keys) == (("0a",), (key,))


WORDS = {"a": "general", "b": "supported_without_sentence", "c": "well_known_fact"}


@pytest.mark.parametrize(
    ("entries", "unsupported", "support"),
    [
        # a null verdict: supported iff there are supporting keys that exist
        ({"a": (["0a"], None), "b": ([], None), "c": (["9z"], None)}, None, "full none none"),
        # where the list of unsupported keys is recorded, it decides, whatever keys there are
        ({"a": ([], None), "b": (["0b"], None), "c": (["0b"], False)}, ["b."], "full partial partial"),
        # RAGBench's words for "no sentence needed" count as support
        ({key: ([word], None) for key, word in WORDS.items()}, None, "full full full"),
        # its `i through v` stands for every sentence between
        ({"a through c": (["0a"], True)}, None, "full full full"),
        # of two entries the stricter one
        ({**SUPPORT, "a.": (["0b"], False)}, None, "partial full full"),
        # no entry is neither supported nor not
        ({"a": (["0a"], True)}, None, "full unlabelled unlabelled"),
    ],
)  # fmt: skip
def test_what_entries_say_of_their_sentences(
    entries: dict[str, Any], unsupported: list[str] | None, support: str
) -> None:
    """By verdicts, by keys where there is no verdict, and never made up."""
    written = labels_of([], [], entries, unsupported_response_sentence_keys=unsupported)

    assert " ".join(reconcile(written, CALL).support(key) for key in "abc") == support


def test_what_is_odd_about_entries_is_recorded() -> None:
    """A word instead of a key, a second entry, none, one of a sentence that does not exist."""
    entries: dict[str, Any] = {"a": (["0a"], True), "c": (["general"], None)}
    entries |= {"a.": (["0b"], False), "z": ([], False)}

    labels = reconcile(labels_of([], [], entries, unsupported_response_sentence_keys=["b."]), CALL)

    supporting = [e.supporting_sentence_keys for e in labels.sentence_support_information]
    assert supporting == [("0a", "0b"), ()]
    assert labels.unsupported_response_sentence_keys == ("b",)
    assert (labels.special_keys, labels.duplicate_keys) == (("general",), ("a",))
    assert (labels.missing_keys, labels.unknown_keys) == (("b",), ("z",))


@pytest.mark.parametrize(
    ("overall", "verdict", "conflict"),
    [(True, True, False), (True, False, True), (False, True, True), (None, False, False)],
)
def test_a_contradicting_overall_verdict_is_recorded(
    overall: bool | None, verdict: bool, conflict: bool
) -> None:
    """`overall_supported` against the entries: recorded, never used."""
    written = labels_of([], [], {**SUPPORT, "c": ([], verdict)}, overall_supported=overall)

    assert reconcile(written, CALL).overall_conflict is conflict


junk = st.lists(st.text(max_size=12) | st.sampled_from(["0a", "0b.", "1a", "general", "0a-0c"]))


@given(first=junk, second=junk, entries=st.dictionaries(st.text(max_size=4), junk, max_size=4))
def test_reconciled_labels_hold_only_keys_that_exist(
    first: list[str], second: list[str], entries: dict[str, list[str]]
) -> None:
    """Any labels come out consistent with the sentences, and a second time changes nothing."""
    written = labels_of(first, second, {key: (keys, None) for key, keys in entries.items()})
    documents = {sentence.key for sentence in CALL.documents}
    responses = {sentence.key for sentence in CALL.response}

    labels = reconcile(written, CALL)

    assert set(labels.all_relevant_sentence_keys) <= documents
    assert set(labels.all_utilized_sentence_keys) <= documents
    for entry in labels.sentence_support_information:
        assert entry.response_sentence_key in responses
        assert set(entry.supporting_sentence_keys) <= documents
        assert entry.fully_supported is not None
    assert len(set(labels.all_relevant_sentence_keys)) == len(labels.all_relevant_sentence_keys)
    assert reconcile(labels, CALL) == labels


def test_probabilities_of_no_sentence_are_dropped() -> None:
    """A probability map keeps only keys that exist."""
    written = labels_of([], [], SUPPORT, relevant_probabilities={"0a": 0.5, "7q": 0.9})

    assert reconcile(written, CALL).relevant_probabilities == {"0a": 0.5}


# --- Replies become labels, or a reason; never labels that were not said

REPLY = labels_reply(["0a", "0b"], ["a", "b"])
FAKE = labels_reply(["9z"], ["a"])
SMALL = small_call()


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
)  # fmt: skip
def test_what_models_write_around_json_is_read_through(text: str) -> None:
    """Fences, prose, single quotes, trailing commas."""
    labels = parse_labels(text)

    assert labels.all_relevant_sentence_keys == ("0a", "0b")
    assert [e.response_sentence_key for e in labels.sentence_support_information] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [*(REPLY[:cut] for cut in range(1, len(REPLY), 60)), "", "I cannot do that.", "{}",
     '{"all_relevant_sentence_keys": ["0a"]}', "{" * 50_000],
)  # fmt: skip
def test_what_was_cut_off_or_holds_no_labels_is_refused(text: str) -> None:
    """With the text for a person to look at; keys missing at its end would count as not relevant."""
    with pytest.raises(JudgeOutputError) as caught:
        parse_labels(text)

    assert caught.value.raw == text


def check_reply(text: str) -> None:
    """Labels that can be scored and written, or the reason why there are none."""
    try:
        labels = parse_labels(text)
    except JudgeOutputError:
        return
    checked = reconcile(without_empty_entries(labels, SMALL), SMALL)
    assert only_unknown_keys(checked, checked) is None
    labelling = Labelling(labels=checked, judge=JudgeInfo(name="fuzz"))
    evaluation = score_labelling(SMALL, labelling, [Trace()])
    assert evaluation.error is None
    assert from_line(Evaluation, to_line(evaluation)).labels == checked


def test_fuzz_replies() -> None:
    """Any reply becomes labels or a reason."""
    content = json.loads(REPLY)
    fuzz("labels", lambda rng: disturbed(rng, written(mangled(rng, content))), check_reply)


@pytest.mark.parametrize("own", [[], "none", {"a": "Paris"}, {"a": ["Paris"]}])
def test_contradictions_of_a_models_own_are_ignored(own: object) -> None:
    """They are the embedded judge's; a model that adds such a field has still given labels."""
    reply = {**json.loads(REPLY), "contradictions": own}

    assert parse_labels(json.dumps(reply)).contradictions == {}
