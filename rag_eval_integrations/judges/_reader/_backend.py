"""`Backend`: a model that reads pairs of texts, in batches of bounded size, padded alike."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any, NamedTuple

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.judges._reader._config import ModelConfig, Purpose, reading_of

BATCH_TOKENS = 16_384
"""Most tokens of a batch, padding included: 32 inputs of 512, or 4 of 4,096."""
_ENCODED_AT_ONCE = 256
"""Inputs whose tokens are held at one time."""

Pair = tuple[str, str | None]
"""The two texts of an input; None for an input of one text."""


class Encoded(NamedTuple):
    """The tokens of one input."""

    ids: Sequence[int]
    types: Sequence[int]
    """Which of the two texts a token is of, as the model wants it."""
    second: Sequence[bool]
    """Whether a token is of the second text."""
    spans: Sequence[tuple[int, int]]
    """Characters of its text that a token stands for."""


class Cancelled(Exception):
    """The call was cancelled between two batches."""


class Backend(ABC):
    """A loaded model with its tokenizer; used by one thread at a time.

    Args:
        name: the model's name and digest, without the folder that it is in.
        config: the model's description of itself.
        batch_size: most inputs of a batch, from 1.
        shape: inputs of a batch and tokens of an input, where the model takes one number only.
    """

    def __init__(
        self,
        name: str,
        config: ModelConfig,
        batch_size: int,
        shape: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self.name, self.config = name, config
        self._shape = shape
        self._batch_size = min(batch_size, shape[0] or batch_size)
        self._special: re.Pattern[str] | None = None

    def prepare(self, purpose: Purpose, labels: Sequence[str] | None) -> None:
        """Find out what the outputs mean, and try the model once.

        Raises:
            ConfigurationError: it does not serve the purpose, or its outputs have another shape
                than its config says.
        """
        self.reading = reading_of(self.config, labels, purpose, self.name)
        dimensions = 2 if self.config.kind == "pair" else 3
        try:
            [(_, _, out)] = self._outputs([("a b", "a")], Event())
        except Exception as error:
            why = f"cannot be run: {type(error).__name__}: {error}"
            raise ConfigurationError(purpose, self.name, why) from error
        if self.reading is None:
            if out.ndim not in (2, 3):
                raise ConfigurationError(purpose, self.name, f"gives {out.ndim} dimensions")
        elif out.ndim != dimensions or out.shape[-1] != self.reading.size:
            said = (
                "outputs of another shape" if out.ndim != dimensions else f"{out.shape[-1]} outputs"
            )
            why = f"gives {said} where {self.reading.size} are named"
            raise ConfigurationError(purpose, self.name, why)

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
    def run(self, ids: Any, mask: Any, types: Any) -> Any:
        """Run the model on numpy arrays of a row per input; return its outputs likewise."""

    def forget_threads(self) -> None:  # noqa: B027 -- nothing to do where the library copes
        """Start anew in a forked process."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the model."""

    # --- Shared

    def plain(self, text: str) -> str:
        """Make words of the model's special tokens in a text: only the judge may frame a text."""
        if self._special is None:
            tokens = sorted(filter(None, self.special_tokens()), key=len, reverse=True)
            self._special = re.compile("|".join(map(re.escape, tokens)) if tokens else r"(?!)")
        return self._special.sub(lambda token: f"{token[0][:1]} {token[0][1:]}", text)

    def probabilities(self, pairs: Sequence[Pair], stop: Event) -> list[float]:
        """Compute P(supported) or P(relevant) of each pair, in [0, 1].

        Of a classifier of tokens it is the lowest of the second text's: one wrong word is enough.

        Raises:
            JudgeOutputError: an output is not a finite number, or there is none.
            Cancelled: `stop` was set.
        """
        found = [0.0] * len(pairs)
        assert self.reading is not None
        for numbers, encoded, out in self._outputs(pairs, stop):
            for number, one, row in zip(numbers, encoded, out.tolist(), strict=True):
                if self.config.kind == "pair":
                    found[number] = self.reading.probability(row)
                    continue
                rows = [
                    row[place]
                    for place, (second, (start, end)) in enumerate(
                        zip(one.second, one.spans, strict=True)
                    )
                    if second and end > start
                ]
                if not rows:
                    raise JudgeOutputError("the model gave no output for a response sentence", "")
                found[number] = min(map(self.reading.probability, rows))
        return found

    def vectors(self, texts: Sequence[str], stop: Event) -> list[list[float]]:
        """Compute the vector of each text, of length 1.

        Raises:
            JudgeOutputError, Cancelled: as `probabilities`.
        """
        import numpy  # noqa: PLC0415 -- heavy, and of the extras

        found: list[list[float]] = [[] for _ in texts]
        for numbers, encoded, out in self._outputs([(text, None) for text in texts], stop):
            if out.ndim == 3 and self.config.pooling == "cls":
                out = out[:, 0]
            elif out.ndim == 3:
                tokens = [row[: len(one.ids)] for row, one in zip(out, encoded, strict=True)]
                out = numpy.stack([row.mean(axis=0) for row in tokens])
            for number, vector in zip(numbers, out.astype("float64"), strict=True):
                length = numpy.linalg.norm(vector)
                if not numpy.isfinite(length) or length == 0:
                    why = "the model gave a vector without a finite length"
                    raise JudgeOutputError(why, str(vector[:8].tolist()))
                found[number] = (vector / length).tolist()
        return found

    def _outputs(
        self, pairs: Sequence[Pair], stop: Event
    ) -> Iterator[tuple[list[int], list[Encoded], Any]]:
        """Run batches of inputs of about one length, so that little is padded."""
        order = sorted(
            range(len(pairs)),
            key=lambda number: len(pairs[number][0]) + len(pairs[number][1] or ""),
        )
        for start in range(0, len(order), _ENCODED_AT_ONCE):
            part = order[start : start + _ENCODED_AT_ONCE]
            encoded = dict(zip(part, self.encode([pairs[number] for number in part]), strict=True))
            part.sort(key=lambda number: (len(encoded[number].ids), number))
            lengths = [len(encoded[number].ids) for number in part]
            for places in cut_batches(lengths, self._batch_size, BATCH_TOKENS):
                if stop.is_set():
                    raise Cancelled
                numbers = [part[place] for place in places]
                chosen = [encoded[number] for number in numbers]
                yield numbers, chosen, self._run(chosen)

    def _run(self, encoded: Sequence[Encoded]) -> Any:
        import numpy  # noqa: PLC0415

        longest = max(len(one.ids) for one in encoded)
        size = (self._shape[0] or len(encoded), self._shape[1] or longest)
        ids = numpy.full(size, self.config.pad, dtype="int64")
        mask, types = numpy.zeros(size, dtype="int64"), numpy.zeros(size, dtype="int64")
        mask[:, 0] = 1  # of an empty row one token counts, so that it has a mean
        for row, one in enumerate(encoded):
            ids[row, : len(one.ids)] = one.ids
            mask[row, : len(one.ids)] = 1
            types[row, : len(one.ids)] = one.types
        out = self.run(ids, mask, types)[: len(encoded)]
        return out[:, :longest] if out.ndim == 3 else out


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
