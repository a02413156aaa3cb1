"""Usual mistakes in Python: each raises where it is made, in one line that says what to do.

Those of the command line are in `cli/test_mistakes.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rag_eval_integrations
from rag_eval_integrations import (
    RagCall,
    RagEvaluator,
    dataset,
    judges,
    langchain,
    metrics,
    models,
    sinks,
    store,
    testing,
)
from rag_eval_integrations.errors import RagEvalError

CALL = RagCall("When?", ["It leaves at nine."], "It leaves at nine.")
NAMES = {
    "handlers": langchain,
    **{name: getattr(module, name) for module in (
        rag_eval_integrations, dataset, judges, metrics, models, sinks, store, testing
    ) for name in dir(module)},
}  # fmt: skip
"""What a user imports."""

MISTAKES = {
    # Judges
    'RagEvaluator("gpt-4o")': "`judge` = 'gpt-4o': no such judge; did you mean 'openai:gpt-4o'?",
    'RagEvaluator("openai/gpt-4o")': "did you mean 'openai:gpt-4o'?",
    'RagEvaluator("Embedded")': "did you mean 'embedded'?",
    'RagEvaluator("faithfulness")': "as a score, `supported_fraction` is nearest to it",
    "RagEvaluator(3)": "`judge` = 3",
    'LLMJudge("gpt-4o")': "`model` = 'gpt-4o': needs a `name` and `async complete",
    'LLMJudge(OpenAIModel("m", api_key="k"), explanations="some")': "`explanations` = 'some'",
    'CascadeJudge(RagEvaluator(), "embedded")': "RagEvaluator",
    'OpenAIModel("")': "should name a model, as in 'gpt-4o-mini'",
    'OpenAIModel("gpt-4o")': "no API key: set the environment variable OPENAI_API_KEY",
    'OpenAIModel("m", base_url="localhost:8000")': "should begin with http:// or https://",
    'OpenAIModel("m", api_key="k", timeout=0)': "`timeout` = 0",
    'OpenAIModel("m", api_key="k", max_tokens=0)': "`max_tokens` = 0",
    'CachedModel("gpt-4o", "c.sqlite")': "`model` = 'gpt-4o': needs a `name` and `async complete",
    # Metrics
    'RagEvaluator(metrics=["faithfulness"])': "`supported_fraction` is nearest to it",
    'RagEvaluator(metrics="trace")': "use a list, as in ['trace']",
    'RagEvaluator(metrics=["retrieval", "retrieval"])': "two metrics",
    'Trace(formulas="paper")': "use one of gpt-labeling, ragbench",
    "Retrieval(k=[0])": "use whole numbers from 1",
    'GEval("fluent")': "`criteria` = None: give criteria, or steps",
    'GEval("fluent", "Is it?", scale=(5, 1))': "use integers with 0 <= lowest < highest",
    'GEval("fluent", "Is it?", steps=["look"])': "give criteria or steps, not both",
    # Calls
    'RagCall("q", "a text", "a")': "should be a list of documents, not 'a text'",
    'RagCall("q", None, "a")': "should be a list of documents, not None",
    'RagCall(None, ["d"], "a")': "field `question`",
    'RagCall("q", ["d"], 3)': "field `response`",
    'RagCall("q", [None], "a")': "should be a string, a Document, a LangChain document or a",
    'RagCall("q", [{"content": "x"}], "a")': "write `documents[0].content` as `documents[0].text`",
    'RagCall(query="q", contexts=["d"], response="a")': "write `query` as `question`",
    'RagCall("q", ["d"], "a", history=["hello"])': "field `history[0]`",
    'RagCall("q", ["d"], "a", earlier=[3])': "should be numbers of the 1 documents",
    'RagEvaluator().evaluate_sync({"question": "q"})': "should be a RagCall, not dict",
    # Results
    'evaluation.scores["faithfulness"]': "`supported_fraction` is nearest to it",
    "assert_scores([], adherence=1)": "there is no evaluation",
    "assert_scores([evaluation], truth=1)": "truth",
    'Evaluations(["a line"])': "line",
    # Files and stores
    'list(read_calls("none.jsonl"))': "none.jsonl: no such file or directory",
    'Calibration.read("none.json")': "none.json: no such file or directory",
    'Evaluations.load("none.jsonl")': "none.jsonl: no such file or directory",
    'Evaluations([evaluation]).report("x.xlsx")': ".xlsx",
    "Spool(3)": "`folder` = 3",
    "JsonlSink(3)": "`path` = 3",
    'Store("postgres://a@b/c")': "use a path, sqlite:///PATH or postgresql://USER@HOST/NAME",
    'Store("host=db dbname=x")': "is libpq's form; use postgresql://USER@HOST/NAME",
    # Apps
    "BackgroundEvaluator(RagEvaluator(), sinks=[print])": "print",
    'capture_call("nobody").__enter__()': "nobody",
    'handlers.RagEvalCallbackHandler("gpt-4o")': "did you mean 'openai:gpt-4o'?",
    "handlers.RagEvalCallbackHandler(3)": "use a judge's name, a RagEvaluator or a function",
    'handlers.RagEvalCallbackHandler("embedded", documents=3)': "should be a plain function",
    "handlers.RagEvalCallbackHandler(print, on_evaluation=print)": "needs a RagEvaluator as target",
    'handlers.TraceEvaluator(metric="faithfulness")': "is not a TRACe score; use one of",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_is_told_in_a_line(
    mistake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the name of what is wrong, and what to use in its place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    evaluation = RagEvaluator().evaluate_sync(CALL)

    with pytest.raises(Exception, match=re.escape(MISTAKES[mistake])) as told:
        eval(mistake, NAMES, {"evaluation": evaluation})

    assert isinstance(told.value, RagEvalError | OSError | AssertionError | KeyError)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 300
    assert list(tmp_path.iterdir()) == []
