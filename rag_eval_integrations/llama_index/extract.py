"""Stage 1, LlamaIndex's values: question, answer, prompt and nodes out of spans and events.

Read by attribute and not by class, so that `llama_index.core` (5 s to import) is not needed. A
response is never turned into a string: `str()` of a streaming response drains the app's stream.
"""

from __future__ import annotations

from inspect import BoundArguments
from typing import NamedTuple

from rag_eval_integrations._observe import Seen, finite, json_object

_LISTS = (list, tuple)
_LLM_MODE = "llm"  # the value of `MetadataMode.LLM`, a string enum: the text as models see it


def question_of(bound_args: BoundArguments) -> str:
    """Read the question from an entry method's first argument: a string or a query bundle."""
    for value in bound_args.arguments.values():
        if isinstance(value, str):
            return value
        query = getattr(value, "query_str", None)
        return query if isinstance(query, str) else ""
    return ""


def answer_of(result: object) -> str | None:
    """Read a finished response's text; a structured answer as its JSON; None when there is none."""
    if isinstance(result, str):
        return result
    response = getattr(result, "response", None)
    if response is None or isinstance(response, str):
        return response
    as_json = getattr(response, "model_dump_json", None)
    return str(as_json()) if callable(as_json) else None


def is_stream(result: object) -> bool:
    """Whether the response's text is still to be generated."""
    # Its own fields only: a structured response answers every attribute, by dumping its model.
    return getattr(result, "__dict__", {}).get("response_gen") is not None


def nodes_of(value: object) -> list[Scored]:
    """Find the nodes in a retriever's or postprocessor's list, or in a response's sources."""
    if not isinstance(value, _LISTS):
        value = getattr(value, "__dict__", {}).get("source_nodes")
    if not isinstance(value, _LISTS):
        return []
    return [
        Scored(item.node, finite(item.score))
        for item in value
        if hasattr(item, "node") and hasattr(item, "score")
    ]


def prompt_of(event: object) -> str:
    """Take the text that a model is started with out of its start event."""
    prompt = getattr(event, "prompt", None)
    if isinstance(prompt, str):
        return prompt
    texts = [
        getattr(message, "content", None) for message in getattr(event, "messages", None) or ()
    ]
    return "\n".join(text for text in texts if isinstance(text, str))


class Scored(NamedTuple):
    """A node and the score that it has at this stage."""

    node: object
    score: float | None


def raw_text(node: object) -> object:
    """The string that the node holds: as long as it is the same one, a snapshot stands."""
    return getattr(node, "text", None)


def snapshot(scored: Scored) -> Seen:
    """Copy a node as it is now, with the text that models are shown (metadata in front of it)."""
    node = scored.node
    content = getattr(node, "get_content", None)
    text = content(metadata_mode=_LLM_MODE) if callable(content) else ""
    name = getattr(node, "node_id", None)
    metadata = getattr(node, "metadata", None)
    return Seen(
        text if isinstance(text, str) else "",
        None if name is None else str(name),
        json_object(metadata) if metadata else {},
        scored.score,
    )
