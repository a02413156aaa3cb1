"""Options of every command that names an `openai:` model, and their values checked."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, NoReturn

import typer

from rag_eval_integrations.errors import ConfigurationError

Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout", metavar="SECONDS", help="Time limit for one answer of an openai: model."
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        metavar="N",
        min=1,
        help="Maximum number of tokens in one answer of an openai: model.",
    ),
]
ExtraBody = Annotated[
    str | None,
    typer.Option(
        "--extra-body",
        metavar="JSON",
        help='Additional request fields for an openai: model: \'{"reasoning_effort": "low"}\'.',
    ),
]


def model_options(
    timeout: float | None, max_tokens: int | None, extra_body: str | None
) -> dict[str, Any]:
    """Check the options of an `openai:` model; return them as arguments of `judge_from`.

    Raises:
        ConfigurationError: for a value that cannot be used; names the option.
    """
    if timeout is not None and not (math.isfinite(timeout) and timeout > 0):
        raise ConfigurationError("--timeout", timeout, "use a number of seconds above 0")
    if max_tokens is not None and max_tokens < 1:
        raise ConfigurationError("--max-tokens", max_tokens, "use a whole number from 1")
    return {"timeout": timeout, "max_tokens": max_tokens, "extra_body": _json_object(extra_body)}


def _json_object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        why = f"is not JSON ({error}); quote it for the shell, as in '{{\"top_k\": 20}}'"
        raise ConfigurationError("--extra-body", "…", why) from None
    if not isinstance(value, dict):
        raise ConfigurationError("--extra-body", "…", "use a JSON object, as in '{\"top_k\": 20}'")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
