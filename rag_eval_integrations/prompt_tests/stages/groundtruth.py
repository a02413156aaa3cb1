"""Stage 9, optional: expected outputs by a strong model, and how much judges trust them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from statistics import fmean

from rag_eval_integrations.judges import Completer
from rag_eval_integrations.judges.completion import CompletionRequest
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec
from rag_eval_integrations.prompt_tests.variables import metric_values

logger = logging.getLogger(__name__)

GOOD = 80.0
"""From this mean score an output is taken at once."""
USABLE = 50.0
"""Below it, after the last attempt, it is refused."""
ATTEMPTS = 3
REFUSED = -1.0


async def add_groundtruth(
    test: PromptTest,
    prompt: PromptUnderTest,
    spec: Spec,
    model: Completer,
    judges: Sequence[Completer],
    metric: PromptyMetric,
) -> PromptTest:
    """Run a test on a strong model until judges find the output good, at most three times.

    The score is the mean over the judges that gave one. The best output is kept; a test whose best
    is below 50, or which no judge scored, gets the score -1, and its output is not used. (In
    PromptPex's paper that were 310 of 984 tests.)

    Raises:
        JudgeError: the model or a judge does not answer.
        ConfigurationError: the prompt cannot be rendered with the test.
    """
    values = prompt.values(test.inputs, prompt.parameters(test.scenario))
    messages = prompt.render(values)
    best: tuple[float, str] = (REFUSED, "")
    for attempt in range(ATTEMPTS):
        completion = await model.complete(
            CompletionRequest(messages=messages, seed=attempt or None, prompt_version="groundtruth")
        )
        score = await _score(test, prompt, spec, completion.text, judges, metric)
        if (score is not None and score > best[0]) or not best[1]:
            best = (REFUSED if score is None else score, completion.text)
        if best[0] >= GOOD:
            break
    score, output = best
    return test.model_copy(
        update={
            "groundtruth": output,
            "groundtruth_model": model.name,
            "groundtruth_score": score if score >= USABLE else REFUSED,
        }
    )


async def _score(
    test: PromptTest,
    prompt: PromptUnderTest,
    spec: Spec,
    output: str,
    judges: Sequence[Completer],
    metric: PromptyMetric,
) -> float | None:
    if not output.strip():
        return None
    values = metric_values(prompt, spec, test, output)
    scores = []
    for judge in judges:
        graded = await metric.ask(values, judge)
        reading = graded.reading
        if graded.stopped is None and reading.score is not None:
            scores.append(reading.score)
        elif graded.stopped is None and reading.outcome is not None:
            scores.append(100.0 if reading.outcome == "ok" else 0.0)
    return fmean(scores) if scores else None
