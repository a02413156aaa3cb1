"""`rag-eval view`: the runs of a folder in a browser, as they grow."""

from __future__ import annotations

import getpass
import secrets
from ipaddress import ip_address
from urllib.parse import quote

from rag_eval_integrations._visible import counted
from rag_eval_integrations.cli._arguments import ViewOptions
from rag_eval_integrations.cli._terminal import print_stdout
from rag_eval_integrations.errors import ConfigurationError


def view(options: ViewOptions) -> int:
    """Serve the pages until a signal ends it.

    Raises:
        ConfigurationError: the folder or the address cannot be used.
        MissingDependencyError: the extra is not installed.
        OSError: the folder cannot be read.
    """
    # Starlette and uvicorn take 0.2 s.
    from rag_eval_integrations.view._app import Pages, application  # noqa: PLC0415
    from rag_eval_integrations.view._corrections import Corrections  # noqa: PLC0415
    from rag_eval_integrations.view._runs import Folder  # noqa: PLC0415
    from rag_eval_integrations.view._server import listening, server  # noqa: PLC0415

    if options.token is None and not _is_loopback(options.host):
        why = "lets other machines in; choose what they open it with: --token WORD"
        raise ConfigurationError("--host", options.host, why)
    token = options.token or secrets.token_urlsafe(24)
    folder = Folder(options.folder)
    corrections = Corrections(options.labels or options.folder / "labels.jsonl", _account())
    with listening(options.host, options.port) as listener:
        port = listener.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{host}:{port}/?token={quote(token, safe='')}"
        print_stdout(f"{counted(len(folder.runs()), 'run')} of {options.folder} at")
        print_stdout(f"  {address}")
        print_stdout("Ctrl-C ends it.")
        if options.open:
            import webbrowser  # noqa: PLC0415

            webbrowser.open(address)  # the port listens already
        app = application(Pages(folder, corrections), token, options.host, port)
        server(app).run(sockets=[listener])
    return 0


def _account() -> str:
    """Name the person whose account this is; empty for an account without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
