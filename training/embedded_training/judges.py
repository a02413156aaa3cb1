"""A judge fitted on part of the rows, and cross-validation: each row judged by an unseen fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from embedded_training.fits import Fit, Level, Words, error_of, errors, platt
from embedded_training.rows import FOLDS, SCORES, TRUTH, Data, View
from rag_eval_integrations.judges.embedded._model import (
    ANSWERED_OPENS,
    SHARES,
    TOPIC_OPENS,
    adherence_features,
    expected_scores,
    level_row,
)


@dataclass(frozen=True)
class Choice:
    """The settings that ablations change."""

    document_c: float = 0.003
    support_c: float = 0.005
    level_c: float = 0.03
    truth: float = 1.5
    """Total weight of the RAGTruth sentences, relative to that of the RAGBench sentences."""
    words: bool = True
    """True to give stems weights of their own."""
    least: int = 100
    """Sentences that hold a stem with a weight (40 % of that among new words)."""
    in_sets: int = 2
    """Data sets in which it has to be; a word of one domain alone tells the domain."""
    balanced: bool = True
    """True to give every data set the same share of unsupported sentences and responses."""
    without: tuple[int, ...] = ()
    """Indexes of the features of response sentences to leave out."""
    level: tuple[int, ...] = (0, 1, 2)
    """Indexes of the response-level features to use."""


SHIPPED = Choice()
TOPIC_C = 0.1
INNER = 3
"""Parts of the training rows that give the response level its held-out probabilities."""

UNSUPPORTED = 0.15
NOT_ADHERENT = 0.25


class Judge:
    """All models fitted on the rows of one mask."""

    def __init__(
        self,
        data: Data,
        train: np.ndarray,
        choice: Choice = SHIPPED,
        *,
        adherence_alone: bool = False,
    ) -> None:
        self.choice = choice
        part = train[: data.bench][data.documents.row]
        if part.any() and not adherence_alone:
            size = np.bincount(data.documents.row)[data.documents.row]
            weight = (1 / size / sizes(data)[data.documents.row])[part]
            x = data.documents.x[part]
            self.relevant = Fit(x, data.relevant[part], weight, choice.document_c)
            self.utilized = Fit(x, data.utilized[part], weight, choice.document_c)
            x = x * data.by_question
            self.alone = Fit(x, data.relevant[part], weight, choice.document_c)
            self.gates(data, train[: data.bench])
        self.support(data, train)

    def gates(self, data: Data, train: np.ndarray) -> None:
        """Fit the first gate, which tells real rows from rows with a part of another row."""
        rows = train & train[data.partner]
        near = train & train[data.exchanged]
        parts = [
            (data.own, near, True, 2.0),
            (data.foreign_documents, near, False, 2.0),
            (data.foreign_question, rows, False, 1.0),
            (data.foreign_response, rows, True, 0.5),
            (data.refusal, near, True, 0.5),
            (data.foreign_documents_refusal, near, False, 0.5),
        ]
        self.topic = Fit(
            np.vstack([view.topic[of] for view, of, _, _ in parts]),
            np.concatenate([np.full(of.sum(), fits) for _, of, fits, _ in parts]),
            np.concatenate([times / sizes(data)[: data.bench][of] for _, of, _, times in parts]),
            TOPIC_C,
        )

    def relevance(self, data: Data, view: View, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute P(relevant) of the sentences of some rows, with their responses and without."""
        part = rows[data.documents.row]
        topic, answered = (
            np.clip((value - closed) / (opened - closed), 0, 1)
            for value, (closed, opened) in (
                (self.topic(view.topic[rows]), TOPIC_OPENS),
                (view.dice_max[rows], ANSWERED_OPENS),
            )
        )
        of_row = (np.cumsum(rows) - 1)[data.documents.row[part]]
        topic, answered = topic[of_row], answered[of_row]
        alone = self.alone(view.x[part] * data.by_question)
        both = answered * self.relevant(view.x[part]) + (1 - answered) * alone
        return topic * both, topic * alone

    def support(self, data: Data, train: np.ndarray) -> None:
        """Fit sentences, then responses on held-out probabilities of their sentences."""
        held_out = np.zeros(len(data.supported))
        inner = data.fold * INNER // FOLDS
        for fold in range(INNER):
            part = (train & (inner == fold))[data.response.row]
            if not part.any():
                continue  # this part is what is held out of all
            held_out[part] = self._sentences(data, train & (inner != fold)).score(data, part)
        self.supported = self._sentences(data, train)
        mask = train[data.response.row]
        every = (1 / sizes(data) / data.response_size)[data.response.row][mask]
        calibration = platt(held_out[mask], data.supported[mask], every)
        self.supported.fit.rescale(*calibration)
        probability = np.ones(len(held_out))
        probability[mask] = _sigmoid(calibration[0] * held_out[mask] + calibration[1])
        self.adherent = self._responses(data, probability, train)

    def _sentences(self, data: Data, train: np.ndarray) -> Support:
        mask = train[data.response.row]
        own = data.set[data.response.row]
        weight = (data.response_size * sizes(data))[data.response.row] ** -0.5 * mask
        truth = own == TRUTH
        if (weight * truth).any() and (weight * ~truth).any():
            share = (weight * ~truth).sum() / (weight * truth).sum()
            weight[truth] *= self.choice.truth * share
            mask &= weight > 0
        if self.choice.balanced:
            weight = balance(weight, own, data.supported, UNSUPPORTED)
        return Support(data, mask, weight, self.choice)

    def _responses(self, data: Data, supported: np.ndarray, train: np.ndarray) -> Fit:
        """Fit adherence, with an intercept per data set so that weights do not encode the set."""
        level = response_level(data, supported)[:, self.choice.level]
        weight = balance(sizes(data) ** -0.5 * train, data.set, data.adherent, NOT_ADHERENT)[train]
        own = np.array([data.set[train] == name for name in sorted(set(data.set[train]))]).T * 3.0
        x, y = level[train], data.adherent[train]
        both = Fit(np.hstack([x, own]), y, weight, self.choice.level_c)
        fit = Fit(x, y, weight, self.choice.level_c)
        fit.weights = both.weights[: x.shape[1]]
        # At run time the set is unknown. Calibrated on RAGBench, whose gold defines the score.
        bench = train & (data.set != TRUTH)
        if not bench.any():
            bench = train
        slope, intercept = platt(
            fit.score(level[bench]), data.adherent[bench], 1 / sizes(data)[bench]
        )
        fit.rescale(slope, intercept)
        return fit


class Support:
    """The model of P(sentence is supported), from features and words."""

    def __init__(self, data: Data, mask: np.ndarray, weight: np.ndarray, choice: Choice) -> None:
        self.kept = np.setdiff1d(np.arange(data.response.x.shape[1]), choice.without)
        own = data.set[data.response.row][mask]
        sets = min(choice.in_sets, len(set(own)))
        least = choice.least if choice.words else 10**9
        stems = [data.stems[place] for place in np.flatnonzero(mask)]
        new = [data.new[place] for place in np.flatnonzero(mask)]
        self.present = Words.common(stems, own, least, sets)
        self.new = Words.common(new, own, int(0.4 * least), sets)
        words = self._words(stems, new)
        self.fit = Fit(
            data.response.x[mask][:, self.kept],
            data.supported[mask],
            weight[mask],
            choice.support_c,
            words,
        )

    def _words(self, stems: list[tuple[str, ...]], new: list[tuple[str, ...]]) -> sparse.csr_matrix:
        return sparse.hstack([self.present.matrix(stems), self.new.matrix(new)]).tocsr()

    def score(self, data: Data, mask: np.ndarray) -> np.ndarray:
        """Compute the log-odds of the sentences of a mask."""
        place = np.flatnonzero(mask)
        words = self._words([data.stems[i] for i in place], [data.new[i] for i in place])
        return self.fit.score(data.response.x[mask][:, self.kept], words)


class HeldOut:
    """The judgements of every row by a judge that was fitted without it."""

    def __init__(
        self,
        data: Data,
        masks: list[np.ndarray],
        choice: Choice = SHIPPED,
        *,
        within: np.ndarray | None = None,
        adherence_alone: bool = False,
    ) -> None:
        """Judge the rows of each mask in turn, fitted on the others (on those `within`)."""
        self.relevant = np.zeros(len(data.relevant))
        self.utilized = np.zeros(len(data.utilized))
        self.alone = np.zeros(len(data.relevant))
        self.swapped = {
            name: np.zeros((len(data.relevant), 2))
            for name in ("foreign_question", "foreign_response", "refusal")
        }
        self.off_topic = {
            name: np.zeros(data.bench, bool) for name in ("own", "foreign_documents", "refusal")
        }
        """Whether the first gate is closed."""
        self.supported = np.ones(len(data.supported))
        self.adherent = np.zeros(len(data.rows))
        for test in masks:
            train = ~test if within is None else within & ~test
            judge = Judge(data, train, choice, adherence_alone=adherence_alone)
            part = test[: data.bench][data.documents.row]
            if part.any() and not adherence_alone:
                rows = test[: data.bench]
                self.relevant[part], self.alone[part] = judge.relevance(data, data.own, rows)
                self.utilized[part] = judge.utilized(data.documents.x[part])
                for name, closed in self.off_topic.items():
                    closed[rows] = judge.topic(getattr(data, name).topic[rows]) <= TOPIC_OPENS[0]
                for name in self.swapped:
                    view = getattr(data, name)
                    self.swapped[name][part] = np.array(judge.relevance(data, view, rows)).T
            part = test[data.response.row]
            self.supported[part] = _sigmoid(judge.supported.score(data, part))
            level = response_level(data, self.supported)[:, choice.level]
            self.adherent[test] = judge.adherent(level)[test]
        if not adherence_alone:
            self.expect(data, masks)

    def expect(self, data: Data, masks: list[np.ndarray]) -> None:
        """Compute expected scores (rows × `SCORES`); calibrate them by fits on other rows.

        `independent` is the variance that a score would have if its sentences were independent, and
        0 for a ratio.
        """
        parts = list(
            zip(*map(data.documents.split, (self.relevant, self.utilized, self.alone)), strict=True)
        )
        both = np.array([_scores(*[part.tolist() for part in row]) for row in parts])
        self.expected, self.independent = both[..., 0], both[..., 1]
        self.level = np.array(
            [
                level_row(relevant.tolist(), utilized.tolist(), *call)
                for (relevant, utilized, _), call in zip(parts, data.calls, strict=True)
            ]
        )
        self.calibrated, self.error = np.zeros(data.gold.shape), np.zeros(data.gold.shape)
        self.constant = np.zeros(data.gold.shape)
        for test in masks:
            rows = test[: data.bench]
            if rows.any():
                self._calibrate(data, rows)

    def _calibrate(self, data: Data, test: np.ndarray) -> None:
        """Estimate some rows by calibrations that were fitted on the other rows."""
        train, weight = ~test, 1 / sizes(data)[: data.bench]
        for place, name in enumerate(SCORES):
            means = self.means(name, self.regression(data, name, train))
            of = self.errors(data, name, means, train)
            self.calibrated[test, place] = means[test]
            self.error[test, place] = error_of(of, means[test], self.independent[test, place])
            self.constant[test, place] = np.average(data.gold[train, place], weights=weight[train])

    def regression(self, data: Data, name: str, train: np.ndarray) -> Level | None:
        """Fit what corrects a score, on some rows; None for a score that stays as it is."""
        if name not in SHARES:
            return None
        place = SCORES.index(name)
        rows, own = self.level[train], data.set[: data.bench][train]
        return Level(rows, data.gold[train, place], own, LEVEL_RIDGE)

    def means(self, name: str, level: Level | None) -> np.ndarray:
        """Estimate a score of all rows as `_levels.estimated` does."""
        expected = self.expected[:, SCORES.index(name)]
        if level is None:
            return expected
        return np.clip(level(self.level), 0, 1)

    def errors(
        self, data: Data, name: str, means: np.ndarray, train: np.ndarray
    ) -> dict[str, float]:
        """Fit the numbers of `model.ScoreErrors` on some rows."""
        place, weight = SCORES.index(name), 1 / sizes(data)[: data.bench][train]
        return errors(means[train], data.gold[train, place], self.independent[train, place], weight)


LEVEL_RIDGE = 1.5
"""Strength of the ridge, as a multiple of the mean square of a feature: the weakest, among a few,
with which completeness was not worse than a constant on any unseen domain."""


def _scores(
    relevant: list[float], utilized: list[float], alone: list[float]
) -> list[tuple[float, float]]:
    """Compute the expected `SCORES` of one row, each with its variance."""
    scored = expected_scores(relevant, utilized)
    scored["context_relevance_alone"] = expected_scores(alone, alone)["context_relevance"]
    return [scored[name] for name in SCORES]


def sizes(data: Data) -> np.ndarray:
    """Count the rows in each row's data set."""
    _, place, count = np.unique(data.set, return_inverse=True, return_counts=True)
    return count[place]


def balance(weight: np.ndarray, of_set: np.ndarray, y: np.ndarray, share: float) -> np.ndarray:
    """Give the negatives of every data set the same share of its weight.

    Without it a feature that tells the data sets apart looks as if it told support.
    """
    weight = weight.copy()
    for name in np.unique(of_set):
        own = (of_set == name) & (weight > 0)
        if own.any() and (own & ~y).any():
            total, bad = weight[own].sum(), weight[own & ~y].sum()
            weight[own & ~y] *= share * total / bad
            weight[own & y] *= (1 - share) * total / (total - bad)
    return weight


def response_level(data: Data, supported: np.ndarray) -> np.ndarray:
    """Build the rows of the response-level model."""
    return np.array([adherence_features(part.tolist()) for part in data.response.split(supported)])


def _sigmoid(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-score))
