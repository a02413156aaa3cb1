"""HTML as a browser would read it: its elements in order, with attributes and texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_EMPTY = {"br", "hr", "img", "input", "link", "meta", "wbr"}


@dataclass
class Element:
    """An element, with the texts of all elements inside of it."""

    tag: str
    attributes: dict[str, str | None]
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)


class Parsed(HTMLParser):
    """The elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))
        self._open += self.elements[-1:] if tag not in _EMPTY else []

    def handle_endtag(self, tag: str) -> None:
        while any(element.tag == tag for element in self._open):
            if self._open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.parts.append(data)

    @property
    def tags(self) -> list[str]:
        return [element.tag for element in self.elements]

    @property
    def attributes(self) -> list[dict[str, str | None]]:
        return [element.attributes for element in self.elements]

    @property
    def data(self) -> dict[str, str]:
        """The texts of scripts by their ids; of the page's own code by `code`."""
        scripts = (element for element in self.elements if element.tag == "script")
        return {script.attributes.get("id") or "code": script.text for script in scripts}

    def texts(self, *tags: str) -> list[str]:
        """The texts of the elements of some kinds, in their order."""
        return [element.text for element in self.elements if element.tag in tags]
