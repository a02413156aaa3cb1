"""Agreement with gold worked out a second time: every figure by its definition, pair by pair.

Slow on purpose and without a line of the library's: AUROC counts all pairs of a positive and a
negative, Kendall's tau all pairs of rows, ranks count what is smaller, kappa is observed against
expected agreement. A figure that is undefined is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from naive import (
    Row,
    adherence_probability,
    cleaned,
    document_keys,
    labels_of,
    response_keys,
    supporting,
    verdicts,
)

Number = float | None


@dataclass(frozen=True)
class Both:
    """One call on both sides: the rows as JSON, and the values of their scores."""

    predicted: Row
    gold: Row
    predicted_scores: Mapping[str, Number]
    gold_scores: Mapping[str, Number]
    predicted_estimates: Mapping[str, float] = field(default_factory=dict)

    @property
    def dataset(self) -> str | None:
        name: str | None = self.gold.get("dataset_name")
        for split in ("_train", "_validation", "_test"):
            if name is not None and name.endswith(split):
                return name[: -len(split)]
        return name


# --- statistics of two columns -----------------------------------------------------------------


def rmse(xs: Sequence[float], ys: Sequence[float]) -> Number:
    if not xs:
        return None
    total = Fraction(0)
    for x, y in zip(xs, ys, strict=True):
        total += (Fraction(x) - Fraction(y)) ** 2
    return math.sqrt(total / len(xs))


def pearson(xs: Sequence[float], ys: Sequence[float]) -> Number:
    if len(xs) < 2 or len(set(xs)) == 1 or len(set(ys)) == 1:
        return None
    mean_x = sum(map(Fraction, xs), Fraction(0)) / len(xs)
    mean_y = sum(map(Fraction, ys), Fraction(0)) / len(ys)
    xx = yy = xy = 0.0
    for x, y in zip(xs, ys, strict=True):
        from_x, from_y = float(Fraction(x) - mean_x), float(Fraction(y) - mean_y)
        xx, yy, xy = xx + from_x**2, yy + from_y**2, xy + from_x * from_y
    return xy / math.sqrt(xx) / math.sqrt(yy)


def ranks(values: Sequence[float]) -> list[float]:
    """One more than how many are smaller, and half of the others that are equal."""
    places = []
    for value in values:
        smaller = sum(other < value for other in values)
        equal = sum(other == value for other in values)
        places.append(1 + smaller + (equal - 1) / 2)
    return places


def spearman(xs: Sequence[float], ys: Sequence[float]) -> Number:
    return pearson(ranks(xs), ranks(ys))


def kendall(xs: Sequence[float], ys: Sequence[float]) -> Number:
    """Tau-b."""
    surplus = untied_x = untied_y = 0
    for i in range(len(xs)):
        for j in range(i):
            x = (xs[i] > xs[j]) - (xs[i] < xs[j])
            y = (ys[i] > ys[j]) - (ys[i] < ys[j])
            surplus += x * y
            untied_x += x != 0
            untied_y += y != 0
    return surplus / math.sqrt(untied_x * untied_y) if untied_x and untied_y else None


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> Number:
    """How often a positive stands above a negative; beside it counts half."""
    ones = [score for score, yes in zip(scores, positive, strict=True) if yes]
    zeros = [score for score, yes in zip(scores, positive, strict=True) if not yes]
    if not ones or not zeros:
        return None
    halves = 0
    for positive_score in ones:
        for negative_score in zeros:
            halves += (positive_score > negative_score) + (positive_score >= negative_score)
    return halves / 2 / len(ones) / len(zeros)


def yes_or_no(predicted: Sequence[bool], gold: Sequence[bool]) -> dict[str, Number]:
    """Counts, precision, recall, F1 and Cohen's kappa of two columns of answers."""
    n = len(gold)
    hits = sum(p and g for p, g in zip(predicted, gold, strict=True))
    positives, real = sum(predicted), sum(gold)
    precision = hits / positives if positives else None
    recall = hits / real if real else None
    kappa = None
    if n:
        same = Fraction(sum(p == g for p, g in zip(predicted, gold, strict=True)), n)
        by_chance = Fraction(positives * real + (n - positives) * (n - real), n * n)
        kappa = None if by_chance == 1 else float((same - by_chance) / (1 - by_chance))
    return {
        "positives": real,
        "flagged": positives,
        "right": hits,
        "f1": float(Fraction(2 * hits, positives + real)) if positives + real else None,
        "precision": precision,
        "recall": recall,
        "kappa": kappa,
    }


CORRELATIONS: dict[str, Callable[[Sequence[float], Sequence[float]], Number]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


def correlations(xs: Sequence[float], ys: Sequence[float]) -> dict[str, Number]:
    return {name: correlate(xs, ys) for name, correlate in CORRELATIONS.items()}


# --- scores ------------------------------------------------------------------------------------


def compared(rows: Sequence[Both], name: str) -> list[tuple[Both, float, float]]:
    """Rows where both sides have a value."""
    pairs = []
    for row in rows:
        predicted, gold = row.predicted_scores[name], row.gold_scores[name]
        if predicted is not None and gold is not None:
            pairs.append((row, predicted, gold))
    return pairs


def doubt(row: Both, value: float) -> float:
    """How sure the judge is that a response is not adherent."""
    probability = adherence_probability(row.predicted)
    return 1 - (value if probability is None else float(probability))


def of_scores(rows: Sequence[Both]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name in rows[0].predicted_scores if rows else ():
        both = compared(rows, name)
        xs, ys = [x for _, x, _ in both], [y for _, _, y in both]
        if name == "adherence":
            bad = [y == 0 for y in ys]
            figures[name] = {
                "n": len(both),
                "rmse": rmse(xs, ys),
                "auroc": auroc([doubt(row, x) for row, x, _ in both], bad),
                **yes_or_no([x == 0 for x in xs], bad),
            }
        else:
            figures[name] = {"n": len(both), "rmse": rmse(xs, ys), **correlations(xs, ys)}
    return figures


def of_estimates(rows: Sequence[Both]) -> dict[str, Any]:
    """The estimates' figures under `estimates`, where a row has any; values stand for the rest."""
    figures: dict[str, Any] = {}
    for name in rows[0].predicted_scores if rows else ():
        if any(name in row.predicted_estimates for row in rows):
            both = compared(rows, name)
            xs = [row.predicted_estimates.get(name, x) for row, x, _ in both]
            ys = [y for *_, y in both]
            figures[name] = {"n": len(both), "rmse": rmse(xs, ys), **correlations(xs, ys)}
    return {"estimates": figures} if figures else {}


# --- sentences ---------------------------------------------------------------------------------


@dataclass
class Answers:
    """Yes or no of many sentences, with a probability where there is one."""

    predicted: list[bool] = field(default_factory=list)
    gold: list[bool] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    probabilities: list[float] = field(default_factory=list)
    positive: list[bool] = field(default_factory=list)
    rows: int = 0
    rows_with_probability: int = 0

    def add(
        self,
        answers: Mapping[Any, tuple[bool, bool]],
        probabilities: Mapping[Any, float] | None,
        texts: Mapping[Any, str],
    ) -> None:
        self.rows += 1
        for key, (predicted, gold) in answers.items():
            self.predicted.append(predicted)
            self.gold.append(gold)
            if texts:
                self.lengths.append(len(texts[key]))
        probabilities = probabilities or {}
        known = [key for key in answers if key in probabilities]
        for key in known:
            self.probabilities.append(probabilities[key])
            self.positive.append(answers[key][1])
        self.rows_with_probability += bool(known)

    def figures(self) -> dict[str, Any]:
        figures: dict[str, Any] = {"n": self.rows, **yes_or_no(self.predicted, self.gold)}
        if self.rows_with_probability:
            figures["auroc_n"] = self.rows_with_probability
            figures["auroc"] = auroc(self.probabilities, self.positive)
        return figures

    def baselines(self, *, shortest: bool) -> dict[str, dict[str, Any]]:
        """Those of saying yes throughout, and to as many as the judge, the longest first."""
        both = trivial(self.predicted, self.gold, [-n if shortest else n for n in self.lengths])
        names = ("constant", "sentence_length")
        return {name: {"n": self.rows, **of} for name, of in zip(names, both, strict=False)}


def trivial(
    predicted: Sequence[bool], gold: Sequence[bool], lengths: Sequence[int]
) -> list[dict[str, Any]]:
    """Yes throughout; and, if there are lengths, yes to the longest, as often as was predicted."""
    always = yes_or_no([True] * len(gold), gold)
    if not lengths:
        return [always]
    always["auroc"] = auroc([0.0] * len(gold), gold)
    longest = sorted(range(len(lengths)), key=lambda place: -lengths[place])[: sum(predicted)]
    chosen = yes_or_no([place in longest for place in range(len(gold))], gold)
    return [always, {**chosen, "auroc": auroc(lengths, gold)}]


def of_sentences(rows: Sequence[Both]) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Figures by kind of sentence, those of baselines, and how many rows were left out."""
    kinds = ("relevant", "utilized", "supporting", "supported", "unsupported")
    answers = {kind: Answers() for kind in kinds}
    unlabelled = skipped = 0
    for row in rows:
        ours, theirs = row.predicted, row.gold
        if ours["documents_sentences"] != theirs["documents_sentences"]:
            skipped += 1
            continue
        documents, labels = document_keys(theirs), labels_of(ours)
        for kind in ("relevant", "utilized"):
            predicted = cleaned(labels[f"all_{kind}_sentence_keys"], documents)
            gold = cleaned(labels_of(theirs)[f"all_{kind}_sentence_keys"], documents)
            answers[kind].add(
                {key: (key in predicted, key in gold) for key in documents},
                labels.get(f"{kind}_probabilities"),
                dict(pair for document in ours["documents_sentences"] for pair in document),
            )
        if ours["response_sentences"] != theirs["response_sentences"]:
            continue
        predicted_support, gold_support = supporting(ours), supporting(theirs)
        answers["supporting"].add(
            {
                (key, document): (
                    document in predicted_support.get(key, []),
                    document in gold_support.get(key, []),
                )
                for key in response_keys(theirs)
                for document in documents
            },
            None,
            {},
        )
        predicted_verdicts, gold_verdicts = verdicts(ours), verdicts(theirs)
        full = {}
        for key in response_keys(theirs):
            both = (predicted_verdicts[key], gold_verdicts[key])
            if "unlabelled" in both:
                unlabelled += 1
            else:
                full[key] = (both[0] == "full", both[1] == "full")
        chances = labels.get("supported_probabilities")
        texts = dict(ours["response_sentences"])
        answers["supported"].add(full, chances, texts)
        answers["unsupported"].add(
            {key: (not ours, not gold) for key, (ours, gold) in full.items()},
            None if chances is None else {key: 1 - chance for key, chance in chances.items()},
            texts,
        )
    table = {kind: answers[kind].figures() for kind in kinds}
    for kind in ("supported", "unsupported"):
        table[kind]["unlabelled"] = unlabelled
    rivals: dict[str, Any] = {"constant": {}, "sentence_length": {}}
    for kind in kinds:
        for name, figures in answers[kind].baselines(shortest=kind == "supported").items():
            rivals[name][kind] = figures
    return table, rivals if rivals["sentence_length"] else {"constant": rivals["constant"]}, skipped


# --- baselines ---------------------------------------------------------------------------------

PREDICTORS = {
    "gpt3_adherence": "adherence",
    "ragas_faithfulness": "adherence",
    "trulens_groundedness": "adherence",
    "gpt3_context_relevance": "context_relevance",
    "ragas_context_relevance": "context_relevance",
    "trulens_context_relevance": "context_relevance",
    "gpt35_utilization": "context_utilization",
}


def of_baselines(rows: Sequence[Both], *, of_all_sentences: bool) -> dict[str, Any]:
    """Published predictions, the data set's mean, the response's length.

    `of_all_sentences`: whether utilization is a share of all sentences, as the column is.
    """
    table: dict[str, Any] = {}
    for column, name in PREDICTORS.items():
        if name == "context_utilization" and not of_all_sentences:
            continue
        both = [pair for pair in compared(rows, name) if pair[0].gold.get(column) is not None]
        if not both:
            continue
        values = [float(row.gold[column]) for row, _, _ in both]
        gold = [y for _, _, y in both]
        if name == "adherence":
            bad = [y == 0 for y in gold]
            figures = {
                "auroc": auroc([1 - value for value in values], bad),
                "judge_auroc": auroc([doubt(row, x) for row, x, _ in both], bad),
            }
        else:
            figures = {
                "rmse": rmse(values, gold),
                "judge_rmse": rmse([x for _, x, _ in both], gold),
            }
        table.setdefault(column, {})[name] = {"n": len(both), **figures}
    table["constant"] = {}
    for name in rows[0].predicted_scores:
        both = compared(rows, name)
        gold = [y for _, _, y in both]
        if name == "adherence":
            continue
        of_set: dict[str | None, list[Fraction]] = {}
        for row, _, y in both:
            of_set.setdefault(row.dataset, []).append(Fraction(y))
        means = {dataset: float(sum(ys, Fraction(0)) / len(ys)) for dataset, ys in of_set.items()}
        figures = {"rmse": rmse([means[row.dataset] for row, _, _ in both], gold)}
        table["constant"][name] = {"n": len(both), **figures}
    both = compared(rows, "adherence")
    lengths = [len(row.predicted["response"]) for row, _, _ in both]
    rivals = trivial([x == 0 for _, x, _ in both], [y == 0 for *_, y in both], lengths)
    for name, figures in zip(("constant", "response_length"), rivals, strict=True):
        table.setdefault(name, {})["adherence"] = {"n": len(both), **figures}
    return table


# --- a human's numbers -------------------------------------------------------------------------


def of_human(rows: Sequence[Both], number: str) -> dict[str, Any]:
    """Every score against a human's numbers: over rows, within documents, over systems."""
    table: dict[str, Any] = {"human": {}, "human_by_document": {}, "human_by_system": {}}
    for name in rows[0].predicted_scores:
        rated = [
            (row, score, float(row.gold[number]))
            for row in rows
            if (score := row.predicted_scores[name]) is not None
            and row.gold.get(number) is not None
        ]
        xs, ys = [x for _, x, _ in rated], [y for _, _, y in rated]
        table["human"][name] = {"n": len(rated), **correlations(xs, ys)}
        documents = _groups(rated, "doc_id")
        if documents:
            varied = [
                g for g in documents if all(len(set(side)) > 1 for side in zip(*g, strict=True))
            ]
            within = [correlations(*zip(*group, strict=True)) for group in varied]
            table["human_by_document"][name] = {
                "n": sum(len(group) for group in documents),
                "documents": len(varied),
                "skipped": len(documents) - len(varied),
                **{each: _mean([of[each] for of in within]) for each in CORRELATIONS},
            }
        systems = _groups(rated, "system_id")
        if systems:
            columns = [[[pair[side] for pair in group] for group in systems] for side in (0, 1)]
            means = [
                [float(sum(map(Fraction, own)) / len(own)) for own in side] for side in columns
            ]
            table["human_by_system"][name] = {
                "n": sum(len(group) for group in systems),
                "systems": len(systems),
                **correlations(*means),
            }
    return {level: figures for level, figures in table.items() if figures}


def _groups(
    rated: Sequence[tuple[Both, float, float]], field_name: str
) -> list[list[tuple[float, float]]]:
    groups: dict[str, list[tuple[float, float]]] = {}
    for row, score, number in rated:
        name = row.gold.get(field_name)
        if name is not None:
            groups.setdefault(str(name), []).append((score, number))
    return list(groups.values())


# --- the whole ---------------------------------------------------------------------------------


def agreement(
    rows: Sequence[Both], *, of_all_sentences: bool, human: str | None = None
) -> dict[str, Any]:
    """All figures: pooled, by data set, and their mean over data sets."""

    def group(some: Sequence[Both]) -> dict[str, Any]:
        keys, key_baselines, skipped = of_sentences(some)
        figures = {
            "n": len(some),
            "keys_skipped": skipped,
            "scores": of_scores(some),
            **of_estimates(some),
            "keys": keys,
            "key_baselines": key_baselines,
            "baselines": of_baselines(some, of_all_sentences=of_all_sentences),
        }
        return figures if human is None else {**figures, **of_human(some, human)}

    names = sorted({row.dataset for row in rows if row.dataset is not None})
    by_dataset = {name: group([row for row in rows if row.dataset == name]) for name in names}
    return {
        **group(rows),
        "by_dataset": by_dataset,
        "mean_over_datasets": {"datasets": len(names), **_mean_over(list(by_dataset.values()))},
    }


COUNTS = (
    "n",
    "positives",
    "flagged",
    "right",
    "unlabelled",
    "auroc_n",
    "keys_skipped",
    "documents",
    "skipped",
    "systems",
)


def _mean_over(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of every figure over the groups that have it, at whatever depth it stands."""
    means: dict[str, Any] = {}
    for name in dict.fromkeys(name for group in groups for name in group):
        present = [group[name] for group in groups if name in group]
        if isinstance(present[0], Mapping):
            means[name] = _mean_over(present)
        elif name not in COUNTS:
            means[name] = _mean(present)
            means.setdefault("sets", {})[name] = sum(value is not None for value in present)
    return means


def _mean(values: Sequence[Number]) -> Number:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
