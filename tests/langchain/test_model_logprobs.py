"""LangChainModel: log-probabilities and several answers, where the model has settings for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import SimpleChatModel
from loopback import Behaviour, Body, LoopbackServer, Reply
from pydantic import Field
from scored_tokens import chat_body

from rag_eval_integrations import GEval, RagCall
from rag_eval_integrations.langchain import LangChainModel
from rag_eval_integrations.models.completion import CompletionRequest, Message

from .conftest import chat_model

CALL = RagCall(question="When?", documents=[], response="At nine.")
PIECES = ['{"reason": "', "Fine", '.", "', "score", '": ', "3", "}"]
EVEN = {5: {"3": 0.5, "4": 0.5}}
MESSAGES = (Message(role="user", content="x"),)


def judging(model: Any, made: bool = False) -> LangChainModel:
    return LangChainModel(make_model=lambda: model) if made else LangChainModel(model)


def respond(body: Body) -> Reply:
    if body.get("logprobs"):
        return Reply.json(chat_body(PIECES, at=EVEN))
    return Reply.json(chat_body(*[PIECES] * body.get("n", 1)))


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer(respond=respond) as server:
        yield server


def clarity(**changes: Any) -> GEval:
    return GEval("clarity", steps=["Judge it."], **changes)


@pytest.mark.parametrize("made", [False, True], ids=["the app's model", "a made model"])
async def test_an_expectation_through_chat_openai(server: LoopbackServer, made: bool) -> None:
    """logprobs, top_logprobs and temperature reach the endpoint; one request."""
    judge = judging(chat_model(server.base_url, temperature=0.7), made)

    score = await clarity().score(CALL, judge)

    assert (score.method, score.raw) == ("logprobs", pytest.approx(3.5))
    (request,) = server.requests
    assert (request["logprobs"], request["top_logprobs"], request["temperature"]) == (True, 20, 0)
    assert (score.by.model, score.warnings) == ("m-2026", ())


async def test_twenty_samples_by_one_request(server: LoopbackServer) -> None:
    """`n` is a setting of ChatOpenAI; what they took together is counted once."""
    judge = LangChainModel(chat_model(server.base_url))

    measured = await clarity(estimator="monte_carlo").measure(CALL, judge)

    (score,) = measured.scores
    assert (score.method, score.n, score.raw) == ("monte_carlo", 20, 3.0)
    assert [(r["n"], r["temperature"]) for r in server.requests] == [(20, 1.0)]
    assert (measured.usage.requests, measured.usage.prompt_tokens) == (1, 30)


async def test_what_the_endpoint_refuses_is_left_out_from_then_on() -> None:
    """A reasoning model refuses log-probabilities: samples, and not asked for again."""
    with LoopbackServer(Behaviour(content="".join(PIECES), refuse=("logprobs",))) as server:
        judge = LangChainModel(chat_model(server.base_url))
        first = await clarity().score(CALL, judge)
        again = await clarity().score(CALL, judge)
        asked = [request.get("logprobs") for request in server.requests]

    assert first.method == again.method == "monte_carlo"
    assert asked.count(True) == 1


class Plain(SimpleChatModel):
    """A model without settings of these names."""

    sent: list[dict[str, Any]] = []  # noqa: RUF012  # pydantic copies it

    @property
    def _llm_type(self) -> str:
        return "plain"

    def _call(self, *args: Any, **kwargs: Any) -> str:
        self.sent.append(kwargs)
        return "".join(PIECES)


async def test_a_model_without_such_settings_is_asked_one_by_one() -> None:
    """With a warning for the log-probabilities and the seed."""
    model = Plain()
    request = CompletionRequest(messages=MESSAGES, top_logprobs=5, n=3, seed=1, temperature=1.0)

    completion = await LangChainModel(model).complete(request)

    assert len(completion.choices) == completion.usage.requests == 3
    assert completion.warnings == (
        "the LangChain model was not asked for log-probabilities",
        "the LangChain model was not asked for a seed",
    )
    assert all("logprobs" not in kwargs for kwargs in model.sent)


class Picky(Plain):
    """Declares settings and fails on them, and on anything else."""

    n: int | None = None
    seed: int | None = None
    broken: bool = False

    def _call(self, *args: Any, **kwargs: Any) -> str:
        if self.broken or "n" in kwargs:
            raise PermissionError("no") if self.broken else TypeError("unexpected argument")
        return super()._call(*args, **kwargs)


async def test_a_model_that_fails_on_a_setting_is_asked_without() -> None:
    """And a failure that has nothing to do with settings is raised."""
    request = CompletionRequest(messages=MESSAGES, n=2, seed=1)
    judge = LangChainModel(Picky())

    assert len((await judge.complete(request)).choices) == 2
    with pytest.raises(Exception, match="PermissionError"):
        await LangChainModel(Picky(broken=True)).complete(request)


class Numbering(Plain):
    """Gives another score every time it is asked."""

    def _call(self, *args: Any, **kwargs: Any) -> str:
        super()._call(*args, **kwargs)
        return str(1 + len(self.sent) % 5)


@pytest.mark.parametrize("made", [False, True], ids=["the app's model", "a made model"])
@pytest.mark.parametrize("own", [False, True], ids=["for all models", "the model's own"])
async def test_samples_are_not_answered_by_langchains_cache(own: bool, made: bool) -> None:
    """Twenty answers of the model, not one of them twenty times; other requests may be cached."""
    cache = InMemoryCache()
    model = Numbering(cache=cache if own else None)
    judge = judging(model, made)
    set_llm_cache(None if own else cache)
    try:
        score = await clarity(estimator="monte_carlo").score(CALL, judge)
        sampled = len(model.sent)
        singles = [await clarity(estimator="single").score(CALL, judge) for _ in range(2)]
    finally:
        set_llm_cache(None)

    assert score.distribution == {str(k): pytest.approx(0.2) for k in range(1, 6)}
    assert sampled == 20
    assert len(model.sent) == 21
    assert singles[0].raw == singles[1].raw


async def test_an_answer_of_langchains_cache_is_an_answer(server: LoopbackServer) -> None:
    """And costs nothing, whether the model counts tokens or not."""
    judge = LangChainModel(chat_model(server.base_url, cache=InMemoryCache()))

    found = [await clarity().measure(CALL, judge) for _ in range(2)]

    assert len(server.requests) == 1
    assert [measured.scores[0].raw for measured in found] == [pytest.approx(3.5)] * 2
    assert [(m.usage.requests, m.usage.prompt_tokens) for m in found] == [(1, 30), (0, 0)]


class Limited(Plain):
    """Says of its 12th, 14th and 16th request to come back later."""

    seed: int | None = None
    number: Any = Field(default_factory=lambda: itertools.count(1))

    def _call(self, *args: Any, **kwargs: Any) -> str:
        text = super()._call(*args, **kwargs)
        if next(self.number) in (12, 14, 16):
            raise ConnectionError("over the limit")
        return text


async def test_answers_that_were_given_are_kept_where_others_fail() -> None:
    """Only the missing ones are asked for again; no two are asked for by one seed."""
    request = CompletionRequest(messages=MESSAGES, n=20, seed=7, temperature=1.0)
    model, other = Limited(), Limited()

    completion = await LangChainModel(model).complete(request)
    score = await clarity(estimator="monte_carlo").score(CALL, LangChainModel(other))

    assert len(completion.choices) == completion.usage.requests == 17
    assert completion.warnings[-1] == "20 answers were asked for and 17 given"
    assert {kwargs.get("seed") for kwargs in model.sent} == {None}
    assert (score.n, len(other.sent)) == (20, 23)
