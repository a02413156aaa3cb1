"""The contents of a folder of prompt tests; PromptPex's folders and contexts hold the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, whole_number
from rag_eval_integrations.models._reading import loads
from rag_eval_integrations.prompt_tests import _upstream as files
from rag_eval_integrations.prompt_tests._replies import lines_in, read_tests_csv
from rag_eval_integrations.prompt_tests._spec_lines import inverse_by_rule, inverse_lines, make_spec
from rag_eval_integrations.prompt_tests.prompt import (
    PromptUnderTest,
    csv_rows_of,
    is_github_file,
    parse_prompt,
    read_content,
)
from rag_eval_integrations.prompt_tests.records import (
    PromptTest,
    Result,
    RuleCheck,
    Spec,
    TestCheck,
)

PARTS = {
    "intent": (files.INTENT, "not known"),
    "inputSpec": (files.INPUT_SPEC, "not known"),
    "rules": (files.RULES, "none"),
    "inverseRules": (files.INVERSE_RULES, "none"),
    "tests": (files.TESTS, ""),
    "testOutputs": (files.RESULTS, ""),
    "testEvals": (files.TEST_EVALS, ""),
    "ruleEvals": (files.RULE_EVALS, ""),
}
"""By a context's keys: the file, and the comment that a file of lines without any has."""


@dataclass(frozen=True)
class Contents:
    """Everything that a folder of ours or of PromptPex, or a context, holds."""

    prompt: PromptUnderTest
    spec: Spec
    tests: list[PromptTest] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    checks: list[TestCheck] = field(default_factory=list)
    rule_checks: list[RuleCheck] = field(default_factory=list)
    cut: int | None = None
    """Number of rules, and of inverse rules, that PromptPex numbered first; None for all."""
    prompt_file: tuple[str, str] | None = None
    """Name and text of the prompt's file, where it is inside the context; else None."""
    metric_files: Mapping[str, str] = field(default_factory=dict)
    """Texts of the metric files inside the context, by name."""
    lost: list[str] = field(default_factory=list)
    """Reasons why rows could not be used, one sentence per row."""

    def parts(self) -> dict[str, Sequence[Any]]:
        """Return the lines or rows of every file of `PARTS`, by its key; empty for absent parts."""
        spec = self.spec
        return {
            "intent": [spec.intent] if spec.intent else [],
            "inputSpec": spec.input_spec,
            "rules": [rule.text for rule in spec.output_rules],
            "inverseRules": inverse_lines(spec),
            "tests": files.to_test_rows(self.tests),
            "testOutputs": files.results_to_rows(self.results),
            "testEvals": files.checks_to_rows(self.checks),
            "ruleEvals": files.rule_checks_to_rows(self.rule_checks, self.prompt.id),
        }

    def context(self) -> str:
        """Return all contents as the JSON of a PromptPexContext, which `read_upstream` reads.

        The prompt's file is empty where it is not inside the context. `maxRules` is the cut, or
        else a number that cuts nothing.
        """
        named: dict[str, dict[str, str]] = {}
        for key, part in self.parts().items():
            name, comment = PARTS[key]
            content = "\n".join(part) if comment else json.dumps(part, indent=2)
            named[key] = {"filename": name, "content": content}
        texts = [self.prompt_file or ("", ""), *self.metric_files.items()]
        prompt, *metrics = ({"filename": name, "content": text} for name, text in texts)
        # Without a cut, a number that cuts nothing: PromptPex would take its own, which is 3.
        most = max(len(self.spec.output_rules), len(self.spec.inverse_rules))
        options = {"maxRules": most if self.cut is None else self.cut}
        context = {
            "name": self.prompt.name,
            "prompt": prompt,
            **named,
            "metrics": metrics,
            "options": options,
        }
        return json.dumps(context, indent=2) + "\n"


def read_upstream(
    path: str | Path, prompt: object | None = None, *, max_rules: int | None = None
) -> Contents:
    """Read `promptpex_context.json`, a `.prompt.yml`, or a folder with `tests.json` and so on.

    Files are JSON or CSV, possibly with `.gz`; any of them may be missing in a folder. A context is
    one object whose keys are the files; what a folder lacks is taken from the context in it. All
    rules are kept: PromptPex may have numbered only the first ones of each kind, so these have the
    first numbers.

    Expected outputs among the results are left out. Rows of tests and results that cannot be used
    are left out, too, each with a reason in `lost`; checks that cannot be used are left out without
    one. Of a `.prompt.yml`, only the prompt and its tests are read; `prompt` and `max_rules` have
    no effect.

    Args:
        path: the context file, a single file of tests or results, the folder, or a `.prompt.yml`
            of GitHub Models, whose `testData` are the tests.
        prompt: the prompt under test; by default the only `.prompty` in the folder, if `path` is a
            folder; else the context's own, or the only `.prompty` beside it. Metric files inside
            the context are taken only if the prompt is neither passed nor the folder's.
        max_rules: number to which PromptPex cut the rules, and the inverse rules, before it
            numbered them (20 in the data of its paper); by default the context's option, or else
            what the tests' own directions tell. A number that cuts nothing comes back as None.

    Raises:
        ConfigurationError: when there is nothing to read, no prompt or several, or a file that
            cannot be parsed; for a negative `max_rules`.
        InputError: when a file is not a list of objects.
        OSError: when a file cannot be read.
    """
    if max_rules is not None:
        whole_number("max_rules", max_rules, 0)  # a slice would leave out the last ones
    path = Path(path)
    if is_github_file(path.name):
        return _read_github(path)
    lost: list[str] = []
    content = (_read_folder if path.is_dir() else _read_context)(path, lost)
    folder = path if path.is_dir() else path.parent
    prompts = _prompts_in(folder)
    of_folder = prompt is None and path.is_dir() and len(prompts) == 1
    whole = prompt is None and not of_folder
    prompt_file = _prompt_file(content) if whole else None
    if prompt_file is not None:
        name, text = prompt_file
        prompt = parse_prompt(text, name)
    elif prompt is None and len(prompts) == 1:
        [prompt] = prompts
    elif prompt is None:
        why = f"contains {len(prompts)} prompts; pass the prompt under test with `prompt`"
        raise ConfigurationError("path", str(folder), why)
    under_test = PromptUnderTest.of(prompt)
    if max_rules is None:
        options = content.get("options")
        given = files.whole_of(options, "maxRules") if isinstance(options, dict) else None
        max_rules = None if given is None or given < 0 else given
    rows = _part_rows(content, "tests", lost) or _part_rows(content, "promptPexTests", lost)
    direct, inverse = _part_lines(content, "rules"), _inverse_rules(content)
    if max_rules is None:
        max_rules = _inferred_cut(rows, len(direct))
    elif max_rules >= max(len(direct), len(inverse)):
        max_rules = None
    spec = make_spec(
        " ".join(_part_lines(content, "intent")),
        _part_lines(content, "inputSpec"),
        direct,
        inverse,
        cut=max_rules,
    )
    tests = files.from_test_rows(rows, under_test, spec, lost)
    # Expected outputs are listed with the results, but their model is not under test.
    outputs = [
        row for row in _part_rows(content, "testOutputs", lost) if not row.get("isGroundtruth")
    ]
    results = files.results_from_rows(outputs, under_test, spec, tests, lost)
    checks = files.checks_from_rows(_part_rows(content, "testEvals", lost), under_test, spec, tests)
    rules = files.rule_checks_from_rows(_part_rows(content, "ruleEvals", lost))
    metrics = _metric_files(content, lost) if whole else {}
    return Contents(
        under_test, spec, tests, results, checks, rules, max_rules, prompt_file, metrics, lost
    )


def _read_github(path: Path) -> Contents:
    """Read a `.prompt.yml`: our own export, PromptPex's, or anybody's.

    The contents are the prompt and the tests in `testData`, without rules and results. Entries that
    are not objects are dropped; tests that cannot be used are dropped with a reason in `lost`.
    """
    prompt, lost, rows = PromptUnderTest.of(path), list[str](), []
    given = prompt.head.get("testData")
    for row in given if isinstance(given, list) else []:
        if isinstance(row, dict):
            inputs = {name: row[name] for name in prompt.inputs if name in row}
            expected = None if "groundtruth" in row else row.get("expected")
            rows.append({"expectedoutput": expected, **row, "inputs": inputs})
    tests = files.from_test_rows(rows, prompt, Spec(), lost)
    return Contents(prompt, Spec(), tests, lost=lost)


def _inverse_rules(content: dict[str, Any]) -> dict[int, str] | list[str]:
    """Return a context's inverse rules, by the number of their rule or in the rules' order.

    They are numbered if every line has a number, there are fewer lines than rules and no number is
    above the number of rules. Empty if the part is missing.
    """
    text = _file_content(content.get("inverseRules"))
    if isinstance(text, str):
        rules = len(_part_lines(content, "rules"))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        inverse = inverse_by_rule(lines, rules)
        if isinstance(inverse, dict) and inverse and max(inverse) <= rules:
            return inverse
    return _part_lines(content, "inverseRules")


def _inferred_cut(rows: Sequence[files.Row], rules: int) -> int | None:
    """Infer from the tests' directions how many rules PromptPex numbered first; None for all.

    None also without tests of inverse rules, or if the directions do not fit any cut. A cut lies
    between the largest number of a rule that is not inverse, and the smallest of one that is. Where
    rules without tests leave several, as many rules as inverse rules were taken.
    """
    numbers: dict[bool, set[int]] = {True: set(), False: set()}
    for row in rows:
        number, inverse = files.whole_of(row, "ruleid"), files.flag_of(row, "inverse")
        if number is not None and inverse is not None and not files.flag_of(row, "baseline"):
            numbers[inverse].add(number)
    if not numbers[True]:
        return None
    least, most = max(numbers[False], default=0), min(numbers[True]) - 1
    if least > most or most >= rules:
        return None  # the directions do not follow from the numbers, or nothing was cut
    half = -(-max(numbers[True]) // 2)
    return min(max(half, least), most)


def _read_folder(path: Path, lost: list[str]) -> dict[str, Any]:
    """Read a folder of PromptPex's files into one context.

    A separate file replaces the same part of the context. Of several forms of a file, the first of
    `.json`, `.json.gz`, `.csv` and `.csv.gz` is read.

    Raises:
        ConfigurationError: for a folder without any of the files, or a file that cannot be parsed.
    """
    context = path / files.CONTEXT
    content = dict(_read_context(context, lost)) if context.is_file() else {}
    for key, (name, _) in PARTS.items():
        stem = name.removesuffix(".json")
        for suffix in ("",) if stem == name else (".json", ".json.gz", ".csv", ".csv.gz"):
            file = path / f"{stem}{suffix}"
            if file.is_file():
                content[key] = _read_file(file, lost)
                break
    if not content:
        raise ConfigurationError("path", str(path), "contains none of PromptPex's files")
    return content


def _read_context(path: Path, lost: list[str]) -> dict[str, Any]:
    """Read a context file; a file of tests or results alone becomes a context with one part.

    A list is of results if its first row has an `output`, else of tests.

    Raises:
        ConfigurationError: for a file that is neither an object nor a list, or cannot be parsed.
        InputError: for a list with anything but objects.
    """
    content = _read_file(path, lost)
    if isinstance(content, list):  # a tests or results file alone
        rows = files.rows_of(content, str(path))
        return {"testOutputs" if rows and "output" in rows[0] else "tests": rows}
    if not isinstance(content, dict):
        raise ConfigurationError("path", str(path), "should be an object, or a list of objects")
    return content


def _read_file(path: Path, lost: list[str]) -> Any:
    """Read a file by its suffix, as `read_content` does; CSV may be as a model writes it."""
    return read_content(path, "path", csv_rows=partial(_csv_rows, lost=lost))


def _csv_rows(text: str, lost: list[str]) -> list[dict[str, str]]:
    """Read CSV rows; a table that begins with `ruleid,testid` may be as a model writes it."""
    first = text.lstrip().partition("\n")[0]
    if first.replace(" ", "").startswith(("ruleid,testid", '"ruleid","testid"')):
        return _tests_table(text, lost)
    return csv_rows_of(text)


def _tests_table(text: str, lost: list[str]) -> list[dict[str, str]]:
    """Read a table of tests; a row that does not fit the columns gives a reason in `lost`."""
    table = read_tests_csv(text)
    lost += table.lost
    return table.rows


def _file_content(value: Any) -> Any:
    """Return the content of a file inside a context; None if the file is only named.

    A value that is not a file is returned unchanged.
    """
    is_file = isinstance(value, dict) and bool({"filename", "content"} & set(value))
    return value.get("content") if is_file else value


def _part_rows(content: dict[str, Any], key: str, lost: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a part of the context; empty if it is missing or blank.

    Raises:
        ConfigurationError: for a text that cannot be parsed.
        InputError: for anything but a list of objects.
    """
    value = _file_content(content.get(key))
    if isinstance(value, str):
        value = _parsed_part(value, key, lost) if value.strip() else None
    return [] if value is None else files.rows_of(value, key)


def _parsed_part(text: str, key: str, lost: list[str]) -> Any:
    """Parse the text of a context's part: JSON, or for `tests` also CSV.

    Raises:
        ConfigurationError: for a text that is not JSON.
    """
    if key == "tests" and text.lstrip()[:1] not in ("[", "{"):
        return _tests_table(text, lost)
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError("context", key, f"cannot be read: {error}") from error


def _part_lines(content: dict[str, Any], key: str) -> list[str]:
    """Return the lines of a part of the context; empty if it is missing.

    A list is taken as it is. A text loses bullets, numbers, headings, comments and empty lines.
    """
    value = _file_content(content.get(key))
    if isinstance(value, list):
        return [files.text_of({key: item}, key) for item in value]
    return lines_in(value) if isinstance(value, str) else []


def _prompt_file(content: dict[str, Any]) -> tuple[str, str] | None:
    """Return name and content of the prompt in the context; None without one.

    The name is made safe; it is `prompt.prompty` if there is none, and gets the suffix `.prompty`
    unless it has that of a prompt file.
    """
    given = content.get("prompt")
    if not isinstance(given, dict) or not isinstance(given.get("content"), str):
        return None
    name = _safe_name(given.get("filename")) or "prompt.prompty"
    known = is_github_file(name) or name.endswith(".prompty")
    return name if known else f"{name}.prompty", given["content"]


def _safe_name(given: object) -> str:
    """Return a file name from a context without its folders, and with unsafe characters as `_`.

    It has at most 100 characters, the last ones, and no dot in front; empty for no name.
    """
    name = re.sub(r"[^\w. -]", "_", Path(str(given or "")).name)
    return name[-100:].lstrip(".")


def _metric_files(content: dict[str, Any], lost: list[str]) -> dict[str, str]:
    """Return the texts of a context's metric files by their names, which are made safe.

    A file whose name does not end in `.metric.prompty` is left out, with a reason in `lost`; one
    without a text is ignored.
    """
    given, texts = content.get("metrics"), dict[str, str]()
    for item in given if isinstance(given, list) else []:
        if isinstance(item, dict) and isinstance(item.get("content"), str):
            name = _safe_name(item.get("filename"))
            if name.endswith(".metric.prompty"):
                texts[name] = item["content"]
            else:
                lost.append(f"metric {name!r}: its name does not end in .metric.prompty")
    return texts


def _prompts_in(folder: Path) -> list[Path]:
    """List the `.prompty` files of a folder in the order of their names, without metric files."""
    return [
        file for file in sorted(folder.glob("*.prompty")) if ".metric." not in file.name.lower()
    ]
