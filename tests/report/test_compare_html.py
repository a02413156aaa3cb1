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

    figures = ["1.000", "0.891", "-0.109 [-0.350, +0.166]\n-0.50+0.5"]  # and the axis of the plot
    assert page.texts("td")[:3] == figures
    lines = ["cannot tell: adherence", "? cannot tell adherence 2 of 11 calls fell, 0 rose"]
    assert page.texts("li")[:2] == lines
    first = ["score", "A", "B", "B - A, with its 95 % interval", "adherence"]
    assert page.texts("th")[:5] == first
    assert page.texts("summary")[0] == "p, adjusted p, smallest detectable difference"
    assert any("Became unscored: adherence 1 (refusal 1)." in text for text in page.texts("p"))
    assert page.texts("h1") == ["old compared with new"]


def test_few_calls_have_no_empty_columns_and_two_decimals() -> None:
    """Six calls have no interval, and tell no thousandth."""
    page = parsed(compare(run([1.0] * 6), run([0.0] + [1.0] * 5)))

    assert page.texts("th")[:5] == ["score", "A", "B", "B - A", "adherence"]
    assert page.texts("td")[:4] == ["1.00", "0.83", "-0.17", "1.000"]
    assert page.texts("summary")[0] == "p, adjusted p"
    assert any("adherence 1.00 → 0.00 ▼ -1.00" in text for text in page.texts("li"))


def test_what_follows_from_another_score_is_not_repeated_per_call() -> None:
    """It is told of a call where nothing else changed."""
    derived = ("adherence", "supported_fraction", "trace_average")
    before, after, other = (
        [call(f"q{n}", dict(zip(derived, values, strict=True))) for n in range(12)]
        for values in ([1.0, 1.0, 1.0], [0.0, 0.5, 0.7], [1.0, 0.8, 1.0])
    )
    (falls, fractions) = (parsed(compare(before, each), calls=1) for each in (after, other))

    moves = [text for text in falls.texts("li") if "→" in text]
    assert moves == ["adherence 1.000 → 0.000 ▼ -1.000"]
    moves = [text for text in fractions.texts("li") if "→" in text]
    assert moves == ["supported_fraction 1.000 → 0.800 ▼ -0.200"]


def test_both_calls_can_be_opened(found: Comparison) -> None:
    """Of each run with its documents, as the report shows them."""
    page = parsed(found)

    whole = [text for text in page.texts("summary") if text.startswith("The whole call in ")]
    end = "with its documents and its own scores"
    assert whole == [f"The whole call in {side}, {end}" for _ in range(3) for side in "AB"]
    assert page.texts("h5")[:3] == [
        f"Document {number} · nothing relevant in 1 sentence" for number in (0, 0, 1)
    ]  # fmt: skip
    assert len({each["id"] for each in page.attributes if "id" in each}) == len(
        [each for each in page.attributes if "id" in each]
    )


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
    assert "3 retrieved documents changed, 0 stayed" in page.texts("summary")
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
    assert "The call in B is too long to be opened here; " in cut


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
    links = {each["href"] for each in shown.attributes if "href" in each}
    assert {str(link).split("-")[0] for link in links} == {
        "#main",
        "#top",
        "#0",
        "#scores",
        "#changed",
    }
