"""A metric file as an evaluator object of LangSmith and openevals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from rag_eval_integrations.judges import Completer
from rag_eval_integrations.langchain.evaluators.metrics import CompletionEvaluator
from rag_eval_integrations.langchain.judge import ChatModelJudge
from rag_eval_integrations.metrics.prompty import Prompty, PromptyMetric


class PromptyEvaluator(CompletionEvaluator):
    """A `NAME.metric.prompty` file, asked of a model about each call.

    Args:
        prompt: the file.
        judge: the model; `openai:MODEL`, any `Completer`, or a LangChain chat model.
        variables: values of the file's variables that a call does not give, such as `rules`.
        threshold: least value that passes, in [0, 1].

    Raises:
        ConfigurationError: a file that is no prompt, or a judge that does not answer messages.
        OSError: the file cannot be read.
    """

    def __init__(
        self,
        prompt: str | Path | Prompty,
        judge: Completer | BaseChatModel | str,
        *,
        variables: Mapping[str, object] | None = None,
        threshold: float | None = None,
    ) -> None:
        asked = ChatModelJudge(judge) if isinstance(judge, BaseChatModel) else judge
        metric = PromptyMetric(prompt, variables=variables, judge=asked, threshold=threshold)
        super().__init__(metric, threshold=threshold)
