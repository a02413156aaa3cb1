"""What cuts a text into sentences: the protocol that every splitter keeps."""

from __future__ import annotations

from typing import Protocol


class Splitter(Protocol):
    """Cuts a text into sentences; pass your own wherever a splitter is taken.

    One splitter may be asked from several threads at once, and must give the same spans for the
    same text.
    """

    @property
    def name(self) -> str:
        """Its name and version, such as `punkt-en@1`; stamped on every record.

        Change the version whenever the same text may give other sentences: sentence keys recorded
        under one name are read under that name only.
        """
        ...

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the `(start, end)` of each sentence, in characters: it is `text[start:end]`.

        Spans are in order, do not overlap, are not empty, and neither begin nor end with white
        space; every other character of *text* lies in exactly one. A text of white space alone has
        none. Any `str` is accepted, whatever its characters.
        """
        ...
