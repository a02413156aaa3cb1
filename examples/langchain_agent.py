"""Wrap an agent that searches with a retriever tool, and score the documents that it read.

Runs offline: the retriever is a keyword search, and the model follows a script.
"""

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.langchain import evaluated

MANUAL = [
    Document("Hold the blue button for eight seconds to reset the station.", id="reset"),
    Document("The station runs on two AA batteries for eighteen months.", id="power"),
    Document("Mount the sensor two metres above grass.", id="mount"),
]


class Manual(BaseRetriever):
    """Your retriever."""

    def _get_relevant_documents(self, query, *, run_manager):
        words = set(query.lower().split())
        return [page for page in MANUAL if words & set(page.page_content.lower().split())]


class Scripted(FakeMessagesListChatModel):
    """Your chat model."""

    def bind_tools(self, tools, **kwargs):
        """Take the tools; the script knows when to call them."""
        return self


model = Scripted(
    responses=[
        AIMessage("", tool_calls=[{"name": "manual", "args": {"query": "batteries"}, "id": "1"}]),
        AIMessage("The station runs on two AA batteries. They last for eighteen months."),
    ]
)
search = create_retriever_tool(Manual(), "manual", "Searches the manual of the weather station.")
agent = evaluated(create_agent(model, [search]), RagEvaluator())  # behaves as the agent does


def main() -> None:
    state = agent.invoke({"messages": [("user", "What does the station run on?")]})
    print(state["messages"][-1].text)

    agent.flush()
    for evaluation in agent.evaluations:
        print(evaluation.question, evaluation.document_ids)
        for name, score in evaluation.scores.items():
            print(f"{name}: {score.value} ({score.reason})")


if __name__ == "__main__":
    main()
