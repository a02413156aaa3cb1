"""Stage 1 without a framework: a block, a function or one line becomes a `RagCall`.

    with capture_call(target, question) as call:        # also `async with`
        call.documents = search(question)
        call.response = generate(question, call.documents)

    @capture_call(target)                               # also on `async def` and on generators
    def answer(question: str) -> str:
        current_call().documents = documents = search(question)
        return generate(question, documents)

    record_call(target, question=question, documents=documents, response=response)

The call is delivered once, when it has ended, in the thread of its end. The app's result, tokens
and exceptions stay as they are; what goes wrong here or in the target is logged and counted.

    functions ─▶ block | record_call ─▶ current (the call while it runs) ─▶ record ─▶ target

What the hosts' own captures share is here as well: `outlet` (where calls go, and what became of
them) and `retrieval` (a retriever that is captured where nothing else captures it).
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.capture._delivery import capture_failures
from rag_eval_integrations.capture.block import capture_call
from rag_eval_integrations.capture.current import CallInProgress, current_call
from rag_eval_integrations.capture.record import record_call

__all__ = ["CallInProgress", "capture_call", "capture_failures", "current_call", "record_call"]

publish(__name__, __all__)
