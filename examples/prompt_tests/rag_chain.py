"""Test the prompt inside a RAG chain: the whole chain is the app under test.

    python examples/prompt_tests/rag_chain.py

The tests' questions go into the chain, and each answer comes back with the retrieved documents, so
that a metric file can insert {{contexts}}. Runs offline: retriever, model and judge are stand-ins
for yours.
"""

import json
from collections.abc import Callable

from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

from rag_eval_integrations.langchain.model import as_model_under_test
from rag_eval_integrations.metrics.prompty import PromptyMetric, parse_prompty
from rag_eval_integrations.models.completion import CompletionRequest
from rag_eval_integrations.prompt_tests import (
    PromptEvaluation,
    PromptTest,
    PromptUnderTest,
    Report,
    Rule,
    Spec,
    run_tests_sync,
)
from rag_eval_integrations.testing import ScriptedModel

SYSTEM = "Answer the question from these documents, in one sentence:\n{context}"


class Manual(BaseRetriever):
    """Your retriever."""

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
        return [Document(page_content="Hold the blue button for eight seconds to reset it.")]


def make_chain(model: FakeListChatModel) -> Runnable[str, str]:
    prompt = ChatPromptTemplate.from_messages([("system", SYSTEM), ("user", "{question}")])
    context = Manual() | (
        lambda documents: "\n".join(document.page_content for document in documents)
    )
    steps = {"context": context, "question": RunnablePassthrough()}
    return steps | prompt | model | StrOutputParser()


def app_of(make: Callable[[FakeListChatModel], Runnable[str, str]], answer: str) -> object:
    """One app for each model: the chain takes the question as text."""
    return as_model_under_test(make(FakeListChatModel(responses=[answer])), takes="text")


def judge(request: CompletionRequest) -> str:
    invented = "Marwick" in request.messages[-1].content
    if request.json_schema is not None:
        return json.dumps({"explanation": "as in the manual", "score": 40 if invented else 100})
    return "Two sentences.\nERR" if invented else "One sentence.\nOK"


def main() -> Report:
    put = PromptUnderTest.from_text(SYSTEM, inputs=["question"], name="manual", in_app=True)
    spec = Spec(rules=(Rule(id=1, text="The output is one sentence."),))
    test = PromptTest(uid="t1", rule_id=1, rule=spec.rules[0].text, inputs={"question": "Reset?"})
    metric = PromptyMetric(
        parse_prompty(
            "---\ntags: [scorer]\n---\nScore from 0 to 100 how far the documents say the answer.\n"
            "<DOCUMENTS>\n{{contexts}}\n</DOCUMENTS>\nuser:\n<OUTPUT>\n{{output}}\n</OUTPUT>",
            name="grounded",
        )
    )
    apps = {
        "short": app_of(make_chain, "Hold the blue button for eight seconds."),
        "long": app_of(make_chain, "Hold the blue button. Then call Professor Marwick."),
    }
    results = run_tests_sync(put, [test], apps)
    evaluation = PromptEvaluation(put, spec, [ScriptedModel(judge, name="judge")], [metric])
    return Report("manual", evaluation.outputs_sync(results), spec)


if __name__ == "__main__":
    report = main()
    for result in report.results:
        print(f"{result.model}: {result.output} (from {len(result.contexts)} document)")
    for row in report.overview():
        print(row)
