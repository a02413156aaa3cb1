"""`Workspace`: the files of a prompt's tests in their folder.

One file per stage, named as in PromptPex, editable by hand. A file that exists and is not blank is
the result of its stage; delete it to run the stage again. Files are written under another name and
renamed, so that none is ever incomplete. They are made for their owner only; links are followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rag_eval_integrations import _target
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.prompt_tests import _upstream as files
from rag_eval_integrations.prompt_tests._replies import ESCAPED, one_line
from rag_eval_integrations.prompt_tests._requests import Journal
from rag_eval_integrations.prompt_tests._spec_lines import inverse_by_rule, make_spec
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest, read_content
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec

Tell = Callable[[str], None]


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
        """Return the folder's journal of replies; the caller closes it after a stage."""
        if self._journal is None:
            self._journal = Journal(self.path(files.JOURNAL))
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

        The folder is created, and a link is followed to the file that it leads to.

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
        """Write JSON in ASCII, indented so that a person can edit it."""
        self.write(name, json.dumps(value, ensure_ascii=True, indent=1) + "\n")

    def read_lines(self, name: str) -> tuple[str, ...]:
        """Read one statement per line, without empty lines and those with # in front; () if absent.

        Raises:
            ConfigurationError: when the file is not UTF-8.
            OSError: when the file cannot be read.
        """
        text = self.read(name) if self.has(name) else ""
        lines = (line.strip() for line in text.splitlines())
        statements = (line for line in lines if line and not line.startswith("#"))
        return tuple(ESCAPED.sub("", line) for line in statements)

    def write_lines(self, name: str, lines: Sequence[str], otherwise: str) -> None:
        """Write one statement per line.

        White space inside a statement becomes single spaces; one that begins with #, which would
        be a comment, gets a backslash in front, which is not read.

        Args:
            name: the file.
            lines: the statements.
            otherwise: the comment that is written if there are no statements.
        """
        statements = [re.sub(r"^(?=\\*#)", r"\\", one_line(line)) for line in lines]
        self.write(name, "\n".join(statements or [f"# {otherwise}"]) + "\n")

    def spec(self) -> Spec:
        """Read the specification from the stages' files; parts without a file are empty.

        Raises:
            ConfigurationError: when a file is not UTF-8.
        """
        rules = self.read_lines(files.RULES)
        return make_spec(
            " ".join(self.read_lines(files.INTENT)),
            self.read_lines(files.INPUT_SPEC),
            rules,
            inverse_by_rule(self.read_lines(files.INVERSE_RULES), len(rules)),
            cut=self.cut(),
        )

    def cut(self) -> int | None:
        """Return the number of rules that PromptPex numbered first in an import; None for all."""
        cut = files.whole_of(self.about(), "rulesNumberedFirst")
        return None if cut is None or cut < 0 else cut

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Read a file's list of objects; empty if there is no file.

        Raises:
            ConfigurationError: when the file is not JSON.
            InputError: when it is not a list of objects.
            OSError: when it cannot be read.
        """
        return files.rows_of(self.read(name), name) if self.has(name) else []

    def tests(self, prompt: PromptUnderTest, tell: Tell) -> list[PromptTest]:
        """Read the tests; rows that cannot be used are reported and left out.

        Empty if there is no file.

        Args:
            prompt: the prompt under test.
            tell: receives one sentence per row that cannot be used.

        Raises:
            ConfigurationError: when the file is not JSON.
            InputError: when the file is not a list of objects.
            OSError: when the file cannot be read.
        """
        lost: list[str] = []
        tests = files.from_test_rows(self.rows(files.TESTS), prompt, self.spec(), lost)
        for row in lost:
            tell(f"{self.path(files.TESTS)}: {row}")
        return tests

    def about(self) -> dict[str, Any]:
        """Read what is known of the folder's prompt; empty in a new folder.

        Raises:
            ConfigurationError: when the file is not a JSON object.
        """
        about = self.read(files.PROMPT) if self.has(files.PROMPT) else {}
        if not isinstance(about, dict):
            path = str(self.path(files.PROMPT))
            raise ConfigurationError("file", path, "should be an object with `file` and `source`")
        return about

    def note(self, **known: Any) -> None:
        """Write what is known of the folder's prompt, besides what was written before.

        A new value replaces an earlier one with the same name.
        """
        self.write_json(files.PROMPT, {**self.about(), **known})
