"""Read the tokens of a reply: their log-probabilities, and how many there are. Pure."""

from __future__ import annotations

from rag_eval_integrations.models.completion import Token

_FLOOR = -9999.0  # vLLM's minus infinity, which JSON does not have
_CEILING = 1e300  # a longer integer is not even a float


def clean(text: str) -> str:
    """Replace lone surrogates, which JSON can escape and UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def tokens_of(
    given: object, written: str, start: int, text: str, warnings: list[str]
) -> tuple[Token, ...] | None:
    """Read the tokens of an answer with their log-probabilities; None when there are none.

    Placeholders (-9999, all alike) are kept; the metric decides about them.

    Args:
        given: the choice's `logprobs`, in the shape that OpenAI documents.
        written: the model's text, its reasoning included.
        start: offset of the answer in it.
        text: the answer.
        warnings: list to which warnings are added.
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
    """Drop the tokens of the reasoning.

    The list has them when we cut the reasoning off ourselves, and also when the server did
    (SGLang #25055): the tokens then spell more than the content, which is their end.
    """
    spelled = "".join(token.text for token in tokens)
    if spelled.endswith(written):
        start += len(spelled) - len(written)
    elif start or not spelled.startswith(text):
        warnings.append("the tokens with log-probabilities do not spell the answer")
        return tuple(tokens)
    end, kept = 0, []
    for token in tokens:
        end += len(token.text)
        if end > start:
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
    if not isinstance(logprob, int | float):
        return None
    if not logprob < _CEILING:  # NaN and infinity too
        return None
    return clean(text), float(max(logprob, _FLOOR))


def alternative(text: str, logprob: float) -> tuple[str, float] | None:
    """Return a token's text and log-probability as a record holds them; None if it cannot."""
    return _alternative({"token": text, "logprob": logprob})


_MOST_TOKENS = 10**12


def token_count(value: object) -> int:
    """Read a number of tokens; what cannot be one counts as not given, which is 0."""
    return value if type(value) is int and 0 < value < _MOST_TOKENS else 0
