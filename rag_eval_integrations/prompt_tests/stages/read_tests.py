"""Tests in whatever form a model wrote them: JSON, CSV, or lines of `name: 'value'`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests.cleaning import is_refusal, json_in, unfenced
from rag_eval_integrations.prompt_tests.csv_reader import read_tests_csv
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, Scenario
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, make_uid

_PAIR = re.compile(
    r"\s*(?P<name>\w[\w ]{0,60}?)\s*:\s*"
    r"""(?:'(?P<single>(?:[^'\\]|\\.|'(?!\s*(?:,|$)))*)'|"(?P<double>(?:[^"\\]|\\.)*)")"""
    r"\s*(?:,|$)"
)


@dataclass(frozen=True)
class Found:
    """Tests of one reply, and what was left out of it."""

    tests: list[PromptTest] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def read_tests(
    text: str,
    prompt: PromptUnderTest,
    rules: Sequence[Rule] = (),
    scenario: Scenario | None = None,
    generation: int = 0,
) -> Found:
    """Read tests; one that lacks an input, or repeats another, is left out and named.

    Args:
        text: a model's reply.
        prompt: whose inputs they are.
        rules: those that were asked about. A test that names none of them belongs to the one rule,
            where there is one; else to no rule, with the direction of them all.
        scenario: the situation that they are for; its fixed inputs need not be repeated.
        generation: the number of the reply in its chat.
    """
    found = Found()
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
        uid = make_uid(
            rule=words, inverse=inverse, inputs=inputs,
            scenario=scenario.name if scenario else "", baseline=not rules,
        )  # fmt: skip
        if uid in seen:
            found.lost.append(f"test {number}: the same as one before it")
            continue
        seen.add(uid)
        found.tests.append(
            PromptTest(
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
        )
    return found


def _rows(text: str, prompt: PromptUnderTest, found: Found) -> list[Mapping[str, Any]]:
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
    """Read `name: 'value', name: 'value'` a line; a comment is about the line that follows it."""
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
        return None, f"no {', '.join(absent)}"
    if "inputs" not in row and not any(str(value).strip() for value in values.values()):
        return None, "empty"  # in a table that is a cell left out; in JSON it is an edge case
    return values, ""


def _id(value: object) -> int:
    text = str(value if value is not None else "").strip().rstrip(".")
    return int(text) if text.isdigit() and len(text) < 9 else -1


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
