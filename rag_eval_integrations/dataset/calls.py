"""`read_calls`: calls of a file, a data frame, a data set or a list, in the words of any tool."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Generic, TypeVar

from rag_eval_integrations._contain import contained, words_of
from rag_eval_integrations.dataset import _input
from rag_eval_integrations.dataset._evals import opened_rows
from rag_eval_integrations.dataset._input import Input, Line, lines_from
from rag_eval_integrations.dataset._labels_file import whole_rows
from rag_eval_integrations.dataset._names import (
    OPTIONAL,
    REQUIRED,
    FieldMap,
    SourceFields,
    check_field_map,
    listed,
)
from rag_eval_integrations.dataset._paths import ABSENT, folded, path_to, remove, value_at
from rag_eval_integrations.dataset._proposals import are_ids
from rag_eval_integrations.dataset._sources import objects_of, rows_inside, rows_of_frame
from rag_eval_integrations.dataset.rows import call_from
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records._json import NAMES, excerpt
from rag_eval_integrations.records.call import ONE_TEXT
from rag_eval_integrations.traces._values import (
    conversation,
    documents_from,
    id_from,
    ids_from,
    items_in,
    json_part,
    list_in,
    messages_in,
    metadata_from,
    named_ids,
    numbers_from,
    object_in,
    said_from,
    text_from,
    turns_from,
)
from rag_eval_integrations.traces.reading import calls_in, reader_of

T = TypeVar("T")

_JOINT = re.compile(r"\n\s*\n")
"""What stands between documents that are joined to one text."""
_WHOLE = re.compile(r"\A(-?[0-9]+)\.0\Z")
"""A whole number as pandas writes it into CSV, of a column with a gap."""


def read_calls(
    source: str | os.PathLike[str] | IO[Any] | Iterable[Any],
    *,
    field_map: FieldMap | None = None,
    to_call: Callable[[Any], RagCall] | None = None,
    tool: str | None = None,
    split_reference: str | None = None,
    tell: Callable[[str], object] | None = None,
) -> Iterator[Line[RagCall]]:
    """Read calls; a bad row is an error in its place, not the end.

    Names of fields of ragas, deepeval, LangSmith, LlamaIndex, OpenAI-style messages and names in
    common use (`query`, `contexts`, `answer` …) are understood. The first row decides which they
    are, and the mapping is told once. `docs/data.md` has every form with an example.

    Args:
        source: one of

            - the path of a JSONL, JSON, CSV or Parquet file, plain or gzipped, or of a FIFO;
            - an open file, what is left of which is copied first;
            - a pandas or polars data frame, or a pyarrow table;
            - an iterable of rows: a list of dicts, a Hugging Face data set, test cases of deepeval,
              samples of ragas, runs or examples of LangSmith, or calls;
            - a data set object of deepeval or LlamaIndex, or one test case, sample or call.
        field_map: field of a call → name of the field that holds it, where names are others:
            `{"documents": "passages", "question": "inputs.text"}`. `a.b` is `b` inside of `a`, or
            of every item of the list `a`. `documents` may have a list of names.
        to_call: makes the call of a row, in place of names, for shapes that no map reaches. It gets
            each row of the source as a dict; what it raises is the row's error.
        tool: the tool whose traces the rows are: `phoenix`, `mlflow`, `langfuse` or `langsmith`; by
            default recognised by the columns. `docs/traces.md` says which exports are read.
        split_reference: what stands between several references that are one text, such as `/`.
        tell: called with the mapping in words; by default it is logged.

    Yields:
        One `Line` for each row, in order: its call, or its error. Memory stays flat, but for
        JSON that is not one row per line, which is read at once.

    Raises:
        ConfigurationError: the source has no rows of this kind; the field map names what a call, or
            the first row, has not, or stands beside `to_call`; two columns have one name.
        MissingDependencyError: a Parquet file, and pyarrow is not installed.
        OSError: the file cannot be opened or read.
    """
    if field_map is None and isinstance(source, Input):
        field_map = source.field_map
    option = "--map" if isinstance(source, Input) else "field_map"
    if field_map and to_call is not None:
        raise ConfigurationError(option, field_map, "leave it out: `to_call` makes the calls")
    reader = _Reader(check_field_map(field_map), option, tell or _input.logger.info, call_from)
    reader.to_call = to_call
    reader.tool = source.tool if tool is None and isinstance(source, Input) else tool
    reader.separator = source.separator if isinstance(source, Input) else split_reference
    if isinstance(source, str | os.PathLike):
        return _calls_of_file(os.fspath(source), partial(_input.open_lines, source), reader)
    if hasattr(source, "read"):
        if not isinstance(source.read(0), str | bytes):
            raise ConfigurationError("source", excerpt(source), "should be a file of bytes or text")
        return _calls_of_file("", lambda: _input.unpacked(_input.copied(source)), reader)
    return _calls_of_rows(objects_of(source, reader.tell), reader, "row", "")


def read_labelled(
    source: Input,
    make: Callable[[dict[str, Any]], T],
    *,
    tell: Callable[[str], object],
    lone_ids: bool = False,
) -> Iterator[Line[T]]:
    """Read rows with labels or ratings, by the names and the map by which `read_calls` reads calls.

    Args:
        source: the file, or a folder of Parquet files.
        make: makes a value of a row in the form of CALLS, or of a row of EVALS as it is.
        tell: called with the mapping in words.
        lone_ids: whether a row may have an `id` in place of its call; it is passed on as it is.

    Yields:
        One `Line` for each row, in order.

    Raises:
        ConfigurationError, MissingDependencyError, OSError: as for `read_calls`.
    """
    reader = _Reader(check_field_map(source.field_map), "--map", tell, make)
    reader.is_labelled, reader.lone_ids = True, lone_ids
    with opened_rows(source, known=reader.names) as (form, rows):
        yield from _lines(form, rows, reader, str(source))


def _calls_of_file(
    name: str, opened: Callable[[], BinaryIO], reader: _Reader[RagCall]
) -> Iterator[Line[RagCall]]:
    """Yield the calls of a file, or of the traces in the files of a folder."""
    if os.path.isdir(name):
        yield from _calls_of_rows(_rows_of_folder(Path(name), reader), reader, "row", name)
        return
    with opened() as stream:
        form = _input.format_of(name, stream, reader.names)
        rows = _input.rows_of(stream, form, _input.LONGEST_CALL, reader.tell)
        yield from _lines(form, rows, reader, name)


def _is_traced(row: Any) -> bool:
    """Tell whether a row is of a tool's traces, even if it cannot be read."""
    try:
        return reader_of(row) is not None
    except InputError:
        return True


def _rows_of_folder(folder: Path, reader: _Reader[RagCall]) -> Iterator[tuple[int, Any]]:
    """Number the rows of the files of a folder, of which a trace may have several.

    Raises:
        ConfigurationError: the folder has no file of rows, or not of traces.
    """
    number = 0
    for part in _input.parts_of(folder, (*_input.SUFFIXES.values(), "json")):
        with _input.open_lines(part) as stream:
            form = _input.format_of(part.name, stream)
            for _, row in _input.rows_of(stream, form, _input.LONGEST_CALL, reader.tell):
                number += 1
                if number == 1 and reader_of(row, reader.tool) is None:
                    why = "is a folder, of which traces alone are read; name a file of it"
                    raise ConfigurationError("path", str(folder), why)
                yield number, row
    if not number:
        raise ConfigurationError("path", str(folder), "is a folder without files of rows")


def _calls_of_rows(
    rows: Iterator[tuple[int, Any]], reader: _Reader[T], unit: str, source: str
) -> Iterator[Line[T]]:
    """Read numbered rows: each as a call, or the spans of a tool trace by trace."""
    head: list[tuple[int, Any]] = []
    for numbered in rows:
        head.append(numbered)
        if not isinstance(numbered[1], InputError):
            break
    rows = chain(head, rows)
    if head and reader.to_call is None and not reader.given and not reader.is_labelled:
        number, row = head[-1]
        try:
            spans_of = reader_of(row, reader.tool)
        except InputError as error:
            rows, spans_of = iter([(number, error)]), None
        if spans_of is not None:
            rows = calls_in(rows, spans_of, reader.tell)
    yield from lines_from(rows, reader.read, unit, source)


def _lines(
    form: _input.Format, rows: _input.Numbered, reader: _Reader[T], source: str
) -> Iterator[Line[T]]:
    """Read the rows of a file; where its only row holds the others, those inside of it."""
    unit = _input.unit_of(form)
    reader.is_csv = form == "csv"
    reader.cells = form in ("csv", "parquet")
    rows = whole_rows(rows)
    first = list(islice(rows, 2))
    if len(first) == 1 and reader.to_call is None:
        row = first[0][1]
        inside = rows_of_frame(row, reader.tell) or None
        is_trace = not reader.is_labelled and _is_traced(row)
        if not (inside or is_trace or any(path_to(row, name) for name in reader.names)):
            inside = rows_inside(row, reader.tell)
        if inside is not None:
            unit, first = "row", list(enumerate(inside, 1))
    yield from _calls_of_rows(chain(first, rows), reader, unit, source)


# --- From a row to a call


class _Reader(Generic[T]):
    """Makes calls, or rows with labels, of the rows of one source.

    Args:
        given: where fields of calls are, for those that are not found by their names.
        option: what the user gave it by: `field_map` or `--map`.
        tell: called once with the mapping in words, if the names are not our own.
        make: makes the value of a row in the form of CALLS.
    """

    to_call: Callable[[Any], T] | None = None
    """Makes the value of a row as it is, in place of everything else."""
    tool: str | None = None
    """The tool whose traces the rows are; None to recognise it."""
    separator: str | None = None
    """What stands between the references of a text; None for nothing."""
    is_labelled = False
    """Whether rows of EVALS are left as they are."""
    lone_ids = False
    """Whether a row may have an id in place of its call."""
    cells = True
    """Whether values may be texts of a table's cells, which hold lists as JSON, or objects."""
    is_csv = False
    """Whether numbers are texts."""

    def __init__(
        self,
        given: Mapping[str, tuple[str, ...]],
        option: str,
        tell: Callable[[str], object],
        make: Callable[[dict[str, Any]], T],
    ) -> None:
        self.given = given
        self.names = tuple(chain(*given.values()))
        self.tell = tell
        self._make = make
        self._fields = SourceFields(given, option)
        self._told: set[str] = set()
        self._has_looked = False

    def read(self, row: Any) -> Any:
        """Make the value of a row, which may be a call already.

        Raises:
            InputError: a field is missing or wrong, or nothing says which field it is, or a user's
                function fails.
            ConfigurationError: the first row lacks a field that the field map names.
        """
        if self.to_call is not None:
            return _called(self.to_call, row)
        if isinstance(row, RagCall):
            return row
        if not isinstance(row, Mapping):
            raise InputError("not a JSON object")
        return self._make(dict(row) if self._is_passed_on(row) else self._calls_row(row))

    def _is_passed_on(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row is passed on as it is: an evaluation, or the id of a call."""
        if self.is_labelled and {"scores", "judge"} <= row.keys():
            return True
        if not self.lone_ids or "response" in self.given or row.get("id") is None:
            return False
        return _ANSWERS.isdisjoint(map(folded, row))

    def _calls_row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a row to the form of CALLS.

        The first row decides where the fields are; optional ones may come with a later row.
        """
        fields = self._fields
        if not fields.paths:
            fields.locate(row)
            if fields.tool != "calls":
                self._tell_names(fields.paths)
        elif fields.has_more_in(row):  # not every writer writes a null
            added = fields.add_optional(row)
            if added and fields.tool != "calls":
                self._tell_names(added, later=True)
        if fields.tool == "deepeval" and "documents" not in self.given:
            row = self._split(row, fields.paths["documents"][0])
        content = _read_fields(row, fields, self.cells)
        wanted = content.get("reference")
        if self.separator and isinstance(wanted, str):
            parts = map(str.strip, wanted.split(self.separator))
            content["reference"] = [part for part in parts if part]
        if self.is_csv and isinstance(label := content.get("id"), str):
            content["id"] = _WHOLE.sub(r"\1", label)
        path = fields.paths.get("documents")
        if path is not None:
            self._mark_joined(content, value_at(row, path, ""), ".".join(path))
        return content

    def _mark_joined(self, content: dict[str, Any], given: Any, place: str) -> None:
        """Mark documents that are joined to one text, and tell of these and of ids."""
        is_one = isinstance(given, str) and content["documents"] == [given]
        is_one = is_one and not self._fields.further and self._fields.tool != "deepeval"
        if is_one and _JOINT.search(given.strip()):
            content["documents"] = [{"text": given, "metadata": {ONE_TEXT: True}}]
            self._tell_once(
                f"`{place}` is one text: documents cannot be told apart; scores of documents are "
                "left out"
            )
        if not self._has_looked and are_ids(content["documents"]):
            first = excerpt(content["documents"][0])
            self._tell_once(f"`{place}` holds no sentences, but {first}: are these ids?")
        self._has_looked = True

    def _tell_once(self, words: str) -> None:
        """Tell the user about a kind of row, at its first row only."""
        kind = words.partition(",")[0]
        if kind not in self._told:
            self._told.add(kind)
            self.tell(words)

    def _split(self, row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Split documents that are one text, as deepeval writes them into CSV and JSONL."""
        text = row.get(name)
        if not isinstance(text, str) or "|" not in text or list_in(text, name) is not None:
            return row
        self._tell_once(
            f"`{name}` is split at `|`, with which deepeval joins documents in CSV and JSONL; "
            f"to keep its texts whole, say documents={name} with {self._fields.option}"
        )
        return {**row, name: [part for part in text.split("|") if part.strip()]}

    def _tell_names(self, located: Collection[str], *, later: bool = False) -> None:
        """Tell the user where some fields of a call are read from."""
        paths = self._fields.paths
        dotted = {ours: ".".join(paths[ours]) for ours in located}
        if "documents" in located:
            dotted["documents"] += "".join(f" + {'.'.join(path)}" for path in self._fields.further)
        words = ", ".join(
            ours if paths[ours] == (ours,) else f"{dotted[ours]} → {ours}"
            for ours in (*REQUIRED, *OPTIONAL)
            if ours in located
        )
        lacking = [ours for ours in REQUIRED if ours not in located]
        if later:
            self.tell(f"a later row has also: {words}")
        else:
            source = "calls" if self._fields.tool == "common" else self._fields.tool
            rest = f"; {' and '.join(lacking)} from the messages" if lacking else ""
            self.tell(f"read as {source}: {words}{rest}")


def _called(to_call: Callable[[Any], T], row: Any) -> T:
    """Make a call by a user's function.

    Raises:
        InputError: whatever it raised, or that it returned something else.
    """
    try:
        with contained:
            call = to_call(row)
    except Exception as error:
        why = f"`to_call` raised {type(error).__name__}: {words_of(error)}"
        raise InputError(why) from error
    if not isinstance(call, RagCall):
        raise InputError(f"`to_call` should return a RagCall, not {excerpt(call)}")
    return call


def _read_fields(row: Mapping[str, Any], fields: SourceFields, cells: bool) -> dict[str, Any]:
    """Convert a row into a row of CALLS; fields that a call lacks stay as they are.

    What LangSmith writes about its own trace is left out.

    Raises:
        InputError: a field is missing, or holds what cannot be read as such.
    """
    values, rest, places = _field_values(row, fields)
    call: dict[str, Any] = {}
    for ours in REQUIRED:
        if ours not in values:
            raise InputError("is missing: the messages have none", field=ours)
    if fields.further:  # of several columns, not every one needs to have a document
        values["documents"] = values["documents"] or ""
    for ours, value in values.items():
        if ours != "document_ids":
            call[ours] = _READERS[ours](value, places.get(ours, ours))
    for path in fields.further:
        place = ".".join(path)
        value = value_at(row, path, place)
        remove(rest, path)
        if value is not ABSENT:
            call["documents"] += documents_from(value or "", place)
    if "document_ids" in values:
        where = places["document_ids"]
        call["documents"] = named_ids(call["documents"], values["document_ids"], where)
    if fields.tool == "langsmith":
        rest = {name: value for name, value in rest.items() if name not in _NOISE}
    return {**(json_part(rest) if cells else rest), **call}


def _field_values(
    row: Mapping[str, Any], fields: SourceFields
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return the values of a call's fields, what is left of the row, and where the values were.

    Where the question is a list of messages, these fill in what the row lacks.
    """
    rest = dict(row)
    values: dict[str, Any] = {}
    places = {ours: ".".join(path) for ours, path in fields.paths.items()}
    for ours, path in fields.paths.items():
        value = value_at(row, path, places[ours])
        if value is not ABSENT:
            remove(rest, path)
            values[ours] = value
        elif ours in REQUIRED:
            raise InputError(f"is missing; the row has {listed(row)}", field=places[ours])
    if messages := messages_in(values.get("question")):
        where = places["question"]
        talk = conversation(messages, where, answered="response" not in values)
        own = {"question": talk.question, "response": talk.response, "documents": talk.documents}
        values = {"history": talk.history, **own, **values, "question": talk.question}
    return values, rest, places


def _reference_from(value: object, where: str) -> str | list[str] | None:
    """Read a reference, or several: a list of texts, or those of TriviaQA's and SQuAD's answers.

    Empty ones are left out; a number becomes its digits.
    """
    if isinstance(value, int | float):
        return str(id_from(value))
    if fields := object_in(value):
        several = items_in(fields.get("aliases")) or items_in(fields.get("text"))
        value = [fields.get("value"), *several] if several is not None else value
    is_several = not isinstance(value, str) or folded(where) in _SEVERAL  # also in a cell
    texts = items_in(value) if is_several else None
    if texts is not None and all(isinstance(text, str) or text is None for text in texts):
        return [text for text in texts if text]
    return text_from(value, where) or None


_SEVERAL = ("groundtruths", "answers", "answer")
"""Names of fields that hold several references, folded."""


_READERS: Mapping[str, Callable[[object, str], object]] = {
    "question": lambda value, where: said_from(value, where) or "",
    "documents": documents_from,
    "response": said_from,
    "reference": _reference_from,
    "id": lambda value, where: None if value == "" else value,
    "history": turns_from,
    "earlier": numbers_from,
    "relevant_ids": ids_from,
    "metadata": metadata_from,
}

_ANSWERS = frozenset(map(folded, (*NAMES["response"], "messages", "turns", "outputs")))
"""Names of fields that hold an answer, perhaps inside."""

_NOISE = frozenset({"serialized", "events", "manifest", "attachments", "extra", "feedback_stats"})
"""Fields of a LangSmith row that are about its trace, and would fill every line of EVALS."""
