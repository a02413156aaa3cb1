"""Stage 1, plain code that calls LangChain's parts one by one: a `with` block as the call's root.

Without it, a retriever and a model that are called one after the other are two roots that nothing
connects. LangChain's own `trace_as_chain_group` fires no event unless LangSmith's tracing is on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler


class CallInBlock:
    """The call that a `with` block makes."""

    def __init__(self) -> None:
        self.response: str | None = None
        """The app's answer; where the block does not set it, what the last model wrote."""


@contextmanager
def root_of_block(
    handler: BaseCallbackHandler,
    question: str,
    name: str,
    tags: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Iterator[CallInBlock]:
    """Make everything that LangChain runs inside a part of one call."""
    # Loaded by whatever runs inside, and too heavy for an app that never does.
    from langchain_core.callbacks import CallbackManager  # noqa: PLC0415
    from langchain_core.runnables.config import var_child_runnable_config  # noqa: PLC0415

    manager = CallbackManager.configure(
        inheritable_callbacks=[handler],
        inheritable_tags=list(tags),
        inheritable_metadata=dict(metadata or {}),
    )
    run = manager.on_chain_start({}, {"question": question}, name=name)
    call = CallInBlock()
    token = var_child_runnable_config.set({"callbacks": run.get_child()})
    try:
        yield call
    except BaseException as error:
        run.on_chain_error(error)
        raise
    else:
        run.on_chain_end({} if call.response is None else {"answer": call.response})
    finally:
        var_child_runnable_config.reset(token)
