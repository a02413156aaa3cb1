"""`LLMJudge`: asks a model for the labels that all four TRACe scores are computed from.

One request labels a call. A call that is too long is cut into windows, one request each, and their
labels are joined.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from math import inf
from typing import Any, NamedTuple, TypeVar, get_args

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import (
    ConfigurationError,
    JudgeError,
    JudgeOutputError,
    whole_number,
)
from rag_eval_integrations.judges import _prompt as prompt
from rag_eval_integrations.judges._prompt import (
    Explanations,
    NullListError,
    Wording,
    parse_labels,
    parse_support,
)
from rag_eval_integrations.judges._reconcile import (
    only_unknown_keys,
    reconcile,
    without_empty_entries,
)
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
    JudgeInfo,
    Labelling,
    Labels,
    RagCall,
    Sentence,
    SentenceSupport,
    SentencizedCall,
    Usage,
)
from rag_eval_integrations.records._json import whole_text
from rag_eval_integrations.records.labels import UnscoredCode

T = TypeVar("T")
logger = logger_of(__name__)

_RULES = "3"
"""Raised when calls are shown in another way although most prompts stay the same."""
WINDOW_CHARACTERS = 60_000
"""Most characters of sentences in one request, by default."""
_MOST_INSTRUCTIONS = 2_000  # characters
_TOKENS_PER_ANSWER = 500
_TOKENS_PER_SENTENCE = 120
"""Room for an entry of the support list: RAGBench's explanations have a median of 40 tokens."""
_TOKENS_PER_KEY = 8
_MOST_TOKENS = 16_000
_LAST_STEPS = 1.0
"""Seconds that cancelled requests may take to end."""
_MORE = 4
"""Times of the usual room with which an answer that was cut off is requested again."""
_DEEPEST = 4
"""How often a window may be halved because its answer is cut off."""
_IN_A_ROW = 5
"""Calls of which even the smallest window is cut off, after which none is halved."""
_MOST_SHOWN = 100_000
"""Characters of a reply that is sent back; one of `_MOST_TOKENS` is shorter."""


class LLMJudge(JudgeBase):
    """Labels calls with a model.

    One request per call covers relevance, utilization, completeness and adherence. A call longer
    than `window_characters` takes one request per window. An answer that is cut off is requested
    again with more tokens, then in halves; an answer that is not the requested JSON is requested
    once more, and so are response sentences that are missing from it. Labels that are missing
    after that leave their scores unscored, with a reason; without any of the response, all scores.

    Args:
        model: the model to ask.
        window_characters: most characters of sentences in one request, from 1.
        max_windows: most windows of a call, from 1; a call with more is unscored (`over_budget`).
        temperature: 0 for reproducible answers; None leaves it to the model.
        instructions: what follows our instructions, such as "dosages must match exactly"; at most
            2,000 characters. Part of the version, and kept in every evaluation.
        explanations: `all`, or `unsupported`: the model explains only which sentences are not fully
            supported, and why, so that replies are less than half as long. What that does to its
            verdicts was not measured. Part of the version.

    Raises:
        ConfigurationError: for sizes below 1, a temperature below 0, instructions that are empty or
            too long, other explanations, or an object that is not a model.
    """

    def __init__(
        self,
        model: Model,
        *,
        window_characters: int = WINDOW_CHARACTERS,
        max_windows: int = 64,
        temperature: float | None = 0.0,
        instructions: str | None = None,
        explanations: Explanations = "all",
    ) -> None:
        self.model: ModelBase = model_base(model)
        whole_number("window_characters", window_characters)
        whole_number("max_windows", max_windows)
        if temperature is not None and not 0 <= temperature < inf:
            raise ConfigurationError("temperature", temperature, "use a number from 0, or None")
        added = None if instructions is None else whole_text(instructions.strip())
        if added is not None and not 0 < len(added) <= _MOST_INSTRUCTIONS:
            why = f"has {len(added):,} characters; use 1 to {_MOST_INSTRUCTIONS:,}"
            raise ConfigurationError("instructions", added[:40], why)
        if explanations not in get_args(Explanations):
            raise ConfigurationError("explanations", explanations, "use all or unsupported")
        self.instructions = added
        self._wording = Wording(self.instructions, explanations)
        self.name = self.model.name
        own = self.model.version
        asked = f"{_RULES}-{self._wording.version}"
        self.version = f"{asked}/{own}" if own else asked
        self.max_concurrency = self.model.max_concurrency
        self._characters = window_characters
        self._max_windows = max_windows
        self._cut_off = 0
        # Its labels are checked, unless a subclass labels in its own way.
        self.keeps_keys = type(self).label is LLMJudge.label
        # What all requests share is checked once, and its schema is the same object each time.
        ask = CompletionRequest(messages=(), schema_name="labels", temperature=temperature)
        schemas = (prompt.LABELS_SCHEMA, prompt.REPAIR_SCHEMA)
        self._asks = tuple([ask.model_copy(update={"json_schema": schema}) for schema in schemas])

    def estimate(self, call: SentencizedCall) -> Usage:
        """Estimate the usage of labelling a call, if no answer has to be requested again.

        Tokens of the prompts are characters / 4; tokens of the answers are not known.
        """
        if len(windows_of(call, self._characters)) > self._max_windows:
            return Usage()
        prompts = prompts_of(call, self._wording, self._characters)
        characters = sum(len(message.content) for messages in prompts for message in messages)
        return Usage(requests=len(prompts), prompt_tokens=characters // 4)

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call, in as many windows as it takes; without labels where that is too many.

        Replies that cannot be used, refusals and filters are reasons why it is unscored.

        Raises:
            JudgeError: the model does not answer.
        """
        parts = windows_of(call, self._characters)
        asking = _Asking(self, call)
        if len(parts) > self._max_windows:
            reason = f"the call would take {len(parts)} requests, more than {self._max_windows}"
            return asking.labelling(None, unscored=("over_budget", reason), windows=1)
        try:
            answers = await _gathered([asking.label_window(part) for part in parts])
        except _UnscoredError as error:
            self._count_cut_off(error)
            return asking.labelling(None, unscored=(error.code, str(error)), windows=len(parts))
        except JudgeOutputError as error:  # the model's server could not read its output, twice
            unscored: tuple[UnscoredCode, str] = ("judge_output_invalid", str(error))
            return asking.labelling(None, unscored=unscored, windows=len(parts))
        except JudgeError as error:
            error.usage = asking.usage
            raise
        self._count_cut_off(None)
        labels = [label for labels in answers for label in labels]
        # The labels of a window are reconciled already, and one window is the whole call.
        joined = labels[0] if len(labels) == 1 else reconcile(join(labels), call)
        return asking.labelling(joined, windows=len(labels))

    @property
    def _cuts_off_all(self) -> bool:
        """Whether the last calls were all cut off, even about their smallest windows."""
        return self._cut_off >= _IN_A_ROW

    def _count_cut_off(self, error: _UnscoredError | None) -> None:
        """Count consecutive calls that were cut off even in the smallest window; warn once."""
        self._cut_off = self._cut_off + 1 if isinstance(error, _CutOffError) else 0
        if self._cut_off == _IN_A_ROW:
            logger.warning(
                "%s cut off its answers to %d calls in a row, even about the fewest sentences: "
                "raise the limit of an answer's tokens (--max-tokens, or the server's own). Until "
                "an answer is whole, no call is halved.",
                self.name,
                _IN_A_ROW,
            )


async def _gathered(asking: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Await requests concurrently, results in order; the first failure cancels the rest.

    Raises:
        Exception: what the first one raised.
    """
    if len(asking) == 1:
        return [await asking[0]]  # without a task of its own
    tasks = [asyncio.ensure_future(request) for request in asking]
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


class _CutOffError(_UnscoredError):
    """The answer about a window that cannot be halved was cut off."""

    def __init__(self) -> None:
        small = "the judge's answer was cut off, even in small windows"
        super().__init__("truncated", f"{small}; raise the limit of its tokens (--max-tokens)")


class _Asking:
    """The requests of one call, with their usage and warnings."""

    def __init__(self, judge: LLMJudge, call: SentencizedCall) -> None:
        self._judge = judge
        self._model = model = judge.model
        self._call = call.call
        self._wording = judge._wording
        self._version = prompt.version_of(call, self._wording)
        self._ask, self._ask_missing = judge._asks
        self._first = asyncio.Lock()
        self._helped: bool | None = None
        self.usage = Usage()
        self._warnings: dict[str, None] = {}
        self._answered_by = model.model

    def labelling(
        self,
        labels: Labels | None,
        *,
        windows: int,
        unscored: tuple[UnscoredCode, str] | None = None,
    ) -> Labelling:
        """Make the labelling of the call, with usage and warnings of its requests."""
        if labels is not None and windows > 1:
            self._warnings[
                "labelled in several windows: support that needs sentences from more than one of "
                "them is not found"
            ] = None
        code, reason = unscored or (None, None)
        return Labelling(
            labels=labels,
            judge=JudgeInfo(
                name=self._model.name,
                model=self._answered_by,
                version=self._model.version,
                instructions=self._wording.instructions,
            ),
            usage=self.usage,
            windows=windows,
            warnings=tuple(self._warnings),
            unscored=code,
            reason=reason,
            prompt_version=self._version,
        )

    async def label_window(self, window: Window) -> list[Labels]:
        """Label one window; several results when it had to be halved.

        A reply that is cut off is asked for once more with more room, then in halves. Until that
        has helped, it is done for one window of the call at a time.
        """
        labels = await self._labelled(window, 1)
        if labels is not None:
            return [labels]
        async with self._first:
            if self._helped is None:
                self._helped = False
                whole = await self._with_more_room(window)
                self._helped = True
                return whole
        if not self._helped:
            raise _CutOffError
        return await self._with_more_room(window)

    async def _with_more_room(self, window: Window) -> list[Labels]:
        """Label a window again with more room, and then in halves."""
        more = _room(window) < _MOST_TOKENS
        labels = await self._labelled(window, _MORE) if more else None
        return await self._in_halves(window, 1) if labels is None else [labels]

    async def _in_halves(self, window: Window, depth: int) -> list[Labels]:
        """Label the halves of a window in order; halve again those whose answer is cut off.

        Where a half is cut off as well, its smallest part tells whether that can help.
        """
        halves = window.halves() if depth <= _DEEPEST else None
        if halves is None or self._judge._cuts_off_all:
            raise _CutOffError
        if depth == 2 and await self._labelled(_smallest(window), _MORE) is None:
            raise _CutOffError
        parts: list[Labels] = []
        for half in halves:
            labels = await self._labelled(half, _MORE)
            parts += await self._in_halves(half, depth + 1) if labels is None else [labels]
        return parts

    async def _labelled(self, window: Window, factor: int) -> Labels | None:
        """Label one window with `factor` times the usual room; None if the answer is cut off."""
        asked = _messages(self._call, window, self._wording)
        room = _room(window)
        completion = await self._complete(asked, self._ask, factor * room)
        if completion.finish_reason == "length":
            return None
        labels, reply = await self._parsed(asked, completion, room, window)
        labels = await self._complete_entries(asked, labels, window, reply)
        if window.response and not labels.sentence_support_information:
            # A model that fails under a JSON schema writes empty fields, which are not "none".
            why = "the judge labelled none of the response sentences, twice"
            raise _UnscoredError("judge_output_invalid", why)
        return labels

    async def _parsed(
        self, asked: tuple[Message, ...], completion: Completion, room: int, window: Window
    ) -> tuple[Labels, str]:
        """Read labels from a reply, or else from a second one; return them with that reply.

        Unscored if the second cannot be read either.
        """
        try:
            return _labels_in(completion.text, window), completion.text
        except NullListError:
            why = prompt.NULL_LIST
        except _UnknownKeysError:
            why = prompt.UNKNOWN_KEYS
        except JudgeOutputError:
            why = prompt.NOT_JSON
        asked = prompt.again(asked, completion.text, why)
        second = await self._complete(asked, self._ask, 2 * room)
        try:
            return _labels_in(second.text, window), second.text
        except JudgeOutputError as error:
            if second.finish_reason == "length":
                why = f"the judge's second answer was cut off, and its first was no better: {error}"
                raise _UnscoredError("truncated", why) from error
            raise _UnscoredError("judge_output_invalid", f"{error}, twice") from error

    async def _complete_entries(
        self, asked: tuple[Message, ...], labels: Labels, window: Window, reply: str
    ) -> Labels:
        """Ask once for response sentences that are missing from the labels."""
        if not labels.missing_keys:
            return labels
        missing = labels.missing_keys
        asked = (*asked, Message(role="assistant", content=reply[:_MOST_SHOWN]))
        room = _TOKENS_PER_ANSWER + _TOKENS_PER_SENTENCE * len(missing)
        try:
            completion = await self._complete(
                prompt.missing(asked, missing), self._ask_missing, room
            )
            support = parse_support(completion.text)
        except (JudgeOutputError, _UnscoredError):
            # Asked once only: sentences that are still missing stay unlabelled, as the scores say.
            return labels
        second = without_empty_entries(
            labels.model_copy(update={"sentence_support_information": support}), window
        )
        entries = (*labels.sentence_support_information, *second.sentence_support_information)
        whole = second.model_copy(update={"sentence_support_information": entries})
        return reconcile(whole, window)

    async def _complete(
        self, asked: tuple[Message, ...], ask: CompletionRequest, room: int
    ) -> Completion:
        """Ask the model for labels, and count the tokens also of failed requests.

        A refusal or a content filter makes the call unscored.
        """
        request = ask.model_copy(
            update={
                "messages": asked,
                "max_tokens": min(room, _MOST_TOKENS),
                "prompt_version": self._version,
            }
        )
        try:
            completion = await completed(self._model, request)
        except JudgeError as error:
            self.usage += error.usage or Usage()
            raise
        self.usage += completion.usage
        self._answered_by = completion.model or self._answered_by
        self._warnings |= dict.fromkeys(completion.warnings)
        choice = completion.choices[0]
        if choice.finish_reason == "refusal" or choice.refusal:
            raise _UnscoredError("refusal", f"the judge refused: {(choice.refusal or '')[:200]}")
        if choice.finish_reason == "content_filter":
            raise _UnscoredError("content_filter", "the judge's content filter stopped the answer")
        return completion


def prompts_of(
    call: SentencizedCall, wording: Wording, characters: int = WINDOW_CHARACTERS
) -> list[tuple[Message, ...]]:
    """Write the labelling prompt of each window of a call."""
    return [_messages(call.call, part, wording) for part in windows_of(call, characters)]


def _messages(call: RagCall, window: Window, wording: Wording) -> tuple[Message, ...]:
    """Write the labelling prompt of a window."""
    headers = prompt.headers_of(call.documents, window.documents)
    texts = (call.question, window.documents, window.response, headers, call.history)
    return prompt.messages(*texts, wording)


class _UnknownKeysError(JudgeOutputError):
    """A reply with a list that names sentences of which none exists."""


def _labels_in(text: str, window: Window) -> Labels:
    """Read a reply as labels of a window, without entries that say nothing.

    Raises:
        JudgeOutputError: it does not hold labels, or not of sentences of the window.
    """
    parsed = parse_labels(text)
    filled = without_empty_entries(parsed, window)
    labels = reconcile(filled, window)
    # An entry that says nothing may be the only one that names a sentence of the window.
    known = labels if labels.sentence_support_information else reconcile(parsed, window)
    why = only_unknown_keys(parsed, known)
    if why is not None:
        raise _UnknownKeysError(why, text)
    return labels


def _room(window: Window) -> int:
    """Estimate the tokens that the labels of a window take."""
    return (
        _TOKENS_PER_ANSWER
        + _TOKENS_PER_SENTENCE * len(window.response)
        + 2 * _TOKENS_PER_KEY * len(window.documents)
    )


# --- Windows: the parts of a call that does not fit into one request, and their labels joined

_OVERHEAD = 4
"""Characters on the line of a sentence besides its key and text."""


class Window(NamedTuple):
    """The sentences of one request."""

    documents: tuple[Sentence, ...]
    response: tuple[Sentence, ...]

    def halves(self) -> tuple[Window, Window] | None:
        """Split the longer side in two; None when both have fewer than two sentences."""
        documents, response = self
        middle = max(len(documents), len(response)) // 2
        if not middle:
            return None
        if len(documents) >= len(response):
            return Window(documents[:middle], response), Window(documents[middle:], response)
        return Window(documents, response[:middle]), Window(documents, response[middle:])


def windows_of(call: SentencizedCall, characters: int) -> list[Window]:
    """Cut a call into windows."""
    return windows(call.documents, call.response, characters)


def _smallest(window: Window) -> Window:
    """Halve a window until it cannot be halved; return the first part."""
    for _ in range(_DEEPEST - 1):
        halves = window.halves()
        window = window if halves is None else halves[0]
    return window


def windows(
    documents: Sequence[Sentence], response: Sequence[Sentence], characters: int
) -> list[Window]:
    """Cut a call into windows of at most `characters`, each with at least one sentence.

    The response takes at most a third of a window, so that documents are not cut too finely.
    """
    if _size(documents) + _size(response) <= characters:
        return [Window(tuple(documents), tuple(response))]
    return [
        Window(part, run)
        for run in _runs(response, characters // 3)
        for part in _runs(documents, max(1, characters - _size(run)))
    ]


def _size(sentences: Sequence[Sentence]) -> int:
    """Return the characters that sentences take in the prompt."""
    return sum(len(s.key) + len(s.text) + _OVERHEAD for s in sentences)


def _runs(sentences: Sequence[Sentence], characters: int) -> list[tuple[Sentence, ...]]:
    """Cut sentences into runs of at most so many characters; a longer one is a run of its own."""
    runs: list[tuple[Sentence, ...]] = []
    run: list[Sentence] = []
    size = 0
    for sentence in sentences:
        length = _size([sentence])
        if run and size + length > characters:
            runs.append(tuple(run))
            run, size = [], 0
        run.append(sentence)
        size += length
    return [*runs, tuple(run)] if run or not runs else runs


def join(parts: Sequence[Labels]) -> Labels:
    """Join the labels of windows into the labels of the call."""
    if len(parts) == 1:
        return parts[0]
    entries: dict[str, SentenceSupport] = {}
    for part in parts:
        for entry in part.sentence_support_information:
            known = entries.get(entry.response_sentence_key)
            entries[entry.response_sentence_key] = entry if known is None else _merged(known, entry)
    return Labels(
        relevance_explanation=_joined_text(part.relevance_explanation for part in parts),
        all_relevant_sentence_keys=_joined_keys(part.all_relevant_sentence_keys for part in parts),
        overall_supported_explanation=_joined_text(p.overall_supported_explanation for p in parts),
        sentence_support_information=tuple(entries.values()),
        all_utilized_sentence_keys=_joined_keys(part.all_utilized_sentence_keys for part in parts),
        unknown_keys=_joined_keys(part.unknown_keys for part in parts),
        special_keys=_joined_keys(part.special_keys for part in parts),
        duplicate_keys=_joined_keys(part.duplicate_keys for part in parts),
    )


def _merged(first: SentenceSupport, second: SentenceSupport) -> SentenceSupport:
    """Merge two windows' entries of a sentence: full support wins, keys add up."""
    keys = tuple(dict.fromkeys((*first.supporting_sentence_keys, *second.supporting_sentence_keys)))
    full = [entry for entry in (first, second) if entry.fully_supported]
    chosen = full[0] if full else max(first, second, key=lambda e: len(e.supporting_sentence_keys))
    return chosen.model_copy(
        update={
            "supporting_sentence_keys": chosen.supporting_sentence_keys if full else keys,
            "fully_supported": bool(full),
        }
    )


def _joined_keys(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Join lists of keys without repeats."""
    return tuple(dict.fromkeys(key for keys in lists for key in keys))


def _joined_text(texts: Iterable[str]) -> str:
    """Join texts without repeats."""
    return " ".join(dict.fromkeys(text for text in texts if text))
