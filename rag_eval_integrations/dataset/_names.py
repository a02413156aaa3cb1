"""Field names of other tools: which field of a row is the question, the documents, the response.

A source has one shape, decided by its first row that has one and told once; nothing is guessed per
row. `docs/data.md` lists the names.

    NAMES    the table: names in common use; _TOOLS: rows that are known by all of their names
    shape_of a row ─▶ where the fields of a call are in the rows of its source
    Reader   rows of a source ─▶ calls
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from rag_eval_integrations.dataset._values import (
    attributes,
    conversation,
    documents_from,
    ids_from,
    is_foreign,
    is_messages,
    json_part,
    list_in,
    named_ids,
    object_in,
    text_from,
    turns_from,
)
from rag_eval_integrations.dataset.rows import call_from
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records import RagCall

REQUIRED = ("question", "documents", "response")
OPTIONAL = ("reference", "id", "history", "relevant_ids", "document_ids", "metadata")

_TOOLS = (
    ("ragas", {
        "question": "user_input", "documents": "retrieved_contexts", "response": "response",
        "reference": "reference", "relevant_ids": "reference_context_ids",
        "document_ids": "retrieved_context_ids",
    }),
    ("deepeval", {
        "question": "input", "documents": "retrieval_context", "response": "actual_output",
        "reference": "expected_output",
    }),
    ("deepeval", {
        "question": "input", "documents": "retrievalContext", "response": "actualOutput",
        "reference": "expectedOutput",
    }),
)  # fmt: skip
"""Tools whose rows are known by all of their names, so that other fields are no rivals."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": (
        "question", "query", "input", "user_input", "prompt", "user_query", "query_str", "messages",
    ),
    "documents": (
        "documents", "contexts", "context", "retrieved_documents", "retrieved_contexts",
        "retrieved_context", "retrieval_context", "retrievalContext", "source_documents",
        "sourceDocuments", "source_nodes", "retrieved_docs", "docs", "chunks", "passages",
    ),
    "response": (
        "response", "answer", "output", "actual_output", "actualOutput", "generated_answer",
        "result", "prediction", "completion",
    ),
    "reference": (
        "reference", "reference_answer", "expected", "expected_output", "expectedOutput",
        "expected_answer", "ground_truth", "gold_answer",
    ),
    "relevant_ids": ("relevant_ids", "reference_context_ids"),
    "document_ids": ("document_ids", "retrieved_context_ids"),
    "history": ("history", "chat_history"),
    "id": ("id",),
    "metadata": ("metadata",),
}  # fmt: skip
"""Names in common use, our own first. A row with two of them for one field is ambiguous, unless one
is our own."""

_GROUPS = ("inputs", "outputs", "reference_outputs")
"""Fields of LangSmith that hold the others, also as columns such as `inputs.question`."""
_RUNS = "child_runs"
"""Field of a LangSmith run that holds the runs below it."""
_NOISE = frozenset(
    {_RUNS, "serialized", "events", "manifest", "attachments", "extra", "feedback_stats",
     "parent_run_ids", "child_run_ids", "dotted_order"}
)  # fmt: skip
"""Fields of a LangSmith run that are about its trace, and would fill every line of EVALS."""

_LONGEST_NAME = 100
"""Characters of a name that is taken for what it stands beside, and shown."""
_SAY = "say which with field_map= or --map FIELD=NAME"

Way = tuple[str, ...]
"""The way to a value in a row, a name for each level."""
Ways = dict[str, Way]
"""Field of a call → the way to its value."""


class Shape(NamedTuple):
    """Where the fields of a call are in the rows of one source."""

    name: str
    """The tool whose names they are; `calls` for our own, `common` for names in common use."""
    ways: Ways


def field_names() -> Iterator[str]:
    """Yield every name that is known without a mapping."""
    for names in NAMES.values():
        yield from names
    yield from _GROUPS


def folded(name: str) -> str:
    """Fold what spellings of one name differ in: case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]+", "", name[:_LONGEST_NAME]).lower()


_FOLDED = {folded(name): name for name in reversed([*field_names()])}
"""The first of the names that differ in spelling only."""


def check_field_map(field_map: object, name: str = "field_map") -> dict[str, str]:
    """Check a mapping that a user gave, before a row is read.

    Raises:
        ConfigurationError: it is not a mapping of names, or names a field that a call lacks.
    """
    if field_map is None:
        return {}
    if not isinstance(field_map, Mapping):
        raise ConfigurationError(name, field_map, 'use a dict such as {"documents": "passages"}')
    known = (*REQUIRED, *OPTIONAL)
    for ours, theirs in field_map.items():
        if ours not in known:
            near = get_close_matches(str(ours), known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; use {', '.join(known)}"
            raise ConfigurationError(name, f"{ours}={theirs}", f"is not a field of a call{hint}")
        if not isinstance(theirs, str) or not theirs:
            why = f"should give the name of a field of the rows for `{ours}`"
            raise ConfigurationError(name, theirs, why)
    return dict(field_map)


# --- Deciding


def shape_of(row: Mapping[str, Any], given: Mapping[str, str]) -> Shape:
    """Decide where the fields of a call are, by the names that a row has.

    Names in another spelling (`Ground Truth`, `sourceDocuments`) count where the exact ones do not
    suffice.

    Args:
        row: the first row.
        given: field of a call → name of a field in the rows; `a.b` is `b` inside of `a`.

    Raises:
        InputError: a required field has no name that is known, or several.
    """
    spelt: dict[str, list[str]] = {}
    for theirs in row:
        name = _FOLDED.get(folded(theirs))
        if name is not None and name not in row:
            spelt.setdefault(name, []).append(theirs)
    once = {name: theirs[0] for name, theirs in spelt.items() if len(theirs) == 1}
    try:
        shape = _exact(row, given)
    except InputError:
        if not once:
            raise
        try:
            shape = _exact({**row, **{name: row[theirs] for name, theirs in once.items()}}, given)
        except InputError:
            shape = _exact(row, given)  # says what is wrong with the names that are there
    ways = {ours: (once.get(way[0], way[0]), *way[1:]) for ours, way in shape.ways.items()}
    if shape.name != "calls" or ways != shape.ways:
        more = {**row, **{name: None for name in once}}
        for ours in OPTIONAL:
            if ours not in ways and (name := _one_of(more, ours, NAMES[ours])):
                ways[ours] = (once.get(name, name),)
        shape = Shape("common" if shape.name == "calls" else shape.name, ways)
    return shape


def _exact(row: Mapping[str, Any], given: Mapping[str, str]) -> Shape:
    """Decide by the exact names, without those of optional fields that no tool's rows have."""
    fixed = {ours: way for ours, theirs in given.items() if (way := way_to(row, theirs))}
    needed = [name for name in REQUIRED if name not in fixed]
    if all(name in row for name in needed):
        own: Ways = {name: (name,) for name in (*REQUIRED, *OPTIONAL) if name in row}
        return Shape("calls" if not given else "common", {**own, **fixed})
    fitting: list[tuple[str, Ways]] = [
        (name, {ours: (theirs,) for ours, theirs in names.items() if theirs in row})
        for name, names in _TOOLS
        if all(names[ours] in row for ours in needed)
        # A conversation holds its own answer, and perhaps its documents.
        or (name == "ragas" and "question" in needed and is_messages(row.get("user_input")))
    ]
    if not fitting and {"inputs", "outputs"} <= (groups := _groups(row)).keys():
        fitting = [("langsmith", _langsmith(row, groups, needed))]
    if len(fitting) > 1:
        tools = " or ".join(
            f"{name} ({', '.join(way[0] for way in ways.values())})" for name, ways in fitting
        )
        raise InputError(f"is ambiguous: the row is {tools}; {_SAY}", field=needed[0])
    name, ways = fitting[0] if fitting else ("common", _common(row, needed, fixed))
    return Shape(name, {**ways, **fixed})


def _one_of(row: Mapping[str, Any], ours: str, names: Sequence[str]) -> str | None:
    present = [name for name in names if name in row]
    if len(present) > 1 and present[0] != ours:
        rivals = " and ".join(f"`{name}`" for name in present)
        raise InputError(f"is ambiguous: the row has {rivals}; {_SAY}", field=ours)
    return present[0] if present else None


def _common(row: Mapping[str, Any], needed: Sequence[str], fixed: Ways) -> Ways:
    ways: Ways = {}
    of_deepeval = "actual_output" in row or "actualOutput" in row
    for ours in needed:
        # The `context` of deepeval is gold, and was not retrieved.
        names = [name for name in NAMES[ours] if not (of_deepeval and name == "context")]
        name = _one_of(row, ours, names)
        if name is not None:
            ways[ours] = (name,)
    asked: Any = row
    for name in fixed.get("question") or ways.get("question") or ("",):
        asked = object_in(asked).get(name)
    for ours in needed:
        if ours not in ways and not is_messages(asked):
            raise InputError(_missing(row, ours), field=ours)
    return ways


def _missing(row: Mapping[str, Any], ours: str) -> str:
    names = ", ".join(f"{name:.40}" for name in sorted(map(str, row))[:20])
    near = get_close_matches(ours, [str(name) for name in row][:100], 1, 0.8)
    rename = f"; write `{near[0][:40]}` as `{ours}`" if near else ""
    if ours == "documents" and "context" in row:
        rename = "; deepeval's `context` is the expected one, and was not retrieved"
    return (
        f"is missing; the line has {names or 'no fields'}{rename}; known names are "
        f"{', '.join(NAMES[ours][1:4])} …; for others {_SAY}"
    )


def _groups(row: Mapping[str, Any]) -> dict[str, dict[str, tuple[Way, Any]]]:
    """Collect what LangSmith's groups hold: name → the way to it, and its value."""
    groups: dict[str, dict[str, tuple[Way, Any]]] = {}
    for name, value in row.items():
        side, dot, below = name.partition(".")
        if dot and side == "reference":
            side = "reference_outputs"
        if side in _GROUPS:
            inside = {below: ((name,), value)} if dot else {
                key: ((side, key), held) for key, held in object_in(value).items()
            }  # fmt: skip
            groups.setdefault(side, {}).update(inside)
    return groups


def _langsmith(
    row: Mapping[str, Any], groups: Mapping[str, dict[str, Any]], needed: Sequence[str]
) -> Ways:
    """Look for the fields inside of `inputs` and `outputs`."""
    ways: Ways = {}
    for ours, side in (
        ("question", "inputs"), ("documents", "outputs"), ("documents", "inputs"),
        ("response", "outputs"), ("reference", "reference_outputs"), ("reference", "outputs"),
    ):  # fmt: skip
        names, group = NAMES[ours], groups.get(side, {})
        if ours in ways or (ours == "reference" and side == "outputs" and "reference" in row):
            continue
        if ours == "reference":
            names = (*names, *NAMES["response"]) if side == "reference_outputs" else names[:1]
        elif ours == "response":
            names = (*names, "messages", "text", "content")
        name = _one_of(group, ours, names)
        if name is None and ours != "documents" and side != "outputs" and len(group) == 1:
            name = next((one for one in group if 0 < len(one) <= _LONGEST_NAME), None)
        if name is not None:
            ways[ours] = group[name][0]
    if "documents" not in ways and row.get(_RUNS):
        ways["documents"] = (_RUNS,)
    for ours in needed:
        if ours not in ways:
            side = "inputs" if ours == "question" else "outputs"
            why = f"is missing: `{side}` has {_listed(groups[side])}; {_SAY}"
            raise InputError(why, field=ours)
    return ways


def _listed(names: Mapping[str, object]) -> str:
    shown = ", ".join(f"`{name!s:.40}`" for name in sorted(map(str, names))[:20])
    return (shown or "none") + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def way_to(row: Mapping[str, Any], path: str) -> Way | None:
    """Find a field by its name, or by a dotted path; None when the row lacks it.

    Names may hold dots themselves, as in a table with the column `outputs.answer`.
    """
    if path in row:
        return (path,)
    parts = path.split(".")
    for at in range(1, len(parts)):
        head = ".".join(parts[:at])
        if head in row:
            below = way_to(object_in(row[head]), ".".join(parts[at:]))
            return None if below is None else (head, *below)
    return None


# --- Reading


class Reader:
    """Makes calls of the rows of one source.

    Args:
        given: where fields of calls are, for those that are not found by their names.
        option: what the user gave it by: `field_map` or `--map`.
        tell: called once with the mapping in words, if the names are not our own.
    """

    cells = True
    """Whether values may be texts of a table's cells, which hold lists as JSON, or objects."""

    def __init__(
        self, given: Mapping[str, str], option: str, tell: Callable[[str], object]
    ) -> None:
        self.given = given
        self.tell = tell
        self._option = option
        self._checked = self._has_split = False
        self._shape: Shape | None = None
        self._later: frozenset[str] = frozenset()

    def call(self, row: Any) -> RagCall:
        """Make a call of a row, which may be one already.

        Raises:
            InputError: a field is missing or wrong, or nothing says which field it is.
            ConfigurationError: the first row lacks a field that the field map names.
        """
        if isinstance(row, RagCall):
            return row
        if not isinstance(row, Mapping):
            raise InputError("not a JSON object")
        self._check_given(row)
        if self._shape is None:
            self._shape = shape_of(row, self.given)
            if self._shape.name != "calls":
                self._told(self._shape.ways)
        elif not self._later.isdisjoint(row):  # not every writer writes a null
            more: Ways = {
                ours: (name,)
                for ours in OPTIONAL
                if ours not in self._shape.ways and (name := _one_of(row, ours, NAMES[ours]))
            }
            self._shape.ways.update(more)
            self._told(more, later=True)
        name, ways = self._shape
        documents = row.get("documents")
        foreign = isinstance(documents, list) and any(map(is_foreign, documents))
        if name == "calls" and not self.cells and not foreign:
            return call_from(dict(row))
        if name == "deepeval" and "documents" not in self.given:
            row = self._split(row, ways["documents"][0])
        return call_from(_read(row, name, ways, self.cells))

    def _split(self, row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Split documents that are one text, as deepeval writes them into CSV and JSONL."""
        text = row.get(name)
        if not isinstance(text, str) or "|" not in text or list_in(text, name) is not None:
            return row
        if not self._has_split:
            self._has_split = True
            self.tell(
                f"`{name}` is split at `|`, with which deepeval joins documents in CSV and JSONL; "
                f"to keep its texts whole, say documents={name} with {self._option}"
            )
        return {**row, name: [part for part in text.split("|") if part.strip()]}

    def _check_given(self, row: Mapping[str, Any]) -> None:
        for ours, theirs in () if self._checked else self.given.items():
            if way_to(row, theirs) is None:
                near = get_close_matches(theirs, [str(name) for name in row][:100], 1, 0.6)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                why = f"the first row has {_listed(row)}, and no field `{theirs}`{hint}"
                raise ConfigurationError(self._option, f"{ours}={theirs}", why)
        self._checked = True

    def _told(self, ways: Ways, *, later: bool = False) -> None:
        assert self._shape is not None
        words = ", ".join(
            ours if ways[ours] == (ours,) else f"{'.'.join(ways[ours])} → {ours}"
            for ours in (*REQUIRED, *OPTIONAL)
            if ours in ways
        )
        lacking = [ours for ours in REQUIRED if ours not in ways]
        if later:
            self.tell(f"a later row has also: {words}")
        else:
            source = "calls" if self._shape.name == "common" else self._shape.name
            more = f"; {' and '.join(lacking)} from the messages" if lacking else ""
            self.tell(f"read as {source}: {words}{more}")
        absent = (ours for ours in OPTIONAL if ours not in self._shape.ways)
        self._later = frozenset(name for ours in absent for name in NAMES[ours])


def _read(row: Mapping[str, Any], name: str, ways: Ways, cells: bool) -> dict[str, Any]:
    """Bring a row into the form of CALLS; fields that are none of a call's stay as they are.

    Raises:
        InputError: a field is missing, or holds what cannot be read as such.
    """
    rest = dict(row)
    values: dict[str, Any] = {}
    for ours, way in ways.items():
        value = _take(rest, way)
        if value is _ABSENT:
            value = _take(dict(row), way)  # a field that is mapped twice
        if value is not _ABSENT:
            values[ours] = _retrieved(value) if way == (_RUNS,) else value
        elif ours in REQUIRED:
            raise InputError(f"is missing; the row has {_listed(row)}", field=".".join(way))
    places = {ours: ".".join(way) for ours, way in ways.items()}
    if messages := is_messages(values.get("question")):
        where = places["question"]
        talk = conversation(messages, where, answered="response" not in values)
        own = {"question": talk.question, "response": talk.response, "documents": talk.tools}
        values = {"history": talk.history, **own, **values, "question": talk.question}
    call: dict[str, Any] = {}
    for ours in REQUIRED:
        if ours not in values:
            raise InputError("is missing: the messages have none", field=ours)
    for ours, value in values.items():
        if ours != "document_ids":
            call[ours] = _READERS[ours](value, places.get(ours, ours))
    if "document_ids" in values:
        where = places["document_ids"]
        call["documents"] = named_ids(call["documents"], values["document_ids"], where)
    if name == "langsmith":
        rest = {name: value for name, value in rest.items() if name not in _NOISE}
    kept = {ours: value for ours, value in call.items() if value is not None or ours in REQUIRED}
    return {**(json_part(rest) if cells else rest), **kept}


def _metadata_from(value: object, where: str) -> object:
    if isinstance(value, str):
        return (object_in(value) or {"metadata": value}) if value else None  # a column of texts
    return value  # the record refuses anything but an object


_READERS: Mapping[str, Callable[[object, str], object]] = {
    "question": lambda value, where: text_from(value, where) or "",
    "documents": documents_from,
    "response": text_from,
    "reference": lambda value, where: text_from(value, where) or None,
    "id": lambda value, where: None if value == "" else value,
    "history": turns_from,
    "relevant_ids": ids_from,
    "metadata": _metadata_from,
}

_ABSENT: Any = object()


def _take(rest: dict[str, Any], way: Way) -> Any:
    """Take a value out of a row, whose nested objects are copied first."""
    name, *below = way
    if name not in rest or not below:
        return rest.pop(name, _ABSENT)
    inner = dict(object_in(rest[name]))
    value = _take(inner, tuple(below))
    if inner and value is not _ABSENT:
        rest[name] = inner
    elif value is not _ABSENT:
        del rest[name]
    return value


def _retrieved(runs: object) -> list[Any]:
    """Collect what the outermost retrievers below a run returned."""
    documents: list[Any] = []
    for run in runs if isinstance(runs, list | tuple) else ():
        fields = run if isinstance(run, Mapping) else attributes(run) or {}
        if fields.get("run_type") == "retriever":
            held = object_in(fields.get("outputs")).get("documents")
            documents += held if isinstance(held, list | tuple) else ()
        else:
            documents += _retrieved(fields.get(_RUNS))
    return documents
