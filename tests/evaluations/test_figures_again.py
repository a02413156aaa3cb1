"""The figures of an EVALS file, worked out a second time from its lines of JSON alone."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from agreement_rows import scored
from own_rows import HAND_MADE, made_rows

from rag_eval_integrations import Evaluations, GEval, RagCall, RagEvaluator, Trace
from rag_eval_integrations.records.mean import RunningMean
from rag_eval_integrations.report import Summary
from rag_eval_integrations.testing import ScriptedModel

ROWS = [each.row for each in HAND_MADE] + made_rows(120)
Json = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Evaluations:
    """Scores of labels by both sets of formulas, calls that failed, and calls without documents."""
    collected = [scored(row, formulas) for formulas in ("gpt-labeling", "ragbench") for row in ROWS]
    failing = RagEvaluator(ScriptedModel([]), [Trace(), GEval("tone", criteria="Is it polite?")])
    for number in range(3):
        documents = ["The ferry leaves at nine."] if number else []
        collected.append(failing.evaluate_sync(RagCall(f"When? {number}", documents, "At nine.")))
    return Evaluations(collected)


@pytest.fixture(scope="module")
def file(made: Evaluations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.save(tmp_path_factory.mktemp("figures") / "evals.jsonl")


# --- The second computation: of the library only intervals, which `records/test_mean.py` proves


def lines_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def maker(row: Json, score: Json) -> tuple[tuple[str, Any], ...]:
    by = row.get("by", {}) | score.get("by", {})
    return tuple(sorted((k, v) for k, v in by.items() if k not in ("splitter", "windows")))


def document_of(key: str) -> int:
    return int("".join(letter for letter in key if letter.isdigit()))


# --- What both say


def test_scores_have_the_same_figures(file: Path) -> None:
    """Means, intervals, deviations, bins and counts of every score by every maker and method."""
    values: dict[Any, list[float]] = {}
    lost: dict[Any, Counter[str]] = {}
    for row in lines_of(file):
        for name, score in row["scores"].items():
            key = (name, maker(row, score), score.get("method"))
            if score["status"] == "scored":
                values.setdefault(key, []).append(score["value"])
            else:
                lost.setdefault(key, Counter())[score.get("unscored") or "error"] += 1

    summary = Evaluations.load(file).summary()

    collected = {}
    for each in summary.scores:
        by = tuple(sorted(each.by.model_dump(exclude_none=True).items()))
        collected[each.name, by, each.method] = each
    assert collected.keys() >= values.keys()
    assert len(values) == 24  # six scores by two annotators and two sets of formulas
    for key, known in values.items():
        each, mean = collected[key], RunningMean()
        for value in known:
            mean.add(value)
        assert each.scored == len(known)
        assert each.mean == pytest.approx(statistics.fmean(known), abs=1e-12)
        assert each.deviation == pytest.approx(statistics.stdev(known), abs=1e-12)
        assert each.interval == mean.interval
        bins = Counter(min(int(10 * x), 9) for x in known)  # 1 is in the last
        assert list(each.bins) == [bins[place] for place in range(10)]
    reasons = sum((Counter(each.unscored) for each in summary.scores), Counter[str]())
    assert reasons == sum(lost.values(), Counter[str]())
    for name in {key[0] for key in [*values, *lost]}:
        total = sum(each.total for each in summary.scores if each.name == name)
        assert total == sum(name in row["scores"] for row in lines_of(file))


def test_ranks_have_the_same_counts(file: Path) -> None:
    """Per rank: calls with a document there, with a relevant and with a used sentence in it."""
    calls, relevant, used = Counter[int](), Counter[int](), Counter[int]()
    firsts: list[int] = []
    labelled = 0
    for row in lines_of(file):
        if row["labels"] is None or not row.get("document_ids"):
            continue
        labelled += 1
        existing = {key for key, *_ in row["sentences"]["documents"]}
        calls.update(range(1, len(row["document_ids"]) + 1))
        good, cited = (
            {document_of(key) + 1 for key in row["labels"].get(name) or () if key in existing}
            for name in ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
        )
        relevant.update(good)
        used.update(cited)
        firsts += [min(good)] if good else []

    retrieval = Evaluations.load(file).summary().retrieval

    assert (retrieval.calls, retrieval.relevant) == (labelled, len(firsts))
    assert retrieval.first_relevant == pytest.approx(statistics.fmean(firsts))
    assert retrieval.share == pytest.approx(len(firsts) / labelled)
    assert len(retrieval.ranks) == max(calls)
    for each in retrieval.ranks:
        counts = (calls[each.rank], relevant[each.rank], used[each.rank])
        assert (each.calls, each.relevant, each.used) == counts


def test_parts_add_up_to_the_whole(made: Evaluations) -> None:
    """As the processes of one run count theirs: ranks, patterns, bins, reasons, versions."""
    whole, total = Summary.of(made), Summary()
    for start in range(0, len(made), 50):
        total.merge(Summary.of(made[start : start + 50]))

    assert total.headline() == whole.headline()
    for name in ("retrieval", "patterns", "errors", "reasons", "versions", "judges"):
        assert getattr(total, name) == getattr(whole, name), name
    for part, score in zip(total.scores, whole.scores, strict=True):
        for name in ("name", "by", "bins", "total", "unscored"):
            assert getattr(part, name) == getattr(score, name), name
        assert part.mean == pytest.approx(score.mean)
