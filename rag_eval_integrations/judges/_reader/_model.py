"""A local model that reads: pairs of texts in, P(supported) out, in batches padded alike."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Literal, NamedTuple, get_args

from rag_eval_integrations.errors import ConfigurationError, JudgeError, JudgeOutputError

Kind = Literal["pair", "token", "embedding"]
"""`pair`: one row of outputs for two texts; `token`: one row per token; `embedding`: a vector."""
Pooling = Literal["mean", "cls"]
"""How the vectors of tokens become the vector of a text."""
Purpose = Literal["model", "relevance"]
"""The argument that a model was given as: it judges support, or relevance."""
Pair = tuple[str, str | None]
"""The two texts of an input; None for an input of one text."""

_ARCHITECTURES: Mapping[str, Kind] = {
    "ForTokenClassification": "token", "ForSequenceClassification": "pair", "Model": "embedding",
}  # fmt: skip
_CALLED: Mapping[Kind, str] = {
    "pair": "a classifier of pairs",
    "token": "a classifier of tokens",
    "embedding": "an encoder without a classifier",
}
_KINDS: Mapping[Purpose, tuple[Kind, ...]] = {
    "model": ("pair", "token"),
    "relevance": ("pair", "embedding"),
}

SHORTEST = 32
"""Least tokens of a model's input: a short hypothesis, a short premise, and the special tokens."""
BATCH_TOKENS = 16_384
"""Most tokens of a batch, padding included: 32 inputs of 512, or 4 of 4,096."""
_ENCODED_AT_ONCE = 256
"""Inputs whose tokens are in memory at one time."""
_DEFAULT_LENGTH = 512
_MOST = 1_000_000
_LONGEST_DEFAULT = 4_096
"""Most tokens of an input unless the user asks for more: the cost grows with the square."""

# Of these, position numbers begin behind the padding's id.
_SHIFTED = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer")


class Cancelled(JudgeError):
    """The call was cancelled between two batches."""


class ModelOptions(NamedTuple):
    """What the user says of one model."""

    labels: Sequence[str] | None
    """Names of its outputs, in order; None for those of its config."""
    length: int | None
    """Most tokens of an input; None for the model's limit."""
    pooling: Pooling | None
    device: str
    batch_size: int
    threads: int | None


# --- What a model's files say of it


class ModelConfig(NamedTuple):
    """A model's own description of itself."""

    kind: Kind | None
    """None where the files do not say."""
    labels: tuple[str, ...]
    """Names of its outputs; empty for an encoder, or where the files do not say."""
    problem: str | None
    """`problem_type` of the config."""
    max_length: int
    """Most tokens of one input, special tokens included."""
    pad: int
    """Id of the token that fills short inputs up."""
    pooling: Pooling


def read_json(path: Path, field: str) -> dict[str, Any]:
    """Read an object of a JSON file; `{}` where there is none.

    Raises:
        ConfigurationError: the file is not such an object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(field, path.name, f"cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(field, path.name, "should hold a JSON object")
    return content


def kind_of(config: Mapping[str, Any]) -> Kind | None:
    """Tell from `architectures` what a model is; None where it does not say."""
    name = str((config.get("architectures") or [""])[0])
    return next((kind for end, kind in _ARCHITECTURES.items() if name.endswith(end)), None)


def model_config(
    config: Mapping[str, Any],
    kind: Kind | None,
    purpose: Purpose,
    options: ModelOptions,
    *,
    read: Callable[[str], Mapping[str, Any]],
    limit: object,
    fixed: int | None = None,
) -> ModelConfig:
    """Describe a model by what stands in its files.

    Args:
        config: `config.json`.
        kind: what the model is.
        purpose: the argument that the model was given as.
        options: the user's.
        read: reads another JSON file of the model's; `{}` where there is none.
        limit: the tokenizer's `model_max_length`.
        fixed: the only length of input that the model takes; None where it takes any.

    Raises:
        ConfigurationError: names the value that cannot be used.
    """
    pad = _number(config.get("pad_token_id")) or 0
    positions = _number(config.get("max_position_embeddings"))
    if positions is not None and config.get("model_type") in _SHIFTED:
        positions -= pad + 1
    sentence = read("sentence_bert_config.json").get("max_seq_length")
    sizes = (positions, _number(limit), _number(sentence))
    longest = min(min(filter(None, sizes), default=_DEFAULT_LENGTH), fixed or _MOST)
    # DeBERTa's are distances between tokens: it reads on behind them, at a price.
    relative = config.get("position_biased_input") is False
    most = min(_MOST if relative else positions or _MOST, fixed or _MOST)
    length = min(longest, _LONGEST_DEFAULT) if options.length is None else options.length
    if most < SHORTEST:
        why = f"takes inputs of {most} tokens; {SHORTEST} are the least"
        raise ConfigurationError(purpose, config.get("architectures"), why)
    if type(length) is not int or not SHORTEST <= length <= most:
        why = f"use tokens from {SHORTEST} to {most}, the model's limit"
        raise ConfigurationError("max_length", length, why)
    if options.pooling not in (None, *get_args(Pooling)):
        why = f"use {' or '.join(get_args(Pooling))}"
        raise ConfigurationError("pooling", options.pooling, why)
    cls = read("1_Pooling/config.json").get("pooling_mode_cls_token") is True
    labels = config.get("id2label")
    if labels is None:
        labels = {n: f"LABEL_{n}" for n in range(_number(config.get("num_labels")) or 0)}
    try:
        by_number = {int(number): str(name) for number, name in dict(labels).items()}
        names = tuple(by_number[number] for number in range(len(by_number)))
    except (KeyError, TypeError, ValueError):
        why = "`id2label` of its config should name 0, 1, …"
        raise ConfigurationError(purpose, labels, why) from None
    pooling: Pooling = options.pooling or ("cls" if cls else "mean")
    return ModelConfig(kind, names, config.get("problem_type"), length, pad, pooling)


def _number(value: object) -> int | None:
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


class OutputReading(NamedTuple):
    """How a row of outputs becomes a probability."""

    good: tuple[int, ...]
    """Places of the outputs that mean supported, or relevant."""
    size: int
    """Number of outputs."""
    independent: bool
    """True where each output is a probability of its own (sigmoid), False for softmax."""
    inverse: bool = False
    """Whether the one output means unsupported."""

    def probability(self, row: Sequence[float]) -> float:
        """Compute P(supported), or P(relevant), in [0, 1].

        Raises:
            JudgeOutputError: an output is not a finite number.
        """
        if not all(map(math.isfinite, row)):
            raise JudgeOutputError("the model gave a value that is not a finite number", str(row))
        if self.independent:
            p = max(sigmoid(row[place]) for place in self.good)
            return 1 - p if self.inverse else p
        top = max(row)
        parts = [math.exp(value - top) for value in row]
        return min(1.0, math.fsum(parts[place] for place in self.good) / math.fsum(parts))


def sigmoid(value: float) -> float:
    """Compute the logistic function without overflow."""
    return 1 - sigmoid(-value) if value < 0 else 1 / (1 + math.exp(-value))


def reading_of(
    config: ModelConfig, given: Sequence[str] | None, purpose: Purpose, name: str
) -> OutputReading | None:
    """Tell what the outputs of a classifier mean, from their names in any order and case.

    Args:
        config: the model's description.
        given: the user's names of the outputs, in order; None for those of the config.
        purpose: the argument that the model was given as. One output without a name, as
            cross-encoders have it, is relevance.
        name: the model, for error messages.

    Returns:
        The meaning; None for an encoder, which has no outputs with names.

    Raises:
        ConfigurationError: a kind of model that does not serve the purpose, or names that say
            neither supported nor unsupported; shows those of the config.
    """
    option, meaning, example = "labels", "supported", '("supported", "hallucinated")'
    if purpose == "relevance":
        option, meaning, example = "relevance_labels", "relevant", '("irrelevant", "relevant")'
    if config.kind is None:
        why = "its config does not say what it is: give `architectures`"
        raise ConfigurationError(purpose, name, why)
    if config.kind not in _KINDS[purpose]:
        wanted = " or ".join(_CALLED[kind] for kind in _KINDS[purpose])
        raise ConfigurationError(purpose, name, f"is {_CALLED[config.kind]}; use {wanted}")
    if config.kind == "embedding":
        if given is not None:
            why = f"{name} has no outputs with names: it is an encoder"
            raise ConfigurationError(option, given, why)
        return None
    labels = config.labels if given is None else tuple(given)
    if isinstance(given, str) or not all(isinstance(label, str) for label in labels):
        raise ConfigurationError(option, given, "use the names of all outputs, in order")
    if config.labels and len(labels) != len(config.labels):
        why = f"the model {name} has {len(config.labels)} outputs: {', '.join(config.labels)}"
        raise ConfigurationError(option, given, why)
    words = [re.sub(r"[^a-z]+", "_", label.lower()).strip("_") for label in labels]
    if purpose == "relevance" and given is None and len(words) == 1 and words[0] not in _BAD:
        words = ["relevant"]
    good = tuple(place for place, word in enumerate(words) if word in _GOOD)
    bad = [word for word in words if word in _BAD]
    if len(good) + len(bad) < len(words) or not words or (len(words) > 1 and not (good and bad)):
        problem = f", problem_type {config.problem}" if config.problem else ""
        raise ConfigurationError(
            option, labels,
            f"which output of {name} means {meaning} cannot be told from `id2label` of its config "
            f"(num_labels {len(labels)}{problem}): give the names of all outputs in order, such as "
            f"{option}={example}",
            missing=given is None and not labels,
        )  # fmt: skip
    if len(words) == 1:
        return OutputReading((0,), 1, independent=True, inverse=bool(bad))
    return OutputReading(good, len(words), config.problem == "multi_label_classification")


# --- A loaded model


class Backend(ABC):
    """A loaded model with its tokenizer; used by one thread at a time.

    Args:
        name: the model's name and digest, without the folder that it is in.
        config: the model's description of itself.
        tokenizer: a `tokenizers.Tokenizer`, which is copied.
        purpose: the argument that the model was given as.
        options: the user's.
        shape: inputs of a batch and tokens of an input, where the model takes one number only.

    Raises:
        ConfigurationError: the model does not serve the purpose, cannot be run, or its outputs have
            another shape than its config says.
    """

    _loaded: Any
    """The library's own object; subclasses set it before they come to `__init__`."""

    def __init__(
        self,
        name: str,
        config: ModelConfig,
        tokenizer: Any,
        purpose: Purpose,
        options: ModelOptions,
        shape: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self.name, self.config, self._shape = name, config, shape
        self._batch_size = min(options.batch_size, shape[0] or options.batch_size)
        self._tokenizer = plain_copy(tokenizer)
        added = self._tokenizer.get_added_tokens_decoder().values()
        special = sorted((t.content for t in added if t.special and t.content), key=len)
        self._special = re.compile("|".join(map(re.escape, reversed(special))) or r"(?!)")
        self.reading = reading_of(config, options.labels, purpose, name)
        try:
            [(_, _, out)] = self._outputs([("a b", "a")], Event())
        except Exception as error:
            why = f"cannot be run: {type(error).__name__}: {error}"
            raise ConfigurationError(purpose, name, why) from error
        if self.reading is None:
            right = out.ndim in (2, 3)
        else:
            right = (out.ndim, out.shape[-1]) == (2 + (config.kind == "token"), self.reading.size)
        if not right:
            size = "none are" if self.reading is None else f"{self.reading.size} are"
            why = f"gives {out.shape[-1]} outputs where {size} named, in {out.ndim} dimensions"
            raise ConfigurationError(purpose, name, why)

    @abstractmethod
    def run(self, ids: Any, mask: Any, types: Any) -> Any:
        """Run the model on numpy arrays of a row per input; return its outputs likewise."""

    def close(self) -> None:
        """Let go of the model."""
        self._loaded = None

    def forget_threads(self) -> None:  # noqa: B027 -- nothing to do where the library copes
        """Start anew in a forked process."""

    def encode(self, pairs: Sequence[Pair], *, special: bool = True) -> list[Any]:
        """Cut inputs into tokens: a `tokenizers.Encoding` of each.

        Args:
            pairs: the inputs; all have a second text, or none has.
            special: whether to add the model's special tokens, and to cut at `config.max_length`.
                A premise was chosen to fit: that is for texts that take more tokens when joined.
        """
        if special:
            self._tokenizer.enable_truncation(self.config.max_length, strategy="longest_first")
        else:
            self._tokenizer.no_truncation()
        texts = [first if second is None else (first, second) for first, second in pairs]
        encoded: list[Any] = self._tokenizer.encode_batch(texts, add_special_tokens=special)
        return encoded

    def tokens(self, texts: Sequence[str]) -> list[Any]:
        """Cut texts into tokens, without special ones."""
        return self.encode([(text, None) for text in texts], special=False)

    def plain(self, text: str) -> str:
        """Make words of the model's special tokens in a text: only the judge may frame a text."""
        return self._special.sub(lambda token: f"{token[0][:1]} {token[0][1:]}", text)

    def probabilities(self, pairs: Sequence[Pair], stop: Event) -> list[float]:
        """Compute P(supported) or P(relevant) of each pair, in [0, 1].

        Of a classifier of tokens it is the lowest of the second text's: one wrong word is enough.

        Raises:
            JudgeOutputError: an output is not a finite number, or there is none.
            Cancelled: `stop` was set.
        """
        assert self.reading is not None
        probabilities = [0.0] * len(pairs)
        for number, encoding, out in self._each(pairs, stop):
            rows = [out.tolist()]
            if self.config.kind == "token":
                tokens = zip(encoding.sequence_ids, encoding.offsets, rows[0], strict=False)
                rows = [row for text, (start, end), row in tokens if text == 1 and end > start]
            if not rows:
                raise JudgeOutputError("the model gave no output for a response sentence", "")
            probabilities[number] = min(map(self.reading.probability, rows))
        return probabilities

    def vectors(self, texts: Sequence[str], stop: Event) -> list[list[float]]:
        """Compute the vector of each text, of length 1.

        Raises:
            JudgeOutputError, Cancelled: as `probabilities`.
        """
        vectors: list[list[float]] = [[] for _ in texts]
        for number, encoding, out in self._each([(text, None) for text in texts], stop):
            if out.ndim == 2:
                tokens = out[: len(encoding)]
                out = out[0] if self.config.pooling == "cls" else tokens.mean(axis=0)
            vector = out.astype("float64")
            length = math.sqrt(vector @ vector)
            if not math.isfinite(length) or length == 0:
                why = "the model gave a vector without a finite length"
                raise JudgeOutputError(why, str(vector[:8].tolist()))
            vectors[number] = (vector / length).tolist()
        return vectors

    def _each(self, pairs: Sequence[Pair], stop: Event) -> Iterator[tuple[int, Any, Any]]:
        for numbers, encodings, out in self._outputs(pairs, stop):
            yield from zip(numbers, encodings, out, strict=True)

    def _outputs(
        self, pairs: Sequence[Pair], stop: Event
    ) -> Iterator[tuple[Sequence[int], Sequence[Any], Any]]:
        """Run batches of inputs of about one length, so that little is padded."""
        lengths = [len(first) + len(second or "") for first, second in pairs]
        order = sorted(range(len(pairs)), key=lengths.__getitem__)
        for start in range(0, len(order), _ENCODED_AT_ONCE):
            part = order[start : start + _ENCODED_AT_ONCE]
            encoded = zip(part, self.encode([pairs[number] for number in part]), strict=True)
            inputs = sorted(encoded, key=lambda entry: (len(entry[1]), entry[0]))
            while inputs:
                if stop.is_set():
                    raise Cancelled("the call was cancelled")
                count = min(self._batch_size, len(inputs))
                while count > 1 and count * len(inputs[count - 1][1]) > BATCH_TOKENS:
                    count -= 1
                numbers, encodings = zip(*inputs[:count], strict=True)
                yield numbers, encodings, self._run(encodings)
                del inputs[:count]

    def _run(self, encodings: Sequence[Any]) -> Any:
        import numpy  # noqa: PLC0415 -- heavy, and of the extras

        longest = max(map(len, encodings))
        size = (self._shape[0] or len(encodings), self._shape[1] or longest)
        ids = numpy.full(size, self.config.pad, dtype="int64")
        mask, types = numpy.zeros_like(ids), numpy.zeros_like(ids)
        mask[:, 0] = 1  # of an empty row one token counts, so that it has a mean
        for row, encoding in enumerate(encodings):
            inside = (row, slice(len(encoding)))
            ids[inside], mask[inside], types[inside] = encoding.ids, 1, encoding.type_ids
        out = self.run(ids, mask, types)[: len(encodings)]
        return out[:, :longest] if out.ndim == 3 else out


def plain_copy(tokenizer: Any) -> Any:
    """Copy a `tokenizers.Tokenizer` without what using it leaves in it: length and padding."""
    plain = type(tokenizer).from_str(tokenizer.to_str())
    plain.no_padding()
    plain.no_truncation()
    return plain
