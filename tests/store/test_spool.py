"""`Spool`: calls in files, one writer each; acknowledged means that the call is in a file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from forked import FORKS, Fork, fork_in_c_with_hooks, forked
from postgresql import Cluster
from processes import python

from rag_eval_integrations import RagCall, Spool, capture_call
from rag_eval_integrations.errors import ConfigurationError, RagEvalError
from rag_eval_integrations.records import from_line
from rag_eval_integrations.store import Store

CALL = RagCall("When does the ferry leave?", ["It leaves at nine."], "At nine.")


def rows_of(folder: Path, table: str = "call") -> list[tuple[object, ...]]:
    """What the closed files of a folder hold."""
    found: list[tuple[object, ...]] = []
    for path in sorted(folder.glob("*.spool")):
        with closing(sqlite3.connect(path)) as file:
            found += file.execute(f"SELECT * FROM {table}").fetchall()
    return found


def test_a_call_is_in_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    """The id that `submit` returns stands with the whole call; two equal calls are two rows."""
    spool = Spool(tmp_path / "spool")
    uids = [spool.submit(CALL), spool.submit(CALL)]
    spool.close()

    (_, first, _, body), (_, second, *_) = rows_of(tmp_path / "spool")
    assert [first, second] == uids
    assert first != second
    assert from_line(RagCall, str(body)) == CALL
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700
    for path in (tmp_path / "spool").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert repr(spool).endswith("2 accepted, 0 refused)")


def test_it_is_a_target_of_handlers_and_of_plain_code(tmp_path: Path) -> None:
    """And says where the evaluations are, which the app's process does not have."""
    from rag_eval_integrations.langchain import RagEvalCallbackHandler

    spool = Spool(tmp_path)
    with capture_call(spool, question="When?") as call:
        call.documents = ["It leaves at nine."]
        call.response = "At nine."
    handler = RagEvalCallbackHandler(spool)

    assert handler.flush()
    assert spool.accepted == 1
    with pytest.raises(RagEvalError, match=r"in the store of its worker: `rag-eval worker --store"):
        _ = handler.evaluations


def test_what_cannot_be_written_is_refused_counted_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Beyond the bound, and where `redact` fails: unredacted, nothing is written, nor logged.

    The counts are in the next file, so that a page can say why calls were not judged.
    """

    def redact(call: RagCall) -> RagCall:
        if "ferry" in call.question:
            raise LookupError(f"no rule for {call.question}")
        return call.model_copy(update={"response": "***"})

    line = redact.__code__.co_firstlineno + 2
    failed = f"not written: `redact` failed with LookupError (test_spool.py, line {line})"
    spool = Spool(tmp_path, redact=redact, max_bytes=1)
    plain = CALL.model_copy(update={"question": "When?"})
    assert spool.submit(plain)
    assert [spool.submit(plain), spool.submit(CALL), spool.submit(CALL)] == [None, None, None]
    spool.close()

    assert (spool.accepted, spool.refused) == (1, 3)
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        f"a call was not accepted: the spool {tmp_path} is full: it holds 1 bytes",
        f"a call was not accepted: {failed}",
    ]
    assert "ferry" not in caplog.text
    assert '"response":"***"' in str(rows_of(tmp_path))
    roomy = Spool(tmp_path, redact=redact)
    assert [roomy.submit(CALL), roomy.submit(CALL)] == [None, None]
    roomy.close()
    assert [row[2:] for row in rows_of(tmp_path, "refusal")] == [(failed, 2)]


def test_nobody_who_reads_makes_the_app_wait(tmp_path: Path) -> None:
    """Not even one that does not end: the next call is in the file all the same."""
    spool = Spool(tmp_path)
    spool.submit(CALL)
    (path,) = tmp_path.glob("*.spool")
    with closing(sqlite3.connect(path)) as reader:
        rows = reader.execute("SELECT call_uid FROM call")
        assert spool.submit(CALL)
        assert len(rows.fetchall()) == 1
    spool.close()

    assert len(rows_of(tmp_path)) == 2


def test_a_folder_that_is_removed_is_made_again_with_the_next_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As by a cleaner of temporary files; that is told, since the calls in it are gone."""
    spool = Spool(tmp_path / "spool")
    spool.submit(CALL)
    shutil.rmtree(tmp_path / "spool")
    uid = spool.submit(CALL)
    spool.close()

    assert [row[1] for row in rows_of(tmp_path / "spool")] == [uid]
    assert [record.getMessage().partition(".spool ")[2] for record in caplog.records] == [
        "was removed while it was written, with calls that no worker had read"
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 warns of any fork
@pytest.mark.parametrize("fork", FORKS)
def test_a_child_process_writes_files_of_its_own(tmp_path: Path, fork: Fork) -> None:
    """After a fork no process uses another's file, and no call is lost."""
    spool = Spool(tmp_path)
    spool.submit(CALL)

    def child() -> tuple[int, int]:
        uids = {spool.submit(CALL) for _ in range(20)}
        return len(uids - {None}), spool.accepted

    children = [forked(child, fork) for _ in range(4)]
    for _ in range(20):
        spool.submit(CALL)
    assert [child.printed() for child in children] == ["(20, 20)"] * 4
    spool.close()

    assert len({row[1] for row in rows_of(tmp_path)}) == 101
    assert len({path.name.split("-")[1] for path in tmp_path.glob("*.spool")}) == 5


FORKING_IN_C = """
import ctypes, os, sys
from rag_eval_integrations import RagCall, Spool
from rag_eval_integrations.store import Store
kind, where, hooks = sys.argv[1:]
target = Spool(where) if kind == "spool" else Store(where)
def submit(calls):
    uids = [target.submit(RagCall("When?", ["It leaves at nine."], "At nine.")) for _ in range(calls)]
    os.write(1, "".join(f"{uid}\\n" for uid in uids).encode())
submit(1)
children = []
for _ in range(4):
    child = ctypes.PyDLL(None).fork()
    if not child:
        if hooks:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        submit(20)
        os._exit(0)
    children.append(child)
submit(20)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
"""


@pytest.mark.parametrize("hooks", ["hooks", ""])
def test_no_call_is_lost_that_processes_forked_in_c_acknowledged(
    tmp_path: Path, hooks: str
) -> None:
    """As uWSGI forks, after a first call: each process writes files of its own.

    In a process in which no other thread runs, whose wait for Python's lock would hang a child.
    """
    done = python(FORKING_IN_C, "spool", tmp_path, hooks, check=True)

    written = [str(row[1]) for row in rows_of(tmp_path)]
    assert len(written) == 101
    assert sorted(written) == sorted(done.stdout.split())
    assert len({path.name.split("-")[1] for path in tmp_path.glob("*.spool")}) == 5


@pytest.mark.parametrize("hooks", ["hooks", ""])
def test_no_process_forked_in_c_uses_the_connection_of_another(
    postgresql: Cluster, hooks: str
) -> None:
    """A server's answers to one would be read by another."""
    url = postgresql.database(f"forked_in_c_{hooks or 'alone'}")
    done = python(FORKING_IN_C, "store", url, hooks, check=True)

    assert len(set(done.stdout.split())) == 101
    with closing(Store(url)) as store:
        assert store.counts() == [("due", "", 101)]


def test_a_lock_that_a_thread_held_at_the_fork_stops_no_child(tmp_path: Path) -> None:
    """The thread that would release it is not in the child."""
    spool = Spool(tmp_path)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with spool._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        child = forked(lambda: spool.submit(CALL) is not None, fork_in_c_with_hooks)
        assert child.printed(20) == "True"
    finally:
        done.set()
        thread.join()


ENDS = """
import ctypes, os, signal, sys, threading
from rag_eval_integrations import RagCall, Spool
spool, call = Spool(sys.argv[1]), RagCall("When?", ["It leaves at nine."], "At nine.")
spool.submit(call)
statement = threading.Event()
spool._connection.create_function("hang", 0, lambda: (statement.set(), threading.Event().wait()))
thread = threading.Thread(target=spool._connection.execute, args=["SELECT hang()"], daemon=True)
thread.start()
statement.wait()
child = ctypes.PyDLL(None).fork()
if not child:
    ctypes.pythonapi.PyOS_AfterFork_Child()
    signal.alarm(20)
    spool.submit(call)
    sys.exit()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_a_child_ends_though_a_thread_was_writing_at_the_fork(tmp_path: Path) -> None:
    """The end of the interpreter does not close the parent's connection, which would hang."""
    assert python(ENDS, tmp_path).stdout == "0\n"
    assert len(rows_of(tmp_path)) == 2


FULL = """
import os, resource, signal, sys
from rag_eval_integrations import RagCall, Spool
spool = Spool(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
assert spool.submit(RagCall("When?", ["It leaves at nine."], "At nine.")) is None
print(len(os.listdir(sys.argv[1])))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
spool._failed = None  # a second later
call = RagCall("When?", ["It leaves at nine. " * 200], "At nine.")
accepted = sum(spool.submit(call) is not None for _ in range(100))
print(accepted, spool.refused)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


def test_on_a_full_disk_calls_are_refused_and_none_is_torn(tmp_path: Path) -> None:
    """Files may not grow beyond 200 kB here: what was acknowledged can be read, the rest is counted.

    Where there is not even room to make a file, nothing is left of it.
    """
    done = python(FULL, tmp_path, check=True)

    left, accepted, refused = map(int, done.stdout.split())
    assert left == 0
    assert accepted > 20
    assert accepted + refused == 101
    assert len(rows_of(tmp_path)) == accepted
    assert sum(int(str(row[3])) for row in rows_of(tmp_path, "refusal")) == refused
    assert done.stderr.count("a call was not accepted") <= 2


def test_mistakes_are_told_when_it_is_made(tmp_path: Path) -> None:
    """They name the argument."""
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match=r"`folder` = .*is not a folder"):
        Spool(tmp_path / "file")
    with pytest.raises(ConfigurationError, match=r"`max_bytes` = 0: use a whole number from 1"):
        Spool(tmp_path, max_bytes=0)
    with pytest.raises(ConfigurationError, match=r"`redact` = 'names'"):
        Spool(tmp_path, redact="names")  # type: ignore[arg-type]


READ_ONLY = """
import os, sys
from rag_eval_integrations import Spool
import rag_eval_integrations.store.spool
if os.getuid() == 0:
    os.setuid(65534)  # root may write everywhere
try:
    Spool(sys.argv[1])
except PermissionError as error:
    print("refused", error)
"""


def test_a_folder_that_cannot_be_written_is_told_at_once() -> None:
    """Not with the first call, which would be lost."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        done = python(READ_ONLY, folder, check=True)
        Path(folder).chmod(0o755)

    assert done.stdout == f"refused [Errno 13] Permission denied: '{folder}'\n"


PLANTED = """
import os, sys
from rag_eval_integrations import Spool
from rag_eval_integrations.errors import ConfigurationError
import rag_eval_integrations.store.spool
os.umask(0)
os.mkdir(sys.argv[1] + "/theirs")
os.mkdir(sys.argv[1] + "/roots")
os.chown(sys.argv[1] + "/theirs", 65533, 65533)
os.setuid(65534)
try:
    Spool(sys.argv[1] + "/theirs")
except ConfigurationError as error:
    print(error.why)
Spool(sys.argv[1] + "/roots")
Spool(sys.argv[1] + "/roots/own")
print(oct(os.stat(sys.argv[1] + "/roots/own").st_mode))
"""


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root has several users")
def test_a_planted_folder_is_refused() -> None:
    """Another user's that everybody may write to; not one of root's, as volumes of containers are."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        done = python(PLANTED, folder, check=True)

    why = "is another user's, and everybody may write to it; use a folder of the app's own user"
    assert done.stdout.splitlines() == [why, "0o40700"]


def test_a_read_only_disk_is_told() -> None:
    """Not as missing rights."""
    mounts = Path("/proc/mounts")
    lines = mounts.read_text().splitlines() if mounts.exists() else []
    places = [place for _, place, _, how, *_ in map(str.split, lines) if how.startswith("ro,")]
    folders = [place for place in places if Path(place).is_dir()]
    if not folders:
        pytest.skip("nothing is mounted read-only here")
    with pytest.raises(OSError, match="Read-only file system"):
        Spool(folders[0])
