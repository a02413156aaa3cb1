"""Any OpenAI-compatible chat endpoint as a judge, and the way of a question through it.

    request.py        CompletionRequest + what the endpoint can ─▶ body of the HTTP request
    clients.py        one HTTP client per event loop
    failures.py       error reply ─▶ what it teaches (`Lesson`), or one of our exceptions
    capabilities.py   what was learned about each (base_url, model)
    reply.py          body of the HTTP reply ─▶ Completion, with reasoning.py

`OpenAIModel` in judge.py joins them.
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.models.openai._capabilities import Capabilities
from rag_eval_integrations.models.openai.model import OpenAIModel

__all__ = ["Capabilities", "OpenAIModel"]

publish(__name__, __all__)
