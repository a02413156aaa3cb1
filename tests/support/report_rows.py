"""Evaluations for the tests of reports: our own rows, and some that show what those do not."""

from __future__ import annotations

from functools import cache

from by_hand import labels_of
from hostile import HOSTILE, MARKUP
from own_rows import HAND_MADE, made_rows

from rag_eval_integrations import Evaluation, RagCall, Score, Trace
from rag_eval_integrations.dataset import Labelled, labelled_from, score_labelled
from rag_eval_integrations.records import By, Capture, Document, EvaluationError, JudgeInfo, Turn
from rag_eval_integrations.sentences import Punkt

LONG_WORD = "w" * 100_000
"""A word that no line holds."""
SCORE_NAMES = (MARKUP[6], "constructor", "__proto__", "a,b<=0.5=c&s=a", "-minus", ":id")
"""Texts that name a score, too; the first is one of `HOSTILE`."""
ATTACKS = (
    *HOSTILE,
    "</style><b>bold</b>",
    "</script><script>document.title = 'owned'</script>",
    "<!-- <script>",
    "javascript:document.title='owned'",
    '" onmouseover="document.title=1" x="',
    "{{ 7 * 7 }} {% raw %}",
    "&s=a&sort=-adherence#row=2",
    *SCORE_NAMES[1:],
)
"""Texts that want to act in a page, its script or its address."""


def labelled(
    name: str,
    documents: list[str],
    response: str,
    *,
    relevant: str = "",
    used: str = "",
    support: tuple[tuple[str, str, bool | None, str], ...] = (),
    question: str = "What is it?",
    against: dict[str, tuple[str, ...]] | None = None,
) -> Evaluation:
    """Score a call with labels from short notes: keys are separated by spaces."""
    call = RagCall(question=question, documents=documents, response=response, id=name)
    by_key = {key: (keys.split(), full, why) for key, keys, full, why in support}
    labels = labels_of(relevant.split(), used.split(), by_key, contradictions=against or {})
    content = {**call.model_dump(mode="json"), "labels": labels.model_dump(mode="json")}
    row: Labelled = labelled_from(content, Punkt())
    return score_labelled(row, [Trace()])


def oven() -> Evaluation:
    """A call with every state that a sentence may have."""
    made = labelled(
        "oven",
        [
            "The oven heats up in four minutes. Its door has two panes. The lamp is in the ceiling.",
            "A tray fits at three heights. The fan runs at every temperature.",
        ],
        "It heats up in nine minutes. Its door has two panes. A tray fits at five heights. "
        "It was made in Turin. It is quiet.",
        question="How fast does the oven heat up?",
        relevant="0a 0c",
        used="0a 0b 1a",
        support=(
            ("a", "0a", False, "The document says four minutes."),
            ("b", "0b", True, "Stated."),
            ("c", "", False, "Three heights, not five."),
            ("d", "", False, "No document names a place."),
        ),
        against={"a": ("number nine (documents: four)",), "c": ("number five (documents: three)",)},
    )
    capture = Capture(
        framework="langchain", documents_from="prompt", latency_s=0.25, retrievers=("Shelf",),
        metadata={"thread": "t-7"}, not_in_prompt=(Document("The grill is sold apart.", id="grill"),),
    )  # fmt: skip
    asked = Turn(role="user", content="Which oven do I have?")
    told = Turn(role="assistant", content="The small one.")
    more = {"document_ids": ("manual-1", "manual-2"), "history": (asked, told)}
    words = {"metadata": {"team": "kitchen"}, "reference": "It heats up in four minutes."}
    return made.model_copy(update={"capture": capture, **more, **words})


def graded() -> Evaluation:
    """A call with a G-Eval score, its distribution and its reason, and a threshold that fails."""
    made = labelled("graded", ["Oil stops the squeak."], "Oil it.", relevant="0a", used="0a",
                    support=(("a", "0a", True, ""),))  # fmt: skip
    score = Score(
        name="coherence", status="scored", value=0.4, raw=2.6, scale=(1.0, 5.0), threshold=0.5,
        reason="It leaves the reader with a question.", method="logprobs", n=20, mass=0.97,
        std_error=0.05, distribution={"1": 0.1, "2": 0.4, "3": 0.3, "4": 0.2},
        evidence={"steps": ["Read the answer.", "Ask what it leaves open."]},
        by=By(judge="openai", model="some-model", prompt_version="3"),
    )  # fmt: skip
    return made.model_copy(update={"scores": {**made.scores, "coherence": score}})


def broken() -> Evaluation:
    """A call that could not be evaluated."""
    made = labelled("broken", ["Oil stops the squeak."], "Oil it.")
    error = EvaluationError(type="JudgeUnreachableError", message="refused", stage="judge")
    scores = {
        name: Score(name=name, status="error", reason="refused", by=score.by)
        for name, score in made.scores.items()
    }
    return made.model_copy(
        update={"error": error, "labels": None, "scores": scores, "judge": JudgeInfo(name="far")}
    )


def attacked(number: int, text: str) -> Evaluation:
    """A call whose every text wants to act."""
    made = labelled(
        text, [f"{text} One sentence."], f"{text} Another one.", question=text, relevant="0a",
        support=(("a", "0a", False, text),), against={"a": (f"number {text} (documents: {text})",)},
    )  # fmt: skip
    scores = {
        **made.scores,
        "grade": Score(name="grade", status="scored", value=0.5, reason=text,
                       evidence={text: text}, distribution={text: 1.0}),
    }  # fmt: skip
    if text in SCORE_NAMES:
        scores[text] = Score(name=text, status="scored", value=0.125)
    return made.model_copy(
        update={
            "scores": scores,
            "metadata": {text: text},
            "document_ids": (text,),
            "flags": (text,),
            "judge": JudgeInfo(name=text, model=text),
            "row_key": str(number),
        }
    )


@cache
def evaluations() -> tuple[Evaluation, ...]:
    """Some 250 calls: enough for three pieces of the page's data."""
    punkt = Punkt()
    rows = [made.row for made in HAND_MADE] + made_rows(190)
    own = [score_labelled(labelled_from(dict(row), punkt), [Trace()]) for row in rows]
    return (oven(), graded(), broken(), *own)


@cache
def attacks() -> tuple[Evaluation, ...]:
    """Calls that attack the page, and one with a word that is too long for any line."""
    rows = [attacked(number, text) for number, text in enumerate(ATTACKS)]
    return (*rows, labelled("long", [LONG_WORD], LONG_WORD, question=LONG_WORD))
