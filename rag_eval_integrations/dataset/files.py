"""Writes EVALS files: rows as they finish, the ordered file at the end, nothing lost on the way."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from gzip import GzipFile
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from rag_eval_integrations import _target
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations._visible import counted
from rag_eval_integrations.dataset._evals import is_torn, opened_rows
from rag_eval_integrations.dataset._input import LINE, LONGEST_ROW, lines_from, lines_of
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluations._formats import check_parquet
from rag_eval_integrations.records import Evaluation, RagCall, Run, from_line, to_line
from rag_eval_integrations.records._json import parse_object

_PARTIAL, _OUT = 0, 1
"""Sources of rows. The place of a row is twice its offset, plus its source; -1 for none."""


_DERIVED = (".html", ".htm", ".md", ".csv", ".tsv", ".xlsx")
"""Ends of names of what is made of evaluations."""


def is_parquet(path: Path) -> bool:
    """Return whether a file that is going to be written is Parquet, by its name."""
    return path.suffix.lower() in (".parquet", ".pq")


def check_form(path: Path, field: str = "out") -> None:
    """Refuse a name whose form cannot be written.

    Raises:
        ConfigurationError: it says a page, a table, or gzipped Parquet.
        MissingDependencyError: it says Parquet, and pyarrow is not installed.
    """
    if path.suffix == ".gz" and is_parquet(path.with_suffix("")):
        why = "would be gzipped Parquet, which is compressed already; leave out the `.gz`"
        raise ConfigurationError(field, str(path), why)
    if path.suffix.lower() in _DERIVED:
        instead = "Evaluations.report makes pages, and to_csv tables"
        if field.startswith("-"):
            instead = f"a page is --report {path}, and `rag-eval report EVALS -o` makes tables"
        why = f"is for evaluations: use a name such as evals.jsonl or evals.parquet; {instead}"
        raise ConfigurationError(field, str(path), why)
    if is_parquet(path):
        check_parquet()


def check_out(
    path: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    field: str = "out",
    resumable: bool = True,
) -> Path:
    """Follow links to the file that is going to be written; refuse one that would be lost.

    Args:
        path: OUT, as a user gave it.
        resume: it is going to be read and continued.
        overwrite: it may be replaced.
        field: name of the argument, for the error.
        resumable: whether the caller has a `resume`, for the error.

    Raises:
        ConfigurationError: there is a file, and neither `resume` nor `overwrite` is set, or both;
            or there is something else than a regular file.
        OSError: its folder does not exist.
    """
    if resume and overwrite:
        raise ConfigurationError("resume", resume, "goes on with a file; do not overwrite it")
    target = _target.resolved(path, field)
    if target.exists() and not (resume or overwrite):
        ways = ["exists; use another name", f"{_flag_text('overwrite', field)} to replace it"]
        if resumable:
            ways.append(f"{_flag_text('resume', field)} to go on with the same calls")
        raise ConfigurationError(field, str(path), f"{', '.join(ways[:-1])}, or {ways[-1]}")
    return target


def _flag_text(name: str, field: str) -> str:
    """Write a flag as on the command line, or as an argument in Python."""
    return f"--{name}" if field.startswith("-") else f"{name}=True"


class EvaluationFile:
    """The output of one run; a context manager.

    While it lasts, rows are in OUT.partial, a line of JSON each, in the order in which they are
    added, and OUT is as it was. `finish` replaces OUT by the rows in the order of the calls,
    atomically: as lines, gzipped if the name of OUT ends in `.gz`, or as a Parquet file if it ends
    in `.parquet`. With `overwrite`, the earlier OUT is also OUT.bak until then.

    Args:
        path: OUT. Links are followed, and the other files are made beside their target.
        fingerprint: of the evaluator.
        resume: take over what OUT and OUT.partial hold.
        overwrite: replace an OUT that exists.
        field: what the caller gave OUT by, for errors: `out` or `--out`.

    Raises:
        ConfigurationError: when OUT exists and neither `resume` nor `overwrite` is set, or both;
            when OUT.partial holds rows and `resume` is not set; when another run is writing it;
            when there is something else to resume from than evaluations of this version's format,
            or some by another evaluator; when OUT is not a regular file, or is damaged.
        MissingDependencyError: OUT would be Parquet, and pyarrow is not installed.
        OSError: when the files cannot be written.
    """

    ordered = False
    """Whether rows have to be added in the order of the calls."""

    def __init__(
        self,
        path: Path,
        fingerprint: str,
        *,
        resume: bool = False,
        overwrite: bool = False,
        field: str = "out",
    ) -> None:
        check_form(path, field)
        self.path = check_out(path, resume=resume, overwrite=overwrite, field=field)
        self._field = field
        self.partial = self.path.with_name(f"{self.path.name}.partial")
        self.stale = 0
        """Rows of an earlier run that failed or cannot be read, and are made again."""
        self.holds_rows = False
        """Whether OUT.partial holds an evaluation without an error, to resume from."""
        self.in_partial = 0
        self.run: Run | None = None
        """The run that the rows of an earlier one name; None where they name none."""
        self._done, self._resumed = False, resume
        self._fingerprint = fingerprint
        self._places = array("q")
        self._recorded: dict[bytes, list[int]] = defaultdict(list)
        self._failed: dict[bytes, int] = {}
        self._backup: Path | None = None
        with ExitStack() as opened:
            self._file = opened.enter_context(self._open(resume))
            opened.callback(self._remove_if_empty)
            self._new = not self.path.exists()
            self._sources: list[BinaryIO] = [opened.enter_context(self.partial.open("rb"))]
            if resume:
                self._note_earlier_rows(_PARTIAL)
                # A killed run with `overwrite` left OUT.bak: it was replacing OUT, so it is not of
                # that run.
                if _target.is_backed_up(self.path):
                    self._backup = _target.backup_of(self.path)
                elif not self._new:
                    self._sources.append(opened.enter_context(self._lines_of_out()))
                    self._note_earlier_rows(_OUT)
                self._file.end_last_line(is_torn)
            elif not self._new:
                self._backup = _target.back_up(self.path, self._field)
            self._opened = opened.pop_all()

    def _open(self, resume: bool) -> LineFile:
        """Open and lock the partial file; refuse another run's.

        Removes what killed runs left unfinished beside it.
        """
        try:
            file = LineFile(self.partial, wait=False)
        except BlockingIOError as error:
            why = "is being written by another run"
            raise ConfigurationError(self._field, str(self.partial), why) from error
        try:
            if file.head(1) and not resume:
                resuming = _flag_text("resume", self._field)
                why = f"is there from a run that did not end; go on with {resuming}, or delete it"
                raise ConfigurationError(self._field, str(self.partial), why)
            _target.remove_unfinished(self.path)
        except BaseException:
            file.close()
            raise
        return file

    def _lines_of_out(self) -> BinaryIO:
        """Open OUT, of any form, as a file of lines with offsets."""
        if self.path.suffix != ".gz" and not is_parquet(self.path):
            return self.path.open("rb")
        copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  # the caller closes it
        with opened_rows(self.path, bytes, evaluations=True) as (_, rows):
            for _, row in rows:
                if isinstance(row, InputError):
                    copy.close()
                    why = f"cannot be resumed: {row.why}"
                    raise ConfigurationError(self._field, str(self.path), why)
                copy.write(row.rstrip(b"\r\n") + b"\n")
        copy.seek(0)
        return copy

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
                self._field,
                str(self.path),
                f"holds evaluations of {counted(len(missing), 'call that is', 'calls that are')} "
                "not among the calls of this run; resume with the calls that it was made from, or "
                "use another file",
            )

    def earlier(self) -> Iterator[Evaluation]:
        """Yield the rows of the earlier run, in the order of its files; also those that failed."""
        places = [*chain(*self._recorded.values()), *self._failed.values()]
        for place in sorted(places, key=lambda place: (place & 1, place)):
            yield from_line(Evaluation, self._line(place))

    def take(self, index: int, row: RagCall | Evaluation) -> Evaluation | None:
        """Take over an earlier run's evaluation of a call; None when there is none left."""
        places = self._recorded.get(_identity(row))
        if not places:
            return None
        self._note_place(index, places.pop(0))
        return from_line(Evaluation, self._line(self._places[index]))

    def add(self, index: int, evaluation: Evaluation) -> None:
        """Append the evaluation of the call at `index` (from 0)."""
        self.add_row(index, to_line(evaluation), failed=evaluation.error is not None)

    def add_row(self, index: int, line: str, *, failed: bool) -> None:
        """Append the row of EVALS of the call at `index` (from 0); *failed* if it has an error."""
        self._note_place(index, self._file.append(line.encode("ascii")) << 1 | _PARTIAL)
        self.in_partial += 1
        self.holds_rows = self.holds_rows or not failed

    def finish(self) -> int:
        """Write OUT in input order, remove OUT.partial and return the number of rows.

        Without any row, OUT stays as it was.

        Raises:
            ConfigurationError: when an OUT has appeared that was not there at the beginning.
            OSError: when OUT cannot be written; the rows are in OUT.partial.
        """
        places = [place for place in self._places if place >= 0]
        is_lines = self.path.suffix != ".gz" and not is_parquet(self.path)
        try:
            if places and is_lines and not self._resumed and places == sorted(places):
                self._file.take_place(self.path, new=self._new)  # it is what OUT has to be
            elif places:
                with _target.replacing(self.path, new=self._new) as out:
                    self._write(out)
        except FileExistsError as error:
            why = f"has appeared since the run began; the rows are in {self.partial}"
            raise ConfigurationError(self._field, str(self.path), why) from error
        self.discard()
        return len(places)

    def _write(self, out: BinaryIO) -> None:
        """Write the rows in order, as Parquet or gzipped if the name says so."""
        if is_parquet(self.path):
            write_parquet(self._ordered, out)
            return
        with zipping(out) if self.path.suffix == ".gz" else nullcontext(out) as lines:
            for line in self._ordered():
                lines.write(line + b"\n")

    def _ordered(self) -> Iterator[bytes]:
        """Yield the rows in the order of the calls."""
        for place in self._places:
            if place >= 0:
                # An edited OUT may begin with a byte order mark, or lack its last line end.
                yield self._line(place).removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")

    def discard(self) -> None:
        """Remove OUT.partial, and OUT.bak if this run made it; OUT stays as it is."""
        self._done = True  # from now on, the name OUT.partial may be another run's
        if self._backup is not None:
            self._backup.unlink(missing_ok=True)
        self.partial.unlink(missing_ok=True)

    def _remove_if_empty(self) -> None:
        """Delete the partial file if nothing was written to it."""
        if not self._done and not self._file.head(1):
            self.discard()  # a refused or idle run leaves nothing to resume

    def _note_place(self, index: int, place: int) -> None:
        """Note where the row of the call at `index` stands."""
        if index >= len(self._places):
            self._places.extend([-1] * (index + 1 - len(self._places)))
        self._places[index] = place

    def _line(self, place: int) -> bytes:
        """Read the row that stands at a place of OUT or of the partial file."""
        stream = self._sources[place & 1]
        stream.seek(place >> 1)
        return stream.readline()

    def _note_earlier_rows(self, source: int) -> None:
        """Note where the rows of an earlier run are, to be taken over.

        Those with an error, and lines that are not rows, are counted as stale: they are made again.

        Raises:
            ConfigurationError: there are lines and no evaluation, one in another version's format,
                or one by another evaluator.
        """
        name = str(self.partial if source == _PARTIAL else self.path)
        evaluations = foreign = 0
        rows = self._rows(source)
        for line in lines_from(rows, partial(from_line, Evaluation), "byte", name):
            evaluation, place = line.value, line.number << 1 | source
            if evaluation is None:
                foreign += 1
                continue
            evaluations += 1
            self.run = self.run or evaluation.run
            if evaluation.fingerprint != self._fingerprint:
                raise ConfigurationError(
                    self._field,
                    name,
                    f"was made by another evaluator (judge {evaluation.judge.name}, fingerprint "
                    f"{evaluation.fingerprint}, not {self._fingerprint}); resume with the judge, "
                    "metrics and formulas that it was made with, or use another file",
                )
            if evaluation.error is None:
                self._recorded[_identity(evaluation)].append(place)
                self.holds_rows = self.holds_rows or source == _PARTIAL
            else:
                self._failed[_identity(evaluation)] = place
                self.stale += 1
        if foreign and not evaluations:
            why = "holds no evaluations, so there is nothing to resume"
            raise ConfigurationError(self._field, name, why)
        self.stale += foreign

    def _rows(self, source: int) -> Iterator[tuple[int, bytes | InputError]]:
        """Yield offset and line of each row of an earlier run."""
        for _, offset, line in lines_of(self._sources[source], LONGEST_ROW):
            if source == _PARTIAL and isinstance(line, bytes) and is_torn(line):
                return  # the row that a killed run was writing
            self.in_partial += source == _PARTIAL
            yield offset, line


def _identity(row: RagCall | Evaluation) -> bytes:
    """Hash what identifies a row: content, label, metadata and gold ids."""
    gold = None if row.relevant_ids is None else sorted(row.relevant_ids)
    text = json.dumps([row.row_key, row.id, row.metadata, gold], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).digest()[:16]


class EvaluationPipe:
    """Evaluations on standard output, as lines of EVALS in the order of the calls.

    It has the methods of `EvaluationFile` with which rows are added, and takes over nothing.
    """

    ordered = True
    stale = 0
    run = None

    def __init__(self) -> None:
        if sys.stdout is None or sys.__stdout__ is None:
            raise ConfigurationError("--out", "-", "there is no standard output")
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def take(self, index: int, row: RagCall | Evaluation) -> Evaluation | None:
        """Return None: there is no earlier run."""
        return None

    def add(self, index: int, evaluation: Evaluation) -> None:
        """Write the row of the call at `index`; see `add_row`."""
        self.add_row(index, to_line(evaluation), failed=False)

    def add_row(self, index: int, line: str, *, failed: bool) -> None:
        """Write the row of the call at `index`, whose turn it is.

        Raises:
            OSError: when standard output cannot be written.
        """
        # JSON may hold a raw DEL, the one character of ASCII beside these that acts.
        line = line.replace("\x7f", "\\u007f")
        try:
            sys.stdout.buffer.write(line.encode("ascii") + b"\n")
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            # Python would try once more as it ends, and complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise OSError(
                f"standard output was closed by its reader after {self._rows} evaluations"
            ) from None
        except OSError as error:
            why = _target.readable(error, "standard output")
            raise OSError(f"{why}, after {self._rows} whole evaluations") from error
        self._rows += 1

    def finish(self) -> int:
        """Return the number of rows."""
        return self._rows


# --- Files whose rows cost nothing


@contextmanager
def evaluations_to(
    path: Path, *, overwrite: bool = False, field: str = "--out"
) -> Iterator[Callable[[Evaluation], object]]:
    """Provide a function that writes evaluations to a file or `-`; they can be made anew.

    The file is there whole at the end, or as it was when an exception is raised; while an earlier
    one is replaced, it is OUT.bak, too.

    Args:
        path: OUT, or `-` for standard output; gzipped or Parquet if its name says so.
        overwrite: replace a file that exists.
        field: name of the argument, for errors.

    Raises:
        ConfigurationError: as for `EvaluationFile`.
        OSError: when the file cannot be written.
    """
    if str(path) == "-":
        pipe = EvaluationPipe()
        yield lambda evaluation: pipe.add(0, evaluation)
        return
    check_form(path, field)
    with ExitStack() as opened:
        out = opened.enter_context(rows_to(path, overwrite=overwrite, field=field))
        rows = opened.enter_context(tempfile.TemporaryFile()) if is_parquet(path) else out
        yield lambda evaluation: rows.write(to_line(evaluation).encode("ascii") + b"\n")
        if is_parquet(path):

            def lines() -> Iterator[bytes]:
                """Yield the lines from their beginning."""
                rows.seek(0)
                return (line[:-1] for line in rows)

            write_parquet(lines, out)


@contextmanager
def rows_to(path: Path, *, overwrite: bool = False, field: str = "--out") -> Iterator[BinaryIO]:
    """Open a file for rows that can be made anew; arguments and errors as `evaluations_to`.

    It is gzipped if its name says so; the same rows give the same bytes.
    """
    target = check_out(path, overwrite=overwrite, field=field, resumable=False)
    new = not target.exists()
    backup = None if new else _target.back_up(target, field)
    try:
        with _target.replacing(target, new=new) as stream, ExitStack() as opened:
            yield opened.enter_context(zipping(stream)) if path.suffix == ".gz" else stream
    finally:
        if backup is not None:
            backup.unlink(missing_ok=True)


def zipping(stream: BinaryIO) -> BinaryIO:
    """Gzip what is written to a file; the same bytes give the same bytes."""
    return cast(BinaryIO, GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0))


# --- Evaluations as a table: a row per call with what queries ask for, and its line of EVALS
#
# Parquet written by `rag-eval run` and the data sets of `ray.evaluate_dataset` have these columns.


COLUMNS = (
    "row_key",
    "id",
    "failed",
    "requests",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    LINE,
)
"""The columns beside those of the scores."""
_GROUP = 512
"""Rows of a group of a Parquet file: as many are held in memory."""


def score_column(name: str) -> str:
    """Return the column of a score: its name, or `score:NAME` where another column has it."""
    return f"score:{name}" if name in COLUMNS else name


def table_of(lines: Iterable[str], names: Sequence[str] = ()) -> Any:
    """Make an Arrow table of lines of EVALS, with a column for each score.

    Args:
        lines: lines of EVALS.
        names: names of scores that have a column even if none of the evaluations has them; other
            scores follow, in the order in which they appear.

    Returns:
        A `pyarrow.Table`; a score without a value is null.
    """
    import pyarrow as pa  # noqa: PLC0415 -- as above

    texts = list(lines)
    rows, scores = [], []
    for text in texts:  # a parsed row goes at once, or collecting it costs more than the parsing
        row = parse_object(text)
        usage = {"requests": 0, "prompt_tokens": 0, "completion_tokens": 0, **row.get("usage", {})}
        failed = row.get("error") is not None
        rows.append({"row_key": row["row_key"], "id": row["id"], "failed": failed, **usage})
        scores.append({name: score.get("value") for name, score in row["scores"].items()})
    kinds = {
        "row_key": pa.string(),
        "id": pa.string(),
        "failed": pa.bool_(),
        "requests": pa.int64(),
        "prompt_tokens": pa.int64(),
        "completion_tokens": pa.int64(),
        "cost_usd": pa.float64(),
    }
    arrays: dict[str, Any] = {}
    for name, kind in kinds.items():
        arrays[name] = pa.array([row.get(name) for row in rows], kind)
    for name in dict.fromkeys(chain(names, *scores)):
        arrays[score_column(name)] = pa.array([values.get(name) for values in scores], pa.float64())
    return pa.table(arrays | {LINE: pa.array(texts, pa.string())})


def write_parquet(lines: Callable[[], Iterator[bytes]], out: BinaryIO) -> None:
    """Write evaluations as a Parquet file, in memory of their columns without the lines.

    Args:
        lines: gives the lines of EVALS; called twice, because the columns are those of all rows.
        out: the file.
    """
    import pyarrow as pa  # noqa: PLC0415 -- as above
    from pyarrow import parquet as pq  # noqa: PLC0415

    groups = _groups(lines())
    tables = [table_of(group).drop_columns([LINE]) for group in chain([[]], groups)]
    cells = pa.concat_tables(tables, promote_options="default")
    schema = cells.schema.append(pa.field(LINE, pa.string()))
    with pq.ParquetWriter(
        out, schema, compression="zstd", use_dictionary=False, write_statistics=cells.column_names
    ) as file:
        start = 0
        for group in _groups(lines()):
            columns = cells.slice(start, len(group)).columns
            file.write_table(pa.table([*columns, pa.array(group, pa.string())], schema=schema))
            start += len(group)


def _groups(lines: Iterator[bytes]) -> Iterator[list[str]]:
    """Yield lines in groups, as Parquet takes them."""
    texts = (line.decode("ascii") for line in lines)
    while group := list(islice(texts, _GROUP)):
        yield group
