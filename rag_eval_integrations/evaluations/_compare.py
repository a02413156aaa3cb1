"""Compares runs of the same calls: what became better or worse, and how sure that is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._paired import SEED, ScoreDifference, Values, paired
from rag_eval_integrations.evaluations._pairing import (
    EvaluationsFile,
    PairedBy,
    Pairing,
    Run,
    conversations,
    key_of,
    pair,
    run_of,
    value_of,
    why_not,
)
from rag_eval_integrations.evaluations.comparison import Comparison, calls
from rag_eval_integrations.records import By, Evaluation

Source = Iterable[Evaluation] | str | os.PathLike[str] | EvaluationsFile


def compare(
    a: Source,
    b: Source,
    *more: Source,
    names: Sequence[str] | None = None,
    by: PairedBy | None = None,
    conversation: str | Literal[False] | None = None,
    allow_mixed: bool = False,
    seed: int = SEED,
) -> Comparison:
    """Compare a run with a baseline: the same calls, evaluated before and after a change.

    Calls are paired by `id` where the ids are your own and unique in both runs, else by question
    and reference. Each score is compared over the calls that have it in both runs: the difference
    of means with a 95 % interval, a p-value, and what became unscored. `docs/compare.md` says how.

    Calls of one conversation (the same `thread_id`, `conversation_id` or `session_id` in `metadata`
    or `capture.metadata`) are not independent: whole conversations are then resampled, unless all
    calls have the same id.

    Args:
        a: the baseline: evaluations, or the path of an EVALS file, which is read in flat memory.
        b: the run to compare with it.
        more: further runs, each compared with the baseline.
        names: a name for each run; by default the files' names, or A, B, C …
        by: `id` or `question`, to pair by that alone.
        conversation: another field of the metadata that names a call's conversation; False if
            every call stands alone.
        allow_mixed: compare scores although different judges, prompts, formulas or estimators
            made them: a difference may then be the judge's.
        seed: of the random draws.

    Raises:
        ConfigurationError: a run is empty; no call has the field `conversation`; the calls cannot
            be paired (says how many keys repeat or are missing); scores were made differently (says
            what differs); `names` are too few.
        InputError: a line of a file is not an evaluation.
        OSError: a file cannot be read.
    """
    if by not in (None, "id", "question"):
        raise ConfigurationError("by", by, "use 'id' or 'question'")
    sources = [a, b, *more]
    named = _names(sources, names)
    runs = []
    for name, source in zip(named, sources, strict=True):
        run = run_of(name, _opened(name, source), conversation)
        if not run.calls:
            why = "has no evaluations; `rag-eval run CALLS -o FILE` makes them"
            raise ConfigurationError("runs", name, why)
        runs.append(run)
    if conversation and not any(call.conversation for run in runs for call in run.calls):
        raise ConfigurationError(
            "conversation", conversation, "is a field of the metadata of no call"
        )
    first, *later = (_compared(runs[0], run, by, allow_mixed, seed) for run in runs[1:])
    return replace(first, others=tuple(later))


def _names(sources: Sequence[Source], given: Sequence[str] | None) -> list[str]:
    if given is not None:
        if isinstance(given, str) or len(given) != len(sources):
            raise ConfigurationError("names", given, f"give one name for each of {len(sources)}")
        if len(set(given)) < len(given) or not all(isinstance(one, str) for one in given):
            raise ConfigurationError("names", given, "give each run another name, a text")
        return list(given)
    letters = [chr(ord("A") + place) if place < 26 else f"run {place + 1}"
               for place in range(len(sources))]  # fmt: skip
    paths = [_path(source) for source in sources]
    for shorten in (lambda path: Path(path).name, str):
        found = [letter if path is None else shorten(path)
                 for letter, path in zip(letters, paths, strict=True)]  # fmt: skip
        if len(set(found)) == len(found):
            return found
    return letters


def _path(source: Source) -> str | None:
    if isinstance(source, EvaluationsFile):
        return str(source.path)
    return os.fspath(source) if isinstance(source, str | os.PathLike) else None


def _opened(name: str, source: Source) -> EvaluationsFile | Sequence[Evaluation]:
    if isinstance(source, EvaluationsFile):
        return source
    if isinstance(source, str | os.PathLike):
        return EvaluationsFile(source)
    given: object = source
    if isinstance(given, Evaluation) or not isinstance(given, Iterable):
        why = f"should be evaluations or the path of an EVALS file, not {type(given).__name__}"
        raise ConfigurationError("runs", name, why)
    return tuple(source)


def _compared(a: Run, b: Run, by: PairedBy | None, allow_mixed: bool, seed: int) -> Comparison:
    names = [name for name in a.means.total if name in b.means.total]
    mixed = list(_mixed(a, b, names))
    if mixed and not allow_mixed:
        raise ConfigurationError(
            "runs", f"{a.name}, {b.name}",
            f"their scores were made differently ({'; '.join(mixed)}), so a difference could be "
            "the judge's; evaluate both in the same way, or compare them all the same with "
            "--allow-mixed (allow_mixed=True)",
        )  # fmt: skip
    pairing = pair(a, b, by)
    # The random draws are by position: in any order of the files, and of the two runs, the same.
    ordered = sorted(pairing.pairs, key=lambda at: str(key_of(a.calls[at[0]], pairing.by)))
    values: dict[str, list[Values | None]] = {}
    for name in names:
        both = ((value_of(a, i, name), value_of(b, j, name)) for i, j in ordered)
        values[name] = [
            None if before is None or after is None else (before, after) for before, after in both
        ]
    figures = paired(values, conversations(a, b, ordered), seed=seed)
    return Comparison(
        names=(a.name, b.name),
        scores={
            name: _unscored(found, a, b, pairing.pairs) for name, found in figures.items()
        },
        paired_by=pairing.by, pairs=len(pairing.pairs),
        only_a=pairing.only_a, only_b=pairing.only_b,
        notes=tuple(_notes(a, b, pairing, mixed)), seed=seed,
        _runs=(a, b), _at=pairing.pairs,
    )  # fmt: skip


def _unscored(
    found: ScoreDifference, a: Run, b: Run, pairs: Iterable[tuple[int, int]]
) -> ScoreDifference:
    """Add which calls have the score in one run only."""
    lost: Counter[str] = Counter()
    gained = 0
    for i, j in pairs:
        before, after = value_of(a, i, found.name), value_of(b, j, found.name)
        if before is not None and after is None:
            lost[why_not(b.calls[j], found.name)] += 1
        gained += before is None and after is not None
    return replace(found, became_unscored=dict(lost.most_common()), became_scored=gained)


def _mixed(a: Run, b: Run, names: Sequence[str]) -> Iterable[str]:
    """Say in which fields of their provenance the values of a score differ."""
    differing: dict[str, list[str]] = {}
    for name in names:
        of_a, of_b = (
            [(made.by, made.method) for made in run.means.made if made.name == name]
            for run in (a, b)
        )
        for part in [*By.model_fields, "method"] if len({*of_a, *of_b}) > 1 else ():
            in_a, in_b = (
                sorted(
                    {str(method if part == "method" else getattr(by, part)) for by, method in of}
                )
                for of in (of_a, of_b)
            )
            if len({*in_a, *in_b}) > 1:
                said = f"{part} {' and '.join(in_a)} in {a.name}, {' and '.join(in_b)} in {b.name}"
                differing.setdefault(said, []).append(name)
    for said, scores in differing.items():
        yield f"{said}: {', '.join(scores)}"


def _notes(a: Run, b: Run, pairing: Pairing, mixed: Sequence[str]) -> Iterable[str]:
    if mixed:
        yield f"The scores were made differently ({'; '.join(mixed)})."
    if pairing.only_a or pairing.only_b:
        yield (
            f"Left out: {calls(pairing.only_a)} only in {a.name}, {pairing.only_b:,} only in "
            f"{b.name}."
        )
    if pairing.other_question:
        yield (
            f"{pairing.other_question:,} of {calls(len(pairing.pairs))} with the same id "
            f"{'has' if pairing.other_question == 1 else 'have'} another question or reference."
        )
    for run, other in ((a, b), (b, a)):
        missing = [name for name in run.means.total if name not in other.means.total]
        if missing:
            yield f"Only in {run.name}: {', '.join(missing)}."


# --- The gate: runs that became worse fail a build or a test, with the calls that fell most


_WORST = 5
_SENTENCES = 3


def check_no_regression(
    before: Source | Comparison,
    after: Source | None,
    deltas: Mapping[str, float],
    *,
    unclear: Literal["pass", "fail"],
    allow_mixed: bool,
) -> Comparison:
    """Do what `testing.assert_no_regression` says."""
    if unclear not in ("pass", "fail"):
        raise ConfigurationError("unclear", unclear, "use 'pass' or 'fail'")
    if not deltas:
        why = "name a score and the fall that does not matter, as in adherence=0.02"
        raise ConfigurationError("deltas", {}, why)
    found = _comparison(before, after, allow_mixed=allow_mixed)
    failed = []
    for run in found.all:
        of = f" ({one_line(run.names[1])})" if found.others else ""
        for name, delta in deltas.items():
            score = run.score(name)
            verdict = score.verdict(delta)
            if not score.n:
                why = f"no call of {run.names[0]} and {run.names[1]} has a value in both"
                raise ConfigurationError(name, delta, why)
            if verdict.outcome == "fine" or (verdict.outcome, unclear) == ("cannot tell", "pass"):
                continue
            failed.append(f"{one_line(name)}{of}: {verdict}")
            failed += [f"  {line}" for line in worst_calls(run, name)]
    if failed:
        raise AssertionError("\n".join(failed))
    return found


def _comparison(
    before: Source | Comparison, after: Source | None, *, allow_mixed: bool
) -> Comparison:
    if not isinstance(before, Comparison):
        if after is None:
            raise ConfigurationError("after", None, "give the run to check", missing=True)
        return compare(before, after, allow_mixed=allow_mixed)
    if after is not None:
        raise ConfigurationError("after", type(after).__name__, "is in the comparison already")
    return before


def worst_calls(run: Comparison, name: str, limit: int = _WORST) -> Iterator[str]:
    """Describe the calls that fell most, each on a line, with their unsupported sentences."""
    for change in run.fell(name, limit):
        after = change.after
        quoted = (f"{key} “{one_line(text, 80)}”" for key, text in unsupported(after, _SENTENCES))
        said = "; ".join(quoted)
        line = f"{change.difference:+.2f} {one_line(after.id, 40)} “{one_line(after.question, 80)}”"
        yield f"{line}: not supported: {said}" if said else line


def unsupported(evaluation: Evaluation, limit: int) -> list[tuple[str, str]]:
    """List keys and texts of the first response sentences that are not fully supported."""
    labels = evaluation.labels
    if labels is None:
        return []
    return [
        (sentence.key, sentence.text)
        for sentence in evaluation.sentences.response
        if labels.support(sentence.key) in ("none", "partial")
    ][:limit]
