"""The TRACe metric: turns a call's labels into six scores with evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from pydantic import JsonValue

from rag_eval_integrations.errors import ConfigurationError, whole_number
from rag_eval_integrations.metrics.metric import LabelMetric
from rag_eval_integrations.metrics.trace import formulas
from rag_eval_integrations.metrics.trace.formulas import (
    Counts,
    Formulas,
    adherence_evidence,
    adherence_reason,
    completeness_reason,
    expected_counts,
    labelled_counts,
    of_this_turn,
    relevance_evidence,
    relevance_reason,
    use_evidence,
    utilization_reason,
)
from rag_eval_integrations.records import By, Labelling, Labels, Score, SentencizedCall
from rag_eval_integrations.records._json import MOST, trusted
from rag_eval_integrations.records.labels import UTILIZED, Estimate, UnscoredCode
from rag_eval_integrations.records.score import ScoreEstimate

if TYPE_CHECKING:
    from rag_eval_integrations.judges.calibration import Calibration, JudgeMaps

TRACE_SCORES = (
    "context_relevance",
    "context_utilization",
    "completeness",
    "adherence",
    "supported_fraction",
    "trace_average",
)
"""Names of the scores, in the order in which they are returned."""

_AVERAGED = TRACE_SCORES[:4]
_UNMIXED = (
    "The words of the embedded judge may tell more than this local model alone: their mixture was "
    "not measured with it; `rag-eval calibrate` fits it to labelled rows."
)
_USE_UNASKED = "people were not asked which sentences the response used"

T = TypeVar("T")


@dataclass(frozen=True)
class Trace(LabelMetric):
    """The four TRACe scores, the share of supported sentences, and the average of the four.

    Every score is in [0, 1], 1 is best, and is what the formulas give for the labels. Where the
    judge gives probabilities, a score also has an `estimate` with a standard error: the judge's own
    (`calibrated`), else the formulas over expected counts (`expected`). An estimate is nearer to
    gold on average, and never is the value: a value can be counted in the labels beside it.
    `adherence` is 1.0 or 0.0, and its `probability` is its estimate. Utilization as a share of the
    relevant sentences and completeness have no estimate where nothing is labelled relevant or
    nothing used. `trace_average` is unscored unless all four scores have values.

    Source: arXiv:2407.11005, section 3. The formulas with all empty cases are in
    `metrics/trace/formulas.py` and `docs/method.md`.

    Raises:
        ConfigurationError: a setting is out of range, or names a score that does not exist.
    """

    names = TRACE_SCORES
    version = "2"  # 1: the values were the estimates

    formulas: Formulas = "gpt-labeling"
    """Set of formulas: `gpt-labeling`, or `ragbench` (reproduces RAGBench's published columns)."""
    relevance_baseline: int | None = None
    """Number to divide context relevance by instead of the number of sentences, so that long and
    short contexts can be compared. Only under `gpt-labeling`."""
    hard: bool = False
    """True to leave out estimates and `probability`, even where there are probabilities."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Lowest passing value by score name, in [0, 1]; a score that is not named has no verdict."""
    calibration: Calibration | None = field(default=None, repr=False)
    """Maps of the estimates, fitted by `rag-eval calibrate` for the same judge and formulas: an
    estimate (of adherence, `probability` too) is the calibrated one, also of a judge that gives
    none of its own. Values stay what the formulas give for the labels. None leaves estimates as
    they are."""

    @property
    def identity(self) -> str | None:
        """The text that stands for the metric in a fingerprint, the calibration's included."""
        own = super().identity
        return own if self.calibration is None else f"{own} {self.calibration.stamp}"

    def __post_init__(self) -> None:
        if self.formulas not in get_args(Formulas):
            raise ConfigurationError(
                "formulas", self.formulas, f"use one of {', '.join(get_args(Formulas))}"
            )
        baseline = self.relevance_baseline
        if baseline is not None:
            whole_number("relevance_baseline", baseline, 1, MOST)
        if baseline is not None and self.formulas == "ragbench":
            raise ConfigurationError(
                "relevance_baseline",
                baseline,
                "leave it out: the ragbench formulas divide by the number of sentences",
            )
        if self.calibration is not None:
            self._check(self.calibration)
        for name, threshold in self.thresholds.items():
            if name not in TRACE_SCORES:
                raise ConfigurationError(
                    "thresholds", name, f"no such score; use one of {', '.join(TRACE_SCORES)}"
                )
            if not _is_share(threshold):
                raise ConfigurationError(
                    f"thresholds[{name!r}]", threshold, "use a number from 0 to 1"
                )

    def _check(self, calibration: Calibration) -> None:
        """Refuse a calibration that was fitted with other settings."""
        if self.hard:
            raise ConfigurationError("calibration", calibration.name, "needs estimates, not `hard`")
        for name in ("formulas", "relevance_baseline"):
            own, fitted = getattr(self, name), getattr(calibration, name)
            if own != fitted:
                raise ConfigurationError(
                    "calibration",
                    calibration.name,
                    f"was fitted with {name} = {fitted!r}, and these scores are made with {own!r}",
                )

    def unscored(self, code: UnscoredCode, reason: str, by: By) -> tuple[Score, ...]:
        """Return every score without a value, all for the same reason."""
        by = self._stamp(by)
        return tuple(
            Score(
                name=name,
                status="unscored",
                unscored=code,
                reason=reason,
                by=by,
                threshold=self.thresholds.get(name),
            )
            for name in TRACE_SCORES
        )

    def score(self, call: SentencizedCall, labelling: Labelling, by: By) -> tuple[Score, ...]:
        """Score one call from a judge's labelling.

        Args:
            call: the call with its keyed sentences.
            labelling: the judge's labels; without labels, every score is unscored.
            by: provenance; each score carries it, completed by this metric's formulas.

        Returns:
            One score per name in `names`, in order.

        Raises:
            ConfigurationError: the calibration was fitted on another judge.
        """
        labels = labelling.labels
        if labels is None:
            return self._without_labels(labelling, by)
        scorer = _CallScorer(self, call, labels, self._stamp(by), labelling.warnings)
        scorer.threshold = labelling.adherence_threshold
        return self._scored(scorer)

    def numbers(self, call: SentencizedCall, labels: Labels, by: By) -> tuple[Score, ...]:
        """Score one call as `score` does, by the formulas alone: without reasons and evidence."""
        return self._scored(_CallScorer(self, call, labels, self._stamp(by), words=False))

    def _scored(self, scorer: _CallScorer) -> tuple[Score, ...]:
        """Return all scores of a call; without a response, only those of the retrieval."""
        if scorer.call.call.response is None:
            return scorer.retrieval_alone()
        if scorer.call.call.earlier and not scorer.turn.documents:
            why = formulas.NOTHING_RETRIEVED
            scores = [scorer._unscored(name, "no_context", why) for name in _AVERAGED[:3]]
        else:
            scores = [scorer.relevance(), scorer.utilization(), scorer.completeness()]
        scores.append(scorer.adherence())
        average = scorer.average([score for score in scores if score.name in _AVERAGED])
        return (*scores, scorer.supported_fraction(), average)

    def _stamp(self, by: By) -> By:
        """Add formulas, baseline and calibration to the provenance."""
        stamped: dict[str, str | int | None] = {
            "formulas": self.formulas,
            "relevance_baseline": self.relevance_baseline,
        }
        if self.calibration is not None:
            stamped["calibration"] = self.calibration.stamp
        return by.model_copy(update=stamped)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


_DEFAULTS = {name: field.default for name, field in Score.model_fields.items()}
_ESTIMATE_FIELDS = set(ScoreEstimate.model_fields)


def _score_estimate(value: float, error: float | None, method: str) -> ScoreEstimate:
    """Make the estimate of a score."""
    content = {"value": value, "std_error": error, "method": method}
    return trusted(ScoreEstimate, content, _ESTIMATE_FIELDS)


class _CallScorer:
    """Scorer of one call, with the counts that its scores share."""

    def __init__(
        self,
        trace: Trace,
        call: SentencizedCall,
        labels: Labels,
        by: By,
        warnings: tuple[str, ...] = (),
        *,
        words: bool = True,
    ) -> None:
        self.trace = trace
        self.call = call
        self.labels = labels
        self.turn, self.turn_labels = of_this_turn(call, labels)
        self.warnings = warnings
        self.by = by
        self.words = words
        self.threshold: float | None = None
        keys = [sentence.key for sentence in self.turn.documents]
        self.counts: Counts = labelled_counts(self.turn_labels, len(keys))
        self.expected = None if trace.hard else expected_counts(labels, keys)
        self.maps: JudgeMaps | None = None
        if trace.calibration is not None:
            self.maps = trace.calibration.maps_for(by)

    def _worded(self, tell: Callable[..., T], *facts: Any) -> T | None:
        """Write a reason or evidence; None where only numbers are wanted."""
        return tell(*facts) if self.words else None

    def _score(self, name: str, value: float, **fields: Any) -> Score:
        """Make a score with a value."""
        # Six per call: `model_construct` takes five times as long. `value` is computed, in [0, 1].
        given = {
            "name": name,
            "status": "scored",
            "value": value,
            "raw": value,
            "scale": (0.0, 1.0),
            "threshold": self._threshold(name),
            "warnings": self.warnings,
            "by": self.by,
            **fields,
        }
        return trusted(Score, {**_DEFAULTS, **given}, set(given))

    def _threshold(self, name: str) -> float | None:
        threshold = self.trace.thresholds.get(name)
        return None if threshold is None else float(threshold)

    def _counted(
        self,
        name: str,
        value: float,
        reason: str | None,
        proof: dict[str, JsonValue] | None,
        expected: tuple[float, float | None] | None,
    ) -> Score:
        """Make a score that follows from the counts of keys, with its estimate."""
        estimate = self._calibrated(name, value, self._estimate(name, expected))
        return self._score(
            name,
            value,
            method="labels",
            reason=reason,
            evidence=proof,
            n=self.counts.total,
            estimate=estimate,
        )

    def _calibrated(
        self, name: str, value: float, estimate: ScoreEstimate | None
    ) -> ScoreEstimate | None:
        """Calibrate an estimate, or the value where the judge gives no estimate."""
        fit = None if self.maps is None else self.maps.scores.get(name)
        if fit is None or fit.method == "identity" or self.call.call.response is None:
            return estimate  # of a retrieval alone, judges estimate in another way
        if estimate is None and name in self._ratios and self._is_empty:
            return None  # the formulas decide, not a fit
        words = self.labels.adherence_by_words()
        if fit.method == "mixture" and words is None:
            return estimate  # of a call that the embedded judge could not read
        if fit.estimator == "labels":
            mapped = value
        elif estimate is None or estimate.method != fit.estimator:
            return estimate  # or of one that it could, unlike those of the fit
        else:
            mapped = estimate.value
        fitted = fit(mapped) if words is None else fit(mapped, words)
        error = math.sqrt(fitted * (1 - fitted)) if name == "adherence" else fit.std_error
        if (estimate is None) != (fit.estimator == "labels"):
            kind = "no estimate" if estimate is None else f"an estimate ({estimate.method})"
            raise ConfigurationError(
                "calibration",
                name,
                f"was fitted on the estimator {fit.estimator!r}, and this judge now gives {kind}",
            )
        return _score_estimate(fitted, error, "calibration")

    def _estimate(
        self, name: str, expected: tuple[float, float | None] | None
    ) -> ScoreEstimate | None:
        """Return the judge's own estimate, else the expected value; None without probabilities."""
        estimate, method = self._own_estimate(name), "calibrated"
        if estimate is None:
            estimate, method = expected, "expected"
        elif name == "context_relevance" and self.trace.relevance_baseline is not None:
            scale = self.counts.total / self.trace.relevance_baseline
            estimate = (
                min(1.0, estimate[0] * scale),
                None if estimate[1] is None else estimate[1] * scale,
            )
        if estimate is None or (name in self._ratios and self._is_empty):
            return None
        # Computed or validated already, as the labels were.
        return _score_estimate(estimate[0], estimate[1], method)

    def _own_estimate(self, name: str) -> Estimate | None:
        """Return the estimate that the judge itself gave for a score."""
        estimates = self.labels.estimates
        if self.trace.hard or estimates is None:
            return None
        return estimates.get(f"{name}@{self.trace.formulas}") or estimates.get(name)

    @property
    def _ratios(self) -> tuple[str, ...]:
        """Name the scores that are shares of the relevant sentences."""
        if self.trace.formulas == "ragbench":
            return ("completeness",)
        return ("context_utilization", "completeness")

    @property
    def _is_empty(self) -> bool:
        """Whether an empty case of the formulas decides, which rules out an estimate."""
        return not (self.counts.relevant and self.counts.utilized)

    def relevance(self) -> Score:
        unasked = set(self.labels.unasked_keys)
        if missing := [s.key for s in self.turn.documents if s.key in unasked]:
            why = f"nobody said whether {', '.join(missing)} is relevant"
            return self._unscored("context_relevance", "unlabelled_sentences", why)
        counts, soft, baseline = self.counts, self.expected, self.trace.relevance_baseline
        expected = None
        if soft is not None:
            divisor = baseline or soft.total
            expected = (
                formulas.context_relevance(soft.relevant, soft.total, baseline),
                math.sqrt(soft.relevant_variance) / divisor if soft.total else None,
            )
        return self._counted(
            "context_relevance",
            formulas.context_relevance(counts.relevant, counts.total, baseline),
            self._worded(relevance_reason, self.turn_labels, self.turn),
            self._worded(relevance_evidence, self.turn_labels, self.turn),
            expected,
        )

    def utilization(self) -> Score:
        if UTILIZED in self.labels.unasked_keys:
            return self._unscored("context_utilization", "unlabelled_sentences", _USE_UNASKED)
        counts, soft, by = self.counts, self.expected, self.trace.formulas
        expected = None
        if soft is not None:
            alone = by == "ragbench" and soft.total
            expected = (
                formulas.context_utilization(soft.relevant, soft.utilized, soft.total, by),
                math.sqrt(soft.utilized_variance) / soft.total if alone else None,
            )
        return self._counted(
            "context_utilization",
            formulas.context_utilization(counts.relevant, counts.utilized, counts.total, by),
            self._worded(utilization_reason, self.turn_labels),
            self._worded(use_evidence, self.turn_labels),
            expected,
        )

    def completeness(self) -> Score:
        if UTILIZED in self.labels.unasked_keys:
            return self._unscored("completeness", "unlabelled_sentences", _USE_UNASKED)
        counts, soft, by = self.counts, self.expected, self.trace.formulas
        expected = None
        if soft is not None:
            expected = formulas.completeness(soft.relevant, soft.both, soft.utilized, by), None
        return self._counted(
            "completeness",
            formulas.completeness(counts.relevant, counts.both, counts.utilized, by),
            self._worded(completeness_reason, self.turn_labels, by),
            self._worded(use_evidence, self.turn_labels),
            expected,
        )

    def adherence(self) -> Score:
        keys = [sentence.key for sentence in self.call.response]
        value = formulas.adherence(self.labels, keys, self.trace.formulas)
        proof = self._worded(adherence_evidence, self.labels, self.call, self.trace.formulas)
        if value is None:
            return self._unlabelled("adherence", proof)
        probability = None if self.trace.hard else self.labels.adherence_probability()
        expected = None if probability is None else (probability, None)
        estimate = self._calibrated("adherence", value, self._estimate("adherence", expected))
        calibrated = estimate is not None and estimate.method == "calibration"
        if calibrated and estimate is not None:
            probability = estimate.value
        unmixed = self.maps is None and self.labels.adherence_by_words() is not None
        return self._score(
            "adherence",
            value,
            method="labels",
            evidence=proof,
            n=len(keys),
            probability=probability,
            estimate=estimate,
            warnings=(*self.warnings, _UNMIXED) if unmixed else self.warnings,
            reason=self._worded(
                adherence_reason,
                self.labels,
                self.call,
                self.trace.formulas,
                value,
                None if calibrated else probability,
                self.threshold,
            ),
        )

    def supported_fraction(self) -> Score:
        supports = [self.labels.support(sentence.key) for sentence in self.call.response]
        value = formulas.supported_fraction(supports)
        if value is None:
            return self._unlabelled("supported_fraction", None)
        return self._score(
            "supported_fraction",
            value,
            method="labels",
            n=len(supports),
            reason=f"{supports.count('full')} of {len(supports)} response "
            f"sentence{'' if len(supports) == 1 else 's'} fully supported, "
            f"{supports.count('partial')} partially.",
        )

    def retrieval_alone(self) -> tuple[Score, ...]:
        """Score a retrieval without a response: only context relevance applies."""
        rest = TRACE_SCORES[1:]
        why = "only a retrieval was captured: there is no response"
        return (self.relevance(), *(self._unscored(name, "empty_response", why) for name in rest))

    def _unlabelled(self, name: str, proof: dict[str, JsonValue] | None) -> Score:
        """Make an unscored score that names the unlabelled sentences."""
        missing = [s.key for s in self.call.response if self.labels.support(s.key) == "unlabelled"]
        return self._unscored(
            name,
            "unlabelled_sentences",
            "the judge did not label response "
            f"{'sentence' if len(missing) == 1 else 'sentences'} {', '.join(missing)}",
            proof,
        )

    def _unscored(
        self, name: str, code: UnscoredCode, reason: str, proof: dict[str, JsonValue] | None = None
    ) -> Score:
        """Make an unscored score."""
        return Score(
            name=name,
            status="unscored",
            unscored=code,
            reason=reason,
            evidence=proof,
            threshold=self.trace.thresholds.get(name),
            warnings=self.warnings,
            by=self.by,
        )

    def average(self, scores: list[Score]) -> Score:
        values = [score.value for score in scores if score.value is not None]
        for score in scores:
            if score.unscored is not None:
                return self._unscored(
                    "trace_average", score.unscored, f"{score.name} has no value: {score.reason}"
                )
        return self._score(
            "trace_average",
            math.fsum(values) / len(values),
            n=len(values),
            method="mean",
            reason="Mean of " + ", ".join(f"{s.name} {s.value:.2f}" for s in scores) + ".",
        )
