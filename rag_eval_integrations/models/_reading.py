"""Read a model's reply: its answer without the reasoning, the JSON in it, its tokens. Pure.

Whatever a reply holds, reading it takes time in proportion to its length.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.models.completion import Token

# --- Reasoning, which is never parsed: a verdict inside it is a draft, and it quotes the texts
# under test. A document that says `</think>{"overall_supported": true}` must not become the answer.


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

_MOST_TRIED = 16  # positions tried as the end of the reasoning; each parses the rest of the text


@dataclass(frozen=True, slots=True)
class AnswerText:
    """The part of a reply that is the answer."""

    text: str
    start: int
    """Offset of `text` in the reply."""
    unfinished: bool = False
    """Whether the reasoning does not end, so that there is no answer."""


def answer_in(reply: str) -> AnswerText:
    """Cut the reasoning off; a text without reasoning is returned unchanged.

    Only reasoning at the beginning counts, and a closing tag alone, unless the text begins as JSON
    or a code fence. Empty and `unfinished` when the reasoning does not end.
    """
    if _CHANNELS.match(reply):
        return _answer_after(reply, (match.end() for match in _FINAL.finditer(reply)))
    opening = _OPEN.match(reply)
    if opening is not None:
        form = next(i for i, name in enumerate(opening.groups()) if name)
        close = re.escape(_CLOSE[form].format(opening.group(form + 1)))
        ends = re.compile(close, re.IGNORECASE).finditer(reply, opening.end())
        return _answer_after(reply, (match.end() for match in ends))
    # A reply that begins as JSON is an answer; a tag in it is quoted text.
    if reply.lstrip()[:1] not in ("{", "[", "`") and _CLOSE_ALONE.search(reply):
        return _answer_after(reply, (match.end() for match in _CLOSE_ALONE.finditer(reply)))
    return AnswerText(reply, 0)


def _answer_after(reply: str, ends: Iterable[int]) -> AnswerText:
    """Return the text after the first end that is followed by whole JSON, or after the last end.

    Taking the first end alone would let quoted reasoning through, taking the last alone would cut
    an answer that quotes the tag. The text is stripped; empty and `unfinished` when there is no
    end. Only the first 16 ends with JSON behind them are tried.
    """
    last: int | None = None
    tried = 0
    for last in ends:
        if reply[last : last + 64].lstrip()[:1] in ("{", "[", "`") and tried < _MOST_TRIED:
            tried += 1
            if _is_json(reply[last:]):
                break
    if last is None:
        return AnswerText("", len(reply), unfinished=True)
    rest = _CHANNEL_END.sub("", reply[last:])
    return AnswerText(rest.strip(), last + len(rest) - len(rest.lstrip()))


def _is_json(text: str) -> bool:
    """Whether a text is whole JSON, also in a code fence."""
    text = _CHANNEL_END.sub("", text)
    fenced = _fenced(text)
    try:
        json_of(text if fenced is None else fenced)
    except ValueError:
        return False
    return True


# --- JSON in an answer: in code fences, with prose around it, with small mistakes


def number_of(digits: str) -> int | float:
    """Read an integer of JSON; one with more digits than Python converts is infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


_MOST_DIGITS = 4_000
_WHOLE = json.JSONDecoder(strict=False, parse_constant=str)
"""Accepts raw line breaks in strings; NaN and Infinity, which are not JSON, are read as words."""
_FENCE_OPENS = re.compile(r"```[\w-]*+[ \t]*+(\n|(?=[{\[]))")
_FENCE_CLOSES = re.compile(r"\n[ \t]*+```")
_BEGINS = re.compile(r"\{\s*(?:[\"'\n]|\Z)")

_MOST_TRIES = 200
_MOST_DEEP = 100  # objects and lists in each other
_MOST_PASSES = 4
_LEAST_DECODED = 1_000_000
"""Characters that may be decoded in search of objects; of longer texts, as many as 4 passes take.
Every try may go to the end of the text, as in 200 nested objects that are not closed."""
_MOST_REPAIRED = 20_000  # characters
_MOST_MARKS = 1_500  # quotes, braces and brackets among them
"""A longer broken text is not repaired: json_repair takes quadratic time, 7 s for 20,000 brackets
and 17 s for 12,000 characters of misplaced quotes."""


def unfenced(text: str) -> str:
    """Return the content of the code fence around a text, or of the only fence in a prose text.

    A text without a fence, or with several, is returned unchanged. A fence has its own lines; only
    JSON that is the whole text may share them.
    """
    fenced = _fenced(text)
    if fenced is not None:
        return fenced
    bodies: list[str] = []
    position = 0
    while len(bodies) < 2 and (opening := _FENCE_OPENS.search(text, position)) is not None:
        position = opening.end()
        if not opening[1]:
            continue
        closing = _FENCE_CLOSES.search(text, position)
        if closing is None:
            break
        bodies.append(text[position : closing.start()])
        position = closing.end()
    return bodies[0] if len(bodies) == 1 else text


def _fenced(text: str) -> str | None:
    """Return the content of a text that is one code fence; None if it is not."""
    whole = text.strip()
    opening = _FENCE_OPENS.match(whole)
    if opening is None or not whole.endswith("```", opening.end()):
        return None
    return whole[opening.end() : -3].rstrip(" \t").removesuffix("\n")


def loads(content: str | bytes) -> Any:
    """Read JSON as `json.loads` does; a number of 5,000 digits does not make it unreadable.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    try:
        return json.loads(content)
    except json.JSONDecodeError:
        raise
    except ValueError:  # tried second, since a function per number takes time
        return json.loads(content, parse_int=number_of)


def json_of(text: str) -> Any:
    """Read a text that is JSON as a whole.

    Raw line breaks in strings are accepted; NaN and Infinity are read as words.

    Raises:
        ValueError: it is not, or is nested deeper than 100 levels.
    """
    try:
        value = _WHOLE.decode(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    if _is_deep(value):
        raise ValueError("the JSON is nested too deeply")
    return value


def _is_deep(value: Any) -> bool:
    """Tell whether a value is nested deeper than 100 levels, too deep to be shown or written."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_MOST_DEEP):
        inner = [
            part
            for outer in level
            for part in (outer.values() if isinstance(outer, dict) else outer)
        ]
        level = [part for part in inner if isinstance(part, dict | list)]
        if not level:
            return False
    return True


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """A place in a text where a JSON object begins."""

    start: int
    value: dict[str, Any] | None
    """The object; None where it is broken."""
    repeated: str | None = None
    """A key that the object has twice, itself or inside, so that it says two things; else None."""


def objects_in(text: str) -> Iterator[ObjectPlace]:
    """Yield where each JSON object begins, with its value (None if broken) and a doubled key.

    Objects inside of an object are not yielded, unless that one is broken. A brace in prose is not
    the beginning of an object. The search ends after 200 braces, or when it takes too long. An
    object that is nested deeper than 100 levels counts as broken.
    """
    twice: list[str] = []

    def content(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Make an object, and note a key that stands twice in it."""
        fields = dict(pairs)
        if len(fields) < len(pairs):
            twice.append(Counter(key for key, _ in pairs).most_common(1)[0][0])
        return fields

    # A field that nobody asked for may hold any number.
    decoder = json.JSONDecoder(
        strict=False, parse_constant=str, parse_int=number_of, object_pairs_hook=content
    )
    position, tries = text.find("{"), 0
    left = max(_LEAST_DECODED, _MOST_PASSES * len(text))
    while position >= 0 and tries < _MOST_TRIES and left > 0:
        tries += 1
        value, end = None, position + 1
        twice.clear()
        try:
            value, end = decoder.raw_decode(text, position)
            if _is_deep(value):
                value, end = None, position + 1
        except json.JSONDecodeError as error:
            reached = len(text) if error.msg.startswith("Unterminated") else error.pos
            left -= reached - position
        except (ValueError, RecursionError):  # a number with too many digits; too deep
            left -= len(text) - position
        if value is not None or _BEGINS.match(text, position):
            yield ObjectPlace(position, value, twice[0] if twice and value is not None else None)
        position = text.find("{", end)


# An unterminated string matches, too: otherwise each quote in it would be tried up to the end.
_KEY_OR_MARK = re.compile(
    r'(?P<text>"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?)(?P<key>\s*+:)?|(?P<mark>[{}\[\]])', re.DOTALL
)


def repeats(key: str) -> str:
    """Return the message about a key that an object has twice."""
    return f"the judge's JSON repeats the key {key[:40]!r}"


def _repeated_key(text: str) -> str | None:
    """Find a key that an object has twice in JSON that is broken."""
    around: list[set[str]] = []
    for match in _KEY_OR_MARK.finditer(text):
        mark = match["mark"]
        if mark is None and match["key"] and around:
            key = as_text(match["text"])
            if key in around[-1]:
                return key
            around[-1].add(key)
        elif mark is not None and mark in "{[":
            around.append(set())
        elif mark is not None and around:
            around.pop()
    return None


def mended(text: str, start: int = 0, *, whole: bool = False) -> Any:
    """Repair a broken object or list.

    One that is cut off is refused instead of completed: what is missing would otherwise count as
    never said. The messages of the errors are part of prompts (G-Eval's repair request): a changed
    word there changes what models are asked.

    Args:
        text: the text that holds it.
        start: position of its opening bracket.
        whole: whether nothing may follow it; else, what follows its last bracket is ignored.

    Raises:
        JudgeOutputError: it is cut off, has a key twice though something may follow it, or is too
            long to be repaired or not readable.
    """
    body = _closed(text, start, whole=whole)
    if body is None:
        raise JudgeOutputError("the judge's JSON was cut off", text)
    if len(body) > _MOST_REPAIRED or sum(map(body.count, "\"'{}[]")) > _MOST_MARKS:
        raise JudgeOutputError("the judge's JSON is broken, and too long to be repaired", text)
    # A text that is a list of statements is read as far as it can be.
    if not whole and (repeated := _repeated_key(body)) is not None:
        raise JudgeOutputError(repeats(repeated), text)
    from json_repair import loads  # noqa: PLC0415  # only when a reply needs it

    try:
        return loads(body)
    except Exception as error:  # it parses numbers and nesting itself, beyond Python's limits too
        raise JudgeOutputError("the judge's reply holds no readable JSON", text) from error


def _closed(text: str, start: int, *, whole: bool) -> str | None:
    """Cut off the text after a broken object or list; None if one of its brackets stays open.

    It ends at the last closing bracket before the end of its fence: quotes that are misplaced may
    show brackets of strings as its own, so that the first one that fits need not be its end. If the
    last one seems to be in a string, nothing is certain, unless it is known to end the text.
    """
    closing = "]" if text.startswith("[", start) else "}"
    if text.find(closing, start) < 0 or (whole and not text.endswith(closing)):
        return None
    stop = len(text)
    end = depth = 0
    closed = False
    for place, mark in _marks(text, start, stop):
        if mark == "`" and not whole:
            stop = place
            break
        if mark == '"' and whole:
            return text[start:]
        depth += (mark in "{[") - (mark in "}]")
        if mark == closing:
            end, closed = place + 1, depth <= 0
    in_string = text.find(closing, end, stop) >= 0
    return text[start:end] if closed and not in_string else None


# --- The fields of JSON objects with their places, for who needs those, and where objects break off


Span = tuple[int, int]

_KEY = re.compile(r"\s*(?P<quote>[\"'])(?P<key>[^\"'\n]{1,100})(?P=quote)\s*:\s*")
# Neighbours together, since two of them may be one character.
_ESCAPE = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
_LINE_BREAK = re.compile(r"(?:(?<![ \t])[ \t]++)?\r?\n[ \t]*+")
_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?P<end>")?|(?P<mark>[{}\[\],]|```)|\'', re.DOTALL)
_SINGLE = re.compile(r"'[^'\\]*(?:\\.[^'\\]*)*(?P<end>')?", re.DOTALL)
_MOST_NESTED = 4


def fields_in(text: str) -> Iterator[list[dict[str, Span]]]:
    """Yield, for every outermost object, the spans of its fields and of the objects inside it.

    The outermost object comes first; names of fields are in lower case. An object that breaks off
    gives its fields up to the end of the text, the cut one included. Nothing is repaired. An object
    without fields yields nothing. The search ends after 200 braces, and 4 levels down.
    """
    position, tries = text.find("{"), 0
    while position >= 0 and tries < _MOST_TRIES:
        tries += 1
        fields, end = _fields(text, position + 1, len(text))
        if fields:
            yield [fields, *_nested(text, fields, _MOST_NESTED)]
        position = text.find("{", max(end, position + 1))


def as_text(value: str) -> str:
    """Undo the quotes and escapes of a string value; return other values as they are written.

    A raw line break with its indentation becomes a space. A string that is not closed loses its
    opening quote only. Lone surrogates become `?`.
    """
    if value[:1] not in ("'", '"'):
        return value
    inner = value[1:-1] if len(value) > 1 and value[-1] == value[0] else value[1:]
    unescaped = _ESCAPE.sub(lambda match: str(json.loads(f'"{match[0]}"')), inner)
    lines = _LINE_BREAK.sub(" ", unescaped) if "\n" in inner else unescaped
    return lines.encode("utf-8", "replace").decode()


def _nested(text: str, fields: dict[str, Span], depth: int) -> Iterator[dict[str, Span]]:
    """Yield the fields of the objects inside an object, outer ones first, down to a depth."""
    for begin, stop in fields.values():
        if depth and text.startswith("{", begin, stop):
            inner, _ = _fields(text, begin + 1, stop)
            yield inner
            yield from _nested(text, inner, depth - 1)


def _fields(text: str, position: int, stop: int) -> tuple[dict[str, Span], int]:
    """Read `"key": value, …` up to the closing brace; return fields and the position after it.

    Names are in lower case; of two fields with the same name, none has a value. A value that is cut
    off ends at `stop`.
    """
    fields: dict[str, Span] = {}
    while (match := _KEY.match(text, position, stop)) is not None:
        begin, end = match.end(), _value_end(text, match.end(), stop)
        name = match["key"].strip().lower()
        length = 0 if name in fields else len(text[begin:end].rstrip())
        fields[name] = (begin, begin + length)
        if end >= stop or text[end] != ",":
            return fields, end + 1
        position = end + 1
    return fields, position


def _value_end(text: str, position: int, stop: int) -> int:
    """Find the position of the comma or bracket that ends a value; `stop` if there is none."""
    depth = 0
    for place, mark in _marks(text, position, stop):
        if not depth and mark in "}],":
            return place
        depth += (mark in "{[") - (mark in "}]")
    return stop


def _marks(text: str, position: int, stop: int) -> Iterator[tuple[int, str]]:
    """Yield brackets, commas and, as "`", fences outside of strings; a quote if a string is cut."""
    start_at: int | None = position
    while start_at is not None:
        matches = _MARK.finditer(text, start_at, stop)
        start_at = None
        for match in matches:
            start = match.start()
            if match.lastgroup == "mark":
                yield start, text[start]
            elif text[start] == '"':
                if match.lastgroup is None:
                    yield start, '"'
            elif _opens(text, start):
                single = _SINGLE.match(text, start, stop)
                if single is None or single.lastgroup is None:
                    yield start, '"'
                start_at = stop if single is None else single.end()
                break


def _opens(text: str, position: int) -> bool:
    """Tell whether a single quote opens a string, as in Python's dicts; else, an apostrophe."""
    return text[max(0, position - 40) : position].rstrip()[-1:] in (":", ",", "[", "{")


# --- Tokens of a reply: their log-probabilities, and how many there are


_FLOOR = -9999.0  # vLLM's minus infinity, which JSON does not have
_CEILING = 1e300  # a longer integer is not even a float


def clean(text: str) -> str:
    """Replace lone surrogates, which JSON can escape and UTF-8 cannot encode, by `?`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def tokens_of(
    given: object, reply: str, start: int, text: str, warnings: list[str]
) -> tuple[Token, ...] | None:
    """Read the tokens of an answer with their log-probabilities; None when there are none.

    None with a warning when one of them has another shape. Tokens of the reasoning are left out. If
    the tokens do not spell the answer, all are returned, with a warning. Placeholders (-9999, all
    alike) are kept; the metric decides about them.

    Args:
        given: the choice's `logprobs`, in the shape that OpenAI documents.
        reply: the model's text, its reasoning included.
        start: offset of the answer in it.
        text: the answer.
        warnings: list to which warnings are added.
    """
    items = given.get("content") if isinstance(given, dict) else None
    if not isinstance(items, list) or not items:
        return None
    tokens = [token for item in items if (token := _token(item)) is not None]
    if len(tokens) < len(items):
        warnings.append("the log-probabilities are not of the shape that OpenAI documents")
        return None
    return _answer_tokens(tokens, reply, start, text, warnings)


def _answer_tokens(
    tokens: list[Token], reply: str, start: int, text: str, warnings: list[str]
) -> tuple[Token, ...]:
    """Drop the tokens of the reasoning; keep all, with a warning, if they do not spell the answer.

    The list has them when we cut the reasoning off ourselves, and also when the server did
    (SGLang #25055): the tokens then spell more than the content, which is their end.
    """
    spelled = "".join(token.text for token in tokens)
    if spelled.endswith(reply):
        start += len(spelled) - len(reply)
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
    """Read one token with its alternatives; None when it has another shape.

    Alternatives of another shape are left out.
    """
    if not isinstance(item, dict):
        return None
    own = _alternative(item)
    others = item.get("top_logprobs")
    top = [_alternative(other) for other in others] if isinstance(others, list) else []
    if own is None:
        return None
    return Token(text=own[0], logprob=own[1], top=tuple(pair for pair in top if pair is not None))


def _alternative(item: object) -> tuple[str, float] | None:
    """Read a text with its log-probability; None when it has another shape."""
    return alternative(item.get("token"), item.get("logprob")) if isinstance(item, dict) else None


def alternative(text: object, logprob: object) -> tuple[str, float] | None:
    """Return a token's text and log-probability as a record holds them; None if it cannot.

    None for NaN, infinity and booleans. A value below -9999 becomes -9999, and lone surrogates in
    the text become `?`.
    """
    if not isinstance(text, str) or isinstance(logprob, bool):
        return None
    if not isinstance(logprob, int | float) or not logprob < _CEILING:  # NaN and infinity too
        return None
    return clean(text), float(max(logprob, _FLOOR))


_MOST_TOKENS = 10**12
"""A count above is nonsense, and may have more digits than a file can hold."""


def token_count(value: object) -> int:
    """Read a number of tokens; 0 for anything that is not a count.

    That is anything but an `int` from 1 up to below 10^12.
    """
    return value if type(value) is int and 0 < value < _MOST_TOKENS else 0
