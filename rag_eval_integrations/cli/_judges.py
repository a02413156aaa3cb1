"""The judge that a command's `--judge` names, and what is told when its endpoint cannot be used."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from rag_eval_integrations.cli._options import text_of
from rag_eval_integrations.cli._terminal import print_stderr
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRejectedError,
    JudgeUnavailableError,
)
from rag_eval_integrations.judges import Judge, LLMJudge, judge_from
from rag_eval_integrations.judges._named import asks_endpoint, named_judge
from rag_eval_integrations.models import CachedModel, Model
from rag_eval_integrations.models.completion import Completion, CompletionRequest, WrappedModel


def judge_of(
    judge: str | None,
    requests: Mapping[str, Any],
    wording: Mapping[str, str | None],
    watched: list[WatchedModel] | None = None,
    **more: object,
) -> Judge | Model:
    """Make the judge that `--judge` names; FORMS lists the forms.

    Args:
        judge: the option's value.
        requests: the options of every `openai:MODEL` in it, by arguments of `judge_from`; and
            `cache`, a file for its answers.
        wording: the options about its prompt, by arguments of `LLMJudge`.
        watched: receives each such model, which then tells at once when it cannot be used.
        **more: arguments of `judge_from` beside the options, or in place of them.

    Raises:
        ConfigurationError: for a judge that does not exist, naming what was looked for; for an
            option that such a judge does not have: a limit that is not kept is worse than none.
    """
    name = judge or "embedded"
    llm_arguments: dict[str, Any] = {
        field: text for field, text in wording.items() if text is not None
    }
    if "instructions" in llm_arguments:
        llm_arguments["instructions"] = text_of(llm_arguments["instructions"], "--instructions")

    def endpoint(name: str) -> Judge | Model:
        """Make the model of an endpoint, watched and cached as the options say.

        With options about the prompt, it is a judge.
        """
        arguments: dict[str, Any] = {**requests, **more}
        cache = arguments.pop("cache", None)
        model = cast(Model, judge_from(name, **arguments))
        if watched is not None:
            model = WatchedModel(model)
            watched.append(model)
        if cache is not None:
            model = CachedModel(model, cache)
        return LLMJudge(model, **llm_arguments) if llm_arguments else model

    labeller = named_judge(name, "--judge", endpoint)
    for field, value in {**requests, **wording}.items():
        if value is not None and not asks_endpoint(name):
            option = f"--{field.replace('_', '-')}"
            raise ConfigurationError(option, value, f"is for openai:MODEL, not for judge {name!r}")
    return labeller


def key_for(*, dry_run: bool) -> dict[str, str]:
    """Return a placeholder `api_key` for a dry run without a key; else no arguments."""
    return {"api_key": "none"} if dry_run and not os.environ.get("OPENAI_API_KEY") else {}


_REFUSED = (401, 403, 404)
"""Statuses that concern the key, the URL or the model's name, and so every request."""
_FIRST = 3
"""Requests refused so, and none answered, after which no more are sent. A 403 may concern one
request: a gateway's filter answers so."""


class WatchedModel(WrappedModel):
    """Model that a command no longer asks once no request can succeed.

    That is without a connection, or with a wrong key, URL or name: the first such failure is shown.
    If the model has never answered, further requests fail at once, with the same error.

    Args:
        model: the model, with its retries.
        tell: shows a line to the user.
    """

    retries = True

    def __init__(self, model: Model, tell: Callable[[str], None] = print_stderr) -> None:
        super().__init__(model)
        self.unusable: JudgeError | None = None
        """Why the model is not asked any more; None while it is."""
        self._tell = tell
        self._answered = False
        self._refused = 0

    async def complete(self, request: CompletionRequest) -> Completion:
        """Ask the model, unless it has turned out to be unusable.

        Raises:
            JudgeError: whatever the model raises; the error that ended it once it is unusable.
        """
        if self.unusable is not None:
            raise _copy(self.unusable)
        try:
            completion = await super().complete(request)
        except JudgeError as error:
            self._note_failure(error)
            raise
        self._answered = True
        return completion

    def _note_failure(self, error: JudgeError) -> None:
        """Note a failed request; mark the model as unusable if no further one can succeed.

        That is at once if no connection can be made, and after a few refusals (wrong key, unknown
        model), unless it has answered before.
        """
        unreachable = isinstance(error, JudgeUnavailableError) and not error.connected
        refused = isinstance(error, JudgeRejectedError) and error.status in _REFUSED
        if not (unreachable or refused):
            # It answered something else, so the next request may fare better.
            self._answered = self._answered or isinstance(error, JudgeRejectedError)
            return
        if self._answered or self.unusable is not None:
            return
        if not self._refused:
            self._tell(f"{self.name}: {error}")
        self._refused += 1
        if unreachable or self._refused >= _FIRST:
            self.unusable = error

    @property
    def never_answered(self) -> bool:
        """Whether it refused every request so far, even if it is not marked as unusable yet."""
        return self._refused > 0 and not self._answered


def _copy(error: JudgeError) -> JudgeError:
    """Return a new error of the same type and message."""
    # One exception raised in many tasks would collect the tracebacks of all.
    if isinstance(error, JudgeRejectedError):
        return JudgeRejectedError(str(error), status=error.status)
    return JudgeUnavailableError(str(error), connected=False)
