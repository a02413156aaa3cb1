"""Pages: the policy fits what is in the page, values stay text, and a page replaces only pages."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from hostile import HOSTILE, acting
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.report import _page


class Elements(HTMLParser):
    """Collects elements with their attributes, and the text of each script and stylesheet."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": [], "h1": []}
        self._in = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in self.texts:
            self._in = tag
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag == self._in else self._in

    def handle_data(self, data: str) -> None:
        if self._in:
            self.texts[self._in][-1] += data


def allowed(text: str) -> str:
    """The hash by which a policy allows a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_what_is_in_the_page_and_nothing_else() -> None:
    """Its hashes are those of the very texts between the tags; it stands before all else."""
    found = Elements("".join(_page.pieces("base.html", title="A page")))

    assert found.found[2][1] == {"charset": "utf-8"}
    assert found.found[3][1] == {
        "http-equiv": "Content-Security-Policy",
        "content": f"default-src 'none'; style-src {allowed(found.texts['style'][0])}; "
        "base-uri 'none'; form-action 'none'",
    }
    assert found.texts["script"] == []


def test_a_name_that_a_template_lacks_is_an_error() -> None:
    """A page never shows an empty place where a figure should be."""
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="title"):
        "".join(_page.pieces("base.html"))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(text: str) -> None:
    """No element comes of them, and no character of them acts."""
    page = "".join(_page.pieces("base.html", title=text))

    plain = [tag for tag, _ in Elements("".join(_page.pieces("base.html", title="x"))).found]
    assert [tag for tag, _ in Elements(page).found] == plain
    assert acting(page) == []


def test_every_attribute_of_the_templates_is_quoted() -> None:
    """Escaping does not save an attribute without quotes."""
    folder = files("rag_eval_integrations.report").joinpath("templates")
    for template in folder.iterdir():
        if template.name.endswith(".html"):
            assert not re.findall(r"=\s*\{\{", template.read_text("utf-8")), template.name


@given(st.text() | st.sampled_from(["</script>", "<!--", "]]>", "\u2028", "\ud800", "&lt;"]))
def test_data_reads_back_and_ends_no_element(text: str) -> None:
    """JSON in a page is what it was, but for lone surrogates, and holds nothing of HTML's."""
    written = str(_page.data({"text": text}))

    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {"text": re.sub("[\ud800-\udfff]", "\ufffd", text)}


def test_a_page_replaces_a_page_and_nothing_else(tmp_path: Path) -> None:
    """A file that this program did not make is refused and stays; a page of it is replaced."""
    mine, other = tmp_path / "mine.html", tmp_path / "other.html"
    other.write_text("<!doctype html><title>hand-made</title>")

    for title in ("first", "second"):
        _page.write(mine, _page.pieces("base.html", title=title))
    with pytest.raises(ConfigurationError, match="not made by this program"):
        _page.write(other, _page.pieces("base.html", title="third"))

    assert Elements(mine.read_text()).texts["h1"] == ["second"]
    assert mine.stat().st_mode & 0o777 == 0o600
    assert "hand-made" in other.read_text()


def test_a_page_that_fails_half_way_leaves_the_earlier_one(tmp_path: Path) -> None:
    """Pieces are read as they are written, so their end may be an error."""
    path = tmp_path / "report.html"
    _page.write(path, _page.pieces("base.html", title="first"))

    with pytest.raises(ZeroDivisionError):
        _page.write(path, (str(1 // number) for number in (1, 0)))

    assert "first" in path.read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
