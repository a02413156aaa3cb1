"""The capabilities of an endpoint, learned from its refusals, for each (base_url, model).

There is no table of models: an Azure deployment hides its model's name, gateways route one name to
several models, and tables age. The record starts optimistic, and each refusal that names a
parameter removes one capability.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

StructuredBy = Literal["json_schema", "json_object", "tool", "text"]
FALLBACKS: tuple[StructuredBy, ...] = ("json_schema", "json_object", "tool", "text")
"""Ways to ask for JSON, best first; `text` only puts the schema into the prompt."""

TokenLimit = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A capability that one refusal shows to be missing."""

    parameter: str
    """The name of the refused parameter, way to ask for JSON, or role (`system`)."""
    words: str
    """The endpoint's message, shortened."""
    limit: int | None = None
    """The largest value that is accepted; None when none is."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The known capabilities of an endpoint."""

    structured_by: StructuredBy = "json_schema"
    token_limit: TokenLimit | None = "max_tokens"
    """Most compatible servers only know `max_tokens`; OpenAI's reasoning models refuse it."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Refused parameters with the endpoint's message; they are not sent any more."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Largest accepted values of parameters that have a limit."""
    observed: Mapping[str, Literal["given", "absent"]] = field(default_factory=dict)
    """Whether parameters that were accepted had an effect: `logprobs`, `n`, `response_format`.

    "Absent" is not "refused": they are sent again, because gateways route to different servers."""

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters that were accepted, but not given, by the latest reply to each."""
        return tuple(name for name, seen in self.observed.items() if seen == "absent")

    def after(self, lesson: Lesson) -> Capabilities:
        """Return the capabilities after a lesson; the same object when it was known already.

        A lower limit replaces a higher one. A refused way to ask for JSON gives way to the next in
        `FALLBACKS`, a refused `max_tokens` to `max_completion_tokens`.
        """
        name = lesson.parameter
        if lesson.limit is not None:
            known = self.limits.get(name)
            if known is not None and known <= lesson.limit:
                return self
            return replace(self, limits={**self.limits, name: lesson.limit})
        if name in self.refused:
            return self
        learned = replace(self, refused={**self.refused, name: lesson.words})
        if name == self.structured_by and name != FALLBACKS[-1]:
            return replace(
                learned, structured_by=FALLBACKS[FALLBACKS.index(self.structured_by) + 1]
            )
        if name == self.token_limit:
            other: TokenLimit | None = "max_completion_tokens" if name == "max_tokens" else None
            return replace(learned, token_limit=other)
        return learned


class Endpoint:
    """The record of one (base_url, model), shared by threads and loops.

    After a refusal, one request at a time tries what is left (the scout) while the others wait for
    it: 32 concurrent first requests to an endpoint that refuses five parameters then make 32 + 5
    refused requests instead of 160.
    """

    def __init__(self) -> None:
        # Re-entrant: a garbage collection in a locked region may finalise an abandoned negotiation.
        self._lock = threading.RLock()
        self._capabilities = Capabilities()
        self._scout: Future[None] | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities known now."""
        return self._capabilities

    def learn(self, lesson: Lesson) -> bool:
        """Remember a lesson; False when it was known."""
        with self._lock:
            before = self._capabilities
            self._capabilities = before.after(lesson)
            return self._capabilities is not before

    def observe(self, name: str, *, given: bool) -> None:
        """Remember whether an accepted parameter had an effect."""
        seen: Literal["given", "absent"] = "given" if given else "absent"
        if self._capabilities.observed.get(name) == seen:  # nearly always: no lock
            return
        with self._lock:
            observed = {**self._capabilities.observed, name: seen}
            self._capabilities = replace(self._capabilities, observed=observed)

    @contextmanager
    def negotiate(self) -> Iterator[Callable[[bool], Awaitable[None]]]:
        """Begin one completion, which may take several HTTP requests.

        Yields a function to await before each of them, with whether the last one was refused: a
        refused completion becomes the scout if there is none. The others wait for the scout for two
        seconds at most.
        """
        own: Future[None] | None = None

        async def wait(refused: bool) -> None:
            """Wait while another request finds out what the endpoint refuses.

            Returns at once where there is no scout, and for the scout itself, which a refused
            request becomes if there is none; else after two seconds at most.
            """
            nonlocal own
            if own is not None or (self._scout is None and not refused):
                return
            with self._lock:
                scout = self._scout
                if scout is None and refused:
                    own = self._scout = Future()
                    own.set_running_or_notify_cancel()  # so that no waiter can cancel it
            if scout is not None:
                await asyncio.wait([asyncio.wrap_future(scout)], timeout=_PATIENCE)

        try:
            yield wait
        finally:
            if own is not None:
                with self._lock:
                    self._scout = None
                own.set_result(None)


_PATIENCE = 2.0
"""Seconds. An endpoint refuses before it generates anything, hence quickly: a scout without a reply
for this long has most likely been accepted, and those that wait may go as well."""
_MOST = 256  # endpoints remembered; a test suite or a server with many tenants makes many
_endpoints: OrderedDict[tuple[str, str], Endpoint] = OrderedDict()
_lock = threading.Lock()


def endpoint_of(base_url: str, model: str) -> Endpoint:
    """Return the record of an endpoint: one object for all models of this process.

    Made at the first use. Of more than 256, the one not asked for longest is forgotten.
    """
    with _lock:
        endpoint = _endpoints.setdefault((base_url, model), Endpoint())
        _endpoints.move_to_end((base_url, model))
        if len(_endpoints) > _MOST:
            _endpoints.popitem(last=False)
        return endpoint
