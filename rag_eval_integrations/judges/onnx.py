"""`OnnxJudge`: reads with local models in ONNX; the only module that loads onnxruntime."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.judges._reader._backend import Backend, Encoded, Pair
from rag_eval_integrations.judges._reader._config import (
    SHORTEST,
    Kind,
    Pooling,
    Purpose,
    model_config,
    read_json,
)
from rag_eval_integrations.judges._reader._judge import ReaderJudge

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

    _library = "onnx"

    def _runtime(self, device: str, batch_size: int, threads: int | None) -> object:
        return _Onnx(device, batch_size, threads)


class _Onnx:
    """Loads models for one device."""

    def __init__(self, device: str, batch_size: int, threads: int | None) -> None:
        try:
            import onnxruntime  # noqa: PLC0415 -- heavy, and an extra
        except ImportError as error:
            raise MissingDependencyError("onnxruntime", "onnx") from error
        try:
            import tokenizers  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise MissingDependencyError("tokenizers", "onnx") from error
        self._onnxruntime: Any = onnxruntime
        self._tokenizers: Any = tokenizers
        there = set(onnxruntime.get_available_providers())
        known = [name for name, provider in _PROVIDERS.items() if provider in there]
        if device not in known:
            raise ConfigurationError("device", device, f"this onnxruntime has {', '.join(known)}")
        self._provider = _PROVIDERS[device]
        self._batch_size, self._threads = batch_size, threads

    def session(self, file: Path) -> Any:
        options = self._onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if self._threads is not None:
            options.intra_op_num_threads = self._threads
        return self._onnxruntime.InferenceSession(
            str(file), sess_options=options, providers=[self._provider]
        )

    def load(
        self, model: str | Path, purpose: Purpose, length: int | None, pooling: Pooling | None
    ) -> Backend:
        file, folder = _files(Path(model), purpose)
        for name in ("tokenizer.json", "config.json"):
            if not (folder / name).is_file():
                raise ConfigurationError(purpose, str(model), f"has no {name}")
        tokenizer = folder / "tokenizer.json"
        described = model_config(
            read_json(folder / "config.json", purpose),
            purpose,
            tokenizer=read_json(folder / "tokenizer_config.json", purpose),
            sentence=read_json(folder / "sentence_bert_config.json", purpose),
            pooling=read_json(folder / "1_Pooling" / "config.json", purpose),
            asked_length=length,
            asked_pooling=pooling,
        )
        try:
            cut = self._tokenizers.Tokenizer.from_file(str(tokenizer))
            session = self.session(file)
        except Exception as error:
            why = f"cannot be loaded: {type(error).__name__}: {error}"
            raise ConfigurationError(purpose, str(model), why) from error
        if described.kind != "token":  # an export may have left the classifier out
            described = described._replace(kind=_kind_of(session) or described.kind)
        name = folder.resolve().name
        if file.stem != "model":
            name = f"{name}/{file.stem}"
        shape = _shape_of(session)
        if shape[1] is not None:
            if shape[1] < SHORTEST:
                why = f"takes inputs of {shape[1]} tokens; {SHORTEST} are the least"
                raise ConfigurationError(purpose, str(model), why)
            if length is not None and length > shape[1]:
                why = f"use tokens from {SHORTEST} to {shape[1]}, the length that the model takes"
                raise ConfigurationError("max_length", length, why)
            described = described._replace(max_length=min(described.max_length, shape[1]))
        name = f"{name}@{_digest(file, tokenizer)[:12]}"
        backend = _OnnxBackend(name, described, self._batch_size, shape)
        backend.start(self, file, session, cut, purpose)
        return backend


_OF_PARENTS: list[Any] = []
"""Sessions of a process that forked this one."""


class _OnnxBackend(Backend):
    def start(
        self, runtime: _Onnx, file: Path, session: Any, tokenizer: Any, purpose: Purpose
    ) -> None:
        """Take up what was loaded; refuse a model with other inputs than tokens."""
        self._runtime, self._file, self._session = runtime, file, session
        self._inputs = {one.name: one.type for one in session.get_inputs()}
        for name, kind in self._inputs.items():
            if name not in _INPUTS:
                why = f"has an input {name!r}; only {', '.join(_INPUTS)} can be given"
                raise ConfigurationError(purpose, self.name, why)
            if kind not in ("tensor(int64)", "tensor(int32)"):
                why = f"input {name!r} takes {kind}, not whole numbers"
                raise ConfigurationError(purpose, self.name, why)
        if "input_ids" not in self._inputs:
            raise ConfigurationError(purpose, self.name, "has no input 'input_ids'")
        names = [one.name for one in session.get_outputs()]
        wanted = _HIDDEN if self.config.kind == "embedding" else ("logits",)
        self._output = next((name for name in wanted if name in names), names[0])
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._plain = tokenizer
        self._cut = type(tokenizer).from_str(tokenizer.to_str())
        # The premise was chosen to fit; this is for texts that take more tokens when joined.
        self._cut.enable_truncation(self.config.max_length, strategy="longest_first")

    def encode(self, pairs: Sequence[Pair], *, special: bool = True) -> list[Encoded]:
        texts = [first if second is None else (first, second) for first, second in pairs]
        tokenizer = self._cut if special else self._plain
        return [
            Encoded(one.ids, one.type_ids, [part == 1 for part in one.sequence_ids], one.offsets)
            for one in tokenizer.encode_batch(texts, add_special_tokens=special)
        ]

    def special_tokens(self) -> Sequence[str]:
        added = self._plain.get_added_tokens_decoder().values()
        return [token.content for token in added if token.special]

    def run(self, ids: Any, mask: Any, types: Any) -> Any:
        if self._session is None:
            self._session = self._runtime.session(self._file)
        given = dict(zip(_INPUTS, (ids, mask, types), strict=True))
        fed = {
            name: given[name].astype(kind[len("tensor(") : -1])
            for name, kind in self._inputs.items()
        }
        return self._session.run([self._output], fed)[0].astype("float32")

    def forget_threads(self) -> None:
        # Its threads are the parent's: its end would wait for them forever, so it is kept.
        _OF_PARENTS.append(self._session)
        self._session = None

    def close(self) -> None:
        self._session = None


def _files(path: Path, purpose: Purpose) -> tuple[Path, Path]:
    """Return the `.onnx` file, and the folder of the files that describe it."""
    if path.is_dir():
        for file in (path / "model.onnx", path / "onnx" / "model.onnx"):
            if file.is_file():
                return file, path
        why = "has neither model.onnx nor onnx/model.onnx"
    elif not path.is_file():
        why = "no such folder or file"
    elif path.suffix != ".onnx":
        why = "use a folder, or a file that ends in .onnx"
    else:
        folder = path.absolute().parent
        return path, folder.parent if folder.name == "onnx" else folder
    raise ConfigurationError(purpose, str(path), why)


def _digest(file: Path, tokenizer: Path) -> str:
    """Return the digest of a model's files; large weights stand in files beside it."""
    beside = sorted(
        one for one in file.parent.iterdir()
        if one.is_file() and one != file and one.name.startswith((file.name, f"{file.stem}."))
        and one.suffix != ".json"
    )  # fmt: skip
    digest = hashlib.sha256()
    for one in (file, *beside, tokenizer):
        with one.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _shape_of(session: Any) -> tuple[int | None, int | None]:
    """Return the shape that a model's inputs were exported with; None where any size is taken."""
    shapes = [one.shape for one in session.get_inputs() if one.name == "input_ids"]
    if not shapes or len(shapes[0]) != 2:
        return None, None
    rows, length = (size if isinstance(size, int) else None for size in shapes[0])
    return rows, length


def _kind_of(session: Any) -> Kind | None:
    """Tell from the outputs what a model is; None where their names do not say."""
    outputs = {one.name: one.shape for one in session.get_outputs()}
    if "logits" in outputs:
        return "token" if len(outputs["logits"]) == 3 else "pair"
    return "embedding" if not outputs.keys().isdisjoint(_HIDDEN) else None
