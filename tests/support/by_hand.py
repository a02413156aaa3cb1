"""Records made by hand for tests: keyed calls, labels, a labeller that is told what to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_eval_integrations.judges._reconcile import reconcile
from rag_eval_integrations.metrics import Trace
from rag_eval_integrations.records import (
    By,
    JudgeInfo,
    Labelling,
    Labels,
    RagCall,
    Score,
    Sentence,
    Sentences,
    SentencizedCall,
    Usage,
)
from rag_eval_integrations.sentences._sentencize import letters


def keyed(
    documents: list[list[str]],
    response: list[str],
    *,
    question: str = "How do bees get through the winter?",
) -> SentencizedCall:
    """A call whose sentences are given, keyed as the library keys them."""
    texts = [" ".join(sentences) for sentences in documents]
    call = RagCall(question=question, documents=texts, response=" ".join(response))
    sentences = Sentences(
        documents=tuple(
            Sentence(f"{number}{letters(index)}", text)
            for number, document in enumerate(documents)
            for index, text in enumerate(document)
        ),
        response=tuple(Sentence(letters(index), text) for index, text in enumerate(response)),
    )
    return SentencizedCall(call=call, sentences=sentences, splitter="by hand")


class ScriptedJudge:
    """A judge that answers with given labels and counts how often it was asked."""

    name = "scripted"
    version = "1"

    def __init__(self, answer: Callable[[SentencizedCall], Labels] | Labels) -> None:
        self.answer = answer
        self.asked: list[SentencizedCall] = []

    async def label(self, call: SentencizedCall) -> Labelling:
        self.asked.append(call)
        labels = self.answer if isinstance(self.answer, Labels) else self.answer(call)
        return Labelling(
            labels=labels,
            judge=JudgeInfo(name=self.name, version=self.version),
            usage=Usage(requests=1, prompt_tokens=10, completion_tokens=5),
        )


def labels_of(
    relevant: list[str],
    utilized: list[str],
    support: Mapping[str, tuple[list[str], bool | None] | tuple[list[str], bool | None, str]],
    **more: object,
) -> Labels:
    """Labels by hand: response key → (supporting keys, fully supported), or with an explanation."""
    return Labels.model_validate(
        {
            "all_relevant_sentence_keys": relevant,
            "all_utilized_sentence_keys": utilized,
            "sentence_support_information": [
                {
                    "response_sentence_key": key,
                    "supporting_sentence_keys": keys,
                    "fully_supported": verdict,
                    "explanation": "".join(why),
                }
                for key, (keys, verdict, *why) in support.items()
            ],
            **more,
        }
    )


def scored(trace: Trace, call: SentencizedCall, labels: Labels) -> dict[str, Score]:
    """Scores of labels by name, reconciled first as the evaluator does."""
    labelling = Labelling(labels=reconcile(labels, call), judge=JudgeInfo(name="by hand"))
    return {score.name: score for score in trace.score(call, labelling, By(judge="by hand"))}
