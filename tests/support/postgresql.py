"""A PostgreSQL of its own for a test run: a cluster in a folder, reached through a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`: that of Debian's package, or the one on PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[4])
    if debian:
        return debian[-1].parent
    path = shutil.which("pg_ctl")
    return None if path is None else Path(path).resolve().parent


def _bin() -> Path:
    folder = programs()
    assert folder is not None
    return folder


class Cluster:
    """A running server, which can be killed and started again."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder, self._user = folder, user
        self._run("initdb", "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync", "--no-locale")
        self.start()

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [_bin() / program, "-D", self._folder / "data", *words],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=self._user, cwd=self._folder,
        )  # fmt: skip

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = f"-F -c listen_addresses= -c unix_socket_directories={self._folder}"
        for _ in range(100):  # the processes of a killed server take a moment to end
            try:
                self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", settings, "start")
                return
            except subprocess.CalledProcessError:
                time.sleep(0.1)
        raise RuntimeError((self._folder / "log").read_text())

    def kill(self) -> None:
        """End the server by SIGKILL; the processes of its connections end when they notice."""
        pid = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """Tell it to end at once, whatever is connected; its files are not needed any more."""
        self._run("pg_ctl", "-m", "immediate", "-W", "stop")

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements of an administrator."""
        import psycopg  # of an extra

        where = f"host={self._folder} user=tester dbname={database}"
        with psycopg.connect(where, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def make_read_only(self, name: str, read_only: bool) -> None:
        """Have a database take nothing, as after a failover to a standby, or end that."""
        self.execute(
            f"ALTER DATABASE {name} SET default_transaction_read_only = {read_only}",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",
        )

    def ask_for_password(self, role: str, password: str) -> None:
        """Make a user that has to give a password."""
        rules = self._folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {role} scram-sha-256\n{rules.read_text()}")
        self.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'", "SELECT pg_reload_conf()")

    def database(self, name: str) -> str:
        """Make an empty database and return its URL."""
        createdb = _bin() / "createdb"
        subprocess.run([createdb, "-h", self._folder, "-U", "tester", name], check=True, cwd="/")
        return f"postgresql://tester@/{name}?host={self._folder}"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Make a cluster in a folder of its own, as another user where this one is root."""
    user = None
    if os.getuid() == 0:
        user = next(u.pw_name for u in pwd.getpwall() if u.pw_name in ("postgres", "nobody"))
    folder = Path(tempfile.mkdtemp(prefix="rag-eval-pg-"))
    if user is not None:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    try:
        server = Cluster(folder, user)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
