"""Values of other tools' rows in the form of ours: texts, documents, messages, cells of a table.

Objects are read by attribute; nothing of their packages is imported.
"""

from __future__ import annotations

import ast
import datetime
import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from rag_eval_integrations.errors import InputError
from rag_eval_integrations.records import Document
from rag_eval_integrations.records._json import excerpt, is_finite
from rag_eval_integrations.records.call import framework_of

_TEXTS = (
    "text",
    "page_content",
    "pageContent",
    "content",
    "passage",
    "chunk",
    "context",
    "snippet",
    "document.content",
)
SENTENCES = "sentences"
"""Name of a document's text as a list of sentences, as in HotpotQA."""
_IDS = ("id", "id_", "doc_id", "document_id", "node_id", "_id", "doc_uri")


# --- Text


def text_from(value: object, where: str) -> str | None:
    """Read a text: a string, a message, parts of one, or a list of one of them; None stays None.

    Of several messages it is the answer.

    Raises:
        InputError: it is something else.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and value:
        if all(isinstance(part, Mapping) and "text" in part for part in value):
            # Blocks of a message have their own spaces; sentences with citations have none.
            return _content(value, "" if any("type" in part for part in value) else " ")
        if len(value) == 1:
            return text_from(value[0], where)
        if messages := messages_in(value):
            return conversation(messages, where, answered=True).response
    message = _message(value)
    if message is not None:
        return message[1]
    raise InputError(f"should be text, not {excerpt(value)}", field=where)


def said_from(value: Any, where: str) -> str | None:
    """Read a text as `text_from` does; a finite number becomes its digits."""
    is_digits = _is_number(value) and is_finite(value)
    return str(id_from(value)) if is_digits else text_from(value, where)


def holds_text(value: object) -> bool:
    """Tell whether `text_from` reads a value, or a conversation is in it."""
    try:
        return bool(messages_in(value)) or text_from(value, "") is not None
    except InputError:
        return False


def object_in(value: object) -> Mapping[str, Any]:
    """Return an object, also one in a cell, as JSON or Python writes it; empty for others."""
    if isinstance(value, str) and value[:1] == "{":
        value = _parsed(value)
    return value if isinstance(value, Mapping) else {}


def items_in(value: object) -> list[Any] | None:
    """Return the items of a list, also of one in a cell; None for anything else."""
    if isinstance(value, str) and value[:1] == "[":
        value = _parsed(value)
    return list(value) if isinstance(value, list | tuple) else None


def _parsed(text: str) -> Any:
    """Parse the JSON in a cell, or a value in Python's notation; None for anything else."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _literal(text.strip())


_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_LONGEST_LITERAL, _MOST_MARKS = 1_000_000, 50_000
"""Characters of a cell in Python's notation, and how many of them may be marks: it is parsed into
an object per value, of some 500 bytes."""
_TEXT = re.compile(rb"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*\"""", re.S)


class _WithoutNaN(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(None) if node.id == "nan" else node


def _literal(text: str) -> Any:
    """Read texts, numbers, lists and dicts as pandas writes them into CSV; None for anything else.

    Python itself refuses more than 200 brackets in each other. Texts without a comma between them,
    as in numpy's `['a' 'b']`, are refused: Python would join them into one.
    """
    if len(text) > _LONGEST_LITERAL or sum(map(text.count, ",:([{<")) > _MOST_MARKS:
        return None
    line = re.sub(r"[\r\n]", " ", text)
    try:
        with warnings.catch_warnings():  # of `\d`, which pandas does not write
            warnings.simplefilter("ignore")
            tree = ast.parse(line, mode="eval")
        encoded = line.encode("utf-8")
        node: Any
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and not _TEXT.fullmatch(encoded, node.col_offset, node.end_col_offset):
                return None
        return ast.literal_eval(_WithoutNaN().visit(tree))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def list_in(text: str, where: str) -> list[Any] | None:
    """Read the list that a cell holds as JSON or in Python's notation; None when it holds none.

    Raises:
        InputError: it begins and ends as a list does, and cannot be read.
    """
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        return None
    parts = _parsed(inner)
    if not isinstance(parts, list):
        why = (
            f"looks like a list and is not JSON; write it as json.dumps does, not {excerpt(inner)}"
        )
        raise InputError(why, field=where)
    return parts


# --- Documents


def documents_from(value: object, where: str) -> list[Any]:
    """Read the documents of a call: a list, a text, a table's cell, or an object.

    A text that holds a list is that list; any other is one document, an empty one none. An object's
    documents are its `documents` or `nodes`, or it holds a list per field, or else is one itself. A
    list in a list is a batch of one; of several, each is the sentences of a document, perhaps
    behind its title.

    Raises:
        InputError: it is not a list of documents.
    """
    if value is None:
        raise InputError("is null: an empty list says that nothing was retrieved", field=where)
    if isinstance(value, str):
        cell = list_in(value, where)
        value = ([value] if value.strip() else []) if cell is None else cell
    if isinstance(value, Mapping):
        inside = (value[name] for name in ("documents", "nodes") if name in value)
        rows = _of_columns(value)
        value = next(inside, [value] if rows is None else rows)
    items = _items_of(value, where, "documents")
    if len(items) == 1 and isinstance(items[0], list) and not where.endswith(SENTENCES):
        is_document = _is_scored(items[0]) or _is_titled(items[0])
        items = items if is_document else items[0]  # a batch of one question
    return [_document(item, f"{where}[{index}]") for index, item in enumerate(items)]


def _items_of(value: object, where: str, kind: str) -> list[Any]:
    """Return a list of items, or the items of a cell; refuse anything else."""
    if isinstance(value, str):
        cell = list_in(value, where)
        value = value if cell is None else cell
    if isinstance(value, Mapping | str | bytes) or not isinstance(value, Iterable):
        raise InputError(f"should be a list of {kind}, not {excerpt(value)}", field=where)
    return list(value)


def _document(item: Any, where: str, score: Any = None) -> Any:
    """Read a document of any known shape: text, mapping, pair with a score, LlamaIndex node."""
    if isinstance(item, Document) or (isinstance(item, str) and score is None):
        return item
    if _is_scored(item):
        return _document(item[0], where, item[1])
    if framework_of(item) is not None:
        return item  # the record reads it, with what the framework shows the model
    if _is_titled(item):
        item = {"title": item[0], SENTENCES: item[1]}
    elif item and _are_sentences(item) and (SENTENCES in where or not _is_labelled(item)):
        item = {SENTENCES: item}
    fields = {"text": item} if isinstance(item, str) else fields_of(item)
    if fields is None:
        raise InputError(f"is not a document: {excerpt(item)}", field=where)
    if isinstance(node := fields.get("node"), Mapping):
        return _document(node, where, fields.get("score"))
    resource = fields.get("text_resource")
    if isinstance(resource, Mapping) and not isinstance(fields.get("text"), str):
        fields = {**fields, "text": resource.get("text")}
    name = next((name for name in _TEXTS if isinstance(fields.get(name), str)), None)
    lists = (each for each in (SENTENCES, *_TEXTS) if _are_sentences(fields.get(each)))
    if name is None and (name := next(lists, None)):
        fields = {**fields, name: " ".join(map(str.strip, fields[name]))}
    if name is None:
        names = ", ".join(f"`{key:.40}`" for key in list(map(str, fields))[:20]) or "nothing"
        why = f"is not a document: it has {names}, and no text under {', '.join(_TEXTS[:4])}"
        raise InputError(why, field=where)
    return _document_fields(fields, name, fields.get("score") if score is None else score)


def _document_fields(fields: Mapping[str, Any], name: str, score: Any) -> dict[str, Any]:
    """Convert the fields of a tool's document to ours: text, id, metadata and score.

    Its other fields become metadata, but not those of a node.
    """
    document: dict[str, Any] = {"text": fields[name]}
    label = next((fields[key] for key in _IDS if fields.get(key) is not None), None)
    if label is not None and not isinstance(label, bool):
        document["id"] = str(id_from(label))
    metadata = metadata_from(fields.get("metadata"), "")
    if not isinstance(metadata, Mapping):
        metadata = {}
    if "id_" not in fields:  # a node's other fields say how to show it
        used = {name, "metadata", "score", "header", "type", "lc", "text_resource", *_IDS}
        metadata = {**{key: fields[key] for key in fields if key not in used}, **metadata}
    if metadata := json_part(metadata):
        document["metadata"] = metadata
    if _is_number(score) and is_finite(score):
        document["score"] = float(score)
    if isinstance(fields.get("header"), str):
        document["header"] = fields["header"]
    return document


def _of_columns(fields: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the documents of an object with a list per field, as Hugging Face writes them.

    None where it is not such an object, or none of its lists holds texts.
    """
    columns = list(fields.values())
    if not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
        return None
    rows = [dict(zip(fields, cells, strict=True)) for cells in zip(*columns, strict=True)]
    lists = SENTENCES in fields and all(_are_sentences(row[SENTENCES]) for row in rows)
    return rows if lists or not fields.keys().isdisjoint(_TEXTS) else None


_END = re.compile(r"[.!?…。！？][\"'”’)]*\s*\Z")
"""The end of a sentence."""


def _are_sentences(item: Any) -> bool:
    """Tell whether an item is a list of texts, which are the sentences of one."""
    return isinstance(item, list) and all(isinstance(part, str) for part in item)


def _is_labelled(texts: list[str]) -> bool:
    """Tell whether two texts look like an id or title and the text of a document."""
    return len(texts) == 2 and not _END.search(texts[0])


def _is_titled(item: Any) -> bool:
    """Tell whether an item is a title and the sentences behind it, as HotpotQA writes them."""
    is_pair = isinstance(item, list | tuple) and len(item) == 2
    return is_pair and isinstance(item[0], str) and _are_sentences(item[1])


def _is_scored(item: Any) -> bool:
    """Tell whether an item is a pair of a document and the score of a search."""
    return isinstance(item, list | tuple) and len(item) == 2 and _is_number(item[1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def named_ids(documents: list[Any], ids: object, where: str) -> list[Any]:
    """Give documents their ids, which stand in a list of their own; without a list they stay.

    Raises:
        InputError: there are more or fewer ids than documents.
    """
    names = ids_from(ids, where)
    if names is None:
        return documents
    if len(names) != len(documents):
        why = f"has {len(names)} ids for {len(documents)} documents"
        raise InputError(why, field=where)
    texts = [{"text": text} if isinstance(text, str) else text for text in documents]
    return [
        {**document, "id": name} if isinstance(document, dict) else document
        for document, name in zip(texts, names, strict=True)
    ]


def ids_from(value: object, where: str) -> list[Any] | None:
    """Read a list of ids, also one in a cell; None where there is none.

    Raises:
        InputError: it is not a list; for one id or several, a wrong guess would be a wrong score.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    ids = _items_of(value, where, 'ids, such as ["a", "b"]')
    return [id_from(label) for label in ids]


def numbers_from(value: object, where: str) -> list[Any]:
    """Read a list of documents' numbers, also one in a cell; the record refuses other items.

    Raises:
        InputError: it is not a list.
    """
    is_empty = value is None or (isinstance(value, str) and not value.strip())
    return [] if is_empty else _items_of(value, where, "numbers of documents, such as [2, 3]")


def id_from(value: Any) -> Any:
    """Write a whole number as an id; a column of pandas with a gap has floats: 1.0 is `1`.

    Anything else stays, and is refused unless it is a text.
    """
    is_whole = _is_number(value) and is_finite(value) and value == int(value)
    return str(int(value)) if is_whole else value


def metadata_from(value: object, where: str) -> object:
    """Read metadata, also a cell that holds it or a text; the record refuses other values.

    A text that is no JSON object stands under `metadata`; an empty one, or `{}`, gives None.
    """
    if isinstance(value, str):
        is_empty = value.strip() in ("", "{}")
        return None if is_empty else object_in(value) or {"metadata": value}
    return value


# --- Messages


_ROLES = {
    **dict.fromkeys(("human", "user", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "assistant", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("system", "developer", "SystemMessage"), "system"),
    **dict.fromkeys(("tool", "function", "ToolMessage"), "tool"),
}


class Conversation(NamedTuple):
    """The last exchange of a conversation."""

    question: str
    """What the user asked last and was answered."""
    response: str | None
    """The last answer."""
    history: list[dict[str, str]]
    """The turns before the question, oldest first."""
    documents: list[Any]
    """What tools returned between question and answer, and what the answer's `retrieval_context`
    holds, as in deepeval's conversations."""


_CONTENT = re.compile(r"""["']content["']""")


def messages_in(value: object) -> list[Any]:
    """Return the messages of a value, also of a cell that holds them; empty if it has none.

    A LangChain input such as `{"messages": […]}` has some, too.
    """
    if isinstance(value, str) and value[:1] in ("[", "{") and _CONTENT.search(value):
        value = _parsed(value)
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list | tuple):
        value = value["messages"]
    if not isinstance(value, list | tuple) or not value:
        return []
    messages = [message for item in value for message in _messages_of_turn(item)]
    return [] if _message(messages[0]) is None else messages


def _messages_of_turn(item: Any) -> list[Any]:
    """Return the two messages of a turn as deepeval 2 writes it; other items as they are."""
    fields = fields_of(item) or {}
    asked, answer = fields.get("input"), fields.get("actual_output", fields.get("actualOutput"))
    if not (isinstance(asked, str) and isinstance(answer, str)):
        return [item]
    return [{"role": "user", "content": asked}, {**fields, "role": "assistant", "content": answer}]


def conversation(messages: list[Any], where: str, *, answered: bool) -> Conversation:
    """Read the last question that was answered, and its answer.

    What comes before is history; what tools and contexts said between the two are documents.

    Args:
        messages: messages as OpenAI, LangChain and ragas write them.
        where: name of their field, for errors.
        answered: whether the answer is among them; otherwise the last question counts.

    Raises:
        InputError: an item is not a message, or there is no question or no answer.
    """
    turns = [_turn(item, f"{where}[{index}]") for index, item in enumerate(messages)]

    def last(role: str, before: int, lack: str) -> int:
        """Return the index of the last turn of a role that has a text."""
        for index in reversed(range(before)):
            if turns[index][0] == role and turns[index][1]:
                return index
        raise InputError(lack, field=where)

    end = len(turns)
    if answered:
        end = last("assistant", end, "has no answer: no message of the assistant has text")
    asked = last("user", end, "has no question: no message of the user has text")
    history = [{"role": role, "content": text} for role, text in turns[:asked] if text]
    documents: list[Any] = [text for role, text in turns[asked:end] if role == "tool" and text]
    for item in messages[asked : end + 1]:
        fields = fields_of(item) or {}
        context = fields.get("retrieval_context") or fields.get("retrievalContext")
        documents += context if isinstance(context, list | tuple) else ()
    response = turns[end][1] if answered else None
    return Conversation(turns[asked][1], response, history, documents)


def turns_from(value: object, where: str) -> list[dict[str, str]] | None:
    """Read the turns before a question; None where there are none.

    Messages, or pairs: a role and its text, or a question and its answer.

    Raises:
        InputError: they are not messages.
    """
    if value is None or value == "":
        return None
    turns: list[tuple[str, str]] = []
    for index, item in enumerate(_items_of(value, where, "messages")):
        pair = isinstance(item, list | tuple) and [type(part) for part in item] == [str, str]
        if not pair:
            turns.append(_turn(item, f"{where}[{index}]"))
        elif item[0] in _ROLES:  # a message's role and text, or else a question and its answer
            turns.append((_ROLES[item[0]], item[1]))
        else:
            turns += [("user", item[0]), ("assistant", item[1])]
    return [{"role": role, "content": text} for role, text in turns]


def _turn(item: Any, where: str) -> tuple[str, str]:
    """Read a message's role and text; refuse anything else."""
    turn = _message(item)
    if turn is None:
        why = f"should be a message with a role and content, not {excerpt(item)}"
        raise InputError(why, field=where)
    return turn


def _message(item: Any) -> tuple[str, str] | None:
    """Read a message's role and text; None for anything else. A message without text has ""."""
    if isinstance(item, Mapping):
        fields = fields_of(item) or {}
        # `data` is of LangChain's older dumps.
        data = fields["data"] if isinstance(fields.get("data"), Mapping) else fields
        role = fields.get("role") or fields.get("type")
        content = data.get("content", data.get("blocks"))  # blocks are LlamaIndex'
        known = not {"content", "blocks", "data", "tool_calls"}.isdisjoint(fields)
    else:
        role, content = getattr(item, "role", None), getattr(item, "content", None)
        role = role if isinstance(role, str) else getattr(item, "type", None)
        known = content is not None
    if not known or not isinstance(role, str) or role not in _ROLES:
        return None
    return _ROLES[role], _content(content)


def _content(content: object, between: str = "") -> str:
    """Join the texts of a message's content; other blocks, such as images, are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return ""
    texts = (block.get("text") if isinstance(block, Mapping) else block for block in content)
    return between.join(text for text in texts if isinstance(text, str))


# --- Objects, and values that JSON has no form for: numpy, pandas, dates, pydantic models


_MOST_DEEP = 64


def fields_of(item: object) -> Mapping[str, Any] | None:
    """Return the fields of an object: a mapping, what LangChain serialised, or any Python object.

    None for an object without any.
    """
    if isinstance(item, Mapping):
        inner, path = item.get("kwargs"), item.get("id")
        is_dump = item.get("lc") or item.get("type") == "constructor"
        if not is_dump or not isinstance(inner, Mapping):
            return item
        return {"type": path[-1] if isinstance(path, list) and path else None, **inner}
    fields = getattr(type(item), "model_fields", None) or getattr(
        type(item), "__dataclass_fields__", None
    )
    if isinstance(fields, Mapping):
        return {name: getattr(item, name, None) for name in fields if name[:1] != "_"}
    fields = getattr(item, "__dict__", None)
    if not isinstance(fields, dict):
        return None
    return {name: value for name, value in fields.items() if name[:1] != "_"} or None


_GONE: Any = object()


def json_part(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the part of an object that JSON has a form for; dates as text, NaN as null."""
    part = as_json(value, keep=False)
    assert isinstance(part, dict)
    return part


def as_json(value: Any, *, keep: bool = True, depth: int = 0) -> Any:
    """Convert a value of a data frame or of an object to the types of JSON.

    Args:
        value: the value; numpy's arrays and numbers, dates, `NaN` and `NaT` are understood.
        keep: whether to leave other objects as they are, for who knows them; else drop them.
        depth: of nesting.
    """
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of numpy's text, or an enumeration's member
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if depth > _MOST_DEEP:
        return value if keep else None
    inner = partial(as_json, keep=keep, depth=depth + 1)
    if isinstance(value, Mapping):
        fields = ((str(key), inner(field)) for key, field in value.items())
        return {key: field for key, field in fields if field is not _GONE}
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        return [item for item in map(inner, value) if item is not _GONE]
    return _json_scalar(value, inner, value if keep else _GONE)


def _json_scalar(value: Any, inner: Callable[[Any], Any], other: Any) -> Any:
    """Convert a date, UUID or array to the types of JSON; `other` for anything else.

    None for missing values (`NaT`, `NA`).
    """
    if isinstance(value, datetime.date | datetime.time):
        return None if value != value else value.isoformat()  # NaT is not itself
    if isinstance(value, UUID):
        return str(value)
    if type(value).__module__.partition(".")[0] in ("numpy", "polars", "pyarrow"):
        as_list = getattr(value, "tolist", None) or getattr(value, "to_list", None)
        return inner(as_list()) if as_list else other
    return None if type(value).__name__ in ("NAType", "NaTType") else other
