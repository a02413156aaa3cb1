"""Judges that actors import by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from rag_eval_integrations.judges import EmbeddedJudge
from rag_eval_integrations.records import Labelling, SentencizedCall


class DeadlyJudge(EmbeddedJudge):
    """The embedded judge, which some calls kill.

    `deadly` in a question does so always; a path after `once` the first time, which makes the file.
    """

    async def label(self, call: SentencizedCall) -> Labelling:
        question = call.call.question
        once = question.partition("once ")[2]
        if "deadly" in question or (once and _is_new(Path(once))):
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().label(call)


def _is_new(path: Path) -> bool:
    new = not path.exists()
    path.touch()
    return new


class FailingJudge(EmbeddedJudge):
    """The embedded judge on a bad day: every call is an error."""

    async def label(self, call: SentencizedCall) -> Labelling:
        raise ValueError("not today")
