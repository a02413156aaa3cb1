r"""Escape untrusted text for terminals, logs and pages.

An escape sequence recolours a terminal or renames its window, a direction mark turns a line round,
a line break forges a line of a log, and a zero-width character hides what it stands between. Here
each of them is written out, as in `\x1b`. Whatever prints, logs or writes a page calls this module;
`counted` writes numbers of things for it, and `LogOnce` keeps a failure from filling the log.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import traceback
import unicodedata
from collections.abc import Hashable, Mapping
from pathlib import Path

_ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories: controls, formats (direction, zero width, tags), half characters, line ends."""
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
"""Characters of other categories that take no space or look like nothing."""
_LONE_SELECTOR = re.compile(
    "(?<![#*0-9\u00a9-\U0010ffff])[\ufe0e\ufe0f]+|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]+"
)
"""A choice between text and emoji that follows no symbol, or follows another choice."""
_EMOJI = "\u2600-\u27bf\u2b1b\u2b1c\u2b50\U0001f000-\U0001faff"
_CURSIVE = "\u0620-\u07ff\u0860-\u0dff\u0f00-\u109f\u1780-\u18aa\ua840-\uabff"
_JOINED = re.compile(
    # Emoji of several, and letters of Arabic, Persian and the scripts of India, which are other
    # letters, or unreadable, without. One alone between two such signs hides nothing.
    f"((?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f)\u200d(?=[{_EMOJI}])"
    f"|(?<=[{_CURSIVE}])[\u200c\u200d](?=[{_CURSIVE}]))"
)
"""A joiner, or a non-joiner, where the signs around it need one."""


class _Escapes(dict[int, str]):
    """Character code → how it is written; filled as characters appear."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        acts = unicodedata.category(character) in _ACTING or _BLANK.match(character) is not None
        text = _escaped(character) if acts and character != "\n" else character
        self[code] = text
        return text


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


_ESCAPES = _Escapes()


def visible(text: str) -> str:
    r"""Escape what acts on a terminal or hides from its reader, as in `\x1b`.

    Line breaks stay, and so do the joiners and selectors that scripts and emoji need.
    """
    if text.isascii() and text.isprintable():
        return text
    if "\u200c" in text or "\u200d" in text:
        pieces = _JOINED.split(text)  # every second one is a joiner that may stay
        escaped = "".join(
            piece if place % 2 else piece.translate(_ESCAPES) for place, piece in enumerate(pieces)
        )
    else:
        escaped = text.translate(_ESCAPES)
    return _LONE_SELECTOR.sub(lambda match: _escaped(match[0]), escaped)


def hanging(text: str) -> str:
    """Escape a text, and indent its further lines, so that none of them looks like ours."""
    return visible(text).replace("\n", "\n  ")


def one_line(text: str, width: int | None = None) -> str:
    """Escape a text on one line: white space becomes single spaces.

    Args:
        text: the text.
        width: number of characters from which on the text is cut and ends in an ellipsis; counted
            before escapes. None for all.
    """
    line = " ".join(text.split())
    if width is not None and len(line) > width:
        line = line[: max(width - 1, 0)].rstrip() + "…"
    return visible(line)


def visible_traceback(error: BaseException) -> str:
    """Format an error and its causes; a message's further lines are indented."""
    chunks = traceback.TracebackException.from_exception(error).format()
    # A chunk that begins with white space is a frame, or the words between two errors.
    parts = (
        visible(chunk) if chunk[:1].isspace() else f"{hanging(chunk.removesuffix(chr(10)))}\n"
        for chunk in chunks
    )
    return "".join(parts).removesuffix("\n")


def kind_and_place(error: BaseException) -> str:
    """Name the type of what a user's function raised, and the line; its words may quote texts."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not str(frame.f_globals.get("__name__")).startswith(f"{__package__}."):
            return f"{type(error).__name__} ({Path(frame.f_code.co_filename).name}, line {line})"
    return type(error).__name__


def visible_json(content: object) -> str:
    """Render JSON that can be printed: ASCII, without controls; NaN is refused."""
    return json.dumps(content, allow_nan=False, indent=1).replace("\x7f", "\\u007f")


def counted(count: int, singular: str, many: str | None = None) -> str:
    """Write a number of things.

    Args:
        count: how many.
        singular: the word for one of them, with its verb where the sentence needs it ("call was").
        many: the word for several; by default `singular` with an "s".
    """
    return f"{count:,} {singular if count == 1 else many or f'{singular}s'}"


# --- Loggers


def logger_of(name: str) -> logging.Logger:
    """Return a logger whose lines no text of other people can forge, colour or hide."""
    logger = logging.getLogger(name)
    if _VISIBLE not in logger.filters:
        logger.addFilter(_VISIBLE)
    return logger


class _Visible(logging.Filter):
    """Escapes a record's message, arguments and traceback; never drops a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Escape control characters in a record's message, arguments and traceback."""
        record.msg = _argument(record.msg)
        if isinstance(record.args, Mapping):
            record.args = {name: _argument(value) for name, value in record.args.items()}
        elif record.args:
            record.args = tuple(map(_argument, record.args))
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not record.exc_text:
            # Formatters take this text before they make their own from the exception, which stays.
            record.exc_text = visible_traceback(error)
        return True


_VISIBLE = _Visible()


def _argument(value: object) -> object:
    """Return the argument of a log line itself, or its escaped text if that differs."""
    if value is None or isinstance(value, int | float):
        return value
    try:
        text = str(value)
    except Exception:  # noqa: BLE001  # a foreign object: a log line must not fail the app
        return f"<{visible(type(value).__name__)} without text>"
    escaped = visible(text).replace("\n", "\\n")
    return value if escaped == text else escaped


class LogOnce:
    """Counts failures from any thread; logs the first of each kind.

    Args:
        logger: where failures are logged.
        level: level of the log lines.
        max_kinds: number of kinds that are logged; further ones are only counted, so that kinds
            without end fill neither the log nor the memory.
    """

    def __init__(
        self, logger: logging.Logger, level: int = logging.WARNING, *, max_kinds: int = 100
    ) -> None:
        self.count = 0
        """Failures so far, logged or not."""
        self.logger = logger
        self._level = level
        self._max_kinds = max_kinds
        self._kinds: set[Hashable] = set()
        self._lock = threading.RLock()  # a garbage collection in here may report a failure

    def log(
        self, kind: Hashable, message: str, *args: object, error: BaseException | None = None
    ) -> None:
        """Count a failure; log it if it is the first of its kind.

        Args:
            kind: key of the kind of failure.
            message: the log line, with the places of `args`.
            *args: values for the log line.
            error: the exception whose traceback is logged, if any.
        """
        with self._lock:
            self.count += 1
            if kind in self._kinds or len(self._kinds) >= self._max_kinds:
                return
            self._kinds.add(kind)
        self.logger.log(self._level, message, *args, exc_info=error, stacklevel=2)
