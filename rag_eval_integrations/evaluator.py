"""`RagEvaluator`: from a captured call to its `Evaluation` (stages 2 to 4 of the flow).

    RagCall ─▶ split ─▶ label, by the judge ──▶ score, by `LabelMetric` ─▶ Evaluation
       │        └─────▶ ask a model, by `ModelMetric` ─────────────────────▲
       └──────────────▶ score, by `CallMetric` ────────────────────────────┘

A step that can fail returns an `EvaluationError` instead of its result. The last steps are in
`_scoring`, for labels that exist already as well.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Hashable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, NamedTuple

from rag_eval_integrations import _loop, _process
from rag_eval_integrations._contain import contained
from rag_eval_integrations._scoring import (
    Outcome,
    about_reference,
    evaluation_of,
    failed_evaluation,
    failure_of,
    is_own,
    maker_of,
    measured_by,
    names_of,
    nothing_to_judge,
    outcome_of,
    scored,
    scored_alone,
    sound,
)
from rag_eval_integrations._suppress import suppress_capture
from rag_eval_integrations._visible import visible
from rag_eval_integrations.errors import ConfigurationError, JudgeError
from rag_eval_integrations.judges import Judge, judge_from
from rag_eval_integrations.judges._reconcile import reconcile
from rag_eval_integrations.judges.judge import AnyJudge, JudgeBase, judge_base, judge_info
from rag_eval_integrations.judges.suspicion import Suspicion
from rag_eval_integrations.metrics import (
    CallMetric,
    LabelMetric,
    Measured,
    Metric,
    ModelMetric,
    Trace,
)
from rag_eval_integrations.metrics.metric import checked_metrics
from rag_eval_integrations.metrics.trace import TRACE_SCORES
from rag_eval_integrations.models import Model, ModelBase
from rag_eval_integrations.models._single_flight import SingleFlight
from rag_eval_integrations.records import (
    Evaluation,
    EvaluationError,
    Labelling,
    RagCall,
    Sentences,
    SentencizedCall,
    Usage,
)
from rag_eval_integrations.records.call import call_of
from rag_eval_integrations.records.labels import UnscoredCode
from rag_eval_integrations.records.score import metric_hint
from rag_eval_integrations.sentences import Splitter, sentencize
from rag_eval_integrations.sentences._sentencize import RECORDED, finder_of_sources

_BIG_CALL = 50_000
"""Characters above which a call is split in a thread, not on the loop: about 10 ms of work."""


class RagEvaluator:
    """Evaluates RAG calls: splits a call into sentences, has a judge label them, and scores it.

    One object may evaluate any number of calls at once, from any thread or loop. The judge is asked
    once per call, whatever the number of metrics that read its labels, and once more if a metric
    reads labels of the reference (`ContextRecall`); calls with the same content share one judge
    request, also when they are evaluated at the same time (single flight). Metrics that ask a model
    themselves (G-Eval) run concurrently with the judge, and metrics that need no labels
    (`Retrieval`) ask nobody; if one fails, the others keep their scores.

    Args:
        judge: a judge's name (`embedded`), any `Judge`, or a model (`Model`, a LangChain chat
            model or a LlamaIndex LLM), which is asked with the labelling prompt, through
            `ThrottledModel` unless it retries already.
        metrics: what to score, metrics or their names (`"trace"`, `"retrieval"`,
            `"label_retrieval"`, `"context_recall"`, `"citations"`, `"geval:NAME"`); default
            `[Trace()]`.
        splitter: how to split texts into sentences; default `Punkt()`, English.
        flags: whether to look for text that addresses a judge (`suspected_injection` in
            `Evaluation.flags`). No score depends on it. None looks wherever a model reads the
            texts: not for the embedded judge alone, which no text can address.

    Raises:
        ConfigurationError: for an unknown judge, no metrics, an object that is not a metric, two
            metrics with the same score name, a metric that asks a model when the judge has none, or
            a calibration (`Trace(calibration=…)`) that was fitted on another judge.

    Warns:
        UserWarning: a metric can be told apart from others neither by its `repr` nor by a
            `version`, so that no other process can reuse the evaluations.
    """

    _remembers = 256
    """How many labellings are kept for calls with the same content."""

    def __init__(
        self,
        judge: AnyJudge = "embedded",
        metrics: Sequence[Metric | str] | None = None,
        *,
        splitter: Splitter | None = None,
        flags: bool | None = None,
    ) -> None:
        labeller = judge_from(judge)
        self.judge: Judge
        self._judge: JudgeBase
        self._model: ModelBase | None
        if isinstance(labeller, Judge):
            # A judge that asks a model shares it with the metrics that need one.
            self.judge = labeller
            self._judge = judge_base(labeller)
            self._model = self._judge.model
        else:
            self._model = _with_retries(labeller)
            self.judge = self._judge = _judge_of(self._model)
        self.metrics: tuple[Metric, ...] = checked_metrics(
            [Trace()] if metrics is None else metrics, metric_named
        )
        if splitter is not None and not _is_splitter(splitter):
            why = "use an object with a `name` and `spans(text)`, such as Punkt()"
            raise ConfigurationError("splitter", splitter, why)
        self.splitter: Splitter = _default_splitter() if splitter is None else splitter
        finder_of_sources()
        # Patterns, imported before a fork can cut that in two.
        from rag_eval_integrations.sentences._citations import without_citations  # noqa: PLC0415

        self._as_judged = without_citations
        for metric in self.metrics:
            if isinstance(metric, Trace) and metric.calibration is not None:
                metric.calibration.check(self._judge)
            if metric.identity is None:
                warnings.warn(
                    f"{visible(type(metric).__name__)} has no `repr` of its own and no `version`: "
                    "evaluations with it cannot be resumed, since its fingerprint is another one "
                    "in every process. Make it a frozen dataclass, or give it a `version`",
                    stacklevel=2,
                )
        self._models = {
            metric.names: self._model_for(metric)
            for metric in self.metrics
            if isinstance(metric, ModelMetric)
        }
        self._labellings = SingleFlight[Labelling](self._remembers)
        self._measured = SingleFlight[Measured](self._remembers)
        self._speaks = Suspicion() if (self._is_read if flags is None else flags) else None

    def __repr__(self) -> str:
        return f"RagEvaluator({self._judge!r}, scores: {', '.join(self.names)})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments; a copy in another process starts without cached labels."""
        options = {"flags": self._speaks is not None}
        return _unpickled, (self.judge, self.metrics, self.splitter, options, self.fingerprint)

    @property
    def asks_models(self) -> bool:
        """Whether the judge or a metric asks a model, and so waits for its answers."""
        return self._model is not None or bool(self._models)

    @property
    def _is_read(self) -> bool:
        """Whether a model reads the texts, which could then address it."""
        from rag_eval_integrations.judges.embedded import EmbeddedJudge  # noqa: PLC0415 -- heavy

        return self.asks_models or not isinstance(self.judge, EmbeddedJudge)

    @property
    def max_concurrency(self) -> int | None:
        """Most requests at once to each model; None unless judge and models all see to that."""
        every = [self._judge.max_concurrency, *(m.max_concurrency for m in self._models.values())]
        known = [limit for limit in every if limit is not None]
        return max(known) if len(known) == len(every) else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all scores, in the order of the metrics."""
        return tuple(name for metric in self.metrics for name in metric.names)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of judge, models, metrics and splitter: what decides the scores of a call."""
        asked: list[JudgeBase | ModelBase] = [self._judge, *self._models.values()]
        judges = [part for party in asked for part in (party.name, party.version or "")]
        metrics = [metric.identity or repr(metric) for metric in self.metrics]
        text = "\n".join([*judges[:2], self.splitter.name, *judges[2:], *metrics])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    async def evaluate(
        self, call: RagCall | None = None, /, *, only: Collection[str] | None = None, **fields: Any
    ) -> Evaluation:
        """Evaluate one call; failures are recorded in the evaluation, never raised.

        That holds for whatever the judge, a model, a metric or the splitter raises, `SystemExit`
        and a `CancelledError` of its own included. The cancellation of this coroutine's task, and
        Ctrl-C, are not failures of the call, and are raised.

        For a call without a response, documents or a question the judge is not asked, and scores
        that need labels are unscored.

        Args:
            call: the captured call; None if its fields are given instead.
            only: names of scores; metrics that produce none of them are skipped. All by default.
            fields: of the `RagCall`: `question`, `documents`, `response` …

        Raises:
            ConfigurationError: the evaluator does not have a score of `only`; the call is not a
                `RagCall`; there are both a call and fields, or neither.
            InputError: the fields do not make a call.
        """
        _process.notice_fork()
        metrics = self._metrics_for(only)
        call = call_of(call, fields)
        try:
            with contained:
                return await self._evaluated(call, metrics)
        except Exception as error:  # noqa: BLE001 -- the boundary: a part that is not as it should
            return failed_evaluation(call, metrics, failure_of(call, "metrics", error))

    async def _evaluated(self, call: RagCall, metrics: Sequence[Metric]) -> Evaluation:
        """Split, judge and score a call.

        A part that fails is an error of the scores that need it; the others are made.
        """
        split = await self._split(call)
        if isinstance(split, EvaluationError):
            return self._without_result(call, split, metrics)
        labels = [metric for metric in metrics if isinstance(metric, LabelMetric)]
        of_labels = [metric for metric in labels if metric.judged == "response"]
        of_reference = [metric for metric in labels if metric.judged == "reference"]
        of_models = [metric for metric in metrics if isinstance(metric, ModelMetric)]
        outcomes = scored_alone(call, [m for m in metrics if isinstance(m, CallMetric)])
        asked = await self._ask(split, bool(of_labels), bool(of_reference), of_models)
        labelling, reference = self._unasked(None, ""), None
        if isinstance(asked.labelled, EvaluationError):
            labelling = self._unasked(None, asked.labelled.message)
            outcomes |= dict.fromkeys(names_of(of_labels), asked.labelled)
        elif asked.labelled is not None:
            labelling = asked.labelled
            outcomes |= scored(split, labelling, of_labels)
        if isinstance(asked.reference, EvaluationError):
            outcomes |= dict.fromkeys(names_of(of_reference), asked.reference)
        elif asked.reference is not None:
            reference = asked.reference
            outcomes |= scored(*reference, of_reference)
        outcomes |= zip(names_of(of_models), asked.measured, strict=True)
        return evaluation_of(
            split,
            labelling,
            metrics,
            outcomes,
            self.fingerprint,
            self._models,
            reference,
            self._speaks,
        )

    def evaluate_sync(
        self, call: RagCall | None = None, /, *, only: Collection[str] | None = None, **fields: Any
    ) -> Evaluation:
        """Evaluate one call, as `evaluate` does, from synchronous code, notebooks included."""
        return _loop.run(self.evaluate(call, only=only, **fields))

    def without_result(
        self,
        call: RagCall,
        why: EvaluationError | tuple[UnscoredCode, str],
        *,
        only: Collection[str] | None = None,
    ) -> Evaluation:
        """Make the evaluation of a call for which neither the judge nor a model was asked.

        Args:
            call: the call.
            why: the failure, or the code and reason for which the scores are unscored.
            only: names of scores, as in `evaluate`.
        """
        return self._without_result(call, why, self._metrics_for(only))

    def _without_result(
        self,
        call: RagCall,
        why: EvaluationError | tuple[UnscoredCode, str],
        metrics: Sequence[Metric],
    ) -> Evaluation:
        """Return an evaluation in which every score has the same reason or error."""
        splitter = self.splitter.name if call.sentences is None else RECORDED
        split = SentencizedCall(call=call, sentences=Sentences(), splitter=splitter)
        outcomes: dict[tuple[str, ...], Outcome]
        if isinstance(why, EvaluationError):
            labelling = self._unasked(None, why.message)
            outcomes = dict.fromkeys(names_of(metrics), why)
        else:
            labelling = self._unasked(*why)
            outcomes = {}
            for metric in metrics:
                by = maker_of(metric, split, labelling, self._models)
                outcomes[metric.names] = outcome_of(
                    call, metric, partial(metric.unscored, *why, by)
                )
        return evaluation_of(
            split,
            labelling,
            metrics,
            outcomes,
            self.fingerprint,
            self._models,
            speaks=self._speaks,
        )

    def _metrics_for(self, only: Collection[str] | None) -> Sequence[Metric]:
        """Return the metrics that make the named scores; refuse unknown names."""
        if only is None:
            return self.metrics
        if isinstance(only, str):  # not letter by letter
            raise ConfigurationError("only", only, f"is one name; use a list, as in [{only!r}]")
        only = set(only)
        unknown = sorted(only - set(self.names))
        if unknown:
            known = ", ".join(self.names)
            raise ConfigurationError("only", unknown, f"no such scores; use some of {known}")
        return [metric for metric in self.metrics if not only.isdisjoint(metric.names)]

    # --- The steps

    async def _split(self, call: RagCall) -> SentencizedCall | EvaluationError:
        """Split a call into sentences, a long one in a thread; a failure is data."""
        try:
            if len(call.response or "") + sum(len(d.text) for d in call.documents) < _BIG_CALL:
                return _split(call, self.splitter)
            import asyncio  # noqa: PLC0415  # 40 ms, too much for a light import

            return await asyncio.to_thread(_split, call, self.splitter)
        except Exception as error:  # noqa: BLE001 -- the boundary: failure is data from here on
            return failure_of(call, "sentences", error)

    async def _ask(
        self,
        call: SentencizedCall,
        response: bool,
        reference: bool,
        of_models: Sequence[ModelMetric],
    ) -> _Asked:
        """Ask the judge for the labels that metrics read, and the metrics' models meanwhile."""
        if not of_models and not reference:  # without a task of its own, which costs 60 µs per call
            return _Asked(await self._label(call) if response else None)
        import asyncio  # noqa: PLC0415  # as above

        labelled = self._label(call) if response else _no_request()
        referred = self._label_reference(call) if reference else _no_request()
        measured = asyncio.gather(*(self._measure(call, metric) for metric in of_models))
        return _Asked(*await asyncio.gather(labelled, referred, measured))

    # --- Labels

    async def _label(self, call: SentencizedCall) -> Labelling | EvaluationError:
        """Have the judge label a call; without asking it where there is nothing to judge.

        Calls of equal text and equal recorded sentences that come at the same time are labelled
        once, and only one of them has the usage. Whatever the judge raises is returned as an error.
        """
        nothing = nothing_to_judge(call)
        if nothing is not None:
            return self._unasked(*nothing)
        whole, call = call, self._as_judged(call)
        asked = False

        async def ask() -> Labelling:
            """Have the judge label the call, which then bears the usage."""
            nonlocal asked
            asked = True
            return await self._label_once(call)

        try:
            # Two calls of the same text may have different recorded sentences, which `row_key` does
            # not cover.
            # Documents' names, which decide what a marker is, are not in it either.
            judged_response = call.response if call is not whole else None
            key = (call.call.row_key, call.splitter, call.call.sentences, judged_response)
            labelling = await self._labellings.get(key, ask)
            return labelling if asked else labelling.model_copy(update={"usage": Usage()})
        except Exception as error:  # noqa: BLE001 -- the boundary
            return failure_of(call.call, "judge", error, asked=asked)

    async def _label_reference(
        self, call: SentencizedCall
    ) -> tuple[SentencizedCall, Labelling] | EvaluationError:
        """Have the judge label the reference in place of the response, as a call of its own.

        What fails is returned as an error.
        """
        text = RagCall(question="", documents=(), response=call.call.reference)
        split = await self._split(text)
        if isinstance(split, EvaluationError):
            return split
        try:
            about = about_reference(call, split)
        except Exception as error:  # noqa: BLE001 -- the call's metadata may have been changed since
            return failure_of(call.call, "judge", error)
        labelled = await self._label(about)
        return labelled if isinstance(labelled, EvaluationError) else (about, labelled)

    async def _label_once(self, call: SentencizedCall) -> Labelling:
        """Ask the judge, check what it returned, and reconcile the keys.

        A judge that keeps the keys it was given is not checked again.
        """
        with suppress_capture(), contained:
            labelling: object = await self.judge.label(call)
        if not isinstance(labelling, Labelling):
            kind = type(labelling).__name__
            raise JudgeError(f"the judge {self.judge.name} returned {kind} instead of a Labelling")
        if not is_own(self.judge):
            labelling = sound(labelling)
        if labelling.labels is None:
            return labelling
        if call.splitter != RECORDED and self._judge.keeps_keys:
            return labelling  # reconciling would change nothing, and takes 0.2 ms
        return labelling.model_copy(update={"labels": reconcile(labelling.labels, call)})

    def _unasked(self, code: UnscoredCode | None, reason: str) -> Labelling:
        """Return a labelling without labels, for a call that the judge did not see."""
        # What a labelling says: otherwise scores beside it would look as if of another judge.
        info = judge_info(self._judge)
        return Labelling(labels=None, judge=info, usage=Usage(), unscored=code, reason=reason)

    # --- Metrics that ask a model

    def _model_for(self, metric: ModelMetric) -> Any:
        """Return what a metric asks: its own model, else the judge's, else the judge itself."""
        if metric.judge is not None:
            return _with_retries(metric.judge)
        if self._model is None and metric.takes_any_judge:
            return self._judge
        if self._model is None:
            raise ConfigurationError(
                "metrics",
                ", ".join(metric.names),
                f"asks a model, and the judge {self.judge.name} has none; pass a model as the "
                "judge, such as 'openai:gpt-4o-mini', or one for this metric alone (`judge=`)",
            )
        return self._model

    async def _measure(self, call: SentencizedCall, metric: ModelMetric) -> Outcome:
        """Have a metric ask its model, once for equal calls at the same time."""
        # Several evaluator objects of a framework ask once, as for labels.
        key = (metric.names, _content_key(call.call))
        asked = False

        async def ask() -> Measured:
            """Have the metric ask for this call, which then bears the usage."""
            nonlocal asked
            asked = True
            return await measured_by(metric, call, self._models[metric.names])

        try:
            measured = await self._measured.get(key, ask)
            return measured if asked else measured._replace(usage=Usage())
        except Exception as error:  # noqa: BLE001 -- the boundary
            return failure_of(call.call, "metrics", error, asked=asked)


class _Asked(NamedTuple):
    """What judge and models said of a call; None for what no metric reads."""

    labelled: Labelling | EvaluationError | None
    reference: tuple[SentencizedCall, Labelling] | EvaluationError | None = None
    measured: Sequence[Outcome] = ()


def _unpickled(
    judge: Judge,
    metrics: tuple[Metric, ...],
    splitter: Splitter,
    options: Mapping[str, Any],
    fingerprint: str,
) -> RagEvaluator:
    """Make an evaluator from its pickled parts, without its warnings."""
    with warnings.catch_warnings():  # told when the first one was made
        warnings.simplefilter("ignore", UserWarning)
        evaluator = RagEvaluator(judge, metrics, splitter=splitter, **options)
    evaluator.fingerprint = fingerprint  # a metric without a version has another one per process
    return evaluator


async def _no_request() -> None:
    """Return None, in place of a request that is not needed."""
    return None


def _split(call: RagCall, splitter: Splitter) -> SentencizedCall:
    """Split a call into sentences, with exits of the splitter turned into exceptions."""
    with contained:  # in the thread: a `StopIteration` would not come out of it
        return sentencize(call, splitter)


def _content_key(call: RagCall) -> Hashable:
    """Return a key that is equal for calls of equal content."""
    # `row_key` is not enough: a metric that asks a model also reads the metadata.
    try:
        return call.model_dump_json(exclude={"capture", "started_at"})
    except Exception:  # noqa: BLE001 -- not JSON, such as metadata that was changed since
        return object()  # equal to no other key: the call shares no request


def _with_retries(model: Model) -> ModelBase:
    """Return a model whose failed requests are retried."""
    from rag_eval_integrations.models.throttling.model import with_retries  # noqa: PLC0415  # 10 ms, for a model

    return with_retries(model)


def _judge_of(model: ModelBase) -> JudgeBase:
    """Make a judge of a model."""
    from rag_eval_integrations.judges import LLMJudge  # noqa: PLC0415  # only for a model

    return LLMJudge(model)


def _is_splitter(thing: object) -> bool:
    """Tell whether an object is a splitter."""
    return not isinstance(thing, type) and callable(getattr(thing, "spans", None))


def metric_named(
    name: str, settings: Mapping[str, Mapping[str, Any]] = {}, *, forms: str = ""
) -> Metric:
    """Make the metric of a name.

    Args:
        name: `trace`, `retrieval`, `label_retrieval`, `context_recall`, `citations` or
            `geval:NAME`.
        settings: arguments of such metrics, by the word in front of the colon.
        forms: what else a name may be, for the error.

    Raises:
        ConfigurationError: there is no such metric, or a setting cannot be used; names it.
    """
    from rag_eval_integrations.metrics import (  # noqa: PLC0415 -- each is imported on first use
        AnswerCorrectness,
        Citations,
        ContextRecall,
        LabelRetrieval,
        Retrieval,
    )

    kind, _, preset = name.partition(":")
    given = settings.get(kind, {})
    if kind == "geval" and preset:
        from rag_eval_integrations.metrics.geval.metric import named_geval  # noqa: PLC0415 -- as above

        try:
            return named_geval(preset, **given)
        except ConfigurationError as error:
            if error.field in given:
                raise
            raise ConfigurationError("metrics", name, error.why) from error
    makers: dict[str, type[Metric]] = {
        "trace": Trace,
        "retrieval": Retrieval,
        "label_retrieval": LabelRetrieval,
        "context_recall": ContextRecall,
        "correctness": AnswerCorrectness,
        "citations": Citations,
    }
    if name in makers:
        return makers[name](**given)
    known = f"{', '.join(makers)}{forms or ' or geval:NAME'}"
    near = get_close_matches(name[:100], TRACE_SCORES, 1, 0.85)
    hint = f"`{near[0]}` is a score of `trace`; " if near else metric_hint(name, makers)
    raise ConfigurationError("metrics", name, f"no such metric; {hint}use {known}")


def _default_splitter() -> Splitter:
    from rag_eval_integrations.sentences import Punkt  # noqa: PLC0415  # 30 ms of patterns

    return Punkt()
