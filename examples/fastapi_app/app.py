"""A FastAPI app whose calls a worker of its own judges: LangChain, spool, worker, page.

    uvicorn app:app --workers 2
    rag-eval worker --store evals.db --spool spool
    rag-eval store report --store evals.db -o quality.html --every 60

Each uvicorn process writes its calls to files in `spool`, in some 30 µs, and needs no judge, key or
thread for it. The worker may stop and start as it likes: no call is lost. The app serves the page
at /quality. Offline: the retriever and the model are stand-ins for yours.
"""

import os

from fastapi import FastAPI
from fastapi.responses import FileResponse
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from rag_eval_integrations import Spool
from rag_eval_integrations.langchain import RagEvalCallbackHandler

MANUAL = [
    Document("Hold the blue button for eight seconds to reset it.", id="reset"),
    Document("It runs on two AA batteries for eighteen months.", id="power"),
]
retriever = RunnableLambda(lambda question: MANUAL)  # your retriever
model = FakeListChatModel(responses=["Hold the blue button for eight seconds."])  # your chat model
prompt = ChatPromptTemplate.from_template("Answer from {context}\n\nQuestion: {question}")
context = retriever | (lambda documents: "\n".join(doc.page_content for doc in documents))
chain = {"context": context, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()

handler = RagEvalCallbackHandler(Spool(os.environ.get("RAG_EVAL_SPOOL", "spool")))
app = FastAPI()


@app.get("/ask")
async def ask(question: str) -> dict[str, str]:
    config = {"callbacks": [handler], "metadata": {"path": "/ask"}}
    return {"answer": await chain.ainvoke(question, config)}


@app.get("/quality")
def quality() -> FileResponse:
    return FileResponse(os.environ.get("RAG_EVAL_PAGE", "quality.html"), media_type="text/html")
