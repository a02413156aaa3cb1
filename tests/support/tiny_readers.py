"""Tiny ONNX models that can in truth read: they compare the tokens of two texts.

Each is a real graph on `input_ids`, `attention_mask` and `token_type_ids`, beside a real
`tokenizer.json` and `config.json`. Special tokens and words outside of the vocabulary match nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
NLI = ("entailment", "neutral", "contradiction")


def vocabulary(texts: Iterable[str]) -> dict[str, int]:
    """Number the words of texts, special tokens first."""
    words = dict.fromkeys(
        word
        for text in texts
        for word in text.lower().replace(".", " . ").replace("?", " ? ").split()
    )
    return {word: number for number, word in enumerate([*SPECIAL, *words])}


def write_tokenizer(folder: Path, words: dict[str, int], *, pieces: bool = False) -> None:
    """Write a tokenizer of words, or of word pieces, that frames pairs as BERT does."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    model: Any = models.WordLevel(words, unk_token="[UNK]")
    if pieces:
        model = models.WordPiece(words, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def write_config(folder: Path, **fields: Any) -> None:
    """Write `config.json`; a label's name stands for its number."""
    (folder / "config.json").write_text(json.dumps(fields))


class Graph:
    """Nodes of an ONNX graph, written one after the other."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return its output."""
        from onnx import helper

        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, kind: str = "float32") -> str:
        """Add a constant."""
        import numpy as np
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype=kind), name))
        return name

    def floats(self, name: str) -> str:
        """Cast to float."""
        return self.add("Cast", name, to=1)

    def sum(self, name: str, axis: int) -> str:
        """Sum along an axis, which goes away."""
        return self.add("ReduceSum", name, self.constant([axis], "int64"), keepdims=0)

    def affine(self, name: str, scale: float, shift: float) -> str:
        """Compute scale · x + shift."""
        return self.add("Add", self.add("Mul", name, self.constant(scale)), self.constant(shift))

    def save(
        self,
        path: Path,
        output: str,
        shape: Sequence[Any],
        name: str = "logits",
        inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
    ) -> None:
        """Write the model; its one output is `name`."""
        import onnx
        from onnx import TensorProto, helper

        self.nodes.append(helper.make_node("Identity", [output], [name]))
        graph = helper.make_graph(
            self.nodes,
            "tiny",
            [
                helper.make_tensor_value_info(input_name, TensorProto.INT64, ["batch", "tokens"])
                for input_name in inputs
            ],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(model, str(path))

    def covered_tokens(self) -> tuple[str, str]:
        """Return, per token of the second text, 1 if the first holds it, and which tokens those are."""
        real = self.floats(self.add("Greater", "input_ids", self.constant(3, "int64")))
        there = self.add("Mul", self.floats("attention_mask"), real)
        types = self.floats("token_type_ids")
        second = self.add("Mul", there, types)
        first = self.add("Sub", there, second)
        equal = self.add(
            "Equal",
            self.add("Unsqueeze", "input_ids", self.constant([2], "int64")),
            self.add("Unsqueeze", "input_ids", self.constant([1], "int64")),
        )
        shared = self.add(
            "Mul", self.floats(equal), self.add("Unsqueeze", first, self.constant([1], "int64"))
        )
        return self.add("Min", self.sum(shared, 2), self.constant(1.0)), second

    def coverage(self) -> str:
        """Return the share of the second text's tokens that the first holds, one row per input."""
        covered, second = self.covered_tokens()
        both = self.sum(self.add("Mul", covered, second), 1)
        return self.add("Div", both, self.add("Max", self.sum(second, 1), self.constant(1.0)))


def pair_model(
    folder: Path,
    words: dict[str, int],
    labels: Sequence[str] = NLI,
    *,
    good: int = 0,
    config: dict[str, Any] | None = None,
    file: str = "model.onnx",
    max_length: int = 64,
    pieces: bool = False,
    not_a_number: bool = False,
    sign: float = 1.0,
) -> Path:
    """Write a classifier of pairs: sure of `labels[good]` where all words of the second are found.

    Its padding is a word of the vocabulary, so that only the mask tells it from text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    graph = Graph()
    score = graph.affine(graph.coverage(), 20 * sign, -16 * sign)  # even chances at .8
    if not_a_number:
        score = graph.add("Sqrt", graph.affine(score, 0.0, -1.0))
    score = graph.add("Unsqueeze", score, graph.constant([1], "int64"))
    other = graph.affine(score, -1.0, 0.0)
    columns = [score if place == good else other for place in range(len(labels))]
    graph.save(folder / file, graph.add("Concat", *columns, axis=1), ["batch", len(labels)])
    write_tokenizer(folder, words, pieces=pieces)
    fields = {
        "architectures": ["TinyForSequenceClassification"],
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "max_position_embeddings": max_length,
        "pad_token_id": 4,
    }
    write_config(folder, **{**fields, **(config or {})})
    return folder


def token_model(
    folder: Path,
    words: dict[str, int],
    labels: Sequence[str] = ("supported", "hallucinated"),
    *,
    max_length: int = 64,
) -> Path:
    """Write a classifier of tokens: a token of the response is supported if the first text holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    graph = Graph()
    covered, _ = graph.covered_tokens()
    score = graph.add("Unsqueeze", graph.affine(covered, 8.0, -4.0), graph.constant([2], "int64"))
    both = graph.add("Concat", score, graph.affine(score, -1.0, 0.0), axis=2)
    graph.save(folder / "model.onnx", both, ["batch", "tokens", 2])
    write_tokenizer(folder, words)
    write_config(
        folder,
        architectures=["TinyForTokenClassification"],
        id2label={str(number): label for number, label in enumerate(labels)},
        max_position_embeddings=max_length,
        pad_token_id=4,
    )
    return folder


def encoder_model(folder: Path, words: dict[str, int], *, max_length: int = 64) -> Path:
    """Write an encoder: each word has a vector of its own, by lookup."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    graph = Graph()
    table = np.random.default_rng(0).normal(size=(len(words), 32))
    table[0] = 0
    hidden = graph.add("Gather", graph.constant(table), "input_ids")
    graph.save(
        folder / "model.onnx", hidden, ["batch", "tokens", 32], "last_hidden_state", ("input_ids",)
    )
    write_tokenizer(folder, words)
    write_config(
        folder, architectures=["TinyModel"], max_position_embeddings=max_length, pad_token_id=4
    )
    return folder


def cross_encoder(folder: Path, words: dict[str, int], **options: Any) -> Path:
    """Write a cross-encoder of one output without a name."""
    return pair_model(folder, words, ("LABEL_0",), **options)


def fix_shape(folder: Path, rows: int | str, tokens: int | str) -> Path:
    """Write the model again as one that takes inputs of one shape only, where a size is a number."""
    import onnx

    model = onnx.load(str(folder / "model.onnx"))
    for tensor in model.graph.input:
        for size, wanted in zip(tensor.type.tensor_type.shape.dim, (rows, tokens), strict=True):
            if isinstance(wanted, int):
                size.dim_value = wanted
    onnx.save(model, str(folder / "model.onnx"))
    return folder
