"""The prompt under test: its messages, its inputs, and how a test fills them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty import Input, Prompty, load_prompty, parse_prompty
from rag_eval_integrations.metrics.prompty._frontmatter import (
    FrontMatterError,
    inputs_of,
    read_yaml,
)
from rag_eval_integrations.metrics.prompty.file import (
    MessageTemplate,
    Role,
    compiled_message,
    prompt_name,
)
from rag_eval_integrations.models.completion import Message
from rag_eval_integrations.prompt_tests.models import framework_of
from rag_eval_integrations.prompt_tests.records import digest

# --- `.prompt.yml` files (GitHub Models): messages, inputs, test data


_ROLES: dict[object, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}


def load_github_prompt(path: Path) -> Prompty:
    """Read a prompt; its `testData` becomes samples.

    Raises:
        ConfigurationError: says the file, and the line where YAML names one.
        OSError: the file cannot be read.
    """
    try:
        content = read_yaml(path.read_text("utf-8-sig"))
        if not isinstance(content, dict) or not isinstance(content.get("messages"), list):
            raise FrontMatterError("holds no `messages`", None)
        warnings: list[str] = []
        messages: list[MessageTemplate] = []
        for number, message in enumerate(content["messages"], start=1):
            role = _ROLES.get(message.get("role")) if isinstance(message, dict) else None
            if role is None or not isinstance(message.get("content"), str):
                raise FrontMatterError(f"message {number} needs a `role` and a `content`", None)
            messages.append(
                compiled_message(
                    role, message["content"], 1, str(path), strict=False, warnings=warnings
                )
            )
        data = [row for row in content.get("testData") or [] if isinstance(row, dict)]
        inputs = inputs_of(content.get("inputs")) or _inputs_in(data, messages)
    except FrontMatterError as error:
        place = "" if error.line is None else f"line {error.line}: "
        raise ConfigurationError("prompt", str(path), f"{place}{error}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError("prompt", str(path), "not UTF-8") from error
    known = {name for name in inputs} | set().union(*(m.variables for m in messages))
    samples = [{name: value for name, value in row.items() if name in known} for row in data]
    return Prompty(
        name=prompt_name(path),
        messages=tuple(messages),
        inputs=inputs,
        description=str(content.get("description") or ""),
        extra={**content, "testSamples": [row for row in samples if row]},
        source=str(path),
        warnings=tuple(warnings),
    )


def _inputs_in(data: list[dict[str, object]], messages: list[MessageTemplate]) -> dict[str, Input]:
    used = set().union(*(message.variables for message in messages))
    named = [name for row in data for name in row if name in used]
    return {name: Input(name) for name in dict.fromkeys(named)}


# --- Sample inputs from a file beside the prompt: CSV, JSON or YAML


_MOST_BYTES = 5_000_000


def read_samples(folder: Path, name: str, source: str) -> list[Mapping[str, JsonValue]]:
    """Read a file of sample inputs, one object or row each.

    Raises:
        ConfigurationError: outside of the prompt's folder, not there, or not readable as objects.
    """
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ConfigurationError("testSamples", name, f"is outside of the folder of {source}")
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigurationError("testSamples", name, f"is larger than {_MOST_BYTES:,} bytes")
        text = path.read_text("utf-8-sig")
        rows = _rows(path.suffix.lower(), text)
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError("testSamples", name, f"cannot be read: {error}") from error
    if isinstance(rows, dict):
        rows = [rows]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigurationError("testSamples", name, "should hold objects, one a sample")
    return rows


def _rows(suffix: str, text: str) -> Any:
    if suffix == ".csv":
        return [dict(row) for row in csv.DictReader(io.StringIO(text, newline=""))]
    if suffix == ".json":
        return json.loads(text)
    if suffix in (".yaml", ".yml"):
        from rag_eval_integrations.metrics.prompty._frontmatter import read_yaml  # noqa: PLC0415

        return read_yaml(text)
    raise ValueError("use a .csv, .json or .yaml file")


_Renderer = Callable[[Mapping[str, object]], tuple[Message, ...]]
_DEFAULT_INPUT = "input_text"
_INSTRUCTIONS = ("intent", "inputSpec", "outputRules", "inverseOutputRules", "testExpansion")


@runtime_checkable
class PromptLike(Protocol):
    """What `langchain.as_prompt` and `llama_index.as_prompt` make of a framework's template."""

    @property
    def name(self) -> str:
        """What it is called in files and reports."""
        ...

    @property
    def text(self) -> str:
        """The whole prompt, variables as `{{name}}`."""
        ...

    @property
    def input_names(self) -> Sequence[str]:
        """Its variables."""
        ...

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Insert values."""
        ...


@dataclass(frozen=True)
class Scenario:
    """A situation that tests are made for: words for the generator, fixed values of inputs."""

    name: str
    instructions: str = ""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptUnderTest:
    """A prompt in any of its forms; make one with `PromptUnderTest.of` or `from_text`."""

    name: str
    text: str
    """All messages as one text, without role lines, variables as `{{name}}`."""
    inputs: Mapping[str, Input]
    """Declared inputs, then variables that are used without being declared."""
    renderer: _Renderer | None
    """None for a prompt that lives inside of an app and is only known as text."""
    instructions: Mapping[str, str] = field(default_factory=dict)
    """The author's own words for a stage: `intent`, `inputSpec`, `outputRules` …"""
    scenarios: tuple[Scenario, ...] = ()
    samples: tuple[Mapping[str, JsonValue], ...] = ()
    """Inputs that the author gives as examples."""
    folder: Path | None = None
    """Where metric files are looked for."""
    source: str = ""
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(prompt: object, *, name: str | None = None) -> PromptUnderTest:
        """Make one of a file, a `Prompty`, or a template of LangChain or LlamaIndex.

        Files are `.prompty`, `.md`, `.txt` (all read as Prompty) and `.prompt.yml` (GitHub Models).

        Raises:
            ConfigurationError: a file that is no prompt (says the line), or an object that is none.
            OSError: the file cannot be read.
        """
        if isinstance(prompt, PromptUnderTest):
            return prompt
        if isinstance(prompt, str | Path):
            return _of_file(Path(prompt), name)
        if isinstance(prompt, Prompty):
            return _of_prompty(prompt, name, None)
        if not isinstance(prompt, PromptLike):
            prompt = _of_framework(prompt)
        inputs = {one: Input(one) for one in prompt.input_names}
        return PromptUnderTest(name or prompt.name, prompt.text, inputs, prompt.render)

    @staticmethod
    def from_text(
        text: str, *, inputs: Iterable[str] = (), name: str = "prompt", in_app: bool = False
    ) -> PromptUnderTest:
        """Make one of a text in the form of a `.prompty` file, or of an app's description.

        Args:
            text: the prompt; with `in_app`, whatever says what the app should do.
            inputs: names of inputs, besides those that the text itself uses.
            name: what it is called in files and reports.
            in_app: the models under test are whole apps, which have the prompt inside and take
                the inputs as they are.

        Raises:
            ConfigurationError: no text.
        """
        prompty = parse_prompty(text, name=name, strict=False)
        made = _of_prompty(prompty, name, None, append=not in_app)
        more = {one: Input(one) for one in inputs if one not in made.inputs}
        all_inputs = {**made.inputs, **more} or {_DEFAULT_INPUT: Input(_DEFAULT_INPUT)}
        return replace(made, inputs=all_inputs, renderer=None if in_app else made.renderer)

    @property
    def id(self) -> str:
        """Seven hex digits of the text."""
        return digest(self.text)[:7]

    def values(
        self, inputs: Mapping[str, JsonValue], parameters: Mapping[str, JsonValue] | None = None
    ) -> dict[str, JsonValue]:
        """Fill defaults, then a scenario's parameters, then the test's inputs."""
        defaults = {
            one.name: one.default for one in self.inputs.values() if one.default is not None
        }
        return {**defaults, **(parameters or {}), **inputs}

    def render(self, values: Mapping[str, object]) -> tuple[Message, ...]:
        """Insert values into every message.

        Raises:
            ConfigurationError: a missing value, or a prompt that only an app can run.
        """
        if self.renderer is None:
            raise ConfigurationError(
                "prompt", self.name, "is only a text: models under test have to be whole apps"
            )
        return self.renderer(values)

    def parameters(self, scenario: str) -> Mapping[str, JsonValue]:
        """Return the values that a scenario fixes."""
        return next((one.parameters for one in self.scenarios if one.name == scenario), {})

    def inputs_from(
        self, testinput: str, fixed: Mapping[str, JsonValue] | None = None
    ) -> dict[str, JsonValue]:
        """Read a test's one text as inputs, the way upstream does.

        One input left: the field of its name if the text is such a JSON object, else the text.
        Several: a JSON object. None left: the first input gets the text.

        Raises:
            ConfigurationError: several inputs and no JSON object.
        """
        names = [
            one.name
            for one in self.inputs.values()
            if one.name not in (fixed or {}) and one.default is None
        ]
        content = _json_object(testinput)
        if len(names) > 1:
            if content is None:
                raise ConfigurationError(
                    "testinput", testinput[:60], f"should be an object with {', '.join(names)}"
                )
            return content
        name = names[0] if names else next(iter(self.inputs))
        if content is not None and set(content) == {name}:
            return content
        return {name: testinput}


def _of_file(path: Path, name: str | None) -> PromptUnderTest:
    if path.name.lower().endswith((".prompt.yml", ".prompt.yaml")):
        return _of_prompty(load_github_prompt(path), name, path.parent)
    return _of_prompty(load_prompty(path, strict=False), name, path.parent)


def _of_prompty(
    prompt: Prompty, name: str | None, folder: Path | None, *, append: bool = True
) -> PromptUnderTest:
    undeclared = sorted(prompt.variables - set(prompt.inputs))
    inputs = {**prompt.inputs, **{one: Input(one) for one in undeclared}}
    warnings = list(prompt.warnings)
    text = prompt.text
    renderer: _Renderer = prompt.render
    if not prompt.variables and append:
        # Nothing would tell one test from another: the input goes to the end, as upstream does.
        if len(inputs) != 1:
            inputs = {_DEFAULT_INPUT: Input(_DEFAULT_INPUT)}
        [last] = inputs
        text = f"{text}\n\n{{{{{last}}}}}"
        renderer = _with_input_at_the_end(prompt, last)
        warnings.append(f"{prompt.source} inserts no variable; {{{{{last}}}}} is added at its end")
    unused = [one for one in prompt.inputs if prompt.variables and one not in prompt.variables]
    warnings += [f"{prompt.source} declares `{one}` and never inserts it" for one in unused]
    head = prompt.extra
    return PromptUnderTest(
        name=name or prompt.name,
        text=text,
        inputs={one: inputs[one] for one in inputs if one not in unused},
        renderer=renderer,
        instructions=_instructions(head.get("instructions")),
        scenarios=_scenarios(head.get("scenarios"), prompt.source),
        samples=_samples(head.get("testSamples"), prompt, folder),
        folder=folder,
        source=prompt.source,
        warnings=tuple(warnings),
    )


def _with_input_at_the_end(prompt: Prompty, name: str) -> _Renderer:
    def render(values: Mapping[str, object]) -> tuple[Message, ...]:
        value = values.get(name, "")
        content = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return (*prompt.render(values), Message(role="user", content=content))

    return render


def _instructions(given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        return {}
    return {one: str(given[one]) for one in _INSTRUCTIONS if given.get(one)}


def _scenarios(given: object, source: str) -> tuple[Scenario, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in given
    ):
        raise ConfigurationError(
            "prompt", source, "`scenarios` should be a list with a `name` each"
        )
    return tuple(
        Scenario(one["name"], str(one.get("instructions") or ""), dict(one.get("parameters") or {}))
        for one in cast(list[dict[str, Any]], given)
    )


def _samples(
    given: object, prompt: Prompty, folder: Path | None
) -> tuple[Mapping[str, JsonValue], ...]:
    found: list[Mapping[str, JsonValue]] = [prompt.sample] if prompt.sample else []
    for one in given if isinstance(given, list) else []:
        if isinstance(one, dict):
            found.append(one)
        elif isinstance(one, str) and folder is not None:
            found += read_samples(folder, one, prompt.source)
    return tuple(found)


def _of_framework(prompt: object) -> PromptLike:
    home = framework_of(prompt)
    made: object = None
    if home == "langchain":
        from rag_eval_integrations.langchain.under_test import (  # noqa: PLC0415  # only for its own
            as_prompt as of_langchain,
        )

        made = of_langchain(cast(Any, prompt))
    elif home == "llama_index":
        from rag_eval_integrations.llama_index.under_test import (  # noqa: PLC0415  # the same
            as_prompt as of_llama_index,
        )

        made = of_llama_index(cast(Any, prompt))
    if not isinstance(made, PromptLike):
        raise ConfigurationError(
            "prompt",
            prompt,
            "use a .prompty, .md or .prompt.yml file, or a template of LangChain or LlamaIndex",
        )
    return made


def _json_object(text: str) -> dict[str, JsonValue] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
