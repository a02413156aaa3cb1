"""The page of prompt tests: figures as the report has them, every failure, and texts as text."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pytest
from hostile import HOSTILE, acting
from parsed import Parsed
from prompt_test_models import make_result, planted

from rag_eval_integrations._visible import visible
from rag_eval_integrations.prompt_tests import Report, Result, Spec
from rag_eval_integrations.prompt_tests._pages import report_pieces
from rag_eval_integrations.prompt_tests.records import (
    Judged,
    MetricResult,
    Rule,
    RuleCheck,
    TestCheck,
)


class Page(Parsed):
    """The page of a report: its tables by their rows, and its text without scripts and styles."""

    def __init__(self, report: Report) -> None:
        self.source = "".join(report_pieces(report))
        super().__init__(self.source)
        self.rows: list[list[str]] = []
        for element in self.elements:
            if element.tag == "tr":
                self.rows.append([])
            elif element.tag in ("td", "th"):
                self.rows[-1].append(element.text.strip())
        [self.text] = self.texts("html")

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & {element.tag for element in self._open}:
            super().handle_data(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [element.attributes for element in self.elements if element.tag == tag]

    def failures(self) -> list[dict[str, str | None]]:
        return [a for a in self.of("details") if a.get("class") == "failure"]

    def row(self, *begins: str) -> list[str]:
        """The first row whose cells begin so."""
        return next(row for row in self.rows if all(map(str.startswith, row, begins)))


def rule_result(outcome: str | None, model: str = "m", rule: int = 1, **test: Any) -> Result:
    fields: dict[str, Any] = {
        "uid": f"t{rule}{model}{outcome}",
        "rule_id": rule,
        "rule": f"Rule text {rule}.",
    }
    return make_result(outcome, model=model, **(fields | test))


MIXED = [
    *[rule_result("ok")] * 7, rule_result("err"), rule_result("unknown"),
    *[rule_result("ok", "n")] * 3, *[rule_result("err", "n", 2, inverse=True)] * 2,
    make_result(None, model="n", error="timed out", rule_id=2, rule="Rule text 2.", inverse=True),
    make_result("ok", model="m", uid="b", rule_id=None, baseline=True),
]  # fmt: skip


def test_compliance_stands_with_its_counts_and_interval() -> None:
    """By model, and by kind of test: Wilson's interval, and what has no verdict apart."""
    page = Page(Report("p", MIXED))

    assert page.row("m", "87.5%") == ["m", "87.5%", "52.9% to 97.8%", "", "8", "7", "1", "1", "0"]
    inverse = ["0.0%", "0.0% to 65.8%", "", "2", "0", "2", "0", "1"]
    assert page.row("n", "inverse rules")[2:] == inverse
    assert page.row("m", "baseline tests")[2] == "100.0%"
    assert "left out of the share" in page.text
    worse = Page(Report("p", MIXED, unknown_as="err"))
    assert worse.row("m", "77.8%")[4] == "9"
    assert "counted as not compliant" in worse.text


def test_the_matrix_has_each_rule_and_each_model() -> None:
    """A cell says its share, its counts, and where its failures are."""
    page = Page(Report("p", MIXED))

    row = ["Rule 1Rule text 1.", "88%7 of 81 without verdict", "100%3 of 3"]
    assert page.row("Rule 1Rule text 1.") == row
    assert page.row("Inverse rule 2")[1:] == ["–", "0%0 of 21 without output"]
    assert page.row("Baseline tests")[1:] == ["100%1 of 1", "–"]
    cells = [a for a in page.of("a") if "data-rule" in a]
    ids = [a["id"] for a in page.failures()]
    assert [str(a["href"])[1:] for a in cells] == [ids[0], ids[2]]
    assert page.failures()[2]["data-rule"] == cells[1]["data-rule"]


def test_a_rule_without_a_test_has_a_row_and_failing_cells_a_mark() -> None:
    """Whether a rule holds is not left open by its absence; a cell is bad wholly or in part."""
    rules = (Rule(id=1, text="Rule text 1."), Rule(id=3, text="Rule text 3."))
    page = Page(Report("p", MIXED, Spec(rules=rules)))

    assert page.row("Rule 3Rule text 3.no test names it")[1:] == ["–", "–"]
    assert page.row("Rule 1Rule text 1.")[1].startswith("88%")
    bad = ("number some", "number err")
    assert [a["class"] for a in page.of("td") if a.get("class") in bad] == list(bad)


def test_one_number_of_two_rules_is_two_rows() -> None:
    """Tests keep the rule they were made for, and rules are edited between runs."""
    results = [rule_result("ok"), make_result("err", rule_id=1, rule="An older text.", uid="o")]
    page = Page(Report("p", results))

    assert page.row("Rule 1An older text.")[1].startswith("0%")
    assert page.row("Rule 1Rule text 1.")[1].startswith("100%")


def test_every_failure_is_shown_with_the_judges_words() -> None:
    """Input, output or error, rule, each judge's verdict and reason, and the reply as it came.

    Each verdict by its sign and its words.
    """
    result = Result(
        test=rule_result("err", inputs={"text": "one\ntwo"}, expected="TWO").test, model="m",
        output="the output", contexts=("a document",),
        compliance=Judged(outcome="err", reason="It is loud.", raw="So: ERR", judge="first"),
        others=(Judged(outcome="ok", reason="It is fine.", judge="second"),),
        metrics=(MetricResult(metric="volume", judge="first", score=50),),
    )  # fmt: skip
    page = Page(Report("p", [result, *MIXED]))

    for words in ("one\ntwo", "the output", "It is loud.", "So: ERR", "It is fine.", "TWO",
                  "a document", "volume with first", "timed out", "second"):  # fmt: skip
        assert words in page.text
    kinds = Counter(str(a["data-kind"]) for a in page.failures())
    assert kinds == {"err": 4, "unknown": 1, "error": 1}
    signs = [e.text for e in page.elements if str(e.attributes.get("class")).startswith("sign ")]
    assert {*signs} == {"✗ does not comply", "✓ complies", "? no verdict", "! no output"}


def test_averages_over_judges_are_of_what_they_said() -> None:
    """A judge without a score is in no mean; a single judge has no row of means."""

    def judged(first: str, second: str, *scores: float | None) -> Result:
        metrics = [
            {"metric": "loud", "judge": f"j{n}", "score": s} for n, s in enumerate(scores, 1)
        ]
        compliance, other = ({"outcome": first, "judge": "j1"}, {"outcome": second, "judge": "j2"})
        made = {"compliance": compliance, "others": (other,), "metrics": metrics}
        return Result.model_validate(rule_result("ok").model_dump() | made)

    results = [judged("ok", "err", 80, 40), judged("err", "err", 60, None)]
    page = Page(Report("p", results))

    assert page.row("compliance", "j1") == ["compliance", "j1", "50.02 of 2 scored"]
    assert page.row("compliance", "j2") == ["compliance", "j2", "0.02 of 2 scored"]
    assert page.row("compliance", "mean")[1:] == ["mean over judges", "25.02 judges"]
    assert page.row("loud", "j2") == ["loud", "j2", "40.01 of 2 scored"]
    assert page.row("loud", "mean over judges") == ["loud", "mean over judges", "55.02 judges"]
    assert "mean over judges" not in Page(Report("p", MIXED)).text


def test_rules_and_tests_that_were_doubted_are_told() -> None:
    """A rule without ground stands in the matrix with the reason; valid inputs are counted."""
    rule = Rule(id=1, text="Rule text 1.")
    doubt = RuleCheck(rule=rule, grounded=Judged(outcome="err", reason="Nowhere said."))
    checks = [
        TestCheck(test=MIXED[0].test, validity=Judged.model_validate({"outcome": outcome}))
        for outcome in ("ok", "err", "ok")
    ]
    page = Page(Report("p", MIXED, Spec(rules=(rule,)), checks, [doubt]))

    assert "not grounded in the prompt: Nowhere said." in page.row("Rule 1Rule")[0]
    assert "2 of 3" in page.text


def test_thousands_of_failures_make_a_page_of_bounded_size() -> None:
    """Each rule and model keeps the same number, long texts are cut, and the rest is counted."""
    source = random.Random(1)
    results = [rule_result("err", source.choice("mn"), source.randint(1, 8)) for _ in range(3_000)]
    long = {"output": "long " * 5_000}
    page = Page(Report("p", [result.model_copy(update=long) for result in results]))

    assert 900 < len(page.failures()) <= 1_000
    groups = Counter((a["data-rule"], a["data-model"]) for a in page.failures())
    assert len(groups) == 16
    assert len(set(groups.values())) == 1
    assert "3,000 outputs do not comply" in page.text
    assert "23,000 more characters" in page.text
    assert len(page.source) < 5_000_000
    # Pages lead to each other without a script: every link of the page leads to an element of it.
    ids = [a["id"] for a in page.attributes if a.get("id")]
    links = {str(a["href"])[1:] for a in page.of("a")}
    assert len(ids) == len(set(ids))
    assert {"page-1", "page-2", "page-40"} <= links <= set(ids)


def test_no_results_and_no_failures_are_said() -> None:
    """A page without rows is still a page."""
    assert "There are no results." in Page(Report("p", [])).text
    assert "No output fails." in Page(Report("p", [rule_result("ok")])).text
    unjudged = Page(Report("p", [rule_result(None)]))
    assert unjudged.failures() == []
    assert "Rule 1" in unjudged.text


PLAIN = Page(planted("word")).tags


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(text: str) -> None:
    """In cells, headings, attributes and choices: no element and no acting character of them."""
    page = Page(planted(text))

    assert acting(page.source) == []
    assert page.tags == PLAIN
    links = {a["href"] for a in page.of("a") if "href" in a}
    assert links <= {"#main", "#top", "#failure-1", "#failure-2"}
    assert visible(text).replace("\\r\n", "\n") in page.text.replace("    ", visible("\t"))
    assert not [name for a in page.attributes for name in a if re.match("on|style$", name)]


def test_a_rule_that_no_output_keeps_is_shown_as_broken_however_verdicts_count() -> None:
    """One that some outputs keep is shown as broken in part."""
    for outcomes, state in ((["err", "unknown"], "err"), (["ok", "unknown"], "some")):
        for counted in (None, "err"):
            results = [rule_result(outcome) for outcome in outcomes]
            page = Page(Report("p", results, unknown_as=counted))
            assert page.source.count(f'class="number {state}"') == 1
