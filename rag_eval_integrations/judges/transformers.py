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
from rag_eval_integrations.judges._reader._backend import Backend, Batch, Encoded, Pair
from rag_eval_integrations.judges._reader._config import (
    ModelConfig,
    Pooling,
    Purpose,
    model_config,
    read_json,
)
from rag_eval_integrations.judges._reader._judge import ReaderJudge, check_relevance
from rag_eval_integrations.judges._reader._relevance import RELEVANT, UTILIZED
from rag_eval_integrations.judges._reader._support import Options

Loaded = tuple[Any, Any]
"""A model and its tokenizer, as transformers loads them."""

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

    def __init__(
        self,
        model: str | Path | Loaded,
        *,
        relevance: str | Path | Loaded | None = None,
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
    ) -> None:
        made_of: dict[str, object] = {
            "model": _found_anywhere(model), "relevance": _found_anywhere(relevance),
            "labels": labels, "relevance_labels": relevance_labels, "template": template,
            "threshold": threshold, "max_length": max_length, "max_windows": max_windows,
            "max_pairs": max_pairs, "batch_size": batch_size, "pooling": pooling,
            "relevance_line": relevance_line, "utilized_line": utilized_line, "device": device,
        }  # fmt: skip
        options = Options(threshold, max_windows, max_pairs, template)
        options.check()
        lines = (relevance_line, utilized_line)
        check_relevance(relevance, relevance_labels, pooling, lines)
        if type(batch_size) is not int or batch_size < 1:
            raise ConfigurationError("batch_size", batch_size, "use a whole number from 1")
        torch = _Torch(device, batch_size)
        support = torch.load(model, "model", labels, max_length, None)
        second = None
        if relevance is not None:
            second = torch.load(relevance, "relevance", relevance_labels, None, pooling)
        super().__init__("transformers", support, second, options, lines, made_of)


def _found_anywhere(model: str | Path | Loaded | None) -> str | Path | Loaded | None:
    """Make a folder's path absolute, for a process in another folder; a hub's name stays."""
    is_folder = isinstance(model, str | Path) and Path(model).is_dir()
    return Path(model).absolute() if is_folder else model  # type: ignore[arg-type]  # as told


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
        self,
        given: str | Path | Loaded,
        purpose: Purpose,
        labels: Sequence[str] | None,
        max_length: int | None,
        pooling: Pooling | None,
    ) -> Backend:
        source = None if isinstance(given, tuple) else str(given)
        if isinstance(given, tuple):
            if not all(hasattr(given[0], name) for name in ("config", "state_dict")):
                kinds = ", ".join(type(one).__name__ for one in given)
                raise ConfigurationError(purpose, kinds, "use a tuple (model, tokenizer)")
            model, tokenizer = given
        else:
            model, tokenizer = self._from_pretrained(str(given), purpose)
        config = model.config.to_dict()
        if isinstance(given, tuple) or not config.get("architectures"):
            config["architectures"] = [type(model).__name__]
        described = model_config(
            config,
            purpose,
            tokenizer={"model_max_length": tokenizer.model_max_length},
            sentence=self._file(source, "sentence_bert_config.json", purpose),
            pooling=self._file(source, "1_Pooling/config.json", purpose),
            asked_length=max_length,
            asked_pooling=pooling,
        )
        try:
            model = model.to(self.device).eval()
        except Exception as error:
            raise ConfigurationError("device", str(self.device), f"{error}") from error
        digest = _digest(model, tokenizer, self.torch)
        name = source or str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
        backend = _TorchBackend(
            f"{_last(name)}@{digest[:12]}", described, self._batch_size, model, tokenizer, self
        )
        backend.prepare(purpose, labels)
        return backend

    def _from_pretrained(self, name: str, purpose: Purpose) -> Loaded:
        auto = self._transformers
        folder = Path(name).is_dir()  # a folder is never looked up on the hub
        try:
            config = auto.AutoConfig.from_pretrained(name, local_files_only=folder)
            kind = model_config(
                config.to_dict(), purpose, tokenizer={}, sentence={}, pooling={},
                asked_length=None, asked_pooling=None,
            ).kind  # fmt: skip
            loader = getattr(auto, _CLASSES.get(kind or "", "AutoModel"))
            return (
                loader.from_pretrained(name, local_files_only=folder),
                auto.AutoTokenizer.from_pretrained(name, local_files_only=folder),
            )
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
        found = self._transformers.utils.cached_file(
            source, name, _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )  # fmt: skip
        return {} if found is None else read_json(Path(found), purpose)


class _TorchBackend(Backend):
    def __init__(
        self, name: str, config: ModelConfig, batch_size: int, model: Any, tokenizer: Any,
        torch: _Torch,
    ) -> None:  # fmt: skip
        super().__init__(name, config, batch_size)
        self._model = model
        self._tokenizer = tokenizer
        self._torch = torch
        self._has_types = "token_type_ids" in tokenizer.model_input_names
        if config.kind == "token" and not tokenizer.is_fast:
            raise ConfigurationError("model", name, "a classifier of tokens needs a fast tokenizer")

    def encode(self, pairs: Sequence[Pair], *, special: bool = True) -> list[Encoded]:
        first = [one for one, _ in pairs]
        second = None if not pairs or pairs[0][1] is None else [two for _, two in pairs]
        fast = self._tokenizer.is_fast
        found = self._tokenizer(
            first,
            second,
            add_special_tokens=special,
            truncation="longest_first" if special else False,
            max_length=self.config.max_length if special else None,
            return_token_type_ids=self._has_types,
            return_offsets_mapping=fast,
            verbose=False,
        )
        encoded = []
        for number, ids in enumerate(found["input_ids"]):
            parts = found.sequence_ids(number) if fast else [0] * len(ids)
            encoded.append(
                Encoded(
                    ids,
                    found["token_type_ids"][number] if self._has_types else [0] * len(ids),
                    [part == 1 for part in parts],
                    found["offset_mapping"][number] if fast else [],
                )
            )
        return encoded

    def special_tokens(self) -> Sequence[str]:
        found: list[str] = self._tokenizer.all_special_tokens
        return found

    def forward(self, batch: Batch) -> list[object]:
        found: list[object] = self._run(batch).logits.float().cpu().tolist()
        return found

    def pool(self, batch: Batch, pooling: Pooling) -> list[list[float]]:
        hidden = self._run(batch).last_hidden_state.float()
        if pooling == "cls":
            hidden = hidden[:, 0]
        else:
            mask = self._torch.torch.tensor(batch.mask, device=hidden.device)[:, :, None].float()
            hidden = (hidden * mask).sum(dim=1) / mask.sum(dim=1)
        found: list[list[float]] = hidden.cpu().tolist()
        return found

    def _run(self, batch: Batch) -> Any:
        torch, device = self._torch.torch, self._torch.device
        given = {
            "input_ids": torch.tensor(batch.ids, device=device),
            "attention_mask": torch.tensor(batch.mask, device=device),
        }
        if self._has_types:
            given["token_type_ids"] = torch.tensor(batch.types, device=device)
        with torch.inference_mode():
            return self._model(**given)

    def close(self) -> None:
        self._model = None


def _last(name: str) -> str:
    """Return a hub name as it is, and of a folder only its last part."""
    path = Path(name)
    return path.resolve().name if path.is_absolute() or path.exists() else name


def _digest(model: Any, tokenizer: Any, torch: Any) -> str:
    """Return the digest of weights, config and tokenizer, whatever they were loaded from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        digest.update(memoryview(flat.view(torch.uint8).numpy()))
    config = {key: value for key, value in model.config.to_dict().items() if key[:1] != "_"}
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    if tokenizer.is_fast:
        # Using it leaves the last length and padding in it: they are not what it is.
        plain = tokenizer.backend_tokenizer
        plain = type(plain).from_str(plain.to_str())
        plain.no_padding()
        plain.no_truncation()
        digest.update(plain.to_str().encode())
    else:
        digest.update(json.dumps(tokenizer.get_vocab(), sort_keys=True).encode())
    return digest.hexdigest()
