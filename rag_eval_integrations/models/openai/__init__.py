"""Models behind any OpenAI-compatible chat endpoint.

_bodies.py         CompletionRequest and the endpoint's capabilities ─▶ HTTP request body;
                   HTTP reply body ─▶ Completion
_failures.py       error reply ─▶ a `Lesson` about the endpoint, or one of our exceptions
_capabilities.py   what was learned about each (base_url, model)
model.py           `OpenAIModel`
_clients.py        one HTTP client per event loop, or a user's own; what no message, record or repr
                   may show
_address.py        checks of the URL; Azure's; why no connection could be made, in words
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.models.openai.model import OpenAIModel

__all__ = ["OpenAIModel"]

publish(__name__, __all__)
