"""`.prompt.yml` files (GitHub Models): messages, inputs, test data."""

from __future__ import annotations

from pathlib import Path

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty.file import (
    MessageTemplate,
    Prompty,
    Role,
    compiled_message,
    prompt_name,
)
from rag_eval_integrations.metrics.prompty.frontmatter import (
    FrontMatterError,
    Input,
    inputs_of,
    read_yaml,
)

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
