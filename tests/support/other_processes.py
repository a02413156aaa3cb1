"""For tests of several processes, which import these judges: each does one thing to its process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from by_hand import labels_of

from rag_eval_integrations.judges.judge import JudgeBase
from rag_eval_integrations.records import JudgeInfo, Labelling, RagCall, SentencizedCall, Usage

LABELS = labels_of(["0a"], ["0a"], {"a": (["0a"], True)})


def calls(count: int, questions: dict[int, str] | None = None) -> Iterator[RagCall]:
    """Make calls that differ, with their numbers as ids; some have a word for a judge below."""
    for number in range(count):
        question = (questions or {}).get(number, f"Is it {number}?")
        yield RagCall(
            question=question, documents=["It is so. It was."], response="It is so.", id=str(number)
        )


def runs(number: int) -> bool:
    """Whether a process runs."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"  # a zombie waits for its parent alone


class ObedientJudge(JudgeBase):
    """Does what the question says; writes a line with its process's number for each call.

    `die`: kills its process. `die once`: kills it unless the file beside the log exists.
    `fail`: raises. `wait`: takes a second and a bit.
    """

    name = "told"
    version = "1"

    def __init__(self, log: Path) -> None:
        self.log = log

    async def label(self, call: SentencizedCall) -> Labelling:
        question = call.call.question
        with self.log.open("a") as file:
            file.write(f"{os.getpid()} {call.call.id}\n")
        died = self.log.with_suffix(".died")
        if question == "die" or (question == "die once" and not died.exists()):
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if question == "wait":
            await asyncio.sleep(1.1)
        if question == "fail":
            raise ValueError("it was told to fail")
        return Labelling(labels=LABELS, judge=JudgeInfo(name="told", version="1"), usage=Usage())


class Closed(ObedientJudge):
    """Cannot be pickled."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("it holds a socket")


class NotThere(ObedientJudge):
    """Can be pickled, and not made again."""

    def __reduce__(self) -> tuple[object, ...]:
        return _missing, ()


def _missing() -> None:
    raise FileNotFoundError("its model is not there")
