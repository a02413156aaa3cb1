"""Field names of other tools: which field of a row is the question, the documents, the response.

A source has one shape, decided by its first row that has one and told once; nothing is guessed per
row. `docs/data.md` lists the names.

    names    the table: ragas, deepeval, LangSmith, and names in common use
    Shape    where the fields of a call are in the rows of one source
    Reader   decides the shape of a source, and makes calls of its rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from rag_eval_integrations.dataset._values import (
    conversation,
    documents_from,
    ids_from,
    is_foreign,
    is_messages,
    json_part,
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

_RAGAS = {
    "question": "user_input", "documents": "retrieved_contexts", "response": "response",
    "reference": "reference", "relevant_ids": "reference_context_ids",
    "document_ids": "retrieved_context_ids",
}  # fmt: skip
_DEEPEVAL = {
    "question": "input", "documents": "retrieval_context", "response": "actual_output",
    "reference": "expected_output",
}  # fmt: skip
_DEEPEVAL_CAMEL = {
    "question": "input", "documents": "retrievalContext", "response": "actualOutput",
    "reference": "expectedOutput",
}  # fmt: skip
_KNOWN = (("ragas", _RAGAS), ("deepeval", _DEEPEVAL), ("deepeval", _DEEPEVAL_CAMEL))
"""Tools whose rows are known by all of their names, so that other fields are no rivals."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "question": (
        "question", "query", "input", "user_input", "prompt", "user_query", "query_str", "messages",
    ),
    "documents": (
        "documents", "contexts", "context", "retrieved_documents", "retrieved_contexts",
        "retrieved_context", "retrieval_context", "retrievalContext", "source_documents",
        "source_nodes", "retrieved_docs", "docs", "chunks", "passages",
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

_MESSAGES = ("messages", "user_input", "input", "question")
_RUNS = "child_runs"
_NOISE = frozenset(
    {"child_runs", "serialized", "events", "manifest", "attachments", "extra", "feedback_stats",
     "parent_run_ids", "child_run_ids", "dotted_order"}
)  # fmt: skip
"""Fields of a LangSmith run that are about its trace, and would fill every line of EVALS."""

FieldMap = Mapping[str, str]
"""Field of a call → name of a field in the rows; `a.b` is `b` inside of `a`."""


@dataclass(frozen=True)
class Shape:
    """Where the fields of a call are in the rows of one source."""

    name: str
    """The tool whose names they are; `calls` for our own, `common` for names in common use."""
    paths: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field of a call → the way to its value, a name for each level."""
    told: str = ""
    """The mapping in words."""


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


class Reader:
    """Makes calls of the rows of one source.

    Args:
        field_map: where fields of a call are, for those that are not found by their names.
        tell: called once with the mapping in words, if the names are not our own.
        cells: whether values may be texts of a table's cells, which hold lists as JSON.
    """

    def __init__(
        self, field_map: FieldMap | None, tell: Callable[[str], object], *, cells: bool
    ) -> None:
        self._given = check_field_map(field_map)
        self._tell = tell
        self._cells = cells
        self._shape: Shape | None = None
        self._checked = not self._given

    def call(self, row: dict[str, Any]) -> RagCall:
        """Make a call of a row.

        Raises:
            InputError: a field is missing or wrong, or nothing says which field it is.
            ConfigurationError: the first row lacks a field that the field map names.
        """
        if not self._checked:
            self._check_given(row)
            self._checked = True
        shape = self._shape
        if shape is None:
            shape = shape_of(row, self._given)
            self._shape = shape
            if shape.told:
                self._tell(shape.told)
        if shape.name == "calls" and not self._cells and not _has_foreign(row.get("documents")):
            return call_from(row)
        return call_from(_read(row, shape, self._cells))

    def _check_given(self, row: Mapping[str, Any]) -> None:
        for ours, theirs in self._given.items():
            if _way_to(row, theirs) is None:
                names = [str(name) for name in row]
                near = get_close_matches(theirs, names[:100], 1, 0.6)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                why = f"the first row has {_listed(names)}, and no field `{theirs}`{hint}"
                raise ConfigurationError("field_map", f"{ours}={theirs}", why)


def _listed(names: Sequence[str]) -> str:
    told = ", ".join(f"`{name[:40]}`" for name in sorted(names)[:20])
    return told + (f" and {len(names) - 20} more" if len(names) > 20 else "") if names else "none"


# --- Deciding


def shape_of(row: Mapping[str, Any], given: FieldMap) -> Shape:
    """Decide where the fields of a call are, by the names that a row has.

    Raises:
        InputError: a required field has no name that is known, or several.
    """
    fixed = {ours: way for ours, theirs in given.items() if (way := _way_to(row, theirs))}
    needed = [name for name in REQUIRED if name not in fixed]
    if all(name in row for name in needed):
        own = {name: (name,) for name in (*REQUIRED, *OPTIONAL) if name in row}
        return _shape("calls" if not given else "common", {**own, **fixed})
    fitting: list[tuple[str, dict[str, tuple[str, ...]]]] = [
        (name, {ours: (theirs,) for ours, theirs in names.items() if theirs in row})
        for name, names in _KNOWN
        if needed and _fits(row, names, needed)
    ]
    if not fitting and needed and {"inputs", "outputs"} <= row.keys():
        fitting.append(("langsmith", _langsmith(row, needed)))
    if len(fitting) > 1:
        tools = " or ".join(
            f"{name} ({', '.join(way[0] for way in paths.values())})" for name, paths in fitting
        )
        raise InputError(f"is ambiguous: the row is {tools}; {_SAY}", field=needed[0])
    name, paths = fitting[0] if fitting else ("common", _common(row, needed))
    rest = {
        ours: (found,)
        for ours in OPTIONAL
        if ours not in paths and (found := _one_of(row, ours, NAMES[ours]))
    }
    return _shape(name, {**paths, **rest, **fixed})


_SAY = "say which with field_map= or --map FIELD=NAME"


def _fits(row: Mapping[str, Any], names: Mapping[str, str], needed: Sequence[str]) -> bool:
    if all(names[ours] in row for ours in needed):
        return True
    # A conversation holds its own answer, and perhaps its documents.
    question = names["question"]
    return names is _RAGAS and "question" in needed and bool(is_messages(row.get(question)))


def _common(row: Mapping[str, Any], needed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    paths: dict[str, tuple[str, ...]] = {}
    for ours in needed:
        found = _one_of(row, ours, NAMES[ours])
        if found is not None:
            paths[ours] = (found,)
    asked = paths.get("question")
    held = asked is not None and is_messages(row.get(asked[0]))
    for ours in needed:
        if ours not in paths and not held:
            raise InputError(_missing(row, ours), field=ours)
    return paths


def _missing(row: Mapping[str, Any], ours: str) -> str:
    # Said by the reader of our own rows, for rows that are nearly ours.
    names = ", ".join(f"{name:.40}" for name in sorted(map(str, row))[:20])
    known = ", ".join(NAMES[ours][1:4])
    near = get_close_matches(ours, [str(name) for name in row][:100], 1, 0.8)
    rename = f"; write `{near[0][:40]}` as `{ours}`" if near else ""
    return (
        f"is missing; the line has {names or 'no fields'}{rename}; known names are {known} …; "
        f"for others {_SAY}"
    )


def _one_of(row: Mapping[str, Any], ours: str, names: Sequence[str]) -> str | None:
    found = [name for name in names if name in row]
    if len(found) > 1 and found[0] != ours:
        if ours == "relevant_ids" or ours == "document_ids":
            return found[0]
        told = " and ".join(f"`{name}`" for name in found)
        raise InputError(f"is ambiguous: the row has {told}; {_SAY}", field=ours)
    return found[0] if found else None


def _langsmith(row: Mapping[str, Any], needed: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Look for the fields inside of `inputs` and `outputs`."""
    inputs, outputs = (object_in(row[side]) for side in ("inputs", "outputs"))
    expected = object_in(row.get("reference_outputs"))
    paths: dict[str, tuple[str, ...]] = {}
    for ours, side, held in (
        ("question", "inputs", inputs), ("documents", "outputs", outputs),
        ("documents", "inputs", inputs), ("response", "outputs", outputs),
        ("reference", "reference_outputs", expected), ("reference", "outputs", outputs),
    ):  # fmt: skip
        names = NAMES[ours]
        if ours in paths or (ours == "reference" and side == "outputs" and "reference" in row):
            continue
        if ours == "reference":
            names = (*names, *NAMES["response"]) if side == "reference_outputs" else names[:1]
        elif ours == "response":
            names = (*names, "messages", "text", "content")
        found = _one_of(held, ours, names)
        if found is None and len(held) == 1 and ours != "documents" and side != "outputs":
            found = next(iter(held))
        if found is not None:
            paths[ours] = (side, found)
    if "documents" not in paths and row.get(_RUNS):
        paths["documents"] = (_RUNS,)
    for ours in needed:
        if ours not in paths:
            side = "inputs" if ours == "question" else "outputs"
            had = sorted(inputs if ours == "question" else outputs)
            why = f"is missing: `{side}` has {_listed(had)}; {_SAY}"
            raise InputError(why, field=ours)
    return paths


def _shape(name: str, paths: dict[str, tuple[str, ...]]) -> Shape:
    if name == "calls":
        return Shape(name, paths)
    order = [ours for ours in (*REQUIRED, *OPTIONAL) if ours in paths]
    told = ", ".join(
        ours if paths[ours] == (ours,) else f"{'.'.join(paths[ours])} → {ours}" for ours in order
    )
    as_what = "calls" if name == "common" else name
    lacking = [ours for ours in REQUIRED if ours not in paths]
    more = f"; {' and '.join(lacking)} from the messages" if lacking else ""
    return Shape(name, paths, f"read as {as_what}: {told}{more}")


def _way_to(row: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    """Find a field by its name, or by a dotted path; None when the row lacks it."""
    if path in row:
        return (path,)
    if "." not in path:
        return None
    # Names may hold dots themselves, as in a table with the column `outputs.answer`.
    head, _, rest = path.partition(".")
    while True:
        if head in row:
            below = _way_to(object_in(row[head]), rest)
            return None if below is None else (head, *below)
        more, dot, rest = rest.partition(".")
        if not dot:
            return None
        head = f"{head}.{more}"


# --- Reading


def _has_foreign(documents: object) -> bool:
    """Whether documents are written as another tool writes them."""
    return isinstance(documents, list) and any(map(is_foreign, documents))


def _read(row: Mapping[str, Any], shape: Shape, cells: bool) -> dict[str, Any]:
    """Bring a row into the form of CALLS; fields that are none of a call's stay as they are.

    Raises:
        InputError: a field is missing, or holds what cannot be read as such.
    """
    rest = dict(row)
    found: dict[str, Any] = {}
    for ours, way in shape.paths.items():
        value = _take(rest, way)
        if value is not _ABSENT:
            found[ours] = value
        elif ours in REQUIRED:
            why = f"is missing; the row has {_listed([str(name) for name in row])}"
            raise InputError(why, field=".".join(way))
    if shape.name == "langsmith":
        rest = {name: held for name, held in rest.items() if name not in _NOISE}
    call: dict[str, Any] = {}
    for ours, value in found.items():
        _put(call, ours, value, shape.paths[ours], found)
    for ours in REQUIRED:
        if ours not in call:
            raise InputError("is missing: the messages have none", field=ours)
    if "document_ids" in found:
        call["documents"] = named_ids(
            call["documents"], found["document_ids"], ".".join(shape.paths["document_ids"])
        )
    return {**(json_part(rest) if cells else rest), **call}


def _put(
    call: dict[str, Any], ours: str, value: Any, way: tuple[str, ...], found: Mapping[str, Any]
) -> None:
    """Put a value into the call that is being made."""
    where = ".".join(way)
    if ours == "question" and (messages := is_messages(value)):
        call |= _of_messages(messages, where, found)
    elif ours == "documents" and way == (_RUNS,):
        call[ours] = documents_from(_retrieved(value), where)
    elif ours in _READERS and not (ours in call and value is None):
        read = _READERS[ours](value, where)
        if read is not None or ours in REQUIRED:
            call[ours] = read


def _of_messages(messages: list[Any], where: str, found: Mapping[str, Any]) -> dict[str, Any]:
    held = conversation(messages, where, answered="response" not in found)
    call: dict[str, Any] = {"question": held.question, "history": held.history}
    if "response" not in found:
        call["response"] = held.response
    if "documents" not in found:
        call["documents"] = held.tools
    return call


def _id_from(value: object, where: str) -> object:
    return None if value == "" else value


def _metadata_from(value: object, where: str) -> object:
    return object_in(value) if value is not None else None


_READERS: Mapping[str, Callable[[object, str], object]] = {
    "question": lambda value, where: text_from(value, where) or "",
    "documents": documents_from,
    "response": text_from,
    "reference": lambda value, where: text_from(value, where) or None,
    "id": _id_from,
    "history": turns_from,
    "relevant_ids": ids_from,
    "metadata": _metadata_from,
}

_ABSENT: Any = object()


def _take(rest: dict[str, Any], way: tuple[str, ...]) -> Any:
    """Take a value out of a row, whose nested objects are copied first."""
    name, *below = way
    if name not in rest:
        return _ABSENT
    if not below:
        return rest.pop(name)
    inner = dict(object_in(rest[name]))
    value = _take(inner, tuple(below))
    if value is not _ABSENT:
        if inner:
            rest[name] = inner
        else:
            del rest[name]
    return value


def _retrieved(runs: object) -> list[Any]:
    """Collect what the outermost retrievers below a run returned."""
    found: list[Any] = []
    for run in runs if isinstance(runs, list | tuple) else ():
        read = run.get if isinstance(run, Mapping) else lambda name, run=run: getattr(run, name, 0)
        if read("run_type") == "retriever":
            held = object_in(read("outputs")).get("documents")
            found += held if isinstance(held, list | tuple) else ()
        else:
            found += _retrieved(read(_RUNS))
    return found


def field_names() -> Iterator[str]:
    """Yield every name that is known without a mapping."""
    for names in NAMES.values():
        yield from names
    yield from ("inputs", "outputs")
