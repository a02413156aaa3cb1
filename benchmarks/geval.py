"""Local cost of G-Eval: reading a reply, the expectation, a whole score.

    python benchmarks/geval.py [--rounds N]

The expectation from 20 top-logprobs should take less than 100 µs. Printed are medians over rounds:
parsing the reply, finding the score's token in a reply of about 120, the expectation alone, all
three, and one `measure` with a judge that answers at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import time
from collections.abc import Callable

from rag_eval_integrations import GEval, RagCall
from rag_eval_integrations.metrics.geval._expectation import Expectation, expectation, place_of
from rag_eval_integrations.metrics.geval._reply import read_reply
from rag_eval_integrations.models.completion import Choice, Completion, CompletionRequest, Token

SCALE = (0, 10)
REASON = "The response names the refund and its term, but it leaves out who pays for the return. "


def made() -> tuple[str, tuple[Token, ...]]:
    """Make a reply of about 120 tokens whose score has 20 alternatives, in three spellings."""
    words = (REASON * 6).strip().split(" ")
    pieces = ['{"', "reason", '":', ' "', words[0], *(f" {word}" for word in words[1:])]
    pieces += ['",', ' "', "score", '":', " ", "7", "}"]
    spellings = [f"{k}" for k in range(11)] + [f" {k}" for k in range(2, 9)] + ["７", "\n"]
    weights = [math.exp(-abs(index - 7)) for index in range(len(spellings))]
    top = tuple(
        (text, math.log(weight / sum(weights)))
        for text, weight in zip(spellings, weights, strict=True)
    )
    tokens = [
        Token(text=piece, logprob=-0.01 * (index % 9 + 1), top=((piece, -0.01), ("x", -5.0)))
        for index, piece in enumerate(pieces)
    ]
    tokens[-2] = Token(text="7", logprob=dict(top)["7"], top=top)
    return "".join(pieces), tuple(tokens)


class Instant:
    """A model that answers at once."""

    name = "instant"

    def __init__(self, completion: Completion) -> None:
        self._completion = completion

    async def complete(self, request: CompletionRequest) -> Completion:
        """Return the same answer every time."""
        return self._completion


def microseconds(call: Callable[[], object], rounds: int) -> float:
    """Measure the median time of a function, over rounds of 20 calls."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(20):
            call()
        times.append((time.perf_counter() - started) / 20 * 1e6)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    text, tokens = made()
    reading = read_reply(text, "correctness", SCALE)
    assert reading.span is not None
    place = place_of(text, reading.span, tokens)
    assert place is not None
    found = expectation(tokens, place, SCALE)
    assert isinstance(found, Expectation)
    assert json.loads(text)["score"] == 7

    def whole() -> object:
        read = read_reply(text, "correctness", SCALE)
        assert read.span is not None
        at = place_of(text, read.span, tokens)
        assert at is not None
        return expectation(tokens, at, SCALE)

    print(f"reply of {len(tokens)} tokens, {len(tokens[-2].top)} alternatives: {found.value:.3f}")
    print(f"  parse           {microseconds(lambda: read_reply(text, 'x', SCALE), rounds):7.1f} µs")
    span = reading.span
    print(f"  find the token  {microseconds(lambda: place_of(text, span, tokens), rounds):7.1f} µs")
    alone = microseconds(lambda: expectation(tokens, place, SCALE), rounds)
    print(f"  expectation     {alone:7.1f} µs   (at most 100)")
    print(f"  all three       {microseconds(whole, rounds):7.1f} µs")

    metric = GEval.correctness()
    call = RagCall(question="", documents=[], response="Thirty days.", reference="30 days.")
    judge = Instant(Completion(choices=(Choice(text=text, finish_reason="stop", tokens=tokens),)))

    async def scores() -> float:
        times = []
        for _ in range(rounds):
            started = time.perf_counter()
            await metric.measure(call, judge)
            times.append((time.perf_counter() - started) * 1e6)
        return statistics.median(times)

    print(f"  one whole score {asyncio.run(scores()):7.1f} µs   (prompt, reading, record)")


if __name__ == "__main__":
    main()
