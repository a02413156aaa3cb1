"""Field names of other tools: which field of a row is the question, the documents, the response.

A source has one shape, decided by its first row that has one and told once; nothing is guessed per
row. `docs/data.md` lists the names.

    NAMES      the table: ragas, deepeval, LangSmith, and names in common use
    shape_of   a row ─▶ Shape: where the fields of a call are in the rows of a source
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from rag_eval_integrations.dataset._values import (
    is_messages,
    object_in,
)
from rag_eval_integrations.errors import ConfigurationError, InputError

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
"""Fields of LangSmith that hold the others."""

_LONGEST_NAME = 100
"""Characters of a name that is taken for what it stands beside, and shown."""
RUNS = "child_runs"
"""Field of a LangSmith run that holds the runs below it."""

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
    later: frozenset[str] = frozenset()
    """Names of optional fields that the rows so far lack."""


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


def listed(names: Sequence[str]) -> str:
    told = ", ".join(f"`{name[:40]}`" for name in sorted(names)[:20])
    return told + (f" and {len(names) - 20} more" if len(names) > 20 else "") if names else "none"


# --- Deciding


def shape_of(row: Mapping[str, Any], given: FieldMap) -> Shape:
    """Decide where the fields of a call are, by the names that a row has.

    Names in another spelling (`Ground Truth`, `sourceDocuments`) count where the exact ones do not
    suffice.

    Raises:
        InputError: a required field has no name that is known, or several.
    """
    spelt = _spelt(row)
    try:
        found = _exact(row, given)
        more: dict[str, tuple[str, ...]] = {
            ours: (spelt[name],)
            for ours in OPTIONAL
            if ours not in found.paths and (name := _one_of(spelt, ours, NAMES[ours]))
        }
        return _shape(found.name, {**found.paths, **more}) if found.name != "calls" else found
    except InputError as error:
        try:
            found = _exact({**row, **{name: row[theirs] for name, theirs in spelt.items()}}, given)
        except InputError:
            raise error from None
        paths = {ours: (spelt.get(way[0], way[0]), *way[1:]) for ours, way in found.paths.items()}
        return _shape("common" if found.name == "calls" else found.name, paths)


def _spelt(row: Mapping[str, Any]) -> dict[str, str]:
    """Find known names in another spelling: the name as it is known → as the row has it."""
    found: dict[str, str] = {}
    twice = set()
    for theirs in row:
        name = _KNOWN_FOLDED.get(folded(theirs))
        if name is None or name in row:
            continue
        if name in found:
            twice.add(name)
        found[name] = theirs
    return {name: theirs for name, theirs in found.items() if name not in twice}


@lru_cache(maxsize=1_000)
def folded(name: str) -> str:
    """Fold what spellings of one name differ in: case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]+", "", name[:_LONGEST_NAME]).lower()


def with_later(shape: Shape, row: Mapping[str, Any]) -> Shape:
    """Add optional fields that earlier rows lacked: not every writer writes a null.

    Raises:
        InputError: the row has several names for one.
    """
    lacking = [ours for ours in OPTIONAL if ours not in shape.paths]
    more: dict[str, tuple[str, ...]] = {
        ours: (found,) for ours in lacking if (found := _one_of(row, ours, NAMES[ours])) is not None
    }
    told = _shape(shape.name, more).told.partition(": ")[2].partition(";")[0]
    paths = {**shape.paths, **more}
    return replace(shape, paths=paths, told=f"a later row has also: {told}", later=_later(paths))


def _later(paths: Mapping[str, object]) -> frozenset[str]:
    return frozenset(name for ours in OPTIONAL if ours not in paths for name in NAMES[ours])


def _exact(row: Mapping[str, Any], given: FieldMap) -> Shape:
    fixed = {ours: way for ours, theirs in given.items() if (way := way_to(row, theirs))}
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
    if not fitting and needed:
        nested, columns = _nested(row)
        if {"inputs", "outputs"} <= nested.keys():
            ways = _langsmith(nested, needed)
            fitting.append(("langsmith", {ours: (columns[way],) for ours, way in ways.items()}))
    if len(fitting) > 1:
        tools = " or ".join(
            f"{name} ({', '.join(way[0] for way in paths.values())})" for name, paths in fitting
        )
        raise InputError(f"is ambiguous: the row is {tools}; {_SAY}", field=needed[0])
    name, paths = fitting[0] if fitting else ("common", _common(row, needed, fixed))
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


def _common(
    row: Mapping[str, Any], needed: Sequence[str], fixed: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    paths: dict[str, tuple[str, ...]] = {}
    of_deepeval = "actual_output" in row or "actualOutput" in row
    for ours in needed:
        names = NAMES[ours]
        if ours == "documents" and of_deepeval:  # its `context` is gold, and was not retrieved
            names = tuple(name for name in names if name != "context")
        found = _one_of(row, ours, names)
        if found is not None:
            paths[ours] = (found,)
    asked: Any = row
    for name in fixed.get("question") or paths.get("question") or ("",):
        asked = object_in(asked).get(name)
    held = is_messages(asked)
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
    if ours == "documents" and "context" in row:
        rename = "; deepeval's `context` is the expected one, and was not retrieved"
    return (
        f"is missing; the line has {names or 'no fields'}{rename}; known names are {known} …; "
        f"for others {_SAY}"
    )


def _one_of(row: Mapping[str, Any], ours: str, names: Sequence[str]) -> str | None:
    found = [name for name in names if name in row]
    if len(found) > 1 and found[0] != ours:
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
        alone = next(iter(held)) if len(held) == 1 and side != "outputs" else ""
        if found is None and ours != "documents" and 0 < len(str(alone)) <= _LONGEST_NAME:
            found = alone
        if found is not None:
            paths[ours] = (side, found)
    if "documents" not in paths and row.get(RUNS):
        paths["documents"] = (RUNS,)
    for ours in needed:
        if ours not in paths:
            side = "inputs" if ours == "question" else "outputs"
            had = sorted(inputs if ours == "question" else outputs)
            why = f"is missing: `{side}` has {listed(had)}; {_SAY}"
            raise InputError(why, field=ours)
    return paths


def _nested(
    row: Mapping[str, Any],
) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, ...], str]]:
    """Nest the columns of a frame of LangSmith, such as `inputs.question`; and name each column."""
    nested: dict[str, dict[str, Any]] = {}
    columns: dict[tuple[str, ...], str] = {}
    for name, held in row.items():
        side, dot, below = name.partition(".")
        side = "reference_outputs" if side == "reference" else side
        if dot and side in _GROUPS:
            nested.setdefault(side, {})[below] = held
            columns[side, below] = name
    return nested, columns


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
    return Shape(name, paths, f"read as {as_what}: {told}{more}", _later(paths))


def way_to(row: Mapping[str, Any], path: str) -> tuple[str, ...] | None:
    """Find a field by its name, or by a dotted path; None when the row lacks it."""
    if path in row:
        return (path,)
    if "." not in path:
        return None
    # Names may hold dots themselves, as in a table with the column `outputs.answer`.
    head, _, rest = path.partition(".")
    while True:
        if head in row:
            below = way_to(object_in(row[head]), rest)
            return None if below is None else (head, *below)
        more, dot, rest = rest.partition(".")
        if not dot:
            return None
        head = f"{head}.{more}"


def field_names() -> Iterator[str]:
    """Yield every name that is known without a mapping."""
    for names in NAMES.values():
        yield from names
    yield from _GROUPS


_KNOWN_FOLDED = {folded(name): name for name in reversed([*field_names()])}
"""The first of the names that differ in spelling only."""
_REQUIRED_FOLDED = {folded(name): ours for ours in REQUIRED for name in NAMES[ours]}


def lacks_names(row: Mapping[str, Any]) -> bool:
    """Tell at a glance, for a few µs, that `shape_of` refuses a row; false where only it tells."""
    found: set[str] = set()
    asked: list[Any] = []
    for name, value in row.items():
        short = folded(name)
        if not name or name.startswith(_NESTED) or _KNOWN_FOLDED.get(short) in _GROUPS:
            return False
        ours = _REQUIRED_FOLDED.get(short)
        if ours is not None:
            found.add(ours)
        if ours == "question":
            asked.append(value)
    # A conversation may hold the documents and the answer.
    return len(found) < len(REQUIRED) and not any(map(is_messages, asked))


_NESTED = ("inputs.", "outputs.")
