"""The parts of judges that read which need no model: labels, batches, windows, and who imports what."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rag_eval_integrations
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import _local_model
from rag_eval_integrations.judges._local_model import (
    LocalModel,
    OutputReading,
    Purpose,
    input_length,
    reading_of,
)
from rag_eval_integrations.judges._reader import pieces_of, windows

tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("numpy")

# --- What the outputs mean


def read_as(
    labels: Iterable[str], purpose: Purpose = "model", problem: str | None = None
) -> OutputReading:
    """Tell what a classifier's outputs mean."""
    names = dict(enumerate(labels))
    config = {"id2label": names, "problem_type": problem}
    return reading_of(config, None, len(names), purpose, "the-model")


def test_one_output_without_a_name_is_relevance_as_cross_encoders_have_it() -> None:
    """Two without names are not, and one that means the opposite is turned round."""
    one = read_as(["LABEL_0"], "relevance")
    opposite = read_as(["irrelevant"], "relevance")

    assert one.probability([2.0]) == pytest.approx(1 / (1 + math.exp(-2)))
    assert opposite.probability([2.0]) == pytest.approx(1 / (1 + math.exp(2)))
    with pytest.raises(ConfigurationError, match=r"`relevance`.*cannot be told"):
        read_as(["LABEL_0", "LABEL_1"], "relevance")


def test_the_length_is_the_shortest_that_a_file_says() -> None:
    """A tokenizer without a limit says 1e30; RoBERTa's positions begin behind its padding."""
    bert: dict[str, object] = {"max_position_embeddings": 512}
    roberta = {"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}
    long = {"max_position_embeddings": 8192}
    deberta: dict[str, object] = {**bert, "position_biased_input": False}
    for config, wanted, limits, length in (
        ({}, None, (), 512), (bert, None, (1e30, None), 512), (roberta, None, (), 512),
        (bert, None, (None, 256), 256), (long, None, (), 4096), (long, 8192, (), 8192),
        (deberta, None, (), 512), (deberta, 2048, (), 2048),
    ):  # fmt: skip
        assert input_length(config, wanted, limits, None) == length
    with pytest.raises(ConfigurationError, match="use tokens from 32 to 512"):
        input_length(bert, 513, (), None)


# --- Batches and windows


@given(
    st.lists(st.integers(1, 20), min_size=1).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.permutations(range(len(sizes))))
    ),
    st.integers(21, 60),
    st.integers(1, 5),
)
def test_windows_fit_and_nothing_is_lost_silently(
    given_: tuple[list[int], list[int]], budget: int, most: int
) -> None:
    """The best matches are in the first window."""
    sizes, order = given_

    found = windows(order, sizes, budget, most)

    taken = [number for window in found for number in window]
    assert len(found) <= most
    assert taken == order[: len(taken)]
    assert taken == order or len(found) == most
    for window in found:
        assert sum(sizes[number] + 1 for number in window) <= budget + 1


SPECIAL = ("<s>", "</s>", "[SEP]")


class Words(LocalModel):
    """Reads nothing: each word is a token, and P(relevant) is .5."""

    def __init__(self, batch_size: int = 1) -> None:
        words = {"[UNK]": 0, **{word: n for n, word in enumerate(WORDS, 1)}}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
        tokenizer.add_special_tokens(list(SPECIAL))
        self.batches: list[tuple[int, int]] = []
        options = {"labels": None, "max_length": None, "pooling": None, "batch_size": batch_size}
        self.name, self._inputs, self._output = "words", ("attention_mask",), "logits"
        self._config = {"id2label": {0: "relevant"}, "max_position_embeddings": 600}
        super().__init__(tokenizer, "relevance", options)

    def find(self, name: str) -> None:
        return None

    def run(self, inputs: Mapping[str, Any]) -> Any:
        [mask] = inputs.values()
        self.batches.append(mask.shape)
        return (mask[:, :1] * 0).astype("float32")


WORDS = ["one", "two", "three", "four"]


@given(st.lists(st.integers(1, 500), max_size=30), st.integers(1, 20), st.integers(1, 2000))
def test_batches_hold_every_input_within_both_limits(
    lengths: list[int], size: int, tokens: int
) -> None:
    """Only an input that is too long alone exceeds the tokens."""
    backend = Words(size)
    del backend.batches[:]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_local_model, "BATCH_TOKENS", tokens)
        pairs = [" ".join(["one"] * length) for length in lengths]
        assert backend.probabilities(pairs, Event()) == [0.5] * len(lengths)

    assert sum(count for count, _ in backend.batches) == len(lengths)
    for count, longest in backend.batches:
        assert count <= size
        assert count == 1 or count * longest <= tokens


@given(st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=40), st.integers(1, 9))
def test_pieces_of_a_long_text_hold_all_of_it(words: list[str], most: int) -> None:
    """In order, each within the limit."""
    pieces = pieces_of(BACKEND, ["", " ".join(words), "one"], most)

    assert all(piece.size <= most for piece in pieces)
    inner = [piece.text for piece in pieces if piece.sentence == 1]
    assert " ".join(inner).split() == words
    assert pieces[-1].sentence == 2


@given(
    st.lists(st.sampled_from(["<s>", "</s>", "[SEP]", "<", "s>", "[", "SEP]", "word"])).map("".join)
)
def test_no_special_token_is_left_in_a_text(text: str) -> None:
    """However they are nested; a text without any is unchanged."""
    cleaned = BACKEND.without_special_tokens(text)

    assert not any(token in cleaned for token in SPECIAL)
    assert cleaned == text or any(token in text for token in SPECIAL)
    assert cleaned.replace(" ", "") == text.replace(" ", "")


BACKEND = Words()


# --- Who imports what


def test_a_heavy_package_is_imported_in_one_place() -> None:
    """And inside of a function there."""
    source = Path(rag_eval_integrations.__file__).parent
    heavy = {"onnxruntime", "tokenizers", "torch", "transformers"}
    pattern = rf"^( *)(?:import|from) ({'|'.join(heavy)})\b"
    found = {
        (package, path.name, indented != "")
        for path in source.rglob("*.py")
        for indented, package in re.findall(pattern, path.read_text(encoding="utf-8"), re.M)
    }

    assert found == {
        ("onnxruntime", "onnx.py", True), ("tokenizers", "onnx.py", True),
        ("torch", "transformers.py", True), ("transformers", "transformers.py", True),
    }  # fmt: skip
