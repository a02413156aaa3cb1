"""Evaluations on a console: unscored is never a number, hostile text never obeyed."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from hostile import HOSTILE, acting
from rich.console import Console, RenderableType

from rag_eval_integrations.evaluations.console import (
    MISSED,
    add_row,
    call_details,
    calls_overview,
    plain_table,
)
from rag_eval_integrations.records import (
    Evaluation,
    JudgeInfo,
    Labels,
    Score,
    Sentence,
    Sentences,
    SentenceSupport,
)
from rag_eval_integrations.report import calls_table, plain, unsupported_sentences


def shown(renderable: RenderableType) -> str:
    screen = StringIO()
    Console(file=screen, width=120, force_terminal=False).print(renderable)
    return screen.getvalue()


def evaluation(sentence: str, *, question: str = "Why?", supported: bool = False) -> Evaluation:
    return Evaluation(
        id="x",
        row_key="0" * 64,
        question=question,
        response=sentence,
        scores={
            "adherence": Score(name="adherence", status="scored", value=0.0),
            "completeness": Score(name="completeness", status="unscored", unscored="no_context"),
            "geval:tone": Score(name="geval:tone", status="error", reason="down"),
        },
        labels=Labels(
            all_relevant_sentence_keys=(),
            all_utilized_sentence_keys=(),
            sentence_support_information=(
                SentenceSupport(
                    response_sentence_key="a", explanation="no source", fully_supported=supported
                ),
            ),
        ),
        sentences=Sentences(response=(Sentence("a", sentence),)),
        judge=JudgeInfo(name="scripted"),
    )


def test_table_shows_values_reasons_and_keys() -> None:
    """A value as a number, no value as its reason, unsupported sentences by key."""
    text = shown(calls_table([evaluation("Made up.")]))

    row = text.splitlines()[3]
    assert "0.00" in row
    assert "no_context" in row
    assert "error" in row
    assert row.rstrip(" │┃").endswith("a")


def test_unsupported_sentences_come_with_key_and_reason() -> None:
    """What is unsupported is quoted, and why."""
    text = shown(unsupported_sentences(evaluation("Made \x1b[2J [b]up.")))

    assert "a not supported: “Made \\x1b[2J [b]up.”" in text
    assert "no source" in text


def test_supported_sentences_are_not_listed() -> None:
    """Nothing to say is nothing said."""
    assert not unsupported_sentences(evaluation("True.", supported=True))


@pytest.mark.parametrize(("count", "keys"), [(0, "–"), (1, "a"), (4, "a b c d"), (6, "a b c d +2")])
def test_table_names_four_unsupported_sentences_at_most(count: int, keys: str) -> None:
    """More are counted; none is a dash and no empty cell."""
    named = "abcdef"[:count]
    row = evaluation("x")
    assert row.labels is not None
    entries = tuple(
        SentenceSupport(response_sentence_key=key, explanation="", fully_supported=False)
        for key in named
    )
    labels = row.labels.model_copy(update={"sentence_support_information": entries})
    sentences = Sentences(response=tuple(Sentence(key, f"{key}.") for key in named))

    text = shown(calls_table([row.model_copy(update={"labels": labels, "sentences": sentences})]))

    assert text.splitlines()[3].rstrip(" │┃").endswith(f" {keys}")


def test_long_sentences_and_explanations_are_cut() -> None:
    """At 300 characters each, with a mark."""
    text = str(unsupported_sentences(evaluation("s" * 301)))

    assert f"“{'s' * 299}…”" in text
    assert "s" * 300 in str(unsupported_sentences(evaluation("s" * 300)))


def scored(**scores: Score) -> Evaluation:
    return evaluation("Made up.", question="When does the ferry leave?").model_copy(
        update={"scores": scores}
    )


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("names", [1, 4, 9])
def test_no_value_is_cut_in_a_narrow_terminal(width: int, names: int) -> None:
    """Where a column per score does not fit, the scores stand below the question."""
    values = {f"s{n}": Score(name=f"s{n}", status="scored", value=n / 10) for n in range(names)}
    lost = Score(name="lost", status="unscored", unscored="judge_output_invalid")
    screen = StringIO()

    Console(file=screen, width=width).print(calls_table([scored(**values, lost=lost)], width))

    text = screen.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert all(f"{n / 10:.2f}" in text for n in range(names))
    assert "judge_output_invalid" in text
    assert re.search(r"unsupp\.\s+a|unsupp\.[^\w]+.* a ", text, re.S)


@pytest.mark.parametrize("text", HOSTILE)
def test_cells_and_headings_of_any_console_are_text(text: str) -> None:
    """Also of one that reads markup, and of one that interprets a terminal."""
    table = plain_table(text, "x", f"{text}>")
    add_row(table, text, text)
    row = evaluation(text, question=text)
    screen = StringIO()
    console = Console(file=screen, width=2000, markup=True, emoji=True, highlight=False)

    for each in (table, calls_table([row]), calls_table([row], 20), unsupported_sentences(row)):
        console.print(each)

    assert acting(screen.getvalue()) == []
    assert screen.getvalue().count(plain(text)) >= 7


def test_a_narrow_table_folds_words_and_keeps_numbers() -> None:
    """The last column is the one that matters as often as not."""
    table = plain_table("t", "name", "mean>", "because")
    add_row(table, "a_very_long_name_of_a_metric", "0.123", "judge_output_invalid 12, refusal 3")
    screen = StringIO()
    Console(file=screen, width=30).print(table)

    text = screen.getvalue()
    assert "…" not in text
    assert "0.123" in text
    folded = "".join(text.split())
    assert all(part in folded for part in ("judge_ou", "refusal"))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_call_in_full_neither_acts_nor_is_markup(text: str) -> None:
    """Question, sentences, keys, names and explanations are other people's text."""
    call_row = evaluation(text, question=text)
    labels = call_row.labels
    assert labels is not None
    entry = labels.sentence_support_information[0].model_copy(update={"explanation": text})
    row = call_row.model_copy(
        update={
            "labels": labels.model_copy(update={"sentence_support_information": (entry,)}),
            "document_ids": (text,),
            "sentences": Sentences(
                documents=(Sentence("0a", text), Sentence(text, "Odd key.")),
                response=(Sentence("a", text),),
            ),
        }
    )

    for part in (call_details(row), calls_overview([row])):
        assert acting(shown(part)) == []


def test_a_call_without_labels_has_no_marks() -> None:
    """Nobody judged, so nothing is signed, and the reason stands in place of a score."""
    row = evaluation("Made up.").model_copy(update={"labels": None, "sentences": Sentences()})
    text = shown(call_details(row))

    assert "✗" not in text
    assert "Made up." in text
    assert "completeness no_context" in text


def test_marks_follow_the_labels() -> None:
    """Relevant and used, relevant only, used only, and neither."""
    labels = Labels(
        all_relevant_sentence_keys=("0a", "0b"),
        all_utilized_sentence_keys=("0a", "1a"),
        sentence_support_information=(
            SentenceSupport(
                response_sentence_key="a", explanation="Half.", supporting_sentence_keys=("0a",),
                fully_supported=False,
            ),
        ),
    )  # fmt: skip
    keys = ("0a", "0b", "1a", "1b")
    row = evaluation("Half true.").model_copy(
        update={
            "labels": labels,
            "sentences": Sentences(
                documents=tuple(Sentence(key, f"Text {key}.") for key in keys),
                response=(Sentence("a", "Half true."),),
            ),
        }
    )
    text = shown(call_details(row))

    for line in ("RU 0a Text", "R  0b Text", "U  1a Text", "   1b Text", "◐  a Half true."):
        assert f"  {line}" in text
    assert MISSED not in text
    assert re.search(r"◐ a +$", shown(calls_overview([row])), re.M)
