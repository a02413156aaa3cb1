"""`OnnxJudge`: reads with local models in ONNX; the only module that loads onnxruntime."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.judges._reader._judge import ReaderJudge
from rag_eval_integrations.judges._reader._model import (
    Backend,
    ModelOptions,
    Purpose,
    kind_of,
    model_config,
    read_json,
)

_PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
}
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_HIDDEN = ("sentence_embedding", "last_hidden_state", "token_embeddings")
_OF_PARENTS: list[Any] = []
"""Sessions of a process that forked this one."""


class _OnnxModel(Backend):
    def __init__(self, model: Any, purpose: Purpose, options: ModelOptions) -> None:
        try:
            import onnxruntime  # noqa: PLC0415 -- heavy, and an extra
            import tokenizers  # noqa: PLC0415 -- an extra
        except ImportError as error:
            raise MissingDependencyError(error.name or "onnxruntime", "onnx") from error
        there = onnxruntime.get_available_providers()
        known = [name for name, provider in _PROVIDERS.items() if provider in there]
        if options.device not in known:
            why = f"this onnxruntime has {', '.join(known)}"
            raise ConfigurationError("device", options.device, why)
        file, folder = _files(Path(model), purpose)
        for name in ("tokenizer.json", "config.json"):
            if not (folder / name).is_file():
                raise ConfigurationError(purpose, str(model), f"has no {name}")
        config = read_json(folder / "config.json", purpose)
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        if options.threads is not None:
            settings.intra_op_num_threads = options.threads
        self._open = partial(
            onnxruntime.InferenceSession, str(file), settings, [_PROVIDERS[options.device]]
        )
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._loaded = self._open()
        except Exception as error:
            why = f"cannot be loaded: {type(error).__name__}: {error}"
            raise ConfigurationError(purpose, str(model), why) from error
        inputs = {node.name: node for node in self._loaded.get_inputs()}
        self._types = {name: node.type for name, node in inputs.items()}
        if "input_ids" not in inputs or not set(_INPUTS).issuperset(inputs):
            why = f"has the inputs {list(inputs)}; only {', '.join(_INPUTS)} can be given"
            raise ConfigurationError(purpose, str(model), why)
        # Sizes that the model was exported with; names stand for any size.
        rows, length = (n if isinstance(n, int) else None for n in inputs["input_ids"].shape)
        outputs = {node.name: len(node.shape) for node in self._loaded.get_outputs()}
        kind = kind_of(config)
        if kind != "token" and "logits" in outputs:  # an export may have left the classifier out
            kind = "token" if outputs["logits"] == 3 else "pair"
        elif kind != "token" and not outputs.keys().isdisjoint(_HIDDEN):
            kind = "embedding"
        wanted = _HIDDEN if kind == "embedding" else ("logits",)
        self._output = next((name for name in wanted if name in outputs), next(iter(outputs)))

        def read(name: str) -> dict[str, Any]:
            """Read a JSON file of the model's folder."""
            return read_json(folder / name, purpose)

        limit = read("tokenizer_config.json").get("model_max_length")
        described = model_config(
            config, kind, purpose, options, read=read, limit=limit, fixed=length
        )
        name = folder.resolve().name + ("" if file.stem == "model" else f"/{file.stem}")
        name += f"@{_digest(file, folder / 'tokenizer.json')[:12]}"
        super().__init__(name, described, tokenizer, purpose, options, (rows, length))

    def run(self, ids: Any, mask: Any, types: Any) -> Any:
        """Run the model on a batch; return its output as float32."""
        self._loaded = self._loaded or self._open()
        arrays = dict(zip(_INPUTS, (ids, mask, types), strict=True))
        fed = {
            name: arrays[name].astype(kind[len("tensor(") : -1])
            for name, kind in self._types.items()
        }
        return self._loaded.run([self._output], fed)[0].astype("float32")

    def forget_threads(self) -> None:
        """Drop the session after a fork, which has no threads in the child."""
        # Its threads are the parent's: its end would wait for them forever, so it is kept.
        _OF_PARENTS.append(self._loaded)
        self._loaded = None


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
    _backend = _OnnxModel


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
        path for path in file.parent.iterdir()
        if path.is_file() and path != file and path.name.startswith((file.name, f"{file.stem}."))
        and path.suffix != ".json"
    )  # fmt: skip
    digest = hashlib.sha256()
    for path in (file, *beside, tokenizer):
        with path.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()
