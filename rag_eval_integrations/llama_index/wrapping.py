"""What wrappers of LlamaIndex objects have in common: they behave as what they wrap.

They open no spans and send no events of their own: to LlamaIndex, and to whoever traces it, the
wrapped object is called directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptDictType, PromptMixinType
from llama_index_instrumentation.dispatcher import DISPATCHER_SPAN_DECORATED_ATTR

M = TypeVar("M", bound=Callable[..., Any])


def no_span(method: M) -> M:
    """Keep LlamaIndex from making a span of an overridden method: the wrapped one makes its own."""
    setattr(method, DISPATCHER_SPAN_DECORATED_ATTR, True)
    return method


class Wrapper:
    """What both wrappers pass on: prompts, callbacks, and whatever the base classes lack."""

    _wrapped: Any

    def __getattr__(self, name: str) -> Any:
        if name == "_wrapped" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)  # while it is being copied or unpickled, nothing is wrapped
        return getattr(self._wrapped, name)

    @property
    def callback_manager(self) -> CallbackManager:
        """The wrapped object's."""
        manager: CallbackManager = self._wrapped.callback_manager
        return manager

    @callback_manager.setter
    def callback_manager(self, manager: CallbackManager) -> None:
        self._wrapped.callback_manager = manager

    def _get_prompts(self) -> PromptDictType:
        prompts: PromptDictType = self._wrapped._get_prompts()
        return prompts

    def _get_prompt_modules(self) -> PromptMixinType:
        modules: PromptMixinType = self._wrapped._get_prompt_modules()
        return modules

    def _update_prompts(self, prompts: PromptDictType) -> None:
        self._wrapped._update_prompts(prompts)
