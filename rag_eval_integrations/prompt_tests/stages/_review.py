"""Stage 8, optional: a review of all tests, and the best of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.prompt_tests._asking import MARKS, ask, dialogue, sections
from rag_eval_integrations.prompt_tests._cleaning import json_in
from rag_eval_integrations.prompt_tests._variables import metric_values
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec
from rag_eval_integrations.records import JsonObject

_RATING_VERSION = "rating-1"

_RATING_INSTRUCTIONS = f"""\
You review a collection of tests for an assistant. You are given its prompt and numbered tests. \
Write a short review: what the tests cover, what they miss, which repeat others, which are no \
valid inputs. Then choose the {{count}} tests that together try the prompt best.

Reply with a JSON object {{{{"review": "…", "keep": [numbers]}}}} with exactly {{count}} numbers.

{MARKS}"""

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "review": {"type": "string"},
        "keep": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["review", "keep"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Review:
    """What was said about a collection, and what is kept of it, in the collection's order."""

    text: str
    kept: list[PromptTest]


async def review_tests(
    prompt: PromptUnderTest, tests: Sequence[PromptTest], model: Model, count: int
) -> Review:
    """Ask for a review and the best tests.

    Raises:
        JudgeError: no answer, or twice one that does not name as many tests as asked for.
    """
    count = min(count, len(tests))
    listed = "\n".join(
        f"{number}. rule: {test.rule or 'none'}\n   input: {test.testinput}"
        for number, test in enumerate(tests, start=1)
    )

    def read(text: str) -> Review:
        content = json_in(text)
        keep = content.get("keep") if isinstance(content, dict) else None
        numbers = {n for n in keep or [] if isinstance(n, int) and 1 <= n <= len(tests)}
        if not isinstance(content, dict) or len(numbers) != count:
            raise JudgeOutputError(f"the generator named {len(numbers)} tests, not {count}", text)
        return Review(str(content.get("review") or ""), [tests[n - 1] for n in sorted(numbers)])

    return await ask(
        model,
        dialogue(
            _RATING_INSTRUCTIONS.format(count=count),
            sections({"prompt": prompt.text, "tests": listed}),
        ),
        read,
        version=_RATING_VERSION,
        again=f'Reply with one JSON object {{"review": "…", "keep": [{count} numbers]}}.',
        schema=SCHEMA,
    )


# --- Expected outputs by a strong model, and how much judges trust them


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
    model: Model,
    judges: Sequence[Model],
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
    judges: Sequence[Model],
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
