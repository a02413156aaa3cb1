"""Run a LangGraph graph on a few questions and evaluate each call; nothing leaves the machine.

Its node searches a vector store directly, so that no retriever event reports the documents. Runs
offline: the embedding counts words, and the model repeats the best page.
"""

from typing import TypedDict

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, StateGraph

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.langchain import evaluate_dataset

MANUAL = {
    "reset": "Hold the blue button for eight seconds to reset the station.",
    "power": "The station runs on two AA batteries for eighteen months.",
    "mount": "Mount the sensor two metres above grass.",
}
WORDS = sorted({word for page in MANUAL.values() for word in page.lower().strip(".").split()})


class WordCounts(Embeddings):
    """Your embedding."""

    def embed_documents(self, texts):
        """Count the words of each text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        """Count the words of a text."""
        words = text.lower().strip(".?").split()
        return [0.01 + words.count(word) for word in WORDS]


store = InMemoryVectorStore(WordCounts())
store.add_documents([Document(text, id=name) for name, text in MANUAL.items()])
model = RunnableLambda(lambda prompt: prompt.splitlines()[0])  # your chat model


class State(TypedDict, total=False):
    """State that the nodes pass on."""

    question: str
    context: list[Document]
    answer: str


def find(state: State) -> State:
    return {"context": store.similarity_search(state["question"], k=2)}


def write(state: State) -> State:
    context = "\n".join(page.page_content for page in state["context"])
    return {"answer": model.invoke(f"{context}\nQuestion: {state['question']}")}


builder = StateGraph(State)
builder.add_node("find", find)
builder.add_node("write", write)
builder.add_edge(START, "find")
builder.add_edge("find", "write")
builder.add_edge("write", END)
graph = builder.compile()

EXAMPLES = [
    {"inputs": {"question": "How do I reset the station?"}, "reference": "The blue button."},
    {"inputs": {"question": "How long do two AA batteries last?"}, "reference": "18 months."},
]


def main() -> None:
    for evaluation in evaluate_dataset(graph, EXAMPLES, RagEvaluator()):
        print(evaluation.question, "→", evaluation.response)
        for name, score in evaluation.scores.items():
            print(f"{name}: {score.value} ({score.reason})")


if __name__ == "__main__":
    main()
