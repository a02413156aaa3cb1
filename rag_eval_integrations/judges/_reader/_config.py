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

_CALLED: Mapping[Kind, str] = {
    "pair": "a classifier of pairs",
    "token": "a classifier of tokens",
    "embedding": "an encoder without a classifier",
}
_KINDS: Mapping[Purpose, tuple[Kind, ...]] = {
    "model": ("pair", "token"),
    "relevance": ("pair", "embedding"),
}
_EXAMPLES = {"model": '("supported", "hallucinated")', "relevance": '("irrelevant", "relevant")'}

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
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(field, path.name, f"cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(field, path.name, "should hold a JSON object")
    return content


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
    said = (positions, _number(tokenizer.get("model_max_length")),
            _number(sentence.get("max_seq_length")))  # fmt: skip
    longest = min((one for one in said if one), default=_DEFAULT_LENGTH)
    # DeBERTa's are distances between tokens: it reads on behind them, at a price.
    relative = config.get("position_biased_input") is False
    most = _MOST if relative else positions or _MOST
    length = min(longest, _LONGEST_DEFAULT) if asked_length is None else asked_length
    if type(length) is not int or not SHORTEST <= length <= most:
        why = f"use tokens from {SHORTEST} to {most}, the model's limit"
        raise ConfigurationError("max_length", length, why)
    if asked_pooling not in (None, *get_args(Pooling)):
        why = f"use {' or '.join(get_args(Pooling))}"
        raise ConfigurationError("pooling", asked_pooling, why)
    in_files: Pooling = "cls" if pooling.get("pooling_mode_cls_token") is True else "mean"
    name = str((config.get("architectures") or [""])[0])
    kind: Kind | None = (
        "token" if name.endswith("ForTokenClassification")
        else "pair" if name.endswith("ForSequenceClassification")
        else "embedding" if name.endswith("Model")
        else None
    )  # fmt: skip
    labels = _labels(config, field)
    return ModelConfig(
        kind, labels, config.get("problem_type"), length, pad, asked_pooling or in_files
    )


def _number(value: object) -> int | None:
    # Tokenizers without a limit say 1e30.
    return int(value) if isinstance(value, int | float) and 0 <= value <= _MOST else None


def _labels(config: Mapping[str, Any], field: str) -> tuple[str, ...]:
    named = config.get("id2label")
    if named is None:
        return tuple(f"LABEL_{number}" for number in range(_number(config.get("num_labels")) or 0))
    try:
        by_number = {int(number): str(name) for number, name in dict(named).items()}
        return tuple(by_number[number] for number in range(len(by_number) or 1))
    except (KeyError, TypeError, ValueError):
        why = "`id2label` of its config should name 0, 1, …"
        raise ConfigurationError(field, named, why) from None


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
    return 1 - sigmoid(-value) if value < 0 else 1 / (1 + math.exp(-value))


def reading_of(
    config: ModelConfig, given: Sequence[str] | None, purpose: Purpose, name: str
) -> Reading | None:
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
            neither supported nor unsupported; shows those found.
    """
    option, said = ("labels", config.labels)
    if purpose == "relevance":
        option = "relevance_labels"
    if config.kind is None:
        why = "its config does not say what it is: give `architectures`"
        raise ConfigurationError(purpose, name, why)
    if config.kind not in _KINDS[purpose]:
        wanted = " or ".join(_CALLED[one] for one in _KINDS[purpose])
        raise ConfigurationError(purpose, name, f"is {_CALLED[config.kind]}; use {wanted}")
    if config.kind == "embedding":
        if given is not None:
            why = f"{name} has no outputs with names: it is an encoder"
            raise ConfigurationError(option, given, why)
        return None
    if given is not None:
        if isinstance(given, str) or not all(isinstance(one, str) for one in given):
            raise ConfigurationError(option, given, "use the names of all outputs, in order")
        if said and len(given) != len(said):
            why = f"the model {name} has {len(said)} outputs: {', '.join(said)}"
            raise ConfigurationError(option, given, why)
        said = tuple(given)
    words = [re.sub(r"[^a-z]+", "_", label.lower()).strip("_") for label in said]
    if purpose == "relevance" and given is None and len(words) == 1 and words[0] not in _BAD:
        words = ["relevant"]
    good = tuple(place for place, word in enumerate(words) if word in _GOOD)
    bad = [word for word in words if word in _BAD]
    if len(good) + len(bad) < len(words) or not words or (len(words) > 1 and not (good and bad)):
        kind = f", problem_type {config.problem}" if config.problem else ""
        raise ConfigurationError(
            option, said,
            f"which output of {name} means {'supported' if purpose == 'model' else 'relevant'} "
            f"cannot be told from `id2label` of its config (num_labels {len(said)}{kind}): give "
            f"the names of all outputs in order, such as {option}={_EXAMPLES[purpose]}",
            missing=given is None and not said,
        )  # fmt: skip
    if len(words) == 1:
        return Reading((0,), 1, independent=True, inverse=bool(bad))
    return Reading(good, len(words), config.problem == "multi_label_classification")
