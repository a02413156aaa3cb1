"""Parser for generated tests, as JSON, as CSV or as lines of `name: 'value'`. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models._reading import unfenced
from rag_eval_integrations.prompt_tests._cleaning import is_refusal, json_in
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, make_uid
from rag_eval_integrations.prompt_tests.upstream import _cells as cells

# --- CSV as models write it: with or without a header, with torn or unquoted cells


_HEADER = re.compile(r"^\W*(?:rule[ _]?id|rule)\W*,\W*test", re.IGNORECASE)
_ROW = re.compile(r'^\s*"?\d{1,3}"?\s*,\s*"?\d{1,3}"?\s*,\s*\S')
_HEADERLESS = ("ruleid", "testid", "testinput", "expectedoutput", "reasoning")
_CELL = re.compile(
    r'\s*+(?:"(?P<quoted>(?>(?:[^"]+|"")*))"|(?P<other>\d*+|\[[^\]\n]*+\]))'
    r"[ \t]*+(?=,|\s*+\Z)\s*?(?=,|\Z)",
)
_NAMES = {
    "ruleid": "ruleid", "rule": "ruleid", "rulenumber": "ruleid",
    "testid": "testid", "test": "testid", "testnumber": "testid",
    "expectedoutput": "expectedoutput", "expected": "expectedoutput", "output": "expectedoutput",
    "reasoning": "reasoning", "reason": "reasoning", "explanation": "reasoning",
    "testinput": "testinput", "input": "testinput", "testcase": "testinput",
}  # fmt: skip


@dataclass(frozen=True)
class ParsedTable:
    """The rows of a CSV table of tests."""

    rows: list[dict[str, str]] = field(default_factory=list)
    """Cells by column: `ruleid, testid, testinput, expectedoutput, reasoning`, or an input."""
    columns: tuple[str, ...] = ()
    """The columns in the table's order."""
    lost: list[str] = field(default_factory=list)
    """Reasons why rows were left out, one sentence per row."""


def read_tests_csv(text: str, inputs: Sequence[str] = ()) -> ParsedTable:
    """Read a table of tests.

    Args:
        text: a model's reply, or the content of a file.
        inputs: names of the prompt's inputs, which can be columns, too.
    """
    if is_refusal(text):
        return ParsedTable(lost=[f"the reply is a refusal: {' '.join(text.split())[:80]}"])
    lines = unfenced(text.removeprefix("\ufeff")).splitlines()
    start, headed = _begin(lines)
    if start is None:
        why = "there is no header and no row with a rule, a test and an input"
        return ParsedTable(lost=[why] if lines else [])
    records = _records("\n".join(lines[start:]).replace('\\"', '""'))
    own = {one.lower(): one for one in inputs}
    columns = _columns(records.pop(0).cells, own) if headed else _HEADERLESS
    table = ParsedTable(columns=columns)
    for record in records:
        if not any(cell.strip() for cell in record.cells):
            continue
        row = _fitted(record, columns)
        if row is not None:
            table.rows.append(row)
        elif not record.raw.lstrip().startswith("```"):
            why = f"{len(record.cells)} cells instead of {len(columns)}"
            table.lost.append(f"line {start + record.line}: {why}")
    return table


@dataclass(frozen=True)
class _Record:
    line: int
    cells: list[str]
    raw: str


def _begin(lines: list[str]) -> tuple[int | None, bool]:
    """Find the line of the header or, if there is none, of the first row."""
    for number, line in enumerate(lines):
        if _HEADER.match(line):
            return number, True
    rows = [number for number, line in enumerate(lines) if _ROW.match(line)]
    return (rows[0], False) if rows else (None, False)


def _records(source: str) -> list[_Record]:
    csv.field_size_limit(max(csv.field_size_limit(), 10_000_000))
    lines = source.splitlines()
    reader = csv.reader(io.StringIO(source, newline=""), skipinitialspace=True)
    found: list[_Record] = []
    begins = 0
    try:
        for cells in reader:
            raw = "\n".join(lines[begins : reader.line_num])
            found.append(_Record(begins + 1, cells, raw))
            begins = reader.line_num
    except csv.Error:  # a NUL in old versions of Python, or a cell above the size limit
        found.append(_Record(begins + 1, ["?"], ""))
    return found


def _columns(names: list[str], own: dict[str, str]) -> tuple[str, ...]:
    columns: list[str] = []
    for name in names:
        bare = name.strip().strip("\"'`*").strip()
        known = _NAMES.get(re.sub(r"[\W_]", "", bare.lower()), bare)
        if bare.lower() in own and known not in ("ruleid", "testid"):
            known = own[bare.lower()]
        columns.append("ruletext" if known in columns and known == "ruleid" else known)
    return tuple(columns)


def _fitted(record: _Record, columns: tuple[str, ...]) -> dict[str, str] | None:
    """Match cells to columns; None if it is unclear which cell belongs to which column."""
    cells = [cell.strip() for cell in record.cells]
    while len(cells) > len(columns) and not cells[-1]:
        cells.pop()  # the line ends with a comma
    if len(cells) > len(columns):
        split = _split_by_hand(record.raw)
        if split is None:
            return None
        cells = split
        if len(cells) > len(columns) and columns[-1] == "reasoning":
            # All cells are quoted or numbers, so none was split at a comma inside it. The surplus
            # cells belong to the prose in the last column.
            last = len(columns) - 1
            cells = [*cells[:last], " ".join(cells[last:])]
    if len(cells) != len(columns):
        return None
    return dict(zip(columns, cells, strict=True))


def _split_by_hand(raw: str) -> list[str] | None:
    """Split a row into quoted cells, numbers and unquoted lists.

    None if there is anything else, because its commas could be part of it or separate cells.
    """
    cells: list[str] = []
    position = 0
    while True:
        match = _CELL.match(raw, position)
        if match is None:
            return None
        quoted, other = match["quoted"], match["other"]
        cells.append(quoted.replace('""', '"').strip() if quoted is not None else other.strip())
        position = match.end()
        if position >= len(raw):
            return cells
        position += 1  # the comma


# --- Tests in any form


_PAIR = re.compile(
    r"\s*(?P<name>\w[\w ]{0,60}?)\s*:\s*"
    r"""(?:'(?P<single>(?:[^'\\]|\\.|'(?!\s*(?:,|$)))*)'|"(?P<double>(?:[^"\\]|\\.)*)")"""
    r"\s*(?:,|$)"
)


@dataclass(frozen=True)
class ParsedTests:
    """The tests in one reply."""

    tests: list[PromptTest] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Reasons why tests were left out, one sentence per test."""


def read_tests(
    text: str,
    prompt: PromptUnderTest,
    rules: Sequence[Rule] = (),
    scenario: Scenario | None = None,
    generation: int = 0,
) -> ParsedTests:
    """Read tests from a reply; a test that lacks an input or repeats another is left out.

    Args:
        text: a model's reply.
        prompt: the prompt under test, which has the inputs.
        rules: the rules that tests were asked for; empty for baseline tests. A test that names none
            of them belongs to the only rule, if there is only one. Otherwise it has no rule, and is
            inverse if all the rules are.
        scenario: the scenario of the tests, whose fixed inputs need not be repeated.
        generation: the round of test generation, from 0.
    """
    found = ParsedTests()
    if is_refusal(text):
        found.lost.append(f"the reply is a refusal: {' '.join(text.split())[:80]}")
        return found
    by_id = {rule.id: rule for rule in rules}
    fixed = dict(scenario.parameters) if scenario else {}
    seen: set[str] = set()
    for number, row in enumerate(_rows(text, prompt, found), start=1):
        inputs, why = _inputs(row, prompt, fixed)
        if inputs is None:
            found.lost.append(f"test {number}: {why}")
            continue
        rule = by_id.get(_id(row.get("rule", row.get("ruleid"))))
        if rule is None and len(rules) == 1:
            rule = rules[0]
        inverse = rule.inverse if rule else bool(rules) and all(one.inverse for one in rules)
        words = rule.text if rule else ""
        try:
            uid = make_uid(
                rule=words, inverse=inverse, inputs=inputs,
                scenario=scenario.name if scenario else "", baseline=not rules,
            )  # fmt: skip
            test = PromptTest(
                uid=uid,
                rule_id=rule.id if rule else None,
                rule=words,
                inverse=inverse,
                inputs=inputs,
                test_id=str(row.get("testid") or number),
                expected=_text(row.get("expected", row.get("expectedoutput"))),
                reasoning=_text(row.get("reasoning")),
                scenario=scenario.name if scenario else "",
                generation=generation,
                baseline=not rules,
            )
        except (ValueError, RecursionError) as error:
            found.lost.append(f"test {number}: {cells.why_not(error)}")
            continue
        if test.uid in seen:
            found.lost.append(f"test {number}: is the same as an earlier one")
            continue
        seen.add(test.uid)
        found.tests.append(test)
    return found


def _rows(text: str, prompt: PromptUnderTest, found: ParsedTests) -> list[Mapping[str, Any]]:
    content = json_in(text)
    if isinstance(content, dict):
        content = next((value for value in content.values() if isinstance(value, list)), [content])
    if isinstance(content, list):
        return [one if isinstance(one, dict) else {"testinput": one} for one in content]
    table = read_tests_csv(text, list(prompt.inputs))
    if table.rows:
        found.lost.extend(table.lost)
        return list(table.rows)
    rows = _lines(text, prompt)
    if not rows:
        found.lost.extend(table.lost or ["the reply is empty"])
    return rows


def _lines(text: str, prompt: PromptUnderTest) -> list[Mapping[str, Any]]:
    """Read lines of `name: 'value', name: 'value'`; a comment is the next line's reasoning."""
    rows: list[Mapping[str, Any]] = []
    comment = ""
    for line in unfenced(text).splitlines():
        bare = line.strip().lstrip("-* ").strip()
        if bare.startswith("#"):
            comment = bare.lstrip("# ").strip()
            continue
        values = _pairs(bare)
        if set(values) & set(prompt.inputs):
            rows.append({"inputs": values, "reasoning": comment})
            comment = ""
    return rows


def _pairs(line: str) -> dict[str, str]:
    values: dict[str, str] = {}
    position = 0
    while position < len(line):
        match = _PAIR.match(line, position)
        if match is None:
            return {}
        value = match["single"] if match["single"] is not None else match["double"]
        values[match["name"]] = value.replace("\\'", "'").replace('\\"', '"')
        position = match.end()
    return values


def _inputs(
    row: Mapping[str, Any], prompt: PromptUnderTest, fixed: Mapping[str, JsonValue]
) -> tuple[dict[str, JsonValue] | None, str]:
    given = row.get("inputs")
    if isinstance(given, str) and given.strip():
        row = {**row, "testinput": given}
    values = dict(given) if isinstance(given, dict) else {}
    values |= {name: row[name] for name in prompt.inputs if name in row and name not in values}
    values = {name: value for name, value in values.items() if name in prompt.inputs}
    if not values and row.get("testinput") not in (None, ""):
        text = row["testinput"]
        try:
            values = prompt.inputs_from(text if isinstance(text, str) else json.dumps(text), fixed)
        except ConfigurationError as error:
            return None, str(error)
    needed = [
        one.name for one in prompt.inputs.values() if one.default is None and one.name not in fixed
    ]
    absent = [name for name in needed if name not in values]
    if absent:
        return None, f"has no {', '.join(absent)}"
    if "inputs" not in row and not any(str(value).strip() for value in values.values()):
        # An empty cell of a table was left out; an empty input in JSON can be an edge case.
        return None, "is empty"
    return values, ""


def _id(value: object) -> int:
    text = str(value).strip().rstrip(".") if isinstance(value, str | int) else ""
    return int(text) if text.isdecimal() and len(text) < 9 else -1


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
