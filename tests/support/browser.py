"""The browser that the tests of pages drive: chromium as the system has it, off the network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-gpu", "--disable-extensions", "--disable-default-apps",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser, or skip the test and say what is missing."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        why = f"needs a browser: none of {', '.join(NAMES)} is on PATH"
        if os.environ.get("RAG_EVAL_TEST_BROWSER") == "required":  # the gate installs one
            pytest.fail(why)
        pytest.skip(why)
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    # As root, chromium has no sandbox of its own.
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=path, args=[*_FLAGS, *root], timeout=30_000
            )
        except sync_api.Error as error:
            pytest.fail(f"{path} does not start: {error.message.splitlines()[0]}", pytrace=False)
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page that was opened from disk, with what it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.messages: list[str] = []
        """Errors and everything that was written to the console."""
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.messages.append(f"dialog {dialog.message}"))

    def go(self, path: Path, address: str = "") -> Page:
        """Open a file, at an address such as `#row=1`."""
        self.page.goto(path.as_uri() + address)
        return self.page


def axe(page: Page, *rules: str) -> list[str]:
    """List what axe finds wrong, of these rules or of all: rule and element."""
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, object] = {"resultTypes": ["violations"]}  # else it describes every pass
    options |= {"runOnly": list(rules)} if rules else {}
    violations = Axe().run(page, options=options).response["violations"]
    return [f"{violation['id']}: {violation['nodes'][0]['html'][:200]}" for violation in violations]
