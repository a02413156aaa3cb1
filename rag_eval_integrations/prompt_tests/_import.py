"""Import of PromptPex's files into a folder of ours: `rag-eval prompt-tests import`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.models._reading import loads
from rag_eval_integrations.prompt_tests import upstream as files
from rag_eval_integrations.prompt_tests._replies import lines_in, read_tests_csv
from rag_eval_integrations.prompt_tests.project import Project, Tell, Workspace
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
from rag_eval_integrations.prompt_tests.upstream import (
    Row,
    checks_from_rows,
    checks_to_rows,
    flag_of,
    from_test_rows,
    inverse_by_rule,
    inverse_lines,
    make_spec,
    results_from_rows,
    results_to_rows,
    rows_of,
    rule_checks_from_rows,
    rule_checks_to_rows,
    text_of,
    to_test_rows,
    whole_of,
)


@dataclass(frozen=True)
class Imported:
    """The content of PromptPex's files."""

    prompt: PromptUnderTest
    spec: Spec
    prompt_file: tuple[str, str] | None = None
    """Name and text of the prompt's file, if it is inside the context; else None."""
    tests: list[PromptTest] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    checks: list[TestCheck] = field(default_factory=list)
    rule_checks: list[RuleCheck] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Reasons why rows could not be used, one sentence per row."""
    metric_files: dict[str, str] = field(default_factory=dict)
    """Texts of the metric files inside the context, by name."""
    cut: int | None = None
    """Number of rules, and of inverse rules, that PromptPex numbered; None for all."""


def read_upstream(
    path: str | Path, prompt: object | None = None, *, max_rules: int | None = None
) -> Imported:
    """Read `promptpex_context.json`, a `.prompt.yml`, or a folder with `tests.json` and so on.

    Files are JSON or CSV, possibly with `.gz`; any of them may be missing in a folder. A context is
    one object whose keys are the files; what a folder lacks is taken from the context in it. All
    rules are kept: PromptPex may have numbered only the first ones of each kind, so these have the
    first numbers.

    Args:
        path: the context file, a single file of tests or results, the folder, or a `.prompt.yml`
            of GitHub Models, whose `testData` are the tests.
        prompt: the prompt under test; by default the context's own, or the only `.prompty` in the
            folder.
        max_rules: number to which PromptPex cut the rules, and the inverse rules, before it
            numbered them (20 in the data of its paper); by default the context's option, or else
            what the tests' own directions tell.

    Raises:
        ConfigurationError: when there is nothing to read, no prompt or several, or a file that
            cannot be parsed.
        InputError: when a file is not a list of objects.
        OSError: when a file cannot be read.
    """
    if max_rules is not None and max_rules < 0:  # a slice would leave out the last ones
        raise ConfigurationError("max_rules", max_rules, "use a whole number from 0")
    path = Path(path)
    if is_github_file(path.name):
        return _read_github(path)
    content = _folder(path) if path.is_dir() else _context(path)
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
    lost: list[str] = []
    if max_rules is None:
        options = content.get("options")
        given = whole_of(options, "maxRules") if isinstance(options, dict) else None
        max_rules = None if given is None or given < 0 else given
    rows = _rows(content, "tests") or _rows(content, "promptPexTests")
    direct, inverse = _lines(content, "rules"), _inverse(content)
    if max_rules is None:
        max_rules = _cut_of(rows, len(direct))
    elif max_rules >= max(len(direct), len(inverse)):
        max_rules = None
    spec = make_spec(
        " ".join(_lines(content, "intent")), _lines(content, "inputSpec"), direct, inverse,
        cut=max_rules,
    )  # fmt: skip
    tests = from_test_rows(rows, under_test, spec, lost)
    # Expected outputs are listed with the results, but their model is not under test.
    outputs = [row for row in _rows(content, "testOutputs") if not row.get("isGroundtruth")]
    results = results_from_rows(outputs, under_test, spec, tests, lost)
    checks = checks_from_rows(_rows(content, "testEvals"), under_test, spec, tests)
    rules = rule_checks_from_rows(_rows(content, "ruleEvals"))
    metrics = _metric_files(content, lost) if whole else {}
    return Imported(
        under_test, spec, prompt_file, tests, results, checks, rules, lost, metrics, max_rules
    )


def _read_github(path: Path) -> Imported:
    """Read a `.prompt.yml`: our own export, PromptPex's, or anybody's."""
    prompt, lost, rows = PromptUnderTest.of(path), list[str](), []
    given = prompt.head.get("testData")
    for row in given if isinstance(given, list) else []:
        if isinstance(row, dict):
            inputs = {name: row[name] for name in prompt.inputs if name in row}
            expected = None if "groundtruth" in row else row.get("expected")
            rows.append({"expectedoutput": expected, **row, "inputs": inputs})
    tests = from_test_rows(rows, prompt, Spec(), lost)
    return Imported(prompt, Spec(), None, tests, lost=lost)


def _inverse(content: dict[str, Any]) -> dict[int, str] | list[str]:
    """Read inverse rules; ours are numbered by their rules if some rules have none."""
    text = _unwrapped(content.get("inverseRules"))
    if isinstance(text, str):
        rules = len(_lines(content, "rules"))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        inverse = inverse_by_rule(lines, rules)
        if isinstance(inverse, dict) and inverse and max(inverse) <= rules:
            return inverse
    return _lines(content, "inverseRules")


def _cut_of(rows: Sequence[Row], rules: int) -> int | None:
    """Tell from the tests' directions to which number the rules were cut; None if to none.

    A cut lies between the largest number of a rule that is not inverse, and the smallest of one
    that is. Where rules without tests leave several, as many rules as inverse rules were taken.
    """
    numbers: dict[bool, set[int]] = {True: set(), False: set()}
    for row in rows:
        number, inverse = whole_of(row, "ruleid"), flag_of(row, "inverse")
        if number is not None and inverse is not None and not flag_of(row, "baseline"):
            numbers[inverse].add(number)
    if not numbers[True]:
        return None
    least, most = max(numbers[False], default=0), min(numbers[True]) - 1
    if least > most or most >= rules:
        return None  # the directions do not follow from the numbers, or nothing was cut
    half = -(-max(numbers[True]) // 2)
    return min(max(half, least), most)


_FILES = {
    "intent": files.INTENT,
    "inputSpec": files.INPUT_SPEC,
    "rules": files.RULES,
    "inverseRules": files.INVERSE_RULES,
    "tests": "tests",
    "testOutputs": "test_results",
    "testEvals": "test_evals",
    "ruleEvals": "rule_evals",
}


def _folder(path: Path) -> dict[str, Any]:
    """Read the files of a PromptPex folder."""
    context = path / files.CONTEXT
    content = dict(_context(context)) if context.is_file() else {}
    for key, name in _FILES.items():
        for suffix in ("",) if name.endswith(".txt") else (".json", ".json.gz", ".csv", ".csv.gz"):
            file = path / f"{name}{suffix}"
            if file.is_file():
                content[key] = _read(file)
                break
    if not content:
        raise ConfigurationError("path", str(path), "contains none of PromptPex's files")
    return content


def _context(path: Path) -> dict[str, Any]:
    """Read a context file, or a file of tests or results alone."""
    content = _read(path)
    if isinstance(content, list):  # a tests or results file alone
        rows = rows_of(content, str(path))
        return {"testOutputs" if rows and "output" in rows[0] else "tests": rows}
    if not isinstance(content, dict):
        raise ConfigurationError("path", str(path), "should be an object, or a list of objects")
    return content


def _read(path: Path) -> Any:
    return read_content(path, "path", csv_rows=_csv)


def _csv(text: str) -> list[dict[str, str]]:
    """Read CSV rows, also as a model writes them."""
    first = text.lstrip().partition("\n")[0]
    if first.replace(" ", "").startswith(("ruleid,testid", '"ruleid","testid"')):
        return read_tests_csv(text).rows
    return csv_rows_of(text)


def _unwrapped(value: Any) -> Any:
    """Return the text of a file inside a context; a file that PromptPex only names has none."""
    is_file = isinstance(value, dict) and bool({"filename", "content"} & set(value))
    return value.get("content") if is_file else value


def _rows(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the rows of a part of the context."""
    value = _unwrapped(content.get(key))
    if isinstance(value, str):
        value = _parsed(value, key) if value.strip() else None
    return [] if value is None else rows_of(value, key)


def _parsed(text: str, key: str) -> Any:
    """Parse a text that holds JSON, or tests as CSV."""
    if key == "tests" and text.lstrip()[:1] not in ("[", "{"):
        return read_tests_csv(text).rows
    try:
        return loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError("context", key, f"cannot be read: {error}") from error


def _lines(content: dict[str, Any], key: str) -> list[str]:
    """Return the lines of a text of the context."""
    value = _unwrapped(content.get(key))
    if isinstance(value, list):
        return [text_of({key: item}, key) for item in value]
    return lines_in(value) if isinstance(value, str) else []


def _prompt_file(content: dict[str, Any]) -> tuple[str, str] | None:
    """Return name and content of the prompt in the context; None without one."""
    given = content.get("prompt")
    if not isinstance(given, dict) or not isinstance(given.get("content"), str):
        return None
    name = _safe_name(given.get("filename")) or "prompt.prompty"
    known = is_github_file(name) or name.endswith(".prompty")
    return name if known else f"{name}.prompty", given["content"]


def _safe_name(given: object) -> str:
    """Drop folders and characters that are unsafe: the name comes from outside."""
    name = re.sub(r"[^\w. -]", "_", Path(str(given or "")).name)
    return name[-100:].lstrip(".")


def _metric_files(content: dict[str, Any], lost: list[str]) -> dict[str, str]:
    """Return the texts of the metric files inside a context by their names."""
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
    """List the prompt files of a folder, without metrics."""
    return [
        file for file in sorted(folder.glob("*.prompty")) if ".metric." not in file.name.lower()
    ]


def write_imported(imported: Imported, out: Path, tell: Tell) -> None:
    """Make a folder of what was read, for `run`, `evaluate` and `report`.

    Args:
        imported: what was read.
        out: the folder.
        tell: receives warnings about the prompt, one sentence each.

    Raises:
        ConfigurationError: for a folder of another prompt.
        OSError: when the folder cannot be written.
    """
    path = Path(imported.prompt.source)
    if imported.prompt_file is not None:
        name, text = imported.prompt_file
        path = Workspace(out).path(name)
        Workspace(out).write(name, text)
    folder = Project.create(path, out, tell).workspace
    spec = imported.spec
    folder.write_lines(files.INTENT, [spec.intent] if spec.intent else [], "not known")
    folder.write_lines(files.INPUT_SPEC, spec.input_spec, "not known")
    folder.write_lines(files.RULES, [rule.text for rule in spec.output_rules], "none")
    folder.write_lines(files.INVERSE_RULES, inverse_lines(spec), "none")
    if imported.cut is not None:
        folder.note(rulesNumberedFirst=imported.cut)
    for name, text in imported.metric_files.items():
        folder.write(name, text)
    folder.write_json(files.TESTS, to_test_rows(imported.tests))
    if imported.results:
        folder.write_json(files.RESULTS, results_to_rows(imported.results))
    if imported.checks:
        folder.write_json(files.TEST_EVALS, checks_to_rows(imported.checks))
    if imported.rule_checks:
        rows = rule_checks_to_rows(imported.rule_checks, imported.prompt.id)
        folder.write_json(files.RULE_EVALS, rows)


@contextmanager
def new_folder(out: Path, sources: Sequence[Path], *, overwrite: bool) -> Iterator[list[Path]]:
    """Make room for a folder; on an exception, an earlier one is where it was.

    Args:
        out: the folder. An empty one counts as absent.
        sources: folders that are read, and may not be replaced.
        overwrite: rename an earlier folder to `out`.bak, and remove it at the end if it holds
            nothing but files of an import: replies of models were paid for.

    Yields:
        A list, which at the end has the earlier folder's new path if it was not removed.

    Raises:
        ConfigurationError: when the folder exists and may not be replaced.
        OSError: when it cannot be renamed.
    """
    folder, backups = Path(os.path.realpath(out)), list[Path]()
    if not folder.is_dir() or not any(folder.iterdir()):
        yield backups  # anything but a folder is refused by `Workspace`
        return
    backup = _target.backup_of(folder)
    if any(source.resolve().is_relative_to(folder) for source in sources):
        raise ConfigurationError("--out", str(out), "is the folder that is imported")
    if not overwrite:
        why = "is not empty; use another folder, or --overwrite to replace it"
        raise ConfigurationError("--out", str(out), why)
    if os.path.lexists(backup):
        why = "is there and is kept; move it away before you overwrite a folder"
        raise ConfigurationError("--out", str(backup), why)
    folder.rename(backup)
    try:
        folder.mkdir()
        yield backups
    except BaseException:
        shutil.rmtree(folder)
        backup.rename(folder)
        raise
    if {path.name for path in backup.iterdir()} <= {path.name for path in folder.iterdir()}:
        shutil.rmtree(backup)
    else:
        backups.append(backup)
