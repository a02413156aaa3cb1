"""docs/testing.md: its tests pass, and its message is the one that is printed."""

from __future__ import annotations

import re

import pytest
from pages import text_of
from pytest_runs import PLUGIN, alone

from rag_eval_integrations import RagCall, RagEvaluator
from rag_eval_integrations.testing import assert_scores

pytest_plugins = "pytester"

PAGE = text_of("docs/testing.md")
ASSERTION, PYTEST, UNITTEST, CONFTEST = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


def test_its_tests_pass(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fixture of its conftest.py, and its command's options."""
    alone(monkeypatch, pytester.path)
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_assertion=ASSERTION, test_pytest=PYTEST, test_unittest=UNITTEST)
    (options,) = re.findall(r"^- run: pytest (.*)$", PAGE, re.M)

    result = pytester.runpytest_inprocess("-p", PLUGIN, "--strict-markers", *options.split())

    result.assert_outcomes(passed=6)
    assert (pytester.path / "evals.jsonl").read_text().count("\n") == 6


def test_its_message_is_the_librarys() -> None:
    """Line by line, as far as it is shown."""
    (shown,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.M | re.S)
    document = "The ferry leaves at nine. It carries forty passengers."
    answer = "The ferry leaves at nine. It is painted green."
    call = RagCall("When does the ferry leave?", [document], answer)
    with pytest.raises(AssertionError) as failed:
        assert_scores(RagEvaluator().evaluate_sync(call), adherence=1.0)

    printed = str(failed.value).splitlines()
    for line, real in zip(shown.splitlines(), printed, strict=False):
        assert real.startswith(re.sub(r"\(id \w+,.*|…$", "", line))
