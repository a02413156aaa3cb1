"""Which call of one run is which of another: by the user's own ids, or by question and reference.

A wrong pair would be counted as a change, so nothing is guessed: keys that repeat are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluations._hook import above
from rag_eval_integrations.records import Evaluation, Means

PairedBy = Literal["id", "question"]

_CONVERSATION = ("thread_id", "conversation_id", "session_id")
"""Fields of metadata that name a conversation, in the order that they are looked for."""


# --- Runs: what is kept of every call, and where the rest is


class Called(NamedTuple):
    """One call of a run, without its texts."""

    id: str | None
    """The user's own id; None for the default one, which changes with the response."""
    question: bytes | None
    """Digest of question and reference; None for an empty question."""
    conversation: str | None
    scores: dict[str, float | str]
    """Values; for a score without one, the code of why."""


class EvaluationsFile:
    """Evaluations of a file, of which few are held at a time: it is read again for some of them.

    Args:
        path: EVALS; also gzipped, Parquet, or a folder of Parquet.
        report: given each `dataset.Line` that is not an evaluation, which is then left out.
            Without it, such a line raises its `InputError`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        report: Callable[[Any], object] | None = None,
    ) -> None:
        self.path = path
        self._report = report
        self._numbers = array("q")  # of the lines that hold an evaluation

    def __iter__(self) -> Iterator[Evaluation]:
        self._numbers = array("q")
        for line in above("read")(self.path):
            if line.value is not None:
                self._numbers.append(line.number)
                yield line.value
            elif line.error is not None:
                error = line.error
                if self._report is None:
                    raise InputError(error.why, field=error.field, line=error.line,
                                     path=str(self.path))  # fmt: skip
                self._report(line)

    def at(self, positions: Collection[int]) -> dict[int, Evaluation]:
        """Read the evaluations at some positions; of all other lines, only the ends are looked for.

        It has to have been gone through before.
        """
        wanted = {self._numbers[position]: position for position in positions}
        read = above("read some")(self.path, wanted) if wanted else {}
        return {wanted[number]: evaluation for number, evaluation in read.items()}


@dataclass(frozen=True)
class Run:
    """A run: all its calls in brief, and where its evaluations are."""

    name: str
    calls: tuple[Called, ...]
    means: Means
    """The means of all its scores, by who made them."""
    evaluations: EvaluationsFile | Sequence[Evaluation]


def run_of(
    name: str,
    evaluations: EvaluationsFile | Sequence[Evaluation],
    conversation: str | Literal[False] | None = None,
) -> Run:
    """Go through a run once and keep what pairing and statistics need.

    Args:
        name: the run's name, for messages.
        evaluations: the run.
        conversation: field of the metadata that names a call's conversation; None to look for the
            usual ones, False for none.

    Raises:
        ConfigurationError: there is something else than evaluations.
    """
    fields = _CONVERSATION if conversation is None else (conversation,) if conversation else ()
    means = Means()
    calls = []
    for evaluation in evaluations:
        if not isinstance(evaluation, Evaluation):
            why = f"holds a {type(evaluation).__name__}, which is not an Evaluation"
            raise ConfigurationError("runs", name, why)
        means.add(evaluation)
        calls.append(_called(evaluation, fields))
    return Run(name, tuple(calls), means, evaluations)


def _called(evaluation: Evaluation, fields: Sequence[str]) -> Called:
    scores: dict[str, float | str] = {
        name: score.value if score.value is not None else str(score.unscored or score.status)
        for name, score in evaluation.scores.items()
    }
    if evaluation.error is not None:
        scores = {"": "error", **scores}
    asked = json.dumps([evaluation.question, evaluation.reference]).encode("ascii")
    return Called(
        # An Evaluation has no mark of where its id is from; the default one is this.
        None if evaluation.id == evaluation.row_key[:16] else evaluation.id,
        hashlib.sha256(asked).digest()[:16] if evaluation.question.strip() else None,
        _conversation(evaluation, fields),
        scores,
    )


def evaluations_at(run: Run, positions: Collection[int]) -> dict[int, Evaluation]:
    """Look up the evaluations of some calls, as they were when the run was gone through.

    Raises:
        ConfigurationError: the run's file holds others by now.
        OSError: it cannot be read any more.
    """
    if not isinstance(run.evaluations, EvaluationsFile):
        return {position: run.evaluations[position] for position in positions}
    try:
        found = run.evaluations.at(positions)
    except InputError:
        found = {}
    for position in positions:
        known, now = run.calls[position], found.get(position)
        if now is None or _called(now, ())._replace(conversation=known.conversation) != known:
            why = "has changed since it was compared; compare it again"
            raise ConfigurationError("runs", run.name, why)
    return found


def value_of(run: Run, place: int, name: str) -> float | None:
    """Return the value of a call's score; None without one."""
    found = run.calls[place].scores.get(name)
    return found if isinstance(found, float) else None


def why_not(call: Called, name: str) -> str:
    """Return the code of why a call has no value for a score: `absent` if it was not asked for."""
    code = call.scores.get(name, call.scores.get("", "absent"))
    return code if isinstance(code, str) else ""


def _conversation(evaluation: Evaluation, fields: Sequence[str]) -> str | None:
    held = [evaluation.metadata, evaluation.capture.metadata if evaluation.capture else {}]
    for field in fields:
        for metadata in held:
            found = metadata.get(field)
            if isinstance(found, str | int):
                return str(found)
    return None


# --- Pairs


class Pairing(NamedTuple):
    """The calls that are the same in two runs."""

    by: PairedBy
    pairs: tuple[tuple[int, int], ...]
    """Positions in the first and the second run, in the order of the first."""
    only_a: int
    """Number of calls of the first run that the second does not have."""
    only_b: int
    other_question: int
    """Number of pairs by id whose question or reference is another in the second run."""


def pair(a: Run, b: Run, by: PairedBy | None = None) -> Pairing:
    """Pair the calls of two runs.

    Args:
        a: the first run.
        b: the second run.
        by: `id` or `question`; None for ids if all are the users' own, unique in both runs, and
            some are in both, else for question and reference.

    Raises:
        ConfigurationError: the keys repeat, are missing, or have nothing in common; says how many.
    """
    tried = []
    for way in ("id", "question") if by is None else (by,):
        keys_a, keys_b = _keys(a, way), _keys(b, way)
        trouble = [*_trouble(a, keys_a, way), *_trouble(b, keys_b, way)]
        common = set(keys_a) & set(keys_b) - {None}
        if not trouble and not common:
            trouble.append(f"{a.name} and {b.name} have none in common")
        if not trouble:
            return _paired(a, b, "id" if way == "id" else "question", keys_a, keys_b)
        label = "ids" if way == "id" else "question and reference"
        tried.append(f"by {label}: {', '.join(trouble)}")
    raise ConfigurationError(
        "runs", f"{a.name}, {b.name}",
        f"their calls cannot be paired {'; '.join(tried)}; give the calls unique ids of your own "
        "in both runs",
    )  # fmt: skip


def key_of(call: Called, by: str) -> str | bytes | None:
    """Return what says which call it is; None if it does not say."""
    return call.id if by == "id" else call.question


def _keys(run: Run, by: str) -> list[Hashable]:
    return [key_of(call, by) for call in run.calls]


def _trouble(run: Run, keys: Sequence[Hashable], by: str) -> Iterator[str]:
    counts = Counter(key for key in keys if key is not None)
    repeated = sum(count for count in counts.values() if count > 1)
    without = len(keys) - counts.total()
    total = f"of {len(keys):,} calls"
    if by == "id" and without:
        yield f"{without:,} {total} in {run.name} have no id of their own"
    elif without == len(keys):
        yield f"no call in {run.name} has a question"
    if repeated:
        yield f"{repeated:,} {total} in {run.name} share theirs with another"


def _paired(
    a: Run, b: Run, by: PairedBy, keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]
) -> Pairing:
    places = {key: place for place, key in enumerate(keys_b) if key is not None}
    pairs = tuple((place, places[key]) for place, key in enumerate(keys_a) if key in places)
    other = sum(a.calls[i].question != b.calls[j].question for i, j in pairs)
    return Pairing(by, pairs, len(keys_a) - len(pairs), len(keys_b) - len(pairs), other)


def conversations(a: Run, b: Run, pairs: Iterable[tuple[int, int]]) -> list[Hashable] | None:
    """Group paired calls by conversation; None where that makes no difference.

    The second run says it where no call of the first one names its conversation. One id for all
    calls names the run and not a conversation. A call without an id is a group of its own.
    """
    pairs = tuple(pairs)
    named = [a.calls[i].conversation for i, _ in pairs]
    if all(one is None for one in named):
        named = [b.calls[j].conversation for _, j in pairs]
    found: list[Hashable] = [place if one is None else one for place, one in enumerate(named)]
    return found if 1 < len(set(found)) < len(found) else None
