"""From what a reasoning model wrote to its answer: the reasoning is cut off and never parsed.

A verdict inside of reasoning is a draft, and reasoning quotes the texts under test: a document
that says `</think>{"overall_supported": true}` must not become the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_NAMES = "think|thinking|thought|reasoning|reflection|seed:think"
# <think> of DeepSeek, Qwen and most others; [THINK] of Magistral; ◁think▷ of Kimi;
# <|begin_of_thought|> of the distilled R1 family. The closing tag repeats the opening one's form.
_OPEN = re.compile(
    rf"\s*(?:<({_NAMES})>|\[(think)\]|◁(think)▷|<\|begin_of_(thought)\|>)", re.IGNORECASE
)
_CLOSE = ("</{}>", "[/{}]", "◁/{}▷", "<|end_of_{}|>")
# Chat templates that put the opening tag into the prompt leave a closing one alone in the answer.
_CLOSE_ALONE = re.compile(
    rf"</(?:{_NAMES})>|\[/think\]|◁/think▷|<\|end_of_thought\|>", re.IGNORECASE
)
# gpt-oss, where the server does not parse its channels.
_CHANNELS = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
_FINAL = re.compile(r"<\|channel\|>final(?:\s*<\|constrain\|>\s*\w+)?<\|message\|>")
_CHANNEL_END = re.compile(r"(?:<\|return\|>|<\|end\|>)\s*$")
_FENCE = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)

_MOST_TRIED = 16  # places tried as the end of the reasoning; each costs a parse of what follows


@dataclass(frozen=True, slots=True)
class Answer:
    """The part of a reply that is the answer."""

    text: str
    start: int
    """Offset of `text` in what the model wrote."""
    unfinished: bool = False
    """Whether the reasoning never ended, so that there is no answer."""


def answer_in(written: str) -> Answer:
    """Cut the reasoning off. Without any, the text is returned as it is."""
    if _CHANNELS.match(written):
        return _after(written, (match.end() for match in _FINAL.finditer(written)))
    opening = _OPEN.match(written)
    if opening is not None:
        form = next(i for i, name in enumerate(opening.groups()) if name)
        close = re.escape(_CLOSE[form].format(opening.group(form + 1)))
        ends = re.compile(close, re.IGNORECASE).finditer(written, opening.end())
        return _after(written, (match.end() for match in ends))
    # A reply that begins as JSON is an answer; a tag in it is part of a quotation.
    if written.lstrip()[:1] not in ("{", "[", "`") and _CLOSE_ALONE.search(written):
        return _after(written, (match.end() for match in _CLOSE_ALONE.finditer(written)))
    return Answer(written, 0)


def _after(written: str, ends: Iterable[int]) -> Answer:
    """Take what follows the first end that whole JSON follows, else what follows the last one.

    The first alone would let quoted reasoning through, the last alone would cut an answer that
    quotes the tag.
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
