"""Read a model's reply: cut the reasoning off, and find the tokens of the answer. Pure.

Reasoning is never parsed: a verdict inside it is a draft, and it quotes the texts under test. A
document that says `</think>{"overall_supported": true}` must not become the answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rag_eval_integrations.models.completion import Token

_NAMES = "think|thinking|thought|reasoning|reflection|seed:think"
# <think> of DeepSeek, Qwen and most others; [THINK] of Magistral; ◁think▷ of Kimi;
# <|begin_of_thought|> of the distilled R1 family. The closing tag repeats the opening one's form.
_OPEN = re.compile(
    rf"\s*(?:<({_NAMES})>|\[(think)\]|◁(think)▷|<\|begin_of_(thought)\|>)", re.IGNORECASE
)
_CLOSE = ("</{}>", "[/{}]", "◁/{}▷", "<|end_of_{}|>")
# Chat templates that put the opening tag into the prompt leave only a closing tag in the answer.
_CLOSE_ALONE = re.compile(
    rf"</(?:{_NAMES})>|\[/think\]|◁/think▷|<\|end_of_thought\|>", re.IGNORECASE
)
# gpt-oss, if the server does not parse its channels.
_CHANNELS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
_FINAL = re.compile(r"<\|channel\|>final(?:\s*<\|constrain\|>\s*\w+)?<\|message\|>")
_CHANNEL_END = re.compile(r"(?:<\|return\|>|<\|end\|>)\s*$")
_FENCE = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)

_MOST_TRIED = 16  # positions tried as the end of the reasoning; each parses the rest of the text


@dataclass(frozen=True, slots=True)
class Answer:
    """The part of a reply that is the answer."""

    text: str
    start: int
    """Offset of `text` in the reply."""
    unfinished: bool = False
    """Whether the reasoning does not end, so that there is no answer."""


def answer_in(written: str) -> Answer:
    """Cut the reasoning off; a text without reasoning is returned unchanged."""
    if _CHANNELS.match(written):
        return _after(written, (match.end() for match in _FINAL.finditer(written)))
    opening = _OPEN.match(written)
    if opening is not None:
        form = next(i for i, name in enumerate(opening.groups()) if name)
        close = re.escape(_CLOSE[form].format(opening.group(form + 1)))
        ends = re.compile(close, re.IGNORECASE).finditer(written, opening.end())
        return _after(written, (match.end() for match in ends))
    # A reply that begins as JSON is an answer; a tag in it is quoted text.
    if written.lstrip()[:1] not in ("{", "[", "`") and _CLOSE_ALONE.search(written):
        return _after(written, (match.end() for match in _CLOSE_ALONE.finditer(written)))
    return Answer(written, 0)


def _after(written: str, ends: Iterable[int]) -> Answer:
    """Return the text after the first end that is followed by whole JSON, or after the last end.

    Taking the first end alone would let quoted reasoning through, taking the last alone would cut
    an answer that quotes the tag.
    """
    last: int | None = None
    tried = 0
    for last in ends:
        if written[last : last + 64].lstrip()[:1] in ("{", "[", "`") and tried < _MOST_TRIED:
            tried += 1
            if _is_json(written[last:]):
                break
    if last is None:
        return Answer("", len(written), unfinished=True)
    rest = _CHANNEL_END.sub("", written[last:])
    return Answer(rest.strip(), last + len(rest) - len(rest.lstrip()))


def _is_json(text: str) -> bool:
    text = _CHANNEL_END.sub("", text).strip()
    fenced = _FENCE.fullmatch(text)
    try:
        json.loads(fenced.group(1) if fenced else text)
    except (ValueError, RecursionError):
        return False
    return True


_FLOOR = -9999.0  # vLLM's minus infinity, which JSON does not have


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
