"""Evaluations on a console: unscored is never a number, hostile text never obeyed."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from hostile import HOSTILE, acting
from report_rows import labelled
from rich.console import Console, RenderableType
from runs import call

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations._visible import one_line, visible
from rag_eval_integrations.evaluations.console import (
    MISSED,
    add_row,
    call_details,
    calls_overview,
    plain_table,
)
from rag_eval_integrations.records import Evaluation, Sentence, Sentences
from rag_eval_integrations.report import unsupported_sentences

SCORES: dict[str, float | str | None] = {
    "adherence": 0.0, "completeness": "no_context", "geval:tone": None,
}  # fmt: skip


def shown(*renderables: RenderableType, width: int = 120, **options: Any) -> str:
    screen = StringIO()
    console = Console(file=screen, width=width, **options)
    for each in renderables:
        console.print(each)
    return screen.getvalue()


def evaluation(sentence: str, *, question: str = "Why?", **more: Any) -> Evaluation:
    """A call with a value, a score without one, one that failed, and a sentence."""
    given = {"supported": False, "explanation": "no source", **more}
    return call("x", SCORES, question=question, response=[sentence], **given)


def test_unsupported_sentences_come_with_key_and_reason() -> None:
    """What is unsupported is quoted, cut at 300 characters, and why; of the others nothing."""
    text = shown(unsupported_sentences(evaluation("Made \x1b[2J [b]up.")))

    assert "a not supported: “Made \\x1b[2J [b]up.”" in text
    assert "no source" in text
    assert f"“{'s' * 299}…”" in str(unsupported_sentences(evaluation("s" * 301)))
    assert "s" * 300 in str(unsupported_sentences(evaluation("s" * 300)))
    assert not unsupported_sentences(evaluation("True.", supported=True))


@pytest.mark.parametrize("text", HOSTILE)
def test_cells_and_headings_of_any_console_are_text(text: str) -> None:
    """Also of one that reads markup, and of one that interprets a terminal."""
    table = plain_table(text, "x", f"{text}>")
    add_row(table, text, text)
    row = evaluation(text, question=text, explanation=text)
    sentences = Sentences(
        documents=(Sentence("0a", text), Sentence(text, "Odd key.")),
        response=(Sentence("a", text),),
    )
    full = row.model_copy(update={"document_ids": (text,), "sentences": sentences})

    screen = shown(
        table, unsupported_sentences(row),
        call_details(full), calls_overview([full]), width=2000, markup=True, highlight=False,
    )  # fmt: skip

    assert acting(screen) == []
    # A call's own texts are escaped as on a page, where white space is not folded first.
    assert sum(map(screen.count, {one_line(text), one_line(visible(text))})) >= 10


def test_a_call_without_labels_has_no_marks() -> None:
    """Nobody judged, so nothing is signed, and the reason stands in place of a score."""
    row = evaluation("Made up.").model_copy(update={"labels": None, "sentences": Sentences()})
    text = shown(call_details(row))

    assert "✗" not in text
    assert "Made up." in text
    assert "completeness no_context" in text


def test_a_list_of_sources_has_a_sign_of_its_own() -> None:
    """It is neither supported nor unsupported, also in a notebook's cell."""
    answer = "It leaves at nine.\nSources: timetable.pdf"
    row = RagEvaluator().evaluate_sync(RagCall("When?", ["It leaves at nine."], answer))

    assert "–  b Sources: timetable.pdf" in shown(call_details(row))
    assert "<b>b –</b> Sources: timetable.pdf" in row._repr_html_()


def test_marks_follow_the_labels() -> None:
    """Relevant and used, relevant only, used only, and neither."""
    row = labelled(
        "x", ["Text 0a. Text 0b.", "Text 1a. Text 1b."], "Half true.", relevant="0a 0b",
        used="0a 1a", support=(("a", "0a", False, "Half."),),
    )  # fmt: skip
    text = shown(call_details(row))

    for line in ("RU 0a Text", "R  0b Text", "U  1a Text", "   1b Text", "◐  a Half true."):
        assert f"  {line}" in text
    assert MISSED not in text
    assert re.search(r"◐ a +$", shown(calls_overview([row])), re.M)
