r"""Test a prompt end to end: rules and tests from it, two models, compliance and a metric file.

    python examples/prompt_tests/help_desk/run.py

Runs offline: generator, models and judge are stand-ins for yours (`scripted.py`). With your own
models, the same run is

    rag-eval prompt-tests all urgency.prompty -o tests --model openai:gpt-4o-mini \
        --mut openai:gpt-4o-mini --mut openai:gpt-4o --judge openai:gpt-4o
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import scripted  # noqa: E402

from rag_eval_integrations.metrics.prompty import discover_metrics  # noqa: E402
from rag_eval_integrations.prompt_tests import (  # noqa: E402
    GenerateOptions,
    Generation,
    PromptEvaluation,
    Report,
    run_tests_sync,
)


def main(folder: Path) -> Report:
    prompt = HERE / "urgency.prompty"
    options = GenerateOptions(tests_per_rule=1, rules_per_group=4, baseline=False)

    generation = Generation(prompt, folder, scripted.generator, options)
    tests = generation.run()
    spec = generation.workspace.spec()
    results = run_tests_sync(prompt, tests, [scripted.terse, scripted.talkative])
    evaluation = PromptEvaluation(prompt, spec, [scripted.judge], discover_metrics(HERE))
    return Report("urgency", evaluation.outputs_sync(results), spec)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        report = main(Path(folder))
        print(*sorted(path.name for path in Path(folder).iterdir()))
    for row in report.overview():
        print(row)
    for failure in report.failures():
        print(f"{failure.model}: {failure.input} → {failure.output}: {failure.reason}")
