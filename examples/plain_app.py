"""Capture an app without a framework, by a block or a decorator, and evaluate its calls.

Runs offline: keyword search stands in for your retriever, and the best hit for your model.
"""

from rag_eval_integrations.capture import capture_call, current_call
from rag_eval_integrations.evaluator import RagEvaluator
from rag_eval_integrations.records import RagCall

MANUAL = {
    "reset": "Hold the blue button for eight seconds to reset the station.",
    "power": "The station runs on two AA batteries. They last for eighteen months.",
    "mount": "Mount the sensor two metres above grass. Keep it away from walls.",
}
calls: list[RagCall] = []  # stands in for your queue; the target is called with each record


def search(question: str, k: int = 2) -> list[dict[str, str]]:
    words = set(question.lower().strip("?").split())
    ranked = sorted(MANUAL, key=lambda id: -len(words & set(MANUAL[id].lower().split())))
    return [{"id": id, "text": MANUAL[id]} for id in ranked[:k]]


@capture_call(calls.append)  # question: the first argument; response: the returned value
def answer(question: str) -> str:
    documents = current_call().documents = search(question)
    return documents[0]["text"]


def main() -> None:
    print(answer("How do I reset the station?"))

    question = "How long do the batteries of the station last?"
    with capture_call(calls.append, question) as call:
        call.documents = search(question)
        call.response = "They last for eighteen months. Professor Marwick patented them in 1987."

    for record in calls:
        print(record.question, [document.id for document in record.documents])
        for name, score in RagEvaluator().evaluate_sync(record).scores.items():
            print(f"{name}: {score.value} ({score.reason})")


if __name__ == "__main__":
    main()
