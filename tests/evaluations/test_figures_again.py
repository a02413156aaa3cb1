"""The figures of an EVALS file, worked out a second time from its lines of JSON alone."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from own_rows import HAND_MADE, made_rows

from rag_eval_integrations import Evaluation, GEval, RagCall, RagEvaluator, Trace
from rag_eval_integrations.dataset import labelled_from, read_lines, score_labelled
from rag_eval_integrations.dataset.files import evaluations_to
from rag_eval_integrations.records import from_object
from rag_eval_integrations.report import Summary
from rag_eval_integrations.sentences import Punkt
from rag_eval_integrations.testing import ScriptedModel

ROWS = [made.row for made in HAND_MADE] + made_rows(120)
Json = dict[str, Any]


def made_evaluations() -> list[Evaluation]:
    """Scores of labels by both sets of formulas, calls that failed, and calls without documents."""
    splitter = Punkt()
    collected = [
        score_labelled(labelled_from(dict(row), splitter), [Trace(formulas)])
        for formulas in ("gpt-labeling", "ragbench")
        for row in ROWS
    ]
    failing = RagEvaluator(ScriptedModel([]), [Trace(), GEval("tone", criteria="Is it polite?")])
    for number in range(3):
        documents = ["The ferry leaves at nine."] if number else []
        collected.append(failing.evaluate_sync(RagCall(f"When? {number}", documents, "At nine.")))
    return collected


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("figures") / "evals.jsonl"
    with evaluations_to(path) as write:
        for evaluation in made_evaluations():
            write(evaluation)
    return path


def summary_of(path: Path) -> Summary:
    lines = read_lines(path, lambda content: from_object(Evaluation, content))
    return Summary.of(line.value for line in lines if line.value is not None)


# --- The second computation: nothing of the library's


def lines_of(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def maker(row: Json, score: Json) -> tuple[tuple[str, Any], ...]:
    by = row.get("by", {}) | score.get("by", {})
    return tuple(sorted((k, v) for k, v in by.items() if k not in ("splitter", "windows")))


def t_quantile(freedom: int) -> float:
    """The t that 2.5 % lie above: Simpson's rule and bisection."""
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = math.exp(log_scale) / math.sqrt(freedom * math.pi)

    def density(x: float) -> float:
        return float(scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2))

    def below(t: float) -> float:
        steps = 400
        width = t / steps
        inner = sum((4 if place % 2 else 2) * density(place * width) for place in range(1, steps))
        return width / 3 * (density(0) + inner + density(t))

    low, high = 0.0, 50.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < 0.475 else (low, middle)
    return low


def wilson(share: float, n: int) -> tuple[float, float]:
    """The roots p of (share - p)² = z² p (1 - p) / n."""
    z2 = statistics.NormalDist().inv_cdf(0.975) ** 2
    a, b, c = 1 + z2 / n, -(2 * share + z2 / n), share * share
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    n = len(values)
    if n < 2:
        return None
    mean = statistics.fmean(values)
    if set(values) <= {0.0, 1.0}:
        return wilson(mean, n)
    assert len(set(values)) > 1
    half = t_quantile(n - 1) * statistics.stdev(values) / math.sqrt(n)
    return max(0.0, mean - half), min(1.0, mean + half)


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

    summary = summary_of(file)

    collected = {}
    for each in summary.scores:
        by = tuple(sorted(each.by.model_dump(exclude_none=True).items()))
        collected[each.name, by, each.method] = each
    assert collected.keys() >= values.keys()
    assert len(values) == 24  # six scores by two annotators and two sets of formulas
    for key, scored in values.items():
        each = collected[key]
        assert each.scored == len(scored)
        assert each.mean == pytest.approx(statistics.fmean(scored), abs=1e-12)
        assert each.deviation == pytest.approx(statistics.stdev(scored), abs=1e-12)
        assert each.interval is not None
        assert (each.interval.low, each.interval.high) == pytest.approx(interval(scored), abs=1e-9)
        bins = [
            sum(place <= 10 * x < place + 1 or (place == 9 and x == 1) for x in scored)
            for place in range(10)
        ]
        assert list(each.bins) == bins
    assert sum((Counter(each.unscored) for each in summary.scores), Counter()) == sum(
        lost.values(), Counter()
    )
    for name in {key[0] for key in [*values, *lost]}:
        total = sum(each.total for each in summary.scores if each.name == name)
        assert total == sum(name in row["scores"] for row in lines_of(file))


def patterns_of(row: Json) -> list[str]:
    """The patterns as `docs/method.md` defines them."""
    value = {name: score.get("value") for name, score in row["scores"].items()}
    r, u, c, a = (value[n] for n in ("context_relevance", "context_utilization", "completeness", "adherence"))  # fmt: skip
    if u is not None and dict(maker(row, row["scores"]["adherence"])).get("formulas") == "ragbench":
        u = min(1.0, u / r) if r else None
    collected = []
    if a is not None and a < 1:
        collected.append("hallucination")
    if r == 0:
        collected.append("nothing_relevant_retrieved")
    elif r is not None and u is not None and u <= 0.4:
        collected.append("context_ignored")
    elif c is not None and c <= 0.5 and a == 1:
        collected.append("incomplete")
    if not collected and None not in (r, u, c, a):
        collected.append("healthy")
    return collected


def test_patterns_have_the_same_shares(file: Path) -> None:
    """Over the labelled calls, with Wilson's interval."""
    labelled = [row for row in lines_of(file) if row["labels"] is not None]
    counts = Counter(pattern for row in labelled for pattern in patterns_of(row))

    summary = summary_of(file)

    assert summary.labelled == len(labelled)
    assert {each.pattern: each.calls for each in summary.patterns if each.calls} == counts
    assert len(summary.patterns) == 5
    for each in summary.patterns:
        assert each.share == pytest.approx(each.calls / len(labelled))
        low, high = wilson(each.share, len(labelled))
        assert (each.interval.low, each.interval.high) == pytest.approx((low, high), abs=1e-9)


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

    retrieval = summary_of(file).retrieval

    assert (retrieval.calls, retrieval.relevant) == (labelled, len(firsts))
    assert retrieval.first_relevant == pytest.approx(statistics.fmean(firsts))
    assert retrieval.share == pytest.approx(len(firsts) / labelled)
    assert len(retrieval.ranks) == max(calls)
    for each in retrieval.ranks:
        assert (each.calls, each.relevant, each.used) == (
            calls[each.rank], relevant[each.rank], used[each.rank],
        )  # fmt: skip


def test_totals_are_the_same(file: Path) -> None:
    """Calls, scored and failed ones, failures by stage and type, judges and versions."""
    rows = lines_of(file)

    def count(of: Callable[[Json], bool]) -> int:
        return sum(map(of, rows))

    summary = summary_of(file)

    assert summary.calls == len(rows)
    assert summary.failed == count(lambda row: row.get("error") is not None) == 3
    assert summary.scored == count(
        lambda row: any(score.get("value") is not None for score in row["scores"].values())
    )
    errors = Counter(f"{e['stage']}: {e['type']}" for row in rows if (e := row.get("error")))
    assert summary.errors == errors
    judges = Counter((row["judge"]["name"], row["judge"].get("model")) for row in rows)
    assert {(each.name, each.model): n for each, n in summary.judges.items()} == judges
    formulas = Counter(
        made
        for row in rows
        for made in {dict(maker(row, score)).get("formulas") for score in row["scores"].values()}
        if made is not None
    )
    assert summary.versions["formulas"] == formulas


def test_parts_add_up_to_the_whole() -> None:
    """As the processes of one run count theirs: ranks, patterns, bins, reasons, versions."""
    evaluations = made_evaluations()
    whole, total = Summary.of(evaluations), Summary()
    for start in range(0, len(evaluations), 50):
        total.merge(Summary.of(evaluations[start : start + 50]))

    assert total.headline() == whole.headline()
    assert (total.retrieval, total.patterns) == (whole.retrieval, whole.patterns)
    assert (total.errors, total.reasons, total.versions, total.judges) == (
        whole.errors, whole.reasons, whole.versions, whole.judges,
    )  # fmt: skip
    for part, score in zip(total.scores, whole.scores, strict=True):
        assert (part.name, part.by, part.bins, part.total) == (
            score.name, score.by, score.bins, score.total,
        )  # fmt: skip
        assert (part.unscored, part.mean) == (score.unscored, pytest.approx(score.mean))
