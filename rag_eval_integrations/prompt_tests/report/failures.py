"""Outputs that do not comply, each with its rule, input, output and reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.prompt_tests.records import Result


@dataclass(frozen=True, slots=True)
class Failure:
    """One output that is not known to comply."""

    model: str
    kind: Literal["err", "unknown", "error"]
    """Not compliant; without a verdict; without an output."""
    rule_id: int | None
    rule: str
    """The rule that the test tries; the output may break another one."""
    inverse: bool
    input: str
    output: str
    reason: str
    test: str
    """The test's uid."""
    run: int


def failures(results: Iterable[Result]) -> list[Failure]:
    """List what failed, in the results' order."""
    found = []
    for result in results:
        kind: Literal["err", "unknown", "error"]
        if result.error is not None:
            kind, reason = "error", result.error
        elif result.compliance is None or result.compliance.outcome == "ok":
            continue
        else:
            kind, reason = result.compliance.outcome, result.compliance.reason
        test = result.test
        found.append(
            Failure(
                model=result.model, kind=kind, rule_id=test.rule_id, rule=test.rule,
                inverse=test.inverse, input=test.testinput, output=result.output, reason=reason,
                test=test.uid, run=result.run,
            )
        )  # fmt: skip
    return found
