"""Writes EVALS files: rows as they finish, the ordered file at the end, nothing lost on the way."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from rag_eval_integrations import _target
from rag_eval_integrations._counted import counted
from rag_eval_integrations.dataset import _parquet_folder
from rag_eval_integrations.dataset._evaluation_table import check_pyarrow
from rag_eval_integrations.dataset._input import LONGEST_ROW, is_torn, lines_of
from rag_eval_integrations.dataset._parquet_lines import is_parquet
from rag_eval_integrations.dataset._parquet_parts import PartStorage
from rag_eval_integrations.dataset._pipe import EvaluationPipe
from rag_eval_integrations.dataset._storage import LineStorage, zipping
from rag_eval_integrations.dataset._waiting import Waiting
from rag_eval_integrations.dataset._zipped import is_zipped
from rag_eval_integrations.errors import ConfigurationError, InputError, SchemaError
from rag_eval_integrations.records import Evaluation, RagCall, from_line, to_line

_PARTIAL, _OUT = 0, 1


def check_out(
    path: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    field: str = "out",
    resumable: bool = True,
    parts: bool = False,
) -> Path:
    """Follow links to the file that is going to be written; refuse one that would be lost.

    Args:
        path: OUT, as a user gave it.
        resume: it is going to be read and continued.
        overwrite: it may be replaced.
        field: name of the argument, for the error.
        resumable: whether the caller has a `resume`, for the error.
        parts: it is a folder of Parquet parts.

    Raises:
        ConfigurationError: there is a file, and neither `resume` nor `overwrite` is set, or both;
            or there is something else than a regular file, or than a folder of parts.
        OSError: its folder does not exist.
    """
    if resume and overwrite:
        raise ConfigurationError("resume", resume, "goes on with a file; do not overwrite it")
    target = (_parquet_folder.resolved if parts else _target.resolved)(path, field)
    if target.exists() and not resume and not overwrite:
        ways = ["exists; use another name", "--overwrite (overwrite=True) to replace it"]
        if resumable:
            ways.append("--resume (resume=True) to go on with the same calls")
        raise ConfigurationError(field, str(path), f"{', '.join(ways[:-1])}, or {ways[-1]}")
    return target


def check_form(path: Path, field: str = "out") -> None:
    """Refuse a name whose form cannot be written.

    Raises:
        ConfigurationError: it says gzipped Parquet.
        MissingDependencyError: it says Parquet, and pyarrow is not installed.
    """
    if is_zipped(path) and is_parquet(path.with_suffix("")):
        why = "would be gzipped Parquet, which is compressed already; leave out the `.gz`"
        raise ConfigurationError(field, str(path), why)
    if is_parquet(path):
        check_pyarrow()


class EvaluationFile:
    """The output of one run; a context manager.

    While it lasts, rows are in OUT.partial, and OUT is as it was. `finish` replaces OUT by the
    ordered rows, atomically. With `overwrite`, the earlier OUT is also OUT.bak until then.

    Rows that `add_in_turn` gets before their turn wait in OUT.waiting, so that OUT.partial is in
    order and needs no copy to become OUT.

    If the name of OUT ends in `.gz`, OUT and OUT.partial are gzipped, and each row can be read as
    soon as it is added. If it ends in `.parquet`, OUT is a folder of Parquet files, whose rows have
    their line of EVALS in the column `evaluation`, and `rag_eval_integrations.report` reads it.

    Args:
        path: OUT. Links are followed, and the other files are made beside their target.
        fingerprint: of the evaluator.
        resume: take over what OUT and OUT.partial hold.
        overwrite: replace an OUT that exists.

    Raises:
        ConfigurationError: when OUT exists and neither `resume` nor `overwrite` is set, or both;
            when OUT.partial holds rows and `resume` is not set; when another run is writing it;
            when there is something else to resume from than evaluations of this version's format,
            or some by another evaluator; when OUT is not a regular file, or not a folder of
            evaluations in Parquet; when a gzipped or Parquet OUT.partial is damaged.
        MissingDependencyError: OUT would be Parquet, and pyarrow is not installed.
        OSError: when the files cannot be written.
    """

    ordered = False
    """Whether rows have to be added in the order of the calls."""

    def __init__(
        self, path: Path, fingerprint: str, *, resume: bool = False, overwrite: bool = False
    ) -> None:
        check_form(path)
        self.path = check_out(path, resume=resume, overwrite=overwrite, parts=is_parquet(path))
        self._storage: LineStorage | PartStorage = (
            PartStorage(self.path)
            if is_parquet(path)
            else LineStorage(self.path, zipped=is_zipped(path))
        )
        self.partial = self._storage.partial
        self._waiting = Waiting(self.path)
        self.stale = 0
        """Rows of an earlier run that failed or cannot be read, and are made again."""
        self._begun = self._done = False
        self.holds_rows = False
        """Whether OUT.partial holds an evaluation without an error, to resume from."""
        self._offsets = array("q")
        self.in_partial, self._tidy = 0, True
        self._recorded: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        self._failed: dict[bytes, tuple[int, int]] = {}
        with ExitStack() as opened:
            self._open(resume)
            opened.callback(self._storage.close)
            opened.callback(self._leave)
            self._new = not self.path.exists()
            self._sources: list[BinaryIO] = [opened.enter_context(self._storage.rows())]
            if resume:
                self._index(_PARTIAL, fingerprint)
                if self._storage.takes_over:
                    self._sources.append(opened.enter_context(self._storage.earlier()))
                    self._index(_OUT, fingerprint)
                self._storage.mend()
            added = [self._storage.append(row) for row in self._waiting.earlier(resume=resume)]
            if added:
                self._index(_PARTIAL, fingerprint, added[0])
            if not resume and not self._new:
                self._storage.back_up()
            self._waiting.clear()
            self._begun = True
            self._opened = opened.pop_all()

    def _open(self, resume: bool) -> None:
        try:
            self._storage.open(resume=resume)
        except BlockingIOError as error:
            why = "is being written by another run"
            raise ConfigurationError("out", str(self.partial), why) from error
        if not resume and self._storage.holds_rows():
            self._storage.close()
            raise ConfigurationError(
                "out", str(self.partial),
                "is there from a run that did not end; go on with --resume, or delete it",
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def refuse_other_calls(self, calls: Iterable[RagCall | None]) -> None:
        """Check that all rows of the earlier run are of these calls: others would be lost.

        Args:
            calls: the calls of this run; None for one that cannot be read. Read until every row
                has its call.

        Raises:
            ConfigurationError: when there is a row of another call.
        """
        missing = self._recorded.keys() | self._failed.keys()
        for call in calls if missing else ():
            if call is not None:
                missing.discard(_identity(call))
            if not missing:
                return
        if missing:
            raise ConfigurationError(
                "out", str(self.path),
                f"holds evaluations of {counted(len(missing), 'call that is', 'calls that are')} "
                "not among the calls of this run; resume with the calls that it was made from, or "
                "use another file",
            )  # fmt: skip

    def earlier(self) -> Iterator[Evaluation]:
        """Yield the rows of the earlier run, in the order of its files; also those that failed."""
        places = [place for places in self._recorded.values() for place in places]
        for source, offset in sorted([*places, *self._failed.values()]):
            yield from_line(Evaluation, self._line(source, offset))

    def take(self, index: int, row: RagCall | Evaluation) -> Evaluation | None:
        """Take over an earlier run's evaluation of a call; None when there is none left."""
        places = self._recorded.get(_identity(row))
        if not places:
            return None
        source, offset = places.pop(0)
        self._place(index, source, offset)
        return from_line(Evaluation, self._line(source, offset))

    def add(self, index: int, evaluation: Evaluation) -> None:
        """Append the evaluation of the call at `index` (from 0)."""
        self.add_row(index, to_line(evaluation), failed=evaluation.error is not None)

    def add_in_turn(self, turn: int, index: int, evaluation: Evaluation) -> None:
        """Do the same as `add`, but in the order of the turns (from 0, each once)."""
        row = to_line(evaluation), evaluation.error is not None
        for at, (line, failed) in self._waiting.due(turn, index, row):
            self.add_row(at, line, failed=failed)
        self._waiting.compact()
        self.holds_rows = self.holds_rows or evaluation.error is None

    def settle(self) -> None:
        """Put the rows that wait for their turn into OUT.partial, because no more will come."""
        for at, (line, failed) in self._waiting.rest():
            self.add_row(at, line, failed=failed)
        self._waiting.clear()

    def add_row(self, index: int, line: str, *, failed: bool) -> None:
        """Append the row of EVALS of the call at `index` (from 0); *failed* if it has an error."""
        offset = self._storage.append(line.encode("ascii"))
        self.in_partial += 1
        self._place(index, _PARTIAL, offset)
        self.holds_rows = self.holds_rows or not failed

    def finish(self) -> int:
        """Put OUT there in input order, remove OUT.partial and return the number of rows.

        Without any row, OUT stays as it was.

        Raises:
            ConfigurationError: when an OUT has appeared that was not there at the beginning.
            OSError: when OUT cannot be written; the rows are in OUT.partial.
        """
        self.settle()
        rows = sum(place >= 0 for place in self._offsets)
        if not rows:
            self.discard()
            return 0
        try:
            if self._in_order(rows):
                self._storage.take_place(new=self._new)
            else:
                self._storage.replace(self._ordered(), new=self._new)
        except FileExistsError as error:
            why = f"has appeared since the run began; the rows are in {self.partial}"
            raise ConfigurationError("out", str(self.path), why) from error
        self.discard()
        return rows

    def _in_order(self, rows: int) -> bool:
        """Whether OUT.partial is what OUT has to be, so that it needs no copy: half of the disk."""
        if not self._tidy or rows != self.in_partial:
            return False
        last = -1
        for place in self._offsets:
            if place >= 0 and (place & 1 != _PARTIAL or place <= last):
                return False
            last = max(last, place)
        return True

    def _ordered(self) -> Iterator[bytes]:
        for place in self._offsets:
            if place >= 0:
                # An edited OUT may begin with a byte order mark, or lack its last line end.
                yield (
                    self._line(place & 1, place >> 1).removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
                )

    def discard(self) -> None:
        """Remove OUT.partial, and OUT.bak if this run made it; OUT stays as it is."""
        self._done = True  # from now on, the name OUT.partial may be another run's
        self._waiting.clear()
        self._storage.discard()

    def _leave(self) -> None:
        if self._begun and not self._done:
            self.settle()
        if not self._done and not self._storage.holds_rows():
            self._storage.discard()  # a refused or idle run leaves nothing to resume

    def _place(self, index: int, source: int, offset: int) -> None:
        if index >= len(self._offsets):
            self._offsets.extend([-1] * (index + 1 - len(self._offsets)))
        self._offsets[index] = offset << 1 | source

    def _line(self, source: int, offset: int) -> bytes:
        stream = self._sources[source]
        stream.seek(offset)
        return stream.readline()

    def _index(self, source: int, fingerprint: str, start: int = 0) -> None:
        stream = self._sources[source]
        stream.seek(start)
        found = foreign = 0
        for _, offset, line in lines_of(stream, LONGEST_ROW):
            offset += start
            if source == _PARTIAL and isinstance(line, bytes) and is_torn(line):
                break  # the row that a killed run was writing
            if source == _PARTIAL:
                self.in_partial += 1
                # An edited file may begin with a byte order mark, or have other line ends.
                edited = isinstance(line, InputError) or line[:1] != b"{" or line[-2:] != b"}\n"
                self._tidy = self._tidy and not edited
            try:
                if isinstance(line, InputError):
                    raise line
                evaluation = from_line(Evaluation, line)
            except SchemaError as error:
                raise ConfigurationError("out", stream.name, error.why) from error
            except (ArithmeticError, RecursionError, ValueError):
                foreign += 1
                continue
            found += 1
            self._take_in(source, offset, evaluation, fingerprint)
        if foreign and not found and not start:
            raise ConfigurationError(
                "out", stream.name, "holds no evaluations, so there is nothing to resume"
            )
        self.stale += foreign

    def _take_in(self, source: int, offset: int, evaluation: Evaluation, fingerprint: str) -> None:
        if evaluation.fingerprint != fingerprint:
            raise ConfigurationError(
                "out", self._sources[source].name,
                f"was made by another evaluator (judge {evaluation.judge.name}, fingerprint "
                f"{evaluation.fingerprint}, not {fingerprint}); resume with the judge, metrics and "
                "formulas that it was made with, or use another file",
            )  # fmt: skip
        if evaluation.error is None:
            self._recorded[_identity(evaluation)].append((source, offset))
            self.holds_rows = self.holds_rows or source == _PARTIAL
        else:
            self._failed[_identity(evaluation)] = (source, offset)
            self.stale += 1


@contextmanager
def evaluations_to(
    path: Path, *, overwrite: bool = False, field: str = "--out", compressed: bool = False
) -> Iterator[Callable[[Evaluation], object]]:
    """Provide a function that writes evaluations which cost nothing, to a file or to `-`.

    The file is there whole at the end, or as it was when an exception is raised; while an earlier
    one is replaced, it is OUT.bak, too.

    Args:
        path: OUT, or `-` for standard output.
        overwrite: replace a file that exists.
        field: name of the argument, for errors.
        compressed: gzip the file; the same rows give the same bytes.

    Raises:
        ConfigurationError: as for `EvaluationFile`.
        OSError: when the file cannot be written.
    """
    if str(path) == "-":
        yield EvaluationPipe().append
        return
    check_form(path, field)
    if is_parquet(path):
        target = check_out(path, overwrite=overwrite, field=field, resumable=False, parts=True)
        new = not target.exists()
        if not new:
            _parquet_folder.check_backup(target, field)
        with _parquet_folder.replacing(target, new=new) as append:
            yield lambda evaluation: append(to_line(evaluation).encode("ascii"))
        return
    with rows_to(path, overwrite=overwrite, field=field, compressed=compressed) as rows:
        yield lambda evaluation: rows.write(to_line(evaluation).encode("ascii") + b"\n")


@contextmanager
def rows_to(
    path: Path, *, overwrite: bool = False, field: str = "--out", compressed: bool = False
) -> Iterator[BinaryIO]:
    """Open a file for rows that cost nothing; arguments and errors are those of `evaluations_to`.

    The file is there whole at the end, or as it was when an exception is raised; while an earlier
    one is replaced, it is OUT.bak, too.
    """
    target = check_out(path, overwrite=overwrite, field=field, resumable=False)
    new = not target.exists()
    backup = None if new else _target.back_up(target, field)
    try:
        with _target.replacing(target, new=new) as stream, ExitStack() as opened:
            yield opened.enter_context(zipping(stream)) if compressed else stream
    finally:
        if backup is not None:
            backup.unlink(missing_ok=True)


def _identity(row: RagCall | Evaluation) -> bytes:
    """Digest what a row is known by: its content, its label, its metadata and its gold ids."""
    gold = None if row.relevant_ids is None else sorted(row.relevant_ids)
    text = json.dumps([row.row_key, row.id, row.metadata, gold], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).digest()[:16]
