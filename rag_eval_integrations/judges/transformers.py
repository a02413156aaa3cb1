"""`TransformersJudge`: reads with models of Hugging Face's transformers, on torch.

The only module that loads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, extra
from rag_eval_integrations.judges._local_model import LocalModel, Options, Purpose, usable
from rag_eval_integrations.judges._reader import ReaderJudge

_HEADS = ("ForSequenceClassification", "ForTokenClassification", "")
"""Ends of the names of architectures, each with a class of its own that loads them."""


class _TorchModel(LocalModel):
    def __init__(self, model: Any, purpose: Purpose, options: Options) -> None:
        if options["threads"] is not None:
            why = "is for OnnxJudge; torch has its own"
            raise ConfigurationError("threads", options["threads"], why)
        with extra("transformers"):
            import torch  # noqa: PLC0415 -- heavy, and an extra
            import transformers  # noqa: PLC0415 -- heavy, and an extra
        self._torch: Any = torch
        self._cached_file = transformers.utils.cached_file
        self._source = None if isinstance(model, tuple) else str(model)
        if self._source is not None:
            model = _from_pretrained(transformers, self._source, purpose)
        loaded, tokenizer = model
        if not all(hasattr(loaded, name) for name in ("config", "state_dict")):
            kinds = ", ".join(type(part).__name__ for part in model)
            raise ConfigurationError(purpose, kinds, "use a tuple (model, tokenizer)")
        if not tokenizer.is_fast:
            raise ConfigurationError(purpose, self._source or "…", "needs a fast tokenizer")
        with usable("device", options["device"], "used by torch"):
            self._device = torch.device(options["device"])
            self._loaded = loaded.to(self._device).eval()
        known_as = getattr(loaded.config, "_name_or_path", "") or type(loaded).__name__
        name = self._source or str(known_as)
        if Path(name).is_absolute() or Path(name).exists():  # else a name of the hub
            name = Path(name).resolve().name
        self.name = f"{name}@{_digest(loaded, tokenizer.backend_tokenizer, torch)[:12]}"
        self._config, self._limit = loaded.config.to_dict(), tokenizer.model_max_length
        self._inputs = {"input_ids", "attention_mask", *tokenizer.model_input_names}
        super().__init__(tokenizer.backend_tokenizer, purpose, options)

    def find(self, name: str) -> str | None:
        """Find a file in the model's folder or on the hub."""
        return self._source and self._cached_file(
            self._source,
            name,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )

    def run(self, inputs: Mapping[str, Any]) -> Any:
        """Run the model on a batch; return its output as float32."""
        tensor = partial(self._torch.tensor, device=self._device)
        with self._torch.inference_mode():
            out = self._loaded(**{name: tensor(array) for name, array in inputs.items()})
        self.choose_output(list(out))
        return out[self._output].float().cpu().numpy()


def _from_pretrained(transformers: Any, name: str, purpose: Purpose) -> tuple[Any, Any]:
    """Load model and tokenizer by name; an error names the argument."""
    local = Path(name).is_dir()  # a folder is never looked up
    with usable(purpose, name, "loaded"):
        config = transformers.AutoConfig.from_pretrained(name, local_files_only=local)
        [architecture, *_] = config.architectures or [""]
        head = next(head for head in _HEADS if architecture.endswith(head))
        loader = getattr(transformers, f"AutoModel{head}")
        model = loader.from_pretrained(name, local_files_only=local)
        return model, transformers.AutoTokenizer.from_pretrained(name, local_files_only=local)


class TransformersJudge(ReaderJudge):
    """Labels with a local model that reads, by transformers and torch; extra `transformers`.

    It does what `OnnxJudge` does, with models as transformers loads them.

    Args:
        model: a folder; the name of a model of the hub, which is downloaded unless it is in the
            cache (`HF_HUB_OFFLINE=1` forbids that); or a tuple of a model and its tokenizer.
        relevance: the same of a model for relevance; None for the embedded judge.
        device: a device of torch, such as `cuda:0` or `mps`. Models that are given as objects are
            moved there.
        labels, template, threshold, max_length, max_windows: as in `OnnxJudge`.
        max_pairs, batch_size, pooling: as in `OnnxJudge`.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        ConfigurationError: a model that cannot be loaded, outputs whose meaning is not known or
            whose shape is another, or an option out of range; names it.
    """

    _library = "transformers"
    _model = _TorchModel


def _digest(model: Any, tokenizer: Any, torch: Any) -> str:
    """Return the digest of weights, config and tokenizer, whatever they were loaded from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        digest.update(memoryview(flat.view(torch.uint8).numpy()))
    config = {key: value for key, value in model.config.to_dict().items() if key[:1] != "_"}
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    digest.update(LocalModel.plain_copy(tokenizer).to_str().encode())
    return digest.hexdigest()
