"""Read a generator's reply: refusals, statements, JSON, tests in any form. Pure."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.errors import InputError, JudgeOutputError
from rag_eval_integrations.models._reading import json_of, mended, unfenced
from rag_eval_integrations.prompt_tests._spec_lines import NUMBER
from rag_eval_integrations.prompt_tests._upstream import (
    inputs_of,
    make_test,
    text_of,
    whole_of,
    why_not,
)
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, as_text

ESCAPED = re.compile(r"^\\(?=\\*#)")
"""The backslash in front of a statement that would be a comment."""
_BULLET = re.compile(r"^\s*(?:(?:\d{1,3}[.)]|[-*•–]|_(?=\s))\s+)+")
_HEADING = re.compile(r"^[#*_\s]*+(?:[\w ]{0,30})?(?:rules|specification)[*_\s]*:[*_\s]*$", re.I)
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m (?:very )?sorry|i am sorry|sorry|i apologi[sz]e|"
    r"i (?:can['’]?t|cannot|can not|won['’]?t|will not|am unable to|['’]?m unable to)\b|"
    r"i['’]m (?:unable|not able) to\b)|\bcan['’]?t assist\b|\bcannot assist\b",
    re.IGNORECASE,
)
_LONGEST_REFUSAL = 600


def is_refusal(text: str) -> bool:
    """Return whether a whole reply is a refusal: it is short, and begins like one.

    A rule that quotes a refusal ("The output should begin with 'I'm sorry'") is not one.
    """
    stripped = text.strip()
    return len(stripped) <= _LONGEST_REFUSAL and bool(_REFUSAL.search(stripped[:80]))


def lines_in(text: str) -> list[str]:
    """Return a text's statements, one per line, without bullets, numbers, headings and comments.

    If the text has one code fence, only the lines inside it are read. White space becomes single
    spaces.
    """
    bare = [_BULLET.sub("", line).strip() for line in unfenced(text).splitlines()]
    return [
        ESCAPED.sub("", one_line(line))
        for line in bare
        if line and not line.startswith(("#", "```")) and not _HEADING.match(line)
    ]


def statements_in(text: str, field: str) -> list[str]:
    """Return the statements in a JSON object with the field, a JSON list, or lines.

    An object without the field counts by its first value. A text without a list in JSON is read
    line by line; see `lines_in`. Empty statements are dropped.
    """
    content = json_in(text)
    if isinstance(content, dict):
        content = content.get(field, next(iter(content.values()), None))
    if isinstance(content, list):
        return [one_line(str(item)) for item in content if str(item).strip()]
    return lines_in(text)


def one_line(text: str) -> str:
    """Return a text on one line: white space becomes single spaces."""
    return " ".join(text.split())


def json_in(text: str) -> Any:
    """Return the JSON of a reply, in a fence or not, repaired if needed; None if it is not JSON.

    None also for anything but an object or a list, and for JSON that was cut off.
    """
    body = unfenced(text).strip()
    if body[:1] not in ("{", "["):
        return None
    try:
        return json_of(body)
    except ValueError:
        pass
    try:
        return mended(body, whole=True) or None
    except JudgeOutputError:
        return None


# --- Inverse rules, by the numbers of their rules


def read_inverse_rules(text: str, numbers: Sequence[int]) -> dict[int, str] | None:
    """Return the inverse rules in a reply by the number of their rule; None if they fit no rules.

    Entries with a number are matched by it; unknown numbers are ignored. If no entry has a known
    number, those without one are matched in order, and the last rules may be missing. None if there
    are more of those than rules, or nothing to match.
    """
    content = json_in(text)
    if isinstance(content, dict):
        content = next((value for value in content.values() if isinstance(value, list)), None)
    entries: list[tuple[int | None, str]]
    lines = text.splitlines()
    if isinstance(content, list) and content and all(isinstance(item, dict) for item in content):
        entries = [(whole_of(item, "number"), text_of(item, "text")) for item in content]
    elif any(matches := [NUMBER.match(line) for line in lines]):
        numbered = [(match, line) for match, line in zip(matches, lines, strict=True) if match]
        entries = [(int(match[1]), line[match.end() :]) for match, line in numbered]
    else:
        entries = [(None, rule) for rule in statements_in(text, "inverse")]
    entries = [(number, one_line(rule)) for number, rule in entries if rule.strip()]
    known = {number: rule for number, rule in entries if number in numbers}
    if known:
        return {number: known[number] for number in numbers if number in known}
    unnumbered = [rule for number, rule in entries if number is None]
    in_order = dict(zip(numbers, unnumbered, strict=False))
    return in_order if len(unnumbered) <= len(numbers) and in_order else None


# --- CSV as models write it: with or without a header, with torn or unquoted cells


_HEADER = re.compile(r"^\W*(?:rule[ _]?id|rule)\W*,\W*test", re.IGNORECASE)
_ROW = re.compile(r'^\s*"?\d{1,3}"?\s*,\s*"?\d{1,3}"?\s*,\s*\S')
_HEADERLESS = ("ruleid", "testid", "testinput", "expectedoutput", "reasoning")
_CELL = re.compile(
    r'\s*+(?:"(?P<quoted>(?>(?:[^"]+|"")*))"|(?P<other>\d*+|\[[^\]\n]*+\]))'
    r"[ \t]*+(?=,|\s*+\Z)\s*?(?=,|\Z)",
)
_NAMES = {
    "ruleid": "ruleid",
    "rule": "ruleid",
    "rulenumber": "ruleid",
    "testid": "testid",
    "test": "testid",
    "testnumber": "testid",
    "expectedoutput": "expectedoutput",
    "expected": "expectedoutput",
    "output": "expectedoutput",
    "reasoning": "reasoning",
    "reason": "reasoning",
    "explanation": "reasoning",
    "testinput": "testinput",
    "input": "testinput",
    "testcase": "testinput",
}


@dataclass(frozen=True)
class ParsedTable:
    """The rows of a CSV table of tests."""

    rows: list[dict[str, str]] = field(default_factory=list)
    """Cells by column: `ruleid, testid, testinput, expectedoutput, reasoning`, or an input."""
    lost: list[str] = field(default_factory=list)
    """Reasons why rows were left out, one sentence per row."""


def read_tests_csv(text: str, inputs: Sequence[str] = ()) -> ParsedTable:
    """Return the rows of a CSV table of tests, as a model may write it.

    Text before the header, or before the first row if there is no header, is skipped. Without a
    header, the columns are `ruleid, testid, testinput, expectedoutput, reasoning`. A row that
    cannot be matched to the columns is left out, with a reason in `lost`. A refusal, and a text
    without a header and rows, give no rows and one reason; an empty text gives neither.

    Args:
        text: a model's reply, or the content of a file.
        inputs: names of the prompt's inputs, which can be columns, too.
    """
    if is_refusal(text):
        return ParsedTable(lost=[f"the reply is a refusal: {' '.join(text.split())[:80]}"])
    # Not `splitlines`: a form feed or U+2028 within a cell ends no line.
    lines = re.split(r"\r\n?|\n", unfenced(text.removeprefix("\ufeff")))
    headers = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    rows = [number for number, line in enumerate(lines) if _ROW.match(line)]
    if not headers and not rows:
        why = "there is no header and no row with a rule, a test and an input"
        return ParsedTable(lost=[why] if text else [])
    start = (headers or rows)[0]
    records = _csv_records("\n".join(lines[start:]).replace('\\"', '""'))
    own = {input_.lower(): input_ for input_ in inputs}
    columns = _column_names(records.pop(0)[1], own) if headers else _HEADERLESS
    table = ParsedTable()
    for line, row, raw in records:
        if not any(cell.strip() for cell in row):
            continue
        fitted = _cells_by_column(row, raw, columns)
        if fitted is not None:
            table.rows.append(fitted)
        elif not raw.lstrip().startswith("```"):
            table.lost.append(f"line {start + line}: {len(row)} cells instead of {len(columns)}")
    return table


def _csv_records(source: str) -> list[tuple[int, list[str], str]]:
    """Return the line, from 1, the cells and the text of each row of CSV.

    If the CSV cannot be read on, the last record has `?` as its only cell. The csv module's limit
    of cells is raised to 10,000,000 characters for the whole process.
    """
    csv.field_size_limit(max(csv.field_size_limit(), 10_000_000))
    lines = source.split("\n")
    reader = csv.reader(io.StringIO(source, newline=""), skipinitialspace=True)
    records: list[tuple[int, list[str], str]] = []
    begins = 0
    try:
        for row in reader:
            records.append((begins + 1, row, "\n".join(lines[begins : reader.line_num])))
            begins = reader.line_num
    except csv.Error:  # a NUL in old versions of Python, or a cell above the size limit
        records.append((begins + 1, ["?"], ""))
    return records


def _column_names(names: list[str], own: dict[str, str]) -> tuple[str, ...]:
    """Return a table's column names in our spelling.

    A prompt's input gets the prompt's spelling, unless it is named like the number of a rule or
    test. A second column of rules holds their texts. Unknown names stay as they are.
    """
    columns: list[str] = []
    for name in names:
        bare = name.strip().strip("\"'`*").strip()
        known = _NAMES.get(re.sub(r"[\W_]", "", bare.lower()), bare)
        if bare.lower() in own and known not in ("ruleid", "testid"):
            known = own[bare.lower()]
        columns.append("rule" if known in columns and known == "ruleid" else known)
    return tuple(columns)


def _cells_by_column(row: list[str], raw: str, columns: tuple[str, ...]) -> dict[str, str] | None:
    """Return a row's cells by column; None if it is unclear which cell belongs to which.

    Surplus empty cells at the end are dropped. Other surplus cells are joined into the last column
    if that is `reasoning` and no comma can be part of a cell. None for a row with too few cells.
    """
    fitted = [cell.strip() for cell in row]
    while len(fitted) > len(columns) and not fitted[-1]:
        fitted.pop()  # the line ends with a comma
    if len(fitted) > len(columns):
        fitted = _split_by_hand(raw) or []
        if len(fitted) > len(columns) and columns[-1] == "reasoning":
            # All cells are quoted or numbers, so none was split at a comma inside it. The surplus
            # cells belong to the prose in the last column.
            last = len(columns) - 1
            fitted = [*fitted[:last], " ".join(fitted[last:])]
    return dict(zip(columns, fitted, strict=True)) if len(fitted) == len(columns) else None


def _split_by_hand(raw: str) -> list[str] | None:
    """Return a row's cells if they are quoted texts, numbers and unquoted lists alone.

    None if there is anything else, because its commas could be part of it or separate cells.
    """
    split: list[str] = []
    position = 0
    while True:
        match = _CELL.match(raw, position)
        if match is None:
            return None
        quoted, other = match["quoted"], match["other"]
        split.append(quoted.replace('""', '"').strip() if quoted is not None else other.strip())
        position = match.end()
        if position >= len(raw):
            return split
        position += 1  # the comma


# --- Tests in any form


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
    """Return the tests in a reply; one that lacks an input or repeats another is left out.

    A refusal, a text without tests and each test that is left out give a reason in `lost`. Tests
    are in the reply's order.

    Args:
        text: a model's reply.
        prompt: the prompt under test, which has the inputs.
        rules: the rules that tests were asked for; empty for baseline tests. A test that names none
            of them belongs to the only rule, if there is only one. Otherwise it has no rule, and is
            inverse if all the rules are.
        scenario: the scenario of the tests, whose fixed inputs need not be repeated.
        generation: the round of test generation, from 0.
    """
    parsed = ParsedTests()
    by_id = {rule.id: rule for rule in rules}
    fixed = dict(scenario.parameters) if scenario else {}
    seen: set[str] = set()
    for number, row in enumerate(_test_rows(text, prompt, parsed), start=1):
        rule = by_id.get(whole_of(row, "rule") or whole_of(row, "ruleid") or 0)
        if rule is None and len(rules) == 1:
            rule = rules[0]
        known = {
            "ruleid": rule.id if rule else None,
            "rule": rule.text if rule else "",
            "inverse": rule.inverse if rule else bool(rules) and all(r.inverse for r in rules),
            "baseline": not rules,
            "scenario": scenario.name if scenario else "",
            "testid": row.get("testid"),
            "reasoning": as_text(row.get("reasoning")),
            "expectedoutput": as_text(row.get("expected", row.get("expectedoutput"))),
            "generation": generation,
        }
        try:
            test = make_test(known, _test_inputs(row, prompt, fixed), number)
        except (ValueError, RecursionError) as error:
            parsed.lost.append(f"test {number}: {why_not(error)}")
            continue
        if test.uid in seen:
            parsed.lost.append(f"test {number}: is the same as an earlier one")
            continue
        seen.add(test.uid)
        parsed.tests.append(test)
    return parsed


def _test_rows(
    text: str, prompt: PromptUnderTest, parsed: ParsedTests
) -> Sequence[Mapping[str, Any]]:
    """Return a reply's tests as rows: of its JSON, or else of its table.

    An object counts by its first list, or else as one test. An item of a list that is not an object
    is the test's input. What a table loses, or that the reply is empty, is added to `parsed.lost`.
    """
    content = json_in(text)
    if isinstance(content, dict):
        content = next((value for value in content.values() if isinstance(value, list)), [content])
    if isinstance(content, list):
        return [
            {**item, "testinput": as_text(item.get("testinput"))}
            if isinstance(item, dict)
            else {"testinput": as_text(item)}
            for item in content
        ]
    table = read_tests_csv(text, list(prompt.inputs))
    parsed.lost.extend(table.lost or ([] if table.rows else ["the reply is empty"]))
    return table.rows


def _test_inputs(
    row: Mapping[str, Any], prompt: PromptUnderTest, fixed: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the inputs in a test's row; refuse missing and empty ones.

    Inputs that the prompt does not have are dropped, and so are fixed ones. Those with a default or
    a fixed value may be missing, and are not filled in here; but a row that gives no input at all,
    such as `{"inputs": {}}`, is refused, even if every input has a default. Only fixed inputs, or
    only unknown ones in an object `inputs`, are enough where no other is needed: the result is then
    empty. Empty inputs are refused only in a row without `inputs`.

    Raises:
        InputError: for a missing input, none at all, or inputs that are all empty.
        ConfigurationError: for a text that cannot be divided into several inputs.
    """
    given = inputs_of(row, prompt, fixed)
    named = {name: value for name, value in given.items() if name in prompt.inputs}
    values = {name: value for name, value in named.items() if name not in fixed}
    needed = (name for name, input_ in prompt.inputs.items() if input_.default is None)
    if absent := [name for name in needed if name not in {**values, **fixed}]:
        raise InputError(f"has no {', '.join(absent)}")
    if "inputs" not in row and not any(str(value).strip() for value in named.values()):
        # An empty cell of a table was left out; an empty input in JSON can be an edge case.
        raise InputError("is empty")
    return values


# --- Baseline tests, which are separated by lines of ===


SEPARATOR = re.compile(r"^[ \t]*={3,}[ \t]*$", re.MULTILINE)
_TITLE = re.compile(
    r"\A\W*test(?:[ \t]*case)?[ \t]*\d+\W*(?:\n|\Z)"
    r"|\A[#*\s]*test(?:[ \t]*case)?[ \t]*\d+\**:[ \t:*]*",
    re.IGNORECASE,
)


def read_baseline(text: str, prompt: PromptUnderTest) -> list[PromptTest]:
    """Return the baseline tests in a reply: parts between lines of ===, or a JSON list.

    Titles such as "Test 1:" are dropped, and so are repeated tests and, without notice, parts that
    are not a test of the prompt's inputs. Empty if there is no test.
    """
    content = None if SEPARATOR.search(text) else json_in(text)
    if isinstance(content, dict) and not any(isinstance(item, list) for item in content.values()):
        content = None
    parts = [text]
    if content is None:
        first, *others = SEPARATOR.split(text)
        # A fence is of the reply if it encloses every test; else tests have fences of their own.
        body = text if others and first.count("```") % 2 == 0 else unfenced(text)
        titled = (_TITLE.sub("", part.strip()).strip() for part in SEPARATOR.split(body))
        parts = [unfenced(p) if p[:3] == p[-3:] == "```" else p for p in titled if p]
        if len(prompt.inputs) == 1:
            parts = [json.dumps([{"testinput": part}]) for part in parts]
        else:  # so that a list among the inputs is not taken for the tests
            parts = [f"[{part}]" if part[:1] == "{" else part for part in parts]
    tests = [test for part in parts for test in read_tests(part, prompt).tests]
    return list({test.uid: test for test in tests}.values())


def baseline_text(tests: Sequence[PromptTest]) -> str:
    """Return tests as a text for `read_baseline`: separated by lines of ===."""
    return "\n===\n".join(test.testinput for test in tests) + "\n"
