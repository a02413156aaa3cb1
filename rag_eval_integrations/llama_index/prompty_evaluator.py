"""A metric file as a LlamaIndex evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from llama_index.core.llms import LLM

from rag_eval_integrations.judges import Completer
from rag_eval_integrations.llama_index.evaluators import CompletionEvaluator
from rag_eval_integrations.llama_index.judge import LLMJudge
from rag_eval_integrations.metrics.prompty import Prompty, PromptyMetric


class PromptyEvaluator(CompletionEvaluator):
    """A `NAME.metric.prompty` file, asked of a model about each response.

    Args:
        prompt: the file.
        judge: the model; `openai:MODEL`, any `Completer`, or a LlamaIndex `LLM`.
        variables: values of the file's variables that a response does not give, such as `rules`.
        threshold: the score at which a response passes, in [0, 1].

    Raises:
        ConfigurationError: a file that is no prompt, or a judge that does not answer messages.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        prompt: str | Path | Prompty,
        judge: Completer | LLM | str,
        *,
        variables: Mapping[str, object] | None = None,
        threshold: float | None = None,
    ) -> None:
        asked = LLMJudge(judge) if isinstance(judge, LLM) else judge
        metric = PromptyMetric(prompt, variables=variables, judge=asked, threshold=threshold)
        super().__init__(metric, threshold=threshold)
