"""A server of the pages in a thread, and a browser that has its token."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from browser import Opened, chromium

from rag_eval_integrations import Evaluation
from rag_eval_integrations.records import to_line
from rag_eval_integrations.view._app import FolderPages, application
from rag_eval_integrations.view._corrections import Corrections
from rag_eval_integrations.view._runs import Folder
from rag_eval_integrations.view._server import listening, server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TOKEN = "the-tokén"


class Served:
    """A server of a folder, at a port of its own."""

    def __init__(self, folder: Folder | None, port: int) -> None:
        self._folder, self.port = folder, port
        self.address = f"http://127.0.0.1:{port}"
        self.cookie = f"rag-eval-view-{port}={sha256(TOKEN.encode()).hexdigest()}"

    @property
    def folder(self) -> Folder:
        """The runs."""
        assert self._folder is not None
        return self._folder

    def ask(
        self, target: str, *, method: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Send a request as it is, with the cookie: status, headers, content."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, target, body, {"Cookie": self.cookie, **names})
        answer: HTTPResponse = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        return answer.status, {name.lower(): text for name, text in answer.getheaders()}, content

    def text(self, target: str = "/") -> str:
        """Return a page that is there."""
        status, _, content = self.ask(target)
        assert status == 200, content
        return content


@contextmanager
def running(routes: Sequence[Any], folder: Folder | None = None) -> Iterator[Served]:
    """Serve pages while the block lasts."""
    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    process = server(application(routes, TOKEN, "127.0.0.1", port))
    thread = threading.Thread(target=process.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield Served(folder, port)
    finally:
        process.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def serving(path: Path) -> Iterator[Served]:
    """Serve a folder while the block lasts."""
    folder = Folder(path)
    routes = FolderPages(folder, Corrections(path / "labels.jsonl", "ann")).routes
    with running(routes, folder) as served:
        yield served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of the test's folder."""
    with serving(tmp_path) as started:
        yield started


def write(path: Path, rows: list[Evaluation] | tuple[Evaluation, ...], mode: str = "w") -> Path:
    """Write evaluations as a run does; `mode="a"` appends."""
    with path.open(mode) as file:
        file.writelines(f"{to_line(row)}\n" for row in rows)
    return path


# Of the module, not the session: while it lasts, playwright's loop runs, and no other may.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser, off the network."""
    with chromium() as started:
        yield started


@contextmanager
def tab(browser: Browser, served: Served, **options: Any) -> Iterator[Opened]:
    """A tab that has come with the token; it must keep silent, and ask nobody else."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    context.set_default_timeout(90_000)
    opened = Opened(context.new_page())
    opened.page.goto(f"{served.address}/?token={quote(TOKEN)}")
    yield opened
    assert opened.messages == []
    assert all(url.startswith(served.address) for url in opened.requests)
    context.close()
