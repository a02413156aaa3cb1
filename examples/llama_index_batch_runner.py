"""Evaluate a query engine with LlamaIndex's own `BatchEvalRunner`: one request an item.

Runs offline: the embedded judge, a model that follows a script, and mock embeddings.
"""

import asyncio

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.evaluation import BatchEvalRunner
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.llama_index import as_evaluators, results_table

NODES = [
    TextNode(id_="reset", text="Hold the blue button for eight seconds to reset it."),
    TextNode(id_="power", text="It runs on two AA batteries for eighteen months."),
]
ANSWERS = {
    "How do I reset the station?": "Hold the blue button for eight seconds.",
    "How long do the batteries last?": "It runs on two AA batteries for eighteen months. "
    "They were invented in Geneva.",
}


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


index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=8))  # your index
engine = RetrieverQueryEngine.from_args(index.as_retriever(), llm=ScriptedLLM())


async def main() -> None:
    evaluators = as_evaluators(RagEvaluator())  # with your own judge: RagEvaluator(judge)
    runner = BatchEvalRunner(evaluators, workers=8)
    results = await runner.aevaluate_queries(engine, queries=list(ANSWERS))

    for row in results_table(results):  # an unscored item does not count as 0
        mean = "–" if row.mean is None else f"{row.mean:.2f}"
        print(f"{row.metric}: {mean} ({row.scored} of {row.n} scored)", *row.unscored.items())
    for result in results["adherence"]:
        print(result.query, result.passing, result.feedback)


if __name__ == "__main__":
    asyncio.run(main())
