"""Pages: the policy fits what is in the page, values stay text, and a page replaces only pages."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsed import Parsed

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.report import _page


def allowed(text: str) -> str:
    """The hash by which a policy allows a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_what_is_in_the_page_and_nothing_else() -> None:
    """Its hashes are those of the very texts between the tags; it stands before all else."""
    found = Parsed("".join(_page.pieces("base.html", title="A page")))

    assert found.attributes[2] == {"charset": "utf-8"}
    assert found.attributes[3] == {
        "http-equiv": "Content-Security-Policy",
        "content": f"default-src 'none'; style-src {allowed(found.texts('style')[0])}; "
        "base-uri 'none'; form-action 'none'",
    }
    assert found.data == {}


def test_a_name_that_a_template_lacks_is_an_error() -> None:
    """A page never shows an empty place where a figure should be."""
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="title"):
        "".join(_page.pieces("base.html"))


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
    """Another file is refused and stays; a page that fails half-way leaves the earlier one."""
    mine, other = tmp_path / "mine.html", tmp_path / "other.html"
    other.write_text("<!doctype html><title>hand-made</title>")

    for title in ("first", "second"):
        _page.write(mine, _page.pieces("base.html", title=title))
    with pytest.raises(ConfigurationError, match="not made by this program"):
        _page.write(other, _page.pieces("base.html", title="third"))
    with pytest.raises(ZeroDivisionError):  # pieces are read as they are written
        _page.write(mine, (str(1 // number) for number in (1, 0)))

    assert Parsed(mine.read_text()).texts("h1") == ["second"]
    assert mine.stat().st_mode & 0o777 == 0o600
    assert "hand-made" in other.read_text()
    assert {each.name for each in tmp_path.iterdir()} == {"mine.html", "other.html"}


@pytest.mark.parametrize("name", ["evals.jsonl", "evals.jsonl.gz", "Figures.JSON", "x.xlsx"])
def test_a_page_under_the_name_of_another_format_is_refused(tmp_path: Path, name: str) -> None:
    """HTML in `evals.jsonl` is a slip of its user, and is said before anything is written."""
    with pytest.raises(ConfigurationError, match=r"a page is HTML; let its name end in \.html"):
        _page.write(tmp_path / name, ["<p>"])
    assert list(tmp_path.iterdir()) == []
