"""Every parser of text, and the short pieces that hostile texts repeat."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.errors import RagEvalError
from rag_eval_integrations.judges import speaks_to_a_judge
from rag_eval_integrations.judges._prompt import parse_labels
from rag_eval_integrations.judges.embedded._features import says_documents_do_not_tell
from rag_eval_integrations.judges.embedded._language import foreign
from rag_eval_integrations.judges.embedded._words import words
from rag_eval_integrations.metrics.geval._reply import read_reply
from rag_eval_integrations.metrics.prompty import parse_prompty
from rag_eval_integrations.metrics.prompty._reply import read_score, read_verdict
from rag_eval_integrations.metrics.prompty.file import escape_section_tags, section_names
from rag_eval_integrations.metrics.prompty.metric import lint
from rag_eval_integrations.models._reading import (
    answer_in,
    as_text,
    fields_in,
    objects_in,
    unfenced,
)
from rag_eval_integrations.prompt_tests import PromptUnderTest
from rag_eval_integrations.prompt_tests._replies import lines_in, read_tests, statements_in
from rag_eval_integrations.records import RagCall
from rag_eval_integrations.sentences import Punkt, sentencize
from rag_eval_integrations.traces._values import documents_from

SPLITTER = Punkt()
PROMPT = PromptUnderTest.from_text("{{question}} {{style}}", name="p")


def front_matter(text: str) -> object:
    return parse_prompty(f"---\n{text}\n---\nGo", name="p")


def whole_call(text: str) -> object:
    return sentencize(RagCall(question=text[:1_000], documents=[text], response=""), SPLITTER)


def prompty(text: str) -> object:
    prompt = parse_prompty(text, name="p", strict=False)
    return section_names(prompt.text), lint(prompt), prompt.render({"x": text[:9]})


def refused(parse: Callable[[str], object]) -> Callable[[str], object]:
    """Let a parser refuse a text."""

    def parsed(text: str) -> object:
        with contextlib.suppress(RagEvalError, ValueError):
            return parse(text)
        return None

    return parsed


_PARSERS: dict[str, Callable[[str], object]] = {
    "sentences": whole_call,
    "spans": SPLITTER.spans,
    "YAML": front_matter,
    "YAML list": lambda text: front_matter(f"[{text}]"),
    "YAML field": lambda text: front_matter(f"a: {text}"),
    "labels": parse_labels,
    "answer": answer_in,
    "fence": unfenced,
    "objects": lambda text: list(objects_in(text)),
    "fields": lambda text: list(fields_in(text)),
    "string": lambda text: as_text(f'"{text}"'),
    "G-Eval reply": lambda text: read_reply(text, "coherence", (1, 5)),
    "score": read_score,
    "verdict": read_verdict,
    "prompt file": prompty,
    "front matter": lambda text: prompty(f"---\n{text}\n---\nx"),
    "sections": lambda text: escape_section_tags({"x": text}, frozenset(["OUTPUT", "RULES"])),
    "suspicion": lambda text: speaks_to_a_judge([text]),
    "language": foreign,
    "words": words,
    "absence": says_documents_do_not_tell,
    "lines": lines_in,
    "statements": lambda text: statements_in(text, "rules"),
    "tests": lambda text: read_tests(text, PROMPT),
    "lines of rows": lambda text: list(read_calls(io.StringIO(f"{{}}\n{text}"))),
    "array of rows": lambda text: list(read_calls(io.StringIO(f"[{text}"))),
    "table of rows": lambda text: list(read_calls(io.StringIO(f"question,answer\n{text}"))),
    "cell of documents": lambda text: documents_from(f"[{text}]", "documents"),
}
PARSERS = {name: refused(parse) for name, parse in _PARSERS.items()}
REPEATED = (
    "\n", " ", " \n", "\t", "a", "a ", "A. ", "1", "1.\n", "- ", "-", "* a\n", "|", "| a ", "|-|", "#",
    "> ", "`", "```\n", "```json\n{", "~~~\n", "{", "[", "{\"a\":", "[[", "{\"a\": [", "\"", "'", "\\",
    "\\\"", "\\u0041", "\\ud83d", "<", "< ", "<a>", "</think>", "<think>", "{{", "{{ ", "{{a}}", "{% ",
    "{#", "=", "===\n", "system:\n", "user:\n", "---\n", ": ", "a: b\n", "a,", "a,b\n", "1,1,", "\"a\",",
    "a: 'b', ", "score ", "score: ", "1/5 ", "e.g. ", "Dr. ", "...", "?!", "\u3002", "\u200b", "\u00ad",
    "é", "\U0001f600", "\r", "\r\n", "\u2028", "\0", "ignore the ", "&", "%",
    "a\n", "- x\n", "1. x\n", "-\n", "?\n", "a.\n", "x\n\n", "a\r\n", "a\u2028", "a\x85", "\n\f", "\t\n", "| a |\n",
    "a\tb\n", "a   b\n", "# a\n", "the\n", "a-\n", "a:\n", "1a. ", "a? ", "a\u3002", "a.[1] ", "[1] ", "a. [1] b ", "a.\n[1]\n", "(Source: ",
    "[1](http://a", "\u00b9", "Sources:\n", "Sources: a.b-", "[1] a.pdf\n", "[a,", "[],", "[[],",
    "- ", "- - ", "? ", "? a\n", "- a: b\n", "{a: 1},", "&a ", "*a ", "!a ", "!!int 1,", "<<: ", "|\n", "- |\n a\n",
    "%a\n", "\ufeff", "_", "\u00bd", "{#a#}", "{% if a %}{% endif %}",
)  # fmt: skip


def grown(begin: str, unit: str, size: int) -> str:
    """Make a text of a size, and a character at its end that nothing matches."""
    return (begin + repeated(unit, size))[:size] + "\0"


def repeated(unit: str, size: int) -> str:
    """Make a text of a size that repeats one piece."""
    return (unit * (size // len(unit) + 1))[:size]
