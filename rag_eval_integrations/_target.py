"""Opens the files that the library writes, in one way: regular files, private, never lost.

And reads what is small enough to be read at once:

    read_whole   the bytes of a short file or FIFO; a device has no end
    path_from    the path that a user gave, or an error that names the argument
    resolved     where a path leads; devices, FIFOs, sockets and folders are refused
    create       a new file, never through a link and never in place of another
    append       a file to append to, made when absent
    replacing    a file that is there whole or not at all
    back_up      a second name, NAME.bak, for a file until it is replaced
    write_page   a page derived from results, in place of an earlier one of this program only

A path that a user names is passed through `resolved` first, so links are followed to their target
and stay links. All other opens refuse links: nothing is written through a planted one.
"""

from __future__ import annotations

import errno
import glob
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rag_eval_integrations.errors import ConfigurationError

PRIVATE = 0o600
"""Mode of new files that hold prompts or texts of users."""
PUBLIC = 0o666
"""Mode of other new files, less the umask."""

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_HEAD = 4096
"""Bytes at the start of a page that show who made it."""
_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_UNFINISHED = ".unfinished"
_DESCRIPTORS = "/proc/self/fd/"
"""Folder in which Linux has a link for each open file."""
_KINDS = {"d": "a folder", "p": "a FIFO", "s": "a socket", "l": "a link", "-": "a file"}


def kind(mode: int) -> str:
    """Return the word for what `os.stat` found: a file, a folder, a FIFO, a socket, a device."""
    return _KINDS.get(stat.filemode(mode)[0], "a device")


def readable(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """Return the same error with a message that reads well: the path, then why.

    A folder that does not exist is named.

    Args:
        error: what the system raised.
        path: the path as the user knows it.
    """
    folder = Path(path).absolute().parent
    words = error.strerror or str(error)
    why = words[:1].lower() + words[1:]
    if error.errno == errno.ENOENT and not folder.is_dir():
        why = f"the folder {folder} does not exist"
    elif error.errno == errno.ELOOP:
        why = "is a link that is not followed"
    renamed = type(error)(f"{path}: {why}")
    renamed.errno = error.errno
    return renamed


def path_from(given: str | os.PathLike[str], field: str = "path") -> Path:
    """Make a `Path` of what a user gave.

    Raises:
        ConfigurationError: it is no path, as `os.environ.get(…)` of a variable that is not set.
    """
    if not isinstance(given, str | os.PathLike):
        raise ConfigurationError(field, given, "use the path of a file")
    return Path(given)


def resolved(path: str | os.PathLike[str], field: str = "path") -> Path:
    """Follow links to the file that a path leads to, which need not exist; its folder has to.

    Args:
        path: the path that a user gave.
        field: name of the argument, for the error.

    Raises:
        ConfigurationError: it is no path, or there is something else than a regular file.
        OSError: the folder does not exist, or may not be looked into; links lead in a circle.
    """
    path = path_from(path, field)
    target = Path(os.path.realpath(path))
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if isinstance(error, FileNotFoundError) and target.parent.is_dir():
            return target
        raise readable(error, path) from error
    if not stat.S_ISREG(mode):
        hint = (
            " (`-` is standard output)" if target.parts[:2] in (("/", "dev"), ("/", "proc")) else ""
        )
        why = f"is {kind(mode)}; use a regular file{hint}"
        raise ConfigurationError(field, str(path), why)
    return target


MOST_WHOLE = 32 * 2**20
"""Bytes of a file that is read at once: a prompt, a metric, the value of a variable."""


def read_whole(
    path: str | os.PathLike[str], field: str = "file", *, longest: int = MOST_WHOLE
) -> bytes:
    """Read a short file, or a FIFO such as the shell's `<(…)`, at once.

    Args:
        path: the file.
        field: name of the argument, for the error.
        longest: bytes of the file.

    Raises:
        ConfigurationError: it is longer, or a device or a socket.
        OSError: it cannot be read.
    """
    try:
        mode = os.stat(path).st_mode
        if kind(mode) in ("a device", "a socket"):
            raise ConfigurationError(field, os.fspath(path), f"is {kind(mode)}; use a file")
        with open(path, "rb") as stream:
            content = stream.read(longest + 1)
    except OSError as error:
        raise readable(error, path) from error
    if len(content) > longest:
        raise ConfigurationError(field, os.fspath(path), f"is larger than {longest:,} bytes")
    return content


def make_folder(path: Path, field: str = "folder", *, mode: int = 0o777) -> None:
    """Make a folder and those above it, if they are not there.

    Args:
        path: the folder.
        field: name of the argument, for the error.
        mode: of the folder if it is made, less the umask.

    Raises:
        ConfigurationError: there is something else than a folder.
        OSError: it cannot be made.
    """
    try:
        path.mkdir(mode, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigurationError(field, str(path), "is not a folder, or is below a file") from None
    except OSError as error:
        raise readable(error, path) from error


def create(path: Path, mode: int = PRIVATE) -> int:
    """Open a new file for reading and writing, and return its descriptor.

    Raises:
        FileExistsError: something has this name, even a link that leads nowhere.
        OSError: it cannot be made.
    """
    return _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)


def append(path: str | os.PathLike[str], *, new: bool = False) -> int:
    """Open a file for reading and appending, and return its descriptor; made private when absent.

    Args:
        path: the file; not a link.
        new: refuse a file that exists.

    Raises:
        FileExistsError: the file exists and `new` is set.
        ConfigurationError: there is something else than a regular file.
        OSError: it cannot be opened.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | (os.O_EXCL if new else 0)
    # Without O_NONBLOCK, a FIFO would be waited for; regular files do not know it.
    file = _open(path, flags | getattr(os, "O_NONBLOCK", 0), PRIVATE)
    mode = os.fstat(file).st_mode
    if not stat.S_ISREG(mode):
        os.close(file)
        raise ConfigurationError("path", str(path), f"is {kind(mode)}; use a regular file")
    return file


def _open(path: str | os.PathLike[str], flags: int, mode: int) -> int:
    """Open a file by its descriptor; an error names the path."""
    try:
        return os.open(path, flags | _FLAGS, mode)
    except OSError as error:
        raise readable(error, path) from error


@contextmanager
def replacing(path: Path, *, new: bool = False, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Replace a file atomically.

    It is written beside its target, without a name until it is whole where the system has such
    files, so that a killed process leaves nothing; elsewhere under a random name, and what killed
    processes left of such files is removed first. It is forced to the disk before it takes the
    target's name, and a file that is replaced hands its mode on.

    Args:
        path: the file, as returned by `resolved`.
        new: refuse to replace a file, even one that appears meanwhile.
        mode: of a file that replaces none.

    Raises:
        FileExistsError: the file exists and `new` is set.
        OSError: it cannot be written; whatever was there is as it was.
    """
    remove_unfinished(path)
    temporary = path.with_name(f"{path.name}.{os.urandom(4).hex()}{_UNFINISHED}")
    nameless = _without_name(path.parent, mode)
    file = create(temporary, mode) if nameless is None else nameless
    try:
        with os.fdopen(file, "wb") as stream:
            lock(file, wait=False)
            yield stream
            stream.flush()
            if nameless is not None:
                os.fsync(file)
                # The descriptor is not looked at; without one, Python would link the link itself.
                os.link(f"{_DESCRIPTORS}{file}", temporary, src_dir_fd=file, follow_symlinks=True)
            take_place(file, temporary, path, new=new)
    except OSError as error:
        if error.errno in _FULL or error.filename == str(temporary):
            raise readable(error, path) from error
        raise  # of the caller's own files
    finally:
        temporary.unlink(missing_ok=True)


def _without_name(folder: Path, mode: int) -> int | None:
    """Open a new file that has no name yet; None where the system or the disk has no such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir(_DESCRIPTORS):
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, mode)
    except OSError:  # why the folder cannot be written is told by `create`
        return None


def take_place(file: int, temporary: Path, path: Path, *, new: bool) -> None:
    """Sync an open file to the disk and rename it over another, as `replacing` does.

    Args:
        file: the file's descriptor.
        temporary: its name, beside that of the target; it may stay when `new` is set.
        path: the target, as returned by `resolved`.
        new: refuse to replace a file.

    Raises:
        FileExistsError: the target exists and `new` is set.
        OSError: the disk or the folder cannot be written.
    """
    with suppress(FileNotFoundError):
        before = path.lstat()
        if stat.S_ISREG(before.st_mode):
            temporary.chmod(stat.S_IMODE(before.st_mode))
    os.fsync(file)
    if new and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary.replace(path)


def remove_unfinished(path: Path) -> None:
    """Remove what killed processes left of `replacing`; those of a living process are locked."""
    for left in path.parent.glob(f"{glob.escape(path.name)}.{'[0-9a-f]' * 8}{_UNFINISHED}"):
        with suppress(OSError, ConfigurationError):
            file = append(left)
            try:
                if lock(file, wait=False):
                    left.unlink(missing_ok=True)
            finally:
                os.close(file)


def lock(file: int, *, wait: bool) -> bool:
    """Lock an open file; return False on a platform or a disk without `flock`.

    Raises:
        BlockingIOError: another process has locked it, and `wait` is not set.
    """
    try:
        import fcntl  # noqa: PLC0415  # not on every platform
    except ImportError:  # pragma: no cover
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            return False
        raise
    return True


# --- The file that is replaced: a second name until it is


def backup_of(path: Path) -> Path:
    """Return the name under which a file is kept until it is replaced."""
    return path.with_name(f"{path.name}.bak")


def back_up(path: Path, field: str = "out") -> Path:
    """Give a file a second name, which the caller removes when the file is replaced.

    A copy where it cannot have two; one that a killed run left is used again.

    Args:
        path: the file, as returned by `resolved`.
        field: name of the argument, for the error.

    Raises:
        ConfigurationError: another file has the second name.
        OSError: it cannot be given.
    """
    backup = backup_of(path)
    if os.path.lexists(backup):
        if is_backed_up(path):  # a killed run made it
            return backup
        raise ConfigurationError(
            field, str(backup), "is there and is kept; move it away before you overwrite a file"
        )
    try:
        os.link(path, backup)
    except OSError:  # a file system without hard links, or another user's file
        mode = stat.S_IMODE(path.stat().st_mode)
        with path.open("rb") as source, replacing(backup, new=True, mode=mode) as copy:
            shutil.copyfileobj(source, copy)
    return backup


def is_backed_up(path: Path) -> bool:
    """Return whether a file has its second name, because a run is replacing it or was killed."""
    try:
        return os.path.samestat(path.lstat(), backup_of(path).lstat())
    except OSError:
        return False


# --- Pages derived from results, which can be made again


def check_page(path: Path, ours: Callable[[bytes], bool], *, field: str = "path") -> Path:
    """Follow links to a page that is going to be written; refuse one that was made by others.

    Arguments and errors as for `write_page`.
    """
    target = resolved(path, field)
    if target.exists():
        with target.open("rb") as stream:
            head = stream.read(_HEAD)
        if head.strip() and not ours(head):
            why = "was not made by this program and is not replaced; move it away"
            raise ConfigurationError(field, str(path), why)
    return target


def write_page(
    path: Path,
    text: str | Iterable[str],
    ours: Callable[[bytes], bool],
    *,
    field: str = "path",
    mode: int = PRIVATE,
) -> None:
    """Write a page in place of an earlier one, but not of a file that this program did not make.

    Args:
        path: the page.
        text: its content, or pieces of it, read as they are written.
        ours: whether a file's first 4 KiB show that this program made it.
        field: name of the argument, for the error.
        mode: of a new page; `PUBLIC` for one without texts of users.

    Raises:
        ConfigurationError: there is a file that this program did not make, or no regular file.
        OSError: it cannot be written.
    """
    target = check_page(path, ours, field=field)
    with replacing(target, mode=mode) as stream:
        for piece in (text,) if isinstance(text, str) else text:
            stream.write(piece.encode("utf-8", "surrogatepass"))
