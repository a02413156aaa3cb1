"""The gate: runs that became worse fail a build or a test, with the calls that fell most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from rag_eval_integrations._visible import one_line
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.records import Evaluation
from rag_eval_integrations.report._compare import Source, compare
from rag_eval_integrations.report.comparison import Comparison

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
    found = _compared(before, after, allow_mixed=allow_mixed)
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


def _compared(
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
