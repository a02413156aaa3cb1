"""A local model that reads: pairs of texts in, P(supported) out, in batches padded alike."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import mul
from pathlib import Path
from threading import Event
from typing import Any, Literal, NamedTuple

from rag_eval_integrations.errors import ConfigurationError, JudgeError, JudgeOutputError

Kind = Literal["pair", "token", "embedding"]
"""`pair`: one row of outputs for two texts; `token`: one row per token; `embedding`: a vector."""
Pooling = Literal["mean", "cls"]
"""How the vectors of tokens become the vector of a text."""
Purpose = Literal["model", "relevance"]
"""The argument that a model was given as: it judges support, or relevance."""
Pair = str | tuple[str, str]
"""The texts of an input: two, or one that a template made of them."""

SHORTEST = 32
"""Least tokens of a model's input: a short hypothesis, a short premise, and the special tokens."""
BATCH_TOKENS = 16_384
"""Most tokens of a batch, padding included: 32 inputs of 512, or 4 of 4,096."""
_DEFAULT_LENGTH = 512
_MOST = 1_000_000
_LONGEST_DEFAULT = 4_096
"""Most tokens of an input unless the user asks for more: the cost grows with the square."""

# Of these, position numbers begin behind the padding's id.
_SHIFTED = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer")

_OUTPUTS = ("logits", "sentence_embedding", "last_hidden_state", "token_embeddings")
"""Those of a classifier and, behind it, of encoders."""

Options = Mapping[str, Any]
"""The judge's arguments, as far as they are for a model: `labels`, names of its outputs, in order;
`max_length`, most tokens of an input; `pooling`; `device`; `batch_size`; `threads`. None where the
model's files say it."""


# --- What a model's files say of it


@contextmanager
def usable(field: str, value: object, way: str) -> Iterator[None]:
    """Turn an exception of a library inside the `with` into an error of an argument."""
    try:
        yield
    except Exception as error:
        [first, *_] = str(error).strip().splitlines() or [""]
        why = f"cannot be {way}: {type(error).__name__}: {first}"
        raise ConfigurationError(field, value, why) from error


def read_json(path: str | Path | None, field: str) -> dict[str, Any]:
    """Read an object of a JSON file; `{}` where there is none.

    Raises:
        ConfigurationError: the file is not such an object.
    """
    if path is None or not Path(path).is_file():
        return {}
    name = Path(path).name
    with usable(field, name, "read"):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(content, dict):
        raise ConfigurationError(field, name, "should hold a JSON object")
    return content


def input_length(
    config: Mapping[str, Any], asked: int | None, limits: Sequence[object], fixed: int | None
) -> int:
    """Choose the maximum number of tokens of an input, special tokens included.

    Args:
        config: the model's `config.json`.
        asked: the user's `max_length`; None for the model's limit.
        limits: what other files of the model say; a number beyond reason is no limit.
        fixed: the only length of input that the model takes; None where it takes any.

    Raises:
        ConfigurationError: the model does not take as many tokens, or too few for two texts.
    """
    positions = _token_limit(config.get("max_position_embeddings"))
    if positions is not None and config.get("model_type") in _SHIFTED:
        positions -= (_token_limit(config.get("pad_token_id")) or 0) + 1
    sizes = filter(None, (positions, *map(_token_limit, limits)))
    longest = min(min(sizes, default=_DEFAULT_LENGTH), fixed or _LONGEST_DEFAULT, _LONGEST_DEFAULT)
    # DeBERTa's are distances between tokens: it reads on behind them, at a price.
    relative = config.get("position_biased_input") is False
    most = min(_MOST if relative else positions or _MOST, fixed or _MOST)
    length = longest if asked is None else asked
    if type(length) is not int or not SHORTEST <= length <= most:
        why = f"use tokens from {SHORTEST} to {most}, the model's limit"
        if most < SHORTEST:
            why = f"the model takes inputs of {most} tokens; {SHORTEST} are the least"
        raise ConfigurationError("max_length", length, why)
    return length


def _token_limit(value: object) -> int | None:
    """Return a length in tokens; None for one without a limit."""
    # Tokenizers without a limit say 1e30.
    return int(value) if isinstance(value, int | float) and 0 <= value <= _MOST else None


# --- The meaning of a row of outputs

_NAMES = {
    True: "entailment entail entails entailed supported support supports fully_supported "
    "consistent factual faithful grounded not_hallucinated no_hallucination relevant",
    False: "neutral contradiction contradicts contradicted contradictory not_entailment "
    "non_entailment no_entailment not_entailed unsupported not_supported refuted refutes "
    "hallucinated hallucination inconsistent not_consistent unfaithful not_faithful ungrounded "
    "not_grounded not_factual nonfactual not_enough_info irrelevant not_relevant",
}
"""Names of outputs that mean supported or relevant, and of those that mean the opposite."""
_GOOD, _BAD = (frozenset(_NAMES[good].split()) for good in (True, False))
_NAMED: Mapping[Purpose, tuple[str, str]] = {
    "model": (
        "supported",
        'give all names in order, such as labels=("supported", "hallucinated"), or write them',
    ),
    "relevance": ("relevant", 'write names such as "irrelevant" and "relevant"'),
}
"""What one of a model's outputs has to mean, and how to name them."""


class OutputReading(NamedTuple):
    """How a row of outputs becomes a probability."""

    good: tuple[int, ...]
    """Places of the outputs that mean supported, or relevant; none if the only one does not."""
    size: int
    """Number of outputs."""
    independent: bool
    """True where each output is a probability of its own (sigmoid), False for softmax."""

    def probability(self, row: Sequence[float]) -> float:
        """Compute P(supported), or P(relevant), in [0, 1].

        By sigmoid of a single output or of independent ones, whose highest counts; else by softmax.

        Raises:
            JudgeOutputError: an output is not a finite number.
        """
        if not all(map(math.isfinite, row)):
            raise JudgeOutputError("the model gave a value that is not a finite number", str(row))
        if self.size == 1:
            return sigmoid(row[0] if self.good else -row[0])
        if self.independent:
            return max(sigmoid(row[place]) for place in self.good)
        parts = [math.exp(value - max(row)) for value in row]
        return min(1.0, math.fsum(parts[place] for place in self.good) / math.fsum(parts))


def sigmoid(value: float) -> float:
    """Compute the logistic function without overflow."""
    return 1 - sigmoid(-value) if value < 0 else 1 / (1 + math.exp(-value))


def reading_of(
    config: Mapping[str, Any], given: Sequence[str] | None, size: int, purpose: Purpose, name: str
) -> OutputReading:
    """Tell what the outputs of a classifier mean, from their names in any order and case.

    Args:
        config: the model's `config.json`.
        given: the user's names of the outputs, in order; None for those of the config. If neither
            names the only output of a cross-encoder, it is relevance.
        size: number of outputs.
        purpose: the argument that the model was given as.
        name: the model, for error messages.

    Raises:
        ConfigurationError: names that are not those of all outputs, or say neither supported nor
            unsupported; shows them.
    """
    meaning, remedy = _NAMED[purpose]
    labels: Any = config.get("id2label") or {}
    named = [labels.get(n, labels.get(str(n), f"LABEL_{n}")) for n in range(max(size, len(labels)))]
    names = named if given is None else given
    words = [re.sub(r"[^a-z]+", "_", str(label).lower()).strip("_") for label in names]
    if (purpose, given, len(words)) == ("relevance", None, 1) and words[0] not in _BAD:
        words = ["relevant"]
    good = tuple(place for place, word in enumerate(words) if word in _GOOD)
    bad = [word for word in words if word in _BAD]
    problem = config.get("problem_type")
    if not len(good) + len(bad) == len(words) == size or (size > 1 and not (good and bad)):
        kind = f" (problem_type {problem})" if problem else ""
        why = f"{name} has {size} outputs{kind}, and which of them means {meaning} cannot be told"
        option = "labels" if purpose == "model" else purpose
        remedy = f"{remedy} into `id2label` of its config.json"
        raise ConfigurationError(option, names, f"{why}: {remedy}")
    return OutputReading(good, size, problem == "multi_label_classification")


# --- A loaded model


class LocalModel(ABC):
    """A loaded model with its tokenizer; used by one thread at a time.

    What the model is, its first outputs tell: an export may have left out the head that its config
    names. Subclasses set the members below before they come to `__init__`.

    Args:
        tokenizer: a `tokenizers.Tokenizer`, which is copied.
        purpose: the argument that the model was given as.
        options: the user's.

    Raises:
        ConfigurationError: the model does not serve the purpose, cannot be run, or its outputs are
            not those that are named.
    """

    name: str
    """The model's name and digest, without the folder that it is in."""
    _config: Mapping[str, Any] | None = None
    """Its `config.json`; None to find it."""
    _loaded: Any
    """The library's own object."""
    _inputs: Collection[str]
    """Names of the inputs that the model takes."""
    _output: str
    """Name of the output that `run` returns, by `choose_output`; known when it returns."""
    _limit: object = None
    """The `model_max_length` of a tokenizer that was not read from such a file."""
    _shape: Sequence[int | None] = (None, None)
    """Inputs of a batch and tokens of an input, where the model takes one number only."""

    def __init__(self, tokenizer: Any, purpose: Purpose, options: Options) -> None:
        name, (rows, length) = self.name, self._shape
        config = self._config or read_json(self.find("config.json"), purpose)
        files = ("tokenizer_config.json", "sentence_bert_config.json", "1_Pooling/config.json")
        cut, sentence, pooling = (read_json(self.find(file), purpose) for file in files)
        limits = (self._limit, cut.get("model_max_length"), sentence.get("max_seq_length"))
        self.length = input_length(config, options["max_length"], limits, length)
        cls = pooling.get("pooling_mode_cls_token") is True
        self._pooling = options["pooling"] or ("cls" if cls else "mean")
        self._batch_size = min(options["batch_size"], rows or options["batch_size"])
        self._tokenizer, self._framing = self.plain_copy(tokenizer), self.plain_copy(tokenizer)
        self._framing.enable_truncation(self.length)
        pad = _token_limit(config.get("pad_token_id")) or 0
        self._framing.enable_padding(pad_id=pad, length=length)
        added = self._tokenizer.get_added_tokens_decoder().values()
        special = sorted((t.content for t in added if t.special and t.content), key=len)
        self._special = re.compile("|".join(map(re.escape, reversed(special))) or r"(?!)")
        with usable(purpose, name, "run"):
            [(_, _, out)] = self._outputs([("a b", "a")], Event())
        self.kind: Kind = "token" if out.ndim == 2 else "pair"
        if self._output in _OUTPUTS[1:]:
            self.kind = "embedding"
        if self.kind == ("embedding" if purpose == "model" else "token"):
            both = ["an encoder", "a classifier of tokens"]
            wrong, right = both if purpose == "model" else reversed(both)
            why = f"is {wrong}; use a classifier of pairs or {right}"
            raise ConfigurationError(purpose, name, why)
        self.reading = None
        if self.kind != "embedding":
            self.reading = reading_of(config, options["labels"], out.shape[-1], purpose, name)
        self.identity = (name, self.kind, self.length, pad, self._pooling, self.reading)

    @abstractmethod
    def find(self, name: str) -> str | Path | None:
        """Return another file of the model by its name; None where it does not exist."""

    @abstractmethod
    def run(self, inputs: Mapping[str, Any]) -> Any:
        """Run the model on numpy arrays of a row per input; return its output as float32.

        Subclasses implement it.
        """

    def close(self) -> None:
        """Release the model."""
        self._loaded = None

    def choose_output(self, names: Sequence[str]) -> None:
        """Choose the output to read among the model's; the first where no name is known."""
        self._output = next((name for name in _OUTPUTS if name in names), names[0])

    @staticmethod
    def plain_copy(tokenizer: Any) -> Any:
        """Copy a `tokenizers.Tokenizer` without its settings of padding and truncation."""
        copy = type(tokenizer).from_str(tokenizer.to_str())
        copy.no_padding()
        copy.no_truncation()
        return copy

    def tokens(self, texts: Sequence[str]) -> list[Any]:
        """Tokenize texts without special tokens; return a `tokenizers.Encoding` of each."""
        encodings: list[Any] = self._tokenizer.encode_batch(texts, add_special_tokens=False)
        return encodings

    def longest(self, pairs: Sequence[Pair]) -> int:
        """Count the tokens of the longest input, special ones included, as the model reads it."""
        encodings: list[Any] = self._framing.encode_batch(pairs)
        return max(sum(map(int, encoding.attention_mask)) for encoding in encodings)

    def without_special_tokens(self, text: str) -> str:
        """Break up special tokens in a text by a space: only the judge may frame a text."""
        return self._special.sub(lambda token: f"{token[0][:1]} {token[0][1:]}", text)

    def probabilities(self, pairs: Sequence[Pair], stop: Event) -> list[float]:
        """Compute P(supported) or P(relevant) of each pair, in [0, 1].

        Of a classifier of tokens it is the lowest of the second text's: one wrong word is enough.

        Raises:
            JudgeOutputError: an output is not a finite number, or there is none.
            JudgeError: `stop` was set.
        """
        assert self.reading is not None
        probabilities = [0.0] * len(pairs)
        for number, encoding, out in self._outputs(pairs, stop):
            rows = [out.tolist()]
            if self.kind == "token":
                tokens = zip(encoding.sequence_ids, encoding.offsets, rows[0], strict=True)
                rows = [row for text, (start, end), row in tokens if text == 1 and end > start]
            if not rows:
                raise JudgeOutputError("the model gave no output for a response sentence", "")
            probabilities[number] = min(map(self.reading.probability, rows))
        return probabilities

    def cosines(self, pairs: Sequence[tuple[str, str]], stop: Event) -> list[float]:
        """Compute the cosine of the vectors of each pair, in [-1, 1].

        Raises:
            JudgeOutputError, JudgeError: as `probabilities`.
        """
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        vectors: dict[str, list[float]] = {}
        for number, encoding, out in self._outputs(texts, stop):
            if out.ndim == 2:
                tokens = out[: sum(encoding.attention_mask)]
                out = out[0] if self._pooling == "cls" else tokens.mean(axis=0)
            vector = out.astype("float64")
            length = math.sqrt(vector @ vector)
            if not math.isfinite(length) or length == 0:
                why = "the model gave a vector without a finite length"
                raise JudgeOutputError(why, str(vector[:8].tolist()))
            vectors[texts[number]] = (vector / length).tolist()
        return [sum(map(mul, vectors[first], vectors[second])) for first, second in pairs]

    def _outputs(self, pairs: Sequence[Pair], stop: Event) -> Iterator[tuple[int, Any, Any]]:
        """Run inputs in batches by length; yield the number, encoding and output of each."""
        import numpy  # noqa: PLC0415 -- heavy, and of the extras

        lengths = [len(pair) if isinstance(pair, str) else sum(map(len, pair)) for pair in pairs]
        order = sorted(range(len(pairs)), key=lengths.__getitem__)
        for start in range(0, len(order), self._batch_size):
            part = order[start : start + self._batch_size]
            encodings = self._framing.encode_batch([pairs[number] for number in part])
            most = max(1, BATCH_TOKENS // (len(encodings[0]) or 1))
            for low in range(0, len(part), most):
                if stop.is_set():
                    raise JudgeError("the call was cancelled")
                batch = encodings[low : low + most]
                # A model of a fixed number of rows reads the first input in the empty ones.
                rows = batch + batch[:1] * ((self._shape[0] or 0) - len(batch))
                tables = {
                    "input_ids": [row.ids for row in rows],
                    "attention_mask": [row.attention_mask for row in rows],
                    "token_type_ids": [row.type_ids for row in rows],
                }
                taken = {name: numpy.array(tables[name]) for name in tables if name in self._inputs}
                yield from zip(part[low : low + most], batch, self.run(taken), strict=False)
