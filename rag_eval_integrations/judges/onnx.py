"""`OnnxJudge`: reads with local models in ONNX; the only module that loads onnxruntime."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.judges._reader._backend import Backend, Batch, Encoded, Pair
from rag_eval_integrations.judges._reader._config import (
    SHORTEST,
    Kind,
    ModelConfig,
    Pooling,
    Purpose,
    model_config,
    read_json,
)
from rag_eval_integrations.judges._reader._judge import ReaderJudge, check_relevance
from rag_eval_integrations.judges._reader._relevance import RELEVANT, UTILIZED
from rag_eval_integrations.judges._reader._support import Options

_PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
}

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_HIDDEN = ("sentence_embedding", "last_hidden_state", "token_embeddings")


class OnnxJudge(ReaderJudge):
    """Labels with a local model that reads, by onnxruntime; needs the extra `onnx`.

    Support is read by a classifier: of pairs (entailment, such as DeBERTa-NLI; one or two outputs,
    as models of hallucination have them) or of the response's tokens, as LettuceDetect. Each
    response sentence stands beside windows of the document sentences that match it best, and beside
    the best three alone, and has the highest probability of these. A sentence of up to five tokens
    is read behind the question.

    Relevance and utilization are read by a second model: a cross-encoder, or an encoder whose
    cosines become probabilities. Without one they are the embedded judge's, in English only, and
    every score's `warnings` and `by.model` say so. Nothing is downloaded.

    One object may be used from any number of tasks; a thread of its own reads one call after the
    other. Cancelling a call stops it between two batches; `aclose()` ends the thread.

    Args:
        model: a folder with `model.onnx` or `onnx/model.onnx`, `tokenizer.json` and `config.json`,
            or an `.onnx` file beside them. `config.json` names the outputs (`id2label`) and says
            what the model is (`architectures`).
        relevance: such a folder or file of a model for relevance; None for the embedded judge.
        labels: names of the outputs of `model` in order, such as `("supported", "hallucinated")`,
            where its config does not name them.
        relevance_labels: the same for `relevance`; one output without a name is relevance.
        template: the text that the model was trained on: `{premise}`, `{question}` and
            `{hypothesis}` are filled in; without `{hypothesis}` it is the first of two texts. By
            default premise and hypothesis, for classifiers of tokens question and premise first.
        threshold: lowest probability of a supported sentence, between 0 and 1. Of the document
            sentences, the likeliest are labelled, as many as their probabilities sum up to.
        max_length: most tokens of an input, from 32; by default the model's limit, at most 4,096.
            A model that was exported for one length or one size of batch gets inputs of that
            shape, filled up with padding.
        max_windows: most windows of documents per response sentence.
        max_pairs: most pairs of a call for each of support, relevance and utilization; a call with
            more is unscored (`over_budget`).
        batch_size: most pairs of a batch; a batch also holds 16,384 tokens at most.
        pooling: how an encoder's tokens become one vector: `mean` or `cls`; by default what
            `1_Pooling/config.json` says, else `mean`.
        relevance_line: intercept and slope from an encoder's cosine of question and sentence to the
            log-odds of relevant. The default was fitted with all-MiniLM-L6-v2.
        utilized_line: the same for response and document sentence.
        device: `cpu`, `cuda`, `coreml` or `directml`, as far as onnxruntime has them.
        threads: threads of one model; None for onnxruntime's choice.

    Raises:
        MissingDependencyError: onnxruntime or tokenizers is not installed.
        ConfigurationError: a file that is missing or cannot be loaded, outputs whose meaning is not
            known or whose shape is another, or an option out of range; names it.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        relevance: str | Path | None = None,
        labels: Sequence[str] | None = None,
        relevance_labels: Sequence[str] | None = None,
        template: str | None = None,
        threshold: float = 0.5,
        max_length: int | None = None,
        max_windows: int = 4,
        max_pairs: int = 8_192,
        batch_size: int = 16,
        pooling: Pooling | None = None,
        relevance_line: tuple[float, float] = RELEVANT,
        utilized_line: tuple[float, float] = UTILIZED,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        made_of: dict[str, object] = {
            "model": _absolute(model), "relevance": _absolute(relevance), "labels": labels,
            "relevance_labels": relevance_labels, "template": template, "threshold": threshold,
            "max_length": max_length, "max_windows": max_windows, "max_pairs": max_pairs,
            "batch_size": batch_size, "pooling": pooling, "relevance_line": relevance_line,
            "utilized_line": utilized_line, "device": device, "threads": threads,
        }  # fmt: skip
        options = Options(threshold, max_windows, max_pairs, template)
        options.check()
        lines = (relevance_line, utilized_line)
        check_relevance(relevance, relevance_labels, pooling, lines)
        if type(batch_size) is not int or batch_size < 1:
            raise ConfigurationError("batch_size", batch_size, "use a whole number from 1")
        if threads is not None and (type(threads) is not int or threads < 1):
            raise ConfigurationError("threads", threads, "use a whole number from 1, or None")
        runtime = _Runtime(device, threads, batch_size)
        support = runtime.load(model, "model", labels, max_length, None)
        second = None
        if relevance is not None:
            second = runtime.load(relevance, "relevance", relevance_labels, None, pooling)
        super().__init__("onnx", support, second, options, lines, made_of)


class _Runtime:
    """Loads models for one device."""

    def __init__(self, device: str, threads: int | None, batch_size: int) -> None:
        try:
            import numpy  # noqa: PLC0415 -- heavy, and onnxruntime's
            import onnxruntime  # noqa: PLC0415 -- heavy, and an extra
        except ImportError as error:
            raise MissingDependencyError("onnxruntime", "onnx") from error
        try:
            import tokenizers  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise MissingDependencyError("tokenizers", "onnx") from error
        self.numpy: Any = numpy
        self._onnxruntime: Any = onnxruntime
        self._tokenizers: Any = tokenizers
        there = set(onnxruntime.get_available_providers())
        known = [name for name, provider in _PROVIDERS.items() if provider in there]
        if device not in known:
            raise ConfigurationError("device", device, f"this onnxruntime has {', '.join(known)}")
        self._provider = _PROVIDERS[device]
        self._threads = threads
        self._batch_size = batch_size

    def session(self, file: Path) -> Any:
        options = self._onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if self._threads is not None:
            options.intra_op_num_threads = self._threads
        return self._onnxruntime.InferenceSession(
            str(file), sess_options=options, providers=[self._provider]
        )

    def load(
        self,
        path: str | Path,
        purpose: Purpose,
        labels: Sequence[str] | None,
        max_length: int | None,
        pooling: Pooling | None,
    ) -> Backend:
        file, folder = _files(Path(path), purpose)
        tokenizer = _there(folder / "tokenizer.json", purpose, path)
        config = read_json(_there(folder / "config.json", purpose, path), purpose)
        described = model_config(
            config,
            purpose,
            tokenizer=read_json(folder / "tokenizer_config.json", purpose),
            sentence=read_json(folder / "sentence_bert_config.json", purpose),
            pooling=read_json(folder / "1_Pooling" / "config.json", purpose),
            asked_length=max_length,
            asked_pooling=pooling,
        )
        try:
            cut = self._tokenizers.Tokenizer.from_file(str(tokenizer))
            session = self.session(file)
        except Exception as error:
            why = f"cannot be loaded: {type(error).__name__}: {error}"
            raise ConfigurationError(purpose, str(path), why) from error
        if described.kind != "token":  # an export may have left the classifier out
            described = described._replace(kind=_kind_of(session) or described.kind)
        fixed = _Fixed.of(session)
        if fixed.length is not None:
            described = described._replace(
                max_length=fixed.most_tokens(described.max_length, max_length, purpose, path)
            )
        size = min(self._batch_size, fixed.rows or self._batch_size)
        backend = _OnnxBackend(
            _name_of(file, folder), described, size, self, file, session, cut,
            _digest(file, tokenizer), fixed,
        )  # fmt: skip
        backend.check_inputs(purpose)
        backend.prepare(purpose, labels)
        return backend


class _Fixed(NamedTuple):
    """The shape that a model's inputs were exported with; None where any size is taken."""

    rows: int | None
    length: int | None

    @classmethod
    def of(cls, session: Any) -> _Fixed:
        shapes = [one.shape for one in session.get_inputs() if one.name == "input_ids"]
        if not shapes or len(shapes[0]) != 2:
            return cls(None, None)
        return cls(*(size if isinstance(size, int) else None for size in shapes[0]))

    def most_tokens(
        self, longest: int, asked: int | None, purpose: Purpose, given: str | Path
    ) -> int:
        assert self.length is not None
        if self.length < SHORTEST:
            why = f"takes inputs of {self.length} tokens; {SHORTEST} are the least"
            raise ConfigurationError(purpose, str(given), why)
        if asked is not None and asked > self.length:
            why = f"use tokens from {SHORTEST} to {self.length}, the length that the model takes"
            raise ConfigurationError("max_length", asked, why)
        return min(self.length, longest)

    def filled(self, batch: Batch, pad: int) -> Batch:
        """Fill a batch up with padding; of an empty row one token counts, so that it has a mean."""
        length = self.length or len(batch.ids[0])
        empty = max(0, (self.rows or 0) - len(batch.ids))

        def fill(rows: list[list[int]], value: int, first: int) -> list[list[int]]:
            whole = [[*row, *[value] * (length - len(row))] for row in rows]
            return whole + [[first, *[value] * (length - 1)] for _ in range(empty)]

        return Batch(fill(batch.ids, pad, pad), fill(batch.mask, 0, 1), fill(batch.types, 0, 0))


_OF_PARENTS: list[Any] = []
"""Sessions of a process that forked this one."""


class _OnnxBackend(Backend):
    def __init__(
        self,
        name: str,
        config: ModelConfig,
        batch_size: int,
        runtime: _Runtime,
        file: Path,
        session: Any,
        tokenizer: Any,
        digest: str,
        fixed: _Fixed,
    ) -> None:
        super().__init__(f"{name}@{digest[:12]}", config, batch_size)
        self._runtime = runtime
        self._fixed = fixed
        self._file = file
        self._session = session
        self._inputs = {one.name: one.type for one in session.get_inputs()}
        names = [one.name for one in session.get_outputs()]
        self._logits = "logits" if "logits" in names else names[0]
        self._hidden = next((name for name in _HIDDEN if name in names), names[0])
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._plain = tokenizer
        self._cut = type(tokenizer).from_str(tokenizer.to_str())
        # The premise was chosen to fit; this is for texts that take more tokens when joined.
        self._cut.enable_truncation(config.max_length, strategy="longest_first")

    def check_inputs(self, purpose: Purpose) -> None:
        """Refuse a model with other inputs than tokens, or with tokens of another type."""
        for name, kind in self._inputs.items():
            if name not in _INPUTS:
                raise ConfigurationError(purpose, self.name, f"has an input {name!r}; only "
                                         f"{', '.join(_INPUTS)} can be given")  # fmt: skip
            if kind not in ("tensor(int64)", "tensor(int32)"):
                raise ConfigurationError(
                    purpose, self.name, f"input {name!r} takes {kind}, not whole numbers"
                )
        if "input_ids" not in self._inputs:
            raise ConfigurationError(purpose, self.name, "has no input 'input_ids'")

    def encode(self, pairs: Sequence[Pair], *, special: bool = True) -> list[Encoded]:
        texts = [first if second is None else (first, second) for first, second in pairs]
        tokenizer = self._cut if special else self._plain
        return [
            Encoded(one.ids, one.type_ids, [part == 1 for part in one.sequence_ids], one.offsets)
            for one in tokenizer.encode_batch(texts, add_special_tokens=special)
        ]

    def special_tokens(self) -> Sequence[str]:
        found = self._plain.get_added_tokens_decoder().values()
        return [token.content for token in found if token.special]

    def forward(self, batch: Batch) -> list[object]:
        found: list[object] = self._run(self._logits, batch).tolist()
        return found

    def pool(self, batch: Batch, pooling: Pooling) -> list[list[float]]:
        hidden = self._run(self._hidden, batch)
        if hidden.ndim == 3:
            if pooling == "cls":
                hidden = hidden[:, 0]
            else:
                mask = self._runtime.numpy.asarray(batch.mask, dtype="float32")[:, :, None]
                hidden = (hidden * mask).sum(axis=1) / mask.sum(axis=1)
        if hidden.ndim != 2:
            raise ConfigurationError("relevance", self.name, f"gives {hidden.ndim} dimensions")
        found: list[list[float]] = hidden.tolist()
        return found

    def _run(self, output: str, batch: Batch) -> Any:
        if self._session is None:
            self._session = self._runtime.session(self._file)
        filled = self._fixed.filled(batch, self.config.pad)
        given = dict(zip(_INPUTS, filled, strict=True))
        fed = {
            name: self._runtime.numpy.asarray(given[name], dtype=kind[len("tensor(") : -1])
            for name, kind in self._inputs.items()
        }
        [found] = self._session.run([output], fed)
        found = found.astype("float32")[: len(batch.ids)]
        # An encoder's mask is as long as its batch.
        return found[:, : len(batch.ids[0])] if found.ndim == 3 else found

    def forget_threads(self) -> None:
        # Its threads are the parent's: its end would wait for them forever, so it is kept.
        _OF_PARENTS.append(self._session)
        self._session = None

    def close(self) -> None:
        self._session = None


def _absolute(path: str | Path | None) -> Path | None:
    """Return a path that a process in another folder understands, too."""
    return None if path is None else Path(path).absolute()


def _files(path: Path, purpose: Purpose) -> tuple[Path, Path]:
    """Return the `.onnx` file, and the folder of the files that describe it."""
    if path.is_dir():
        for file in (path / "model.onnx", path / "onnx" / "model.onnx"):
            if file.is_file():
                return file, path
        why = "has neither model.onnx nor onnx/model.onnx"
        raise ConfigurationError(purpose, str(path), why)
    if not path.is_file():
        raise ConfigurationError(purpose, str(path), "no such folder or file")
    if path.suffix != ".onnx":
        raise ConfigurationError(purpose, str(path), "use a folder, or a file that ends in .onnx")
    folder = path.absolute().parent
    return path, folder.parent if folder.name == "onnx" else folder


def _there(path: Path, purpose: Purpose, given: str | Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(purpose, str(given), f"has no {path.name}")
    return path


def _name_of(file: Path, folder: Path) -> str:
    name = folder.resolve().name
    return name if file.stem == "model" else f"{name}/{file.stem}"


def _digest(file: Path, *others: Path) -> str:
    """Return the digest of a model's files; large weights stand in files beside it."""
    beside = sorted(
        one for one in file.parent.iterdir()
        if one.is_file() and one != file and one.name.startswith((f"{file.name}", f"{file.stem}."))
        and one.suffix != ".json"
    )  # fmt: skip
    digest = hashlib.sha256()
    for one in (file, *beside, *others):
        with one.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _kind_of(session: Any) -> Kind | None:
    """Tell from the outputs what a model is; None where their names do not say."""
    outputs = {one.name: one.shape for one in session.get_outputs()}
    if "logits" in outputs:
        return "token" if len(outputs["logits"]) == 3 else "pair"
    return "embedding" if not outputs.keys().isdisjoint(_HIDDEN) else None
