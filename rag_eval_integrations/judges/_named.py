"""Judges' names: what they mean, and the judges that they make.

    cascade:A,B                                        a judge of each part, and a cascade of both
    embedded, openai:MODEL, onnx:PATH, transformers:NAME
    MODULE:OBJECT                                      what a module has; in commands alone

`judge_from` takes them from code, `named_judge` from the command line and the pytest plugin.
"""

# The module of a judge or model is imported when its name is given: see `judges/__init__.py`.
# ruff: noqa: PLC0415

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.judges.judge import AnyJudge, Judge
from rag_eval_integrations.models.completion import (
    Completion,
    CompletionRequest,
    Model,
    WrappedModel,
)
from rag_eval_integrations.records.call import adapted
from rag_eval_integrations.records.score import score_hint

if TYPE_CHECKING:
    from pydantic import JsonValue

    from rag_eval_integrations.models.completion import Waiting
    from rag_eval_integrations.models.throttling import Permits

JUDGES = (
    "embedded",
    "openai:MODEL",
    "onnx:PATH[+RELEVANCE]",
    "transformers:NAME[+RELEVANCE]",
    "cascade:A,B",
)
"""Names accepted by `judge_from`."""

ENDPOINT = "openai:"
LOCAL = ("onnx:", "transformers:")
CASCADE = "cascade:"
"""Beginnings of the names of models behind an endpoint, of local models, and of cascades."""
FORMS = f"{', '.join(JUDGES)} or MODULE:OBJECT"
"""Names accepted by `named_judge`."""

Make = Callable[[str], Judge | Model]


def suggestion_for(name: str) -> str:
    """Suggest a judge for an unknown name; empty for an empty name or one with a colon."""
    if not name or ":" in name:
        return ""
    if "nearest" in (hint := score_hint(name, ())):
        return f"as a score, {hint}; as a judge "
    near = [form for form in JUDGES if form.startswith(f"{name}:")]
    near += get_close_matches(name, ("embedded",), 1)
    near += [f"{ENDPOINT}{name.removeprefix('openai/')}"]  # as LiteLLM writes it
    return f"did you mean {near[0]!r}? Else "


def parts_of(name: str) -> list[str]:
    """List the names of a cascade's judges; of any other name, the name itself."""
    if not name.startswith(CASCADE):
        return [name]
    return [part.strip() for part in name.removeprefix(CASCADE).split(",")]


def asks_endpoint(name: str) -> bool:
    """Tell whether a judge's name contains `openai:MODEL`."""
    return any(part.startswith(ENDPOINT) for part in parts_of(name))


def _by_name(name: str, option: str, endpoint: Make, local: Make, other: Make) -> Judge | Model:
    """Make the judge of a name; a name that is not in JUDGES is passed to `other`."""
    if name.startswith(CASCADE):
        return _cascade(name, option, lambda part: _by_name(part, option, endpoint, local, other))
    if name.startswith(ENDPOINT):
        return endpoint(name)
    if name.startswith(LOCAL):
        return local(name)
    if name != "embedded":
        return other(name)
    from rag_eval_integrations.judges.embedded import EmbeddedJudge

    return EmbeddedJudge()


def _cascade(name: str, option: str, make: Make) -> Judge | Model:
    """Make the judges of `cascade:A,B`, and a cascade of both."""
    parts = parts_of(name)
    if len(parts) != 2 or not all(parts):
        raise ConfigurationError(option, name, "use cascade:A,B")
    first, second = map(make, parts)
    from rag_eval_integrations.judges import CascadeJudge, LLMJudge

    if not isinstance(first, Judge) or isinstance(first, LLMJudge):
        why = "is a model, which does not say how sure it is; only the second may be one"
        raise ConfigurationError(option, name, f"{parts[0]} {why}")
    return CascadeJudge(first, second)


def _local(judge: str) -> Judge:
    """Make the judge of `onnx:PATH[+RELEVANCE]` or `transformers:NAME[+RELEVANCE]`."""
    kind, _, given = judge.partition(":")
    model, relevance = given, None
    if "+" in given and not Path(given).exists():  # a folder's name may have one
        model, _, relevance = given.partition("+")
    if not model or relevance == "":
        why = "name a model, and behind a + one for relevance"
        raise ConfigurationError("judge", judge, why)
    from rag_eval_integrations.judges import OnnxJudge, TransformersJudge

    local_judge = OnnxJudge if kind == "onnx" else TransformersJudge
    return local_judge(model, relevance=relevance)


def _throttled(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 60.0,
    max_tokens: int | None = None,
    extra_body: Mapping[str, JsonValue] | None = None,
    cache: str | Path | None = None,
    **limits: Any,
) -> Model:
    """Make the model of `openai:MODEL`, with the limits of `ThrottledModel`."""
    from rag_eval_integrations.models import OpenAIModel, ThrottledModel

    if name == ENDPOINT:
        raise ConfigurationError("judge", name, "name a model, as in 'openai:gpt-4o-mini'")
    asked: Model = OpenAIModel(
        name.removeprefix(ENDPOINT),
        base_url=base_url,
        api_key=api_key,
        timeout=timeout,
        max_tokens=max_tokens,
        extra_body=extra_body,
    )
    if max_tokens is not None:
        asked = _Limited(asked, max_tokens)
    model = ThrottledModel(asked, **limits)
    if cache is None:
        return model
    from rag_eval_integrations.models.caching import CachedModel

    return CachedModel(model, cache)


class _Limited(WrappedModel):
    """Model that replaces the `max_tokens` of each request by the user's."""

    def __init__(self, model: Model, max_tokens: int) -> None:
        super().__init__(model)
        self._max_tokens = max_tokens

    async def complete(self, request: CompletionRequest) -> Completion:
        return await super().complete(request.model_copy(update={"max_tokens": self._max_tokens}))


# --- Of code: a name or an object


def judge_from(
    judge: AnyJudge,
    *,
    base_url: str | None = None,
    rpm: float | None = None,
    tpm: float | None = None,
    max_concurrency: int | None = None,
    cache: str | Path | None = None,
    on_wait: Callable[[Waiting], None] | None = None,
    api_key: str | None = None,
    timeout: float | None = None,
    max_tokens: int | None = None,
    extra_body: Mapping[str, JsonValue] | None = None,
    deadline: float | None = None,
    permits: Permits | None = None,
) -> Judge | Model:
    """Make a judge from its name, or check that an object is one.

    Args:
        judge: `embedded` (no key, no network); `openai:MODEL` (any OpenAI-compatible endpoint,
            with limits, retries and, if `cache` is given, a cache); `onnx:PATH` or
            `transformers:NAME` (a local model that reads, `+RELEVANCE` behind it names a second
            one); `cascade:A,B` of such names (`CascadeJudge`); a LangChain chat
            model or a LlamaIndex LLM; or an object with a `name` and `async label(call)` (a
            `Judge`) or `async complete(request)` (a `Model`). The options that follow are for
            `openai:MODEL`, also in a cascade.
        base_url: URL up to and including `/v1`; by default OPENAI_BASE_URL, else OpenAI's.
        rpm: requests per minute; None for no limit.
        tpm: tokens per minute; None for no limit.
        max_concurrency: most concurrent requests, from 1; None for 32.
        cache: an SQLite file of answers, created when absent; None for no cache.
        on_wait: called when a wait with a known end begins, as in `ThrottledModel`.
        api_key: by default OPENAI_API_KEY.
        timeout: seconds for one answer, as in `OpenAIModel`; None for 60.
        max_tokens: most tokens of one answer, whatever the judge or metric asks for; None leaves it
            to them.
        extra_body: more fields of the request body, as in `OpenAIModel`.
        deadline: seconds for all attempts of a request, as in `ThrottledModel`; None for 300.
        permits: a limit shared with other models or processes, as in `ThrottledModel`; None for
            none.

    Raises:
        ConfigurationError: for an unknown name, an object that is neither, a missing key, or an
            option that the judge does not have.
    """
    options = {name: value for name, value in locals().items() if name != "judge"}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if isinstance(judge, str) and (asks_endpoint(judge) or not given):
        return _by_name(judge, "judge", partial(_throttled, **given), _local, _refuse_unknown)
    if given:
        who = repr(judge) if isinstance(judge, str) else type(judge).__name__
        name, value = next(iter(given.items()))
        raise ConfigurationError(name, value, f"is for openai:MODEL, not for judge {who}")
    labeller = adapted(judge, _MODELS)
    if labeller is None:
        labeller = judge
    if isinstance(labeller, type) or not isinstance(labeller, Judge | Model):
        # Only the class of anybody's object: its `repr` may hold a key.
        safe = isinstance(judge, int | float | type | None)
        raise ConfigurationError("judge", judge if safe else type(judge), _USE)
    return labeller


def _refuse_unknown(name: str) -> NoReturn:
    why = f"no such judge; {suggestion_for(name)}use {' or '.join(JUDGES)}"
    raise ConfigurationError("judge", name, why)


_MODELS = {
    ("langchain", "BaseChatModel"): "langchain:LangChainModel",
    ("llama_index", "LLM"): "llama_index:LlamaIndexModel",
}
"""Classes of the frameworks' models, each with our model around it."""

_USE = (
    f"use {', '.join(JUDGES)}, a LangChain chat model, a LlamaIndex LLM, or an object with a "
    "`name` and `async label(call)` (a judge) or `async complete(request)` (a model)"
)


# --- Of commands: a name, also of an object to import


def named_judge(name: str, option: str, endpoint: Make = judge_from) -> Judge | Model:
    """Make the judge of a name; FORMS lists the forms.

    Args:
        name: the option's value.
        option: the option that it was given to, for error messages.
        endpoint: makes the model of `openai:MODEL`.

    Raises:
        ConfigurationError: for a judge that does not exist, naming what was looked for; for a
            cascade that cannot be made.
    """

    def local(part: str) -> Judge:
        try:
            return _local(part)
        except ConfigurationError as error:  # it names the argument, and what stands there
            raise ConfigurationError(option, name, str(error)) from error

    return _by_name(
        name, option, endpoint, local, partial(_imported_judge, given=name, option=option)
    )


def _imported_judge(name: str, given: str, option: str) -> Judge | Model:
    """Make a judge from the object that `MODULE:OBJECT` names."""
    if ":" not in name:
        part = "" if name == given else f": {name!r}"
        why = f"no such judge{part}; {suggestion_for(name)}use {FORMS}"
        raise ConfigurationError(option, given, why)
    # `llama3.1:8b` and `anthropic:NAME` are how other tools write models.
    use = f"use {FORMS}; a model behind an OpenAI-compatible endpoint is openai:MODEL"
    thing = imported(name, option, use)
    try:
        return judge_from(thing)  # type: ignore[arg-type]  # it checks what it is
    except ConfigurationError as error:
        kind = "a class" if isinstance(thing, type) else f"an object of {type(thing).__name__}"
        raise ConfigurationError(
            option,
            given,
            f"{name} is {kind}, not a judge: it needs a `name` and `async "
            "label(call)` or `async complete(request)`, or to be a framework's model",
        ) from error


def imported(name: str, option: str, use: str) -> object:
    """Import `MODULE:OBJECT`, from the working directory as well.

    Args:
        name: the module and the object in it, which may be `a.b`.
        option: the option that it was given to, for error messages.
        use: the forms that the option accepts, for error messages.

    Raises:
        ConfigurationError: names the module or the object that was not found.
    """
    module, _, path = name.partition(":")
    if not module or not path or module.startswith("."):
        raise ConfigurationError(option, name, use)
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        thing: object = importlib.import_module(module)
    except (ImportError, SystemExit) as error:  # whose exit code would be taken for this command's
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        ends = isinstance(error, SystemExit)
        why = f"module {module!r} cannot be imported: {'it ends the program' if ends else error}"
        if missing is not None and f"{module}.".startswith(f"{missing}."):
            why = f"no module {missing!r} in {os.getcwd()} or on Python's path; {use}"
        raise ConfigurationError(option, name, why) from error
    place = module
    for part in path.split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError as error:
            raise ConfigurationError(option, name, f"{place} has no {part!r}") from error
        place = f"{place}.{part}"
    return thing
