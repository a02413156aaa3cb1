"""A FastAPI app that logs the scores of every query; the reply never waits for them.

For real traffic, run it with `uvicorn web_app:app`. As a script it asks itself one question,
offline: the retriever and the model are stand-ins for yours.
"""

import sys
from contextlib import asynccontextmanager

from fastapi import FastAPI
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from rag_eval_integrations import BackgroundEvaluator, Evaluation, RagEvaluator
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.sinks import CallbackSink, LoggingSink

MANUAL = [
    Document("Hold the blue button for eight seconds to reset it.", id="reset"),
    Document("It runs on two AA batteries for eighteen months.", id="power"),
]
retriever = RunnableLambda(lambda question: MANUAL)  # your retriever
model = FakeListChatModel(responses=["Hold the blue button for eight seconds."])  # your chat model
prompt = ChatPromptTemplate.from_template("Answer from {context}\n\nQuestion: {question}")
context = retriever | (lambda documents: "\n".join(doc.page_content for doc in documents))
chain = {"context": context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()


def show(evaluation: Evaluation) -> None:  # your metrics system
    for name, score in evaluation.scores.items():
        print(f"{evaluation.capture.metadata['path']} {name}: {score.value}", file=sys.stdout)


@asynccontextmanager
async def lifespan(app: FastAPI):
    # Also logs one line per query. When the app ends, pending calls are evaluated first.
    async with BackgroundEvaluator(RagEvaluator(), [LoggingSink(), CallbackSink(show)]) as scores:
        app.state.scores = scores
        app.state.handler = RagEvalCallbackHandler(scores)
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/ask")
async def ask(question: str) -> dict[str, str]:
    config = {"callbacks": [app.state.handler], "metadata": {"path": "/ask"}}
    return {"answer": await chain.ainvoke(question, config)}


@app.get("/scores")
def scores() -> dict[str, float | None]:
    summary = app.state.scores.summary()
    return {name: mean.mean for name in RagEvaluator().names if (mean := summary.mean(name))}


def main() -> None:
    from fastapi.testclient import TestClient  # noqa: PLC0415  # not part of the app

    with TestClient(app) as client:
        print(client.get("/ask", params={"question": "How do I reset it?"}).json()["answer"])
        app.state.scores.flush()
        print(client.get("/scores").json())


if __name__ == "__main__":
    main()
