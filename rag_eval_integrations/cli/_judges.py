"""The judge that a command's `--judge` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_eval_integrations.cli._watched import WatchedModel
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.judges._named import named_judge
from rag_eval_integrations.judges.judge import asks_endpoint
from rag_eval_integrations.models import Model

if TYPE_CHECKING:
    from pydantic import JsonValue

    from rag_eval_integrations.models.throttling import Waiting


@dataclass(frozen=True)
class Limits:
    """Options of the judges that are endpoints: `openai:MODEL`, alone or in a cascade."""

    base_url: str | None = None
    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int | None = None
    cache: Path | None = None
    on_wait: Callable[[Waiting], None] | None = None
    timeout: float | None = None
    max_tokens: int | None = None
    extra_body: Mapping[str, JsonValue] | None = None
    api_key: str | None = None
    deadline: float | None = None
    on_watched: Callable[[WatchedModel], None] | None = None
    """Receives each model, which then tells at once when it cannot be used."""

    def model(self, name: str) -> Judge | Model:
        """Make the model of `openai:MODEL`."""
        model = judge_from(
            name, base_url=self.base_url, rpm=self.rpm, tpm=self.tpm,
            max_concurrency=self.max_concurrency, on_wait=self.on_wait, api_key=self.api_key,
            timeout=self.timeout, max_tokens=self.max_tokens, extra_body=self.extra_body,
            deadline=self.deadline,
        )  # fmt: skip
        if self.on_watched is not None and isinstance(model, Model):
            model = WatchedModel(model)
            self.on_watched(model)
        if self.cache is None or not isinstance(model, Model):
            return model
        from rag_eval_integrations.models import CachedModel  # noqa: PLC0415  # SQLite, if wanted

        return CachedModel(model, self.cache)


def judge_of(name: str, limits: Limits) -> Judge | Model:
    """Make the judge that `--judge` names; FORMS lists the forms.

    Args:
        name: the option's value.
        limits: endpoint and limits of every `openai:MODEL` in it.

    Raises:
        ConfigurationError: for a judge that does not exist, naming what was looked for.
    """
    found = named_judge(name, "--judge", limits.model)
    if not asks_endpoint(name):
        _refuse(limits, name)
    return found


def _refuse(limits: Limits, name: str) -> None:
    """Refuse the user's options for endpoints: a limit that is not kept is worse than none."""
    for field in ("base_url", "rpm", "tpm", "cache", "timeout", "max_tokens", "extra_body"):
        value = getattr(limits, field)
        if value is not None:
            option = f"--{field.replace('_', '-')}"
            raise ConfigurationError(option, value, f"is for openai:MODEL, not for judge {name!r}")
