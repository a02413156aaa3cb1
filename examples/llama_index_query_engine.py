"""Observe a query engine: every query becomes a `RagCall` to evaluate.

Runs offline: LlamaIndex's mock model repeats its prompt, and the retriever is a stand-in.
"""

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode

from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.llama_index import RagEvalHandler

nodes = [
    TextNode(id_="reset", text="Hold the blue button for eight seconds to reset it."),
    TextNode(id_="power", text="It runs on two AA batteries for eighteen months."),
]
index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))  # your index
engine = RetrieverQueryEngine.from_args(index.as_retriever(), llm=MockLLM(max_tokens=40))


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
