"""`Backend`: a model that reads texts; batches of bounded size, sorted by length, padded alike."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import mul
from threading import Event
from typing import Any, NamedTuple, TypeVar

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.judges._reader._config import (
    Kind,
    ModelConfig,
    Pooling,
    Purpose,
    Reading,
    check_kind,
    reading_of,
)

T = TypeVar("T")

BATCH_TOKENS = 16_384
"""Most tokens of a batch, padding included: 32 inputs of 512, or 4 of 4,096."""

_ENCODED_AT_ONCE = 256
"""Inputs whose tokens are held at one time."""

Span = tuple[int, int]
Pair = tuple[str, str | None]
"""The two texts of an input; None for an input of one text."""


class Encoded(NamedTuple):
    """The tokens of one input."""

    ids: Sequence[int]
    types: Sequence[int]
    """Which of the two texts a token is of, as the model wants it."""
    second: Sequence[bool]
    """Whether a token is of the second text."""
    spans: Sequence[Span]
    """Characters of its text that a token stands for; empty where the tokenizer does not say."""


class Batch(NamedTuple):
    """Inputs of one length, padded at their ends."""

    ids: list[list[int]]
    mask: list[list[int]]
    """1 for tokens, 0 for padding."""
    types: list[list[int]]


class TokenScore(NamedTuple):
    """P(supported) of one token of the second text."""

    start: int
    end: int
    probability: float


class Cancelled(Exception):
    """The call was cancelled between two batches."""


class Backend(ABC):
    """A loaded model with its tokenizer; used by one thread at a time.

    Args:
        name: the model's name and digest, without the folder that it is in.
        config: the model's description of itself.
        batch_size: most inputs of a batch, from 1.
    """

    def __init__(self, name: str, config: ModelConfig, batch_size: int) -> None:
        self.name = name
        self.config = config
        self.kind: Kind = "pair"
        self._batch_size = batch_size
        self._special: re.Pattern[str] | None = None
        self.reading: Reading | None = None
        """What its outputs mean; None for an encoder."""

    def prepare(self, purpose: Purpose, labels: Sequence[str] | None) -> None:
        """Find out the model's kind and the meaning of its outputs, and try it once.

        Raises:
            ConfigurationError: it does not serve the purpose, or its outputs have another shape
                than its config says.
        """
        self.kind = check_kind(self.config.kind, purpose, self.name)
        if self.kind == "embedding":
            if labels is not None:
                raise ConfigurationError("relevance_labels", labels, f"{self.name} has no outputs "
                                         "with names: it is an encoder")  # fmt: skip
            self._try(purpose, lambda: self.vectors(["a b", "a"], Event()))
            return
        self.reading = reading_of(self.config, labels, purpose, self.name)
        self._try(
            purpose,
            lambda: self._rows([("a b", "a")], Event(), partial(self._checked, purpose)),
        )

    def _try(self, purpose: Purpose, run: Callable[[], object]) -> None:
        try:
            run()
        except ConfigurationError:
            raise
        except Exception as error:
            raise ConfigurationError(
                purpose, self.name, f"cannot be run: {type(error).__name__}: {error}"
            ) from error

    def _checked(self, purpose: Purpose, encoded: Encoded, out: Any) -> None:
        """Check the shape of the outputs of one input."""
        assert self.reading is not None
        rows = [out] if self.kind == "pair" else out
        wanted = self.reading.size
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ConfigurationError(purpose, self.name, "gives no row of outputs")
        found = {len(row) if not isinstance(row[0], list) else 0 for row in rows}
        if found != {wanted}:
            said = "outputs of another shape" if 0 in found else f"{max(found)} outputs"
            raise ConfigurationError(purpose, self.name, f"gives {said} where {wanted} are named")
        if self.kind == "token" and len(rows) != len(encoded.ids):
            raise ConfigurationError(purpose, self.name, "does not give a row per token")

    # --- Implemented for each library

    @abstractmethod
    def encode(self, pairs: Sequence[Pair], *, special: bool = True) -> list[Encoded]:
        """Cut inputs into tokens, at most `config.max_length` of each if `special`.

        Args:
            pairs: the inputs; all have a second text, or none has.
            special: whether to add the model's special tokens.
        """

    @abstractmethod
    def special_tokens(self) -> Sequence[str]:
        """List what the tokenizer would read as a special token, such as `[SEP]`."""

    @abstractmethod
    def forward(self, batch: Batch) -> list[object]:
        """Run a classifier; per input a row of outputs, or one row per token."""

    @abstractmethod
    def pool(self, batch: Batch, pooling: Pooling) -> list[list[float]]:
        """Run an encoder; one vector per input, of any length, from the tokens that are not 0."""

    def forget_threads(self) -> None:  # noqa: B027 -- nothing to do where the library copes
        """Start anew in a forked process."""

    def close(self) -> None:  # noqa: B027
        """Let go of the model."""

    # --- Shared

    def plain(self, text: str) -> str:
        """Make words of the model's special tokens in a text: only the judge may frame a text."""
        if self._special is None:
            found = sorted(filter(None, self.special_tokens()), key=len, reverse=True)
            self._special = re.compile("|".join(map(re.escape, found)) if found else r"(?!)")
        return self._special.sub(lambda token: f"{token[0][:1]} {token[0][1:]}", text)

    def probabilities(self, pairs: Sequence[Pair], stop: Event) -> list[float]:
        """Compute P(supported) or P(relevant) of each pair, in [0, 1].

        Raises:
            JudgeOutputError: an output is not a finite number.
            Cancelled: `stop` was set.
        """
        reading = self.reading
        assert reading is not None

        def read(encoded: Encoded, out: object) -> float:
            return reading.probability(out)  # type: ignore[arg-type]  # checked as it was made

        return self._rows(pairs, stop, read)

    def token_scores(self, pairs: Sequence[Pair], stop: Event) -> list[list[TokenScore]]:
        """Compute P(supported) of the tokens of each second text.

        Raises:
            JudgeOutputError, Cancelled: as `probabilities`.
        """
        reading = self.reading
        assert reading is not None

        def read(encoded: Encoded, out: object) -> list[TokenScore]:
            assert isinstance(out, list)
            return [
                TokenScore(start, end, reading.probability(row))
                for row, second, (start, end) in zip(
                    out, encoded.second, encoded.spans, strict=True
                )
                if second and end > start
            ]

        return self._rows(pairs, stop, read)

    def vectors(self, texts: Sequence[str], stop: Event) -> list[list[float]]:
        """Compute the vector of each text, of length 1.

        Raises:
            JudgeOutputError, Cancelled: as `probabilities`.
        """
        found: list[list[float]] = [[] for _ in texts]
        for numbers, _, batch in self._batches([(text, None) for text in texts], stop):
            pooled = self.pool(batch, self.config.pooling)
            for number, vector in zip(numbers, pooled, strict=True):
                length = math.sqrt(math.fsum(map(mul, vector, vector)))
                if not math.isfinite(length) or length == 0:
                    why = "the model gave a vector without a finite length"
                    raise JudgeOutputError(why, str(vector[:8]))
                found[number] = [value / length for value in vector]
        return found

    def _rows(
        self, pairs: Sequence[Pair], stop: Event, read: Callable[[Encoded, object], T]
    ) -> list[T]:
        found: dict[int, T] = {}
        for numbers, encoded, batch in self._batches(pairs, stop):
            rows = self.forward(batch)
            for number, one, row in zip(numbers, encoded, rows, strict=True):
                # Rows of padding, after those of the tokens, are left out.
                kept = row[: len(one.ids)] if self.kind == "token" else row  # type: ignore[index]
                found[number] = read(one, kept)
        return [found[number] for number in range(len(pairs))]

    def _batches(
        self, pairs: Sequence[Pair], stop: Event
    ) -> Iterator[tuple[list[int], list[Encoded], Batch]]:
        """Give batches of inputs of about one length, so that little is padded."""
        size = [len(first) + len(second or "") for first, second in pairs]
        order = sorted(range(len(pairs)), key=lambda number: (size[number], number))
        for start in range(0, len(order), _ENCODED_AT_ONCE):
            part = order[start : start + _ENCODED_AT_ONCE]
            if stop.is_set():
                raise Cancelled
            encoded = dict(zip(part, self.encode([pairs[number] for number in part]), strict=True))
            part.sort(key=lambda number: (len(encoded[number].ids), number))
            lengths = [len(encoded[number].ids) for number in part]
            for numbers in cut_batches(lengths, self._batch_size, BATCH_TOKENS):
                if stop.is_set():
                    raise Cancelled
                taken = [part[number] for number in numbers]
                chosen = [encoded[number] for number in taken]
                yield taken, chosen, self._padded(chosen)

    def _padded(self, encoded: Sequence[Encoded]) -> Batch:
        longest = max(len(one.ids) for one in encoded)
        pad = self.config.pad
        return Batch(
            [[*one.ids, *[pad] * (longest - len(one.ids))] for one in encoded],
            [[1] * len(one.ids) + [0] * (longest - len(one.ids)) for one in encoded],
            [[*one.types, *[0] * (longest - len(one.types))] for one in encoded],
        )


def cut_batches(lengths: Sequence[int], size: int, tokens: int) -> Iterator[range]:
    """Cut inputs into batches of at most `size` inputs and `tokens` tokens with padding.

    Args:
        lengths: the inputs' tokens, rising.
        size: most inputs of a batch, from 1.
        tokens: most tokens of a batch; an input with more is a batch of its own.
    """
    start = 0
    for end, length in enumerate(lengths):
        if end > start and (end - start >= size or (end - start + 1) * length > tokens):
            yield range(start, end)
            start = end
    if start < len(lengths):
        yield range(start, len(lengths))
