"""Targets: only regular files, links followed, whole or not at all, and messages that read well."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations.errors import ConfigurationError


def write_while(path: Path, act: Callable[[], object], *, new: bool = False) -> None:
    """Do something after half of a file is written."""
    with _target.replacing(path, new=new) as stream:
        stream.write(b"half")
        act()


@pytest.mark.parametrize("nameless", [True, False])
def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    """Until the end the old one is there; after an exception nothing else is.

    Also where the system has no files without a name.
    """
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(0o604)

    with pytest.raises(KeyError):
        write_while(path, {}.popitem)
    assert (os.listdir(tmp_path), path.read_text()) == (["f"], "old")

    with _target.replacing(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_text() == "old"

    assert (os.listdir(tmp_path), path.read_text()) == (["f"], "new")
    assert path.stat().st_mode & 0o777 == 0o604


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    """Not even one that appears meanwhile, or a link that leads nowhere."""
    path = tmp_path / "f"
    for appears in (path.touch, lambda: path.symlink_to("nowhere")):
        with pytest.raises(FileExistsError):
            write_while(path, appears, new=True)
        assert os.listdir(tmp_path) == ["f"]
        path.unlink()


def test_modes(tmp_path: Path) -> None:
    """Private unless it is said that no texts of users are in it, and then as the umask says."""
    umask = os.umask(0o027)
    try:
        for mode, result in ((_target.PRIVATE, 0o600), (_target.PUBLIC, 0o640)):
            path = tmp_path / oct(mode)
            with _target.replacing(path, mode=mode):
                pass
            assert path.stat().st_mode & 0o777 == result
    finally:
        os.umask(umask)


FULL = """
import resource, signal, sys
from pathlib import Path
from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
folder = Path(sys.argv[1])
try:
    with _target.replacing(folder / "f") as stream:
        stream.write(b"x" * 100_000)
except OSError as error:
    print(error)
try:
    with LineFile(folder / "lines") as lines:
        for _ in range(3):
            lines.append(b"y" * 499)
except OSError as error:
    print(error)
"""


def test_no_room_is_told_with_the_name_of_the_file(tmp_path: Path) -> None:
    """What was there stays, and lines are whole."""
    (tmp_path / "f").write_text("old")
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    printed = subprocess.check_output(command, text=True)

    told = [f"{tmp_path / name}: file too large" for name in ("f", "lines")]
    assert printed.splitlines() == told
    assert (tmp_path / "f").read_text() == "old"
    assert (tmp_path / "lines").read_bytes() == (b"y" * 499 + b"\n") * 2
    assert sorted(os.listdir(tmp_path)) == ["f", "lines"]


def test_a_backup_is_another_name_of_the_file(tmp_path: Path) -> None:
    """Until the file is replaced, which leaves the old one under it; it is taken over once made."""
    path, backup = tmp_path / "f", tmp_path / "f.bak"
    path.write_text("old")

    assert not _target.is_backed_up(path)
    assert _target.back_up(path) == _target.back_up(path) == backup
    assert _target.is_backed_up(path)
    with _target.replacing(path) as stream:
        stream.write(b"new")

    assert (path.read_text(), backup.read_text()) == ("new", "old")
    assert not _target.is_backed_up(path)
    with pytest.raises(ConfigurationError, match="move it away"):
        _target.back_up(path)


def refuse(code: int) -> Callable[..., None]:
    """A function of the system that always fails."""

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_backup_is_a_copy_where_links_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same content and mode, and a new file is renamed then; half a copy is no backup."""
    monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)  # such a disk has none
    path = tmp_path / "f"
    with _target.replacing(path, new=True) as stream:
        stream.write(b"old")
    path.chmod(0o640)
    with monkeypatch.context() as full:
        full.setattr(shutil, "copyfileobj", refuse(errno.ENOSPC))
        with pytest.raises(OSError, match=r"f\.bak: no space left on device"):
            _target.back_up(path)
    # Half of one would be refused as somebody's for ever after
    assert os.listdir(tmp_path) == ["f"]

    backup = _target.back_up(path)

    assert (backup.read_text(), backup.stat().st_mode & 0o777) == ("old", 0o640)
    with pytest.raises(FileExistsError), _target.replacing(path, new=True):
        pass
    assert path.read_text() == "old"


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK])
def test_a_disk_without_locks_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """As some network disks are: whole files and lines, as on a platform that has no locks."""
    monkeypatch.setattr("fcntl.flock", refuse(code))
    with _target.replacing(tmp_path / "f") as stream, LineFile(tmp_path / "lines") as lines:
        stream.write(b"new")
        lines.append(b"a line")

    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["new", "a line\n"]


def test_short_files_are_read_at_once(tmp_path: Path) -> None:
    """Whatever has no end, or is not begun, is refused instead of read for ever."""
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert _target.read_whole(path, longest=5) == b"12345"
    with pytest.raises(ConfigurationError, match="is larger than 4 bytes"):
        _target.read_whole(path, longest=4)
    with pytest.raises(IsADirectoryError, match="is a directory"):
        _target.read_whole(tmp_path)
    with pytest.raises(FileNotFoundError):
        _target.read_whole(tmp_path / "none")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_a_short_fifo_is_read_at_once(tmp_path: Path) -> None:
    """As the shell's `<(...)` is; not a device or an endless writer."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    too_long = pytest.raises(ConfigurationError, match="is larger than 4 bytes")
    for longest, outcome in ((5, nullcontext()), (4, too_long)):
        writer = threading.Thread(target=fifo.write_bytes, args=(b"12345",))
        writer.start()
        with outcome:
            assert _target.read_whole(fifo, longest=longest) == b"12345"
        writer.join()
    with pytest.raises(ConfigurationError, match="is a device"):
        _target.read_whole("/dev/zero")
