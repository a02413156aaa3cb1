"""Run a chain over examples, capture its calls and evaluate them, without LangSmith's server.

    examples ─▶ chain, captured ─▶ RagCall ─▶ RagEvaluator ─▶ Evaluation, in the examples' order

LangSmith's own `evaluate(upload_results=False)` still posts the contents of runs to the server
(measured on 0.15).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack, cast

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs

from rag_eval_integrations import _loop
from rag_eval_integrations.capture._calls import json_object, json_value
from rag_eval_integrations.capture._retrieval import gold_ids
from rag_eval_integrations.capture._uncaptured import ToolDocuments
from rag_eval_integrations.dataset._asking import (
    Answered,
    AskingOptions,
    Question,
    captured,
    check_options,
    evaluate_asked,
    threads_for,
)
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations import Evaluations
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.langchain._given import reference_in, relevant_ids_in
from rag_eval_integrations.langchain._values import answer_of, question_of
from rag_eval_integrations.langchain.handler import (
    DocumentsHook,
    RagEvalCallbackHandler,
    ResponseHook,
)
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.records._json import NAMES
from rag_eval_integrations.traces._values import as_json, id_from

# --- Examples, read from any of the accepted forms


_EXPECTED = (*NAMES["reference"], "reference_outputs", "outputs")


@dataclass(frozen=True)
class Example(Question):
    """One example: the chain's input, with the expected answer and metadata.

    If the user gives no id, `label` is the first 16 hex digits of a digest of input and reference.
    """

    given: object = None
    """The chain's input."""


def example_from(
    item: object, place: str, make_input: Callable[[Any], object] | None = None
) -> Example:
    """Read an example: a string, a dict, a `RagCall`, or LangSmith's `Example`.

    Args:
        item: the example.
        place: the example's place, for the error message.
        make_input: makes the chain's input from the example; by default the input is the example's
            `inputs`, else its `question`.

    Raises:
        ConfigurationError: it has neither `inputs` nor a `question`; the message names the place.
    """
    fields = _fields(item, place)
    given = fields.get("inputs", fields.get("question")) if make_input is None else make_input(item)
    expected = (fields[name] for name in _EXPECTED if fields.get(name) is not None)
    reference = next(map(reference_in, expected), None)
    outputs = fields.get("reference_outputs", fields.get("outputs"))
    gold = fields["relevant_ids"] if "relevant_ids" in fields else relevant_ids_in(outputs)
    asked = fields.get("question")
    metadata = fields.get("metadata")
    label = as_json(fields.get("id"))  # pandas has NaN where a value is missing
    return Example(
        given=given,
        text=asked if isinstance(asked, str) else question_of(given),
        reference=reference,
        label=_digest(given, reference) if label in (None, "") else str(id_from(label)),
        metadata=json_object(metadata) if isinstance(metadata, Mapping) else {},
        relevant_ids=gold_ids(as_json(gold), f"{place}.relevant_ids"),
    )


def _fields(item: object, place: str) -> Mapping[str, Any]:
    """Return the fields of a row: a question, a call, or an example with inputs."""
    if isinstance(item, str):
        return {"question": item}
    if isinstance(item, RagCall):
        taken = ("question", "reference", "id", "metadata", "relevant_ids")
        return {name: getattr(item, name) for name in taken}
    if isinstance(item, Mapping):
        fields = item
    else:
        names = ("inputs", "outputs", "id", "metadata")
        fields = {name: getattr(item, name) for name in names if hasattr(item, name)}
    if "inputs" not in fields and not isinstance(fields.get("question"), str):
        raise ConfigurationError(place, item, "needs `inputs` for the chain, or a `question`")
    return fields


def _digest(given: object, reference: str | None) -> str:
    """Return an id for an example: a digest of its input and reference."""
    try:
        text = json.dumps([given, reference], sort_keys=True, default=str)
    except Exception:  # noqa: BLE001 -- keys that cannot be sorted, or an object's own `__str__`
        text = json.dumps([json_value(given), reference], sort_keys=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


# --- The chain, run over the examples


Chain = Runnable[Any, Any] | Callable[[Any], Any]


class Options(AskingOptions, total=False):
    """Options for a run of a chain over examples."""

    make_input: Callable[[Any], object]
    """Makes the chain's input from an example, for instance for an agent: `lambda example:
    {"messages": [("user", example["question"])]}`. By default the example's `inputs`, else its
    `question`."""
    config: RunnableConfig
    """Config of every call of the chain; its callbacks are kept."""
    documents: DocumentsHook
    response: ResponseHook
    tool_documents: ToolDocuments
    """These three are those of `RagEvalCallbackHandler`."""


def evaluate_dataset(
    chain: Chain, examples: Iterable[object], evaluator: RagEvaluator, **options: Unpack[Options]
) -> Evaluations:
    """Run a chain over examples and evaluate each call, from sync code.

    Calls the chain's `invoke` in threads, never on the library's own loop, to which the chain's
    async client might not belong. Arguments, result and errors are those of `aevaluate_dataset`.
    """
    runnable, read = _read(chain, examples, evaluator, options)
    if isinstance(runnable, RunnableLambda) and not hasattr(runnable, "func"):
        raise ConfigurationError("chain", chain, "is async: use `await aevaluate_dataset(...)`")
    with threads_for(_asking_options(options)) as in_thread:

        def ask(given: object, config: RunnableConfig) -> Awaitable[object]:
            """Invoke the chain in a thread."""
            return in_thread(runnable.invoke, given, config)

        return _loop.run(_ask_and_evaluate(ask, read, evaluator, options))


async def aevaluate_dataset(
    chain: Chain, examples: Iterable[object], evaluator: RagEvaluator, **options: Unpack[Options]
) -> Evaluations:
    """Run a chain over examples by its `ainvoke`, and evaluate each call.

    An example is a string (the question); a dict with `question` or `inputs` and, if known,
    `reference` (or `reference_outputs`, `outputs`), `relevant_ids`, `id` and `metadata`; a
    `RagCall`, whose documents and response are replaced by those of the chain; or LangSmith's
    `Example`, with `relevant_ids` among its outputs.

    If the chain fails on an example, its evaluation has no response and no values (unscored,
    `empty_response`); `evaluation.error` holds the exception, with the stage `app`. Such a call is
    not judged, and the run goes on.

    Args:
        chain: a runnable, or a function of the input.
        examples: the examples; all of them are read before the first one is run.
        evaluator: evaluates the calls.
        **options: see `Options`: `make_input`, `config`, `max_concurrency`, `timeout`, `out`,
            `resume`, `overwrite`, `progress`; and `documents`, `response` and `tool_documents` of
            `RagEvalCallbackHandler`, for what the usual capture cannot find.

    Returns:
        `Evaluations`: one per example, in the examples' order; `id`, `reference`, `relevant_ids`
        and `metadata` are the example's. Empty when there are no examples.

    Raises:
        ConfigurationError: an example cannot be read, an option cannot be used, or `out` exists
            or cannot be resumed from.
        OSError: `out` cannot be written.
    """
    runnable, read = _read(chain, examples, evaluator, options)
    return await _ask_and_evaluate(runnable.ainvoke, read, evaluator, options)


_HOOKS = ("documents", "response", "tool_documents")
_OWN = ("make_input", "config", *_HOOKS)  # the options that are not in `AskingOptions`
_Ask = Callable[[Any, RunnableConfig], Awaitable[object]]


def _read(
    chain: Chain, examples: Iterable[object], evaluator: RagEvaluator, options: Options
) -> tuple[Runnable[Any, Any], list[Example]]:
    """Check the arguments and read the examples, before anything is run or written."""
    for name, value in options.items():
        if name not in Options.__annotations__:
            known = ", ".join(Options.__annotations__)
            raise ConfigurationError(name, value, f"is not an option; use one of {known}")
    check_options(_asking_options(options))
    make_input, config = options.get("make_input"), options.get("config")
    if make_input is not None and not callable(make_input):
        raise ConfigurationError("make_input", make_input, "should be a callable")
    if config is not None and not isinstance(config, dict):
        raise ConfigurationError("config", config, "should be a RunnableConfig, a dict")
    if not isinstance(evaluator, RagEvaluator):
        raise ConfigurationError(
            "evaluator", evaluator, "should be a RagEvaluator, as in RagEvaluator()"
        )
    if not isinstance(chain, Runnable) and not callable(chain):
        raise ConfigurationError("chain", chain, "should be a runnable or a function of the input")
    if isinstance(examples, str | Mapping):
        raise ConfigurationError("examples", examples, "should be a list of examples")
    _handler(print, options)  # refuses hooks that cannot be used
    runnable = chain if isinstance(chain, Runnable) else RunnableLambda(chain)
    read = [
        example_from(item, f"examples[{number}]", make_input)
        for number, item in enumerate(examples)
    ]
    return runnable, read


def _asking_options(options: Options) -> AskingOptions:
    """Return the options of asking and evaluating, without those of the chain and the capture."""
    return cast("AskingOptions", {k: v for k, v in options.items() if k not in _OWN})


def _handler(target: Callable[[RagCall], object], options: Options) -> RagEvalCallbackHandler:
    """Make a handler with the hooks of the options."""
    hooks: dict[str, Any] = {name: hook for name, hook in options.items() if name in _HOOKS}
    return RagEvalCallbackHandler(target, **hooks)


async def _ask_and_evaluate(
    ask: _Ask, examples: list[Example], evaluator: RagEvaluator, options: Options
) -> Evaluations:
    """Ask the chain all questions, and evaluate the captured calls."""
    config, timeout = options.get("config"), options.get("timeout")

    async def answer(question: Question) -> Answered:
        """Ask the chain a question, and capture the call."""
        given = cast("Example", question).given

        def ask_captured(target: Callable[[RagCall], object]) -> Awaitable[object]:
            """Ask the chain with a handler that captures the call."""
            handler = _handler(target, options)
            return ask(given, merge_configs(config, {"callbacks": [handler]}))

        return await captured(
            question, ask_captured, seconds=timeout, framework="langchain", answer_of=answer_of
        )

    return await evaluate_asked(examples, answer, evaluator, _asking_options(options))
