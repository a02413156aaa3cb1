"""The page of a comparison: what it holds, and that no text acts in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
from hostile import HOSTILE, acting
from parsed import Parsed
from runs import call, run

from rag_eval_integrations.evaluations.comparison import Comparison
from rag_eval_integrations.records import EvaluationError
from rag_eval_integrations.report import compare
from rag_eval_integrations.report._compare_html import compare_page


def parsed(found: Comparison, **options: object) -> Parsed:
    """The page, parsed."""
    return Parsed("".join(compare_page(found, **options)))  # type: ignore[arg-type]


def words(text: str) -> str:
    """A text without the words for screen readers."""
    return re.sub(r" \[(removed:|added:|end)\] ", "", text).strip()


@pytest.fixture
def found() -> Comparison:
    """Twelve calls, of which one fell, one rose a little, and one became unscored."""
    before = run([1.0] * 12)
    fallen = call(
        "q0", {"adherence": 0.0}, supported=False, response=["It leaves at ten.", "It is green."],
        documents=["The ferry leaves at ten.", "Tickets cost two."],
    )  # fmt: skip
    after = [fallen, call("q1", {"adherence": "refusal"}), *run([1.0] * 11 + [0.8])[2:]]
    return compare(before, after, names=["old", "new"])


def test_the_figures_are_those_of_the_comparison(found: Comparison) -> None:
    """The same words as in the terminal, and the verdicts first."""
    page = parsed(found, verdicts=["cannot tell: adherence"])

    shown = page.texts("th")[-1:] + page.texts("td")
    assert shown[:4] == ["adherence", "1.000", "0.891", "-0.109 ▼"]
    assert page.texts("li")[0] == "cannot tell: adherence"
    assert any("Became unscored: adherence 1 (refusal 1)." in text for text in page.texts("p"))
    assert page.texts("h1") == ["old compared with new"]


def test_changed_calls_stand_side_by_side(found: Comparison) -> None:
    """The largest change first; changed words and documents, with words for who cannot see it."""
    page = parsed(found)

    assert page.texts("h3") == [
        "When does q0 leave?", "When does q11 leave?", "When does q1 leave?",
    ]  # fmt: skip
    assert [words(text) for text in page.texts("del")][:1] == ["nine"]
    assert [words(text) for text in page.texts("ins")][:1] == ["ten. It is green"]
    assert "[removed:]" in page.texts("del")[0]
    assert any("adherence 1.000 → 0.000 ▼ -1.000" in text for text in page.texts("li"))
    assert any("adherence 1.000 → – (refusal)" in text for text in page.texts("li"))
    assert "b It is green." in page.texts("li")

    # Documents by the numbers that keys have.
    assert page.texts("summary") == ["3 retrieved documents changed, 0 stayed"]
    places = [text for text in page.texts("p") if " document " in text]
    assert places == ["added as document 0", "added as document 1", "gone, was document 0"]


def test_calls_and_their_texts_are_bounded_and_it_is_told() -> None:
    """All calls changed, some are shown; one response would make a page as long as all others."""
    changed = compare(run([1.0] * 40), run([0.0] * 40))
    page = parsed(changed)

    assert len(page.texts("h3")) == 30
    assert any("30 of the 40 calls" in text for text in page.texts("p"))
    assert len(parsed(changed, calls=2).texts("h3")) == 2
    after = run([0.0] * 12, response=["word " * 200_000], documents=["text " * 200_000])
    cut = "".join(compare_page(compare(run([1.0] * 12), after)))
    assert len(cut) < 2_000_000
    assert "more characters are not shown." in cut


def page_of(texts: Sequence[str]) -> str:
    """A page of calls with these questions, responses, documents, ids, reasons and names."""
    before, after = [], []
    for number, text in enumerate(texts):
        common: dict[str, Any] = {"question": text, "document_ids": [text, f"{text} 2"]}
        before.append(
            call(f"{number} {text}", {"adherence": 1.0, text: 1.0}, documents=[text, "One."],
                 **common)
        )  # fmt: skip
        after.append(
            call(f"{number} {text}", {"adherence": 0.0, text: 0.0}, response=[text, f"{text} too"],
                 supported=False, documents=[f"{text} more", text],
                 error=EvaluationError(type="E", message=text, stage="judge"), **common)
        )  # fmt: skip
    found = compare(before, after, names=[f"old {texts[0]}", texts[1]])
    return "".join(compare_page(found, verdicts=texts, calls=100))


def test_no_text_acts() -> None:
    """Sixty texts of other people bring no element, attribute or link into the page."""
    page, plain = (page_of(texts) for texts in (HOSTILE, [f"x_{n}" for n in range(len(HOSTILE))]))
    shown = Parsed(page)

    assert acting(page) == []
    assert {*shown.tags} <= {*Parsed(plain).tags}
    names = {name for attributes in shown.attributes for name in attributes}
    assert not [name for name in names if name.startswith("on") or name in ("style", "src")]
    assert {each["href"] for each in shown.attributes if "href" in each} == {"#main"}
