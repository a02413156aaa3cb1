"""Stage 1 for LangChain, by wrapping: a runnable that is captured wherever it is called."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig

from rag_eval_integrations.capture.outlet import Captures, Outlet
from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.langchain.handler import RagEvalCallbackHandler


class EvaluatedRunnable(Captures, RunnableBinding[Any, Any]):
    """A runnable with a `RagEvalCallbackHandler` bound to it; made by `evaluated`.

    Everything else is the runnable's own: its methods, its name, its attributes, its schemas. What
    `bind`, `with_config`, `with_types`, `with_listeners` and `with_retry` make of it is captured,
    too, by the same handler.
    """

    def __init__(self, *, bound: Runnable[Any, Any], **settings: Any) -> None:
        # `get_name()` is the bound runnable's already; `.name` would be None.
        super().__init__(bound=bound, **{"name": getattr(bound, "name", None), **settings})

    @property
    def handler(self) -> RagEvalCallbackHandler:
        """What captures: its counters say what is in flight, was dropped or failed."""
        return next(one.handler for one in self.config_factories if isinstance(one, _WithHandler))

    @property
    def _outlet(self) -> Outlet:
        return self.handler._outlet

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """LangChain cannot write a handler down, as it cannot write down a function."""
        return False


class _WithHandler:
    """Adds the handler to a call's config.

    As a factory and not as bound config: bound callbacks hide those of the runnable around it, so
    that its stream of events, or a tracer's tree, would end here (measured on 1.7.2); and
    `with_config(callbacks=…)` replaces them.
    """

    def __init__(self, handler: RagEvalCallbackHandler) -> None:
        self.handler = handler

    def __call__(self, config: RunnableConfig) -> RunnableConfig:
        given = config.get("callbacks")
        there = given if isinstance(given, list) else getattr(given, "handlers", ())
        return {} if self.handler in there else {"callbacks": [self.handler]}


def evaluated(runnable: Runnable[Any, Any], target: Any, **options: Any) -> EvaluatedRunnable:
    """Wrap a runnable so that every RAG call through it is captured.

    Results, streams, events and errors are those of the runnable itself; the wrapper can be part
    of a larger runnable, where it captures its own part. Calls that a handler of the app's own
    sees are captured by that one as well.

    Args:
        runnable: a chain, an agent, a graph. A bare retriever is no RAG call: for one, use
            `EvaluatedRetriever`.
        target: a callable that takes a `RagCall`, a `BackgroundEvaluator`, or a `RagEvaluator`,
            which is then run in the background: see `flush` and `evaluations`.
        **options: the other arguments of `RagEvalCallbackHandler`.

    Raises:
        ConfigurationError: `runnable` is none, or an argument of the handler cannot be used.
    """
    if not isinstance(runnable, Runnable):
        raise ConfigurationError(
            "runnable", runnable, "should be a runnable; capture a function with `capture_call`"
        )
    handler = RagEvalCallbackHandler(target, **options)
    return EvaluatedRunnable(bound=runnable, config_factories=[_WithHandler(handler)])
