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
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is on PATH")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    # As root, chromium has no sandbox of its own.
    root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*_FLAGS, *root])
        try:
            yield browser
        finally:
            browser.close()


class Opened:
    """A page that was opened from disk, with what it said and asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        """Errors and everything that was written to the console."""
        self.requests: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))

    def go(self, path: Path, address: str = "") -> Page:
        """Open a file, at an address such as `#row=1`."""
        self.page.goto(path.as_uri() + address)
        return self.page
