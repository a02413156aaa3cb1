"""What stages are going to ask and to cost, so far, and at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import JsonValue

from rag_eval_integrations import _loop
from rag_eval_integrations.cli._terminal import print_stderr, stdout
from rag_eval_integrations.cli.prompt_tests._models import (
    model_from_option,
    model_under_test,
    parameters_of,
)
from rag_eval_integrations.cli.prompt_tests._options import (
    GenerateSettings,
    JudgeSettings,
    MutSettings,
    RequestSettings,
)
from rag_eval_integrations.evaluations.summary import usage_words
from rag_eval_integrations.models import Model
from rag_eval_integrations.prompt_tests._foresight import (
    ASSUMED,
    Forecast,
    GenerationForecast,
    Prices,
    forecast_words,
    foresee_generation,
    judged_requests,
    range_words,
    rough,
    spent_of,
)
from rag_eval_integrations.prompt_tests.evaluate import PromptEvaluation
from rag_eval_integrations.prompt_tests.generate import GenerateOptions, Generation
from rag_eval_integrations.prompt_tests.models import ModelUnderTest
from rag_eval_integrations.prompt_tests.project import Project, find_metrics
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import Choice
from rag_eval_integrations.prompt_tests.run import foresee_tests
from rag_eval_integrations.records import Usage

NOTHING = "Nothing was sent or written."


@dataclass(frozen=True)
class Tests:
    """The tests to run."""

    __test__ = False  # pytest should not collect this class

    runs: int = 1
    max_tests: int | None = None
    baseline: bool = True
    choice: Choice = field(default_factory=Choice)


class Bill:
    """Says what stages are going to cost, and what they have cost.

    Args:
        prices: prices of models; a model without one has an unknown cost.
    """

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._stages: list[Usage] = []

    def foresee(self, stage: str, forecasts: Iterable[Forecast]) -> None:
        """Print what a stage is going to ask."""
        for line in forecast_words(stage, forecasts, self._prices):
            print_stderr(line)

    def generation_words(self, forecast: GenerationForecast) -> str:
        """Say what generating is going to ask, and its cost."""
        return f"{forecast}; {range_words(*forecast.forecasts(), self._prices)}"

    def words(self, spent: Mapping[str, Usage]) -> str:
        """Say what was spent; empty for nothing."""
        usage = spent_of(spent, self._prices)
        return usage_words(usage) if usage.requests else ""

    def add(self, stage: str, spent: Mapping[str, Usage]) -> None:
        """Print what a stage has spent; nothing if it asked nothing."""
        usage = spent_of(spent, self._prices)
        self._stages.append(usage)
        if usage.requests:
            print_stderr(f"{stage}: spent {usage_words(usage)}")

    def print_total(self) -> None:
        """Print what all stages together have spent."""
        print_stderr(f"all: spent {usage_words(sum(self._stages, Usage()))}")


def bill_of(requests: RequestSettings) -> Bill:
    """Read the prices.

    Raises:
        ConfigurationError: for a file or word that is not of prices.
        OSError: when the file cannot be read.
    """
    return Bill(Prices.of(requests.prices))


def foresee_run(
    project: Project,
    models: Sequence[ModelUnderTest],
    which: Tests,
    parameters: dict[str, JsonValue],
) -> list[Forecast]:
    tests = project.chosen(which.choice, baseline=which.baseline, max_tests=which.max_tests)
    with project.workspace.journal() as journal:
        return _loop.run(
            foresee_tests(
                project.prompt, tests, models, runs=which.runs, parameters=parameters,
                journal=journal,
            )
        )  # fmt: skip


def foresee_evaluation(
    project: Project,
    evaluation: PromptEvaluation,
    settings: JudgeSettings,
    agreement_model: Model | None,
) -> list[Forecast]:
    of_tests = settings.validity or agreement_model is not None
    results = project.results() if project.has_results or not settings.validity else []
    with project.workspace.journal():
        return _loop.run(
            evaluation.foresee(
                results, project.tests() if of_tests else (), validity=settings.validity,
                groundedness=settings.groundedness, agreement_model=agreement_model,
            )
        )  # fmt: skip


def foresee_all(
    put: Path,
    out: Path,
    model: str,
    settings: GenerateSettings,
    scenarios: Sequence[str] | None,
    groundtruth: str | None,
    muts: Sequence[str],
    judges: Sequence[str],
    judging: JudgeSettings,
    which: Tests,
    mut_settings: MutSettings,
    requests: RequestSettings,
    bill: Bill,
) -> int | None:
    """Say what all stages together ask at most, by formula; return 0 to end a dry run.

    Raises:
        RagEvalError: for a user's mistake.
        OSError: when a file cannot be read.
    """
    prompt = PromptUnderTest.of(put)
    parameters_of(muts, mut_settings, requests)
    generation = Generation(
        prompt, out, model_from_option(model, "--model", requests, tell=lambda _: None),
        GenerateOptions.of(**asdict(settings)), scenarios=scenarios, tell=lambda _: None,
    )  # fmt: skip
    forecast = foresee_generation(generation, groundtruth=groundtruth is not None)
    tests = min(forecast.tests, which.max_tests or forecast.tests)
    metrics = find_metrics(prompt, judging.metric or [], more=[out])
    outputs = tests * len(muts) * which.runs
    judged = judged_requests(
        tests, models=len(muts), runs=which.runs, metrics=len(metrics), judges=len(judges)
    )
    lines = [
        bill.generation_words(forecast),
        f"run: at most {outputs:,} requests ({tests:,} tests, {len(muts)} models, {which.runs} "
        "repetitions)",
        f"evaluate: at most {judged:,} requests (each output for compliance and {len(metrics)} "
        f"metrics, by {len(judges)} judges)",
    ]
    more = forecast.tests * (judging.validity + 2 * (judging.agreement is not None))
    if more:
        lines.append(f"evaluate: at most {more:,} requests about the tests themselves")
    for line in lines:
        print_stderr(line)
    characters = len(prompt.text) + ASSUMED
    each = tests * which.runs
    bill.foresee("run, at most", [rough(name, each, len(prompt.text)) for name in muts])
    each = outputs * (1 + len(metrics))
    bill.foresee("evaluate, at most", [rough(name, each, characters) for name in judges])
    if not requests.dry_run:
        return None
    if forecast.exact:
        project = Project(out, lambda _: None)
        models = [model_under_test(name, "--mut", requests) for name in muts]
        parameters = parameters_of(muts, mut_settings, requests)
        bill.foresee("run, not recorded yet", foresee_run(project, models, which, parameters))
    stdout().print(NOTHING)
    return 0
