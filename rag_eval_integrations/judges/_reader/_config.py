"""What a model's files say of it: its kind, its length, and which of its outputs means what."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError

Kind = Literal["pair", "token", "embedding"]
"""`pair`: one row of outputs for two texts; `token`: one row per token; `embedding`: a vector."""
Pooling = Literal["mean", "cls"]
"""How the vectors of tokens become the vector of a text."""
Purpose = Literal["model", "relevance"]
"""The argument that a model was given as: it judges support, or relevance."""

KINDS: Mapping[Purpose, tuple[Kind, ...]] = {
    "model": ("pair", "token"),
    "relevance": ("pair", "embedding"),
}
_CALLED: Mapping[Kind, str] = {
    "pair": "a classifier of pairs",
    "token": "a classifier of tokens",
    "embedding": "an encoder without a classifier",
}

SHORTEST = 32
"""Least tokens of a model's input: a short hypothesis, a short premise, and the special tokens."""
_DEFAULT_LENGTH = 512
_MOST = 1_000_000
_LONGEST_DEFAULT = 4_096
"""Most tokens of an input unless the user asks for more: the cost grows with the square."""

# Of these, position numbers begin behind the padding's id.
_SHIFTED = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "mpnet", "longformer")


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
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(field, path.name, f"cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConfigurationError(field, path.name, "should hold a JSON object")
    return found


def model_config(
    config: Mapping[str, Any],
    field: str,
    *,
    tokenizer: Mapping[str, Any],
    sentence: Mapping[str, Any],
    pooling: Mapping[str, Any],
    asked_length: int | None,
    asked_pooling: Pooling | None,
) -> ModelConfig:
    """Describe a model by what stands in its files; each may be empty.

    Args:
        config: `config.json`.
        field: the argument that the model was given as, for error messages.
        tokenizer: `tokenizer_config.json`.
        sentence: `sentence_bert_config.json`.
        pooling: `1_Pooling/config.json`.
        asked_length: the user's `max_length`.
        asked_pooling: the user's `pooling`.

    Raises:
        ConfigurationError: names the value that cannot be used.
    """
    pad = _number(config.get("pad_token_id")) or 0
    positions = _number(config.get("max_position_embeddings"))
    if positions is not None and config.get("model_type") in _SHIFTED:
        positions -= pad + 1
    # DeBERTa's are distances between tokens: it reads on behind them, at a price.
    relative = config.get("position_biased_input") is False
    found = [positions, _number(tokenizer.get("model_max_length")),
             _number(sentence.get("max_seq_length"))]  # fmt: skip
    longest = min([one for one in found if one is not None and one > 0], default=_DEFAULT_LENGTH)
    return ModelConfig(
        kind=_kind(config),
        labels=_labels(config, field),
        problem=config.get("problem_type"),
        max_length=_length(asked_length, longest, _MOST if relative else positions or _MOST),
        pad=pad,
        pooling=_pooling(asked_pooling, pooling),
    )


def _number(value: object) -> int | None:
    # Tokenizers without a limit say 1e30.
    return int(value) if isinstance(value, int | float) and 0 <= value <= _MOST else None


def _length(asked: int | None, longest: int, most: int) -> int:
    if asked is None:
        asked = min(longest, _LONGEST_DEFAULT)
    if type(asked) is not int or not SHORTEST <= asked <= most:
        raise ConfigurationError(
            "max_length", asked, f"use tokens from {SHORTEST} to {most}, the model's limit"
        )
    return asked


def _pooling(asked: Pooling | None, files: Mapping[str, Any]) -> Pooling:
    if asked is not None:
        if asked not in get_args(Pooling):
            raise ConfigurationError("pooling", asked, f"use {' or '.join(get_args(Pooling))}")
        return asked
    return "cls" if files.get("pooling_mode_cls_token") is True else "mean"


def _kind(config: Mapping[str, Any]) -> Kind | None:
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""
    if name.endswith("ForTokenClassification"):
        return "token"
    if name.endswith("ForSequenceClassification"):
        return "pair"
    return "embedding" if name.endswith("Model") else None


def _labels(config: Mapping[str, Any], field: str) -> tuple[str, ...]:
    named = config.get("id2label")
    if named is None:
        count = _number(config.get("num_labels")) or 0
        return tuple(f"LABEL_{number}" for number in range(count))
    try:
        by_number = {int(number): str(name) for number, name in dict(named).items()}
    except (TypeError, ValueError):
        by_number = {}
    if sorted(by_number) != list(range(len(by_number))) or not by_number:
        raise ConfigurationError(field, named, "`id2label` of its config should name 0, 1, …")
    return tuple(by_number[number] for number in range(len(by_number)))


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


class Reading(NamedTuple):
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
    if value < 0:
        return 1 - sigmoid(-value)
    return 1 / (1 + math.exp(-value))


def reading_of(
    config: ModelConfig, given: Sequence[str] | None, purpose: Purpose, name: str
) -> Reading:
    """Tell what the outputs of a classifier mean, from their names in any order and case.

    Args:
        config: the model's description.
        given: the user's names of the outputs, in order; None for those of the config.
        purpose: the argument that the model was given as. One output without a name, as
            cross-encoders have it, is relevance.
        name: the model, for error messages.

    Raises:
        ConfigurationError: names that say neither supported nor unsupported; shows those found.
    """
    option = "labels" if purpose == "model" else "relevance_labels"
    found = config.labels
    if given is not None:
        if isinstance(given, str) or not all(isinstance(one, str) for one in given):
            raise ConfigurationError(option, given, "use the names of all outputs, in order")
        if found and len(given) != len(found):
            raise ConfigurationError(
                option, given, f"the model {name} has {len(found)} outputs: {', '.join(found)}"
            )
        found = tuple(given)
    words = [re.sub(r"[^a-z]+", "_", label.lower()).strip("_") for label in found]
    if purpose == "relevance" and given is None and len(words) == 1:
        words = words if words[0] in _BAD else ["relevant"]
    good = tuple(place for place, word in enumerate(words) if word in _GOOD)
    bad = tuple(place for place, word in enumerate(words) if word in _BAD)
    if len(good) + len(bad) < len(words) or not words or (len(words) > 1 and not (good and bad)):
        kind = f", problem_type {config.problem}" if config.problem else ""
        example = (
            '("supported", "hallucinated")' if purpose == "model" else '("irrelevant", "relevant")'
        )
        raise ConfigurationError(
            option, found,
            f"which output of {name} means {'supported' if purpose == 'model' else 'relevant'} "
            f"cannot be told from `id2label` of its config (num_labels {len(found)}{kind}): give "
            f"the names of all outputs in order, such as {option}={example}",
            missing=given is None and not found,
        )  # fmt: skip
    if len(words) == 1:
        return Reading((0,), 1, independent=True, inverse=bool(bad))
    several = config.problem == "multi_label_classification"
    return Reading(good, len(words), independent=several)


def check_kind(kind: Kind | None, purpose: Purpose, name: str) -> Kind:
    """Return a kind that serves a purpose.

    Raises:
        ConfigurationError: it does not, or is not known.
    """
    if kind is None:
        raise ConfigurationError(
            purpose, name, "its config does not say what it is: give `architectures`"
        )
    if kind not in KINDS[purpose]:
        wanted = " or ".join(_CALLED[one] for one in KINDS[purpose])
        raise ConfigurationError(purpose, name, f"is {_CALLED[kind]}; use {wanted}")
    return kind
