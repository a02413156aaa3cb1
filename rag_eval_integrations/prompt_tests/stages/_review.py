"""Optional stages: a review that keeps the best tests (8), expected outputs (9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_eval_integrations._visible import logger_of
from rag_eval_integrations.errors import JudgeOutputError
from rag_eval_integrations.metrics.prompty import PromptyMetric
from rag_eval_integrations.models import Model
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.prompt_tests._cleaning import json_in
from rag_eval_integrations.prompt_tests._requests import MARKS, ask, dialogue, sections
from rag_eval_integrations.prompt_tests._variables import metric_values
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import PromptTest, Spec
from rag_eval_integrations.records import JsonObject

# --- Review: the tests that together test the prompt best


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
    """A review of a collection of tests."""

    text: str
    """The review in words."""
    kept: list[PromptTest]
    """The best tests, in the collection's order."""


async def review_tests(
    prompt: PromptUnderTest, tests: Sequence[PromptTest], model: Model, count: int
) -> Review:
    """Ask for a review and the best tests.

    Args:
        prompt: the prompt under test.
        tests: the collection.
        model: the generator.
        count: number of tests to keep; all are kept if there are fewer.

    Raises:
        JudgeError: when the model does not answer, or twice names another number of tests.
    """
    count = min(count, len(tests))
    listed = "\n".join(
        f"{number}. rule: {test.rule or 'none'}\n   input: {test.testinput}"
        for number, test in enumerate(tests, start=1)
    )

    def read(text: str) -> Review:
        content = json_in(text)
        keep = content.get("keep") if isinstance(content, dict) else None
        given = keep if isinstance(keep, list) else []
        numbers = {n for n in given if type(n) is int and 1 <= n <= len(tests)}
        if not isinstance(content, dict) or len(numbers) != count:
            why = f"the generator's review kept {len(numbers)} tests instead of {count}"
            raise JudgeOutputError(why, text)
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


# --- Expected outputs: written by a strong model and scored by judges


logger = logger_of(__name__)

GOOD = 80.0
"""Mean score, 0 to 100, from which an output is accepted without another attempt."""
USABLE = 50.0
"""Mean score below which the best output is refused after the last attempt."""
ATTEMPTS = 3
"""Maximum number of outputs per test."""
REFUSED = -1.0
"""Score of a refused output."""


async def add_groundtruth(
    test: PromptTest,
    prompt: PromptUnderTest,
    spec: Spec,
    model: Model,
    judges: Sequence[Model],
    metric: PromptyMetric,
) -> PromptTest:
    """Write a test's expected output with a strong model, in at most three attempts.

    An output's score is the mean over the judges that gave one. The first output with 80 or more is
    kept, or else the best one. If it has less than 50, or no judge scored it, its score is -1 and
    it is not used (310 of 984 tests in PromptPex's paper).

    Args:
        test: the test.
        prompt: the prompt under test.
        spec: its specification.
        model: the strong model.
        judges: models that score the outputs.
        metric: the question to the judges; a verdict counts as 100 or 0.

    Returns:
        The test with an expected output.

    Raises:
        JudgeError: when the model or a judge does not answer.
        ConfigurationError: when the prompt cannot be rendered with the test.
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
