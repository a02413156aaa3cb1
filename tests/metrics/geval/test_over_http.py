"""The real path: GEval, OpenAIModel, HTTP, and a server that gives log-probabilities or does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loopback import Behaviour, Body, LoopbackServer, Reply
from scored_tokens import chat_body

from rag_eval_integrations import CachedModel, GEval, OpenAIModel, RagCall

CALL = RagCall(question="When?", documents=["At nine."], response="At nine.")
PIECES = ['{"', "reason", '":', ' "', "Fine", ' 🙂."', ', "', "score", '":', " ", "3", "}"]
EVEN = {10: {"3": 0.42, "4": 0.40, "5": 0.10, "x": 0.08}}


def clarity(**changes: Any) -> GEval:
    return GEval("clarity", steps=["Judge it."], **changes)


def answering(with_logprobs: bool, most: int = 100) -> Any:
    def respond(body: Body) -> Reply:
        if body.get("logprobs") and with_logprobs:
            return Reply.json(chat_body(PIECES, at=EVEN))
        return Reply.json(chat_body(*[PIECES] * min(most, body.get("n", 1))))

    return respond


async def test_the_expectation_over_http() -> None:
    """One request, as plain text: 3.652 where the likeliest score is 3."""
    with LoopbackServer(respond=answering(True)) as server:
        score = await clarity().score(CALL, OpenAIModel("m", base_url=server.base_url))
        requests = list(server.requests)

    assert len(requests) == 1
    assert {"response_format", "tools", "n"}.isdisjoint(requests[0])
    assert (requests[0]["temperature"], requests[0]["logprobs"]) == (0, True)
    assert requests[0]["top_logprobs"] == 20
    assert score.method == "logprobs"
    assert score.raw == pytest.approx(3.652, abs=1e-3)
    assert (score.by.judge, score.by.model) == ("openai:m", "m-2026")


@pytest.mark.parametrize(("most", "sizes"), [(100, [20]), (8, [20, 8, 4]), (1, [20] + [1] * 19)])
async def test_samples_over_http(most: int, sizes: list[int]) -> None:
    """One request with n where the server allows it, as many as it takes where it does not."""
    with LoopbackServer(respond=answering(False, most)) as server:
        judge = OpenAIModel("m", base_url=server.base_url)
        score = await clarity(estimator="monte_carlo").score(CALL, judge)
        requests = list(server.requests)

    assert (score.n, score.raw) == (20, 3.0)
    assert [request.get("n", 1) for request in requests] == sizes
    assert all(request["temperature"] == 1 for request in requests)
    assert all("logprobs" not in request for request in requests)
    assert "response_format" in requests[0]


async def test_a_limit_on_top_logprobs_is_kept(tmp_path: Path) -> None:
    """Azure's 5: asked for again with 5, and an expectation all the same."""

    def respond(body: Body) -> Reply | None:
        return answering(True)(body) if body.get("top_logprobs", 0) <= 5 else None

    with LoopbackServer(Behaviour(limits={"top_logprobs": 5}), respond) as server:
        with CachedModel(OpenAIModel("m", base_url=server.base_url), tmp_path / "c.db") as judge:
            score = await clarity().score(CALL, judge)
            again = await clarity().score(CALL, judge)
        requests = list(server.requests)

    assert [request["top_logprobs"] for request in requests] == [20, 5]
    assert score.method == "logprobs"
    assert any("lowered from 20" in warning for warning in score.warnings)
    assert (again.raw, again.distribution) == (score.raw, score.distribution)
