"""Attach an evaluator to a streaming chat engine; it scores every turn after its stream.

Runs offline: the model follows a script, and the embeddings are LlamaIndex's mock.
"""

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.schema import TextNode

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.llama_index import RagEvalHandler

NODES = [
    TextNode(id_="reset", text="Hold the blue button for eight seconds to reset it."),
    TextNode(id_="power", text="It runs on two AA batteries for eighteen months."),
]
ANSWER = "Hold the blue button for eight seconds. Professor Marwick patented this in 1987."


class ScriptedLLM(CustomLLM):
    """Stands in for your model."""

    @property
    def metadata(self) -> LLMMetadata:
        """Name the model."""
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt, formatted=False, **kwargs):
        """Answer in one piece."""
        return CompletionResponse(text=ANSWER)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        """Answer as a stream."""
        words = ANSWER.split(" ")
        for number, word in enumerate(words):
            text = " ".join(words[: number + 1])
            yield CompletionResponse(text=text, delta=word if number == 0 else f" {word}")


index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=8))  # your index
chat = ContextChatEngine.from_defaults(
    retriever=index.as_retriever(),
    llm=ScriptedLLM(),
    memory=ChatMemoryBuffer.from_defaults(token_limit=1000, tokenizer_fn=str.split),
)


def main() -> None:
    with RagEvalHandler(RagEvaluator()) as handler:
        for token in chat.stream_chat("How do I reset the station?").response_gen:
            print(token, end="", flush=True)  # as it comes: no token is held back
        print()

        handler.flush()
        for evaluation in handler.evaluations:
            for name, score in evaluation.scores.items():
                print(f"{name}: {score.value} ({score.reason})")


if __name__ == "__main__":
    main()
