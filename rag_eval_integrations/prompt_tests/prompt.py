"""The prompt under test: `.prompty` and `.prompt.yml` files, framework templates, plain text."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from gzip import BadGzipFile
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, JsonValue, TypeAdapter, ValidationError

from rag_eval_integrations._target import read_whole
from rag_eval_integrations.dataset._input import open_lines
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import Prompty, parse_prompty
from rag_eval_integrations.metrics.prompty.file import (
    ROLES,
    FrontMatterError,
    Input,
    MessageTemplate,
    Role,
    compiled_messages,
    inputs_of,
    prompt_name,
    read_yaml,
)
from rag_eval_integrations.models._framework import FrameworkTemplate
from rag_eval_integrations.models._reading import loads
from rag_eval_integrations.models.completion import Message
from rag_eval_integrations.prompt_tests.records import digest
from rag_eval_integrations.records._json import input_error
from rag_eval_integrations.records.call import framework_of

# --- What a prompt's author adds to its file: instructions for stages, and sample inputs


_MOST_BYTES = 5_000_000
INSTRUCTIONS = ("intent", "inputSpec", "outputRules", "inverseOutputRules", "testExpansion")
"""Stages that can be instructed, by their names in front matter."""


@dataclass(frozen=True)
class AuthorWords:
    """What a prompt's author adds to its file, so that a prompt in use need not be edited."""

    instructions: Mapping[str, str] = field(default_factory=dict)
    """Instructions by stage: `intent`, `inputSpec`, `outputRules`, `inverseOutputRules` or
    `testExpansion`; each replaces the one in the prompt's file."""
    samples: tuple[Mapping[str, JsonValue], ...] | None = None
    """Example inputs in place of those in the prompt's file; None for these."""

    def __post_init__(self) -> None:
        for stage in self.instructions:
            if stage not in INSTRUCTIONS:
                raise ConfigurationError("instructions", stage, f"use {', '.join(INSTRUCTIONS)}")

    def continued(self, more: AuthorWords) -> AuthorWords:
        """Return these words with those of `more`, which replace the same stage's.

        The samples are those of `more`, unless these are None.
        """
        samples = self.samples if more.samples is None else more.samples
        return AuthorWords({**self.instructions, **more.instructions}, samples)


def read_samples(folder: Path, name: str, source: str) -> list[Mapping[str, JsonValue]]:
    """Read a file of sample inputs: one object or row per sample.

    Args:
        folder: the prompt's folder.
        name: path of the file in this folder.
        source: the prompt file, for error messages.

    Raises:
        ConfigurationError: for a file that is outside of the folder, missing, larger than 5 MB, not
            CSV, JSON or YAML by its suffix, or not a list of objects.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigurationError("testSamples", name, f"is outside the folder of {source}")
    if path.suffix.lower() not in (".csv", ".json", ".yaml", ".yml"):
        raise ConfigurationError("testSamples", name, "use a .csv, .json or .yaml file")
    try:
        rows = read_content(path, "testSamples", _MOST_BYTES)
    except OSError as error:
        raise ConfigurationError("testSamples", name, f"cannot be read: {error}") from error
    rows = [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigurationError("testSamples", name, "should be a list of objects")
    return rows


def csv_rows_of(text: str) -> list[dict[str, str]]:
    """Read CSV with a header; cells may be long.

    The csv module's limit of cells is raised to 10,000,000 characters for the whole process.
    """
    csv.field_size_limit(max(csv.field_size_limit(), 10_000_000))
    return [dict(row) for row in csv.DictReader(io.StringIO(text, newline=""))]


def read_content(
    path: Path,
    field: str,
    most: int = 200_000_000,
    csv_rows: Callable[[str], list[dict[str, str]]] = csv_rows_of,
) -> Any:
    """Read a file by its suffix: `.json`, `.yaml`, `.csv` with a header, or text; `.gz` may follow.

    Args:
        path: the file.
        field: the argument that named it, for errors.
        most: bytes, unpacked, above which it is refused.
        csv_rows: reads CSV.

    Raises:
        ConfigurationError: for a damaged or longer file, or a content that cannot be parsed.
        OSError: when it cannot be read.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    try:
        with open_lines(path) as opened:
            data = opened.read(most + 1)
        if len(data) > most:
            raise ValueError(f"it is larger than {most:,} bytes")
        text = data.decode("utf-8-sig")
        if suffix == ".json":
            return loads(text)
        if suffix in (".yaml", ".yml"):
            return read_yaml(text).value
        return csv_rows(text) if suffix == ".csv" else text
    except (ValueError, RecursionError, csv.Error, EOFError, zlib.error, BadGzipFile) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(field, str(path), f"cannot be read: {error}") from error


# --- `.prompt.yml` files (GitHub Models): messages, inputs and test data


def parse_github_prompt(text: str, source: str) -> Prompty:
    """Read the text of a `.prompt.yml` file; its `testData` becomes sample inputs.

    If the file declares no inputs, those are the variables of its messages that `testData` has.
    Values of `testData` for other names are dropped from the samples.

    Raises:
        ConfigurationError: for a text that is not such a prompt; names the file and, if YAML knows
            it, the line.
    """
    try:
        read = read_yaml(text)
        content, lines = read.value, read.lines
        if not isinstance(content, dict) or not isinstance(content.get("messages"), list):
            raise FrontMatterError("has no list of `messages`", lines.get("messages", 1))
        warnings: list[str] = []
        parts: list[tuple[Role, str, int]] = []
        for number, message in enumerate(content["messages"], start=1):
            role = ROLES.get(str(message.get("role"))) if isinstance(message, dict) else None
            if role is None or not isinstance(message.get("content"), str):
                why = f"message {number} needs a `role` and a `content`"
                raise FrontMatterError(why, lines["messages"])
            parts.append((role, message["content"], lines["messages"]))
        declared = inputs_of(content.get("inputs"), lines.get("inputs"))
        messages = compiled_messages(
            parts, source, strict=False, warnings=warnings, declared=declared
        )
        if not isinstance(content.get("testData") or [], list):
            raise FrontMatterError("`testData` should be a list of objects", lines["testData"])
    except FrontMatterError as error:
        place = "" if error.line is None else f"line {error.line}: "
        raise ConfigurationError("prompt", source, f"{place}{error}") from error
    data = [row for row in content.get("testData") or [] if isinstance(row, dict)]
    used = set().union(*(message.variables for message in messages))
    named = dict.fromkeys(name for row in data for name in row if name in used)
    inputs = declared or {name: Input(name) for name in named}
    known = {*inputs, *used}
    samples: list[JsonValue] = []
    for row in data:
        sample = {name: row[name] for name in row if name in known}
        if sample:
            samples.append(sample)
    return Prompty(
        name=prompt_name(Path(source)),
        messages=messages,
        inputs=inputs,
        description=str(content.get("description") or ""),
        extra={**content, "testSamples": samples},
        source=source,
        warnings=tuple(warnings),
        lines=lines,
    )


# --- The prompt under test, whatever it was made from


_Renderer = Callable[[Mapping[str, object]], tuple[Message, ...]]
_DEFAULT_INPUTS = {"input_text": Input("input_text")}
_STRUCTURED = ("array", "list", "object", "dict")


@dataclass(frozen=True)
class Scenario:
    """A situation that tests are generated for."""

    name: str
    instructions: Annotated[str, BeforeValidator(lambda given: given or "")] = ""
    """The situation in words, for the generator."""
    parameters: Annotated[Mapping[str, JsonValue], BeforeValidator(lambda given: given or {})] = (
        field(default_factory=dict)
    )
    """Fixed values of inputs, by name."""


_SCENARIOS = TypeAdapter(tuple[Scenario, ...])


@dataclass(frozen=True)
class PromptUnderTest:
    """A prompt in any of its forms; made by `PromptUnderTest.of` or `from_text`."""

    name: str
    """Name in files and reports."""
    text: str
    """All messages as one text, without role lines, with variables as `{{name}}`."""
    inputs: Mapping[str, Input]
    """Declared inputs by name, then variables that are used without being declared."""
    renderer: _Renderer | None
    """Inserts values; None for a prompt inside an app, of which only the text is known."""
    template: Prompty | None = None
    """The messages with their variables; None for a framework's template."""
    instructions: Mapping[str, str] = field(default_factory=dict)
    """The author's instructions for a stage: `intent`, `inputSpec`, `outputRules` …"""
    scenarios: tuple[Scenario, ...] = ()
    """Situations that tests are generated for; empty for one situation without a name."""
    samples: tuple[Mapping[str, JsonValue], ...] = ()
    """Example inputs from the author."""
    folder: Path | None = None
    """The prompt's folder, which is searched for metric files; None without a file."""
    source: str = ""
    """The prompt's file, for messages."""
    warnings: tuple[str, ...] = ()
    """Sentences about oddities of the prompt."""
    head: Mapping[str, JsonValue] = field(default_factory=dict)
    """Other keys of the file's front matter, such as `model`, `outputs` and `tools`."""

    @staticmethod
    def of(prompt: object, *, name: str | None = None) -> PromptUnderTest:
        """Make a prompt under test from a file, a `Prompty`, or a framework's template.

        To a file or a `Prompty` without a variable, an input is added at the end.

        Args:
            prompt: path of a `.prompty`, `.md` or `.txt` file (all read as Prompty) or of a
                `.prompt.yml` file (GitHub Models); a `Prompty`; a LangChain or LlamaIndex prompt
                template; or a `PromptUnderTest`, which is returned unchanged.
            name: name in files and reports; by default the prompt's own.

        Raises:
            ConfigurationError: for a file that is not a prompt (names the line), or another object.
            OSError: when the file cannot be read.
        """
        if isinstance(prompt, PromptUnderTest):
            return prompt
        if isinstance(prompt, str | Path):
            return _from_file(Path(prompt), name)
        if isinstance(prompt, Prompty):
            return _from_prompty(prompt, name, None)
        framework = framework_of(prompt)
        template = prompt if framework is None else adapter_of(framework).as_prompt(prompt)
        if not isinstance(template, FrameworkTemplate):
            why = "use a .prompty, .md or .prompt.yml file, or a LangChain or LlamaIndex template"
            raise ConfigurationError("prompt", prompt, why)
        inputs = {input_name: Input(input_name) for input_name in template.input_names}
        return PromptUnderTest(name or template.name, template.text, inputs, template.render)

    @staticmethod
    def from_text(
        text: str, *, inputs: Iterable[str] = (), name: str = "prompt", in_app: bool = False
    ) -> PromptUnderTest:
        """Make a prompt under test from a text.

        A text without a variable gets its inputs at the end, unless it is `in_app`. Without any
        input, the input is `input_text`.

        Args:
            text: the prompt, in the form of a `.prompty` file; with `in_app`, a description of what
                the app should do.
            inputs: names of inputs in addition to the variables of the text.
            name: name in files and reports.
            in_app: whether the models under test are whole apps, which contain the prompt and get
                only the inputs.

        Raises:
            ConfigurationError: for a text that is not a prompt.
        """
        prompty = parse_prompty(text, name=name, strict=False)
        given = {input_: Input(input_) for input_ in inputs}
        if not prompty.variables:
            prompty = replace(prompty, inputs=given | dict(prompty.inputs))
        prompt = _from_prompty(prompty, name, None, append=not in_app)
        all_inputs = {**prompt.inputs, **given, **prompt.inputs} or _DEFAULT_INPUTS
        return replace(prompt, inputs=all_inputs, renderer=None if in_app else prompt.renderer)

    def with_author(self, words: AuthorWords) -> PromptUnderTest:
        """Return the prompt with words that its author adds to the file.

        Instructions of the same stage are replaced, and the samples if new ones are given.
        """
        of_file = AuthorWords(self.instructions, self.samples).continued(words)
        samples = of_file.samples or ()
        return replace(self, instructions=of_file.instructions, samples=samples)

    @property
    def id(self) -> str:
        """Seven hex digits of the text's digest."""
        return digest(self.text)[:7]

    def values(
        self, inputs: Mapping[str, JsonValue], parameters: Mapping[str, JsonValue] | None = None
    ) -> dict[str, JsonValue]:
        """Merge the defaults of inputs, a scenario's parameters and a test's inputs; later win.

        Inputs without a value in any of them are left out. A list or an object that is written as
        text, as generators and tables do, is read for an input of such a type.
        """
        all_inputs = self.inputs.items()
        defaults = {name: given.default for name, given in all_inputs if given.default is not None}
        read = {name for name, given in all_inputs if given.type in _STRUCTURED}
        values = {**defaults, **(parameters or {}), **inputs}
        return {name: _json_in(value) if name in read else value for name, value in values.items()}

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Insert values into every message.

        Raises:
            ConfigurationError: for a missing value, or a prompt that is inside an app.
        """
        if self.renderer is None:
            raise ConfigurationError(
                "prompt", self.name, "is only a text; the models under test must be whole apps"
            )
        return self.renderer(values)

    def parameters(self, scenario: str) -> Mapping[str, JsonValue]:
        """Return a scenario's fixed inputs; empty for an unknown scenario."""
        return next((case.parameters for case in self.scenarios if case.name == scenario), {})

    def inputs_from(
        self, testinput: str, fixed: Mapping[str, JsonValue] | None = None
    ) -> dict[str, JsonValue]:
        """Read a test's text as inputs, like PromptPex.

        To fill are the inputs without a default that `fixed` lacks. With one, the text is its
        value, unless it is a JSON object with just this field. With several, the text is a JSON
        object, which is returned as it is. With none, the first input gets the text.

        Args:
            testinput: the text.
            fixed: inputs that already have a value.

        Raises:
            ConfigurationError: for several inputs and a text that is not a JSON object.
        """
        needed = [name for name, input_ in self.inputs.items() if input_.default is None]
        names = [name for name in needed if name not in (fixed or {})]
        content = _json_in(testinput)
        if len(names) > 1:
            if not isinstance(content, dict):
                why = f"should be an object with {', '.join(names)}"
                raise ConfigurationError("testinput", testinput[:60], why)
            return content
        name = names[0] if names else next(iter(self.inputs))
        if isinstance(content, dict) and set(content) == {name}:
            return content
        return {name: testinput}


def is_github_file(name: str) -> bool:
    """Whether a file is a prompt of GitHub Models, by its name: `.prompt.yml` or `.prompt.yaml`."""
    return name.lower().endswith((".prompt.yml", ".prompt.yaml"))


def parse_prompt(text: str, name: str) -> Prompty:
    """Read the text of a prompt file, whose form its name tells.

    Raises:
        ConfigurationError: for a text that is not a prompt.
    """
    if is_github_file(name):
        return parse_github_prompt(text, name)
    return parse_prompty(text, name=prompt_name(Path(name)), source=name, strict=False)


def _from_file(path: Path, name: str | None) -> PromptUnderTest:
    """Return the prompt under test in a file, whose folder becomes the prompt's.

    Raises:
        ConfigurationError: for a file that is not a prompt, not UTF-8, or larger than 5 MB.
        OSError: when the file cannot be read.
    """
    try:
        text = read_whole(path, "prompt", longest=_MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError("prompt", str(path), "is not UTF-8") from error
    return _from_prompty(parse_prompt(text, str(path)), name, path.parent)


def _from_prompty(
    prompt: Prompty, name: str | None, folder: Path | None, *, append: bool = True
) -> PromptUnderTest:
    """Return the prompt under test of a parsed file; add an input if it has none.

    A message with the inputs is added at the end, unless `append` is off, if the prompt has no
    variable. Variables that are not declared become inputs. Declared inputs that are not used are
    left out of a prompt with variables. There are warnings of added and unused inputs.
    """
    undeclared = sorted(prompt.variables - set(prompt.inputs))
    inputs = {**prompt.inputs, **{variable: Input(variable) for variable in undeclared}}
    warnings = list(prompt.warnings)
    template = prompt
    if not prompt.variables and append:
        # Without a variable all tests would be the same: add the input at the end, like PromptPex.
        inputs = inputs or _DEFAULT_INPUTS
        places = [f"{{{{{input_}}}}}" for input_ in inputs]
        added = MessageTemplate("user", "\n\n".join(places), 1, None)
        template = replace(prompt, messages=(*prompt.messages, added))
        warnings.append(f"{prompt.source} has no variable; {' '.join(places)} was added at its end")
    unused = [
        input_ for input_ in prompt.inputs if prompt.variables and input_ not in prompt.variables
    ]
    warnings += [
        f"{prompt.source} declares `{input_name}` but does not use it" for input_name in unused
    ]
    head = prompt.extra
    used_inputs = {input_: inputs[input_] for input_ in inputs if input_ not in unused}
    return PromptUnderTest(
        name=name or prompt.name,
        text=template.text,
        inputs=used_inputs,
        renderer=template.render,
        template=template,
        instructions=_instructions(head.get("instructions")),
        scenarios=_scenarios(head.get("scenarios"), prompt),
        samples=_samples(head.get("testSamples"), prompt, folder),
        folder=folder,
        source=prompt.source,
        warnings=tuple(warnings),
        head=head,
    )


def _instructions(given: object) -> dict[str, str]:
    """Return the author's instructions by stage, without unknown stages and empty ones.

    Empty for anything but an object.
    """
    if not isinstance(given, dict):
        return {}
    return {stage: str(given[stage]) for stage in INSTRUCTIONS if given.get(stage)}


def _scenarios(given: object, prompt: Prompty) -> tuple[Scenario, ...]:
    """Read the scenarios of a file's head; empty for none.

    Raises:
        ConfigurationError: for anything but a list of scenarios; names the line.
    """
    try:
        return _SCENARIOS.validate_python(given or ())
    except ValidationError as error:
        place = f"line {prompt.lines['scenarios']}: " if "scenarios" in prompt.lines else ""
        why = f"{place}`scenarios` should be a list of objects with a `name`: {input_error(error)}"
        raise ConfigurationError("prompt", prompt.source, why) from error


def _samples(
    given: object, prompt: Prompty, folder: Path | None
) -> tuple[Mapping[str, JsonValue], ...]:
    """Return the sample inputs of a file's head: its `sample` first, then `testSamples`.

    A text in the list names a file, which is read if the prompt has a folder. Anything else is
    ignored.

    Raises:
        ConfigurationError: for a file that cannot be used.
    """
    samples: list[Mapping[str, JsonValue]] = [prompt.sample] if prompt.sample else []
    for item in given if isinstance(given, list) else []:
        if isinstance(item, dict):
            samples.append(item)
        elif isinstance(item, str) and folder is not None:
            samples += read_samples(folder, item, prompt.source)
    return tuple(samples)


def adapter_of(framework: str) -> Any:
    """Import the module that a framework's objects need to be under test, and return it."""
    return import_module(f"rag_eval_integrations.{framework}.model")


def _json_in(value: JsonValue) -> JsonValue:
    """Return the list or object that a text holds as JSON; anything else unchanged."""
    try:
        content = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
    return content if isinstance(content, list | dict) else value
