"""What an endpoint can do, learned from what it refuses, for each (base_url, model).

Nothing is looked up in a table of models: an Azure deployment hides its model's name, gateways
route one name to several, and tables age. The record starts optimistic and goes down one step
for each refusal that names what was refused.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Literal

StructuredBy = Literal["json_schema", "json_object", "tool", "text"]
LADDER: tuple[StructuredBy, ...] = ("json_schema", "json_object", "tool", "text")
"""How JSON is asked for, best first; `text` puts the schema into the prompt and hopes."""

TokenLimit = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one refusal teaches."""

    parameter: str
    """Name of what was refused: a parameter, a step of the ladder, or `system` (the role)."""
    words: str
    """The endpoint's own, shortened."""
    limit: int | None = None
    """The largest value it takes; None when it takes none."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What is known of an endpoint."""

    structured_by: StructuredBy = "json_schema"
    token_limit: TokenLimit | None = "max_tokens"
    """Most compatible servers know `max_tokens` only; OpenAI's reasoning models refuse it."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Parameters that got a 4xx, with the endpoint's words; they are not sent any more."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Largest accepted values of parameters that are accepted up to a limit."""
    observed: Mapping[str, Literal["given", "absent"]] = field(default_factory=dict)
    """What was accepted, then done or not: `logprobs`, `n`, `response_format`.

    "Absent" is not "refused": it is asked for again, as gateways route to different servers."""

    def after(self, lesson: Lesson) -> Capabilities:
        """Learn; the same object when that was known already."""
        name = lesson.parameter
        if lesson.limit is not None:
            known = self.limits.get(name)
            if known is not None and known <= lesson.limit:
                return self
            return replace(self, limits={**self.limits, name: lesson.limit})
        if name in self.refused:
            return self
        learned = replace(self, refused={**self.refused, name: lesson.words})
        if name == self.structured_by and name != LADDER[-1]:
            return replace(learned, structured_by=LADDER[LADDER.index(self.structured_by) + 1])
        if name == self.token_limit:
            other: TokenLimit | None = "max_completion_tokens" if name == "max_tokens" else None
            return replace(learned, token_limit=other)
        return learned


class Endpoint:
    """The record of one (base_url, model): shared by threads and loops.

    After a refusal one request at a time tries what is left (the scout); others wait for it, so
    that 32 concurrent first requests to an endpoint that refuses five things make 32 + 5
    refused requests and not 160.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._capabilities = Capabilities()
        self._scout: Future[None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What is known now."""
        return self._capabilities

    def learn(self, lesson: Lesson) -> bool:
        """Remember a lesson; False when it was known."""
        with self._lock:
            before = self._capabilities
            self._capabilities = before.after(lesson)
            return self._capabilities is not before

    def observe(self, name: str, *, given: bool) -> None:
        """Remember whether what was accepted was done as well."""
        seen: Literal["given", "absent"] = "given" if given else "absent"
        if self._capabilities.observed.get(name) == seen:  # nearly always: no lock
            return
        with self._lock:
            observed = {**self._capabilities.observed, name: seen}
            self._capabilities = replace(self._capabilities, observed=observed)

    def turns(self) -> Turns:
        """Begin one question, which may take several requests."""
        return Turns(self)


class Turns:
    """One question's place among those that learn. A context manager."""

    # A refusal comes before anything is generated, hence quickly: a scout that has had no reply
    # for this long has most likely been accepted, and those who wait lose nothing by going too.
    _PATIENCE = 2.0

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._own: Future[None] | None = None

    async def wait(self, *, refused: bool) -> None:
        """Wait until a request may be made; who was refused becomes the scout if there is none."""
        # Private fields are shared between these two classes: they are one thing in two parts.
        if self._own is not None or (self._endpoint._scout is None and not refused):
            return
        with self._endpoint._lock:
            scout = self._endpoint._scout
            if scout is None and refused:
                self._own = self._endpoint._scout = Future()
                self._own.set_running_or_notify_cancel()  # so that no waiter can cancel it
        if scout is not None:
            await asyncio.wait([asyncio.wrap_future(scout)], timeout=self._PATIENCE)

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._own is not None:
            with self._endpoint._lock:
                self._endpoint._scout = None
            self._own.set_result(None)


_MOST = 256  # endpoints remembered; a test suite or a server of many tenants makes many
_endpoints: OrderedDict[tuple[str, str], Endpoint] = OrderedDict()
_lock = threading.Lock()


def endpoint_of(base_url: str, model: str) -> Endpoint:
    """Return the record of an endpoint: the same object for all judges of this process."""
    with _lock:
        endpoint = _endpoints.setdefault((base_url, model), Endpoint())
        _endpoints.move_to_end((base_url, model))
        if len(_endpoints) > _MOST:
            _endpoints.popitem(last=False)
        return endpoint
