"""Replies with log-probabilities, made by hand: pieces of text and what else might have stood."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rag_eval_integrations.models.completion import Choice, Completion, FinishReason, Token
from rag_eval_integrations.records import Usage

Alternatives = Mapping[str, float]
"""Probability by spelling; the sampled token's own is in it."""


def tokens(pieces: Sequence[str], at: Mapping[int, Alternatives]) -> tuple[Token, ...]:
    """Tokens of a reply; those named in `at` have alternatives, the others only themselves."""
    scored = []
    for index, piece in enumerate(pieces):
        if index in at:
            top = {text: math.log(p) if p else -9999.0 for text, p in at[index].items()}
        else:
            top = {piece: -0.001 * (index % 7 + 1), "…": -9.0 - index % 5}
        scored.append(Token(text=piece, logprob=top[piece], top=tuple(top.items())))
    return tuple(scored)


def reply(
    pieces: Sequence[str],
    at: Mapping[int, Alternatives],
    *,
    text: str | None = None,
    finish_reason: FinishReason = "stop",
) -> Completion:
    """A completion of one answer that the pieces spell."""
    choice = Choice(
        text="".join(pieces) if text is None else text,
        finish_reason=finish_reason,
        tokens=tokens(pieces, at),
    )
    usage = Usage(requests=1, prompt_tokens=10, completion_tokens=len(pieces))
    return Completion(choices=(choice,), usage=usage, model="m-2026")


def json_reply(alternatives: Alternatives, sampled: str, *, reason: str = "Fine.") -> Completion:
    """`{"reason": …, "score": N}` with alternatives at the score."""
    pieces = ['{"', "reason", '":', ' "', *reason.split(" "), '",', ' "score', '":', " ", sampled]
    return reply([*pieces, "}"], {len(pieces) - 1: alternatives})


def answers(*texts: str, finish_reason: FinishReason = "stop") -> Completion:
    """A completion of several answers without log-probabilities."""
    choices = tuple(Choice(text=text, finish_reason=finish_reason) for text in texts)
    return Completion(choices=choices, usage=Usage(requests=1))


def _body(text: str, logprob: float) -> dict[str, object]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def chat_body(
    *answers_pieces: Sequence[str], at: Mapping[int, Alternatives] | None = None
) -> dict[str, object]:
    """The JSON body of an OpenAI chat reply; with log-probabilities where `at` is given."""
    choices = []
    for index, pieces in enumerate(answers_pieces):
        choice: dict[str, object] = {
            "index": index,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "".join(pieces), "refusal": None},
        }
        if at is not None:
            content = [
                {
                    **_body(token.text, token.logprob),
                    "top_logprobs": [_body(*one) for one in token.top],
                }
                for token in tokens(pieces, at)
            ]
            choice["logprobs"] = {"content": content}
        choices.append(choice)
    return {
        "id": "c", "object": "chat.completion", "created": 0, "model": "m-2026",
        "choices": choices,
        "usage": {"prompt_tokens": 30, "completion_tokens": 9, "total_tokens": 39},
    }  # fmt: skip
