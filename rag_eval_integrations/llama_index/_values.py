"""Stage 1 for LlamaIndex: read question, answer, prompt, nodes and turns from its objects.

Objects are read by attribute and not by class, so that `llama_index.core` (5 s to import) is not
needed. A response is never turned into a string: `str()` of a streaming response drains its stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue

from rag_eval_integrations._answer import answer_among, fields_of
from rag_eval_integrations.capture._calls import Snapshot, finite, json_object
from rag_eval_integrations.capture._delivery import Hooks, text_or_none
from rag_eval_integrations.capture._documents import documents_seen
from rag_eval_integrations.records import Turn
from rag_eval_integrations.records._conversation import with_conversation

_LISTS = (list, tuple)
_LLM_MODE = "llm"  # the value of `MetadataMode.LLM`, a string enum: the text as models see it
_QUESTIONS = (
    "str_or_query_bundle",
    "user_msg",
    "question",
    "query",
    "message",
    "input",
    "user_input",
    "prompt",
)
_ANSWERS = ("response", "answer", "result", "output", "text", "content", "message")
_NUMBER = re.compile(r"^Source \d+:\n", re.MULTILINE)  # in a citation engine's nodes
_MAX_DEPTH = 4  # a workflow's result may hold a response that holds a message
_TURNS: Mapping[str, Literal["user", "assistant"]] = {
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
}

# --- The question -------------------------------------------------------------------------


def question_of(arguments: Mapping[str, Any]) -> str:
    """Read the question from the arguments of an entry method; empty when there is none.

    It is the argument with one of the usual names, or the first argument (engines), or the last
    message of the user in the chat history (workflows).
    """
    given = _start_arguments(arguments)
    if given is None:  # by name first: the first argument of an app's own method may be another
        return _question_by_name(arguments) or text_of(next(iter(arguments.values()), None)) or ""
    if question := _question_by_name(given):
        return question
    turns = turns_of(given.get("chat_history"))
    return next((turn.content for turn in reversed(turns) if turn.role == "user"), "")


def asks_nothing(arguments: Mapping[str, Any]) -> bool:
    """Return whether a run is given no question, and no other text of several words."""
    given = (_start_arguments(arguments) or {}).values()
    return not question_of(arguments) and not any(
        isinstance(value, str) and " " in value.strip() for value in given
    )


def _start_arguments(arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the arguments with which a workflow is started; None for any other method."""
    if "start_event" in arguments:
        return fields_of(arguments["start_event"])
    if len(arguments) == 1 and "kwargs" in arguments:
        kwargs: Mapping[str, Any] = arguments["kwargs"]
        return kwargs
    return None


def _question_by_name(given: Mapping[str, Any]) -> str | None:
    """Find the question by its usual names among the arguments; None without one."""
    for name in _QUESTIONS:
        if name in given and (text := text_of(given[name])) is not None:
            return text
    return None


def text_of(value: object) -> str | None:
    """Return the text of a string, a query bundle or a message; None for anything else."""
    if isinstance(value, str):
        return value
    text = getattr(value, "query_str", None)
    if text is None:
        text = getattr(value, "content", None)
    return text if isinstance(text, str) else None


def state_of(workflow: Any) -> object:
    """Return the state in a workflow's context; None where it is not in memory."""
    store: Any = getattr(workflow, "store", None)
    if type(store).__name__ != "InMemoryStateStore":
        return None
    reading = store.get_state()  # which does not wait for anything
    try:
        reading.send(None)
    except StopIteration as done:
        return fields_of(done.value)
    finally:
        reading.close()
    return None


def turns_of(messages: object) -> tuple[Turn, ...]:
    """Return the turns of users and assistants, oldest first, without empty ones (tool calls)."""
    if not isinstance(messages, _LISTS):
        return ()
    turns = ((_TURNS.get(_role(message)), text_of(message)) for message in messages)
    return tuple([Turn(role=role, content=text) for role, text in turns if role and text])


def _role(message: object) -> str:
    role = getattr(message, "role", None)
    return str(getattr(role, "value", role))


# --- The answer ---------------------------------------------------------------------------


def unwrapped(result: object) -> object:
    """Return the result of an entry method; for a workflow, the value inside its stop event."""
    if "source_nodes" in getattr(result, "__dict__", ()):
        return result
    if "StopEvent" not in [kind.__name__ for kind in type(result).__mro__]:
        return result
    output = getattr(result, "result", None)
    return fields_of(result) if output is None else output


def answer_of(result: object, replies: Sequence[str] = (), depth: int = 0) -> str | None:
    """Return the text of a finished response; None without one.

    Of other results, the text under a usual name, under a name that ends in one, or a model's last
    reply; else a structured answer as JSON.

    Args:
        result: the result of an entry method, or a part of one.
        replies: what models wrote, the last one at the end.
        depth: levels above this value; below the fourth level nothing is read.
    """
    if result is None or isinstance(result, str):
        return result
    if depth == _MAX_DEPTH:
        return None
    # Only its own fields: a structured response answers every attribute, by dumping its model.
    own = getattr(result, "__dict__", {})
    if "response" in own and (depth == 0 or "role" not in own):
        text = answer_of(own["response"], (), depth + 1)
        return text or _as_json(own.get("structured_response")) or text
    if "role" in own:  # a chat message, whose content is a property
        return text_of(result)
    if hasattr(own.get("message"), "role"):  # a chat model's response
        return text_of(own["message"])
    if "text" in own and "raw" in own:  # a completion
        return answer_of(own["text"], (), depth + 1)
    as_json = getattr(type(result), "model_dump_json", None)
    fields = fields_of(result) if as_json is None else {}
    texts = (answer_of(fields[name], (), depth + 1) for name in _ANSWERS if name in fields)
    text = next((text for text in texts if text is not None), None)
    text = answer_among(texts_in(result, depth=depth), replies) if text is None else text
    return str(as_json(result)) if text is None and as_json is not None else text


def texts_in(value: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each text in a result, without those of nodes."""
    if isinstance(value, str):
        yield name, value
    elif depth < _MAX_DEPTH and not nodes_of([value]) and not hasattr(value, "get_content"):
        fields = [(name, part) for part in value] if isinstance(value, _LISTS) else fields_of(value)
        for below, part in fields.items() if isinstance(fields, Mapping) else fields:
            yield from texts_in(part, str(below), depth + 1)


def _as_json(value: object) -> str | None:
    """Return a mapping as JSON; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    return json.dumps(json_object(value), ensure_ascii=False)


# --- The prompt ---------------------------------------------------------------------------


def prompt_of(event: object) -> tuple[str, Sequence[Any]]:
    """Return the prompt of a model's start event: its text, and its messages."""
    # A pydantic model takes 10 µs to report a missing attribute.
    own = getattr(event, "__dict__", {})
    messages = own.get("messages") or ()
    return prompt_in(own.get("prompt"), messages), messages


def prompt_in(*values: object) -> str:
    """Return the first text among a model's arguments: a prompt, or a list of messages joined."""
    for value in values:
        if isinstance(value, str):
            return value
        if isinstance(value, _LISTS) and value:
            texts = [getattr(message, "content", None) for message in value]
            return "\n".join([text for text in texts if isinstance(text, str)])
    return ""


def images_of(value: object) -> list[str]:
    """Return path, URL or base64 of the images of a message or of an image node."""
    own = getattr(value, "__dict__", {})
    images: list[str] = []
    for block in own.get("blocks") or (own,):
        fields = block if isinstance(block, dict) else getattr(block, "__dict__", {})
        for name in ("image", "path", "url", "image_path", "image_url"):
            if given := fields.get(name):
                is_bytes = isinstance(given, bytes)
                images.append(given.decode("ascii", "replace") if is_bytes else str(given))
    return images


def model_arguments(arguments: Mapping[str, Any]) -> Iterator[object]:
    """Yield the arguments of a model's method, without LlamaIndex's own wrappers."""
    for value in arguments.values():
        if isinstance(value, Mapping):
            yield from value.values()
        elif type(value) is tuple:
            yield from value
        else:
            yield value


# --- Nodes --------------------------------------------------------------------------------


def nodes_of(value: object) -> list[tuple[Any, float | None]]:
    """Find the nodes, with their scores, in a list of nodes, a response's sources or a mapping."""
    if not isinstance(value, _LISTS):
        if isinstance(value, Mapping):  # a workflow's result: its first list of nodes
            inside = (nodes_of(item) for item in list(value.values()) if isinstance(item, _LISTS))
            return next((nodes for nodes in inside if nodes), [])
        own = getattr(value, "__dict__", {})
        nodes = own.get("source_nodes")
        # A chat response lists the sources of its tools, but not those of a streaming one (0.14).
        value = nodes or [
            node
            for source in own.get("sources") or ()
            for node in getattr(getattr(source, "raw_output", None), "source_nodes", None) or ()
        ]
    if not isinstance(value, _LISTS):
        return []
    scored = []
    for item in value:
        try:
            node, score = item.node, item.score
        except AttributeError:
            continue
        # NaN and infinities are not JSON numbers; times zero, they are not 0.
        if score is not None and (type(score) is not float or score * 0.0 != 0.0):
            score = finite(score)
        scored.append((node, score))
    return scored


def snapshot(node: Any, score: float | None, mode: str = _LLM_MODE) -> Snapshot:
    """Copy a node as it is now, with the text that models are shown: metadata first.

    Empty where it has none.
    """
    content = getattr(node, "get_content", None)
    text = content(metadata_mode=mode) if callable(content) else ""
    name = getattr(node, "node_id", None)
    metadata = getattr(node, "metadata", None)
    return Snapshot(
        text if isinstance(text, str) else "",
        None if name is None else str(name),
        json_object(metadata) if metadata else {},
        score,
    )


def body_of(node: Any, text: str) -> str | None:
    """Return a node's own text where the text for models has more before it, else None.

    Before it are metadata, or the number that a citation engine writes into the node.
    """
    raw = getattr(node, "text", None)
    body = raw.strip() if isinstance(raw, str) else ""
    if number := _NUMBER.match(body):
        body, text = body[number.end() :].lstrip(), text.rstrip()
    return body if body and body != text and text.endswith(body) else None


def split_header(seen: Snapshot, body: str | None) -> Snapshot:
    """Move what stands before a node's body from its text to its header, if it has a body."""
    if body is None:
        return seen
    return seen._replace(text=body, header=seen.text.rstrip()[: -len(body)].strip() or None)


def document_snapshot(node: Any, score: float | None, mode: str = _LLM_MODE) -> Snapshot:
    """Copy a node as it is now, with its metadata as the header."""
    seen = snapshot(node, score, mode)
    return split_header(seen, body_of(node, seen.text))


def is_derived_from(node: Snapshot, retrieved: Sequence[Snapshot]) -> bool:
    """Return whether a node is a part of a retrieved node, or composed of retrieved nodes."""
    longest = max(node.text.split("\n"), key=len).strip()
    return any(
        longest in source.text or (source.text and source.text in node.text) for source in retrieved
    )


def source_of(text: str, nodes: Sequence[Snapshot]) -> Snapshot | None:
    """Return the node that has all lines of a citation engine's text; None without one."""
    lines = [line.strip() for line in _NUMBER.sub("", text, count=1).split("\n")]
    for node in nodes:
        if all(line in node.text for line in lines):
            return node
    return None


def with_source_id(seen: Snapshot, retrieved: Sequence[Snapshot]) -> Snapshot:
    """Give a citation engine's node the id of the retrieved node of which it is a part."""
    if not _NUMBER.search(f"{seen.header}\n"):
        return seen
    whole = source_of(seen.text, retrieved)
    return seen if whole is None else seen._replace(id=whole.id)


# --- Earlier turns of a chat engine


def earlier_messages(arguments: Mapping[str, Any], engine: object) -> list[Any] | None:
    """Return the messages with which a chat method starts: those passed to it, or the engine's own.

    None when they are in a memory that is more than a plain store (a database, a summary): reading
    it would slow down the app's call.
    """
    given = arguments.get("chat_history")
    if given:
        return list(given)  # a copy, since the engine writes into this list
    memory = getattr(engine, "_memory", None)
    store = getattr(getattr(memory, "chat_store", None), "store", None)
    if not isinstance(store, Mapping):
        return None
    # An empty list replaces the content of the memory.
    return (
        [] if given is not None else list(store.get(getattr(memory, "chat_store_key", None)) or ())
    )


def session_of(arguments: Mapping[str, Any], engine: object) -> str | None:
    """Return the session of the memory that a method is given, else of the engine's memory.

    None for a memory that has only the default key.
    """
    memory = arguments.get("memory") or getattr(engine, "_memory", None)
    session = getattr(memory, "session_id", None) or getattr(memory, "chat_store_key", None)
    return session if isinstance(session, str) and session != "chat_history" else None


def user_tags(
    arguments: Mapping[str, Any], tags: Mapping[str, Any] | None, session: str | None
) -> dict[str, JsonValue]:
    """Return the app's own `instrument_tags`, with the session where they name none.

    An agent's run has them among its arguments.
    """
    if not tags:
        carried = arguments.get("tags")
        tags = None if type(carried) is not dict else carried.get("instrument_tags")
    own = {k: v for k, v in (tags or {}).items() if not str(k).startswith("llamaindex.")}
    return json_object(with_conversation(own, session))


def template_messages(synthesizer: object) -> list[Any]:
    """Return the messages in the template that a chat engine gave its synthesizer; else none.

    They are the conversation, also if the model is sent one text, with the question's place last.
    """
    template = getattr(synthesizer, "__dict__", {}).get("_text_qa_template")
    messages = getattr(template, "message_templates", None)
    if not isinstance(messages, list):
        return []
    # Where a model has no system role, the nodes' place looks like a turn of the user.
    return [message for message in messages if "{context_str}" not in (text_of(message) or "")]


# --- The user's own extractors `question=`, `documents=`, `response=`


class LlamaIndexHooks(Hooks):
    """The user's own extractors; if one fails, the call is read without it."""

    def question(self, arguments: Mapping[str, Any]) -> str | None:
        """Run the question hook on an entry method's arguments; None without a result."""
        if "question" in self and "start_event" in arguments:
            arguments = fields_of(arguments["start_event"])
        return self.run("question", arguments, read=text_or_none, empty=None)

    def documents(self, result: object) -> list[Snapshot] | None:
        """Run the documents hook on an entry method's result; None without a result."""
        return self.run("documents", result, read=_documents, empty=None)

    def response(self, result: object) -> str | None:
        """Run the response hook on a result or a stream's text; None without an answer."""
        return self.run("response", result, read=text_or_none, empty=None)


def _documents(value: object) -> list[Snapshot] | None:
    """Read the documents that a hook returned; None without a result."""
    return None if value is None else documents_seen(value, _node)


def _node(item: Any) -> Snapshot | None:
    """Copy a node, scored or not, with its metadata as the header; None for anything else."""
    if scored := nodes_of([item]):
        return document_snapshot(*scored[0])
    return document_snapshot(item, None) if hasattr(item, "get_content") else None
