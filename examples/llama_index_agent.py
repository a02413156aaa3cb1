"""Evaluate an agent whose tool is a query engine: the agent's whole run is one call.

Runs offline: the model follows a script, and the embeddings are LlamaIndex's mock.
"""

import asyncio

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TextNode
from llama_index.core.tools import QueryEngineTool

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.llama_index import RagEvalHandler

NODES = [
    TextNode(id_="reset", text="Hold the blue button for eight seconds to reset it."),
    TextNode(id_="power", text="It runs on two AA batteries for eighteen months."),
]
SCRIPT = [
    'Thought: I need the manual.\nAction: manual\nAction Input: {"input": "reset the station"}',
    "Hold the blue button for eight seconds.",
    "Thought: I can answer.\nAnswer: Hold the blue button for eight seconds. "
    "Professor Marwick patented this in 1987.",
]


class ScriptedLLM(CustomLLM):
    """Stands in for your model."""

    said: int = 0

    @property
    def metadata(self) -> LLMMetadata:
        """Name the model."""
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt, formatted=False, **kwargs):
        """Answer in one piece."""
        self.said += 1
        return CompletionResponse(text=SCRIPT[self.said - 1])

    def stream_complete(self, prompt, formatted=False, **kwargs):
        """Answer as a stream."""
        text = self.complete(prompt).text
        yield CompletionResponse(text=text, delta=text)


llm = ScriptedLLM()
index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=8))  # your index
engine = RetrieverQueryEngine.from_args(index.as_retriever(), llm=llm)
manual = QueryEngineTool.from_defaults(engine, name="manual", description="The station's manual.")
agent = ReActAgent(tools=[manual], llm=llm)


async def main() -> None:
    memory = ChatMemoryBuffer.from_defaults(token_limit=1000, tokenizer_fn=str.split)
    with RagEvalHandler(RagEvaluator()) as handler:
        print(await agent.run("How do I reset the station?", memory=memory))

    await asyncio.to_thread(handler.flush)  # the evaluations run in the background
    for evaluation in handler.evaluations:
        print(evaluation.question, evaluation.document_ids)
        for name, score in evaluation.scores.items():
            print(f"{name}: {score.value} ({score.reason})")


if __name__ == "__main__":
    asyncio.run(main())
