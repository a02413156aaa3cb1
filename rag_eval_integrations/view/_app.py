"""The pages of `rag-eval view`, by the code of `report`, and who may see them.

Whoever has the token sees the pages: it comes once in an address, and is a cookie from then on. A
name that leads here by a trick of DNS, and a request that another site makes, are refused.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address

from rag_eval_integrations._visible import visible
from rag_eval_integrations.errors import RagEvalError, extra
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report import _page
from rag_eval_integrations.report._store_page import WINDOWS, Window, store_page
from rag_eval_integrations.store import Store
from rag_eval_integrations.view._corrections import LONGEST, Corrections
from rag_eval_integrations.view._pages import (
    compare_runs,
    page_update,
    run_page,
    runs_page,
    window_page,
)
from rag_eval_integrations.view._runs import Folder, ReplacedError

with extra("view", "starlette"):
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import MutableHeaders
    from starlette.requests import Request
    from starlette.responses import (
        HTMLResponse,
        JSONResponse,
        PlainTextResponse,
        RedirectResponse,
        Response,
    )
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    # The pages themselves name the script and style that may run.
    "Content-Security-Policy": "frame-ancestors 'none'; object-src 'none'",
}


class Guard:
    """Middleware that lets requests with the token pass, and adds security headers.

    Args:
        app: what answers everybody else.
        token: opens the pages.
        host: a further name by which the server may be called; addresses in numbers are no trick.
        port: names the cookie, which all ports of a machine share.
    """

    def __init__(self, app: ASGIApp, token: str, host: str, port: int) -> None:
        self._app = app
        self._proof = _proof_of(token)
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}
        self._cookie = f"rag-eval-view-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            """Send a message, with the headers of security."""
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._refusal(Request(scope)) or self._app
        await answer(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that is refused or brings the token; else None."""
        host = request.headers.get("host", "")
        if not self._is_own_host(host):
            return _message_page("Not this name", "Use the address that was printed.", 421)
        ours = f"{request.url.scheme}://{host}"
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") != ours:
            return _message_page("Refused", "Another site made this request.", 403)
        given = request.query_params.get("token") if request.url.path == "/" else None
        if given is not None and secrets.compare_digest(_proof_of(given), self._proof):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._cookie, self._proof, httponly=True, samesite="strict")
            return answer
        cookie = request.cookies.get(self._cookie, "").encode()
        if not secrets.compare_digest(cookie, self._proof.encode()):
            words = "Open the address that `rag-eval view` printed last, with its token."
            return _message_page("No token", words, 403)
        return None

    def _is_own_host(self, host: str) -> bool:
        """Return whether a `Host` header has a name of this server, or an IP address."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.strip("[]").lower()
        try:
            ip_address(name)
        except ValueError:
            return name in self._names
        return True


def _proof_of(token: str) -> str:
    """Return the digest of a token, which its cookie holds."""
    return hashlib.sha256(token.encode()).hexdigest()


def _message_page(title: str, words: str, status: int) -> Response:
    """Return a page that says why there is nothing else to see."""
    content = _page.pieces("message.html", title=title, words=words, served=True)
    return HTMLResponse("".join(content), status)


class FolderPages:
    """Routes of a folder, with the pages that they show.

    Args:
        folder: the runs.
        corrections: where corrections are saved.
        store: name of the store that is served, too; empty without.
    """

    def __init__(self, folder: Folder, corrections: Corrections | None, store: str = "") -> None:
        self._folder, self._corrections, self._store = folder, corrections, store
        self.routes = [
            Route("/", self.runs),
            Route("/run/{address}", self.run),
            Route("/run/{address}/more", self.more),
            Route("/run/{address}/label", self.label, methods=["POST"]),
            Route("/compare", self.comparison),
        ]

    def runs(self, request: Request) -> Response:
        """Show the list of runs; 304 if the browser has it already."""
        self._folder.runs()
        minute = int(datetime.now(UTC).timestamp()) // 60  # an age changes, too
        tag = f'"{self._folder.version}-{minute}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304)
        return HTMLResponse("".join(runs_page(self._folder, self._store)), headers={"ETag": tag})

    def run(self, request: Request) -> Response:
        """Show a page of a run's calls."""
        run = self._folder.run(request.path_params["address"])
        if run is None:
            return _not_there(request, IndexError())
        content = run_page(run, _number(request, "page", 1), self._corrections)
        return HTMLResponse("".join(content))

    def more(self, request: Request) -> Response:
        """Return, as JSON, the calls and figures that an open page lacks."""
        address, first = request.path_params["address"], _number(request, "first", 0)
        return JSONResponse(page_update(self._folder, address, first))

    def comparison(self, request: Request) -> Response:
        """Compare the runs that were picked."""
        picked = [self._folder.run(address) for address in request.query_params.getlist("run")]
        runs = [run for run in picked if run is not None]
        if len(runs) < len(picked):
            return _not_there(request, IndexError())
        if not 2 <= len(runs) <= _MOST_COMPARED:
            return _message_page(
                "Pick two runs", f"Or up to {_MOST_COMPARED}, to compare them.", 400
            )
        try:
            return HTMLResponse("".join(compare_runs(runs)))
        except RagEvalError as error:
            why = getattr(error, "why", str(error))
            return _message_page("These runs cannot be compared", why, 409)

    async def label(self, request: Request) -> Response:
        """Save a correction."""
        run = self._folder.run(request.path_params["address"])
        return await _save_correction(
            request, self._corrections, run.call if run else lambda number: None
        )


class StorePages:
    """Routes of a store, with the pages that they show.

    Args:
        store: the store.
        corrections: where corrections are saved; None where they are not made.
    """

    def __init__(self, store: Store, corrections: Corrections | None) -> None:
        self._store, self._corrections = store, corrections
        self.routes = [
            Route("/", self.page),  # where no folder is served
            Route("/store", self.page),
            Route("/store/{window}", self.window),
            Route("/store/{window}/label", self.label, methods=["POST"]),
        ]

    def page(self, request: Request) -> Response:
        """Show the overview of the store: how calls went, and what waits."""
        return HTMLResponse("".join(store_page(self._store, served=True)))

    def window(self, request: Request) -> Response:
        """Show a page of the calls in a time window."""
        window, until = self._window_of(request)
        page = _number(request, "page", 1)
        content = window_page(self._store, window, until, page, self._corrections)
        return HTMLResponse("".join(content))

    async def label(self, request: Request) -> Response:
        """Save a correction."""
        window, until = self._window_of(request)

        def call(number: int) -> Evaluation | None:
            """Return the call with a number in the window, the newest first."""
            since, skip = until - window.seconds, max(0, number - 1)
            return next(iter(self._store.newest(since, 1, until=until, skip=skip)), None)

        return await _save_correction(request, self._corrections, call)

    def _window_of(self, request: Request) -> tuple[Window, float]:
        """Return the time window that an address names, and its end.

        Raises:
            IndexError: there is no such window.
        """
        windows = [window for window in WINDOWS if window.name == request.path_params["window"]]
        until = _number(request, "until", 0)
        return windows[0], until or float(int(self._store.now()) + 1)


async def _save_correction(
    request: Request,
    corrections: Corrections | None,
    call: Callable[[int], Evaluation | None],
) -> Response:
    """Save the correction of a sentence that a page sends; 413: too long, 409: refused."""
    if corrections is None:
        return _not_there(request, IndexError())
    if int(request.headers.get("content-length", LONGEST + 1)) > LONGEST:
        return PlainTextResponse("is too long", 413)
    try:
        await run_in_threadpool(corrections.save, await request.body(), call)
    except (OSError, RagEvalError) as error:
        return PlainTextResponse(visible(str(error)), 409)
    return PlainTextResponse("saved")


def application(routes: Sequence[Route], token: str, host: str, port: int) -> ASGIApp:
    """Make the application of these routes behind a `Guard`, which gets the other arguments."""
    faults = {OSError: _changed, ReplacedError: _changed, IndexError: _not_there}
    return Guard(Starlette(routes=routes, exception_handlers=faults), token, host, port)


def _changed(request: Request, error: Exception) -> Response:
    """Answer that a file could not be read, or was replaced."""
    return _message_page("It could not be read just now", "Load the page anew.", 409)


def _not_there(request: Request, error: Exception) -> Response:
    """Answer that there is no such page."""
    return _message_page("Not there", "It is not there any more, or never was.", 404)


_MOST_COMPARED = 6


def _number(request: Request, name: str, default: int) -> int:
    """Return a number in the query of an address; 0, which names nothing, if it is not one."""
    text = request.query_params.get(name, str(default))
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
