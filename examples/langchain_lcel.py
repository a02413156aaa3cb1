"""Attach an evaluator to an LCEL chain; it scores every call in the background.

Runs offline: the retriever and the model are stand-ins for yours.
"""

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from rag_eval_integrations import RagEvaluator
from rag_eval_integrations.langchain import RagEvalCallbackHandler

MANUAL = [
    Document(id="reset", page_content="Hold the blue button for eight seconds to reset it."),
    Document(id="power", page_content="It runs on two AA batteries for eighteen months."),
]
ANSWER = (
    "Hold the blue button for eight seconds to reset it. Professor Marwick patented this in 1987."
)

retriever = RunnableLambda(lambda question: MANUAL)  # your retriever
model = FakeListChatModel(responses=[ANSWER])  # your chat model
prompt = ChatPromptTemplate.from_template("Answer from {context}\n\nQuestion: {question}")
context = retriever | (lambda documents: "\n".join(doc.page_content for doc in documents))
chain = {"context": context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def main() -> None:
    handler = RagEvalCallbackHandler(RagEvaluator())
    print(chain.invoke("How do I reset the station?", config={"callbacks": [handler]}))
    handler.flush()

    for evaluation in handler.evaluations:
        for name, score in evaluation.scores.items():
            print(f"{name}: {score.value} ({score.reason})")


if __name__ == "__main__":
    main()
