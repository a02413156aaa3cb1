"""Which calls are judged: decided by the call's id alone, so that it can be told again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall

SampleRate = float | Callable[[RagCall], float]

_RANGE = 2.0**64


def chosen(call_id: str, probability: float) -> bool:
    """Say whether a call is sampled at a probability in [0, 1]; the same id, the same answer.

    In every process and on every machine. A call sampled at one rate is sampled at all higher
    ones. About 1 µs: a digest of the id, of at most a few dozen characters, never of the texts.
    """
    if probability >= 1.0:
        return True
    digest = hashlib.blake2b(
        call_id.encode("utf-8", "surrogatepass"), digest_size=8, person=b"rag-eval-sample"
    )  # `person`: no other sampler that hashes the same ids picks the same calls
    return int.from_bytes(digest.digest(), "big") / _RANGE < probability


def checked(rate: SampleRate) -> SampleRate:
    """Return a rate that can be used.

    Raises:
        ConfigurationError: for what is neither a number in [0, 1] nor a function.
    """
    if not callable(rate) and not _is_probability(rate):
        raise ConfigurationError(
            "sample_rate", rate, "use a number in [0, 1], or a function that gives one"
        )
    return rate


def probability_of(call: RagCall, rate: SampleRate) -> float:
    """Return the probability with which a call is sampled.

    Raises:
        ValueError: when the user's function gave something else.
    """
    if not callable(rate):
        return rate
    probability = rate(call)
    if not _is_probability(probability):
        raise ValueError(f"`sample_rate` gave {probability!r}, which is not in [0, 1]")
    return probability


def _is_probability(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0.0 <= value <= 1.0
