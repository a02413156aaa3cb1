"""Which call of one run is which of another: by the user's own ids, or by question and reference.

A wrong pair would be counted as a change, so nothing is guessed: keys that repeat are refused, as
soon as no way is left, which may be long before a file ends.
"""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError, InputError
from rag_eval_integrations.evaluations._call_view import unsupported
from rag_eval_integrations.evaluations._filters import metadata_of
from rag_eval_integrations.evaluations._paired import millionths
from rag_eval_integrations.metrics.retrieval import LABEL_RETRIEVAL_SCORES
from rag_eval_integrations.records import Evaluation, Means, Sentence
from rag_eval_integrations.records._conversation import CONVERSATION, conversation_in
from rag_eval_integrations.records._repr import LEXICAL

T = TypeVar("T")

PairedBy = Literal["id", "question"]
Pair = tuple[int, int]
"""Positions of one call in the first and in the second run."""
Places = dict[PairedBy, dict[str | bytes, int]]

_OF_TRACE = ("context_relevance", "context_utilization", "completeness", "trace_average")
POOLED = _OF_TRACE + LABEL_RETRIEVAL_SCORES
"""Scores that follow from the relevant sentences of a call, those with formulas first."""


# --- Runs: what is kept of every call, and where the rest is


@lru_cache(maxsize=10_000, typed=True)
def interned(value: T) -> T:
    """Intern a value: of 100,000 calls, few values differ."""
    return value


class Retrieval(NamedTuple):
    """A question with its retrieved sentences, and which of them the labels call relevant."""

    texts: bytes
    """Digest of question, history and document sentences, and which are of earlier turns."""
    relevant: int
    """A bit for each document sentence, the first one's lowest."""
    counted: tuple[str | None, int | None, str | None, str | None]
    """Formulas, baseline, splitter and judge of the scores."""
    as_recorded: bool
    """Whether keys repeat or name no sentence, as `--raw-keys` counts them."""

    @classmethod
    def of(cls, evaluation: Evaluation) -> Retrieval | None:
        """Read the retrieval of an evaluation; None without labels or scores that use them."""
        labels, scores = evaluation.labels, evaluation.scores
        by = next((scores[name].by for name in POOLED if name in scores), None)
        if labels is None or by is None:
            return None
        sentences = [(sentence.key, sentence.text) for sentence in evaluation.sentences.documents]
        turns = [(turn.role, turn.content) for turn in evaluation.history]
        places = {key: place for place, (key, _) in enumerate(sentences)}
        relevant = set(labels.all_relevant_sentence_keys)
        used = set(labels.all_utilized_sentence_keys)
        listed = len(labels.all_relevant_sentence_keys) + len(labels.all_utilized_sentence_keys)
        return cls(
            _digest([evaluation.question, turns, sentences, evaluation.earlier]),
            sum(1 << places[key] for key in relevant & places.keys()),
            interned((by.formulas, by.relevance_baseline, by.splitter, by.judge)),
            len(relevant) + len(used) < listed or not relevant | used <= places.keys(),
        )


_SENTENCE = 8
"""Bytes of the digest of a sentence."""


class CallInBrief(NamedTuple):
    """One call of a run, without its texts."""

    id: str | None
    """The user's own id; None for the default one, which changes with the response."""
    question: bytes | None
    """Digest of question and reference; None for an empty question."""
    conversation: str | None
    names: tuple[str, ...]
    """Names of its scores."""
    values: tuple[float | str, ...]
    """Values of these scores; for one without a value, the code of why."""
    retrieval: Retrieval | None
    response: bytes
    """Digests of the response's sentences, 8 bytes each."""
    unsupported: int
    """A bit for each of them that is not fully supported, the first one's lowest."""
    pooled: tuple[float | str, ...] = ()
    """The same by the relevant sentences of all runs; empty where they are the run's own."""

    def value(self, name: str) -> float | None:
        """Return the value of a score, pooled where it is; None without one."""
        return self._of(name, self.pooled or self.values)

    def own(self, name: str) -> float | None:
        """Return the value of a score by the run's own labels; None without one."""
        return self._of(name, self.values)

    def _of(self, name: str, values: Sequence[float | str]) -> float | None:
        value = values[self.names.index(name)] if name in self.names else None
        return value if isinstance(value, float) else None

    def new_unsupported(self, before: CallInBrief) -> int:
        """Count the unsupported sentences that have no equal sentence in an earlier response."""
        known, ours = before.response, self.response
        equal = {known[at : at + _SENTENCE] for at in range(0, len(known), _SENTENCE)}
        return sum(
            self.unsupported >> at // _SENTENCE & 1 and ours[at : at + _SENTENCE] not in equal
            for at in range(0, len(ours), _SENTENCE)
        )

    def unscored_code(self, name: str) -> str:
        """Return the code of why a score has no value: `absent` if it was not asked for."""
        codes = dict(zip(self.names, self.values, strict=True))
        return str(codes.get(name, codes.get("", "absent")))


class EvaluationsFile:
    """Evaluations of a file, streamed; the file is read again for some of them.

    Args:
        path: EVALS; also gzipped, Parquet, or a folder of Parquet.
        report: given each `dataset.Line` that is not an evaluation, which is then left out.
            Without it, such a line raises its `InputError`.
    """

    def __init__(
        self, path: str | os.PathLike[str], report: Callable[[Any], object] | None = None
    ) -> None:
        self.path = path
        self._report = report
        self._numbers = array("q")  # of the lines that hold an evaluation

    def __iter__(self) -> Iterator[Evaluation]:
        # Up: files are read in `dataset`.
        from rag_eval_integrations.dataset._evals import read_evaluations  # noqa: PLC0415

        self._numbers = array("q")
        for line in read_evaluations(self.path):
            if line.value is not None:
                self._numbers.append(line.number)
                yield line.value
            elif self._report is not None:
                self._report(line)
            elif error := line.error:
                path = str(self.path)
                raise InputError(error.why, field=error.field, line=error.line, path=path)

    def some(self, positions: Collection[int]) -> Iterator[tuple[int, Evaluation]]:
        """Yield the evaluations at some positions of the file, without parsing the other lines.

        It has to have been gone through before.
        """
        from rag_eval_integrations.dataset._evals import evaluations_at  # noqa: PLC0415

        wanted = {self._numbers[position]: position for position in positions}
        for number, evaluation in evaluations_at(self.path, wanted) if wanted else ():
            yield wanted[number], evaluation


Source = Iterable[Evaluation] | str | os.PathLike[str] | EvaluationsFile
"""A run as a user gives it."""


def run_names(sources: Sequence[Source], given: Sequence[str] | None) -> list[str]:
    """Return the names of the runs: as given, of their files, or letters."""
    if given is not None:
        if isinstance(given, str) or len(given) != len(sources):
            raise ConfigurationError("names", given, f"give one name for each of {len(sources)}")
        if len(set(given)) < len(given) or not all(isinstance(name, str) for name in given):
            raise ConfigurationError("names", given, "give each run another name, a text")
        return list(given)
    letters = [_letter(place) for place in range(len(sources))]
    files = [_path_of(source) for source in sources]
    for shorten in (lambda path: Path(path).name, str):  # with folders where two have one name
        names = [
            letter if file is None else shorten(file)
            for letter, file in zip(letters, files, strict=True)
        ]
        if len(set(names)) == len(names):
            return names
    return letters


def _letter(place: int) -> str:
    return chr(ord("A") + place) if place < 26 else f"run {place + 1}"


def _path_of(source: Source) -> str | None:
    """Return the path of a run's file; None for evaluations in memory."""
    if isinstance(source, EvaluationsFile):
        return str(source.path)
    return os.fspath(source) if isinstance(source, str | os.PathLike) else None


def opened(name: str, source: Source) -> EvaluationsFile | Sequence[Evaluation]:
    """Return a run's evaluations, or its file; refuse other objects."""
    if isinstance(source, EvaluationsFile):
        return source
    if isinstance(source, str | os.PathLike):
        return EvaluationsFile(source)
    given: object = source
    if isinstance(given, Evaluation) or not isinstance(given, Iterable):
        why = "should be evaluations or the path of an EVALS file"
        raise ConfigurationError(
            "runs", given, f"run {name} {why}, not {type(given).__name__}", missing=True
        )
    return tuple(source)


@dataclass(frozen=True)
class RunInBrief:
    """A run: all its calls in brief, and where its evaluations are."""

    name: str
    calls: tuple[CallInBrief, ...]
    means: Means
    """The means of all its scores, by who made them."""
    lexical: int
    """Number of calls whose judge compared words."""
    places: Places
    """Key → the place of its call, by the ways in which its calls can be paired."""
    evaluations: EvaluationsFile | Sequence[Evaluation]

    @classmethod
    def of(
        cls,
        name: str,
        evaluations: EvaluationsFile | Sequence[Evaluation],
        conversation: str | Literal[False] | None,
        ways: PairingWays,
    ) -> RunInBrief:
        """Read a run once, and keep what pairing and statistics need of each call.

        Ways to pair that fail for one of its calls are excluded.

        Args:
            name: the run's name, for messages.
            evaluations: the run.
            conversation: field of the metadata that names a call's conversation; None to look for
                the usual ones, False for none.
            ways: the ways to pair calls that are left after the runs before.

        Raises:
            ConfigurationError: there is something else than evaluations, or nothing, or no way
                is left to pair its calls with others.
        """
        fields = CONVERSATION if conversation is None else (conversation,) if conversation else ()
        means, lexical = Means(), 0
        calls: list[CallInBrief] = []
        places: Places = {way: {} for way in ways.left}
        for evaluation in evaluations:
            if not isinstance(evaluation, Evaluation):
                why = f"holds a {type(evaluation).__name__}, which is not an Evaluation"
                raise ConfigurationError("runs", name, why)
            means.add(evaluation)
            lexical += LEXICAL in evaluation.flags
            calls.append(call := _in_brief(evaluation, fields))
            for way in ways.left:
                if (key := key_of(call, way)) is None:
                    if way == "id":
                        why = f"call {len(calls)} of {name} has no id of its own"
                        ways.exclude(way, why, name)
                elif (place := places[way].setdefault(key, len(calls) - 1)) < len(calls) - 1:
                    same = f"id {call.id!r}" if way == "id" else "same question and reference"
                    both = f"calls {place + 1} and {len(calls)} of {name}"
                    ways.exclude(way, f"{both} have the {same}", name)
        if not calls:
            why = "has no evaluations"
            if isinstance(evaluations, EvaluationsFile):
                why += "; `rag-eval run CALLS -o FILE` makes them"
            raise ConfigurationError("runs", name, why)
        if "question" in ways.left and not places["question"]:
            ways.exclude("question", f"no call in {name} has a question", name)
        return cls(name, tuple(calls), means, lexical, places, evaluations)

    def some(self, positions: Collection[int]) -> Iterator[tuple[int, Evaluation]]:
        """Yield the evaluations of some calls, as they were when the run was gone through.

        Raises:
            ConfigurationError: the run's file holds others by now.
            OSError: it cannot be read any more.
        """
        if not isinstance(self.evaluations, EvaluationsFile):
            yield from ((position, self.evaluations[position]) for position in positions)
            return
        unseen = set(positions)
        try:
            for position, now in self.evaluations.some(positions):
                then = self.calls[position]
                read = _in_brief(now, ())
                if read._replace(conversation=then.conversation, pooled=then.pooled) != then:
                    break
                unseen.remove(position)
                yield position, now
        except InputError:
            pass
        if unseen:
            why = "has changed since it was compared; compare it again"
            raise ConfigurationError("runs", self.name, why)


def _in_brief(evaluation: Evaluation, fields: Sequence[str]) -> CallInBrief:
    """Reduce an evaluation to what pairing and comparing need.

    A failed one has an error among its scores.
    """
    scores: dict[str, float | str] = {
        name: score.value if score.value is not None else str(score.unscored or score.status)
        for name, score in evaluation.scores.items()
    }
    if evaluation.error is not None:
        scores = {"": "error", **scores}
    response = evaluation.sentences.response
    against = {sentence.key for sentence, *_ in unsupported(evaluation)}
    return CallInBrief(
        # An Evaluation has no mark of where its id is from; the default one is this.
        None if evaluation.id == evaluation.row_key[:16] else evaluation.id,
        _digest([evaluation.question, evaluation.reference])
        if evaluation.question.strip()
        else None,
        conversation_in(metadata_of(evaluation), fields),
        interned(tuple(scores)),
        tuple(map(interned, scores.values())),
        Retrieval.of(evaluation),
        b"".join(_digest([single_spaced(sentence)])[:_SENTENCE] for sentence in response),
        sum(1 << place for place, sentence in enumerate(response) if sentence.key in against),
    )


def single_spaced(sentence: Sentence) -> str:
    """Return a sentence's text with single spaces, by which sentences are compared."""
    return " ".join(sentence.text.split())


def _digest(texts: Sequence[object]) -> bytes:
    """Hash texts, for comparisons."""
    return hashlib.sha256(json.dumps(texts).encode("ascii")).digest()[:16]


# --- Pairs


class PairingWays:
    """The ways in which calls of runs can be paired, and why the others fail.

    Args:
        by: the only way that is wanted; None for ids if all are the users' own, unique in every
            run, and some are in both, else for question and reference.
    """

    def __init__(self, by: PairedBy | None) -> None:
        self._wanted: tuple[PairedBy, ...] = ("id", "question") if by is None else (by,)
        self._trouble: dict[PairedBy, str] = {}

    @property
    def left(self) -> list[PairedBy]:
        """The ways that are not excluded, the one to prefer first."""
        return [way for way in self._wanted if way not in self._trouble]

    def exclude(self, way: PairedBy, why: str, run: str) -> None:
        """Exclude a way of pairing, because of the calls of a run.

        Raises:
            ConfigurationError: no way is left.
        """
        self._trouble[way] = why
        if not self.left:
            raise self._refusal(run, {})

    def pair(self, a: RunInBrief, b: RunInBrief) -> tuple[PairedBy, list[Pair]]:
        """Pair the calls of two runs.

        Returns:
            What they are paired by, and the pairs in the order of the first run.

        Raises:
            ConfigurationError: the keys have nothing in common.
        """
        for way in self.left:
            theirs = b.places[way]
            if pairs := [(i, theirs[key]) for key, i in a.places[way].items() if key in theirs]:
                return way, pairs
        why = f"{a.name} and {b.name} have none in common"
        raise self._refusal(f"{a.name}, {b.name}", dict.fromkeys(self.left, why))

    def _refusal(self, runs: str, more: dict[PairedBy, str]) -> ConfigurationError:
        """Return the error that says why each way of pairing fails."""
        labels: dict[PairedBy, str] = {"id": "ids", "question": "question and reference"}
        reasons = self._trouble | more
        why = "; ".join(f"by {labels[way]}: {reasons[way]}" for way in self._wanted)
        end = "give the calls unique ids of your own in both runs"
        return ConfigurationError("runs", runs, f"calls cannot be paired {why}; {end}")


def key_of(call: CallInBrief, by: PairedBy) -> str | bytes | None:
    """Return the key of a call for a way of pairing: its id or question; None if it has none."""
    return call.id if by == "id" else call.question


def conversations(a: RunInBrief, b: RunInBrief, pairs: Sequence[Pair]) -> list[Hashable] | None:
    """Group paired calls by conversation; None where that makes no difference.

    The second run says it where no call of the first one names its conversation. One id for all
    calls names the run and not a conversation. A call without an id is a group of its own.
    """
    names = [a.calls[i].conversation for i, _ in pairs]
    if not any(name is not None for name in names):
        names = [b.calls[j].conversation for _, j in pairs]
    groups: list[Hashable] = [place if name is None else name for place, name in enumerate(names)]
    return groups if 1 < len(set(groups)) < len(groups) else None


# --- What a pair shows


@dataclass(frozen=True)
class Change:
    """One call in both runs."""

    before: Evaluation
    after: Evaluation
    difference: float | None
    """The change of the score that was asked for; None where the call became unscored."""
    _in_brief: tuple[CallInBrief, CallInBrief] = field(repr=False)

    @property
    def new_unsupported(self) -> list[Sentence]:
        """Sentences that are not fully supported and have no equal one in the response before."""
        known = set(map(single_spaced, self.before.sentences.response))
        against = (sentence for sentence, *_ in unsupported(self.after))
        return [sentence for sentence in against if single_spaced(sentence) not in known]

    @property
    def id(self) -> str:
        """The call's id; empty for the default one, a digest of its texts."""
        default_ids = (self.before.row_key[:16], self.after.row_key[:16])
        return "" if self.after.id in default_ids else self.after.id

    def named(self, most: int) -> str:
        """Name the call in a line: its id, and the first characters of its question."""
        return f"{one_line(self.id, 40)} “{one_line(self.after.question, most)}”".lstrip()

    def scores(self, names: Iterable[str]) -> Iterator[tuple[str, float | None, float | None]]:
        """Yield those of the named scores that differ: name, value before and value after.

        Values are pooled where the comparison's are.
        """
        for name in names:
            was, now = (call.value(name) for call in self._in_brief)
            if (was is None) != (now is None) or difference_of(was, now):
                yield name, was, now


def difference_of(before: float | None, after: float | None) -> float | None:
    """Return by how much a value changed; None for a tie, and where one is missing."""
    if before is None or after is None or millionths(before) == millionths(after):
        return None
    return after - before
