"""Presets of G-Eval: ready-made metrics with fixed steps and a description of every score.

Most have two forms: `summary` (documents and a summary of them) and `qa` (a question and its
response, with documents where the criterion needs them). Changing a word here changes scores; the
digest of the steps in `by.prompt_version` keeps such scores apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rag_eval_integrations.errors import ConfigurationError

Task = Literal["summary", "qa"]
TASKS: tuple[Task, ...] = ("summary", "qa")


@dataclass(frozen=True, slots=True)
class Preset:
    """The arguments of a ready-made metric."""

    name: str
    params: tuple[str, ...]
    steps: tuple[str, ...]
    levels: dict[str, str]
    scale: tuple[int, int] = (1, 5)


def preset(name: str, task: Task) -> Preset:
    """Look up a ready-made metric.

    Raises:
        ConfigurationError: the name or the task is unknown, or the metric lacks this task.
    """
    if name not in PRESETS:
        raise ConfigurationError("name", name, f"no such metric; use one of {', '.join(PRESETS)}")
    forms = PRESETS[name]
    if task not in TASKS:
        raise ConfigurationError("task", task, f"use one of {', '.join(TASKS)}")
    if task not in forms:
        raise ConfigurationError("task", task, f"{name} is available for {', '.join(forms)} only")
    return forms[task]


_COHERENCE = {
    "5": "one line of thought from the first sentence to the last; every sentence has its place",
    "4": "well ordered; a link between two sentences is missing, and the reader supplies it",
    "3": "the thread can be followed, but sentences stand in an odd order or a jump disturbs",
    "2": "mostly single statements side by side; the reader has to find the thread",
    "1": "no order: fragments, repetitions or contradictions that do not add up to a text",
}
_FLUENCY = {
    "5": "reads like the work of a careful writer; nothing to correct",
    "4": "reads well; a slip or a clumsy phrase that does not slow the reader down",
    "3": "understood at once, but with several mistakes or a wooden style",
    "2": "mistakes in most sentences; some have to be read twice",
    "1": "broken language: parts of it cannot be understood",
}
_CONSISTENCY = {
    "5": "every statement is said by the documents or follows from them",
    "4": "all that matters is backed; a detail is put more sharply or loosely than it is there",
    "3": "the main point is backed, but a statement is not, or is slightly wrong",
    "2": "several statements are not backed, or one of weight contradicts the documents",
    "1": "the main point contradicts the documents or is made up",
}

_SUMMARY_COHERENCE = Preset(
    "coherence",
    ("documents", "response"),
    (
        "Read the Documents and note their subject, their main points and the order in which "
        "these depend on each other.",
        "Read the Response, a summary of the Documents, as a text of its own: does each sentence "
        "follow from the ones before it, and does it stay with one subject?",
        "Hold the order of the Response against that of the points in the Documents: is a point "
        "used before it is introduced, torn apart, repeated, or without a link to the others?",
        "Weigh what you found: a text that builds up is coherent, a heap of true sentences is not.",
    ),
    _COHERENCE,
)
_QA_COHERENCE = Preset(
    "coherence",
    ("question", "response"),
    (
        "Read the Question and note what a complete answer would have to lead the reader through.",
        "Read the Response sentence by sentence: does each follow from the ones before it, and "
        "are its references (this, they, the former) clear?",
        "Check that the parts of the Response stand in an order that serves the Question, that "
        "none contradicts another and none is repeated.",
        "Weigh what you found: one line of thought is coherent, a heap of true sentences is not.",
    ),
    _COHERENCE,
)
_SUMMARY_CONSISTENCY = Preset(
    "consistency",
    ("documents", "response"),
    (
        "List the statements of the Response, a summary: who did what, when, where, how much, why.",
        "Look for each statement in the Documents. It is backed if they say it or if it follows "
        "from what they say; what is true elsewhere does not count.",
        "Note each statement that the Documents do not back or contradict: exchanged names, wrong "
        "numbers, causes that nobody claimed, guesses told as facts.",
        "Weigh the unbacked statements by how much of the Response's message rests on them. What "
        "the Response leaves out does not count here.",
    ),
    _CONSISTENCY,
)
_QA_CONSISTENCY = Preset(
    "consistency",
    ("question", "documents", "response"),
    (
        "List the statements of the Response, leaving out what it only repeats from the Question.",
        "Look for each statement in the Documents. It is backed if they say it or if it follows "
        "from what they say; what is true elsewhere does not count.",
        "Note each statement that the Documents do not back or contradict. Saying that the "
        "Documents do not tell is backed if they do not.",
        "Weigh the unbacked statements by how much of the answer to the Question rests on them.",
    ),
    _CONSISTENCY,
)
_FLUENCY_STEPS = (
    "Read the Response aloud in your head and mark what a proof-reader would: grammar, spelling, "
    "punctuation, missing or doubled words, broken formatting.",
    "Mark what is correct and still reads badly: clumsy or cut-off sentences, words out of place.",
)
_SUMMARY_FLUENCY = Preset(
    "fluency",
    ("response",),
    (
        *_FLUENCY_STEPS,
        "Weigh the marks by how much they slow the reader down. Whether the content of the "
        "Response is right does not count here.",
    ),
    _FLUENCY,
)
_QA_FLUENCY = Preset(
    "fluency",
    ("question", "response"),
    (
        *_FLUENCY_STEPS,
        "Check that the tone and the language of the Response suit the Question.",
        "Weigh the marks by how much they slow the reader down. Whether the Response answers the "
        "Question rightly does not count here.",
    ),
    _FLUENCY,
)
_SUMMARY_RELEVANCE = Preset(
    "relevance",
    ("documents", "response"),
    (
        "Read the Documents and list the few points that somebody who reads only the Response, a "
        "summary, has to learn.",
        "Check for each of these points whether the Response gives it.",
        "Mark what the Response says beside them: minor details, repetitions, what is not from "
        "the Documents.",
        "Weigh both: points left out against room spent on what does not matter.",
    ),
    {
        "5": "all main points and nothing else",
        "4": "the main points; a lesser one is missing or a sentence could go",
        "3": "the core is there, but a main point is missing or much is beside it",
        "2": "mostly details or repetitions; several main points are missing",
        "1": "the main points are missing",
    },
)
_QA_RELEVANCE = Preset(
    "relevance",
    ("question", "response"),
    (
        "Say for yourself what the Question asks for, all of its parts included.",
        "Check for each part whether the Response speaks to it directly, whether or not it is "
        "right.",
        "Mark what the Response says that the Question did not ask for and that does not help "
        "with it: digressions, repetitions, empty phrases.",
        "Weigh both: parts of the Question left open against what is beside it.",
    ),
    {
        "5": "speaks to all that is asked, and to nothing else",
        "4": "speaks to what is asked; a small part is thin or a sentence is beside it",
        "3": "speaks to the main part of the question, but leaves one open or digresses",
        "2": "touches the question; most of the response is beside it",
        "1": "does not speak to the question",
    },
)
_CORRECTNESS = Preset(
    "correctness",
    ("response", "reference"),
    (
        "List the facts that the Expected Response states, and which of them are essential.",
        "Check for each of these facts whether the Response states it, in whatever words.",
        "Note what in the Response contradicts the Expected Response, and what it adds: an "
        "addition counts against it only where it changes the meaning.",
        "Weigh contradictions most, then essential facts that are missing, then lesser ones. "
        "Wording, length and order do not count.",
    ),
    {
        "9-10": "says the same; at most a detail without weight differs",
        "7-8": "says all that is essential; a lesser fact is missing or imprecise",
        "5-6": "partly right: an essential fact is missing, none is contradicted",
        "3-4": "mostly not what was expected, or an essential fact is contradicted",
        "0-2": "wrong, or an answer to something else",
    },
    (0, 10),
)
_GROUNDEDNESS = Preset(
    "groundedness",
    ("question", "documents", "response"),
    (
        "Split the Response into single claims, leaving out greetings and what it only repeats "
        "from the Question.",
        "Find for each claim the place in the Documents that states it. General knowledge is no "
        "ground, however true.",
        "Count the claims without such a place, and mark those that somebody may act on.",
        "Weigh them: what matters is the share of the Response that stands on the Documents, and "
        "above all whether the answer to the Question does.",
    ),
    {
        "5": "every claim has its place in the documents",
        "4": "one claim without weight has none",
        "3": "the answer has its place, but several claims around it have none",
        "2": "parts of the answer have no place in the documents",
        "1": "the answer has no place in the documents or contradicts them",
    },
)

PRESETS: dict[str, dict[str, Preset]] = {
    "coherence": {"summary": _SUMMARY_COHERENCE, "qa": _QA_COHERENCE},
    "consistency": {"summary": _SUMMARY_CONSISTENCY, "qa": _QA_CONSISTENCY},
    "fluency": {"summary": _SUMMARY_FLUENCY, "qa": _QA_FLUENCY},
    "relevance": {"summary": _SUMMARY_RELEVANCE, "qa": _QA_RELEVANCE},
    "correctness": {"qa": _CORRECTNESS},
    "groundedness": {"qa": _GROUNDEDNESS},
}
"""Presets by name and task."""
