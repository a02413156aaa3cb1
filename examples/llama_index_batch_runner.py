"""Evaluate a query engine with LlamaIndex's own `BatchEvalRunner`: one request an item.

Runs offline: the embedded judge, LlamaIndex's mock model, and mock embeddings.
"""

import asyncio

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.llama_index import as_evaluators, results_table

NODES = [
    TextNode(id_="reset", text="Hold the blue button for eight seconds to reset it."),
    TextNode(id_="power", text="It runs on two AA batteries for eighteen months."),
]
QUESTIONS = ["How do I reset the station?", "How long do the batteries last?"]

index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=8))  # your index
engine = RetrieverQueryEngine.from_args(index.as_retriever(), llm=MockLLM())


async def main() -> None:
    evaluators = as_evaluators(RagEvaluator())  # with your own judge: RagEvaluator(judge)
    runner = BatchEvalRunner(evaluators, workers=8)
    results = await runner.aevaluate_queries(engine, queries=QUESTIONS)

    for row in results_table(results):  # an unscored item does not count as 0
        mean = "–" if row.mean is None else f"{row.mean:.2f}"
        print(f"{row.metric}: {mean} ({row.scored} of {row.n} scored)", *row.unscored.items())
    for result in results["adherence"]:
        print(result.query, result.passing, result.feedback)


if __name__ == "__main__":
    asyncio.run(main())
