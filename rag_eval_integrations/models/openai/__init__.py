"""Models behind any OpenAI-compatible chat endpoint.

_request.py        CompletionRequest and the endpoint's capabilities ─▶ HTTP request body
_reply.py          HTTP reply body ─▶ Completion
_failures.py       error reply ─▶ a `Lesson` about the endpoint, or one of our exceptions
_capabilities.py   what was learned about each (base_url, model)
model.py           `OpenAIModel`, and one HTTP client per event loop
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.models.openai._capabilities import Capabilities
from rag_eval_integrations.models.openai.model import OpenAIModel

__all__ = ["Capabilities", "OpenAIModel"]

publish(__name__, __all__)
