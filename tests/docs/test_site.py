"""The built site, as `.ci/docs` leaves it in site/: a reader's browser asks no other host."""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import chromium
from parsed import Parsed

_LOADS = {"action", "data", "href", "poster", "src", "srcset"}
"""Attributes with addresses; a link that a reader may follow is not loaded."""


@pytest.fixture(scope="module")
def site(root: Path) -> Path:
    """The folder of the site; the gate has built one."""
    if not (root / "site" / "index.html").exists():
        if os.environ.get("RAG_EVAL_TEST_SITE") == "required":
            pytest.fail("no site: .ci/docs did not build it")
        pytest.skip("no site: .ci/docs builds it")
    return root / "site"


def test_pages_and_styles_name_no_other_host(site: Path) -> None:
    """Fonts, scripts, pictures, styles: all from the site itself."""
    elsewhere = []
    for path in site.rglob("*.html"):
        for element in Parsed(path.read_text(encoding="utf-8")).elements:
            followed = {"href"} if element.tag in ("a", "area") else set()
            loaded = [element.attributes.get(name) or "" for name in _LOADS - followed]
            loaded += re.findall(r"url\(['\"]?([^'\")]+)", element.attributes.get("style") or "")
            elsewhere += [(path.name, address) for address in loaded if urlsplit(address).netloc]
    for path in site.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import )['\"]?((?:https?:)?//[^'\")]+)", path.read_text())
        elsewhere += [(path.name, address) for address in found]

    assert elsewhere == []


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine."""

    class Files(SimpleHTTPRequestHandler):
        """Serves in silence."""

        def log_message(self, format: str, *words: object) -> None:
            """Print nothing."""

    handler = functools.partial(Files, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.browser
@pytest.mark.slow
def test_a_browser_asks_no_other_host(site: Path, address: str) -> None:
    """Not by scripts either, which read the index of the search."""
    requests: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on("request", lambda request: requests.append(request.url))
        # A worker asks for the index, on a busy machine after the page has come to rest.
        with page.expect_request(f"{address}/search.json", timeout=60_000):
            for path in ("/", "/reference/api/", "/reference/notebook-langchain/"):
                assert page.goto(address + path, wait_until="networkidle").ok  # type: ignore[union-attr]

    assert [url for url in requests if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.browser
@pytest.mark.slow
def test_names_in_tables_stand_on_one_line(site: Path, address: str) -> None:
    """In the first column, at the width of a laptop; no page is wider than the window."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for path in ("/concepts/", "/metrics/", "/evals/", "/endpoints/"):
            page.goto(address + path, wait_until="load")
            lines = page.eval_on_selector_all(
                "td:first-child code",
                "names => names.map(name => [name.textContent, name.getClientRects().length])",
            )
            width = page.evaluate("document.documentElement.scrollWidth")

            assert lines
            assert [name for name, count in lines if count > 1] == []
            assert width <= 1280
