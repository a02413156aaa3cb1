"""`LLMJudge`: asks a model for the labels that all four TRACe scores are computed from.

One request labels a call. A call that is too long is cut into windows, one request each, and their
labels are joined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from rag_eval_integrations.errors import ConfigurationError, JudgeOutputError
from rag_eval_integrations.judges import _prompt as prompt
from rag_eval_integrations.judges._parse import NullListError, parse_labels, parse_support
from rag_eval_integrations.judges._reconcile import (
    only_unknown_keys,
    reconcile,
    without_empty_entries,
)
from rag_eval_integrations.judges._windows import Window, join, windows
from rag_eval_integrations.judges.judge import JudgeBase
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Message,
    Model,
    ModelBase,
    completed,
    model_base,
)
from rag_eval_integrations.records import (
    JsonObject,
    JudgeInfo,
    Labelling,
    Labels,
    Sentences,
    SentencizedCall,
    UnscoredCode,
    Usage,
)

T = TypeVar("T")

_TOKENS_PER_ANSWER = 500
_TOKENS_PER_SENTENCE = 120
"""Room for an entry of the support list: RAGBench's explanations have a median of 40 tokens."""
_TOKENS_PER_KEY = 8
_MOST_TOKENS = 16_000
_LAST_STEPS = 1.0
"""Seconds that cancelled requests may take to end."""
_DEEPEST = 4
"""How often a window may be halved because its answer is cut off."""
_MOST_SHOWN = 100_000
"""Characters of a reply that is sent back; one of `_MOST_TOKENS` is shorter."""


class LLMJudge(JudgeBase):
    """Labels calls with a model.

    One request per call covers relevance, utilization, completeness and adherence. A call longer
    than `window_characters` takes one request per window. An answer that is cut off is requested
    again with more tokens, then in halves; an answer that is not the requested JSON is requested
    once more, and so are response sentences that are missing from it. Labels that are missing
    after that leave their scores unscored, with a reason.

    Args:
        model: the model to ask.
        window_characters: most characters of sentences in one request, from 1.
        max_windows: most windows of a call, from 1; a call with more is unscored (`over_budget`).
        temperature: 0 for reproducible answers; None leaves it to the model.

    Raises:
        ConfigurationError: for sizes below 1 or an object that is not a model.
    """

    def __init__(
        self,
        model: Model,
        *,
        window_characters: int = 60_000,
        max_windows: int = 64,
        temperature: float | None = 0.0,
    ) -> None:
        if not isinstance(model, Model):
            raise ConfigurationError("model", model, "needs a `name` and `async complete(request)`")
        for field, value in (
            ("window_characters", window_characters),
            ("max_windows", max_windows),
        ):
            if value < 1:
                raise ConfigurationError(field, value, "use a number from 1")
        self.model: ModelBase = model_base(model)
        self.name = self.model.name
        own = self.model.version
        self.version = f"{prompt.PROMPT_VERSION}/{own}" if own else prompt.PROMPT_VERSION
        self.max_concurrency = self.model.max_concurrency
        self._characters = window_characters
        self._max_windows = max_windows
        self._temperature = temperature
        # Reconciled with the call already, unless a subclass labels in its own way.
        self.keeps_keys = type(self).label is LLMJudge.label

    def estimate(self, call: SentencizedCall) -> Usage:
        """Estimate the usage of labelling a call, if no answer has to be requested again.

        Tokens of the prompts are characters / 4; tokens of the answers are not known.
        """
        parts = windows(call.documents, call.response, self._characters)
        if len(parts) > self._max_windows:
            return Usage()
        question, sources = call.call.question, call.call.documents
        characters = sum(
            len(message.content)
            for part in parts
            for message in prompt.messages(
                question,
                part.documents,
                part.response,
                prompt.headers_of(sources, part.documents),
            )
        )
        return Usage(requests=len(parts), prompt_tokens=characters // 4)

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call.

        Raises:
            JudgeError: the model does not answer.
        """
        parts = windows(call.documents, call.response, self._characters)
        asking = _Asking(self.model, call, self._temperature)
        if len(parts) > self._max_windows:
            reason = f"the call would take {len(parts)} requests, more than {self._max_windows}"
            return asking.labelling(None, unscored=("over_budget", reason), windows=1)
        try:
            found = await _all_of([asking.window(part) for part in parts])
        except _UnscoredError as error:
            return asking.labelling(None, unscored=(error.code, str(error)), windows=len(parts))
        except JudgeOutputError as error:  # the model's server could not read its output, twice
            unscored: tuple[UnscoredCode, str] = ("judge_output_invalid", str(error))
            return asking.labelling(None, unscored=unscored, windows=len(parts))
        every = [labels for part in found for labels in part]
        # Those of a window that is the whole call are reconciled with it already.
        labels = every[0] if len(every) == 1 else reconcile(join(every), call)
        return asking.labelling(labels, windows=len(every))


async def _all_of(asking: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all, in order; the first that fails ends the others, whose answers nobody would use.

    Raises:
        Exception: what the first one raised.
    """
    if len(asking) == 1:
        return [await asking[0]]  # without a task of its own
    tasks = [asyncio.ensure_future(one) for one in asking]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        # Their places in a queue should be free when this raises; one may ignore its cancellation.
        await asyncio.wait(tasks, timeout=_LAST_STEPS)


class _UnscoredError(Exception):
    """The model answered, but there is nothing to score."""

    def __init__(self, code: UnscoredCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Asking:
    """The requests of one call, with their usage and warnings."""

    def __init__(self, model: ModelBase, call: SentencizedCall, temperature: float | None) -> None:
        self._model = model
        self._call = call
        self._question = call.call.question
        self._sources = call.call.documents
        self._version = prompt.version_of(self._sources)
        self._temperature = temperature
        self._usage = Usage(requests=0)
        self._warnings: dict[str, None] = {}
        self._answered_by = model.model

    def labelling(
        self,
        labels: Labels | None,
        *,
        windows: int,
        unscored: tuple[UnscoredCode, str] | None = None,
    ) -> Labelling:
        """Return the result of all requests."""
        if labels is not None and windows > 1:
            self._warnings[
                f"labelled in {windows} windows: support that needs sentences from several windows "
                "is not found"
            ] = None
        code, reason = unscored or (None, None)
        return Labelling(
            labels=labels,
            judge=JudgeInfo(
                name=self._model.name, model=self._answered_by, version=self._model.version
            ),
            usage=self._usage,
            windows=windows,
            warnings=tuple(self._warnings),
            unscored=code,
            reason=reason,
            prompt_version=self._version,
        )

    async def window(self, window: Window, depth: int = 0) -> list[Labels]:
        """Label one window; several results when it had to be halved."""
        headers = prompt.headers_of(self._sources, window.documents)
        asked = prompt.messages(self._question, window.documents, window.response, headers)
        room = _room(window)
        completion = await self._complete(asked, prompt.LABELS_SCHEMA, room)
        if completion.finish_reason == "length":
            completion = await self._complete(asked, prompt.LABELS_SCHEMA, 4 * room)
        if completion.finish_reason == "length":
            halves = window.halves() if depth < _DEEPEST else None
            if halves is None:
                raise _UnscoredError(
                    "truncated", "the judge's answer was cut off, even in small windows"
                )
            found = await _all_of([self.window(half, depth + 1) for half in halves])
            return [labels for part in found for labels in part]
        whole = _as_call(self._call, window)
        read = await self._parsed(asked, completion, room, whole)
        return [await self._complete_entries(asked, read, whole)]

    async def _parsed(
        self, asked: tuple[Message, ...], completion: Completion, room: int, whole: SentencizedCall
    ) -> _Read:
        """Read the labels of the reply, or of a second one."""
        try:
            return _labels_in(completion.text, whole)
        except NullListError:
            why = prompt.NULL_LIST
        except _UnknownKeysError:
            why = prompt.UNKNOWN_KEYS
        except JudgeOutputError:
            why = prompt.NOT_JSON
        asked = prompt.again(asked, completion.text, why)
        second = await self._complete(asked, prompt.LABELS_SCHEMA, 2 * room)
        try:
            return _labels_in(second.text, whole)
        except JudgeOutputError as error:
            if second.finish_reason == "length":
                why = f"the judge's second answer was cut off, and its first was no better: {error}"
                raise _UnscoredError("truncated", why) from error
            raise _UnscoredError("judge_output_invalid", f"{error}, twice") from error

    async def _complete_entries(
        self, asked: tuple[Message, ...], read: _Read, whole: SentencizedCall
    ) -> Labels:
        """Return the labels checked against the window; ask once for missing response sentences."""
        said = without_empty_entries(read.written, whole)
        labels = read.checked if said is read.written else reconcile(said, whole)
        if not labels.missing_keys:
            return labels
        missing = labels.missing_keys
        asked = (*asked, Message(role="assistant", content=read.reply[:_MOST_SHOWN]))
        room = _TOKENS_PER_ANSWER + _TOKENS_PER_SENTENCE * len(missing)
        try:
            completion = await self._complete(
                prompt.missing(asked, missing), prompt.REPAIR_SCHEMA, room
            )
            found = parse_support(completion.text)
        except (JudgeOutputError, _UnscoredError):
            # Asked once only: sentences that are still missing stay unlabelled, as the scores say.
            return labels
        second = without_empty_entries(
            labels.model_copy(update={"sentence_support_information": found}), whole
        )
        entries = (*labels.sentence_support_information, *second.sentence_support_information)
        return reconcile(second.model_copy(update={"sentence_support_information": entries}), whole)

    async def _complete(
        self, asked: Sequence[Message], schema: JsonObject, room: int
    ) -> Completion:
        request = CompletionRequest(
            messages=tuple(asked),
            json_schema=schema,
            schema_name="labels",
            temperature=self._temperature,
            max_tokens=min(room, _MOST_TOKENS),
            prompt_version=self._version,
        )
        try:
            completion = await completed(self._model, request)
        except JudgeOutputError as error:
            self._usage += error.usage or Usage()
            raise
        self._usage += completion.usage
        self._answered_by = completion.model or self._answered_by
        self._warnings |= dict.fromkeys(completion.warnings)
        choice = completion.choices[0]
        if choice.finish_reason == "refusal" or choice.refusal:
            raise _UnscoredError("refusal", f"the judge refused: {(choice.refusal or '')[:200]}")
        if choice.finish_reason == "content_filter":
            raise _UnscoredError("content_filter", "the judge's content filter stopped the answer")
        return completion


class _UnknownKeysError(JudgeOutputError):
    """A reply with a list that names sentences of which none exists."""


class _Read(NamedTuple):
    """The labels of a window in a reply."""

    written: Labels
    """As they are written."""
    checked: Labels
    """Reconciled with the window."""
    reply: str


def _labels_in(text: str, whole: SentencizedCall) -> _Read:
    """Read a reply as labels of a window.

    Raises:
        JudgeOutputError: it does not hold labels, or not of sentences of the window.
    """
    labels = parse_labels(text)
    checked = reconcile(labels, whole)
    why = only_unknown_keys(labels, checked)
    if why is not None:
        raise _UnknownKeysError(why, text)
    return _Read(labels, checked, text)


def _room(window: Window) -> int:
    return (
        _TOKENS_PER_ANSWER
        + _TOKENS_PER_SENTENCE * len(window.response)
        + 2 * _TOKENS_PER_KEY * len(window.documents)
    )


def _as_call(call: SentencizedCall, window: Window) -> SentencizedCall:
    """Return the call of a window's sentences alone: the call itself if they are all of it."""
    if window == (call.documents, call.response):
        return call
    sentences = Sentences(documents=window.documents, response=window.response)
    return SentencizedCall(call=call.call, sentences=sentences, splitter="window")
