"""Field names of other tools: which field of a row is the question, the documents, the response.

A source has one shape, decided by its first row that has one; nothing is guessed per row.
`docs/data.md` lists the names.

    NAMES          the table: names in common use (`records._json`)
    _TOOLS         rows that are known by all of their names
    Naming.shape   where the fields of a call are in the rows of a source
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from typing import Any, NamedTuple

from rag_eval_integrations.dataset._proposals import UNSURE, holds, proposals
from rag_eval_integrations.dataset._ways import LONGEST_NAME, Way, Ways, folded, value_at, way_to
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
OPTIONAL = (
    "reference",
    "id",
    "history",
    "earlier",
    "relevant_ids",
    "document_ids",
    "metadata",
)

_TOOLS = (
    (
        "ragas",
        {
            "question": "user_input",
            "documents": "retrieved_contexts",
            "response": "response",
            "reference": "reference",
            "relevant_ids": "reference_context_ids",
            "document_ids": "retrieved_context_ids",
        },
    ),
    (
        "deepeval",
        {
            "question": "input",
            "documents": "retrieval_context",
            "response": "actual_output",
            "reference": "expected_output",
        },
    ),
    (
        "LlamaIndex (contexts and answers of the data set, not of an app)",
        {
            "question": "query",
            "documents": "reference_contexts",
            "response": "reference_answer",
        },
    ),
)
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
_TEXTS_OF_MLFLOW = {"question": ("inputs", "request"), "response": ("outputs",)}
"""Names that hold a text in MLflow's evaluation tables, and other things elsewhere."""
_EXPECTED = "expectations.expected_response"
"""Where these have the reference."""

_ANSWERS = ("answer", "answers")
"""Names of several references beside an app's response: those of Natural Questions, TriviaQA and
SQuAD."""

_MOST_PROPOSED = 20
"""Sets of names for which fields are proposed, which takes up to .1 s."""

FieldMap = Mapping[str, str | Sequence[str]]
"""Field of a call → the name of the field that holds it; of `documents`, also several names."""


class Shape(NamedTuple):
    """Where the fields of a call are in the rows of one source."""

    name: str
    """The tool whose names they are; `calls` for our own, `common` for names in common use."""
    ways: Ways
    more: tuple[Way, ...] = ()
    """The ways to further documents, behind those of `ways`."""


KNOWN = frozenset(map(folded, chain(_GROUPS, *NAMES.values())))
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
    shown = ", ".join(f"`{name!s:.40}`" for name in sorted(map(str, names))[:20])
    return (shown or "none") + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def is_written_here(ways: Ways) -> bool:
    """Tell whether fields are where CALLS has them, so that a row is a call as it is."""
    return "document_ids" not in ways and all(way == (ours,) for ours, way in ways.items())


@dataclass(frozen=True)
class Naming:
    """Finds the fields of a call by the names in the first row of a source.

    Args:
        row: the row.
        given: field of a call → names of fields in the rows, as a user gave them.
        option: what the user gave them by: `field_map` or `--map`.
        proposed: the mappings to try that were worked out for earlier rows, by the rows' names and
            the fields that they lack.
    """

    row: Mapping[str, Any]
    given: Mapping[str, Sequence[str]]
    option: str
    proposed: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def shape(self) -> Shape:
        """Decide where the fields are: our own names, else a tool's, else those in common use.

        What the user gave goes before all of them.

        Raises:
            ConfigurationError: the row lacks a field that was given.
            InputError: a required field has no name that is known, or several.
        """
        ways = {
            ours: [self._way_named(ours, name) for name in names]
            for ours, names in self.given.items()
        }
        fixed = {ours: first for ours, (first, *_) in ways.items()}
        needed = [ours for ours in REQUIRED if ours not in fixed]
        is_own = all(ours in self.row for ours in needed)
        if is_own and not fixed:
            own: Ways = {ours: (ours,) for ours in REQUIRED}
            own |= self.optional(own)
            self._check_documents(own)
            return Shape("calls" if is_written_here(own) else "common", own)
        tool = None if is_own else self._of_tool(needed)
        name, known = tool or ("common", self._common(needed, fixed))
        if "documents" in needed:
            self._check_documents(known)
        known |= fixed
        return Shape(name, known | self.optional(known), tuple(ways.get("documents", ())[1:]))

    def optional(self, ways: Ways) -> Ways:
        """Map the optional fields that are not mapped yet."""
        more = self._ways({ours: NAMES[ours] for ours in OPTIONAL if ours not in ways})
        if "reference" not in ways | more and (expected := way_to(self.row, _EXPECTED)):
            more["reference"] = expected
        for name in _ANSWERS if "reference" not in ways | more else ():
            value = self.row.get(name)
            several = [isinstance(item, str) for item in items_in(value) or ()]
            is_object = {"aliases", "text"} & object_in(value).keys()
            if ((several and all(several)) or is_object) and ways.get("response") != (name,):
                more["reference"] = (name,)
        return more

    def _ways(self, names: Mapping[str, Sequence[str]]) -> Ways:
        """Map the fields of which the row has one of their names; no text to a mere object."""
        fitting = {ours: self._only(ours, some) for ours, some in names.items()}
        known = {ours: (self.row[name], name) for ours, name in fitting.items() if name}
        texts = ("question", "response", "reference")
        ways: Ways = {
            ours: (name,)
            for ours, (value, name) in known.items()
            if ours not in texts or not isinstance(value, Mapping) or holds_text(value)
        }
        for ours in _TEXTS_OF_MLFLOW.keys() & names.keys() - ways.keys():
            name = self._only(ours, _TEXTS_OF_MLFLOW[ours])
            value = self.row[name] if name else None
            if name and (messages_in(value) or (isinstance(value, str) and not object_in(value))):
                ways[ours] = (name,)
        return ways

    def _way_named(self, ours: str, name: str) -> Way:
        """Return the path to a field that the user named; refuse a name the row lacks."""
        way = way_to(self.row, name)
        if way is None:
            near = get_close_matches(name, [str(name) for name in self.row][:100], 1, 0.6)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            why = f"the first row has {listed(self.row)}, and no field `{name}`{hint}"
            raise ConfigurationError(self.option, f"{ours}={name}", why)
        return way

    def _common(self, needed: Sequence[str], fixed: Ways) -> Ways:
        """Map the needed fields by the usual names; refuse a row that lacks any.

        Messages may hold all of them.
        """
        no_name = "context" if self._has_gold_context() else None
        ways = self._ways({o: [name for name in NAMES[o] if name != no_name] for o in needed})
        if "question" in needed and "question" not in ways and messages_in(self.row.get(_TURNS)):
            ways["question"] = (_TURNS,)
        asked: Any = self.row
        for part in (fixed | ways).get("question", ("",)):
            asked = object_in(asked).get(part)
        missing = [] if messages_in(asked) else [ours for ours in needed if ours not in ways]
        if missing:
            raise self._missing(missing, ways)
        return ways

    def _has_gold_context(self) -> bool:
        """Whether `context` is deepeval's, which is gold, and was not retrieved."""
        return "context" in self.row and bool(self._spelt(("actual_output",)))

    def _spelt(self, names: Sequence[str], fields: Mapping[str, object] | None = None) -> list[str]:
        """List the fields, by default of the row, with one of some names.

        In other spellings if none is exact.
        """
        fields = self.row if fields is None else fields
        exact = [name for name in names if name in fields]
        folds = [] if exact else [folded(name) for name in names]
        near = [name for name in fields if folded(name) in folds]
        return exact or sorted(near, key=lambda name: folds.index(folded(name)))

    def _only(self, ours: str, names: Sequence[str], group: Ways | None = None) -> str | None:
        """Return the one name of the row, or of a group, that fits a field; refuse several."""
        present = self._spelt(names, group)
        rivals = [name for name in present if folded(name) == folded(ours)] or present
        if len(rivals) > 1:
            both = " and ".join(f"`{name}`" for name in present)
            paths = [".".join(group[name]) if group else name for name in present]
            why = f"is ambiguous: the row has {both}; {self._say(ours, paths)}"
            raise InputError(why, field=ours)
        return rivals[0] if rivals else None

    def _of_tool(self, needed: Sequence[str]) -> tuple[str, Ways] | None:
        """Return the tool that names its fields like this row, and where they are; None for none.

        Of ragas, a conversation under its name is enough; without a tool, LangSmith's groups count.
        A tool whose answers are gold is left out beside a response. Refuses a row that two tools
        name so, and groups that lack a field.
        """
        fitting: list[tuple[str, Ways]] = []
        for tool, names in _TOOLS:
            if names["response"] in NAMES["reference"] and self._spelt(NAMES["response"]):
                continue  # an app's answers stand beside those of the data set
            ways = self._ways({ours: (name,) for ours, name in names.items()})
            if all(ours in ways for ours in needed) or (
                # A conversation holds its own answer, and perhaps its documents.
                tool == "ragas" and "question" in needed and messages_in(self.row.get("user_input"))
            ):
                fitting.append((tool, ways))
        groups = self._groups()
        if not fitting and "inputs" in groups and ("outputs" in groups or "outputs" in self.row):
            return self._grouped(groups, needed)
        if len(fitting) > 1:
            tools = " or ".join(
                f"{tool} ({', '.join(way[0] for way in ways.values())})" for tool, ways in fitting
            )
            why = f"is ambiguous: the row is {tools}; {self._say(needed[0])}"
            raise InputError(why, field=needed[0])
        return fitting[0] if fitting else None

    def _groups(self) -> dict[str, Ways]:
        """Collect what LangSmith's groups hold, also as columns: name → the way to it."""
        groups: dict[str, Ways] = {}
        for name, value in self.row.items():
            side, dot, below = name.partition(".")
            side = "reference_outputs" if dot and side == "reference" else side
            if side in _GROUPS:
                inside = {below: (name,)} if dot else {key: (side, key) for key in object_in(value)}
                if inside or not isinstance(value, str):  # MLflow's tables have texts there
                    groups.setdefault(side, {}).update(inside)
        return groups

    def _grouped(self, groups: Mapping[str, Ways], needed: Sequence[str]) -> tuple[str, Ways]:
        """Look for the fields inside of `inputs` and `outputs`, as LangSmith and MLflow have them.

        An input of any name is the question if it is the only one. In MLflow's tables, documents
        and the response may stand beside the groups. Refuses a row that lacks any field.
        """
        ways: Ways = {}
        for ours, side, names in _LANGSMITH:
            group = groups.get(side, {})
            is_beside = names == ("reference",) and "reference" in self.row
            if ours in ways or ours in self.given or is_beside:
                continue
            name = self._only(ours, names, group)
            if name is None and ours != "documents" and side != "outputs" and len(group) == 1:
                name = next((name for name in group if 0 < len(name) <= LONGEST_NAME), None)
            if name is not None:
                ways[ours] = group[name]
        beside = self._ways({ours: NAMES[ours] for ours in needed if ours not in ways})
        for ours in needed:
            if ours not in ways | beside:
                side = "inputs" if ours == "question" else "outputs"
                why = f"is missing: `{side}` has {listed(groups.get(side, {}))}"
                raise InputError(f"{why}{self._attempt([ours])}", field=ours)
        return "mlflow" if beside else "langsmith", ways | beside

    def _check_documents(self, ways: Ways) -> None:
        """Refuse documents that cannot be read where another field, or one inside, can be."""
        if error := self._unread(ways):
            attempt = self._attempt(["documents"])
            if attempt and UNSURE not in attempt:
                raise InputError(f"{error.why}{attempt}", field=error.field)

    def _unread(self, ways: Ways) -> InputError | None:
        """Return why the documents cannot be read that have a known name; None if they can be."""
        way = ways.get("documents", ())
        value = value_at(self.row, way, "") if way else None
        try:
            _ = value is None or documents_from(value, ".".join(way))
        except InputError as error:
            return error
        return None

    # --- What to say

    def _say(self, ours: str, paths: Sequence[str] = ()) -> str:
        """Say how to name a field on the command line or in code: the first path that fits it."""
        ways = ((path, way_to(self.row, path) or ()) for path in paths)
        fitting = (path for path, way in ways if holds(ours, value_at(self.row, way, path)))
        return f"say which with {self._mapping([(ours, next(fitting, UNSURE))])}"

    def _mapping(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Write a mapping as it is given: on the command line, or in Python."""
        if self.option.startswith("-"):
            return " ".join(f"{self.option} {shlex.quote(f'{o}={name}')}" for o, name in pairs)
        names: dict[str, list[str]] = {}
        for ours, name in pairs:
            names.setdefault(ours, []).append(name)
        given = {ours: some if some[1:] else some[0] for ours, some in names.items()}
        return f"{self.option}={given!r}"

    def _missing(self, missing: Sequence[str], ways: Ways) -> InputError:
        """Make the error for fields that no name of the row fits, with a proposal.

        It proposes names also for documents that cannot be read, and for the text inside of an
        object in a cell. Of an evaluation it says that this is not a call.
        """
        if {"scores", "fingerprint"} <= self.row.keys():
            why = "an evaluation, not a call: `rag-eval report` shows evaluations"
            return InputError(f"{why}; give the calls that they were made of")
        others = " and ".join(f"`{ours}`" for ours in missing[1:])
        also = f", and so {'is' if len(missing) == 2 else 'are'} {others}" if others else ""
        gold = ""
        if "documents" in missing and self._has_gold_context():
            gold = "; deepeval's `context` is the expected one, and was not retrieved"
        tried = {*missing, *(["documents"] if self._unread(ways) else ())}
        for ours in ways.keys() - {"documents"}:
            value = self.row[ways[ours][0]]
            if object_in(value) and not messages_in(value):
                tried.add(ours)
        attempt = self._attempt([ours for ours in REQUIRED if ours in tried])
        why = f"is missing{also}; the row has {listed(self.row)}{gold}{attempt}"
        return InputError(why, field=missing[0])

    def _attempt(self, missing: Sequence[str]) -> str:
        """Say which mapping to try; empty if there were too many sets of names before."""
        names = frozenset(self.row), *missing
        if names not in self.proposed and len(self.proposed) < _MOST_PROPOSED:
            gold = ("context",) if self._has_gold_context() else ()
            row = {name: value for name, value in self.row.items() if name not in gold}
            self.proposed[names] = f"; try {self._mapping(proposals(row, missing))}"
        return self.proposed.get(names, "")
