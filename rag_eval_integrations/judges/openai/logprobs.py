"""From the `logprobs` of a chat reply to the answer's tokens: pure."""

from __future__ import annotations

import math

from rag_eval_integrations.judges.completion import Token

_FLOOR = -9999.0  # what vLLM writes for minus infinity, which JSON does not have


def clean(text: str) -> str:
    """Replace half surrogate pairs, which JSON can escape and UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def tokens_of(
    given: object, written: str, start: int, text: str, warnings: list[str]
) -> tuple[Token, ...] | None:
    """Read the tokens of an answer as they were given; None when there are none.

    Placeholders (-9999, all alike) pass: what they are worth is for the metric to say.

    Args:
        given: the choice's `logprobs`, in the shape that OpenAI documents.
        written: what the model wrote, its reasoning included.
        start: offset of the answer in it.
        text: the answer.
        warnings: what is odd is added here.
    """
    items = given.get("content") if isinstance(given, dict) else None
    if not isinstance(items, list) or not items:
        return None
    tokens = [_token(item) for item in items]
    if any(token is None for token in tokens):
        warnings.append("the log-probabilities are not of the shape that OpenAI documents")
        return None
    return _of_answer(
        [token for token in tokens if token is not None], written, start, text, warnings
    )


def _of_answer(
    tokens: list[Token], written: str, start: int, text: str, warnings: list[str]
) -> tuple[Token, ...]:
    """Leave out tokens of the reasoning.

    They are in the list where we cut the reasoning off ourselves, and also where the server did
    (SGLang #25055): the tokens then spell more than the content, which is their end.
    """
    spelled = "".join(token.text for token in tokens)
    if spelled.endswith(written):
        start += len(spelled) - len(written)
    elif start or not spelled.startswith(text):
        warnings.append("the tokens with log-probabilities do not spell the answer")
        return tuple(tokens)
    at, kept = 0, []
    for token in tokens:
        at += len(token.text)
        if at > start:
            kept.append(token)
    return tuple(kept)


def _token(item: object) -> Token | None:
    if not isinstance(item, dict):
        return None
    own = _alternative(item)
    others = item.get("top_logprobs")
    top = [_alternative(other) for other in others] if isinstance(others, list) else []
    if own is None:
        return None
    return Token(text=own[0], logprob=own[1], top=tuple(pair for pair in top if pair is not None))


def _alternative(item: object) -> tuple[str, float] | None:
    if not isinstance(item, dict):
        return None
    text, logprob = item.get("token"), item.get("logprob")
    if not isinstance(text, str) or isinstance(logprob, bool):
        return None
    if not isinstance(logprob, int | float) or math.isnan(logprob) or logprob == math.inf:
        return None
    return clean(text), max(float(logprob), _FLOOR)
