"""`rag-eval view`: the runs of a folder in a browser, as they grow, and a store."""

from __future__ import annotations

import secrets
from contextlib import ExitStack, closing
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._arguments import ViewOptions
from rag_eval_integrations.cli._terminal import account, end_now, print_stdout
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.store import Store


def view(options: ViewOptions) -> int:
    """Serve the pages until a signal ends it.

    Raises:
        ConfigurationError: an option cannot be used.
        MissingDependencyError: the extra is not installed.
        OSError: the folder or the store cannot be read.
    """
    # Starlette and uvicorn take 0.2 s.
    from rag_eval_integrations.view._app import (  # noqa: PLC0415
        FolderPages,
        StorePages,
        application,
    )
    from rag_eval_integrations.view._corrections import Corrections  # noqa: PLC0415
    from rag_eval_integrations.view._runs import Folder  # noqa: PLC0415
    from rag_eval_integrations.view._server import listening, server  # noqa: PLC0415

    if options.token is None and not _is_loopback(options.host):
        why = "lets other machines in; choose what they open it with: --token WORD"
        raise ConfigurationError("--host", options.host, why)
    token = options.token or secrets.token_urlsafe(24)
    path = options.folder or (Path() if options.store is None else None)
    labels = options.labels or (path and path / "labels.jsonl")
    corrections = Corrections(labels, account()) if labels else None
    with ExitStack() as opened:
        # First: a taken port ends it, and no thread that reads files may be there then.
        listener = opened.enter_context(listening(options.host, options.port))
        routes, served, name = [], [], ""
        if options.store is not None:
            store = opened.enter_context(closing(Store(options.store, create=False)))
            routes, served, name = StorePages(store, corrections).routes, [store.name], store.name
        if path is not None:
            folder = Folder(path)
            routes = [*FolderPages(folder, corrections, name).routes, *routes]
            served.insert(0, f"{counted(len(folder.runs()), 'run')} of {path}")
        port = listener.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{host}:{port}/?token={quote(token, safe='')}"
        print_stdout(f"{' and '.join(served)} at")
        print_stdout(f"  {address}")
        print_stdout("Ctrl-C ends it.")
        if options.open:
            import webbrowser  # noqa: PLC0415

            webbrowser.open(address)  # the port listens already
        app = application(routes, token, options.host, port)
        server(app, lambda signal: end_now(128 + signal)).run(sockets=[listener])
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
