"""`TransformersJudge`: reads with models of Hugging Face's transformers, on torch.

The only module that loads them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.judges._reader._backend import Backend, Encoded, Pair
from rag_eval_integrations.judges._reader._config import Pooling, Purpose, model_config, read_json
from rag_eval_integrations.judges._reader._judge import ReaderJudge

_CLASSES = {
    "pair": "AutoModelForSequenceClassification",
    "token": "AutoModelForTokenClassification",
}


class TransformersJudge(ReaderJudge):
    """Labels with a local model that reads, by transformers and torch; extra `transformers`.

    It does what `OnnxJudge` does, with models as transformers loads them.

    Args:
        model: a folder; the name of a model of the hub, which is downloaded unless it is in the
            cache (`HF_HUB_OFFLINE=1` forbids that); or a tuple of a model and its tokenizer.
        relevance: the same of a model for relevance; None for the embedded judge.
        device: a device of torch, such as `cuda:0` or `mps`. Models that are given as objects are
            moved there.
        labels, relevance_labels, template, threshold, max_length, max_windows, max_pairs,
            batch_size, pooling, relevance_line, utilized_line: as in `OnnxJudge`.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        ConfigurationError: a model that cannot be loaded, outputs whose meaning is not known or
            whose shape is another, or an option out of range; names it.
    """

    _library = "transformers"

    def _runtime(self, device: str, batch_size: int, threads: int | None) -> object:
        if threads is not None:
            raise ConfigurationError("threads", threads, "is for OnnxJudge; torch has its own")
        return _Torch(device, batch_size)


class _Torch:
    """Loads models for one device."""

    def __init__(self, device: str, batch_size: int) -> None:
        try:
            import torch  # noqa: PLC0415 -- heavy, and an extra
        except ImportError as error:
            raise MissingDependencyError("torch", "transformers") from error
        try:
            import transformers  # noqa: PLC0415 -- heavy, and an extra
        except ImportError as error:
            raise MissingDependencyError("transformers", "transformers") from error
        self.torch: Any = torch
        self._transformers: Any = transformers
        self._batch_size = batch_size
        try:
            self.device = torch.device(device)
            torch.zeros(1, device=self.device)
        except Exception as error:
            why = f"torch cannot use it: {str(error).splitlines()[0]}"
            raise ConfigurationError("device", device, why) from error

    def load(
        self, model: Any, purpose: Purpose, length: int | None, pooling: Pooling | None
    ) -> Backend:
        source = None if isinstance(model, tuple) else str(model)
        loaded, tokenizer = model if source is None else self._from_pretrained(source, purpose)
        if not all(hasattr(loaded, name) for name in ("config", "state_dict")):
            kinds = ", ".join(type(one).__name__ for one in model)
            raise ConfigurationError(purpose, kinds, "use a tuple (model, tokenizer)")
        if not tokenizer.is_fast:
            raise ConfigurationError(purpose, source or "…", "needs a fast tokenizer")
        config = loaded.config.to_dict()
        if source is None or not config.get("architectures"):
            config["architectures"] = [type(loaded).__name__]
        described = model_config(
            config,
            purpose,
            tokenizer={"model_max_length": tokenizer.model_max_length},
            sentence=self._file(source, "sentence_bert_config.json", purpose),
            pooling=self._file(source, "1_Pooling/config.json", purpose),
            asked_length=length,
            asked_pooling=pooling,
        )
        try:
            loaded = loaded.to(self.device).eval()
        except Exception as error:
            raise ConfigurationError("device", str(self.device), f"{error}") from error
        name = source or str(getattr(loaded.config, "_name_or_path", "") or type(loaded).__name__)
        if Path(name).is_absolute() or Path(name).exists():  # else a name of the hub
            name = Path(name).resolve().name
        name = f"{name}@{_digest(loaded, tokenizer, self.torch)[:12]}"
        backend = _TorchBackend(name, described, self._batch_size)
        backend.start(loaded, tokenizer, self)
        return backend

    def _from_pretrained(self, name: str, purpose: Purpose) -> tuple[Any, Any]:
        auto = self._transformers
        options = {"local_files_only": Path(name).is_dir()}  # a folder is never looked up
        try:
            config = auto.AutoConfig.from_pretrained(name, **options)
            kind = model_config(
                config.to_dict(), purpose, tokenizer={}, sentence={}, pooling={},
                asked_length=None, asked_pooling=None,
            ).kind  # fmt: skip
            loader = getattr(auto, _CLASSES.get(kind or "", "AutoModel"))
            model = loader.from_pretrained(name, **options)
            return model, auto.AutoTokenizer.from_pretrained(name, **options)
        except ConfigurationError:
            raise
        except Exception as error:
            said = str(error).strip().splitlines() or [""]
            why = f"cannot be loaded: {type(error).__name__}: {said[0]}"
            raise ConfigurationError(purpose, name, why) from error

    def _file(self, source: str | None, name: str, purpose: Purpose) -> dict[str, Any]:
        if source is None:
            return {}
        if Path(source).is_dir():
            return read_json(Path(source) / name, purpose)
        file = self._transformers.utils.cached_file(
            source, name, _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )  # fmt: skip
        return {} if file is None else read_json(Path(file), purpose)


class _TorchBackend(Backend):
    def start(self, model: Any, tokenizer: Any, runtime: _Torch) -> None:
        """Take up what was loaded."""
        self._model, self._tokenizer, self._runtime = model, tokenizer, runtime
        self._has_types = "token_type_ids" in tokenizer.model_input_names

    def encode(self, pairs: Sequence[Pair], *, special: bool = True) -> list[Encoded]:
        encoded = self._tokenizer(
            [first for first, _ in pairs],
            None if not pairs or pairs[0][1] is None else [second for _, second in pairs],
            add_special_tokens=special,
            truncation="longest_first" if special else False,
            max_length=self.config.max_length if special else None,
            return_token_type_ids=self._has_types,
            return_offsets_mapping=True,
            verbose=False,
        )
        return [
            Encoded(
                ids,
                encoded["token_type_ids"][number] if self._has_types else [0] * len(ids),
                [part == 1 for part in encoded.sequence_ids(number)],
                encoded["offset_mapping"][number],
            )
            for number, ids in enumerate(encoded["input_ids"])
        ]

    def special_tokens(self) -> Sequence[str]:
        tokens: list[str] = self._tokenizer.all_special_tokens
        return tokens

    def run(self, ids: Any, mask: Any, types: Any) -> Any:
        torch = self._runtime.torch
        given = {"input_ids": ids, "attention_mask": mask}
        if self._has_types:
            given["token_type_ids"] = types
        with torch.inference_mode():
            out = self._model(
                **{name: torch.tensor(x, device=self._runtime.device) for name, x in given.items()}
            )
        return (out.logits if self.reading else out.last_hidden_state).float().cpu().numpy()

    def close(self) -> None:
        self._model = None


def _digest(model: Any, tokenizer: Any, torch: Any) -> str:
    """Return the digest of weights, config and tokenizer, whatever they were loaded from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        digest.update(memoryview(flat.view(torch.uint8).numpy()))
    config = {key: value for key, value in model.config.to_dict().items() if key[:1] != "_"}
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    # Using it leaves the last length and padding in it: they are not what it is.
    plain = tokenizer.backend_tokenizer
    plain = type(plain).from_str(plain.to_str())
    plain.no_padding()
    plain.no_truncation()
    digest.update(plain.to_str().encode())
    return digest.hexdigest()
