"""Citations change no score, whoever judges: markers are joined, lists of sources are no claims."""

from __future__ import annotations

import json
import re

import pytest

from rag_eval_integrations import CascadeJudge, Evaluation, RagCall, RagEvaluator
from rag_eval_integrations.judges import Judge, LLMJudge
from rag_eval_integrations.metrics import ContextRecall, Trace
from rag_eval_integrations.models.completion import CompletionRequest, Message
from rag_eval_integrations.testing import ScriptedModel

DOCUMENTS = ("The ferry leaves at nine.", "It carries forty passengers.")
QUESTION = "When does the ferry leave?"
LISTS = (
    "\n\nSources:\n[1] timetable.pdf\n[2] boats.pdf",
    "\n\n## References\n1. Ferry timetable\n2. Boats of the lake",
    "\nSOURCES: timetable.pdf, boats.pdf",
    "\n\n1. https://ferry.example/timetable\n2. https://boats.example/",
)
ANSWERS = [
    ("The ferry leaves at nine [1]. A king painted it gold in 1850 [2].", 0.5),
    ("The ferry leaves at nine. [1] A king painted it gold in 1850. [2]", 0.5),
    ("The ferry leaves at nine.¹ A king painted it gold in 1850.²", 0.5),
    ("The ferry leaves at nine.【1】 A king painted it gold in 1850.【2】", 0.5),
    ("The ferry leaves at nine.[^1] A king painted it gold in 1850.[^2]", 0.5),
    ("The ferry leaves at nine. (Source: timetable.pdf) It carries forty passengers. (Source: boats.pdf)", 1.0),
    *[(f"The ferry leaves at nine [1].{sources}", 1.0) for sources in LISTS],
    *[(f"The ferry leaves at nine. A king painted it gold in 1850.{sources}", 0.5) for sources in LISTS],
]  # fmt: skip


def reads(request: CompletionRequest) -> str:
    """Reply as a model that supports what a document says, markers aside."""
    lines = dict(re.findall(r"^(\d*[a-z]+): (.*)$", request.messages[1].content, re.M))
    texts = {text: key for key, text in lines.items() if key[0].isdigit()}
    said = {
        key: re.sub(r"\s+(?=\.|$)| ?(\[\S+\]|【\S+】|[¹²]|\(.*\))", "", text)
        for key, text in lines.items()
    }
    entries = [
        {
            "response_sentence_key": key,
            "supporting_sentence_keys": [texts[text]] if text in texts else [],
            "fully_supported": text in texts,
        }
        for key, text in said.items()
        if key.isalpha()
    ]
    lists = {f"all_{word}_sentence_keys": [*texts.values()] for word in ("relevant", "utilized")}
    return json.dumps({**lists, "sentence_support_information": entries})


def judges() -> list[Judge]:
    model = ScriptedModel(reads)
    embedded = RagEvaluator("embedded").judge
    return [
        embedded,
        LLMJudge(model),
        LLMJudge(model, window_characters=60),
        CascadeJudge(embedded, LLMJudge(model), (0.0, 1.0)),
        CascadeJudge(embedded, LLMJudge(model), (0.0, 0.0)),
    ]


@pytest.mark.parametrize("judge", judges(), ids=["embedded", "model", "windows", "second", "first"])
@pytest.mark.parametrize(("answer", "fraction"), ANSWERS, ids=[answer for answer, _ in ANSWERS])
async def test_citations_change_no_score(judge: Judge, answer: str, fraction: float) -> None:
    """By each judge, in each form."""
    evaluation = await RagEvaluator(judge).evaluate(RagCall(QUESTION, DOCUMENTS, answer))

    assert evaluation.scores["supported_fraction"].value == fraction
    assert evaluation.scores["adherence"].value == (fraction == 1)
    assert evaluation.flags.count("unknown_keys") == evaluation.flags.count("missing_keys") == 0


async def test_a_model_is_not_shown_a_list_of_sources() -> None:
    """Nor asked again for its sentences; a label that names one is of an unknown sentence."""
    listed = json.loads(reads(CompletionRequest(messages=_prompt("a: The ferry leaves at nine."))))
    listed["sentence_support_information"] += [
        {"response_sentence_key": "b", "supporting_sentence_keys": [], "fully_supported": False}
    ]
    model = ScriptedModel([json.dumps(listed)])

    evaluation = await RagEvaluator(model).evaluate(
        RagCall(QUESTION, DOCUMENTS, f"The ferry leaves at nine.{LISTS[0]}")
    )

    assert "timetable.pdf" not in model.prompts[0]
    assert evaluation.sentences.not_claims == ("b", "c", "d")
    assert evaluation.scores["supported_fraction"].value == 1.0
    assert evaluation.labels is not None
    assert evaluation.labels.unknown_keys == ("b",)


def _prompt(response: str) -> tuple[Message, ...]:
    """Make the messages of a prompt."""
    data = f"0a: {DOCUMENTS[0]}\n{response}"
    return Message(role="system", content=""), Message(role="user", content=data)


async def test_an_answer_of_sources_alone_is_an_empty_response() -> None:
    """The judge is not asked, and the reason says what the response is."""
    model = ScriptedModel([])

    evaluation = await RagEvaluator(model).evaluate(RagCall(QUESTION, DOCUMENTS, LISTS[0].strip()))

    assert {score.unscored for score in evaluation.scores.values()} == {"empty_response"}
    assert "a list of sources and nothing else" in str(evaluation.scores["adherence"].reason)


async def test_what_is_not_a_claim_is_written_and_read() -> None:
    """Only where there is such a sentence: older installations read all other rows."""
    evaluator = RagEvaluator("embedded")
    rows = [
        (await evaluator.evaluate(RagCall(QUESTION, DOCUMENTS, answer))).model_dump_json()
        for answer in ("The ferry leaves at nine.", f"The ferry leaves at nine.{LISTS[0]}")
    ]

    assert ["not_claims" in row for row in rows] == [False, True]
    again = Evaluation.model_validate_json(rows[1])
    assert again.sentences.not_claims == ("b", "c", "d")
    assert [sentence.key for sentence in again.sentences.claims] == ["a"]


async def test_the_sources_of_a_reference_are_no_claims() -> None:
    """Context recall asks for the support of its claims alone."""
    evaluator = RagEvaluator(ScriptedModel(reads), [Trace(), ContextRecall()])
    reference = f"The ferry leaves at nine. [1]{LISTS[0]}"

    evaluation = await evaluator.evaluate(
        RagCall(QUESTION, DOCUMENTS, "It carries forty passengers.", reference=reference)
    )

    assert evaluation.scores["context_recall"].value == 1.0
