"""Field names of other tools: which field of a row is the question, the documents, the response.

The first row of a source that has the fields decides where they are; nothing is guessed per row.
`docs/data.md` lists the names. Every table is field of a call → names:

    NAMES          in common use (`records._json`)
    _TOOLS         of tools whose rows are known by all of their names
    _LANGSMITH     inside of each of LangSmith's groups
    _MLFLOW        of texts in MLflow's evaluation tables
    SourceFields   where the fields are in the rows of one source
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain, product
from typing import Any

from rag_eval_integrations.dataset._paths import (
    LONGEST_NAME,
    FieldPath,
    FieldPaths,
    folded,
    path_to,
    value_at,
)
from rag_eval_integrations.dataset._proposals import UNSURE, holds, proposals
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.records._json import NAMES
from rag_eval_integrations.traces._values import (
    documents_from,
    holds_text,
    items_in,
    messages_in,
    object_in,
)

REQUIRED = ("question", "documents", "response")
OPTIONAL = ("reference", "id", "history", "earlier", "relevant_ids", "document_ids", "metadata")

Row = Mapping[str, Any]
FieldNames = Mapping[str, Sequence[str]]
"""Field of a call → names by which a row may have it."""

_TOOLS: Mapping[str, FieldNames] = {
    "ragas": {
        "question": ("user_input",),
        "documents": ("retrieved_contexts",),
        "response": ("response",),
        "reference": ("reference",),
        "relevant_ids": ("reference_context_ids",),
        "document_ids": ("retrieved_context_ids",),
    },
    "deepeval": {
        "question": ("input",),
        "documents": ("retrieval_context",),
        "response": ("actual_output",),
        "reference": ("expected_output",),
    },
    "LlamaIndex (contexts and answers of the data set, not of an app)": {
        "question": ("query",),
        "documents": ("reference_contexts",),
        "response": ("reference_answer",),
    },
}
"""Tools whose rows are known by all of their names, so that other fields are no rivals."""

ROWS = (
    "examples",
    "results",
    "testCases",
    "test_cases",
    "samples",
    "goldens",
    "test_results",
    "conversationalTestCases",
)
"""Names under which tools write the rows of a data set into one object."""

_TURNS = "turns"
"""Field of deepeval's conversations that holds the messages."""
_LANGSMITH: Mapping[str, FieldNames] = {
    "reference_outputs": {"reference": (*NAMES["reference"], *NAMES["response"])},
    "outputs": {
        "documents": NAMES["documents"],
        "response": (*NAMES["response"], "messages", "text", "content"),
        "reference": ("reference",),
    },
    "inputs": {"question": NAMES["question"], "documents": NAMES["documents"]},
}
"""Fields of LangSmith that hold the others, also as columns such as `inputs.question`, and by which
names: for each field, the likeliest group first."""
_MLFLOW: FieldNames = {"question": ("inputs", "request"), "response": ("outputs",)}
"""Names that hold a text in MLflow's evaluation tables, and other things elsewhere."""
_EXPECTED = "expectations.expected_response"
"""Where these have the reference."""
_ANSWERS = ("answers", "answer")
"""Names of several references beside an app's response, the surest first: those of Natural
Questions, TriviaQA and SQuAD."""

_MOST_PROPOSED = 20
"""Sets of names for which fields are proposed, which takes up to .1 s."""

FieldMap = Mapping[str, str | Sequence[str]]
"""Field of a call → the name of the field that holds it; of `documents`, also several names."""

KNOWN = frozenset(map(folded, chain(_LANGSMITH, *NAMES.values())))
"""Every name that is known without a mapping, folded."""
QUESTIONS = frozenset(map(folded, (*NAMES["question"], _TURNS, "inputs")))
"""Those of a question: what has one is a row."""


def check_field_map(field_map: object, name: str = "field_map") -> dict[str, tuple[str, ...]]:
    """Check a mapping that a user gave, before a row is read.

    Raises:
        ConfigurationError: it is not a mapping of names, names a field that a call lacks, or gives
            two names for another field than `documents`.
    """
    if field_map is None:
        return {}
    if not isinstance(field_map, Mapping):
        raise ConfigurationError(name, field_map, 'use a dict such as {"documents": "passages"}')
    known, checked = (*REQUIRED, *OPTIONAL), {}
    for ours, theirs in field_map.items():
        names = tuple(theirs) if isinstance(theirs, list | tuple) else (theirs,)
        if ours not in known:
            near = get_close_matches(str(ours), known, 1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; use {', '.join(known)}"
            why = f"is not a field of a call{hint}"
            raise ConfigurationError(name, f"{ours}={', '.join(map(str, names))}", why)
        if not names or not all(isinstance(given, str) and given for given in names):
            why = f"should give the name of a field of the rows for `{ours}`"
            raise ConfigurationError(name, theirs, why)
        if len(names) > 1 and ours != "documents":
            why = f"is a second name for `{ours}`; only `documents` may have several"
            raise ConfigurationError(name, f"{ours}={names[1]}", why)
        checked[ours] = names
    return checked


def listed(names: Mapping[str, object]) -> str:
    """List the names of some fields, twenty at most."""
    quoted = ", ".join(f"`{name!s:.40}`" for name in sorted(map(str, names))[:20])
    return (quoted or "none") + (f" and {len(names) - 20} more" if len(names) > 20 else "")


@dataclass
class SourceFields:
    """Where the fields of a call are in the rows of one source.

    Args:
        given: field of a call → names of fields in the rows, as a user gave them.
        option: what the user gave them by: `field_map` or `--map`.
    """

    given: FieldNames
    option: str
    tool: str = ""
    """The tool whose names they are; `calls` for our own, `common` for names in common use."""
    paths: FieldPaths = field(default_factory=dict)
    """Empty until a row has the fields."""
    further: list[FieldPath] = field(default_factory=list)
    """Paths to further documents, behind those of `paths`."""
    _proposed: dict[tuple[Any, ...], str] = field(default_factory=dict)
    """The mappings to try that were worked out, by the names of rows and the fields they lack."""

    def locate(self, row: Row) -> None:
        """Find the fields in the first row: by our own names, else a tool's, else common ones.

        What the user gave goes before all of them.

        Raises:
            ConfigurationError: the row lacks a field that was given.
            InputError: a required field has no name that is known, or several.
        """
        given: FieldPaths = {}
        further: list[FieldPath] = []
        for ours, names in self.given.items():
            given[ours], *others = [self._given_path(row, ours, name) for name in names]
            further += others
        needed = [ours for ours in REQUIRED if ours not in given]
        is_own = all(ours in row for ours in needed)
        if is_own and not given:
            paths: FieldPaths = {ours: (ours,) for ours in REQUIRED}
            paths |= self._optional_paths(row, paths)
            self._check_documents(row, paths)
            tool = "calls" if _is_written_here(paths) else "common"
        else:
            known = None if is_own else self._tool_paths(row, needed)
            tool, paths = known or ("common", self._common_paths(row, needed, given))
            if "documents" in needed:
                self._check_documents(row, paths)
            paths |= given
            paths |= self._optional_paths(row, paths)
        self.tool, self.paths, self.further = tool, paths, further

    def has_more_in(self, row: Row) -> bool:
        """Tell whether a later row has a name of an optional field that has no path yet."""
        absent = (NAMES[ours] for ours in OPTIONAL if ours not in self.paths)
        return any(name in row for name in chain.from_iterable(absent))

    def add_optional(self, row: Row) -> FieldPaths:
        """Add the optional fields that a later row has, and return their paths."""
        added = self._optional_paths(row, self.paths)
        self.paths |= added
        if self.tool == "calls" and not _is_written_here(added):
            self.tool = "common"
        return added

    def _given_path(self, row: Row, ours: str, name: str) -> FieldPath:
        """Return the path to a field that the user named; refuse a name the row lacks."""
        path = path_to(row, name)
        if path is None:
            near = get_close_matches(name, [str(name) for name in row][:100], 1, 0.6)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            why = f"the first row has {listed(row)}, and no field `{name}`{hint}"
            raise ConfigurationError(self.option, f"{ours}={name}", why)
        return path

    def _optional_paths(self, row: Row, paths: FieldPaths) -> FieldPaths:
        """Return the paths of the optional fields that have none yet."""
        absent = {ours: NAMES[ours] for ours in OPTIONAL if ours not in paths}
        more = self._by_names(row, absent)
        if "reference" not in paths | more:
            answers = [(name,) for name in _ANSWERS if _holds_references(row.get(name))]
            others = (path for path in answers if path != paths.get("response"))
            if reference := path_to(row, _EXPECTED) or next(others, None):
                more["reference"] = reference
        return more

    def _by_names(self, row: Row, known: FieldNames) -> FieldPaths:
        """Return the paths of fields by known names; an object without a text is not a text."""
        own: FieldPaths = {name: (name,) for name in row}
        named = {ours: self._only_path(row, ours, names, own) for ours, names in known.items()}
        present = {ours: path for ours, path in named.items() if path}
        paths = {ours: path for ours, path in present.items() if _may_hold(ours, row[path[0]])}
        for ours, names in _MLFLOW.items():
            if ours in known and ours not in paths:
                path = self._only_path(row, ours, names, own)
                if path and _is_said(row[path[0]]):
                    paths[ours] = path
        return paths

    def _common_paths(self, row: Row, needed: Sequence[str], given: FieldPaths) -> FieldPaths:
        """Return the paths of the needed fields by the usual names; refuse a row that lacks any.

        Messages may hold all of them.
        """
        gold = _gold_context(row)
        known: dict[str, Sequence[str]] = {}
        for ours in needed:
            known[ours] = [name for name in NAMES[ours] if name not in gold]
        paths = self._by_names(row, known)
        if "question" in needed and "question" not in paths and messages_in(row.get(_TURNS)):
            paths["question"] = (_TURNS,)
        asked: Any = row
        for name in (given | paths).get("question", ("",)):
            asked = object_in(asked).get(name)
        missing = [] if messages_in(asked) else [ours for ours in needed if ours not in paths]
        if missing:
            raise self._missing_error(row, missing, paths)
        return paths

    def _only_path(
        self, row: Row, ours: str, names: Sequence[str], fields: FieldPaths
    ) -> FieldPath | None:
        """Return the path of the only field of a row, or of a group, with one of some names.

        Refuse a row that has several.
        """
        present = _spelt(names, fields)
        rivals = [name for name in present if folded(name) == folded(ours)] or present
        if len(rivals) > 1:
            both = " and ".join(f"`{name}`" for name in present)
            dotted = [".".join(fields[name]) for name in present]
            why = f"is ambiguous: the row has {both}; {self._choice(row, ours, dotted)}"
            raise InputError(why, field=ours)
        return fields[rivals[0]] if rivals else None

    def _tool_paths(self, row: Row, needed: Sequence[str]) -> tuple[str, FieldPaths] | None:
        """Return the tool whose names the row has, and the paths by them; None for no tool.

        Of ragas, a conversation under its name is enough; without a tool, LangSmith's groups count.
        A tool whose answers are gold is left out beside a response. Refuses a row that two tools
        name so, and groups that lack a field.
        """
        fitting: list[tuple[str, FieldPaths]] = []
        for tool, names in _TOOLS.items():
            is_gold = names["response"][0] in NAMES["reference"]
            if is_gold and _spelt(NAMES["response"], row):
                continue  # an app's answers stand beside those of the data set
            paths = self._by_names(row, names)
            if all(ours in paths for ours in needed) or (
                # A conversation holds its own answer, and perhaps its documents.
                tool == "ragas" and "question" in needed and messages_in(row.get("user_input"))
            ):
                fitting.append((tool, paths))
        groups = _groups(row)
        if not fitting and "inputs" in groups and ("outputs" in groups or "outputs" in row):
            return self._group_paths(row, groups, needed)
        if len(fitting) > 1:
            named = [f"{tool} ({', '.join(chain(*paths.values()))})" for tool, paths in fitting]
            why = f"is ambiguous: the row is {' or '.join(named)}; {self._choice(row, needed[0])}"
            raise InputError(why, field=needed[0])
        return fitting[0] if fitting else None

    def _group_paths(
        self, row: Row, groups: Mapping[str, FieldPaths], needed: Sequence[str]
    ) -> tuple[str, FieldPaths]:
        """Return LangSmith or MLflow, and the paths of fields inside of `inputs` and `outputs`.

        An input of any name is the question if it is the only one. In MLflow's tables, documents
        and the response may stand beside the groups. Refuses a row that lacks any field.
        """
        paths: FieldPaths = {}
        for ours, (group, names) in product((*REQUIRED, "reference"), _LANGSMITH.items()):
            is_beside = (ours, group) == ("reference", "outputs") and "reference" in row
            if ours not in names or ours in paths or ours in self.given or is_beside:
                continue
            fields = groups.get(group, {})
            path = self._only_path(row, ours, names[ours], fields)
            if path is None and ours != "documents" and group != "outputs" and len(fields) == 1:
                ((name, only),) = fields.items()
                path = only if 0 < len(name) <= LONGEST_NAME else None
            if path is not None:
                paths[ours] = path
        beside = self._by_names(row, {ours: NAMES[ours] for ours in needed if ours not in paths})
        for ours in needed:
            if ours not in paths | beside:
                group = "inputs" if ours == "question" else "outputs"
                why = f"is missing: `{group}` has {listed(groups.get(group, {}))}"
                raise InputError(f"{why}{self._proposal(row, [ours])}", field=ours)
        return "mlflow" if beside else "langsmith", paths | beside

    def _check_documents(self, row: Row, paths: FieldPaths) -> None:
        """Refuse documents that cannot be read where another field, or one inside, can be."""
        if error := _document_error(row, paths):
            attempt = self._proposal(row, ["documents"])
            if attempt and UNSURE not in attempt:
                raise InputError(f"{error.why}{attempt}", field=error.field)

    # --- What to say

    def _choice(self, row: Row, ours: str, names: Sequence[str] = ()) -> str:
        """Say how to settle which name is meant: by the first one that holds such a field."""
        fitting = (
            name for name in names if holds(ours, value_at(row, path_to(row, name) or (), name))
        )
        return f"say which with {self._option_text([(ours, next(fitting, UNSURE))])}"

    def _option_text(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Write a mapping as it is given: on the command line, or in Python."""
        if self.option.startswith("-"):
            return " ".join(f"{self.option} {shlex.quote(f'{o}={name}')}" for o, name in pairs)
        names: dict[str, list[str]] = {}
        for ours, name in pairs:
            names.setdefault(ours, []).append(name)
        given = {ours: some if some[1:] else some[0] for ours, some in names.items()}
        return f"{self.option}={given!r}"

    def _missing_error(self, row: Row, missing: Sequence[str], paths: FieldPaths) -> InputError:
        """Make the error for fields that no name of the row fits, with a proposal.

        It proposes names also for documents that cannot be read, and for the text inside of an
        object in a cell. Of an evaluation it says that this is not a call.
        """
        if {"scores", "fingerprint"} <= row.keys():
            why = "an evaluation, not a call: `rag-eval report` shows evaluations"
            return InputError(f"{why}; give the calls that they were made of")
        others = " and ".join(f"`{ours}`" for ours in missing[1:])
        also = f", and so {'is' if len(missing) == 2 else 'are'} {others}" if others else ""
        gold = ""
        if "documents" in missing and _gold_context(row):
            gold = "; deepeval's `context` is the expected one, and was not retrieved"
        tried = {*missing, *(["documents"] if _document_error(row, paths) else ())}
        for ours in paths.keys() - {"documents"}:
            value = row[paths[ours][0]]
            if object_in(value) and not messages_in(value):
                tried.add(ours)
        attempt = self._proposal(row, [ours for ours in REQUIRED if ours in tried])
        why = f"is missing{also}; the row has {listed(row)}{gold}{attempt}"
        return InputError(why, field=missing[0])

    def _proposal(self, row: Row, missing: Sequence[str]) -> str:
        """Propose a mapping to try; empty if there were too many sets of names before."""
        names = frozenset(row), *missing
        if names not in self._proposed and len(self._proposed) < _MOST_PROPOSED:
            gold = _gold_context(row)
            fields = {name: value for name, value in row.items() if name not in gold}
            self._proposed[names] = f"; try {self._option_text(proposals(fields, missing))}"
        return self._proposed.get(names, "")


# --- What a row has


def _is_written_here(paths: FieldPaths) -> bool:
    """Tell whether fields are where CALLS has them, so that a row is a call as it is."""
    return "document_ids" not in paths and all(path == (ours,) for ours, path in paths.items())


def _groups(row: Row) -> dict[str, FieldPaths]:
    """Return the paths of the fields in LangSmith's groups or their columns, by group and name."""
    groups: dict[str, FieldPaths] = {}
    for name, value in row.items():
        group, dot, below = name.partition(".")
        group = "reference_outputs" if dot and group == "reference" else group
        if group in _LANGSMITH:
            inside = {below: (name,)} if dot else {key: (group, key) for key in object_in(value)}
            if inside or not isinstance(value, str):  # MLflow's tables have texts there
                groups.setdefault(group, {}).update(inside)
    return groups


def _spelt(names: Sequence[str], fields: Mapping[str, object]) -> list[str]:
    """List the fields with one of some names, in other spellings if none is exact."""
    exact = [name for name in names if name in fields]
    folds = [] if exact else [folded(name) for name in names]
    near = [name for name in fields if folded(name) in folds]
    return exact or sorted(near, key=lambda name: folds.index(folded(name)))


def _may_hold(ours: str, value: object) -> bool:
    """Tell whether a value may be that of a field: for a text, not an object without one."""
    is_text = ours in ("question", "response", "reference")
    return not is_text or not isinstance(value, Mapping) or holds_text(value)


def _is_said(value: object) -> bool:
    """Tell whether a value is messages, or a text that is not the JSON of an object."""
    return bool(messages_in(value)) or (isinstance(value, str) and not object_in(value))


def _holds_references(value: object) -> bool:
    """Tell whether a value is a list of texts, or an object of TriviaQA's or SQuAD's answers."""
    items = items_in(value) or ()
    are_texts = bool(items) and all(isinstance(item, str) for item in items)
    return are_texts or not {"aliases", "text"}.isdisjoint(object_in(value))


def _gold_context(row: Row) -> Sequence[str]:
    """Return the name of deepeval's `context` where the row has it: gold, and not retrieved."""
    return ("context",) if "context" in row and _spelt(("actual_output",), row) else ()


def _document_error(row: Row, paths: FieldPaths) -> InputError | None:
    """Return the error of reading the documents; None if they can be read, or have no path."""
    path = paths.get("documents", ())
    value = value_at(row, path, "") if path else None
    try:
        _ = value is None or documents_from(value, ".".join(path))
    except InputError as error:
        return error
    return None
