"""The gate: runs that became worse fail a build or a test, with the calls that fell most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.evaluations._call_view import unsupported
from rag_eval_integrations.evaluations._paired import Outcome, ScoreDifference
from rag_eval_integrations.evaluations._pairing import Source
from rag_eval_integrations.evaluations.comparison import Comparison, compare

_WORST = 5
_SENTENCES = 3


class GateVerdict(NamedTuple):
    """The verdict on one score of one run."""

    run: Comparison
    score: ScoreDifference
    outcome: Outcome
    line: str
    """The verdict in words."""


def gate_verdicts(
    comparison: Comparison, deltas: Mapping[str, float], field: str = "name"
) -> Iterator[GateVerdict]:
    """Yield the verdict on each score and run.

    Args:
        comparison: the runs.
        deltas: score name → the fall that does not matter.
        field: name of the argument, for errors.

    Raises:
        ConfigurationError: a run and the baseline do not both have a score.
    """
    for run in comparison.all:
        of = f" ({one_line(run.names[1])})" if comparison.others else ""
        for name, delta in deltas.items():
            score = run._named(name, field)
            verdict = score.verdict(delta)
            line = f"{verdict.outcome}: {one_line(name)}{of}: {verdict.reason}"
            yield GateVerdict(run, score, verdict.outcome, line)


def check_no_regression(
    before: Source | Comparison,
    after: Source | None,
    deltas: Mapping[str, float],
    *,
    unclear: Literal["pass", "fail"],
    allow_mixed: bool,
) -> Comparison:
    """Compare two runs, and raise an error with the worst calls if a score became worse."""
    if unclear not in ("pass", "fail"):
        raise ConfigurationError("unclear", unclear, "use 'pass' or 'fail'")
    if not deltas:
        why = "name a score and the fall that does not matter, as in adherence=0.02"
        raise ConfigurationError("deltas", {}, why)
    if isinstance(before, Comparison):
        if after is not None:
            raise ConfigurationError("after", type(after).__name__, "is in the comparison already")
        comparison = before
    elif after is None:
        raise ConfigurationError("after", None, "give the run to check", missing=True)
    else:
        comparison = compare(before, after, allow_mixed=allow_mixed)
    failed = []
    for run, score, outcome, line in gate_verdicts(comparison, deltas):
        if not score.n:
            why = f"no call of {run.names[0]} and {run.names[1]} has a value in both"
            raise ConfigurationError(score.name, deltas[score.name], why)
        if outcome == "worse" or (outcome, unclear) == ("cannot tell", "fail"):
            failed += [line, *(f"  {call}" for call in worst_calls(run, score.name))]
    if failed:
        raise AssertionError("\n".join(failed))
    return comparison


def worst_calls(run: Comparison, name: str, limit: int = _WORST) -> Iterator[str]:
    """Describe the calls that fell most, each on a line, with their unsupported sentences."""
    for change in run.fell(name, limit):
        after = change.after
        against = [sentence for sentence, *_ in unsupported(after, _SENTENCES)]
        quoted = "; ".join(f"{key} “{one_line(words, 80)}”" for key, words, *_ in against)
        line = f"{change.difference:+.2f} {change.named(80)}"
        yield f"{line}: not supported: {quoted}" if quoted else line
