"""The folder of a run: every stage's file, in upstream's names, editable by hand.

A file that is there and not empty is the stage's result: delete it to have the stage done again.
Files are written beside and renamed into place, so that none is ever half.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests._cleaning import NUMBER, one_line
from rag_eval_integrations.prompt_tests.journal import Journal
from rag_eval_integrations.prompt_tests.records import Rule, Spec

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
JOURNAL = "replies.jsonl"


class Workspace:
    """A folder of stage files.

    Args:
        folder: created when the first file is written.

    Raises:
        ConfigurationError: the path is a file.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigurationError("folder", str(folder), "is a file")

    def path(self, name: str) -> Path:
        """Where a stage's file is."""
        return self.folder / name

    def journal(self) -> Journal:
        """Open the record of replies."""
        return Journal(self.path(JOURNAL))

    def has(self, name: str) -> bool:
        """Whether a stage is done: its file is there and not blank."""
        path = self.path(name)
        return path.is_file() and bool(path.read_bytes().strip())

    def read(self, name: str) -> str:
        """Read a file's text.

        Raises:
            ConfigurationError: not UTF-8.
            OSError: it cannot be read.
        """
        try:
            return self.path(name).read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigurationError("file", str(self.path(name)), "not UTF-8") from error

    def write(self, name: str, text: str) -> None:
        """Write a file, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(name)
        unfinished = path.with_name(f"{name}.unfinished")
        unfinished.write_bytes(text.encode("utf-8", "surrogatepass"))
        os.replace(unfinished, path)

    def read_json(self, name: str) -> Any:
        """Read a file's JSON.

        Raises:
            ConfigurationError: not JSON; says the line.
            OSError: it cannot be read.
        """
        try:
            return json.loads(self.read(name))
        except json.JSONDecodeError as error:
            why = f"line {error.lineno}: not JSON: {error.msg}"
            raise ConfigurationError("file", str(self.path(name)), why) from error
        except (RecursionError, ValueError) as error:
            if isinstance(error, ConfigurationError):
                raise
            raise ConfigurationError("file", str(self.path(name)), f"not JSON: {error}") from error

    def write_json(self, name: str, value: Any) -> None:
        """Write JSON that a person can edit."""
        self.write(name, json.dumps(value, ensure_ascii=True, indent=1) + "\n")

    def read_lines(self, name: str) -> tuple[str, ...]:
        """Read one statement a line; lines that are empty or begin with # are none.

        Raises:
            OSError: it cannot be read.
        """
        lines = (line.strip() for line in self.read(name).splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))

    def write_lines(self, name: str, lines: Sequence[str], otherwise: str) -> None:
        """Write one statement a line; `otherwise` is a comment for a file without any."""
        written = [one_line(line) for line in lines] or [f"# {otherwise}"]
        self.write(name, "\n".join(written) + "\n")

    def spec(self) -> Spec:
        """Read what the stages found out; what was not asked yet is empty.

        Raises:
            ConfigurationError: a file that cannot be read as what it should hold.
        """
        intent = " ".join(self.read_lines(INTENT)) if self.has(INTENT) else ""
        input_spec = self.read_lines(INPUT_SPEC) if self.has(INPUT_SPEC) else ()
        rules = self.read_lines(RULES) if self.has(RULES) else ()
        inverse = self.read_lines(INVERSE_RULES) if self.has(INVERSE_RULES) else ()
        return make_spec(intent, input_spec, rules, inverse_by_rule(inverse, len(rules)))


def inverse_by_rule(lines: Sequence[str], rules: int) -> dict[int, str] | list[str]:
    """Read lines of inverse rules: in order, or with their rule's number in front.

    Numbers are written where a rule has no inverse, so that the others keep theirs.
    """
    matches = [NUMBER.match(line) for line in lines]
    if lines and all(matches) and len(lines) < rules:
        numbered = [(match, line) for match, line in zip(matches, lines, strict=True) if match]
        return {int(match[1]): line[match.end() :] for match, line in numbered}
    return list(lines)


def make_spec(
    intent: str,
    input_spec: Sequence[str],
    rules: Sequence[str],
    inverse: dict[int, str] | Sequence[str],
) -> Spec:
    """Number rules from 1, then inverse rules after them.

    Args:
        intent: the purpose.
        input_spec: rules of valid inputs.
        rules: output rules.
        inverse: by the number of their rule, or in its order (as many as there are).
    """
    direct = [Rule(id=number, text=text) for number, text in enumerate(rules, start=1)]
    if not isinstance(inverse, dict):
        matched = len(inverse) == len(rules)
        pairs = [(i if matched else None, text) for i, text in enumerate(inverse, start=1)]
    else:
        pairs = list(inverse.items())
    opposite = [
        Rule(id=len(direct) + number, text=text, inverse=True, of_rule=of_rule)
        for number, (of_rule, text) in enumerate(pairs, start=1)
    ]
    return Spec(intent=intent, input_spec=tuple(input_spec), rules=(*direct, *opposite))
