"""The folder of a prompt's tests: one file per stage, named as in PromptPex, editable by hand.

A file that exists and is not blank is the result of its stage; delete it to run the stage again.
Files are written under another name and renamed, so that none is ever incomplete. They are made for
their owner only; links are followed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests._replies import NUMBER, one_line
from rag_eval_integrations.prompt_tests._requests import Journal
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, read_content
from rag_eval_integrations.prompt_tests.records import PromptTest, Rule, Spec
from rag_eval_integrations.prompt_tests.upstream import from_test_rows, rows_of, whole_of

INTENT = "intent.txt"
INPUT_SPEC = "input_spec.txt"
RULES = "rules.txt"
INVERSE_RULES = "inverse_rules.txt"
TESTS = "tests.json"
BASELINE = "baseline_tests.txt"
REVIEW = "test_collection_review.md"
GROUNDTRUTH = "test_groundtruth.json"
RESULTS = "test_results.json"
TEST_EVALS = "test_evals.json"
RULE_EVALS = "rule_evals.json"
CONTEXT = "promptpex_context.json"
PROMPT = "prompt.json"
JOURNAL = "replies.sqlite"


class Workspace:
    """A folder of stage files.

    Args:
        folder: the folder; created when the first file is written.

    Raises:
        ConfigurationError: when the path is a file.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            what = _target.kind(self.folder.stat().st_mode)
            raise ConfigurationError("folder", str(folder), f"is {what}")
        self._journal: Journal | None = None

    def path(self, name: str) -> Path:
        """Return the path of a file in the folder."""
        return self.folder / name

    def journal(self) -> Journal:
        """Open the journal of replies, once for the folder; close it at the end of a stage."""
        if self._journal is None:
            self._journal = Journal(self.path(JOURNAL))
        return self._journal

    def has(self, name: str) -> bool:
        """Return whether a stage is done: its file exists and is not blank."""
        path = self.path(name)
        return path.is_file() and bool(path.read_bytes().strip())

    def read(self, name: str) -> Any:
        """Read a file: the JSON of a `.json`, otherwise its text.

        Raises:
            ConfigurationError: when the file is neither; names the line of broken JSON.
            OSError: when the file cannot be read.
        """
        return read_content(self.path(name), "file")

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file, either completely or not at all.

        Raises:
            ConfigurationError: when something else than a regular file has the name.
            OSError: when the file cannot be written.
        """
        if isinstance(content, str):
            content = content.encode("utf-8", "surrogatepass")
        _target.make_folder(self.folder)
        with _target.replacing(_target.resolved(self.path(name), "file")) as stream:
            stream.write(content)

    def write_json(self, name: str, value: Any) -> None:
        """Write JSON, indented so that a person can edit it."""
        self.write(name, json.dumps(value, ensure_ascii=True, indent=1) + "\n")

    def read_lines(self, name: str) -> tuple[str, ...]:
        """Read one statement per line, without empty lines and those with # in front; () if absent.

        Raises:
            ConfigurationError: when the file is not UTF-8.
            OSError: when the file cannot be read.
        """
        text = self.read(name) if self.has(name) else ""
        lines = (line.strip() for line in text.splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))

    def write_lines(self, name: str, lines: Sequence[str], otherwise: str) -> None:
        """Write one statement per line.

        Args:
            name: the file.
            lines: the statements.
            otherwise: the comment that is written if there are no statements.
        """
        written = [one_line(line) for line in lines] or [f"# {otherwise}"]
        self.write(name, "\n".join(written) + "\n")

    def spec(self) -> Spec:
        """Read the specification from the stages' files; parts without a file are empty.

        Raises:
            ConfigurationError: when a file is not UTF-8.
        """
        rules = self.read_lines(RULES)
        return make_spec(
            " ".join(self.read_lines(INTENT)), self.read_lines(INPUT_SPEC), rules,
            inverse_by_rule(self.read_lines(INVERSE_RULES), len(rules)), cut=self.cut(),
        )  # fmt: skip

    def cut(self) -> int | None:
        """Return the number of rules that PromptPex numbered first in an import; None for all."""
        cut = whole_of(self.about(), "rulesNumberedFirst")
        return None if cut is None or cut < 0 else cut

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Read a file's list of objects; empty if there is no file.

        Raises:
            ConfigurationError: when the file is not JSON.
            InputError: when it is not a list of objects.
            OSError: when it cannot be read.
        """
        return rows_of(self.read(name), name) if self.has(name) else []

    def tests(self, prompt: PromptUnderTest, tell: Callable[[str], None]) -> list[PromptTest]:
        """Read the tests; rows that cannot be used are reported and left out.

        Args:
            prompt: the prompt under test.
            tell: receives one sentence per row that cannot be used.

        Raises:
            ConfigurationError: when the file is not JSON.
            InputError: when the file is not a list of objects.
            OSError: when the file cannot be read.
        """
        lost: list[str] = []
        tests = from_test_rows(self.rows(TESTS), prompt, self.spec(), lost)
        for row in lost:
            tell(f"{self.path(TESTS)}: {row}")
        return tests

    def about(self) -> dict[str, Any]:
        """Read what is known of the folder's prompt; empty in a new folder.

        Raises:
            ConfigurationError: when the file is not a JSON object.
        """
        about = self.read(PROMPT) if self.has(PROMPT) else {}
        if not isinstance(about, dict):
            path = str(self.path(PROMPT))
            raise ConfigurationError("file", path, "should be an object with `file` and `source`")
        return about

    def note(self, **known: Any) -> None:
        """Write what is known of the folder's prompt, besides what was written before."""
        self.write_json(PROMPT, {**self.about(), **known})


def inverse_by_rule(lines: Sequence[str], rules: int) -> dict[int, str] | list[str]:
    """Read inverse rules: in the order of the rules, or by the number at the start of each line.

    Lines are numbered if some rules have no inverse, so that the others keep their rules.

    Args:
        lines: lines of the file.
        rules: number of output rules.
    """
    matches = [NUMBER.match(line) for line in lines]
    if lines and all(matches) and len(lines) < rules:
        numbered = [(match, line) for match, line in zip(matches, lines, strict=True) if match]
        return {int(match[1]): line[match.end() :] for match, line in numbered}
    return list(lines)


def inverse_lines(spec: Spec) -> list[str]:
    """Write inverse rules so that `inverse_by_rule` finds the same rules for them."""
    inverse = spec.inverse_rules
    if len(inverse) < len(spec.output_rules) and all(rule.of_rule is not None for rule in inverse):
        places = {rule.id: place for place, rule in enumerate(spec.output_rules, start=1)}
        return [f"{places.get(rule.of_rule or 0, rule.of_rule)}. {rule.text}" for rule in inverse]
    return [rule.text for rule in inverse]


def make_spec(
    intent: str,
    input_spec: Sequence[str],
    rules: Sequence[str],
    inverse: dict[int, str] | Sequence[str],
    *,
    cut: int | None = None,
) -> Spec:
    """Make a specification: rules are numbered from 1, and inverse rules after them.

    Args:
        intent: the prompt's purpose.
        input_spec: rules for valid inputs.
        rules: output rules.
        inverse: inverse rules, by the number of their rule or in the order of the rules. In a list
            of another length it is not known which rule each contradicts.
        cut: number of rules, and of inverse rules, that are numbered first, in PromptPex's way; the
            others get the numbers after these. None for all.
    """
    first, firsts = (len(texts) if cut is None else min(cut, len(texts))
                     for texts in (rules, inverse))  # fmt: skip
    direct = [
        Rule(id=number if number <= first else number + firsts, text=text)
        for number, text in enumerate(rules, start=1)
    ]
    pairs: Iterable[tuple[int | None, str]]
    if isinstance(inverse, dict):
        pairs = inverse.items()
    else:
        matched = len(inverse) == len(rules)
        pairs = ((i if matched else None, text) for i, text in enumerate(inverse, start=1))
    opposite = [
        Rule(
            id=number + (first if number <= firsts else len(rules)),
            text=text,
            inverse=True,
            of_rule=direct[of - 1].id if of is not None and 0 < of <= len(direct) else of,
        )
        for number, (of, text) in enumerate(pairs, start=1)
    ]
    return Spec(intent=intent, input_spec=tuple(input_spec), rules=(*direct, *opposite))
