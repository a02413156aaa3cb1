"""The report as a file: its figures, its size, its bytes; what a browser shows is in test_browser."""

from __future__ import annotations

import base64
import itertools
import json
import re
import weakref
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hostile import acting
from parsed import Parsed
from report_rows import attacks, evaluations, graded, labelled, oven

from rag_eval_integrations import Evaluation, RagCall, RagEvaluator
from rag_eval_integrations.evaluations._call_view import view_of
from rag_eval_integrations.records import Run
from rag_eval_integrations.report import Summary, write_report
from rag_eval_integrations.report.html import report_pieces

GRAVEST = "hallucination"


def cells_of(page: Parsed) -> list[str]:
    """The cells of all tables, on one line each."""
    return [" ".join(text.split()) for text in page.texts("td", "th")]


def calls_of(page: Parsed) -> list[dict[str, Any]]:
    """All calls, unpacked."""
    names = itertools.takewhile(page.data.__contains__, map("calls-{}".format, itertools.count()))
    pieces = (zlib.decompress(base64.b64decode(page.data[name])) for name in names)
    return [call for piece in pieces for call in json.loads(piece)]


@pytest.fixture(scope="module")
def text() -> str:
    return "".join(report_pieces(evaluations(), title="Our own"))


@pytest.fixture(scope="module")
def page(text: str) -> Parsed:
    return Parsed(text)


def test_flags_are_explained_in_words() -> None:
    """Of the judge, of a cascade and of capture; a flag of somebody's own stands as it is."""
    flags = ("suspected_injection", "first_unsure", "first_doubt_spread", "cascade_second", "own_x")
    call = evaluations()[0].model_copy(update={"flags": flags})
    text = "".join(report_pieces([call], title="Flags"))

    (facts,) = (fact["facts"] for fact in calls_of(Parsed(text)))
    (shown,) = (value for _, pairs in facts for name, value in pairs if name == "flags")
    assert shown == (
        "suspected_injection: a text addresses the judge; first_unsure: passed on by the first "
        "judge: its probability was near the limit; first_doubt_spread: passed on by the first "
        "judge: a sentence of the answer joins words of several documents; cascade_second: "
        "labelled by the second judge; own_x"
    )
    assert "<bdi>own_x (1 call)</bdi>" in text
    assert "<bdi>suspected_injection: a text addresses the judge (1 call)</bdi>" in text


def test_the_figures_are_those_of_the_evaluations(page: Parsed) -> None:
    """Mean, interval, counts and bins of every score; shares of every pattern; every rank."""
    summary, cells = Summary.of(evaluations()), cells_of(page)
    lines: list[list[str]] = []
    methods = Counter(score.interval.method for score in summary.scores if score.interval)
    usual = methods.most_common(1)[0][0]
    assert f"95 % interval{usual}" in cells
    for score in summary.scores:
        for code, count in score.unscored.items():
            assert any(f"{count} {code.replace('_', ' ')}" in cell for cell in cells)
        if score.mean is None or score.interval is None or score.deviation is None:
            continue
        scored = f"{score.scored} of {score.total}"
        if score.with_threshold:
            scored += f"{score.passed} of {score.with_threshold} passed"
        interval = f"{score.interval.low:.3f}–{score.interval.high:.3f}"
        interval += score.interval.method if score.interval.method != usual else ""
        lines.append([f"{score.mean:.3f}", interval, scored])
        lines.append([*map(str, score.bins), f"{score.deviation:.3f}"])
    for each in summary.patterns:
        assert any(cell.startswith(f"{each.pattern}") for cell in cells)  # as `--where` takes it
        share = f"{each.share:.1%} ({each.interval.low:.1%}–{each.interval.high:.1%})"
        fix = "–" if each.pattern == "healthy" else each.fix
        lines.append([str(each.calls), share, fix])
    for rank in summary.ranks:
        shares = (f"{n / rank.calls:.1%} ({n})" for n in (rank.relevant, rank.used))
        lines.append([f"Document {rank.rank - 1}", str(rank.calls), *shares])
    for line in lines:
        assert any(cells[at : at + len(line)] == line for at in range(len(cells))), line


def test_the_head_says_where_no_model_read_the_calls(text: str) -> None:
    """Where the embedded judge scored them, above the figures."""
    call = RagCall("When?", ["It leaves at nine."], "It leaves at ten.")
    lexical = "".join(report_pieces([RagEvaluator().evaluate_sync(call)]))

    assert "Estimates by comparing words: no model read this." in lexical.partition("<main")[0]
    assert "no model read" not in text


def test_every_call_is_in_the_page_as_it_is(page: Parsed, text: str) -> None:
    """The index has all values to the last bit, and the details have all texts."""
    index, settings = (json.loads(page.data[name]) for name in ("index", "page-data"))
    calls = calls_of(page)

    assert len(index) == len(calls) == len(evaluations())
    assert "This page holds" not in text
    for evaluation, row, call in zip(evaluations(), index, calls, strict=True):
        shown = (row[0], call["id"], call["question"])
        assert shown == (call["row"], evaluation.id, evaluation.question)
        for name, score in evaluation.scores.items():
            value = row[3][settings["scores"].index(name)]
            if score.value is not None:
                assert value == score.value
            else:
                assert settings["codes"][-1 - value] == (score.unscored or score.status)
        sentences = [one for document in call["documents"] for one in document["sentences"]]
        given = [one[:2] for one in evaluation.sentences.documents]
        assert [(one[0], one[3]) for one in sentences] == given
        said = "".join(one[2] + "".join(one[3]) for one in call["response"])
        assert said.split() == " ".join(one.text for one in evaluation.sentences.response).split()


def test_the_same_evaluations_give_the_same_bytes(tmp_path: Path, text: str) -> None:
    """No time of day, no order of a set."""
    first = write_report(evaluations(), tmp_path / "a.html", title="Our own").read_bytes()
    again = write_report(iter(evaluations()), tmp_path / "b.html", title="Our own").read_bytes()

    assert first == again == text.encode()
    assert (tmp_path / "a.html").stat().st_mode & 0o777 == 0o600


def test_a_page_of_few_calls_has_the_newest_the_gravest_and_some_of_the_others(
    page: Parsed,
) -> None:
    """Its figures and its calls to look at first are of all, and it says what it holds."""
    made = evaluations()
    places = {evaluation.id: place for place, evaluation in enumerate(made)}
    text = "".join(report_pieces(made, calls=40))
    some = Parsed(text)
    held = [places[call["id"]] for call in calls_of(some)]
    unsupported = [at for at, one in enumerate(made) if view_of(one)["patterns"][:1] == [GRAVEST]]

    assert held == sorted(set(held))
    assert held[-10:] == list(range(len(made) - 10, len(made)))
    assert len({*unsupported} & {*held[:-10]}) >= 20
    others = {*held[:-10]} - {*unsupported}
    assert min(others) < len(made) / 3 < len(made) / 2 < max(others)
    assert f"are of all {len(made)} calls. This page holds 40 of them: the last 10, the 20" in text
    few, all_cells = cells_of(some), cells_of(page)
    count = few.index("Held something used")
    assert count == all_cells.index("Held something used")
    assert few[:count] == all_cells[:count]
    assert "".join(report_pieces(made, calls=40)) == text


def test_however_many_are_read_few_evaluations_are_alive() -> None:
    """Memory holds the newest, and of the other calls of the page what it shows, compressed."""
    alive, counts = set[int](), list[int]()

    def read() -> Iterator[Evaluation]:
        for number in range(120):
            made = oven().model_copy(update={"id": str(number)})
            alive.add(number)
            weakref.finalize(made, alive.remove, number)
            counts.append(len(alive))
            yield made

    "".join(report_pieces(read(), calls=20))

    assert max(counts) <= 20 // 4 + 2


@pytest.mark.parametrize("calls", [1, 7, 228, 229])
def test_a_page_holds_as_many_calls_as_it_may(calls: int) -> None:
    """Also where they cannot be shared out evenly."""
    text = "".join(report_pieces(evaluations(), calls=calls))

    assert len(calls_of(Parsed(text))) == min(calls, len(evaluations()))
    assert ("This page holds" in text) == (calls < len(evaluations()))


def test_the_gravest_calls_come_first_and_healthy_ones_not_at_all(text: str) -> None:
    """Unsupported answers first, at most twenty; without any, and without a call, it says so."""
    worst = re.findall(r'<details class="worst" id="call-(\d+)"', text)
    patterns = [view_of(evaluations()[int(number) - 1])["patterns"] for number in worst]
    well = labelled("well", ["Bees dance."], "Bees dance.", relevant="0a", used="0a",
                    support=(("a", "0a", True, ""),))  # fmt: skip

    assert len(worst) == 20
    assert all(found[0] == GRAVEST for found in patterns)
    assert "No call shows a problem." in "".join(report_pieces([well]))
    nothing = "".join(report_pieces([]))
    assert "No calls</p>" in nothing
    assert "look at first" not in nothing.partition("<body>")[2].partition("<script")[0]
    assert json.loads(Parsed(nothing).data["index"]) == []


def test_what_is_certain_comes_before_near_misses() -> None:
    """A contradiction, then a low probability; what a judge of words cannot tell is no problem."""
    details: dict[str, dict[str, tuple[str, ...]]]
    details = {"near": {}, "low": {}, "against": {"b": ("new",)}}
    made = {
        name: labelled(name, ["It is red."], "It is red. It is new.", relevant="0a", used="0a",
                       support=(("a", "0a", True, ""), ("b", "", False, "")), against=against)
        for name, against in details.items()
    }  # fmt: skip
    for name, chance in (("near", 0.73), ("low", 0.1), ("against", 0.7)):
        labels = made[name].labels
        assert labels is not None
        known = labels.model_copy(update={"supported_probabilities": {"b": chance}})
        made[name] = made[name].model_copy(update={"labels": known})
    half = labelled("half", ["It is red. It is old."], "It is red.", relevant="0a 0b", used="0a",
                    support=(("a", "0a", True, ""),))  # fmt: skip
    words = half.model_copy(update={"flags": ("lexical_estimate",)})

    page = "".join(report_pieces([words, *made.values(), half]))

    worst = re.findall(r'<details class="worst" id="call-(\d+)"', page)
    assert worst == ["4", "3", "2", "5"]


def test_the_head_says_of_which_app_and_when() -> None:
    """As far as the evaluations tell, each run once; hostile names are text."""
    began = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    run = Run(id="1", name="nightly", start=began, revision="abcdef" * 7, tags={"k": "<v>"})
    page = "".join(report_pieces([
        oven().model_copy(update={"app": "<manual>", "started_at": began, "run": run}),
        oven().model_copy(update={"app": "kettle", "started_at": began + timedelta(days=1), "run": run}),
    ]))  # fmt: skip
    head = Parsed(page.partition("<nav")[0])

    words = [element.text for element in head.elements if element.tag == "bdi"]
    assert words[1:] == [
        "app <manual>", "app kettle", "calls of 2026-01-02 03:04 to 2026-01-03 03:04 UTC",
        "nightly", "evaluated 2026-01-02 03:04 UTC", "revision abcdefabcdef", "k=<v>",
    ]  # fmt: skip


def test_calls_of_one_name_have_links_of_their_own() -> None:
    """The second and third call of a name are numbered, also where that name is taken."""
    again = [oven().model_copy(update={"id": name}) for name in ("x", "x", "x (2)", "x", "", " ")]
    rows = [row[0] for row in json.loads(Parsed("".join(report_pieces(again))).data["index"])]

    assert len(set(rows)) == len(rows)
    assert rows[:2] == ["x", "x (2)"]


def test_hostile_texts_reach_the_page_as_text() -> None:
    """No character of the file acts, no element is added, and data blocks are whole."""
    text = "".join(report_pieces(attacks(), title="</title><script>alert(1)</script>"))
    page = Parsed(text)

    assert acting(text) == []
    assert set(page.data) == {"page-data", "index", "calls-0", "code"}
    assert len(json.loads(page.data["index"])) == len(calls_of(page)) == len(attacks())
    assert acting(json.dumps(calls_of(page), ensure_ascii=False)) == []


def test_a_score_with_a_threshold_has_its_verdict() -> None:
    """By sign and word, also where it just reaches the threshold; without one it has none."""
    coherence = graded().scores["coherence"]
    values = {"below": 0.499, "at": 0.5}
    scores = {name: coherence.model_copy(update={"value": value}) for name, value in values.items()}
    scores["without"] = coherence.model_copy(update={"threshold": None})
    call = graded().model_copy(update={"scores": scores})

    [view] = calls_of(Parsed("".join(report_pieces([call]))))

    verdicts = [score["verdict"] for score in view["scores"]]
    assert verdicts == ["✗ failed (threshold 0.5)", "✓ passed (threshold 0.5)", ""]


def test_text_that_recorded_sentences_leave_out_is_shown() -> None:
    """A response is shown whole, whatever its sentences cover."""
    made = oven()
    kept = made.sentences.model_copy(update={"response": made.sentences.response[:1]})
    view = view_of(made.model_copy(update={"sentences": kept}))

    shown = "".join(gap + "".join(pieces) for _, _, gap, pieces in view["response"])
    assert shown == made.response


def test_a_list_of_sources_is_shown_and_not_judged() -> None:
    """With keys and a sign of its own, and nothing is said of its support."""
    answer = "It leaves at nine.\n\nSources:\n[1] timetable.pdf"
    call = RagCall("When does it leave?", ["It leaves at nine."], answer)
    evaluation = RagEvaluator().evaluate_sync(call)
    view = view_of(evaluation)

    assert [(key, state) for key, state, *_ in view["response"]] == [
        ("a", "full"),
        ("b", "source"),
        ("c", "source"),
    ]
    assert [entry["key"] for entry in view["support"]] == ["a"]
    assert "a list of sources, not judged" in "".join(report_pieces([evaluation]))


def test_recorded_sentences_without_a_place_stand_apart() -> None:
    """In documents as in the response: their offsets are not known where the text differs."""
    made = oven()
    documents = tuple(s._replace(start=None, end=None) for s in made.sentences.documents)
    kept = made.sentences.model_copy(update={"documents": documents})
    view = view_of(made.model_copy(update={"sentences": kept}))

    gaps = [[gap for _, _, gap, _ in document["sentences"]] for document in view["documents"]]
    assert [" "] * (len(gaps[0]) - 1) == gaps[0][1:] != []


def test_a_call_without_a_response_labels_or_documents_is_shown() -> None:
    """A retrieval alone, a failed call and an empty context have their places."""
    made = oven()
    bare = Evaluation(
        id="bare", row_key="k", question="", response=None, scores={}, labels=None,
        sentences=made.sentences.model_copy(update={"documents": (), "response": ()}),
        judge=made.judge,
    )  # fmt: skip
    text = "".join(report_pieces([bare]))

    assert "1 call. Judge: recorded labels." in text
    assert calls_of(Parsed(text))[0]["said"] is None


def test_what_no_reader_could_take_in_is_cut_and_said_to_be() -> None:
    """A long id below the question, and megabytes of metadata; the id is whole elsewhere."""
    made = oven().model_copy(update={"id": "i" * 5_000, "metadata": {"big": ["v" * 90] * 60_000}})
    text = "".join(report_pieces([made]))
    [call] = calls_of(Parsed(text))
    facts = {name: value for _, pairs in call["facts"] for name, value in pairs}

    assert call["id"] == "i" * 199 + "…"
    assert facts["id"] == "i" * 5_000
    assert facts["big"].endswith("… (5,519,998 characters)")
    assert len(facts["big"]) < 20_050
    assert len(text) < 200_000
