"""Evaluation steps: written by the judge once for a metric, and shared by all of its calls."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.judges.completion import Completion, CompletionRequest
from rag_eval_integrations.judges.single_flight import SingleFlight
from rag_eval_integrations.labels.parse import parse_object
from rag_eval_integrations.metrics.geval.prompt import (
    STEPS_SCHEMA,
    STEPS_VERSION,
    steps_again,
    steps_messages,
)
from rag_eval_integrations.records import UnscoredCode, Usage

_MOST_STEPS = 10
_MOST_TOKENS = 2000
_MOST_CHARACTERS = 2000
"""Of one step."""
_JUDGES = 16
_REMEMBERED = 60.0
"""Seconds for which a judge that writes no steps is not asked again."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What a metric goes by, or why it has nothing to go by."""

    steps: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    code: UnscoredCode | None = None
    why: str = ""


def parse_steps(text: str) -> tuple[str, ...]:
    """Read `{"steps": [str]}`: 1 to 10 strings that are not empty.

    Raises:
        JudgeOutputError: says what else it is.
    """
    content = parse_object(text)
    found = content.get("steps")
    if not isinstance(found, list):
        raise JudgeOutputError('the reply has no list "steps"', text)
    if not all(isinstance(step, str) and step.strip() for step in found):
        raise JudgeOutputError("a step is empty or no string", text)
    if not 1 <= len(found) <= _MOST_STEPS:
        raise JudgeOutputError(f"there are {len(found)} steps and not 1 to {_MOST_STEPS}", text)
    return tuple(" ".join(step.split())[:_MOST_CHARACTERS] for step in found)


class StepsWriter:
    """Has the steps of one metric written, once for each judge.

    Concurrent calls share the request (single flight), later ones its result; a `CachingJudge`
    shares it between processes, since the request holds nothing but criteria and parameters.
    """

    def __init__(self, criteria: str, params: Sequence[str]) -> None:
        self._messages = steps_messages(criteria, params)
        self._written = SingleFlight[Steps](_JUDGES)
        self._failed: dict[Hashable, tuple[float, Steps]] = {}

    async def get(self, judge: Completer) -> Steps:
        """Give the steps; usage is on the one that had them written.

        Raises:
            JudgeError: the judge does not answer.
        """
        key = (
            judge.name,
            *(getattr(judge, part, None) for part in ("model", "version", "base_url")),
        )
        until, failure = self._failed.get(key, (0.0, None))
        if failure is not None and time.monotonic() < until:
            return Steps(code=failure.code, why=failure.why)
        charged = Usage()

        async def make() -> Steps:
            nonlocal charged
            steps = await self._write(judge)
            charged = steps.usage
            if steps.code is not None:
                raise _UnwrittenError(steps)
            return steps

        try:
            steps = await self._written.get(key, make)
        except _UnwrittenError as error:
            if len(self._failed) >= _JUDGES:
                self._failed.clear()
            self._failed[key] = (time.monotonic() + _REMEMBERED, error.steps)
            steps = error.steps
        return Steps(steps.steps, charged, steps.code, steps.why)

    async def _write(self, judge: Completer) -> Steps:
        asked = self._messages
        usage = Usage()
        why = ""
        for _ in range(2):
            completion = await judge.complete(
                CompletionRequest(
                    messages=asked, json_schema=STEPS_SCHEMA, schema_name="steps", temperature=0.0,
                    max_tokens=_MOST_TOKENS, prompt_version=STEPS_VERSION,
                )
            )  # fmt: skip
            usage += completion.usage
            refused = _refused(completion)
            if refused is not None:
                return Steps(usage=usage, code=refused, why="the judge will not write the steps")
            try:
                return Steps(parse_steps(completion.text), usage)
            except JudgeOutputError as error:
                why = str(error)
            asked = steps_again(self._messages, completion.text, why)
        why = f"the judge wrote no evaluation steps, twice: {why}; pin them with `steps=`"
        return Steps(usage=usage, code="judge_output_invalid", why=why)


class _UnwrittenError(Exception):
    """Not remembered by the single flight, which would keep it for good."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(steps.why)
        self.steps = steps


def _refused(completion: Completion) -> UnscoredCode | None:
    choice = completion.choices[0]
    if choice.finish_reason == "refusal" or choice.refusal:
        return "refusal"
    return "content_filter" if choice.finish_reason == "content_filter" else None


def steps_digest(steps: Sequence[str]) -> str:
    """Digest of steps, 8 hex digits: scores by different steps are made differently."""
    return hashlib.sha256(json.dumps(list(steps)).encode("ascii")).hexdigest()[:8]
