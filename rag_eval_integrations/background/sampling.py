"""Which calls are judged: decided by the call's id alone, so that it can be told again."""

from __future__ import annotations

import hashlib

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
