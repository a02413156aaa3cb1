"""Settings of a project: options of all commands, in a file or in the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_eval_integrations.errors import ConfigurationError, safe_text

FILE = "rag-eval.toml"
"""The file of settings; in a `pyproject.toml` they are in `[tool.rag-eval]`."""
ENVIRONMENT = {
    "judge": "RAG_EVAL_JUDGE",
    "base-url": "RAG_EVAL_BASE_URL",
    "store": "RAG_EVAL_STORE",
}
"""Options that may stand in an environment variable, which precedes the file."""

_PER_COMMAND = frozenset(
    {
        "call",
        "dry-run",
        "id",
        "limit",
        "model",
        "older-than",
        "once",
        "since",
        "where",
    }
)
"""Options that say what a command is about; in a file they would act where nobody typed them."""
_OF_PROMPT_TESTS = ("Judge", "Requests and limits")
"""Sections of prompt tests' options that mean what they mean elsewhere."""


@dataclass(frozen=True)
class Settings:
    """The settings that apply in the working folder, and their file."""

    file: str | None = None
    """The file, and the table in it."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Option without dashes in front → value."""

    def error(self, key: str, why: str) -> ConfigurationError:
        """Return the error of a setting that cannot be used."""
        return ConfigurationError("settings", key, f"{self.file}: `{key}` {why}", missing=True)


def read_settings() -> Settings:
    """Read the settings: the nearest `rag-eval.toml`, else the nearest table in a `pyproject.toml`.

    Searches from the working folder up to the root of its repository; without a repository in the
    working folder alone.

    Raises:
        ConfigurationError: a file is not TOML, or a folder has both.
    """
    folders = list(_folders(Path.cwd()))
    for folder in folders:
        own, project = folder / FILE, _table(folder / "pyproject.toml")
        if os.path.isfile(own):  # False also in a folder that may not be read
            if project is not None:
                why = f"{own} and [tool.rag-eval] in {folder / 'pyproject.toml'}: keep one of them"
                raise ConfigurationError("settings", str(own), why, missing=True)
            return Settings(str(own), _toml(own))
    for folder in folders:
        file = folder / "pyproject.toml"
        if (project := _table(file)) is not None:
            return Settings(f"[tool.rag-eval] in {file}", project)
    return Settings()


def _folders(working: Path) -> Iterator[Path]:
    """Yield the folders that may hold settings, from the working folder up to the repository."""
    above = (working, *working.parents)
    roots = [number for number, folder in enumerate(above) if os.path.exists(folder / ".git")]
    yield from above[: roots[0] + 1 if roots else 1]


def _table(file: Path) -> dict[str, Any] | None:
    """Return `[tool.rag-eval]` of a `pyproject.toml`; None without one."""
    tools = _toml(file).get("tool") if os.path.isfile(file) else None
    table = tools.get("rag-eval") if isinstance(tools, dict) else None
    return table if isinstance(table, dict) else None


def _toml(file: Path) -> dict[str, Any]:
    """Parse a TOML file; one that cannot be parsed is an error of the settings."""
    import tomllib  # noqa: PLC0415 -- most commands have no file

    try:
        return tomllib.loads(file.read_text("utf-8"))
    except ValueError as error:  # not TOML, or not UTF-8
        why = f"{file}: is not TOML: {error}"
        raise ConfigurationError("settings", str(file), why, missing=True) from None


# --- What settings a command has


def defaults_of(settings: Settings, command: Any, context: Any) -> dict[str, Any]:
    """Return the settings that apply to a command, by parameter.

    Args:
        settings: the settings that hold.
        command: the command, with its `params`.
        context: its context.

    Raises:
        ConfigurationError: a setting is not an option of any command, or has a value of another
            type.
    """
    if not settings.values:
        return {}
    known = set().union(*map(_flags, _commands(context.find_root().command)))
    for key in settings.values:
        if key not in known:
            raise settings.error(key, _unknown_setting(key, known))
    flags = _flags(command, prompt_tests="prompt-tests" in context.command_path.split())
    defaults: dict[str, Any] = {}
    for key in settings.values.keys() & flags.keys():
        parameter, value = flags[key], settings.values[key]
        is_nested = isinstance(value, dict if parameter.multiple else dict | list)
        if parameter.multiple and not isinstance(value, list):
            value = [value]
        if is_nested or isinstance(value, bool) != bool(parameter.is_flag):
            kind = "true or false" if parameter.is_flag else "a text or a number"
            raise settings.error(key, f"is {safe_text(value)}; use {kind}")
        defaults[parameter.name] = value
    return defaults


def _commands(group: Any) -> Iterator[Any]:
    """Yield the commands whose options may be settings."""
    for name, command in group.commands.items():
        if name == "prompt-tests":  # has no settings of its own
            continue
        if hasattr(command, "commands"):
            yield from _commands(command)
        else:
            yield command


def _flags(command: Any, prompt_tests: bool = False) -> dict[str, Any]:
    """Return the options of a command that may be settings, by name."""
    flags = {}
    for parameter in command.params:
        section = getattr(parameter, "rich_help_panel", None)
        name = parameter.opts[0].removeprefix("--")
        if parameter.param_type_name != "option" or section in {None, "Output"}:
            continue
        if name not in _PER_COMMAND and (not prompt_tests or section in _OF_PROMPT_TESTS):
            flags[name] = parameter
    return flags


def _unknown_setting(key: str, known: set[str]) -> str:
    """Say that a key is not a setting, with the nearest one that is."""
    from difflib import get_close_matches  # noqa: PLC0415 -- for a mistake only

    near = get_close_matches(key.replace("_", "-").removeprefix("--"), sorted(known), 1, 0.75)
    if near:
        return f"is not a setting; did you mean `{near[0]}`?"
    return "is not an option that may be a setting; `rag-eval run --help` has their names"


# --- Where each value comes from


def origins(typed: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return each setting that applies, with its value and where that comes from.

    Args:
        typed: the options of the command that asks; what was typed precedes the settings.
    """
    settings = read_settings()
    environment = {
        key: os.environ[name] for key, name in ENVIRONMENT.items() if os.environ.get(name)
    }
    rows = []
    for key in sorted({*settings.values, *environment}):
        value = environment.get(key, settings.values.get(key))
        source = ENVIRONMENT[key] if key in environment else str(settings.file)
        own = typed.get(key.replace("-", "_"))
        if own is not None and own != value:
            value, source = own, f"the command line, in place of {source}"
        rows.append((key, _without_secrets(key, value), source))
    return rows


def _without_secrets(key: str, value: object) -> str:
    """Return the value of a setting as text, with secrets left out."""
    if key == "extra-body":
        return "…"
    if key == "store" and isinstance(value, str):
        from rag_eval_integrations.store._address import address_of  # noqa: PLC0415 -- SQLAlchemy

        try:
            return address_of(value).name
        except ConfigurationError as error:
            return str(error.value)
    return safe_text(ConfigurationError(key, value, "").value, str)
