"""`OnnxJudge`: reads with local models in ONNX; the only module that loads onnxruntime."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

from rag_eval_integrations import _process
from rag_eval_integrations.errors import ConfigurationError, extra
from rag_eval_integrations.judges._local_model import LocalModel, Options, Purpose, usable
from rag_eval_integrations.judges._reader import ReaderJudge

_PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
}


class _OnnxModel(LocalModel, _process.ProcessObserver):
    def __init__(self, model: Any, purpose: Purpose, options: Options) -> None:
        with extra("onnx"):
            import onnxruntime  # noqa: PLC0415 -- heavy, and an extra
            import tokenizers  # noqa: PLC0415 -- an extra
        there = onnxruntime.get_available_providers()
        known = [name for name, provider in _PROVIDERS.items() if provider in there]
        if options["device"] not in known:
            why = f"this onnxruntime has {', '.join(known)}"
            raise ConfigurationError("device", options["device"], why)
        file, self._folder = _files(Path(model), purpose)
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        if options["threads"] is not None:
            settings.intra_op_num_threads = options["threads"]
        self._open = partial(
            onnxruntime.InferenceSession, str(file), settings, [_PROVIDERS[options["device"]]]
        )
        with usable(purpose, str(model), "loaded"):
            tokenizer = tokenizers.Tokenizer.from_file(str(self.find("tokenizer.json")))
            self._loaded = self._open()
        self._types = {node.name: node.type for node in self._loaded.get_inputs()}
        self._inputs = self._types.keys()
        self.choose_output([node.name for node in self._loaded.get_outputs()])
        # Sizes that the model was exported with; names stand for any size.
        self._shape = [
            n if isinstance(n, int) else None for n in self._loaded.get_inputs()[0].shape
        ]
        self.name = self._folder.resolve().name + ("" if file.stem == "model" else f"/{file.stem}")
        self.name += f"@{_digest(file, self.find('tokenizer.json'))[:12]}"
        super().__init__(tokenizer, purpose, options)
        _process.register(self)

    def find(self, name: str) -> Path:
        """Find a file in the model's folder."""
        return self._folder / name

    def run(self, inputs: Mapping[str, Any]) -> Any:
        """Run the model on a batch; return its output as float32."""
        self._loaded = self._loaded or self._open()
        fed = {
            name: array.astype(self._types[name][len("tensor(") : -1])
            for name, array in inputs.items()
        }
        return self._loaded.run([self._output], fed)[0].astype("float32")

    def after_fork(self) -> None:
        """Drop the session after a fork, which has no threads in the child."""
        _process.keep(self._loaded)
        self._loaded = None


class OnnxJudge(ReaderJudge):
    """Labels with a local model that reads, by onnxruntime; needs the extra `onnx`.

    Support is read by a classifier: of pairs (entailment, such as DeBERTa-NLI; one or two outputs,
    as models of hallucination have them) or of the response's tokens, as LettuceDetect. Each
    response sentence stands beside windows of the document sentences that match it best, and beside
    the best three alone, and has the highest probability of these. A sentence of up to five tokens
    is read behind the question.

    Relevance and utilization are read by a second model: a cross-encoder, or, of calls that are not
    in English, an encoder whose cosines become probabilities. Else they are the embedded judge's,
    in English only, and every score's `warnings` and `by.model` say so. Its P(adherent) is kept
    beside the model's, for `rag-eval calibrate` to mix. Nothing is downloaded.

    One object may be used from any number of tasks; a thread of its own reads one call after the
    other. Cancelling a call stops it between two batches; `aclose()` ends the thread.

    Args:
        model: a folder with `model.onnx` or `onnx/model.onnx`, `tokenizer.json` and `config.json`,
            or an `.onnx` file beside them. `config.json` names the outputs (`id2label`) and says
            what the model is (`architectures`).
        relevance: such a folder or file of a model for relevance; None for the embedded judge.
        labels: names of the outputs of `model` in order, such as `("supported", "hallucinated")`,
            where its config does not name them.
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
        device: `cpu`, `cuda`, `coreml` or `directml`, as far as onnxruntime has them.
        threads: threads of one model; None for onnxruntime's choice.

    Raises:
        MissingDependencyError: onnxruntime or tokenizers is not installed.
        ConfigurationError: a file that is missing or cannot be loaded, outputs whose meaning is not
            known or whose shape is another, or an option out of range; names it.
    """

    _library = "onnx"
    _model = _OnnxModel


def _files(path: Path, purpose: Purpose) -> tuple[Path, Path]:
    """Return the `.onnx` file, and the folder of the files that describe it."""
    files, folder, why = [path], path.absolute().parent, "no such folder or file"
    if path.is_dir():
        files, folder = [path / "model.onnx", path / "onnx" / "model.onnx"], path.absolute()
        why = "has neither model.onnx nor onnx/model.onnx"
    elif folder.name == "onnx":
        folder = folder.parent
    there = [file for file in files if file.is_file()]
    missing = [name for name in ("tokenizer.json", "config.json") if not (folder / name).is_file()]
    if there and path.suffix != ".onnx" and not path.is_dir():
        why = "use a folder, or a file that ends in .onnx"
    elif there and missing:
        why = f"has no {missing[0]}"
    elif there:
        return there[0], folder
    raise ConfigurationError(purpose, str(path), why)


def _digest(file: Path, tokenizer: Path) -> str:
    """Return the digest of a model's files; large weights stand in files beside it."""
    digest = hashlib.sha256()
    weights = [p for p in file.parent.glob(f"{escape(file.stem)}.*") if p.suffix != ".json"]
    for path in (*sorted(weights), tokenizer):
        with path.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()
