"""Field names of other tools: which field of a row is the question, the documents, the response.

A source has one shape, decided by its first row that has one and told once; nothing is guessed per
row. `docs/data.md` lists the names.

    NAMES    the table: names in common use; _TOOLS: rows that are known by all of their names
    shape_of a row ─▶ where the fields of a call are in the rows of its source
    Reader   rows of a source ─▶ calls
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from typing import Any, NamedTuple

from rag_eval_integrations.dataset._values import (
    conversation,
    documents_from,
    fields_of,
    ids_from,
    is_foreign,
    is_messages,
    json_part,
    list_in,
    metadata_from,
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
)  # fmt: skip
"""Tools whose rows are known by all of their names, so that other fields are no rivals."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": (
        "question", "query", "input", "user_input", "prompt", "user_query", "query_str", "messages",
    ),
    "documents": (
        "documents", "contexts", "context", "retrieved_documents", "retrieved_contexts",
        "retrieved_context", "retrieval_context", "source_documents", "source_nodes",
        "retrieved_docs", "docs", "chunks", "passages",
    ),
    "response": (
        "response", "answer", "output", "actual_output", "generated_answer", "result",
        "prediction", "completion",
    ),
    "reference": (
        "reference", "reference_answer", "expected", "expected_output", "expected_answer",
        "ground_truth", "gold_answer",
    ),
    "relevant_ids": ("relevant_ids", "reference_context_ids"),
    "document_ids": ("document_ids", "retrieved_context_ids"),
    "history": ("history", "chat_history"),
    "id": ("id",),
    "metadata": ("metadata",),
}  # fmt: skip
"""Names in common use, our own first. A row with two of them for one field is ambiguous, unless one
is our own. Other spellings (`Ground Truth`, `sourceDocuments`) count where no name is exact."""

_GROUPS = ("inputs", "outputs", "reference_outputs")
"""Fields of LangSmith that hold the others, also as columns such as `inputs.question`."""
_LANGSMITH = (
    ("question", "inputs", NAMES["question"]),
    ("documents", "outputs", NAMES["documents"]),
    ("documents", "inputs", NAMES["documents"]),
    ("response", "outputs", (*NAMES["response"], "messages", "text", "content")),
    ("reference", "reference_outputs", (*NAMES["reference"], *NAMES["response"])),
    ("reference", "outputs", ("reference",)),
)
"""Where fields are in these groups, the likeliest first, and by which names."""
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


def folded(name: str) -> str:
    """Fold what spellings of one name differ in: case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]+", "", name[:_LONGEST_NAME]).lower()


KNOWN = frozenset(map(folded, chain(_GROUPS, *NAMES.values())))
"""Every name that is known without a mapping, folded."""


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

    Args:
        row: the first row.
        given: field of a call → name of a field in the rows; `a.b` is `b` inside of `a`.

    Raises:
        InputError: a required field has no name that is known, or several.
    """
    fixed = {ours: way for ours, theirs in given.items() if (way := way_to(row, theirs))}
    needed = [ours for ours in REQUIRED if ours not in fixed]
    is_own = all(ours in row for ours in needed)
    if is_own and not given:
        return Shape("calls", {ours: (ours,) for ours in (*REQUIRED, *OPTIONAL) if ours in row})
    tool = None if is_own else _of_tool(row, needed)
    name, ways = tool or ("common", _common(row, needed, fixed))
    ways |= fixed
    return Shape(name, ways | _optional(row, ways))


def _common(row: Mapping[str, Any], needed: Sequence[str], fixed: Ways) -> Ways:
    ways: Ways = {}
    for ours in needed:
        # The `context` of deepeval is gold, and was not retrieved.
        is_gold = ours == "documents" and _spelt(row, ("actual_output",))
        names = [name for name in NAMES[ours] if not (is_gold and name == "context")]
        if theirs := _only(row, ours, names):
            ways[ours] = (theirs,)
    asked: Any = row
    for part in (fixed | ways).get("question", ("",)):
        asked = object_in(asked).get(part)
    missing = [] if is_messages(asked) else [ours for ours in needed if ours not in ways]
    if missing:
        raise InputError(_missing(row, missing[0]), field=missing[0])
    return ways


def _spelt(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """List the fields of a row with one of some names; in other spellings if none is exact."""
    exact = [name for name in names if name in row]
    folds = [] if exact else [folded(name) for name in names]
    return exact or sorted(
        (name for name in row if folded(name) in folds), key=lambda name: folds.index(folded(name))
    )


def _only(row: Mapping[str, Any], ours: str, names: Sequence[str]) -> str | None:
    present = _spelt(row, names)
    rivals = [name for name in present if folded(name) == folded(ours)] or present
    if len(rivals) > 1:
        listed = " and ".join(f"`{name}`" for name in present)
        raise InputError(f"is ambiguous: the row has {listed}; {_SAY}", field=ours)
    return rivals[0] if rivals else None


def _optional(row: Mapping[str, Any], ways: Ways) -> Ways:
    names = {ours: _only(row, ours, NAMES[ours]) for ours in OPTIONAL if ours not in ways}
    return {ours: (theirs,) for ours, theirs in names.items() if theirs}


def _of_tool(row: Mapping[str, Any], needed: Sequence[str]) -> tuple[str, Ways] | None:
    """Return the tool that names its fields like this row, and where they are."""
    fitting: list[tuple[str, Ways]] = []
    for tool, names in _TOOLS:
        ways: Ways = {o: (t,) for o, name in names.items() if (t := _only(row, o, (name,)))}
        if all(ours in ways for ours in needed) or (
            # A conversation holds its own answer, and perhaps its documents.
            tool == "ragas" and "question" in needed and is_messages(row.get("user_input"))
        ):
            fitting.append((tool, ways))
    if not fitting and {"inputs", "outputs"} <= (groups := _groups(row)).keys():
        return "langsmith", _langsmith(row, groups, needed)
    if len(fitting) > 1:
        tools = " or ".join(
            f"{tool} ({', '.join(way[0] for way in ways.values())})" for tool, ways in fitting
        )
        raise InputError(f"is ambiguous: the row is {tools}; {_SAY}", field=needed[0])
    return fitting[0] if fitting else None


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


def _groups(row: Mapping[str, Any]) -> dict[str, Ways]:
    """Collect what LangSmith's groups hold: name → the way to it."""
    groups: dict[str, Ways] = {}
    for name, value in row.items():
        side, dot, below = name.partition(".")
        side = "reference_outputs" if dot and side == "reference" else side
        if side in _GROUPS:
            inside = {below: (name,)} if dot else {key: (side, key) for key in object_in(value)}
            groups.setdefault(side, {}).update(inside)
    return groups


def _langsmith(row: Mapping[str, Any], groups: Mapping[str, Ways], needed: Sequence[str]) -> Ways:
    """Look for the fields inside of `inputs` and `outputs`."""
    ways: Ways = {}
    for ours, side, names in _LANGSMITH:
        group = groups.get(side, {})
        if ours in ways or (names == ("reference",) and "reference" in row):
            continue
        name = _only(group, ours, names)
        if name is None and ours != "documents" and side != "outputs" and len(group) == 1:
            name = next((name for name in group if 0 < len(name) <= _LONGEST_NAME), None)
        if name is not None:
            ways[ours] = group[name]
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
    for dot in re.finditer(r"\.", path):
        head = path[: dot.start()]
        if head in row:
            below = way_to(object_in(row[head]), path[dot.end() :])
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
                self._tell_names(self._shape.ways)
        elif not self._later.isdisjoint(row):  # not every writer writes a null
            more = _optional(row, self._shape.ways)
            self._shape.ways.update(more)
            self._tell_names(more, later=True)
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

    def _tell_names(self, ways: Ways, *, later: bool = False) -> None:
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


_READERS: Mapping[str, Callable[[object, str], object]] = {
    "question": lambda value, where: text_from(value, where) or "",
    "documents": documents_from,
    "response": text_from,
    "reference": lambda value, where: text_from(value, where) or None,
    "id": lambda value, where: None if value == "" else value,
    "history": turns_from,
    "relevant_ids": ids_from,
    "metadata": metadata_from,
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
        fields = fields_of(run) or {}
        if fields.get("run_type") == "retriever":
            returned = object_in(fields.get("outputs")).get("documents")
            documents += returned if isinstance(returned, list | tuple) else ()
        else:
            documents += _retrieved(fields.get(_RUNS))
    return documents
