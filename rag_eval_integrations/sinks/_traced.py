"""What the sinks of trace tools share: the trace of a call, and what is said of its scores."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from rag_eval_integrations._visible import LogOnce, logger_of
from rag_eval_integrations.errors import ConfigurationError, MissingDependencyError
from rag_eval_integrations.records import Evaluation, Score
from rag_eval_integrations.records.call import TraceSource
from rag_eval_integrations.sinks.sink import PartlyWrittenError

_LOGGER = "rag_eval_integrations.sinks"
_IN_VAIN = 3
"""Requests without success after which the rest of a batch is not tried: nobody answers."""
_MOST_KEYS = 12


class Traced(NamedTuple):
    """An evaluation, with the trace and the span of its call."""

    evaluation: Evaluation
    trace_id: str | None
    """None if LangSmith finds the trace by the run, or the call has no trace."""
    span_id: str | None


class TraceSink(ABC):
    """Base class of sinks that post scores to the trace of a call.

    Args:
        metadata: names of fields of the call's metadata, given or captured, that go along.
        texts: whether reasons and messages of errors go along, which may quote questions, documents
            and responses.

    Raises:
        ConfigurationError: `metadata` is not a list of names.
    """

    repeatable: ClassVar[bool] = True
    tool: ClassVar[str]
    """Name of the tool, in messages."""
    sources: ClassVar[tuple[TraceSource, ...]]
    """Sources of `Capture.traces` whose ids the tool knows, its own first."""
    without: ClassVar[str] = "its scores are not posted"
    """What becomes of a call without a trace, in messages."""
    group: ClassVar[int] = 1
    """Evaluations that are sent at once at most."""

    def __init__(self, metadata: Sequence[str], texts: bool) -> None:
        self.left_out = 0
        """Number of evaluations of calls without a trace that the tool knows."""
        self._metadata = checked_names(metadata)
        self._texts = texts
        self._notices = LogOnce(logger_of(_LOGGER))

    def write(self, batch: Sequence[Evaluation]) -> None:
        """Post the scores of each evaluation; a call without a trace is left out and counted.

        If the first three requests all fail, the rest of the batch is not tried, unless the tool
        refused one of them: the others may be known to it.

        Args:
            batch: the evaluations.

        Raises:
            PartlyWrittenError: the tool refused some of them, or some are posted already. Scores
                that are posted again replace themselves.
            Exception: the tool took nothing, and would take nothing else.
        """
        traced, untraced = [], 0
        for evaluation in batch:
            place = self.traced(evaluation)
            if place is None or place.span_id is None:
                untraced += 1
            if place is not None:
                traced.append(place)
        if untraced:
            message = "%s: a call has no trace of %s, so %s; further ones are counted in `left_out`"
            sources = " or ".join(self.sources)
            self._notices.log("trace", message, type(self).__name__, sources, self.without)
        if traced:
            self._prepare()
        left, failures = list[Evaluation](), list[Exception]()
        for start in range(0, len(traced), self.group):
            in_vain = start == len(left) >= _IN_VAIN * self.group
            if in_vain and not any(map(self._refused, failures)):
                left += [each.evaluation for each in traced[start:]]
                break
            group = traced[start : start + self.group]
            try:
                self._send_or_divide(group)
            except PartlyWrittenError as error:
                left += error.left
                failures.append(error)
            except Exception as error:  # noqa: BLE001 -- raised below, after the other evaluations
                left += [each.evaluation for each in group]
                failures.append(error)
        if failures and len(left) == len(traced) and not any(map(self._refused, failures)):
            raise failures[0]  # those without a trace come again with the others
        self.left_out += untraced
        if failures:
            raise PartlyWrittenError(left, failures[0]) from failures[0]

    def _send_or_divide(self, group: Sequence[Traced]) -> None:
        """Send a group; if it is refused, retry call by call.

        Raises:
            PartlyWrittenError: some were not taken; it names their evaluations.
            Exception: none is there.
        """
        try:
            self._send(group)
        except Exception as refusal:
            if len(group) == 1 or not self._refused(refusal):
                raise
            left = []
            for traced in group:
                try:
                    self._send([traced])
                except Exception as error:  # noqa: BLE001 -- raised below, after the others
                    left.append((traced.evaluation, error))
            if left:
                raise PartlyWrittenError([each for each, _ in left], left[0][1]) from left[0][1]

    def traced(self, evaluation: Evaluation) -> Traced | None:
        """Return an evaluation with its trace, by the first source that the tool knows.

        None if there is no such trace.
        """
        traces = {} if evaluation.capture is None else evaluation.capture.traces
        for source in self.sources:
            if (place := traces.get(source)) is not None:
                return Traced(evaluation, *place)
        return None

    def _prepare(self) -> None:  # noqa: B027 -- most tools need nothing
        """Get ready for a batch, such as by sending the spans first."""

    def _refused(self, error: Exception) -> bool:
        """Return whether the tool refused what was sent, so that it may take other evaluations."""
        return isinstance(error, PartlyWrittenError)

    @abstractmethod
    def _send(self, group: Sequence[Traced]) -> None:
        """Send the scores of some evaluations.

        Raises:
            PartlyWrittenError: some of them are not there; it says which.
            Exception: none of them is there.
        """

    def _facts(self, score: Score, evaluation: Evaluation) -> dict[str, Any]:
        """Return what is known of a score besides value and reason, after the chosen metadata.

        A fact replaces metadata of the same name.
        """
        facts = chosen_metadata(evaluation, self._metadata) | facts_of(score, evaluation)
        return facts | {"evaluator_version": evaluation.fingerprint}

    def _comment(self, score: Score) -> str:
        """Return a score's comment; without `texts`, only keys of sentences."""
        return comment_of(score) if self._texts else keys_comment_of(score)


def client_library(module: str, package: str, extra: str) -> Any:
    """Import a tool's client library.

    An import that fails inside the library, for another module, raises `ModuleNotFoundError`.

    Raises:
        MissingDependencyError: it is not installed; the message names the extra.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise MissingDependencyError(package, extra) from None


def checked_names(metadata: Sequence[str]) -> tuple[str, ...]:
    """Check the names of metadata fields that a sink sends along, and return them.

    Raises:
        ConfigurationError: `metadata` is a text, or holds something else than texts.
    """
    if isinstance(metadata, str) or not all(isinstance(name, str) for name in metadata):
        raise ConfigurationError("metadata", metadata, 'use a list of names: ("user_id",)')
    return tuple(metadata)


def chosen_metadata(evaluation: Evaluation, names: Sequence[str]) -> dict[str, Any]:
    """Return the named fields of a call's metadata; given ones replace captured ones.

    Fields that are absent or None are left out.
    """
    captured = {} if evaluation.capture is None else evaluation.capture.metadata
    known = {**captured, **evaluation.metadata}
    return {name: known[name] for name in names if known.get(name) is not None}


def attribute_value(value: object) -> str | bool | int | float:
    """Return a value that an attribute can hold: a list or an object becomes JSON."""
    return value if isinstance(value, str | bool | int | float) else json.dumps(value)


def identity_of(evaluation: Evaluation) -> str:
    """Return the identity of an evaluation: call (by its run, else its id) and evaluator."""
    run = None if evaluation.capture is None else evaluation.capture.run_id
    return f"{run or evaluation.id}/{evaluation.row_key}/{evaluation.fingerprint}"


def score_id(evaluation: Evaluation, name: str) -> UUID:
    """Return the id of a score: the same for the same call, evaluator and score."""
    return uuid5(NAMESPACE_URL, f"{identity_of(evaluation)}/{name}")


def label_of(score: Score) -> str | None:
    """Return a score as a word: `pass`, `fail` or the code of a missing value; else None."""
    if score.value is None:
        return score.unscored or score.status
    return None if score.passed is None else "pass" if score.passed else "fail"


def facts_of(score: Score, evaluation: Evaluation) -> dict[str, Any]:
    """Return what is known of a score besides value and reason, without what is None."""
    facts = {
        "status": score.status,
        "unscored": score.unscored,
        "passed": score.passed,
        "threshold": score.threshold,
        "method": score.method,
        "estimate": None if score.estimate is None else score.estimate.model_dump(),
        "judge": score.by.judge or evaluation.judge.name,
        "model": score.by.model,
        "flags": list(evaluation.flags) or None,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def comment_of(score: Score) -> str:
    """Return the comment of a score: its reason; without a value, why it has none."""
    reason = score.reason or ""
    if score.status == "scored":
        return reason
    what = "error" if score.status == "error" else f"unscored ({score.unscored})"
    return f"{what}: {reason}" if reason else what


_KEYS = ("relevant_keys", "utilized_keys", "relevant_unused_keys", "unsupported")


def keys_comment_of(score: Score) -> str:
    """Return a score's comment without any text: the keys of the sentences it rests on.

    Without a value, why it has none. Empty for a score that is not made of labels. Of each kind,
    twelve keys at most.
    """
    if score.status != "scored":
        return "error" if score.status == "error" else f"unscored ({score.unscored})"
    if score.method != "labels" or score.evidence is None:
        return ""
    parts = []
    for name in _KEYS:
        entries = score.evidence.get(name)
        if isinstance(entries, list):
            keys = [str(entry["key"] if isinstance(entry, dict) else entry) for entry in entries]
            more = ", …" if len(keys) > _MOST_KEYS else ""
            words = name.removesuffix("_keys").replace("_", " ")
            parts.append(f"{words}: {', '.join(keys[:_MOST_KEYS]) or 'none'}{more}")
    return "; ".join(parts)
