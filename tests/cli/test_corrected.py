"""`--labels`: means that people's labels have corrected, on every command that shows means."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ferries import Command
from report_rows import labelled
from runs import write

from rag_eval_integrations import Evaluation, Evaluations, RagCall
from rag_eval_integrations.dataset._labels_file import (
    Draw,
    LabelsWriter,
    Pick,
    Population,
    asked,
    random_order,
)
from rag_eval_integrations.evaluations._corrected import CorrectedMean, LabelledCall, corrected
from rag_eval_integrations.records import to_line
from rag_eval_integrations.store import Store
from rag_eval_integrations.store.database import Outcome
from rag_eval_integrations.store.spool import SpooledCall, new_uid

LABELS = Path("labels.jsonl")


def call(place: int, *, answer: str = "on time") -> Evaluation:
    """A call that the judge finds adherent, but for every fourth; five make a conversation."""
    made = labelled(
        f"c{place}",
        [f"Ferry {place} leaves at nine. It is blue."],
        f"Ferry {place} leaves {answer}. It is blue.",
        relevant="0a",
        support=(("a", "0a", place % 4 > 0, "said"), ("b", "0b", True, "said")),
    )
    return made.model_copy(update={"metadata": {"thread_id": f"t{place // 5}"}})


CALLS = [call(place) for place in range(40)]


def said(evaluation: Evaluation, key: str) -> bool:
    """What people say: every second of the ferries does not leave on time; 0a is relevant."""
    number = int(evaluation.id[1:])
    return {"a": number % 2 > 0, "b": True, "0a": True, "0b": number % 5 == 0}[key]


def draw_of(calls: Iterable[Evaluation], n: int, pick: Pick = "random", seed: int = 3) -> Draw:
    return Draw(pick, n, seed, Population.of(each.row_key for each in calls))


def drawn(calls: list[Evaluation], n: int, seed: int = 3) -> list[Evaluation]:
    """The first calls of a random draw."""
    return [calls[place] for place in random_order([c.row_key for c in calls], seed)[:n]]


def label(
    calls: Iterable[Evaluation],
    draw: Draw,
    who: str = "ann",
    only: str = "",
    opposite: bool = False,
) -> None:
    """A person's labels of calls, or the answers to one key."""
    with LabelsWriter(LABELS, who, draw, now=lambda: datetime(2026, 1, 2, tzinfo=UTC)) as labels:
        for each in calls:
            for sentence in asked(each):
                if only in ("", sentence.key):
                    labels.answer(each, sentence.key, said(each, sentence.key) != opposite)


def recorded(store: Store, evaluation: Evaluation) -> None:
    """Put a call into a store, and its evaluation."""
    made = RagCall("When?", ["At nine."], "At nine.", id=evaluation.id)
    store.add([SpooledCall(new_uid(), 1e9, to_line(made))])
    [claimed] = store.claim("w", 1)
    judged = evaluation.model_copy(update={"fingerprint": "f"})
    store.settle([Outcome(claimed, "judged", evaluation=judged)], "w")


@pytest.fixture
def evals() -> Path:
    return write(Path("evals.jsonl"), CALLS)


def expected(name: str, n: int) -> CorrectedMean:
    """The figures by people's values as they are worked out from their answers."""
    of = {
        "adherence": lambda e: float(said(e, "a")),
        "supported_fraction": lambda e: (said(e, "a") + 1) / 2,
        "context_relevance": lambda e: (1 + said(e, "0b")) / 2,
    }
    values = [each.scores[name].value or 0.0 for each in CALLS]
    pairs = [
        LabelledCall(
            each.scores[name].value or 0.0, of[name](each), str(each.metadata["thread_id"])
        )
        for each in drawn(CALLS, n)
    ]
    return corrected(sum(values) / len(values), len(CALLS), pairs)


def test_the_report_shows_the_corrected_means(evals: Path, rag_eval: Command) -> None:
    """In the terminal, JSON, Markdown and on the page: judge's mean, corrected mean, interval."""
    label(drawn(CALLS, 16), draw_of(CALLS, 16))
    done = rag_eval("report", evals, "-o", "r.html", "--labels", LABELS, code=0)
    as_json = rag_eval("report", evals, "-o", "-", "--format", "json", "--labels", LABELS, code=0)
    markdown = rag_eval("report", evals, "-o", "-", "--format", "md", "--labels", LABELS, code=0)
    page = Path("r.html").read_text()

    content: dict[str, Any] = json.loads(as_json.out)["corrected"]
    assert {name: content[name] for name in ("drawn", "calls", "seed", "left_out")} == {
        "drawn": 16, "calls": 40, "seed": 3, "left_out": 0,
    }  # fmt: skip
    assert list(content["means"]) == ["adherence", "supported_fraction", "context_relevance"]
    for name, figures in content["means"].items():
        by_hand = expected(name, 16)
        assert figures["mean"] == pytest.approx(by_hand.mean)
        assert figures["interval"]["low"] == pytest.approx(by_hand.interval.low)
        cells = [name, f"{by_hand.judge:.3f}", f"{by_hand.mean:.3f}", f"{by_hand.interval:.2f}"]
        assert cells in [line.split()[:4] for line in done.out.splitlines()]
        assert cells in [line.split()[:4] for line in as_json.err.splitlines()]
        assert f"| {by_hand.judge:.3f} | {by_hand.mean:.3f} | " in markdown.out
        assert f">{by_hand.judge:.3f}</td>" in page.split('id="corrected-heading"')[1]
        assert f">{by_hand.mean:.3f}</td>" in page.split('id="corrected-heading"')[1]
    most = max(figures["labels_to_halve"] for figures in content["means"].values())
    assert f"{most} labels in all would make the intervals half as wide" in done.out
    assert f"rag-eval review EVALS -o LABELS --n {most} --seed 3" in page


def test_the_gate_holds_the_lower_end(evals: Path, rag_eval: Command) -> None:
    """A threshold between the lower end and the mean fails, and says what was held."""
    label(drawn(CALLS, 16), draw_of(CALLS, 16))
    figures = expected("adherence", 16)
    low = figures.interval.low
    report = ("report", evals, "-o", "r.html", "--labels", LABELS, "--fail-under")

    failed = rag_eval(*report, f"adherence={low + 0.001:.4f}", code=1).err
    held = rag_eval(*report, f"adherence={low - 0.001:.4f}", code=0).err
    rag_eval(*report[:-3], "--fail-under", f"adherence={low + 0.001:.4f}", code=0)

    other = rag_eval(*report, "completeness=0.1", code=1).err

    assert "FAILED completeness: people's labels correct adherence, supp" in other
    end = f"the lower end {low:.4f} of the corrected mean's 95 % interval is"
    means = f"(corrected {figures.mean:.3f}, judge 0.750)"
    assert failed == f"FAILED adherence: {end} below {low + 0.001:.4f} {means}\n"
    assert held == f"NOTE adherence: {end} not below {low - 0.001:.4f} {means}\n"


def test_score_holds_it_for_what_it_wrote(evals: Path, rag_eval: Command) -> None:
    """The evaluations just written are those that the labels are of."""
    label(drawn(CALLS, 16), draw_of(CALLS, 16))
    words = ("score", evals, "-o", "again.jsonl", "--labels", LABELS)
    done = rag_eval(*words, "--fail-under", "adherence=0.9", code=1)

    assert "FAILED adherence: the lower end" in done.err
    assert "Corrected by people's labels of 16 calls drawn from these 40" in done.out


def test_other_rows_of_the_file_are_left_out(evals: Path, rag_eval: Command) -> None:
    """Other picks, single corrections and calls labelled in part; the rest is as without them."""
    draw = draw_of(CALLS, 10)
    label(drawn(CALLS, 10), draw)
    rag_eval("report", evals, "-o", "before.json", "--labels", LABELS, code=0)
    rest = [each for each in CALLS if each not in drawn(CALLS, 10)]
    label(rest[:3], draw_of(CALLS, 3, "low"), "bob")
    label(rest[3:4], Draw("single", None, 0, draw.population), "bob")
    label(rest[4:5], draw_of(CALLS, 20), "bob", only="a")
    label(drawn(CALLS, 10)[:1], Draw("single", None, 0, draw.population), "zed", opposite=True)

    done = rag_eval("report", evals, "-o", "after.json", "--labels", LABELS, code=0)

    before, after = (json.loads(Path(f"{name}.json").read_text())["corrected"]
                     for name in ("before", "after"))  # fmt: skip
    assert after == before | {"left_out": 6}
    assert "6 other labelled calls are left out" in done.out


def test_people_can_share_a_draw_and_draw_more(evals: Path, rag_eval: Command) -> None:
    """Two people's halves are one draw; a larger one takes its place once it is whole, too."""
    label(drawn(CALLS, 12)[:5], draw_of(CALLS, 12))
    label(drawn(CALLS, 12)[5:], draw_of(CALLS, 12), "bob")
    report = ("report", evals, "-o", "r.json", "--overwrite", "--labels", LABELS)
    few = rag_eval(*report, code=0).out
    label(drawn(CALLS, 20)[12:19], draw_of(CALLS, 20))
    not_whole = rag_eval(*report, code=0).out
    label(drawn(CALLS, 20)[19:], draw_of(CALLS, 20))
    more = rag_eval(*report, code=0).out

    assert "labels of 12 calls" in few
    assert "labels of 12 calls" in not_whole
    assert "labels of 20 calls" in more


def test_labels_that_do_not_fit_are_refused(evals: Path, rag_eval: Command) -> None:
    """With the reason: no draw is whole, none is random, or they are of other calls."""
    report = ("report", evals, "-o", "r.html", "--labels", LABELS)
    label(drawn(CALLS, 2), draw_of(CALLS, 2, "unsure"))
    assert "has no call that `rag-eval review --pick random` drew" in rag_eval(*report, code=2).err
    label(drawn(CALLS, 16)[:9], draw_of(CALLS, 16))
    why = "has labels of 9 of the 16 calls of its draw: go on with `rag-eval review`"
    assert why in rag_eval(*report, code=2).err
    label(drawn(CALLS, 16)[9:], draw_of(CALLS, 16))
    some = rag_eval(*report, "--where", "adherence<1", code=2).err
    assert "its labels were drawn from 40 calls" in some
    assert "and these are 10 calls" in some
    assert not Path("r.html").exists()
    rag_eval(*report, code=0)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--labels", "evals.jsonl"], "is not a person's label"),
        (["--labels", "none.jsonl"], "none.jsonl"),
        (["--labels", LABELS, "--fail-under", "adherence=0", "--per", "id"], "is not held for"),
    ],
)
def test_mistakes_are_told(evals: Path, rag_eval: Command, words: list[object], why: str) -> None:
    """Before anything is written."""
    label(drawn(CALLS, 4), draw_of(CALLS, 4))
    assert why in rag_eval("report", evals, "-o", "r.html", *words, code=2).err
    assert not Path("r.html").exists()


def test_compare_corrects_each_run_that_has_labels(evals: Path, rag_eval: Command) -> None:
    """One file can hold labels of both; a run without says why; none with labels is refused."""
    others = [call(place, answer="at ten") for place in range(40)]
    after = write(Path("after.jsonl"), others)
    label(drawn(CALLS, 16), draw_of(CALLS, 16))
    words = ("compare", evals, after, "--labels", LABELS)
    one = rag_eval(*words, "-o", "d.html", code=0)
    label(drawn(others, 12), draw_of(others, 12))
    both = rag_eval(*words, "--format", "json", code=0)
    markdown = rag_eval(*words, "--format", "md", code=0).out
    refused = rag_eval("compare", after, after, "--labels", "other.jsonl", code=2).err

    assert "Corrected means of evals.jsonl:" in one.out
    assert "Corrected means of after.jsonl: none: its labels were drawn from 40 calls" in one.out
    page = Path("d.html").read_text()
    assert f">{expected('adherence', 16).mean:.3f}</td>" in page
    assert "None: its labels were drawn from 40 calls" in page
    runs = json.loads(both.out)["corrected"]
    assert [(run["name"], run["means"]["drawn"]) for run in runs] == [
        ("evals.jsonl", 16), ("after.jsonl", 12),
    ]  # fmt: skip
    assert "Corrected by people's labels of 12 calls" in markdown
    assert "other.jsonl" in refused


def test_a_stores_page_shows_those_that_it_had_then(rag_eval: Command) -> None:
    """Evaluations that were recorded after the export are not among them."""
    with closing(Store(Path("e.db"))) as store:
        for each in CALLS:
            recorded(store, each)
        rag_eval("store", "export", "--store", "e.db", "-o", "evals.jsonl", code=0)
        held = list(Evaluations.load("evals.jsonl"))
        label(drawn(held, 16), draw_of(held, 16))
        recorded(store, call(99))
    words = ("store", "report", "--store", "e.db", "-o", "i.html", "--labels", LABELS)
    done = rag_eval(*words, code=0)
    with closing(Store(Path("e.db"))) as store:
        store.prune(math.inf, lambda kept: kept["id"] == "c1")
    pruned = rag_eval(*words, code=2)

    page = Path("i.html").read_text().split('id="corrected-heading"')[1]
    assert "Corrected means of the first 40 evaluations" in page
    mean = expected("adherence", 16).mean
    assert f">{mean:.3f}</td>" in page
    assert f"{mean:.3f}" in done.out
    assert "its labels were drawn from 40 calls" in pruned.err


def test_a_run_of_the_same_calls_is_held_to_their_labels(calls: Path, rag_eval: Command) -> None:
    """Another run of the calls that were reviewed has the same population; of fewer, another."""
    rag_eval("run", calls, "-o", "first.jsonl", code=0)
    held = list(Evaluations.load("first.jsonl"))
    with LabelsWriter(LABELS, "ann", draw_of(held, 6)) as labels:
        for each in drawn(held, 6):
            for sentence in asked(each):
                labels.answer(each, sentence.key, True)

    words = ("--labels", LABELS, "--fail-under", "adherence=0.95")
    done = rag_eval("run", calls, "-o", "again.jsonl", *words, code=1)
    fewer = rag_eval("run", calls, "-o", "few.jsonl", "--limit", "9", *words, code=2)
    piped = rag_eval("run", calls, "-o", "-", *words, code=2)

    assert "FAILED adherence: the lower end" in done.err
    assert "labels of 6 calls drawn from these 20" in done.out
    assert "and these are 9 calls" in fewer.err
    assert "is of a file: use one for --out" in piped.err
