"""`ReaderJudge`: a local model's probabilities become labels, in a thread of its own."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import fsum, isfinite, sqrt
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

from rag_eval_integrations import _process
from rag_eval_integrations._contain import contained
from rag_eval_integrations.errors import ConfigurationError, JudgeError, JudgeOutputError
from rag_eval_integrations.judges._reader._model import Backend, ModelOptions, Pooling
from rag_eval_integrations.judges._reader._support import (
    RELEVANT,
    UTILIZED,
    Line,
    OverBudget,
    Read,
    ReadingOptions,
    Supported,
    SupportReader,
    relevance,
)
from rag_eval_integrations.judges.judge import JudgeBase
from rag_eval_integrations.records import (
    JudgeInfo,
    Labelling,
    Labels,
    SentenceSupport,
    SentencizedCall,
    UnscoredCode,
)

DIGITS = 6
"""Decimals of every probability. Batches of other sizes differ in the last bits of a float32."""

_RULES = "2"
"""Raised when labels change although models and settings do not."""

READER = "local_reader"
"""Flag of every labelling, for `Evaluation.flags`."""

_POSSIBLE = 0.15
"""Lowest probability of a sentence that is labelled relevant or utilized."""

_CLOSED = "the judge is closed"
_LEFT_OUT = (
    "The documents are longer than the model reads at once: the parts that match a response "
    "sentence least were not read beside it."
)
_OF_DOCUMENTS = {
    "all_relevant_sentence_keys", "all_utilized_sentence_keys", "relevant_probabilities",
    "utilized_probabilities", "estimates",
}  # fmt: skip


class ReaderJudge(JudgeBase, _process.ProcessObserver):
    """Base of the judges that read with a local model; see `OnnxJudge`, `TransformersJudge`.

    A judge is pickled as the arguments of its class: another process loads the models.
    """

    keeps_keys = True
    _library: ClassVar[str]
    _backend: ClassVar[type[Any]]
    """The `Backend` that loads a model, made of (model, purpose, `ModelOptions`)."""

    def __init__(
        self,
        model: Any,
        *,
        relevance: Any = None,
        labels: Sequence[str] | None = None,
        relevance_labels: Sequence[str] | None = None,
        template: str | None = None,
        threshold: float = 0.5,
        max_length: int | None = None,
        max_windows: int = 4,
        max_pairs: int = 8_192,
        batch_size: int = 16,
        pooling: Pooling | None = None,
        relevance_line: Line = RELEVANT,
        utilized_line: Line = UTILIZED,
        device: str = "cpu",
        threads: int | None = None,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        self._made_of = given | {name: _absolute(given[name]) for name in ("model", "relevance")}
        self.name = self._library
        self._options = ReadingOptions(threshold, max_windows, max_pairs, template)
        self._lines = (relevance_line, utilized_line)
        _check(given)
        options = ModelOptions(labels, max_length, None, device, batch_size, threads)
        self._support: Backend = self._backend(model, "model", options)
        self._relevance: Backend | None = None
        if relevance is not None:
            options = ModelOptions(relevance_labels, None, pooling, device, batch_size, threads)
            self._relevance = self._backend(relevance, "relevance", options)
        self._reader = SupportReader(self._support, self._options)
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        by = "embedded" if self._relevance is None else self._relevance.name
        self._info = JudgeInfo(
            name=self.name,
            model=f"{self._support.name} + {by}",
            version=f"{_RULES}-{self._digest()}",
        )
        self.version = self._info.version
        self.card = (
            f"Support is read by {self._support.name} ({self._support.config.kind} classifier, "
            f"{self._support.config.max_length} tokens), relevance by {by}. Its probabilities are "
            "not calibrated: measure it on labelled rows of your own."
        )
        _process.register(self)

    def _digest(self) -> str:
        first, second = self._support, self._relevance
        parts: list[object] = [first.name, first.config, self._options, first.reading]
        if second is None:
            from rag_eval_integrations.judges.embedded import EmbeddedJudge  # noqa: PLC0415 -- here

            parts += [None, EmbeddedJudge().version]
        else:
            parts += [second.name, second.config, second.reading, self._lines]
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._info.model!r}, version={self.version!r})"

    def __reduce__(self) -> tuple[object, ...]:
        if self._closed:
            raise TypeError(_CLOSED)
        kind: Callable[..., ReaderJudge] = type(self)
        return partial(kind, **self._made_of), ()

    def after_fork(self) -> None:
        """Start a new thread, and let the models start theirs, when they are needed."""
        self._pool = None
        for backend in self._backends():
            backend.forget_threads()

    def _backends(self) -> list[Backend]:
        return [model for model in (self._support, self._relevance) if model is not None]

    async def label(self, call: SentencizedCall) -> Labelling:
        """Label one call in the judge's thread; calls wait for each other there.

        A call that is cancelled stops between two batches.

        Raises:
            JudgeError: the judge is closed, or the model's library failed.
        """
        if self._closed:
            raise JudgeError(_CLOSED)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "rag-eval-reader")
        stop = Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._label, call, stop)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and not (task and task.cancelling()):  # it was waiting for its turn
                raise JudgeError(_CLOSED) from None
            raise
        finally:
            stop.set()  # of no consequence unless the wait for it was cancelled

    async def aclose(self) -> None:
        """End the thread after the call that it is on, and let go of the models."""
        self._closed, self._made_of = True, {}  # they may be models
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)
        for backend in self._backends():
            backend.close()

    def _label(self, call: SentencizedCall, stop: Event) -> Labelling:
        try:
            with contained:
                return self._labelled(call, stop)
        except OverBudget as error:
            most = self._options.max_pairs
            why = f"the call has {error}, more than {most} pairs allow (max_pairs)"
            return self._without("over_budget", why)
        except JudgeOutputError as error:
            return self._without("judge_output_invalid", str(error))
        except JudgeError:
            raise
        except Exception as error:
            why = f"{self._info.model}: {type(error).__name__}: {error}"
            raise JudgeError(why) from error

    def _labelled(self, call: SentencizedCall, stop: Event) -> Labelling:
        question = call.call.question
        documents = [sentence.text for sentence in call.documents]
        response = [sentence.text for sentence in call.response]
        if self._relevance is None:
            from rag_eval_integrations.judges.embedded import label_call  # noqa: PLC0415 -- if needed

            by_words = label_call(call)
            if by_words.labels is None:
                why = f"{by_words.reason}; or give a model for relevance (`relevance=`)"
                return self._without(by_words.unscored or "judge_incapable", why)
            maker = f"the embedded judge (version {by_words.judge.version})"
            read = self._reader.read(question, documents, response, stop)
            known = by_words.labels.model_dump(include=_OF_DOCUMENTS)
            known["estimates"].pop("adherence", None)
        else:
            most, maker = self._options.max_pairs, self._relevance.name
            relevant, utilized = relevance(
                self._relevance, question, documents, response, most, self._lines, stop
            )
            read = self._reader.read(question, documents, response, stop)
            # A sentence that carries another alone was used.
            used = [max(p, read.alone.get(number, 0.0)) for number, p in enumerate(utilized)]
            keys = [sentence.key for sentence in call.documents]
            known = {
                "all_relevant_sentence_keys": _likeliest(keys, relevant),
                "all_utilized_sentence_keys": _likeliest(keys, used),
                "relevant_probabilities": _rounded(keys, relevant),
                "utilized_probabilities": _rounded(keys, used),
                "estimates": {},
            }
        warning = (
            f"Support is judged by the local model {self._support.name}, relevance and utilization "
            f"by {maker}. The probabilities of local models are not calibrated."
        )
        return Labelling(
            labels=self._labels(call, maker, known, read),
            judge=self._info,
            windows=max(1, read.windows),
            # Without the number: a summary would list each by itself.
            warnings=(warning, _LEFT_OUT) if read.left_out else (warning,),
            flags=(READER,),
        )

    def _without(self, code: UnscoredCode, reason: str) -> Labelling:
        flags = (READER,)
        return Labelling(labels=None, judge=self._info, flags=flags, unscored=code, reason=reason)

    def _labels(
        self, call: SentencizedCall, maker: str, known: dict[str, Any], read: Read
    ) -> Labels:
        keys = [sentence.key for sentence in call.documents]
        answered = [sentence.key for sentence in call.response]
        supported = _rounded(answered, [sentence.probability for sentence in read.sentences])
        if supported:
            # Sentences of a response are far from independent: their product would fall with its
            # length. The standard error is the RMS distance of the gold score, 0 or 1.
            least = min(supported.values())
            error = round(sqrt(least * (1 - least)), DIGITS)
            known["estimates"] = {**known["estimates"], "adherence": (least, error)}
        entries = [
            self._entry(key, sentence, keys)
            for key, sentence in zip(answered, read.sentences, strict=True)
        ]
        wrong = [entry.response_sentence_key for entry in entries if not entry.fully_supported]
        count = len(known["all_relevant_sentence_keys"])
        return Labels(
            **known,
            relevance_explanation=f"By {maker}: {count} of {len(keys)} document sentences "
            "are relevant.",
            overall_supported_explanation=f"By {self._support.name}: "
            + (f"unsupported are {', '.join(wrong)}." if wrong else "all supported."),
            overall_supported=not wrong,
            sentence_support_information=tuple(entries),
            unsupported_response_sentence_keys=tuple(wrong),
            supported_probabilities=supported,
        )

    def _entry(self, key: str, sentence: Supported, keys: Sequence[str]) -> SentenceSupport:
        supported = round(sentence.probability, DIGITS) >= self._options.threshold
        why, numbers = "closest are", sentence.matched
        if supported and sentence.evidence:
            why, numbers = "alone by", sentence.evidence
        elif supported:
            why = "together by what is around"
        near = [keys[number] for number in numbers]
        shown = f" {why} {', '.join(near)}" if near else " there is no document sentence"
        return SentenceSupport(
            response_sentence_key=key,
            explanation=f"P(supported) {sentence.probability:.2f} by {self._support.name};{shown}.",
            supporting_sentence_keys=tuple(near) if supported else (),
            fully_supported=supported,
        )


def _check(given: Mapping[str, Any]) -> None:
    """Check the arguments that no model is needed for."""

    def refuse(name: str, why: str) -> None:
        raise ConfigurationError(name, given[name], why)

    if not 0 < given["threshold"] < 1:
        refuse("threshold", "use a number between 0 and 1")
    for name in ("max_windows", "max_pairs", "batch_size", "threads"):
        count = 1 if name == "threads" and given[name] is None else given[name]
        if type(count) is not int or count < 1:
            refuse(name, "use a whole number from 1")
    if given["template"] is not None and "{premise}" not in given["template"]:
        refuse("template", "should hold {premise}")
    for name in ("relevance_labels", "pooling"):
        if given["relevance"] is None and given[name] is not None:
            refuse(name, "is for a model for relevance (`relevance=`)")
    for name in ("relevance_line", "utilized_line"):
        numbers = given[name] if isinstance(given[name], tuple | list) else ()
        if [isinstance(n, int | float) and isfinite(n) for n in numbers] != [True, True]:
            refuse(name, "use two numbers (intercept, slope)")


def _rounded(keys: Sequence[str], probabilities: Sequence[float]) -> dict[str, float]:
    return {key: round(p, DIGITS) for key, p in zip(keys, probabilities, strict=True)}


def _likeliest(keys: Sequence[str], probabilities: Sequence[float]) -> tuple[str, ...]:
    """List the likeliest sentences, as many as the probabilities sum up to.

    By a threshold alone, an encoder's even probabilities would label none, and the scores would be
    far from what the same probabilities let expect.
    """
    count = int(fsum(probabilities) + 0.5)
    ranked = sorted(range(len(keys)), key=lambda n: (-probabilities[n], n))[:count]
    return tuple(keys[n] for n in sorted(ranked) if probabilities[n] >= _POSSIBLE)


def _absolute(value: object) -> object:
    """Make the path of a file or folder absolute, for a process in another folder."""
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).exists()):
        return Path(value).absolute()
    return value  # models that are loaded, or the name of one on the hub
