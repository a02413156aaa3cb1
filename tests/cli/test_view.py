"""`rag-eval view`: an address with a token, refusals in one line, and an end at once."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path

import pytest
from ferries import Command
from forked import WarmPopen
from report_rows import evaluations

from rag_eval_integrations.records import to_line

from .conftest import in_process


@contextmanager
def viewing(*words: object, first: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; the address that it prints."""
    command = in_process("view", "--port", 0, *words, first=first)
    with WarmPopen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            yield process, lines[1].strip()
        finally:
            process.kill()


@pytest.mark.slow
def test_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    """With a browser that holds its connection open, one amid a request, and a page being made."""
    row = to_line(evaluations()[5])
    for name in "ab":
        rows = (row.replace("nothing-relevant-but", f"{n}-but") for n in range(20_000))
        (tmp_path / name).write_text("\n".join(rows))
    with viewing(tmp_path) as (process, address):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32})", address)
        assert found
        idle = HTTPConnection("127.0.0.1", int(found[1]))
        idle.request("GET", f"/?token={found[2]}")
        assert idle.getresponse().status == 303
        half = socket.create_connection(("127.0.0.1", int(found[1])))
        half.sendall(b"GET / HTTP/1.1\r\nHost: 127")
        long = HTTPConnection("127.0.0.1", int(found[1]))
        proof = sha256(found[2].encode()).hexdigest()
        long.request(
            "GET", "/compare?run=a&run=b", headers={"Cookie": f"rag-eval-view-{found[1]}={proof}"}
        )
        long.sock.settimeout(1)
        with pytest.raises(TimeoutError):  # 20,000 pairs take longer
            long.sock.recv(1)
        process.send_signal(signal.SIGINT)

        assert process.wait(10) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
        half.close()
        long.close()
        idle.close()


def test_a_token_is_new_at_each_start(tmp_path: Path) -> None:
    """Unless it is given."""
    with viewing(tmp_path) as (_, first), viewing(tmp_path) as (_, second):
        assert first.partition("token=")[2] != second.partition("token=")[2]
    with viewing(tmp_path, "--token", "a b&c") as (_, address):
        assert address.endswith("/?token=a%20b%26c")


def test_open_starts_the_browser_at_the_address(tmp_path: Path) -> None:
    """The one that Python's `webbrowser` finds."""
    first = "import webbrowser; webbrowser.open = lambda url: print(url, flush=True)"
    with viewing(tmp_path, "--open", first=first) as (process, address):
        assert process.stdout is not None
        assert process.stdout.readline().strip() == address


def test_a_taken_port_is_one_line(rag_eval: Command, tmp_path: Path) -> None:
    """Which names the next free one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = rag_eval("view", tmp_path, "--port", port)

    assert done.code == 2
    assert re.fullmatch(rf"rag-eval: --port: {port} is taken; --port \d+ is free\n", done.err) or (
        re.fullmatch(rf"rag-eval: .*{port}.*is taken; --port \d+ is free\n", done.err)
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_another_host_needs_a_token(rag_eval: Command, tmp_path: Path, host: str) -> None:
    """Whoever reaches the machine would read the calls."""
    done = rag_eval("view", tmp_path, "--host", host)

    assert done.code == 2
    assert "--token WORD" in done.err


def test_a_folder_that_is_not_there_is_told(rag_eval: Command, tmp_path: Path) -> None:
    """And so is a file."""
    done = rag_eval("view", tmp_path / "none", "--port", 0)

    assert done.code == 2
    assert "no such file or directory" in done.err


def test_without_the_extra_it_says_how_to_install_it(
    rag_eval: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line."""
    # Only the module that needs it: copies of the others would stay beside those of other tests.
    monkeypatch.delitem(sys.modules, "rag_eval_integrations.view._app", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    done = rag_eval("view", tmp_path, "--port", 0)

    assert done.code == 2
    assert done.err == (
        "rag-eval: starlette is not installed; run: pip install 'rag-eval-integrations[view]'\n"
    )
