"""The page of an agreement: every printed figure, in one file that fetches and runs nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from io import StringIO
from typing import Any

import pytest
from agreement_rows import contested, judged, numbered
from hostile import HOSTILE, MARKUP, acting
from parsed import Parsed
from report_rows import attacks
from rich.console import Console

from rag_eval_integrations import Evaluation
from rag_eval_integrations._visible import visible
from rag_eval_integrations.agreement import Agreement, Pair, agree, cascade_curve, curves
from rag_eval_integrations.cli import agreement as command
from rag_eval_integrations.records import JudgeInfo
from rag_eval_integrations.report._agreement_page import agreement_pieces


def page(found: Agreement, **options: Any) -> str:
    options = {"title": "Agreement", "curves": {}, "cascade": (), **options}
    return "".join(agreement_pieces(found, **options))


def text_of(html: str) -> str:
    return Parsed(html).texts("html")[0]


@cache
def whole() -> tuple[Agreement, Any, str]:
    """An agreement with all that there can be, and its page."""
    matched, second = judged()
    found = agree(matched, baselines=True, resamples=20)
    curve = cascade_curve(matched.pairs, second, steps=4)
    drawn = {"all 40 rows": curves(matched.pairs)}
    calls = numbered(matched.pairs)
    return found, curve, page(found, curves=drawn, cascade=curve, calls=calls)


def test_every_figure_that_is_printed_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and intervals of scores, sentences, human ratings, baselines and the cascade."""
    found, curve, text = whole()
    screen = StringIO()
    console = Console(file=screen, width=400)
    monkeypatch.setattr(command, "stdout", lambda: console)
    command.print_agreement(found, curve)
    shown = text_of(text)
    printed = set(re.findall(r"-?\d\.\d{3}", screen.getvalue()))
    intervals = set(re.findall(r"(-?\d\.\d{3}) \((\S* to \S*)\)", screen.getvalue()))

    assert len(printed) > 200
    assert len(intervals) > 40
    assert printed <= set(re.findall(r"-?\d\.\d{3}", shown))
    assert [one for one in intervals if "".join(one) not in shown] == []
    rest = ("gpt3_adherence", "A constant", "Length", "human ratings within", "ask_when")
    assert [words for words in rest if words not in text] == []


def test_the_card_says_who_judged_and_what_was_left_out() -> None:
    """Judge, model, formulas, gold's annotators, and the rows without a partner."""
    matched, _ = judged()
    joined = replace(matched, unmatched_gold=7, joined_by_id=3, ambiguous=2)
    found = agree(joined, resamples=0)
    text = text_of(page(found))

    judge = matched.pairs[0].predicted.judge
    for words in (judge.name, "gpt-labeling", "40 compared", "7 of gold's have no partner",
                  "3 differ in content", "2 are not unique", *found.gold_models):  # fmt: skip
        assert words in text


def test_the_page_fetches_nothing_and_each_plot_has_a_title_and_a_table() -> None:
    """Every tag is one of text, tables and drawings; no word lies over a curve or is cut off."""
    found = Parsed(whole()[2])
    kinds = len(curves(judged()[0].pairs))
    plots = [each for each in found.attributes if each.get("class") == "plot"]
    words = [each.attributes for each in found.elements if each.tag == "text"]

    assert not {*found.tags} & {"script", "img", "link", "iframe", "object", "form"}
    assert not [each for each in found.attributes if {"src", "style"} & each.keys()]
    places = {f"#{each['id']}" for each in found.attributes if "id" in each}
    assert {each["href"] for each in found.attributes if "href" in each} <= {"#main", *places}
    (policy,) = (each["content"] for each in found.attributes if each.get("http-equiv"))
    assert "default-src 'none'" in str(policy)
    assert "script-src" not in str(policy)
    assert len(plots) == 2 * kinds + 4  # the cascade has four
    assert all(plot["role"] == "img" and plot["aria-label"] for plot in plots)
    assert text_of(whole()[2]).count("Figures of these two plots") == kinds
    assert "share of calls escalated" in text_of(whole()[2])
    assert len(words) > 20
    for each in words:
        x, y = float(each["x"] or ""), float(each["y"] or "")
        assert 0 < min(x, y) <= max(x, y) < float(plots[0]["width"] or "")
        assert x <= 34 or y >= 294


def test_a_judge_without_probabilities_has_no_curves() -> None:
    """It is said where the plots would be."""
    matched, _ = judged(probabilities=False)
    text = page(agree(matched, resamples=0), curves={"all rows": {}})

    assert "The judge gave no probabilities here." in text
    assert 'class="plot"' not in text
    assert "gave no probabilities here" not in whole()[2]


def test_rows_of_one_set_show_no_mean_over_sets() -> None:
    """A mean over one data set, or a table by data set, would be the same figures twice."""
    matched, _ = judged()
    for name in (None, "harbour"):
        pairs = [replace(pair, dataset=name) for pair in matched.pairs]
        text = page(agree(pairs, resamples=50))
        shown = text_of(text).lower()

        assert "mean over data sets" not in shown
        assert "by data set" not in shown
        assert shown.count("context_relevance rmse") == 1
        assert not re.search(r"(\d\.\d{3}) to \1", shown)
    assert "Mean over data sets" in whole()[2]
    assert "By data set" in whole()[2]


def test_hostile_texts_of_calls_reach_the_page_as_text() -> None:
    """Of questions, answers, documents, ids and the judge's words: no element comes of them."""
    pairs = contested(attacks())
    found = agree(pairs, resamples=0)
    text = page(found, title=MARKUP[0], calls=numbered(pairs))
    plain = whole()[2]

    assert acting(text) == []
    assert text.count('<details class="worst"') == min(50, len(pairs))
    assert set(Parsed(text).tags) <= set(Parsed(plain).tags) | {"b", "bdi", "q"}
    text.encode()


def test_a_page_of_hostile_names_holds_no_controls() -> None:
    """Titles, data sets, judges, models, versions, kinds: no element comes of them."""
    matched, _ = judged()
    texts = HOSTILE[::4]

    def named(evaluation: Evaluation, text: str) -> Evaluation:
        judge = JudgeInfo(name=text, model=text, version=text)
        by = next(iter(evaluation.scores.values())).by.model_copy(update={"prompt_version": text})
        scores = {k: v.model_copy(update={"by": by}) for k, v in evaluation.scores.items()}
        return evaluation.model_copy(update={"judge": judge, "scores": scores})

    def planted(words: Sequence[str]) -> str:
        every = "".join(words)
        pairs = [
            Pair(named(pair.predicted, every), named(pair.gold, every), word, pair.baselines)
            for pair, word in zip(matched.pairs * 2, words, strict=False)
        ]
        curve = next(iter(curves(pairs).values()))
        drawn = {word: {word: curve} for word in words}
        return page(agree(pairs, baselines=True, resamples=0), curves=drawn, title=every)

    text = planted(texts)

    assert acting(text) == []
    plain = planted([f"x{number:02}" for number in range(len(texts))])
    assert Counter(Parsed(text).tags) == Counter(Parsed(plain).tags)
    assert visible(texts[0]) in text_of(text)
    text.encode()
