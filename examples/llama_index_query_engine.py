"""Observe a query engine: every query becomes a `RagCall` to evaluate.

Runs offline: the model follows a script, and the embeddings are LlamaIndex's mock.
"""

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode

from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.llama_index import RagEvalHandler

ANSWERS = {
    "How do I reset the station?": "Hold the blue button for eight seconds. "
    "Professor Marwick patented this in 1987.",
}
nodes = [
    TextNode(id_="reset", text="Hold the blue button for eight seconds to reset it."),
    TextNode(id_="power", text="It runs on two AA batteries for eighteen months."),
]


class ScriptedLLM(CustomLLM):
    """Stands in for your model."""

    @property
    def metadata(self) -> LLMMetadata:
        """Name the model."""
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt, formatted=False, **kwargs):
        """Answer the question that the prompt ends with."""
        answers = (answer for question, answer in ANSWERS.items() if question in prompt)
        return CompletionResponse(text=next(answers, "I do not know."))

    def stream_complete(self, prompt, formatted=False, **kwargs):
        """Answer in one piece as well."""
        yield self.complete(prompt)


index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))  # your index
engine = RetrieverQueryEngine.from_args(index.as_retriever(), llm=ScriptedLLM())


def main() -> None:
    calls = []
    with RagEvalHandler(calls.append):
        engine.query("How do I reset the station?")

    for call in calls:
        evaluation = RagEvaluator().evaluate_sync(call)
        print([document.id for document in call.documents], call.response)
        for name, score in evaluation.scores.items():
            print(f"{name}: {score.value} ({score.reason})")


if __name__ == "__main__":
    main()
