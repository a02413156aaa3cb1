"""Writer of `promptpex_context.json`, PromptPex's one file for everything; `files` reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import JsonValue

from rag_eval_integrations._target import read_whole
from rag_eval_integrations.metrics.prompty import Prompty, PromptyMetric
from rag_eval_integrations.prompt_tests import _workspace as files
from rag_eval_integrations.prompt_tests._replies import lines_in
from rag_eval_integrations.prompt_tests._stages import baseline_text
from rag_eval_integrations.prompt_tests.prompt import PromptUnderTest
from rag_eval_integrations.prompt_tests.records import (
    PromptTest,
    Result,
    RuleCheck,
    Spec,
    TestCheck,
)
from rag_eval_integrations.prompt_tests.upstream import (
    checks_to_rows,
    results_to_rows,
    rule_checks_to_rows,
    to_test_rows,
)
from rag_eval_integrations.records import whole_text

# --- What an export has to hand


@dataclass(frozen=True)
class Source:
    """Everything that a folder holds, as an export needs it."""

    prompt: PromptUnderTest
    spec: Spec
    tests: Sequence[PromptTest]
    results: Sequence[Result] = ()
    checks: Sequence[TestCheck] = ()
    rule_checks: Sequence[RuleCheck] = ()
    metrics: Sequence[PromptyMetric] = ()
    cut: int | None = None
    """Number of rules, and of inverse rules, that PromptPex numbered first; None for all."""
    model: str | None = None
    """The model that other tools run and ask; None for the prompt's own, or else gpt-4o."""
    notes: list[str] = field(default_factory=list)
    """Receives what the format cannot hold."""

    def values(self, test: PromptTest) -> dict[str, JsonValue]:
        """Return a test's values of all inputs, defaults and scenario included."""
        return self.prompt.values(test.inputs, self.prompt.parameters(test.scenario))

    def output(self, test: PromptTest) -> tuple[str, str]:
        """Return the expected output and who wrote it: `groundtruth`, `generator` or nobody."""
        if test.usable_groundtruth is not None:
            return test.usable_groundtruth, "groundtruth"
        return test.expected, "generator" if test.expected else ""

    def say_unchecked(self, what: str) -> None:
        """Note how many expected outputs are only the generator's words."""
        unchecked = sum(self.output(test)[1] != "groundtruth" for test in self.tests)
        if unchecked:
            self.notes.append(
                f"{what} of {unchecked} tests is what their generator expects, unchecked or empty; "
                "--groundtruth of `generate` writes checked ones"
            )


def as_text(value: object) -> str:
    """Write a cell or a variable: a text as it is, nothing as empty, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# --- The context


def to_context(source: Source) -> dict[str, Any]:
    """Write a folder as one PromptPexContext; a file that was not made has no `content`."""
    prompt, spec = source.prompt, source.spec
    tests = to_test_rows(source.tests)
    baseline = [test for test in source.tests if test.baseline]
    name, text = _prompty(prompt)
    most = max(len(spec.output_rules), len(spec.inverse_rules))
    texts = [rule.text for rule in spec.rules] + list(spec.input_spec)
    changed = sum(lines_in(text) != [text] for text in texts)
    if changed:
        source.notes.append(
            f"{changed} rules begin with the mark of a list or a comment, or are like a heading; "
            "readers of the file drop such marks"
        )
    return {
        "runId": f"rag-eval-{prompt.id}",
        "writeResults": True,
        "name": prompt.name,
        "frontmatter": _front_matter(prompt),
        "messages": [] if prompt.template is None else [
            {"role": message.role, "content": message.text} for message in prompt.template.messages
        ],
        "inputs": {
            input_.name: {"type": input_.type}
            | ({"description": input_.description} if input_.description else {})
            | ({"default": input_.default} if input_.default is not None else {})
            for input_ in prompt.inputs.values()
        },
        "prompt": {"filename": name, "content": text},
        "intent": _text(files.INTENT, spec.intent),
        "inputSpec": _text(files.INPUT_SPEC, spec.input_spec_text),
        "rules": _text(files.RULES, spec.rules_text),
        "inverseRules": _text(files.INVERSE_RULES, "\n".join(files.inverse_lines(spec))),
        "baselineTests": _text(files.BASELINE, baseline_text(baseline) if baseline else ""),
        "tests": _rows(files.TESTS, tests, always=True),
        "promptPexTests": tests,
        "testData": _rows("test_data.json", [_data(source, test) for test in source.tests]),
        "rateTests": {"filename": files.REVIEW},
        "testOutputs": _rows(files.RESULTS, results_to_rows(source.results)),
        "testEvals": _rows(files.TEST_EVALS, checks_to_rows(source.checks)),
        "ruleEvals": _rows(files.RULE_EVALS, rule_checks_to_rows(source.rule_checks, prompt.id)),
        "ruleCoverages": {"filename": "rule_coverage.json"},
        "baselineTestEvals": {"filename": "baseline_test_evals.json"},
        "metrics": _metrics(source),
        "testSamples": [dict(sample) for sample in prompt.samples],
        "versions": {"promptpex": "", "node": ""},
        "reuseResults": True,
        # Without a cut, a number that cuts nothing: PromptPex would take its own, which is 3.
        "options": {"maxRules": most if source.cut is None else source.cut},
    }  # fmt: skip


def _text(name: str, text: str) -> dict[str, str]:
    return {"filename": name, "content": f"{text.rstrip()}\n"} if text else {"filename": name}


def _rows(name: str, rows: list[dict[str, Any]], *, always: bool = False) -> dict[str, str]:
    if not rows and not always:
        return {"filename": name}
    return {"filename": name, "content": json.dumps(rows, ensure_ascii=True, indent=2)}


def _data(source: Source, test: PromptTest) -> dict[str, Any]:
    spec = source.spec
    parameters = {
        **source.values(test), "rules": spec.rules_text, "inputSpec": spec.input_spec_text,
        "intent": spec.intent,
    }  # fmt: skip
    return {"input": {"parameters": json.dumps(parameters)}, "output": []}


def _metrics(source: Source) -> list[dict[str, str]]:
    metric_files = []
    for metric in source.metrics:
        path = Path(metric.prompt.source)
        if path.is_file():
            metric_files.append({"filename": path.name, "content": _read(path)})
        else:
            source.notes.append(f"the metric {metric.name} has no file, and is left out")
    return metric_files


def _read(path: Path) -> str:
    return read_whole(path, "prompt").decode("utf-8-sig")


# --- The prompt as a .prompty file, which is all that PromptPex keeps in a context


def _prompty(prompt: PromptUnderTest) -> tuple[str, str]:
    """Return name and text of the prompt's file; one in another form is written anew."""
    path = Path(prompt.source)
    if path.suffix.lower() in (".prompty", ".md", ".txt") and path.is_file():
        return f"{path.stem}.prompty", _read(path)
    if prompt.template is None:
        return f"{prompt.name}.prompty", prompt.text
    return f"{prompt.name}.prompty", _written(prompt.template, _front_matter(prompt))


def _written(template: Prompty, head: dict[str, Any]) -> str:
    messages = "\n\n".join(f"{message.role}:\n{message.text}" for message in template.messages)
    plain = json.loads(whole_text(json.dumps(head, ensure_ascii=False)))
    front: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=10**9)
    return f"---\n{front}---\n{messages}\n"


def _front_matter(prompt: PromptUnderTest) -> dict[str, Any]:
    """Return the keys that PromptPex's closed schema of front matter knows."""
    template = prompt.template
    inputs = {
        input_.name: {"type": input_.type}
        | ({"description": input_.description} if input_.description else {})
        for input_ in prompt.inputs.values()
    }
    head: dict[str, Any] = {"name": prompt.name, "inputs": inputs}
    if template is not None and template.description:
        head["description"] = template.description
    if prompt.instructions:
        head["instructions"] = dict(prompt.instructions)
    if prompt.scenarios:
        head["scenarios"] = [
            {
                "name": scenario.name,
                "instructions": scenario.instructions,
                "parameters": dict(scenario.parameters),
            }
            for scenario in prompt.scenarios
        ]
    if prompt.samples:
        head["testSamples"] = [dict(sample) for sample in prompt.samples]
    return head
