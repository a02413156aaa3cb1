"""The demo's corpus: the manual of a fictitious weather station, questions and scripted answers.

Written for this demo. Two exchanges are faulty on purpose: one answer invents a fact, and one
question has no answer in the manual, so that its retrieval finds nothing relevant.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import NamedTuple
from zlib import crc32


class ManualSection(NamedTuple):
    """One document of the corpus."""

    id: str
    title: str
    text: str


class Exchange(NamedTuple):
    """A question and the scripted model's answer."""

    question: str
    answer: str
    mended: str | None = None
    """The answer without its planted fault; None for a good one."""


_MANUAL = """
## power: Power
The Larkspur weather station runs on two AA lithium batteries. A full set of batteries lasts
eighteen months. Below minus ten degrees the display dims to save power.
## rain: Rain gauge
The gauge is made of aluminium. Each tip of the bucket counts 0.2 millimetres of rain. Clean the
funnel every spring.
## wind: Wind vane
Mount the wind vane at least two metres above the roof. Point the white arrow to the north before
you tighten the screw. Gusts are measured up to 180 kilometres per hour.
## radio: Radio
The outdoor sensor sends its readings to the display every forty seconds. The radio reaches one
hundred metres in open air. Thick walls cut the range of the radio by half.
## reset: Reset
To reset the station, hold the blue button for eight seconds. The reset erases all stored readings.
After the reset the station searches for its outdoor sensor.
## memory: Memory
The display stores hourly readings for ninety days. Older readings are overwritten. A USB cable
copies the stored readings to a computer as a CSV file.
## alarm: Frost alarm
The frost alarm sounds when the outdoor temperature falls below three degrees. Press any button to
silence the frost alarm for one hour.
## care: Care
Wipe the display with a dry cloth. Do not use alcohol on the solar shield, because it turns the
plastic white.
## box: In the box
The box holds the display, the outdoor sensor, a rain gauge, a wind vane and four screws. Batteries
are not part of the delivery.
"""


def _section(part: str) -> ManualSection:
    """Read a section: a heading `name: title`, then the text."""
    heading, _, text = part.partition("\n")
    name, _, title = heading.partition(": ")
    return ManualSection(name, title, " ".join(text.split()))


SECTIONS = tuple(map(_section, _MANUAL.split("## ")[1:]))

LANGCHAIN_EXCHANGES = (
    Exchange(
        "How long does a full set of batteries last?",
        "A full set of batteries lasts eighteen months.",
    ),
    Exchange(  # the second sentence is invented
        "How do I reset the station?",
        "To reset the station, hold the blue button for eight seconds. "
        "Professor Ilse Marwick of Geneva patented this button in 1987.",
        "To reset the station, hold the blue button for eight seconds.",
    ),
    Exchange(
        "When does the frost alarm sound?",
        "The frost alarm sounds when the outdoor temperature falls below three degrees. "
        "Press any button to silence the frost alarm for one hour.",
    ),
)

LLAMA_INDEX_EXCHANGES = (
    Exchange(
        "How high should I mount the wind vane?",
        "Mount the wind vane at least two metres above the roof.",
    ),
    Exchange(  # not in the manual, so the retrieval finds nothing relevant
        "Which insurance companies compensate owners after hail?",
        "The manual does not say which insurance companies compensate owners after hail.",
    ),
    Exchange(
        "How many millimetres of rain is one tip of the bucket?",
        "Each tip of the bucket counts 0.2 millimetres of rain.",
    ),
)

NO_ANSWER = "I do not know."


def scripted_answer(prompt: str) -> str:
    """Return the scripted answer to the question that the prompt contains."""
    for exchange in (*LANGCHAIN_EXCHANGES, *LLAMA_INDEX_EXCHANGES):
        if exchange.question in prompt:
            return exchange.answer
    return NO_ANSWER


_DIMENSIONS = 512
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a after all and any are as at be before by do does for from how i in is it its many not "
        "of on one or should than that the this to up when which you",
    )
)


@cache
def embed(text: str) -> list[float]:
    """Embed a text as a bag of hashed words, scaled to unit length; zeros for a text without words.

    The same in every process, because words are hashed by CRC-32 and not by `hash()`. Good enough
    for nine documents.
    """
    vector = [0.0] * _DIMENSIONS
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        if word not in _STOP_WORDS:
            vector[crc32(word.encode()) % _DIMENSIONS] += 1.0
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else vector


def similarity(a: list[float], b: list[float]) -> float:
    """Return the cosine of two embeddings, from 0 to 1."""
    return sum(x * y for x, y in zip(a, b, strict=True))
