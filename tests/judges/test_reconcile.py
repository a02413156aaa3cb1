"""The reconciler: every kind of oddity that RAGBench's labels hold."""

from __future__ import annotations

import pytest
from by_hand import keyed, labels_of
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.judges import reconcile
from rag_eval_integrations.records import Labels

CALL = keyed([["One.", "Two.", "Three."], ["Four."]], ["A.", "B.", "C."])
SUPPORT: dict[str, tuple[list[str], bool | None]] = {
    "a": (["0a"], True),
    "b": (["0b"], True),
    "c": (["1a"], True),
}


def relevant(*keys: str) -> Labels:
    return reconcile(labels_of(list(keys), [], SUPPORT), CALL)


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        (["0b."], ("0b",)),
        (["[0b]"], ("0b",)),
        (["0B"], ("0b",)),
        (["0a-c"], ("0a", "0b", "0c")),
        (["0a", "0a", "0a."], ("0a",)),
        (["0a, 1a"], ("0a", "1a")),
        (["0a-0c"], ("0a", "0b", "0c")),
        (["0a through 0c"], ("0a", "0b", "0c")),
    ],
)
def test_keys_are_cleaned(written: list[str], keys: tuple[str, ...]) -> None:
    """Dots, spaces, brackets, case, repeats, two in a string, ranges."""
    labels = relevant(*written)

    assert labels.all_relevant_sentence_keys == keys
    assert labels.unknown_keys == ()


@pytest.mark.parametrize("key", ["0ae", "2a", "a", "0a, 9z", "0c-0a", "0a-1a", "0a" * 500])
def test_keys_of_sentences_that_do_not_exist_are_dropped_and_recorded(key: str) -> None:
    """An invented key neither counts nor vanishes."""
    labels = relevant("0a", key)

    assert labels.all_relevant_sentence_keys == ("0a",)
    assert labels.unknown_keys == (key,)


@pytest.mark.parametrize(
    "word",
    [
        "general",
        "supported_without_sentence",
        "well_known_fact",
    ],
)
def test_special_words_are_recorded_and_count_as_support(word: str) -> None:
    """RAGBench's words for "no sentence needed" fill a null verdict with true."""
    labels = reconcile(labels_of([], [], {**SUPPORT, "c": ([word], None)}), CALL)

    assert labels.special_keys == (word,)
    assert labels.support("c") == "full"
    entry = labels.entry("c")
    assert entry is not None
    assert entry.supporting_sentence_keys == ()


def test_a_null_verdict_follows_the_recorded_unsupported_keys() -> None:
    """Where the list is recorded, it decides, whatever keys the sentence has."""
    labels = reconcile(
        labels_of(
            [],
            [],
            {"a": ([], None), "b": (["0b"], None), "c": (["0b"], False)},
            unsupported_response_sentence_keys=["b."],
        ),
        CALL,
    )

    assert [labels.support(key) for key in "abc"] == ["full", "partial", "partial"]
    assert labels.unsupported_response_sentence_keys == ("b",)


def test_a_null_verdict_without_the_list_needs_supporting_keys() -> None:
    """Supported iff it has supporting keys; a key that does not exist is none."""
    labels = reconcile(
        labels_of([], [], {"a": (["0a"], None), "b": ([], None), "c": (["9z"], None)}), CALL
    )

    assert [labels.support(key) for key in "abc"] == ["full", "none", "none"]


def test_sentences_without_an_entry_are_missing() -> None:
    """They are unlabelled, neither supported nor not."""
    labels = reconcile(labels_of([], [], {"a": (["0a"], True)}), CALL)

    assert labels.missing_keys == ("b", "c")
    assert labels.support("b") == "unlabelled"


def test_one_entry_for_a_range_labels_each_sentence() -> None:
    """RAGBench's `i through v` stands for every sentence between."""
    labels = reconcile(labels_of([], [], {"a through c": (["0a"], True)}), CALL)

    assert [labels.support(key) for key in "abc"] == ["full"] * 3


def test_two_entries_of_one_sentence_become_the_stricter_one() -> None:
    """A sentence that is unsupported in one entry is unsupported."""
    labels = reconcile(labels_of([], [], {**SUPPORT, "a.": (["0b"], False)}), CALL)

    entry = labels.entry("a")
    assert entry is not None
    assert entry.supporting_sentence_keys == ("0a", "0b")
    assert labels.support("a") == "partial"
    assert labels.duplicate_keys == ("a",)


def test_an_entry_for_no_sentence_is_dropped_and_recorded() -> None:
    """Entries of response sentences that do not exist do not count."""
    labels = reconcile(labels_of([], [], {**SUPPORT, "z": ([], False)}), CALL)

    assert len(labels.sentence_support_information) == 3
    assert labels.unknown_keys == ("z",)


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
