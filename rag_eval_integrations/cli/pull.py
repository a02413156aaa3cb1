"""`rag-eval pull`: read calls from the traces that a tool holds, into a file."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self

from rag_eval_integrations import _target
from rag_eval_integrations._contain import words_of
from rag_eval_integrations._lines import LineFile
from rag_eval_integrations._visible import counted
from rag_eval_integrations.background._sink_delivery import pause_after
from rag_eval_integrations.cli._arguments import PullOptions
from rag_eval_integrations.cli._options import moment
from rag_eval_integrations.cli._terminal import kept, print_stderr, write_stdout
from rag_eval_integrations.dataset._input import open_lines
from rag_eval_integrations.dataset.files import check_out, is_parquet, zipping
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import RagCall, to_line
from rag_eval_integrations.sinks.langfuse import langfuse_client
from rag_eval_integrations.sinks.langsmith import langsmith_client
from rag_eval_integrations.sinks.mlflow import mlflow_client
from rag_eval_integrations.sinks.phoenix import phoenix_client
from rag_eval_integrations.traces._span import Listed, Reader, Search
from rag_eval_integrations.traces.reading import READERS, Traces

_CLIENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "phoenix": (phoenix_client, "PHOENIX_COLLECTOR_ENDPOINT"),
    "mlflow": (mlflow_client, "MLFLOW_TRACKING_URI"),
    "langfuse": (langfuse_client, "LANGFUSE_BASE_URL"),
    "langsmith": (langsmith_client, "LANGSMITH_ENDPOINT"),
}
"""What makes the client of a tool, and the variable of the environment with its address."""
_BATCH = 20
"""Traces whose spans are asked for at once."""
_TRIES = 6
"""Times that a request is made, with pauses of together some fifteen seconds."""
_SECONDS_PER_LINE = 10.0


def pull(options: PullOptions) -> int:
    """Write the call of each trace to OUT; return 0, or 1 where no trace gave one.

    Raises:
        ConfigurationError: there is no such tool or project, or OUT would be lost.
        MissingDependencyError: the tool's client is not installed.
        OSError: the tool cannot be reached, or a file not be written.
    """
    if options.source not in _CLIENTS:
        raise ConfigurationError("--from", options.source, f"use one of {', '.join(_CLIENTS)}")
    now = time.time()
    settled = moment(options.settle, "--settle", now)
    search = Search(
        ask=partial(_with_retries, READERS[options.source].NAME),
        project=options.project,
        since=moment(options.since, "--since", now) or None,
        query=options.query,
    )
    make, address = _CLIENTS[options.source]
    if options.url is not None:
        os.environ[address] = options.url
    reader, client = READERS[options.source], make()
    with _CallFile(options.out, resume=options.resume, overwrite=options.overwrite) as out:
        traces = Traces(reader)
        with kept(out.kept_words, add="--resume", drop="--overwrite"):
            young = _pull_calls(reader, client, search, traces, out, settled, options.limit)
        out.finish()
    print_stderr(traces.summary())
    if young:
        print_stderr(f"{counted(young, 'trace')} younger than {options.settle}: for the next pull")
    if out.before:
        print_stderr(f"{counted(out.before, 'call')} had been pulled before")
    if str(options.out) != "-" and out.added + out.before:
        print_stderr(f"next: rag-eval run {options.out} -o evals.jsonl")
    return int(not out.added + out.before)


def _pull_calls(
    reader: Reader,
    client: Any,
    search: Search,
    traces: Traces,
    out: _CallFile,
    settled: float,
    limit: int | None,
) -> int:
    """Write the calls of the listed traces; return how many traces are too young."""
    young = 0
    reported_at = time.monotonic()

    def unseen() -> Iterator[Listed]:
        """Yield the listed traces that are settled and not in OUT yet."""
        nonlocal young
        for listed in reader.listed(client, search):
            if listed.trace in out.traces:
                continue
            if listed.ended is not None and listed.ended > settled:
                young += 1
            else:
                yield listed

    listing = islice(unseen(), limit)
    for batch in iter(lambda: list(islice(listing, _BATCH)), []):
        rows = [row for listed in batch for row in listed.rows or ()]
        if missing := [listed.trace for listed in batch if listed.rows is None]:
            rows += reader.rows_of(client, search, missing)
        for number, row in enumerate(rows):
            if (error := traces.add(number, row)) is not None:
                print_stderr(f"left out: {error}")
        for trace in list(traces.waiting):
            for _, call in traces.end(trace):
                out.add(trace, call)
        if time.monotonic() - reported_at >= _SECONDS_PER_LINE:
            reported_at = time.monotonic()
            print_stderr(f"{counted(out.added, 'call')} pulled")
    return young


def _with_retries(tool: str, request: Callable[[], Any]) -> Any:
    """Make a request, and retry it with pauses while its failure may be temporary.

    Raises:
        OSError: it failed too often, or the tool refuses it.
    """
    for tries in range(1, _TRIES + 1):
        try:
            return request()
        except Exception as error:
            response = getattr(error, "response", None)
            status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
            refused = isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
            # Some clients add their key's end in further lines.
            words = words_of(error).splitlines()[:1]
            why = f"{tool}: {type(error).__name__}: {''.join(words):.200}"
            if refused or tries == _TRIES:
                raise OSError(why) from error
            if tries == 1:
                print_stderr(f"{why}; it is asked again")
            time.sleep(pause_after(tries))
    raise AssertionError


class _CallFile:
    """The output, a file of calls; until the end, new ones are in OUT.partial.

    Args:
        path: OUT, or `-` for standard output.
        resume: go on with OUT and OUT.partial.
        overwrite: replace an OUT that exists.

    Raises:
        ConfigurationError: OUT would be lost, is Parquet, or is being written.
        OSError: it cannot be written.
    """

    def __init__(self, path: Path, *, resume: bool, overwrite: bool) -> None:
        self.added = self.before = 0
        self.traces: set[str] = set()
        """Ids of the traces whose calls are there."""
        self._file: LineFile | None = None
        if str(path) == "-":
            self.path = self.partial = path
            return
        if is_parquet(path):
            raise ConfigurationError("--out", str(path), "use a name that ends in .jsonl or .gz")
        self.path = check_out(path, resume=resume, overwrite=overwrite, field="--out")
        self.partial = self.path.with_name(f"{self.path.name}.partial")
        self._resume, self._new = resume, not self.path.exists()
        with ExitStack() as opened:
            try:
                self._file = opened.enter_context(LineFile(self.partial, wait=False))
            except BlockingIOError as error:
                why = "is being written by another pull"
                raise ConfigurationError("--out", str(self.partial), why) from error
            if self._file.head(1) and not resume:
                why = "is there from a pull that did not end; go on with --resume, or delete it"
                raise ConfigurationError("--out", str(self.partial), why)
            self._file.end_last_line(lambda line: True)
            for file in (self.path, self.partial) if resume else ():
                self._note_traces(file)
            self.before = len(self.traces)
            self._opened = opened.pop_all()

    def _note_traces(self, file: Path) -> None:
        """Remember the traces whose calls are in a file."""
        if not file.exists():
            return
        with open_lines(file) as lines:
            for line in lines:
                traces = json.loads(line).get("capture", {}).get("traces", {})
                self.traces.update(trace for trace, _ in traces.values())

    def kept_words(self) -> str:
        """Say how many calls an interrupted pull keeps; empty for none."""
        calls = counted(self.added, "call is", "calls are")
        return f"{calls} kept in {self.partial}." if self.added and self._file else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._file is not None:
            if not self._file.head(1):
                self.partial.unlink(missing_ok=True)
            self._opened.close()

    def add(self, trace: str, call: RagCall) -> None:
        """Append the call of a trace."""
        self.added += 1
        self.traces.add(trace)
        line = to_line(call)
        if self._file is None:
            write_stdout(f"{line}\n")
        else:
            self._file.append(line.encode("ascii"))

    def finish(self) -> None:
        """Replace OUT by a whole file: earlier calls if it is resumed, then the new ones."""
        if self._file is None or not (self.added or self._file.head(1)):
            return
        backup = None if self._new else _target.back_up(self.path, "--out")
        with _target.replacing(self.path, new=self._new) as stream, ExitStack() as opened:
            zipped = self.path.suffix == ".gz"
            out = opened.enter_context(zipping(stream)) if zipped else stream
            for file in (self.path, self.partial) if self._resume else (self.partial,):
                if file.exists():
                    lines = opened.enter_context(open_lines(file))
                    for line in lines:
                        out.write(line.rstrip(b"\n") + b"\n")
        if backup is not None:
            backup.unlink(missing_ok=True)
        self.partial.unlink(missing_ok=True)
