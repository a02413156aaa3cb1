"""Stage 1 without a framework: capture a block, a function or one line as a `RagCall`.

    with capture_call(target, question) as call:        # also `async with`
        call.documents = search(question)
        call.response = generate(question, call.documents)

    @capture_call(target)                               # also `async def` and generators
    def answer(question: str) -> str:
        current_call().documents = documents = search(question)
        return generate(question, documents)

    record_call(target, question=question, documents=documents, response=response)

The call is delivered once, when it ends, in the thread in which it ends. The app's results, tokens
and exceptions are passed on unchanged; a failure of the capture or the target is logged and
counted, and never reaches the app.

    block (`capture_call`) ─▶ record (the call while it runs, and its `RagCall`) ─▶ target

The private modules hold the code that the LangChain and LlamaIndex captures share: `_calls`
(snapshots of documents), `_prompts` (documents found in a prompt), `_delivery` (the way to the
target), `_retrieval` (a retriever outside of any captured call).
"""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.capture._delivery import capture_failures
from rag_eval_integrations.capture.block import capture_call
from rag_eval_integrations.capture.record import current_call, record_call

__all__ = ["capture_call", "capture_failures", "current_call", "record_call"]

publish(__name__, __all__)
