"""A metric file as an evaluator object of LangSmith and openevals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rag_eval_integrations.judges import Completer
from rag_eval_integrations.langchain.evaluators import GEvalEvaluator
from rag_eval_integrations.metrics.prompty import Prompty, PromptyMetric


class PromptyEvaluator(GEvalEvaluator):
    """A `NAME.metric.prompty` file, asked of a model about each call.

    Args:
        prompt: the file.
        judge: the model; `openai:MODEL` or any `Completer`.
        variables: values of the file's variables that a call does not give, such as `rules`.
        threshold: least value that passes, in [0, 1].

    Raises:
        ConfigurationError: a file that is no prompt, or a judge that does not answer messages.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        prompt: str | Path | Prompty,
        judge: Completer | str,
        *,
        variables: Mapping[str, object] | None = None,
        threshold: float | None = None,
    ) -> None:
        metric = PromptyMetric(prompt, variables=variables, judge=judge, threshold=threshold)
        super().__init__(metric, threshold=threshold)
